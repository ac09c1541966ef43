-- What a measured decode speed says about the memory: speed times bytes per token.
local formula = require("formula").formula

return formula {
  name = "implied_bandwidth", unit = "GB/s",
  formula = "decode_rate * bytes_per_token",
  symbols = {
    decode_rate     = { unit = "tok/s",  help = "measured decode speed of one stream" },
    bytes_per_token = { unit = "GB/tok", help = "weights and KV cache read per token" },
  },
  valid = "one stream; above the machine's bandwidth it proves a measuring error or a cache",
  source = { title = "Databricks, LLM Inference Performance Engineering: Best Practices (MBU)",
             url = "https://www.databricks.com/blog/llm-inference-performance-engineering-best-practices" },
  compute = function(x) return x.decode_rate * x.bytes_per_token end,
}

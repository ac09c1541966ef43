-- Decode speed of one stream from memory bandwidth: each generated token reads every active weight once, and the KV cache
-- of the context so far.
local formula = require("formula").formula

return formula {
  name = "decode_rate", unit = "tok/s",
  formula = "bandwidth / bytes_per_token",
  symbols = {
    bandwidth       = { unit = "GB/s",   help = "read bandwidth of the memory that holds the weights" },
    bytes_per_token = { unit = "GB/tok", help = "weights read per token plus KV cache read per token" },
  },
  valid = "one stream, decode only, weights larger than the last-level cache; MoE: active bytes",
  source = { title = "Databricks, LLM Inference Performance Engineering: Best Practices (MBU)",
             url = "https://www.databricks.com/blog/llm-inference-performance-engineering-best-practices" },
  compute = function(x) return x.bandwidth / x.bytes_per_token end,
}

-- Bytes read from memory for one generated token.
local formula = require("formula").formula

return formula {
  name = "bytes_per_token", unit = "GB/tok",
  formula = "weights_read + kv_per_position * positions",
  symbols = {
    weights_read    = { unit = "GB/tok", help = "tensor bytes of the file less an embedding table that is only looked up" },
    kv_per_position = { unit = "byte/tok", help = "KV cache bytes of one position: 2 x layers x kv_heads x head_dim x bytes" },
    positions       = { unit = "1", help = "positions in the cache, taken at the middle of the answer" },
  },
  valid = "dense models; attention over the whole context",
  source = { title = "llama.cpp, GGUF specification", url = "https://github.com/ggml-org/ggml/blob/master/docs/gguf.md" },
  compute = function(x) return x.weights_read + x.kv_per_position * x.positions end,
}

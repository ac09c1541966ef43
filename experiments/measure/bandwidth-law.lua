-- Day 10: is decode speed memory bandwidth? Two sizes and two quantisations of one model that tally writes itself, so a
-- reader needs no download and gets the same bytes.
local tally = require "tally"

-- 0.3 and 0.7 billion parameters: both larger than the caches of most machines, both quick on two cores.
local shapes = {
  small = { layers = 13, embed = 1536, heads = 24, kv_heads = 6, ff = 3328, vocab = 8192 },
  large = { layers = 16, embed = 1792, heads = 28, kv_heads = 7, ff = 5376, vocab = 32000 },
}

local function model(size, quant)
  local m = { name = size .. "-" .. quant, quant = quant, answer = 200, context = 4096 }
  for k, v in pairs(shapes[size]) do m[k] = v end
  return tally.synth(m)
end

return tally.experiment {
  id       = "bandwidth-law", map = "measure", day = 10,
  title    = { zh = "生成速度由記憶體頻寬決定", en = "Decode speed is memory bandwidth" },
  question = { zh = "tok/s 是否等於記憶體頻寬除以每個 token 讀取的位元組數？",
               en = "Is tok/s the memory bandwidth divided by the bytes read per token?" },
  axes     = { model = tally.models { model("small", "q4_0"), model("small", "q8_0"),
                                      model("large", "q4_0"), model("large", "q8_0") } },
  engine   = { context = 512, slots = 1 },
  workload = tally.completion { prompt_tokens = 32, output_tokens = 64, cache = "cold" },
  repeats  = { min = 5, max = 6, until_ci = 0.02 },
  predict  = function(c)
    return tally.calc.decode_rate {
      bandwidth = c.machine.bandwidth,
      bytes_per_token = tally.calc.bytes_per_token {
        weights_read = c.model.weights_read, kv_per_position = c.model.kv_per_position, positions = c.positions,
      },
    }
  end,
  accept   = { { metric = "ratio", min = 0.6, max = 1.05 } },
  figures  = {
    tally.figure.scatter { id = "law", x = "bytes_per_token", y = "decode_rate", line = "predicted", log = "xy",
      title = { zh = "速度只看讀了多少位元組", en = "Speed is decided by the bytes read" } },
  },
}

-- T2: Apple M4 Max with the 40-core GPU. The 32-core part has 410 GB/s: the core count belongs to the profile.
local tally = require "tally"

local discussion = "https://github.com/ggml-org/llama.cpp/discussions/4167"

return tally.machine {
  id = "t2", owned = true,
  title = { zh = "T2：Apple M4 Max 128 GB（40 核 GPU）", en = "T2: Apple M4 Max 128 GB (40-core GPU)" },
  match = { cpu = { name = "Apple M4 Max", memory_gb = 128 } },
  memory = {
    bandwidth = tally.cited(546, "GB/s", { who = "llama.cpp discussion 4167, table of Apple chips", where = discussion,
                  when = "2026-09-30", conditions = "40-core GPU" }),
  },
}

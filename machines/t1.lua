-- T1: two RTX 4070 Ti. NVIDIA's page prints no bandwidth, so it is derived from bus width and data rate.
local tally = require "tally"

local table_by = "jaeseok614, llm-gpu-checker-ko"
local where = "https://github.com/jaeseok614/llm-gpu-checker-ko"

return tally.machine {
  id = "t1", owned = true,
  title = { zh = "T1：2 × RTX 4070 Ti 12 GB", en = "T1: 2 x RTX 4070 Ti 12 GB" },
  match = { gpu = { name = "RTX 4070 Ti", count = 2 } },
  memory = {
    devices   = 2,
    bandwidth = tally.cited(504, "GB/s", { who = table_by, where = where, when = "2026-08-12",
                  conditions = "per card; equals 192 bit x 21 Gbps / 8 (GDDR6X)" }),
    capacity  = tally.cited(12, "GB", { who = table_by, where = where, when = "2026-08-12", conditions = "per card" }),
  },
}

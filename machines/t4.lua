-- T4: four H100 SXM. Not owned: its numbers are derived or cited until somebody's attested run is imported.
local tally = require "tally"

local systems = "https://github.com/ai-dynamo/aiconfigurator"
local function nvidia(number, unit)
  return tally.official(number, unit, { url = systems, title = "NVIDIA AIConfigurator, systems/h100_sxm.yaml",
                                        retrieved = "2026-08-21" })
end

return tally.machine {
  id = "t4", owned = false,
  title = { zh = "T4：4 × H100 SXM 80 GB", en = "T4: 4 x H100 SXM 80 GB" },
  match = { gpu = { name = "H100", count = 4 } },
  memory = { devices = 4, bandwidth = nvidia(3350, "GB/s"), capacity = nvidia(80, "GiB") },
  compute = { dense_bf16 = nvidia(989, "TFLOP/s") },
  notes = "LLM-Viewer's table says 3072 GB/s: it conflicts with NVIDIA's own 3350 GB/s",
}

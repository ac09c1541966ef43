-- T3: two RTX PRO 6000 Blackwell. Not owned: its numbers are derived or cited until somebody's attested run is imported.
local tally = require "tally"

local systems = "https://github.com/ai-dynamo/aiconfigurator"
local function nvidia(number, unit)
  return tally.official(number, unit, { url = systems, title = "NVIDIA AIConfigurator, systems/rtx_pro_6000_server.yaml",
                                        retrieved = "2026-08-21" })
end

return tally.machine {
  id = "t3", owned = false,
  title = { zh = "T3：2 × RTX PRO 6000 Blackwell 96 GB", en = "T3: 2 x RTX PRO 6000 Blackwell 96 GB" },
  match = { gpu = { name = "RTX PRO 6000", count = 2 } },
  memory = { devices = 2, bandwidth = nvidia(1792, "GB/s"), capacity = nvidia(102641958912, "byte") },
  notes = "another page says 1.6 TB/s for the server card (jarvislabs.ai); 512 bit x 28 Gbps / 8 gives 1792 GB/s",
}

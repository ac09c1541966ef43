-- machine: a profile. Every number is a value with a label and a source; `match` says how a live probe recognises it.
local schema = require "schema"
local machine = {}

local fields = {
  id     = { type = "string", required = true },
  title  = { type = "table", required = true },
  owned  = { type = "boolean", default = false, help = "may measured values of this machine exist in the author's store?" },
  match  = { type = "table", help = "match = { gpu = { name = \"RTX 4070 Ti\", count = 2 } } or { cpu = \"Apple M4 Max\" }" },
  memory = { type = "table", required = true, fields = {
    bandwidth = { type = "value", required = true, help = "tally.official(504, \"GB/s\", {…}) or tally.derived {…}" },
    capacity  = { type = "value" },
    devices   = { type = "integer", default = 1, min = 1 },
  } },
  compute = { type = "table" },
  notes  = { type = "string" },
}

function machine.machine(t)
  if type(t) ~= "table" then error("tally.machine takes one table", 2) end
  return schema.check(t, fields)
end

return machine

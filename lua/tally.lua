-- tally: what an experiment, a machine file or a report script may use. `local tally = require "tally"`.
local core = require "tally_core"
local tally = {}

-- Values -------------------------------------------------------------------------------------------------------
-- A value is number + unit + label + source. Arithmetic on values gives derived values; mixing units is an error.

-- tally.official(504, "GB/s", { url=, title=, retrieved= })
function tally.official(number, unit, source) return core.value(number, unit, "official", source) end

-- tally.measured(37.4, "GB/s", { run = }): for profiles that `tally probe` writes; a report never takes it by hand.
function tally.measured(number, unit, source) return core.value(number, unit, "measured", source) end

-- tally.cited(16, "tok/s", { who=, where=, when=, conditions= })
function tally.cited(number, unit, source) return core.value(number, unit, "cited", source) end

-- tally.derived { name=, formula=, inputs = {symbol = value, ...}, result = value }: gives an arithmetic result its
-- name and formula, with the inputs by their symbols.
function tally.derived(d) return core.derive(d) end

-- tally.interval(value, lo, hi): the same value with a stated interval (numbers in the value's unit).
tally.interval = core.interval

tally.experiment = require("experiment").experiment
tally.machine = require("machine").machine

-- Axes -----------------------------------------------------------------------------------------------------------

-- Names the axis whose value of the cell stands here: tally.axis "context".
function tally.axis(name) return { ["$axis"] = name } end

-- Model references for an axis: names known to tally, files, or synthetic models (tally.synth).
function tally.models(list) return list end

-- A model that tally writes itself, the same bytes for everybody: tally.synth { name=, quant=, size= | layers=, embed=, … }
tally.synth = require("workload.model").synth
-- A model file of the reader's: tally.file { name=, path= }
tally.file = require("workload.model").file

-- Workloads ---------------------------------------------------------------------------------------------------------
tally.chat = require("workload.request").chat
tally.completion = require("workload.request").completion
-- When requests are sent: workload = tally.chat { …, schedule = tally.open { rate = 2 } }
tally.closed = require("workload.schedule").closed
tally.open = require("workload.schedule").open
tally.trace = require("workload.schedule").trace
tally.search = require("workload.schedule").search

-- Formulas: tally.calc.decode_rate { bandwidth=, bytes_per_token= } -----------------------------------------------
tally.calc = setmetatable({}, { __index = function(t, name)
  local f = require("calc." .. name)
  rawset(t, name, f)
  return f
end })
tally.formula = require("formula").formula

-- Figures ------------------------------------------------------------------------------------------------------------
tally.figure = require("report.spec")

return tally

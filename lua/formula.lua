-- formula: one physical formula with symbols, units, validity and source. Calling it gives a derived value that can be
-- unfolded to its inputs.
local core = require "tally_core"
local formula = {}

-- formula { name=, unit=, formula=, symbols = {sym = {unit=, help=, optional=}}, valid=, source=, compute = function(x) }
function formula.formula(def)
  local call = function(_, inputs)
    for sym in pairs(inputs) do
      if not def.symbols[sym] then error(("%s has no input '%s'"):format(def.name, sym), 3) end
    end
    local used = {}
    for sym, s in pairs(def.symbols) do
      local v = inputs[sym]
      if v == nil then
        if not s.optional then error(("%s needs '%s' (%s): %s"):format(def.name, sym, s.unit, s.help), 3) end
      elseif type(v) == "number" and s.unit == "1" then
        used[sym] = v -- a plain count: no unit, no label, no source of its own
      elseif not core.is_value(v) then
        error(("%s: '%s' must be a value with unit and label, it is %s"):format(def.name, sym, type(v)), 3)
      else
        used[sym] = core.convert(v, s.unit)
      end
    end
    return core.derive { name = def.name, formula = def.formula, inputs = used,
                         result = core.convert(def.compute(used), def.unit), note = def.valid, reference = def.source }
  end
  return setmetatable(def, { __call = call })
end

return formula

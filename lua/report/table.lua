-- report.table: cells of a run -> a table with unit and label in each column's header.
local words = require "report.words"
local tables = {}

-- arg: { columns = { "decode_rate", … }, lang =, cells = {…}, key = "model" }: the first column is the cell's name.
function tables.build(arg)
  local columns = { { key = "cell", title = words.metric(arg.key or "model", arg.lang), align = "left" } }
  for _, name in ipairs(arg.columns) do
    local unit, label
    for _, cell in ipairs(arg.cells) do
      local v = cell.values[name]
      if v then
        unit, label = v.unit, v.label
        break
      end
    end
    if not unit then
      error({ message = ("table: no cell of the run has a value '%s'"):format(name),
              remedy = "the values of this run are: " .. table.concat(arg.names or {}, ", ") }, 0)
    end
    columns[#columns + 1] = { key = name, title = words.metric(name, arg.lang), unit = unit, label = label, align = "right" }
  end
  return { columns = columns }
end

return tables

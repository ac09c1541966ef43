-- report.figure: an experiment's figure declaration + the cells of a run -> the figure description that is drawn.
-- Called after the run, on stored data only.
local words = require "report.words"
local figure = {}

local function by_x(a, b) return a.x < b.x end

local function point(cell, x, y)
  return { x = x.value, xlo = x.lo, xhi = x.hi, y = y.value, ylo = y.lo, yhi = y.hi, text = cell.label }
end

-- One series a label (and a machine): points with their intervals.
local function points_of(cells, x_name, y_name)
  local out = {}
  for _, cell in ipairs(cells) do
    local x, y = cell.values[x_name], cell.values[y_name]
    if x and y and x.value and y.value then out[#out + 1] = point(cell, x, y) end
  end
  table.sort(out, by_x)
  return out
end

-- The stored prediction as a line with its interval as a band, through the predictions of the cells in order of x.
local function prediction(cells, x_name, name, lang)
  local line = points_of(cells, x_name, name)
  for _, p in ipairs(line) do p.text = nil end
  return { name = words.metric(name, lang), label = "derived", kind = #line > 1 and "line" or "points", points = line }
end

local function axis(name, unit, log, lang)
  return { label = words.metric(name, lang), unit = unit or "", log = log }
end

local function unit_of(cells, name)
  for _, cell in ipairs(cells) do
    if cell.values[name] then return cell.values[name].unit end
  end
end

local function alt(arg, measured)
  local parts = {}
  for _, p in ipairs(measured) do parts[#parts + 1] = ("%s: x %.4g, y %.4g"):format(p.text or "", p.x, p.y) end
  return words.text(arg.spec.title, arg.lang) .. ". " .. table.concat(parts, "; ")
end

-- arg: { spec =, lang =, machine =, cells = { { key=, label=, values = { name = {value=,lo=,hi=,unit=,label=} } } } }
function figure.build(arg)
  local s, lang, cells = arg.spec, arg.lang, arg.cells
  local measured = points_of(cells, s.x, s.y)
  if #measured == 0 then
    error({ message = ("figure '%s': no cell of the run has both %s and %s"):format(s.id or "?", s.x, s.y),
            remedy = "run the experiment to its end, or name other metrics in its figures" }, 0)
  end
  local series = {}
  if s.line then series[1] = prediction(cells, s.x, s.line, lang) end
  if s.points then
    series[#series + 1] = { name = words.metric(s.points, lang), label = "derived", kind = "points", points = points_of(cells, s.x, s.points) }
  end
  local label = "measured"
  for _, cell in ipairs(cells) do label = cell.values[s.y] and cell.values[s.y].label or label end
  series[#series + 1] = { name = words.part("measured", lang), label = label, kind = "points", machine = arg.machine, points = measured }
  return {
    type = "scatter", lang = lang, title = words.text(s.title, lang), alt = alt(arg, measured),
    x = axis(s.x, unit_of(cells, s.x), s.log:find("x") ~= nil, lang),
    y = axis(s.y, unit_of(cells, s.y), s.log:find("y") ~= nil, lang),
    series = series,
  }
end

return figure

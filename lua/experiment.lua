-- experiment: one file = one question. Strict: a field that is not known here is an error with a line and a suggestion.
local core = require "tally_core"
local schema = require "schema"
local experiment = {}

local text = { type = "table", fields = {
  zh = { type = "string" }, ["zh-Hant"] = { type = "string" }, ["zh-Hans"] = { type = "string" }, en = { type = "string" },
} }

local function texts(required, help)
  return { type = "table", required = required, fields = text.fields, help = help }
end

-- The rules of a field stand once, in harness/plan/fields.c; here is only what plans cannot hold.
local fields = core.plan_fields("")
for _, made_later in ipairs { "schema", "script", "only", "predictions" } do fields[made_later] = nil end
fields.title, fields.question = texts(true, "title = { zh = \"…\", en = \"…\" }"), texts(true, fields.question.help)
fields.axes = { type = "table", required = true, help = "axes = { model = tally.models {…}, context = { 512, 8192 } }" }
fields.workload = { type = "table", required = true, help = "tally.chat {…} or tally.completion {…}" }
fields.predict = { type = "function", help = "function(cell) return tally.calc… end: stored before the first request" }

local accept_fields = core.plan_fields("accept[].")

local function check_axes(axes)
  local names = {}
  for name, values in pairs(axes) do
    if type(name) ~= "string" then schema.fail("axes", "axes must be named lists", "axes = { model = tally.models {…} }") end
    if type(values) ~= "table" or #values == 0 then
      schema.fail("axes." .. name, ("axis '%s' must be a list with at least one entry"):format(name))
    end
    names[#names + 1] = name
  end
  if #names == 0 then schema.fail("axes", "an experiment needs at least one axis") end
  table.sort(names)
  -- a list, because the order of axes decides the order of cells and JSON objects have none
  local out = {}
  for _, name in ipairs(names) do out[#out + 1] = { name = name, values = axes[name] } end
  return out
end

local function check_axis_references(t, axes, path)
  for k, v in pairs(t) do
    if type(v) == "table" then
      if v["$axis"] then
        local known = false
        for _, a in ipairs(axes) do known = known or a.name == v["$axis"] end
        if not known then schema.fail(path .. "." .. k, ("tally.axis \"%s\": no such axis"):format(v["$axis"])) end
      else
        check_axis_references(v, axes, path .. "." .. k)
      end
    end
  end
end

function experiment.experiment(t)
  if type(t) ~= "table" then error("tally.experiment takes one table", 2) end
  schema.check(t, fields)
  if not t.id:match("^[a-z0-9]+[a-z0-9%-]*$") then
    schema.fail("id", ("id '%s' must be lower-case words joined by '-'"):format(t.id))
  end
  if not t.workload.kind then
    schema.fail("workload", "workload must come from tally.chat {…} or tally.completion {…}")
  end
  if (t.repeats and t.repeats.min or 0) > (t.repeats and t.repeats.max or math.huge) then
    schema.fail("repeats.max", ("repeats.max (%d) is less than repeats.min (%d)"):format(t.repeats.max, t.repeats.min))
  end
  t.axes = check_axes(t.axes)
  check_axis_references(t.workload, t.axes, "workload")
  check_axis_references(t.engine or {}, t.axes, "engine")
  for i, a in ipairs(t.accept or {}) do schema.check(a, accept_fields, "accept." .. i) end
  return t
end

return experiment

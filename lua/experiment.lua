-- experiment: one file = one question. Strict: a field that is not known here is an error with a line and a suggestion.
local schema = require "schema"
local experiment = {}

local text = { type = "table", fields = {
  zh = { type = "string" }, ["zh-Hant"] = { type = "string" }, ["zh-Hans"] = { type = "string" }, en = { type = "string" },
} }

local function texts(required, help)
  return { type = "table", required = required, fields = text.fields, help = help }
end

local engine_fields = {
  name            = { type = "string", default = "llamacpp", help = "an adapter of lua/engine/" },
  context         = { type = "integer|axis", min = 256, help = "tokens of context for each slot" },
  slots           = { type = "integer|axis", min = 1 },
  threads         = { type = "integer|axis", min = 1 },
  batch           = { type = "integer|axis", min = 1 }, ubatch = { type = "integer|axis", min = 1 },
  gpu_layers      = { type = "integer|string|axis" },
  flash_attention = { type = "string|axis", one_of = { "on", "off", "auto" } },
  kv_type         = { type = "string|axis", one_of = { "f16", "q8_0", "q4_0" } },
  ready_timeout_s = { type = "number", default = 300, min = 1 },
  extra           = { type = "list", help = "further arguments of the engine, passed as they are" },
}

local fields = {
  id        = { type = "string", required = true, help = "lower-case words joined by '-', the same as the file's name" },
  map       = { type = "string", required = true, one_of = { "measure", "capacity", "throughput", "accuracy" } },
  day       = { type = "integer", min = 1, max = 30 },
  title     = texts(true, "title = { zh = \"…\", en = \"…\" }"),
  question  = texts(true, "the one question this experiment answers"),
  axes      = { type = "table", required = true, help = "axes = { model = tally.models {…}, context = { 512, 8192 } }" },
  workload  = { type = "table", required = true, help = "tally.chat {…} or tally.completion {…}" },
  engine    = { type = "table", default = {}, fields = engine_fields },
  repeats   = { type = "table", default = {}, fields = {
    min = { type = "integer", default = 5, min = 1 }, max = { type = "integer", default = 30, min = 1 },
    until_ci = { type = "number", default = 0.02, min = 0.0001, max = 1, help = "stop when the 95 % interval is within ± this share" },
    warmup = { type = "integer", default = 1, min = 0, help = "requests after each engine start that are stored but not counted" },
  } },
  seed      = { type = "integer", default = 1, min = 0 },
  probe     = { type = "table", default = {}, fields = {
    bandwidth = { type = "boolean", default = true, help = "probe the memory bandwidth before and after each visit of a cell" },
    milliseconds = { type = "integer", default = 150, min = 20, max = 5000 },
  } },
  predict   = { type = "function", help = "function(cell) return tally.calc… end: stored before the first request" },
  accept    = { type = "list", default = {}, help = "accept = { { metric = \"ratio\", min = 0.7, max = 1.05 } }" },
  figures   = { type = "list", default = {} },
}

local accept_fields = {
  metric = { type = "string", required = true, one_of = { "decode_rate", "ttft", "tpot", "e2e", "prefill_rate", "ratio", "implied_bandwidth" } },
  min = { type = "number" }, max = { type = "number" },
  within = { type = "string", one_of = { "predicted" }, help = "inside the stored prediction's interval" },
}

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
  if t.repeats.min > t.repeats.max then
    schema.fail("repeats.max", ("repeats.max (%d) is less than repeats.min (%d)"):format(t.repeats.max, t.repeats.min))
  end
  t.axes = check_axes(t.axes)
  check_axis_references(t.workload, t.axes, "workload")
  check_axis_references(t.engine, t.axes, "engine")
  for i, a in ipairs(t.accept) do schema.check(a, accept_fields, "accept." .. i) end
  return t
end

return experiment

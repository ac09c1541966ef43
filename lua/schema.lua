-- schema: strict reading of declared tables. Unknown, missing and mistyped fields are errors that name the file, the line,
-- the value and the nearest valid name, because a misspelt field that is silently ignored measures something else.
local core = require "tally_core" -- C: script source text, nearest name

local schema = {}

-- Line of `name =` in the running script, from line `from` on; nil when it is not there literally.
local function line_of(name, from)
  local text = core.source_text
  if not text or type(name) ~= "string" then return nil end
  local line = 0
  for l in (text .. "\n"):gmatch("(.-)\n") do
    line = line + 1
    if line >= (from or 1) then
      local code = l:gsub("%-%-.*", "")
      if code:find("%f[%w_]" .. name:gsub("%p", "%%%0") .. "%f[^%w_]%s*=[^=]") then return line end
    end
  end
end

local function where(path)
  local line
  for part in path:gmatch("[^.]+") do line = line_of(part, line) or line end
  return core.source_name .. (line and (":" .. line) or "")
end

-- Raises a table: the C side prints message and remedy without a traceback, for this is the user's input, not a bug.
function schema.fail(path, message, remedy)
  error({ message = where(path) .. ": " .. message, remedy = remedy }, 0)
end

local function show(v)
  if type(v) == "string" then return "'" .. v .. "'" end
  if type(v) == "table" then return "a table" end
  return tostring(v)
end

local function kind_of(v)
  local t = type(v)
  if t == "number" then return math.type(v) == "integer" and "integer" or "number" end
  if t == "userdata" and core.is_value(v) then return "value" end
  return t
end

local function type_ok(field, v)
  local k = kind_of(v)
  for want in field.type:gmatch("[^|]+") do
    if want == k or (want == "number" and k == "integer") or want == "any" then return true end
    if want == "list" and k == "table" and (#v > 0 or next(v) == nil) then return true end
    if want == "axis" and k == "table" and v["$axis"] then return true end
  end
  return false
end

local function check_one(path, name, field, v)
  local here = path == "" and name or (path .. "." .. name)
  if not type_ok(field, v) then
    schema.fail(here, ("field '%s' must be %s, it is %s (%s)"):format(here, field.type:gsub("|", " or "), kind_of(v), show(v)),
      field.help)
  end
  if field.min and type(v) == "number" and v < field.min then
    schema.fail(here, ("field '%s' is %s, the least allowed is %s"):format(here, show(v), field.min), field.help)
  end
  if field.max and type(v) == "number" and v > field.max then
    schema.fail(here, ("field '%s' is %s, the most allowed is %s"):format(here, show(v), field.max), field.help)
  end
  if field.one_of and type(v) == "string" then
    for _, ok in ipairs(field.one_of) do if ok == v then return end end
    local near = core.nearest(v, field.one_of)
    schema.fail(here, ("field '%s' is %s, it must be one of: %s"):format(here, show(v), table.concat(field.one_of, ", ")),
      near and ("did you mean '" .. near .. "'?"))
  end
  if field.fields and type(v) == "table" and not v["$axis"] then schema.check(v, field.fields, here) end
end

-- Checks `t` against `fields` {name = {type=, required=, default=, min=, max=, one_of=, fields=, help=}}; fills defaults.
function schema.check(t, fields, path)
  path = path or ""
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  table.sort(names)
  local given = {}
  for name in pairs(t) do given[#given + 1] = tostring(name) end
  table.sort(given)
  for _, name in ipairs(given) do
    if not fields[name] then
      local near = core.nearest(name, names)
      schema.fail(path == "" and name or (path .. "." .. name),
        ("unknown field '%s'%s"):format(name, path == "" and "" or (" in '" .. path .. "'")),
        near and ("did you mean '" .. near .. "'?") or ("the fields are: " .. table.concat(names, ", ")))
    end
  end
  for _, name in ipairs(names) do
    local field, v = fields[name], t[name]
    if v == nil then
      if field.required then
        schema.fail(path, ("field '%s' is missing"):format(path == "" and name or (path .. "." .. name)), field.help)
      end
      if type(field.default) == "table" then
        t[name] = {} -- its own table, filled with the defaults of its fields
        for k, d in pairs(field.default) do t[name][k] = d end
        if field.fields then schema.check(t[name], field.fields, path == "" and name or (path .. "." .. name)) end
      else
        t[name] = field.default
      end
    else
      check_one(path, name, field, v)
    end
  end
  return t
end

return schema

-- report.spec: how an experiment declares its figures. What to draw, not how: data and style come later.
local schema = require "schema"
local spec = {}

local fields = {
  id    = { type = "string" },
  x     = { type = "string", required = true, help = "a metric or an axis, as in \"bytes_per_token\"" },
  y     = { type = "string", required = true, help = "a metric, as in \"decode_rate\"" },
  line  = { type = "string", one_of = { "predicted", "predicted_paired" }, help = "draw the stored prediction with its interval" },
  points = { type = "string", one_of = { "predicted", "predicted_paired" }, help = "draw the prediction of each cell, hollow" },
  color = { type = "string", help = "an axis whose values become series" },
  log   = { type = "string", default = "", one_of = { "", "x", "y", "xy" } },
  title = { type = "table" }, caption = { type = "table" },
}

function spec.scatter(t)
  schema.check(t, fields, "figures")
  t.type = "scatter"
  return t
end

return spec

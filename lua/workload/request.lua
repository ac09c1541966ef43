-- Workloads: what one request of a cell asks for. Numbers may be axes: prompt_tokens = tally.axis "context". The rules of
-- the fields stand in harness/plan/fields.c.
local core = require "tally_core"
local schema = require "schema"
local request = {}

local function fields()
  local f = core.plan_fields("workload.")
  f.kind, f.dialect = nil, nil -- set by the functions below
  return f
end

function request.chat(t)
  schema.check(t, fields(), "workload")
  t.kind, t.dialect = "chat", "openai-chat"
  return t
end

-- Native completion with token ids: prompt lengths are exact.
function request.completion(t)
  schema.check(t, fields(), "workload")
  t.kind, t.dialect = "completion", "llamacpp-completion"
  return t
end

return request

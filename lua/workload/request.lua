-- Workloads: what one request of a cell asks for. Numbers may be axes: prompt_tokens = tally.axis "context".
local schema = require "schema"
local request = {}

local fields = {
  prompt_tokens = { type = "integer|axis", required = true, min = 1, help = "exact length of the prompt in tokens" },
  output_tokens = { type = "integer|axis", required = true, min = 1, help = "tokens to generate at most" },
  cache         = { type = "string", default = "cold", one_of = { "cold", "warm" },
                    help = "cold: each prompt is new to the engine, and its own count proves it" },
  concurrency   = { type = "integer|axis", default = 1, min = 1, max = 1024 },
  requests      = { type = "integer", default = 1, min = 1, help = "requests of each user in one visit of a cell" },
  temperature   = { type = "number", default = 0, min = 0 },
  ignore_eos    = { type = "boolean", default = false, help = "go on past the end of the answer to the exact length" },
  thinking      = { type = "boolean", default = true },
  timeout_s     = { type = "number", default = 600, min = 1 },
}

function request.chat(t)
  schema.check(t, fields, "workload")
  t.kind, t.dialect = "chat", "openai-chat"
  return t
end

-- Native completion with token ids: prompt lengths are exact.
function request.completion(t)
  schema.check(t, fields, "workload")
  t.kind, t.dialect = "completion", "llamacpp-completion"
  return t
end

return request

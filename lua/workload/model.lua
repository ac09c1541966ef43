-- Model references of an experiment. A synthetic model is described by its recipe, so that every reader's tally writes
-- the same bytes; a file is described by its path and, once a run has seen it, by its SHA-256.
local schema = require "schema"
local model = {}

local quants = { "f16", "q8_0", "q4_0", "q4_k", "q6_k", "q4_k_m" }

local synth_fields = {
  name   = { type = "string", required = true, help = "a short name for tables and commands, as in \"m350-q4_0\"" },
  arch   = { type = "string", default = "llama", one_of = { "llama" } },
  quant  = { type = "string", required = true, one_of = quants },
  size   = { type = "string", help = "a file size such as \"350MB\" (tally chooses the shape), or give layers, embed, heads, kv_heads, ff" },
  layers = { type = "integer", min = 1 }, embed = { type = "integer", min = 1 }, heads = { type = "integer", min = 1 },
  kv_heads = { type = "integer", min = 1 }, ff = { type = "integer", min = 1 }, vocab = { type = "integer", min = 300 },
  context = { type = "integer", min = 1 },
  think  = { type = "integer", min = 0, help = "scripted thinking tokens" },
  answer = { type = "integer", min = 1, help = "scripted answer tokens; without it the weights are random" },
  wrong  = { type = "number", min = 0, max = 1, help = "share of wrong steps of a draft model" },
  seed   = { type = "integer", default = 1, min = 0 },
}

function model.synth(t)
  schema.check(t, synth_fields, "synth")
  t.kind = "synth"
  return t
end

local file_fields = {
  name = { type = "string", required = true },
  path = { type = "string", required = true, help = "a .gguf file; relative paths start at the project folder" },
}

function model.file(t)
  schema.check(t, file_fields, "file")
  t.kind = "file"
  return t
end

return model

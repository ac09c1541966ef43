-- engine adapter: Ollama. It is attached to, never started; the form is described in llamacpp.lua.
-- Ollama takes neither token ids nor ignore_eos, and has no public tokenizer: exact lengths cannot be had from it.
return {
  name = "ollama",
  title = "Ollama",
  default_dialect = "ollama-chat",
  dialects = { "ollama-chat", "openai-chat" },
  missing = "this kind of engine is not started by tally: run `ollama serve` and give --endpoint URL",
  ready = { path = "/api/version", ok = 200, loading = {}, timeout_s = 30, poll_ms = 200 },
  settings = {},
  facts = {
    http = {
      { path = "/api/version", take = { build = "version" } },
      -- of the first loaded model: size_vram < size means that a part of it runs on the CPU
      { path = "/api/ps", take = { model_id = "models.0.name", model_digest = "models.0.digest", model_bytes = "models.0.size",
                                   vram_bytes = "models.0.size_vram", ctx = "models.0.context_length" } },
    },
  },
}

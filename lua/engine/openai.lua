-- engine adapter: any server that speaks OpenAI's API. It is attached to, never started; the form is described in llamacpp.lua.
return {
  name = "openai",
  title = "an OpenAI-compatible server",
  default_dialect = "openai-chat",
  dialects = { "openai-chat", "openai-completion" },
  missing = "this kind of engine is not started by tally: run it yourself and give --endpoint URL",
  ready = { path = "/v1/models", ok = 200, loading = { 503 }, timeout_s = 30, poll_ms = 200 },
  settings = {},
  facts = {
    http = {
      { path = "/v1/models", take = { model_id = "data.0.id", ctx = "data.0.max_model_len", owner = "data.0.owned_by" } },
      { path = "/version", take = { build = "version" } },
    },
  },
}

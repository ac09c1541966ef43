-- engine adapter: llama.cpp's llama-server. Data only; harness/engine/ reads it, and no flag of llama.cpp stands in C.
--
-- The form of an adapter (fields that do not apply are left out; one without `binaries` can only be attached to):
--   binaries      names looked for on PATH, then below tally's cache folder in `cache_bin`
--   start         argument groups of every start: {model}, {port} and {log} are replaced. A group is left out, and that is
--                 recorded, when --help does not know its first word, unless it is `required`
--   settings      name -> how it is asked for. type: int number bool string enum list. `flag` puts the value behind it; `args`
--                 is a list of variants that map the value's text to arguments, and the first variant that the build knows is
--                 taken. `open` are values that leave the choice to the engine, so that any outcome agrees with them.
--                 `means` compares a value with another effective fact of that name
--   facts         where the effective settings are read back. http: paths into JSON replies. log: POSIX extended expressions
--                 per line; the groups are taken in order. `map` translates a text, `value` is a constant, `list` appends an
--                 object to that list, `last` lets the last line win instead of the first
--   failures      most telling first; the first expression that some line matches gives the quoted line and its remedy.
--                 kind: memory model flag port other
return {
  name = "llama.cpp",
  title = "llama.cpp (llama-server)",
  binaries = { "llama-server" },
  cache_bin = "llama.cpp/bin",
  missing = "run `sh experiments/engine-setup`, or put llama-server on PATH, or name it with --engine-bin",
  default_dialect = "openai-chat",
  exact_dialect = "llamacpp-completion",
  dialects = { "openai-chat", "openai-completion", "llamacpp-completion" },

  version = { args = { "--version" }, pattern = "^version: (.*)$", compiler = "^built with (.*)$" },
  help = { args = { "--help" } },
  -- what the engine consists of besides the executable, for its digest: the list that engine-setup leaves, else these names
  -- in these folders, all relative to the executable's folder
  parts = {
    manifest = "../libraries", root = "..", packages = "../packages", executable = "../usr/bin",
    dirs = { ".", "../lib", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu" },
    prefixes = { "libggml", "libllama", "libmtmd" },
  },
  env = { "LLAMA_", "GGML_", "CUDA_", "HIP_", "ROCR_", "HSA_", "OMP_", "GOMP_", "KMP_", "MKL_", "VK_", "MTL_", "LD_PRELOAD" },

  start = {
    { args = { "-m", "{model}" }, required = true },
    { args = { "--host", "127.0.0.1" }, required = true },
    { args = { "--port", "{port}" }, required = true },
    -- the default, on, silently shrinks the context and moves layers so that the model fits (since b7416)
    { args = { "--fit", "off" } },
    -- since b9161 the lines that say what went where appear at level 4 only
    { args = { "--log-verbosity", "4" } },
    { args = { "--log-colors", "off" } },
    { args = { "--metrics" } },
    { args = { "--slots" } },
    { args = { "--no-webui" } },
    { args = { "--offline" } },
  },

  settings = {
    ctx = { type = "int", min = 0, flag = "-c", means = { ["0"] = "ctx_train" }, doc = "context, tokens, shared by the slots" },
    slots = { type = "int", min = 1, flag = "-np", doc = "requests served at once" },
    threads = { type = "int", min = 1, flag = "-t", doc = "threads while generating" },
    threads_batch = { type = "int", min = 1, flag = "-tb", doc = "threads while reading prompts" },
    batch = { type = "int", min = 1, flag = "-b", doc = "logical batch, tokens" },
    ubatch = { type = "int", min = 1, flag = "-ub", doc = "physical batch, tokens" },
    gpu_layers = { type = "string", flag = "-ngl", open = { "auto" }, means = { all = "layers_total" },
                   doc = "layers on the GPU: a number, all or auto" },
    flash_attention = { type = "enum", values = { "on", "off", "auto" }, flag = "-fa", open = { "auto" } },
    kv_type_k = { type = "enum", values = { "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1" }, flag = "-ctk" },
    kv_type_v = { type = "enum", values = { "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1" }, flag = "-ctv" },
    kv_unified = { type = "bool", args = { { ["true"] = { "--kv-unified" }, ["false"] = { "--no-kv-unified" } } } },
    cache_ram = { type = "int", min = -1, flag = "--cache-ram", doc = "MiB of memory that keeps old prompts; 0 = none" },
    mmap = { type = "bool", args = {
      { ["true"] = { "--load-mode", "mmap" }, ["false"] = { "--load-mode", "none" } },
      { ["true"] = {}, ["false"] = { "--no-mmap" } },
    } },
    repack = { type = "bool", args = { { ["true"] = { "--repack" }, ["false"] = { "--no-repack" } } } },
    warmup = { type = "bool", args = { { ["true"] = { "--warmup" }, ["false"] = { "--no-warmup" } } } },
    draft_model = { type = "string", flag = "-md" },
    spec_type = { type = "string", flag = "--spec-type", doc = "a draft model alone is silently ignored without it" },
    draft_max = { type = "int", min = 0, flag = "--spec-draft-n-max" },
    alias = { type = "string", flag = "-a", doc = "the model's name in the API" },
    extra_args = { type = "list", doc = "arguments passed on as they are" },
  },

  -- A reply counts only when the log says that this very process listens: another program may hold the port.
  ready = { path = "/health", ok = 200, loading = { 503 }, log = "listening on http", timeout_s = 600, poll_ms = 10 },
  stop_s = 10,

  facts = {
    http = {
      { path = "/props", take = { ctx_slot = "default_generation_settings.n_ctx", slots = "total_slots", build = "build_info",
                                  model_path = "model_path", model_type = "model_ftype", chat_template = "chat_template",
                                  sleeping = "is_sleeping" } },
      { path = "/v1/models", take = { model_id = "data.0.id", ctx_train = "data.0.meta.n_ctx_train", n_vocab = "data.0.meta.n_vocab",
                                      n_params = "data.0.meta.n_params", model_bytes = "data.0.meta.size" } },
      { path = "/slots", take = { speculative = "0.speculative" } },
    },
    present = { "chat_template" }, -- only whether it is there; its text is in the model file
    log = {
      { pattern = "llama_context: n_ctx += ([0-9]+)", take = { "ctx" }, type = "int" },
      { pattern = "llama_context: n_batch += ([0-9]+)", take = { "batch" }, type = "int" },
      { pattern = "llama_context: n_ubatch += ([0-9]+)", take = { "ubatch" }, type = "int" },
      { pattern = "llama_context: kv_unified += ([a-z]+)", take = { "kv_unified" }, map = { ["true"] = true, ["false"] = false } },
      { pattern = "llama_context: flash_attn += (enabled|disabled)", take = { "flash_attention" }, map = { enabled = "on", disabled = "off" } },
      { pattern = "Flash Attention (enabled|disabled)", take = { "flash_attention" }, map = { enabled = "on", disabled = "off" } },
      { pattern = "Flash Attention was auto, set to (enabled|disabled)", take = { "flash_attention" }, map = { enabled = "on", disabled = "off" } },
      { pattern = "system_info: n_threads = ([0-9]+) \\(n_threads_batch = ([0-9]+)\\)", take = { "threads", "threads_batch" }, type = "int" },
      { pattern = "system_info: n_threads = [^|]*\\| (.*[^ |])", take = { "cpu_features" } },
      { pattern = "K \\(([a-z0-9_]+)\\): +[0-9.]+ MiB, V \\(([a-z0-9_]+)\\)", take = { "kv_type_k", "kv_type_v" } },
      { pattern = "offloaded ([0-9]+)/([0-9]+) layers to GPU", take = { "gpu_layers", "layers_total" }, type = "int" },
      { pattern = "load_mode = ([a-z+]+)", take = { "load_mode" } },
      { pattern = "load_mode = ([a-z+]+)", take = { "mmap" }, map = { mmap = true, ["mmap+mlock"] = true, none = false, mlock = false, dio = false } },
      { pattern = "prompt cache is disabled", take = { "cache_ram" }, value = 0 },
      { pattern = "prompt cache is enabled, size limit: ([0-9]+) MiB", take = { "cache_ram" }, type = "int" },
      { pattern = "graph splits = ([0-9]+)", take = { "graph_splits" }, type = "int" },
      { pattern = "loaded ([A-Za-z0-9]+) backend from (.*)", list = "backends", take = { "name", "path" } },
      { pattern = "using device ([A-Za-z0-9]+) \\((.*)\\) - ([0-9]+) MiB free", list = "devices", take = { "name", "description", "free_mib" } },
      { pattern = "([A-Za-z0-9_]+) +(model|KV|RS|compute|output) buffer size += +([0-9.]+) MiB", list = "buffers", take = { "device", "holds", "mib" } },
    },
  },

  log_prefix = "^[0-9][0-9.]* [A-Z] ",
  failures = {
    { kind = "port", pattern = "couldn't bind HTTP server socket", remedy = "leave the port out, or end the program that holds it" },
    { kind = "flag", pattern = "error while handling argument", remedy = "check the settings against llama-server --help" },
    { kind = "flag", pattern = "error: invalid argument", remedy = "this build does not know the argument; see llama-server --help" },
    { kind = "memory", pattern = "cudaMalloc failed: out of memory|hipMalloc failed|ErrorOutOfDeviceMemory",
      remedy = "less context (ctx), a smaller KV type, fewer slots, or fewer layers on the GPU (gpu_layers)" },
    { kind = "memory", pattern = "insufficient memory|failed to allocate [A-Za-z0-9_]+ buffer of size|unable to allocate [A-Za-z0-9_]+ buffer|failed to allocate buffer",
      remedy = "less context (ctx), a smaller KV type, fewer slots, or a smaller model" },
    { kind = "memory", pattern = "failed to allocate compute pp buffers|std::bad_alloc|[Cc]annot allocate memory",
      remedy = "less context (ctx), a smaller batch (ubatch), or a smaller model" },
    { kind = "model", pattern = "is not within the file bounds", remedy = "the model file is cut off: fetch or write it again" },
    { kind = "model", pattern = "invalid magic characters", remedy = "this is no GGUF file" },
    { kind = "model", pattern = "unknown model architecture", remedy = "this engine is too old for the model" },
    { kind = "model", pattern = "error loading model:", remedy = "check the file with `tally show model FILE`" },
    { kind = "model", pattern = "gguf_init_from_[a-z_]*:", remedy = "check the file with `tally show model FILE`" },
    { kind = "other", pattern = "Context size has been exceeded|Compute error|GGML_ASSERT|CUDA error|ggml_abort" },
    { kind = "other", pattern = "error while loading shared libraries|symbol lookup error|no backends are loaded",
      remedy = "this build of the engine is broken: sh experiments/engine-setup --force sets up another" },
    { kind = "model", pattern = "failed to load model" },
    { kind = "other", pattern = "^[0-9][0-9.]* E |^error: |[Ff]atal|Segmentation fault" },
  },

  tokenize = { path = "/tokenize", text = "content", tokens = "tokens", with = { add_special = false, parse_special = false } },
  detokenize = { path = "/detokenize", text = "content", tokens = "tokens" },
  idle = { path = "/slots", busy = "is_processing", id = "id" },
}

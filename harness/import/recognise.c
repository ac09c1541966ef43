/* The tools and the forms, as data; and which of them a text is. */
#include "import/import_impl.h"

#define LLAMA_MISSING {"the model's digest", "power and clocks of the machine"}
#define BATCHED_MISSING {"the model", "repeats: each row is one pass"}

#define NVIDIA_MISSING {"the server's machine", "the engine's version and settings"}
#define NVIDIA_CSV_MISSING {"the model and the load", "the engine's version and settings"}

static const imp_field no_fields[] = {{0}};
/* Rows of one name stand together; the first that fits wins. */
static const imp_tool tools[] = {
    {.name = "llama-bench", .forms = "JSON, JSON lines, CSV, SQL", .must = {"n_prompt", "n_gen", "avg_ts", "model_filename"},
     .fields = imp_llama_bench, .others = IMP_SETTING, .missing = LLAMA_MISSING},
    {.name = "llama-bench", .forms = "Markdown", .must = {"model", "test", "t/s"},
     .fields = imp_llama_bench_md, .others = IMP_SETTING, .read = imp_read_llama_md, .line = imp_build_line,
     .missing = {"the processor and the GPU", "the model's file and digest", "most settings: a table shows only those that are not the default"}},
    {.name = "llama-batched-bench", .forms = "JSON lines", .must = {"pp", "tg", "pl", "speed_pp", "speed_tg"},
     .fields = imp_batched_bench, .others = IMP_SETTING, .missing = BATCHED_MISSING},
    {.name = "llama-batched-bench", .forms = "Markdown", .must = {"PP", "TG", "B", "S_PP t/s", "S_TG t/s"},
     .fields = imp_batched_bench_md, .others = IMP_KEEP, .line = imp_batched_line, .missing = BATCHED_MISSING},
    {.name = "vllm", .forms = "JSON, JSON lines", .must = {"date", "model_id", "num_prompts", "completed", "request_throughput"},
     .fields = imp_vllm, .guess = imp_guess_serving, .others = IMP_SETTING,
     .missing = {"the engine's version and settings", "the time zone of its date", "quantisation of the model"}},
    {.name = "sglang", .forms = "JSON lines", .must = {"backend", "dataset_name", "completed", "request_throughput", "mean_e2e_latency_ms"},
     .fields = imp_sglang, .guess = imp_guess_serving, .others = IMP_SETTING, .read = imp_read_sglang,
     .missing = {"the number of requests asked for"}},
    {.name = "guidellm", .forms = "JSON", .must = {"benchmarks.0.metrics"}, .fields = no_fields, .read = imp_read_guidellm,
     .missing = {"the server's machine", "the engine's version and settings"}},
    {.name = "aiperf", .forms = "JSON", .must = {"was_cancelled", "input_config"}, .also = {"aiperf_version"}, .fields = no_fields, .read = imp_read_nvidia_json,
     .missing = NVIDIA_MISSING},
    /* In CSV the two differ by the deviation, which GenAI-Perf does not write. Lists of totals ("Value") look alike. */
    {.name = "aiperf", .forms = "CSV", .must = {"Metric", "avg", "std"}, .also = {"Metric", "Value"}, .fields = no_fields, .read = imp_read_nvidia_csv,
     .missing = NVIDIA_CSV_MISSING},
    {.name = "genai-perf", .forms = "JSON", .must = {"input_config", "request_latency"}, .also = {"input_config", "request_throughput"}, .fields = no_fields,
     .read = imp_read_nvidia_json, .missing = NVIDIA_MISSING},
    {.name = "genai-perf", .forms = "CSV", .must = {"Metric", "avg", "p99"}, .also = {"Metric", "Value"}, .fields = no_fields, .read = imp_read_nvidia_csv,
     .missing = NVIDIA_CSV_MISSING},
    {.name = "localscore", .forms = "JSON", .must = {"runtime_info", "system_info", "accelerator_info", "results"}, .fields = imp_localscore,
     .others = IMP_SETTING, .read = imp_read_localscore},
    {.name = "localscore", .forms = "CSV", .must = {"prompt_tps", "gen_tps", "ttft_ms", "n_prompt", "n_gen"}, .fields = imp_localscore, .others = IMP_SETTING},
    {.name = "ollama", .forms = "text of --verbose", .must = {"eval rate"}, .also = {"total duration"}, .fields = imp_ollama,
     .missing = {"the model", "the prompt's cached part", "the settings"}},
};

/* In the order in which they are tried. A Markdown table is the least certain of them. */
static imp_cutter *const cutters[] = {imp_cut_objects, imp_cut_sql, imp_cut_csv, imp_cut_markdown, imp_cut_ollama};

const imp_tool *imp_tool_at(size_t i) {
    return i < TL_COUNT(tools) ? &tools[i] : NULL;
}

const char *tl_import_tool(size_t i, const char **forms) {
    if (i >= TL_COUNT(tools)) return NULL;
    if (forms) *forms = tools[i].forms;
    return tools[i].name;
}

static const char *first_absent(const json_t *fields, const char *const *names, size_t n) {
    for (size_t i = 0; i < n && names[i] != NULL; i++)
        if (json_object_get(fields, names[i]) == NULL && tl_json_at(fields, names[i]) == NULL) return names[i];
    return NULL;
}

bool imp_has_all(const json_t *fields, const imp_tool *t, const char **lacks) {
    const char *absent = first_absent(fields, t->must, TL_COUNT(t->must));
    if (absent == NULL || (t->also[0] && first_absent(fields, t->also, TL_COUNT(t->also)) == NULL)) return true;
    if (lacks) *lacks = absent;
    return false;
}

static const imp_tool *tool_of(const json_t *fields, const char *only) {
    for (size_t i = 0; i < TL_COUNT(tools); i++)
        if ((only == NULL || tl_str_eq(only, tools[i].name)) && imp_has_all(fields, &tools[i], NULL)) return &tools[i];
    return NULL;
}

static bool all_among(const char *const *wanted, size_t most, const char *const *names, size_t n) {
    for (size_t i = 0; i < most && wanted[i] != NULL; i++) {
        size_t k = 0;
        while (k < n && !tl_str_eq(names[k], wanted[i])) k++;
        if (k == n) return false;
    }
    return wanted[0] != NULL;
}

bool imp_known(const char *const *names, size_t n) {
    for (size_t i = 0; i < TL_COUNT(tools); i++)
        if (all_among(tools[i].must, TL_COUNT(tools[i].must), names, n) || all_among(tools[i].also, TL_COUNT(tools[i].also), names, n)) return true;
    return false;
}

const imp_tool *imp_recognise(imp_text *t, const char *only) {
    for (size_t k = 0; k < TL_COUNT(cutters); k++) {
        imp_text_clear(t);
        if (!cutters[k](t)) continue;
        for (size_t i = 0; i < t->n; i++) {
            const imp_tool *tool = t->v[i].fields ? tool_of(t->v[i].fields, only) : NULL;
            if (tool != NULL) return tool;
        }
    }
    for (size_t k = 0; k < TL_COUNT(cutters); k++) { /* for the message: what the first form that fits makes of it */
        imp_text_clear(t);
        if (cutters[k](t)) return NULL;
    }
    return NULL;
}

/* vLLM's `bench serve` and SGLang's bench_serving, which grew from one source: flat objects whose latencies are named
 * STATISTIC_METRIC_ms. Which metrics and percentiles there are depends on version and options, so those are read by the
 * form of their names. */
#include "import/import_impl.h"

#define COMMON                                                                                                         \
    AS(AXIS, "max_concurrency", "concurrency"), F(AXIS, "request_rate"), F(AXIS, "num_prompts"), F(AXIS, "dataset_name"), TOTAL("duration", "s"),   \
        TOTAL("completed", "req"), TOTAL("failed", "req"), TOTAL("total_input_tokens", "tok"), TOTAL("total_output_tokens", "tok"),                \
        TOTAL("request_throughput", "req/s"), TOTAL("output_throughput", "tok/s"), TOTAL("max_output_tokens_per_s", "tok/s"),                      \
        TOTAL("max_concurrent_requests", "req")

const imp_field imp_vllm[] = {
    AS(AXIS, "model_id", "model"),
    F(TIME, "date"), /* local time of the client, without its zone */
    COMMON,
    TOTAL("total_token_throughput", "tok/s"),
    TOTAL("request_goodput", "req/s"),
    TOTAL("request_goodput:", "req/s"), /* so spelled until 2025 */
    TOTAL("total_input_sequences", "1"),
    TOTAL("input_sequence_throughput", "1/s"),
    TOTAL("rtfx", "1"),
    TOTAL("spec_decode_acceptance_rate", "%"),
    TOTAL("spec_decode_acceptance_length", "tok"),
    TOTAL("spec_decode_num_drafts", "1"),
    TOTAL("spec_decode_draft_tokens", "tok"),
    TOTAL("spec_decode_accepted_tokens", "tok"),
    TOTAL("probe_completed", "req"),
    TOTAL("probe_failed", "req"),
    {0}};

const imp_field imp_sglang[] = {
    COMMON,
    F(AXIS, "random_input_len"),
    F(AXIS, "random_output_len"),
    TOTAL("total_input_text_tokens", "tok"),
    TOTAL("total_input_vision_tokens", "tok"),
    TOTAL("total_output_tokens_retokenized", "tok"),
    TOTAL("input_throughput", "tok/s"),
    TOTAL("total_throughput", "tok/s"),
    TOTAL("output_throughput_retokenized", "tok/s"),
    TOTAL("total_throughput_retokenized", "tok/s"),
    TOTAL("concurrency", "1"), /* achieved, not asked for */
    TOTAL("accept_length", "tok"),
    {0}};

/* "mean", "median", "min", "max", "p99", "p99.9": the length of the word in front of '_'; 0: none of them. */
static size_t statistic_of(const char *name) {
    static const char *const words[] = {"mean", "median", "std", "min", "max"};
    size_t n = strcspn(name, "_");
    if (name[n] == 0) return 0;
    if (name[0] == 'p' && n > 1 && strspn(name + 1, "0123456789.") == n - 1) return n;
    for (size_t i = 0; i < TL_COUNT(words); i++)
        if (n == strlen(words[i]) && memcmp(name, words[i], n) == 0) return n;
    return 0;
}

/* Both write 0 where they have no sample (sglang#9585, sglang PR#23954), and no latency is 0. */
bool imp_guess_serving(imp_guess *out, const char *name) {
    static const char *const all[] = {"ttft_ms", "e2el_ms", "e2e_latency_ms"}; /* one sample a completed request */
    const char *metric = tl_str_starts(name, "probe_") ? name + strlen("probe_") : name;
    size_t n = statistic_of(metric);
    if (n == 0 || !tl_str_ends(name, "_ms")) return false;
    *out = (imp_guess){.f = {.role = IMP_FIGURE, .unit = "ms", .never_0 = true}};
    if (tl_str_starts(metric, "std_")) {
        out->f.role = IMP_SPREAD;
        return true;
    }
    snprintf(out->statistic, sizeof out->statistic, "%.*s", (int)n, metric);
    out->f.statistic = out->statistic;
    if (tl_str_starts(metric, "mean_")) {
        snprintf(out->spread, sizeof out->spread, "std%s", metric + n);
        out->f.spread = out->spread;
    }
    for (size_t i = 0; metric == name && i < TL_COUNT(all); i++)
        if (tl_str_eq(metric + n + 1, all[i])) out->f.n = "completed";
    return true;
}

/* The server's own description, where the file has it, names model and engine. */
void imp_read_sglang(imp_rows *out, const imp_record *r, const imp_tool *t) {
    static const struct {
        const char *path, *group, *name;
    } facts[] = {{"server_info.model_path", "axes", "model"}, {"server_info.version", "settings", "engine_version"}, {"server_info.tp_size", "settings", "tp_size"}};
    imp_row(out, r, t);
    json_t *row = json_array_get(out->rows, json_array_size(out->rows) - 1);
    for (size_t i = 0; i < TL_COUNT(facts); i++) {
        json_t *v = tl_json_at(r->fields, facts[i].path);
        if (v && !json_is_null(v)) json_object_set(json_object_get(row, facts[i].group), facts[i].name, v);
    }
}

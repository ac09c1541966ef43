/* GuideLLM, AIPerf and GenAI-Perf: a metric is an object of statistics. Their JSON has such objects by name, their CSV a line
 * for each. */
#include "import/import_impl.h"

#include <math.h>

/* ---- one metric ---------------------------------------------------------------------------------------------------- */

/* "avg" and "mean", "p99", "p999" (the tools' word for 99.9): the statistic's name here; NULL: no statistic. */
static const char *statistic_named(char out[16], const char *key) {
    static const struct {
        const char *key, *name;
    } words[] = {{"avg", "mean"}, {"mean", "mean"}, {"median", "median"}, {"min", "min"}, {"max", "max"}, {"sum", "sum"}, {"total_sum", "sum"},
                 {"p001", "p0.1"}, {"p01", "p1"},   {"p05", "p5"},        {"p999", "p99.9"}};
    for (size_t i = 0; i < TL_COUNT(words); i++)
        if (tl_str_eq(key, words[i].key)) return words[i].name;
    size_t n = strlen(key);
    if (n < 2 || n > 6 || key[0] != 'p' || strspn(key + 1, "0123456789.") != n - 1) return NULL;
    snprintf(out, 16, "%s", key);
    return out;
}

typedef struct figures {
    const char *name, *unit;
    const json_t *of; /* the object of statistics */
} figures;

static void add_statistic(json_t *row, const figures *m, const char *key, const json_t *v) {
    static const char *const spreads[] = {"std", "std_dev"};
    char word[16];
    const char *statistic = statistic_named(word, key);
    const json_t *n = json_object_get(m->of, "count");
    if (statistic == NULL) return;
    char *name = tl_xprintf("%s.%s", m->name, key);
    json_t *f = imp_figure(row, name, v, m->unit, statistic);
    if (json_is_integer(n) && json_integer_value(n) == 0 && tl_json_num(f, "number", NAN) == 0) imp_not_zero(f);
    imp_samples(f, n);
    for (size_t i = 0; tl_str_eq(statistic, "mean") && i < TL_COUNT(spreads); i++)
        if (json_object_get(m->of, spreads[i])) imp_spread(f, spreads[i], json_object_get(m->of, spreads[i]));
    free(name);
}

static void add_metric(json_t *row, const figures *m) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)m->of, key, v) add_statistic(row, m, key, v);
    json_object_foreach(json_object_get(m->of, "percentiles"), key, v) add_statistic(row, m, key, v);
}

/* ---- conditions by path --------------------------------------------------------------------------------------------- */

typedef struct condition {
    const char *axis, *path; /* the first path that is there wins */
} condition;

static void add_conditions(json_t *row, const json_t *of, const condition *list, size_t n) {
    json_t *axes = json_object_get(row, "axes");
    for (size_t i = 0; i < n; i++) {
        json_t *v = tl_json_at(of, list[i].path);
        if (v && !json_is_null(v) && !json_is_object(v) && json_object_get(axes, list[i].axis) == NULL) json_object_set(axes, list[i].axis, v);
    }
}

/* ---- GuideLLM --------------------------------------------------------------------------------------------------------- */

/* The unit of a metric is in its name; NULL: in none that is known. */
static const char *guidellm_unit(const char *name) {
    static const struct {
        const char *end, *unit;
    } units[] = {{"_ms", "ms"},          {"requests_per_second", "req/s"}, {"tokens_per_second", "tok/s"}, {"request_latency", "s"},
                 {"token_count", "tok"}, {"request_concurrency", "1"},     {"tokens_per_iteration", "tok"}, {"request_streaming_iterations_count", "1"}};
    for (size_t i = 0; i < TL_COUNT(units); i++)
        if (tl_str_ends(name, units[i].end)) return units[i].unit;
    return NULL;
}

static void guidellm_metrics(json_t *row, const json_t *metrics) {
    const char *name, *state;
    json_t *v, *count;
    json_object_foreach((json_t *)metrics, name, v) {
        const json_t *of = json_object_get(v, "successful"); /* the other groups stay in the file */
        const figures m = {.name = name, .unit = guidellm_unit(name), .of = of};
        if (tl_str_eq(name, "request_totals")) {
            json_object_foreach(v, state, count) {
                char *full = tl_xprintf("request_totals.%s", state);
                imp_figure(row, full, count, "req", NULL);
                free(full);
            }
        } else if (json_is_object(of) && m.unit) add_metric(row, &m);
        else imp_keep(json_object_get(row, "fields"), name, v);
    }
}

void imp_read_guidellm(imp_rows *out, const imp_record *r, const imp_tool *t) {
    static const condition of_report[] = {{"model", "args.model"}, {"model", "args.backend.model"}, {"model", "config.backend.model"}, {"model", "config.spec.backend.model"}};
    static const condition of_row[] = {{"strategy", "config.strategy.type_"},        {"strategy", "config.strategy.kind"},   {"strategy", "args.strategy.type_"},
                                       {"request_rate", "config.strategy.rate"},     {"request_rate", "args.strategy.rate"}, {"concurrency", "config.strategy.streams"},
                                       {"concurrency", "args.strategy.streams"},     {"concurrency", "config.strategy.max_concurrency"},
                                       {"concurrency", "args.strategy.max_concurrency"}, {"model", "config.backend.model"},  {"model", "worker.backend_model"}};
    static const char *const kept[] = {"start_time", "end_time", "duration", "warmup_duration", "cooldown_duration", "run_index"};
    TL_UNUSED(t);
    const json_t *version = tl_json_at(r->fields, "metadata.guidellm_version"), *platform = tl_json_at(r->fields, "metadata.platform");
    size_t i, k;
    json_t *b;
    json_array_foreach(json_object_get(r->fields, "benchmarks"), i, b) {
        json_t *row = imp_row_new(out, r->line);
        add_conditions(row, r->fields, of_report, TL_COUNT(of_report));
        add_conditions(row, b, of_row, TL_COUNT(of_row));
        guidellm_metrics(row, json_object_get(b, "metrics"));
        if (version) json_object_set(json_object_get(row, "version"), "guidellm_version", (json_t *)version);
        if (platform) json_object_set(json_object_get(row, "machine"), "client_platform", (json_t *)platform);
        for (k = 0; k < TL_COUNT(kept); k++)
            if (json_object_get(b, kept[k])) imp_keep(json_object_get(row, "fields"), kept[k], json_object_get(b, kept[k]));
        double start = tl_json_num(b, "start_time", NAN);
        if (isfinite(start)) json_object_set_new(row, "when", json_sprintf("%.3f s since 1970", start));
    }
}

/* ---- AIPerf and GenAI-Perf ---------------------------------------------------------------------------------------------- */

/* Their words for units. "per sec" says of what only in the metric's name. */
static const char *nvidia_unit(const char *word, const char *metric) {
    static const struct {
        const char *word, *unit;
    } units[] = {{"ms", "ms"},           {"sec", "s"},           {"seconds", "s"},  {"s", "s"},           {"us", "us"},     {"ns", "ns"},  {"tokens", "tok"},
                 {"requests", "req"},    {"count", "1"},         {"ratio", "1"},    {"%", "%"},           {"W", "W"},       {"J", "J"},    {"MJ", "MJ"},
                 {"GB", "GB"},           {"MB", "MB"},           {"MHz", "MHz"},    {"requests/sec", "req/s"}, {"tokens/sec", "tok/s"}, {"tokens/sec/user", "tok/s"},
                 {"requests/second", "req/s"}, {"tokens/second", "tok/s"}, {"tokens/second/user", "tok/s"}};
    for (size_t i = 0; i < TL_COUNT(units); i++)
        if (tl_str_eq(word, units[i].word)) return units[i].unit;
    if (!tl_str_eq(word, "per sec")) return NULL;
    return strstr(metric, "Token") ? "tok/s" : strstr(metric, "Request") ? "req/s" : "1/s";
}

void imp_read_nvidia_json(imp_rows *out, const imp_record *r, const imp_tool *t) {
    static const condition conditions[] = {
        {"model", "input_config.endpoint.model_names.0"}, {"model", "input_config.models.items.0.name"},  {"model", "input_config.models.0"},
        {"model", "input_config.model_names.0"},          {"model", "input_config.model.0"},              {"model", "input_config.formatted_model_name"},
        {"concurrency", "input_config.loadgen.concurrency"}, {"concurrency", "input_config.concurrency"}, {"concurrency", "input_config.perf_analyzer.stimulus.concurrency"},
        {"request_rate", "input_config.loadgen.request_rate"}, {"request_rate", "input_config.request_rate"},
        {"request_rate", "input_config.perf_analyzer.stimulus.request_rate"}};
    TL_UNUSED(t);
    json_t *row = imp_row_new(out, r->line), *v;
    const char *name;
    add_conditions(row, r->fields, conditions, TL_COUNT(conditions));
    json_object_foreach(r->fields, name, v) {
        const char *word = tl_json_str(v, "unit", NULL);
        const figures m = {.name = name, .unit = word ? nvidia_unit(word, name) : NULL, .of = v};
        if (m.unit) add_metric(row, &m);
        else if (tl_str_eq(name, "aiperf_version")) json_object_set(json_object_get(row, "version"), name, v);
        else if (tl_str_eq(name, "start_time") && json_is_string(v)) json_object_set(row, "when", v);
        else imp_keep(json_object_get(row, "fields"), name, v);
    }
}

/* "32,688.40" as 32688.40: thousands in groups of three, else as it stands. New reference. */
static json_t *without_commas(const json_t *v) {
    const char *s = json_string_value(v);
    size_t head = strspn(s, "0123456789"), whole = strcspn(s, "."), k = 0;
    char plain[64];
    if (s[head] != ',' || head > 3 || strlen(s) >= sizeof plain) return json_incref((json_t *)v);
    for (const char *at = s; *at; at++) {
        if (*at == ',' && (strspn(at + 1, "0123456789") != 3 || (size_t)(at - s) > whole)) return json_incref((json_t *)v);
        if (*at != ',') plain[k++] = *at;
    }
    plain[k] = 0;
    return json_string(plain);
}

/* "Time to First Token (ms)": the word in the brackets at its end, or "count" where there is none. */
static void unit_word(char out[32], const char *metric) {
    size_t n = strlen(metric);
    const char *open = strrchr(metric, '(');
    if (open == NULL || metric[n - 1] != ')') snprintf(out, 32, "count");
    else snprintf(out, 32, "%.*s", (int)(metric + n - open - 2), open + 1);
}

void imp_read_nvidia_csv(imp_rows *out, const imp_record *r, const imp_tool *t) {
    TL_UNUSED(t);
    json_t *row = imp_row_new(out, r->line), *v;
    const char *name, *metric = tl_json_str(r->fields, "Metric", "");
    char word[32], statistic[16];
    unit_word(word, metric);
    const char *unit = nvidia_unit(word, metric);
    json_object_foreach(r->fields, name, v) {
        const char *is = statistic_named(statistic, name);
        if (is == NULL && !tl_str_eq(name, "Value") && !tl_str_eq(name, "std")) {
            json_object_set(json_object_get(row, "axes"), tl_str_eq(name, "Metric") ? "metric" : name, v);
            continue;
        }
        json_t *number = without_commas(v);
        if (unit == NULL || tl_str_eq(name, "std")) json_object_set(json_object_get(row, "fields"), name, v);
        else {
            json_t *f = imp_figure(row, name, number, unit, is), *std = json_object_get(r->fields, "std");
            json_t *spread = std && tl_str_eq(is, "mean") ? without_commas(std) : NULL;
            imp_spread(f, "std", spread);
            json_decref(spread);
        }
        json_decref(number);
    }
}

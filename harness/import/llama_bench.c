/* What llama.cpp's own two benchmarks write. Every field that stands in no table is a setting: builds add them often. */
#include "import/import_impl.h"

const imp_field imp_llama_bench[] = {
    AS(AXIS, "model_filename", "model"),
    F(AXIS, "n_prompt"),
    F(AXIS, "n_gen"),
    F(AXIS, "n_depth"), /* absent in old builds */
    F(VERSION, "build_commit"),
    F(VERSION, "build_number"),
    F(MACHINE, "cpu_info"),
    F(MACHINE, "gpu_info"),
    F(MACHINE, "backends"),
    F(TIME, "test_time"),
    FIGURE("avg_ts", "tok/s", .statistic = "mean", .spread = "stddev_ts", .n = "samples_ts"),
    F(SPREAD, "stddev_ts"),
    F(KEEP, "samples_ts"),
    FIGURE("avg_ns", "ns", .statistic = "mean", .spread = "stddev_ns", .n = "samples_ns"),
    F(SPREAD, "stddev_ns"),
    F(KEEP, "samples_ns"),
    {0}};

const imp_field imp_batched_bench[] = {
    AS(AXIS, "pp", "n_prompt"),
    AS(AXIS, "tg", "n_gen"),
    AS(AXIS, "pl", "concurrency"),
    TOTAL("t_pp", "s"),
    TOTAL("speed_pp", "tok/s"),
    TOTAL("t_tg", "s"),
    TOTAL("speed_tg", "tok/s"),
    TOTAL("t", "s"),
    TOTAL("speed", "tok/s"),
    F(KEEP, "n_kv"),
    {0}};

/* ---- Markdown: few columns, and several facts in one ---------------------------------------------------------------- */

const imp_field imp_llama_bench_md[] = {
    F(AXIS, "model"),
    AS(MACHINE, "backend", "backends"),
    F(KEEP, "test"),
    F(KEEP, "t/s"),
    {0}};

const imp_field imp_batched_bench_md[] = {
    AS(AXIS, "PP", "n_prompt"),
    AS(AXIS, "TG", "n_gen"),
    AS(AXIS, "B", "concurrency"),
    TOTAL("T_PP s", "s"),
    TOTAL("S_PP t/s", "tok/s"),
    TOTAL("T_TG s", "s"),
    TOTAL("S_TG t/s", "tok/s"),
    TOTAL("T s", "s"),
    TOTAL("S t/s", "tok/s"),
    {0}};

/* "pp512", "tg128", "pp512+tg128", "pp512 @ d4096"; old builds write "pp 512". What is not named is 0. False: something else. */
static bool read_test(json_t *axes, const char *test) {
    static const struct {
        const char *word, *axis;
    } parts[] = {{"pp", "n_prompt"}, {"tg", "n_gen"}, {"+tg", "n_gen"}, {" @ d", "n_depth"}};
    json_object_set_new(axes, "n_prompt", json_integer(0));
    json_object_set_new(axes, "n_gen", json_integer(0));
    json_object_set_new(axes, "n_depth", json_integer(0));
    while (*test) {
        size_t k = 0;
        while (k < TL_COUNT(parts) && !tl_str_starts(test, parts[k].word)) k++;
        if (k == TL_COUNT(parts)) return false;
        test += strlen(parts[k].word);
        test += *test == ' ';
        char digits[20];
        size_t n = strspn(test, "0123456789");
        int64_t value;
        snprintf(digits, sizeof digits, "%.*s", (int)(n < 18 ? n : 18), test);
        if (n == 0 || n > 18 || !tl_parse_i64(digits, &value)) return false;
        json_object_set_new(axes, parts[k].axis, json_integer(value));
        test += n;
    }
    return true;
}

/* "1184.51 ± 12.22" */
static void read_rate(json_t *row, const char *text) {
    const char *mark = strstr(text, " ± ");
    json_t *mean = json_stringn(text, mark ? (size_t)(mark - text) : strlen(text));
    json_t *f = imp_figure(row, "t/s", mean, "tok/s", "mean");
    double spread;
    if (mark && tl_parse_f64(mark + strlen(" ± "), &spread)) json_object_set_new(f, "spread", json_pack("{s:s, s:f}", "name", "±", "number", spread));
    json_decref(mean);
}

void imp_read_llama_md(imp_rows *out, const imp_record *r, const imp_tool *t) {
    imp_row(out, r, t);
    json_t *row = json_array_get(out->rows, json_array_size(out->rows) - 1), *axes = json_object_get(row, "axes");
    const char *test = tl_json_str(r->fields, "test", "");
    if (!read_test(axes, test)) json_object_set_new(axes, "test", json_string(test));
    read_rate(row, json_string_value(json_object_get(r->fields, "t/s")));
}

/* "build: 3f545becc (6123)" stands behind its rows. Lines come from the last to the first: each overrides for those above. */
bool imp_build_line(imp_rows *out, int64_t line, const char *text) {
    char commit[64], number[32];
    int end = 0;
    if (sscanf(text, "build: %63[0-9A-Za-z._+-] (%31[0-9])%n", commit, number, &end) != 2 || end == 0 || text[end] != 0) return false;
    size_t i;
    json_t *row;
    json_array_foreach(out->rows, i, row) {
        if (tl_json_int(row, "line", 0) > line) continue;
        json_object_set_new(json_object_get(row, "version"), "build_commit", json_string(commit));
        json_object_set_new(json_object_get(row, "version"), "build_number", json_string(number));
    }
    return true;
}

/* "llama_batched_bench: n_kv_max = 512, n_batch = 128, ..." (older: "main: ...") stands before its rows. */
bool imp_batched_line(imp_rows *out, int64_t line, const char *text) {
    const char *at = strstr(text, ": n_kv_max = ");
    if (at == NULL) return false;
    at += 2;
    char name[64], value[64];
    for (int n = 0; sscanf(at, "%63[a-z_] = %63[^, ]%n", name, value, &n) == 2 && n > 0; n = 0) {
        json_t *v = json_string(value), *typed = imp_typed(v), *row;
        size_t i;
        json_array_foreach(out->rows, i, row) {
            json_t *settings = json_object_get(row, "settings");
            if (tl_json_int(row, "line", 0) > line && json_object_get(settings, name) == NULL) json_object_set(settings, name, typed);
        }
        json_decref(v);
        json_decref(typed);
        at += n;
        if (strncmp(at, ", ", 2) != 0) break;
        at += 2;
    }
    return true;
}

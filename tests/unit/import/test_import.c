/* Files of other tools (files/, see its README) read into rows: each figure by the tool's own name, nothing dropped unseen,
 * and a file cut at any byte gives an error or rows of the whole file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "import/import.h"
#include "os/os.h"
#include "value/value.h"

#define FILES TL_SOURCE_DIR "/tests/unit/import/files"

static const tl_import_options partial = {.partial = true};

static json_t *read_text(const char *text, const tl_import_options *o) {
    tl_err e = {0};
    json_t *j = NULL;
    if (tl_import_read(&j, text, strlen(text), "text", o, &e) != TL_OK) fail_msg("%s (%s)", e.msg, e.remedy);
    return j;
}

static void refuses(const char *p, size_t n, const tl_import_options *o, tl_status code, const char *words) {
    tl_err e = {0};
    json_t *j = NULL;
    assert_int_equal(tl_import_read(&j, p, n, "text", o, &e), code);
    assert_null(j);
    if (strstr(e.msg, words) == NULL) fail_msg("'%s' does not say '%s'", e.msg, words);
}

static void load(tl_buf *b, const char *name) {
    char *path = tl_path_join(FILES, name);
    tl_err e = {0};
    tl_buf_init(b, 0);
    if (tl_file_read(b, path, 1 << 20, &e) != TL_OK) fail_msg("%s", e.msg);
    free(path);
}

static json_t *read_file(const char *name) {
    tl_buf b;
    load(&b, name);
    json_t *j = read_text(b.p, NULL);
    tl_buf_free(&b);
    return j;
}

static size_t count(const json_t *j, const char *list) {
    return json_array_size(json_object_get(j, list));
}

static const json_t *figure(const json_t *j, size_t row, const char *name) {
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(json_array_get(json_object_get(j, "rows"), row), "figures"), i, f)
        if (tl_str_eq(tl_json_str(f, "name", ""), name)) return f;
    fail_msg("row %zu has no figure '%s'", row, name);
    return NULL;
}

/* ---- each file: what must be found in it -------------------------------------------------------------------------------- */

typedef struct expect {
    const char *file, *tool, *format, *version;
    size_t rows, refused, other;
    size_t row; /* of which a figure is known */
    const char *figure, *unit, *statistic;
    double number, spread; /* NAN: none */
    int64_t n;             /* -1: not recorded */
    const char *axis, *is;
} expect;

static const expect files[] = {
    {"llama-bench.json", "llama-bench", "JSON", "Debian 11669", 2, 0, 0, 0, "avg_ts", "tok/s", "mean", 1161.196885, 13.153572, 2, "n_prompt", "32"},
    {"llama-bench.jsonl", "llama-bench", "JSON lines", "Debian 11669", 2, 0, 0, 1, "avg_ns", "ns", "mean", 20803816, 1461293, 2, "n_depth", "16"},
    {"llama-bench.csv", "llama-bench", "CSV", "Debian 11669", 4, 0, 0, 0, "avg_ts", "tok/s", "mean", 940.777721, 303.162112, -1, "n_prompt", "32"},
    {"llama-bench.sql", "llama-bench", "SQL", "Debian 11669", 2, 0, 0, 1, "avg_ts", "tok/s", "mean", 476.812517, 5.059120, -1, "n_gen", "8"},
    {"llama-bench.md", "llama-bench", "Markdown", "Debian 11669", 4, 0, 0, 3, "t/s", "tok/s", "mean", 619.13, 3.43, -1, "n_depth", "16"},
    {"batched-bench.md", "llama-batched-bench", "Markdown", NULL, 4, 0, 0, 3, "S_TG t/s", "tok/s", NULL, 539.28, NAN, -1, "concurrency", "2"},
    {"batched-bench.jsonl", "llama-batched-bench", "JSON lines", NULL, 4, 0, 0, 1, "speed_tg", "tok/s", NULL, 432.257202, NAN, -1, "concurrency", "2"},
    {"vllm.json", "vllm", "JSON lines", NULL, 2, 0, 0, 0, "mean_ttft_ms", "ms", "mean", 182.40712, 90.11204, 199, "request_rate", "\"inf\""},
    {"sglang.jsonl", "sglang", "JSON lines", NULL, 2, 0, 0, 0, "p99_itl_ms", "ms", "p99", 44.3, NAN, -1, "concurrency", "8"},
    {"guidellm.json", "guidellm", "JSON", "0.5.2", 2, 0, 0, 0, "time_to_first_token_ms.p999", "ms", "p99.9", 71.5, NAN, 30, "concurrency", "8"},
    {"aiperf.json", "aiperf", "JSON", "0.12.0", 1, 0, 0, 0, "time_to_first_token.avg", "ms", "mean", 15559.12, 1555.912, -1, "concurrency", "8"},
    {"aiperf.csv", "aiperf", "CSV", NULL, 5, 0, 0, 4, "avg", "W", "mean", 512.3, 88.1, -1, "GPU_Name", "\"NVIDIA H200\""},
    {"genai-perf.json", "genai-perf", "JSON", NULL, 1, 0, 0, 0, "time_to_first_token.avg", "ms", "mean", 52.8, 5.28, -1, "model", "\"Qwen/Qwen3-8B\""},
    {"genai-perf.csv", "genai-perf", "CSV", NULL, 5, 0, 0, 0, "avg", "ms", "mean", 32688.4, NAN, -1, "metric", "\"Time To First Token (ms)\""},
    {"localscore.json", "localscore", "JSON", "a1b2c3d 1500 llamafile 0.9.3", 2, 0, 2, 1, "gen_tps", "tok/s", "mean", 54.01, 0.4, -1, "n_gen", "1536"},
    {"localscore.csv", "localscore", "CSV", "a1b2c3d 1500", 2, 0, 0, 0, "ttft_ms", "ms", "mean", 828.379409, NAN, -1, "n_prompt", "1024"},
    {"ollama.txt", "ollama", "text", NULL, 2, 0, 1, 0, "total duration", "s", NULL, 62.5, NAN, -1, "none", NULL},
};

static void check_units(const json_t *j) {
    size_t i, k;
    json_t *row, *f;
    tl_unit u;
    tl_err e = {0};
    json_array_foreach(json_object_get(j, "rows"), i, row) json_array_foreach(json_object_get(row, "figures"), k, f) {
        if (tl_unit_parse(&u, tl_json_str(f, "unit", NULL), &e) != TL_OK) fail_msg("%s: %s", tl_json_str(f, "name", ""), e.msg);
        assert_true(json_is_number(json_object_get(f, "number")) != (json_object_get(f, "null_reason") != NULL));
    }
}

static void check_file(const expect *x) {
    json_t *j = read_file(x->file);
    const json_t *f = figure(j, x->row, x->figure), *axis = tl_json_at(json_array_get(json_object_get(j, "rows"), x->row), "axes");
    print_message("%s\n", x->file);
    assert_string_equal(tl_json_str(j, "tool", ""), x->tool);
    assert_string_equal(tl_json_str(j, "format", ""), x->format);
    assert_string_equal(tl_json_str(j, "version", "-"), x->version ? x->version : "-");
    assert_int_equal(count(j, "rows"), x->rows);
    assert_int_equal(count(j, "refused"), x->refused);
    assert_int_equal(count(j, "other"), x->other);
    assert_int_equal(tl_json_int(j, "found", -1), x->rows + x->refused);
    assert_true(json_is_null(json_object_get(j, "lost")));
    assert_string_equal(tl_json_str(f, "unit", ""), x->unit);
    assert_string_equal(tl_json_str(f, "statistic", "-"), x->statistic ? x->statistic : "-");
    assert_true(tl_json_num(f, "number", NAN) == x->number);
    assert_int_equal(tl_json_int(f, "n", -1), x->n);
    assert_true(isnan(x->spread) ? json_object_get(f, "spread") == NULL : tl_json_num(f, "spread.number", NAN) == x->spread);
    char *text = json_object_get(axis, x->axis) ? tl_json_canonical(json_object_get(axis, x->axis)) : tl_xstrdup("absent");
    assert_string_equal(text, x->is ? x->is : "absent");
    free(text);
    check_units(j);
    json_decref(j);
}

static void test_files(void **state) {
    TL_UNUSED(state);
    for (size_t i = 0; i < TL_COUNT(files); i++) check_file(&files[i]);
}

/* ---- cut at every byte ----------------------------------------------------------------------------------------------------- */

/* Every row of `part` is a row of `whole`, in its order. What only all rows together say (settings, machine) may move. */
static void check_part(const json_t *part, const json_t *whole, size_t cut) {
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(part, "rows"), i, row) {
        const json_t *same = json_array_get(json_object_get(whole, "rows"), i);
        if (!json_equal(json_object_get(row, "figures"), json_object_get(same, "figures"))) fail_msg("cut at %zu, row %zu: other figures", cut, i);
        assert_int_equal(tl_json_int(row, "line", -1), tl_json_int(same, "line", -2));
        assert_true(json_equal(json_object_get(row, "fields"), json_object_get(same, "fields")));
    }
    assert_true(i <= count(whole, "rows"));
}

static void cut_file(const char *name) {
    tl_buf b;
    load(&b, name);
    json_t *whole = read_text(b.p, NULL);
    size_t complete = 0;
    for (size_t cut = 0; cut < b.len; cut++) {
        for (int k = 0; k < 2; k++) {
            json_t *j = NULL;
            tl_err e = {0};
            tl_status st = tl_import_read(&j, b.p, cut, "cut", k ? &partial : NULL, &e);
            assert_true((st == TL_OK) == (j != NULL) && (st == TL_OK || e.msg[0] != 0));
            if (j == NULL) continue;
            complete += k == 0;
            check_part(j, whole, cut);
            if (k == 0) assert_true(json_is_null(json_object_get(j, "lost")));
            json_decref(j);
        }
    }
    print_message("%s: %zu cuts, %zu taken as whole\n", name, b.len, complete);
    json_decref(whole);
    tl_buf_free(&b);
}

static void test_cuts(void **state) {
    TL_UNUSED(state);
    for (size_t i = 0; i < TL_COUNT(files); i++) cut_file(files[i].file);
}

static void test_partial(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    load(&b, "llama-bench.json");
    const size_t cut = b.len - 20; /* within the last object */
    refuses(b.p, cut, NULL, TL_INVALID, "cut off within the object");
    b.p[cut] = 0;
    json_t *j = read_text(b.p, &partial);
    assert_int_equal(count(j, "rows"), 1);
    assert_non_null(strstr(tl_json_str(j, "lost", ""), "the object that begins in line"));
    json_decref(j);
    tl_buf_free(&b);
}

/* ---- numbers that are none -------------------------------------------------------------------------------------------------- */

#define ROW "{\"n_prompt\": 1, \"n_gen\": 0, \"model_filename\": \"m\", \"avg_ts\": %s, \"stddev_ts\": 0, \"samples_ts\": [7], \"old_flag\": true}\n"

static void test_no_number(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *is, *why;
    } cases[] = {{"NaN", "'NaN'"}, {"-Infinity", "'-Infinity'"}, {"null", "null"}, {"-1.5", "below 0"}, {"\"\"", "empty"}, {"[1]", "no number"}, {"1e999", ""}};
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        char *text = tl_xprintf(ROW, cases[i].is);
        if (*cases[i].why == 0) refuses(text, strlen(text), NULL, TL_INVALID, "overflow"); /* JSON has no such number */
        else {
            json_t *j = read_text(text, NULL);
            const json_t *f = figure(j, 0, "avg_ts");
            assert_true(json_is_null(json_object_get(f, "number")));
            assert_non_null(strstr(tl_json_str(f, "null_reason", ""), cases[i].why));
            json_decref(j);
        }
        free(text);
    }
}

/* A deviation of one sample is unknown, not 0; an unknown field is kept as a setting; what differs becomes an axis. */
static void test_settings(void **state) {
    TL_UNUSED(state);
    char *one = tl_xprintf(ROW, "3"), *two = tl_xprintf("%s{\"n_prompt\":1,\"n_gen\":0,\"model_filename\":\"m\",\"avg_ts\":4,\"old_flag\":false}", one);
    json_t *j = read_text(one, NULL);
    assert_null(json_object_get(figure(j, 0, "avg_ts"), "spread"));
    assert_int_equal(tl_json_int(figure(j, 0, "avg_ts"), "n", -1), 1);
    assert_true(tl_json_bool(j, "rows.0.settings.old_flag", false));
    json_decref(j);
    j = read_text(two, NULL);
    assert_true(tl_json_bool(j, "rows.0.axes.old_flag", false));
    assert_false(tl_json_bool(j, "rows.1.axes.old_flag", true));
    assert_null(tl_json_at(j, "rows.0.settings.old_flag"));
    json_decref(j);
    free(one);
    free(two);
}

/* ---- what is no such file -------------------------------------------------------------------------------------------------- */

static void test_refused(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *text;
        size_t n;
        const char *words;
    } cases[] = {{"", 0, "an empty file"},
                 {" \r\n", 3, "an empty file"},
                 {"\xff\xfe{\0", 4, "UTF-16"},
                 {"{}\n\n{\0}", 7, "line 3 holds a NUL"},
                 {"{}\n\xff", 4, "not UTF-8 in line 2"},
                 {"hello\nworld", 11, "seen: 'hello'"},
                 {"{\"a\": 1, \"b\": 2}", 16, "seen: an object with 'a', 'b'"},
                 {"{\"a\": 1", 7, "cut off"}};
    for (size_t i = 0; i < TL_COUNT(cases); i++) refuses(cases[i].text, cases[i].n, NULL, TL_INVALID, cases[i].words);
    const tl_import_options forced = {.tool = "llama-batched-bench"};
    char *row = tl_xprintf(ROW, "3");
    refuses(row, strlen(row), &forced, TL_INVALID, "not a result of llama-batched-bench");
    free(row);
    char *big = tl_xalloc(TL_IMPORT_MAX + 1);
    refuses(big, TL_IMPORT_MAX + 1, NULL, TL_LIMIT, "64 MiB");
    free(big);
}

/* One broken row costs itself alone, and is counted. */
static void test_broken_rows(void **state) {
    TL_UNUSED(state);
    char *row = tl_xprintf(ROW, "3");
    char *text = tl_xprintf("\xef\xbb\xbfggml_cuda_init: found 1 device\r\n%s{\"n_prompt\": 1, \r\n{\"n_prompt\": }\n{\"other\": 1}\n%s", row, row);
    json_t *j = read_text(text, NULL);
    assert_int_equal(count(j, "rows"), 2);
    assert_int_equal(count(j, "refused"), 3);
    assert_int_equal(tl_json_int(j, "found", 0), 5);
    assert_int_equal(tl_json_int(j, "refused.0.line", 0), 3);
    assert_int_equal(tl_json_int(j, "refused.2.line", 0), 5);
    assert_int_equal(tl_json_int(j, "rows.1.line", 0), 6);
    assert_string_equal(tl_json_str(j, "refused.2.reason", ""), "not a row of llama-bench: it has no field 'n_prompt'");
    assert_string_equal(tl_json_str(j, "other.0.text", ""), "ggml_cuda_init: found 1 device");
    json_decref(j);
    free(text);
    free(row);
}

/* ---- serving ---------------------------------------------------------------------------------------------------------------- */

/* A latency of 0 and a NaN are both nothing; what only --save-detailed has is kept by its size. */
static void test_vllm(void **state) {
    TL_UNUSED(state);
    json_t *j = read_file("vllm.json");
    assert_true(json_is_null(json_object_get(figure(j, 1, "mean_ttft_ms"), "number")));
    assert_non_null(strstr(tl_json_str(figure(j, 1, "p99_ttft_ms"), "null_reason", ""), "says 0"));
    assert_string_equal(tl_json_str(figure(j, 1, "mean_tpot_ms"), "null_reason", ""), "the file says 'NaN'");
    assert_true(json_is_null(json_object_get(figure(j, 0, "request_goodput"), "number")));
    assert_true(tl_json_num(figure(j, 0, "rtfx"), "number", -1) == 0); /* a count of 0 is a number */
    assert_string_equal(tl_json_str(j, "rows.1.when", ""), "20260817-142733");
    assert_true(tl_json_num(j, "rows.1.axes.request_rate", 0) == 2.5);
    assert_int_equal(json_array_size(tl_json_at(j, "rows.1.fields.ttfts")), 2);
    assert_string_equal(tl_json_str(j, "rows.0.settings.backend", ""), "openai");
    json_decref(j);
}

/* sglang#4970: fields come and go between versions; each row has what its version wrote. */
static void test_sglang(void **state) {
    TL_UNUSED(state);
    json_t *j = read_file("sglang.jsonl");
    assert_string_equal(tl_json_str(j, "rows.0.axes.model", ""), "Qwen/Qwen3-8B");
    assert_string_equal(tl_json_str(j, "rows.0.axes.request_rate", ""), "Infinity");
    assert_true(tl_json_num(figure(j, 0, "concurrency"), "number", 0) == 7.776);
    assert_true(tl_json_num(figure(j, 1, "median_ttft_ms"), "number", 0) == 84.12);
    assert_int_equal(tl_json_int(figure(j, 1, "median_ttft_ms"), "n", 0), 1000);
    assert_null(tl_json_at(j, "rows.1.axes.model"));
    size_t i;
    json_t *f;
    json_array_foreach(tl_json_at(j, "rows.1.figures"), i, f) assert_null(strstr(tl_json_str(f, "name", ""), "tpot"));
    json_decref(j);
}

/* A mean over no sample is nothing, whatever the file says; another tool's group of failed requests is no figure of ours. */
static void test_guidellm(void **state) {
    TL_UNUSED(state);
    json_t *j = read_file("guidellm.json");
    assert_true(json_is_null(json_object_get(figure(j, 1, "time_to_first_token_ms.mean"), "number")));
    assert_true(tl_json_num(figure(j, 0, "request_totals.errored"), "number", 0) == 2);
    assert_true(tl_json_num(j, "rows.1.axes.request_rate", 0) == 2);
    assert_string_equal(tl_json_str(j, "rows.0.axes.model", ""), "Qwen/Qwen3-8B");
    assert_string_equal(tl_json_str(j, "rows.0.when", ""), "1786970000.250 s since 1970");
    assert_string_equal(tl_json_str(j, "machine.client_platform", ""), "Linux-6.8.0-x86_64-with-glibc2.39");
    assert_non_null(tl_json_at(j, "rows.0.fields.text"));
    json_decref(j);
    static const char google[] = "{\"context\": {}, \"benchmarks\": [{\"name\": \"BM_x\"}]}";
    refuses(google, strlen(google), NULL, TL_INVALID, "of no tool");
}

/* aiperf#339: both tools on one target; what makes the two TTFTs different is not in the files, so both stay as they are. */
static void test_nvidia(void **state) {
    TL_UNUSED(state);
    json_t *j = read_file("aiperf.json");
    assert_string_equal(tl_json_str(j, "rows.0.when", ""), "2026-08-17T14:25:30.120000");
    assert_string_equal(tl_json_str(j, "rows.0.fields.strange_metric.unit", ""), "bananas");
    assert_string_equal(tl_json_str(figure(j, 0, "output_token_throughput_per_user.avg"), "unit", ""), "tok/s");
    json_decref(j);
    j = read_file("aiperf.csv");
    assert_null(json_object_get(figure(j, 1, "avg"), "spread")); /* left empty */
    assert_string_equal(tl_json_str(figure(j, 2, "Value"), "unit", ""), "tok/s");
    assert_string_equal(tl_json_str(figure(j, 3, "Value"), "unit", ""), "1");
    json_decref(j);
    j = read_text("Metric,avg,p99\r\nRequest Latency (ms),\"1,2\",\"1,234,567.80\"\r\nOdd (parsec),1,2\r\n", NULL);
    assert_string_equal(tl_json_str(figure(j, 0, "avg"), "null_reason", ""), "the file says '1,2'"); /* no group of three */
    assert_true(tl_json_num(figure(j, 0, "p99"), "number", 0) == 1234567.8);
    assert_string_equal(tl_json_str(j, "refused.0.reason", ""), "no figure in it");
    json_decref(j);
}

static void test_localscore(void **state) {
    TL_UNUSED(state);
    json_t *j = read_file("localscore.json");
    assert_true(json_is_null(json_object_get(figure(j, 0, "power_watts"), "number")));
    assert_int_equal(tl_json_int(figure(j, 0, "avg_time_ms"), "n", 0), 2);
    assert_string_equal(tl_json_str(j, "machine.gpu_info", ""), "NVIDIA GeForce GTX 1070");
    assert_string_equal(tl_json_str(j, "other.1.text", ""), "Model loaded.");
    json_decref(j);
}

static void test_ollama(void **state) {
    TL_UNUSED(state);
    json_t *j = read_file("ollama.txt");
    assert_true(tl_json_num(figure(j, 0, "load duration"), "number", 0) == 0.8502);
    assert_true(tl_json_num(figure(j, 1, "total duration"), "number", 0) == 0.0003125);
    assert_true(tl_json_num(figure(j, 1, "eval rate"), "number", 0) == 62.5);
    assert_int_equal(json_array_size(tl_json_at(j, "rows.1.figures")), 4); /* a count of 0 is not printed, and is not made up */
    assert_int_equal(tl_json_int(j, "rows.1.line", 0), 15);
    json_decref(j);
    static const char cut[] = "total duration: 1h1m1.5s\neval count: 3 token(s)\n";
    refuses(cut, strlen(cut), NULL, TL_INVALID, "cut off within the statistics that begin in line 1");
    j = read_text("total duration: 1h1m1.5s\ntotal duration: 2 parsec\neval rate: 3.00 tokens/s", NULL);
    assert_true(tl_json_num(figure(j, 0, "total duration"), "number", 0) == 3661.5);
    json_decref(j);
}

/* ---- tables with other things printed into them ------------------------------------------------------------------------- */

#define WARNING "=== HAVE_FANCY_SIMD is NOT defined "
#define COLUMNS "(build_commit, model_filename, n_prompt, n_gen, use_mmap, flash_attn, avg_ts, stddev_ts)"

/* ik_llama.cpp#1486: a warning runs into the statement; a name holds a quote that is not doubled; one row has no columns. */
static void test_dirty_sql(void **state) {
    TL_UNUSED(state);
    json_t *j = read_text("CREATE TABLE IF NOT EXISTS test (\r\n  build_commit TEXT,\r\n" WARNING "\r\n  avg_ts REAL\r\n);\r\n"
                          WARNING "INSERT INTO test " COLUMNS " VALUES ('d1', 'it's.gguf', '512', '0', '1', '-1', '12.5', '0.5');\r\n"
                          "INSERT INTO test VALUES('d1','a.gguf','512','0','1','1','13','0.5');\r\n"
                          "INSERT INTO test " COLUMNS " VALUES ('d1', 'it''s.gguf', '0', '128', '1', '-1', NULL, '0.5');\r\n", NULL);
    assert_int_equal(count(j, "rows"), 2);
    assert_string_equal(tl_json_str(j, "rows.0.axes.model", ""), "it's.gguf");
    assert_string_equal(tl_json_str(j, "rows.1.axes.model", ""), "it's.gguf");
    assert_int_equal(tl_json_int(j, "rows.0.settings.flash_attn", 0), -1);
    assert_true(tl_json_num(figure(j, 0, "avg_ts"), "spread.number", 0) == 0.5);
    assert_string_equal(tl_json_str(figure(j, 1, "avg_ts"), "null_reason", ""), "the file says 'NULL'");
    assert_int_equal(count(j, "refused"), 1);
    assert_int_equal(tl_json_int(j, "refused.0.line", 0), 7);
    assert_int_equal(count(j, "other"), 2);
    assert_int_equal(tl_json_int(j, "other.1.line", 0), 6);
    json_decref(j);
}

/* A title, a warning between the rows, a row that is too short, and the header once more where two outputs were joined. */
static void test_dirty_csv(void **state) {
    TL_UNUSED(state);
    static const char header[] = "build_commit,model_filename,n_prompt,n_gen,avg_ts,stddev_ts\n";
    char *text = tl_xprintf("$ llama-bench -o csv\n%s\"d1\",\"a, \"\"b\"\".gguf\",\"16\",\"0\",\"7.5\",\"0.1\"\nwarning: slow\n\"d1\",\"a\",\"16\"\n\"d1\",\"open\n%s"
                            "\"d2\",\"a, \"\"b\"\".gguf\",\"16\",\"0\",\"8.5\",\"0.1\"", header, header);
    json_t *j = read_text(text, NULL);
    assert_int_equal(count(j, "rows"), 2);
    assert_string_equal(tl_json_str(j, "rows.0.axes.model", ""), "a, \"b\".gguf");
    assert_string_equal(tl_json_str(j, "rows.1.axes.build_commit", ""), "d2"); /* two builds are two conditions */
    assert_true(json_is_null(json_object_get(j, "version")));
    assert_int_equal(count(j, "refused"), 2);
    assert_string_equal(tl_json_str(j, "refused.0.reason", ""), "3 values where the header has 6");
    assert_string_equal(tl_json_str(j, "refused.1.reason", ""), "a quote does not close");
    assert_int_equal(count(j, "other"), 2);
    json_decref(j);
    free(text);
}

/* Tests that a table writes as one word, and two builds in one file. */
static void test_dirty_markdown(void **state) {
    TL_UNUSED(state);
    json_t *j = read_text("My results:\n\n| model | ngl | test | t/s |\n| --- | --: | ---: | ---: |\n| a 7B | 99 | pp512+tg128 | 10.00 ± 0.50 |\nCUDA warning\n"
                          "| a 7B | 98 | tg 128 | nan ± nan |\n\nbuild: aaa (1)\n| a 7B | 99 | depth? | 11.00 |\n| a 7B | 99 |\n\nbuild: bbb (2)", NULL);
    assert_int_equal(count(j, "rows"), 3);
    assert_int_equal(tl_json_int(j, "rows.0.axes.n_prompt", 0), 512);
    assert_int_equal(tl_json_int(j, "rows.0.axes.n_gen", 0), 128);
    assert_int_equal(tl_json_int(j, "rows.1.axes.n_gen", 0), 128);
    assert_int_equal(tl_json_int(j, "rows.1.axes.ngl", 0), 98);
    assert_string_equal(tl_json_str(j, "rows.2.axes.test", ""), "depth?");
    assert_string_equal(tl_json_str(j, "rows.1.axes.build_commit", ""), "aaa");
    assert_string_equal(tl_json_str(j, "rows.2.axes.build_commit", ""), "bbb");
    assert_string_equal(tl_json_str(figure(j, 1, "t/s"), "null_reason", ""), "the file says 'nan'");
    assert_true(tl_json_num(figure(j, 2, "t/s"), "number", 0) == 11);
    assert_int_equal(count(j, "refused"), 1);
    assert_int_equal(count(j, "other"), 2);
    json_decref(j);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),    cmocka_unit_test(test_cuts),    cmocka_unit_test(test_partial), cmocka_unit_test(test_no_number),
                                       cmocka_unit_test(test_settings), cmocka_unit_test(test_refused), cmocka_unit_test(test_broken_rows),
                                       cmocka_unit_test(test_dirty_sql), cmocka_unit_test(test_dirty_csv), cmocka_unit_test(test_dirty_markdown),
                                       cmocka_unit_test(test_vllm), cmocka_unit_test(test_sglang), cmocka_unit_test(test_guidellm),
                                       cmocka_unit_test(test_nvidia), cmocka_unit_test(test_localscore), cmocka_unit_test(test_ollama)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

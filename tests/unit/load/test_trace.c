/* Trace files: the three formats, and what is refused with which words. */
#include "load/load.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char *folder;

static tl_status read_text(tl_load_trace *out, const char *text, tl_err *e) {
    char *path = tl_path_join(folder, "trace");
    *e = (tl_err){0};
    assert_int_equal(tl_file_write(path, text, strlen(text), e), TL_OK);
    tl_status st = tl_load_trace_read(out, path, e);
    free(path);
    return st;
}

static void test_formats(void **state) {
    TL_UNUSED(state);
    static const char *const texts[] = {
        "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [3, 9]}\r\n"
        "{\"timestamp\": 1500, \"input_length\": 20, \"output_length\": 0, \"hash_ids\": [3]}\n",
        "\xEF\xBB\xBF"
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-30 23:59:59.5000000,700,5\r\n2023-12-01 00:00:01.0000000,20,0\r\n",
        "output_tokens,at_s,prompt_tokens\n5,0,700\n\n0,1.5,20"};
    for (size_t i = 0; i < TL_COUNT(texts); i++) {
        tl_load_trace t;
        tl_err e;
        assert_int_equal(read_text(&t, texts[i], &e), TL_OK);
        assert_int_equal(t.n, 2);
        assert_int_equal(t.v[0].at_ns, 0);
        assert_int_equal(t.v[0].prompt_n, 700);
        assert_int_equal(t.v[1].output_n, 0);
        assert_in_range(t.v[1].at_ns, 1500 * TL_MS - TL_US, 1500 * TL_MS);
        if (i == 0) assert_int_equal(t.v[0].hash_ids[1], 9);
        assert_int_equal(tl_load_trace_speed(&t, 0, &e), TL_INVALID);
        assert_int_equal(tl_load_trace_speed(&t, 3, &e), TL_OK);
        assert_in_range(t.v[1].at_ns, 500 * TL_MS - TL_US, 500 * TL_MS);
        tl_load_trace_free(&t);
    }
}

static void test_refused(void **state) {
    TL_UNUSED(state);
#define HEAD "at_s,prompt_tokens,output_tokens\n"
    static const char *const cases[][2] = {
        {"", "no request"},
        {HEAD, "no request"},
        {"at_s,prompt_tokens\n0,1\n", "trace:1: the header has no such column: 'output_tokens'"},
        {HEAD "0,1\n", "trace:2: the line is cut off"},
        {HEAD "-1,1,1\n", "trace:2: a time below 0"},
        {HEAD "2,1,1\n1,1,1\n", "trace:3: earlier than the line before"},
        {HEAD "0,many,1\n", "trace:2: not a number: 'many'"},
        {HEAD "0,1.5,1\n", "not a prompt length"},
        {HEAD "nan,1,1\n", "not a time"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-30 23:59:59,700,5\n", "trace:2: not a time"},
        {"{\"timestamp\": 0, \"input_length\": 7", "trace:1: not a JSON object"},
        {"{\"timestamp\": 0, \"input_length\": 7}\n", "trace:1: missing: 'output_length'"},
        {"{\"timestamp\": 0, \"input_length\": 7, \"output_length\": 1, \"hash_ids\": [\"a\"]}\n", "no whole number"},
    };
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        tl_load_trace t;
        tl_err e;
        assert_int_equal(read_text(&t, cases[i][0], &e), TL_INVALID);
        if (!strstr(e.msg, cases[i][1])) fail_msg("'%s' lacks '%s'", e.msg, cases[i][1]);
        assert_int_equal(t.n, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats), cmocka_unit_test(test_refused)};
    tl_err e = {0};
    if (tl_dir_temp(&folder, "tally-trace", &e) != TL_OK) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    if (tl_dir_remove(folder, &e) != TL_OK) rc = 1;
    free(folder);
    return rc;
}

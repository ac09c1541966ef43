/* script: the sandbox, the border between Lua and JSON, and what people will mistype in an experiment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/os.h"
#include "script/script.h"

static tl_script *fresh(void) {
    tl_script *s = NULL;
    tl_err e = {0};
    tl_script_options o = {.max_instructions = 5000000, .max_memory = 64 << 20};
    if (tl_script_new(&s, &o, &e) != TL_OK) fail_msg("%s", e.msg);
    return s;
}

static void refused(const char *text, const char *part, const char *remedy_part) {
    tl_script *s = fresh();
    tl_err e = {0};
    if (tl_script_load(s, "exp.lua", text, &e) == TL_OK) fail_msg("accepted: %s", text);
    if (strstr(e.msg, part) == NULL) fail_msg("message '%s' lacks '%s'", e.msg, part);
    if (remedy_part && strstr(e.remedy, remedy_part) == NULL) fail_msg("remedy '%s' lacks '%s'", e.remedy, remedy_part);
    tl_script_free(s);
}

static json_t *accepted(const char *text) {
    tl_script *s = fresh();
    tl_err e = {0};
    json_t *j = NULL;
    if (tl_script_load(s, "exp.lua", text, &e) != TL_OK) fail_msg("%s", e.msg);
    if (tl_script_object(&j, s, &e) != TL_OK) fail_msg("%s", e.msg);
    tl_script_free(s);
    return j;
}

static void sandbox_has_no_doors(void **state) {
    TL_UNUSED(state);
    refused("os.execute('true') return {}", "exp.lua:1: 'os' is not available", NULL);
    refused("local f = io.open('/etc/passwd') return {}", "'io' is not available", NULL);
    refused("load('return 1')() return {}", "'load' is not available", NULL);
    refused("loadfile('x') return {}", "'loadfile' is not available", NULL);
    refused("debug.getregistry() return {}", "'debug' is not available", NULL);
    refused("collectgarbage() return {}", "'collectgarbage' is not available", NULL);
    refused("local x = require('../../etc') return {}", "module name", NULL);
    refused("local x = require('no_such') return {}", "no such module", NULL);
    refused("x = 1 return {}", "undefined global 'x'", NULL);
    refused("return getmetatable(_G).__index and {}", "exp.lua:1", NULL);
    refused("\x1bLua", "exp.lua", NULL); /* bytecode */
}

static void errors_name_file_line_and_traceback(void **state) {
    TL_UNUSED(state);
    refused("return {\n  a = = 1\n}", "exp.lua:2:", NULL);
    refused("local function f() error('boom') end\nf()\nreturn {}", "exp.lua:1: boom", NULL);
    refused("local function f() error('boom') end\nf()\nreturn {}", "stack traceback", NULL);
    refused("while true do end", "endless loop", NULL);
    refused("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) end", "not enough memory", NULL);
    refused("local s = 'x' while true do s = s .. s end", "not enough memory", NULL);
    refused("return 7", "must return a table", "tally.experiment");
    refused("", "must return a table", NULL);
    refused("error({})", "without a message", NULL);
    refused("error(nil)", "exp.lua", NULL);
    refused("local function f() return f() + 1 end return f()", "exp.lua", NULL);
}

#define HEAD "local tally = require 'tally'\n"
#define BODY(extra)                                                                                              \
    HEAD "return tally.experiment {\n id = 'x', map = 'measure', title = { en = 't' }, question = { en = 'q' },\n" \
         " axes = { context = { 64, 128 } },\n workload = tally.chat { prompt_tokens = tally.axis 'context', "        \
         "output_tokens = 8 },\n" extra "}\n"

static void experiments_are_strict(void **state) {
    TL_UNUSED(state);
    json_decref(accepted(BODY("")));
    refused(BODY(" repeets = { min = 3 },\n"), "exp.lua:6: unknown field 'repeets'", "did you mean 'repeats'");
    refused(BODY(" repeats = { mni = 3 },\n"), "exp.lua:6: unknown field 'mni' in 'repeats'", "did you mean 'min'");
    refused(BODY(" repeats = { min = 'three' },\n"), "must be integer, it is string ('three')", NULL);
    refused(BODY(" repeats = { min = 0 },\n"), "the least allowed is 1", NULL);
    refused(BODY(" repeats = { min = 9, max = 3 },\n"), "repeats.max (3) is less", NULL);
    refused(BODY(" accept = { { metric = 'decode_rat' } },\n"), "must be one of", "decode_rate");
    refused(HEAD "return tally.experiment { id = 'x', map = 'mesure', title = {}, question = {}, axes = { a = { 1 } }, "
                 "workload = {} }", "one of", "did you mean 'measure'");
    refused(HEAD "return tally.experiment { id = 'x', map = 'measure' }", "is missing", NULL);
    refused(HEAD "return tally.experiment { id = 'X Y', map = 'measure', title = {}, question = {}, axes = { a = { 1 } }, "
                 "workload = tally.chat { prompt_tokens = 1, output_tokens = 1 } }", "lower-case", NULL);
    refused(HEAD "return tally.experiment { id = 'x', map = 'measure', title = {}, question = {}, axes = { a = { 1 } }, "
                 "workload = tally.chat { prompt_tokens = tally.axis 'b', output_tokens = 1 } }", "no such axis", NULL);
    refused(HEAD "return tally.experiment { id = 'x', map = 'measure', title = {}, question = {}, axes = { a = {} }, "
                 "workload = tally.chat { prompt_tokens = 1, output_tokens = 1 } }", "at least one entry", NULL);
    refused(HEAD "local s = tally.open { rtae = 2 } return {}", "unknown field 'rtae' in 'schedule'", "did you mean 'rate'");
    refused(HEAD "local s = tally.open { rate = 2, arrival = 'posson' } return {}", "must be one of: constant, poisson, gamma",
            "did you mean 'poisson'");
    refused(HEAD "local s = tally.search { resolution = 3 } return {}", "the most allowed is 0.5", NULL);
    refused(HEAD "tally.synth { name = 'm', quant = 'q5_9' } return {}", "must be one of", NULL);
}

static void values_cross_with_unit_and_label(void **state) {
    TL_UNUSED(state);
    tl_script *s = fresh();
    tl_err e = {0};
    json_t *out = NULL, *arg = NULL;
    const char *text = HEAD "return { predict = function(c) return tally.calc.decode_rate { bandwidth = c.bw, "
                            "bytes_per_token = tally.calc.bytes_per_token { weights_read = c.w, kv_per_position = c.kv, "
                            "positions = 64 } } end }";
    const char *json = "{\"bw\": {\"value\": 40, \"lo\": 38, \"hi\": 42, \"unit\": \"GB/s\", \"label\": \"measured\", \"source\": {\"run\": \"01R\"}},"
                       "\"w\": {\"value\": 0.5, \"unit\": \"GB/tok\", \"label\": \"measured\", \"source\": {\"run\": \"01R\"}},"
                       "\"kv\": {\"value\": 0, \"unit\": \"byte/tok\", \"label\": \"measured\", \"source\": {\"run\": \"01R\"}}}";
    if (tl_script_load(s, "exp.lua", text, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_int_equal(tl_json_parse(&arg, json, strlen(json), "arg", &e), TL_OK);
    if (tl_script_predict(&out, s, arg, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_true(tl_json_num(out, "value", 0) > 79.999 && tl_json_num(out, "value", 0) < 80.001);
    assert_true(tl_json_num(out, "lo", 0) > 75.99 && tl_json_num(out, "hi", 0) < 84.01);
    assert_string_equal(tl_json_str(out, "unit", ""), "tok/s");
    assert_string_equal(tl_json_str(out, "label", ""), "derived");
    assert_int_equal(json_array_size(tl_json_at(out, "inputs")), 2);
    json_decref(out);
    json_decref(arg);
    tl_script_free(s);
}

static void units_do_not_mix(void **state) {
    TL_UNUSED(state);
    const char *source = "{ url = 'https://x', title = 't', retrieved = '2026-01-01' }";
    char text[600];
    snprintf(text, sizeof text, HEAD "local s = %s return { v = tally.official(1, 'GB', s) + tally.official(1, 'GiB', s) }", source);
    refused(text, "GiB", NULL);
    snprintf(text, sizeof text, HEAD "local s = %s return { v = tally.official(1, 'tok/s', s) + tally.official(1, 'ms', s) }", source);
    refused(text, "ms", NULL);
    refused(HEAD "return { v = tally.official(1, 'GB', { title = 't' }) }", "url", NULL);
    refused(HEAD "return { v = tally.calc.decode_rate { bandwidth = 504, bytes_per_token = 1 } }", "must be a value", NULL);
    refused(HEAD "return { v = tally.calc.decode_rate { bandwith = 504 } }", "no input 'bandwith'", NULL);
}

static void data_must_have_a_form(void **state) {
    TL_UNUSED(state);
    json_t *j = accepted("return { a = { 1, 2.5, 'x', true }, b = {}, c = 9007199254740993 }");
    char *t = tl_json_canonical(j);
    assert_string_equal(t, "{\"a\":[1,2.5,\"x\",true],\"b\":{},\"c\":9007199254740993}");
    free(t);
    json_decref(j);
    tl_script *s = fresh();
    tl_err e = {0};
    json_t *out = NULL;
    static const char *const bad[] = {"return { a = 0/0 }", "local t = {} t.t = t return t", "return { 1, x = 2 }",
                                      "return { [true] = 1 }", "return { a = '\\xff' }"};
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        assert_int_equal(tl_script_load(s, "exp.lua", bad[i], &e), TL_OK);
        if (tl_script_object(&out, s, &e) == TL_OK) fail_msg("accepted: %s", bad[i]);
        assert_null(out);
    }
    tl_script_free(s);
}

static void the_shipped_experiments_load(void **state) {
    TL_UNUSED(state);
    tl_script *s = fresh();
    tl_err e = {0};
    tl_buf b;
    json_t *j = NULL;
    tl_buf_init(&b, 0);
    const char *path = TL_SOURCE_DIR "/experiments/measure/bandwidth-law.lua";
    assert_int_equal(tl_file_read(&b, path, 1 << 20, &e), TL_OK);
    if (tl_script_load(s, path, b.p, &e) != TL_OK) fail_msg("%s", e.msg);
    if (tl_script_object(&j, s, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_string_equal(tl_json_str(j, "id", ""), "bandwidth-law");
    assert_int_equal(json_array_size(tl_json_at(j, "axes.0.values")), 4);
    json_decref(j);
    tl_buf_free(&b);
    static const char *const machines[] = {"t1", "t2", "t3", "t4"};
    for (size_t i = 0; i < TL_COUNT(machines); i++) {
        char file[512];
        snprintf(file, sizeof file, TL_SOURCE_DIR "/machines/%s.lua", machines[i]);
        tl_buf_init(&b, 0);
        assert_int_equal(tl_file_read(&b, file, 1 << 20, &e), TL_OK);
        if (tl_script_data(&j, s, file, b.p, &e) != TL_OK) fail_msg("%s", e.msg);
        assert_string_equal(tl_json_str(j, "id", ""), machines[i]);
        assert_non_null(tl_json_str(j, "memory.bandwidth.label", NULL));
        json_decref(j);
        tl_buf_free(&b);
    }
    tl_script_free(s);
}

static void blocks_count_lines_of_their_file(void **state) {
    TL_UNUSED(state);
    tl_script *s = fresh();
    tl_err e = {0};
    json_t *j = NULL;
    assert_int_equal(tl_script_eval(&j, s, "{ a = 1, b = { 2 } }", "report.md", 40, &e), TL_OK);
    assert_int_equal(tl_json_int(j, "b.0", 0), 2);
    json_decref(j);
    assert_int_equal(tl_script_eval(&j, s, "a = 1,\nb = nope.x", "report.md", 40, &e), TL_SCRIPT);
    assert_non_null(strstr(e.msg, "report.md:41:"));
    tl_script_free(s);
}

static void library_overrides_by_folder(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    char *dir = NULL, *text = NULL;
    assert_int_equal(tl_dir_temp(&dir, "tally-lua", &e), TL_OK);
    char *path = tl_path_join(dir, "extra.lua");
    assert_int_equal(tl_file_write(path, "return { answer = 42 }", 22, &e), TL_OK);
    tl_script *s = NULL;
    tl_script_options o = {.lua_dir = dir};
    assert_int_equal(tl_script_new(&s, &o, &e), TL_OK);
    json_t *j = NULL;
    assert_int_equal(tl_script_load(s, "exp.lua", "return { a = require('extra').answer, b = require('tally') ~= nil }", &e), TL_OK);
    assert_int_equal(tl_script_object(&j, s, &e), TL_OK);
    assert_int_equal(tl_json_int(j, "a", 0), 42);
    json_decref(j);
    assert_int_equal(tl_script_library(&text, s, "calc/decode_rate.lua", &e), TL_OK);
    free(text);
    assert_int_equal(tl_script_library(&text, s, "calc/decode_rat.lua", &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.remedy, "decode_rate"));
    tl_script_free(s);
    assert_int_equal(tl_dir_remove(dir, &e), TL_OK);
    free(path);
    free(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sandbox_has_no_doors), cmocka_unit_test(errors_name_file_line_and_traceback),
        cmocka_unit_test(experiments_are_strict), cmocka_unit_test(values_cross_with_unit_and_label),
        cmocka_unit_test(units_do_not_mix), cmocka_unit_test(data_must_have_a_form),
        cmocka_unit_test(the_shipped_experiments_load), cmocka_unit_test(blocks_count_lines_of_their_file),
        cmocka_unit_test(library_overrides_by_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

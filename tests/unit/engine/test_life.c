/* The life cycle against a stand-in that starts, fails and ends in every way that must be told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "os/os.h"

static const char ADAPTER[] =
    "{\"name\":\"fake\",\"binaries\":[\"no-such-engine-binary\"],\"missing\":\"install it\","
    "\"version\":{\"args\":[\"--version\"],\"pattern\":\"^version: (.*)$\",\"compiler\":\"^built with (.*)$\"},"
    "\"help\":{\"args\":[\"--help\"]},\"env\":[\"FAKEENGINE_\"],"
    "\"start\":[{\"args\":[\"-m\",\"{model}\"],\"required\":true},{\"args\":[\"--port\",\"{port}\"],\"required\":true},"
    "{\"args\":[\"--slots\",\"1\"]}],"
    "\"settings\":{\"ctx\":{\"type\":\"int\",\"min\":1,\"flag\":\"-c\"},\"per_slot\":{\"type\":\"int\",\"flag\":\"-c\"},"
    "\"quant\":{\"type\":\"enum\",\"values\":[\"q8_0\",\"f16\"],\"flag\":\"--quant\",\"open\":[\"f16\"]},"
    "\"mmap\":{\"type\":\"bool\",\"args\":[{\"true\":[\"--map\"],\"false\":[\"--load\",\"none\"]},{\"true\":[],\"false\":[\"--no-map\",\"1\"]}]},"
    "\"turbo\":{\"type\":\"int\",\"flag\":\"--turbo\"},\"extra_args\":{\"type\":\"list\"}},"
    "\"ready\":{\"path\":\"/health\",\"ok\":200,\"loading\":[503],\"log\":\"listening on http\",\"timeout_s\":20,\"poll_ms\":5},"
    "\"stop_s\":1,\"log_prefix\":\"^[0-9.]+ [A-Z] \","
    "\"facts\":{\"http\":[{\"path\":\"/props\",\"take\":{\"per_slot\":\"n\",\"slots\":\"slots\",\"build\":\"build\",\"chat_template\":\"chat_template\"}},"
    "{\"path\":\"/nothing\",\"take\":{\"x\":\"y\"}}],\"present\":[\"chat_template\"],"
    "\"log\":[{\"pattern\":\"^ctx = ([0-9]+)\",\"take\":[\"ctx\"],\"type\":\"int\"},"
    "{\"pattern\":\"([A-Z0-9]+) KV buffer size = ([0-9.]+) MiB\",\"list\":\"buffers\",\"take\":[\"device\",\"mib\"]}]},"
    "\"failures\":[{\"kind\":\"port\",\"pattern\":\"couldn't bind\",\"remedy\":\"another port\"},"
    "{\"kind\":\"flag\",\"pattern\":\"invalid argument\",\"remedy\":\"see --help\"},"
    "{\"kind\":\"memory\",\"pattern\":\"out of memory\",\"remedy\":\"less context\"},"
    "{\"kind\":\"other\",\"pattern\":\"GGML_ASSERT\"},{\"kind\":\"model\",\"pattern\":\"failed to load model\"}],"
    "\"tokenize\":{\"path\":\"/tokenize\",\"text\":\"content\",\"tokens\":\"tokens\"},"
    "\"idle\":{\"path\":\"/slots\",\"busy\":\"is_processing\",\"id\":\"id\"}}";

static char *dir, *log_path, *model_path, *file_path;
static json_t *adapter;

static int setup(void **state) {
    TL_UNUSED(state);
    if (tl_dir_temp(&dir, "tally-life", NULL) != TL_OK) return -1;
    log_path = tl_path_join(dir, "engine.log");
    file_path = tl_path_join(dir, "starts");
    model_path = tl_path_join(dir, "{port} model 模型.gguf"); /* a name that looks like a placeholder, with a blank */
    return tl_file_write(model_path, "GGUF", 4, NULL) == TL_OK &&
                   tl_json_parse(&adapter, ADAPTER, sizeof ADAPTER - 1, "adapter", NULL) == TL_OK
               ? 0
               : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    json_decref(adapter);
    int bad = tl_dir_remove(dir, NULL) != TL_OK;
    free(dir);
    free(log_path);
    free(model_path);
    free(file_path);
    return bad;
}

/* Settings with extra_args for the stand-in; `more` are further settings (consumed). */
static tl_status start(tl_engine **g, const char *mode, int count, json_t *more, tl_ns timeout, tl_err *e) {
    json_t *settings = more ? more : json_object();
    char *n = tl_xprintf("%d", count);
    json_object_set_new(settings, "extra_args",
                        json_pack("[s,s,s,s,s,s]", "--mode", mode, "--count", n, "--file", file_path));
    const tl_engine_spec spec = {.binary = FAKE_ENGINE, .model_path = model_path, .settings = settings, .log_path = log_path,
                                 .ready_timeout_ns = timeout};
    tl_err_clear(e);
    if (tl_file_remove(file_path, e) != TL_OK) return TL_IO;
    tl_status st = tl_engine_start(g, adapter, &spec, e);
    json_decref(settings);
    free(n);
    return st;
}

static void must_say(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' does not hold '%s'", text, part);
}

static void test_503_then_ready(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    json_t *s = json_pack("{s:i,s:i,s:s,s:b}", "ctx", 4096, "per_slot", 4096, "quant", "q8_0", "mmap", 0);
    if (start(&g, "ready", 3, s, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    const json_t *f = tl_engine_facts(g);
    assert_string_equal(tl_json_str(f, "version.text", ""), "1.2 (fake)");
    assert_string_equal(tl_json_str(f, "version.compiler", ""), "love");
    assert_int_equal(strlen(tl_json_str(f, "binary.sha256", "")), 64);
    assert_int_equal(tl_json_int(f, "starts", 0), 1);
    assert_int_equal(tl_json_int(f, "effective.ctx", 0), 4096);
    assert_string_equal(tl_json_str(f, "build", ""), "b1-f");
    assert_true(tl_json_bool(f, "effective.chat_template", false));
    /* asked for 4096 a slot, got 2048; the quantisation cannot be read back; --slots is not --slots-path */
    assert_int_equal(json_array_size(tl_json_at(f, "differences")), 1);
    assert_string_equal(tl_json_str(f, "differences.0.name", ""), "per_slot");
    assert_int_equal(tl_json_int(f, "differences.0.effective", 0), 2048);
    assert_string_equal(tl_json_str(f, "unverified.0", ""), "quant");
    assert_string_equal(tl_json_str(f, "dropped_flags.0", ""), "--slots");
    assert_true(json_is_null(json_object_get(tl_json_at(f, "raw"), "/nothing")));
    assert_int_equal(json_array_size(tl_json_at(f, "buffers")), 2);
    assert_true(tl_json_num(f, "buffers.0.mib", 0) > 2.4 && tl_json_num(f, "buffers.0.mib", 0) < 2.6);
    assert_string_equal(tl_json_str(f, "buffers.1.device", ""), "GPU0");
    assert_string_equal(tl_json_str(f, "argv.2", ""), model_path); /* one argument, untouched */
    char *argv = tl_json_canonical(tl_json_at(f, "argv"));
    must_say(argv, "\"--no-map\",\"1\"");
    free(argv);
    assert_true(tl_engine_alive(g));
    int64_t pid = tl_engine_pid(g);
    tl_engine_stop(g);
    assert_false(tl_engine_alive(g));
    tl_engine_stop(g);
    tl_engine_free(g);
    assert_false(tl_pid_alive(pid));
}

static void test_dies_while_loading(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    assert_int_equal(start(&g, "die", 2, NULL, 0, &e), TL_ENGINE);
    assert_null(g);
    must_say(e.msg, "exit code 1");
    must_say(e.msg, "\"allocating 99999.00 MiB on device 0: cudaMalloc failed: out of memory\""); /* not the last line */
    must_say(e.remedy, "less context");
    assert_true(tl_engine_log_path != NULL && tl_file_exists(log_path));
}

static void test_refuses_an_argument(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    assert_int_equal(start(&g, "refuse", 0, NULL, 0, &e), TL_INVALID);
    must_say(e.msg, "\"error: invalid argument: --wrong\"");
    assert_int_equal(start(&g, "mute", 0, NULL, 0, &e), TL_ENGINE);
    must_say(e.msg, "exit code 7");
}

static void test_never_ready(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    assert_int_equal(start(&g, "never", 0, NULL, 300 * TL_MS, &e), TL_TIMEOUT);
    must_say(e.msg, "HTTP 503, still loading");
    assert_int_equal(start(&g, "deaf", 0, NULL, 300 * TL_MS, &e), TL_TIMEOUT);
    must_say(e.msg, "never answered");
}

static bool at_once(void *ctx) {
    return --*(int *)ctx < 0;
}

static void test_cancelled(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    int looks = 3;
    json_t *s = json_pack("{s:[s,s]}", "extra_args", "--mode", "never");
    const tl_engine_spec spec = {.binary = FAKE_ENGINE, .model_path = model_path, .settings = s, .log_path = log_path,
                                 .cancelled = at_once, .ctx = &looks};
    assert_int_equal(tl_engine_start(&g, adapter, &spec, &e), TL_CANCELLED);
    json_decref(s);
}

static void test_ignores_sigterm(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    if (start(&g, "stubborn", 0, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    int64_t pid = tl_engine_pid(g);
    tl_engine_free(g);
    assert_false(tl_pid_alive(pid));
}

static void test_port_is_taken_meanwhile(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    if (start(&g, "port", 2, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_int_equal(tl_json_int(tl_engine_facts(g), "starts", 0), 3);
    tl_buf text;
    tl_buf_init(&text, 0);
    assert_int_equal(tl_file_read(&text, log_path, 0, NULL), TL_OK);
    must_say(text.p, "couldn't bind"); /* the log of all starts is kept */
    tl_buf_free(&text);
    tl_engine_free(g);
    assert_int_equal(start(&g, "port", 1000, NULL, 0, &e), TL_CONFLICT);
}

static void test_given_port_is_taken(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *a = NULL, *b = NULL;
    if (start(&a, "ready", 0, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    int64_t port = 0;
    assert_true(tl_parse_i64(strrchr(tl_engine_url(a), ':') + 1, &port));
    char *log2 = tl_path_join(dir, "second.log");
    const tl_engine_spec spec = {.binary = FAKE_ENGINE, .model_path = model_path, .log_path = log2, .port = (uint16_t)port};
    assert_int_equal(tl_engine_start(&b, adapter, &spec, &e), TL_CONFLICT);
    must_say(e.msg, "is taken");
    free(log2);
    tl_engine_free(a);
}

/* Somebody else's server answers 200 on the port that ours could not bind: that must not count as ready. */
static void test_anothers_answer_is_not_ours(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *a = NULL, *b = NULL;
    if (start(&a, "ready", 0, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    /* the "liar" is given the first one's port by its arguments, behind tally's back */
    json_t *bent = json_deep_copy(adapter);
    json_array_set_new(json_object_get(json_array_get(json_object_get(bent, "start"), 1), "args"), 1,
                       json_string(strrchr(tl_engine_url(a), ':') + 1));
    char *health = tl_xprintf("%s/health", tl_engine_url(a));
    json_object_set_new(json_object_get(bent, "ready"), "timeout_s", json_integer(5));
    json_t *s = json_pack("{s:[s,s]}", "extra_args", "--mode", "liar");
    char *log2 = tl_path_join(dir, "second.log");
    const tl_engine_spec spec = {.binary = FAKE_ENGINE, .model_path = model_path, .settings = s, .log_path = log2};
    assert_int_equal(tl_engine_start(&b, bent, &spec, &e), TL_CONFLICT);
    json_decref(s);
    json_decref(bent);
    free(health);
    free(log2);
    tl_engine_free(a);
}

static void test_dies_later(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    tl_http_reply r = {0};
    if (start(&g, "crash", 0, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    char *url = tl_xprintf("%s/crash", tl_engine_url(g));
    assert_int_not_equal(tl_http_get(&r, url, NULL, &e), TL_OK);
    for (int i = 0; i < 400 && tl_engine_alive(g); i++) tl_sleep_ns(5 * TL_MS);
    assert_false(tl_engine_alive(g));
    tl_buf words;
    tl_buf_init(&words, 0);
    tl_engine_last_words(&words, g);
    assert_string_equal(words.p, "exit code 3: \"GGML_ASSERT(x) failed\"");
    tl_buf_free(&words);
    tl_http_reply_free(&r);
    free(url);
    tl_engine_free(g);
}

static void expect_invalid(json_t *settings, const char *part, const char *remedy) {
    tl_err e = {0};
    tl_engine *g = NULL;
    assert_int_equal(start(&g, "ready", 0, settings, 0, &e), TL_INVALID);
    must_say(e.msg, part);
    must_say(e.remedy, remedy);
}

static void test_settings_are_checked(void **state) {
    TL_UNUSED(state);
    expect_invalid(json_pack("{s:i}", "ctxx", 1), "has no setting 'ctxx'", "did you mean 'ctx'?");
    expect_invalid(json_pack("{s:i}", "ctx", 0), "setting 'ctx' is 0, outside 1", "");
    expect_invalid(json_pack("{s:s}", "ctx", "8k"), "must be a value of type int, not \"8k\"", "");
    expect_invalid(json_pack("{s:s}", "quant", "q8"), "has no value 'q8'", "q8_0");
    expect_invalid(json_pack("{s:i}", "turbo", 1), "cannot be told 'turbo' = 1", "leave the setting out");
}

static void test_open_setting(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    if (start(&g, "ready", 0, json_pack("{s:s,s:n}", "quant", "f16", "ctx"), 0, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_int_equal(json_array_size(tl_json_at(tl_engine_facts(g), "differences")), 0);
    assert_int_equal(json_array_size(tl_json_at(tl_engine_facts(g), "unverified")), 0);
    tl_engine_free(g);
}

static void test_what_is_missing(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    tl_engine_spec spec = {.model_path = model_path, .log_path = log_path};
    assert_int_equal(tl_engine_start(&g, adapter, &spec, &e), TL_MISSING);
    must_say(e.msg, "no-such-engine-binary");
    must_say(e.remedy, "install it");
    spec.binary = model_path; /* exists, not executable */
    assert_int_equal(tl_engine_start(&g, adapter, &spec, &e), TL_MISSING);
    must_say(e.msg, "not an executable");
    spec.binary = "/bin/false"; /* runs, and is no engine */
    assert_int_equal(tl_engine_start(&g, adapter, &spec, &e), TL_ENGINE);
    spec.binary = FAKE_ENGINE;
    spec.model_path = "/no/such/model.gguf";
    assert_int_equal(tl_engine_start(&g, adapter, &spec, &e), TL_NOT_FOUND);
    spec.model_path = dir;
    assert_int_equal(tl_engine_start(&g, adapter, &spec, &e), TL_INVALID);
    spec.model_path = model_path;
    spec.log_path = "/no/such/folder/log";
    assert_int_not_equal(tl_engine_start(&g, adapter, &spec, &e), TL_OK);
    assert_null(g);
}

static void test_calls(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    tl_buf text;
    tl_buf_init(&text, 0);
    if (start(&g, "busy", 3, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_int_equal(tl_engine_wait_idle(g, 0, &e), TL_TIMEOUT);
    must_say(e.msg, "slot 4 at work");
    assert_int_equal(tl_engine_wait_idle(g, 5 * TL_S, &e), TL_OK);
    assert_int_equal(tl_engine_tokenize(&ids, &n, g, "a b", &e), TL_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ids[2], 7);
    free(ids);
    assert_int_equal(tl_engine_tokenize(&ids, &n, g, "bad", &e), TL_ENGINE);
    assert_int_equal(tl_engine_tokenize(&ids, &n, g, "\xff", &e), TL_INVALID);
    assert_int_equal(tl_engine_detokenize(&text, g, &(int32_t){1}, 1, &e), TL_MISSING);
    tl_buf_free(&text);
    tl_engine_free(g);
}

static void test_attach(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_engine *g = NULL, *a = NULL;
    if (start(&g, "ready", 0, NULL, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    char *url = tl_xprintf("%s//", tl_engine_url(g));
    if (tl_engine_attach(&a, adapter, url, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_string_equal(tl_engine_url(a), tl_engine_url(g));
    assert_true(tl_engine_attached(a));
    assert_int_equal(tl_engine_pid(a), 0);
    char *open = tl_json_canonical(tl_json_at(tl_engine_facts(a), "unverified"));
    must_say(open, "\"binary\"");
    must_say(open, "\"argv\"");
    must_say(open, "\"ctx\"");
    assert_int_equal(tl_json_int(tl_engine_facts(a), "effective.per_slot", 0), 2048);
    free(open);
    assert_true(tl_engine_alive(a));
    tl_engine_stop(a); /* not ours to stop */
    assert_true(tl_engine_alive(g));
    tl_engine_free(g);
    assert_false(tl_engine_alive(a));
    tl_engine_free(a);
    assert_int_not_equal(tl_engine_attach(&a, adapter, url, &e), TL_OK);
    assert_int_equal(tl_engine_attach(&a, adapter, "localhost:80", &e), TL_INVALID);
    free(url);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_503_then_ready),      cmocka_unit_test(test_dies_while_loading),
        cmocka_unit_test(test_refuses_an_argument), cmocka_unit_test(test_never_ready),
        cmocka_unit_test(test_cancelled),           cmocka_unit_test(test_ignores_sigterm),
        cmocka_unit_test(test_port_is_taken_meanwhile), cmocka_unit_test(test_given_port_is_taken),
        cmocka_unit_test(test_anothers_answer_is_not_ours), cmocka_unit_test(test_dies_later),
        cmocka_unit_test(test_settings_are_checked), cmocka_unit_test(test_open_setting),
        cmocka_unit_test(test_what_is_missing),     cmocka_unit_test(test_calls),
        cmocka_unit_test(test_attach),
    };
    tl_signal_install();
    return cmocka_run_group_tests(tests, setup, teardown);
}

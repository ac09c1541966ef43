/* The life cycle, the dialects and the load module together on the real llama-server with a scripted model: exact counts,
 * texts and finish reasons. Skipped, with a line that says what is missing, where there is no llama-server. */
#include "load/load.h"
#include "model/model.h"
#include "os/os.h"
#include "script/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir, *model, *log_path;
static json_t *adapter;
static tl_synth_spec spec;
static tl_engine *g;
static tl_err e;

static void ok(tl_status st) {
    if (st != TL_OK) fail_msg("%s -> %s (%s:%d)", e.msg, e.remedy, e.file, e.line);
}

static tl_status start(tl_engine **out, const char *model_path) {
    json_t *s = json_pack("{s:i,s:i,s:i,s:i,s:s,s:s,s:s}", "ctx", 8192, "slots", 4, "threads", 2, "cache_ram", 0,
                          "flash_attention", "on", "kv_type_k", "f16", "kv_type_v", "f16");
    const tl_engine_spec how = {.model_path = model_path, .settings = s, .log_path = log_path, .ready_timeout_ns = 60 * TL_S};
    tl_status st = tl_engine_start(out, adapter, &how, &e);
    json_decref(s);
    return st;
}

static int setup(void **state) {
    TL_UNUSED(state);
    tl_script *lua = NULL;
    char *text = NULL, *found = NULL;
    if (tl_dir_temp(&dir, "tally-engine", &e) != TL_OK || tl_script_new(&lua, NULL, &e) != TL_OK) return -1;
    model = tl_path_join(dir, "m.gguf");
    log_path = tl_path_join(dir, "engine.log");
    spec = tl_synth_default();
    spec.layers = 2, spec.embed = 256, spec.ff = 512, spec.vocab = 4096;
    tl_status st = tl_synth_set(&spec, "think", "32", &e);
    if (st == TL_OK) st = tl_synth_set(&spec, "answer", "200", &e);
    if (st == TL_OK) st = tl_synth_write(model, &spec, NULL, NULL, &e);
    if (st == TL_OK) st = tl_script_library(&text, lua, "engine/llamacpp.lua", &e);
    if (st == TL_OK) st = tl_script_data(&adapter, lua, "engine/llamacpp.lua", text, &e);
    free(text);
    tl_script_free(lua);
    if (st == TL_OK && tl_engine_find(&found, adapter, NULL, &e) == TL_OK) st = start(&g, model);
    else if (st == TL_OK) print_message("no llama-server on PATH or in tally's cache: `sh experiments/engine-setup` sets one up\n");
    if (st != TL_OK) print_message("%s\n", e.msg);
    free(found);
    return st == TL_OK ? 0 : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_engine_free(g);
    json_decref(adapter);
    tl_status st = tl_dir_remove(dir, &e);
    free(dir), free(model), free(log_path);
    return st == TL_OK ? 0 : -1;
}

/* One request through the load module. */
static void ask(tl_load_result *r, const char *dialect, const tl_prompt *p, const tl_gen *gen, tl_load_cache cache, size_t copies,
                size_t users) {
    const tl_dialect *d = tl_dialect_find(dialect);
    tl_buf body;
    tl_buf_init(&body, 0);
    ok(tl_dialect_body(&body, d, p, gen, &e));
    tl_load_job *jobs = tl_xalloc(copies * sizeof *jobs);
    for (size_t i = 0; i < copies; i++)
        jobs[i] = (tl_load_job){.dialect = d, .body = body.p, .body_len = body.len, .max_tokens = gen->max_tokens,
                                .prompt_n = p->tokens ? (int64_t)p->n_tokens : -1, .cache = cache};
    const tl_load_opts o = {.engine = g, .users = users, .timeout_ns = 60 * TL_S};
    ok(tl_engine_wait_idle(g, 5 * TL_S, &e));
    ok(tl_load_run(r, jobs, copies, &o, &e));
    free(jobs);
    tl_buf_free(&body);
}

static void test_facts(void **state) {
    TL_UNUSED(state);
    if (!g) skip();
    const json_t *f = tl_engine_facts(g);
    char *d = tl_json_canonical(tl_json_at(f, "differences"));
    assert_string_equal(d, "[]");
    free(d);
    assert_int_equal(tl_json_int(f, "effective.ctx_slot", 0), 2048);
    assert_int_equal(tl_json_int(f, "effective.threads", 0), 2);
    assert_true(tl_json_bool(f, "effective.chat_template", false));
    assert_true(json_array_size(tl_json_at(f, "buffers")) > 0);
}

static void test_chat(void **state) {
    TL_UNUSED(state);
    if (!g) skip();
    tl_buf think, answer;
    tl_buf_init(&think, 0), tl_buf_init(&answer, 0);
    ok(tl_synth_text(&think, &answer, &spec, &e));
    tl_gen gen;
    tl_gen_init(&gen);
    gen.max_tokens = 400;
    const tl_prompt p = {.text = "hello"};
    for (int thinking = 1; thinking >= 0; thinking--) {
        tl_load_result r;
        if (!thinking) gen.enable_thinking = 0;
        ask(&r, "openai-chat", &p, &gen, TL_CACHE_ANY, 1, 1);
        const tl_request *q = &r.items[0].request;
        assert_int_equal(q->count.usage_completion, (int64_t)tl_synth_completion_tokens(&spec, thinking));
        assert_string_equal(q->finish_reason, "stop");
        assert_string_equal(q->text, answer.p);
        assert_string_equal(q->reasoning, thinking ? think.p : "");
        tl_load_result_free(&r);
    }
    gen.max_tokens = 20;
    tl_load_result r;
    ask(&r, "openai-chat", &p, &gen, TL_CACHE_ANY, 4, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(r.items[i].request.finish_reason, "length");
        assert_int_equal(r.items[i].request.count.usage_completion, 20);
    }
    tl_load_result_free(&r);
    tl_buf_free(&think), tl_buf_free(&answer);
}

static void test_cold_warm_too_long(void **state) {
    TL_UNUSED(state);
    if (!g) skip();
    tl_load_pool *pool = NULL;
    static int32_t ids[3000];
    tl_gen gen;
    tl_gen_init(&gen);
    gen.max_tokens = 4;
    ok(tl_load_pool_new(&pool, g, 7, &e));
    tl_load_pool_draw(ids, 3000, pool);
    tl_prompt p = {.tokens = ids, .n_tokens = 1000};
    gen.id_slot = 0;
    tl_load_result r;
    for (int warm = 0; warm < 2; warm++) {
        ask(&r, "llamacpp-completion", &p, &gen, warm ? TL_CACHE_WARM : TL_CACHE_COLD, 1, 1);
        assert_int_equal(r.items[0].flags, 0);
        assert_int_equal(r.items[0].request.count.engine_cache_n, warm ? 999 : 0);
        tl_load_result_free(&r);
    }
    p.n_tokens = 3000;
    ask(&r, "llamacpp-completion", &p, &gen, TL_CACHE_ANY, 1, 1);
    assert_int_equal(r.items[0].request.http_status, 400);
    assert_string_equal(r.items[0].request.error_class, "exceed_context_size_error");
    tl_load_result_free(&r);
    tl_load_pool_free(pool);
}

static bool kill_it(void *ctx) {
    if (++*(int *)ctx == 3) kill((pid_t)tl_engine_pid(g), SIGKILL);
    return false;
}

static void test_killed_in_the_middle(void **state) {
    TL_UNUSED(state);
    if (!g) skip();
    tl_gen gen;
    tl_gen_init(&gen);
    gen.max_tokens = 1500, gen.ignore_eos = true;
    const tl_dialect *d = tl_dialect_find("openai-chat");
    const tl_prompt p = {.text = "hello"};
    tl_buf body;
    tl_buf_init(&body, 0);
    ok(tl_dialect_body(&body, d, &p, &gen, &e));
    tl_load_job jobs[2] = {{.dialect = d, .body = body.p, .body_len = body.len, .max_tokens = 1500, .prompt_n = -1}};
    jobs[1] = jobs[0];
    int looks = 0;
    const tl_load_opts o = {.engine = g, .cancelled = kill_it, .ctx = &looks};
    tl_load_result r;
    ok(tl_load_run(&r, jobs, 2, &o, &e));
    assert_int_equal(r.end, TL_LOAD_ENGINE);
    assert_int_not_equal(r.items[0].request.transport, TL_TP_COMPLETE);
    assert_false(tl_engine_alive(g));
    tl_load_result_free(&r);
    tl_buf_free(&body);
}

static void test_truncated_model(void **state) {
    TL_UNUSED(state);
    if (!g) skip();
    tl_engine *bad = NULL;
    tl_buf b;
    tl_buf_init(&b, 0);
    char *cut = tl_path_join(dir, "cut.gguf");
    ok(tl_file_read(&b, model, 0, &e));
    ok(tl_file_write(cut, b.p, b.len / 2, &e));
    assert_int_equal(start(&bad, cut), TL_ENGINE);
    assert_non_null(strstr(e.msg, "is not within the file bounds"));
    tl_buf_free(&b);
    free(cut);
}

/* tally itself is killed: nothing of it is left to clean up, and yet no server may stay. */
static void test_no_server_outlives_us(void **state) {
    TL_UNUSED(state);
    if (!g) skip();
    int fds[2];
    int64_t pid = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t us = fork();
    if (us == 0) {
        tl_engine *own = NULL;
        pid = start(&own, model) == TL_OK ? tl_engine_pid(own) : 0;
        if (write(fds[1], &pid, sizeof pid) != (ssize_t)sizeof pid) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(fds[0], &pid, sizeof pid), sizeof pid);
    assert_true(pid > 0 && tl_pid_alive(pid));
    kill(us, SIGKILL);
    waitpid(us, NULL, 0);
    for (int i = 0; i < 1000 && tl_pid_alive(pid); i++) tl_sleep_ns(5 * TL_MS);
    assert_false(tl_pid_alive(pid));
    close(fds[0]), close(fds[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts), cmocka_unit_test(test_chat), cmocka_unit_test(test_cold_warm_too_long),
        cmocka_unit_test(test_killed_in_the_middle), cmocka_unit_test(test_truncated_model),
        cmocka_unit_test(test_no_server_outlives_us),
    };
    tl_signal_install();
    return cmocka_run_group_tests(tests, setup, teardown);
}

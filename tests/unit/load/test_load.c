/* Prompt pools, the checks by the engine's own counts, and a block that meets nobody. */
#include "load/load_impl.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_pool(void **state) {
    TL_UNUSED(state);
    static const int32_t ids[] = {9, 3, 7, 5, 1}, turned[] = {1, 5, 7, 3, 9}, twice[] = {4, 4};
    tl_err e;
    tl_load_pool *a = NULL, *b = NULL;
    assert_int_equal(tl_load_pool_from(&a, twice, 2, 1, &e), TL_INVALID);
    assert_int_equal(tl_load_pool_from(&a, ids, 1, 1, &e), TL_INVALID);
    assert_int_equal(tl_load_pool_from(&a, ids, 5, 11, &e), TL_OK);
    assert_int_equal(tl_load_pool_from(&b, turned, 5, 11, &e), TL_OK);
    int32_t x[25][4], y[4];
    for (int i = 0; i < 25; i++) {
        tl_load_pool_draw(x[i], 4, a);
        tl_load_pool_draw(y, 4, b);
        assert_memory_equal(x[i], y, sizeof y); /* the order the ids come in does not matter */
        for (int k = 0; k < i; k++) {
            if (i - k < 5) assert_int_not_equal(x[i][0], x[k][0]);
            assert_true(x[i][0] != x[k][0] || x[i][1] != x[k][1]);
        }
    }
    tl_buf t, u;
    tl_buf_init(&t, 0), tl_buf_init(&u, 0);
    tl_load_pool_text(&t, 3, a);
    tl_load_pool_text(&u, 3, a);
    assert_string_not_equal(t.p, u.p);
    tl_buf_free(&t), tl_buf_free(&u);
    tl_load_pool_free(a), tl_load_pool_free(b);
}

static unsigned flags_of(tl_load_cache cache, int64_t want, int64_t prompt, int64_t cached) {
    tl_request r;
    tl_request_init(&r);
    r.transport = TL_TP_COMPLETE, r.http_status = 200;
    r.count.usage_prompt = prompt, r.count.engine_cache_n = cached;
    const tl_load_job job = {.prompt_n = want, .cache = cache};
    unsigned flags = tl_load_check(&job, &r);
    tl_request_free(&r);
    return flags;
}

static void test_check(void **state) {
    TL_UNUSED(state);
    assert_int_equal(flags_of(TL_CACHE_COLD, 100, 100, 0), 0);
    assert_int_equal(flags_of(TL_CACHE_COLD, 100, 100, 1), TL_LOAD_NOT_COLD);
    assert_int_equal(flags_of(TL_CACHE_ANY, 100, 101, 0), TL_LOAD_PROMPT_DIFFERS);
    assert_int_equal(flags_of(TL_CACHE_ANY, 100, TL_ABSENT, 0), TL_LOAD_UNVERIFIED);
    assert_int_equal(flags_of(TL_CACHE_COLD, -1, 100, TL_ABSENT), TL_LOAD_UNVERIFIED);
    assert_int_equal(flags_of(TL_CACHE_WARM, 100, 100, 99), 0);
    assert_int_equal(flags_of(TL_CACHE_WARM, 100, 100, 83), TL_LOAD_NOT_WARM);
    assert_int_equal(flags_of(TL_CACHE_WARM, 100, 100, 0), TL_LOAD_NOT_WARM);
}

static bool yes(void *ctx) {
    TL_UNUSED(ctx);
    return true;
}

static void test_nobody_there(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    uint16_t port = 0;
    assert_int_equal(tl_tcp_free_port(&port, &e), TL_OK);
    char *url = tl_xprintf("http://127.0.0.1:%u", (unsigned)port);
    tl_load_job jobs[6];
    for (int i = 0; i < 6; i++)
        jobs[i] = (tl_load_job){.dialect = tl_dialect_find("openai-chat"), .body = "{}", .body_len = 2, .max_tokens = 1, .prompt_n = -1};
    tl_load_opts o = {.url = url, .users = 1, .max_failures = 2};
    tl_load_result r;
    assert_int_equal(tl_load_run(&r, jobs, 6, &o, &e), TL_OK);
    assert_int_equal(r.end, TL_LOAD_FAILURES);
    assert_int_equal(r.started, 2);
    assert_int_equal(r.items[0].request.transport, TL_TP_NO_CONNECT);
    assert_false(r.items[2].started);
    tl_load_result_free(&r);
    o.cancelled = yes;
    assert_int_equal(tl_load_run(&r, jobs, 6, &o, &e), TL_OK);
    assert_int_equal(r.end, TL_LOAD_CANCELLED);
    assert_int_equal(r.started, 0);
    tl_load_result_free(&r);
    free(url);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool), cmocka_unit_test(test_check), cmocka_unit_test(test_nobody_there)};
    tl_signal_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* When requests start: open loop, sessions, ramp, think time, abort rules and a server that stalls. */
#include "load/load_impl.h"
#include "os/os.h"
#include "server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define ANSWER                                                                                                                   \
    "{\"writes\": [[%d, \"data: {\\\"choices\\\":[{\\\"index\\\":0,\\\"delta\\\":{\\\"content\\\":\\\"a\\\"},"                    \
    "\\\"finish_reason\\\":null}]}\\n\\n\"], [%d, \"data: {\\\"choices\\\":[{\\\"index\\\":0,\\\"delta\\\":{},"                   \
    "\\\"finish_reason\\\":\\\"stop\\\"}]}\\n\\ndata: [DONE]\\n\\n\"]], \"status\": %d}"
#define JOBS 128

static tl_load_job jobs[JOBS];

static tl_script_server *serve(const tl_script_options *o, int answer_ms, int status) {
    tl_script_server *s = NULL;
    tl_err e = {0};
    char *text = tl_xprintf(ANSWER, answer_ms, answer_ms, status);
    assert_int_equal(tl_script_server_start(&s, o, &e), TL_OK);
    assert_int_equal(tl_script_server_play_text(s, NULL, text, &e), TL_OK);
    free(text);
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = (tl_load_job){.dialect = tl_dialect_find("openai-chat"), .body = "{}", .body_len = 2, .max_tokens = 1, .prompt_n = -1};
    return s;
}

static void load(tl_load_result *r, tl_script_server *s, size_t n, tl_load_opts o) {
    tl_err e = {0};
    o.url = tl_script_server_url(s);
    assert_int_equal(tl_load_run(r, jobs, n, &o, &e), TL_OK);
    tl_script_server_stop(s);
}

static uint64_t first_ns(const tl_load_item *i) { return i->request.t_first_byte - i->request.t_intended; }

/* The stall begins when request 5 arrives. Whoever should have been sent before its end waits for the rest of it. */
static void test_stall(void **state) {
    TL_UNUSED(state);
    enum { AT = 5, N = 40 };
    const tl_script_options stall = {.stall_ms = 2000, .stall_at = AT};
    tl_load_result r;
    tl_script_server *s = serve(&stall, 2, 200);
    for (size_t i = 0; i < N; i++) jobs[i].at_ns = i * 100 * TL_MS;
    load(&r, s, N, (tl_load_opts){.kind = TL_LOAD_OPEN});
    assert_int_equal(r.end, TL_LOAD_ALL);
    size_t open_seen = 0, closed_seen = 0;
    uint64_t stall_end = r.items[AT].request.t_intended + 2 * TL_S;
    for (size_t i = 0; i < N; i++) {
        uint64_t intended = r.items[i].request.t_intended;
        assert_int_equal(intended, r.t_schedule + jobs[i].at_ns);
        assert_true(r.items[i].request.t_start >= intended);
        if (first_ns(&r.items[i]) > 50 * TL_MS) open_seen++;
        if (i < AT || intended >= stall_end) continue;
        print_message("open: request %zu, %.0f ms of the stall left: first byte after %.0f ms\n", i, (double)(stall_end - intended) / 1e6,
                      (double)first_ns(&r.items[i]) / 1e6);
        assert_true(first_ns(&r.items[i]) >= stall_end - intended);
    }
    double open_s = (double)(r.t_end - r.t_begin) / 1e9;
    tl_load_result_free(&r);
    s = serve(&stall, 2, 200);
    for (size_t i = 0; i < N / 2; i++) jobs[i].think_ns = 98 * TL_MS; /* 19 pauses and one stall: as long */
    load(&r, s, N / 2, (tl_load_opts){.users = 1});
    for (size_t i = 0; i < N / 2; i++) closed_seen += first_ns(&r.items[i]) > 50 * TL_MS;
    print_message("open loop, %.1f s: %zu of %d requests saw the stall; closed loop, %.1f s: %zu of %d\n", open_s, open_seen, N,
                  (double)(r.t_end - r.t_begin) / 1e9, closed_seen, N / 2);
    assert_true(open_seen >= 19);
    assert_int_equal(closed_seen, 1);
    tl_load_result_free(&r);
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_poisson(void **state) {
    TL_UNUSED(state);
    uint64_t at[JOBS], late[JOBS];
    const tl_load_arrival a = {.process = TL_LOAD_POISSON, .rate_per_s = JOBS, .seed = 7};
    tl_err e = {0};
    tl_load_result r;
    tl_script_server *s = serve(NULL, 20, 200);
    assert_int_equal(tl_load_arrivals(at, JOBS, &a, &e), TL_OK);
    for (size_t i = 0; i < JOBS; i++) jobs[i].at_ns = at[i];
    load(&r, s, JOBS, (tl_load_opts){.kind = TL_LOAD_OPEN});
    assert_int_equal(r.started, JOBS);
    assert_int_equal(r.failed, 0);
    for (size_t i = 0; i < JOBS; i++) {
        assert_true(r.items[i].request.t_start >= r.items[i].request.t_intended); /* never early */
        assert_int_equal(r.items[i].sequence, i);
        late[i] = r.items[i].request.t_start - r.items[i].request.t_intended;
    }
    qsort(late, JOBS, sizeof *late, by_size);
    print_message("lateness of %d Poisson starts: p50 %.3f ms, p99 %.3f ms\n", JOBS, (double)late[JOBS / 2] / 1e6,
                  (double)late[JOBS * 99 / 100] / 1e6);
    tl_load_result_free(&r);
}

/* Jobs 0 2 4 are one session, 1 3 5 another: in order inside, side by side. */
static void test_sessions(void **state) {
    TL_UNUSED(state);
    for (int kind = TL_LOAD_CLOSED; kind <= TL_LOAD_OPEN; kind++) {
        tl_load_result r;
        tl_script_server *s = serve(NULL, 20, 200);
        for (size_t i = 0; i < 6; i++) jobs[i].session = 1 + i % 2, jobs[i].think_ns = i < 2 ? 0 : 30 * TL_MS;
        load(&r, s, 6, (tl_load_opts){.kind = (tl_load_kind)kind, .users = 2});
        assert_int_equal(r.started, 6);
        for (size_t i = 2; i < 6; i++)
            assert_true(r.items[i].request.t_intended >= r.items[i - 2].request.t_close + 30 * TL_MS);
        assert_true(r.items[1].request.t_start < r.items[0].request.t_close);
        tl_load_result_free(&r);
    }
}

static void test_ramp(void **state) {
    TL_UNUSED(state);
    tl_load_result r;
    load(&r, serve(NULL, 5, 200), 4, (tl_load_opts){.users = 4, .ramp_ns = 200 * TL_MS});
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r.items[i].request.t_intended, i ? r.t_schedule + i * 50 * TL_MS : r.t_begin);
        assert_true(r.items[i].request.t_start >= r.items[i].request.t_intended);
    }
    tl_load_result_free(&r);
}

static void test_aborts(void **state) {
    TL_UNUSED(state);
    tl_load_result r;
    tl_script_server *s = serve(NULL, 2000, 200);
    for (size_t i = 0; i < 30; i++) jobs[i].at_ns = i * 10 * TL_MS;
    load(&r, s, 30, (tl_load_opts){.kind = TL_LOAD_OPEN, .max_in_flight = 8, .drain_ns = 50 * TL_MS});
    assert_int_equal(r.end, TL_LOAD_QUEUE);
    assert_int_equal(r.started, 8);
    assert_int_equal(r.cut, 8); /* the drain was over */
    print_message("%s: %s\n", tl_load_end_name(r.end), r.reason);
    tl_load_result_free(&r);
    s = serve(NULL, 1, 500);
    load(&r, s, 30, (tl_load_opts){.users = 1, .max_failures = 100, .abort_error_share = 0.5});
    assert_int_equal(r.end, TL_LOAD_ERRORS);
    assert_int_equal(r.started, 10);
    print_message("%s: %s\n", tl_load_end_name(r.end), r.reason);
    tl_load_result_free(&r);
    s = serve(NULL, 2000, 200);
    load(&r, s, 3, (tl_load_opts){.kind = TL_LOAD_OPEN, .drain_ns = 50 * TL_MS});
    assert_int_equal(r.end, TL_LOAD_DRAINED);
    assert_int_equal(r.cut, 3);
    print_message("%s: %s\n", tl_load_end_name(r.end), r.reason);
    tl_load_result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stall),    cmocka_unit_test(test_poisson), cmocka_unit_test(test_sessions),
                                       cmocka_unit_test(test_ramp), cmocka_unit_test(test_aborts)};
    tl_signal_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

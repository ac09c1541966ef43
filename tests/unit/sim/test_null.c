/* The null server against the product's own client: what it stamps, when it sends, how it misbehaves when asked to. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/http.h"
#include "os/os.h"
#include "sim/sim.h"

static tl_null *server;

static int up(void **state) {
    tl_err e = {0};
    TL_UNUSED(state);
    signal(SIGPIPE, SIG_IGN);
    if (tl_null_start(&server, TL_TALLY, &e) == TL_OK) return 0;
    print_error("%s\n", e.msg);
    return -1;
}

static int down(void **state) {
    TL_UNUSED(state);
    tl_null_stop(server);
    return 0;
}

typedef struct seen {
    size_t n, n_reads;
    uint64_t stamp[2000], arrived[2000], late_max, start, first_byte;
    int status;
    char *body;
} seen;

static tl_http_req *prepare(tl_http_loop *loop, const char *words) {
    char *header = tl_xprintf("X-Tally-Null: %s", words);
    char *url = tl_xprintf("%s/v1/chat/completions", tl_null_url(server));
    const char *headers[] = {header, NULL};
    const tl_http_spec spec = {.url = url, .headers = headers, .body = "{}", .body_len = 2, .total_ns = 20 * TL_S};
    tl_http_req *r = NULL;
    tl_err e = {0};
    assert_int_equal(tl_http_prepare(&r, loop, &spec, &e), TL_OK);
    tl_http_open(r);
    free(header);
    free(url);
    return r;
}

static void look(seen *s, const tl_http_log *log) {
    static const char key[] = "\"content\":\"";
    tl_split split;
    tl_split_event ev;
    *s = (seen){.status = log->status, .n_reads = log->n_reads, .start = log->t_start_ns, .first_byte = log->t_first_byte_ns};
    s->body = tl_xstrdup(log->body);
    s->late_max = tl_null_late_max_ns(log->body);
    tl_split_log(&split, log);
    while (tl_sse_next(&split, &ev)) {
        char *text = tl_xstrndup(ev.data, ev.len);
        const char *p = strstr(text, key);
        if (p != NULL && s->n < TL_COUNT(s->stamp)) {
            s->stamp[s->n] = tl_null_stamp(p + sizeof key - 1, TL_NULL_STAMP_BYTES, 0);
            s->arrived[s->n++] = ev.t_ns;
        }
        free(text);
    }
    tl_split_free(&split);
}

static void ask(seen *s, const char *words) {
    tl_http_loop *loop = NULL;
    tl_err e = {0};
    assert_int_equal(tl_http_loop_new(&loop, &e), TL_OK);
    tl_http_req *r = prepare(loop, words);
    tl_http_start(r, 0);
    assert_int_equal(tl_http_loop_run(loop, NULL, &e), TL_OK);
    assert_int_equal(tl_http_result(r)->outcome, TL_HTTP_COMPLETE);
    look(s, tl_http_result(r));
    tl_http_free(r);
    tl_http_loop_free(loop);
}

/* Never early, and between the client's own clock readings: both hold on any machine, however slow. */
static void keeps_schedule(void **state) {
    seen s;
    TL_UNUSED(state);
    ask(&s, "first_us=20000 gap_us=2000 phase_us=3000 events=50 bytes=300");
    assert_int_equal(s.n, 50);
    assert_int_not_equal(s.late_max, UINT64_MAX);
    for (size_t i = 0; i < s.n; i++) {
        assert_int_not_equal(s.stamp[i], UINT64_MAX);
        assert_true(s.stamp[i] >= s.start + 23 * TL_MS + i * 2 * TL_MS);
        assert_true(s.stamp[i] <= s.arrived[i]);
        if (i > 0) assert_true(s.stamp[i] > s.stamp[i - 1]);
    }
    free(s.body);
}

static void batches_and_bursts(void **state) {
    seen s;
    TL_UNUSED(state);
    ask(&s, "first_us=1000 gap_us=1000 events=10 batch=4");
    assert_int_equal(s.n, 10);
    for (size_t i = 1; i < 10; i++) assert_true((s.stamp[i] == s.stamp[i - 1]) == (i % 4 != 0));
    free(s.body);
    ask(&s, "first_us=5000 gap_us=1000 events=10 burst=1");
    assert_int_equal(s.n, 10);
    assert_true(s.stamp[9] == s.stamp[0] && s.stamp[0] >= s.first_byte + 10 * TL_MS);
    free(s.body);
}

/* Nagle's algorithm holds the second half back until the first is acknowledged: two arrivals an event. */
static void nagle_splits_events(void **state) {
    seen s, plain;
    TL_UNUSED(state);
    ask(&plain, "first_us=1000 gap_us=5000 events=40 bytes=300");
    ask(&s, "first_us=1000 gap_us=5000 events=40 bytes=300 nagle=1");
    const size_t n = s.n, reads = s.n_reads, plain_reads = plain.n_reads;
    free(s.body);
    free(plain.body);
    assert_int_equal(n, 40);
    assert_true(plain_reads <= 44);
    assert_true(reads >= 60);
}

static void one_at_a_time(void **state) {
    enum { N = 3 };
    tl_http_loop *loop = NULL;
    tl_http_req *r[N];
    seen s[N];
    tl_err e = {0};
    TL_UNUSED(state);
    assert_int_equal(tl_http_loop_new(&loop, &e), TL_OK);
    for (size_t i = 0; i < N; i++) r[i] = prepare(loop, "first_us=2000 gap_us=2000 events=10 max_conn=1");
    for (size_t i = 0; i < N; i++) tl_http_start(r[i], 0);
    assert_int_equal(tl_http_loop_run(loop, NULL, &e), TL_OK);
    for (size_t i = 0; i < N; i++) {
        look(&s[i], tl_http_result(r[i]));
        assert_int_equal(s[i].n, 10);
        free(s[i].body);
        tl_http_free(r[i]);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = i + 1; k < N; k++)
            assert_true(s[i].stamp[9] < s[k].stamp[0] || s[k].stamp[9] < s[i].stamp[0]);
    tl_http_loop_free(loop);
}

static void bad_words_are_named(void **state) {
    tl_null_schedule s = tl_null_default(), before = s;
    tl_err e = {0};
    TL_UNUSED(state);
    assert_int_equal(tl_null_parse(&s, "events=0", &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "events=0"));
    assert_true(e.remedy[0] != '\0');
    assert_int_equal(tl_null_parse(&s, "gap_us=5 evnts=3", &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "evnts=3"));
    assert_int_equal(tl_null_parse(&s, "burst=1 events=1000000 bytes=60000", &e), TL_INVALID);
    assert_memory_equal(&s, &before, sizeof s);
    seen got;
    ask(&got, "batch=x");
    assert_int_equal(got.status, 400);
    assert_non_null(strstr(got.body, "batch=x"));
    free(got.body);
}

static void header_reads_back(void **state) {
    TL_UNUSED(state);
    const tl_null_schedule s = {.first_us = 1, .gap_us = 2, .phase_us = 3, .events = 4, .bytes = 500, .batch = 6,
                                .burst = true, .nagle = true, .max_conn = 9};
    tl_null_schedule back = tl_null_default();
    tl_buf b, c;
    tl_err e = {0};
    tl_buf_init(&b, 0);
    tl_buf_init(&c, 0);
    tl_null_header(&b, &s);
    assert_int_equal(tl_null_parse(&back, b.p, &e), TL_OK);
    tl_null_header(&c, &back);
    assert_string_equal(b.p, c.p);
    assert_true(back.burst && back.nagle && back.max_conn == 9 && back.first_us == 1);
    tl_buf_free(&b);
    tl_buf_free(&c);
    assert_true(tl_null_stamp("1234567890123456789 ", 20, 0) == UINT64_C(1234567890123456789));
    assert_true(tl_null_stamp("1234567890123456789 ", 20, 1) == UINT64_MAX);
    assert_true(tl_null_stamp("123456789012345678x ", 20, 0) == UINT64_MAX);
    assert_true(tl_null_late_max_ns("{}") == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_reads_back),   cmocka_unit_test(keeps_schedule), cmocka_unit_test(batches_and_bursts),
        cmocka_unit_test(nagle_splits_events), cmocka_unit_test(one_at_a_time),  cmocka_unit_test(bad_words_are_named),
    };
    return cmocka_run_group_tests(tests, up, down);
}

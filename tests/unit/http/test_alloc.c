/* Proof that the read path allocates nothing: malloc, calloc, realloc and free of everything linked into this program
 * are counted (ld --wrap) while the very callbacks that libcurl calls are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include "http/http_impl.h"
#include "sim/sim.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
static size_t calls;

void *__wrap_malloc(size_t n) {
    calls++;
    return __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t m) {
    calls++;
    return __real_calloc(n, m);
}
void *__wrap_realloc(void *p, size_t n) {
    calls++;
    return __real_realloc(p, n);
}
void __wrap_free(void *p) {
    calls++;
    __real_free(p);
}

static tl_http_req *request(tl_http_loop **loop, size_t max_body, size_t max_reads) {
    tl_http_req *r = NULL;
    const tl_http_spec spec = {.url = "http://127.0.0.1:1/", .max_body = max_body, .max_reads = max_reads};
    assert_int_equal(tl_http_loop_new(loop, NULL), TL_OK);
    assert_int_equal(tl_http_prepare(&r, *loop, &spec, NULL), TL_OK);
    return r;
}

static void the_counter_counts(void **state) {
    TL_UNUSED(state);
    const size_t before = calls;
    char *p = tl_xstrdup("x");
    free(p);
    assert_true(calls >= before + 2);
}

static void reading_allocates_nothing(void **state) {
    TL_UNUSED(state);
    tl_http_loop *loop = NULL;
    tl_http_req *r = request(&loop, 10000, 1000);
    char status[] = "HTTP/1.1 200 OK\r\n", type[] = "Content-Type: text/event-stream\r\n", end[] = "\r\n";
    char data[] = "data: 1\n\n", info[] = "Re-using existing connection";
    const size_t before = calls;
    tl_http_on_debug(r->easy, CURLINFO_HEADER_OUT, data, 9, r);
    tl_http_on_debug(r->easy, CURLINFO_TEXT, info, sizeof info - 1, r);
    tl_http_on_header(status, 1, sizeof status - 1, r);
    tl_http_on_header(type, 1, sizeof type - 1, r);
    tl_http_on_header(end, 1, 2, r);
    for (int i = 0; i < 1000; i++) assert_int_equal(tl_http_on_body(data, 1, 9, r), 9);
    assert_int_equal(tl_http_on_body(data, 1, 9, r), 0); /* the array of reads is full */
    assert_int_equal(calls, before);
    const tl_http_log *log = tl_http_result(r);
    assert_int_equal(log->n_reads, 1000);
    assert_int_equal(log->body_len, 9000);
    assert_true(log->t_sent_ns > 0 && log->t_headers_ns >= log->t_sent_ns);
    assert_true(log->t_first_byte_ns >= log->t_headers_ns);
    assert_int_equal(log->t_first_byte_ns, log->reads[0].t_ns);
    tl_http_free(r);
    tl_http_loop_free(loop);
}

static void a_full_body_stays_intact(void **state) {
    TL_UNUSED(state);
    tl_http_loop *loop = NULL;
    tl_http_req *r = request(&loop, 10, 1000);
    char data[] = "0123456789abc";
    const size_t before = calls;
    assert_int_equal(tl_http_on_body(data, 1, 8, r), 8);
    assert_int_equal(tl_http_on_body(data, 1, 3, r), 0);
    assert_int_equal(tl_http_on_body(data, 1, 2, r), 2); /* exactly full */
    assert_int_equal(tl_http_on_body(data, 1, 1, r), 0);
    assert_int_equal(calls, before);
    assert_int_equal(r->log.body_len, 10);
    assert_memory_equal(r->log.body, "0123456701", 10);
    tl_http_free(r);
    tl_http_loop_free(loop);
}

/* 64 real streams from the first start to the last byte: the loop, the callbacks and the ends of the requests. */
static void a_block_of_streams_allocates_nothing(void **state) {
    enum { N = 64 };
    tl_null *server = NULL;
    tl_http_loop *loop = NULL;
    tl_http_req *r[N];
    tl_err e = {0};
    const char *headers[] = {"X-Tally-Null: first_us=30000 gap_us=10000 events=50", NULL};
    TL_UNUSED(state);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(tl_null_start(&server, TL_TALLY, &e), TL_OK);
    assert_int_equal(tl_http_loop_new(&loop, &e), TL_OK);
    for (size_t i = 0; i < N; i++) {
        const tl_http_spec spec = {.url = tl_null_url(server), .headers = headers, .body = "{}", .body_len = 2,
                                   .max_body = 65536, .max_reads = 1024};
        int on = 0;
        socklen_t len = sizeof on;
        assert_int_equal(tl_http_prepare(&r[i], loop, &spec, &e), TL_OK);
        tl_http_open(r[i]);
        assert_int_equal(getsockopt(r[i]->fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
        assert_int_not_equal(on, 0);
    }
    const size_t before = calls;
    for (size_t i = 0; i < N; i++) tl_http_start(r[i], 0);
    assert_int_equal(tl_http_loop_run(loop, NULL, &e), TL_OK);
    const size_t during = calls - before;
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(tl_http_result(r[i])->outcome, TL_HTTP_COMPLETE);
        assert_true(tl_http_result(r[i])->n_reads >= 2);
        tl_http_free(r[i]);
    }
    tl_http_loop_free(loop);
    tl_null_stop(server);
    assert_int_equal(during, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(reading_allocates_nothing),
        cmocka_unit_test(a_full_body_stays_intact),
        cmocka_unit_test(a_block_of_streams_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

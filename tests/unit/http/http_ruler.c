/* http-ruler [STREAMS] [EVENTS] [GAP_US] [burst]: the client's error against the server's true write times, in another
 * thread of this process. Streams start spread over one gap, or all at once ("burst": their events then come together
 * and queue for the one client thread). Prints percentiles in us and the CPU time of an event. Not a test: wall times
 * judge nothing in CI. */
#include <time.h>

#include "http/http.h"
#include "os/os.h"
#include "server.h"

typedef struct samples {
    double *v;
    size_t n, cap;
} samples;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_us(const char *what, samples *s) {
    qsort(s->v, s->n, sizeof *s->v, by_value);
    if (s->n == 0) return;
    printf("%-22s n=%-6zu p50 %8.1f  p99 %8.1f  max %8.1f us\n", what, s->n, s->v[s->n / 2], s->v[s->n * 99 / 100],
           s->v[s->n - 1]);
    free(s->v);
}

static double cpu_of_thread_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static json_t *script_of(int64_t events, double gap_ms) {
    json_t *writes = json_array();
    for (int64_t i = 0; i < events; i++)
        json_array_append_new(writes, json_pack("[f,s]", 50.0 + gap_ms * (double)i,
                                                "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n"));
    return json_pack("{s:o}", "writes", writes);
}

static tl_status compare(tl_script_server *server, tl_http_req **reqs, size_t n, tl_err *e) {
    samples first = {0}, late = {0}, gap = {0};
    size_t lost = 0, early = 0;
    for (size_t i = 0; i < n; i++) {
        tl_script_request truth;
        const tl_status st = tl_script_server_request(&truth, server, i, e);
        if (st != TL_OK) return st;
        const tl_http_log *log = tl_http_result(reqs[strtol(truth.body, NULL, 10)]);
        if (log->n_reads != truth.n_writes) lost++;
        for (size_t k = 0; k < log->n_reads && k < truth.n_writes; k++) {
            const double error = ((double)log->reads[k].t_ns - (double)truth.t_write_ns[k]) / 1e3;
            if (error < 0) early++;
            TL_PUSH(late.v, late.n, late.cap, error);
            if (k == 0) TL_PUSH(first.v, first.n, first.cap, error);
            if (k == 0) continue;
            const double d = (double)(log->reads[k].t_ns - log->reads[k - 1].t_ns) -
                             (double)(truth.t_write_ns[k] - truth.t_write_ns[k - 1]);
            TL_PUSH(gap.v, gap.n, gap.cap, (d < 0 ? -d : d) / 1e3);
        }
        tl_script_request_free(&truth);
    }
    print_us("first byte late by", &first);
    print_us("any event late by", &late);
    print_us("gap error (absolute)", &gap);
    printf("streams whose reads differ from the writes: %zu; events earlier than written: %zu\n", lost, early);
    return TL_OK;
}

typedef struct ruler {
    int64_t streams, events, gap_us;
    bool burst;
    tl_script_server *server;
    tl_http_loop *loop;
    tl_http_req **reqs;
} ruler;

static bool parse(ruler *r, int argc, char **argv) {
    int64_t *const args[] = {&r->streams, &r->events, &r->gap_us};
    for (int i = 1; i < argc && i <= 3; i++)
        if (!tl_parse_i64(argv[i], args[i - 1]) || *args[i - 1] < 1) return false;
    r->burst = argc > 4 && tl_str_eq(argv[4], "burst");
    return r->streams <= 1000;
}

static tl_status prepare(ruler *r, tl_err *e) {
    r->reqs = tl_xalloc((size_t)r->streams * sizeof *r->reqs);
    for (int64_t i = 0; i < r->streams; i++) {
        char body[24];
        snprintf(body, sizeof body, "%" PRId64, i);
        const tl_http_spec spec = {.url = tl_script_server_url(r->server), .body = body, .body_len = strlen(body),
                                   .max_body = (size_t)r->events * 128, .max_reads = (size_t)r->events * 2};
        const tl_status st = tl_http_prepare(&r->reqs[i], r->loop, &spec, e);
        if (st != TL_OK) return st;
        tl_http_open(r->reqs[i]);
    }
    return tl_http_loop_run(r->loop, NULL, e);
}

static void start(void *req) {
    tl_http_start(req, 0);
}

static tl_status measure(ruler *r, tl_err *e) {
    samples sent = {0};
    const double cpu = cpu_of_thread_s();
    const uint64_t now = tl_clock_now();
    for (int64_t i = 0; i < r->streams; i++) {
        const int64_t wait_ns = r->burst ? 0 : 1000 * r->gap_us * i / r->streams;
        tl_http_loop_at(r->loop, now + (uint64_t)wait_ns, start, r->reqs[i]);
    }
    const tl_status st = tl_http_loop_run(r->loop, NULL, e);
    if (st != TL_OK) return st;
    printf("%" PRId64 " streams x %" PRId64 " events, one each %" PRId64 " us%s: client CPU %.1f us an event\n", r->streams,
           r->events, r->gap_us, r->burst ? ", burst" : "",
           1e6 * (cpu_of_thread_s() - cpu) / (double)(r->streams * r->events));
    for (int64_t i = 0; i < r->streams; i++) {
        const tl_http_log *log = tl_http_result(r->reqs[i]);
        TL_PUSH(sent.v, sent.n, sent.cap, (double)(log->t_sent_ns - log->t_start_ns) / 1e3);
    }
    print_us("sent after start", &sent);
    return compare(r->server, r->reqs, (size_t)r->streams, e);
}

int main(int argc, char **argv) {
    tl_err e = {0};
    tl_status st = TL_OK;
    ruler r = {.streams = 1, .events = 200, .gap_us = 10000};
    if (!parse(&r, argc, argv)) return 2;
    json_t *script = script_of(r.events, (double)r.gap_us / 1e3);
    TRY(tl_script_server_start(&r.server, NULL, &e));
    TRY(tl_script_server_play(r.server, NULL, script, &e));
    TRY(tl_http_loop_new(&r.loop, &e));
    TRY(prepare(&r, &e));
    TRY(measure(&r, &e));
out:
    if (st != TL_OK) fprintf(stderr, "http-ruler: %s\n", e.msg);
    for (int64_t i = 0; r.reqs != NULL && i < r.streams; i++) tl_http_free(r.reqs[i]);
    free(r.reqs);
    tl_http_loop_free(r.loop);
    tl_script_server_stop(r.server);
    json_decref(script);
    return st == TL_OK ? 0 : 1;
}

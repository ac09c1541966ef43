/* http-ruler [STREAMS] [EVENTS] [GAP_US]: the client's error against the server's true write times, in another thread of
 * this process. Prints percentiles in us and the CPU time of an event. Not a test: wall times judge nothing in CI. */
#include <sys/resource.h>

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
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
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

int main(int argc, char **argv) {
    tl_err e = {0};
    tl_status st = TL_OK;
    int64_t streams = 1, events = 200, gap_us = 10000;
    tl_script_server *server = NULL;
    tl_http_loop *loop = NULL;
    if (argc > 1 && !tl_parse_i64(argv[1], &streams)) return 2;
    if (argc > 2 && !tl_parse_i64(argv[2], &events)) return 2;
    if (argc > 3 && !tl_parse_i64(argv[3], &gap_us)) return 2;
    if (streams < 1 || streams > 1000 || events < 1) return 2;
    tl_http_req **reqs = tl_xalloc((size_t)streams * sizeof *reqs);
    json_t *script = script_of(events, (double)gap_us / 1e3);
    TRY(tl_script_server_start(&server, NULL, &e));
    TRY(tl_script_server_play(server, NULL, script, &e));
    TRY(tl_http_loop_new(&loop, &e));
    for (int64_t i = 0; i < streams; i++) {
        char body[24];
        snprintf(body, sizeof body, "%" PRId64, i);
        const tl_http_spec spec = {.url = tl_script_server_url(server), .body = body, .body_len = strlen(body),
                                   .max_body = (size_t)events * 128, .max_reads = (size_t)events * 2};
        TRY(tl_http_prepare(&reqs[i], loop, &spec, &e));
        tl_http_open(reqs[i]);
    }
    TRY(tl_http_loop_run(loop, NULL, &e));
    const double cpu = cpu_of_thread_s();
    for (int64_t i = 0; i < streams; i++) tl_http_start(reqs[i], 0);
    TRY(tl_http_loop_run(loop, NULL, &e));
    printf("%" PRId64 " streams x %" PRId64 " events, one each %" PRId64 " us: client CPU %.1f us an event\n", streams, events,
           gap_us, 1e6 * (cpu_of_thread_s() - cpu) / (double)(streams * events));
    TRY(compare(server, reqs, (size_t)streams, &e));
out:
    if (st != TL_OK) fprintf(stderr, "http-ruler: %s\n", e.msg);
    for (int64_t i = 0; i < streams; i++) tl_http_free(reqs[i]);
    free(reqs);
    tl_http_loop_free(loop);
    tl_script_server_stop(server);
    json_decref(script);
    return st == TL_OK ? 0 : 1;
}

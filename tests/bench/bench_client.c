/* What the client costs and how far it errs: tl_http against a bare epoll reader (connections open beforehand, one recv
 * and one substring search a wake-up), both reading the same streams of the same null server, in turn, several rounds.
 * CPU is this process's from the first request to the last byte; error is arrival minus the server's stamp. Decoding of
 * our streams is outside of the timed part, as in a run; the bare reader decodes while it reads.
 *
 *   bench_client TALLY [--quick]
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "http/http.h"
#include "os/os.h"
#include "sim/sim.h"

static const char key[] = "\"content\":\"";
#define KEY (sizeof key - 1)

typedef struct figures {
    size_t n, cap;
    double *error_ms;
    double cpu_s;
    uint64_t late_max_ns;
} figures;

typedef struct scene {
    size_t streams, rate, events;
} scene;

static void die(const tl_err *e) {
    fprintf(stderr, "bench_client: %s\n", e->msg);
    exit(1);
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void note(figures *f, const char *p, size_t len, uint64_t arrived) {
    const uint64_t stamp = tl_null_stamp(p, len, 0);
    if (stamp == UINT64_MAX) return;
    TL_PUSH(f->error_ms, f->n, f->cap, ((double)arrived - (double)stamp) / 1e6);
}

static void words_of(tl_buf *out, const scene *s, size_t i) {
    tl_null_schedule p = tl_null_default();
    p.events = s->events;
    p.gap_us = 1000000 / s->rate;
    p.first_us = 200000;
    p.phase_us = p.gap_us * i / s->streams;
    tl_null_header(out, &p);
}

/* ---- ours ------------------------------------------------------------------------------------------------------ */

static void decode(figures *f, const tl_http_log *log) {
    tl_split s;
    tl_split_event ev;
    const uint64_t late = tl_null_late_max_ns(log->body);
    if (log->outcome != TL_HTTP_COMPLETE) fprintf(stderr, "bench_client: ours: %s\n", log->error);
    if (late != UINT64_MAX && late > f->late_max_ns) f->late_max_ns = late;
    tl_split_log(&s, log);
    while (tl_sse_next(&s, &ev)) {
        const char *p = memmem(ev.data, ev.len, key, KEY);
        if (p != NULL) note(f, p + KEY, ev.len - (size_t)(p + KEY - ev.data), ev.t_ns);
    }
    tl_split_free(&s);
}

static void run_ours(figures *f, const scene *s, const char *url) {
    tl_http_loop *loop = NULL;
    tl_err e = {0};
    tl_http_req **r = tl_xalloc(s->streams * sizeof *r);
    char *full = tl_xprintf("%s/v1/chat/completions", url);
    if (tl_http_loop_new(&loop, &e) != TL_OK) die(&e);
    for (size_t i = 0; i < s->streams; i++) {
        tl_buf h;
        tl_buf_init(&h, 0);
        tl_buf_str(&h, "X-Tally-Null: ");
        words_of(&h, s, i);
        const char *headers[] = {h.p, NULL};
        const tl_http_spec spec = {.url = full, .headers = headers, .body = "{}", .body_len = 2,
                                   .max_body = s->events * 300 + 4096, .max_reads = s->events * 3 + 64};
        if (tl_http_prepare(&r[i], loop, &spec, &e) != TL_OK) die(&e);
        tl_http_open(r[i]);
        tl_buf_free(&h);
    }
    const double before = cpu_now();
    for (size_t i = 0; i < s->streams; i++) tl_http_start(r[i], 0);
    if (tl_http_loop_run(loop, NULL, &e) != TL_OK) die(&e);
    f->cpu_s += cpu_now() - before;
    for (size_t i = 0; i < s->streams; i++) {
        decode(f, tl_http_result(r[i]));
        tl_http_free(r[i]);
    }
    tl_http_loop_free(loop);
    free(full);
    free(r);
}

/* ---- bare epoll ------------------------------------------------------------------------------------------------- */

typedef struct bare {
    int fd;
    size_t len;
    char buf[8192]; /* what is not yet looked at */
} bare;

/* Every stamp that is complete in the buffer; what may be the begin of one is kept. */
static bool look(figures *f, bare *b, uint64_t now) {
    const char *p = b->buf, *end = b->buf + b->len;
    const bool done = memmem(b->buf, b->len, "[DONE]", 6) != NULL;
    for (const char *q; (q = memmem(p, (size_t)(end - p), key, KEY)) != NULL; p = q + KEY + TL_NULL_STAMP_BYTES) {
        if ((size_t)(end - q) < KEY + TL_NULL_STAMP_BYTES) break;
        note(f, q + KEY, TL_NULL_STAMP_BYTES, now);
    }
    size_t keep = (size_t)(end - p);
    if (keep > KEY + TL_NULL_STAMP_BYTES) keep = KEY + TL_NULL_STAMP_BYTES;
    memmove(b->buf, end - keep, keep);
    b->len = keep;
    return done;
}

static void read_all(figures *f, int ep, struct epoll_event *ev, size_t n_streams) {
    for (size_t left = n_streams; left > 0;) {
        const int n = epoll_wait(ep, ev, (int)n_streams, 10000);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
        for (int i = 0; i < n; i++) {
            bare *c = ev[i].data.ptr;
            const ssize_t k = recv(c->fd, c->buf + c->len, sizeof c->buf - c->len, 0);
            const uint64_t now = tl_clock_now();
            if (k > 0) c->len += (size_t)k;
            if (k == 0 || (k > 0 && look(f, c, now))) {
                epoll_ctl(ep, EPOLL_CTL_DEL, c->fd, NULL);
                left--;
            }
        }
    }
}

static void run_bare(figures *f, const scene *s, const char *url) {
    tl_err e = {0};
    int64_t port = 0;
    bare *b = tl_xalloc(s->streams * sizeof *b);
    struct epoll_event *ev = tl_xalloc(s->streams * sizeof *ev);
    const int ep = epoll_create1(0);
    if (!tl_parse_i64(strrchr(url, ':') + 1, &port)) exit(1);
    tl_buf *request = tl_xalloc(s->streams * sizeof *request);
    for (size_t i = 0; i < s->streams; i++) {
        if (tl_tcp_connect(&b[i].fd, "127.0.0.1", (uint16_t)port, TL_S, NULL, &e) != TL_OK) die(&e);
        struct epoll_event in = {.events = EPOLLIN, .data.ptr = &b[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, b[i].fd, &in);
        tl_buf_init(&request[i], 0);
        tl_buf_str(&request[i], "POST /v1/chat/completions HTTP/1.1\r\nHost: null\r\nContent-Length: 2\r\nX-Tally-Null: ");
        words_of(&request[i], s, i);
        tl_buf_str(&request[i], "\r\n\r\n{}");
    }
    const double before = cpu_now();
    for (size_t i = 0; i < s->streams; i++)
        if (send(b[i].fd, request[i].p, request[i].len, MSG_NOSIGNAL) != (ssize_t)request[i].len) exit(1);
    read_all(f, ep, ev, s->streams);
    f->cpu_s += cpu_now() - before;
    for (size_t i = 0; i < s->streams; i++) {
        tl_fd_close(b[i].fd);
        tl_buf_free(&request[i]);
    }
    tl_fd_close(ep);
    free(request);
    free(ev);
    free(b);
}

/* ---- table ------------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double print(const char *who, figures *f, const scene *s, size_t rounds) {
    const size_t want = s->streams * s->events * rounds;
    if (f->n != want) {
        fprintf(stderr, "bench_client: %s: %zu events of %zu\n", who, f->n, want);
        exit(1);
    }
    qsort(f->error_ms, f->n, sizeof *f->error_ms, by_value);
    const double us = f->cpu_s / (double)f->n * 1e6;
    printf("%4zu x %3zu/s  %-10s %9.2f %10.3f %10.3f %10.3f", s->streams, s->rate, who, us, f->error_ms[f->n / 2],
           f->error_ms[f->n * 99 / 100], f->error_ms[f->n - 1]);
    if (f->late_max_ns > 0) printf("   server late max %.3f ms", (double)f->late_max_ns / 1e6);
    printf("\n");
    return us;
}

int main(int argc, char **argv) {
    static const scene all[] = {{64, 100, 300}, {128, 60, 180}, {128, 100, 300}, {512, 100, 300}};
    static const scene quick[] = {{16, 50, 25}, {64, 100, 50}};
    const bool fast = argc > 2 && tl_str_eq(argv[2], "--quick");
    const scene *scenes = fast ? quick : all;
    const size_t n = fast ? TL_COUNT(quick) : TL_COUNT(all), rounds = fast ? 1 : 3;
    tl_null *server = NULL;
    tl_err e = {0};
    if (argc < 2) return fprintf(stderr, "usage: bench_client TALLY [--quick]\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    if (tl_null_start(&server, argv[1], &e) != TL_OK) die(&e);
    printf("streams x rate  client    CPU us/event  error ms: p50   p99        max\n");
    for (size_t i = 0; i < n; i++) {
        figures ours = {0}, plain = {0};
        for (size_t k = 0; k < rounds; k++) {
            run_ours(&ours, &scenes[i], tl_null_url(server));
            run_bare(&plain, &scenes[i], tl_null_url(server));
        }
        const double a = print("ours", &ours, &scenes[i], rounds), b = print("bare epoll", &plain, &scenes[i], rounds);
        printf("               CPU per event, ours / bare epoll: %.2f\n", a / b);
        free(ours.error_ms);
        free(plain.error_ms);
    }
    tl_null_stop(server);
    return 0;
}

/* The loop of the null server. One thread, one event base, no library between stamp and send(): every answer's next
 * write stands in one heap by due time, one precise timer (timerfd below epoll) wakes for the earliest, and each wake
 * sends all that is due. A socket that takes no more keeps the rest in `pending`; the next event is stamped only after
 * that has gone, so a stamp never waits in a queue of ours. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/null_impl.h"

#define REQUEST_MAX ((size_t)64 << 20)
#define SPIN_STREAMS 8 /* with more answers at once a spin would delay the others' requests */

typedef struct conn conn;
typedef struct server {
    struct event_base *base;
    struct event *timer, *listen, *check;
    conn **heap; /* playing answers by due time */
    size_t n_heap, cap_heap;
    conn *conns;                 /* all, doubly linked */
    conn *wait_first, *wait_last; /* admitted in order of arrival */
    size_t active;
    tl_ns spin;
} server;

struct conn {
    server *s;
    conn *prev, *next, *wait_next;
    int fd;
    struct event *readable, *writable;
    tl_buf in;
    bool playing, waiting;
    size_t heap_at; /* 1-based; 0 = not in the heap */
    tl_null_schedule plan;
    null_answer answer;
    uint64_t sent; /* events */
    tl_ns begin, due, late_max;
    tl_buf pending;
    size_t pending_at;
};

/* ---- heap ------------------------------------------------------------------------------------------------------ */

static void heap_put(server *s, size_t i, conn *c) {
    s->heap[i] = c;
    c->heap_at = i + 1;
}

static void heap_up(server *s, size_t i) {
    conn *c = s->heap[i];
    for (; i > 0 && s->heap[(i - 1) / 2]->due > c->due; i = (i - 1) / 2) heap_put(s, i, s->heap[(i - 1) / 2]);
    heap_put(s, i, c);
}

static void heap_down(server *s, size_t i) {
    conn *c = s->heap[i];
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= s->n_heap) break;
        if (k + 1 < s->n_heap && s->heap[k + 1]->due < s->heap[k]->due) k++;
        if (s->heap[k]->due >= c->due) break;
        heap_put(s, i, s->heap[k]);
        i = k;
    }
    heap_put(s, i, c);
}

static void heap_add(server *s, conn *c) {
    TL_PUSH(s->heap, s->n_heap, s->cap_heap, c);
    heap_up(s, s->n_heap - 1);
}

static void heap_remove(server *s, conn *c) {
    if (c->heap_at == 0) return;
    const size_t i = c->heap_at - 1;
    conn *last = s->heap[--s->n_heap];
    c->heap_at = 0;
    if (last == c) return;
    heap_put(s, i, last);
    heap_up(s, i);
    heap_down(s, last->heap_at - 1);
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

static void admit(server *s);

static void conn_idle(conn *c) {
    heap_remove(c->s, c);
    if (c->playing) c->s->active--;
    c->playing = false;
    null_answer_fini(&c->answer);
}

static void conn_free(conn *c) {
    server *s = c->s;
    conn_idle(c);
    if (c->waiting) {
        conn **p = &s->wait_first, *before = NULL;
        while (*p != c) before = *p, p = &(*p)->wait_next;
        *p = c->wait_next;
        if (s->wait_last == c) s->wait_last = before;
    }
    if (c->prev != NULL) c->prev->next = c->next;
    else s->conns = c->next;
    if (c->next != NULL) c->next->prev = c->prev;
    event_free(c->readable);
    event_free(c->writable);
    tl_fd_close(c->fd);
    tl_buf_free(&c->in);
    tl_buf_free(&c->pending);
    free(c);
    admit(s);
}

/* Sends at once; what the socket does not take waits for it to be writable. False: the peer is gone. */
static bool put(conn *c, const char *p, size_t n) {
    ssize_t k = 0;
    if (c->pending.len == 0) {
        k = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (k < 0) k = 0;
    }
    if ((size_t)k == n) return true;
    tl_buf_add(&c->pending, p + k, n - (size_t)k);
    event_add(c->writable, NULL);
    return true;
}

static void set_due(conn *c) {
    const uint64_t last = c->plan.events - 1;
    uint64_t i = c->sent + c->plan.batch - 1;
    if (c->plan.burst || i > last) i = last;
    c->due = c->begin + (c->plan.phase_us + c->plan.first_us + i * c->plan.gap_us) * TL_US;
}

static bool next_request(conn *c);

static bool finish(conn *c) {
    tl_buf tail;
    tl_buf_init(&tail, 0);
    null_answer_tail(&tail, c->plan.events, c->late_max);
    const bool ok = put(c, tail.p, tail.len);
    tl_buf_free(&tail);
    conn_idle(c);
    admit(c->s);
    return ok && next_request(c);
}

/* One write of the schedule. False: the peer is gone. */
static bool play(conn *c) {
    const uint64_t left = c->plan.events - c->sent;
    uint64_t n = c->plan.burst ? left : c->plan.batch;
    if (n > left) n = left;
    const size_t bytes = c->answer.event * (size_t)n;
    const size_t half = c->plan.nagle ? bytes / 2 : bytes;
    const tl_ns now = tl_clock_now();
    null_answer_stamp(&c->answer, (size_t)n, now);
    bool ok = put(c, c->answer.block.p, half);
    if (ok && half < bytes) ok = put(c, c->answer.block.p + half, bytes - half);
    if (!ok) return false;
    if (now - c->due > c->late_max) c->late_max = now - c->due;
    c->sent += n;
    if (c->sent == c->plan.events) return finish(c);
    set_due(c);
    if (c->pending.len == 0) heap_add(c->s, c);
    return true;
}

static void begin_answer(conn *c) {
    const int nodelay = c->plan.nagle ? 0 : 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof nodelay);
    c->playing = true;
    c->s->active++;
    c->sent = 0;
    c->late_max = 0;
    c->begin = tl_clock_now();
    null_answer_init(&c->answer, &c->plan);
    set_due(c);
    /* a peer that is gone shows at the next event as well */
    if (put(c, c->answer.head.p, c->answer.head.len) && c->pending.len > 0) return;
    heap_add(c->s, c);
}

static void admit(server *s) {
    while (s->wait_first != NULL && s->active < s->wait_first->plan.max_conn) {
        conn *c = s->wait_first;
        s->wait_first = c->wait_next;
        if (s->wait_first == NULL) s->wait_last = NULL;
        c->waiting = false;
        begin_answer(c);
    }
}

static void queue_or_begin(conn *c) {
    server *s = c->s;
    if (c->plan.max_conn == 0 || s->active < c->plan.max_conn) {
        begin_answer(c);
        return;
    }
    c->waiting = true;
    c->wait_next = NULL;
    if (s->wait_last != NULL) s->wait_last->wait_next = c;
    else s->wait_first = c;
    s->wait_last = c;
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

/* A copy of a header's value within the head, or NULL. */
static char *header_of(const char *head, size_t len, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = head, *end = head + len; p < end;) {
        const char *line_end = memchr(p, '\r', (size_t)(end - p));
        if (line_end == NULL) return NULL;
        if ((size_t)(line_end - p) > n && strncasecmp(p, name, n) == 0 && p[n] == ':') {
            const char *v = p + n + 1;
            while (*v == ' ') v++;
            return tl_xstrndup(v, (size_t)(line_end - v));
        }
        p = line_end + 2;
    }
    return NULL;
}

static bool answer_plain(conn *c, const char *status, const char *json) {
    char *t = tl_xprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
                         strlen(json), json);
    const bool ok = put(c, t, strlen(t));
    free(t);
    return ok;
}

static bool start_request(conn *c, bool post, char *words) {
    tl_err e = {0};
    c->plan = tl_null_default();
    if (!post) return answer_plain(c, "200 OK", "{\"status\":\"ok\"}");
    if (words != NULL && tl_null_parse(&c->plan, words, &e) != TL_OK) {
        json_t *j = json_pack("{s:{s:s,s:i}}", "error", "message", e.msg, "code", 400);
        char *t = tl_json_canonical(j);
        const bool ok = answer_plain(c, "400 Bad Request", t);
        free(t);
        json_decref(j);
        return ok;
    }
    queue_or_begin(c);
    return true;
}

/* Answers the requests that are completely there, one at a time. False: drop the connection. */
static bool next_request(conn *c) {
    while (!c->playing && !c->waiting) {
        const char *end = strstr(c->in.p, "\r\n\r\n");
        if (end == NULL) return c->in.len < REQUEST_MAX;
        const size_t head = (size_t)(end - c->in.p) + 4;
        char *length = header_of(c->in.p, head, "Content-Length");
        int64_t body = 0;
        const bool fine = length == NULL || (tl_parse_i64(length, &body) && body >= 0 && (size_t)body < REQUEST_MAX);
        free(length);
        if (!fine) return false;
        if (c->in.len - head < (size_t)body) return true;
        char *words = header_of(c->in.p, head, "X-Tally-Null");
        const bool post = strncmp(c->in.p, "POST ", 5) == 0;
        const size_t used = head + (size_t)body, rest = c->in.len - used;
        memmove(c->in.p, c->in.p + used, rest);
        c->in.len = rest;
        c->in.p[rest] = '\0';
        const bool ok = start_request(c, post, words);
        free(words);
        if (!ok) return false;
    }
    return true;
}

static void run_due(server *s);

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    conn *c = ctx;
    TL_UNUSED(what);
    char bytes[65536];
    const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    server *s = c->s;
    if (n <= 0 || c->in.len + (size_t)n > REQUEST_MAX + sizeof bytes) {
        conn_free(c);
    } else {
        tl_buf_add(&c->in, bytes, (size_t)n);
        if (!next_request(c)) conn_free(c);
    }
    run_due(s);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    conn *c = ctx;
    server *s = c->s;
    TL_UNUSED(what);
    const ssize_t n = send(fd, c->pending.p + c->pending_at, c->pending.len - c->pending_at,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        conn_free(c);
        run_due(s);
        return;
    }
    c->pending_at += n > 0 ? (size_t)n : 0;
    if (c->pending_at < c->pending.len) {
        event_add(c->writable, NULL);
        return;
    }
    tl_buf_clear(&c->pending);
    c->pending_at = 0;
    if (c->playing && c->heap_at == 0) heap_add(s, c);
    run_due(s);
}

/* Sends all that is due and sets the timer for what is next. */
static void run_due(server *s) {
    while (s->n_heap > 0) {
        conn *c = s->heap[0];
        tl_ns now = tl_clock_now();
        if (c->due > now) {
            const bool near = s->n_heap <= SPIN_STREAMS && c->due - now <= s->spin;
            if (!near) {
                const tl_ns early = s->n_heap <= SPIN_STREAMS ? s->spin : 0;
                const tl_ns wait = c->due - now - early;
                const struct timeval tv = {.tv_sec = (time_t)(wait / TL_S),
                                           .tv_usec = (suseconds_t)(wait % TL_S / TL_US)};
                event_add(s->timer, &tv);
                return;
            }
            while (tl_clock_now() < c->due) {
            }
        }
        heap_remove(s, c);
        if (!play(c)) conn_free(c);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    TL_UNUSED(fd);
    TL_UNUSED(what);
    run_due(ctx);
}

static void on_check(evutil_socket_t fd, short what, void *ctx) {
    server *s = ctx;
    TL_UNUSED(fd);
    TL_UNUSED(what);
    if (tl_signal_pending() != 0) event_base_loopbreak(s->base);
}

static void on_listen(evutil_socket_t fd, short what, void *ctx) {
    server *s = ctx;
    TL_UNUSED(what);
    for (;;) {
        const int one = 1, got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (got < 0) return;
        setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        conn *c = tl_xalloc(sizeof *c);
        c->s = s;
        c->fd = got;
        tl_buf_init(&c->in, 0);
        tl_buf_init(&c->pending, 0);
        c->next = s->conns;
        if (c->next != NULL) c->next->prev = c;
        s->conns = c;
        c->readable = event_new(s->base, got, EV_READ | EV_PERSIST, on_readable, c);
        c->writable = event_new(s->base, got, EV_WRITE, on_writable, c);
        event_add(c->readable, NULL);
    }
}

/* ---- begin and end --------------------------------------------------------------------------------------------- */

static tl_status open_listener(int *out, uint16_t *port, tl_err *e) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0) return tl_fail(e, TL_IO, "socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        const int why = errno;
        tl_fd_close(fd);
        tl_fail(e, why == EADDRINUSE ? TL_CONFLICT : TL_IO, "port %u of 127.0.0.1: %s", *port, strerror(why));
        return tl_remedy(e, "choose another port, or 0 for any");
    }
    *port = ntohs(at.sin_port);
    *out = fd;
    return TL_OK;
}

static void raise_file_limit(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

static void print_ready(FILE *ready, uint16_t port) {
    fprintf(ready, "{\"pid\":%" PRId64 ",\"port\":%u,\"url\":\"http://127.0.0.1:%u\"}\n", tl_os_pid(), port, port);
    fflush(ready);
}

tl_status tl_null_serve(uint16_t port, uint64_t spin_us, FILE *ready, tl_err *e) {
    int fd = -1;
    server s = {.spin = spin_us * TL_US};
    tl_signal_install();
    raise_file_limit();
    const tl_status st = open_listener(&fd, &port, e);
    if (st != TL_OK) return st;
    struct event_config *cfg = event_config_new();
    event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER);
    s.base = event_base_new_with_config(cfg);
    event_config_free(cfg);
    s.timer = event_new(s.base, -1, 0, on_timer, &s);
    s.listen = event_new(s.base, fd, EV_READ | EV_PERSIST, on_listen, &s);
    s.check = event_new(s.base, -1, EV_PERSIST, on_check, &s);
    const struct timeval often = {.tv_usec = 50000};
    event_add(s.listen, NULL);
    event_add(s.check, &often);
    print_ready(ready, port);
    event_base_dispatch(s.base);
    while (s.conns != NULL) conn_free(s.conns);
    event_free(s.timer);
    event_free(s.listen);
    event_free(s.check);
    event_base_free(s.base);
    free(s.heap);
    tl_fd_close(fd);
    return TL_OK;
}

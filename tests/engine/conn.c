/* One connection of the scripted engine: reads a request, then plays its stream step by step. Times: a libevent timer
 * (timerfd) that fires early by the spin time, then a busy wait; each send() is stamped before and after. */
#include "server_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: whoever uses this ignores SIGPIPE */
#endif

enum { SPIN_UP_TO = 4, REQUEST_MAX = 64 << 20 };

uint64_t tl_script_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void advance(script_conn *c);
static void next_request(script_conn *c);

/* ---- end of a request, end of a connection ---------------------------------------------------------------------- */

static void stop_playing(script_conn *c, bool client_left) {
    if (c->request == NULL) return;
    event_del(c->timer);
    event_del(c->write_event);
    c->out_len = 0;
    c->server->n_playing--;
    script_server_ended(c->server, c->request, client_left);
    script_server_release(c->server, c->stream);
    c->request = NULL;
    c->stream = NULL;
}

void script_conn_free(script_conn *c) {
    stop_playing(c, true);
    if (c->prev != NULL) c->prev->next = c->next;
    else c->server->conns = c->next;
    if (c->next != NULL) c->next->prev = c->prev;
    event_free(c->read_event);
    event_free(c->write_event);
    event_free(c->timer);
    close(c->fd);
    tl_buf_free(&c->in);
    free(c);
}

static void close_after_end(script_conn *c, bool reset) {
    if (reset) {
        const struct linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        event_del(c->read_event);
        event_del(c->write_event);
        close(c->fd); /* the RST leaves before the end is recorded */
        c->fd = -1;
    } else {
        shutdown(c->fd, SHUT_WR);
    }
    stop_playing(c, false);
    script_conn_free(c);
}

/* ---- playing ------------------------------------------------------------------------------------------------------ */

static const char *end_marker(const script_stream *s) {
    if (s->raw) return "";
    if (s->close == CLOSE_END || s->close == CLOSE_LIAR) return "0\r\n\r\n";
    return s->close == CLOSE_BAD_CHUNK ? "zz\r\nnot a chunk\r\n" : "";
}

static uint64_t step_delay(const script_conn *c) {
    const script_stream *s = c->stream;
    if (c->step == 0) return s->head_delay_ns;
    return c->step <= s->n_writes ? s->writes[c->step - 1].delay_ns : s->close_delay_ns;
}

static void stamp(script_conn *c, bool after) {
    tl_script_request *r = c->request;
    const uint64_t now = tl_script_now_ns();
    pthread_mutex_lock(&c->server->lock);
    if (c->step == 0 && !after) r->t_headers_ns = now;
    if (c->step >= 1 && c->step <= c->stream->n_writes) {
        (after ? r->t_written_ns : r->t_write_ns)[c->step - 1] = now;
        r->n_writes = c->step;
    }
    pthread_mutex_unlock(&c->server->lock);
}

static void begin_step(script_conn *c) {
    const script_stream *s = c->stream;
    if (c->step == 0) {
        c->out = s->head;
        c->out_len = s->head_len;
    } else if (c->step <= s->n_writes) {
        c->out = s->bytes + s->writes[c->step - 1].offset;
        c->out_len = s->writes[c->step - 1].len;
    } else {
        c->out = end_marker(s);
        c->out_len = strlen(c->out);
    }
}

/* 1 all gone, 0 the kernel is full, -1 the client left. */
static int flush_out(script_conn *c) {
    while (c->out_len > 0) {
        const ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            event_add(c->write_event, NULL);
            return 0;
        }
        if (n < 0) return -1;
        c->out += n;
        c->out_len -= (size_t)n;
    }
    return 1;
}

/* True when the step is due (after the busy wait), false when the timer was set for it. */
static bool wait_for_step(script_conn *c) {
    const uint64_t due = c->request->t_received_ns + step_delay(c);
    const uint64_t spin = c->server->n_playing <= SPIN_UP_TO ? (uint64_t)c->server->spin_us * 1000 : 0;
    uint64_t now = tl_script_now_ns();
    if (due > now + spin) {
        const uint64_t us = (due - spin - now + 999) / 1000;
        const struct timeval t = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
        event_base_update_cache_time(c->server->base); /* timers count from it */
        evtimer_add(c->timer, &t);
        return false;
    }
    while (now < due) now = tl_script_now_ns();
    return true;
}

static void end_of_stream(script_conn *c) {
    switch (c->stream->close) {
    case CLOSE_END:
    case CLOSE_LENGTH:
        stop_playing(c, false);
        next_request(c);
        return;
    case CLOSE_HANG: return; /* until the client leaves */
    case CLOSE_RESET: close_after_end(c, true); return;
    default: close_after_end(c, false); return;
    }
}

static void advance(script_conn *c) {
    while (c->step <= c->stream->n_writes + 1) {
        if (c->out_len == 0) {
            if (!wait_for_step(c)) return;
            begin_step(c);
            stamp(c, false);
        }
        const int gone = flush_out(c);
        if (gone == 0) return;
        if (gone < 0) {
            script_conn_free(c);
            return;
        }
        stamp(c, true);
        c->step++;
    }
    end_of_stream(c);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    TL_UNUSED(fd);
    TL_UNUSED(what);
    advance(ctx);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    TL_UNUSED(fd);
    TL_UNUSED(what);
    advance(ctx);
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

/* Value of Content-Length in the header block, 0 when absent. */
static size_t content_length(const char *p, size_t n) {
    static const char name[] = "\r\ncontent-length:";
    const size_t k = sizeof name - 1;
    for (size_t i = 0; i + k < n; i++)
        if (strncasecmp(p + i, name, k) == 0) return (size_t)strtoull(p + i + k, NULL, 10);
    return 0;
}

static tl_script_request *parse_request(script_conn *c, size_t head, size_t body, uint64_t now) {
    const char *p = c->in.p;
    const size_t line = strcspn(p, "\r\n");
    const size_t method = strcspn(p, " \r\n");
    const size_t from = method + (method < line);
    const size_t path = strcspn(p + from, " ?\r\n");
    tl_script_request *r = tl_xalloc(sizeof *r);
    r->method = tl_xstrndup(p, method);
    r->path = tl_xstrndup(p + from, path);
    r->headers = tl_xstrndup(p + line, head - line);
    r->body = tl_xstrndup(p + head, body);
    r->body_len = body;
    r->connection = c->number;
    r->on_connection = c->n_requests++;
    r->t_accepted_ns = c->t_accepted_ns;
    r->t_received_ns = now;
    return r;
}

/* Starts to play when a whole request is there. */
static void next_request(script_conn *c) {
    if (c->request != NULL) return;
    const char *end = strstr(c->in.p, "\r\n\r\n");
    if (end == NULL) return;
    const uint64_t now = tl_script_now_ns();
    const size_t head = (size_t)(end - c->in.p) + 4;
    const size_t body = content_length(c->in.p, head);
    if (body > REQUEST_MAX || c->in.len - head < body) return;
    tl_script_request *r = parse_request(c, head, body, now);
    const size_t rest = c->in.len - head - body;
    char *kept = tl_xstrndup(c->in.p + head + body, rest);
    tl_buf_clear(&c->in);
    tl_buf_add(&c->in, kept, rest);
    free(kept);
    c->stream = script_server_lookup(c->server, r->method, r->path, r->body);
    r->t_write_ns = tl_xalloc(c->stream->n_writes * sizeof *r->t_write_ns);
    r->t_written_ns = tl_xalloc(c->stream->n_writes * sizeof *r->t_written_ns);
    c->request = r;
    c->step = c->stream->head_len == 0 ? 1 : 0;
    c->server->n_playing++;
    script_server_record(c->server, r);
    advance(c);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    script_conn *c = ctx;
    char block[65536];
    TL_UNUSED(what);
    const ssize_t n = recv(fd, block, sizeof block, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (n <= 0) {
        script_conn_free(c);
        return;
    }
    tl_buf_add(&c->in, block, (size_t)n);
    next_request(c);
}

void script_conn_accept(tl_script_server *s, int fd, size_t number) {
    const int on = 1;
    script_conn *c = tl_xalloc(sizeof *c);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->server = s;
    c->fd = fd;
    c->number = number;
    c->t_accepted_ns = tl_script_now_ns();
    tl_buf_init(&c->in, 0);
    c->read_event = event_new(s->base, fd, EV_READ | EV_PERSIST, on_readable, c);
    c->write_event = event_new(s->base, fd, EV_WRITE, on_writable, c);
    c->timer = evtimer_new(s->base, on_timer, c);
    event_add(c->read_event, NULL);
    c->next = s->conns;
    if (c->next != NULL) c->next->prev = c;
    s->conns = c;
}

/* The scripted engine: its thread, its listening socket, which path answers what, and the record of all requests. */
#include "server_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- what a path answers ------------------------------------------------------------------------------------------ */

static script_path *find_path(tl_script_server *s, const char *path) {
    for (size_t i = 0; i < s->n_paths; i++)
        if (tl_str_eq(s->paths[i].path, path)) return &s->paths[i];
    return NULL;
}

static void release_locked(script_stream *stream) {
    if (stream != NULL && --stream->refs == 0) script_stream_free(stream);
}

void script_server_release(tl_script_server *s, script_stream *stream) {
    pthread_mutex_lock(&s->lock);
    release_locked(stream);
    pthread_mutex_unlock(&s->lock);
}

tl_status tl_script_server_play(tl_script_server *s, const char *path, const json_t *stream, tl_err *e) {
    script_stream *parsed = NULL;
    const tl_status st = script_stream_parse(&parsed, stream, e);
    if (st != TL_OK) return st;
    pthread_mutex_lock(&s->lock);
    script_path *at = find_path(s, path);
    if (at == NULL) {
        TL_PUSH(s->paths, s->n_paths, s->cap_paths, ((script_path){.path = tl_xstrdup(path)}));
        at = &s->paths[s->n_paths - 1];
    }
    release_locked(at->stream);
    at->stream = parsed;
    pthread_mutex_unlock(&s->lock);
    return TL_OK;
}

tl_status tl_script_server_play_text(tl_script_server *s, const char *path, const char *json, tl_err *e) {
    json_t *j = NULL;
    tl_status st = tl_json_parse(&j, json, strlen(json), "stream", e);
    if (st == TL_OK) st = tl_script_server_play(s, path, j, e);
    json_decref(j);
    return st;
}

tl_status tl_script_server_play_file(tl_script_server *s, const char *path, const char *file, tl_err *e) {
    tl_status st = TL_OK;
    json_t *j = NULL;
    char block[4096];
    size_t n;
    tl_buf text;
    tl_buf_init(&text, 0);
    FILE *f = fopen(file, "rb");
    if (f == NULL) TRY(tl_fail(e, TL_NOT_FOUND, "%s: %s", file, strerror(errno)));
    while ((n = fread(block, 1, sizeof block, f)) > 0) tl_buf_add(&text, block, n);
    TRY(tl_json_parse(&j, text.p, text.len, file, e));
    TRY(tl_script_server_play(s, path, j, e));
out:
    if (f != NULL) fclose(f);
    json_decref(j);
    tl_buf_free(&text);
    return st;
}

/* One number a word, in the place of a tokenizer. */
static script_stream *tokenize(const char *body) {
    json_t *in = NULL, *tokens = json_array();
    script_stream *s;
    if (tl_json_parse(&in, body, strlen(body), "body", NULL) == TL_OK) {
        const char *p = tl_json_str(in, "content", "");
        for (p += strspn(p, " \n\t"); *p != '\0'; p += strspn(p, " \n\t")) {
            const size_t n = strcspn(p, " \n\t");
            char *word = tl_xstrndup(p, n);
            json_array_append_new(tokens, json_integer((json_int_t)(tl_seed_of(word) % 32000)));
            free(word);
            p += n;
        }
    }
    json_t *reply = json_pack("{s:o}", "tokens", tokens);
    char *text = tl_json_canonical(reply);
    s = script_stream_plain(200, "application/json", text);
    free(text);
    json_decref(reply);
    json_decref(in);
    return s;
}

static script_stream *built_in(tl_script_server *s, const char *method, const char *path, const char *body) {
    if (tl_str_eq(path, "/health")) {
        if (s->health_503 == 0) return script_stream_plain(200, "application/json", "{\"status\":\"ok\"}");
        s->health_503--;
        return script_stream_plain(503, "application/json",
                                   "{\"error\":{\"code\":503,\"message\":\"Loading model\","
                                   "\"type\":\"unavailable_error\"},\"status\":\"loading model\"}");
    }
    if (tl_str_eq(path, "/tokenize") && tl_str_eq(method, "POST")) return tokenize(body);
    if (tl_str_eq(path, "/requests")) {
        char *text = tl_xprintf("{\"requests\":%zu,\"connections\":%zu}", s->n_requests, s->n_connections);
        script_stream *answer = script_stream_plain(200, "application/json", text);
        free(text);
        return answer;
    }
    return script_stream_plain(404, "application/json", "{\"error\":{\"code\":404,\"message\":\"no such path\"}}");
}

script_stream *script_server_lookup(tl_script_server *s, const char *method, const char *path, const char *body) {
    pthread_mutex_lock(&s->lock);
    const script_path *at = find_path(s, path);
    if (at == NULL) at = find_path(s, NULL);
    script_stream *stream = at ? at->stream : built_in(s, method, path, body);
    if (at != NULL) stream->refs++;
    pthread_mutex_unlock(&s->lock);
    return stream;
}

void tl_script_server_health_503(tl_script_server *s, uint32_t times) {
    pthread_mutex_lock(&s->lock);
    s->health_503 = times;
    pthread_mutex_unlock(&s->lock);
}

/* ---- the record ----------------------------------------------------------------------------------------------------- */

void script_server_record(tl_script_server *s, tl_script_request *r) {
    pthread_mutex_lock(&s->lock);
    r->index = s->n_requests;
    TL_PUSH(s->requests, s->n_requests, s->cap_requests, r);
    s->n_open++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->stall_ms && r->index == s->stall_at) {
        const struct timespec pause = {s->stall_ms / 1000, (long)(s->stall_ms % 1000) * 1000000};
        nanosleep(&pause, NULL);
    }
}

static json_t *times_json(const uint64_t *t, size_t n) {
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(a, json_integer((json_int_t)t[i]));
    return a;
}

static void log_request(FILE *f, const tl_script_request *r) {
    json_t *j = json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:b}", "request", (json_int_t)r->index,
                          "method", r->method, "path", r->path, "connection", (json_int_t)r->connection,
                          "accepted_ns", (json_int_t)r->t_accepted_ns, "received_ns", (json_int_t)r->t_received_ns,
                          "headers_ns", (json_int_t)r->t_headers_ns, "write_ns",
                          times_json(r->t_write_ns, r->n_writes), "written_ns",
                          times_json(r->t_written_ns, r->n_writes), "end_ns", (json_int_t)r->t_end_ns, "client_left",
                          (int)r->client_left);
    if (j == NULL) return; /* a path that is not UTF-8 */
    if (tl_utf8_valid(r->body, r->body_len)) json_object_set_new(j, "body", json_stringn(r->body, r->body_len));
    char *text = tl_json_canonical(j);
    fprintf(f, "%s\n", text);
    fflush(f);
    free(text);
    json_decref(j);
}

void script_server_ended(tl_script_server *s, tl_script_request *r, bool client_left) {
    pthread_mutex_lock(&s->lock);
    r->t_end_ns = tl_script_now_ns();
    r->client_left = client_left;
    s->n_open--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->log != NULL) log_request(s->log, r);
}

static size_t locked_size(tl_script_server *s, const size_t *n) {
    pthread_mutex_lock(&s->lock);
    const size_t copy = *n;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

size_t tl_script_server_count(tl_script_server *s) { return locked_size(s, &s->n_requests); }
size_t tl_script_server_connections(tl_script_server *s) { return locked_size(s, &s->n_connections); }
size_t tl_script_server_playing(tl_script_server *s) { return locked_size(s, &s->n_open); }

static void *copy_of(const void *p, size_t n) {
    void *q = tl_xalloc(n);
    if (n > 0) memcpy(q, p, n);
    return q;
}

static void copy_request(tl_script_request *out, const tl_script_request *r) {
    *out = *r;
    out->method = tl_xstrdup(r->method);
    out->path = tl_xstrdup(r->path);
    out->headers = tl_xstrdup(r->headers);
    out->body = tl_xstrndup(r->body, r->body_len);
    out->t_write_ns = copy_of(r->t_write_ns, r->n_writes * sizeof *r->t_write_ns);
    out->t_written_ns = copy_of(r->t_written_ns, r->n_writes * sizeof *r->t_written_ns);
}

tl_status tl_script_server_request(tl_script_request *out, tl_script_server *s, size_t index, tl_err *e) {
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&s->lock);
    const bool found = index < s->n_requests;
    if (found) copy_request(out, s->requests[index]);
    pthread_mutex_unlock(&s->lock);
    return found ? TL_OK : tl_fail(e, TL_NOT_FOUND, "request %zu has not come", index);
}

tl_status tl_script_server_wait(tl_script_request *out, tl_script_server *s, size_t index, uint64_t timeout_ns,
                                tl_err *e) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); /* what pthread_cond_timedwait counts in everywhere */
    until.tv_sec += (time_t)(timeout_ns / 1000000000u);
    until.tv_nsec += (long)(timeout_ns % 1000000000u);
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    memset(out, 0, sizeof *out);
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (rc == 0 && !(index < s->n_requests && s->requests[index]->t_end_ns != 0))
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    if (rc == 0) copy_request(out, s->requests[index]);
    pthread_mutex_unlock(&s->lock);
    return rc == 0 ? TL_OK : tl_fail(e, TL_TIMEOUT, "request %zu did not end in time", index);
}

void tl_script_request_free(tl_script_request *r) {
    free(r->method);
    free(r->path);
    free(r->headers);
    free(r->body);
    free(r->t_write_ns);
    free(r->t_written_ns);
    memset(r, 0, sizeof *r);
}

/* ---- thread and socket ------------------------------------------------------------------------------------------------ */

static void on_accept(evutil_socket_t fd, short what, void *ctx) {
    tl_script_server *s = ctx;
    TL_UNUSED(what);
    for (;;) {
        const int client = accept(fd, NULL, NULL);
        if (client < 0) return;
        pthread_mutex_lock(&s->lock);
        const size_t number = s->n_connections++;
        pthread_mutex_unlock(&s->lock);
        script_conn_accept(s, client, number);
    }
}

static void on_wake(evutil_socket_t fd, short what, void *ctx) {
    tl_script_server *s = ctx;
    TL_UNUSED(fd);
    TL_UNUSED(what);
    event_base_loopbreak(s->base);
}

static void *serve(void *ctx) {
    tl_script_server *s = ctx;
    event_base_dispatch(s->base);
    while (s->conns != NULL) script_conn_free(s->conns);
    return NULL;
}

static tl_status open_listener(tl_script_server *s, uint16_t port, tl_err *e) {
    const int on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t n = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (s->listen_fd < 0) return tl_fail(e, TL_IO, "socket: %s", strerror(errno));
    setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s->listen_fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(s->listen_fd, 1024) < 0 ||
        getsockname(s->listen_fd, (struct sockaddr *)&a, &n) < 0)
        return tl_fail(e, TL_IO, "127.0.0.1 port %u: %s", port, strerror(errno));
    fcntl(s->listen_fd, F_SETFL, fcntl(s->listen_fd, F_GETFL) | O_NONBLOCK);
    fcntl(s->listen_fd, F_SETFD, FD_CLOEXEC);
    s->port = ntohs(a.sin_port);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", s->port);
    return TL_OK;
}

static tl_status make_base(tl_script_server *s, tl_err *e) {
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    s->base = event_base_new_with_config(config);
    event_config_free(config);
    if (s->base == NULL || pipe(s->wake_fd) < 0) return tl_fail(e, TL_IO, "event loop: %s", strerror(errno));
    fcntl(s->wake_fd[0], F_SETFD, FD_CLOEXEC);
    fcntl(s->wake_fd[1], F_SETFD, FD_CLOEXEC);
    s->wake_event = event_new(s->base, s->wake_fd[0], EV_READ, on_wake, s);
    s->accept_event = event_new(s->base, s->listen_fd, EV_READ | EV_PERSIST, on_accept, s);
    event_add(s->wake_event, NULL);
    event_add(s->accept_event, NULL);
    return TL_OK;
}

static void free_server(tl_script_server *s) {
    for (size_t i = 0; i < s->n_requests; i++) {
        tl_script_request_free(s->requests[i]);
        free(s->requests[i]);
    }
    free(s->requests);
    for (size_t i = 0; i < s->n_paths; i++) {
        free(s->paths[i].path);
        release_locked(s->paths[i].stream);
    }
    free(s->paths);
    if (s->accept_event != NULL) event_free(s->accept_event);
    if (s->wake_event != NULL) event_free(s->wake_event);
    if (s->base != NULL) event_base_free(s->base);
    if (s->listen_fd >= 0) close(s->listen_fd);
    if (s->wake_fd[0] >= 0) close(s->wake_fd[0]);
    if (s->wake_fd[1] >= 0) close(s->wake_fd[1]);
    if (s->log != NULL) fclose(s->log);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

tl_status tl_script_server_start(tl_script_server **out, const tl_script_options *o, tl_err *e) {
    static const tl_script_options defaults = {0};
    tl_status st = TL_OK;
    tl_script_server *s = tl_xalloc(sizeof *s);
    if (o == NULL) o = &defaults;
    s->listen_fd = s->wake_fd[0] = s->wake_fd[1] = -1;
    s->spin_us = o->no_spin ? 0 : o->spin_us ? o->spin_us : 200;
    s->health_503 = o->health_503;
    s->stall_ms = o->stall_ms;
    s->stall_at = o->stall_at;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (o->log_path != NULL && (s->log = fopen(o->log_path, "w")) == NULL)
        TRY(tl_fail(e, TL_IO, "%s: %s", o->log_path, strerror(errno)));
    TRY(open_listener(s, o->port, e));
    TRY(make_base(s, e));
    if (pthread_create(&s->thread, NULL, serve, s) != 0) TRY(tl_fail(e, TL_IO, "no thread"));
    *out = s;
    s = NULL;
out:
    if (s != NULL) free_server(s);
    return st;
}

void tl_script_server_stop(tl_script_server *s) {
    if (s == NULL) return;
    const char byte = 0;
    if (write(s->wake_fd[1], &byte, 1) != 1) abort();
    pthread_join(s->thread, NULL);
    free_server(s);
}

uint16_t tl_script_server_port(const tl_script_server *s) { return s->port; }
const char *tl_script_server_url(const tl_script_server *s) { return s->url; }

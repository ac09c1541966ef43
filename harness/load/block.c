/* A closed loop of N users over one http loop. All requests are prepared before the first one starts: their bodies are
 * copied and their logs allocated and touched then. What happens between two requests of a user is: open a connection,
 * start. The open comes as late as that because llama-server's HTTP layer gives each open connection a thread and closes
 * idle ones after seconds, so connections cannot be opened for a whole block ahead. */
#include "http/http.h"
#include "load/load_impl.h"
#include "os/os.h"

#define TIMEOUT_DEFAULT (600 * TL_S)
#define STALL_DEFAULT (120 * TL_S)
#define CONNECT_LIMIT (10 * TL_S)
#define MEMORY_MAX ((size_t)2 << 30)

typedef struct block block;

typedef struct user {
    block *b;
    size_t job;      /* the one it works on */
    uint64_t last_end; /* 0 = none yet */
    uint64_t opened;
} user;

struct block {
    const tl_load_job *jobs;
    size_t n, n_users;
    const tl_load_opts *o;
    tl_load_result *out;
    tl_http_loop *loop;
    tl_http_req **reqs;
    user *users;
    size_t next, in_a_row, max_in_a_row;
    bool stop;
};

const char *tl_load_end_name(tl_load_end end) {
    static const char *const names[] = {"all", "cancelled", "failures", "engine-ended"};
    return (unsigned)end < TL_COUNT(names) ? names[end] : "?";
}

/* ---- before: everything that allocates ---- */

/* An SSE chunk of one token is about 250 bytes, the last ones with usage and timings some kilobytes. */
static size_t body_room(const tl_load_job *j) {
    return j->max_tokens < 0 ? (size_t)4 << 20 : (size_t)j->max_tokens * 1024 + ((size_t)128 << 10);
}
static size_t read_room(const tl_load_job *j) {
    return j->max_tokens < 0 ? 65536 : (size_t)j->max_tokens * 4 + 2048;
}

static void on_done(tl_http_req *req, void *ctx);

static tl_status prepare_job(block *b, size_t i, const char *const *headers, tl_err *e) {
    const tl_load_job *j = &b->jobs[i];
    if (!j->dialect || !j->body) return tl_fail(e, TL_INVALID, "job %zu has no %s", i, j->dialect ? "body" : "dialect");
    char *url = tl_xprintf("%s%s", b->o->url ? b->o->url : tl_engine_url(b->o->engine), tl_dialect_path(j->dialect));
    const tl_http_spec spec = {
        .url = url,
        .headers = headers,
        .body = j->body,
        .body_len = j->body_len,
        .total_ns = j->timeout_ns ? j->timeout_ns : b->o->timeout_ns ? b->o->timeout_ns : TIMEOUT_DEFAULT,
        .connect_ns = CONNECT_LIMIT,
        .stall_ns = b->o->stall_ns ? b->o->stall_ns : STALL_DEFAULT,
        .max_body = body_room(j),
        .max_reads = read_room(j),
        .on_done = on_done,
        .ctx = b,
    };
    tl_status st = tl_http_prepare(&b->reqs[i], b->loop, &spec, e);
    free(url);
    return st;
}

static tl_status prepare(block *b, tl_err *e) {
    tl_status st = TL_OK;
    size_t need = 0, n = 0;
    const char **headers = NULL;
    for (size_t i = 0; i < b->n; i++) need += body_room(&b->jobs[i]) + read_room(&b->jobs[i]) * sizeof(tl_http_read);
    if (need > MEMORY_MAX) {
        (void)tl_fail(e, TL_LIMIT, "a block of %zu requests needs %zu MiB for its logs, over 2048", b->n, need >> 20);
        return tl_remedy(e, "run it as several smaller blocks");
    }
    while (b->o->headers && b->o->headers[n]) n++;
    headers = tl_xalloc((n + 2) * sizeof *headers);
    for (size_t i = 0; i < n; i++) headers[i] = b->o->headers[i];
    headers[n] = "Content-Type: application/json";
    for (size_t i = 0; i < b->n; i++) TRY(prepare_job(b, i, headers, e));
    /* the first connections stand before the schedule begins */
    for (size_t u = 0; u < b->n_users && u < b->n; u++) tl_http_open(b->reqs[u]);
    const tl_http_until until = {.deadline_ns = tl_clock_now() + CONNECT_LIMIT};
    st = tl_http_loop_run(b->loop, &until, e);
    if (st == TL_TIMEOUT) st = TL_OK; /* it will show as each request's own outcome */
    tl_err_clear(st == TL_OK ? e : NULL);
out:
    free(headers);
    return st;
}

/* ---- during ---- */

static void launch(user *u) {
    block *b = u->b;
    tl_load_item *item = &b->out->items[u->job];
    uint64_t now = tl_clock_now();
    item->started = true;
    item->worker = (size_t)(u - b->users);
    item->sequence = b->out->started++;
    item->gap_ns = u->last_end && now > u->last_end ? now - u->last_end : 0;
    if (b->out->t_begin == 0) b->out->t_begin = now;
    tl_http_start(b->reqs[u->job], now);
}

/* A connection on loopback stands at once; over a network the user waits for it here, outside of the request's time. */
static void launch_when_open(void *ctx) {
    user *u = ctx;
    uint64_t now = tl_clock_now();
    if (tl_http_is_open(u->b->reqs[u->job]) || now - u->opened > CONNECT_LIMIT || tl_http_is_done(u->b->reqs[u->job]))
        launch(u);
    else
        tl_http_loop_at(u->b->loop, now + TL_MS / 5, launch_when_open, u);
}

static void next_job(user *u) {
    block *b = u->b;
    if (b->stop || b->next == b->n) return;
    u->job = b->next++;
    u->opened = tl_clock_now();
    tl_http_open(b->reqs[u->job]);
    launch_when_open(u);
}

static void decode(block *b, size_t i) {
    tl_load_item *item = &b->out->items[i];
    const tl_load_job *j = &b->jobs[i];
    tl_gen gen;
    tl_gen_init(&gen);
    gen.max_tokens = j->max_tokens;
    tl_err e = {0};
    if (tl_dialect_decode(&item->request, j->dialect, tl_http_result(b->reqs[i]), &gen, &e) != TL_OK) {
        /* only arguments that make no sense can fail: it must not pass for a good answer */
        free(item->request.error_class);
        free(item->request.error_text);
        item->request.error_class = tl_xstrdup("protocol");
        item->request.error_text = tl_xstrdup(e.msg);
    }
    item->flags = tl_load_check(j, &item->request);
    tl_http_free(b->reqs[i]);
    b->reqs[i] = NULL;
    if (b->o->on_item) b->o->on_item(b->o->ctx, item, i);
}

static user *user_of(block *b, const tl_http_req *req) {
    for (size_t u = 0; u < b->n_users; u++)
        if (b->users[u].job < b->n && b->reqs[b->users[u].job] == req) return &b->users[u];
    return NULL;
}

static void count_failure(block *b, const tl_http_log *log, size_t job) {
    tl_load_result *r = b->out;
    r->failed++;
    b->in_a_row++;
    if (b->stop) return;
    if (b->o->engine && !tl_engine_attached(b->o->engine) && !tl_engine_alive(b->o->engine)) {
        r->end = TL_LOAD_ENGINE;
        b->stop = true;
    } else if (b->in_a_row >= b->max_in_a_row) {
        r->end = TL_LOAD_FAILURES;
        b->stop = true;
    }
    if (!b->stop) return;
    (void)snprintf(r->reason, sizeof r->reason, "%zu failed in a row, last request %zu: %s (HTTP %d) %s", b->in_a_row, job + 1,
                   tl_http_outcome_name(log->outcome), log->status, log->error);
}

static void on_done(tl_http_req *req, void *ctx) {
    block *b = ctx;
    user *u = user_of(b, req);
    if (!u || !b->out->items[u->job].started) return;
    const tl_http_log *log = tl_http_result(req);
    size_t job = u->job;
    u->last_end = log->t_close_ns ? log->t_close_ns : tl_clock_now();
    if (u->last_end > b->out->t_end) b->out->t_end = u->last_end;
    if (log->outcome == TL_HTTP_COMPLETE && log->status / 100 == 2)
        b->in_a_row = 0;
    else if (log->outcome == TL_HTTP_ABANDONED)
        b->out->failed++;
    else
        count_failure(b, log, job);
    if (b->n_users == 1) {
        decode(b, job);
        u->last_end = tl_clock_now(); /* the pause of the client does not count its own decoding */
    }
    next_job(u);
}

static bool cancelled(void *ctx) {
    const block *b = ctx;
    return b->o->cancelled && b->o->cancelled(b->o->ctx);
}

/* ---- after ---- */

/* A dying process closes its sockets some moments before it can be seen to have ended. */
static void was_it_the_engine(block *b) {
    tl_load_result *r = b->out;
    tl_engine *g = b->o->engine;
    if (r->failed == 0 || r->end == TL_LOAD_CANCELLED || !g || tl_engine_attached(g)) return;
    for (int i = 0; i < 40 && tl_engine_alive(g); i++) tl_sleep_ns(5 * TL_MS);
    if (tl_engine_alive(g)) return;
    r->end = TL_LOAD_ENGINE;
    tl_buf words;
    tl_buf_init(&words, 0);
    tl_engine_last_words(&words, g);
    (void)snprintf(r->reason, sizeof r->reason, "the engine ended: %s", words.p);
    tl_buf_free(&words);
}

static tl_status run(block *b, tl_err *e) {
    const tl_http_until until = {.cancelled = cancelled, .ctx = b};
    if (cancelled(b)) {
        b->stop = true;
        b->out->end = TL_LOAD_CANCELLED;
        (void)snprintf(b->out->reason, sizeof b->out->reason, "cancelled before the first request");
        return TL_OK;
    }
    for (size_t u = 0; u < b->n_users; u++) next_job(&b->users[u]);
    tl_status st = tl_http_loop_run(b->loop, &until, e);
    if (st == TL_CANCELLED) {
        b->stop = true;
        b->out->end = TL_LOAD_CANCELLED;
        (void)snprintf(b->out->reason, sizeof b->out->reason, "cancelled after %zu of %zu requests", b->out->started, b->n);
        tl_err_clear(e);
        st = TL_OK;
    }
    for (size_t i = 0; i < b->n; i++)
        if (b->out->items[i].started && b->reqs[i]) decode(b, i);
    was_it_the_engine(b);
    return st;
}

tl_status tl_load_run(tl_load_result *out, const tl_load_job *jobs, size_t n, const tl_load_opts *opts, tl_err *e) {
    tl_status st = TL_OK;
    block b = {.jobs = jobs, .n = n, .o = opts, .out = out};
    *out = (tl_load_result){0};
    if (!opts->url && !opts->engine) return tl_fail(e, TL_INVALID, "a block of requests needs a URL or an engine");
    b.n_users = opts->users ? opts->users : 1;
    b.max_in_a_row = opts->max_failures ? opts->max_failures : 3;
    out->items = tl_xalloc((n ? n : 1) * sizeof *out->items);
    out->n = n;
    for (size_t i = 0; i < n; i++) tl_request_init(&out->items[i].request);
    b.reqs = tl_xalloc((n ? n : 1) * sizeof *b.reqs);
    b.users = tl_xalloc(b.n_users * sizeof *b.users);
    for (size_t u = 0; u < b.n_users; u++) b.users[u] = (user){.b = &b, .job = SIZE_MAX};
    TRY(tl_http_loop_new(&b.loop, e));
    TRY(prepare(&b, e));
    TRY(run(&b, e));
out:
    for (size_t i = 0; i < n; i++) tl_http_free(b.reqs[i]);
    tl_http_loop_free(b.loop);
    free(b.reqs);
    free(b.users);
    return st;
}

void tl_load_result_free(tl_load_result *r) {
    for (size_t i = 0; i < r->n; i++) tl_request_free(&r->items[i].request);
    free(r->items);
    *r = (tl_load_result){0};
}

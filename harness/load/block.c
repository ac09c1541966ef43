/* A block of requests over one http loop. All requests are prepared before the first one starts: their bodies are
 * copied and their logs allocated and touched then. What happens between two requests of a user is: open a connection,
 * start. The open comes as late as that because llama-server's HTTP layer gives each open connection a thread and closes
 * idle ones after seconds, so connections cannot be opened for a whole block ahead. For the same reason an open loop, and
 * a user that thinks, open the connection shortly before the start.
 *
 * Closed loop, open loop, sessions and ramps differ only in when a task is due (schedule.c: who follows whom). */
#include "http/http.h"
#include "load/load_impl.h"
#include "os/os.h"

#include <time.h>

#define TIMEOUT_DEFAULT (600 * TL_S)
#define STALL_DEFAULT (120 * TL_S)
#define CONNECT_LIMIT (10 * TL_S)
#define OPEN_AHEAD (5 * TL_MS)   /* before a start that is known in advance */
#define BEGIN_AHEAD (20 * TL_MS) /* before the first arrival of an open loop: the timers of the schedule are made */
#define ERRORS_FROM 10
#define MEMORY_MAX ((size_t)2 << 30)

typedef struct block block;

typedef struct task { /* a job on its way */
    block *b;
    size_t user;
    uint64_t ready; /* when it could have started at the earliest; 0 = it follows nobody */
    uint64_t due;   /* intended start; 0 = as soon as the connection stands */
    uint64_t opened;
} task;

struct block {
    const tl_load_job *jobs;
    size_t n, n_users;
    const tl_load_opts *o;
    tl_load_result *out;
    tl_http_loop *loop;
    tl_http_req **reqs;
    task *tasks;          /* one a job */
    size_t *heads, *next; /* see tl_load_order */
    size_t n_heads, head;
    size_t in_flight, finished, in_a_row, max_in_a_row;
    uint64_t drain_until; /* 0 = not draining */
    bool stop, user_cancelled;
};

const char *tl_load_end_name(tl_load_end end) {
    static const char *const names[] = {"all", "cancelled", "failures", "engine-ended", "queue-growth", "error-share", "drained"};
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
        .ctx = &b->tasks[i],
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
    for (size_t u = 0; u < b->n_users && u < b->n_heads && !b->o->ramp_ns; u++) tl_http_open(b->reqs[b->heads[u]]);
    const tl_http_until until = {.deadline_ns = tl_clock_now() + CONNECT_LIMIT};
    st = tl_http_loop_run(b->loop, &until, e);
    if (st == TL_TIMEOUT) st = TL_OK; /* it will show as each request's own outcome */
    tl_err_clear(st == TL_OK ? e : NULL);
out:
    free(headers);
    return st;
}

/* ---- during ---- */

static size_t job_of(const task *t) { return (size_t)(t - t->b->tasks); }

static void stop(block *b, tl_load_end end) {
    b->stop = true;
    b->out->end = end;
    if (b->o->drain_ns) b->drain_until = tl_clock_now() + b->o->drain_ns;
}

static bool queue_grew(block *b) {
    if (b->o->kind != TL_LOAD_OPEN || !b->o->max_in_flight || b->in_flight < b->o->max_in_flight) return false;
    stop(b, TL_LOAD_QUEUE);
    (void)snprintf(b->out->reason, sizeof b->out->reason,
                   "%zu requests were unfinished when request %zu was due (limit %zu): the server does not keep up", b->in_flight,
                   b->out->started + 1, b->o->max_in_flight);
    return true;
}

static void launch(task *t) {
    block *b = t->b;
    if (b->stop || queue_grew(b)) return;
    tl_load_result *r = b->out;
    tl_load_item *item = &r->items[job_of(t)];
    uint64_t now = tl_clock_now(), intended = t->due ? t->due : now;
    item->started = true;
    item->worker = t->user;
    item->sequence = r->started++;
    item->gap_ns = t->ready && now > t->ready ? now - t->ready : 0;
    if (r->t_begin == 0) r->t_begin = intended;
    if (r->started == b->n && b->o->drain_ns) b->drain_until = intended + b->o->drain_ns;
    b->in_flight++;
    tl_http_start(b->reqs[job_of(t)], intended);
}

static void launch_due(void *ctx) { launch(ctx); }

static void open_ahead(void *ctx) {
    const task *t = ctx;
    if (!t->b->stop) tl_http_open(t->b->reqs[job_of(t)]);
}

/* A connection on loopback stands at once; over a network the user waits for it here, outside of the request's time. */
static void launch_when_open(void *ctx) {
    task *t = ctx;
    block *b = t->b;
    const tl_http_req *req = b->reqs[job_of(t)];
    uint64_t now = tl_clock_now();
    if (tl_http_is_open(req) || now - t->opened > CONNECT_LIMIT || tl_http_is_done(req))
        launch(t);
    else
        tl_http_loop_at(b->loop, now + TL_MS / 5, launch_when_open, t);
}

/* `due` 0: as soon as it can. */
static void set_off(task *t, uint64_t due) {
    block *b = t->b;
    t->due = due;
    t->opened = tl_clock_now();
    if (due == 0) {
        tl_http_open(b->reqs[job_of(t)]);
        launch_when_open(t);
        return;
    }
    if (due > t->opened + OPEN_AHEAD)
        tl_http_loop_at(b->loop, due - OPEN_AHEAD, open_ahead, t);
    else
        tl_http_open(b->reqs[job_of(t)]);
    tl_http_loop_at(b->loop, due, launch_due, t);
}

static void follow(block *b, size_t job, size_t user, uint64_t end) {
    task *t = &b->tasks[job];
    uint64_t think = b->jobs[job].think_ns, at = b->out->t_schedule + b->jobs[job].at_ns;
    t->user = user;
    t->ready = end + think;
    if (b->o->kind == TL_LOAD_OPEN)
        set_off(t, t->ready = t->ready > at ? t->ready : at);
    else
        set_off(t, think ? t->ready : 0);
}

static void next_job(block *b, size_t done, uint64_t end) {
    if (b->stop) return;
    if (b->next[done] != SIZE_MAX)
        follow(b, b->next[done], b->tasks[done].user, end);
    else if (b->o->kind == TL_LOAD_CLOSED && b->head < b->n_heads)
        follow(b, b->heads[b->head++], b->tasks[done].user, end);
}

static void begin(block *b) {
    bool open = b->o->kind == TL_LOAD_OPEN;
    uint64_t t0 = b->out->t_schedule = tl_clock_now() + (open ? BEGIN_AHEAD : 0);
    size_t first = open ? b->n_heads : b->n_users < b->n_heads ? b->n_users : b->n_heads;
    b->head = first;
    for (size_t i = 0; i < first; i++) {
        task *t = &b->tasks[b->heads[i]];
        t->user = open ? 0 : i;
        if (open)
            set_off(t, t0 + b->jobs[b->heads[i]].at_ns);
        else
            set_off(t, i > 0 && b->o->ramp_ns ? t0 + b->o->ramp_ns / b->n_users * i : 0);
    }
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

static void count_failure(block *b, const tl_http_log *log, size_t job) {
    tl_load_result *r = b->out;
    r->failed++;
    b->in_a_row++;
    if (b->stop) return;
    if (b->o->engine && !tl_engine_attached(b->o->engine) && !tl_engine_alive(b->o->engine)) {
        stop(b, TL_LOAD_ENGINE);
    } else if (b->in_a_row >= b->max_in_a_row) {
        stop(b, TL_LOAD_FAILURES);
    } else if (b->o->abort_error_share > 0 && b->finished >= ERRORS_FROM &&
               (double)r->failed > b->o->abort_error_share * (double)b->finished) {
        stop(b, TL_LOAD_ERRORS);
        (void)snprintf(r->reason, sizeof r->reason, "%zu of %zu requests failed, over the share of %g, last request %zu: %s", r->failed,
                       b->finished, b->o->abort_error_share, job + 1, tl_http_outcome_name(log->outcome));
        return;
    }
    if (!b->stop) return;
    (void)snprintf(r->reason, sizeof r->reason, "%zu failed in a row, last request %zu: %s (HTTP %d) %s", b->in_a_row, job + 1,
                   tl_http_outcome_name(log->outcome), log->status, log->error);
}

static void on_done(tl_http_req *req, void *ctx) {
    const task *t = ctx;
    block *b = t->b;
    size_t job = job_of(t);
    if (!b->out->items[job].started) return;
    const tl_http_log *log = tl_http_result(req);
    uint64_t end = log->t_close_ns ? log->t_close_ns : tl_clock_now();
    if (end > b->out->t_end) b->out->t_end = end;
    b->in_flight--;
    b->finished++;
    if (log->outcome == TL_HTTP_COMPLETE && log->status / 100 == 2)
        b->in_a_row = 0;
    else if (log->outcome == TL_HTTP_ABANDONED)
        b->out->failed++, b->out->cut++;
    else
        count_failure(b, log, job);
    if (b->n_users == 1 && b->o->kind == TL_LOAD_CLOSED) {
        decode(b, job);
        end = tl_clock_now(); /* the pause of the client does not count its own decoding */
    }
    next_job(b, job, end);
}

static bool cancelled(const block *b) { return b->o->cancelled && b->o->cancelled(b->o->ctx); }

/* Asked every 20 ms: true also ends a stopped schedule whose timers are still set, and what drains for too long. */
static bool over(void *ctx) {
    block *b = ctx;
    if (cancelled(b)) return b->user_cancelled = true;
    if (b->stop && b->in_flight == 0) return true;
    return b->drain_until && tl_clock_now() > b->drain_until;
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

static void ended_early(block *b) {
    tl_load_result *r = b->out;
    bool aborted = b->stop;
    b->stop = true;
    if (b->user_cancelled) {
        r->end = TL_LOAD_CANCELLED;
        (void)snprintf(r->reason, sizeof r->reason, "cancelled after %zu of %zu requests", r->started, b->n);
    } else if (!aborted) {
        r->end = TL_LOAD_DRAINED;
        (void)snprintf(r->reason, sizeof r->reason, "%zu requests were still running %g s after the last start and were cut off",
                       r->cut, (double)b->o->drain_ns / 1e9);
    }
}

static double cpu_s(void) { return (double)clock() / (double)CLOCKS_PER_SEC; }

static tl_status run(block *b, tl_err *e) {
    const tl_http_until until = {.cancelled = over, .ctx = b};
    if (cancelled(b)) {
        b->out->end = TL_LOAD_CANCELLED;
        (void)snprintf(b->out->reason, sizeof b->out->reason, "cancelled before the first request");
        return TL_OK;
    }
    double cpu = cpu_s();
    begin(b);
    tl_status st = tl_http_loop_run(b->loop, &until, e);
    b->out->client_cpu_s = cpu_s() - cpu;
    if (st == TL_CANCELLED) {
        ended_early(b);
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
    b.tasks = tl_xalloc((n ? n : 1) * sizeof *b.tasks);
    for (size_t i = 0; i < n; i++) b.tasks[i] = (task){.b = &b};
    b.heads = tl_xalloc((n ? n : 1) * sizeof *b.heads);
    b.next = tl_xalloc((n ? n : 1) * sizeof *b.next);
    b.n_heads = tl_load_order(b.heads, b.next, jobs, n);
    TRY(tl_http_loop_new(&b.loop, e));
    TRY(prepare(&b, e));
    TRY(run(&b, e));
out:
    for (size_t i = 0; i < n; i++) tl_http_free(b.reqs[i]);
    tl_http_loop_free(b.loop);
    free(b.reqs);
    free(b.tasks);
    free(b.heads);
    free(b.next);
    return st;
}

void tl_load_result_free(tl_load_result *r) {
    for (size_t i = 0; i < r->n; i++) tl_request_free(&r->items[i].request);
    free(r->items);
    *r = (tl_load_result){0};
}

/* One visit of a cell. The order is fixed: engine ready and idle, warm-up after a fresh start, bandwidth probe, the
 * measured block, bandwidth probe, commit. The probes stand as close to the requests as they can, because a shared host's
 * bandwidth drifts. */
#include "run/run_impl.h"

#include <math.h>

bool run_stopping(const tl_run_ctx *c) {
    const tl_run_hooks *h = &c->spec->hooks;
    if (h->cancelled != NULL && h->cancelled(h->ctx)) return true;
    return c->deadline != 0 && tl_clock_now() > c->deadline;
}

int64_t run_t(const tl_run_ctx *c, uint64_t t_ns) {
    if (t_ns == TL_T_NONE || t_ns == 0) return TL_STORE_NONE;
    return (int64_t)(t_ns - c->anchor);
}

static bool block_cancelled(void *ctx) {
    tl_run_block *b = ctx;
    const tl_run_hooks *h = &b->c->spec->hooks; /* the budget lets a block finish */
    return h->cancelled != NULL && h->cancelled(h->ctx);
}

/* Bytes per second by the ruler, or null when no probe was asked for or it failed. */
static json_t *probe(tl_run_ctx *c) {
    if (c->membw == NULL) return json_null();
    tl_membw_result *r = tl_xalloc(sizeof *r);
    tl_err e = {0};
    json_t *out = NULL;
    if (tl_membw_read(r, c->membw, c->probe_threads, c->probe_ns, &e) == TL_OK)
        out = json_pack("{s:f, s:i, s:I, s:s}", "bytes_per_s", r->bytes_per_s, "threads", (int)r->threads, "passes",
                        (json_int_t)r->n, "kernel", tl_membw_kernel(c->membw));
    else
        tl_log(TL_LOG_WARN, "bandwidth probe: %s", e.msg);
    free(r);
    return out ? out : json_null();
}

/* Requests are committed as they finish: what on_item gets is on disk before the next request of a single user starts. */
typedef struct sink {
    tl_run_block *b;
    const tl_load_job *jobs;
    const tl_load_result *r;
    const tl_run_load *load;
    const char *role;
    tl_status st;
    tl_err e;
} sink;

static void on_item(void *ctx, const tl_load_item *item, size_t job) {
    sink *s = ctx;
    const char *role = run_item_counts(s->load, s->r->t_schedule, item) ? s->role : "warmup";
    if (s->st == TL_OK) s->st = run_store_request(s->b, item, &s->jobs[job], role, &s->e);
}

static bool sink_cancelled(void *ctx) {
    sink *s = ctx;
    return s->st != TL_OK || block_cancelled(s->b);
}

static tl_status send_jobs(tl_load_result *out, tl_run_block *b, tl_run_jobs *j, const tl_run_load *load, const char *role, tl_err *e) {
    sink s = {.b = b, .jobs = j->v, .r = out, .load = load, .role = role};
    j->opts.engine = b->engine->engine;
    j->opts.cancelled = sink_cancelled;
    j->opts.on_item = on_item;
    j->opts.ctx = &s;
    tl_status st = tl_load_run(out, j->v, j->n, &j->opts, e);
    if (st == TL_OK && s.st != TL_OK) {
        st = s.st;
        if (e != NULL) *e = s.e;
    }
    if (st == TL_OK && out->end == TL_LOAD_CANCELLED) st = tl_fail(e, TL_CANCELLED, "stopped by a signal");
    if (st == TL_OK && (out->end == TL_LOAD_FAILURES || out->end == TL_LOAD_ENGINE)) st = tl_fail(e, TL_ENGINE, "%s", out->reason);
    return st;
}

static tl_status check_window(const tl_load_result *r, const tl_run_load *load, tl_err *e) {
    for (size_t i = 0; i < r->n; i++)
        if (run_item_counts(load, r->t_schedule, &r->items[i])) return TL_OK;
    if (run_ended_by_rule(r)) return TL_OK;
    tl_fail(e, TL_INVALID, "no request is left in the window: all %zu were sent in its first %.3g s, which do not count", r->started, (double)load->edge_ns / 1e9);
    return tl_remedy(e, "make schedule.ramp_s or settle_s shorter, or send more requests");
}

tl_status run_send(tl_load_result *out, tl_run_block *b, const tl_run_load *load, const char *role, tl_err *e) {
    tl_run_ctx *c = b->c;
    tl_run_jobs j = {0};
    bool measured = tl_str_eq(role, "measured");
    bool prime = measured && tl_str_eq(tl_json_str(b->cell->workload, "cache", "cold"), "warm");
    tl_status st = run_jobs_make(&j, b, load, c->spec->plan->seed + (uint64_t)c->trials * 1000 + (uint64_t)b->blocks++ * 100000, e);
    for (size_t i = 0; !measured && i < j.n; i++) j.v[i].cache = TL_CACHE_ANY; /* not judged: whatever the cache holds */
    if (st == TL_OK && prime) { /* a warm cache is primed by sending the same bodies before */
        tl_load_result first = {0};
        st = send_jobs(&first, b, &j, load, "warmup", e);
        tl_load_result_free(&first);
    }
    if (st == TL_OK) st = send_jobs(out, b, &j, load, role, e);
    if (st == TL_OK) st = check_window(out, load, e);
    run_jobs_free(&j);
    return st;
}

static tl_status warm_up(tl_run_block *b, size_t n, tl_err *e) {
    tl_load_result r = {0};
    tl_run_load load = {.requests = n, .users = 1};
    tl_status st = run_send(&r, b, &load, "warmup", e);
    tl_load_result_free(&r);
    return st;
}

/* Aborted: the cell's answer is that it does not keep up. */
static void note_abort(tl_run_block *b, const tl_load_result *r) {
    if (!run_ended_by_rule(r)) return;
    json_object_set_new(b->facts, "aborted", json_pack("{s:s, s:s}", "rule", tl_load_end_name(r->end), "reason", r->reason));
    b->aborted = true;
}

static tl_status measure(tl_run_block *b, tl_err *e) {
    const json_t *w = b->cell->workload;
    tl_load_result r = {0};
    tl_run_load load;
    tl_status st = run_load_of(&load, w, e);
    if (st == TL_OK && load.search) return run_search(b, &load, e);
    if (st == TL_OK) st = run_send(&r, b, &load, "measured", e);
    if (st == TL_OK) note_abort(b, &r);
    if (st == TL_OK && (load.scheduled || load.users > 1)) json_object_set_new(b->facts, "window", run_window(&r, &load));
    if (st == TL_OK) json_object_set_new(b->facts, "ruler", run_ruler(b->c, &r, &load, tl_json_num(b->facts, "window.lateness.p99_ms", NAN)));
    tl_load_result_free(&r);
    return st;
}

static tl_status finish_trial(tl_run_block *b, tl_status so_far, tl_err *e) {
    tl_run_ctx *c = b->c;
    json_t *after = json_pack("{s:o, s:o}", "bandwidth", probe(c), "machine", tl_host_light());
    json_object_set(b->facts, "bandwidth_after", json_object_get(after, "bandwidth"));
    char verified[64];
    snprintf(verified, sizeof verified, b->cached == 0 ? "cold (0 cached)" : "%.0f tokens cached", b->cached);
    const char *why = so_far != TL_OK && e != NULL ? e->msg : tl_json_str(b->facts, "aborted.reason", NULL);
    tl_store_trial_end end = {.trial_id = b->trial_id, .finished = so_far == TL_OK, .reason = why,
                              .cache_verified = b->ok ? verified : NULL, .t_end_ns = run_t(c, tl_clock_now()),
                              .probe_after = after, .facts = b->facts};
    tl_err mine = {0};
    tl_status st = tl_store_trial_finish(c->spec->store, &end, &mine);
    json_decref(after);
    if (so_far == TL_OK && st != TL_OK && e != NULL) *e = mine;
    return so_far != TL_OK ? so_far : st;
}

tl_status run_visit(tl_run_ctx *c, size_t cell, int64_t round, tl_err *e) {
    tl_run_block b = {.c = c, .cell = &c->cells[cell], .cold_ok = true};
    const json_t *w = b.cell->workload;
    bool fresh;
    tl_status st = run_pool_get(&b.engine, &fresh, c->pool, b.cell->model, b.cell->settings, e);
    if (st != TL_OK) return st;
    b.dialect = tl_dialect_find(tl_json_str(w, "dialect", ""));
    if (b.dialect == NULL) return tl_fail(e, TL_INVALID, "unknown dialect '%s'", tl_json_str(w, "dialect", ""));
    st = tl_engine_wait_idle(b.engine->engine, 30 * TL_S, e);
    if (st != TL_OK && st != TL_MISSING) return st;
    json_t *before = json_pack("{s:o}", "machine", tl_host_light());
    tl_store_trial t = {.run_id = c->id, .cell_key = b.cell->key, .round = round, .position = c->trials,
                        .engine_id = b.engine->id, .cache_claimed = tl_json_str(w, "cache", "cold"),
                        .t_start_ns = run_t(c, tl_clock_now()), .probe_before = before};
    st = tl_store_trial_start(b.trial_id, c->spec->store, &t, e);
    json_decref(before);
    if (st != TL_OK) return st;
    b.rates = json_array();
    b.facts = json_pack("{s:O}", "decode_rates", b.rates);
    size_t warmup = (size_t)c->spec->plan->warmup;
    if (fresh && warmup > 0) st = warm_up(&b, warmup, e);
    json_object_set_new(b.facts, "bandwidth_before", probe(c));
    if (st == TL_OK) st = measure(&b, e);
    st = finish_trial(&b, st, e);
    if (st == TL_OK && !tl_json_bool(b.facts, "ruler.ok", true)) {
        c->ruler_short = true;
        st = tl_fail(e, TL_REFUSED, "the ruler was too short: %s", tl_json_str(b.facts, "ruler.reason", ""));
    }
    if (b.aborted) c->cells[cell].finished = c->cells[cell].aborted = true;
    c->trials++;
    c->requests += b.ok + b.bad;
    c->failed += b.bad;
    json_decref(b.rates);
    json_decref(b.facts);
    return st;
}

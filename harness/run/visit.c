/* One visit of a cell. The order is fixed: engine ready and idle, warm-up after a fresh start, bandwidth probe, the
 * measured block, bandwidth probe, commit. The probes stand as close to the requests as they can, because a shared host's
 * bandwidth drifts. */
#include "run/run_impl.h"

#include <math.h>

typedef struct block {
    tl_run_ctx *c;
    const tl_run_cell *cell;
    tl_run_engine *engine;
    const tl_dialect *dialect;
    char trial_id[TL_STORE_ID];
    size_t n, users;
    int64_t stored; /* requests of this trial so far */
    bool cold_ok;
    double cached;  /* tokens the engine says it did not compute, over all measured requests */
    json_t *rates;  /* decode rate of each good measured request, beside the probes */
    json_t *before; /* bandwidth probe right before the measured block */
    size_t ok, bad;
} block;

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
    block *b = ctx;
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

/* ---- request bodies ------------------------------------------------------------------------------------------- */

static void generation(tl_gen *g, const json_t *w, uint64_t seed) {
    tl_gen_init(g);
    g->max_tokens = tl_json_int(w, "output_tokens", 128);
    g->temperature = tl_json_num(w, "temperature", 0);
    g->seed = (int64_t)(seed & 0x7fffffff);
    g->ignore_eos = tl_json_bool(w, "ignore_eos", false);
    bool chat = tl_str_eq(tl_json_str(w, "kind", ""), "chat"), ollama = tl_str_eq(tl_json_str(w, "dialect", ""), "ollama-chat");
    if (!ollama) g->cache_prompt = tl_str_eq(tl_json_str(w, "cache", "cold"), "cold") ? 0 : 1;
    if (chat) g->enable_thinking = tl_json_bool(w, "thinking", true);
}

static tl_status make_body(tl_load_job *job, block *b, const json_t *w, uint64_t seed, tl_err *e) {
    size_t n = (size_t)tl_json_int(w, "prompt_tokens", 1);
    int32_t *ids = tl_xalloc(n * sizeof *ids);
    tl_buf text, body;
    tl_buf_init(&text, 0);
    tl_buf_init(&body, 0);
    tl_gen g;
    generation(&g, w, seed);
    tl_prompt p = {0};
    bool exact = tl_str_eq(tl_json_str(w, "kind", ""), "completion");
    if (exact) {
        tl_load_pool_draw(ids, n, b->engine->prompts);
        p.tokens = ids;
        p.n_tokens = n;
    } else {
        tl_load_pool_text(&text, n, b->engine->prompts);
        p.text = text.p;
    }
    tl_status st = tl_dialect_body(&body, b->dialect, &p, &g, e);
    job->dialect = b->dialect;
    job->body_len = body.len;
    job->body = tl_buf_take(&body);
    job->max_tokens = g.max_tokens;
    job->prompt_n = exact ? (int64_t)n : -1;
    job->cache = tl_str_eq(tl_json_str(w, "cache", "cold"), "cold") ? TL_CACHE_COLD : TL_CACHE_WARM;
    job->timeout_ns = (uint64_t)(tl_json_num(w, "timeout_s", 600) * 1e9);
    tl_buf_free(&text);
    tl_buf_free(&body);
    free(ids);
    return st;
}

/* ---- storing ---------------------------------------------------------------------------------------------------- */

static tl_store_event *store_events(const tl_run_ctx *c, const tl_request *r) {
    tl_store_event *ev = tl_xalloc((r->n_events + 1) * sizeof *ev);
    for (size_t i = 0; i < r->n_events; i++) {
        ev[i] = (tl_store_event){run_t(c, r->events[i].t_ns), r->events[i].kind, r->events[i].text_bytes, r->events[i].read_index};
    }
    return ev;
}

static tl_status store_request(block *b, const tl_load_item *item, const tl_load_job *job, const char *role, tl_err *e) {
    const tl_request *r = &item->request;
    const tl_run_ctx *c = b->c;
    char text_sha[65], id[TL_STORE_ID];
    tl_metrics m;
    tl_metrics_of(&m, r);
    json_t *metrics = tl_metrics_json(&m, false), *counters = tl_request_json(r), *flags = json_array();
    for (unsigned i = 0; i < TL_LOAD_FLAG_COUNT; i++)
        if (item->flags & (1u << i)) json_array_append_new(flags, json_string(tl_load_flag_name(i)));
    json_object_set_new(metrics, "load_flags", flags);
    tl_buf words;
    tl_buf_init(&words, 0);
    tl_buf_add(&words, r->reasoning, r->reasoning_len);
    tl_buf_add(&words, r->text, r->text_len);
    tl_sha256_hex(words.p, words.len, text_sha);
    tl_buf_free(&words);
    json_t *body = NULL;
    if (tl_json_parse(&body, job->body, job->body_len, "request body", NULL) != TL_OK) body = NULL;
    char prompt_sha[65];
    tl_sha256_hex(job->body, job->body_len, prompt_sha);
    tl_store_event *ev = store_events(c, r);
    bool ok = m.outcome == TL_REQ_OK;
    tl_store_request row = {
        .trial_id = b->trial_id, .position = b->stored, .role = role, .session = (int64_t)item->worker,
        .outcome = tl_outcome_name(m.outcome),
        .error_class = ok ? NULL : (r->error_class ? r->error_class : tl_outcome_name(m.outcome)),
        .error_text = ok ? NULL : (r->error_text ? r->error_text : m.reason),
        .http_status = r->http_status ? r->http_status : TL_STORE_NONE,
        .t_intended_ns = run_t(c, r->t_intended), .t_sent_ns = run_t(c, r->t_sent),
        .t_connected_ns = run_t(c, r->t_connected), .t_headers_ns = run_t(c, r->t_headers),
        .t_first_byte_ns = run_t(c, r->t_first_byte), .t_close_ns = run_t(c, r->t_close),
        .connects = r->connects == TL_ABSENT ? TL_STORE_NONE : r->connects, .body = body, .prompt_sha256 = prompt_sha,
        .counters = counters, .metrics = metrics, .finish_reason = r->finish_reason, .text_sha256 = text_sha,
        .last_object = r->raw_last, .events = ev, .events_n = r->n_events,
    };
    tl_status st = tl_store_request_add(id, c->spec->store, &row, e);
    if (tl_str_eq(role, "measured")) {
        if (ok && isfinite(m.decode_rate)) json_array_append_new(b->rates, json_real(m.decode_rate));
        if (m.cached_n > 0) b->cached += (double)m.cached_n;
        if (item->flags & TL_LOAD_NOT_COLD) b->cold_ok = false;
        ok ? b->ok++ : b->bad++;
    }
    b->stored++;
    tl_metrics_free(&m);
    json_decref(metrics);
    json_decref(counters);
    json_decref(body);
    free(ev);
    return st;
}

/* Requests are committed as they finish: what on_item gets is on disk before the next request of a single user starts,
 * and within the end of the block for many users. */
typedef struct sink {
    block *b;
    const tl_load_job *jobs;
    const char *role;
    tl_status st;
    tl_err e;
} sink;

static void on_item(void *ctx, const tl_load_item *item, size_t job) {
    sink *s = ctx;
    if (s->st == TL_OK) s->st = store_request(s->b, item, &s->jobs[job], s->role, &s->e);
}

static bool sink_cancelled(void *ctx) {
    sink *s = ctx;
    return s->st != TL_OK || block_cancelled(s->b);
}

static void free_jobs(tl_load_job *jobs, size_t n) {
    for (size_t i = 0; i < n; i++) free((char *)jobs[i].body);
    free(jobs);
}

/* Sends n requests of the cell's workload. A warm cache is primed by sending the same bodies before. */
static tl_status send_block(block *b, size_t n, const char *role, tl_err *e) {
    tl_run_ctx *c = b->c;
    const json_t *w = b->cell->workload;
    tl_load_job *jobs = tl_xalloc(n * sizeof *jobs);
    tl_status st = TL_OK;
    tl_load_result r = {0};
    for (size_t i = 0; i < n && st == TL_OK; i++)
        st = make_body(&jobs[i], b, w, c->spec->plan->seed + (uint64_t)c->trials * 1000 + i, e);
    bool measured = tl_str_eq(role, "measured"), warm = tl_str_eq(tl_json_str(w, "cache", "cold"), "warm");
    if (!measured) /* not judged: whatever the cache holds */
        for (size_t i = 0; i < n; i++) jobs[i].cache = TL_CACHE_ANY;
    sink s = {.b = b, .jobs = jobs, .role = role};
    tl_load_opts o = {.engine = b->engine->engine, .users = b->users, .cancelled = sink_cancelled, .on_item = on_item, .ctx = &s};
    for (int pass = warm && measured ? 0 : 1; pass < 2 && st == TL_OK; pass++) {
        s.role = pass == 0 ? "warmup" : role;
        tl_load_result_free(&r);
        st = tl_load_run(&r, jobs, n, &o, e);
        if (st == TL_OK && s.st != TL_OK) {
            st = s.st;
            if (e != NULL) *e = s.e;
        }
        if (st == TL_OK && r.end == TL_LOAD_CANCELLED) st = tl_fail(e, TL_CANCELLED, "stopped by a signal");
        if (st == TL_OK && r.end != TL_LOAD_ALL) st = tl_fail(e, TL_ENGINE, "%s", r.reason);
    }
    tl_load_result_free(&r);
    free_jobs(jobs, n);
    return st;
}

static tl_status finish_trial(block *b, tl_status so_far, tl_err *e) {
    tl_run_ctx *c = b->c;
    json_t *after = json_pack("{s:o, s:o}", "bandwidth", probe(c), "machine", tl_host_light());
    json_t *facts = json_pack("{s:O, s:O?, s:O}", "decode_rates", b->rates, "bandwidth_before", b->before, "bandwidth_after",
                              json_object_get(after, "bandwidth"));
    char verified[64];
    snprintf(verified, sizeof verified, b->cached == 0 ? "cold (0 cached)" : "%.0f tokens cached", b->cached);
    tl_store_trial_end end = {.trial_id = b->trial_id, .finished = so_far == TL_OK,
                              .reason = so_far == TL_OK || e == NULL ? NULL : e->msg,
                              .cache_verified = b->ok ? verified : NULL, .t_end_ns = run_t(c, tl_clock_now()),
                              .probe_after = after, .facts = facts};
    tl_err mine = {0};
    tl_status st = tl_store_trial_finish(c->spec->store, &end, &mine);
    json_decref(after);
    json_decref(facts);
    if (so_far == TL_OK && st != TL_OK && e != NULL) *e = mine;
    return so_far != TL_OK ? so_far : st;
}

tl_status run_visit(tl_run_ctx *c, size_t cell, int64_t round, tl_err *e) {
    block b = {.c = c, .cell = &c->cells[cell], .cold_ok = true};
    const json_t *w = b.cell->workload;
    bool fresh;
    tl_status st = run_pool_get(&b.engine, &fresh, c->pool, b.cell->model, b.cell->settings, e);
    if (st != TL_OK) return st;
    b.dialect = tl_dialect_find(tl_json_str(w, "dialect", ""));
    if (b.dialect == NULL) return tl_fail(e, TL_INVALID, "unknown dialect '%s'", tl_json_str(w, "dialect", ""));
    b.users = (size_t)tl_json_int(w, "concurrency", 1);
    b.n = (size_t)tl_json_int(w, "requests", 1) * b.users;
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
    size_t warmup = (size_t)c->spec->plan->warmup;
    if (fresh && warmup > 0) st = send_block(&b, warmup, "warmup", e);
    b.before = probe(c);
    if (st == TL_OK) st = send_block(&b, b.n, "measured", e);
    st = finish_trial(&b, st, e);
    c->trials++;
    c->requests += b.ok + b.bad;
    c->failed += b.bad;
    json_decref(b.rates);
    json_decref(b.before);
    return st;
}

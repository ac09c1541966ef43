/* The conductor. Everything that can be known is stored before the first request: machine, model, script, plan,
 * revision, environment, bandwidth, predictions. Then the rounds; then the values. Whatever stops it leaves a run with
 * an honest state that --resume continues. */
#include "run/run_impl.h"
#include "sample/sample.h"
#include "vcs/vcs.h"

#include <math.h>

void tl_run_result_free(tl_run_result *r) {
    if (r == NULL) return;
    json_decref(r->accept);
    r->accept = NULL;
}

/* ---- before the first request ------------------------------------------------------------------------------------ */

static json_t *model_facts(const json_t *models) {
    json_t *out = json_object(), *m;
    const char *name;
    json_object_foreach((json_t *)models, name, m)
        json_object_set(out, name, json_object_get(m, "sha256"));
    return out;
}

static tl_status store_models(const tl_run_spec *s, tl_err *e) {
    const char *name;
    json_t *m;
    json_object_foreach((json_t *)s->models, name, m) {
        const char *sha = tl_json_str(m, "sha256", NULL);
        if (sha == NULL) return tl_fail(e, TL_INTERNAL, "model '%s' was not written before the run", name);
        tl_status st = tl_store_model(s->store, sha, name, tl_json_int(m, "bytes", 0), json_object_get(m, "facts"), e);
        if (st != TL_OK) return st;
    }
    return TL_OK;
}

static tl_status store_patch(tl_run_ctx *c, const tl_vcs *v, tl_err *e) {
    if (v->patch == NULL) return TL_OK;
    char id[TL_STORE_ID];
    tl_store_artifact a = {.run_id = c->id, .name = "dirty.patch", .mime = "text/x-diff", .body = v->patch, .len = v->patch_len};
    return tl_store_artifact_add(id, c->spec->store, &a, e);
}

static tl_status start_run(tl_run_ctx *c, tl_err *e) {
    const tl_run_spec *s = c->spec;
    char machine_id[65], experiment_id[65], offset[8];
    json_t *env = tl_run_environment(), *git = NULL, *facts = NULL, *fixed = NULL;
    tl_vcs v = {0};
    char *plan = tl_plan_text(s->plan);
    const char *claim = tl_run_machine_match(c->machine, s->profiles);
    tl_status st = TL_OK;
    int64_t wall = tl_clock_wall_ns();
    tl_clock_utc_offset(offset, wall);
    TRY(tl_vcs_read(&v, s->root, e));
    git = tl_vcs_json(&v);
    fixed = tl_run_machine_fixed(c->machine);
    TRY(tl_store_machine(machine_id, s->store, claim ? claim : "this", fixed, e));
    size_t streams = 1;
    for (size_t i = 0; i < c->n_cells; i++) {
        size_t n = tl_run_planned_streams(c->cells[i].workload);
        streams = n > streams ? n : streams;
    }
    TRY(tl_run_calibration_newest(&c->calibration, s->store, machine_id, streams, s->tally, e));
    facts = json_pack("{s:s, s:o, s:s?, s:O}", "clock", tl_clock_name(), "models", model_facts(s->models), "endpoint", s->endpoint,
                      "calibration", c->calibration);
    json_t *about = json_pack("{s:O?, s:O?, s:s, s:I}", "title", s->plan->title, "question", s->plan->question, "map",
                              s->plan->map, "day", (json_int_t)s->plan->day);
    st = tl_store_experiment(experiment_id, s->store, s->plan->id, s->script_text, about, e);
    json_decref(about);
    if (st != TL_OK) goto out;
    TRY(store_models(s, e));
    tl_store_run row = {.kind = s->kind, .experiment_id = experiment_id, .machine_id = machine_id, .machine_claim = claim,
                        .plan = plan, .seed = s->plan->seed, .argv = s->argv, .env = env, .tally = s->tally, .git = git,
                        .facts = facts, .rerun_of = s->rerun_of, .wall_ns = wall, .utc_offset = offset};
    TRY(tl_store_run_start(c->id, s->store, &row, e));
    TRY(tl_store_run_lock(s->store, c->id, e));
    TRY(store_patch(c, &v, e));
    TRY(tl_store_telemetry_add(s->store, c->id, NULL, "machine.before", 0, c->machine, e));
    for (size_t i = 0; i < c->n_cells; i++) {
        json_t *cf = json_pack("{s:O, s:O, s:s}", "workload", c->cells[i].workload, "settings", c->cells[i].settings, "label",
                               s->plan->cells[i].label);
        tl_store_cell cell = {.run_id = c->id, .key = c->cells[i].key, .position = (int64_t)i, .axes = c->cells[i].params,
                              .model_sha256 = tl_json_str(c->cells[i].model, "sha256", NULL), .facts = cf};
        st = tl_store_cell_add(s->store, &cell, e);
        json_decref(cf);
        if (st != TL_OK) goto out;
    }
out:
    tl_vcs_free(&v);
    free(plan);
    json_decref(env);
    json_decref(git);
    json_decref(facts);
    json_decref(fixed);
    return st;
}

/* The first probe: by thread count, and the best count's figure as the bandwidth of the predictions. */
static tl_status first_probe(tl_run_ctx *c, tl_err *e) {
    enum { POINTS = 16, REPETITIONS = 5 };
    tl_run_probe_point p[POINTS];
    size_t n = 0, best = 0;
    if (!c->spec->plan->probe_bandwidth) return TL_OK;
    tl_status st = tl_membw_new(&c->membw, tl_cpu_count(), 0, e);
    if (st != TL_OK) return st;
    st = tl_run_probe_threads(p, &n, POINTS, &best, c->membw, REPETITIONS, c->probe_ns, e);
    if (st != TL_OK) return st;
    c->probe_threads = p[best].threads;
    json_t *points = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(points, json_pack("{s:i, s:f, s:f, s:f}", "threads", (int)p[i].threads, "bytes_per_s", p[i].median,
                                                "lo", p[i].lo, "hi", p[i].hi));
    json_t *source = json_pack("{s:o, s:i, s:I, s:s, s:s}", "by_threads", points, "threads", (int)p[best].threads, "array_bytes",
                               (json_int_t)tl_membw_array_bytes(c->membw), "kernel", tl_membw_kernel(c->membw), "how",
                               "summing an array larger than the caches");
    tl_run_measured m = {.name = "bandwidth", .unit = "GB/s", .statistic = "median",
                         .interval = "95 % bootstrap of the median over the probes", .number = p[best].median / 1e9,
                         .lo = p[best].lo / 1e9, .hi = p[best].hi / 1e9, .n = (int64_t)p[best].n, .source = source};
    st = run_store_measured(&c->bandwidth, c, &m, e);
    json_decref(source);
    return st;
}

static tl_status store_predictions(tl_run_ctx *c, tl_err *e) {
    if (c->bandwidth == NULL) return TL_OK;
    for (size_t i = 0; i < c->n_cells; i++) {
        tl_status st = run_store_prediction(c, i, e);
        if (st != TL_OK) {
            tl_wrap(e, "predicting cell %s", c->spec->plan->cells[i].label);
            return st;
        }
    }
    return TL_OK;
}

/* ---- resume -------------------------------------------------------------------------------------------------------- */

static tl_status check_same_plan(tl_run_ctx *c, tl_err *e) {
    char *stored = NULL, *mine = tl_plan_text(c->spec->plan);
    tl_status st = tl_store_run_plan(&stored, c->spec->store, c->id, e);
    if (st == TL_OK && strcmp(stored, mine) != 0) {
        st = tl_fail(e, TL_CONFLICT, "run %s was made from another plan: the experiment or its --set options have changed", c->id);
        tl_remedy(e, "resume with the same script and options, or start a new run");
    }
    free(stored);
    free(mine);
    return st;
}

static tl_status check_same_models(tl_run_ctx *c, tl_err *e) {
    json_t *show = NULL, *m;
    const char *name;
    tl_status st = tl_store_run_show(&show, c->spec->store, c->id, e);
    if (st != TL_OK) return st;
    json_object_foreach((json_t *)c->spec->models, name, m) {
        const json_t *then = json_object_get(tl_json_at(show, "facts.models"), name);
        const char *sha = tl_json_str(m, "sha256", "");
        if (st == TL_OK && then != NULL && !tl_str_eq(json_string_value(then), sha)) {
            st = tl_fail(e, TL_CONFLICT, "model '%s' has changed since run %s: digest %.12s then, %.12s now", name, c->id,
                         json_string_value(then), sha);
            tl_remedy(e, "put the old file back, or start a new run");
        }
    }
    json_decref(show);
    return st;
}

/* A cell that a rule of its schedule aborted has had its answer; the run keeps the calibration that it began with. */
static tl_status mark_aborted(tl_run_ctx *c, tl_err *e) {
    json_t *show = NULL, *t;
    size_t k;
    tl_status st = tl_store_run_show(&show, c->spec->store, c->id, e);
    if (st != TL_OK) return st;
    c->calibration = json_incref(tl_json_at(show, "facts.calibration"));
    json_array_foreach(json_object_get(show, "trials"), k, t) {
        if (tl_json_at(t, "facts.aborted") == NULL) continue;
        for (size_t i = 0; i < c->n_cells; i++)
            if (tl_str_eq(c->cells[i].key, tl_json_str(t, "cell", ""))) c->cells[i].finished = c->cells[i].aborted = true;
    }
    json_decref(show);
    return TL_OK;
}

/* Predictions and the first bandwidth were stored when the run began: they are read, never made again. */
static tl_status read_back(tl_run_ctx *c, tl_err *e) {
    json_t *rows = NULL;
    tl_status st = tl_store_values(&rows, c->spec->store, c->id, NULL, "bandwidth", e);
    if (st != TL_OK) return st;
    const json_t *r = json_array_get(rows, 0);
    if (r != NULL) {
        c->probe_threads = (unsigned)tl_json_int(r, "source.threads", 1);
        c->bandwidth = json_pack("{s:f, s:O, s:O, s:s, s:s, s:s, s:{s:s, s:s}}", "value", tl_json_num(r, "number", NAN), "lo",
                                 json_object_get(r, "lo"), "hi", json_object_get(r, "hi"), "unit", "GB/s", "label", "measured",
                                 "name", "bandwidth", "source", "run", c->id, "value_id", tl_json_str(r, "id", ""));
        if (c->spec->plan->probe_bandwidth) st = tl_membw_new(&c->membw, tl_cpu_count(), 0, e);
    }
    json_decref(rows);
    return st;
}

static tl_status mark_done_rounds(tl_run_ctx *c, tl_err *e) {
    json_t *blocks = NULL, *b;
    size_t k;
    tl_status st = tl_store_blocks(&blocks, c->spec->store, c->id, e);
    if (st != TL_OK) return st;
    json_array_foreach(blocks, k, b) {
        c->trials += tl_json_int(b, "visits", 1);
        if (!tl_json_bool(b, "finished", false)) continue;
        for (size_t i = 0; i < c->n_cells; i++)
            if (tl_str_eq(c->cells[i].key, tl_json_str(b, "cell", ""))) {
                int64_t round = tl_json_int(b, "round", 0);
                if (round + 1 > c->cells[i].rounds_done) c->cells[i].rounds_done = round + 1;
            }
    }
    json_decref(blocks);
    return TL_OK;
}

static tl_status resume_run(tl_run_ctx *c, tl_err *e) {
    tl_status st = TL_OK;
    char offset[8], full[65];
    tl_store_phase state;
    TRY(tl_store_find(full, c->spec->store, "run", c->spec->resume, e));
    snprintf(c->id, sizeof c->id, "%.26s", full);
    TRY(tl_store_run_state_get(&state, c->spec->store, c->id, e));
    if (state == TL_STORE_DONE || state == TL_STORE_INVALID) {
        st = tl_fail(e, TL_CONFLICT, "run %s is %s: there is nothing to resume", c->id, tl_store_phase_name(state));
        goto out;
    }
    TRY(check_same_plan(c, e));
    TRY(check_same_models(c, e));
    TRY(tl_store_run_lock(c->spec->store, c->id, e));
    int64_t wall = tl_clock_wall_ns();
    tl_clock_utc_offset(offset, wall);
    tl_store_state t = {.state = TL_STORE_RESUMED, .wall_ns = wall, .utc_offset = offset};
    TRY(tl_store_run_state(c->spec->store, c->id, &t, e));
    TRY(mark_done_rounds(c, e));
    TRY(mark_aborted(c, e));
    TRY(read_back(c, e));
out:
    return st;
}

/* ---- the rounds ---------------------------------------------------------------------------------------------------- */

static tl_status check_enough(tl_run_ctx *c, size_t i, tl_err *e) {
    const tl_plan *p = c->spec->plan;
    tl_run_cell *cell = &c->cells[i];
    if (cell->rounds_done >= p->repeats_max) cell->finished = true;
    if (cell->rounds_done < p->repeats_min || cell->finished) return TL_OK;
    if (cell->search) { /* each brings its own certainty */
        cell->finished = true;
        return TL_OK;
    }
    double *x = NULL;
    size_t n = 0;
    tl_status st = tl_store_samples(&x, &n, NULL, c->spec->store, c->id, cell->key, "decode_rate", e);
    if (st == TL_OK) cell->finished = tl_stat_ci_narrow_enough(x, n, p->until_ci, 1);
    free(x);
    return st;
}

static void show_progress(tl_run_ctx *c, tl_progress *p, size_t now) {
    double done = 0, total = 0;
    for (size_t i = 0; i < c->n_cells; i++) {
        done += (double)c->cells[i].rounds_done;
        total += (double)(c->cells[i].finished ? c->cells[i].rounds_done : c->spec->plan->repeats_max);
    }
    p->total = total;
    tl_progress_set(p, done, c->spec->plan->cells[now].label, (double)tl_clock_now() / 1e9);
}

static tl_status one_round(tl_run_ctx *c, int64_t round, tl_progress *p, bool *more, tl_err *e) {
    size_t *order = tl_xalloc(c->n_cells * sizeof *order);
    tl_plan_order(c->spec->plan, (uint64_t)round, order);
    tl_status st = TL_OK;
    *more = false;
    for (size_t k = 0; k < c->n_cells && st == TL_OK; k++) {
        size_t i = order[k];
        tl_run_cell *cell = &c->cells[i];
        if (cell->finished || cell->rounds_done > round) {
            *more = *more || !cell->finished;
            continue;
        }
        if (run_stopping(c)) {
            st = tl_fail(e, TL_CANCELLED, "stopped before round %" PRId64 " of %s", round + 1, c->spec->plan->cells[i].label);
            break;
        }
        show_progress(c, p, i);
        st = run_visit(c, i, round, e);
        if (st != TL_OK) {
            if (st != TL_CANCELLED) tl_wrap(e, "cell %s, round %" PRId64, c->spec->plan->cells[i].label, round + 1);
            break;
        }
        cell->rounds_done = round + 1;
        st = check_enough(c, i, e);
        *more = *more || !cell->finished;
    }
    free(order);
    return st;
}

static tl_status rounds(tl_run_ctx *c, tl_err *e) {
    tl_progress p;
    tl_progress_start(&p, c->spec->plan->id, 1, (double)tl_clock_now() / 1e9);
    c->progress = &p;
    tl_status st = TL_OK;
    for (size_t i = 0; i < c->n_cells && st == TL_OK; i++) st = check_enough(c, i, e);
    bool more = true;
    for (int64_t round = 0; round < c->spec->plan->repeats_max && more && st == TL_OK; round++)
        st = one_round(c, round, &p, &more, e);
    tl_progress_end(&p);
    c->progress = NULL;
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static tl_status make_cells(tl_run_ctx *c, tl_err *e) {
    const tl_plan *p = c->spec->plan;
    c->n_cells = p->n_cells;
    c->cells = tl_xalloc(p->n_cells * sizeof *c->cells);
    for (size_t i = 0; i < p->n_cells; i++) {
        const tl_plan_cell *pc = &p->cells[i];
        const json_t *model = pc->model ? json_object_get(c->spec->models, pc->model) : NULL;
        if (pc->model != NULL && model == NULL) return tl_fail(e, TL_INTERNAL, "model '%s' was not resolved", pc->model);
        if (model == NULL && c->spec->endpoint == NULL) {
            tl_fail(e, TL_INVALID, "experiment '%s' names no model, so no engine can be started", p->id);
            return tl_remedy(e, "give it an axis `model`, or attach to a running server with --endpoint URL");
        }
        c->cells[i] = (tl_run_cell){.key = pc->key, .params = pc->params, .workload = pc->workload, .settings = pc->settings,
                                    .model = model};
        tl_run_load load;
        tl_status st = run_load_of(&load, pc->workload, e);
        if (st != TL_OK) return tl_wrap(e, "cell %s", pc->label), st;
        c->cells[i].search = load.search;
    }
    return TL_OK;
}

/* The state that the run is left in. Its own failure must not hide the first error. */
static void record_end(tl_run_ctx *c, tl_status st, const tl_err *e) {
    tl_store_state t = {.state = st == TL_OK ? TL_STORE_DONE : c->ruler_short ? TL_STORE_INVALID : st == TL_CANCELLED ? TL_STORE_INTERRUPTED : TL_STORE_FAILED,
                        .t_ns = (int64_t)(tl_clock_now() - c->anchor), .reason = st == TL_OK ? NULL : e->msg};
    json_t *after = tl_host_snapshot();
    tl_err mine = {0};
    if (tl_store_telemetry_add(c->spec->store, c->id, NULL, "machine.after", t.t_ns, after, &mine) != TL_OK ||
        tl_store_run_state(c->spec->store, c->id, &t, &mine) != TL_OK)
        tl_log(TL_LOG_WARN, "the end of run %s could not be stored: %s", c->id, mine.msg);
    tl_store_run_unlock(c->spec->store, c->id);
    json_decref(after);
}

static void release(tl_run_ctx *c) {
    run_pool_free(c->pool);
    tl_membw_free(c->membw);
    for (size_t i = 0; i < c->n_cells; i++) {
        json_decref(c->cells[i].facts);
        json_decref(c->cells[i].bytes_per_token);
    }
    free(c->cells);
    json_decref(c->bandwidth);
    json_decref(c->calibration);
    json_decref(c->machine);
    if (c->log_dir != NULL && tl_dir_remove(c->log_dir, NULL) != TL_OK) tl_log(TL_LOG_WARN, "%s was not removed", c->log_dir);
    free(c->log_dir);
}

tl_status tl_run(tl_run_result *out, const tl_run_spec *spec, tl_err *e) {
    tl_err own = {0};
    if (e == NULL) e = &own;
    memset(out, 0, sizeof *out);
    tl_run_ctx c = {.spec = spec, .anchor = tl_clock_now(), .probe_ns = (tl_ns)spec->plan->probe_ms * TL_MS, .probe_threads = 1};
    if (spec->budget != 0) c.deadline = c.anchor + spec->budget;
    tl_status st = make_cells(&c, e);
    if (st == TL_OK) st = tl_dir_temp(&c.log_dir, "tally-run", e);
    if (st == TL_OK) {
        c.machine = tl_host_snapshot();
        c.pool = run_pool_new(spec, c.id, c.log_dir, c.machine);
        st = spec->resume ? resume_run(&c, e) : start_run(&c, e);
        bool begun = st == TL_OK;
        if (begun && !spec->resume) st = first_probe(&c, e);
        if (st == TL_OK && !spec->resume) st = store_predictions(&c, e);
        if (st == TL_OK) st = rounds(&c, e);
        run_pool_free(c.pool); /* engines end, and their logs are stored, before the run gets its last state */
        c.pool = NULL;
        if (st == TL_OK) st = run_summary(&c, out, e);
        if (begun) record_end(&c, st, e);
        if (begun) snprintf(out->id, sizeof out->id, "%s", c.id);
    }
    out->requests = c.requests;
    out->failed = c.failed;
    out->interrupted = st == TL_CANCELLED;
    release(&c);
    return st;
}

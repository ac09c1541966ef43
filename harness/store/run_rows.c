/* A run: its start, its states, its lock, its cells and trials. */
#include "store/store_impl.h"

static const char *const phases[] = {"started", "resumed", "interrupted", "failed", "done", "invalid"};

const char *tl_store_phase_name(tl_store_phase p) {
    return (size_t)p < TL_COUNT(phases) ? phases[p] : "unknown";
}

static tl_status state_row(tl_store *s, const char *run_id, int64_t session, const tl_store_state *t, tl_err *e) {
    char *facts = store_json_text(t->facts);
    const tl_col cols[] = {col_text(run_id), col_int(session), col_text(tl_store_phase_name(t->state)), col_int(t->t_ns),
                           col_text(t->reason), col_text(facts), col_int(t->wall_ns ? t->wall_ns : TL_STORE_NONE),
                           col_text(t->utc_offset)};
    tl_status st = store_row(s, "run_state", cols, TL_COUNT(cols), e);
    free(facts);
    return st;
}

tl_status tl_store_run_start(char id[TL_STORE_ID], tl_store *s, const tl_store_run *r, tl_err *e) {
    char sha[65], *argv = store_json_text(r->argv), *env = store_json_text(r->env), *tally = store_json_text(r->tally), *git = store_json_text(r->git),
                  *facts = store_json_text(r->facts);
    tl_os_ulid(id);
    tl_sha256_hex(r->plan ? r->plan : "", r->plan ? strlen(r->plan) : 0, sha);
    const tl_col cols[] = {col_text(id), col_text(r->kind), col_text(r->experiment_id), col_text(r->machine_id),
                           col_text(r->machine_claim), col_int(r->simulated), col_text(r->plan),
                           col_text(r->plan_sha256 ? r->plan_sha256 : sha), {.kind = TL_COL_INT, .i = (int64_t)r->seed},
                           col_text(argv), col_text(env), col_text(tally), col_text(git), col_text(facts), col_text(r->rerun_of),
                           col_int(r->wall_ns), col_text(r->utc_offset)};
    tl_status st = store_write_begin(s, e);
    if (st == TL_OK) {
        st = store_row(s, "run", cols, TL_COUNT(cols), e);
        tl_store_state started = {.state = TL_STORE_STARTED};
        if (st == TL_OK) st = state_row(s, id, 0, &started, e);
        st = store_write_end(s, st, e);
    }
    free(argv);
    free(env);
    free(tally);
    free(git);
    free(facts);
    return st;
}

/* The newest state and session of a run. */
static tl_status newest(tl_store_phase *phase, int64_t *session, tl_store *s, const char *run_id, tl_err *e) {
    sqlite3_stmt *st = NULL;
    tl_status status = store_prepare(&st, s, "SELECT state, session FROM run_state WHERE run = ? ORDER BY seq DESC LIMIT 1", e);
    if (status != TL_OK) return status;
    sqlite3_bind_text(st, 1, run_id, -1, SQLITE_STATIC);
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(st, 0);
        for (size_t i = 0; i < TL_COUNT(phases); i++)
            if (tl_str_eq(phases[i], name)) *phase = (tl_store_phase)i;
        *session = sqlite3_column_int64(st, 1);
    } else
        status = rc == SQLITE_DONE ? tl_fail(e, TL_NOT_FOUND, "no run %s", run_id) : store_sql_fail(s, rc, "run_state", e);
    sqlite3_finalize(st);
    return status;
}

static bool legal(tl_store_phase from, tl_store_phase to) {
    if (from == TL_STORE_INVALID) return false;
    if (to == TL_STORE_INVALID) return true;
    bool running = from == TL_STORE_STARTED || from == TL_STORE_RESUMED;
    if (to == TL_STORE_RESUMED) return running || from == TL_STORE_INTERRUPTED || from == TL_STORE_FAILED;
    return running && (to == TL_STORE_INTERRUPTED || to == TL_STORE_FAILED || to == TL_STORE_DONE);
}

tl_status tl_store_run_state(tl_store *s, const char *run_id, const tl_store_state *t, tl_err *e) {
    tl_store_phase now = TL_STORE_STARTED;
    int64_t session = 0;
    tl_status st = store_write_begin(s, e);
    if (st != TL_OK) return st;
    st = newest(&now, &session, s, run_id, e);
    if (st == TL_OK && !legal(now, t->state))
        st = tl_fail(e, TL_CONFLICT, "run %s is %s and cannot become %s", run_id, tl_store_phase_name(now), tl_store_phase_name(t->state));
    if (st == TL_OK) st = state_row(s, run_id, session + (t->state == TL_STORE_RESUMED), t, e);
    return store_write_end(s, st, e);
}

/* ---- lock: a file beside the database, held by the operating system for this process ---- */

tl_status tl_store_run_lock(tl_store *s, const char *run_id, tl_err *e) {
    char *path = tl_xprintf("%s.%s.lock", s->path, run_id);
    tl_lock *lock = NULL;
    tl_status st = tl_lock_take(&lock, path, e);
    if (st == TL_CONFLICT) tl_wrap(e, "run %s is being run by another tally", run_id);
    if (st == TL_OK) {
        tl_store_lock l = {.lock = lock};
        snprintf(l.run, sizeof l.run, "%s", run_id);
        TL_PUSH(s->locks, s->n_locks, s->cap_locks, l);
    }
    free(path);
    return st;
}

void tl_store_run_unlock(tl_store *s, const char *run_id) {
    for (size_t i = 0; i < s->n_locks; i++) {
        if (!tl_str_eq(s->locks[i].run, run_id)) continue;
        char *path = tl_xprintf("%s.%s.lock", s->path, run_id);
        tl_err ignored = {0};
        if (tl_file_remove(path, &ignored) != TL_OK) tl_log(TL_LOG_DEBUG, "%s", ignored.msg); /* while it is held */
        tl_lock_release(s->locks[i].lock);
        s->locks[i] = s->locks[--s->n_locks];
        free(path);
        return;
    }
}

/* ---- cells and trials ---- */

tl_status tl_store_cell_add(tl_store *s, const tl_store_cell *c, tl_err *e) {
    char *axes = store_json_text(c->axes), *facts = store_json_text(c->facts);
    const tl_col cols[] = {col_text(c->run_id), col_text(c->key), col_int(c->position), col_text(axes ? axes : "{}"),
                           col_text(c->model_sha256), col_text(facts)};
    tl_status st = store_write_begin(s, e);
    if (st == TL_OK) st = store_write_end(s, store_row(s, "cell", cols, TL_COUNT(cols), e), e);
    free(axes);
    free(facts);
    return st;
}

tl_status tl_store_trial_start(char id[TL_STORE_ID], tl_store *s, const tl_store_trial *t, tl_err *e) {
    char *before = store_json_text(t->probe_before);
    tl_store_phase phase = TL_STORE_STARTED;
    int64_t session = 0;
    tl_os_ulid(id);
    tl_status st = store_write_begin(s, e);
    if (st == TL_OK) {
        st = newest(&phase, &session, s, t->run_id, e);
        const tl_col cols[] = {col_text(id), col_text(t->run_id), col_text(t->cell_key), col_int(t->round), col_int(t->position),
                               col_int(session), col_text(t->engine_id), col_text(t->cache_claimed), col_int(t->t_start_ns),
                               col_text(before)};
        if (st == TL_OK) st = store_row(s, "trial", cols, TL_COUNT(cols), e);
        st = store_write_end(s, st, e);
    }
    free(before);
    return st;
}

tl_status tl_store_trial_finish(tl_store *s, const tl_store_trial_end *t, tl_err *e) {
    char *after = store_json_text(t->probe_after), *facts = store_json_text(t->facts);
    const tl_col cols[] = {col_text(t->trial_id), col_int(t->finished), col_text(t->reason), col_text(t->cache_verified),
                           col_int(t->t_end_ns), col_text(after), col_text(facts)};
    tl_status st = store_write_begin(s, e);
    if (st == TL_OK) st = store_write_end(s, store_row(s, "trial_end", cols, TL_COUNT(cols), e), e);
    free(after);
    free(facts);
    return st;
}

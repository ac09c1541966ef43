/* What runs did: lists, one run in full, and what resume needs. */
#include "store/query_impl.h"

/* The newest state of run r, by its column. */
#define STATE(column) "(SELECT " column " FROM run_state WHERE run = r.id ORDER BY seq DESC LIMIT 1)"
#define REQUESTS_OF_RUN "FROM request q JOIN trial t ON t.id = q.trial WHERE t.run = r.id"

tl_status tl_store_runs(json_t **out, tl_store *s, const char *experiment, int64_t limit, tl_err *e) {
    char count[24];
    snprintf(count, sizeof count, "%" PRId64, limit > 0 ? limit : (int64_t)-1);
    return query_all(out, s,
                     "SELECT r.id, r.kind, x.name AS experiment, coalesce(m.name, substr(m.id, 1, 12)) AS machine, "
                     "r.claim, " STATE("state") " AS state, " STATE("reason") " AS reason, r.wall_ns, r.utc_offset, "
                     "(SELECT count(*) FROM cell WHERE run = r.id) AS cells, "
                     "(SELECT count(*) FROM trial WHERE run = r.id) AS trials, "
                     "(SELECT count(*) " REQUESTS_OF_RUN ") AS requests, "
                     "(SELECT count(*) " REQUESTS_OF_RUN " AND q.outcome = 'ok') AS ok, "
                     "(SELECT count(*) " REQUESTS_OF_RUN " AND q.outcome <> 'ok') AS failed "
                     "FROM run r LEFT JOIN experiment x ON x.id = r.experiment LEFT JOIN machine m ON m.id = r.machine "
                     "WHERE ?1 IS NULL OR x.name = ?1 ORDER BY r.seq DESC LIMIT CAST(?2 AS INTEGER)",
                     NULL, (const char *const[]){experiment, count}, 2, e);
}

/* Sets out.key to the one row that the query gives, or to null. */
static tl_status add_one(json_t *out, const char *key, tl_store *s, const char *sql, const char *id, tl_err *e) {
    json_t *rows = NULL;
    tl_status st = query_all(&rows, s, sql, "facts", &id, 1, e);
    if (st != TL_OK) return st;
    json_t *row = json_array_get(rows, 0);
    json_object_set(out, key, row ? row : json_null());
    json_decref(rows);
    return TL_OK;
}

typedef struct part {
    const char *key, *json_columns, *sql;
} part;

static const part parts[] = {
    {"states", "facts",
     "SELECT session, state, t_ns, reason, facts, wall_ns, utc_offset FROM run_state WHERE run = ?1 ORDER BY seq"},
    {"engines", "facts",
     "SELECT n.id, n.name, n.facts FROM engine n JOIN (SELECT engine, min(seq) AS first FROM trial "
     "WHERE run = ?1 GROUP BY engine) u ON u.engine = n.id ORDER BY u.first"},
    {"models", "facts",
     "SELECT m.id, m.name, m.bytes, m.facts FROM model m JOIN (SELECT model, min(position) AS first FROM cell "
     "WHERE run = ?1 GROUP BY model) u ON u.model = m.id ORDER BY u.first"},
    {"cells", "axes facts",
     "SELECT key, position, axes, model AS model_sha256, facts FROM cell WHERE run = ?1 ORDER BY position"},
    {"trials", "probe_before finished probe_after facts",
     "SELECT t.id, t.cell, t.round, t.position, t.session, t.engine, t.cache_claimed, t.t_start_ns, t.probe_before, "
     "CASE d.finished WHEN 1 THEN 'true' WHEN 0 THEN 'false' END AS finished, d.reason, d.cache_verified, d.t_end_ns, "
     "d.probe_after, d.facts, (SELECT count(*) FROM request WHERE trial = t.id) AS requests, "
     "(SELECT count(*) FROM request WHERE trial = t.id AND outcome = 'ok') AS ok, "
     "(SELECT count(*) FROM request WHERE trial = t.id AND outcome <> 'ok') AS failed "
     "FROM trial t LEFT JOIN trial_end d ON d.trial = t.id WHERE t.run = ?1 ORDER BY t.seq"},
    {"values", VALUE_JSON, "SELECT " VALUE_COLUMNS " FROM value v WHERE v.run = ?1 ORDER BY v.seq DESC"},
    {"artifacts", NULL,
     "SELECT id, trial, name, mime, sha256, bytes FROM artifact WHERE run = ?1 ORDER BY seq"},
    {"retractions", NULL,
     "SELECT x.id, x.value, v.name, x.why, x.instead, x.wall_ns FROM value v JOIN retraction x ON x.value = v.id "
     "WHERE v.run = ?1 ORDER BY x.seq DESC"},
};

static tl_status add_sources(json_t *out, tl_store *s, const char *run_id, tl_err *e) {
    json_t *rows = NULL, *row, *names = json_array();
    size_t i;
    tl_status st = query_all(&rows, s, "SELECT source FROM telemetry WHERE run = ?1 GROUP BY source ORDER BY min(seq)",
                             NULL, &run_id, 1, e);
    json_array_foreach(rows, i, row) json_array_append(names, json_object_get(row, "source"));
    json_object_set_new(out, "telemetry", names);
    json_decref(rows);
    return st;
}

static tl_status show_in_snapshot(json_t **out, tl_store *s, const char *run_id, tl_err *e) {
    json_t *run = NULL, *rows = NULL;
    tl_status st = TL_OK;
    TRY(query_one(&run, s,
                  "SELECT id, kind, " STATE("state") " AS state, " STATE("reason") " AS reason, wall_ns, utc_offset, "
                  "claim, CASE simulated WHEN 1 THEN 'true' ELSE 'false' END AS simulated, plan_sha256, seed, argv, env, "
                  "tally, git, facts, rerun_of, experiment, machine FROM run r WHERE id = ?1",
                  "simulated argv env tally git facts", "run", run_id, e));
    char *experiment = tl_xstrdup(tl_json_str(run, "experiment", NULL)), *machine = tl_xstrdup(tl_json_str(run, "machine", NULL));
    st = add_one(run, "experiment", s, "SELECT id, name, facts FROM experiment WHERE id = ?1", experiment, e);
    if (st == TL_OK) st = add_one(run, "machine", s, "SELECT id, name, facts FROM machine WHERE id = ?1", machine, e);
    free(experiment);
    free(machine);
    for (size_t i = 0; st == TL_OK && i < TL_COUNT(parts); i++) {
        st = query_all(&rows, s, parts[i].sql, parts[i].json_columns, &run_id, 1, e);
        if (st == TL_OK) json_object_set_new(run, parts[i].key, rows);
    }
    if (st == TL_OK) st = add_sources(run, s, run_id, e);
    if (st == TL_OK) {
        *out = run;
        run = NULL;
    }
out:
    json_decref(run);
    return st;
}

tl_status tl_store_run_show(json_t **out, tl_store *s, const char *run_id, tl_err *e) {
    *out = NULL;
    tl_status st = query_snapshot(s, e);
    if (st != TL_OK) return st;
    st = show_in_snapshot(out, s, run_id, e);
    query_snapshot_end(s);
    return st;
}

tl_status tl_store_run_state_get(tl_store_phase *out, tl_store *s, const char *run_id, tl_err *e) {
    char *state = NULL;
    tl_status st = query_text(&state, s, "SELECT state FROM run_state WHERE run = ?1 ORDER BY seq DESC LIMIT 1", "run",
                              run_id, e);
    if (st != TL_OK) return st;
    st = TL_INTERNAL;
    for (int i = 0; i <= TL_STORE_INVALID; i++)
        if (tl_str_eq(state, tl_store_phase_name((tl_store_phase)i))) {
            *out = (tl_store_phase)i;
            st = TL_OK;
        }
    if (st != TL_OK) st = tl_fail(e, TL_INVALID, "%s: run %s has the unknown state '%s'", s->path, run_id, state);
    free(state);
    return st;
}

tl_status tl_store_run_plan(char **out, tl_store *s, const char *run_id, tl_err *e) {
    return query_text(out, s, "SELECT plan FROM run WHERE id = ?1", "run", run_id, e);
}

tl_status tl_store_experiment_script(char **out, tl_store *s, const char *experiment_id, tl_err *e) {
    return query_text(out, s, "SELECT script FROM experiment WHERE id = ?1", "experiment", experiment_id, e);
}

tl_status tl_store_blocks(json_t **out, tl_store *s, const char *run_id, tl_err *e) {
    return query_all(out, s,
                     "SELECT t.cell, t.round, CASE WHEN max(coalesce(d.finished, 0)) = 1 THEN 'true' ELSE 'false' END "
                     "AS finished, count(*) AS visits, "
                     "sum((SELECT count(*) FROM request WHERE trial = t.id AND role = 'measured')) AS measured, "
                     "sum((SELECT count(*) FROM request WHERE trial = t.id AND role = 'measured' AND outcome = 'ok')) AS ok "
                     "FROM trial t LEFT JOIN trial_end d ON d.trial = t.id LEFT JOIN cell c ON c.run = t.run AND "
                     "c.key = t.cell WHERE t.run = ?1 GROUP BY t.cell, t.round ORDER BY min(c.position), t.round",
                     "finished", &run_id, 1, e);
}

tl_status tl_store_requests(json_t **out, tl_store *s, const char *run_id, const char *cell_key, tl_err *e) {
    char *sql = tl_xprintf("SELECT q.id, q.trial, t.cell, t.round, q.position, q.role, q.session, q.outcome, "
                           "q.error_class, q.error_text, q.http_status, q.t_intended_ns, q.t_sent_ns, q.t_connected_ns, "
                           "q.t_headers_ns, q.t_first_byte_ns, q.t_close_ns, q.connects, q.body, q.prompt_sha256, "
                           "q.counters, q.metrics, q.finish_reason, q.text_sha256, q.last_object "
                           "FROM trial t JOIN request q ON q.trial = t.id WHERE t.run = ?1%s ORDER BY q.seq",
                           cell_key ? " AND t.cell = ?2" : "");
    tl_status st = query_all(out, s, sql, "body counters metrics", (const char *const[]){run_id, cell_key},
                             cell_key ? 2 : 1, e);
    free(sql);
    return st;
}

/* The JSON key itself when the request has it; else times are integers of ns under NAME_ns and people mean ms. */
static bool metric_of(double *out, const char *text, size_t len, const char *metric) {
    json_t *m = NULL;
    if (text == NULL || tl_json_parse(&m, text, len, "metrics", NULL) != TL_OK) return false;
    const json_t *v = json_object_get(m, metric);
    double scale = 1;
    if (v == NULL) {
        char *ns = tl_xprintf("%s_ns", metric);
        v = json_object_get(m, ns);
        scale = 1e6;
        free(ns);
    }
    bool number = json_is_number(v);
    if (number) *out = json_number_value(v) / scale;
    json_decref(m);
    return number;
}

tl_status tl_store_samples(double **out, size_t *n, size_t *undefined, tl_store *s, const char *run_id,
                           const char *cell_key, const char *metric, tl_err *e) {
    char *sql = tl_xprintf("SELECT q.metrics FROM trial t JOIN request q ON q.trial = t.id WHERE t.run = ?1%s AND "
                           "q.role = 'measured' AND q.outcome = 'ok' ORDER BY q.seq",
                           cell_key ? " AND t.cell = ?2" : "");
    sqlite3_stmt *q = NULL;
    double *v = NULL, x = 0;
    size_t cap = 0, got = 0, without = 0;
    bool more = false;
    tl_status st = TL_OK;
    *out = NULL;
    *n = 0;
    TRY(query_open(&q, s, sql, (const char *const[]){run_id, cell_key}, cell_key ? 2 : 1, e));
    TRY(query_step(&more, s, q, e));
    while (more) {
        const char *text = (const char *)sqlite3_column_text(q, 0);
        if (metric_of(&x, text, (size_t)sqlite3_column_bytes(q, 0), metric)) TL_PUSH(v, got, cap, x);
        else without++;
        TRY(query_step(&more, s, q, e));
    }
    *out = v;
    *n = got;
    if (undefined != NULL) *undefined = without;
    v = NULL;
out:
    sqlite3_finalize(q);
    free(v);
    free(sql);
    return st;
}

tl_status tl_store_request_events(tl_store_event **out, size_t *n, tl_store *s, const char *request_id, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    *out = NULL;
    *n = 0;
    TRY(query_open(&q, s,
                   "SELECT v.body, v.count FROM request q LEFT JOIN events v ON v.request = q.id WHERE q.id = ?1",
                   &request_id, 1, e));
    TRY(query_step(&more, s, q, e));
    if (!more) st = tl_fail(e, TL_NOT_FOUND, "%s holds no request '%s'", s->path, request_id ? request_id : "");
    if (!more || sqlite3_column_type(q, 0) == SQLITE_NULL) goto out;
    TRY(tl_store_events_decode(out, n, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), e));
    if ((int64_t)*n != sqlite3_column_int64(q, 1)) {
        st = tl_fail(e, TL_INVALID, "%s: request %s: %zu events where %lld were stored", s->path, request_id, *n,
                     sqlite3_column_int64(q, 1));
        free(*out);
        *out = NULL;
        *n = 0;
    }
out:
    if (st != TL_OK && e != NULL && e->remedy[0] == 0 && st == TL_INVALID) tl_remedy(e, "`tally verify` says what was changed");
    sqlite3_finalize(q);
    return st;
}

/* Values with what they were computed from, and what belongs to a run beside its requests. */
#include "store/query_impl.h"

tl_status tl_store_values(json_t **out, tl_store *s, const char *run_id, const char *cell_key, const char *name,
                          tl_err *e) {
    const char *args[3];
    size_t n = 0;
    tl_buf sql;
    tl_buf_init(&sql, 0);
    tl_buf_str(&sql, "SELECT " VALUE_COLUMNS " FROM value v WHERE true");
    /* only the filters that are set: an index can serve them then */
    if (run_id != NULL) args[n++] = run_id, tl_buf_fmt(&sql, " AND v.run = ?%zu", n);
    if (cell_key != NULL) args[n++] = cell_key, tl_buf_fmt(&sql, " AND v.cell = ?%zu", n);
    if (name != NULL) args[n++] = name, tl_buf_fmt(&sql, " AND v.name = ?%zu", n);
    tl_buf_str(&sql, " ORDER BY v.seq DESC");
    tl_status st = query_all(out, s, sql.p, VALUE_JSON, args, n, e);
    tl_buf_free(&sql);
    return st;
}

/* ---- trees ---- */

#define DEPTH_MAX 64
#define NODES_MAX 20000u

typedef struct tree {
    tl_store *s;
    json_t *labels;
    size_t nodes;
} tree;

static void add_label(json_t *labels, const json_t *value) {
    const char *label = tl_json_str(value, "label", "");
    size_t i;
    json_t *have;
    json_array_foreach(labels, i, have) if (tl_str_eq(json_string_value(have), label)) return;
    json_array_append_new(labels, json_string(label));
}

/* Recursion is bounded: tally cannot write a circle, but a foreign file can hold one, and values that share inputs
 * can unfold to more rows than there are. */
static tl_status unfold(tree *t, json_t *value, size_t depth, tl_err *e) {
    json_t *inputs = NULL, *in;
    size_t i;
    const char *id = tl_json_str(value, "id", "");
    if (depth > DEPTH_MAX)
        return tl_fail(e, TL_LIMIT, "value %s lies more than %d levels deep: its inputs may go in a circle", id, DEPTH_MAX);
    if (++t->nodes > NODES_MAX) return tl_fail(e, TL_LIMIT, "the value unfolds to more than %u inputs", NODES_MAX);
    tl_status st = query_all(&inputs, t->s,
                             "SELECT " VALUE_COLUMNS ", x.role FROM edge x JOIN value v ON v.id = x.input "
                             "WHERE x.value = ?1 ORDER BY x.position",
                             VALUE_JSON, &id, 1, e);
    if (st != TL_OK) return st;
    json_object_set_new(value, "inputs", inputs);
    if (json_array_size(inputs) == 0) add_label(t->labels, value);
    json_array_foreach(inputs, i, in) if (st == TL_OK) st = unfold(t, in, depth + 1, e);
    return st;
}

tl_status tl_store_value_tree(json_t **out, tl_store *s, const char *value_id, tl_err *e) {
    tree t = {.s = s, .labels = json_array()};
    json_t *value = NULL;
    *out = NULL;
    tl_status st = query_snapshot(s, e);
    if (st == TL_OK) {
        st = query_one(&value, s, "SELECT " VALUE_COLUMNS " FROM value v WHERE v.id = ?1", VALUE_JSON, "value", value_id, e);
        if (st == TL_OK) st = unfold(&t, value, 0, e);
        query_snapshot_end(s);
    }
    if (st == TL_OK) {
        json_object_set(value, "labels", t.labels);
        *out = value;
        value = NULL;
    }
    json_decref(value);
    json_decref(t.labels);
    return st;
}

/* ---- what lies beside the requests ---- */

tl_status tl_store_artifacts(json_t **out, tl_store *s, const char *run_id, tl_err *e) {
    return query_all(out, s, "SELECT id, run, trial, name, mime, sha256, bytes FROM artifact WHERE run = ?1 ORDER BY seq",
                     NULL, &run_id, 1, e);
}

tl_status tl_store_artifact_body(tl_buf *out, tl_store *s, const char *artifact_id, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    TRY(query_open(&q, s, "SELECT body FROM artifact WHERE id = ?1", &artifact_id, 1, e));
    TRY(query_step(&more, s, q, e));
    if (!more) {
        st = tl_fail(e, TL_NOT_FOUND, "%s holds no artifact '%s'", s->path, artifact_id ? artifact_id : "");
        goto out;
    }
    const void *body = sqlite3_column_blob(q, 0);
    size_t n = (size_t)sqlite3_column_bytes(q, 0);
    if (n > 0) tl_buf_add(out, body, n);
    if (out->over) st = tl_fail(e, TL_LIMIT, "artifact %s has %zu bytes, the limit is %zu", artifact_id, n, out->max);
out:
    sqlite3_finalize(q);
    return st;
}

tl_status tl_store_telemetry(json_t **out, tl_store *s, const char *run_id, tl_err *e) {
    return query_all(out, s, "SELECT trial, source, t_ns, body FROM telemetry WHERE run = ?1 ORDER BY seq", "body", &run_id,
                     1, e);
}

tl_status tl_store_figures(json_t **out, tl_store *s, const char *report, tl_err *e) {
    return query_all(out, s,
                     "SELECT id, report, name, run, spec_sha256, data_sha256, render_sha256, spec, data, facts, command "
                     "FROM figure WHERE ?1 IS NULL OR report = ?1 ORDER BY seq DESC",
                     "spec data facts", &report, 1, e);
}

tl_status tl_store_retractions(json_t **out, tl_store *s, tl_err *e) {
    return query_all(out, s,
                     "SELECT x.id, x.value, v.name, v.run, x.why, x.instead, x.wall_ns FROM retraction x "
                     "LEFT JOIN value v ON v.id = x.value ORDER BY x.seq DESC",
                     NULL, NULL, 0, e);
}

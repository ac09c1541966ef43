/* Typed inserts of descriptions, requests, artifacts, values, figures and retractions. Each is all or nothing. */
#include "store/store_impl.h"

#include <math.h>

/* JSON columns hold canonical text; kept alive until the row is written. */
typedef struct texts {
    char *v[12];
    size_t n;
} texts;

static tl_col json_col(texts *t, const json_t *j) {
    t->v[t->n] = store_json_text(j);
    return col_text(t->v[t->n++]);
}

static void free_texts(texts *t) {
    for (size_t i = 0; i < t->n; i++) free(t->v[i]);
}

static tl_status write_row(tl_store *s, const char *table, const tl_col *cols, size_t n, tl_err *e) {
    tl_status st = store_write_begin(s, e);
    if (st != TL_OK) return st;
    return store_write_end(s, store_row(s, table, cols, n, e), e);
}

static tl_status exists(bool *out, tl_store *s, const char *table, const char *id, tl_err *e) {
    char sql[96];
    sqlite3_stmt *st = NULL;
    snprintf(sql, sizeof sql, "SELECT 1 FROM %s WHERE id = ?", table);
    tl_status status = store_prepare(&st, s, sql, e);
    if (status != TL_OK) return status;
    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    int rc = sqlite3_step(st);
    *out = rc == SQLITE_ROW;
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? TL_OK : store_sql_fail(s, rc, table, e);
}

/* ---- descriptions, stored once by content ---- */

/* Two processes may store the same description at once: looked up inside the write transaction. */
static tl_status describe_once(tl_store *s, const char *table, const char *id, const tl_col *cols, size_t n, tl_err *e) {
    bool known = false;
    tl_status st = store_write_begin(s, e);
    if (st != TL_OK) return st;
    st = exists(&known, s, table, id, e);
    if (st == TL_OK && !known) st = store_row(s, table, cols, n, e);
    return store_write_end(s, st, e);
}

static tl_status by_facts(char id[65], tl_store *s, const char *table, const char *name, const json_t *facts, tl_err *e) {
    char *text = store_json_text(facts);
    if (text == NULL) return tl_fail(e, TL_INVALID, "%s: no facts", table);
    tl_sha256_hex(text, strlen(text), id);
    const tl_col cols[] = {col_text(id), col_text(name), col_text(text)};
    tl_status st = describe_once(s, table, id, cols, TL_COUNT(cols), e);
    free(text);
    return st;
}

tl_status tl_store_machine(char id[65], tl_store *s, const char *name, const json_t *facts, tl_err *e) {
    return by_facts(id, s, "machine", name, facts, e);
}

tl_status tl_store_engine(char id[65], tl_store *s, const char *name, const json_t *facts, tl_err *e) {
    return by_facts(id, s, "engine", name, facts, e);
}

tl_status tl_store_model(tl_store *s, const char *sha256, const char *name, int64_t bytes, const json_t *facts, tl_err *e) {
    texts t = {0};
    json_t *none = json_object();
    const tl_col cols[] = {col_text(sha256), col_text(name), col_int(bytes), json_col(&t, facts ? facts : none)};
    tl_status st = describe_once(s, "model", sha256, cols, TL_COUNT(cols), e);
    free_texts(&t);
    json_decref(none);
    return st;
}

tl_status tl_store_experiment(char id[65], tl_store *s, const char *name, const char *script, const json_t *facts, tl_err *e) {
    texts t = {0};
    json_t *none = json_object();
    tl_sha256_hex(script, strlen(script), id);
    const tl_col cols[] = {col_text(id), col_text(name), col_text(script), json_col(&t, facts ? facts : none)};
    tl_status st = describe_once(s, "experiment", id, cols, TL_COUNT(cols), e);
    free_texts(&t);
    json_decref(none);
    return st;
}

/* ---- requests ---- */

static tl_status request_row(char id[TL_STORE_ID], tl_store *s, const tl_store_request *r, tl_err *e) {
    texts t = {0};
    tl_os_ulid(id);
    const tl_col cols[] = {col_text(id), col_text(r->trial_id), col_int(r->position), col_text(r->role), col_int(r->session),
                           col_text(r->outcome), col_text(r->error_class), col_text(r->error_text), col_int(r->http_status),
                           col_int(r->t_intended_ns), col_int(r->t_sent_ns), col_int(r->t_connected_ns), col_int(r->t_headers_ns),
                           col_int(r->t_first_byte_ns), col_int(r->t_close_ns), col_int(r->connects), json_col(&t, r->body),
                           col_text(r->prompt_sha256), json_col(&t, r->counters), json_col(&t, r->metrics),
                           col_text(r->finish_reason), col_text(r->text_sha256), col_text(r->last_object)};
    tl_status st = store_row(s, "request", cols, TL_COUNT(cols), e);
    free_texts(&t);
    return st;
}

tl_status tl_store_request_add(char id[TL_STORE_ID], tl_store *s, const tl_store_request *r, tl_err *e) {
    char own[TL_STORE_ID];
    tl_buf events;
    tl_status st = store_write_begin(s, e);
    if (st != TL_OK) return st;
    tl_buf_init(&events, 0);
    st = request_row(own, s, r, e);
    if (st == TL_OK) {
        tl_store_events_encode(&events, r->events, r->events_n);
        const tl_col cols[] = {col_text(own), col_int((int64_t)r->events_n), col_blob(events.p, events.len)};
        st = store_row(s, "events", cols, TL_COUNT(cols), e);
    }
    tl_buf_free(&events);
    if (id != NULL) memcpy(id, own, sizeof own);
    return store_write_end(s, st, e);
}

tl_status tl_store_artifact_add(char id[TL_STORE_ID], tl_store *s, const tl_store_artifact *a, tl_err *e) {
    char sha[65];
    tl_os_ulid(id);
    tl_sha256_hex(a->body ? a->body : "", a->len, sha);
    const tl_col cols[] = {col_text(id), col_text(a->run_id), col_text(a->trial_id), col_text(a->name), col_text(a->mime),
                           col_text(sha), col_int((int64_t)a->len), col_blob(a->body, a->len)};
    return write_row(s, "artifact", cols, TL_COUNT(cols), e);
}

tl_status tl_store_telemetry_add(tl_store *s, const char *run_id, const char *trial_id, const char *source, int64_t t_ns,
                                 const json_t *body, tl_err *e) {
    texts t = {0};
    const tl_col cols[] = {col_text(run_id), col_text(trial_id), col_text(source), col_int(t_ns), json_col(&t, body)};
    tl_status st = write_row(s, "telemetry", cols, TL_COUNT(cols), e);
    free_texts(&t);
    return st;
}

/* ---- values ---- */

static tl_status check_value(const tl_store_value *v, tl_err *e) {
    if (isinf(v->number) || isinf(v->lo) || isinf(v->hi)) return tl_fail(e, TL_INVALID, "value '%s' is infinite", v->name ? v->name : "?");
    if (isnan(v->lo) != isnan(v->hi)) return tl_fail(e, TL_INVALID, "value '%s' has half an interval", v->name ? v->name : "?");
    if (isnan(v->number) && v->null_reason == NULL)
        return tl_fail(e, TL_INVALID, "value '%s' is undefined and says no reason", v->name ? v->name : "?");
    if (v->label == NULL || v->unit == NULL) {
        tl_fail(e, TL_INVALID, "value '%s' has no %s: a number is never naked", v->name ? v->name : "?", v->label ? "unit" : "label");
        return tl_remedy(e, "labels are official, measured, derived and cited; a ratio's unit is \"1\"");
    }
    return TL_OK;
}

tl_status tl_store_value_add(char id[TL_STORE_ID], tl_store *s, const tl_store_value *v, tl_err *e) {
    texts t = {0};
    json_t *none = json_object();
    tl_status st = check_value(v, e);
    if (st == TL_OK) st = store_write_begin(s, e);
    if (st != TL_OK) {
        json_decref(none);
        return st;
    }
    tl_os_ulid(id);
    for (size_t i = 0; i < v->edges_n && st == TL_OK; i++) { /* before the value, so that no circle can be stored */
        const tl_col edge[] = {col_text(id), col_text(v->edges[i].input_id), col_text(v->edges[i].role), col_int((int64_t)i)};
        st = store_row(s, "edge", edge, TL_COUNT(edge), e);
    }
    bool interval = !isnan(v->lo) && !isnan(v->hi);
    const tl_col cols[] = {col_text(id), col_text(v->run_id), col_text(v->cell_key), col_text(v->name), col_text(v->label),
                           col_real(v->number), col_text(isnan(v->number) ? v->null_reason : NULL),
                           interval ? col_real(v->lo) : col_real(NAN), interval ? col_real(v->hi) : col_real(NAN),
                           col_text(interval ? v->interval : NULL), col_int(v->n), col_text(v->unit), col_text(v->statistic),
                           col_text(v->formula), json_col(&t, v->source ? v->source : none)};
    if (st == TL_OK) st = store_row(s, "value", cols, TL_COUNT(cols), e);
    free_texts(&t);
    json_decref(none);
    return store_write_end(s, st, e);
}

tl_status tl_store_figure_add(char id[TL_STORE_ID], tl_store *s, const tl_store_figure *f, tl_err *e) {
    texts t = {0};
    tl_os_ulid(id);
    const tl_col cols[] = {col_text(id), col_text(f->report), col_text(f->name), col_text(f->run_id), col_text(f->spec_sha256),
                           col_text(f->data_sha256), col_text(f->render_sha256), json_col(&t, f->spec), json_col(&t, f->data),
                           json_col(&t, f->facts), col_text(f->command)};
    tl_status st = write_row(s, "figure", cols, TL_COUNT(cols), e);
    free_texts(&t);
    return st;
}

tl_status tl_store_retract(char id[TL_STORE_ID], tl_store *s, const char *value_id, const char *why, const char *instead_id,
                           int64_t wall_ns, tl_err *e) {
    tl_os_ulid(id);
    const tl_col cols[] = {col_text(id), col_text(value_id), col_text(why), col_text(instead_id), col_int(wall_ns)};
    return write_row(s, "retraction", cols, TL_COUNT(cols), e);
}

/* From what a person types to an id, and from an id to a description. */
#include "store/query_impl.h"

#include <ctype.h>

#define CANDIDATES 6

typedef struct kind {
    const char *table;
    bool ulid;
} kind;
static const kind kinds[] = {{"run", true},        {"value", true},    {"figure", true}, {"trial", true},
                             {"request", true},    {"artifact", true}, {"retraction", true}, {"machine", false},
                             {"engine", false},    {"model", false},   {"experiment", false}};

static const kind *kind_of(const char *table) {
    for (size_t i = 0; i < TL_COUNT(kinds); i++)
        if (tl_str_eq(kinds[i].table, table)) return &kinds[i];
    return NULL;
}

/* The prefix as ids are written; false when no id can begin like that. */
static bool normal_prefix(char out[65], const kind *k, const char *prefix) {
    size_t n = prefix ? strlen(prefix) : 0;
    if (n == 0 || n > (k->ulid ? 26u : 64u)) return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)prefix[i];
        if (c > 127 || !isalnum(c)) return false;
        out[i] = (char)(k->ulid ? toupper(c) : tolower(c));
    }
    out[n] = 0;
    return true;
}

static tl_status ambiguous(const char *table, const char *prefix, char ids[][65], size_t n, tl_err *e) {
    tl_buf list;
    tl_buf_init(&list, 0);
    for (size_t i = 0; i < n && i + 1 < CANDIDATES; i++) tl_buf_fmt(&list, "%s%s", i ? ", " : "", ids[i]);
    if (n == CANDIDATES) tl_buf_str(&list, ", ...");
    tl_fail(e, TL_INVALID, "'%s' is the beginning of more than one %s: %s", prefix, table, list.p);
    tl_buf_free(&list);
    return tl_remedy(e, "give more characters of the id");
}

tl_status tl_store_find(char id[65], tl_store *s, const char *table, const char *prefix, tl_err *e) {
    char from[65], to[67], ids[CANDIDATES][65];
    sqlite3_stmt *q = NULL;
    size_t n = 0;
    bool more = false;
    tl_status st = TL_OK;
    id[0] = 0;
    const kind *k = kind_of(table);
    if (k == NULL) return tl_fail(e, TL_INVALID, "'%s' is no table with ids", table ? table : "");
    if (!normal_prefix(from, k, prefix))
        return tl_fail(e, prefix && *prefix ? TL_NOT_FOUND : TL_INVALID, "%s holds no %s '%s'", s->path, table,
                       prefix ? prefix : "");
    snprintf(to, sizeof to, "%s~", from);
    char *sql = tl_xprintf("SELECT id FROM %s WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT %d", k->table, CANDIDATES);
    TRY(query_open(&q, s, sql, (const char *const[]){from, to}, 2, e));
    TRY(query_step(&more, s, q, e));
    while (more && n < CANDIDATES) {
        snprintf(ids[n++], sizeof ids[0], "%.64s", (const char *)sqlite3_column_text(q, 0));
        TRY(query_step(&more, s, q, e));
    }
    if (n == 1) snprintf(id, 65, "%s", ids[0]);
    else if (n == 0) st = tl_fail(e, TL_NOT_FOUND, "%s holds no %s '%s'", s->path, table, prefix);
    else st = ambiguous(table, prefix, ids, n, e);
out:
    sqlite3_finalize(q);
    free(sql);
    return st;
}

static tl_status check_state(const char *state, tl_err *e) {
    const char *names[TL_STORE_INVALID + 1];
    for (int i = 0; i <= TL_STORE_INVALID; i++) {
        names[i] = tl_store_phase_name((tl_store_phase)i);
        if (tl_str_eq(names[i], state)) return TL_OK;
    }
    const char *near = tl_nearest(state, names, TL_COUNT(names));
    tl_fail(e, TL_INVALID, "'%s' is no state of a run", state);
    return near ? tl_remedy(e, "did you mean '%s'?", near) : TL_INVALID;
}

tl_status tl_store_latest_run(char id[TL_STORE_ID], tl_store *s, const char *experiment, const char *machine,
                              const char *state, tl_err *e) {
    id[0] = 0;
    if (state != NULL) {
        tl_status known = check_state(state, e);
        if (known != TL_OK) return known;
    }
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    TRY(query_open(&q, s,
                   "SELECT r.id FROM run r JOIN experiment x ON x.id = r.experiment JOIN machine m ON m.id = r.machine "
                   "WHERE x.name = ?1 AND (?2 IS NULL OR m.name = ?2 COLLATE NOCASE OR r.claim = ?2 COLLATE NOCASE "
                   "OR substr(m.id, 1, length(?2)) = lower(?2)) AND (?3 IS NULL OR "
                   "(SELECT state FROM run_state WHERE run = r.id ORDER BY seq DESC LIMIT 1) = ?3) "
                   "ORDER BY r.seq DESC LIMIT 1",
                   (const char *const[]){experiment, machine, state}, 3, e));
    TRY(query_step(&more, s, q, e));
    if (more) snprintf(id, TL_STORE_ID, "%.26s", (const char *)sqlite3_column_text(q, 0));
    else
        st = tl_fail(e, TL_NOT_FOUND, "%s holds no %s%srun of experiment '%s'%s%s", s->path, state ? state : "",
                     state ? " " : "", experiment ? experiment : "", machine ? " on machine " : "", machine ? machine : "");
out:
    sqlite3_finalize(q);
    return st;
}

tl_status tl_store_describe(json_t **out, tl_store *s, const char *table, const char *id, tl_err *e) {
    static const char *const sql[][2] = {{"machine", "SELECT id, name, facts FROM machine WHERE id = ?1"},
                                         {"engine", "SELECT id, name, facts FROM engine WHERE id = ?1"},
                                         {"model", "SELECT id, name, bytes, facts FROM model WHERE id = ?1"},
                                         {"experiment", "SELECT id, name, script, facts FROM experiment WHERE id = ?1"}};
    *out = NULL;
    for (size_t i = 0; i < TL_COUNT(sql); i++)
        if (tl_str_eq(sql[i][0], table)) return query_one(out, s, sql[i][1], "facts", table, id, e);
    return tl_fail(e, TL_INVALID, "'%s' is not one of machine, engine, model, experiment", table ? table : "");
}

/* ---- free queries ---- */

#define SELECT_ROWS_MAX 250000u

/* Only reading passes. ATTACH, PRAGMA and transactions count as read-only statements to SQLite, so its own
 * sqlite3_stmt_readonly alone is not enough. */
static int only_reads(void *ctx, int action, const char *a, const char *b, const char *db, const char *trigger) {
    TL_UNUSED(ctx);
    TL_UNUSED(a);
    TL_UNUSED(db);
    TL_UNUSED(trigger);
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
        return tl_str_eq(b, "load_extension") || tl_str_eq(b, "fts3_tokenizer") ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

/* Columns named x_json, parsed and under the name x. */
static json_t *select_row(sqlite3_stmt *q) {
    tl_buf names;
    tl_buf_init(&names, 0);
    for (int i = 0; i < sqlite3_column_count(q); i++)
        if (tl_str_ends(sqlite3_column_name(q, i), "_json")) tl_buf_fmt(&names, "%s ", sqlite3_column_name(q, i));
    json_t *row = store_row_json(q, names.p);
    for (int i = 0; i < sqlite3_column_count(q); i++) {
        const char *name = sqlite3_column_name(q, i);
        if (!tl_str_ends(name, "_json") || strlen(name) == 5) continue;
        char *shorter = tl_xstrndup(name, strlen(name) - 5);
        json_object_set(row, shorter, json_object_get(row, name));
        json_object_del(row, name);
        free(shorter);
    }
    tl_buf_free(&names);
    return row;
}

static tl_status refused(const char *why, const char *sql, tl_err *e) {
    tl_fail(e, TL_INVALID, "%s: %.200s", why, sql);
    return tl_remedy(e, "give one SELECT; the database is append-only and is written by runs alone");
}

static tl_status select_open(sqlite3_stmt **out, tl_store *s, const char *sql, tl_err *e) {
    const char *tail = NULL;
    sqlite3_stmt *second = NULL;
    sqlite3_set_authorizer(s->db, only_reads, NULL);
    int rc = sqlite3_prepare_v2(s->db, sql, -1, out, &tail);
    if (rc == SQLITE_OK && *out != NULL && sqlite3_prepare_v2(s->db, tail, -1, &second, NULL) != SQLITE_OK)
        rc = SQLITE_AUTH;
    char *text = tl_xstrdup(sqlite3_errmsg(s->db));
    sqlite3_set_authorizer(s->db, NULL, NULL);
    bool two = second != NULL;
    sqlite3_finalize(second);
    tl_status st = TL_OK;
    if (rc == SQLITE_AUTH) st = refused("only reading is allowed", sql, e);
    else if (rc == SQLITE_ERROR) st = tl_fail(e, TL_INVALID, "SQL: %s: %.200s", text, sql);
    else if (rc != SQLITE_OK) st = store_sql_fail(s, rc, "reading", e);
    else if (*out == NULL) st = refused("there is no statement", sql, e);
    else if (two) st = refused("only one statement is allowed", sql, e);
    else if (!sqlite3_stmt_readonly(*out)) st = refused("only reading is allowed", sql, e);
    free(text);
    return st;
}

tl_status tl_store_select(json_t **out, tl_store *s, const char *sql, tl_err *e) {
    sqlite3_stmt *q = NULL;
    json_t *rows = json_array();
    tl_status st = TL_OK;
    int rc;
    *out = NULL;
    TRY(select_open(&q, s, sql, e));
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        if (json_array_size(rows) >= SELECT_ROWS_MAX) {
            st = tl_fail(e, TL_LIMIT, "the query gives more than %u rows: %.200s", SELECT_ROWS_MAX, sql);
            tl_remedy(e, "add LIMIT, or use sqlite3 on the file");
            goto out;
        }
        json_array_append_new(rows, select_row(q));
    }
    if (rc == SQLITE_ERROR) st = tl_fail(e, TL_INVALID, "SQL: %s: %.200s", sqlite3_errmsg(s->db), sql);
    else if (rc != SQLITE_DONE) st = store_sql_fail(s, rc, "reading", e);
    if (st == TL_OK) {
        *out = rows;
        rows = NULL;
    }
out:
    sqlite3_finalize(q);
    json_decref(rows);
    return st;
}

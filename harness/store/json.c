/* Rows of statements as JSON objects, and the small vocabulary of prepared reads that all queries share. */
#include "store/query_impl.h"

static bool holds_nul(const json_t *j) {
    const char *key;
    json_t *v;
    size_t i;
    if (json_is_string(j)) return strlen(json_string_value(j)) != json_string_length(j);
    json_object_foreach((json_t *)j, key, v) if (holds_nul(v)) return true;
    json_array_foreach((json_t *)j, i, v) if (holds_nul(v)) return true;
    return false;
}

char *store_json_text(const json_t *j) {
    if (j == NULL || json_is_null(j)) return NULL;
    return holds_nul(j) ? tl_xstrdup("\xff") : tl_json_canonical(j);
}

/* Is `name` one of the blank-separated words? */
static bool listed(const char *words, const char *name) {
    size_t n = strlen(name);
    while (words != NULL && *words) {
        size_t w = strcspn(words, " ");
        if (w == n && memcmp(words, name, n) == 0) return true;
        words += w + (words[w] == ' ');
    }
    return false;
}

static json_t *hex_text(const void *p, size_t n) {
    char *hex = tl_xalloc(2 * n + 1);
    if (n > 0) tl_hex(hex, p, n);
    json_t *j = json_string(hex);
    free(hex);
    return j;
}

static json_t *text_json(sqlite3_stmt *st, int column, bool parse) {
    const char *t = (const char *)sqlite3_column_text(st, column);
    size_t n = (size_t)sqlite3_column_bytes(st, column);
    json_t *j = NULL;
    if (t == NULL) return json_null();
    if (parse && tl_json_parse(&j, t, n, "column", NULL) == TL_OK) return j;
    /* a foreign file may hold bytes that are no UTF-8: they are shown, not dropped */
    j = tl_utf8_valid(t, n) ? json_stringn(t, n) : NULL;
    return j ? j : hex_text(t, n);
}

static json_t *column_json(sqlite3_stmt *st, int column, bool parse) {
    switch (sqlite3_column_type(st, column)) {
    case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(st, column));
    case SQLITE_FLOAT: return tl_json_real(sqlite3_column_double(st, column));
    case SQLITE_TEXT: return text_json(st, column, parse);
    case SQLITE_BLOB: return hex_text(sqlite3_column_blob(st, column), (size_t)sqlite3_column_bytes(st, column));
    default: return json_null();
    }
}

json_t *store_row_json(sqlite3_stmt *st, const char *json_columns) {
    json_t *row = json_object();
    for (int i = 0; i < sqlite3_column_count(st); i++) {
        const char *name = sqlite3_column_name(st, i);
        json_object_set_new(row, name, column_json(st, i, listed(json_columns, name)));
    }
    return row;
}

tl_status query_open(sqlite3_stmt **out, tl_store *s, const char *sql, const char *const *args, size_t n, tl_err *e) {
    tl_status st = store_prepare(out, s, sql, e);
    for (size_t i = 0; st == TL_OK && i < n; i++)
        if (args[i] != NULL) {
            int rc = sqlite3_bind_text64(*out, (int)i + 1, args[i], strlen(args[i]), SQLITE_TRANSIENT, SQLITE_UTF8);
            if (rc != SQLITE_OK) st = store_sql_fail(s, rc, "reading", e);
        }
    if (st != TL_OK) {
        sqlite3_finalize(*out);
        *out = NULL;
    }
    return st;
}

tl_status query_step(bool *more, tl_store *s, sqlite3_stmt *st, tl_err *e) {
    int rc = sqlite3_step(st);
    *more = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? TL_OK : store_sql_fail(s, rc, "reading", e);
}

tl_status query_all(json_t **out, tl_store *s, const char *sql, const char *json_columns, const char *const *args,
                    size_t n, tl_err *e) {
    sqlite3_stmt *q = NULL;
    json_t *rows = json_array();
    bool more = false;
    tl_status st = TL_OK;
    *out = NULL;
    TRY(query_open(&q, s, sql, args, n, e));
    TRY(query_step(&more, s, q, e));
    while (more) {
        json_array_append_new(rows, store_row_json(q, json_columns));
        TRY(query_step(&more, s, q, e));
    }
    *out = rows;
    rows = NULL;
out:
    sqlite3_finalize(q);
    json_decref(rows);
    return st;
}

static tl_status none(tl_store *s, const char *what, const char *id, tl_err *e) {
    return tl_fail(e, TL_NOT_FOUND, "%s holds no %s '%s'", s->path, what, id ? id : "");
}

tl_status query_one(json_t **out, tl_store *s, const char *sql, const char *json_columns, const char *what,
                    const char *id, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    *out = NULL;
    TRY(query_open(&q, s, sql, &id, 1, e));
    TRY(query_step(&more, s, q, e));
    if (more) *out = store_row_json(q, json_columns);
    else st = none(s, what, id, e);
out:
    sqlite3_finalize(q);
    return st;
}

tl_status query_text(char **out, tl_store *s, const char *sql, const char *what, const char *id, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    *out = NULL;
    TRY(query_open(&q, s, sql, &id, 1, e));
    TRY(query_step(&more, s, q, e));
    if (more) *out = tl_xstrndup((const char *)sqlite3_column_text(q, 0), (size_t)sqlite3_column_bytes(q, 0));
    else st = none(s, what, id, e);
out:
    sqlite3_finalize(q);
    return st;
}

tl_status query_snapshot(tl_store *s, tl_err *e) {
    return store_exec(s, "SAVEPOINT store_read", e);
}

void query_snapshot_end(tl_store *s) {
    tl_err e; /* a read has nothing to lose: the statement only ends the snapshot */
    if (store_exec(s, "RELEASE store_read", &e) != TL_OK) tl_log(TL_LOG_DEBUG, "%s", e.msg);
}

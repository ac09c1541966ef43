/* One row into its table and into the chain. The canonical bytes of a column are: a tag, then int64 big-endian, or
 * IEEE-754 bits big-endian, or length and bytes. SQLite's own text of a REAL is never hashed: it is not lossless. */
#include "store/store_impl.h"

#include <math.h>

tl_col col_int(int64_t v) {
    return v == TL_STORE_NONE ? (tl_col){.kind = TL_COL_NULL} : (tl_col){.kind = TL_COL_INT, .i = v};
}

tl_col col_real(double v) {
    /* SQLite keeps no sign of a zero: it would read back other than it was written */
    return isnan(v) ? (tl_col){.kind = TL_COL_NULL} : (tl_col){.kind = TL_COL_REAL, .r = v == 0 ? 0.0 : v};
}

tl_col col_text(const char *t) {
    return t == NULL ? (tl_col){.kind = TL_COL_NULL} : (tl_col){.kind = TL_COL_TEXT, .p = t, .len = strlen(t)};
}

tl_col col_blob(const void *p, size_t n) {
    return (tl_col){.kind = TL_COL_BLOB, .p = p ? p : "", .len = n};
}

static void add_u64(tl_sha256 *h, uint64_t v) {
    uint8_t b[8];
    for (int i = 7; i >= 0; i--, v >>= 8) b[i] = (uint8_t)v;
    tl_sha256_add(h, b, 8);
}

static void add_column(tl_sha256 *h, const tl_col *c) {
    uint8_t tag = (uint8_t)c->kind;
    uint64_t bits;
    tl_sha256_add(h, &tag, 1);
    switch (c->kind) {
    case TL_COL_NULL: break;
    case TL_COL_INT: add_u64(h, (uint64_t)c->i); break;
    case TL_COL_REAL:
        memcpy(&bits, &c->r, 8);
        add_u64(h, bits);
        break;
    case TL_COL_TEXT:
    case TL_COL_BLOB:
        add_u64(h, c->len);
        tl_sha256_add(h, c->p, c->len);
        break;
    }
}

static void hint(uint8_t out[4], const tl_col *c) {
    uint8_t full[32];
    tl_sha256 *h = tl_sha256_new();
    add_column(h, c);
    tl_sha256_end(h, full);
    memcpy(out, full, 4);
}

/* Hash of a row: previous hash, table name, seq, columns. */
static void hash_row(uint8_t out[32], tl_buf *hints, const uint8_t prev[32], const char *table, int64_t seq, const tl_col *cols, size_t n) {
    tl_sha256 *h = tl_sha256_new();
    tl_sha256_add(h, prev, 32);
    add_u64(h, strlen(table));
    tl_sha256_add(h, table, strlen(table));
    add_u64(h, (uint64_t)seq);
    for (size_t i = 0; i < n; i++) {
        uint8_t four[4];
        add_column(h, &cols[i]);
        if (hints == NULL) continue;
        hint(four, &cols[i]);
        tl_buf_add(hints, four, 4);
    }
    tl_sha256_end(h, out);
}

static void bind(sqlite3_stmt *st, int at, const tl_col *c) {
    switch (c->kind) {
    case TL_COL_NULL: sqlite3_bind_null(st, at); break;
    case TL_COL_INT: sqlite3_bind_int64(st, at, c->i); break;
    case TL_COL_REAL: sqlite3_bind_double(st, at, c->r); break;
    case TL_COL_TEXT: sqlite3_bind_text64(st, at, c->p, c->len, SQLITE_STATIC, SQLITE_UTF8); break;
    case TL_COL_BLOB: sqlite3_bind_blob64(st, at, c->p, c->len, SQLITE_STATIC); break;
    }
}

static size_t column_count(const tl_store_table *t) {
    size_t n = 1;
    for (const char *p = t->columns; *p; p++) n += *p == ' ';
    return n;
}

static tl_status check_columns(const tl_store_table *t, const tl_col *cols, size_t n, tl_err *e) {
    if (column_count(t) != n) return tl_fail(e, TL_INTERNAL, "table '%s' has %zu columns, %zu were given", t->name, column_count(t), n);
    const char *p = t->columns;
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(p, " ");
        if (cols[i].kind == TL_COL_TEXT && !tl_utf8_valid(cols[i].p, cols[i].len))
            return tl_fail(e, TL_INVALID, "%s.%.*s: the text is not UTF-8 or holds a NUL", t->name, (int)len, p);
        if (cols[i].kind == TL_COL_REAL && !isfinite(cols[i].r))
            return tl_fail(e, TL_INVALID, "%s.%.*s: the number is not finite", t->name, (int)len, p);
        p += len + (p[len] == ' ');
    }
    return TL_OK;
}

static tl_status insert(tl_store *s, const tl_store_table *t, int64_t seq, const tl_col *cols, size_t n, tl_err *e) {
    tl_buf sql;
    sqlite3_stmt *st = NULL;
    tl_buf_init(&sql, 0);
    tl_buf_fmt(&sql, "INSERT INTO %s (seq", t->name);
    for (const char *p = t->columns; *p;) {
        size_t len = strcspn(p, " ");
        tl_buf_fmt(&sql, ", %.*s", (int)len, p);
        p += len + (p[len] == ' ');
    }
    tl_buf_str(&sql, ") VALUES (?");
    for (size_t i = 0; i < n; i++) tl_buf_str(&sql, ",?");
    tl_buf_char(&sql, ')');
    tl_status status = store_prepare(&st, s, sql.p, e);
    tl_buf_free(&sql);
    if (status != TL_OK) return status;
    sqlite3_bind_int64(st, 1, seq);
    for (size_t i = 0; i < n; i++) bind(st, (int)i + 2, &cols[i]);
    int rc = sqlite3_step(st);
    if (rc != SQLITE_DONE) status = store_sql_fail(s, rc, t->name, e);
    sqlite3_finalize(st);
    return status;
}

static tl_status chain(tl_store *s, const char *table, int64_t seq, const uint8_t hash[32], const tl_buf *hints, tl_err *e) {
    sqlite3_stmt *st = NULL;
    tl_status status = store_prepare(&st, s, "INSERT INTO chain (seq, tab, hash, hints) VALUES (?,?,?,?)", e);
    if (status != TL_OK) return status;
    sqlite3_bind_int64(st, 1, seq);
    sqlite3_bind_text(st, 2, table, -1, SQLITE_STATIC);
    sqlite3_bind_blob(st, 3, hash, 32, SQLITE_STATIC);
    sqlite3_bind_blob64(st, 4, hints->p, hints->len, SQLITE_STATIC);
    int rc = sqlite3_step(st);
    if (rc != SQLITE_DONE) status = store_sql_fail(s, rc, "chain", e);
    sqlite3_finalize(st);
    return status;
}

tl_status store_row(tl_store *s, const char *table, const tl_col *cols, size_t n, tl_err *e) {
    const tl_store_table *t = store_table(table);
    if (t == NULL) return tl_fail(e, TL_INTERNAL, "no table '%s'", table);
    tl_status st = check_columns(t, cols, n, e);
    if (st != TL_OK) return st;
    tl_buf hints;
    uint8_t hash[32];
    tl_buf_init(&hints, 0);
    int64_t seq = s->seq + 1;
    hash_row(hash, &hints, s->head, table, seq, cols, n);
    st = insert(s, t, seq, cols, n, e);
    if (st == TL_OK) st = chain(s, table, seq, hash, &hints, e);
    if (st == TL_OK) {
        s->seq = seq;
        memcpy(s->head, hash, 32);
    }
    tl_buf_free(&hints);
    return st;
}

static tl_col stored_column(sqlite3_stmt *st, int i) {
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_INTEGER: return (tl_col){.kind = TL_COL_INT, .i = sqlite3_column_int64(st, i)};
    case SQLITE_FLOAT: return (tl_col){.kind = TL_COL_REAL, .r = sqlite3_column_double(st, i)};
    case SQLITE_TEXT: return (tl_col){.kind = TL_COL_TEXT, .p = sqlite3_column_text(st, i), .len = (size_t)sqlite3_column_bytes(st, i)};
    case SQLITE_BLOB: return (tl_col){.kind = TL_COL_BLOB, .p = sqlite3_column_blob(st, i), .len = (size_t)sqlite3_column_bytes(st, i)};
    default: return (tl_col){.kind = TL_COL_NULL};
    }
}

tl_status store_row_hash(uint8_t out[32], tl_buf *hints, tl_store *s, const char *table, int64_t seq, const uint8_t prev[32], tl_err *e) {
    const tl_store_table *t = store_table(table);
    sqlite3_stmt *st = NULL;
    tl_buf sql;
    if (t == NULL) return tl_fail(e, TL_NOT_FOUND, "the chain names a table '%s' that does not exist", table ? table : "(none)");
    tl_buf_init(&sql, 0);
    tl_buf_str(&sql, "SELECT ");
    for (const char *p = t->columns; *p; p++) tl_buf_char(&sql, *p == ' ' ? ',' : *p);
    tl_buf_fmt(&sql, " FROM %s WHERE seq = ?", t->name);
    tl_status status = store_prepare(&st, s, sql.p, e);
    tl_buf_free(&sql);
    if (status != TL_OK) return status;
    sqlite3_bind_int64(st, 1, seq);
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        tl_col cols[32];
        size_t n = column_count(t);
        for (size_t i = 0; i < n && i < TL_COUNT(cols); i++) cols[i] = stored_column(st, (int)i);
        hash_row(out, hints, prev, table, seq, cols, n);
    } else
        status = rc == SQLITE_DONE ? tl_fail(e, TL_NOT_FOUND, "no row %" PRId64 " in '%s'", seq, table) : store_sql_fail(s, rc, table, e);
    sqlite3_finalize(st);
    return status;
}

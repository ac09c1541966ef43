/* Integrity: recomputes the chain from the stored bytes, and makes complete copies.
 *
 * Triggers guard against bugs; whoever has the file can drop them, and SQLite's own integrity check calls a changed text
 * fine. So every row is hashed again as it stands. After a damaged row the walk goes on from the hash that was stored:
 * one damage is one finding. Who rewrites the whole rest of the chain is only noticed by a head printed before. */
#include "store/query_impl.h"

#include <errno.h>

#define FINDINGS_OF_SQLITE 20

typedef struct audit {
    tl_store *s;
    tl_store_verdict *out;
    tl_store_finding *report;
    void *ctx;
    char first[256];
    const char *expected; /* lower case, or NULL */
} audit;

static void found(audit *a, const char *table, int64_t seq, const char *text) {
    if (a->out->findings++ == 0) {
        if (seq > 0) snprintf(a->first, sizeof a->first, "%s, row %" PRId64 ": %.180s", table, seq, text);
        else snprintf(a->first, sizeof a->first, "%s: %.220s", table, text);
    }
    if (a->report != NULL) a->report(a->ctx, table, seq, text);
}

static void found_text(audit *a, const char *table, int64_t seq, const char *fmt, ...) TL_PRINTF(4, 5);
static void found_text(audit *a, const char *table, int64_t seq, const char *fmt, ...) {
    tl_buf b;
    va_list ap;
    tl_buf_init(&b, 0);
    va_start(ap, fmt);
    tl_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    found(a, table, seq, b.p);
    tl_buf_free(&b);
}

/* ---- schema ---- */

/* What SQLite keeps for itself (statistics of the planner) is not ours; its indexes of UNIQUE are. */
#define SCHEMA_ROWS                                                                                                    \
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master "                                               \
    "WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR name LIKE 'sqlite\\_autoindex%' ESCAPE '\\' "

static tl_status fresh_database(sqlite3 **out, tl_err *e) {
    char *guards = store_guards_sql();
    int rc = sqlite3_open(":memory:", out);
    if (rc == SQLITE_OK) rc = sqlite3_exec(*out, tl_store_schema_sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_exec(*out, guards, NULL, NULL, NULL);
    free(guards);
    return rc == SQLITE_OK ? TL_OK : tl_fail(e, TL_INTERNAL, "a fresh database: %s", sqlite3_errmsg(*out));
}

static const char *column(sqlite3_stmt *q, int i) {
    const char *t = (const char *)sqlite3_column_text(q, i);
    return t ? t : "";
}

/* For every object of `from`: does `in` have the same? `sense` says what a difference means. */
static tl_status compare_objects(audit *a, sqlite3 *from, sqlite3 *in, bool from_is_fresh, tl_err *e) {
    sqlite3_stmt *q = NULL, *other = NULL;
    int rc = sqlite3_prepare_v2(from, SCHEMA_ROWS "ORDER BY 1, 2", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(in, "SELECT tbl_name, coalesce(sql, '') FROM sqlite_master WHERE type = ?1 AND name = ?2", -1,
                                &other, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        sqlite3_bind_text(other, 1, column(q, 0), -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(other, 2, column(q, 1), -1, SQLITE_TRANSIENT);
        bool there = sqlite3_step(other) == SQLITE_ROW;
        if (!there)
            found_text(a, "schema", 0, from_is_fresh ? "the %s '%s' is missing" : "the %s '%s' is not tally's", column(q, 0),
                       column(q, 1));
        else if (from_is_fresh && (strcmp(column(other, 0), column(q, 2)) != 0 || strcmp(column(other, 1), column(q, 3)) != 0))
            found_text(a, "schema", 0, "the %s '%s' was changed", column(q, 0), column(q, 1));
        rc = sqlite3_reset(other);
    }
    tl_status st = rc == SQLITE_DONE ? TL_OK : store_sql_fail(a->s, rc, "verifying the schema", e);
    sqlite3_finalize(q);
    sqlite3_finalize(other);
    return st;
}

static tl_status check_schema(audit *a, tl_err *e) {
    sqlite3 *fresh = NULL;
    tl_status st = TL_OK;
    TRY(fresh_database(&fresh, e));
    TRY(compare_objects(a, fresh, a->s->db, true, e));
    TRY(compare_objects(a, a->s->db, fresh, false, e));
out:
    sqlite3_close(fresh);
    return st;
}

/* Pages and indexes: an index that misses a row would hide it from every query. */
static tl_status check_pages(audit *a, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    char *sql = tl_xprintf("PRAGMA integrity_check(%d)", FINDINGS_OF_SQLITE);
    tl_status st = TL_OK;
    TRY(query_open(&q, a->s, sql, NULL, 0, e));
    TRY(query_step(&more, a->s, q, e));
    while (more) {
        if (strcmp(column(q, 0), "ok") != 0) found(a, "schema", 0, column(q, 0));
        TRY(query_step(&more, a->s, q, e));
    }
out:
    sqlite3_finalize(q);
    free(sql);
    return st;
}

/* ---- the chain ---- */

/* Which columns differ, by the four check bytes each. */
static void name_columns(tl_buf *out, const tl_store_table *t, const tl_buf *now, const void *then, size_t then_len) {
    const char *names = t->columns;
    if (now->len != then_len) return;
    for (size_t i = 0; 4 * i + 4 <= then_len && *names; i++) {
        size_t n = strcspn(names, " ");
        if (memcmp(now->p + 4 * i, (const char *)then + 4 * i, 4) != 0)
            tl_buf_fmt(out, "%s%.*s", out->len ? ", " : "", (int)n, names);
        names += n + (names[n] == ' ');
    }
}

static void report_change(audit *a, const char *table, int64_t seq, const tl_buf *now, sqlite3_stmt *q) {
    tl_buf names;
    tl_buf_init(&names, 0);
    name_columns(&names, store_table(table), now, sqlite3_column_blob(q, 3), (size_t)sqlite3_column_bytes(q, 3));
    if (names.len > 0) found_text(a, table, seq, "was changed after it was written: %s", names.p);
    else found(a, table, seq, "its hash does not follow from the row before it: the chain was rewritten here");
    tl_buf_free(&names);
}

static tl_status check_link(audit *a, sqlite3_stmt *q, uint8_t prev[32], bool after_gap, tl_err *e) {
    int64_t seq = sqlite3_column_int64(q, 0);
    char *table = tl_xstrdup(column(q, 1));
    const void *hash = sqlite3_column_blob(q, 2);
    bool whole = sqlite3_column_bytes(q, 2) == 32;
    uint8_t now[32];
    tl_buf hints;
    tl_buf_init(&hints, 0);
    tl_status st = TL_OK;
    if (store_table(table) == NULL) found_text(a, "chain", seq, "names a table '%.64s' that there is not", table);
    else {
        tl_err mine;
        st = store_row_hash(now, &hints, a->s, table, seq, prev, &mine);
        if (st == TL_NOT_FOUND) {
            found(a, table, seq, "was deleted");
            st = TL_OK;
        } else if (st != TL_OK) {
            if (e != NULL) *e = mine;
        } else if (!whole || memcmp(now, hash, 32) != 0) {
            bool same = hints.len == (size_t)sqlite3_column_bytes(q, 3) && hints.len > 0 &&
                        memcmp(hints.p, sqlite3_column_blob(q, 3), hints.len) == 0;
            if (!after_gap || !same || !whole) report_change(a, table, seq, &hints, q);
        }
    }
    if (whole) memcpy(prev, hash, 32);
    tl_buf_free(&hints);
    free(table);
    return st;
}

static void note_head(audit *a, const uint8_t hash[32]) {
    tl_hex(a->out->head, hash, 32);
    if (a->out->head_found) a->out->rows_after++;
    else a->out->head_found = a->expected != NULL && strcmp(a->expected, a->out->head) == 0;
}

static tl_status check_chain(audit *a, tl_err *e) {
    sqlite3_stmt *q = NULL;
    uint8_t prev[32] = {0};
    int64_t next = 1;
    bool more = false;
    tl_status st = TL_OK;
    note_head(a, prev);
    TRY(query_open(&q, a->s, "SELECT seq, tab, hash, hints FROM chain ORDER BY seq", NULL, 0, e));
    TRY(query_step(&more, a->s, q, e));
    while (more) {
        int64_t seq = sqlite3_column_int64(q, 0);
        bool gap = seq != next;
        if (gap && seq > next)
            found_text(a, "chain", seq, "%" PRId64 " %s missing before this row", seq - next, seq - next == 1 ? "row is" : "rows are");
        else if (gap) found(a, "chain", seq, "the chain counts from 1");
        TRY(check_link(a, q, prev, gap, e));
        note_head(a, prev);
        a->out->rows++;
        next = seq + 1;
        TRY(query_step(&more, a->s, q, e));
    }
    if (a->expected != NULL && !a->out->head_found)
        found_text(a, "chain", 0, "the head %.16s... is nowhere in it: rows at its end were cut off or rewritten", a->expected);
out:
    sqlite3_finalize(q);
    return st;
}

static tl_status check_outside(audit *a, const char *table, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    char *sql = tl_xprintf("SELECT seq FROM %s t WHERE NOT EXISTS (SELECT 1 FROM chain c WHERE c.seq = t.seq AND "
                           "c.tab = '%s') ORDER BY seq",
                           table, table);
    TRY(query_open(&q, a->s, sql, NULL, 0, e));
    TRY(query_step(&more, a->s, q, e));
    while (more) {
        found(a, table, sqlite3_column_int64(q, 0), "stands outside the chain: it was not written by tally");
        TRY(query_step(&more, a->s, q, e));
    }
out:
    sqlite3_finalize(q);
    free(sql);
    return st;
}

static tl_status normal_head(char out[65], const char *head, tl_err *e) {
    size_t n = strlen(head);
    if (n != 64 || strspn(head, "0123456789abcdefABCDEF") != 64)
        return tl_fail(e, TL_INVALID, "'%.80s' is no head of a chain: 64 hexadecimal digits", head);
    for (size_t i = 0; i < 64; i++) out[i] = (char)(head[i] >= 'A' && head[i] <= 'F' ? head[i] + 32 : head[i]);
    out[64] = 0;
    return TL_OK;
}

/* The tables themselves may be gone: then the schema's findings stand for all that cannot be read. */
static tl_status run_audit(audit *a, tl_err *e) {
    tl_status st = TL_OK;
    TRY(check_schema(a, e));
    TRY(check_pages(a, e));
    TRY(check_chain(a, e));
    for (size_t i = 0; i < tl_store_tables_n; i++) TRY(check_outside(a, tl_store_tables[i].name, e));
out:
    if (st != TL_OK && a->out->findings > 0) {
        found_text(a, "schema", 0, "nothing more can be checked: %s", e->msg);
        st = TL_OK;
    }
    return st;
}

tl_status tl_store_verify(tl_store_verdict *out, tl_store *s, const char *expected_head, tl_store_finding *report, void *ctx,
                          tl_err *e) {
    char head[65];
    tl_err mine;
    tl_store_verdict verdict;
    memset(out ? out : (out = &verdict), 0, sizeof *out);
    tl_err *err = e ? e : &mine;
    audit a = {.s = s, .out = out, .report = report, .ctx = ctx};
    if (expected_head != NULL) {
        tl_status st = normal_head(head, expected_head, err);
        if (st != TL_OK) return st;
        a.expected = head;
    }
    tl_status st = query_snapshot(s, err);
    if (st != TL_OK) return st;
    st = run_audit(&a, err);
    query_snapshot_end(s);
    if (st != TL_OK || out->findings == 0) return st;
    tl_fail(err, TL_REFUSED, "%s: %" PRId64 " %s that tally did not write; the first: %s", s->path, out->findings,
            out->findings == 1 ? "change" : "changes", a.first);
    return tl_remedy(err, "compare with an earlier copy or with a report that was made before");
}

tl_status tl_store_head(char out[65], tl_store *s, tl_err *e) {
    sqlite3_stmt *q = NULL;
    uint8_t hash[32] = {0};
    bool more = false;
    tl_status st = TL_OK;
    out[0] = 0;
    TRY(query_open(&q, s, "SELECT hash FROM chain ORDER BY seq DESC LIMIT 1", NULL, 0, e));
    TRY(query_step(&more, s, q, e));
    if (more && sqlite3_column_bytes(q, 0) == 32) memcpy(hash, sqlite3_column_blob(q, 0), 32);
    tl_hex(out, hash, 32);
out:
    sqlite3_finalize(q);
    return st;
}

/* ---- copies ---- */

static tl_status vacuum_into(tl_store *s, const char *path, tl_err *e) {
    sqlite3_stmt *q = NULL;
    bool more = false;
    tl_status st = TL_OK;
    TRY(query_open(&q, s, "VACUUM INTO ?1", &path, 1, e));
    TRY(query_step(&more, s, q, e));
out:
    sqlite3_finalize(q);
    return st;
}

/* The copy has no WAL beside it and ends in the same row. */
static tl_status check_copy(tl_store *s, const char *path, tl_err *e) {
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    char mine[65], its[65] = "";
    tl_status st = TL_OK;
    TRY(tl_store_head(mine, s, e));
    memset(its, '0', 64);
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(db, "SELECT hash FROM chain ORDER BY seq DESC LIMIT 1", -1, &q, NULL);
    if (rc == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW && sqlite3_column_bytes(q, 0) == 32)
        tl_hex(its, sqlite3_column_blob(q, 0), 32);
    if (rc != SQLITE_OK) st = tl_fail(e, TL_IO, "the copy %s cannot be read back: %s", path, sqlite3_errmsg(db));
    else if (strcmp(mine, its) != 0)
        st = tl_fail(e, TL_CONFLICT, "%s: another process wrote while it was copied", s->path), tl_remedy(e, "copy again");
out:
    sqlite3_finalize(q);
    sqlite3_close(db);
    return st;
}

tl_status tl_store_copy_to(tl_store *s, const char *path, tl_err *e) {
    char id[27];
    tl_status st = TL_OK;
    if (s->batch) return tl_fail(e, TL_CONFLICT, "%s: a copy cannot be made inside a batch", s->path);
    if (tl_file_exists(path)) {
        tl_fail(e, TL_CONFLICT, "%s exists already", path);
        return tl_remedy(e, "give another name, or move the old file away");
    }
    tl_os_ulid(id);
    char *temporary = tl_xprintf("%s.%s.tmp", path, id);
    TRY(vacuum_into(s, temporary, e));
    TRY(check_copy(s, temporary, e));
    if (rename(temporary, path) != 0) st = tl_file_fail("rename to", path, errno, e);
out:
    if (st != TL_OK && tl_file_remove(temporary, NULL) != TL_OK) tl_log(TL_LOG_WARN, "%s is left over", temporary);
    free(temporary);
    return st;
}

/* Opening, checking whose file it is, and batches. A batch is one transaction: BEGIN IMMEDIATE (a read transaction that
 * is upgraded later can fail at once in WAL mode, whatever the busy timeout), read back before COMMIT. */
#include "store/store_impl.h"

#include <errno.h>

/* ---- errors ---------------------------------------------------------------------------------------------------- */

tl_status store_sql_fail(tl_store *s, int rc, const char *what, tl_err *e) {
    const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        tl_fail(e, TL_CONFLICT, "%s: %s: the database is locked by another process", s->path, what);
        return tl_remedy(e, "wait until the other tally has finished, or find it: fuser %s", s->path);
    case SQLITE_FULL: {
        uint64_t free_bytes = 0;
        char *dir = tl_path_dir(s->path);
        if (tl_fs_free_bytes(&free_bytes, dir, NULL) != TL_OK) free_bytes = 0;
        free(dir);
        tl_fail(e, TL_IO, "%s: %s: the disk or the database's limit is full (%.1f MB free)", s->path, what, (double)free_bytes / 1e6);
        return tl_remedy(e, "make room and go on with --resume; what was committed before is safe");
    }
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        tl_fail(e, TL_IO, "%s: %s: cannot be opened for writing or is read-only (%s)", s->path, what, why);
        return tl_remedy(e, "check the permissions of the file and its folder, or choose another with --db");
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        tl_fail(e, TL_INVALID, "%s: %s: not a database, or damaged (%s)", s->path, what, why);
        return tl_remedy(e, "choose another file with --db; `sqlite3 FILE .recover` may save a damaged one");
    case SQLITE_CONSTRAINT: return tl_fail(e, TL_INVALID, "%s: %s: refused: %s", s->path, what, why);
    case SQLITE_IOERR: return tl_fail(e, TL_IO, "%s: %s: input/output error (%s)", s->path, what, why);
    default: return tl_fail(e, TL_INTERNAL, "%s: %s: %s (SQLite %d)", s->path, what, why, rc);
    }
}

tl_status store_exec(tl_store *s, const char *sql, tl_err *e) {
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? TL_OK : store_sql_fail(s, rc, "writing", e);
}

tl_status store_prepare(sqlite3_stmt **out, tl_store *s, const char *sql, tl_err *e) {
    int rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
    return rc == SQLITE_OK ? TL_OK : store_sql_fail(s, rc, "reading", e);
}

static tl_status read_int(int64_t *out, tl_store *s, const char *sql, tl_err *e) {
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? TL_OK : store_sql_fail(s, rc, "opening", e);
}

/* ---- whose file is it ------------------------------------------------------------------------------------------- */

static tl_status create_schema(tl_store *s, tl_err *e) {
    char *guards = store_guards_sql();
    char *sql = tl_xprintf("%s\n%s\nPRAGMA application_id=%d;\nPRAGMA user_version=%d;", tl_store_schema_sql, guards,
                           TL_STORE_APPLICATION_ID, TL_STORE_VERSION);
    tl_status st = store_exec(s, sql, e);
    free(sql);
    free(guards);
    return st;
}

/* Creates the schema in an empty file. Several processes may come here at once: whoever gets the lock creates it, the
 * others find it. */
static tl_status create_if_empty(tl_store *s, tl_err *e) {
    int64_t version = 0, tables = 0;
    tl_status st = store_exec(s, "BEGIN EXCLUSIVE", e);
    if (st != TL_OK) return st;
    TRY(read_int(&version, s, "PRAGMA user_version", e));
    TRY(read_int(&tables, s, "SELECT count(*) FROM sqlite_master", e));
    if (version == 0 && tables == 0) TRY(create_schema(s, e));
    TRY(store_exec(s, "COMMIT", e));
out:
    if (st != TL_OK) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

/* Nothing is written before this has passed: somebody else's file stays as it is, its journal mode included. */
static tl_status check_owner(tl_store *s, tl_err *e) {
    int64_t application = 0, version = 0, tables = 0;
    tl_status st = TL_OK;
    TRY(store_exec(s, "BEGIN", e)); /* one state: another process may be creating the schema */
    st = read_int(&application, s, "PRAGMA application_id", e);
    if (st == TL_OK) st = read_int(&version, s, "PRAGMA user_version", e);
    if (st == TL_OK) st = read_int(&tables, s, "SELECT count(*) FROM sqlite_master", e);
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    if (st != TL_OK) goto out;
    if (application == 0 && version == 0 && tables == 0 && s->mode == TL_STORE_WRITE) TRY(create_if_empty(s, e));
    else if (application != TL_STORE_APPLICATION_ID) {
        st = tl_fail(e, TL_INVALID, "%s is an SQLite database of another program", s->path);
        tl_remedy(e, "choose another file with --db or TALLY_DB");
    } else if (version > TL_STORE_VERSION) {
        st = tl_fail(e, TL_CONFLICT, "%s was written by a newer tally: its schema is version %" PRId64 ", this one knows %d", s->path,
                     version, TL_STORE_VERSION);
        tl_remedy(e, "update tally, or choose another file with --db");
    }
out:
    return st;
}

static int busy_ms(const tl_store_options *o) {
    return o && o->busy_ms ? o->busy_ms : 30000;
}

static tl_status connection_settings(tl_store *s, const tl_store_options *o, tl_err *e) {
    sqlite3_busy_timeout(s->db, busy_ms(o));
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, s->mode == TL_STORE_FOREIGN, NULL);
    /* our own CHECKs use json_valid(), which an untrusted schema may not */
    tl_status st = s->mode == TL_STORE_FOREIGN ? store_exec(s, "PRAGMA trusted_schema=OFF;", e) : TL_OK;
    return st == TL_OK ? store_exec(s, "PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON; PRAGMA cell_size_check=ON;", e) : st;
}

/* The change to WAL needs the file for a moment alone, and SQLite does not always wait for it by itself. */
static tl_status set_journal(tl_store *s, const char *sql, int wait_ms, tl_err *e) {
    for (int waited = 0;; waited += 10) {
        int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
        if (rc == SQLITE_OK) return TL_OK;
        if ((rc & 0xff) != SQLITE_BUSY || waited >= wait_ms) return store_sql_fail(s, rc, "opening", e);
        tl_sleep_ns(10 * TL_MS);
    }
}

static tl_status file_settings(tl_store *s, const tl_store_options *o, tl_err *e) {
    char fs[32];
    int64_t page = 4096;
    if (s->mode != TL_STORE_WRITE) return TL_OK;
    tl_fs_type(fs, s->path);
    bool network = (o && o->network_fs) || tl_fs_is_network(fs);
    if (network) tl_log(TL_LOG_WARN, "%s lies on a network file system (%s): slower and, with broken locks, unsafe", s->path, fs);
    tl_status st = set_journal(s, network ? "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;" : "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
                               busy_ms(o), e);
    if (st != TL_OK || o == NULL || o->max_bytes <= 0) return st;
    char sql[96];
    st = read_int(&page, s, "PRAGMA page_size", e);
    snprintf(sql, sizeof sql, "PRAGMA max_page_count=%" PRId64, o->max_bytes / (page > 0 ? page : 4096) + 1);
    return st == TL_OK ? store_exec(s, sql, e) : st;
}

/* A file that came from elsewhere: its pages are checked before anything is believed. Rows in a -wal beside it would be
 * silently left out of an immutable reading. */
static tl_status check_foreign(tl_store *s, tl_err *e) {
    tl_file_facts wal;
    sqlite3_stmt *q = NULL;
    char *path = tl_xprintf("%s-wal", s->path);
    tl_status st = tl_file_stat(&wal, path, e);
    if (st == TL_OK && wal.exists && wal.size_bytes > 0) {
        st = tl_fail(e, TL_INVALID, "%s is not complete: rows stand in %s", s->path, path);
        tl_remedy(e, "open it once with its owner's tally, or make a copy with VACUUM INTO");
    }
    free(path);
    if (st == TL_OK) st = store_prepare(&q, s, "PRAGMA quick_check(1)", e);
    if (st != TL_OK) return st;
    int rc = sqlite3_step(q);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    if (rc != SQLITE_ROW) st = store_sql_fail(s, rc, "checking", e);
    else if (!tl_str_eq(text, "ok")) st = tl_fail(e, TL_INVALID, "%s is damaged: %.300s", s->path, text ? text : "");
    sqlite3_finalize(q);
    return st;
}

static tl_status open_file(tl_store *s, tl_err *e) {
    int flags = s->mode == TL_STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (s->mode != TL_STORE_WRITE && !tl_file_exists(s->path)) {
        tl_fail(e, TL_NOT_FOUND, "no database %s", s->path);
        return tl_remedy(e, "`tally run` and `tally probe` create it; or name another with --db");
    }
    char *uri = NULL;
    if (s->mode == TL_STORE_FOREIGN) { /* percent-escape what an URI would read otherwise */
        tl_buf b;
        tl_buf_init(&b, 0);
        tl_buf_str(&b, "file:");
        for (const char *p = s->path; *p; p++) strchr("%?# ", *p) ? tl_buf_fmt(&b, "%%%02x", (unsigned char)*p) : tl_buf_char(&b, *p);
        tl_buf_str(&b, "?immutable=1");
        uri = tl_buf_take(&b);
        flags |= SQLITE_OPEN_URI;
    }
    int rc = sqlite3_open_v2(uri ? uri : s->path, &s->db, flags, NULL);
    free(uri);
    if (rc != SQLITE_OK) return store_sql_fail(s, rc, "opening", e);
    sqlite3_extended_result_codes(s->db, 1);
    return TL_OK;
}

tl_status tl_store_open(tl_store **out, const char *path, const tl_store_options *opt, tl_err *e) {
    tl_store *s = tl_xalloc(sizeof *s);
    int64_t ignored;
    *out = NULL;
    s->path = tl_path_abs(path);
    s->mode = opt ? opt->mode : TL_STORE_WRITE;
    tl_status st = TL_OK;
    TRY(open_file(s, e));
    sqlite3_busy_timeout(s->db, busy_ms(opt));
    TRY(read_int(&ignored, s, "PRAGMA schema_version", e)); /* not a database: said here */
    TRY(connection_settings(s, opt, e));
    TRY(check_owner(s, e));
    if (s->mode == TL_STORE_FOREIGN) TRY(check_foreign(s, e));
    TRY(file_settings(s, opt, e));
    *out = s;
    s = NULL;
out:
    tl_store_close(s);
    return st;
}

void tl_store_close(tl_store *s) {
    if (s == NULL) return;
    if (s->batch) tl_store_rollback(s);
    for (size_t i = 0; i < s->n_locks; i++) tl_lock_release(s->locks[i].lock);
    free(s->locks);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

const char *tl_store_path(const tl_store *s) {
    return s->path;
}

/* ---- batches ------------------------------------------------------------------------------------------------------ */

/* Where the chain stands now: another process may have written since. */
static tl_status read_head(tl_store *s, tl_err *e) {
    sqlite3_stmt *st = NULL;
    memset(s->head, 0, sizeof s->head);
    s->seq = 0;
    tl_status status = store_prepare(&st, s, "SELECT seq, hash FROM chain ORDER BY seq DESC LIMIT 1", e);
    if (status != TL_OK) return status;
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW && sqlite3_column_bytes(st, 1) == 32) {
        s->seq = sqlite3_column_int64(st, 0);
        memcpy(s->head, sqlite3_column_blob(st, 1), 32);
    }
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? TL_OK : store_sql_fail(s, rc, "reading the chain", e);
}

tl_status tl_store_begin(tl_store *s, tl_err *e) {
    if (s->batch) return tl_fail(e, TL_INTERNAL, "a batch is open already");
    if (s->mode != TL_STORE_WRITE) return tl_fail(e, TL_INVALID, "%s was opened for reading only", s->path);
    int rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK) return store_sql_fail(s, rc, "beginning to write", e);
    tl_status st = read_head(s, e);
    if (st != TL_OK) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        return st;
    }
    s->batch = true;
    s->broken = false;
    s->batch_from = s->seq + 1;
    memcpy(s->batch_head, s->head, 32);
    return TL_OK;
}

/* Every row of the batch is read again from the database and hashed: what will be committed is what was meant. */
static tl_status read_back(tl_store *s, tl_err *e) {
    sqlite3_stmt *st = NULL;
    uint8_t prev[32], hash[32];
    memcpy(prev, s->batch_head, 32);
    tl_status status = store_prepare(&st, s, "SELECT seq, tab, hash FROM chain WHERE seq >= ? ORDER BY seq", e);
    if (status != TL_OK) return status;
    sqlite3_bind_int64(st, 1, s->batch_from);
    int64_t expected = s->batch_from;
    int rc;
    while (status == TL_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(st, 1);
        status = store_row_hash(hash, NULL, s, table, sqlite3_column_int64(st, 0), prev, e);
        if (status == TL_OK && (sqlite3_column_int64(st, 0) != expected || memcmp(hash, sqlite3_column_blob(st, 2), 32) != 0))
            status = tl_fail(e, TL_IO, "%s: a row of '%s' reads back other than it was written", s->path, table);
        memcpy(prev, hash, 32);
        expected++;
    }
    sqlite3_finalize(st);
    if (status == TL_OK && expected != s->seq + 1) status = tl_fail(e, TL_IO, "%s: rows are missing when read back", s->path);
    return status;
}

tl_status tl_store_commit(tl_store *s, tl_err *e) {
    if (!s->batch) return tl_fail(e, TL_INTERNAL, "no batch is open");
    if (s->broken) {
        tl_store_rollback(s);
        return tl_fail(e, TL_IO, "%s: the batch was lost to an earlier disk error", s->path);
    }
    tl_status st = read_back(s, e);
    if (st == TL_OK) {
        int rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK) st = store_sql_fail(s, rc, "committing", e);
    }
    if (st != TL_OK) tl_store_rollback(s);
    s->batch = false;
    return st;
}

void tl_store_rollback(tl_store *s) {
    if (!s->batch) return;
    if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->batch = false;
}

tl_status store_write_begin(tl_store *s, tl_err *e) {
    s->own = !s->batch;
    if (s->batch && s->broken) return tl_fail(e, TL_IO, "%s: the batch was lost to an earlier disk error", s->path);
    if (s->own) {
        tl_status st = tl_store_begin(s, e);
        if (st != TL_OK) return st;
    }
    tl_status st = store_exec(s, "SAVEPOINT row", e);
    if (st != TL_OK && s->own) tl_store_rollback(s);
    return st;
}

tl_status store_write_end(tl_store *s, tl_status st, tl_err *e) {
    if (!s->batch) return st;
    if (st == TL_OK) st = store_exec(s, "RELEASE row", e);
    if (s->own) {
        if (st == TL_OK) return tl_store_commit(s, e);
        tl_store_rollback(s);
        return st;
    }
    if (st == TL_OK) return st;
    tl_err ignored = {0}; /* a full disk may have rolled the whole transaction back */
    if (sqlite3_get_autocommit(s->db) || sqlite3_exec(s->db, "ROLLBACK TO row; RELEASE row", NULL, NULL, NULL) != SQLITE_OK ||
        read_head(s, &ignored) != TL_OK)
        s->broken = true;
    return st;
}

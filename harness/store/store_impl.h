/* Private to store: the open database, rows as lists of columns, and the chain. */
#ifndef TL_STORE_IMPL_H
#define TL_STORE_IMPL_H

#include <sqlite3.h>

#include "os/os.h"
#include "store/store.h"

#define TL_STORE_APPLICATION_ID 0x74616c79 /* "taly" */
#define TL_STORE_VERSION 1

typedef struct tl_store_lock {
    char run[TL_STORE_ID];
    tl_lock *lock;
} tl_store_lock;

struct tl_store {
    sqlite3 *db;
    char *path;
    tl_store_mode mode;
    bool batch;        /* inside begin .. commit */
    bool own;          /* the insert that runs owns its batch */
    bool broken;       /* the disk failed inside the batch: only rollback is possible */
    int64_t seq;       /* of the newest row, committed or in the batch */
    uint8_t head[32];  /* its hash */
    int64_t batch_from; /* first seq of the batch */
    uint8_t batch_head[32]; /* head before the batch */
    tl_store_lock *locks;
    size_t n_locks, cap_locks;
};

/* ---- schema.c ---- */

typedef struct tl_store_table {
    const char *name;
    const char *columns; /* all but seq, in the schema's order, separated by blanks */
    const char *unique;  /* groups of columns that identify a row: "id" or "run,key run,position"; NULL = seq only */
} tl_store_table;
extern const tl_store_table tl_store_tables[]; /* without chain */
extern const size_t tl_store_tables_n;
const tl_store_table *store_table(const char *name); /* NULL when unknown */
extern const char tl_store_schema_sql[];             /* schema.sql, embedded */
/* The guard triggers of every table, as SQL. Owned by the caller. */
char *store_guards_sql(void);

/* ---- store.c: running SQL ---- */

/* Turns an SQLite failure into an error that names the database and what to do. Always fails. */
tl_status store_sql_fail(tl_store *s, int rc, const char *what, tl_err *e);
tl_status store_exec(tl_store *s, const char *sql, tl_err *e) TL_MUST_USE;
/* Prepares one statement; finalized by the caller. */
tl_status store_prepare(sqlite3_stmt **out, tl_store *s, const char *sql, tl_err *e) TL_MUST_USE;

/* ---- row.c: one row into its table and into the chain ---- */

typedef enum tl_col_kind { TL_COL_NULL, TL_COL_INT, TL_COL_REAL, TL_COL_TEXT, TL_COL_BLOB } tl_col_kind;
typedef struct tl_col {
    tl_col_kind kind;
    int64_t i;
    double r;
    const void *p; /* text or blob, borrowed */
    size_t len;
} tl_col;
tl_col col_int(int64_t v);         /* TL_STORE_NONE = NULL */
tl_col col_real(double v);         /* NaN = NULL */
tl_col col_text(const char *t);    /* NULL = NULL */
tl_col col_blob(const void *p, size_t n);
/* The columns of a table in its order. Checks UTF-8 and NUL, inserts, chains. Inside store_write_begin/_end. */
tl_status store_row(tl_store *s, const char *table, const tl_col *cols, size_t n, tl_err *e) TL_MUST_USE;
/* Brackets the rows of one public insert: a batch of its own when none is open; all or none. `st` is how it went. */
tl_status store_write_begin(tl_store *s, tl_err *e) TL_MUST_USE;
tl_status store_write_end(tl_store *s, tl_status st, tl_err *e) TL_MUST_USE;
/* Hash of the row `seq` of `table` as it stands in the database, after `prev`. hints (may be NULL) gets 4 bytes a column.
 * TL_NOT_FOUND: no such row. */
tl_status store_row_hash(uint8_t out[32], tl_buf *hints, tl_store *s, const char *table, int64_t seq,
                         const uint8_t prev[32], tl_err *e) TL_MUST_USE;

/* ---- json.c ---- */

/* Canonical text for a column; NULL for NULL and JSON null. A NUL inside a string, which SQLite and jansson's own reading
 * do not carry, gives a text that store_row refuses. Owned by the caller. */
char *store_json_text(const json_t *j);
/* The current row of a statement as an object: columns named in `json_columns` (blank separated; may be NULL) are parsed,
 * blobs become hex text. New reference. */
json_t *store_row_json(sqlite3_stmt *st, const char *json_columns);

#endif

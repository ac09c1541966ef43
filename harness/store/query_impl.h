/* Private to store's queries: prepared reads with text parameters. */
#ifndef TL_STORE_QUERY_IMPL_H
#define TL_STORE_QUERY_IMPL_H

#include "store/store_impl.h"

/* Prepares and binds text parameters in order; NULL is bound as NULL. Finalized by the caller. */
tl_status query_open(sqlite3_stmt **out, tl_store *s, const char *sql, const char *const *args, size_t n,
                     tl_err *e) TL_MUST_USE;
/* *more: a row is there. */
tl_status query_step(bool *more, tl_store *s, sqlite3_stmt *st, tl_err *e) TL_MUST_USE;
/* All rows as an array of objects (see store_row_json). */
tl_status query_all(json_t **out, tl_store *s, const char *sql, const char *json_columns, const char *const *args,
                    size_t n, tl_err *e) TL_MUST_USE;
/* The first row, or TL_NOT_FOUND, which names `what` and the first parameter. */
tl_status query_one(json_t **out, tl_store *s, const char *sql, const char *json_columns, const char *what,
                    const char *id, tl_err *e) TL_MUST_USE;
/* One text of one row by id, copied; TL_NOT_FOUND as above. */
tl_status query_text(char **out, tl_store *s, const char *sql, const char *what, const char *id, tl_err *e) TL_MUST_USE;

/* Several reads of one state: other processes' commits in between stay invisible. Closed in every case. */
tl_status query_snapshot(tl_store *s, tl_err *e) TL_MUST_USE;
void query_snapshot_end(tl_store *s);

/* The columns of a value as the queries give them, from `value v`. */
#define VALUE_COLUMNS                                                                                                  \
    "v.id, v.run, v.cell, v.name, v.label, v.number, v.null_reason, v.lo, v.hi, v.interval, v.n, v.unit, "              \
    "v.statistic, v.formula, v.source, "                                                                               \
    "CASE WHEN EXISTS (SELECT 1 FROM retraction WHERE value = v.id) THEN 'true' ELSE 'false' END AS retracted"
#define VALUE_JSON "source retracted"

#endif

/* A store in a folder of its own, filled with one small run whose numbers the tests know. */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sqlite3.h>

#include "os/os.h"
#include "store/store.h"

#define WALL 1767225600000000000 /* 2026-01-01 */

typedef struct fx {
    char *dir, *path;
    tl_store *s;
    char machine[65], engine[65], model[65], experiment[65];
    char run[TL_STORE_ID], trial[TL_STORE_ID];
} fx;

int fx_setup(void **state);  /* an empty store */
int fx_filled(void **state); /* with run, two cells, a trial */
int fx_teardown(void **state);

void fill(fx *f);
/* Everything there is a table for: requests, values with a tree, a figure, a retraction ... */
void fill_all(fx *f);
tl_store *open_mode(const char *path, tl_store_mode mode);
tl_store_run a_run(const fx *f);
tl_store_request a_request(const fx *f, int64_t position);
tl_store_value a_value(const fx *f, double number);
void add_request(fx *f, int64_t position, const char *outcome, const char *metrics);

/* Behind the store's back, with plain SQLite: returns its result code; *text (may be NULL) the message, to be freed. */
int raw(const char *path, const char *sql, char **text);
int64_t raw_int(const char *path, const char *sql);
json_t *js(const char *text);
const char *message(const char *fmt, ...) TL_PRINTF(1, 2); /* static: for assertions */

#define ok(expr) do { tl_err e_ = {0}; tl_err *e = &e_; tl_status st_ = (expr); if (st_ != TL_OK) fail_msg("%s: %s", #expr, e_.msg); } while (0)
/* Fails with that code and says `words`. */
#define refused(code_, words, expr)                                                                               \
    do {                                                                                                          \
        tl_err e_ = {0};                                                                                          \
        tl_err *e = &e_;                                                                                          \
        tl_status st_ = (expr);                                                                                   \
        if (st_ != (code_)) fail_msg("%s gave %s: %s", #expr, tl_status_name(st_), e_.msg);                       \
        if (strstr(e_.msg, (words)) == NULL) fail_msg("%s said '%s', not '%s'", #expr, e_.msg, (words));          \
    } while (0)

#endif

/* base: the ground every other module stands on: status and error object, memory, text buffer, SHA-256, seeded
 * random numbers, log, progress line, JSON.
 *
 * Not for: anything that knows about engines, runs, files of a platform, or time (see os/).
 * Owner of: jansson (JSON) and libcrypto (SHA-256). Only this module includes their headers; other modules use
 * json_t through this one.
 * Threads: every object belongs to the thread that uses it. The log may be written from any thread.
 *
 * Out of memory: tl_xalloc and friends end the process with one line and exit code 1. What a run has finished is
 * already committed to the store by then, so nothing finished is lost, and no layer carries unwinding code that no
 * test would ever take.
 */
#ifndef TL_BASE_H
#define TL_BASE_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define TL_MUST_USE __attribute__((warn_unused_result))
#define TL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TL_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TL_UNUSED(x) ((void)(x))

/* ---- status and error object ------------------------------------------------------------------------------- */

typedef enum tl_status {
    TL_OK = 0,
    TL_INVALID = -1,   /* the input is wrong: a script, a file, an argument */
    TL_NOT_FOUND = -2, /* a named thing does not exist */
    TL_IO = -3,        /* the operating system refused: file, disk, permission */
    TL_HTTP = -4,      /* the transport or the peer failed */
    TL_ENGINE = -5,    /* the engine could not start, died, or answered nonsense */
    TL_TIMEOUT = -6,
    TL_SCRIPT = -7, /* Lua: syntax, run time, limits */
    TL_CONFLICT = -8, /* somebody else holds it, or it exists and differs */
    TL_LIMIT = -9,    /* a stated limit was reached (buffer maximum, steps) */
    TL_CANCELLED = -10,
    TL_INTERNAL = -11, /* a bug of ours */
    TL_MISSING = -12,  /* the environment lacks something: exit code 4 */
    TL_REFUSED = -13,  /* a check refused: exit code 3 */
} tl_status;

/* Caller-owned, passed last, fixed storage: reporting an error cannot fail. `msg` is one line that names the file,
 * line and value; `remedy` (may be empty) says what to do. A NULL tl_err* is allowed everywhere. */
typedef struct tl_err {
    tl_status code;
    int line;         /* where in tally's source */
    const char *file; /* static string */
    char msg[768];
    char remedy[384];
} tl_err;

/* Sets *e and returns `code`. Used where the failure happens. A second call replaces the first. */
#define tl_fail(e, code, ...) tl_fail_at((e), (code), __FILE__, __LINE__, __VA_ARGS__)
tl_status tl_fail_at(tl_err *e, tl_status code, const char *file, int line, const char *fmt, ...) TL_PRINTF(5, 6);
/* Puts context in front of the message ("while starting engine 'llama.cpp': ..."). Returns e's code. */
tl_status tl_wrap(tl_err *e, const char *fmt, ...) TL_PRINTF(2, 3);
/* Sets what the user can do about it. Returns e's code. */
tl_status tl_remedy(tl_err *e, const char *fmt, ...) TL_PRINTF(2, 3);
void tl_err_clear(tl_err *e);
/* "invalid", "not-found", ...: stable names for JSON output. */
const char *tl_status_name(tl_status s);
/* The documented exit codes: 0 ok, 1 differs or failed, 2 usage, 3 check refused, 4 something missing. */
int tl_exit_code(tl_status s);

/* The function declares `tl_status st = TL_OK;` and ends in one label `out:`. */
#define TRY(expr)                                                                                              \
    do {                                                                                                       \
        st = (expr);                                                                                           \
        if (st != TL_OK) goto out;                                                                             \
    } while (0)

/* ---- memory ------------------------------------------------------------------------------------------------- */

void *tl_xalloc(size_t size) TL_MUST_USE;              /* zeroed; never NULL; size 0 is allowed */
void *tl_xrealloc(void *p, size_t size) TL_MUST_USE;   /* never NULL */
char *tl_xstrdup(const char *s) TL_MUST_USE;           /* NULL gives NULL */
char *tl_xstrndup(const char *s, size_t n) TL_MUST_USE;
char *tl_xprintf(const char *fmt, ...) TL_PRINTF(1, 2) TL_MUST_USE; /* owned by the caller */
/* Makes room for `need` elements of `elem` bytes in *p (capacity *cap), doubling. */
void tl_grow(void *p_ptr, size_t *cap, size_t need, size_t elem);
#define TL_PUSH(arr, n, cap, val) (tl_grow(&(arr), &(cap), (n) + 1, sizeof *(arr)), (arr)[(n)++] = (val))

/* Arena: many small allocations with one end of life. Never freed singly. */
typedef struct tl_arena tl_arena;
tl_arena *tl_arena_new(void);
void tl_arena_free(tl_arena *a); /* NULL ok */
void *tl_arena_alloc(tl_arena *a, size_t size); /* zeroed, 16-byte aligned */
char *tl_arena_strdup(tl_arena *a, const char *s);
char *tl_arena_printf(tl_arena *a, const char *fmt, ...) TL_PRINTF(2, 3);

/* ---- text buffer: owns its bytes, always NUL-terminated ----------------------------------------------------- */

typedef struct tl_buf {
    char *p;     /* never NULL after init; p[len] == 0 */
    size_t len;
    size_t cap;
    size_t max;  /* limit given at init; 0 = none */
    bool over;   /* an append went past max and was dropped */
} tl_buf;
void tl_buf_init(tl_buf *b, size_t max);
void tl_buf_free(tl_buf *b);                 /* zeroed struct ok, twice ok */
void tl_buf_clear(tl_buf *b);
void tl_buf_add(tl_buf *b, const void *p, size_t n);
void tl_buf_str(tl_buf *b, const char *s);
void tl_buf_char(tl_buf *b, char c);
void tl_buf_fmt(tl_buf *b, const char *fmt, ...) TL_PRINTF(2, 3);
void tl_buf_vfmt(tl_buf *b, const char *fmt, va_list ap) TL_PRINTF(2, 0);
char *tl_buf_take(tl_buf *b); /* detaches: caller frees; the buffer is empty and usable again */

/* ---- text helpers -------------------------------------------------------------------------------------------- */

bool tl_str_eq(const char *a, const char *b); /* NULLs compare equal to each other only */
bool tl_str_starts(const char *s, const char *prefix);
bool tl_str_ends(const char *s, const char *suffix);
/* Whole string as a number; false for anything else (also inf, nan, out of range). Locale-free. */
bool tl_parse_i64(const char *s, int64_t *out);
bool tl_parse_f64(const char *s, double *out);
/* Shortest decimal that reads back as x, in the C locale ("0.1", "1e+20"); "null" for nan/inf. */
void tl_fmt_f64(char out[32], double x);
/* Nearest of `n` names by edit distance, or NULL when nothing is near: for "did you mean". */
const char *tl_nearest(const char *word, const char *const *names, size_t n);
/* Valid UTF-8 without NUL? */
bool tl_utf8_valid(const char *s, size_t n);
/* Columns on a terminal (wide East Asian characters count 2). Locale-free. */
int tl_utf8_width(const char *s);
/* Appends s to b with &, <, >, ", ' escaped for HTML/XML; control bytes and invalid UTF-8 become U+FFFD. */
void tl_buf_html(tl_buf *b, const char *s);
/* Appends s quoted for a POSIX shell (only when it needs it). */
void tl_buf_shell(tl_buf *b, const char *s);

/* ---- SHA-256, identifiers, random ---------------------------------------------------------------------------- */

typedef struct tl_sha256 tl_sha256;
tl_sha256 *tl_sha256_new(void);
void tl_sha256_add(tl_sha256 *h, const void *p, size_t n);
void tl_sha256_end(tl_sha256 *h, uint8_t out[32]); /* frees h */
void tl_sha256_drop(tl_sha256 *h);                 /* frees h without a result; NULL ok */
void tl_sha256_of(const void *p, size_t n, uint8_t out[32]);
void tl_hex(char *out, const uint8_t *p, size_t n); /* out has 2n+1 bytes */
void tl_sha256_hex(const void *p, size_t n, char out[65]);

/* xoshiro256** seeded by splitmix64 (public domain algorithms, prng.di.unimi.it). Deterministic everywhere. */
typedef struct tl_rng {
    uint64_t s[4];
} tl_rng;
void tl_rng_seed(tl_rng *r, uint64_t seed);
uint64_t tl_rng_u64(tl_rng *r);
double tl_rng_f64(tl_rng *r);                    /* [0, 1) */
uint64_t tl_rng_below(tl_rng *r, uint64_t n);    /* [0, n), unbiased; n > 0 */
void tl_rng_shuffle(tl_rng *r, void *base, size_t n, size_t elem);
/* 64-bit seed from any text, for seeds derived from names. */
uint64_t tl_seed_of(const char *text);

/* ULID: 26 characters, sorts by time. `wall_ms` since 1970, `rnd` 10 random bytes. */
void tl_ulid(char out[27], uint64_t wall_ms, const uint8_t rnd[10]);

/* ---- log and progress (standard error) ----------------------------------------------------------------------- */

typedef enum tl_level { TL_LOG_QUIET, TL_LOG_ERROR, TL_LOG_WARN, TL_LOG_INFO, TL_LOG_DEBUG } tl_level;
extern tl_level tl_log_level; /* default TL_LOG_INFO; set once by main */
void tl_log(tl_level level, const char *fmt, ...) TL_PRINTF(2, 3);
/* Colour on this stream? Only on a terminal, without NO_COLOR, TERM not "dumb". */
bool tl_color(FILE *f);

/* One line with share done, what, and ETA. On a terminal it rewrites itself; elsewhere a plain line at most every
 * 10 s and at the end. `now_s` is any monotonic time in seconds (base has no clock). */
typedef struct tl_progress {
    char what[96];
    double start_s, last_s, done, total;
    bool tty, quiet, shown;
} tl_progress;
void tl_progress_start(tl_progress *p, const char *what, double total, double now_s);
void tl_progress_set(tl_progress *p, double done, const char *detail, double now_s);
void tl_progress_end(tl_progress *p); /* clears the line; twice ok */

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

/* Parses exactly one JSON text; duplicate keys are refused; the error names `what`, line and column. */
tl_status tl_json_parse(json_t **out, const char *text, size_t len, const char *what, tl_err *e) TL_MUST_USE;
/* Canonical text: sorted keys, no blanks, doubles in shortest form; the same value gives the same bytes. Owned by the
 * caller. */
char *tl_json_canonical(const json_t *j);
char *tl_json_pretty(const json_t *j); /* owned by the caller; for people */
/* Path "a.b.c" through objects ("a.0" indexes arrays); borrowed; NULL when absent or j is NULL. */
json_t *tl_json_at(const json_t *j, const char *path);
const char *tl_json_str(const json_t *j, const char *path, const char *otherwise);
int64_t tl_json_int(const json_t *j, const char *path, int64_t otherwise);
double tl_json_num(const json_t *j, const char *path, double otherwise); /* ints too */
bool tl_json_bool(const json_t *j, const char *path, bool otherwise);
/* NaN and infinities become null. New reference. */
json_t *tl_json_real(double x);

#include "base/banned.h"

#endif

/* engine, inside: the life cycle's object and the steps between its files. */
#ifndef TL_ENGINE_IMPL_H
#define TL_ENGINE_IMPL_H

#include "engine/engine.h"
#include "os/os.h"

struct tl_engine {
    json_t *adapter;
    json_t *facts;
    char *url;
    char *binary;   /* NULL when attached, as the next three */
    char *log_path;
    char *help;     /* the build's own help text: which flags it knows */
    tl_child *child;
    size_t log_start; /* bytes of the log that belong to earlier starts of the same call */
    tl_ns stop_grace_ns;
};

/* ---- text.c: the engine's log, and the adapter's expressions over it ---- */

/* The log from `start` on; of a log over 16 MiB its first and last 8 MiB. NUL bytes become blanks. */
void tl_engine_log_text(tl_buf *out, const char *path, size_t start);
size_t tl_engine_log_size(const char *path);
/* Groups of the first (or last) line of `text` that matches: out[i] owned by the caller, NULL when absent. */
bool tl_engine_match(char **out, size_t n_out, const char *text, const char *pattern, bool last);
/* Calls fn for each line that matches. */
typedef void tl_engine_line_fn(void *ctx, char **groups, size_t n);
void tl_engine_match_all(const char *text, const char *pattern, size_t n_groups, tl_engine_line_fn *fn, void *ctx);
/* The most telling failure line of `text` by the adapter's list: its rule (borrowed) and the line, cleaned for an error
 * message. NULL when no rule matches. */
const json_t *tl_engine_failure(tl_buf *line_out, const json_t *adapter, const char *text);
/* The last line that is not blank, cleaned. */
void tl_engine_last_line(tl_buf *out, const json_t *adapter, const char *text);

/* ---- identity.c: what the executable is ---- */

/* Fills facts.version, binary, packages, env; keeps g->help. */
tl_status tl_engine_identify(tl_engine *g, tl_err *e) TL_MUST_USE;

/* ---- args.c: settings -> arguments ---- */

/* The whole argv as a JSON array of strings; checks names, types and ranges of the settings and records
 * facts.requested and facts.dropped_flags. */
tl_status tl_engine_args(json_t **argv_out, tl_engine *g, const tl_engine_spec *spec, uint16_t port,
                         tl_err *e) TL_MUST_USE;

/* ---- facts.c: what is really in force ---- */

/* Fills facts.effective, buffers, devices, backends, raw, differences, unverified. Never fails: what cannot be read is
 * listed as unverified. */
void tl_engine_read_back(tl_engine *g);

/* URL + path, owned by the caller. */
char *tl_engine_at(const tl_engine *g, const char *path);
/* "engine 'llama.cpp'", for messages. */
const char *tl_engine_name_of(const json_t *adapter);
/* NULL-terminated, borrowed strings of a JSON array; the array itself is the caller's. */
const char **tl_engine_strings(const json_t *array);

#endif

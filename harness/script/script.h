/* script: Lua at both ends. Before a run it turns an experiment file into data; after it, stored data into figures
 * and tables. It is never called while a token is being timed.
 *
 * Not for: I/O. A script has no `os`, no `io`, no `load`; machine facts reach it as arguments, so that they are recorded.
 * Owner of: Lua 5.4. No other module includes its headers; data crosses as JSON. A JSON object that is a value (number +
 * unit + label + source, see value.h) becomes a tl.Value on the Lua side and back, so units and labels survive.
 * Threads: a tl_script belongs to one thread.
 *
 * Known hole, as every Lua host has it: the instruction limit cannot interrupt one long call of a C function, such as a
 * hostile pattern in string.find.
 */
#ifndef TL_SCRIPT_H
#define TL_SCRIPT_H

#include "base/base.h"

typedef struct tl_script tl_script;

typedef struct tl_script_options {
    const char *lua_dir;       /* NULL: the library embedded in the binary; else this folder first */
    uint64_t max_instructions; /* 0 = 200 million a call, about two seconds */
    size_t max_memory;         /* 0 = 512 MiB */
} tl_script_options;

tl_status tl_script_new(tl_script **out, const tl_script_options *opt, tl_err *e) TL_MUST_USE;
void tl_script_free(tl_script *s); /* NULL ok */

/* Runs a file's text (a chunk that returns a table) and keeps what it returned as the script's object.
 * `path` is only a name for messages and the folder `require` may also read; `text` is the script itself.
 * TL_SCRIPT with file, line and traceback on a syntax or run-time error, an endless loop, or a forbidden global. */
tl_status tl_script_load(tl_script *s, const char *path, const char *text, tl_err *e) TL_MUST_USE;

/* The loaded object as data (functions left out). For an experiment: the description that tl_plan_from_json takes. */
tl_status tl_script_object(json_t **out, tl_script *s, tl_err *e) TL_MUST_USE;

/* Calls the loaded experiment's `predict` with a cell {machine=…, model=…, <axis>=…}; a value as JSON, or JSON null
 * when the experiment has no prediction. */
tl_status tl_script_predict(json_t **out, tl_script *s, const json_t *cell, tl_err *e) TL_MUST_USE;

/* Evaluates a Lua table constructor, as in a report's fenced block, to JSON. `name:line` heads messages. */
tl_status tl_script_eval(json_t **out, tl_script *s, const char *text, const char *name, int line, tl_err *e) TL_MUST_USE;

/* Runs a data file of the library or of a folder (machines/t1.lua, lua/engine/llamacpp.lua) and returns its table. */
tl_status tl_script_data(json_t **out, tl_script *s, const char *path, const char *text, tl_err *e) TL_MUST_USE;

/* Calls a function of the library: require(module)[function](argument). */
tl_status tl_script_call(json_t **out, tl_script *s, const char *module, const char *function, const json_t *arg,
                         tl_err *e) TL_MUST_USE;

/* A library file's text by its name below lua/ ("engine/llamacpp.lua"): from lua_dir if set, else embedded. Owned by the
 * caller. */
tl_status tl_script_library(char **out, const tl_script *s, const char *name, tl_err *e) TL_MUST_USE;
/* Names of the library files, sorted; NULL-terminated; borrowed. For listings. */
const char *const *tl_script_library_names(void);

#endif

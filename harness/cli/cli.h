/* cli: main, one file a verb, and what verbs share. Help, man page and shell completions come from the verbs'
 * tables.
 *
 * A verb is one file verb_NAME.c that defines `const tl_verb tl_verb_NAME`, and one line in verbs.h. Nothing
 * else has to be changed: build, help, man page and completions follow.
 *
 * Not for: logic that a report or a script could need too; that belongs to the module it is about.
 * Threads: everything here runs on the main thread.
 */
#ifndef TL_CLI_H
#define TL_CLI_H

#include "base/base.h"
#include "os/os.h"

/* What shells offer to complete an option's or an operand's argument with. */
typedef enum tl_complete {
    TL_COMPLETE_NONE,
    TL_COMPLETE_FILE,
    TL_COMPLETE_DIR,
    TL_COMPLETE_EXPERIMENT,
    TL_COMPLETE_MACHINE
} tl_complete;

typedef struct tl_option {
    const char *name; /* long name without "--" */
    char letter;      /* short name, or 0 */
    const char *arg;  /* "FILE", "N"; NULL for a flag */
    const char *help;
    const char *otherwise; /* default as shown; NULL = none */
    tl_complete complete;
    bool many; /* may be given more than once */
} tl_option;

typedef struct tl_example {
    const char *command, *what;
} tl_example;

typedef struct tl_exit {
    int code;
    const char *when;
} tl_exit;

typedef struct tl_cli tl_cli;

typedef struct tl_verb {
    const char *name, *summary; /* summary: a phrase without a full stop */
    const char *usage;          /* what follows "tally NAME [options]": "EXPERIMENT", "[ARCH] -o FILE" */
    const char *about;          /* paragraphs separated by an empty line */
    const tl_option *options;   /* ends with {0}; NULL = none */
    /* Options that come from another module's table (synth): called with 0, 1, ... until it returns NULL. May
     * be NULL. */
    const tl_option *(*more_options)(size_t i);
    const tl_example *examples; /* ends with {0}; at least one */
    const tl_exit *exits;       /* ends with {NULL when}; at least codes 0 and 2 */
    tl_complete complete;       /* of operands */
    int min_args, max_args;     /* operands; max -1 = any number */
    tl_status (*run)(tl_cli *c, tl_err *e);
} tl_verb;
extern const tl_verb *const tl_verbs[];        /* sorted by name, ends with NULL */
const tl_verb *tl_verb_find(const char *name); /* NULL when unknown */

/* ---- what a verb gets
 * ---------------------------------------------------------------------------------------------- */

typedef struct tl_given {
    const tl_option *option;
    const char *value; /* NULL for a flag */
} tl_given;

struct tl_cli {
    const tl_verb *verb;
    int argc;
    char **argv;       /* the whole command line, for the record */
    const char **args; /* operands */
    size_t n_args;
    tl_given *given; /* options in the order given, global ones included */
    size_t n_given;
    bool json, no_color;
    const char *lua_dir;   /* --lua-dir or NULL */
    const char *db_option; /* --db or NULL */
    FILE *out;             /* results; messages go to standard error */
    int exit_code;         /* what main returns when run gives TL_OK: 0, or set it to 1 for "differs" */
    char *root, *db;       /* found on first use */
};

bool tl_cli_flag(const tl_cli *c, const char *name);
/* The last one given, else `otherwise`. */
const char *tl_cli_text(const tl_cli *c, const char *name, const char *otherwise);
/* The i-th value of an option that may be given more than once; NULL after the last. */
const char *tl_cli_nth(const tl_cli *c, const char *name, size_t i);
/* Absent gives `otherwise`. TL_INVALID names the option, the text and the bounds. */
tl_status tl_cli_int(int64_t *out, const tl_cli *c, const char *name, int64_t otherwise, int64_t min,
                     int64_t max, tl_err *e) TL_MUST_USE;
/* "350MB", "1.5GiB", "4096": bytes. */
tl_status tl_cli_bytes(uint64_t *out, const tl_cli *c, const char *name, uint64_t otherwise,
                       tl_err *e) TL_MUST_USE;

/* A wrong command line: fails so that the exit code is 2 and the message names `tally VERB --help`. */
tl_status tl_cli_usage(tl_cli *c, tl_err *e, const char *fmt, ...) TL_PRINTF(3, 4);

/* The project: the nearest folder upwards from the working folder that holds machines/ and experiments/.
 * Borrowed. TL_NOT_FOUND with remedy when there is none. */
tl_status tl_cli_root(const char **out, tl_cli *c, tl_err *e) TL_MUST_USE;
/* --db, else TALLY_DB, else tally.db in the project. Borrowed; need not exist. */
tl_status tl_cli_db(const char **out, tl_cli *c, tl_err *e) TL_MUST_USE;
/* Prints JSON for --json: pretty, with a line end. Steals nothing. */
void tl_cli_print_json(tl_cli *c, const json_t *j);
/* A table for people: cells[rows * columns], first row = headers; columns line up also with wide characters.
 */
void tl_cli_table(tl_cli *c, const char *const *cells, size_t rows, size_t columns);

/* Pressed Ctrl-C? To hand on as a `cancelled` function. */
bool tl_cli_cancelled(void *unused);

/* ---- version (compiled in, re-checked at each build)
 * ----------------------------------------------------------------- */

const char *tl_version(void);          /* "0.1.0" */
const char *tl_version_revision(void); /* commit, or "unknown" */
bool tl_version_dirty(void);           /* built from a changed working tree */
/* {"version", "revision", "dirty", "compiler", "libraries": {...}}: recorded with each run. New reference. */
json_t *tl_version_json(void);

#endif

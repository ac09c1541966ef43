/* store: one SQLite database a project: append-only, hash-chained. Everything a run did, and every number with its
 * label and source. The schema with the meaning of each column stands in README.md (generated from schema.sql).
 *
 * Not for: deciding what is true (sample computes, value checks units); this module refuses what must not be stored
 * and keeps the rest exactly. Nothing can be changed or deleted; a correction is a new row.
 * Owner of: SQLite.
 * Threads: a tl_store belongs to the thread that opened it. Several processes may use one file at the same time.
 *
 * Text fields are UTF-8 without NUL, NULL means "unknown" and is stored as NULL. Fields named *_json hold one JSON
 * text (json_t fields: borrowed, stored canonically). Ids are ULIDs of 26 characters made here, except machine,
 * engine, model and experiment, whose id is a SHA-256 in hex. Times named t_*_ns are monotonic, relative to the run's
 * anchor; TL_STORE_NONE marks "did not happen" and is stored as NULL.
 */
#ifndef TL_STORE_H
#define TL_STORE_H

#include "base/base.h"

typedef struct tl_store tl_store;

#define TL_STORE_ID 27             /* bytes of a ULID with its NUL */
#define TL_STORE_NONE INT64_MIN    /* an integer that is not known */
#define TL_STORE_NAN (__builtin_nan("")) /* a real that is not known */

/* ---- open and close ------------------------------------------------------------------------------------------ */

typedef enum tl_store_mode {
    TL_STORE_WRITE,   /* created when absent, migrated when old */
    TL_STORE_READ,    /* must exist; never written, not even migrated */
    TL_STORE_FOREIGN, /* somebody else's file: immutable, defensive, checked before the first query */
} tl_store_mode;

typedef struct tl_store_options {
    tl_store_mode mode;
    int busy_ms;         /* how long to wait for another process; 0 = 30 s */
    bool network_fs;     /* the file lies on a network file system: DELETE journal instead of WAL, and a warning */
    int64_t max_bytes;   /* limit of the file's size, 0 = none */
} tl_store_options;

/* Errors: TL_NOT_FOUND (absent, read mode), TL_INVALID (not a database, or not tally's), TL_CONFLICT (written by a
 * newer tally; locked by another process), TL_IO (permission, read-only, disk). opt may be NULL: write mode.
 * Detects network file systems by itself too. */
tl_status tl_store_open(tl_store **out, const char *path, const tl_store_options *opt, tl_err *e) TL_MUST_USE;
void tl_store_close(tl_store *s); /* NULL ok; an open batch is rolled back */
const char *tl_store_path(const tl_store *s);
int tl_store_schema_version(void);

/* ---- batches --------------------------------------------------------------------------------------------------
 * Each insert outside a batch is a batch of its own. Commit reads every row back and compares before it commits;
 * when it returns TL_OK the rows survive kill -9 and power loss. A failed insert leaves the batch usable when the
 * row itself was refused (TL_INVALID, TL_CONFLICT); after a failing disk the whole batch is gone and commit says so. */
tl_status tl_store_begin(tl_store *s, tl_err *e) TL_MUST_USE;
tl_status tl_store_commit(tl_store *s, tl_err *e) TL_MUST_USE;
void tl_store_rollback(tl_store *s); /* without a batch: nothing */

/* ---- descriptions, stored once by content --------------------------------------------------------------------- */

/* id = SHA-256 of the canonical JSON. Same content, same id, no second row. `name` is "T1", "this", ... or NULL. */
tl_status tl_store_machine(char id[65], tl_store *s, const char *name, const json_t *facts, tl_err *e) TL_MUST_USE;
/* facts: name, version, build, binary_sha256, cmdline, requested and effective settings, endpoint. */
tl_status tl_store_engine(char id[65], tl_store *s, const char *name, const json_t *facts, tl_err *e) TL_MUST_USE;
/* Facts of the same file read by a later tally do not replace the first ones. */
tl_status tl_store_model(tl_store *s, const char *sha256, const char *name, int64_t bytes, const json_t *facts,
                         tl_err *e) TL_MUST_USE;
/* id = SHA-256 of the script text. `facts`: title, question, map, day, libraries with their hashes. */
tl_status tl_store_experiment(char id[65], tl_store *s, const char *name, const char *script, const json_t *facts,
                              tl_err *e) TL_MUST_USE;

/* ---- one run ---------------------------------------------------------------------------------------------------- */

typedef struct tl_store_run {
    const char *kind;          /* "experiment", "probe", "calibrate", "rerun", "import" */
    const char *experiment_id; /* may be NULL unless kind is "experiment" */
    const char *machine_id;
    const char *machine_claim; /* "T1".."T4" when the live probe matched that profile, else NULL */
    bool simulated;            /* its numbers can never be labelled measured */
    const char *plan;          /* canonical text */
    const char *plan_sha256;   /* of that text; NULL: computed here */
    uint64_t seed;
    const json_t *argv, *env, *tally, *git; /* tally: version, revision, dirty */
    const json_t *facts;       /* anything else known before the first request (calibration, files); may be NULL */
    const char *rerun_of;      /* a run or figure of another database, free text, or NULL */
    int64_t wall_ns;           /* since 1970, once */
    const char *utc_offset;    /* "+08:00" */
} tl_store_run;

/* Also writes the state "started". id: the new ULID. */
tl_status tl_store_run_start(char id[TL_STORE_ID], tl_store *s, const tl_store_run *r, tl_err *e) TL_MUST_USE;

typedef enum tl_store_phase {
    TL_STORE_STARTED,
    TL_STORE_RESUMED,
    TL_STORE_INTERRUPTED,
    TL_STORE_FAILED, /* needs a reason */
    TL_STORE_DONE,
    TL_STORE_INVALID, /* needs a reason; final */
} tl_store_phase;
const char *tl_store_phase_name(tl_store_phase p);

/* Appends a transition. A resumed run starts a new session with its own anchor: wall_ns and utc_offset are needed
 * then and refused otherwise. Legal: started|resumed -> interrupted|failed|done|resumed (after a crash);
 * interrupted|failed -> resumed; anything but invalid -> invalid. Else TL_CONFLICT. */
typedef struct tl_store_state {
    tl_store_phase state;
    int64_t t_ns;
    const char *reason;      /* one line, or NULL */
    const json_t *facts;     /* or NULL */
    int64_t wall_ns;         /* RESUMED only, else 0 */
    const char *utc_offset;  /* RESUMED only, else NULL */
} tl_store_state;
tl_status tl_store_run_state(tl_store *s, const char *run_id, const tl_store_state *t, tl_err *e) TL_MUST_USE;

/* Holds a run for this process until released, closed, or the process ends in any way. TL_CONFLICT when another
 * process holds it. */
tl_status tl_store_run_lock(tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
void tl_store_run_unlock(tl_store *s, const char *run_id);

/* A cell: one condition of the plan. `key`: the plan's name for it, unique in the run. Position counts from 0. */
typedef struct tl_store_cell {
    const char *run_id, *key;
    int64_t position;
    const json_t *axes;      /* {"model": "q4_0", "context": 512} */
    const char *model_sha256; /* a stored model, or NULL */
    const json_t *facts;     /* workload, prediction text, prompt set digest ...; may be NULL */
} tl_store_cell;
tl_status tl_store_cell_add(tl_store *s, const tl_store_cell *c, tl_err *e) TL_MUST_USE;

/* A trial: one visit of a block (cell, round). A block that was interrupted gets a second visit when resumed. */
typedef struct tl_store_trial {
    const char *run_id, *cell_key;
    int64_t round, position;     /* position: the block's place in the plan's order */
    const char *engine_id;       /* or NULL (simulated) */
    const char *cache_claimed;   /* "cold", "primed", "warm(90%)" */
    int64_t t_start_ns;
    const json_t *probe_before;  /* paired probe and machine state, or NULL */
} tl_store_trial;
tl_status tl_store_trial_start(char id[TL_STORE_ID], tl_store *s, const tl_store_trial *t, tl_err *e) TL_MUST_USE;

typedef struct tl_store_trial_end {
    const char *trial_id;
    bool finished;               /* all its requests are in; false: cut short, see reason */
    const char *reason;
    const char *cache_verified;  /* what the engine's own count says; NULL: could not be verified */
    int64_t t_end_ns;
    const json_t *probe_after;
    const json_t *facts;         /* flags, relabelling, engine counters; may be NULL */
} tl_store_trial_end;
tl_status tl_store_trial_finish(tl_store *s, const tl_store_trial_end *t, tl_err *e) TL_MUST_USE;

/* One element of a request's two time lines: what the wire delivered ("read") and what it meant (all others). The
 * first kinds are those of sample's tl_event, in its order; the list only ever grows at its end. */
typedef struct tl_store_event {
    int64_t t_ns;
    uint32_t kind;  /* index into tl_store_event_kinds */
    uint32_t bytes; /* of text in an event; of the wire in a read */
    uint32_t read;  /* number of the read that completed it */
} tl_store_event;
/* "role", "reasoning", "content", "tool", "progress", "usage", "finish", "comment", "error", "done", "other", "read" */
extern const char *const tl_store_event_kinds[];
extern const size_t tl_store_event_kinds_n;
#define TL_STORE_READ_KIND 11u
/* Compact form: delta-coded varints. Any times and sizes survive exactly, in any order. Owned by the caller. */
void tl_store_events_encode(tl_buf *out, const tl_store_event *ev, size_t n);
tl_status tl_store_events_decode(tl_store_event **out, size_t *n, const void *p, size_t len, tl_err *e) TL_MUST_USE;

typedef struct tl_store_request {
    const char *trial_id;
    int64_t position;          /* in the trial, from 0; unique there */
    const char *role;          /* "warmup", "measured" */
    int64_t session;           /* user or session number; TL_STORE_NONE */
    const char *outcome;       /* "ok", "failed", "truncated", "timeout", "cancelled" */
    const char *error_class;   /* failed: needed */
    const char *error_text;
    int64_t http_status;       /* TL_STORE_NONE */
    int64_t t_intended_ns, t_sent_ns, t_connected_ns, t_headers_ns, t_first_byte_ns, t_close_ns;
    int64_t connects;          /* connections used; TL_STORE_NONE */
    const json_t *body;        /* request as sent, without the prompt text if that is an artifact; may be NULL */
    const char *prompt_sha256; /* or NULL */
    const json_t *counters;    /* sources side by side: {"usage": {...}, "timings": {...}, "events": {...}} */
    const json_t *metrics;     /* {"ttft_ns": 1, "decode_rate": 30.1, "decode_rate_why": ...}; undefined = null */
    const char *finish_reason;
    const char *text_sha256;   /* of the answer */
    const char *last_object;   /* raw, verbatim, or NULL */
    const tl_store_event *events;
    size_t events_n;
} tl_store_request;
/* Stores request and events together. id may be NULL. */
tl_status tl_store_request_add(char id[TL_STORE_ID], tl_store *s, const tl_store_request *r, tl_err *e) TL_MUST_USE;

typedef struct tl_store_artifact {
    const char *run_id, *trial_id; /* each may be NULL */
    const char *name, *mime;       /* "engine.log", "text/plain; charset=utf-8" */
    const void *body;
    size_t len;
} tl_store_artifact;
tl_status tl_store_artifact_add(char id[TL_STORE_ID], tl_store *s, const tl_store_artifact *a, tl_err *e) TL_MUST_USE;

/* source: "machine", "gpu0", "engine.metrics", ...; body: any JSON (a snapshot or a series). trial_id may be NULL. */
tl_status tl_store_telemetry_add(tl_store *s, const char *run_id, const char *trial_id, const char *source,
                                 int64_t t_ns, const json_t *body, tl_err *e) TL_MUST_USE;

/* ---- values ------------------------------------------------------------------------------------------------------ */

typedef struct tl_store_edge {
    const char *input_id; /* a stored value */
    const char *role;     /* the formula's name for it */
} tl_store_edge;

typedef struct tl_store_value {
    const char *run_id, *cell_key; /* measured needs a run that is not simulated; else may be NULL */
    const char *name;              /* "decode_rate", "predicted.decode_rate" */
    const char *label;             /* "official", "measured", "derived", "cited" */
    double number;                 /* finite, or NaN with a reason */
    const char *null_reason;
    double lo, hi;                 /* interval; NaN = none */
    const char *interval;          /* how the interval was made, needed with lo/hi */
    int64_t n;                     /* samples; TL_STORE_NONE */
    const char *unit;              /* never NULL; "1" for a ratio */
    const char *statistic;         /* "median", ... or NULL */
    const char *formula;           /* derived: needed */
    const json_t *source;          /* official: url, title, retrieved; cited: who, where, when, conditions;
                                    * measured, derived: what else belongs to it; NULL = {} */
    const tl_store_edge *edges;    /* derived: at least one; order is kept */
    size_t edges_n;
} tl_store_value;
tl_status tl_store_value_add(char id[TL_STORE_ID], tl_store *s, const tl_store_value *v, tl_err *e) TL_MUST_USE;

typedef struct tl_store_figure {
    const char *report, *name;    /* "bandwidth-law", "fig-1" */
    const char *run_id;           /* newest run it shows; further ones in facts.runs */
    const char *spec_sha256, *data_sha256, *render_sha256;
    const json_t *spec, *data;    /* data may be NULL */
    const json_t *facts;          /* tools and versions, runs, values, labels, command */
    const char *command;          /* the reader's one command */
} tl_store_figure;
tl_status tl_store_figure_add(char id[TL_STORE_ID], tl_store *s, const tl_store_figure *f, tl_err *e) TL_MUST_USE;

/* A visible correction. instead_id: the value that replaces it, or NULL. wall_ns since 1970. */
tl_status tl_store_retract(char id[TL_STORE_ID], tl_store *s, const char *value_id, const char *why,
                           const char *instead_id, int64_t wall_ns, tl_err *e) TL_MUST_USE;

/* ---- queries (results: new references or owned by the caller) ---------------------------------------------------- */

/* table: "run", "value", "figure", "trial", "request", "artifact", "retraction", "machine", "engine", "model",
 * "experiment". Ids by unique prefix, case-insensitive for ULIDs. An ambiguous prefix is TL_INVALID and lists
 * candidates; unknown is TL_NOT_FOUND. id has 65 bytes. */
tl_status tl_store_find(char id[65], tl_store *s, const char *table, const char *prefix, tl_err *e) TL_MUST_USE;
/* Newest run of an experiment name; machine (id prefix, name or claim) and state name may be NULL. */
tl_status tl_store_latest_run(char id[TL_STORE_ID], tl_store *s, const char *experiment, const char *machine,
                              const char *state, tl_err *e) TL_MUST_USE;

/* [{id, kind, experiment, machine, claim, state, reason, wall_ns, utc_offset, cells, trials, requests, ok, failed}],
 * newest first. experiment may be NULL; limit 0 = all. */
tl_status tl_store_runs(json_t **out, tl_store *s, const char *experiment, int64_t limit, tl_err *e) TL_MUST_USE;
/* One run in full: the run, states, machine, experiment (without script text), engines, models, cells, trials with
 * counts, values, artifacts (without bodies), telemetry sources, retractions. */
tl_status tl_store_run_show(json_t **out, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
tl_status tl_store_run_state_get(tl_store_phase *out, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
tl_status tl_store_run_plan(char **out, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
tl_status tl_store_experiment_script(char **out, tl_store *s, const char *experiment_id, tl_err *e) TL_MUST_USE;
/* For resume: [{cell, round, finished, visits, measured, ok}] for each block that was visited, by cell and round. */
tl_status tl_store_blocks(json_t **out, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
/* Requests in order: every column, metrics and counters as objects. cell_key may be NULL. */
tl_status tl_store_requests(json_t **out, tl_store *s, const char *run_id, const char *cell_key, tl_err *e) TL_MUST_USE;
/* One metric of the successful measured requests, in order of execution. Undefined ones are left out and counted:
 * *undefined may be NULL. *out is NULL when n is 0. */
tl_status tl_store_samples(double **out, size_t *n, size_t *undefined, tl_store *s, const char *run_id,
                           const char *cell_key, const char *metric, tl_err *e) TL_MUST_USE;
tl_status tl_store_request_events(tl_store_event **out, size_t *n, tl_store *s, const char *request_id,
                                  tl_err *e) TL_MUST_USE;
/* Values, newest first, each with "retracted". Any of the three filters may be NULL. */
tl_status tl_store_values(json_t **out, tl_store *s, const char *run_id, const char *cell_key, const char *name,
                          tl_err *e) TL_MUST_USE;
/* One value with "inputs" unfolded to the leaves, "labels" (set of its leaves' labels) and "retracted". */
tl_status tl_store_value_tree(json_t **out, tl_store *s, const char *value_id, tl_err *e) TL_MUST_USE;
tl_status tl_store_artifacts(json_t **out, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
tl_status tl_store_artifact_body(tl_buf *out, tl_store *s, const char *artifact_id, tl_err *e) TL_MUST_USE;
tl_status tl_store_telemetry(json_t **out, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
/* Newest first; report may be NULL. */
tl_status tl_store_figures(json_t **out, tl_store *s, const char *report, tl_err *e) TL_MUST_USE;
tl_status tl_store_retractions(json_t **out, tl_store *s, tl_err *e) TL_MUST_USE;
/* machine, engine, model or experiment by id: {id, name, facts, ...}. */
tl_status tl_store_describe(json_t **out, tl_store *s, const char *table, const char *id, tl_err *e) TL_MUST_USE;
/* One read-only SQL statement; rows as objects. Columns named *_json become nested JSON under the name without the
 * suffix; blobs become hex text. Anything that could write, attach or change a setting is refused (TL_INVALID). */
tl_status tl_store_select(json_t **out, tl_store *s, const char *sql, tl_err *e) TL_MUST_USE;

/* ---- integrity ---------------------------------------------------------------------------------------------------- */

/* Called once for each finding: a table (or "schema"), the row's number in the chain (0: none), one line of text. */
typedef void tl_store_finding(void *ctx, const char *table, int64_t seq, const char *text);
typedef struct tl_store_verdict {
    int64_t rows, findings;
    char head[65];
    bool head_found; /* the expected head is the head or an earlier one */
    int64_t rows_after; /* rows appended since the expected head */
} tl_store_verdict;
/* Recomputes every hash from the stored bytes; compares schema and triggers with what this tally creates; looks for
 * rows outside the chain. expected_head (may be NULL) is a head printed earlier: without one, rows cut off at the
 * very end cannot be noticed. TL_REFUSED when anything was found. report may be NULL. */
tl_status tl_store_verify(tl_store_verdict *out, tl_store *s, const char *expected_head, tl_store_finding *report,
                          void *ctx, tl_err *e) TL_MUST_USE;
/* Hash of the newest row, in hex; 64 zeros for an empty store. */
tl_status tl_store_head(char out[65], tl_store *s, tl_err *e) TL_MUST_USE;
/* A complete copy in one file (no -wal beside it), written to a temporary name and renamed. Refuses to overwrite. */
tl_status tl_store_copy_to(tl_store *s, const char *path, tl_err *e) TL_MUST_USE;

#endif

/* Private to run: engines kept ready, one visit of a cell, and the values made at the end. */
#ifndef TL_RUN_IMPL_H
#define TL_RUN_IMPL_H

#include "load/load.h"
#include "run/run.h"
#include "sample/sample.h"

/* ---- engines (pool.c) ---- */

typedef struct tl_run_engine {
    tl_engine *engine;
    tl_load_pool *prompts;
    char *key, *log_path;
    char id[65];      /* of the stored engine */
    uint64_t bytes, used_at;
    unsigned number;
} tl_run_engine;

typedef struct tl_run_pool tl_run_pool;
tl_run_pool *run_pool_new(const tl_run_spec *spec, const char *run_id, const char *log_dir, const json_t *machine);
/* The running engine for this model and these settings, started when needed (*fresh). Borrowed. */
tl_status run_pool_get(tl_run_engine **out, bool *fresh, tl_run_pool *p, const json_t *model, const json_t *settings,
                       tl_err *e) TL_MUST_USE;
void run_pool_free(tl_run_pool *p); /* stops all and keeps their logs; NULL ok */

/* ---- the state of one run ---- */

typedef struct tl_run_cell {
    const char *key;           /* the plan's */
    const json_t *params, *workload, *settings; /* axes resolved; borrowed from the plan */
    const json_t *model;       /* entry of spec->models */
    json_t *facts;             /* what predictions are told of the model: stored values; owned */
    json_t *bytes_per_token;   /* the stored value that the prediction used, or NULL; owned */
    char prediction_id[TL_STORE_ID]; /* stored value, or "" */
    int64_t rounds_done;
    bool search;               /* its schedule is one: answered by each visit, no medians */
    bool finished;             /* enough repeats, an interval narrow enough, or aborted */
    bool aborted;              /* a rule of its schedule ended a block: it has no medians, and is not visited again */
} tl_run_cell;

typedef struct tl_run_ctx {
    const tl_run_spec *spec;
    char id[TL_STORE_ID];
    tl_ns anchor;              /* t = 0 of this session */
    tl_ns deadline;            /* 0 = none */
    json_t *machine;           /* snapshot */
    tl_membw *membw;           /* NULL: no probes asked */
    unsigned probe_threads;
    tl_ns probe_ns;
    char bandwidth_id[TL_STORE_ID]; /* stored value of the first probe */
    json_t *bandwidth;         /* as a value for the predictions */
    tl_run_cell *cells;
    size_t n_cells;
    tl_run_pool *pool;
    int64_t trials;            /* position of the next trial */
    size_t requests, failed;
    char *log_dir;
    tl_progress *progress;     /* of the rounds; NULL before them */
    json_t *calibration;       /* of this machine, at the nearest load, or JSON null; owned */
    bool ruler_short;          /* a measured block's ruler was too short: the run ends invalid */
} tl_run_ctx;

bool run_stopping(const tl_run_ctx *c); /* a signal, or the budget is spent */
int64_t run_t(const tl_run_ctx *c, uint64_t t_ns); /* relative to the anchor; none stays none */

/* One visit of a cell: engine, probe, requests, probe; everything committed when it returns. (visit.c) */
tl_status run_visit(tl_run_ctx *c, size_t cell, int64_t round, tl_err *e) TL_MUST_USE;

typedef struct tl_run_block {
    tl_run_ctx *c;
    const tl_run_cell *cell;
    tl_run_engine *engine;
    const tl_dialect *dialect;
    char trial_id[TL_STORE_ID];
    int64_t stored, blocks; /* requests and blocks of this trial so far */
    bool cold_ok, aborted;
    double cached;   /* tokens the engine says it did not compute, over all measured requests */
    json_t *rates;   /* decode rate of each good measured request, beside the probes */
    json_t *facts;   /* of the trial */
    size_t ok, bad;
} tl_run_block;

/* What one block asks of the server. */
typedef struct tl_run_load {
    bool open;            /* requests come by themselves */
    size_t requests;      /* of all users together */
    size_t users;         /* closed loop */
    double rate, rate_to; /* open loop, requests/s; rate_to 0: it stays */
    bool scheduled;       /* some request has a moment of its own: open loop, ramp, pauses */
    bool search;          /* `users` or `rate` is set anew for every load tried (search.c) */
    uint64_t edge_ns;     /* ramp and settling: what starts earlier on the schedule is sent, stored as warm-up, not counted */
    size_t edge_requests; /* the first so many are not counted either */
    tl_slo_spec slo;      /* of the schedule; n = 0: none */
    double ruler_share;   /* see tl_run_ruler */
} tl_run_load;
/* Of the cell's workload. TL_INVALID names a field that cannot be carried out. (schedule.c) */
tl_status run_load_of(tl_run_load *out, const json_t *workload, tl_err *e) TL_MUST_USE;

typedef struct tl_run_jobs {
    tl_load_job *v; /* bodies owned */
    size_t n;
    tl_load_opts opts; /* all but what belongs to the caller: engine, callbacks */
} tl_run_jobs;
/* Their options, intended starts and pauses; the jobs are there, without bodies. (schedule.c) */
tl_status run_schedule(tl_run_jobs *j, const tl_run_load *load, const json_t *workload, uint64_t seed, tl_err *e) TL_MUST_USE;
tl_status run_jobs_make(tl_run_jobs *out, tl_run_block *b, const tl_run_load *load, uint64_t seed, tl_err *e) TL_MUST_USE;
void run_jobs_free(tl_run_jobs *j); /* zeroed ok */

tl_status run_store_request(tl_run_block *b, const tl_load_item *item, const tl_load_job *job, const char *role,
                            tl_err *e) TL_MUST_USE; /* (record.c) */
/* An abort rule of the schedule ended the block: the server does not keep up. */
static inline bool run_ended_by_rule(const tl_load_result *r) { return r->end == TL_LOAD_QUEUE || r->end == TL_LOAD_ERRORS; }
/* Sends the requests of one block and stores them; the caller frees `out` in every case. TL_INVALID when the
 * window of a block that no rule ended has no request. (visit.c) */
tl_status run_send(tl_load_result *out, tl_run_block *b, const tl_run_load *load, const char *role, tl_err *e) TL_MUST_USE;
/* Started, and not before the window of its block. */
bool run_item_counts(const tl_run_load *load, uint64_t t_schedule, const tl_load_item *item);
/* Counts, rates, goodput and the client's own lateness of a block, as JSON with the rule of its window. (window.c) */
json_t *run_window(const tl_load_result *r, const tl_run_load *load);
/* One search for the largest load that meets the SLO: facts.search of the trial. (search.c) */
tl_status run_search(tl_run_block *b, const tl_run_load *load, tl_err *e) TL_MUST_USE;
/* The fewest requests that can show the strictest term met. */
size_t run_search_fewest(const tl_slo_spec *slo);
/* users_at_slo or rate_at_slo of a cell from the searches of its trials. */
tl_status run_store_search(tl_run_ctx *c, const tl_run_cell *cell, const json_t *trials, tl_err *e) TL_MUST_USE;
/* The verdict on the ruler of one measured block: {"ok", "reason", what it rests on}. late_p99_ms: of its window. (ruler.c) */
json_t *run_ruler(const tl_run_ctx *c, const tl_load_result *r, const tl_run_load *load, double late_p99_ms);

/* ---- values (values.c) ---- */

/* Stores a value tree (JSON of value.h) with its inputs; inputs that carry source.value_id are already stored. */
tl_status run_store_tree(char id[TL_STORE_ID], tl_run_ctx *c, const char *cell_key, const char *name, const json_t *value,
                         tl_err *e) TL_MUST_USE;
/* A measured value, as JSON for formulas and as a row. number/lo/hi in `unit`. */
typedef struct tl_run_measured {
    const char *name, *unit, *statistic, *interval, *cell_key;
    double number, lo, hi;
    int64_t n;
    json_t *source; /* extra facts; may be NULL; borrowed */
} tl_run_measured;
tl_status run_store_measured(json_t **out, tl_run_ctx *c, const tl_run_measured *m, tl_err *e) TL_MUST_USE;
/* The argument of the prediction for a cell with this bandwidth value (borrowed). New reference. */
tl_status run_predict_argument(json_t **out, tl_run_ctx *c, size_t cell, json_t *bandwidth, tl_err *e) TL_MUST_USE;
/* The prediction from the first probe, stored before the first request. */
tl_status run_store_prediction(tl_run_ctx *c, size_t cell, tl_err *e) TL_MUST_USE;
/* After the last visit: medians with intervals, paired predictions, ratios, acceptance. (summary.c) */
tl_status run_summary(tl_run_ctx *c, tl_run_result *out, tl_err *e) TL_MUST_USE;

/* The values of a metric of one cell in the order they were taken, each with its round. Undefined ones have no place in a
 * statistic and are counted. (series.c) */
typedef struct run_series {
    double *v;
    int64_t *round;
    size_t n, cap, cap_round, undefined;
} run_series;
void run_series_add(run_series *s, double x, int64_t round);
void run_series_free(run_series *s); /* zeroed ok, twice ok */
/* In the unit of the metric: successful measured requests of blocks that no rule ended, and of no search. requests: of
 * tl_store_requests; trials: of tl_store_run_show. */
void run_series_requests(run_series *out, const json_t *requests, const json_t *trials, const tl_metric_desc *d);
/* One value a block: the number at a path below its facts. */
void run_series_blocks(run_series *out, const json_t *trials, const char *cell_key, const char *path);
/* What is said of a block as a whole. */
typedef struct run_block_metric {
    const char *name, *unit, *path; /* path: below a trial's facts */
    bool higher_is_better;
} run_block_metric;
extern const run_block_metric run_block_metrics[]; /* ends with {0} */
/* What differs between two {"engine", "machine", "tally", "script_sha256"}, likeliest cause of another speed first:
 * [{"what", a_name, b_name}] (verdict.c). New reference. */
json_t *run_environment_diff(const json_t *a, const json_t *b, const char *a_name, const char *b_name);

#endif

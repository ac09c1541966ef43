/* run: the only conductor: one run from the plan to its stored values. It resolves the models, records the provenance,
 * stores the prediction before the first request, visits the cells in the plan's interleaved order with a bandwidth probe
 * around each visit, and commits every finished request.
 *
 * Not for: timing (load, http), what numbers mean (sample), formulas (lua/calc, reached through the hooks).
 * Threads: one run at a time, on the calling thread.
 */
#ifndef TL_RUN_H
#define TL_RUN_H

#include "base/base.h"
#include "os/os.h"
#include "plan/plan.h"
#include "store/store.h"

/* What the layer above lends: Lua before and after the timed part, and the wish to stop. */
typedef struct tl_run_hooks {
    void *ctx;
    /* The experiment's prediction for {"machine": {"bandwidth": VALUE}, "model": {...}, "positions": n, axes...};
     * a value tree as JSON, or JSON null when the experiment has none. */
    tl_status (*predict)(json_t **out, void *ctx, const json_t *cell, tl_err *e);
    /* lua/calc/<name>.lua applied to an object of values: a derived value as JSON. */
    tl_status (*formula)(json_t **out, void *ctx, const char *name, const json_t *inputs, tl_err *e);
    bool (*cancelled)(void *ctx);
} tl_run_hooks;

/* ---- models: from a plan's references to files on disk -------------------------------------------------------- */

typedef struct tl_run_models_spec {
    const char *root;         /* relative paths of file references start here */
    const char *cache_dir;    /* synthetic models are written to <cache_dir>/models */
    const json_t *overrides;  /* {"name": "path"}: use this file for that reference instead; may be NULL */
    bool dry;                 /* write nothing: synthetic models that do not exist are described only */
    bool (*cancelled)(void *ctx);
    void *ctx;
} tl_run_models_spec;
/* refs: array of {"name", "kind": "synth"|"file", ...}. *out: {name: {"path", "sha256", "bytes", "weights_read_bytes",
 * "kv_bytes_per_position", "layers", "facts": {...}, "exists": bool}}; sha256 is null for what does not exist yet.
 * TL_NOT_FOUND, TL_INVALID (not a GGUF, truncated) name the path; TL_CANCELLED. */
tl_status tl_run_models(json_t **out, const json_t *refs, const tl_run_models_spec *spec, tl_err *e) TL_MUST_USE;

/* ---- machine ---------------------------------------------------------------------------------------------------- */

/* Which profile the live snapshot matches: an id of `profiles` ([{"id", "match": {"gpu": {"name", "count"}, "cpu":
 * {"name", "memory_gb"}}}]), or NULL: then the run belongs to "this". Borrowed from profiles. */
const char *tl_run_machine_match(const json_t *snapshot, const json_t *profiles);

/* The part of a snapshot that stays: processor, caches, memory size, kernel, GPUs. It identifies the machine; what drifts
 * (load, clocks, free memory) is telemetry. New reference. */
json_t *tl_run_machine_fixed(const json_t *snapshot);

typedef struct tl_run_probe_point {
    unsigned threads;
    size_t n;                  /* passes */
    double median, lo, hi;     /* bytes/s: median over repetitions with its 95 % interval */
} tl_run_probe_point;
/* Read bandwidth by thread count 1, 2, 4 ... all, `repetitions` interleaved probes each. *best: index of the fastest. */
tl_status tl_run_probe_threads(tl_run_probe_point *out, size_t *n, size_t max, size_t *best, tl_membw *m,
                               unsigned repetitions, tl_ns duration, tl_err *e) TL_MUST_USE;

/* ---- calibration: the client's own error, measured against a server whose true times are known -------------------- */

typedef struct tl_run_ruler_load {
    size_t streams;    /* answers at once */
    double rate_per_s; /* events of each answer */
} tl_run_ruler_load;

typedef struct tl_run_calibrate_spec {
    const char *program;  /* tally, for `tally serve-null`; NULL: the running program */
    const char *endpoint; /* a null server, or a proxy in front of one, on this machine; NULL: an own one is started */
    const char *null_words; /* added to what each request asks of the null server (sim.h), to see a trap; may be NULL */
    const tl_run_ruler_load *loads;
    size_t n_loads;
    double seconds;       /* of each load, about */
    bool (*cancelled)(void *ctx);
    void *ctx;
} tl_run_calibrate_spec;
/* Drives the null server through the same client as a run. *out, a new reference:
 * {"clock": {"name", "counter", "step_ns", "read_ns"}, "points": [{"streams", "rate", "answers", "events", "seconds",
 * "events_per_s", "cpu_per_event_us", "cpu_share", "arrival": ERROR, "ttft": ERROR, "gap": ERROR, "server_late_max_ms",
 * "at_once", "joined_share", "steps_40ms_share", "burst_share", "reads_per_event"}], "findings": [{"name", "load", "text"}]}
 * ERROR: {"n", "bias_ms": mean with its sign, "p50_ms", "p99_ms", "max_ms": bare nearest ranks of the size}.
 *   arrival: the client's stamp of an event minus the server's own stamp of the same write
 *   ttft:    arrival of an answer's first event, plus what the request itself was sent late
 *   gap:     the client's distance of two events minus the server's
 * TL_INVALID names a load or word that makes no sense; TL_ENGINE: the server did not answer as a null server does;
 * TL_CANCELLED. */
tl_status tl_run_calibrate(json_t **out, const tl_run_calibrate_spec *spec, tl_err *e) TL_MUST_USE;
/* What stands between client and server that a calibration's numbers give away: [{"name", "load", "text"}]. Pure. */
json_t *tl_run_calibrate_findings(const json_t *calibration);
/* Stores it below a started run of kind "calibrate": a cell a load, measured values, and the state done. */
tl_status tl_run_calibration_store(tl_store *store, const char *run_id, const json_t *calibration, tl_err *e) TL_MUST_USE;
/* The most answers at once that a cell's workload (a plan's, JSON) can ask for: its users, or max_in_flight of an open loop,
 * which without one may have all its requests on the way. At least 1. */
size_t tl_run_planned_streams(const json_t *workload);
/* The newest stored calibration of a machine (its stored id) at the load nearest to `streams`: {"run", "wall_ns", "age_s",
 * "revision", "same_revision", "streams", "rate", "planned_streams", "error_p99_ms", "ttft_bias_ms", "clock"}; JSON null
 * when there is none. tally: of tl_version_json. New reference. */
tl_status tl_run_calibration_newest(json_t **out, tl_store *store, const char *machine_id, size_t streams, const json_t *tally,
                                    tl_err *e) TL_MUST_USE;

/* ---- the verdict on a ruler --------------------------------------------------------------------------------------- */

#define TL_RULER_SHARE 0.05    /* unless workload.schedule.ruler_share says otherwise */
#define TL_RULER_CPU_SHARE 0.8 /* of the one core that the client's loop has: above, what arrives has to wait */

/* What is known of the client during one measured block; NAN = not known, and not judged. */
typedef struct tl_run_ruler {
    double late_p99_ms; /* sends behind the moments that the schedule set; NAN: it set none */
    double ttft_ms;     /* median of the block */
    double cpu_share;   /* CPU time of the client per second */
    double bias_ms;     /* of TTFT, from the calibration at the nearest load */
    size_t bias_streams;
    double share;       /* largest share of the result that the client's own error may be */
} tl_run_ruler;
/* false: the ruler was too short for what it measured, and `reason` is one sentence with numbers and remedy. Pure. */
bool tl_run_ruler_verdict(char reason[400], const tl_run_ruler *r) TL_MUST_USE;

/* ---- provenance -------------------------------------------------------------------------------------------------- */

/* Variables that change what an engine or tally does (GGML_*, CUDA_*, OMP_*, LLAMA_ARG_*, LC_*, ...), with their
 * values; everything else is left out, for it may be secret. New reference. */
json_t *tl_run_environment(void);

/* ---- the run ------------------------------------------------------------------------------------------------------ */

typedef struct tl_run_spec {
    tl_store *store;
    const tl_plan *plan;
    const char *kind;           /* "experiment" or "rerun" */
    const char *rerun_of;       /* or NULL */
    const char *root;           /* project folder: its version-control state is recorded */
    const char *script_text;    /* of the experiment */
    const json_t *adapter;      /* engine adapter, lua/engine/<name>.lua */
    const char *engine_binary;  /* NULL: found */
    const char *endpoint;       /* attach to this server instead of starting one; NULL = start */
    const json_t *models;       /* from tl_run_models */
    const json_t *profiles;     /* machine profiles, for the claim */
    const json_t *argv, *tally; /* recorded */
    const char *resume;         /* run id to continue, or NULL */
    tl_ns budget;               /* stop after this long with what is there; 0 = none */
    tl_run_hooks hooks;
} tl_run_spec;

typedef struct tl_run_result {
    char id[TL_STORE_ID];
    bool interrupted;     /* stopped by a signal or the budget; resumable */
    size_t requests, failed; /* measured requests of this call */
    bool accepted;        /* every accept rule held */
    json_t *accept;       /* [{cell, metric, value, min, max, ok}]; owned */
} tl_run_result;
void tl_run_result_free(tl_run_result *r);

/* Runs or resumes. Whatever happens after the run was stored is stored too: on failure the run's state is failed with
 * the reason in e, on a signal it is interrupted, and result.id names it in every case ("" = nothing was stored). */
tl_status tl_run(tl_run_result *out, const tl_run_spec *spec, tl_err *e) TL_MUST_USE;

/* ---- re-run: two halves of a tally ------------------------------------------------------------------------------- */

typedef enum tl_rerun_verdict {
    TL_RERUN_EXACT,
    TL_RERUN_EQUIVALENT,
    TL_RERUN_EXPLAINED,
    TL_RERUN_DIFFERENT,
    TL_RERUN_UNAVAILABLE,
} tl_rerun_verdict;
const char *tl_rerun_verdict_name(tl_rerun_verdict v);
tl_rerun_verdict tl_rerun_verdict_of(const char *name); /* unknown names are unavailable */

/* What a figure publishes of a run and metric, and what a re-run is held against:
 * {"run", "metric", "unit", "experiment", "script_sha256", "plan": text, "plan_sha256", "revision", "machine": snapshot,
 *  "machine_name", "engine": facts, "tally": {...}, "models": {name: sha256}, "cells": [{"key", "axes", "label", "value",
 *  "lo", "hi", "n", "predicted", "bandwidth", "model_sha256"}]}. */
tl_status tl_run_publish(json_t **out, tl_store *store, const char *run_id, const char *metric, tl_err *e) TL_MUST_USE;

/* {"verdict", "same_class", "cells": [{"key", "verdict", "why", "published", "yours"}], "environment": [{"what",
 * "published", "yours"}]} of two results of tl_run_publish. The rules stand in verdict.c. New reference. */
json_t *tl_rerun_compare(const json_t *published, const json_t *own);

/* ---- statistics: what the samples of a run can bear ----------------------------------------------------------------- */

/* Of each cell's requests: [{"cell", "metric", "unit", "n", "undefined", "quantiles": [{"q", "value", "lo", "hi", "n_needed"}],
 * "warnings": [{"name", "text"}]}]. A quantile without the samples for its interval is null, with the number it needs; the
 * warnings are plain sentences with a remedy. show: of tl_store_run_show. New reference. */
tl_status tl_run_statistics(json_t **out, tl_store *store, const json_t *show, tl_err *e) TL_MUST_USE;

/* ---- comparison: did it get faster? ------------------------------------------------------------------------------ */

typedef struct tl_run_side {
    const char *run_id;
    const char *selector; /* "model=q4_0": which cells; "" = all */
} tl_run_side;
typedef struct tl_run_compare_spec {
    tl_store *store;
    tl_run_side a, b;
    const char *const *metrics; /* names of tl_metric_at, or "throughput", "request_rate", "goodput", "goodput_share" of a block's window, or "users_at_slo", "rate_at_slo" */
    size_t n_metrics;           /* 0: the usual ones that the runs have */
    double noise_limit;         /* as in tl_compare_opts; 0 = its default */
} tl_run_compare_spec;
/* Cells belong together when they are equal on every axis that neither selector names. Inside one run values are paired
 * by round; of two runs each round is one value. Aborted blocks count on neither side. *out, a new reference:
 * {"a", "b": {"run", "selector"}, "interleaved", "label": "derived", "cells": [{"a", "b": keys, "a_label", "b_label", "metrics":
 * [{"metric", "unit", "higher_is_better", "a", "b": {"median" of all values, "n", "undefined"}, and tl_stat_comparison_json
 * (n_a, n_b there: rounds) or "why_not"}]}], "only_a", "only_b": labels of cells without a partner, "environment":
 * [{"what", "a", "b"}]}.
 * TL_NOT_FOUND: no cell of A has a partner; TL_INVALID: it has two, or an unknown metric. */
tl_status tl_run_compare(json_t **out, const tl_run_compare_spec *spec, tl_err *e) TL_MUST_USE;

#endif

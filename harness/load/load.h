/* load: runs a block of prepared requests against one server, one after another, by N users at once (closed loop) or at
 * times set in advance (open loop), and hands back what was observed; and makes prompts of exact length that no cache
 * has seen.
 *
 * Not for: what a request's numbers mean (sample), starting servers (engine), repeats, order and storing (run).
 * Threads: everything belongs to the calling thread. One http loop carries all users.
 *
 * In the timed path (from the first start to the end of the block) load itself allocates nothing, writes nothing and
 * decodes nothing: bodies are serialised, logs allocated and touched, and the first connections open before it begins.
 * With one user of a closed loop the answer is decoded between two requests, else after the whole block. A pause set by
 * the schedule (think_ns, ramp) takes one small timer, allocated between two requests; an open loop's timers are all made
 * before it begins.
 */
#ifndef TL_LOAD_H
#define TL_LOAD_H

#include "base/base.h"
#include "engine/engine.h"
#include "sample/sample.h"

/* ---- a block of requests -------------------------------------------------------------------------------------- */

typedef enum tl_load_cache {
    TL_CACHE_ANY = 0, /* not checked */
    TL_CACHE_COLD,    /* the engine must report 0 cached tokens */
    TL_CACHE_WARM,    /* the engine must report all but the last few tokens cached */
} tl_load_cache;

/* Borrowed until tl_load_run returns. */
typedef struct tl_load_job {
    const tl_dialect *dialect;
    const char *body; /* from tl_dialect_body */
    size_t body_len;
    int64_t max_tokens;   /* what was asked for, < 0 = unknown; sizes the log and goes to counters.requested_max */
    int64_t prompt_n;     /* exact length by construction; < 0 = unknown, not checked */
    tl_load_cache cache;  /* what must be true of the prompt cache */
    uint64_t timeout_ns;  /* of this request; 0 = the options' */
    uint64_t at_ns;       /* open loop: intended start, since the begin of the schedule */
    uint64_t think_ns;    /* pause before it, after the previous request of its user (closed) or session */
    size_t session;       /* 0 = none. Jobs of one session run in the given order, each after the end of the one before
                             (however that ended) + think_ns; different sessions are independent */
} tl_load_job;

typedef enum tl_load_end {
    TL_LOAD_ALL,       /* every job was run */
    TL_LOAD_CANCELLED, /* the flag was set; running requests were ended and are in the results */
    TL_LOAD_FAILURES,  /* too many failed in a row */
    TL_LOAD_ENGINE,    /* the engine ended */
    TL_LOAD_QUEUE,     /* more unfinished requests than max_in_flight: the server does not keep up with the schedule */
    TL_LOAD_ERRORS,    /* a larger share failed than abort_error_share */
    TL_LOAD_DRAINED,   /* every job was started, but drain_ns was over before all had ended */
} tl_load_end;
/* "all", "cancelled", "failures", "engine-ended", "queue-growth", "error-share", "drained" */
const char *tl_load_end_name(tl_load_end end);

/* Flags of a result whose request may have gone well but did not measure what was asked. */
#define TL_LOAD_PROMPT_DIFFERS (1u << 0) /* "prompt-count-differs": the engine counted another prompt length */
#define TL_LOAD_NOT_COLD (1u << 1)       /* "not-cold": some of the prompt was cached */
#define TL_LOAD_NOT_WARM (1u << 2)       /* "not-warm" */
#define TL_LOAD_UNVERIFIED (1u << 3)     /* "unverified": the engine reports no count to check against */
#define TL_LOAD_FLAG_COUNT 4
const char *tl_load_flag_name(unsigned bit_index); /* NULL past the last */

typedef struct tl_load_item {
    tl_request request; /* initialised and empty when not started */
    bool started;
    size_t worker;      /* the user that sent it, from 0 */
    size_t sequence;    /* order of starting in the block, from 0 */
    uint64_t gap_ns;    /* from when it could have started (the previous end of its user or session, plus think_ns) to
                           its actual start: the client's own pause; 0 for a first request */
    unsigned flags;     /* TL_LOAD_* */
} tl_load_item;

typedef struct tl_load_result {
    tl_load_item *items; /* one a job, in the jobs' order */
    size_t n;
    size_t started, failed; /* failed = answers that are not complete with status 2xx */
    size_t cut;             /* of the failed: ended by us (cancelled, drained) */
    tl_load_end end;
    char reason[512]; /* one line when end is not TL_LOAD_ALL */
    uint64_t t_begin, t_end; /* first intended start, last end */
    uint64_t t_schedule;     /* begin of the schedule: at_ns and ramps count from here; 0 when none was started */
    double client_cpu_s;     /* CPU time of this process, all threads, from t_schedule until the last request ended */
} tl_load_result;
void tl_load_result_free(tl_load_result *r); /* zeroed ok, twice ok */

typedef enum tl_load_kind {
    TL_LOAD_CLOSED = 0, /* N users take the jobs in order; a user stays with a session until it is over */
    TL_LOAD_OPEN,       /* every job starts at t_schedule + at_ns whatever the others do, but a later job of a session
                           not before its predecessor's end + think_ns. t_intended is that time, whenever it is really
                           sent, so latency counts from the schedule. `users` is not looked at. */
} tl_load_kind;

typedef struct tl_load_opts {
    tl_load_kind kind;
    const char *url;       /* NULL: the engine's */
    tl_engine *engine;     /* watched while the block runs; NULL = not watched */
    size_t users;          /* closed loop; 0 = 1 */
    uint64_t ramp_ns;      /* closed loop: user u starts at u * ramp_ns / users */
    uint64_t timeout_ns;   /* whole request; 0 = 600 s */
    uint64_t stall_ns;     /* silence inside an answer; 0 = 120 s */
    size_t max_failures;   /* in a row; 0 = 3 */
    size_t max_in_flight;  /* open loop: more unfinished requests end the block; 0 = unlimited */
    double abort_error_share; /* after 10 finished requests a larger failed share ends the block; 0 = off */
    uint64_t drain_ns;     /* after the last intended start, or an abort, running requests get so long; 0 = their timeouts */
    const char *const *headers; /* "Name: value" (a key); may be NULL */
    bool (*cancelled)(void *ctx);
    /* Each finished request as soon as it is decoded (see top): for storing and progress. May be NULL. */
    void (*on_item)(void *ctx, const tl_load_item *item, size_t job);
    void *ctx;
} tl_load_opts;

/* Runs the jobs. Failed requests are data, so TL_OK says only that `out` holds what happened; errors are arguments that
 * make no sense and a lack of memory for sockets. `out` is freed with tl_load_result_free in every case. */
tl_status tl_load_run(tl_load_result *out, const tl_load_job *jobs, size_t n, const tl_load_opts *opts, tl_err *e)
    TL_MUST_USE;

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

typedef enum tl_load_process {
    TL_LOAD_CONSTANT = 0, /* every gap is 1 / rate */
    TL_LOAD_POISSON,      /* exponential gaps */
    TL_LOAD_GAMMA,        /* gamma gaps of shape `burstiness` (as vLLM defines it): coefficient of variation 1/sqrt(it) */
    TL_LOAD_UNIFORM,      /* gaps uniform in [0, 2 / rate] */
} tl_load_process;

typedef struct tl_load_arrival {
    tl_load_process process;
    double rate_per_s;    /* mean */
    double rate_to_per_s; /* 0 = the rate stays; else it goes linearly from rate_per_s to this over the n arrivals' time */
    double burstiness;    /* gamma's shape; 0 = 1, which is Poisson */
    uint64_t seed;
} tl_load_arrival;
/* n intended starts, sorted, the first after one gap (constant: at 0). The same for the same description everywhere.
 * TL_INVALID: a rate or shape that is not finite and positive. */
tl_status tl_load_arrivals(uint64_t *at_ns, size_t n, const tl_load_arrival *a, tl_err *e) TL_MUST_USE;

/* ---- traces ----------------------------------------------------------------------------------------------------- */

typedef struct tl_load_arrived {
    uint64_t at_ns;              /* since the trace's begin */
    int64_t prompt_n, output_n;  /* tokens */
    int64_t *hash_ids;           /* Mooncake: ids of the prompt's blocks of 512 tokens, equal = same text; may be NULL */
    size_t n_hash_ids;
} tl_load_arrived;
typedef struct tl_load_trace {
    tl_load_arrived *v;
    size_t n, cap;
} tl_load_trace;
/* JSON lines with timestamp (ms), input_length, output_length and hash_ids as Mooncake publishes them; or CSV with a header
 * that names at_s, prompt_tokens, output_tokens, or TIMESTAMP, ContextTokens, GeneratedTokens (Azure's traces; the first
 * line is time 0). Byte order mark and CR LF are accepted. TL_INVALID names file, line and value; lines that are not in
 * the order of time are refused. Freed with tl_load_trace_free; empty after an error. */
tl_status tl_load_trace_read(tl_load_trace *out, const char *path, tl_err *e) TL_MUST_USE;
/* The same from memory; `name` stands in errors. */
tl_status tl_load_trace_parse(tl_load_trace *out, const char *bytes, size_t len, const char *name, tl_err *e) TL_MUST_USE;
/* Replays it `speed` times as fast (above 0). */
tl_status tl_load_trace_speed(tl_load_trace *t, double speed, tl_err *e) TL_MUST_USE;
void tl_load_trace_free(tl_load_trace *t); /* zeroed ok, twice ok */

/* ---- prompts -------------------------------------------------------------------------------------------------- */

/* Ordinary tokens of the running model, found by letting it tokenize a built-in text, which must come back unchanged from
 * its detokenizer. Draws depend on the seed and the model's vocabulary alone. */
typedef struct tl_load_pool tl_load_pool;
tl_status tl_load_pool_new(tl_load_pool **out, tl_engine *g, uint64_t seed, tl_err *e) TL_MUST_USE;
/* From ids that are known already (tests, stored runs): they must be distinct, at least two. */
tl_status tl_load_pool_from(tl_load_pool **out, const int32_t *ids, size_t n, uint64_t seed, tl_err *e) TL_MUST_USE;
void tl_load_pool_free(tl_load_pool *p); /* NULL ok */
size_t tl_load_pool_size(const tl_load_pool *p);
/* A cold prompt of exactly n tokens, n >= 1: its first token differs from those of the size - 1 prompts before it, so no
 * slot that holds one of them has a common prefix with it. */
void tl_load_pool_draw(int32_t *out, size_t n, tl_load_pool *p);
/* Text of `words` words that begins with words unique to this draw, for dialects that take no token ids. A chat template
 * puts its own tokens in front: cold then needs cache_prompt = false as well. */
void tl_load_pool_text(tl_buf *out, size_t words, tl_load_pool *p);

#endif

/* peer: what other tools would report for a request that tally observed, and why it differs from ours.
 *
 * A tool is a row of definitions: from which moment to which, divided by what, with n from where, and on which habits of
 * a stream it fails. Applied to the stored events of one request they give that tool's figures; the difference to ours is
 * split into named causes by replacing one part of our definition at a time, in a fixed order: begin, end, count,
 * divisor. All amounts are integers of a fine grain, so the causes add up to the difference exactly.
 *
 * Pure: no clock, no files. Not for: running other tools, reading their result files (import).
 * The definitions, with the version of each tool that they were read in: README.md in this folder.
 */
#ifndef TL_PEER_H
#define TL_PEER_H

#include "sample/sample.h"

typedef struct tl_peer tl_peer; /* a tool; static */

size_t tl_peer_count(void);            /* tally itself is the first */
const tl_peer *tl_peer_at(size_t i);   /* NULL past the last */
const tl_peer *tl_peer_find(const char *name); /* NULL when unknown */
const char *tl_peer_name(const tl_peer *p);
const char *tl_peer_snapshot(const tl_peer *p);  /* revision and date that the definitions were read in */
const char *tl_peer_aggregate(const tl_peer *p); /* how it sums up a run, in one phrase */
bool tl_peer_is_client(const tl_peer *p); /* false: it prints the engine's own timings and reads no stream */

typedef enum tl_peer_slot {
    TL_PEER_TTFT,
    TL_PEER_TTFO,    /* first answer text, where the tool tells it apart */
    TL_PEER_E2E,
    TL_PEER_TPOT,    /* time per output token, whatever the tool calls it */
    TL_PEER_ITL,     /* a second figure of that kind: gaps between chunks */
    TL_PEER_RATE,    /* tokens per second of one user */
    TL_PEER_RATE2,   /* a second meaning of it */
    TL_PEER_PREFILL, /* prompt tokens per second */
    TL_PEER_SLOTS
} tl_peer_slot;
const char *tl_peer_slot_name(tl_peer_slot s); /* "ttft", "ttfo", "e2e", "tpot", "itl", "rate", "rate2", "prefill" */

typedef enum tl_peer_cause_id {
    TL_PEER_FROM_POST,   /* timer begins at the client's send instead of the intended start */
    TL_PEER_FIRST_WAIT,  /* the wait for the first token is inside the time per token */
    TL_PEER_ROLE,        /* a choice without text taken for the first token */
    TL_PEER_PROGRESS,    /* a prompt-progress chunk taken for the first token */
    TL_PEER_REASONING,   /* thinking is not seen: the first token is the first of the answer */
    TL_PEER_LOST,        /* records that its splitter loses */
    TL_PEER_FINISH_TAIL, /* up to the finish chunk */
    TL_PEER_USAGE_TAIL,  /* up to the usage chunk */
    TL_PEER_DONE_TAIL,   /* up to [DONE] or the close */
    TL_PEER_ENGINE_TIME, /* the engine's own clock instead of arrival times */
    TL_PEER_TTFT_AS_PROMPT, /* time to the first chunk taken for the prompt's time */
    TL_PEER_REQUESTED,   /* the requested length counted instead of the real one */
    TL_PEER_CHUNKS,      /* chunks counted instead of tokens */
    TL_PEER_TOKENS,      /* another count of tokens: the engine's, a tokenizer's */
    TL_PEER_CACHED,      /* cached prompt tokens counted as read */
    TL_PEER_N,           /* divided by n instead of n - 1: the first token counts */
    TL_PEER_ROUNDING,    /* rounded down to whole ns */
    TL_PEER_CAUSES
} tl_peer_cause_id;
const char *tl_peer_cause_name(tl_peer_cause_id c);  /* stable word: "role-chunk" */
const char *tl_peer_cause_words(tl_peer_cause_id c); /* for people: "role chunk counted as first token" */
bool tl_peer_cause_of_stream(tl_peer_cause_id c); /* false: the tool's definition differs from ours on every stream */

typedef struct tl_peer_figure {
    const char *word;        /* the tool's own name for it; NULL: it has no such figure */
    const char *formula;
    const char *unit;        /* "ms" or "tok/s" */
    int64_t value, ours;     /* in grains; TL_NONE when undefined */
    int64_t grains;          /* a unit: 1e6 (ns in a ms), 1e9 (ps in a ms), 1e6 (millionths of a tok/s) */
    const char *why;         /* value is TL_NONE: the reason, static */
    int64_t gap;             /* value - ours; TL_NONE when one is undefined */
    int64_t cause[TL_PEER_CAUSES]; /* in grains; they add up to gap. 0 = no part in it. */
} tl_peer_figure;

typedef struct tl_peer_figures {
    const tl_peer *peer;
    const char *fails;       /* the tool fails on this request: why, static; its figures are then undefined */
    bool counted_ok;         /* the tool counts this request as successful */
    bool ours_ok;
    int64_t n, ours_n;       /* tokens; TL_ABSENT when unknown */
    const char *n_from;      /* static */
    const char *notes[6];    /* other things it does, static: on this stream first, then on any */
    size_t n_notes, n_stream_notes;
    tl_peer_figure f[TL_PEER_SLOTS];
} tl_peer_figures;

/* Figures without pointers of their own: nothing to free. */
void tl_peer_say(tl_peer_figures *out, const tl_peer *p, const tl_request *r);
double tl_peer_value(const tl_peer_figure *f); /* in its unit; NAN when undefined */
/* New reference. */
json_t *tl_peer_json(const tl_peer_figures *f);

/* ---- a run ------------------------------------------------------------------------------------------------------ */

/* One figure over all requests that the tool counts. Sums of grains, so that causes still add up exactly. */
typedef struct tl_peer_total {
    size_t n;                /* requests with this figure */
    double mean, median, p99; /* of the tool's values, in the unit; percentiles by linear interpolation; NAN when n = 0 */
    double ours_median;      /* of our successful requests; NAN when none */
    size_t n_both;           /* requests with both figures: the sums below are theirs */
    int64_t sum, ours_sum, gap_sum, cause_sum[TL_PEER_CAUSES];
} tl_peer_total;

typedef struct tl_peer_run {
    const tl_peer *peer;
    size_t requests, counted_ok, ours_ok, failing;
    const char *fails;       /* the first reason; NULL when none fails */
    const char *n_from;      /* of the first request */
    size_t n_from_other;     /* requests whose count came from elsewhere */
    const char *words[TL_PEER_SLOTS], *units[TL_PEER_SLOTS], *why[TL_PEER_SLOTS];
    int64_t grains[TL_PEER_SLOTS];
    tl_peer_total f[TL_PEER_SLOTS];
} tl_peer_run;

/* `f`: one tool's figures of n requests. */
void tl_peer_sum(tl_peer_run *out, const tl_peer_figures *f, size_t n);
json_t *tl_peer_run_json(const tl_peer_run *r);
/* "-188.0 ms: role chunk counted as first token; ..." Appends nothing when there is no gap. */
void tl_peer_gap_words(tl_buf *out, const tl_peer_run *r, tl_peer_slot s);

/* ---- a server's habits -------------------------------------------------------------------------------------------- */

/* What the way in which these n answers were streamed does to the tool, apart from what it defines otherwise on any
 * stream: [{"kind", "text"}], empty when nothing. kind: "fails"; "success" (it counts others as successful); "figure", with
 * "figure", "unit", "ours" and "gap" (means) where both have it, if half a percent or more lies between; "note", of half of
 * the answers at least. New reference. */
json_t *tl_peer_on_stream(const tl_peer_figures *f, size_t n);

#endif

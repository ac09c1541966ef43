/* sample: what one request was observed to do, the metrics derived from it, its ledger, and statistics over many.
 *
 * Pure: no clock, no files, no sockets, no global state. The same observation gives the same numbers for ever; all
 * randomness (bootstrap, permutations) comes from a seed that the caller states and the result repeats.
 * Not for: decoding wire formats (engine), scheduling (load), labels and units (value).
 * Undefined is never 0: times are TL_T_NONE, durations TL_NONE, counts TL_ABSENT, real numbers NAN; JSON says null.
 * Definitions and formulas: README.md in this folder.
 */
#ifndef TL_SAMPLE_H
#define TL_SAMPLE_H

#include "base/base.h"

#define TL_T_NONE UINT64_MAX /* this point in time was never reached */
#define TL_NONE INT64_MIN    /* this duration (ns) is undefined */
#define TL_ABSENT ((int64_t)-1) /* this counter was not reported */

/* ---- one request as observed -------------------------------------------------------------------------------- */

typedef enum tl_event_kind {
    TL_EV_ROLE,      /* a choice without text: role chunk, empty delta */
    TL_EV_REASONING, /* non-empty thinking text */
    TL_EV_CONTENT,   /* non-empty answer text */
    TL_EV_TOOL,      /* non-empty tool-call text (name or arguments) */
    TL_EV_PROGRESS,  /* prompt progress */
    TL_EV_USAGE,     /* counters without a choice */
    TL_EV_FINISH,    /* finish reason, or the dialect's last record */
    TL_EV_COMMENT,   /* SSE comment, keep-alive */
    TL_EV_ERROR,
    TL_EV_DONE, /* [DONE] */
    TL_EV_OTHER,
    TL_EV_KINDS
} tl_event_kind;
const char *tl_event_kind_name(tl_event_kind k);
#define TL_EV_JOINED 0x100u /* added to kind: same object on the wire as the event before (thinking + answer in one) */

typedef struct tl_event {
    uint64_t t_ns;       /* arrival of the read that completed it; the request's monotonic clock */
    uint32_t text_bytes; /* decoded UTF-8 bytes of text it carried */
    uint16_t kind;       /* tl_event_kind, perhaps with TL_EV_JOINED: read it with tl_event_kind_of */
    uint16_t read_index; /* number of that read modulo 65536: equal in neighbours = they arrived together */
} tl_event;
static inline tl_event_kind tl_event_kind_of(const tl_event *ev) { return (tl_event_kind)(ev->kind & 0xffu); }
/* REASONING, CONTENT or TOOL: what counts as generated text. */
static inline bool tl_event_is_text(const tl_event *ev)
{
    const tl_event_kind k = tl_event_kind_of(ev);
    return k == TL_EV_REASONING || k == TL_EV_CONTENT || k == TL_EV_TOOL;
}

typedef enum tl_transport {
    TL_TP_COMPLETE,   /* the body ended as HTTP says it ends */
    TL_TP_CUT,        /* the connection closed or broke inside the answer */
    TL_TP_NO_CONNECT, /* refused, unreachable, unknown name */
    TL_TP_TIMEOUT,    /* some limit of ours passed: total, first byte, silence */
    TL_TP_CANCELLED,
    TL_TP_CLIENT_LIMIT, /* our own log was full: the client is at fault, not the server */
    TL_TP_PROTOCOL,   /* what came was not HTTP */
} tl_transport;
const char *tl_transport_name(tl_transport t); /* complete cut no-connect timeout cancelled client-limit protocol */

typedef struct tl_counters {
    /* usage object, as the server sent it */
    int64_t usage_prompt, usage_completion, usage_cached, usage_reasoning, usage_total;
    /* the engine's own timings: llama.cpp `timings`, Ollama's counts and durations */
    int64_t engine_prompt_n; /* evaluated prompt tokens, without cached ones where the engine separates them */
    int64_t engine_cache_n;
    int64_t engine_predicted_n;
    double engine_prompt_ms, engine_predicted_ms, engine_queue_ms;
    int64_t draft_n, draft_accepted;
    int64_t engine_load_ns, engine_total_ns, engine_prompt_ns, engine_eval_ns; /* Ollama, exact integers */
    bool engine_prompt_n_has_cached; /* engine_prompt_n counts cached tokens too (Ollama) */
    bool usage_repeated;             /* usage came more than once (continuous usage) */
    /* counted by us */
    int64_t chunks;    /* objects that carried text */
    int64_t tokenized; /* text sent back through the engine's tokenizer */
    int64_t requested_max;
} tl_counters;

/* Owns every pointer in it. tl_request_init before use, tl_request_free after. */
typedef struct tl_request {
    const char *dialect; /* static string */
    /* one monotonic clock, ns; TL_T_NONE when not reached */
    uint64_t t_intended;  /* the schedule's time; a closed loop sets it to the moment it wanted to send */
    uint64_t t_start;     /* the client began to work on it */
    uint64_t t_connected; /* may lie before t_start: connections are opened ahead */
    uint64_t t_sent;      /* last request byte handed to the kernel */
    uint64_t t_headers;
    uint64_t t_first_byte; /* of the body */
    uint64_t t_close;      /* end of the response */
    tl_event *events;
    size_t n_events, cap_events;
    char *text;      /* answer, byte exact, NUL-terminated; "" when none */
    char *reasoning;
    char *tool_text; /* tool names and arguments in order of arrival */
    size_t text_len, reasoning_len, tool_len;
    char *finish_reason; /* NULL when none came */
    char *error_class;   /* NULL = none; "http", "engine", "protocol", "transport" or the server's own type */
    char *error_text;    /* the server's or the transport's own words */
    char *raw_last;      /* last object(s) that carried usage, timings or finish reason, verbatim, one a line */
    tl_counters count;
    tl_transport transport;
    int http_status;     /* 0 = none */
    int64_t connects;    /* TL_ABSENT = unknown; 0 = reused, 1 = one new connection */
    int64_t reads, body_bytes;
    bool content_encoded; /* Content-Encoding was set: arrival times are not the server's */
    bool saw_done, saw_finish;  /* terminal records */
    bool done_required;   /* the dialect has terminal records: without one the answer is truncated */
    bool not_stream;      /* one plain JSON answer to a streaming request */
    bool invalid_utf8;    /* some bytes were replaced by U+FFFD */
    bool bad_record;      /* some record was not valid JSON of this dialect */
    unsigned habits;      /* TL_HABIT_*: how the stream was written, where clients are known to differ */
} tl_request;

#define TL_HABIT_KNOWN (1u << 0)       /* the bytes were looked at: a missing bit means "no" */
#define TL_HABIT_COMMENTS (1u << 1)    /* "comments": SSE comment lines */
#define TL_HABIT_NO_SPACE (1u << 2)    /* "no-space": `data:` without the optional space */
#define TL_HABIT_CRLF (1u << 3)        /* "crlf": lines end in CR LF */
#define TL_HABIT_EVENT_LINES (1u << 4) /* "event-lines": `event:` fields */
#define TL_HABIT_USAGE_NULL (1u << 5)  /* "usage-null": `"usage": null` in a record */
#define TL_HABIT_COMMENTS_FIRST (1u << 7) /* "comments-first": comments before the first data */
#define TL_HABIT_SPACE_CUT (1u << 6)   /* "space-cut": a read begins or ends with a space inside a record */

void tl_request_init(tl_request *r);
void tl_request_free(tl_request *r); /* zeroed ok, twice ok; init before using it again */
/* `kind`: a tl_event_kind, or one with TL_EV_JOINED. */
void tl_request_event(tl_request *r, uint64_t t_ns, unsigned kind, size_t text_bytes, size_t read_index);
/* Counters and raw strings side by side, for storing. Events and texts are not in it. New reference. */
json_t *tl_request_json(const tl_request *r);
/* The way back: times, counters, strings and flags of tl_request_json into an initialised *out. Events, texts and the
 * dialect (a static string) are the caller's. Members that an older tally did not write stay undefined. */
void tl_request_restore(tl_request *out, const json_t *stored);

/* Events delta-coded for storage (varints: time difference, kind, bytes, read difference). `out` is appended to. */
void tl_events_pack(tl_buf *out, const tl_event *ev, size_t n);
tl_status tl_events_unpack(tl_request *out, const void *p, size_t len, tl_err *e) TL_MUST_USE;

/* ---- metrics of one request ---------------------------------------------------------------------------------- */

typedef enum tl_outcome { TL_REQ_OK, TL_REQ_FAILED, TL_REQ_TRUNCATED, TL_REQ_TIMEOUT, TL_REQ_CANCELLED } tl_outcome;
const char *tl_outcome_name(tl_outcome o); /* ok failed truncated timeout cancelled */

typedef enum tl_n_source { TL_N_NONE, TL_N_USAGE, TL_N_ENGINE, TL_N_TOKENIZE, TL_N_EVENTS } tl_n_source;
const char *tl_n_source_name(tl_n_source s); /* none usage engine tokenize events */

/* Bits of tl_metrics.flags; tl_flag_name gives the stable word. */
#define TL_FLAG_COALESCED (1u << 0)      /* "coalesced": several text chunks in one read; gaps are not ITL */
#define TL_FLAG_SEVERAL (1u << 1)        /* "chunks-hold-several-tokens": fewer chunks than tokens */
#define TL_FLAG_BURST (1u << 2)          /* "burst": all text at once: not really streamed */
#define TL_FLAG_ROLE_EARLY (1u << 3)     /* "role-early": a choice came clearly before the first token */
#define TL_FLAG_NO_USAGE (1u << 4)       /* "usage-missing" */
#define TL_FLAG_N_DIFFERS (1u << 5)      /* "token-counts-differ": n_cause says why */
#define TL_FLAG_CACHED (1u << 6)         /* "cached-prompt" */
#define TL_FLAG_ENCODED (1u << 7)        /* "content-encoded": compressed on the way; token times are refused */
#define TL_FLAG_CONNECTS (1u << 8)       /* "connects": not exactly one connection: a silent resend, or reuse */
#define TL_FLAG_STEPS_40MS (1u << 9)     /* "40ms-steps": gaps pile up at 40 ms: delayed ACK against Nagle */
#define TL_FLAG_NOT_STREAM (1u << 10)    /* "not-streamed": one plain JSON answer */
#define TL_FLAG_UTF8 (1u << 11)          /* "invalid-utf8" */
#define TL_FLAG_BAD_RECORD (1u << 12)    /* "bad-record" */
#define TL_FLAG_CLOCK (1u << 13)         /* "engine-time-exceeds-clock": engine claims more time than passed */
#define TL_FLAG_HIDDEN (1u << 14)        /* "hidden-reasoning": reasoning tokens counted, no reasoning text seen */
#define TL_FLAG_LIMIT (1u << 15)         /* "stopped-by-limit": finish reason length */
#define TL_FLAG_STALL (1u << 16)         /* "stall": one gap over 10 times the median gap and over 250 ms */
#define TL_FLAG_OVER_MAX (1u << 17)      /* "over-requested-max": more tokens than asked for */
#define TL_FLAG_ZERO_TIME (1u << 18)     /* "zero-engine-time": engine reports 0 ms for work it did: unusable */
#define TL_FLAG_COUNT 19
const char *tl_flag_name(unsigned bit_index); /* NULL past the last */

/* End-to-end time, line by line, ns. The lines add up to e2e_ns exactly; TL_NONE lines count as 0 and mean
 * "cannot be told apart from the next line that is given". `unaccounted_ns` may be negative: the engine then claims
 * more time than passed, and TL_FLAG_CLOCK is set. */
typedef struct tl_ledger {
    int64_t e2e_ns; /* TL_NONE: no token, no ledger */
    int64_t client_queue_ns, connect_ns, server_queue_ns, model_load_ns, prompt_read_ns, thinking_ns, answer_ns;
    int64_t unaccounted_ns;
    bool server_queue_derived;      /* TTFT - prompt time - what came before: not reported by the engine */
    bool prompt_includes_queue;     /* the engine reports no prompt time: queue and prompt read are one line */
} tl_ledger;

typedef struct tl_metrics {
    tl_outcome outcome;
    const char *reason; /* borrowed from the request or static; NULL when ok */
    int64_t ttfb_ns, ttfr_ns, ttft_ns, ttft_sent_ns, ttfo_ns, last_ns, e2e_ns, close_ns; /* from t_intended */
    int64_t n;          /* completion tokens; TL_ABSENT when unknown */
    tl_n_source n_source;
    const char *n_cause; /* why sources differ, static; NULL when they agree */
    double tpot_ns;      /* (tL - tF)/(n - 1) */
    double decode_rate;  /* (n - 1)/(tL - tF), tokens/s */
    double chars_rate;   /* code points after the first text event / (tL - tF), 1/s */
    double engine_decode_rate; /* (n - 1)/predicted time, from the engine's own clock */
    double prefill_rate; /* uncached prompt tokens / prompt time, tokens/s */
    bool prefill_from_engine;
    double queue_ns;     /* server queue; NAN when it cannot be known */
    bool queue_derived;
    int64_t prompt_n, cached_n, uncached_n, reasoning_n; /* cached_n TL_ABSENT: not told; uncached_n then = prompt_n */
    int64_t chunks;      /* text chunks */
    int64_t text_reads;  /* reads that carried text */
    int64_t *gaps_ns;    /* chunk gaps: owned; n_gaps of them */
    size_t n_gaps;
    bool gaps_are_itl;   /* chunks = tokens and one a read: the gaps may be called ITL */
    double draft_acceptance; /* accepted / drafted */
    unsigned flags;
    tl_ledger ledger;
} tl_metrics;

/* Fills *out from r; `out` borrows `reason` from r, owns gaps_ns. */
void tl_metrics_of(tl_metrics *out, const tl_request *r);
void tl_metrics_free(tl_metrics *m); /* zeroed ok, twice ok */
/* All fields with undefined ones as null; durations in integer ns, flags as words, ledger as an object, gaps as an
 * array when `with_gaps`. New reference. */
json_t *tl_metrics_json(const tl_metrics *m, bool with_gaps);

/* The metrics that experiments and figures can name. */
typedef struct tl_metric_desc {
    const char *name;    /* "ttft", "decode_rate", ... */
    const char *unit;    /* "ms", "tok/s", "tok", "1" */
    const char *formula; /* printed under figures */
    bool higher_is_better;
} tl_metric_desc;
size_t tl_metric_count(void);
const tl_metric_desc *tl_metric_at(size_t i); /* NULL past the last */
const tl_metric_desc *tl_metric_find(const char *name); /* NULL when unknown */
/* In the table's unit; NAN when undefined or unknown. */
double tl_metric_get(const tl_metrics *m, const char *name);

/* ---- a promise: the SLO of one request ------------------------------------------------------------------------------ */

/* The promise in words: "ttft<2s@95%, tpot<80ms@95%" says that 95 % of the requests have their first token within 2 s,
 * and 95 % a mean token time within 80 ms. One term or more, with commas between, blanks anywhere between the parts:
 *   METRIC `<` LIMIT UNIT `@` SHARE     METRIC: ttft, tpot, e2e (README.md defines them); UNIT: ms or s
 * The limit itself is within; `<=` is read as `<`. LIMIT: 0.001 ms to 86400 s. SHARE: 1 % to below 100 %, as a
 * percentage or as a fraction (0.95). Nothing is assumed: a term without unit or share is refused, for "2" and "most"
 * are what a promise is about. So is a share of 100 %, which no number of requests can show. */
typedef struct tl_slo_term {
    const char *metric; /* "ttft", "tpot", "e2e": static */
    double limit_ms;
    double share; /* 0.01 up to, but not, 1 */
} tl_slo_term;
enum { TL_SLO_TERMS = 8 };
typedef struct tl_slo_spec {
    tl_slo_term v[TL_SLO_TERMS]; /* in the order of the text */
    size_t n;
} tl_slo_spec;
/* TL_INVALID with the position (bytes, from 1), the text there and the remedy; *out is then empty. NULL is refused as
 * empty text is. The same metric may have several shares (95 % within 2 s, 99 % within 4 s), not one share twice. */
tl_status tl_slo_parse(tl_slo_spec *out, const char *text, tl_err *e) TL_MUST_USE;
/* Canonical: equal promises in the same order give the same text, and it reads back as `s`. Owned by the caller. */
char *tl_slo_text(const tl_slo_spec *s) TL_MUST_USE;
/* One request against one term. A request that is not ok misses it. A metric that is undefined (TPOT of one token) is
 * not asked of the request and so does not miss; but an answer without any token time has nothing that could meet a
 * promise, and misses. */
bool tl_slo_meets(const tl_slo_term *t, const tl_metrics *m);

/* ---- many requests: a stated window -------------------------------------------------------------------------- */

typedef struct tl_window {
    size_t offered, ok, failed; /* failed = everything that is not ok */
    size_t good;                /* every term met, see tl_slo_meets; without an SLO: ok */
    double seconds, offered_rate, ok_rate, failed_rate, good_rate; /* per second */
    double tokens_rate; /* tokens of successful requests per second; NAN when some n is unknown */
    double success_share, good_share;
} tl_window;
/* Of the `n` requests that belong to the window of `seconds` (> 0). slo may be NULL. */
void tl_window_of(tl_window *out, const tl_metrics *m, size_t n, double seconds, const tl_slo_spec *slo);

/* What happened from one moment to another of the requests' clock, whichever requests it belonged to: one that began
 * before or went on after counts with what lies inside. */
typedef struct tl_span {
    double seconds;
    size_t started, ok, failed; /* intended starts and ends inside */
    double tokens;    /* of the requests that are ok, spread over their text events; NAN when some n is unknown */
    double in_flight; /* mean number of unfinished requests: the time of all of them inside / seconds */
} tl_span;
/* m[i] belongs to r[i]; from < to is asserted. */
void tl_span_of(tl_span *out, const tl_request *const *r, const tl_metrics *m, size_t n, uint64_t from, uint64_t to);

/* A share k of n with its exact two-sided interval (Clopper and Pearson 1934, Biometrika 26:404). n = 0 knows nothing:
 * value NAN, interval 0..1. k <= n is asserted. */
typedef struct tl_share {
    size_t k, n;
    double value, lo, hi;
} tl_share;
void tl_stat_share(tl_share *out, size_t k, size_t n, double confidence);

/* "p99 of TTFT <= 2 s" says that at least 0.99 of the requests offered meet it: take `good` from tl_window.good of
 * .offered, so that a failed request counts as not met. Undecided while the interval holds the share asked for (0..1,
 * exclusive); from 0.5 up, tl_stat_quantile_n(asked, confidence) requests, all good, are the fewest to show it met. */
typedef enum tl_slo_verdict { TL_SLO_MET, TL_SLO_MISSED, TL_SLO_UNDECIDED } tl_slo_verdict;
tl_slo_verdict tl_slo_judge(const tl_share *good, double asked);

/* ---- the largest load that meets an SLO: which to try next (pure; the caller runs the loads) ------------------------ */

#define TL_SEARCH_STEPS 64
typedef struct tl_search_step {
    double load; /* users, or requests/s */
    tl_slo_verdict verdict;
    bool seems_met; /* the shares observed reach those asked for, whatever their intervals say */
} tl_search_step;
/* Zeroed but for the first line, then filled by tl_search_add. */
typedef struct tl_search {
    bool whole; /* loads are counts of users; else rates, told apart by the share `resolution` (0.1: 10 %) */
    double from, to, resolution; /* 0 < from <= to */
    tl_search_step v[TL_SEARCH_STEPS];
    size_t n;
} tl_search;
/* false: the answer is as narrow as it gets. */
bool tl_search_next(const tl_search *s, double *load);
void tl_search_add(tl_search *s, double load, tl_slo_verdict verdict, bool seems_met);
typedef struct tl_search_result {
    double value;  /* the largest load whose observed shares meet the SLO, below missed_at; 0 = none, not even `from` */
    double lo, hi; /* shown to meet it (0 = none was); whole: one below missed_at, rates: missed_at; NAN when unbounded */
    double missed_at; /* the smallest load shown to miss it; INFINITY = none */
    bool unbounded;   /* not even `to` was shown to miss it */
} tl_search_result;
void tl_search_answer(tl_search_result *out, const tl_search *s);

/* ---- statistics ----------------------------------------------------------------------------------------------- */

/* Nearest rank: the ceil(q n)-th smallest. With its two-sided interval by order statistics (exact binomial). No
 * interval, no quantile: `given` is false below n_needed, and value, lo, hi are NAN. */
typedef struct tl_quantile {
    double q, value, lo, hi;
    size_t n, n_needed;
    bool given;
    double coverage; /* what the interval really covers, >= the confidence asked for */
} tl_quantile;
void tl_stat_quantile(tl_quantile *out, const double *x, size_t n, double q, double confidence);
size_t tl_stat_quantile_n(double q, double confidence); /* smallest n whose interval exists */
double tl_stat_nearest_rank(const double *x, size_t n, double q); /* the bare definition; NAN when n = 0 */

#define TL_STAT_BOOT 2000 /* resamples unless told otherwise */

typedef struct tl_summary {
    size_t n;
    double mean, sd /* n - 1 */, min, max, median, mad;
    double boot_lo, boot_hi; /* 95 % percentile bootstrap of the median; NAN when n < 2 */
    size_t boot_b;
    uint64_t seed;
    double exact_lo, exact_hi, exact_coverage; /* order statistics; NAN when n < 6 */
    double rel_half_width; /* (boot_hi - boot_lo)/2/|median|; NAN when undefined */
    size_t outliers;       /* flagged by MAD, kept in every number above */
} tl_summary;
/* Values that are not finite are refused by assertion: drop undefined ones first and say how many. */
void tl_stat_summary(tl_summary *out, const double *x, size_t n, uint64_t seed);
json_t *tl_stat_summary_json(const tl_summary *s);
/* Modified z-score |x - median|/(1.4826 MAD) > 3.5. Sets flag[i]; returns how many. */
size_t tl_stat_outliers(bool *flag, const double *x, size_t n);
/* The repeat-until rule: n >= 5 and half the bootstrap interval <= rel_width of the median. */
bool tl_stat_ci_narrow_enough(const double *x, size_t n, double rel_width, uint64_t seed);

double tl_stat_median(const double *x, size_t n); /* mean of the middle two when n is even; NAN when n = 0 */
double tl_stat_spearman(const double *x, const double *y, size_t n); /* ties get mean ranks; NAN when undefined */
double tl_stat_lag1(const double *x, size_t n);
double tl_stat_binomial_cdf(size_t k, size_t n, double p); /* P(X <= k) */

typedef enum tl_warning_kind {
    TL_WARN_DRIFT,
    TL_WARN_SLOW_START,
    TL_WARN_BIMODAL,
    TL_WARN_LAG1,
    TL_WARN_OUTLIERS,
    TL_WARN_KINDS
} tl_warning_kind;
typedef struct tl_warning {
    tl_warning_kind kind;
    const char *name;  /* stable word */
    size_t values;     /* outliers: how many; else 0: it is about all */
    char text[320];    /* one plain sentence with its remedy */
} tl_warning;
/* Samples in the order they were taken. Returns how many of the TL_WARN_KINDS warnings apply. */
size_t tl_stat_warnings(tl_warning out[TL_WARN_KINDS], const double *x, size_t n);

typedef enum tl_verdict { TL_V_FASTER, TL_V_SLOWER, TL_V_NO_DIFFERENCE, TL_V_TOO_NOISY } tl_verdict;
const char *tl_verdict_name(tl_verdict v); /* "faster", "slower", "no difference shown", "too noisy" */

typedef struct tl_samples {
    const double *x;
    const int *block; /* NULL, or the block each sample was taken in: resampling then stays inside blocks */
    size_t n;
} tl_samples;
typedef struct tl_compare_opts {
    bool paired;           /* a[i] belongs to b[i]: same prompt, same round */
    bool higher_is_better; /* rates: true; times: false */
    double noise_limit;    /* half-width of the ratio's interval above which silence is noise; 0 = 0.05 */
    size_t boot_b;         /* 0 = TL_STAT_BOOT */
    uint64_t seed;
} tl_compare_opts;
typedef struct tl_comparison {
    double ratio;  /* median(b)/median(a); paired: median of b[i]/a[i] */
    double lo, hi; /* 95 % bootstrap */
    double p;      /* permutation (unpaired, inside blocks) or sign flips (paired), two-sided */
    size_t n_a, n_b, boot_b;
    uint64_t seed;
    bool paired;
    double noise_limit; /* as applied */
    size_t needs_n;     /* 0, or: a side has fewer values than this, and therefore the verdict is "too noisy" */
    tl_verdict verdict; /* of b against a */
} tl_comparison;
/* The rule of the verdict, in this order:
 *   too noisy            a side has fewer than TL_STAT_COMPARE_N values: five pairs that all agree still have p = 2/32
 *   faster, slower       the 95 % interval of b/a lies wholly on one side of 1, and p < 0.05
 *   no difference shown  half the interval's width is at most noise_limit
 *   too noisy            anything else
 * TL_INVALID when a side has no or non-positive values, or pairs do not match. */
#define TL_STAT_COMPARE_N 6
tl_status tl_stat_compare(tl_comparison *out, const tl_samples *a, const tl_samples *b, const tl_compare_opts *o,
                          tl_err *e) TL_MUST_USE;
json_t *tl_stat_comparison_json(const tl_comparison *c);

/* Values with the round each was taken in. Requests of one round share what disturbed it, so they count once, as their
 * median: what is compared, and resampled, are rounds. */
typedef struct tl_rounds {
    const double *x;
    const int64_t *round;
    size_t n;
} tl_rounds;
/* tl_stat_compare over the rounds' medians. o->paired: a round of A belongs to the same round of B, and rounds that only
 * one side has are left out; n_a and n_b say how many are left. TL_INVALID also when no round is shared. */
tl_status tl_stat_compare_rounds(tl_comparison *out, const tl_rounds *a, const tl_rounds *b, const tl_compare_opts *o,
                                 tl_err *e) TL_MUST_USE;

#endif

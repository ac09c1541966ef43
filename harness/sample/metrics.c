/* Metrics of one request. One pass over the events finds the landmarks; everything else is arithmetic on them.
 *
 * Where a definition could be read in two ways, the reading of README.md is the one coded here; the traps are other
 * tools' published mistakes (a role chunk taken for a token, chunks counted as tokens, the requested length reported
 * as the length produced, an error inside HTTP 200 counted as success).
 */
#include <math.h>

#include "sample/sample_impl.h"

#define NS_PER_MS 1e6
/* No engine decodes one sequence faster than a token in 20 us: what looks faster was sent in one go. */
#define BURST_NS_PER_TOKEN 20e3
/* A choice earlier than the first token by more than this was sent before the token existed. */
#define ROLE_EARLY_NS 5000000

int64_t tl_sample_diff(uint64_t a, uint64_t b)
{
    if (a == TL_T_NONE || b == TL_T_NONE) return TL_NONE;
    return (int64_t)(b - a);
}

double tl_sample_prompt_ns(const tl_request *r)
{
    const tl_counters *c = &r->count;
    double ns = NAN;
    if (c->engine_prompt_ns != TL_ABSENT) ns = (double)c->engine_prompt_ns;
    else if (isfinite(c->engine_prompt_ms)) ns = c->engine_prompt_ms * NS_PER_MS;
    /* "0.00 ms for 7 tokens" was a bug of a published version, not a fast machine. */
    return ns > 0 ? ns : NAN;
}

/* ---- landmarks --------------------------------------------------------------------------------------------------- */

static bool has_choice(tl_event_kind k)
{
    return k == TL_EV_ROLE || k == TL_EV_REASONING || k == TL_EV_CONTENT || k == TL_EV_TOOL || k == TL_EV_PROGRESS ||
           k == TL_EV_FINISH;
}

static void find_marks(tl_marks *k, const tl_request *r)
{
    *k = (tl_marks){ .first_choice = TL_T_NONE, .first_text = TL_T_NONE, .first_answer = TL_T_NONE,
                     .last_text = TL_T_NONE };
    const tl_event *before = NULL;
    for (size_t i = 0; i < r->n_events; i++) {
        const tl_event *ev = &r->events[i];
        if (has_choice(tl_event_kind_of(ev)) && k->first_choice == TL_T_NONE) k->first_choice = ev->t_ns;
        if (!tl_event_is_text(ev)) continue;
        if (!before) {
            k->first_text = ev->t_ns;
            k->first_text_event = ev;
        }
        if (tl_event_kind_of(ev) == TL_EV_REASONING) k->has_reasoning = true;
        else if (k->first_answer == TL_T_NONE) k->first_answer = ev->t_ns;
        if (!before || before->read_index != ev->read_index) k->text_reads++;
        k->last_text = ev->t_ns;
        before = ev;
    }
}

static void fill_gaps(tl_metrics *m, const tl_request *r)
{
    size_t cap = 0;
    uint64_t before = TL_T_NONE;
    for (size_t i = 0; i < r->n_events; i++) {
        const tl_event *ev = &r->events[i];
        if (!tl_event_is_text(ev) || (ev->kind & TL_EV_JOINED)) continue;
        m->chunks++;
        if (before != TL_T_NONE) TL_PUSH(m->gaps_ns, m->n_gaps, cap, (int64_t)(ev->t_ns - before));
        before = ev->t_ns;
    }
}

/* ---- outcome ------------------------------------------------------------------------------------------------------ */

static void fail_with(tl_metrics *m, tl_outcome o, const char *given, const char *otherwise)
{
    m->outcome = o;
    m->reason = given && *given ? given : otherwise;
}

static void decide_outcome(tl_metrics *m, const tl_request *r, const tl_marks *k)
{
    const bool terminal = r->saw_finish || r->saw_done;
    const bool no_token = k->first_text == TL_T_NONE && !r->saw_finish;
    if (r->error_class && r->transport != TL_TP_CANCELLED && r->transport != TL_TP_TIMEOUT &&
        !tl_str_eq(r->error_class, "transport"))
        fail_with(m, TL_REQ_FAILED, r->error_text, "the server reported an error");
    else if (r->transport == TL_TP_CANCELLED)
        fail_with(m, TL_REQ_CANCELLED, NULL, "cancelled by the client");
    else if (r->transport == TL_TP_TIMEOUT)
        fail_with(m, TL_REQ_TIMEOUT, r->error_text, "time limit of the client");
    else if (r->transport == TL_TP_NO_CONNECT)
        fail_with(m, TL_REQ_FAILED, r->error_text, "no connection");
    else if (r->transport == TL_TP_CLIENT_LIMIT)
        fail_with(m, TL_REQ_FAILED, r->error_text, "the client's buffer was full");
    else if (r->transport == TL_TP_PROTOCOL && !terminal)
        fail_with(m, TL_REQ_FAILED, r->error_text, "the answer was not HTTP");
    else if (r->bad_record)
        fail_with(m, TL_REQ_FAILED, r->error_text, "a record of the answer was not valid JSON");
    else if (no_token)
        fail_with(m, TL_REQ_FAILED, NULL, "no tokens");
    else if (!terminal && (r->done_required || r->transport != TL_TP_COMPLETE))
        fail_with(m, TL_REQ_TRUNCATED, NULL, "the answer ended without finish reason or end record");
    else if (tl_str_eq(r->finish_reason, "error") || tl_str_eq(r->finish_reason, "abort"))
        fail_with(m, TL_REQ_FAILED, NULL, "the server gave up: finish reason error");
}

/* ---- n ------------------------------------------------------------------------------------------------------------ */

/* Some servers leave thinking out of completion_tokens (190 thought + 6 answered, counted as 6); the total or the
 * detail gives it away. */
static int64_t usage_tokens(const tl_counters *c, const char **cause)
{
    if (c->usage_completion == TL_ABSENT) return TL_ABSENT;
    if (c->usage_reasoning > c->usage_completion) {
        *cause = "usage counts reasoning tokens beside completion tokens; both are added";
        return c->usage_completion + c->usage_reasoning;
    }
    if (c->usage_reasoning > 0 && c->usage_prompt != TL_ABSENT &&
        c->usage_total == c->usage_prompt + c->usage_completion + c->usage_reasoning) {
        *cause = "usage counts reasoning tokens beside completion tokens; both are added";
        return c->usage_completion + c->usage_reasoning;
    }
    return c->usage_completion;
}

static const char *differ_cause(const tl_metrics *m, const tl_counters *c)
{
    if (m->n_source == TL_N_USAGE && c->engine_predicted_n > 0 && c->engine_predicted_n != m->n)
        return "usage and the engine's timings disagree";
    if (m->n_source < TL_N_TOKENIZE && c->tokenized > 0 && c->tokenized != m->n)
        return "the text tokenized again gives another count (end of sequence, markers, merges)";
    if (m->n_source != TL_N_EVENTS && m->n > 0 && m->n < m->chunks)
        return "more text chunks than tokens: a parser splits tokens";
    if (m->n_source != TL_N_EVENTS && m->n > m->chunks && !(m->flags & TL_FLAG_SEVERAL))
        return "some tokens have no text (end of sequence, markers, held back)";
    if (c->requested_max > 0 && m->n > c->requested_max + 1) return "more tokens than the request allowed";
    return NULL;
}

static void count_tokens(tl_metrics *m, const tl_request *r)
{
    const tl_counters *c = &r->count;
    const char *cause = NULL;
    const int64_t usage = usage_tokens(c, &cause);
    const bool text = m->chunks > 0;
    const bool zero_claim = text && (usage == 0 || (usage < 0 && c->engine_predicted_n == 0));
    if (usage > 0 || (usage == 0 && !text)) m->n = usage, m->n_source = TL_N_USAGE;
    else if (c->engine_predicted_n > 0 || (c->engine_predicted_n == 0 && !text))
        m->n = c->engine_predicted_n, m->n_source = TL_N_ENGINE;
    else if (c->tokenized > 0) m->n = c->tokenized, m->n_source = TL_N_TOKENIZE;
    else m->n = m->chunks, m->n_source = TL_N_EVENTS;
    /* One token of end-of-sequence never has text; 10 % more than that is not explained by markers. */
    if (m->n_source != TL_N_EVENTS && text && m->n > m->chunks + 1 && m->n * 10 >= m->chunks * 11)
        m->flags |= TL_FLAG_SEVERAL;
    if (!cause && zero_claim) cause = "the server counts 0 tokens though text arrived";
    m->n_cause = cause ? cause : differ_cause(m, c);
    if (m->n_cause) m->flags |= TL_FLAG_N_DIFFERS;
    if (c->requested_max > 0 && m->n > c->requested_max + 1) m->flags |= TL_FLAG_OVER_MAX;
    m->reasoning_n = c->usage_reasoning;
    if (c->draft_n > 0 && c->draft_accepted >= 0) m->draft_acceptance = (double)c->draft_accepted / (double)c->draft_n;
}

static void count_prompt(tl_metrics *m, const tl_counters *c)
{
    m->cached_n = c->usage_cached != TL_ABSENT ? c->usage_cached : c->engine_cache_n;
    m->prompt_n = c->usage_prompt;
    if (m->prompt_n == TL_ABSENT && c->engine_prompt_n != TL_ABSENT)
        m->prompt_n = c->engine_prompt_n + (!c->engine_prompt_n_has_cached && m->cached_n > 0 ? m->cached_n : 0);
    m->uncached_n = m->prompt_n;
    if (m->prompt_n != TL_ABSENT && m->cached_n > 0)
        m->uncached_n = m->prompt_n > m->cached_n ? m->prompt_n - m->cached_n : 0;
    if (c->engine_prompt_n != TL_ABSENT && !c->engine_prompt_n_has_cached) m->uncached_n = c->engine_prompt_n;
    if (m->cached_n > 0) m->flags |= TL_FLAG_CACHED;
}

/* ---- rates --------------------------------------------------------------------------------------------------------- */

static size_t code_points(const char *s, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80) c++;
    return c;
}

static size_t first_chunk_points(const tl_request *r, const tl_event *ev)
{
    const char *s = r->text;
    size_t len = r->text_len;
    if (tl_event_kind_of(ev) == TL_EV_REASONING) s = r->reasoning, len = r->reasoning_len;
    else if (tl_event_kind_of(ev) == TL_EV_TOOL) s = r->tool_text, len = r->tool_len;
    return code_points(s, ev->text_bytes < len ? ev->text_bytes : len);
}

static void fill_rates(tl_metrics *m, const tl_request *r, const tl_marks *k)
{
    const int64_t span = tl_sample_diff(k->first_text, k->last_text);
    if (span == TL_NONE) return;
    if (m->n >= 2) {
        m->tpot_ns = (double)span / (double)(m->n - 1);
        if (span > 0) m->decode_rate = (double)(m->n - 1) / ((double)span / 1e9);
    }
    if (span > 0) {
        const size_t all = code_points(r->text, r->text_len) + code_points(r->reasoning, r->reasoning_len) +
                           code_points(r->tool_text, r->tool_len);
        m->chars_rate = (double)(all - first_chunk_points(r, k->first_text_event)) / ((double)span / 1e9);
    }
}

static void fill_engine_rates(tl_metrics *m, const tl_request *r)
{
    const tl_counters *c = &r->count;
    double eval_ns = isfinite(c->engine_predicted_ms) ? c->engine_predicted_ms * NS_PER_MS : NAN;
    if (c->engine_eval_ns != TL_ABSENT) eval_ns = (double)c->engine_eval_ns;
    if (c->engine_predicted_n >= 2 && eval_ns > 0)
        m->engine_decode_rate = (double)(c->engine_predicted_n - 1) / (eval_ns / 1e9);
    if ((c->engine_predicted_n >= 2 && eval_ns <= 0) ||
        (c->engine_prompt_n > 0 && (c->engine_prompt_ns == 0 || c->engine_prompt_ms <= 0)))
        m->flags |= TL_FLAG_ZERO_TIME;

    double prompt_ns = tl_sample_prompt_ns(r);
    m->prefill_from_engine = isfinite(prompt_ns);
    if (!m->prefill_from_engine && m->ttft_sent_ns != TL_NONE)
        prompt_ns = (double)m->ttft_sent_ns - (isfinite(m->queue_ns) ? m->queue_ns : 0);
    if (m->uncached_n > 0 && prompt_ns > 0) m->prefill_rate = (double)m->uncached_n / (prompt_ns / 1e9);
}

/* ---- flags --------------------------------------------------------------------------------------------------------- */

static int cmp_i64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Delayed ACK against Nagle: writes pair up, one at once and one 40 ms later (Linux's minimum delayed ACK). */
static bool steps_of_40ms(const tl_metrics *m)
{
    size_t at40 = 0, at0 = 0;
    for (size_t i = 0; i < m->n_gaps; i++) {
        if (m->gaps_ns[i] >= 38000000 && m->gaps_ns[i] <= 46000000) at40++;
        else if (m->gaps_ns[i] < 5000000) at0++;
    }
    return m->n_gaps >= 8 && at40 * 5 >= m->n_gaps && at0 * 5 >= m->n_gaps && (at40 + at0) * 10 >= m->n_gaps * 8;
}

static bool has_stall(const tl_metrics *m)
{
    if (m->n_gaps < 4) return false;
    int64_t *g = tl_xalloc(m->n_gaps * sizeof *g);
    memcpy(g, m->gaps_ns, m->n_gaps * sizeof *g);
    qsort(g, m->n_gaps, sizeof *g, cmp_i64);
    const int64_t mid = g[m->n_gaps / 2], max = g[m->n_gaps - 1];
    free(g);
    return max > 250000000 && max > 10 * mid;
}

static void set_flags(tl_metrics *m, const tl_request *r, const tl_marks *k)
{
    const int64_t span = tl_sample_diff(k->first_text, k->last_text);
    const int64_t early = tl_sample_diff(k->first_choice, k->first_text);
    const struct {
        bool on;
        unsigned flag;
    } rules[] = {
        { m->text_reads < m->chunks, TL_FLAG_COALESCED },
        { m->n >= 2 && span != TL_NONE && (double)span <= BURST_NS_PER_TOKEN * (double)(m->n - 1), TL_FLAG_BURST },
        { early != TL_NONE && early > ROLE_EARLY_NS, TL_FLAG_ROLE_EARLY },
        { m->chunks > 0 && r->count.usage_completion == TL_ABSENT && r->count.engine_predicted_n == TL_ABSENT,
          TL_FLAG_NO_USAGE },
        { r->content_encoded, TL_FLAG_ENCODED },
        { r->connects != TL_ABSENT && r->connects != 1, TL_FLAG_CONNECTS },
        { steps_of_40ms(m), TL_FLAG_STEPS_40MS },
        { r->not_stream, TL_FLAG_NOT_STREAM },
        { r->invalid_utf8, TL_FLAG_UTF8 },
        { r->bad_record, TL_FLAG_BAD_RECORD },
        { r->count.usage_reasoning > 0 && r->reasoning_len == 0, TL_FLAG_HIDDEN },
        { tl_str_eq(r->finish_reason, "length") || tl_str_eq(r->finish_reason, "limit"), TL_FLAG_LIMIT },
        { has_stall(m), TL_FLAG_STALL },
    };
    for (size_t i = 0; i < TL_COUNT(rules); i++)
        if (rules[i].on) m->flags |= rules[i].flag;
    m->gaps_are_itl = m->n >= 2 && m->n == m->chunks && m->text_reads == m->chunks && !r->content_encoded;
}

/* Behind a compressor nobody knows when a token was sent: everything that rests on token times is undefined. */
static void refuse_token_times(tl_metrics *m)
{
    m->ttfr_ns = m->ttft_ns = m->ttft_sent_ns = m->ttfo_ns = m->last_ns = m->e2e_ns = TL_NONE;
    m->tpot_ns = m->decode_rate = m->chars_rate = m->queue_ns = NAN;
    if (!m->prefill_from_engine) m->prefill_rate = NAN;
    m->ledger = (tl_ledger){ .e2e_ns = TL_NONE };
}

void tl_metrics_of(tl_metrics *out, const tl_request *r)
{
    tl_marks k;
    memset(out, 0, sizeof *out);
    out->n = out->prompt_n = out->cached_n = out->uncached_n = out->reasoning_n = TL_ABSENT;
    out->tpot_ns = out->decode_rate = out->chars_rate = out->engine_decode_rate = out->prefill_rate = NAN;
    out->queue_ns = out->draft_acceptance = NAN;

    find_marks(&k, r);
    fill_gaps(out, r);
    out->text_reads = k.text_reads;
    out->ttfb_ns = tl_sample_diff(r->t_intended, r->t_first_byte);
    out->ttfr_ns = tl_sample_diff(r->t_intended, k.first_choice);
    out->ttft_ns = tl_sample_diff(r->t_intended, k.first_text);
    out->ttft_sent_ns = tl_sample_diff(r->t_sent, k.first_text);
    out->ttfo_ns = tl_sample_diff(r->t_intended, k.first_answer);
    out->last_ns = out->e2e_ns = tl_sample_diff(r->t_intended, k.last_text);
    out->close_ns = tl_sample_diff(r->t_intended, r->t_close);

    decide_outcome(out, r, &k);
    count_tokens(out, r);
    count_prompt(out, &r->count);
    tl_sample_ledger(out, r, &k);
    fill_rates(out, r, &k);
    fill_engine_rates(out, r);
    set_flags(out, r, &k);
    if (r->content_encoded) refuse_token_times(out);
}

void tl_metrics_free(tl_metrics *m)
{
    free(m->gaps_ns);
    memset(m, 0, sizeof *m);
}

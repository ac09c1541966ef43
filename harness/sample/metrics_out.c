/* Names, units and JSON of metrics: one table serves experiments, figures and --json. */
#include <math.h>

#include "sample/sample_impl.h"

static const char *const flag_names[TL_FLAG_COUNT] = {
    "coalesced",      "chunks-hold-several-tokens",
    "burst",          "role-early",
    "usage-missing",  "token-counts-differ",
    "cached-prompt",  "content-encoded",
    "connects",       "40ms-steps",
    "not-streamed",   "invalid-utf8",
    "bad-record",     "engine-time-exceeds-clock",
    "hidden-reasoning", "stopped-by-limit",
    "stall",          "over-requested-max",
    "zero-engine-time",
};

const char *tl_flag_name(unsigned bit_index) { return bit_index < TL_FLAG_COUNT ? flag_names[bit_index] : NULL; }

const char *tl_outcome_name(tl_outcome o)
{
    static const char *const names[] = { "ok", "failed", "truncated", "timeout", "cancelled" };
    return (unsigned)o < TL_COUNT(names) ? names[o] : "failed";
}

const char *tl_n_source_name(tl_n_source s)
{
    static const char *const names[] = { "none", "usage", "engine", "tokenize", "events" };
    return (unsigned)s < TL_COUNT(names) ? names[s] : "none";
}

/* How a field becomes a number in the table's unit. */
typedef enum field_type { NS_INT, NS_REAL, COUNT, REAL } field_type;
typedef struct metric {
    tl_metric_desc desc;
    field_type type;
    size_t offset;
} metric;
#define M(field) offsetof(tl_metrics, field)

static const metric metrics[] = {
    { { "ttft", "ms", "first non-empty text - intended start", false }, NS_INT, M(ttft_ns) },
    { { "ttft_sent", "ms", "first non-empty text - request sent", false }, NS_INT, M(ttft_sent_ns) },
    { { "ttfo", "ms", "first non-empty answer text - intended start", false }, NS_INT, M(ttfo_ns) },
    { { "ttfr", "ms", "first choice, even an empty role - intended start", false }, NS_INT, M(ttfr_ns) },
    { { "ttfb", "ms", "first body byte - intended start", false }, NS_INT, M(ttfb_ns) },
    { { "e2e", "ms", "last non-empty text - intended start", false }, NS_INT, M(e2e_ns) },
    { { "close", "ms", "end of the response - intended start", false }, NS_INT, M(close_ns) },
    { { "tpot", "ms", "(last text - first text)/(n - 1)", false }, NS_REAL, M(tpot_ns) },
    { { "decode_rate", "tok/s", "(n - 1)/(last text - first text)", true }, REAL, M(decode_rate) },
    { { "engine_decode_rate", "tok/s", "(n - 1)/engine's generation time", true }, REAL, M(engine_decode_rate) },
    { { "chars_rate", "char/s", "characters after the first chunk/(last text - first text)", true }, REAL,
      M(chars_rate) },
    { { "prefill_rate", "tok/s", "uncached prompt tokens/prompt time", true }, REAL, M(prefill_rate) },
    { { "queue", "ms", "reported, else TTFT - prompt time - connect", false }, NS_REAL, M(queue_ns) },
    { { "tokens", "tok", "completion tokens: usage, engine, tokenizer, events", true }, COUNT, M(n) },
    { { "prompt_tokens", "tok", "whole prompt", false }, COUNT, M(prompt_n) },
    { { "cached_tokens", "tok", "prompt tokens the engine did not read again", true }, COUNT, M(cached_n) },
    { { "reasoning_tokens", "tok", "as the server counts them", false }, COUNT, M(reasoning_n) },
    { { "chunks", "1", "objects that carried text", false }, COUNT, M(chunks) },
    { { "draft_acceptance", "1", "accepted/drafted", true }, REAL, M(draft_acceptance) },
};

size_t tl_metric_count(void) { return TL_COUNT(metrics); }

const tl_metric_desc *tl_metric_at(size_t i) { return i < TL_COUNT(metrics) ? &metrics[i].desc : NULL; }

static const metric *find(const char *name)
{
    for (size_t i = 0; i < TL_COUNT(metrics); i++)
        if (tl_str_eq(metrics[i].desc.name, name)) return &metrics[i];
    return NULL;
}

const tl_metric_desc *tl_metric_find(const char *name)
{
    const metric *d = find(name);
    return d ? &d->desc : NULL;
}

double tl_metric_get(const tl_metrics *m, const char *name)
{
    const metric *d = find(name);
    if (!d) return NAN;
    const char *p = (const char *)m + d->offset;
    int64_t i = 0;
    double x = NAN;
    switch (d->type) {
    case NS_INT:
        memcpy(&i, p, sizeof i);
        return i == TL_NONE ? NAN : (double)i / 1e6;
    case COUNT:
        memcpy(&i, p, sizeof i);
        return i == TL_ABSENT ? NAN : (double)i;
    case NS_REAL:
        memcpy(&x, p, sizeof x);
        return x / 1e6;
    case REAL: memcpy(&x, p, sizeof x);
    }
    return x;
}

static json_t *flags_json(unsigned flags)
{
    json_t *j = json_array();
    for (unsigned i = 0; i < TL_FLAG_COUNT; i++)
        if (flags & (1u << i)) json_array_append_new(j, json_string(flag_names[i]));
    return j;
}

static json_t *ledger_json(const tl_ledger *l)
{
    if (l->e2e_ns == TL_NONE) return json_null();
    json_t *j = json_object();
    const struct {
        const char *name;
        int64_t v;
    } lines[] = {
        { "e2e_ns", l->e2e_ns },           { "client_queue_ns", l->client_queue_ns },
        { "connect_ns", l->connect_ns },   { "server_queue_ns", l->server_queue_ns },
        { "model_load_ns", l->model_load_ns }, { "prompt_read_ns", l->prompt_read_ns },
        { "thinking_ns", l->thinking_ns }, { "answer_ns", l->answer_ns },
        { "unaccounted_ns", l->unaccounted_ns },
    };
    for (size_t i = 0; i < TL_COUNT(lines); i++)
        json_object_set_new(j, lines[i].name, tl_sample_int(lines[i].v, TL_NONE));
    json_object_set_new(j, "server_queue_derived", json_boolean(l->server_queue_derived));
    json_object_set_new(j, "prompt_includes_queue", json_boolean(l->prompt_includes_queue));
    return j;
}

static void set_words(json_t *j, const tl_metrics *m)
{
    json_object_set_new(j, "outcome", json_string(tl_outcome_name(m->outcome)));
    json_object_set_new(j, "reason", m->reason ? json_string(m->reason) : json_null());
    json_object_set_new(j, "n_source", json_string(tl_n_source_name(m->n_source)));
    json_object_set_new(j, "n_cause", m->n_cause ? json_string(m->n_cause) : json_null());
    json_object_set_new(j, "prefill_from_engine", json_boolean(m->prefill_from_engine));
    json_object_set_new(j, "queue_derived", json_boolean(m->queue_derived));
    json_object_set_new(j, "gaps_are_itl", json_boolean(m->gaps_are_itl));
    json_object_set_new(j, "flags", flags_json(m->flags));
}

json_t *tl_metrics_json(const tl_metrics *m, bool with_gaps)
{
    json_t *j = json_object();
    const struct {
        const char *name;
        int64_t v;
    } times[] = { { "ttfb_ns", m->ttfb_ns }, { "ttfr_ns", m->ttfr_ns },           { "ttft_ns", m->ttft_ns },
                  { "ttfo_ns", m->ttfo_ns }, { "ttft_sent_ns", m->ttft_sent_ns }, { "last_ns", m->last_ns },
                  { "e2e_ns", m->e2e_ns },   { "close_ns", m->close_ns } };
    const struct {
        const char *name;
        int64_t v;
    } counts[] = { { "n", m->n },           { "prompt_n", m->prompt_n },     { "cached_n", m->cached_n },
                   { "uncached_n", m->uncached_n }, { "reasoning_n", m->reasoning_n } };
    const struct {
        const char *name;
        double v;
    } reals[] = { { "tpot_ns", m->tpot_ns },
                  { "decode_rate", m->decode_rate },
                  { "engine_decode_rate", m->engine_decode_rate },
                  { "chars_rate", m->chars_rate },
                  { "prefill_rate", m->prefill_rate },
                  { "queue_ns", m->queue_ns },
                  { "draft_acceptance", m->draft_acceptance } };
    set_words(j, m);
    for (size_t i = 0; i < TL_COUNT(times); i++)
        json_object_set_new(j, times[i].name, tl_sample_int(times[i].v, TL_NONE));
    for (size_t i = 0; i < TL_COUNT(counts); i++)
        json_object_set_new(j, counts[i].name, tl_sample_int(counts[i].v, TL_ABSENT));
    for (size_t i = 0; i < TL_COUNT(reals); i++) json_object_set_new(j, reals[i].name, tl_json_real(reals[i].v));
    json_object_set_new(j, "chunks", json_integer(m->chunks));
    json_object_set_new(j, "text_reads", json_integer(m->text_reads));
    json_object_set_new(j, "ledger", ledger_json(&m->ledger));
    if (with_gaps) {
        json_t *g = json_array();
        for (size_t i = 0; i < m->n_gaps; i++) json_array_append_new(g, json_integer(m->gaps_ns[i]));
        json_object_set_new(j, "gaps_ns", g);
    }
    return j;
}

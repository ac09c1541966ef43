/* What a stream file expects against what was measured.
 *
 * The one rule for times: a time may be late by what the client and the server are known to have been late, and early
 * by EARLY_MS at most (rounding). null means undefined. A field that is not known here is a failure: what cannot be
 * judged must not pass.
 */
#include <math.h>
#include <strings.h>

#include "conform_impl.h"

#define EARLY_MS 0.5
#define LATE_MS 5.0

typedef struct judging {
    json_t *diffs;
    const tl_request *r;
    const tl_metrics *m;
    double late_ms;
} judging;

static void differ(judging *k, const char *field, const json_t *expected, json_t *got)
{
    json_t *d = json_object();
    json_object_set_new(d, "field", json_string(field));
    json_object_set(d, "expected", (json_t *)(uintptr_t)expected);
    json_object_set_new(d, "got", got ? got : json_string("(a field that conform does not know)"));
    json_array_append_new(k->diffs, d);
}

/* ---- kinds of comparison --------------------------------------------------------------------------------------------- */

static void judge_time(judging *k, const char *field, const json_t *want, double got)
{
    const double w = json_number_value(want);
    if (json_is_null(want) ? isnan(got) : json_is_number(want) && got >= w - EARLY_MS && got <= w + k->late_ms) return;
    differ(k, field, want, tl_json_real(got));
}

/* Differences and quotients of times: both ends may be late. */
static void judge_near(judging *k, const char *field, const json_t *want, double got, double slack)
{
    if (json_is_null(want) ? isnan(got) : json_is_number(want) && fabs(got - json_number_value(want)) <= slack) return;
    differ(k, field, want, tl_json_real(got));
}

static void judge_int(judging *k, const char *field, const json_t *want, int64_t got)
{
    if (json_is_null(want) ? got == TL_ABSENT : json_is_integer(want) && json_integer_value(want) == got) return;
    differ(k, field, want, got == TL_ABSENT ? json_null() : json_integer(got));
}

static json_t *text_of(const char *s) { return s ? json_string(s) : json_null(); }

static void judge_text(judging *k, const char *field, const json_t *want, const char *got)
{
    if (json_is_null(want) ? !got || !*got : json_is_string(want) && tl_str_eq(json_string_value(want), got)) return;
    differ(k, field, want, text_of(got));
}

/* Reasons quote the server; ours may say more around its words. */
static void judge_reason(judging *k, const char *field, const json_t *want, const char *got)
{
    if (json_is_null(want) ? !got : json_is_string(want) && got && strcasestr(got, json_string_value(want))) return;
    differ(k, field, want, text_of(got));
}

static void judge_bool(judging *k, const char *field, const json_t *want, bool got)
{
    if (!json_is_boolean(want) || json_is_true(want) != got) differ(k, field, want, json_boolean(got));
}

/* ---- tables of fields ----------------------------------------------------------------------------------------------------- */

static bool judge_metric_time(judging *k, const char *field, const json_t *want)
{
    static const char *const names[][2] = {
        { "ttft_ms", "ttft" }, { "ttfo_ms", "ttfo" }, { "ttfr_ms", "ttfr" }, { "ttfb_ms", "ttfb" },
        { "e2e_ms", "e2e" },   { "last_token_ms", "e2e" }, { "last_ms", "e2e" }, { "close_ms", "close" },
        { "ttft_sent_ms", "ttft_sent" },
    };
    for (size_t i = 0; i < TL_COUNT(names); i++)
        if (tl_str_eq(names[i][0], field)) {
            judge_time(k, field, want, tl_metric_get(k->m, names[i][1]));
            return true;
        }
    return false;
}

static bool judge_count(judging *k, const char *field, const json_t *want)
{
    const tl_metrics *m = k->m;
    const struct {
        const char *name;
        int64_t v;
    } counts[] = {
        { "tokens", m->n },
        { "chunks", m->chunks },
        { "text_reads", m->text_reads },
        { "prompt_tokens", m->prompt_n },
        { "cached_tokens", m->cached_n },
        { "uncached_tokens", m->uncached_n },
        { "reasoning_tokens", m->reasoning_n },
        { "requested_max", k->r->count.requested_max },
        { "http_status", k->r->http_status ? k->r->http_status : TL_ABSENT },
        { "status", k->r->http_status ? k->r->http_status : TL_ABSENT },
        { "connects", k->r->connects },
    };
    for (size_t i = 0; i < TL_COUNT(counts); i++)
        if (tl_str_eq(counts[i].name, field)) {
            judge_int(k, field, want, counts[i].v);
            return true;
        }
    return false;
}

static bool judge_word(judging *k, const char *field, const json_t *want)
{
    const struct {
        const char *name, *v;
    } words[] = {
        { "outcome", tl_outcome_name(k->m->outcome) },
        { "tokens_source", tl_n_source_name(k->m->n_source) },
        { "text", k->r->text },
        { "reasoning_text", k->r->reasoning },
        { "reasoning", k->r->reasoning },
        { "tool_text", k->r->tool_text },
        { "finish_reason", k->r->finish_reason },
        { "error_type", k->r->error_class },
        { "error_class", k->r->error_class },
        { "transport", tl_transport_name(k->r->transport) },
    };
    for (size_t i = 0; i < TL_COUNT(words); i++)
        if (tl_str_eq(words[i].name, field)) {
            judge_text(k, field, want, words[i].v);
            return true;
        }
    if (tl_str_eq(field, "reason")) judge_reason(k, field, want, k->m->reason);
    else if (tl_str_eq(field, "error")) judge_reason(k, field, want, k->r->error_text);
    else return false;
    return true;
}

/* Late ends stretch a span by late_ms at most; spread over its n - 1 steps. */
static double span_slack(const judging *k) { return k->late_ms / (k->m->n > 1 ? (double)(k->m->n - 1) : 1) + 1e-6; }

static double median_gap_ms(const tl_metrics *m)
{
    double *x = tl_xalloc((m->n_gaps + 1) * sizeof *x);
    for (size_t i = 0; i < m->n_gaps; i++) x[i] = (double)m->gaps_ns[i] / 1e6;
    const double v = tl_stat_median(x, m->n_gaps);
    free(x);
    return v;
}

static bool judge_rate(judging *k, const char *field, const json_t *want)
{
    const double span_ms = (k->m->last_ns == TL_NONE || k->m->ttft_ns == TL_NONE)
                               ? NAN : (double)(k->m->last_ns - k->m->ttft_ns) / 1e6;
    const double share = span_ms > 0 ? k->late_ms / span_ms : 1;
    const double w = json_number_value(want);
    if (tl_str_eq(field, "tpot_ms")) judge_near(k, field, want, tl_metric_get(k->m, "tpot"), span_slack(k));
    else if (tl_str_eq(field, "decode_rate")) judge_near(k, field, want, k->m->decode_rate, w * share + 1e-6);
    else if (tl_str_eq(field, "chars_rate")) judge_near(k, field, want, k->m->chars_rate, w * share + 1e-6);
    else if (tl_str_eq(field, "engine_decode_rate"))
        judge_near(k, field, want, k->m->engine_decode_rate, fabs(w) * 1e-6);
    else if (tl_str_eq(field, "prefill_rate"))
        judge_near(k, field, want, k->m->prefill_rate, k->m->prefill_from_engine ? w * 1e-6 : w * share);
    else if (tl_str_eq(field, "queue_ms")) judge_near(k, field, want, tl_metric_get(k->m, "queue"), k->late_ms);
    else if (tl_str_eq(field, "draft_acceptance")) judge_near(k, field, want, k->m->draft_acceptance, 1e-9);
    else if (tl_str_eq(field, "chunk_gap_ms")) judge_near(k, field, want, median_gap_ms(k->m), k->late_ms);
    else return false;
    return true;
}

/* ---- lists and objects -------------------------------------------------------------------------------------------------------- */

static bool has_flag(const tl_metrics *m, const char *name)
{
    for (unsigned i = 0; tl_flag_name(i); i++)
        if ((m->flags & (1u << i)) && tl_str_eq(tl_flag_name(i), name)) return true;
    return false;
}

static json_t *flags_of(const tl_metrics *m)
{
    json_t *j = json_array();
    for (unsigned i = 0; tl_flag_name(i); i++)
        if (m->flags & (1u << i)) json_array_append_new(j, json_string(tl_flag_name(i)));
    return j;
}

/* `flags`: each must be set, [] means none at all; `not_flags`: none of them may be set. */
static void judge_flags(judging *k, const char *field, const json_t *want, bool set)
{
    size_t i;
    json_t *f;
    bool ok = json_is_array(want) && !(set && json_array_size(want) == 0 && k->m->flags);
    json_array_foreach(want, i, f) ok = ok && json_is_string(f) && has_flag(k->m, json_string_value(f)) == set;
    if (!ok) differ(k, field, want, flags_of(k->m));
}

static void judge_gaps(judging *k, const char *field, const json_t *want)
{
    bool ok = json_array_size(want) == k->m->n_gaps;
    json_t *got = json_array();
    for (size_t i = 0; i < k->m->n_gaps; i++) {
        const double g = (double)k->m->gaps_ns[i] / 1e6;
        ok = ok && fabs(g - json_number_value(json_array_get(want, i))) <= k->late_ms;
        json_array_append_new(got, tl_json_real(g));
    }
    if (!ok) differ(k, field, want, json_incref(got));
    json_decref(got);
}

/* Counters by their short names ("load_ns") or whole ("engine_load_ns", "usage_prompt"). */
static void judge_counters(judging *k, const char *field, const json_t *want)
{
    const char *name;
    json_t *v, *all = tl_request_json(k->r);
    const json_t *have = tl_json_at(all, "counters");
    json_object_foreach((json_t *)(uintptr_t)want, name, v)
    {
        char path[96], label[96];
        const size_t len = strlen(name), cut = tl_str_ends(name, "_tokens") ? len - 7 : len;
        snprintf(path, sizeof path, "%s_%.*s", field, (int)cut, name);
        snprintf(label, sizeof label, "%s.%s", field, name);
        const json_t *got = json_object_get(have, path);
        if (!got) got = json_object_get(have, name);
        const bool same = got && (json_equal(got, v) ||
                                  (json_is_number(got) && json_is_number(v) && !json_is_integer(got) &&
                                   fabs(json_number_value(got) - json_number_value(v)) < 1e-9));
        if (!same) differ(k, label, v, got ? json_incref((json_t *)(uintptr_t)got) : NULL);
    }
    json_decref(all);
}

static void judge_ledger(judging *k, const json_t *want)
{
    const char *name;
    json_t *v, *all = tl_metrics_json(k->m, false);
    json_object_foreach((json_t *)(uintptr_t)want, name, v)
    {
        char path[96], label[96];
        const size_t len = strlen(name);
        snprintf(path, sizeof path, "ledger.%.*s_ns", (int)(tl_str_ends(name, "_ms") ? len - 3 : len), name);
        snprintf(label, sizeof label, "ledger.%s", name);
        const json_t *got = tl_json_at(all, path);
        if (!got) differ(k, label, v, NULL);
        else judge_near(k, label, v, json_is_null(got) ? NAN : json_number_value(got) / 1e6, k->late_ms);
    }
    json_decref(all);
}

/* {"progress": 3}: how many events of a kind. */
static void judge_events(judging *k, const json_t *want)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)want, name, v)
    {
        char label[96];
        int64_t n = 0;
        snprintf(label, sizeof label, "events.%s", name);
        for (size_t i = 0; i < k->r->n_events; i++)
            n += tl_str_eq(tl_event_kind_name(tl_event_kind_of(&k->r->events[i])), name);
        judge_int(k, label, v, n);
    }
}

static bool judge_other(judging *k, const char *field, const json_t *want)
{
    if (tl_str_eq(field, "flags")) judge_flags(k, field, want, true);
    else if (tl_str_eq(field, "not_flags")) judge_flags(k, field, want, false);
    else if (tl_str_eq(field, "gaps_ms") || tl_str_eq(field, "chunk_gaps_ms")) judge_gaps(k, field, want);
    else if (tl_str_eq(field, "gaps_are_itl")) judge_bool(k, field, want, k->m->gaps_are_itl);
    else if (tl_str_eq(field, "mismatch")) judge_bool(k, field, want, (k->m->flags & TL_FLAG_N_DIFFERS) != 0);
    else if (tl_str_eq(field, "engine") || tl_str_eq(field, "usage")) judge_counters(k, field, want);
    else if (tl_str_eq(field, "ledger")) judge_ledger(k, want);
    else if (tl_str_eq(field, "events")) judge_events(k, want);
    else return false;
    return true;
}

/* Whatever the stream, the ledger's lines must add up. */
static void judge_sum(judging *k)
{
    const tl_ledger *l = &k->m->ledger;
    const int64_t lines[] = { l->client_queue_ns, l->connect_ns,  l->server_queue_ns, l->model_load_ns,
                              l->prompt_read_ns,  l->thinking_ns, l->answer_ns,       l->unaccounted_ns };
    int64_t sum = 0;
    if (l->e2e_ns == TL_NONE) return;
    for (size_t i = 0; i < TL_COUNT(lines); i++) sum += lines[i] == TL_NONE ? 0 : lines[i];
    if (sum == l->e2e_ns) return;
    json_t *want = json_integer(l->e2e_ns);
    differ(k, "sum of ledger", want, json_integer(sum));
    json_decref(want);
}

void tl_judge(json_t *diffs, const json_t *expect, const tl_request *r, const tl_metrics *m, const tl_lateness *late)
{
    const double client = late->client_ms > LATE_MS ? late->client_ms : LATE_MS;
    judging k = { .diffs = diffs, .r = r, .m = m, .late_ms = client + late->server_ms };
    const char *field;
    json_t *want;
    json_object_foreach((json_t *)(uintptr_t)expect, field, want)
    {
        if (judge_metric_time(&k, field, want) || judge_count(&k, field, want) || judge_word(&k, field, want) ||
            judge_rate(&k, field, want) || judge_other(&k, field, want))
            continue;
        differ(&k, field, want, NULL);
    }
    judge_sum(&k);
}

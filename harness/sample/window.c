/* Many requests of one stated window: rates with the failed ones beside them, and goodput. */
#include <assert.h>
#include <math.h>

#include "sample/sample_impl.h"

static bool is_good(const tl_metrics *m, const tl_slo_spec *slo)
{
    if (!slo) return m->outcome == TL_REQ_OK;
    for (size_t i = 0; i < slo->n; i++)
        if (!tl_slo_meets(&slo->v[i], m)) return false;
    return true;
}

void tl_window_of(tl_window *out, const tl_metrics *m, size_t n, double seconds, const tl_slo_spec *slo)
{
    assert(seconds > 0);
    *out = (tl_window){ .offered = n, .seconds = seconds };
    double tokens = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_good(&m[i], slo)) out->good++;
        if (m[i].outcome != TL_REQ_OK) {
            out->failed++;
            continue;
        }
        out->ok++;
        tokens += m[i].n == TL_ABSENT ? NAN : (double)m[i].n;
    }
    out->offered_rate = (double)n / seconds;
    out->ok_rate = (double)out->ok / seconds;
    out->failed_rate = (double)out->failed / seconds;
    out->good_rate = (double)out->good / seconds;
    out->tokens_rate = tokens / seconds;
    out->success_share = n ? (double)out->ok / (double)n : NAN;
    out->good_share = n ? (double)out->good / (double)n : NAN;
}

/* ---- between two moments --------------------------------------------------------------------------------------- */

static bool inside(uint64_t t, uint64_t from, uint64_t to) { return t != TL_T_NONE && t >= from && t < to; }

/* The share of a request's text events that came inside; they stand for its tokens. */
static double text_share(const tl_request *r, uint64_t from, uint64_t to)
{
    size_t all = 0, in = 0;
    for (size_t i = 0; i < r->n_events; i++) {
        if (!tl_event_is_text(&r->events[i])) continue;
        all++;
        in += inside(r->events[i].t_ns, from, to);
    }
    return all ? (double)in / (double)all : 0;
}

static double overlap_ns(const tl_request *r, uint64_t from, uint64_t to)
{
    if (r->t_intended == TL_T_NONE) return 0;
    const uint64_t begin = r->t_intended > from ? r->t_intended : from;
    const uint64_t end = r->t_close < to ? r->t_close : to; /* TL_T_NONE is later than everything */
    return end > begin ? (double)(end - begin) : 0;
}

void tl_span_of(tl_span *out, const tl_request *const *r, const tl_metrics *m, size_t n, uint64_t from, uint64_t to)
{
    assert(from < to);
    *out = (tl_span){ .seconds = (double)(to - from) / 1e9 };
    double time_ns = 0;
    for (size_t i = 0; i < n; i++) {
        const bool ok = m[i].outcome == TL_REQ_OK, ended = inside(r[i]->t_close, from, to);
        out->started += inside(r[i]->t_intended, from, to);
        out->ok += ended && ok;
        out->failed += ended && !ok;
        time_ns += overlap_ns(r[i], from, to);
        const double share = ok ? text_share(r[i], from, to) : 0;
        if (share > 0) out->tokens += m[i].n == TL_ABSENT ? NAN : share * (double)m[i].n;
    }
    out->in_flight = time_ns / 1e9 / out->seconds;
}

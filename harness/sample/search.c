/* Which load to try next when the largest one that meets an SLO is wanted, and what the tried ones say together. First
 * up in doublings, then halving between what was shown to meet the SLO and what was not; where loads stay undecided, both
 * edges of the undecided stretch are looked for, for they are the interval of the answer. */
#include <math.h>

#include "sample/sample_impl.h"

typedef struct edges {
    double met, missed;        /* largest shown to meet it below the smallest shown to miss it; 0, INFINITY = none */
    double open_lo, open_hi;   /* smallest and largest undecided between the two; NAN = none */
} edges;

static edges edges_of(const tl_search *s)
{
    edges x = { 0, INFINITY, NAN, NAN };
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].verdict == TL_SLO_MISSED) x.missed = fmin(x.missed, s->v[i].load);
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].verdict == TL_SLO_MET && s->v[i].load < x.missed) x.met = fmax(x.met, s->v[i].load);
    for (size_t i = 0; i < s->n; i++) {
        double load = s->v[i].load;
        if (s->v[i].verdict != TL_SLO_UNDECIDED || load < x.met || load > x.missed) continue;
        x.open_lo = fmin(x.open_lo, load); /* fmin and fmax pass over NAN */
        x.open_hi = fmax(x.open_hi, load);
    }
    return x;
}

/* A load between a and b that is worth telling from both. */
static bool between(const tl_search *s, double a, double b, double *load)
{
    *load = s->whole ? floor((a + b) / 2) : sqrt(a * b);
    return s->whole ? b - a > 1 : b > a * (1 + s->resolution);
}

static bool further(const tl_search *s, double a, double *load)
{
    *load = fmin(2 * a, s->to);
    return a < s->to;
}

bool tl_search_next(const tl_search *s, double *load)
{
    *load = s->from;
    if (s->n == 0) return true;
    if (s->n == TL_SEARCH_STEPS) return false;
    const edges x = edges_of(s);
    const double above = isnan(x.open_lo) ? x.missed : x.open_lo;
    if (x.met > 0 && (isinf(above) ? further(s, x.met, load) : between(s, x.met, above, load))) return true;
    if (isnan(x.open_hi)) return false;
    return isinf(x.missed) ? further(s, x.open_hi, load) : between(s, x.open_hi, x.missed, load);
}

void tl_search_add(tl_search *s, double load, tl_slo_verdict verdict, bool seems_met)
{
    if (s->n < TL_SEARCH_STEPS) s->v[s->n++] = (tl_search_step){ load, verdict, seems_met };
}

void tl_search_answer(tl_search_result *out, const tl_search *s)
{
    const edges x = edges_of(s);
    *out = (tl_search_result){ .value = x.met, .lo = x.met, .hi = x.missed, .missed_at = x.missed };
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].seems_met && s->v[i].load < x.missed) out->value = fmax(out->value, s->v[i].load);
    out->unbounded = isinf(x.missed);
    out->hi = out->unbounded ? NAN : s->whole ? x.missed - 1 : x.missed;
}

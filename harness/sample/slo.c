/* Is an SLO met? The share of good requests with its exact interval against the share that was asked for. */
#include <assert.h>
#include <math.h>

#include "sample/sample_impl.h"

/* The p with P(X <= k | n, p) = target: the distribution function falls in p, so halving finds it. */
static double share_where_cdf_is(size_t k, size_t n, double target)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 60; i++) {
        const double p = (lo + hi) / 2;
        if (tl_stat_binomial_cdf(k, n, p) > target) lo = p;
        else hi = p;
    }
    return (lo + hi) / 2;
}

void tl_stat_share(tl_share *out, size_t k, size_t n, double confidence)
{
    assert(k <= n && confidence > 0 && confidence < 1);
    const double side = (1 - confidence) / 2;
    *out = (tl_share){ .k = k, .n = n, .value = NAN, .lo = 0, .hi = 1 };
    if (n == 0) return;
    out->value = (double)k / (double)n;
    if (k > 0) out->lo = share_where_cdf_is(k - 1, n, 1 - side);
    if (k < n) out->hi = share_where_cdf_is(k, n, side);
}

tl_slo_verdict tl_slo_judge(const tl_share *good, double asked)
{
    assert(asked > 0 && asked < 1);
    if (good->lo >= asked) return TL_SLO_MET;
    return good->hi < asked ? TL_SLO_MISSED : TL_SLO_UNDECIDED;
}

/* Quantiles by nearest rank and their exact intervals by order statistics.
 *
 * With B ~ Binomial(n, q), the l-th smallest value lies above the true quantile with probability P(B <= l-1), the u-th
 * below it with P(B >= u): the largest l and the smallest u that keep each under (1 - confidence)/2 make the interval,
 * whatever the distribution (David & Nagaraja, Order Statistics, 3rd ed., 7.1). It exists only when q^n and (1-q)^n
 * are small enough, which is why few samples can have no percentile.
 */
#include <assert.h>
#include <math.h>

#include "sample/sample_impl.h"

static int cmp_f64(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double *tl_sample_sorted(const double *x, size_t n)
{
    double *s = tl_xalloc(n * sizeof *s);
    for (size_t i = 0; i < n; i++) {
        assert(isfinite(x[i]));
        s[i] = x[i];
    }
    qsort(s, n, sizeof *s, cmp_f64);
    return s;
}

/* ceil(q n), at least 1. 0.9 * 10 is 9.000000000000002 in binary: whole numbers are meant as such. */
static size_t nearest_rank(size_t n, double q)
{
    const double r = q * (double)n, near = nearbyint(r);
    const double up = fabs(r - near) < 1e-9 * (double)n ? near : ceil(r);
    return up < 1 ? 1 : up > (double)n ? n : (size_t)up;
}

double tl_stat_nearest_rank(const double *x, size_t n, double q)
{
    if (n == 0) return NAN;
    double *s = tl_sample_sorted(x, n);
    const double v = s[nearest_rank(n, q) - 1];
    free(s);
    return v;
}

/* Terms by recurrence in logarithms: no overflow for any n. */
double tl_stat_binomial_cdf(size_t k, size_t n, double p)
{
    if (k >= n || p <= 0) return 1;
    if (p >= 1) return 0;
    const double step = log(p) - log1p(-p);
    double lg = (double)n * log1p(-p), sum = exp(lg);
    for (size_t i = 1; i <= k; i++) {
        lg += step + log((double)(n - i + 1)) - log((double)i);
        sum += exp(lg);
    }
    return sum < 1 ? sum : 1;
}

size_t tl_stat_quantile_n(double q, double confidence)
{
    assert(q > 0 && q < 1 && confidence > 0 && confidence < 1);
    const double side = (1 - confidence) / 2, tail = q > 0.5 ? q : 1 - q;
    size_t n = (size_t)ceil(log(side) / log(tail) - 1e-9);
    return n ? n : 1;
}

void tl_stat_quantile(tl_quantile *out, const double *x, size_t n, double q, double confidence)
{
    *out = (tl_quantile){ .q = q, .value = NAN, .lo = NAN, .hi = NAN, .n = n, .coverage = NAN,
                          .n_needed = tl_stat_quantile_n(q, confidence) };
    if (n < out->n_needed) return;
    const double side = (1 - confidence) / 2 * (1 + 1e-12), step = log(q) - log1p(-q);
    double lg = (double)n * log1p(-q), below = exp(lg), above_lo = 0;
    size_t lo = 0, hi = 0;
    double below_lo = 0;
    /* `below` is P(B <= i) at the head of each turn. */
    for (size_t i = 0; i < n && hi == 0; i++) {
        if (below <= side) {
            lo = i + 1;
            below_lo = below;
        }
        if (1 - below <= side) {
            hi = i + 1;
            above_lo = 1 - below;
        }
        lg += step + log((double)(n - i)) - log((double)(i + 1));
        below += exp(lg);
    }
    if (hi == 0) hi = n, above_lo = exp((double)n * log(q));
    assert(lo > 0);
    double *s = tl_sample_sorted(x, n);
    out->value = s[nearest_rank(n, q) - 1];
    out->lo = s[lo - 1];
    out->hi = s[hi - 1];
    out->given = true;
    out->coverage = 1 - below_lo - above_lo;
    free(s);
}

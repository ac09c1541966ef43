/* What can be wrong with a series of samples although its interval looks fine, in plain sentences with a remedy. */
#include <math.h>

#include "sample/sample_impl.h"

/* Of 40 normal values one passes 3.5 in every twelfth series: enough for a mark in a table, not for a warning. */
#define WARN_Z 5.0

typedef struct ranked {
    double v;
    size_t i;
} ranked;

static int cmp_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->v > y->v) - (x->v < y->v);
}

static double *mean_ranks(const double *x, size_t n)
{
    ranked *r = tl_xalloc(n * sizeof *r);
    double *rank = tl_xalloc(n * sizeof *rank);
    for (size_t i = 0; i < n; i++) r[i] = (ranked){ x[i], i };
    qsort(r, n, sizeof *r, cmp_ranked);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && !(r[k].v > r[i].v); k++) {}
        for (size_t t = i; t < k; t++) rank[r[t].i] = (double)(i + k + 1) / 2;
    }
    free(r);
    return rank;
}

double tl_stat_spearman(const double *x, const double *y, size_t n)
{
    if (n < 2) return NAN;
    double *a = mean_ranks(x, n), *b = mean_ranks(y, n);
    const double mid = (double)(n + 1) / 2;
    double sab = 0, saa = 0, sbb = 0;
    for (size_t i = 0; i < n; i++) {
        sab += (a[i] - mid) * (b[i] - mid);
        saa += (a[i] - mid) * (a[i] - mid);
        sbb += (b[i] - mid) * (b[i] - mid);
    }
    free(a);
    free(b);
    return saa > 0 && sbb > 0 ? sab / sqrt(saa * sbb) : NAN;
}

double tl_stat_lag1(const double *x, size_t n)
{
    if (n < 3) return NAN;
    double mean = 0, num = 0, den = 0;
    for (size_t i = 0; i < n; i++) mean += x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        den += (x[i] - mean) * (x[i] - mean);
        if (i) num += (x[i] - mean) * (x[i - 1] - mean);
    }
    /* Rounding of the mean alone is no variation. */
    return den > 1e-24 * mean * mean * (double)n ? num / den : NAN;
}

/* Rank correlation with time beyond chance (normal approximation, |z| > 2.58, 1 %) and halves that differ by 1 %. */
static bool drifts(double *share, const double *x, size_t n)
{
    if (n < 10) return false;
    double *t = tl_xalloc(n * sizeof *t);
    for (size_t i = 0; i < n; i++) t[i] = (double)i;
    const double rho = tl_stat_spearman(x, t, n);
    free(t);
    const double first = tl_stat_median(x, n / 2), second = tl_stat_median(x + n - n / 2, n / 2);
    *share = second / first - 1;
    return fabs(rho) * sqrt((double)n - 1) > 2.58 && isfinite(*share) && fabs(*share) > 0.01;
}

/* Largest gap between sorted neighbours in the middle, with both sides well filled: Otsu-like split whose distance of
 * means exceeds 4 times the pooled spread (a split normal gives 2.65). */
static bool bimodal(double *low, double *high, const double *x, size_t n)
{
    if (n < 10) return false;
    double *s = tl_sample_sorted(x, n);
    size_t cut = 0;
    double best = 0;
    for (size_t i = n / 5; i < n - n / 5; i++)
        if (i > 0 && s[i] - s[i - 1] > best) best = s[i] - s[i - 1], cut = i;
    tl_summary a = { .sd = NAN }, b = { .sd = NAN };
    bool found = false;
    if (cut > 1 && n - cut > 1) {
        tl_stat_summary(&a, s, cut, 1);
        tl_stat_summary(&b, s + cut, n - cut, 1);
        const double pooled = sqrt(((double)(cut - 1) * a.sd * a.sd + (double)(n - cut - 1) * b.sd * b.sd) / (double)(n - 2));
        found = b.mean - a.mean > 4 * pooled && (b.mean - a.mean) > 0.02 * fabs(a.mean);
        *low = a.median;
        *high = b.median;
    }
    free(s);
    return found;
}

static bool slow_start(double *first, double *rest, const double *x, size_t n)
{
    if (n < 5) return false;
    bool *flag = tl_xalloc(n * sizeof *flag);
    tl_sample_outliers(flag, x, n, WARN_Z);
    const bool only_first = flag[0] && !flag[1];
    free(flag);
    *first = x[0];
    *rest = tl_stat_median(x + 1, n - 1);
    return only_first;
}

static void say(tl_warning *out, size_t *n, tl_warning_kind kind, const char *fmt, ...) TL_PRINTF(4, 5);
static void say(tl_warning *out, size_t *n, tl_warning_kind kind, const char *fmt, ...)
{
    static const char *const names[TL_WARN_KINDS] = { "drift", "slow-start", "bimodal", "lag1", "outliers" };
    tl_warning *w = &out[(*n)++];
    va_list ap;
    w->kind = kind;
    w->values = 0;
    w->name = names[kind];
    va_start(ap, fmt);
    vsnprintf(w->text, sizeof w->text, fmt, ap);
    va_end(ap);
}

size_t tl_stat_warnings(tl_warning out[TL_WARN_KINDS], const double *x, size_t n)
{
    size_t found = 0;
    double a = NAN, b = NAN;
    if (drifts(&a, x, n))
        say(out, &found, TL_WARN_DRIFT,
            "The values drift: the second half is %+.1f %% off the first; warm up longer, let the machine cool down, or "
            "compare only inside interleaved blocks.", a * 100);
    if (slow_start(&a, &b, x, n))
        say(out, &found, TL_WARN_SLOW_START,
            "The first value (%.4g) stands apart from the rest (median %.4g); add a warm-up request before measuring.",
            a, b);
    if (bimodal(&a, &b, x, n))
        say(out, &found, TL_WARN_BIMODAL,
            "The values form two groups, around %.4g and %.4g: no single number describes them; look for two states "
            "(cache, clock speed, other load, core placement) and measure each.", a, b);
    const double r = tl_stat_lag1(x, n);
    if (n >= 10 && r > 2 / sqrt((double)n) && r > 0.3)
        say(out, &found, TL_WARN_LAG1,
            "Neighbouring values resemble each other (lag-1 correlation %.2f), so the interval is too narrow; take more "
            "blocks spread over time.", r);
    bool *flag = tl_xalloc(n * sizeof *flag);
    const size_t odd = tl_sample_outliers(flag, x, n, WARN_Z);
    free(flag);
    if (odd && !(found && out[found - 1].kind == TL_WARN_SLOW_START && odd == 1))
        say(out, &found, TL_WARN_OUTLIERS,
            "%zu of %zu values are outliers (kept in every number); check for other load on the machine and see the "
            "single requests.", odd, n), out[found - 1].values = odd;
    return found;
}

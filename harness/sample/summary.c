/* Centre and spread of one condition's samples. Nothing is dropped: outliers are counted, not removed. */
#include <assert.h>
#include <math.h>

#include "sample/sample_impl.h"

#define MAD_TO_SD 1.482602218505602     /* 1/Phi^-1(3/4) */
#define MEAN_AD_TO_SD 1.253314137315500 /* sqrt(pi/2) */
#define OUTLIER_Z 3.5                   /* Iglewicz & Hoaglin 1993 */

double tl_sample_sorted_median(const double *s, size_t n)
{
    if (n == 0) return NAN;
    return n % 2 ? s[n / 2] : s[n / 2 - 1] + (s[n / 2] - s[n / 2 - 1]) / 2;
}

double tl_stat_median(const double *x, size_t n)
{
    double *s = tl_sample_sorted(x, n);
    const double m = tl_sample_sorted_median(s, n);
    free(s);
    return m;
}

static double mad_around(const double *x, size_t n, double median)
{
    double *d = tl_xalloc(n * sizeof *d);
    for (size_t i = 0; i < n; i++) d[i] = fabs(x[i] - median);
    const double m = tl_stat_median(d, n);
    free(d);
    return m;
}

size_t tl_sample_outliers(bool *flag, const double *x, size_t n, double z)
{
    const double median = tl_stat_median(x, n);
    double scale = n ? MAD_TO_SD * mad_around(x, n, median) : 0, sum = 0;
    /* More than half the values equal: the MAD is 0 and would call every other value an outlier. */
    if (scale <= 0) {
        for (size_t i = 0; i < n; i++) sum += fabs(x[i] - median);
        scale = n ? MEAN_AD_TO_SD * sum / (double)n : 0;
    }
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        flag[i] = scale > 0 && fabs(x[i] - median) / scale > z;
        found += flag[i];
    }
    return found;
}

size_t tl_stat_outliers(bool *flag, const double *x, size_t n) { return tl_sample_outliers(flag, x, n, OUTLIER_Z); }

void tl_sample_boot_limits(double *lo, double *hi, double *replicates, size_t b)
{
    double *s = tl_sample_sorted(replicates, b);
    const size_t i = (size_t)floor(0.025 * (double)(b - 1)), k = (size_t)ceil(0.975 * (double)(b - 1));
    *lo = s[i];
    *hi = s[k];
    free(s);
}

static void boot_median(tl_summary *s, const double *x, size_t n)
{
    tl_rng rng;
    tl_rng_seed(&rng, s->seed);
    double *draw = tl_xalloc(n * sizeof *draw), *rep = tl_xalloc(s->boot_b * sizeof *rep);
    for (size_t b = 0; b < s->boot_b; b++) {
        for (size_t i = 0; i < n; i++) draw[i] = x[tl_rng_below(&rng, n)];
        rep[b] = tl_stat_median(draw, n);
    }
    tl_sample_boot_limits(&s->boot_lo, &s->boot_hi, rep, s->boot_b);
    free(rep);
    free(draw);
    const double half = (s->boot_hi - s->boot_lo) / 2;
    if (fabs(s->median) > 0) s->rel_half_width = half / fabs(s->median);
}

static void moments(tl_summary *s, const double *x, size_t n)
{
    double mean = 0, m2 = 0;
    for (size_t i = 0; i < n; i++) { /* Welford 1962: no cancellation */
        const double d = x[i] - mean;
        mean += d / (double)(i + 1);
        m2 += d * (x[i] - mean);
    }
    s->mean = mean;
    if (n > 1) s->sd = sqrt(m2 / (double)(n - 1));
}

void tl_stat_summary(tl_summary *out, const double *x, size_t n, uint64_t seed)
{
    *out = (tl_summary){ .n = n, .mean = NAN, .sd = NAN, .min = NAN, .max = NAN, .median = NAN, .mad = NAN,
                         .boot_lo = NAN, .boot_hi = NAN, .boot_b = TL_STAT_BOOT, .seed = seed, .exact_lo = NAN,
                         .exact_hi = NAN, .exact_coverage = NAN, .rel_half_width = NAN };
    if (n == 0) return;
    double *s = tl_sample_sorted(x, n);
    out->min = s[0];
    out->max = s[n - 1];
    out->median = tl_sample_sorted_median(s, n);
    free(s);
    moments(out, x, n);
    out->mad = mad_around(x, n, out->median);
    tl_quantile q;
    tl_stat_quantile(&q, x, n, 0.5, 0.95);
    out->exact_lo = q.lo;
    out->exact_hi = q.hi;
    out->exact_coverage = q.coverage;
    if (n > 1) boot_median(out, x, n);
    bool *flag = tl_xalloc(n * sizeof *flag);
    out->outliers = tl_stat_outliers(flag, x, n);
    free(flag);
}

bool tl_stat_ci_narrow_enough(const double *x, size_t n, double rel_width, uint64_t seed)
{
    if (n < 5) return false; /* a bootstrap of fewer values says more about the seed than about the spread */
    tl_summary s;
    tl_stat_summary(&s, x, n, seed);
    return s.rel_half_width <= rel_width; /* false for NAN */
}

json_t *tl_stat_summary_json(const tl_summary *s)
{
    json_t *j = json_object();
    const struct {
        const char *name;
        double v;
    } reals[] = { { "mean", s->mean },         { "sd", s->sd },
                  { "min", s->min },           { "max", s->max },
                  { "median", s->median },     { "mad", s->mad },
                  { "boot_lo", s->boot_lo },   { "boot_hi", s->boot_hi },
                  { "exact_lo", s->exact_lo }, { "exact_hi", s->exact_hi },
                  { "exact_coverage", s->exact_coverage }, { "rel_half_width", s->rel_half_width } };
    for (size_t i = 0; i < TL_COUNT(reals); i++) json_object_set_new(j, reals[i].name, tl_json_real(reals[i].v));
    json_object_set_new(j, "n", json_integer((json_int_t)s->n));
    json_object_set_new(j, "outliers", json_integer((json_int_t)s->outliers));
    json_object_set_new(j, "boot_b", json_integer((json_int_t)s->boot_b));
    json_object_set_new(j, "seed", json_integer((json_int_t)s->seed));
    return j;
}

/* Statistics against known values.
 *
 * Sources: binomial sums, order-statistics intervals, Newcomb's moments, the exact permutation p and the tied rank
 * correlation were computed once in exact rational arithmetic with Python 3.11's fractions, math.comb, statistics and
 * itertools (sum of comb(n,i) p^i (1-p)^(n-i) as Fraction; statistics.stdev; all 252 splits), independent of this code.
 * Newcomb's 66 measurements of the speed of light: Stigler 1977; R's MASS::newcomb gives the same mean 26.21, sd 10.75,
 * median 27. Rank correlation -29/165: the worked example (IQ, hours of TV) of the usual textbooks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sample/sample.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) fail_msg("got %.15g, want %.15g", got, want);
}

static const double newcomb[] = { 28, 26, 33, 24, 34, -44, 27, 16, 40, -2, 29, 22, 24, 21, 25, 30, 23, 29, 31, 19, 24, 20,
                                  36, 32, 36, 28, 25, 21, 28, 29, 37, 25, 28, 26, 30, 32, 36, 26, 30, 22, 36, 23, 27, 27,
                                  28, 27, 31, 27, 26, 33, 26, 32, 32, 24, 39, 28, 24, 25, 32, 25, 29, 27, 28, 29, 16, 23 };

static void test_binomial(void **s)
{
    (void)s;
    assert_near(tl_stat_binomial_cdf(10, 50, 0.3), 0.07885062482305641, 1e-12);
    assert_near(tl_stat_binomial_cdf(35, 36, 0.9), 0.9774716004550609, 1e-12);
    assert_near(tl_stat_binomial_cdf(180, 200, 0.9), 0.5344615291741034, 1e-11);
    assert_near(tl_stat_binomial_cdf(499, 1000, 0.5), 0.4873874909108196, 1e-11);
    assert_near(tl_stat_binomial_cdf(990, 1000, 0.99), 0.5426994078251092, 1e-10);
    assert_near(tl_stat_binomial_cdf(5, 5, 0.5), 1, 0);
    assert_near(tl_stat_binomial_cdf(0, 5, 1), 0, 0);
    assert_near(tl_stat_binomial_cdf(0, 5, 0), 1, 0);
}

static void test_nearest_rank(void **s)
{
    (void)s;
    double x[100];
    for (int i = 0; i < 100; i++) x[i] = 100 - i;
    assert_near(tl_stat_nearest_rank(x, 100, 0.50), 50, 0);
    assert_near(tl_stat_nearest_rank(x, 100, 0.99), 99, 0);
    assert_near(tl_stat_nearest_rank(x, 100, 1.0), 100, 0);
    assert_near(tl_stat_nearest_rank(x, 100, 0.0), 1, 0);
    assert_near(tl_stat_nearest_rank(x, 10, 0.9), 99, 0); /* 91..100 */
    const double w[] = { 15, 20, 35, 40, 50 }; /* the usual worked example */
    assert_near(tl_stat_nearest_rank(w, 5, 0.05), 15, 0);
    assert_near(tl_stat_nearest_rank(w, 5, 0.30), 20, 0);
    assert_near(tl_stat_nearest_rank(w, 5, 0.40), 20, 0);
    assert_true(isnan(tl_stat_nearest_rank(w, 0, 0.5)));
}

static void test_quantile_needs_n(void **s)
{
    (void)s;
    assert_int_equal(tl_stat_quantile_n(0.5, 0.95), 6);
    assert_int_equal(tl_stat_quantile_n(0.90, 0.95), 36);
    assert_int_equal(tl_stat_quantile_n(0.95, 0.95), 72);
    assert_int_equal(tl_stat_quantile_n(0.99, 0.95), 368);
    assert_int_equal(tl_stat_quantile_n(0.10, 0.95), 36);
}

static void test_quantile_interval(void **s)
{
    (void)s;
    const struct {
        size_t n;
        double q, lo, hi, coverage; /* ranks; lo 0 = not given */
    } cases[] = {
        { 5, 0.5, 0, 0, 0 },    { 6, 0.5, 1, 6, 0.96875 },
        { 10, 0.5, 2, 9, 0.978515625 }, { 25, 0.5, 8, 18, 0.9567147493362427 },
        { 35, 0.9, 0, 0, 0 },   { 36, 0.9, 29, 36, 0.9539621052026521 },
        { 100, 0.9, 84, 96, 0.955690107191223 }, { 71, 0.95, 0, 0, 0 },
        { 72, 0.95, 64, 72, 0.9654900479083739 }, { 367, 0.99, 0, 0, 0 },
        { 368, 0.99, 360, 368, 0.9624158204108587 }, { 36, 0.1, 1, 8, 0.9539621052026521 },
    };
    double x[368];
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        tl_quantile q;
        for (size_t k = 0; k < cases[i].n; k++) x[k] = (double)((k * 7) % cases[i].n) + 1;
        if (cases[i].n % 7 == 0)
            for (size_t k = 0; k < cases[i].n; k++) x[k] = (double)(cases[i].n - k);
        tl_stat_quantile(&q, x, cases[i].n, cases[i].q, 0.95);
        assert_int_equal(q.given, cases[i].lo > 0);
        if (!q.given) {
            assert_true(isnan(q.value) && isnan(q.lo) && isnan(q.hi));
            assert_true(q.n_needed > cases[i].n);
            continue;
        }
        assert_near(q.lo, cases[i].lo, 0);
        assert_near(q.hi, cases[i].hi, 0);
        assert_near(q.coverage, cases[i].coverage, 1e-9);
        assert_true(q.lo <= q.value && q.value <= q.hi);
    }
}

static void test_newcomb(void **s)
{
    (void)s;
    tl_summary a, b;
    tl_stat_summary(&a, newcomb, 66, 7);
    tl_stat_summary(&b, newcomb, 66, 7);
    assert_near(a.mean, 26.21212121212121, 1e-12);
    assert_near(a.sd, 10.745324781597095, 1e-12);
    assert_near(a.median, 27, 0);
    assert_near(a.mad, 3, 0);
    assert_near(a.min, -44, 0);
    assert_near(a.max, 40, 0);
    assert_int_equal(a.outliers, 2); /* -44 and -2, kept: the mean above has them */
    assert_near(a.exact_lo, 26, 0);
    assert_near(a.exact_hi, 29, 0); /* the 25th and the 42nd of 66 */
    assert_near(a.exact_coverage, 0.9644172755477683, 1e-9);
    assert_true(a.boot_lo >= 25.5 && a.boot_lo <= 26.5 && a.boot_hi >= 27.5 && a.boot_hi <= 29);
    assert_true(memcmp(&a.boot_lo, &b.boot_lo, sizeof a.boot_lo) == 0 && memcmp(&a.boot_hi, &b.boot_hi, 8) == 0);
    assert_near(tl_stat_lag1(newcomb, 66), -0.1559256613684755, 1e-12);
    json_t *j = tl_stat_summary_json(&a);
    assert_int_equal(tl_json_int(j, "n", 0), 66);
    assert_near(tl_json_num(j, "median", 0), 27, 0);
    json_decref(j);
}

static void test_few_values(void **s)
{
    (void)s;
    tl_summary a;
    tl_stat_summary(&a, NULL, 0, 1);
    assert_true(isnan(a.median) && isnan(a.mean));
    const double one[] = { 5 };
    tl_stat_summary(&a, one, 1, 1);
    assert_near(a.median, 5, 0);
    assert_true(isnan(a.sd) && isnan(a.boot_lo) && isnan(a.exact_lo));
    const double same[] = { 5, 5, 5, 5, 5 };
    assert_true(tl_stat_ci_narrow_enough(same, 5, 0.001, 1));
    assert_false(tl_stat_ci_narrow_enough(same, 4, 1, 1));
    const double wide[] = { 1, 5, 9, 2, 8 };
    assert_false(tl_stat_ci_narrow_enough(wide, 5, 0.02, 1));
    const double zero[] = { -1, 0, 0, 0, 1 };
    assert_false(tl_stat_ci_narrow_enough(zero, 5, 10, 1)); /* relative to a median of 0 there is no width */
    bool flag[5];
    const double mostly[] = { 7, 7, 7, 7, 8 };
    assert_int_equal(tl_stat_outliers(flag, mostly, 5), 1); /* MAD 0: the mean deviation decides */
    assert_int_equal(tl_stat_outliers(flag, same, 5), 0);
}

static void test_spearman(void **s)
{
    (void)s;
    const double iq[] = { 106, 100, 86, 101, 99, 103, 97, 113, 112, 110 };
    const double tv[] = { 7, 27, 2, 50, 28, 29, 20, 12, 6, 17 };
    assert_near(tl_stat_spearman(iq, tv, 10), -29.0 / 165.0, 1e-12);
    const double a[] = { 1, 2, 2, 3, 4, 4 }, b[] = { 1, 3, 2, 2, 5, 4 }, flat[] = { 1, 1, 1, 1, 1, 1 };
    assert_near(tl_stat_spearman(a, b, 6), 0.8508410434878083, 1e-12);
    assert_true(isnan(tl_stat_spearman(a, flat, 6)));
    assert_true(isnan(tl_stat_spearman(a, b, 1)));
    assert_true(isnan(tl_stat_lag1(flat, 6)) && isnan(tl_stat_lag1(a, 2)));
}

static void noise(double *x, size_t n, double centre, double spread, uint64_t seed)
{
    tl_rng r;
    tl_rng_seed(&r, seed);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++) sum += tl_rng_f64(&r);
        x[i] = centre + spread * (sum - 6);
    }
}

static tl_verdict verdict(const double *a, const double *b, size_t n, bool paired, bool rate)
{
    tl_comparison c;
    tl_err e = { 0 };
    const tl_samples sa = { .x = a, .n = n }, sb = { .x = b, .n = n };
    const tl_compare_opts o = { .paired = paired, .higher_is_better = rate, .seed = 3, .boot_b = 1000 };
    assert_int_equal(tl_stat_compare(&c, &sa, &sb, &o, &e), TL_OK);
    assert_true(c.lo <= c.ratio && c.ratio <= c.hi && c.p > 0 && c.p <= 1);
    return c.verdict;
}

static void test_compare(void **s)
{
    (void)s;
    double a[20], b[20], c[20];
    noise(a, 20, 100, 1, 1);
    noise(b, 20, 110, 1, 2);
    noise(c, 20, 100, 1, 3);
    assert_int_equal(verdict(a, b, 20, false, true), TL_V_FASTER);
    assert_int_equal(verdict(a, b, 20, false, false), TL_V_SLOWER);
    assert_int_equal(verdict(b, a, 20, false, false), TL_V_FASTER);
    assert_int_equal(verdict(a, c, 20, false, true), TL_V_NO_DIFFERENCE);
    assert_int_equal(verdict(a, c, 3, false, true), TL_V_TOO_NOISY);
    noise(a, 20, 100, 40, 4);
    noise(b, 20, 100, 40, 5);
    for (int i = 0; i < 20; i++) a[i] = fabs(a[i]) + 1, b[i] = fabs(b[i]) + 1;
    assert_int_equal(verdict(a, b, 20, false, true), TL_V_TOO_NOISY);
    /* Pairs see through a spread that hides the same 5 % from unpaired samples. */
    for (int i = 0; i < 20; i++) b[i] = a[i] * (1.05 + 0.001 * (i % 3));
    assert_int_equal(verdict(a, b, 20, true, true), TL_V_FASTER);
    assert_int_equal(verdict(a, b, 20, false, true), TL_V_TOO_NOISY);
    assert_string_equal(tl_verdict_name(TL_V_TOO_NOISY), "too noisy");
}

static void test_permutation_p(void **s)
{
    (void)s;
    const double a[] = { 10, 11, 12, 13, 14 }, b[] = { 15, 16, 17, 18, 19 };
    const tl_samples sa = { .x = a, .n = 5 }, sb = { .x = b, .n = 5 };
    const tl_compare_opts o = { .seed = 11, .boot_b = 20000 };
    tl_comparison c;
    assert_int_equal(tl_stat_compare(&c, &sa, &sb, &o, NULL), TL_OK);
    assert_near(c.p, 12.0 / 252.0, 0.006); /* exact: 12 of 252 splits; 4 standard errors */
    const tl_compare_opts paired = { .seed = 11, .boot_b = 20000, .paired = true };
    assert_int_equal(tl_stat_compare(&c, &sa, &sb, &paired, NULL), TL_OK);
    assert_near(c.p, 2.0 / 32.0, 0.007); /* all five signs alike: 2 of 32 */
    json_t *j = tl_stat_comparison_json(&c);
    assert_string_equal(tl_json_str(j, "verdict", ""), tl_verdict_name(c.verdict));
    json_decref(j);
}

static void test_blocks(void **s)
{
    (void)s;
    /* The machine got twice as slow between two blocks, and B equals A in each. */
    double a[20], b[20];
    int block[20];
    noise(a, 20, 100, 1, 8);
    noise(b, 20, 100, 1, 9);
    for (int i = 0; i < 20; i++) {
        block[i] = i / 10;
        if (i >= 10) a[i] *= 2, b[i] *= 2;
    }
    const tl_samples sa = { .x = a, .n = 20, .block = block }, sb = { .x = b, .n = 20, .block = block };
    const tl_compare_opts o = { .seed = 5, .boot_b = 1000 };
    tl_comparison in_blocks, whole;
    assert_int_equal(tl_stat_compare(&in_blocks, &sa, &sb, &o, NULL), TL_OK);
    const tl_samples ua = { .x = a, .n = 20 }, ub = { .x = b, .n = 20 };
    assert_int_equal(tl_stat_compare(&whole, &ua, &ub, &o, NULL), TL_OK);
    assert_true(in_blocks.hi - in_blocks.lo < (whole.hi - whole.lo) / 4);
    assert_int_equal(in_blocks.verdict, TL_V_NO_DIFFERENCE);
    assert_int_equal(whole.verdict, TL_V_TOO_NOISY);
}

static void test_compare_refuses(void **s)
{
    (void)s;
    tl_err e = { 0 };
    tl_comparison c;
    const double a[] = { 1, 2, 3 }, zero[] = { 1, 0, 3 };
    const tl_samples ok = { .x = a, .n = 3 }, none = { .x = a, .n = 0 }, bad = { .x = zero, .n = 3 }, two = { .x = a, .n = 2 };
    const tl_compare_opts o = { .paired = true };
    assert_int_equal(tl_stat_compare(&c, &none, &ok, &o, &e), TL_INVALID);
    assert_int_equal(tl_stat_compare(&c, &ok, &bad, &o, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "value 2 of side B"));
    assert_int_equal(tl_stat_compare(&c, &ok, &two, &o, &e), TL_INVALID);
}

/* Three requests a round; the rounds of B may be fewer, in another order, and scaled. */
static tl_comparison by_round(double scale, double spread, size_t rounds, bool paired, bool rate)
{
    double x[60], y[60], level[20];
    int64_t ra[60], rb[60];
    noise(level, 20, 100, spread, 21);
    for (size_t i = 0; i < 3 * rounds; i++) {
        const size_t back = rounds - 1 - i / 3;
        ra[i] = (int64_t)(i / 3), rb[i] = (int64_t)back;
        x[i] = fabs(level[i / 3]) + 1 + 0.1 * (double)(i % 3);
        y[i] = scale * (fabs(level[paired ? back : (i / 3 + 7) % 20]) + 1 + 0.1 * (double)(i % 3));
    }
    const tl_rounds a = { .x = x, .round = ra, .n = 3 * rounds }, b = { .x = y, .round = rb, .n = 3 * rounds };
    const tl_compare_opts o = { .paired = paired, .higher_is_better = rate, .seed = 1 };
    tl_comparison c;
    tl_err e = { 0 };
    assert_int_equal(tl_stat_compare_rounds(&c, &a, &b, &o, &e), TL_OK);
    assert_int_equal(c.n_a, rounds);
    assert_int_equal(c.n_b, rounds);
    return c;
}

static void test_compare_rounds(void **s)
{
    (void)s;
    assert_int_equal(by_round(0.8, 1, 12, false, false).verdict, TL_V_FASTER); /* a time */
    assert_int_equal(by_round(0.8, 1, 12, false, true).verdict, TL_V_SLOWER);  /* a rate */
    assert_int_equal(by_round(1, 0.5, 12, false, false).verdict, TL_V_NO_DIFFERENCE);
    tl_comparison c = by_round(1, 30, 12, false, false);
    assert_int_equal(c.verdict, TL_V_TOO_NOISY);
    assert_int_equal(c.needs_n, 0); /* the spread is why, not the number */
    assert_near(c.noise_limit, 0.05, 1e-12);
    /* Pairs by round, whatever their order: a spread of 30 % hides nothing. */
    c = by_round(0.97, 30, 12, true, false);
    assert_int_equal(c.verdict, TL_V_FASTER);
    assert_near(c.ratio, 0.97, 1e-9);
    assert_int_equal(by_round(0.97, 30, 12, false, false).verdict, TL_V_TOO_NOISY);
    /* Fifteen requests are five rounds: no verdict, however clear, and it says what is needed. */
    for (int paired = 0; paired < 2; paired++) {
        c = by_round(0.5, 1, 5, paired, false);
        assert_int_equal(c.verdict, TL_V_TOO_NOISY);
        assert_int_equal(c.needs_n, TL_STAT_COMPARE_N);
        c = by_round(0.5, 1, 6, paired, false);
        assert_int_equal(c.verdict, TL_V_FASTER);
        assert_int_equal(c.needs_n, 0);
    }
}

static void test_compare_rounds_shared(void **s)
{
    (void)s;
    const double a[] = { 10, 90, 30, 40, 1, 20 }, b[] = { 60, 33, 99 }; /* round 1 of A: 90, 1, 20, whose median counts */
    const int64_t ra[] = { 0, 1, 2, 3, 1, 1 }, rb[] = { 2, 1, 7 }, rc[] = { 8, 8, 9 };
    const tl_rounds sa = { .x = a, .round = ra, .n = 6 }, sb = { .x = b, .round = rb, .n = 3 }, sc = { .x = b, .round = rc, .n = 3 };
    const tl_compare_opts o = { .paired = true, .seed = 1 };
    tl_comparison c;
    tl_err e = { 0 };
    assert_int_equal(tl_stat_compare_rounds(&c, &sa, &sb, &o, &e), TL_OK);
    assert_int_equal(c.n_a, 2);
    assert_near(c.ratio, sqrt(33.0 / 20 * 2), 1e-9);
    assert_int_equal(tl_stat_compare_rounds(&c, &sa, &sc, &o, &e), TL_INVALID);
}

static bool warns(const double *x, size_t n, tl_warning_kind kind)
{
    tl_warning w[TL_WARN_KINDS];
    const size_t found = tl_stat_warnings(w, x, n);
    for (size_t i = 0; i < found; i++) {
        assert_true(strlen(w[i].text) > 40 && strlen(w[i].text) < sizeof w[i].text - 1);
        if (w[i].kind == kind) return true;
    }
    return false;
}

static void test_warnings(void **s)
{
    (void)s;
    double x[40];
    tl_warning w[TL_WARN_KINDS];
    noise(x, 40, 100, 1, 31); /* about one series of 80 warns by chance; this one does not */
    assert_int_equal(tl_stat_warnings(w, x, 40), 0);
    assert_int_equal(tl_stat_warnings(w, x, 0), 0);
    for (int i = 0; i < 40; i++) x[i] += 0.5 * i;
    assert_true(warns(x, 40, TL_WARN_DRIFT));
    assert_true(warns(x, 40, TL_WARN_LAG1));
    noise(x, 40, 100, 1, 22);
    for (int i = 0; i < 40; i += 2) x[i] += 30;
    assert_true(warns(x, 40, TL_WARN_BIMODAL));
    assert_false(warns(x, 40, TL_WARN_DRIFT));
    noise(x, 40, 100, 1, 23);
    x[0] = 300;
    assert_true(warns(x, 40, TL_WARN_SLOW_START));
    assert_false(warns(x, 40, TL_WARN_OUTLIERS));
    x[0] = 100;
    x[17] = 300;
    assert_true(warns(x, 40, TL_WARN_OUTLIERS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binomial), cmocka_unit_test(test_nearest_rank), cmocka_unit_test(test_quantile_needs_n),
        cmocka_unit_test(test_quantile_interval), cmocka_unit_test(test_newcomb), cmocka_unit_test(test_few_values),
        cmocka_unit_test(test_spearman), cmocka_unit_test(test_compare), cmocka_unit_test(test_permutation_p),
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_compare_refuses),
        cmocka_unit_test(test_compare_rounds), cmocka_unit_test(test_compare_rounds_shared), cmocka_unit_test(test_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

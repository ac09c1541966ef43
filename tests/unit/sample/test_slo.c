/* The exact interval of a share against published values, and the verdict of an SLO at its edges. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sample/sample.h"

static void share_is(size_t k, size_t n, double lo, double hi)
{
    tl_share s;
    tl_stat_share(&s, k, n, 0.95);
    assert_true(fabs(s.lo - lo) < 5e-5);
    assert_true(fabs(s.hi - hi) < 5e-5);
}

/* The ends 0 and n have closed forms; 8 of 10 is a textbook value. */
static void test_interval(void **state)
{
    (void)state;
    share_is(0, 100, 0, 1 - pow(0.025, 1.0 / 100));
    share_is(100, 100, pow(0.025, 1.0 / 100), 1);
    share_is(1, 1, 0.025, 1);
    share_is(8, 10, 0.4439, 0.9748);
}

static void test_nothing_known(void **state)
{
    (void)state;
    tl_share s;
    tl_stat_share(&s, 0, 0, 0.95);
    assert_true(isnan(s.value) && s.lo == 0 && s.hi == 1);
    assert_int_equal(tl_slo_judge(&s, 0.99), TL_SLO_UNDECIDED);
}

static tl_slo_verdict verdict(size_t k, size_t n, double asked)
{
    tl_share s;
    tl_stat_share(&s, k, n, 0.95);
    return tl_slo_judge(&s, asked);
}

/* The fewest requests that can show an SLO met are those that give its quantile an interval. */
static void test_fewest_that_decide(void **state)
{
    (void)state;
    const double asked[] = { 0.9, 0.95, 0.99 };
    for (size_t i = 0; i < TL_COUNT(asked); i++) {
        const size_t n = tl_stat_quantile_n(asked[i], 0.95);
        assert_int_equal(verdict(n, n, asked[i]), TL_SLO_MET);
        assert_int_equal(verdict(n - 1, n - 1, asked[i]), TL_SLO_UNDECIDED);
    }
    assert_int_equal(verdict(99, 100, 0.99), TL_SLO_UNDECIDED);
    assert_int_equal(verdict(90, 100, 0.99), TL_SLO_MISSED);
}

static void test_failures_are_not_met(void **state)
{
    (void)state;
    enum { N = 40 };
    tl_metrics m[N] = { 0 };
    for (size_t i = 0; i < N; i++) {
        m[i].outcome = i < N / 2 ? TL_REQ_OK : TL_REQ_FAILED;
        m[i].ttft_ns = 1000000;
        m[i].tpot_ns = NAN;
        m[i].e2e_ns = TL_NONE;
    }
    tl_slo_spec slo;
    tl_err e;
    tl_window w;
    assert_int_equal(tl_slo_parse(&slo, "ttft<2s@90%", &e), TL_OK);
    tl_window_of(&w, m, N, 1, &slo);
    assert_int_equal(verdict(w.good, w.offered, 0.9), TL_SLO_MISSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval), cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_fewest_that_decide), cmocka_unit_test(test_failures_are_not_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

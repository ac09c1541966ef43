/* Properties of the arrival processes: rate, variation, ramp, seed, refusals. */
#include "load/load.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define N 40000
#define SEED 20260105u

static uint64_t at[N], again[N];

static void draw(uint64_t *out, tl_load_process process, double burstiness, double to) {
    const tl_load_arrival a = {.process = process, .rate_per_s = 50, .rate_to_per_s = to, .burstiness = burstiness, .seed = SEED};
    tl_err e = {0};
    assert_int_equal(tl_load_arrivals(out, N, &a, &e), TL_OK);
    for (size_t i = 1; i < N; i++) assert_true(out[i] >= out[i - 1]);
}

static void moments(double *mean, double *cv) {
    double s = 0, q = 0;
    for (size_t i = 1; i < N; i++) s += (double)(at[i] - at[i - 1]);
    *mean = s / (N - 1);
    for (size_t i = 1; i < N; i++) q += pow((double)(at[i] - at[i - 1]) - *mean, 2);
    *cv = sqrt(q / (N - 2)) / *mean;
}

static void test_processes(void **state) {
    TL_UNUSED(state);
    static const struct {
        tl_load_process process;
        double burstiness, cv;
    } cases[] = {{TL_LOAD_POISSON, 0, 1},  {TL_LOAD_GAMMA, 1, 1},        {TL_LOAD_GAMMA, 0.25, 2},
                 {TL_LOAD_GAMMA, 4, 0.5}, {TL_LOAD_UNIFORM, 0, 0.57735}};
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        double mean, cv;
        draw(at, cases[i].process, cases[i].burstiness, 0);
        moments(&mean, &cv);
        print_message("process %d burstiness %g: mean gap %.3f ms, CV %.3f (%.3f), seed %u\n", (int)cases[i].process,
                      cases[i].burstiness, mean / 1e6, cv, cases[i].cv, SEED);
        assert_true(fabs(mean / 20e6 - 1) < 5 * cases[i].cv / sqrt(N)); /* five standard errors */
        assert_true(fabs(cv / cases[i].cv - 1) < 0.06);
        draw(again, cases[i].process, cases[i].burstiness, 0);
        assert_memory_equal(at, again, sizeof at);
    }
}

static void test_constant(void **state) {
    TL_UNUSED(state);
    draw(at, TL_LOAD_CONSTANT, 0, 0);
    for (size_t i = 0; i < N; i++) {
        assert_true(at[i] <= i * 20000000u); /* never later */
        assert_true(at[i] + 2 >= i * 20000000u);
    }
}

/* 50 to 150 per second: after the time t the integral 50 t + (100 / T) t^2 / 2 have arrived. */
static void test_ramp(void **state) {
    TL_UNUSED(state);
    const double span = N / 100.0;
    draw(at, TL_LOAD_CONSTANT, 0, 150);
    for (size_t i = 0; i < N; i += 97) {
        double t = (double)at[i] / 1e9;
        assert_true(fabs(50 * t + 100 / span * t * t / 2 - (double)i) < 1e-3);
    }
}

static void test_refused(void **state) {
    TL_UNUSED(state);
    static const tl_load_arrival bad[] = {{.rate_per_s = 0},
                                          {.rate_per_s = -1},
                                          {.rate_per_s = NAN},
                                          {.rate_per_s = 1, .rate_to_per_s = -2},
                                          {.rate_per_s = 1, .burstiness = -1},
                                          {.rate_per_s = 1e-12},
                                          {.rate_per_s = 1, .process = (tl_load_process)9}};
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        tl_err e = {0};
        assert_int_equal(tl_load_arrivals(at, 10, &bad[i], &e), TL_INVALID);
        assert_true(strlen(e.msg) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_processes), cmocka_unit_test(test_constant), cmocka_unit_test(test_ramp),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

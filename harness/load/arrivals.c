/* Intended starts of an open loop. Gaps of mean 1 are drawn and summed; the sum is then turned into time by inverting the
 * integral of the rate, so that a ramp keeps the process's own variation. */
#include "load/load_impl.h"

#include <math.h>

static double exponential(tl_rng *g) { return -log1p(-tl_rng_f64(g)); }

static double normal(tl_rng *g) { /* Box-Muller */
    double r = sqrt(2 * exponential(g));
    return r * cos(6.283185307179586 * tl_rng_f64(g));
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000), with their boost for
 * shapes below 1. Mean = shape. */
static double gamma_draw(tl_rng *g, double shape) {
    if (shape < 1) return gamma_draw(g, shape + 1) * pow(1 - tl_rng_f64(g), 1 / shape);
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(g), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(1 - tl_rng_f64(g)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

static double gap(tl_rng *g, const tl_load_arrival *a) {
    double shape = a->burstiness > 0 ? a->burstiness : 1;
    switch (a->process) {
    case TL_LOAD_CONSTANT: return 1;
    case TL_LOAD_POISSON: return exponential(g);
    case TL_LOAD_GAMMA: return gamma_draw(g, shape) / shape;
    case TL_LOAD_UNIFORM: return 2 * tl_rng_f64(g);
    }
    return 1;
}

/* Time at which a rate that goes linearly from a to b during `span_s` has offered x requests; it goes on with b. */
static double when_s(double x, double a, double b, double span_s) {
    double slope = (b - a) / span_s, all = (a + b) / 2 * span_s;
    if (a == b) return x / a;
    if (x >= all) return span_s + (x - all) / b;
    return 2 * x / (a + sqrt(a * a + 2 * slope * x)); /* the form of the root that does not cancel */
}

static bool positive(double x) { return isfinite(x) && x > 0; }

tl_status tl_load_arrivals(uint64_t *at_ns, size_t n, const tl_load_arrival *a, tl_err *e) {
    double to = a->rate_to_per_s != 0 ? a->rate_to_per_s : a->rate_per_s, x = 0;
    if (!positive(a->rate_per_s) || !positive(to)) {
        (void)tl_fail(e, TL_INVALID, "a rate of %g to %g requests per second", a->rate_per_s, to);
        return tl_remedy(e, "give rates above 0");
    }
    if (a->burstiness != 0 && !positive(a->burstiness)) {
        (void)tl_fail(e, TL_INVALID, "a burstiness of %g", a->burstiness);
        return tl_remedy(e, "give a shape above 0: 1 is Poisson, below 1 burstier, above 1 more even");
    }
    if ((unsigned)a->process > TL_LOAD_UNIFORM) return tl_fail(e, TL_INVALID, "no arrival process number %d", (int)a->process);
    double span_s = 2 * (double)n / (a->rate_per_s + to);
    tl_rng g;
    tl_rng_seed(&g, a->seed);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 || a->process != TL_LOAD_CONSTANT) x += gap(&g, a);
        double ns = when_s(x, a->rate_per_s, to, span_s) * 1e9;
        if (!(ns < 9e18)) return tl_fail(e, TL_INVALID, "arrival %zu of %zu at %g per second lies beyond the clock", i + 1, n, a->rate_per_s);
        at_ns[i] = (uint64_t)ns; /* rounded down: never later than drawn */
    }
    return TL_OK;
}

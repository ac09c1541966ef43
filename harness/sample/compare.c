/* Two conditions against each other: ratio of medians with a bootstrap interval, a permutation p value, a verdict.
 *
 * Paired samples are resampled as pairs and their signs flipped; unpaired ones are resampled and permuted inside their
 * blocks, so that a machine that drifts from block to block does not pass for a difference. p counts the arrangement
 * that was observed too, (hits + 1)/(B + 1), and so is never 0 (Phipson & Smyth 2010).
 */
#include <math.h>

#include "sample/sample_impl.h"

#define NOISE_LIMIT 0.05
#define LEVEL 0.05

static const char *const verdict_names[] = { "faster", "slower", "no difference shown", "too noisy" };

const char *tl_verdict_name(tl_verdict v)
{
    return (unsigned)v < TL_COUNT(verdict_names) ? verdict_names[v] : verdict_names[TL_V_TOO_NOISY];
}

static tl_status check_side(const tl_samples *s, const char *which, tl_err *e)
{
    if (s->n == 0) return tl_fail(e, TL_INVALID, "comparison: side %s has no values", which);
    for (size_t i = 0; i < s->n; i++)
        if (!(s->x[i] > 0) || !isfinite(s->x[i]))
            return tl_fail(e, TL_INVALID, "comparison: value %zu of side %s is %g; ratios need positive numbers", i + 1,
                           which, s->x[i]);
    return TL_OK;
}

/* ---- unpaired ------------------------------------------------------------------------------------------------------ */

/* Another member of the same block, or of all. */
static double redraw(tl_rng *rng, const tl_samples *s, size_t i)
{
    if (!s->block) return s->x[tl_rng_below(rng, s->n)];
    size_t in_block = 0;
    for (size_t k = 0; k < s->n; k++) in_block += s->block[k] == s->block[i];
    size_t pick = (size_t)tl_rng_below(rng, in_block);
    for (size_t k = 0; k < s->n; k++)
        if (s->block[k] == s->block[i] && pick-- == 0) return s->x[k];
    return s->x[i];
}

static double redrawn_median(tl_rng *rng, const tl_samples *s, double *scratch)
{
    for (size_t i = 0; i < s->n; i++) scratch[i] = redraw(rng, s, i);
    return tl_stat_median(scratch, s->n);
}

/* Shuffles the pooled values among places of the same block. */
static void permute(tl_rng *rng, double *pool, const int *block, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t same = 0;
        for (size_t k = 0; k <= i; k++) same += !block || block[k] == block[i];
        size_t pick = (size_t)tl_rng_below(rng, same), k = 0;
        for (;; k++)
            if ((!block || block[k] == block[i]) && pick-- == 0) break;
        const double t = pool[i];
        pool[i] = pool[k];
        pool[k] = t;
    }
}

static void unpaired(tl_comparison *c, const tl_samples *a, const tl_samples *b, tl_rng *rng)
{
    const size_t n = a->n + b->n;
    double *pool = tl_xalloc(n * sizeof *pool), *rep = tl_xalloc(c->boot_b * sizeof *rep);
    int *block = a->block && b->block ? tl_xalloc(n * sizeof *block) : NULL;
    c->ratio = tl_stat_median(b->x, b->n) / tl_stat_median(a->x, a->n);
    for (size_t i = 0; i < c->boot_b; i++) {
        const double under = redrawn_median(rng, a, pool);
        rep[i] = redrawn_median(rng, b, pool) / under;
    }
    tl_sample_boot_limits(&c->lo, &c->hi, rep, c->boot_b);
    memcpy(pool, a->x, a->n * sizeof *pool);
    memcpy(pool + a->n, b->x, b->n * sizeof *pool);
    if (block) {
        memcpy(block, a->block, a->n * sizeof *block);
        memcpy(block + a->n, b->block, b->n * sizeof *block);
    }
    const double seen = fabs(log(c->ratio));
    size_t hits = 0;
    for (size_t i = 0; i < c->boot_b; i++) {
        permute(rng, pool, block, n);
        hits += fabs(log(tl_stat_median(pool + a->n, b->n) / tl_stat_median(pool, a->n))) >= seen - 1e-12;
    }
    c->p = (double)(hits + 1) / (double)(c->boot_b + 1);
    free(block);
    free(rep);
    free(pool);
}

/* ---- paired -------------------------------------------------------------------------------------------------------- */

static double mean_of(const double *x, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += x[i];
    return s / (double)n;
}

static void paired(tl_comparison *c, const tl_samples *a, const tl_samples *b, tl_rng *rng)
{
    const size_t n = a->n;
    double *d = tl_xalloc(n * sizeof *d), *draw = tl_xalloc(n * sizeof *draw),
           *rep = tl_xalloc(c->boot_b * sizeof *rep);
    for (size_t i = 0; i < n; i++) d[i] = log(b->x[i] / a->x[i]);
    const tl_samples logs = { .x = d, .block = a->block, .n = n };
    c->ratio = exp(tl_stat_median(d, n));
    for (size_t i = 0; i < c->boot_b; i++) rep[i] = exp(redrawn_median(rng, &logs, draw));
    tl_sample_boot_limits(&c->lo, &c->hi, rep, c->boot_b);
    /* The mean of the flipped logarithms, not their median: it uses each pair's size and has few ties. */
    const double seen = fabs(mean_of(d, n));
    size_t hits = 0;
    for (size_t i = 0; i < c->boot_b; i++) {
        for (size_t k = 0; k < n; k++) draw[k] = tl_rng_below(rng, 2) ? d[k] : -d[k];
        hits += fabs(mean_of(draw, n)) >= seen - 1e-12;
    }
    c->p = (double)(hits + 1) / (double)(c->boot_b + 1);
    free(rep);
    free(draw);
    free(d);
}

static tl_verdict judge(const tl_comparison *c, bool higher_is_better)
{
    if (c->needs_n > 0) return TL_V_TOO_NOISY;
    if ((c->lo > 1 || c->hi < 1) && c->p < LEVEL) return (c->ratio > 1) == higher_is_better ? TL_V_FASTER : TL_V_SLOWER;
    return (c->hi - c->lo) / 2 <= c->noise_limit ? TL_V_NO_DIFFERENCE : TL_V_TOO_NOISY;
}

tl_status tl_stat_compare(tl_comparison *out, const tl_samples *a, const tl_samples *b, const tl_compare_opts *o,
                          tl_err *e)
{
    tl_status st = TL_OK;
    TRY(check_side(a, "A", e));
    TRY(check_side(b, "B", e));
    if (o->paired && a->n != b->n)
        return tl_fail(e, TL_INVALID, "comparison: %zu values cannot be paired with %zu", a->n, b->n);
    *out = (tl_comparison){ .n_a = a->n, .n_b = b->n, .boot_b = o->boot_b ? o->boot_b : TL_STAT_BOOT, .seed = o->seed,
                            .paired = o->paired, .noise_limit = o->noise_limit > 0 ? o->noise_limit : NOISE_LIMIT };
    if (a->n < TL_STAT_COMPARE_N || b->n < TL_STAT_COMPARE_N) out->needs_n = TL_STAT_COMPARE_N;
    tl_rng rng;
    tl_rng_seed(&rng, o->seed);
    if (o->paired) paired(out, a, b, &rng);
    else unpaired(out, a, b, &rng);
    out->verdict = judge(out, o->higher_is_better);
out:
    return st;
}

json_t *tl_stat_comparison_json(const tl_comparison *c)
{
    json_t *j = json_object();
    json_object_set_new(j, "ratio", tl_json_real(c->ratio));
    json_object_set_new(j, "lo", tl_json_real(c->lo));
    json_object_set_new(j, "hi", tl_json_real(c->hi));
    json_object_set_new(j, "p", tl_json_real(c->p));
    json_object_set_new(j, "n_a", json_integer((json_int_t)c->n_a));
    json_object_set_new(j, "n_b", json_integer((json_int_t)c->n_b));
    json_object_set_new(j, "boot_b", json_integer((json_int_t)c->boot_b));
    json_object_set_new(j, "seed", json_integer((json_int_t)c->seed));
    json_object_set_new(j, "paired", json_boolean(c->paired));
    json_object_set_new(j, "noise_limit", tl_json_real(c->noise_limit));
    json_object_set_new(j, "needs_n", c->needs_n ? json_integer((json_int_t)c->needs_n) : json_null());
    json_object_set_new(j, "verdict", json_string(tl_verdict_name(c->verdict)));
    return j;
}

/* ---- rounds -------------------------------------------------------------------------------------------------------- */

static bool has_round(const tl_rounds *s, int64_t round)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->round[i] == round) return true;
    return false;
}

/* Medians of the rounds of s, in ascending order of rounds; with `other`, of the rounds that it has too. x has room for
 * s->n. */
static size_t round_medians(double *x, const tl_rounds *s, const tl_rounds *other)
{
    double *of = tl_xalloc((s->n + 1) * sizeof *of);
    size_t rounds = 0;
    int64_t last = INT64_MIN;
    for (;;) {
        int64_t next = INT64_MAX;
        size_t k = 0;
        for (size_t i = 0; i < s->n; i++)
            if (s->round[i] > last && s->round[i] < next) next = s->round[i];
        if (next == INT64_MAX) break;
        for (size_t i = 0; i < s->n; i++)
            if (s->round[i] == next) of[k++] = s->x[i];
        if (other == NULL || has_round(other, next)) x[rounds++] = tl_stat_median(of, k);
        last = next;
    }
    free(of);
    return rounds;
}

tl_status tl_stat_compare_rounds(tl_comparison *out, const tl_rounds *a, const tl_rounds *b, const tl_compare_opts *o,
                                 tl_err *e)
{
    double *x = tl_xalloc((a->n + 1) * sizeof *x), *y = tl_xalloc((b->n + 1) * sizeof *y);
    const tl_samples sa = { .x = x, .n = round_medians(x, a, o->paired ? b : NULL) };
    const tl_samples sb = { .x = y, .n = round_medians(y, b, o->paired ? a : NULL) };
    const tl_status st = tl_stat_compare(out, &sa, &sb, o, e);
    free(y);
    free(x);
    return st;
}

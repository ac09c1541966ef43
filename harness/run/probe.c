/* The bandwidth ruler by thread count. Repetitions are interleaved over the counts, because a shared host's bandwidth
 * drifts by a factor of two within an hour: points taken one after another would compare hours, not counts. */
#include "run/run.h"
#include "sample/sample.h"

enum { REPETITIONS_MAX = 64 };

static size_t thread_counts(unsigned *out, size_t max) {
    unsigned all = tl_cpu_count();
    size_t n = 0;
    for (unsigned t = 1; t < all && n + 1 < max; t *= 2) out[n++] = t;
    out[n++] = all;
    return n;
}

tl_status tl_run_probe_threads(tl_run_probe_point *out, size_t *n, size_t max, size_t *best, tl_membw *m,
                               unsigned repetitions, tl_ns duration, tl_err *e) {
    unsigned counts[32];
    size_t points = thread_counts(counts, max < TL_COUNT(counts) ? max : TL_COUNT(counts));
    if (repetitions > REPETITIONS_MAX) repetitions = REPETITIONS_MAX;
    double *samples = tl_xalloc(points * repetitions * sizeof *samples);
    tl_membw_result *r = tl_xalloc(sizeof *r);
    tl_status st = TL_OK;
    for (size_t k = 0; k < repetitions && st == TL_OK; k++)
        for (size_t i = 0; i < points && st == TL_OK; i++) {
            st = tl_membw_read(r, m, counts[i], duration, e);
            samples[i * repetitions + k] = r->bytes_per_s;
        }
    *n = st == TL_OK ? points : 0;
    *best = 0;
    for (size_t i = 0; i < *n; i++) {
        tl_summary s;
        tl_stat_summary(&s, samples + i * repetitions, repetitions, 1);
        out[i] = (tl_run_probe_point){counts[i], repetitions, s.median, s.boot_lo, s.boot_hi};
        if (out[i].median > out[*best].median) *best = i;
    }
    free(r);
    free(samples);
    return st;
}

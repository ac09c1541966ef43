/* Shared inside the sample module only. */
#ifndef TL_SAMPLE_IMPL_H
#define TL_SAMPLE_IMPL_H

#include "sample/sample.h"

/* Landmarks of a request's events. */
typedef struct tl_marks {
    uint64_t first_choice; /* first event with a choice, even an empty role */
    uint64_t first_text;
    uint64_t first_answer; /* content or tool */
    uint64_t last_text;
    int64_t text_reads;
    bool has_reasoning;
    const tl_event *first_text_event;
} tl_marks;

/* b - a as a duration; TL_NONE when either never happened. */
int64_t tl_sample_diff(uint64_t a, uint64_t b);
/* Fills the ledger and sets TL_FLAG_CLOCK. prompt_ns/queue_ns: NAN when the engine does not say. */
void tl_sample_ledger(tl_metrics *m, const tl_request *r, const tl_marks *k);
/* The engine's prompt time in ns, NAN when absent or an impossible 0. */
double tl_sample_prompt_ns(const tl_request *r);

/* A sorted copy, owned by the caller. */
double *tl_sample_sorted(const double *x, size_t n);
double tl_sample_sorted_median(const double *sorted, size_t n);
/* Percentile bootstrap's 95 % limits out of b sorted replicates. */
void tl_sample_boot_limits(double *lo, double *hi, double *replicates, size_t b);
/* tl_stat_outliers with another bar than 3.5. */
size_t tl_sample_outliers(bool *flag, const double *x, size_t n, double z);
/* json integer, or null for the sentinel. */
json_t *tl_sample_int(int64_t v, int64_t none);

#endif

/* The values of a metric as they lie in the store: of requests, or of blocks, in the order they were taken. */
#include "run/run_impl.h"

#include <math.h>

const run_block_metric run_block_metrics[] = {
    {"throughput", "tok/s", "window.throughput", true},
    {"request_rate", "req/s", "window.request_rate", true},
    {"goodput", "req/s", "window.goodput", true},
    {"goodput_share", "1", "window.goodput_share", true},
    {0},
};

void run_series_add(run_series *s, double x, int64_t round) {
    if (!isfinite(x)) {
        s->undefined++;
        return;
    }
    size_t n = s->n;
    TL_PUSH(s->v, s->n, s->cap, x);
    TL_PUSH(s->round, n, s->cap_round, round);
}

void run_series_free(run_series *s) {
    free(s->v);
    free(s->round);
    *s = (run_series){0};
}

/* Stored metrics are exact integers of nanoseconds where they are times; people read milliseconds. */
static double stored_metric(const json_t *metrics, const tl_metric_desc *d) {
    char ns[64];
    snprintf(ns, sizeof ns, "%s_ns", d->name);
    double v = tl_json_num(metrics, d->name, NAN);
    return isfinite(v) ? v : tl_json_num(metrics, ns, NAN) / 1e6;
}

/* An overloaded server's answers are no fair sample, and a search's come from many loads. */
static const json_t *fair_trial(const json_t *trials, const char *id) {
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)trials, i, t)
        if (tl_str_eq(tl_json_str(t, "id", ""), id))
            return tl_json_at(t, "facts.aborted") == NULL && tl_json_at(t, "facts.search") == NULL ? t : NULL;
    return NULL;
}

void run_series_requests(run_series *out, const json_t *requests, const json_t *trials, const tl_metric_desc *d) {
    size_t i;
    json_t *r;
    json_array_foreach((json_t *)requests, i, r) {
        if (!tl_str_eq(tl_json_str(r, "role", ""), "measured") || !tl_str_eq(tl_json_str(r, "outcome", ""), "ok")) continue;
        const json_t *t = fair_trial(trials, tl_json_str(r, "trial", ""));
        if (t != NULL) run_series_add(out, stored_metric(json_object_get(r, "metrics"), d), tl_json_int(t, "round", 0));
    }
}

void run_series_blocks(run_series *out, const json_t *trials, const char *cell_key, const char *path) {
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)trials, i, t) {
        if (!tl_str_eq(tl_json_str(t, "cell", ""), cell_key) || tl_json_at(t, "facts.aborted") != NULL) continue;
        const json_t *v = tl_json_at(json_object_get(t, "facts"), path);
        if (json_is_number(v)) run_series_add(out, json_number_value(v), tl_json_int(t, "round", 0));
    }
}

/* Calibrations in the store: written once as measured values, and found again by every later run of the same machine. */
#include "run/run_impl.h"

#include <math.h>

/* What of a point becomes a value of its own; all of it stands in the facts of the state done. */
static const struct quantity {
    const char *name, *path, *unit, *statistic, *n_path;
} quantities[] = {
    {"ruler.events_rate", "events_per_s", "1/s", NULL, "events"},
    {"ruler.cpu_per_event", "cpu_per_event_us", "us", "mean", "events"},
    {"ruler.arrival_p50", "arrival.p50_ms", "ms", "p50", "arrival.n"},
    {"ruler.arrival_p99", "arrival.p99_ms", "ms", "p99", "arrival.n"},
    {"ruler.arrival_max", "arrival.max_ms", "ms", "max", "arrival.n"},
    {"ruler.ttft_bias", "ttft.bias_ms", "ms", "mean", "ttft.n"},
    {"ruler.ttft_p99", "ttft.p99_ms", "ms", "p99", "ttft.n"},
    {"ruler.ttft_max", "ttft.max_ms", "ms", "max", "ttft.n"},
    {"ruler.gap_bias", "gap.bias_ms", "ms", "mean", "gap.n"},
    {"ruler.gap_p99", "gap.p99_ms", "ms", "p99", "gap.n"},
    {"ruler.gap_max", "gap.max_ms", "ms", "max", "gap.n"},
};

static tl_status store_point(tl_store *store, const char *run_id, const json_t *p, size_t position, tl_err *e) {
    char key[64], id[TL_STORE_ID];
    snprintf(key, sizeof key, "%zu:%" PRId64 "x%g/s", position + 1, tl_json_int(p, "streams", 0), tl_json_num(p, "rate", NAN));
    json_t *axes = json_pack("{s:O, s:O}", "streams", json_object_get(p, "streams"), "rate", json_object_get(p, "rate"));
    tl_store_cell cell = {.run_id = run_id, .key = key, .position = (int64_t)position, .axes = axes};
    tl_status st = tl_store_cell_add(store, &cell, e);
    json_decref(axes);
    for (size_t i = 0; i < TL_COUNT(quantities) && st == TL_OK; i++) {
        const struct quantity *q = &quantities[i];
        double number = tl_json_num(p, q->path, NAN);
        tl_store_value v = {.run_id = run_id, .cell_key = key, .name = q->name, .label = "measured", .number = number, .lo = NAN, .hi = NAN,
                            .null_reason = isfinite(number) ? NULL : "no sample", .n = tl_json_int(p, q->n_path, 0), .unit = q->unit,
                            .statistic = q->statistic};
        st = tl_store_value_add(id, store, &v, e);
    }
    return st;
}

tl_status tl_run_calibration_store(tl_store *store, const char *run_id, const json_t *calibration, tl_err *e) {
    size_t i;
    json_t *p;
    tl_status st = tl_store_begin(store, e);
    if (st != TL_OK) return st;
    json_array_foreach(json_object_get(calibration, "points"), i, p) if (st == TL_OK) st = store_point(store, run_id, p, i, e);
    tl_store_state done = {.state = TL_STORE_DONE, .facts = calibration};
    if (st == TL_OK) st = tl_store_run_state(store, run_id, &done, e);
    if (st == TL_OK) st = tl_store_commit(store, e);
    if (st != TL_OK) tl_store_rollback(store);
    return st;
}

size_t tl_run_planned_streams(const json_t *workload) {
    bool open = tl_str_eq(tl_json_str(workload, "schedule.kind", "closed"), "open");
    int64_t n = open ? tl_json_int(workload, "schedule.max_in_flight", tl_json_int(workload, "requests", 1)) : tl_json_int(workload, "concurrency", 1);
    return n > 1 ? (size_t)n : 1;
}

/* The load nearest in streams, by ratio; of two as near, the one of the higher rate. */
static const json_t *nearest(const json_t *points, size_t streams) {
    const json_t *best = NULL;
    json_t *p;
    size_t i;
    double best_far = INFINITY;
    json_array_foreach((json_t *)points, i, p) {
        double far = fabs(log(tl_json_num(p, "streams", 1) / (double)(streams ? streams : 1)));
        if (far > best_far || (far == best_far && tl_json_num(p, "rate", 0) < tl_json_num(best, "rate", 0))) continue;
        best = p;
        best_far = far;
    }
    return best;
}

static bool same_revision(const json_t *a, const json_t *b) {
    return tl_str_eq(tl_json_str(a, "revision", ""), tl_json_str(b, "revision", "?")) && !tl_json_bool(a, "dirty", true) && !tl_json_bool(b, "dirty", true);
}

tl_status tl_run_calibration_newest(json_t **out, tl_store *store, const char *machine_id, size_t streams, const json_t *tally, tl_err *e) {
    json_t *rows = NULL;
    /* spoiled on purpose (null_words) is no calibration */
    char *sql = tl_xprintf("SELECT r.id, r.wall_ns, r.tally AS tally_json, s.facts AS facts_json FROM run r JOIN run_state s ON s.run = r.id "
                           "WHERE r.kind = 'calibrate' AND r.machine = '%.64s' AND s.state = 'done' AND json_extract(s.facts, '$.null_words') IS NULL "
                           "ORDER BY r.seq DESC LIMIT 1", machine_id);
    tl_status st = tl_store_select(&rows, store, sql, e);
    free(sql);
    *out = NULL;
    if (st != TL_OK) return st;
    const json_t *row = json_array_get(rows, 0), *p = nearest(tl_json_at(row, "facts.points"), streams);
    int64_t wall = tl_json_int(row, "wall_ns", 0);
    if (p == NULL) *out = json_null();
    else
        *out = json_pack("{s:O, s:I, s:f, s:O?, s:b, s:O, s:O, s:I, s:O, s:O, s:O}", "run", json_object_get(row, "id"), "wall_ns", (json_int_t)wall,
                         "age_s", (double)(tl_clock_wall_ns() - wall) / 1e9, "revision", tl_json_at(row, "tally.revision"), "same_revision",
                         same_revision(tl_json_at(row, "tally"), tally), "streams", json_object_get(p, "streams"), "rate",
                         json_object_get(p, "rate"), "planned_streams", (json_int_t)streams, "error_p99_ms", tl_json_at(p, "arrival.p99_ms"),
                         "ttft_bias_ms", tl_json_at(p, "ttft.bias_ms"), "clock", tl_json_at(row, "facts.clock"));
    json_decref(rows);
    return st;
}

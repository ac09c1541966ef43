/* What a run says in the end: for each cell the median of every metric with its interval, the bandwidth that was probed
 * around it, the prediction made from that, their ratio trial by trial, and whether the experiment's rules accept it. */
#include "run/run_impl.h"
#include "sample/sample.h"

#include <math.h>

static const char interval_text[] = "95 % bootstrap of the median (percentile, B = 2000, seed 1)";

static tl_status measured(json_t **out, tl_run_ctx *c, const char *cell_key, const char *name, const char *unit,
                          const run_series *s, tl_err *e) {
    tl_summary sum;
    tl_stat_summary(&sum, s->v, s->n, 1);
    tl_run_measured m = {.name = name, .unit = unit, .cell_key = cell_key, .statistic = "median", .interval = interval_text,
                         .number = s->n ? sum.median : NAN, .lo = sum.boot_lo, .hi = sum.boot_hi, .n = (int64_t)s->n};
    return run_store_measured(out, c, &m, e);
}

/* ---- per-metric medians and quantiles ---- */

/* Only those that the samples can bear: `tally show --percentiles` says how many the others need. */
static tl_status store_quantiles(tl_run_ctx *c, const char *cell_key, const tl_metric_desc *d, const run_series *s, tl_err *e) {
    static const struct { double q; const char *suffix, *statistic; } asked[] = {
        {0.9, "p90", "p90 (nearest rank)"}, {0.95, "p95", "p95 (nearest rank)"}, {0.99, "p99", "p99 (nearest rank)"}};
    tl_status st = TL_OK;
    for (size_t i = 0; st == TL_OK && i < TL_COUNT(asked); i++) {
        tl_quantile q;
        tl_stat_quantile(&q, s->v, s->n, asked[i].q, 0.95);
        if (!q.given) break; /* the further out, the more it needs */
        char name[64];
        snprintf(name, sizeof name, "%s_%s", d->name, asked[i].suffix);
        json_t *out = NULL;
        tl_run_measured m = {.name = name, .unit = d->unit, .cell_key = cell_key, .statistic = asked[i].statistic,
                             .interval = "95 % by order statistics", .number = q.value, .lo = q.lo, .hi = q.hi, .n = (int64_t)s->n};
        st = run_store_measured(&out, c, &m, e);
        json_decref(out);
    }
    return st;
}

static tl_status request_metrics(tl_run_ctx *c, const tl_run_cell *cell, const json_t *trials, json_t **decode_rate, tl_err *e) {
    static const struct { const char *name; bool tails; } names[] = {{"decode_rate", false}, {"ttft", true}, {"tpot", true},
                                                                     {"e2e", true}, {"prefill_rate", false}, {"tokens", false}};
    json_t *requests = NULL;
    tl_status st = tl_store_requests(&requests, c->spec->store, c->id, cell->key, e);
    for (size_t i = 0; st == TL_OK && i < TL_COUNT(names); i++) {
        const tl_metric_desc *d = tl_metric_find(names[i].name);
        run_series s = {0};
        json_t *out = NULL;
        run_series_requests(&s, requests, trials, d);
        if (s.n > 0) st = measured(&out, c, cell->key, d->name, d->unit, &s, e);
        if (st == TL_OK && names[i].tails) st = store_quantiles(c, cell->key, d, &s, e);
        run_series_free(&s);
        if (i == 0) *decode_rate = out;
        else json_decref(out);
    }
    json_decref(requests);
    return st;
}

/* Medians over the blocks of what is said of a block as a whole. */
static tl_status block_metrics(tl_run_ctx *c, const tl_run_cell *cell, const json_t *trials, tl_err *e) {
    tl_status st = TL_OK;
    for (const run_block_metric *b = run_block_metrics; st == TL_OK && b->name != NULL; b++) {
        run_series s = {0};
        json_t *out = NULL;
        run_series_blocks(&s, trials, cell->key, b->path);
        if (s.n > 0) st = measured(&out, c, cell->key, b->name, b->unit, &s, e);
        json_decref(out);
        run_series_free(&s);
    }
    return st;
}

/* ---- pairs of probe and trial ---- */

/* Mean of the probes before and after a trial, in bytes/s; NaN when one is missing. */
static double paired_bandwidth(const json_t *trial) {
    double before = tl_json_num(trial, "facts.bandwidth_before.bytes_per_s", NAN);
    double after = tl_json_num(trial, "facts.bandwidth_after.bytes_per_s", NAN);
    return (before + after) / 2;
}

static tl_status predict_number(double *out, tl_run_ctx *c, size_t cell, double bytes_per_s, tl_err *e) {
    json_t *bw = json_pack("{s:f, s:s, s:s, s:s, s:{s:s}}", "value", bytes_per_s / 1e9, "unit", "GB/s", "label", "measured",
                           "name", "bandwidth", "source", "run", c->id);
    json_t *arg = NULL, *value = NULL;
    tl_status st = run_predict_argument(&arg, c, cell, bw, e);
    if (st == TL_OK) st = c->spec->hooks.predict(&value, c->spec->hooks.ctx, arg, e);
    *out = tl_json_num(value, "value", NAN);
    json_decref(value);
    json_decref(arg);
    json_decref(bw);
    return st;
}

/* Ratio of each measured request to the prediction from the bandwidth around its own trial. */
static tl_status paired_series(run_series *bandwidth, run_series *ratio, tl_run_ctx *c, size_t cell, const json_t *trials, tl_err *e) {
    size_t i, k;
    json_t *t, *rate;
    json_array_foreach((json_t *)trials, i, t) {
        if (!tl_str_eq(tl_json_str(t, "cell", ""), c->cells[cell].key)) continue;
        double bw = paired_bandwidth(t), predicted;
        if (!isfinite(bw)) continue;
        tl_status st = predict_number(&predicted, c, cell, bw, e);
        if (st != TL_OK) return st;
        run_series_add(bandwidth, bw / 1e9, 0);
        json_array_foreach(tl_json_at(t, "facts.decode_rates"), k, rate)
            run_series_add(ratio, json_number_value(rate) / predicted, 0);
    }
    return TL_OK;
}

/* The input of that name anywhere in a value tree; borrowed. */
static json_t *find_input(json_t *value, const char *name) {
    size_t i;
    json_t *in;
    json_array_foreach(json_object_get(value, "inputs"), i, in) {
        if (tl_str_eq(tl_json_str(in, "role", ""), name) || tl_str_eq(tl_json_str(in, "name", ""), name)) return in;
        json_t *deeper = find_input(in, name);
        if (deeper != NULL) return deeper;
    }
    return NULL;
}

/* Stores a derived value of lua/calc with an interval and number taken from paired samples where given. */
static tl_status derived(json_t **out, tl_run_ctx *c, const char *cell_key, const char *formula, json_t *inputs,
                         const run_series *samples, tl_err *e) {
    char id[TL_STORE_ID];
    json_t *v = NULL;
    tl_status st = c->spec->hooks.formula(&v, c->spec->hooks.ctx, formula, inputs, e);
    if (st == TL_OK && samples != NULL && samples->n > 0) {
        tl_summary s;
        tl_stat_summary(&s, samples->v, samples->n, 1);
        json_object_set_new(v, "value", json_real(s.median));
        if (isfinite(s.boot_lo)) {
            json_object_set_new(v, "lo", json_real(s.boot_lo));
            json_object_set_new(v, "hi", json_real(s.boot_hi));
        }
        json_object_set_new(v, "formula", json_string("median over the trials of (measured / predicted from the bandwidth "
                                                      "probed around the trial)"));
    }
    if (st == TL_OK) st = run_store_tree(id, c, cell_key, formula, v, e);
    if (st == TL_OK) json_object_set_new(json_object_get(v, "source"), "value_id", json_string(id));
    if (out != NULL && st == TL_OK) *out = json_incref(v);
    json_decref(v);
    return st;
}

static tl_status stored_prediction(json_t **out, tl_run_ctx *c, size_t cell, json_t *bandwidth, const char *name, tl_err *e) {
    json_t *arg = NULL, *v = NULL;
    char id[TL_STORE_ID];
    *out = NULL;
    tl_status st = run_predict_argument(&arg, c, cell, bandwidth, e);
    if (st == TL_OK) st = c->spec->hooks.predict(&v, c->spec->hooks.ctx, arg, e);
    if (st == TL_OK && json_is_object(v)) {
        json_t *bytes = find_input(v, "bytes_per_token"); /* a value in its own right: figures use it */
        if (bytes != NULL && c->cells[cell].bytes_per_token == NULL && json_array_size(json_object_get(bytes, "inputs")) > 0) {
            st = run_store_tree(id, c, c->cells[cell].key, "bytes_per_token", bytes, e);
            if (st == TL_OK) json_object_set_new(json_object_get(bytes, "source"), "value_id", json_string(id));
            c->cells[cell].bytes_per_token = json_deep_copy(bytes);
        }
        if (st == TL_OK) st = run_store_tree(id, c, c->cells[cell].key, name, v, e);
        if (st == TL_OK) json_object_set_new(json_object_get(v, "source"), "value_id", json_string(id));
        if (st == TL_OK) *out = json_incref(v);
    }
    json_decref(v);
    json_decref(arg);
    return st;
}

tl_status run_store_prediction(tl_run_ctx *c, size_t cell, tl_err *e) {
    json_t *v = NULL;
    tl_status st = stored_prediction(&v, c, cell, c->bandwidth, "predicted", e);
    if (st == TL_OK && v != NULL)
        snprintf(c->cells[cell].prediction_id, TL_STORE_ID, "%s", tl_json_str(v, "source.value_id", ""));
    json_decref(v);
    return st;
}

static tl_status cell_summary(tl_run_ctx *c, size_t index, const json_t *trials, run_series *ratios, tl_err *e) {
    tl_run_cell *cell = &c->cells[index];
    json_t *rate = NULL, *bw = NULL, *paired = NULL, *in = NULL;
    run_series bandwidth = {0}, ratio = {0};
    tl_status st = TL_OK;
    if (cell->aborted) return TL_OK; /* what an overloaded server did answer is no fair sample: no median is made of it */
    if (cell->search) return run_store_search(c, cell, trials, e);
    TRY(block_metrics(c, cell, trials, e));
    TRY(request_metrics(c, cell, trials, &rate, e));
    if (rate == NULL) goto out;
    TRY(paired_series(&bandwidth, &ratio, c, index, trials, e));
    if (bandwidth.n == 0) goto out;
    TRY(measured(&bw, c, cell->key, "bandwidth_paired", "GB/s", &bandwidth, e));
    TRY(stored_prediction(&paired, c, index, bw, "predicted_paired", e));
    if (paired == NULL) goto out;
    in = json_pack("{s:O, s:O}", "measured", rate, "predicted", paired);
    TRY(derived(NULL, c, cell->key, "ratio", in, &ratio, e));
    for (size_t i = 0; i < ratio.n; i++) run_series_add(ratios, ratio.v[i], 0);
    if (cell->bytes_per_token != NULL) {
        json_decref(in);
        in = json_pack("{s:O, s:O}", "decode_rate", rate, "bytes_per_token", cell->bytes_per_token);
        TRY(derived(NULL, c, cell->key, "implied_bandwidth", in, NULL, e));
    }
out:
    run_series_free(&bandwidth);
    run_series_free(&ratio);
    json_decref(in);
    json_decref(rate);
    json_decref(bw);
    json_decref(paired);
    return st;
}

/* Over all cells: how well the law holds on this machine, with every cell's ratio as an input. */
static tl_status law_ratio(tl_run_ctx *c, const run_series *ratios, tl_err *e) {
    if (ratios->n == 0) return TL_OK;
    json_t *rows = NULL, *row;
    size_t i;
    tl_status st = tl_store_values(&rows, c->spec->store, c->id, NULL, "ratio", e);
    if (st != TL_OK) return st;
    tl_store_edge *edges = tl_xalloc(json_array_size(rows) * sizeof *edges);
    size_t n = 0;
    json_array_foreach(rows, i, row) edges[n++] = (tl_store_edge){tl_json_str(row, "id", ""), "ratio"};
    tl_summary s;
    tl_stat_summary(&s, ratios->v, ratios->n, 1);
    char id[TL_STORE_ID];
    tl_store_value v = {.run_id = c->id, .name = "law_ratio", .label = "derived", .number = s.median, .lo = s.boot_lo,
                        .hi = s.boot_hi, .interval = isfinite(s.boot_lo) ? interval_text : NULL, .n = (int64_t)ratios->n,
                        .unit = "1", .statistic = "median", .formula = "median of the ratios of all trials of all cells",
                        .edges = edges, .edges_n = n};
    st = n ? tl_store_value_add(id, c->spec->store, &v, e) : TL_OK;
    free(edges);
    json_decref(rows);
    return st;
}

/* ---- acceptance ---- */

static tl_status judge(tl_run_ctx *c, tl_run_result *out, const tl_run_cell *cell, const json_t *rule, tl_err *e) {
    const char *metric = tl_json_str(rule, "metric", "");
    json_t *rows = NULL;
    tl_status st = tl_store_values(&rows, c->spec->store, c->id, cell->key, metric, e);
    if (st != TL_OK) return st;
    double value = tl_json_num(rows, "0.number", NAN), min = tl_json_num(rule, "min", -INFINITY),
           max = tl_json_num(rule, "max", INFINITY);
    json_decref(rows);
    if (tl_str_eq(tl_json_str(rule, "within", ""), "predicted")) {
        st = tl_store_values(&rows, c->spec->store, c->id, cell->key, "predicted", e);
        if (st != TL_OK) return st;
        min = tl_json_num(rows, "0.lo", NAN);
        max = tl_json_num(rows, "0.hi", NAN);
        json_decref(rows);
    }
    bool ok = value >= min && value <= max;
    out->accepted = out->accepted && ok;
    json_array_append_new(out->accept, json_pack("{s:s, s:s, s:o, s:o, s:o, s:b}", "cell", cell->key, "metric", metric, "value",
                                                 tl_json_real(value), "min", tl_json_real(min), "max", tl_json_real(max), "ok", ok));
    return TL_OK;
}

tl_status run_summary(tl_run_ctx *c, tl_run_result *out, tl_err *e) {
    json_t *show = NULL, *rule;
    run_series ratios = {0};
    size_t k;
    tl_status st = TL_OK;
    out->accepted = true;
    out->accept = json_array();
    TRY(tl_store_run_show(&show, c->spec->store, c->id, e));
    TRY(tl_store_begin(c->spec->store, e));
    for (size_t i = 0; i < c->n_cells; i++) TRY(cell_summary(c, i, json_object_get(show, "trials"), &ratios, e));
    TRY(law_ratio(c, &ratios, e));
    TRY(tl_store_commit(c->spec->store, e));
    for (size_t i = 0; i < c->n_cells; i++)
        json_array_foreach((json_t *)c->spec->plan->accept, k, rule) TRY(judge(c, out, &c->cells[i], rule, e));
out:
    if (st != TL_OK) tl_store_rollback(c->spec->store);
    run_series_free(&ratios);
    json_decref(show);
    return st;
}

/* Two conditions that were measured, against each other: which cells belong together, which values of them, and what else
 * differed besides what was meant to. The verdict itself is sample's. */
#include "run/run_impl.h"

#include <math.h>

/* What is compared: of each request, or of each block (one value a round). */
typedef struct measure {
    const char *name, *unit;
    bool higher_is_better;
    const char *of_block; /* path below a trial's facts; NULL: a metric of requests */
    const char *over;     /* of searches over this alone; NULL: of any block */
} measure;

static const char *const usual[] = {"ttft", "tpot", "decode_rate", "prefill_rate", "e2e", "throughput", "goodput", "users_at_slo", "rate_at_slo"};

static bool find_measure(measure *out, const char *name) {
    static const measure answers[] = {{"users_at_slo", "1", true, "search.answer.value", "users"}, {"rate_at_slo", "req/s", true, "search.answer.value", "rate"}};
    for (size_t i = 0; i < TL_COUNT(answers); i++)
        if (tl_str_eq(answers[i].name, name)) return *out = answers[i], true;
    for (const run_block_metric *b = run_block_metrics; b->name != NULL; b++)
        if (tl_str_eq(b->name, name)) return *out = (measure){b->name, b->unit, b->higher_is_better, b->path, NULL}, true;
    const tl_metric_desc *d = tl_metric_find(name);
    if (d != NULL) *out = (measure){d->name, d->unit, d->higher_is_better, NULL, NULL};
    return d != NULL;
}

static tl_status no_measure(const char *name, tl_err *e) {
    const char *names[64];
    size_t n = 0;
    names[n++] = "users_at_slo", names[n++] = "rate_at_slo";
    for (const run_block_metric *b = run_block_metrics; b->name != NULL; b++) names[n++] = b->name;
    for (size_t i = 0; i < tl_metric_count() && n < TL_COUNT(names); i++) names[n++] = tl_metric_at(i)->name;
    tl_buf all;
    tl_buf_init(&all, 0);
    for (size_t i = 0; i < n; i++) tl_buf_fmt(&all, "%s%s", i ? ", " : "", names[i]);
    const char *near = tl_nearest(name, names, n);
    tl_fail(e, TL_INVALID, "there is no metric '%.60s'%s%s%s", name, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
    tl_remedy(e, "the metrics are: %s", all.p);
    tl_buf_free(&all);
    return TL_INVALID;
}

/* ---- the values of a cell ------------------------------------------------------------------------------------------ */

typedef struct side {
    const json_t *show, *cell;
    json_t *requests; /* of the cell */
} side;

static bool searches_over(const json_t *trials, const char *cell_key, const char *over) {
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)trials, i, t)
        if (tl_str_eq(tl_json_str(t, "cell", ""), cell_key) && tl_json_at(t, "facts.search") != NULL)
            return tl_str_eq(tl_json_str(t, "facts.search.over", ""), over);
    return false;
}

static void values_of(run_series *out, const side *s, const measure *m) {
    const json_t *trials = json_object_get(s->show, "trials");
    const char *key = tl_json_str(s->cell, "key", "");
    if (m->over != NULL && !searches_over(trials, key, m->over)) return;
    if (m->of_block == NULL) run_series_requests(out, s->requests, trials, tl_metric_find(m->name));
    else run_series_blocks(out, trials, key, m->of_block);
}

/* ---- one metric of one pair of cells --------------------------------------------------------------------------------- */

static json_t *side_json(const run_series *s) {
    return json_pack("{s:o, s:I, s:I}", "median", tl_json_real(tl_stat_median(s->v, s->n)), "n", (json_int_t)s->n, "undefined",
                     (json_int_t)s->undefined);
}

/* The comparison, or why there is none. */
static json_t *compare_series(const run_series *x, const run_series *y, const tl_compare_opts *o) {
    if (x->n == 0 || y->n == 0) return json_pack("{s:s}", "why_not", x->n == 0 ? "A has no value" : "B has no value");
    const tl_rounds a = {x->v, x->round, x->n}, b = {y->v, y->round, y->n};
    tl_comparison c;
    tl_err why = {0};
    if (tl_stat_compare_rounds(&c, &a, &b, o, &why) != TL_OK) return json_pack("{s:s}", "why_not", why.msg);
    return tl_stat_comparison_json(&c);
}

/* Adds nothing where neither side has a value. */
static void compare_metric(json_t *into, const side *a, const side *b, const measure *m, double noise_limit) {
    run_series x = {0}, y = {0};
    values_of(&x, a, m);
    values_of(&y, b, m);
    if (x.n > 0 || y.n > 0) {
        tl_compare_opts o = {.paired = a->show == b->show, .higher_is_better = m->higher_is_better, .noise_limit = noise_limit, .seed = 1};
        json_t *j = compare_series(&x, &y, &o);
        json_object_update_new(j, json_pack("{s:s, s:s, s:b, s:o, s:o}", "metric", m->name, "unit", m->unit, "higher_is_better",
                                            m->higher_is_better, "a", side_json(&x), "b", side_json(&y)));
        json_array_append_new(into, j);
    }
    run_series_free(&x);
    run_series_free(&y);
}

static const char *label_of(const json_t *cell) { return tl_json_str(cell, "facts.label", tl_json_str(cell, "key", "?")); }

static json_t *compare_cells(const side *a, const side *b, const tl_run_compare_spec *spec) {
    json_t *list = json_array();
    measure m;
    for (size_t i = 0; i < spec->n_metrics; i++)
        if (find_measure(&m, spec->metrics[i])) compare_metric(list, a, b, &m, spec->noise_limit);
    for (size_t i = 0; spec->n_metrics == 0 && i < TL_COUNT(usual); i++)
        if (find_measure(&m, usual[i])) compare_metric(list, a, b, &m, spec->noise_limit);
    return json_pack("{s:O?, s:O?, s:s, s:s, s:o}", "a", json_object_get(a->cell, "key"), "b", json_object_get(b->cell, "key"), "a_label",
                     label_of(a->cell), "b_label", label_of(b->cell), "metrics", list);
}

/* ---- which cells belong together -------------------------------------------------------------------------------------- */

/* Equal on every axis that neither selector speaks of. */
static bool same_but(const json_t *a, const json_t *b, const char *sa, const char *sb) {
    const json_t *sides[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        const char *name;
        json_t *v;
        json_object_foreach((json_t *)sides[i], name, v) {
            const json_t *w = json_object_get(sides[1 - i], name);
            if (tl_plan_selector_names(sa, name) || tl_plan_selector_names(sb, name)) continue;
            if (w == NULL || !json_equal(v, w)) return false;
        }
    }
    return true;
}

static tl_status two_partners(const json_t *cell, const char *selector, tl_err *e) {
    tl_fail(e, TL_INVALID, "two cells of side B belong to %s", label_of(cell));
    return tl_remedy(e, "say which: B{axis=value}%s", *selector ? ", with one more axis" : "");
}

/* The one cell of B for a cell of A; *out is NULL when there is none. */
static tl_status partner(const json_t **out, const json_t *cell, const json_t *show_b, const tl_run_compare_spec *spec, tl_err *e) {
    size_t i;
    json_t *c;
    *out = NULL;
    json_array_foreach(json_object_get(show_b, "cells"), i, c) {
        const json_t *axes = json_object_get(c, "axes");
        if (!tl_plan_cell_fits(axes, spec->b.selector)) continue;
        if (!same_but(json_object_get(cell, "axes"), axes, spec->a.selector, spec->b.selector)) continue;
        if (*out != NULL) return two_partners(cell, spec->b.selector, e);
        *out = c;
    }
    return TL_OK;
}

static tl_status compare_pair(json_t *into, const side *a, const side *b, const tl_run_compare_spec *spec, tl_err *e) {
    side sa = *a, sb = *b;
    tl_status st = TL_OK;
    TRY(tl_store_requests(&sa.requests, spec->store, spec->a.run_id, tl_json_str(a->cell, "key", ""), e));
    TRY(tl_store_requests(&sb.requests, spec->store, spec->b.run_id, tl_json_str(b->cell, "key", ""), e));
    json_array_append_new(into, compare_cells(&sa, &sb, spec));
out:
    json_decref(sa.requests);
    json_decref(sb.requests);
    return st;
}

static json_t *labels_without_partner(const json_t *show, const char *selector, const json_t *pairs, const char *which) {
    json_t *list = json_array(), *c, *p;
    size_t i, k;
    json_array_foreach(json_object_get(show, "cells"), i, c) {
        bool has = !tl_plan_cell_fits(json_object_get(c, "axes"), selector);
        json_array_foreach((json_t *)pairs, k, p) has = has || tl_str_eq(tl_json_str(p, which, ""), tl_json_str(c, "key", ""));
        if (!has) json_array_append_new(list, json_string(label_of(c)));
    }
    return list;
}

static tl_status nothing_fits(const tl_run_compare_spec *spec, const json_t *alone_a, const json_t *alone_b, tl_err *e) {
    char *a = json_dumps(alone_a, JSON_COMPACT), *b = json_dumps(alone_b, JSON_COMPACT);
    bool same = tl_str_eq(spec->a.run_id, spec->b.run_id);
    tl_fail(e, TL_NOT_FOUND, "no cell of A belongs to a cell of B: A has %s, B has %s", a, b);
    tl_remedy(e, "%s", same ? "choose both sides by an axis: RUN{axis=one} RUN{axis=other}" : "cells belong together when all axes but those named in {} are equal");
    free(a);
    free(b);
    return TL_NOT_FOUND;
}

static json_t *environment_of(const json_t *show) {
    return json_pack("{s:O?, s:O?, s:O?, s:O?}", "engine", tl_json_at(show, "engines.0.facts"), "machine", tl_json_at(show, "machine.facts"),
                     "tally", json_object_get(show, "tally"), "script_sha256", tl_json_at(show, "experiment.id"));
}

static json_t *differences(const json_t *a, const json_t *b) {
    json_t *x = environment_of(a), *y = environment_of(b), *out = run_environment_diff(x, y, "a", "b");
    json_decref(x);
    json_decref(y);
    return out;
}

tl_status tl_run_compare(json_t **out, const tl_run_compare_spec *spec, tl_err *e) {
    json_t *shows[2] = {NULL, NULL}, *pairs = json_array(), *alone_a = NULL, *alone_b = NULL, *c;
    bool same = tl_str_eq(spec->a.run_id, spec->b.run_id);
    measure m;
    size_t i;
    tl_status st = TL_OK;
    *out = NULL;
    for (i = 0; i < spec->n_metrics; i++)
        if (!find_measure(&m, spec->metrics[i])) TRY(no_measure(spec->metrics[i], e));
    TRY(tl_store_run_show(&shows[0], spec->store, spec->a.run_id, e));
    if (same) shows[1] = json_incref(shows[0]);
    else TRY(tl_store_run_show(&shows[1], spec->store, spec->b.run_id, e));
    json_array_foreach(json_object_get(shows[0], "cells"), i, c) {
        side a = {.show = shows[0], .cell = c}, b = {.show = shows[1]};
        if (!tl_plan_cell_fits(json_object_get(c, "axes"), spec->a.selector)) continue;
        TRY(partner(&b.cell, c, shows[1], spec, e));
        if (b.cell != NULL && !(same && b.cell == c)) TRY(compare_pair(pairs, &a, &b, spec, e));
    }
    alone_a = labels_without_partner(shows[0], spec->a.selector, pairs, "a");
    alone_b = labels_without_partner(shows[1], spec->b.selector, pairs, "b");
    if (json_array_size(pairs) == 0) TRY(nothing_fits(spec, alone_a, alone_b, e));
    *out = json_pack("{s:{s:s, s:s}, s:{s:s, s:s}, s:b, s:s, s:O, s:O, s:O, s:o}", "a", "run", spec->a.run_id, "selector", spec->a.selector, "b",
                     "run", spec->b.run_id, "selector", spec->b.selector, "interleaved", same, "label", "derived", "cells", pairs, "only_a",
                     alone_a, "only_b", alone_b, "environment", differences(shows[0], shows[1]));
out:
    json_decref(alone_a);
    json_decref(alone_b);
    json_decref(pairs);
    json_decref(shows[0]);
    json_decref(shows[1]);
    return st;
}

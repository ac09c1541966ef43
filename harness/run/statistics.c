/* What the samples of a run can bear: quantiles with their intervals or the number of samples they need, and warnings where
 * a median with a narrow interval still does not describe them. */
#include "run/run_impl.h"

static json_t *quantiles(const run_series *s) {
    static const double asked[] = {0.5, 0.9, 0.95, 0.99};
    json_t *list = json_array();
    for (size_t i = 0; i < TL_COUNT(asked); i++) {
        tl_quantile q;
        tl_stat_quantile(&q, s->v, s->n, asked[i], 0.95);
        json_array_append_new(list, json_pack("{s:f, s:o, s:o, s:o, s:I}", "q", asked[i], "value", tl_json_real(q.value), "lo", tl_json_real(q.lo),
                                              "hi", tl_json_real(q.hi), "n_needed", (json_int_t)q.n_needed));
    }
    return list;
}

static json_t *warnings(const run_series *s) {
    tl_warning found[TL_WARN_KINDS];
    json_t *list = json_array();
    size_t n = tl_stat_warnings(found, s->v, s->n);
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "name", found[i].name, "values", (json_int_t)found[i].values, "text", found[i].text));
    return list;
}

/* What is wrong with single answers, where it spoils what is said of the cell. */
static const struct {
    unsigned flag;
    const char *text;
} flaws[] = {
    {TL_FLAG_BURST, "arrived all at once: their TPOT and decode rate say nothing of the engine. Either the server does not stream (ask `tally "
                    "doctor ENDPOINT`), or this client did not get the processor while they came: leave a core to it."},
    {TL_FLAG_STEPS_40MS, "came in steps of 40 ms: delayed acknowledgements against Nagle's algorithm; have the server or proxy set TCP_NODELAY."},
    {TL_FLAG_STALL, "paused for more than 250 ms and ten times their usual gap; look for another load, swapping or preemption at that moment."},
    {TL_FLAG_ENCODED, "were compressed on the way, which delays tokens; switch compression off in the server or proxy."},
    {TL_FLAG_NOT_STREAM, "were one plain answer, not a stream: they have no TTFT of their own."},
    {TL_FLAG_N_DIFFERS, "have more than one token count; the cause stands with each request (n_cause)."},
    {TL_FLAG_CLOCK, "have engine times longer than what passed on our clock: the engine counts wrongly, or this client read late."},
};

static bool has_flag(const json_t *request, const char *name) {
    size_t i;
    json_t *f;
    json_array_foreach(tl_json_at(request, "metrics.flags"), i, f)
        if (tl_str_eq(json_string_value(f), name)) return true;
    return false;
}

static const char *flag_word(unsigned flag) {
    unsigned i = 0;
    while (flag >> i != 1) i++;
    return tl_flag_name(i);
}

static void of_answers(json_t *into, const char *cell, const json_t *requests) {
    json_t *found = json_array(), *r;
    for (size_t k = 0; k < TL_COUNT(flaws); k++) {
        const char *word = flag_word(flaws[k].flag);
        size_t i, n = 0, hit = 0;
        json_array_foreach((json_t *)requests, i, r) {
            if (!tl_str_eq(tl_json_str(r, "role", ""), "measured") || !tl_str_eq(tl_json_str(r, "outcome", ""), "ok")) continue;
            n++;
            hit += has_flag(r, word);
        }
        if (hit == 0) continue;
        char *text = tl_xprintf("%zu of %zu answers %s", hit, n, flaws[k].text);
        json_array_append_new(found, json_pack("{s:s, s:I, s:s}", "name", word, "values", (json_int_t)hit, "text", text));
        free(text);
    }
    if (json_array_size(found) > 0)
        json_array_append_new(into, json_pack("{s:s, s:s, s:s, s:[], s:O}", "cell", cell, "metric", "answers", "unit", "1", "quantiles", "warnings", found));
    json_decref(found);
}

static void of_cell(json_t *into, const char *cell, const json_t *requests, const json_t *trials) {
    static const char *const names[] = {"ttft", "tpot", "decode_rate", "e2e"};
    for (size_t i = 0; i < TL_COUNT(names); i++) {
        const tl_metric_desc *d = tl_metric_find(names[i]);
        run_series s = {0};
        run_series_requests(&s, requests, trials, d);
        if (s.n > 0)
            json_array_append_new(into, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "cell", cell, "metric", d->name, "unit", d->unit, "n",
                                                  (json_int_t)s.n, "undefined", (json_int_t)s.undefined, "quantiles", quantiles(&s), "warnings",
                                                  warnings(&s)));
        run_series_free(&s);
    }
}

tl_status tl_run_statistics(json_t **out, tl_store *store, const json_t *show, tl_err *e) {
    json_t *list = json_array(), *cell;
    size_t i;
    tl_status st = TL_OK;
    json_array_foreach(json_object_get(show, "cells"), i, cell) {
        json_t *requests = NULL;
        const char *key = tl_json_str(cell, "key", "");
        st = tl_store_requests(&requests, store, tl_json_str(show, "id", ""), key, e);
        if (st == TL_OK) {
            of_cell(list, key, requests, json_object_get(show, "trials"));
            of_answers(list, key, requests);
        }
        json_decref(requests);
        if (st != TL_OK) break;
    }
    *out = st == TL_OK ? list : NULL;
    if (st != TL_OK) json_decref(list);
    return st;
}

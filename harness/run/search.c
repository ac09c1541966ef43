/* How many users, or which rate, meet a promise: one search within one trial. Every load tried is looked at up to four
 * times with more requests each, until it is shown to meet the SLO or to miss it. The looks share one error of 5 %
 * (Bonferroni over looks and terms), so looking early costs no honesty. What stays undecided becomes the interval. */
#include "run/run_impl.h"

#include <math.h>

enum { LOOKS = 4 };
static const double error_share = 0.05;

static double confidence_of(const tl_slo_spec *slo) { return 1 - error_share / (double)(LOOKS * slo->n); }

/* All of n requests good leaves the lower bound (alpha / 2)^(1/n) (Clopper and Pearson with k = n). */
size_t run_search_fewest(const tl_slo_spec *slo) {
    double strictest = 0;
    for (size_t i = 0; i < slo->n; i++) strictest = fmax(strictest, slo->v[i].share);
    if (strictest <= 0) return 1;
    return (size_t)ceil(log((1 - confidence_of(slo)) / 2) / log(strictest));
}

/* What was seen at one load, over its looks. */
typedef struct seen {
    size_t n, good[TL_SLO_TERMS];
    bool aborted;
    json_t *windows;
    char reason[512];
} seen;

static void count(seen *s, const tl_load_result *r, const tl_run_load *load) {
    for (size_t i = 0; i < r->n; i++) {
        if (!run_item_counts(load, r->t_schedule, &r->items[i])) continue;
        tl_metrics m;
        tl_metrics_of(&m, &r->items[i].request);
        s->n++;
        for (size_t k = 0; k < load->slo.n; k++) s->good[k] += tl_slo_meets(&load->slo.v[k], &m);
        tl_metrics_free(&m);
    }
    if (run_ended_by_rule(r)) {
        s->aborted = true;
        snprintf(s->reason, sizeof s->reason, "%s", r->reason);
    }
}

/* The first ruler that was too short is the one to keep: it makes the run invalid. */
static void keep_ruler(tl_run_block *b, const tl_load_result *r, const tl_run_load *load, const json_t *window) {
    if (!tl_json_bool(b->facts, "ruler.ok", true)) return;
    json_object_set_new(b->facts, "ruler", run_ruler(b->c, r, load, tl_json_num(window, "lateness.p99_ms", NAN)));
}

static tl_status look(seen *s, tl_run_block *b, const tl_run_load *load, tl_err *e) {
    tl_load_result r = {0};
    tl_status st = run_send(&r, b, load, "measured", e);
    if (st == TL_OK) {
        json_t *window = run_window(&r, load);
        count(s, &r, load);
        keep_ruler(b, &r, load, window);
        json_array_append_new(s->windows, window);
    }
    tl_load_result_free(&r);
    return st;
}

static tl_slo_verdict judge(bool *seems_met, const seen *s, const tl_slo_spec *slo) {
    tl_slo_verdict all = TL_SLO_MET;
    *seems_met = !s->aborted && s->n > 0;
    for (size_t k = 0; k < slo->n; k++) {
        tl_share share;
        tl_stat_share(&share, s->good[k], s->n, confidence_of(slo));
        tl_slo_verdict v = tl_slo_judge(&share, slo->v[k].share);
        if (v == TL_SLO_MISSED || (v == TL_SLO_UNDECIDED && all == TL_SLO_MET)) all = v;
        if (all == TL_SLO_MISSED || !(share.value >= slo->v[k].share)) *seems_met = false;
    }
    return s->aborted ? TL_SLO_MISSED : all;
}

static void show_load(const tl_run_block *b, const tl_run_load *load, double x, const seen *s) {
    char detail[96];
    tl_progress *p = b->c->progress;
    if (p == NULL) return;
    snprintf(detail, sizeof detail, "search at %g %s, %zu requests seen", x, load->open ? "req/s" : "users", s->n);
    tl_progress_set(p, p->done, detail, (double)tl_clock_now() / 1e9);
}

/* Requests of one look. Users start together, so the first of each meets an idle server and is not counted; each user
 * sends at least two. */
static tl_run_load load_of_look(const tl_run_load *load, double x, size_t wanted) {
    tl_run_load l = *load;
    l.requests = wanted;
    if (load->open) {
        l.rate = x;
        return l;
    }
    l.users = (size_t)x;
    l.edge_requests = l.users;
    l.requests = l.users + (wanted > l.users ? wanted : l.users);
    return l;
}

static tl_status try_load(seen *s, tl_slo_verdict *verdict, bool *seems_met, tl_run_block *b, const tl_run_load *load, double x, tl_err *e) {
    size_t fewest = run_search_fewest(&load->slo);
    *verdict = TL_SLO_UNDECIDED;
    for (size_t i = 0; i < LOOKS && *verdict == TL_SLO_UNDECIDED; i++) {
        size_t total = i == 0 ? (fewest + 3) / 4 : fewest << (i - 1);
        if (total > load->requests) total = load->requests;
        if (total <= s->n) continue;
        if (run_stopping(b->c)) return tl_fail(e, TL_CANCELLED, "stopped in a search, at %g %s", x, load->open ? "req/s" : "users");
        show_load(b, load, x, s);
        tl_run_load l = load_of_look(load, x, total - s->n);
        tl_status st = look(s, b, &l, e);
        if (st != TL_OK) return st;
        *verdict = judge(seems_met, s, &load->slo);
    }
    return TL_OK;
}

/* ---- what is told of it ------------------------------------------------------------------------------------------ */

static const char *const verdict_names[] = {[TL_SLO_MET] = "met", [TL_SLO_MISSED] = "missed", [TL_SLO_UNDECIDED] = "undecided"};

static json_t *step_json(const seen *s, const tl_search_step *step, const tl_slo_spec *slo) {
    json_t *terms = json_array();
    for (size_t k = 0; k < slo->n; k++) {
        tl_slo_spec one = {.v = {slo->v[k]}, .n = 1};
        char *text = tl_slo_text(&one);
        tl_share share;
        tl_stat_share(&share, s->good[k], s->n, confidence_of(slo));
        json_array_append_new(terms, json_pack("{s:s, s:I, s:I, s:o, s:f, s:f}", "term", text, "good", (json_int_t)share.k, "n", (json_int_t)share.n,
                                               "share", tl_json_real(share.value), "lo", share.lo, "hi", share.hi));
        free(text);
    }
    return json_pack("{s:f, s:s, s:b, s:I, s:o, s:O, s:s?}", "load", step->load, "verdict", verdict_names[step->verdict], "seems_met", step->seems_met,
                     "requests", (json_int_t)s->n, "terms", terms, "windows", s->windows, "aborted", s->aborted ? s->reason : NULL);
}

static void load_text(char out[48], double x, const json_t *search) {
    bool users = tl_str_eq(tl_json_str(search, "over", ""), "users");
    snprintf(out, 48, "%.4g %s", x, !users ? "req/s" : x == 1 ? "user" : "users");
}

/* Why the smallest load that misses does so: its worst term, or the rule that ended it. */
static void why_missed(tl_buf *out, const json_t *search, double load) {
    json_t *step, *t;
    size_t i, k;
    json_array_foreach(json_object_get(search, "steps"), i, step) {
        if (tl_json_num(step, "load", NAN) != load) continue;
        const char *aborted = tl_json_str(step, "aborted", NULL);
        const json_t *worst = NULL;
        json_array_foreach(json_object_get(step, "terms"), k, t)
            if (worst == NULL || tl_json_num(t, "share", 1) < tl_json_num(worst, "share", 1)) worst = t;
        if (aborted != NULL) tl_buf_fmt(out, ": %s", aborted);
        else tl_buf_fmt(out, ": %" PRId64 " of %" PRId64 " requests met %s", tl_json_int(worst, "good", 0), tl_json_int(worst, "n", 0), tl_json_str(worst, "term", ""));
        return;
    }
}

static char *sentence(const json_t *search) {
    char value[48], missed[48];
    const json_t *a = json_object_get(search, "answer");
    double v = tl_json_num(a, "value", NAN), lo = tl_json_num(a, "lo", NAN), hi = tl_json_num(a, "hi", NAN), miss = tl_json_num(a, "missed_at", NAN);
    const char *slo = tl_json_str(search, "slo", "");
    tl_buf out;
    tl_buf_init(&out, 0);
    load_text(value, v, search);
    load_text(missed, miss, search);
    tl_buf_str(&out, v > 0 ? value : "no load tried");
    if (v > 0 && lo < hi) tl_buf_fmt(&out, " (95 %% interval %.4g to %.4g)", lo, hi);
    tl_buf_fmt(&out, " %s %s", v == 1 || !(v > 0) ? "gets" : "get", slo);
    if (tl_json_bool(a, "unbounded", false)) {
        tl_buf_fmt(&out, ", and nothing tried was shown to miss it: %s", v > 0 ? "raise schedule.to" : "allow more `requests` a load");
    } else {
        tl_buf_fmt(&out, "; %s miss%s it", missed, miss == 1 ? "es" : "");
        why_missed(&out, search, miss);
    }
    return tl_buf_take(&out);
}

static void answer(json_t *search, const tl_search *s) {
    tl_search_result a;
    tl_search_answer(&a, s);
    json_object_set_new(search, "answer", json_pack("{s:f, s:o, s:o, s:o, s:b}", "value", a.value, "lo", tl_json_real(a.lo), "hi", tl_json_real(a.hi),
                                                    "missed_at", tl_json_real(a.missed_at), "unbounded", a.unbounded));
    char *text = sentence(search);
    json_object_set_new(search, "sentence", json_string(text));
    free(text);
}

tl_status run_search(tl_run_block *b, const tl_run_load *load, tl_err *e) {
    const json_t *schedule = json_object_get(b->cell->workload, "schedule");
    tl_search s = {.whole = !load->open, .from = tl_json_num(schedule, "from", 1), .to = tl_json_num(schedule, "to", 1),
                   .resolution = tl_json_num(schedule, "resolution", 0.1)};
    char *slo = tl_slo_text(&load->slo);
    json_t *steps = json_array(), *search = json_pack("{s:s, s:s, s:f, s:f, s:f, s:o}", "slo", slo, "over", load->open ? "rate" : "users", "from", s.from,
                                                      "to", s.to, "confidence", confidence_of(&load->slo), "steps", steps);
    double x;
    tl_status st = TL_OK;
    free(slo);
    json_object_set_new(b->facts, "search", search);
    while (st == TL_OK && tl_search_next(&s, &x)) {
        seen w = {.windows = json_array()};
        tl_slo_verdict verdict;
        bool seems_met = false;
        st = try_load(&w, &verdict, &seems_met, b, load, x, e);
        if (st == TL_OK) {
            tl_search_add(&s, x, verdict, seems_met);
            json_array_append_new(steps, step_json(&w, &s.v[s.n - 1], &load->slo));
        }
        json_decref(w.windows);
    }
    if (st == TL_OK) answer(search, &s);
    return st;
}

/* ---- the value of a cell ------------------------------------------------------------------------------------------ */

tl_status run_store_search(tl_run_ctx *c, const tl_run_cell *cell, const json_t *trials, tl_err *e) {
    double *v = tl_xalloc((json_array_size(trials) + 1) * sizeof *v), lo = INFINITY, hi = -INFINITY;
    size_t n = 0, i;
    json_t *t, *sentences = json_array();
    const json_t *first = NULL;
    bool bounded = true;
    json_array_foreach((json_t *)trials, i, t) {
        const json_t *search = tl_json_at(t, "facts.search"), *a = json_object_get(search, "answer");
        if (a == NULL || !tl_str_eq(tl_json_str(t, "cell", ""), cell->key)) continue;
        if (first == NULL) first = search;
        v[n++] = tl_json_num(a, "value", NAN);
        lo = fmin(lo, tl_json_num(a, "lo", NAN));
        hi = fmax(hi, tl_json_num(a, "hi", NAN));
        if (tl_json_bool(a, "unbounded", false)) bounded = false;
        json_array_append(sentences, json_object_get(search, "sentence"));
    }
    tl_status st = TL_OK;
    if (n > 0) {
        bool users = tl_str_eq(tl_json_str(first, "over", ""), "users");
        json_t *source = json_pack("{s:O, s:I, s:O, s:b}", "slo", json_object_get(first, "slo"), "searches", (json_int_t)n, "sentences", sentences,
                                   "unbounded", !bounded), *out = NULL;
        tl_run_measured m = {.name = users ? "users_at_slo" : "rate_at_slo", .unit = users ? "1" : "req/s", .cell_key = cell->key,
                             .statistic = "median (nearest rank)", .interval = "from the smallest load shown to meet it to the largest not shown to miss it, over all searches",
                             .number = tl_stat_nearest_rank(v, n, 0.5) /* half a user is none */, .lo = bounded ? lo : NAN, .hi = bounded ? hi : NAN, .n = (int64_t)n, .source = source};
        st = run_store_measured(&out, c, &m, e);
        json_decref(out);
        json_decref(source);
    }
    json_decref(sentences);
    free(v);
    return st;
}

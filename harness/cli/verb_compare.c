/* tally compare: two conditions against each other, with an interval and a verdict; "no difference shown" is one. */
#include "cli/project.h"

#include <math.h>

static const tl_option options[] = {
    {.name = "metric", .arg = "NAME", .help = "only this metric (ttft, tpot, decode_rate, prefill_rate, e2e, throughput, goodput, users_at_slo ...)", .many = true},
    {.name = "noise", .arg = "PERCENT", .help = "an interval narrower than ± this, around no difference, shows that there is none", .otherwise = "5"},
    {0}};
static const tl_example examples[] = {
    {"tally compare bandwidth-law{model=small-q4_0} bandwidth-law{model=large-q4_0}", "two cells of one run, paired round by round"},
    {"tally compare users-served{slots=1} users-served{slots=4}", "cells that are equal on all other axes belong together"},
    {"tally compare bandwidth-law#01J9AB bandwidth-law", "an earlier run with the newest, cell by cell"},
    {"tally compare 01J9AB 01J9CD --metric decode_rate --json", "two runs by the beginnings of their ids, one metric"},
    {0}};
static const tl_exit exits[] = {{0, "B is not shown to be slower in anything that was compared"},
                                {1, "B is slower in at least one metric"},
                                {2, "the command line is wrong, or names no pair of cells"},
                                {3, "a run is INVALID: its ruler was too short"},
                                {4, "there is no such run"},
                                {0, NULL}};

static const char *number(tl_arena *a, double x) {
    if (!isfinite(x)) return "–";
    int digits = fabs(x) >= 100 ? 0 : fabs(x) >= 10 ? 1 : fabs(x) >= 1 ? 2 : 3;
    return tl_arena_printf(a, "%.*f", digits, x);
}

/* "+12.3 % [+10.1 … +14.0]": what B is more or less than A. */
static const char *effect(tl_arena *a, const json_t *m) {
    double r = tl_json_num(m, "ratio", NAN), lo = tl_json_num(m, "lo", NAN), hi = tl_json_num(m, "hi", NAN);
    if (!isfinite(r)) return "–";
    if (!isfinite(lo)) return tl_arena_printf(a, "%+.1f %%", (r - 1) * 100);
    return tl_arena_printf(a, "%+.1f %% [%+.1f … %+.1f]", (r - 1) * 100, (lo - 1) * 100, (hi - 1) * 100);
}

static const char *verdict(tl_arena *a, const json_t *m) {
    const char *v = tl_json_str(m, "verdict", NULL), *why = tl_json_str(m, "why_not", NULL);
    int64_t needs = tl_json_int(m, "needs_n", 0);
    if (v == NULL) return tl_arena_printf(a, "not compared: %s", why ? why : "?");
    return needs ? tl_arena_printf(a, "%s: needs n ≥ %" PRId64 " rounds a side", v, needs) : v;
}

static void print_cell(tl_cli *c, const json_t *cell) {
    static const char *const head[] = {"metric", "A median", "B median", "B against A", "p", "rounds", "verdict on B"};
    size_t n = json_array_size(json_object_get(cell, "metrics")), w = TL_COUNT(head), i;
    const char **t = tl_xalloc((n + 1) * w * sizeof *t);
    tl_arena *a = tl_arena_new();
    json_t *m;
    memcpy(t, head, sizeof head);
    json_array_foreach(json_object_get(cell, "metrics"), i, m) {
        const char **row = t + (i + 1) * w;
        int64_t na = tl_json_int(m, "n_a", 0), nb = tl_json_int(m, "n_b", 0);
        row[0] = tl_arena_printf(a, "%s %s", tl_json_str(m, "metric", ""), tl_json_str(m, "unit", ""));
        row[1] = number(a, tl_json_num(m, "a.median", NAN));
        row[2] = number(a, tl_json_num(m, "b.median", NAN));
        row[3] = effect(a, m);
        row[4] = isfinite(tl_json_num(m, "p", NAN)) ? tl_arena_printf(a, "%.4f", tl_json_num(m, "p", NAN)) : "–";
        row[5] = na == nb ? tl_arena_printf(a, "%" PRId64, na) : tl_arena_printf(a, "%" PRId64 ", %" PRId64, na, nb);
        row[6] = verdict(a, m);
    }
    const char *la = tl_json_str(cell, "a_label", ""), *lb = tl_json_str(cell, "b_label", "");
    if (tl_str_eq(la, lb)) fprintf(c->out, "\n%s\n", la);
    else fprintf(c->out, "\nA = %s, B = %s\n", la, lb);
    if (n > 0) tl_cli_table(c, t, n + 1, w);
    else fprintf(c->out, "  neither side has a value of it\n");
    tl_arena_free(a);
    free(t);
}

static void print_alone(tl_cli *c, const json_t *labels, const char *side) {
    size_t i;
    json_t *l;
    json_array_foreach((json_t *)labels, i, l) fprintf(c->out, "only in %s, not compared: %s\n", side, json_string_value(l));
}

static void print_environment(tl_cli *c, const json_t *list) {
    size_t i;
    json_t *d;
    json_array_foreach((json_t *)list, i, d) {
        char *a = tl_json_canonical(json_object_get(d, "a")), *b = tl_json_canonical(json_object_get(d, "b"));
        fprintf(c->out, "%s  %s: A %s, B %s\n", i == 0 ? "what else differs, likeliest cause first:\n" : "", tl_json_str(d, "what", ""), a, b);
        free(a);
        free(b);
    }
}

static size_t count_verdicts(const json_t *out, const char *verdict_name) {
    size_t i, k, n = 0;
    json_t *cell, *m;
    json_array_foreach(json_object_get(out, "cells"), i, cell)
        json_array_foreach(json_object_get(cell, "metrics"), k, m) {
            const char *v = tl_json_str(m, "verdict", NULL);
            n += v != NULL && (verdict_name == NULL || tl_str_eq(v, verdict_name));
        }
    return n;
}

static void print(tl_cli *c, const json_t *out) {
    size_t i, n = count_verdicts(out, NULL);
    json_t *cell;
    bool interleaved = tl_json_bool(out, "interleaved", false);
    fprintf(c->out, "A run %s%s%s%s\n", tl_json_str(out, "a.run", ""), *tl_json_str(out, "a.selector", "") ? " {" : "", tl_json_str(out, "a.selector", ""),
            *tl_json_str(out, "a.selector", "") ? "}" : "");
    fprintf(c->out, "B run %s%s%s%s\n", tl_json_str(out, "b.run", ""), *tl_json_str(out, "b.selector", "") ? " {" : "", tl_json_str(out, "b.selector", ""),
            *tl_json_str(out, "b.selector", "") ? "}" : "");
    json_array_foreach(json_object_get(out, "cells"), i, cell) print_cell(c, cell);
    fprintf(c->out, "\nmedians [measured]; B against A [derived]: ratio of the rounds' medians, 95 %% bootstrap interval, p by %s\n",
            interleaved ? "sign flips of the pairs (same round)" : "permutation of the rounds");
    if (n > 1) fprintf(c->out, "%zu verdicts at p < 0.05: where nothing differs, %.2g of them would say so by chance\n", n, 0.05 * (double)n);
    print_alone(c, json_object_get(out, "only_a"), "A");
    print_alone(c, json_object_get(out, "only_b"), "B");
    if (interleaved) return;
    fprintf(c->out, "two runs are not interleaved: a machine that changed in between passes for a difference; one experiment with both as an axis would show it\n");
    print_environment(c, json_object_get(out, "environment"));
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_store *s = NULL;
    tl_pick a, b;
    char run_a[65], run_b[65];
    const char *metrics[64];
    int64_t noise;
    json_t *out = NULL;
    tl_run_compare_spec spec = {.metrics = metrics};
    tl_status st = TL_OK;
    TRY(tl_cli_int(&noise, c, "noise", 5, 1, 100, e));
    TRY(tl_pick_parse(&a, c->args[0], false, e));
    TRY(tl_pick_parse(&b, c->args[1], false, e));
    if (a.name[0] || b.name[0]) return tl_cli_usage(c, e, "name a metric with --metric %s", a.name[0] ? a.name : b.name);
    while (spec.n_metrics < TL_COUNT(metrics) && (metrics[spec.n_metrics] = tl_cli_nth(c, "metric", spec.n_metrics)) != NULL) spec.n_metrics++;
    TRY(tl_project_store(&s, c, TL_STORE_READ, e));
    TRY(tl_pick_run(run_a, s, &a, e));
    TRY(tl_pick_run(run_b, s, &b, e));
    spec.store = s;
    spec.a = (tl_run_side){run_a, a.selector};
    spec.b = (tl_run_side){run_b, b.selector};
    spec.noise_limit = (double)noise / 100;
    TRY(tl_run_compare(&out, &spec, e));
    if (c->json) tl_cli_print_json(c, out);
    else print(c, out);
    c->exit_code = count_verdicts(out, tl_verdict_name(TL_V_SLOWER)) > 0 ? 1 : 0;
out:
    json_decref(out);
    tl_store_close(s);
    return st;
}

const tl_verb tl_verb_compare = {
    .name = "compare", .summary = "did it get faster? two conditions, with an interval and a verdict", .usage = "A B",
    .about = "A and B are EXPERIMENT{axis=value}, EXPERIMENT#RUN{axis=value} or the beginning of a run's id; without {...} all cells, "
             "without a run the newest finished one. Cells that are equal on all axes but the named ones belong together.\n\n"
             "A value is a round's median, for requests of one round share what disturbed it. Inside one run rounds are paired. The verdict: "
             "faster or slower when the 95 % interval leaves out 0 and p < 0.05; no difference shown when the interval is narrow; too noisy "
             "otherwise, and always below 6 rounds a side.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_EXPERIMENT, .min_args = 2, .max_args = 2, .run = run};

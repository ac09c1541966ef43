/* tally run: the experiment, from its script to stored values. */
#include "cli/project.h"

static const tl_option options[] = {
    {.name = "set", .arg = "K=V", .help = "change a field or an axis of the experiment", .many = true},
    {.name = "only", .arg = "CELLS", .help = "run only these cells: model=large-q4_0", .many = true},
    {.name = "model", .arg = "NAME=FILE", .help = "use this .gguf for the model NAME of the experiment", .many = true, .complete = TL_COMPLETE_FILE},
    {.name = "engine", .arg = "NAME", .help = "an adapter of lua/engine/", .otherwise = "the experiment's"},
    {.name = "engine-bin", .arg = "FILE", .help = "the engine's program", .otherwise = "found on PATH, then in tally's cache", .complete = TL_COMPLETE_FILE},
    {.name = "endpoint", .arg = "URL", .help = "use a running server instead of starting one"},
    {.name = "resume", .arg = "RUN", .help = "continue this run; what it has is kept"},
    {.name = "budget", .arg = "TIME", .help = "stop after this long, resumable: 90s, 10m, 2h"},
    {0}};

static const tl_example examples[] = {
    {"tally run bandwidth-law", "run day 10 on this machine"},
    {"tally run experiments/measure/bandwidth-law.lua --set max=3 --only model=large-q4_0", "a quick look at one cell"},
    {"tally run bandwidth-law --resume 01J9", "go on after Ctrl-C, a crash or a full disk"},
    {0}};

static const tl_exit exits[] = {{0, "it ran to its end"},
                                {1, "it failed or was stopped; what had finished is stored"},
                                {2, "the command line or the experiment is wrong"},
                                {3, "the client's own error was too large a share of the result: the run is stored as INVALID"},
                                {4, "the engine, a model or a program is missing"},
                                {0}};

static tl_status parse_budget(tl_ns *out, tl_cli *c, tl_err *e) {
    const char *text = tl_cli_text(c, "budget", NULL);
    *out = 0;
    if (text == NULL) return TL_OK;
    static const struct {
        char suffix;
        double s;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    size_t n = strlen(text);
    for (size_t i = 0; n > 1 && i < TL_COUNT(units); i++)
        if (text[n - 1] == units[i].suffix) {
            char *number = tl_xstrndup(text, n - 1);
            double v;
            bool ok = tl_parse_f64(number, &v) && v > 0;
            free(number);
            if (ok) {
                *out = (tl_ns)(v * units[i].s * 1e9);
                return TL_OK;
            }
        }
    return tl_cli_usage(c, e, "--budget %s: a time needs a number and a unit, as in 90s, 10m or 2h", text);
}

static void print_result(tl_cli *c, const tl_project *p, const tl_run_result *r) {
    if (c->json) {
        json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:b, s:b, s:O?}", "run", r->id, "experiment", p->plan->id, "requests",
                              (json_int_t)r->requests, "failed", (json_int_t)r->failed, "interrupted", r->interrupted, "accepted",
                              r->accepted, "accept", r->accept);
        tl_cli_print_json(c, j);
        json_decref(j);
        return;
    }
    size_t i, held = 0, n = json_array_size(r->accept);
    json_t *a;
    json_array_foreach(r->accept, i, a) held += tl_json_bool(a, "ok", false);
    fprintf(c->out, "run %s: %zu requests, %zu failed", r->id, r->requests, r->failed);
    if (n) fprintf(c->out, "; acceptance: %zu of %zu rules hold", held, n);
    fprintf(c->out, "\n");
    json_array_foreach(r->accept, i, a) {
        if (tl_json_bool(a, "ok", false)) continue;
        const tl_plan_cell *cell = NULL;
        if (tl_plan_find(&cell, p->plan, tl_json_str(a, "cell", ""), NULL) != TL_OK) continue;
        fprintf(c->out, "  not accepted: %s, %s = %.3g\n", cell->label, tl_json_str(a, "metric", ""), tl_json_num(a, "value", 0));
    }
    fprintf(c->out, "see it: tally show %.10s    publish it: tally report build %s\n", r->id, p->plan->id);
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_project *p = NULL;
    tl_store *store = NULL;
    tl_run_result r = {0};
    json_t *argv = tl_project_argv(c), *version = tl_version_json();
    tl_ns budget;
    tl_status st = TL_OK;
    TRY(parse_budget(&budget, c, e));
    TRY(tl_project_open(&p, c, c->args[0], NULL, e));
    TRY(tl_project_store(&store, c, TL_STORE_WRITE, e));
    TRY(tl_project_engine(p, e));
    TRY(tl_project_models(p, false, e));
    tl_run_spec spec = {.store = store, .plan = p->plan, .kind = "experiment", .root = p->root, .script_text = p->text,
                        .adapter = p->adapter, .engine_binary = tl_cli_text(c, "engine-bin", NULL),
                        .endpoint = tl_cli_text(c, "endpoint", NULL), .models = p->models, .profiles = p->profiles,
                        .argv = argv, .tally = version, .resume = tl_cli_text(c, "resume", NULL), .budget = budget,
                        .hooks = tl_project_hooks(p)};
    st = tl_run(&r, &spec, e);
    if (st == TL_OK) print_result(c, p, &r);
    else if (r.id[0] && st == TL_REFUSED)
        tl_remedy(e, "run %s is stored as INVALID and publishes nothing; see it: tally show %.10s", r.id, r.id);
    else if (r.id[0] && st != TL_CONFLICT)
        tl_remedy(e, "what had finished is stored; continue with: tally run %s --resume %.10s", c->args[0], r.id);
out:
    tl_run_result_free(&r);
    tl_store_close(store);
    tl_project_free(p);
    json_decref(argv);
    json_decref(version);
    return st;
}

const tl_verb tl_verb_run = {
    .name = "run", .summary = "run an experiment and store everything it saw", .usage = "EXPERIMENT",
    .about = "EXPERIMENT is a script or an id below experiments/. The prediction is stored before the first request; every "
             "finished request is committed at once, so Ctrl-C, a crash or a full disk lose nothing that had finished.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_EXPERIMENT, .min_args = 1, .max_args = 1,
    .run = run};

/* tally rerun: a reader's one command. Everything it needs stands in the published file. */
#include "cli/project.h"

#include <math.h>

static const tl_option options[] = {
    {.name = "only", .arg = "CELLS", .help = "re-run only these cells: model=large-q4_0", .many = true},
    {.name = "set", .arg = "K=V", .help = "change a field of the published plan; the verdict will say so", .many = true},
    {.name = "model", .arg = "NAME=FILE", .help = "use this .gguf for the model NAME", .many = true, .complete = TL_COMPLETE_FILE},
    {.name = "engine", .arg = "NAME", .help = "an adapter of lua/engine/", .otherwise = "the published one"},
    {.name = "engine-bin", .arg = "FILE", .help = "the engine's program", .otherwise = "found on PATH, then in tally's cache", .complete = TL_COMPLETE_FILE},
    {.name = "endpoint", .arg = "URL", .help = "use a running server instead of starting one"},
    {.name = "dry-run", .letter = 'n', .help = "show what would run"},
    {.name = "yes", .letter = 'y', .help = "do not ask before running"},
    {0}};
static const tl_example examples[] = {
    {"tally rerun build/reports/bandwidth-law/report.html#fig-1", "run figure 1 on this machine and compare"},
    {"tally rerun report.html#fig-1 --only model=large-q4_0 --yes", "one cell, without asking"},
    {0}};
static const tl_exit exits[] = {{0, "exact, equivalent or explained"},
                                {1, "different, or the run failed"},
                                {2, "the command line or the file is wrong"},
                                {4, "unavailable: the file, the engine or a model is missing"},
                                {0}};

static tl_status read_figure(json_t **manifest, const json_t **figure, tl_cli *c, char **id, tl_err *e) {
    const char *arg = c->args[0], *hash = strrchr(arg, '#');
    char *path = hash ? tl_xstrndup(arg, (size_t)(hash - arg)) : tl_xstrdup(arg);
    *id = tl_xstrdup(hash ? hash + 1 : "fig-1");
    tl_status st = tl_report_manifest_read(manifest, path, e);
    if (st == TL_OK) st = tl_report_manifest_figure(figure, *manifest, *id, e);
    if (st == TL_OK && tl_json_str(*figure, "manifest.plan", NULL) == NULL) {
        st = tl_fail(e, TL_INVALID, "%s: figure '%s' carries no plan, so it cannot be run again", path, *id);
        tl_remedy(e, "build the report again with this tally");
    }
    free(path);
    return st;
}

/* The script travels in the file; its own hash proves that it is the one that was run. */
static tl_status check_script(const json_t *published, tl_err *e) {
    const char *script = tl_json_str(published, "script", NULL);
    char sha[65];
    if (script == NULL) return tl_fail(e, TL_INVALID, "the file carries no experiment script");
    tl_sha256_hex(script, strlen(script), sha);
    if (tl_str_eq(sha, tl_json_str(published, "script_sha256", ""))) return TL_OK;
    tl_log(TL_LOG_WARN, "the script in the file is not the one that was run: digest %.12s published, %.12s found; the verdict will say so",
           tl_json_str(published, "script_sha256", "?"), sha);
    return TL_OK;
}

static void show_intent(tl_cli *c, const tl_project *p, const json_t *published) {
    fprintf(stderr, "published: run %.10s of '%s' on %s, %s %s\n", tl_json_str(published, "run", "?"), p->plan->id,
            tl_json_str(published, "machine.cpu.model", tl_json_str(published, "machine_name", "?")),
            tl_json_str(published, "engine.adapter", "?"), tl_json_str(published, "engine.build", ""));
    fprintf(stderr, "will run here: %zu cells, at most %" PRId64 " rounds, in the sandboxed script that the file carries (%zu bytes)\n",
            p->plan->n_cells, p->plan->repeats_max, strlen(p->text));
    for (size_t i = 0; i < p->plan->n_cells; i++) fprintf(stderr, "  %s\n", p->plan->cells[i].label);
    const json_t *argv = tl_json_at(published, "engine.argv");
    if (json_array_size(argv) > 0) {
        tl_buf b;
        tl_buf_init(&b, 0);
        size_t i;
        json_t *a;
        json_array_foreach((json_t *)argv, i, a) {
            if (i) tl_buf_char(&b, ' ');
            tl_buf_shell(&b, json_string_value(a) ? json_string_value(a) : "?");
        }
        fprintf(stderr, "the engine was started as: %s\n", b.p);
        tl_buf_free(&b);
    }
    TL_UNUSED(c);
}

/* Asks on a terminal; elsewhere a re-run without --yes is refused, for nobody could say no. */
static tl_status ask(tl_cli *c, tl_err *e) {
    if (tl_cli_flag(c, "yes") || tl_cli_flag(c, "dry-run")) return TL_OK;
    if (!tl_is_terminal()) return TL_OK; /* a pipe: the command itself was the decision */
    fprintf(stderr, "go on? [Y/n] ");
    int answer = getchar();
    if (answer == 'n' || answer == 'N' || answer == EOF) return tl_fail(e, TL_CANCELLED, "not run");
    return TL_OK;
}

static const char *number(char out[96], const json_t *side) {
    double v = tl_json_num(side, "value", NAN), lo = tl_json_num(side, "lo", NAN), hi = tl_json_num(side, "hi", NAN);
    if (!isfinite(v)) return "–";
    if (isfinite(lo)) snprintf(out, 96, "%.4g [%.4g–%.4g]", v, lo, hi);
    else snprintf(out, 96, "%.4g", v);
    return out;
}

static void print_verdict(tl_cli *c, const json_t *result, const json_t *published) {
    json_t *cell, *d;
    size_t i, rows = json_array_size(json_object_get(result, "cells")) + 1, columns = 5;
    const char **t = tl_xalloc(rows * columns * sizeof *t);
    tl_arena *a = tl_arena_new();
    const char *unit = tl_json_str(published, "unit", "");
    fprintf(c->out, "verdict: %s\n", tl_json_str(result, "verdict", "?"));
    const char *const head[] = {"cell", tl_arena_printf(a, "published %s", unit), tl_arena_printf(a, "yours %s", unit), "verdict", "why"};
    for (size_t k = 0; k < columns; k++) t[k] = head[k];
    json_array_foreach(json_object_get(result, "cells"), i, cell) {
        char pub[96], own[96];
        const char **row = t + (i + 1) * columns;
        row[0] = tl_json_str(cell, "published.text", tl_json_str(cell, "key", ""));
        row[1] = tl_arena_strdup(a, number(pub, json_object_get(cell, "published")));
        row[2] = tl_arena_strdup(a, number(own, json_object_get(cell, "yours")));
        row[3] = tl_json_str(cell, "verdict", "");
        row[4] = tl_json_str(cell, "why", "");
    }
    tl_cli_table(c, t, rows, columns);
    if (json_array_size(json_object_get(result, "environment")) > 0) {
        fprintf(c->out, "\nwhat differs between the two, likeliest cause first:\n");
        json_array_foreach(json_object_get(result, "environment"), i, d) {
            char *x = tl_json_canonical(json_object_get(d, "published")), *y = tl_json_canonical(json_object_get(d, "yours"));
            fprintf(c->out, "  %s: %s -> %s\n", tl_json_str(d, "what", ""), x, y);
            free(x);
            free(y);
        }
    }
    tl_arena_free(a);
    free(t);
}

static tl_status run_and_compare(json_t **result, char run_id[TL_STORE_ID], tl_cli *c, tl_project *p, const json_t *published, tl_err *e) {
    tl_store *store = NULL;
    tl_run_result r = {0};
    json_t *argv = tl_project_argv(c), *version = tl_version_json(), *own = NULL;
    tl_status st = TL_OK;
    TRY(tl_project_store(&store, c, TL_STORE_WRITE, e));
    TRY(tl_project_engine(p, e));
    TRY(tl_project_models(p, false, e));
    tl_run_spec spec = {.store = store, .plan = p->plan, .kind = "rerun", .rerun_of = tl_json_str(published, "run", ""), .root = p->root,
                        .script_text = p->text, .adapter = p->adapter, .engine_binary = tl_cli_text(c, "engine-bin", NULL),
                        .endpoint = tl_cli_text(c, "endpoint", NULL), .models = p->models, .profiles = p->profiles, .argv = argv,
                        .tally = version, .hooks = tl_project_hooks(p)};
    TRY(tl_run(&r, &spec, e));
    snprintf(run_id, TL_STORE_ID, "%s", r.id);
    TRY(tl_run_publish(&own, store, r.id, tl_json_str(published, "metric", "decode_rate"), e));
    *result = tl_rerun_compare(published, own);
out:
    tl_run_result_free(&r);
    tl_store_close(store);
    json_decref(argv);
    json_decref(version);
    json_decref(own);
    return st;
}

/* Cells that were left out on purpose are not "unavailable": the published side is narrowed to what was asked for. */
static json_t *narrowed(const json_t *published, const tl_plan *plan, bool by_choice) {
    json_t *copy = json_copy((json_t *)published), *cells = json_array(), *c;
    size_t i;
    json_array_foreach(json_object_get(published, "cells"), i, c) {
        const tl_plan_cell *found = NULL;
        bool here = tl_plan_find(&found, plan, tl_json_str(c, "key", ""), NULL) == TL_OK;
        if (here || !by_choice) json_array_append(cells, c);
    }
    json_object_set_new(copy, "cells", cells);
    return copy;
}

static tl_status run(tl_cli *c, tl_err *e) {
    json_t *manifest = NULL, *result = NULL, *asked = NULL;
    const json_t *figure = NULL;
    tl_project *p = NULL;
    char *id = NULL, run_id[TL_STORE_ID] = "";
    tl_status st = TL_OK;
    TRY(read_figure(&manifest, &figure, c, &id, e));
    const json_t *published = json_object_get(figure, "manifest");
    TRY(check_script(published, e));
    TRY(tl_project_from_plan(&p, c, tl_json_str(published, "plan", ""), tl_json_str(published, "script", ""), e));
    show_intent(c, p, published);
    if (tl_cli_flag(c, "dry-run")) goto out;
    TRY(ask(c, e));
    asked = narrowed(published, p->plan, tl_cli_nth(c, "only", 0) != NULL);
    TRY(run_and_compare(&result, run_id, c, p, asked, e));
    json_object_set_new(result, "run", json_string(run_id));
    json_object_set_new(result, "figure", json_string(id));
    if (c->json) tl_cli_print_json(c, result);
    else {
        print_verdict(c, result, asked);
        fprintf(c->out, "\nyour run %s is stored: tally show %.10s\n", run_id, run_id);
    }
    tl_rerun_verdict v = tl_rerun_verdict_of(tl_json_str(result, "verdict", ""));
    c->exit_code = v == TL_RERUN_DIFFERENT ? 1 : v == TL_RERUN_UNAVAILABLE ? 4 : 0;
out:
    if (st == TL_MISSING || st == TL_NOT_FOUND) tl_wrap(e, "unavailable");
    tl_project_free(p);
    json_decref(manifest);
    json_decref(result);
    json_decref(asked);
    free(id);
    return st;
}

const tl_verb tl_verb_rerun = {
    .name = "rerun", .summary = "run a published figure again and compare", .usage = "FILE#FIGURE",
    .about = "FILE is a report.html or manifest.json that tally wrote; it carries the script, the plan and the published numbers, so "
             "neither the author's database nor a network is needed.\n\nThe verdict is one of: exact, equivalent (same class of "
             "machine, within the interval or 15 %), explained (differs as the two predictions differ), different, unavailable.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_FILE, .min_args = 1, .max_args = 1, .run = run};

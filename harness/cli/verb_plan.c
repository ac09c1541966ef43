/* tally plan: what a run would do. Writes nothing. */
#include "cli/project.h"

#include <math.h>

static const tl_option options[] = {
    {.name = "set", .arg = "K=V", .help = "change a field or an axis of the experiment", .many = true},
    {.name = "only", .arg = "CELLS", .help = "plan only these cells: model=large-q4_0", .many = true},
    {.name = "model", .arg = "NAME=FILE", .help = "use this .gguf for the model NAME of the experiment", .many = true, .complete = TL_COMPLETE_FILE},
    {.name = "engine", .arg = "NAME", .help = "an adapter of lua/engine/", .otherwise = "the experiment's"},
    {.name = "text", .help = "print the canonical text that is hashed and stored"},
    {0}};

static const tl_example examples[] = {{"tally plan bandwidth-law", "cells, requests and model sizes"},
                                      {"tally plan bandwidth-law --json", "the same for a program"},
                                      {0}};
static const tl_exit exits[] = {{0, "the experiment is valid"}, {2, "the command line or the experiment is wrong"}, {4, "a model file is missing"}, {0}};

static void print_people(tl_cli *c, const tl_project *p) {
    char hash[65];
    tl_plan_cost cost;
    tl_plan_hash(p->plan, hash);
    tl_plan_estimate(&cost, p->plan);
    fprintf(c->out, "%s (plan %.12s): %zu cells, %" PRIu64 " to %" PRIu64 " requests, at most %" PRIu64 " prompt and %" PRIu64 " output tokens\n",
            p->plan->id, hash, p->plan->n_cells, cost.requests_min, cost.requests_max, cost.prompt_tokens_max, cost.output_tokens_max);
    size_t columns = 4, rows = p->plan->n_cells + 1;
    const char **cells = tl_xalloc(rows * columns * sizeof *cells);
    tl_arena *a = tl_arena_new();
    static const char *const head[] = {"cell", "what", "model file MB", "read per token MB"};
    for (size_t k = 0; k < columns; k++) cells[k] = head[k];
    for (size_t i = 0; i < p->plan->n_cells; i++) {
        const tl_plan_cell *pc = &p->plan->cells[i];
        const json_t *m = pc->model ? json_object_get(p->models, pc->model) : NULL;
        const char **row = cells + (i + 1) * columns;
        row[0] = pc->key;
        row[1] = pc->label;
        row[2] = m ? tl_arena_printf(a, "%.1f%s", tl_json_num(m, "bytes", 0) / 1e6, tl_json_bool(m, "exists", true) ? "" : " (to be written)") : "";
        row[3] = m ? tl_arena_printf(a, "%.1f", tl_json_num(m, "weights_read_bytes", 0) / 1e6) : "";
    }
    tl_cli_table(c, cells, rows, columns);
    tl_arena_free(a);
    free(cells);
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_project *p = NULL;
    tl_status st = TL_OK;
    TRY(tl_project_open(&p, c, c->args[0], NULL, e));
    TRY(tl_project_models(p, true, e));
    if (tl_cli_flag(c, "text")) {
        char *text = tl_plan_text(p->plan);
        fprintf(c->out, "%s\n", text);
        free(text);
    } else if (c->json) {
        json_t *j = tl_plan_show(p->plan);
        json_object_set(j, "resolved_models", p->models);
        tl_cli_print_json(c, j);
        json_decref(j);
    } else
        print_people(c, p);
out:
    tl_project_free(p);
    return st;
}

const tl_verb tl_verb_plan = {
    .name = "plan", .summary = "show what a run would do, without doing it", .usage = "EXPERIMENT",
    .about = "Expands the experiment to its cells and says which requests and models they need. No side effects.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_EXPERIMENT, .min_args = 1, .max_args = 1,
    .run = run};

/* tally explain: unfolds a value to its leaves: formulas, inputs, runs and URLs. */
#include "cli/project.h"

static const tl_option options[] = {{.name = "lang", .arg = "LANG", .help = "zh-Hant, zh-Hans or en", .otherwise = "en"}, {0}};
static const tl_example examples[] = {{"tally explain 'bandwidth-law.predicted{model=large-q4_0}'", "formula, inputs, and where each number is from"}, {0}};
static const tl_exit exits[] = {{0, "explained"}, {2, "the command line is wrong"}, {4, "there is no such value"}, {0}};

static tl_status run(tl_cli *c, tl_err *e) {
    tl_source source = {.c = c, .lang = tl_cli_text(c, "lang", "en"), .html_path = ""};
    tl_values *g = tl_values_new();
    json_t *j = NULL;
    tl_value *v = NULL;
    tl_lang lang;
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_status st = TL_OK;
    TRY(tl_lang_parse(&lang, source.lang, e));
    TRY(tl_project_store(&source.store, c, TL_STORE_READ, e));
    tl_report_source f = tl_source_functions(&source);
    TRY(f.value(&j, f.ctx, c->args[0], &(tl_report_pos){"command line", 1, 1}, e));
    if (c->json) tl_cli_print_json(c, j);
    else {
        json_object_del(j, "stale"); /* the report's word; the value itself knows nothing of it */
        TRY(tl_value_from_json(&v, g, j, e));
        tl_value_explain(&b, v, lang);
        fputs(b.p, c->out);
    }
out:
    tl_buf_free(&b);
    json_decref(j);
    tl_source_fini(&source);
    tl_store_close(source.store);
    tl_values_free(g);
    return st;
}

const tl_verb tl_verb_explain = {
    .name = "explain", .summary = "unfold a value to its leaves", .usage = "EXPERIMENT.NAME{axis=value}",
    .about = "Prints the formula, the inputs and the source of each, down to runs and documents.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_NONE, .min_args = 1, .max_args = 1, .run = run};

/* The data of a report: expressions and blocks answered from the store and shaped by lua/report. */
#include "cli/project.h"

#include <math.h>

static tl_status shown_run(const json_t **out, tl_source *s, const char *id, tl_err *e) {
    *out = json_object_get(s->runs, id);
    if (*out != NULL) return TL_OK;
    json_t *show = NULL;
    tl_status st = tl_store_run_show(&show, s->store, id, e);
    if (st != TL_OK) return st;
    if (s->runs == NULL) s->runs = json_object();
    json_object_set_new(s->runs, id, show);
    *out = show;
    return TL_OK;
}

static tl_status find_cell(const char **key, const json_t *show, const char *selector, tl_err *e) {
    size_t i, n = 0;
    json_t *c;
    json_array_foreach(json_object_get(show, "cells"), i, c)
        if (tl_plan_cell_fits(json_object_get(c, "axes"), selector)) *key = tl_json_str(c, "key", ""), n++;
    if (n == 1) return TL_OK;
    tl_buf have;
    tl_buf_init(&have, 300);
    json_array_foreach(json_object_get(show, "cells"), i, c) tl_buf_fmt(&have, "%s%s", i ? "; " : "", tl_json_str(c, "facts.label", "?"));
    tl_fail(e, TL_NOT_FOUND, "{%s} fits %zu cells of the run, it must fit one", selector, n);
    tl_remedy(e, "the cells are: %s", have.p);
    tl_buf_free(&have);
    return TL_NOT_FOUND;
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static json_t *run_source(const json_t *show, const char *id) {
    const char *commit = tl_json_str(show, "git.commit", "");
    char revision[64];
    snprintf(revision, sizeof revision, "%.7s (%s)", commit[0] ? commit : "none", tl_json_bool(show, "git.dirty", false) ? "modified" : "clean");
    return json_pack("{s:s, s:s?, s:s}", "run", id, "machine", tl_json_str(show, "machine.name", NULL), "revision", revision);
}

/* A stored value tree (rows with "inputs") as the report's VALUE. */
static json_t *as_value(tl_source *s, const json_t *row, const json_t *show, const char *run_id) {
    json_t *out = json_object(), *inputs, *in;
    static const char *const same[] = {"unit", "label", "lo", "hi", "name", "formula", "null_reason", "symbol", "role"};
    for (size_t i = 0; i < TL_COUNT(same); i++) {
        json_t *v = json_object_get(row, same[i]);
        if (v != NULL && !json_is_null(v)) json_object_set(out, same[i], v);
    }
    json_object_set(out, "value", json_object_get(row, "number"));
    if (tl_str_eq(tl_json_str(row, "label", ""), "measured")) json_object_set_new(out, "source", run_source(show, run_id));
    else json_object_set(out, "source", json_object_get(row, "source"));
    size_t i;
    inputs = json_object_get(row, "inputs");
    if (json_array_size(inputs) > 0) {
        json_t *list = json_array();
        json_array_foreach(inputs, i, in) json_array_append_new(list, as_value(s, in, show, run_id));
        json_object_set_new(out, "inputs", list);
    }
    if (json_is_true(json_object_get(row, "retracted"))) json_object_set_new(out, "stale", json_string("retracted"));
    return out;
}

static tl_status no_such_value(const tl_pick *x, const json_t *values, tl_err *e) {
    const char *names[256];
    size_t i, n = 0;
    json_t *v;
    json_array_foreach((json_t *)values, i, v) if (n < TL_COUNT(names)) names[n++] = tl_json_str(v, "name", "");
    const char *near = n ? tl_nearest(x->name, names, n) : NULL;
    tl_fail(e, TL_NOT_FOUND, "the run has no value '%s'%s%s", x->name, x->selector[0] ? " for " : "", x->selector);
    return near ? tl_remedy(e, "did you mean '%s'?", near) : TL_NOT_FOUND;
}

static tl_status source_value(json_t **out, void *ctx, const char *text, const tl_report_pos *pos, tl_err *e) {
    TL_UNUSED(pos);
    tl_source *s = ctx;
    tl_pick x;
    char id[65];
    const json_t *show;
    const char *cell = NULL;
    json_t *rows = NULL, *tree = NULL, *row, *hit = NULL;
    size_t i;
    tl_status st = TL_OK;
    *out = NULL;
    TRY(tl_pick_parse(&x, text, true, e));
    TRY(tl_pick_run(id, s->store, &x, e));
    TRY(shown_run(&show, s, id, e));
    if (x.selector[0]) TRY(find_cell(&cell, show, x.selector, e));
    TRY(tl_store_values(&rows, s->store, id, cell, x.name, e));
    json_array_foreach(rows, i, row) if (hit == NULL && tl_str_eq(tl_json_str(row, "cell", NULL), cell)) hit = row;
    if (hit == NULL) {
        st = no_such_value(&x, json_object_get(show, "values"), e);
        goto out;
    }
    TRY(tl_store_value_tree(&tree, s->store, tl_json_str(hit, "id", ""), e));
    *out = as_value(s, tree, show, id);
out:
    json_decref(rows);
    json_decref(tree);
    return st;
}

/* ---- blocks --------------------------------------------------------------------------------------------------------- */

tl_status tl_source_cells(json_t **out, tl_source *s, const char *run_id, tl_err *e) {
    const json_t *show;
    tl_status st = shown_run(&show, s, run_id, e);
    if (st != TL_OK) return st;
    json_t *all = json_array(), *c, *v;
    size_t i, k;
    json_array_foreach(json_object_get(show, "cells"), i, c) {
        const char *key = tl_json_str(c, "key", ""), *model = tl_json_str(c, "axes.model", NULL);
        json_t *values = json_object();
        json_array_foreach(json_object_get(show, "values"), k, v) {
            const char *name = tl_json_str(v, "name", "");
            if (!tl_str_eq(tl_json_str(v, "cell", NULL), key) || json_object_get(values, name) != NULL) continue;
            json_object_set_new(values, name, json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?}", "value", json_object_get(v, "number"), "lo",
                                                        json_object_get(v, "lo"), "hi", json_object_get(v, "hi"), "unit",
                                                        json_object_get(v, "unit"), "label", json_object_get(v, "label")));
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:O?, s:o}", "key", key, "label",
                                             model ? model : tl_json_str(c, "facts.label", key), "axes", json_object_get(c, "axes"),
                                             "values", values));
    }
    *out = all;
    return TL_OK;
}

static const json_t *figure_spec(const json_t *plan, const char *wanted, const char **metric) {
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(plan, "figures"), i, f) {
        char number[32];
        snprintf(number, sizeof number, "%zu", i + 1);
        if (wanted == NULL || tl_str_eq(wanted, number) || tl_str_eq(wanted, tl_json_str(f, "id", NULL))) {
            *metric = tl_json_str(f, "y", "decode_rate");
            return f;
        }
    }
    return NULL;
}

/* Why a published figure may no longer say what its script says; "" = current. */
static char *staleness(tl_source *s, const json_t *show) {
    const char *root, *name = tl_json_str(show, "experiment.name", ""), *map = tl_json_str(show, "experiment.facts.map", "measure");
    if (tl_cli_root(&root, s->c, NULL) != TL_OK) return tl_xstrdup("");
    char *path = tl_xprintf("%s/experiments/%s/%s.lua", root, map, name), *why = NULL, sha[65];
    tl_buf text;
    tl_buf_init(&text, 0);
    if (tl_file_read(&text, path, 1 << 20, NULL) == TL_OK) {
        tl_sha256_hex(text.p, text.len, sha);
        if (!tl_str_eq(sha, tl_json_str(show, "experiment.id", ""))) why = tl_xstrdup("the experiment script has changed since");
    }
    tl_buf_free(&text);
    free(path);
    return why ? why : tl_xstrdup("");
}

/* Adds what stands under a figure or table: run, revision, machine, engine, model digests, staleness, manifest. */
static tl_status add_provenance(json_t *block, tl_source *s, const char *run_id, const char *metric, tl_err *e) {
    const json_t *show;
    json_t *published = NULL;
    char *script = NULL;
    tl_status st = TL_OK;
    TRY(shown_run(&show, s, run_id, e));
    TRY(tl_run_publish(&published, s->store, run_id, metric, e));
    TRY(tl_store_experiment_script(&script, s->store, tl_json_str(show, "experiment.id", ""), e));
    json_object_set_new(published, "script", json_string(script));
    json_t *from = run_source(show, run_id);
    char *why = staleness(s, show);
    char engine[128];
    snprintf(engine, sizeof engine, "%s %s", tl_json_str(published, "engine.adapter", "engine"), tl_json_str(published, "engine.build", ""));
    json_object_set_new(block, "run", json_string(run_id));
    json_object_set(block, "revision", json_object_get(from, "revision"));
    json_object_set(block, "machine", json_object_get(published, "machine_name"));
    json_object_set_new(block, "engine", json_string(engine));
    json_object_set_new(block, "stale", json_string(why));
    json_object_set(block, "manifest", published);
    free(why);
    json_decref(from);
out:
    free(script);
    json_decref(published);
    return st;
}

static tl_status run_of_block(char id[65], tl_source *s, const json_t *spec, tl_err *e) {
    tl_pick x;
    const char *text = tl_json_str(spec, "run", NULL);
    if (text == NULL) {
        tl_fail(e, TL_INVALID, "the block names no run");
        return tl_remedy(e, "write { run = \"EXPERIMENT\", ... }");
    }
    tl_status st = tl_pick_parse(&x, text, false, e);
    return st == TL_OK ? tl_pick_run(id, s->store, &x, e) : st;
}

static tl_status figure_block(json_t **out, tl_source *s, const json_t *spec, tl_err *e) {
    char id[65], *plan_text = NULL;
    json_t *plan = NULL, *cells = NULL, *arg = NULL, *fig = NULL;
    const json_t *show;
    const char *metric = NULL, *wanted = tl_json_str(spec, "figure", NULL);
    tl_status st = TL_OK;
    TRY(run_of_block(id, s, spec, e));
    TRY(shown_run(&show, s, id, e));
    TRY(tl_store_run_plan(&plan_text, s->store, id, e));
    TRY(tl_json_parse(&plan, plan_text, strlen(plan_text), "the stored plan", e));
    const json_t *declared = figure_spec(plan, wanted, &metric);
    if (declared == NULL) {
        st = tl_fail(e, TL_NOT_FOUND, "the experiment declares no figure '%s'", wanted ? wanted : "1");
        goto out;
    }
    TRY(tl_source_cells(&cells, s, id, e));
    arg = json_pack("{s:O, s:s, s:s?, s:O}", "spec", declared, "lang", s->lang, "machine", tl_json_str(show, "machine.name", NULL), "cells", cells);
    TRY(tl_script_call(&fig, s->script, "report.figure", "build", arg, e));
    *out = json_pack("{s:O, s:s}", "figure", fig, "label", tl_json_str(fig, "series.0.label", "measured"));
    size_t last = json_array_size(json_object_get(fig, "series"));
    if (last > 0) json_object_set(*out, "label", json_object_get(json_array_get(json_object_get(fig, "series"), last - 1), "label"));
    if (tl_json_at(fig, "title") != NULL) json_object_set(*out, "caption", json_object_get(fig, "title"));
    st = add_provenance(*out, s, id, metric, e);
out:
    free(plan_text);
    json_decref(plan);
    json_decref(cells);
    json_decref(arg);
    json_decref(fig);
    return st;
}

static tl_status table_rows(json_t *table, tl_source *s, const json_t *cells, const char *run_id, tl_err *e) {
    json_t *rows = json_array(), *cell, *column;
    const json_t *show;
    size_t i, k;
    tl_status st = shown_run(&show, s, run_id, e);
    json_array_foreach((json_t *)cells, i, cell) {
        json_t *row = json_array();
        json_array_foreach(json_object_get(table, "columns"), k, column) {
            if (k == 0) {
                json_array_append(row, json_object_get(cell, "label"));
                continue;
            }
            const char *name = tl_json_str(column, "key", "");
            json_t *values = NULL, *tree = NULL;
            if (st == TL_OK) st = tl_store_values(&values, s->store, run_id, tl_json_str(cell, "key", ""), name, e);
            const char *id = tl_json_str(values, "0.id", NULL);
            if (st == TL_OK && id != NULL) st = tl_store_value_tree(&tree, s->store, id, e);
            json_array_append_new(row, tree ? as_value(s, tree, show, run_id) : json_null());
            json_decref(values);
            json_decref(tree);
        }
        json_array_append_new(rows, row);
    }
    json_object_set_new(table, "rows", rows);
    return st;
}

static tl_status table_block(json_t **out, tl_source *s, const json_t *spec, tl_err *e) {
    char id[65];
    json_t *cells = NULL, *arg = NULL;
    tl_status st = TL_OK;
    TRY(run_of_block(id, s, spec, e));
    TRY(tl_source_cells(&cells, s, id, e));
    arg = json_pack("{s:O?, s:s, s:O}", "columns", json_object_get(spec, "columns"), "lang", s->lang, "cells", cells);
    TRY(tl_script_call(out, s->script, "report.table", "build", arg, e));
    TRY(table_rows(*out, s, cells, id, e));
    st = add_provenance(*out, s, id, tl_json_str(spec, "metric", "decode_rate"), e);
out:
    json_decref(cells);
    json_decref(arg);
    return st;
}

static tl_status formula_block(json_t **out, tl_source *s, const json_t *spec, const tl_report_pos *pos, tl_err *e) {
    const char *text = tl_json_str(spec, "value", NULL);
    if (text == NULL) return tl_fail(e, TL_INVALID, "a formula block needs value = \"EXPERIMENT.NAME{...}\"");
    json_t *value = NULL;
    tl_status st = source_value(&value, s, text, pos, e);
    if (st == TL_OK) *out = json_pack("{s:s, s:o}", "title", tl_json_str(spec, "title", tl_json_str(value, "name", "")), "value", value);
    return st;
}

static tl_status source_block(json_t **out, void *ctx, const char *kind, const json_t *attrs, const char *text,
                              const tl_report_pos *pos, tl_err *e) {
    TL_UNUSED(attrs);
    tl_source *s = ctx;
    json_t *spec = NULL;
    *out = NULL;
    tl_status st = tl_script_eval(&spec, s->script, text, pos->file, pos->line + 1, e);
    if (st != TL_OK) return st;
    if (tl_str_eq(kind, "figure")) st = figure_block(out, s, spec, e);
    else if (tl_str_eq(kind, "table")) st = table_block(out, s, spec, e);
    else if (tl_str_eq(kind, "formula")) st = formula_block(out, s, spec, pos, e);
    else if (tl_str_eq(kind, "rerun")) {
        char *command = tl_xprintf("tally rerun %s#%s", s->html_path, tl_json_str(spec, "figure", "fig-1"));
        *out = json_pack("{s:s}", "command", command);
        free(command);
    } else
        st = tl_fail(e, TL_INVALID, "a block of kind '%s' has no data", kind);
    json_decref(spec);
    if (st != TL_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return st;
}

tl_report_source tl_source_functions(tl_source *s) {
    return (tl_report_source){.ctx = s, .value = source_value, .block = source_block};
}

void tl_source_fini(tl_source *s) {
    json_decref(s->runs);
    s->runs = NULL;
}

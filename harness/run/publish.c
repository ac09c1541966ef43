/* What a figure publishes of a run: enough for a reader, without the database, to run it again and to compare. */
#include "run/run.h"

#include <math.h>

static const json_t *value_row(const json_t *values, const char *cell, const char *name) {
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)values, i, v)
        if (tl_str_eq(tl_json_str(v, "name", ""), name) && tl_str_eq(tl_json_str(v, "cell", NULL), cell)) return v;
    return NULL;
}

/* A published page must not tell the author's home folder: "/home/alice/x" becomes "~/x" in every text. New reference. */
static json_t *without_home(const json_t *j) {
    char *text = j ? tl_json_canonical(j) : tl_xstrdup("null"), *home = tl_path_home();
    size_t n = strlen(home);
    tl_buf b;
    json_t *out = NULL;
    tl_buf_init(&b, 0);
    for (const char *p = text; *p;) {
        bool here = n > 1 && strncmp(p, home, n) == 0 && (p[n] == '/' || p[n] == '"');
        tl_buf_char(&b, here ? '~' : *p);
        p += here ? n : 1;
    }
    if (tl_json_parse(&out, b.p, b.len, "facts", NULL) != TL_OK) out = json_null();
    tl_buf_free(&b);
    free(text);
    free(home);
    return out;
}

static json_t *publish_cell(const json_t *cell, const json_t *values, const char *metric) {
    const char *key = tl_json_str(cell, "key", "");
    const json_t *v = value_row(values, key, metric), *p = value_row(values, key, "predicted_paired"),
                 *b = value_row(values, key, "bandwidth_paired");
    if (p == NULL) p = value_row(values, key, "predicted");
    return json_pack("{s:s, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "key", key, "axes",
                     json_object_get(cell, "axes"), "text", tl_json_at(cell, "facts.label"), "model_sha256",
                     json_object_get(cell, "model_sha256"), "value", json_object_get(v, "number"), "lo", json_object_get(v, "lo"),
                     "hi", json_object_get(v, "hi"), "n", json_object_get(v, "n"), "label", json_object_get(v, "label"),
                     "predicted", json_object_get(p, "number"), "bandwidth", json_object_get(b, "number"));
}

tl_status tl_run_publish(json_t **out, tl_store *store, const char *run_id, const char *metric, tl_err *e) {
    json_t *show = NULL, *c, *cells = json_array();
    char *plan = NULL;
    size_t i;
    tl_status st = TL_OK;
    *out = NULL;
    TRY(tl_store_run_show(&show, store, run_id, e));
    TRY(tl_store_run_plan(&plan, store, run_id, e));
    const json_t *values = json_object_get(show, "values");
    json_array_foreach(json_object_get(show, "cells"), i, c) json_array_append_new(cells, publish_cell(c, values, metric));
    json_t *engine = without_home(tl_json_at(show, "engines.0.facts")), *git = without_home(json_object_get(show, "git"));
    char sha[65];
    tl_sha256_hex(plan, strlen(plan), sha);
    *out = json_pack("{s:s, s:s, s:O?, s:O?, s:s, s:s, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O}", "run", run_id, "metric", metric,
                     "experiment", tl_json_at(show, "experiment.name"), "script_sha256", tl_json_at(show, "experiment.id"), "plan",
                     plan, "plan_sha256", sha, "git", git, "machine", tl_json_at(show, "machine.facts"),
                     "machine_name", tl_json_at(show, "machine.name"), "engine", engine, "tally", json_object_get(show, "tally"),
                     "models", tl_json_at(show, "facts.models"), "cells", cells);
    json_decref(engine);
    json_decref(git);
out:
    json_decref(cells);
    json_decref(show);
    free(plan);
    return st;
}

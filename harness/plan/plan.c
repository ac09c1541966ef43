/* From a description to a plan: normalise, check what the table of fields cannot say, expand to cells. */
#include "plan/plan_impl.h"

#include <math.h>

/* ---- axes
 * -------------------------------------------------------------------------------------------------------- */

const json_t *plan_axis(const json_t *axes, const char *name) {
    for (size_t i = 0; i < json_array_size(axes); i++)
        if (tl_str_eq(tl_json_str(json_array_get(axes, i), "name", NULL), name))
            return json_array_get(axes, i);
    return NULL;
}

static tl_status check_axis(const plan_check *c, const json_t *axes, size_t index) {
    const json_t *axis = json_array_get(axes, index), *values = json_object_get(axis, "values");
    const char *name = tl_json_str(axis, "name", "");
    char path[160], shown[120], other[120];
    snprintf(path, sizeof path, "axes.%.100s", name);
    if (plan_axis(axes, name) != axis) return plan_fail(c, path, "axis '%s' is given twice", name);
    if (strpbrk(name, "=, \t\n") != NULL)
        return plan_fail(c, path, "axis '%s': a name has no blanks, '=' or ','", name);
    if (json_array_size(values) == 0) return plan_fail(c, path, "axis '%s' has no values", name);
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *v = json_array_get(values, i);
        plan_show(shown, sizeof shown, v);
        if (!plan_is_reference(v) && !json_is_string(v) && !json_is_number(v) && !json_is_boolean(v)) {
            tl_status st =
                plan_fail(c, path, "axis '%s' holds %s: not a number, text, true/false or model reference",
                          name, shown);
            tl_remedy(c->e, "a model reference has a name and a kind: tally.synth {...} or tally.file {...}");
            return st;
        }
        for (size_t k = 0; k < i; k++) {
            plan_show(other, sizeof other, json_array_get(values, k));
            if (strcmp(shown, other) == 0)
                return plan_fail(c, path, "axis '%s' holds '%s' twice", name, shown);
        }
    }
    return TL_OK;
}

/* Does {"$axis": name} stand somewhere below j? With name NULL: the first reference to an axis that does not
 * exist. */
static const char *axis_use(const json_t *j, const char *name, const json_t *axes) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)j, key, v) {
        const char *used = tl_json_str(v, "$axis", NULL);
        if (used == NULL) used = json_is_object(v) ? axis_use(v, name, axes) : NULL;
        else if (name != NULL ? strcmp(used, name) != 0 : plan_axis(axes, used) != NULL) used = NULL;
        if (used != NULL) return used;
    }
    return NULL;
}

static tl_status check_uses(const plan_check *c, const json_t *doc) {
    static const char *const parts[] = {"workload", "engine"};
    const json_t *axes = json_object_get(doc, "axes");
    for (size_t i = 0; i < TL_COUNT(parts); i++) {
        const char *missing = axis_use(json_object_get(doc, parts[i]), NULL, axes);
        if (missing != NULL)
            return plan_fail(c, parts[i], "'%s' names the axis '%.60s', which is not there", parts[i],
                             missing);
    }
    for (size_t i = 0; i < json_array_size(axes); i++) {
        const json_t *axis = json_array_get(axes, i);
        const char *name = tl_json_str(axis, "name", "");
        bool used = plan_is_reference(json_array_get(json_object_get(axis, "values"), 0));
        for (size_t k = 0; k < TL_COUNT(parts); k++)
            used = used || axis_use(json_object_get(doc, parts[k]), name, axes) != NULL;
        if (used) continue;
        char path[160];
        snprintf(path, sizeof path, "axes.%.100s", name);
        plan_fail(c, path, "axis '%s' is used nowhere: its cells would all measure the same", name);
        tl_remedy(c->e, "use it in the workload or engine, as in prompt_tokens = tally.axis \"%s\"", name);
        return TL_INVALID;
    }
    return TL_OK;
}

static tl_status check_whole(const plan_check *c, json_t *doc) {
    const json_t *axes = json_object_get(doc, "axes"), *accept = json_object_get(doc, "accept");
    const char *id = tl_json_str(doc, "id", "");
    if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(id) || *id == '-')
        return plan_fail(c, "id", "id '%.60s' must be lower-case words joined by '-'", id);
    int64_t lo = tl_json_int(doc, "repeats.min", 0), hi = tl_json_int(doc, "repeats.max", 0);
    if (lo > hi)
        return plan_fail(c, "repeats.max", "repeats.max (%" PRId64 ") is less than repeats.min (%" PRId64 ")",
                         hi, lo);
    if (json_array_size(axes) == 0) return plan_fail(c, "axes", "an experiment needs at least one axis");
    for (size_t i = 0; i < json_array_size(axes); i++) {
        tl_status st = check_axis(c, axes, i);
        if (st != TL_OK) return st;
    }
    for (size_t i = 0; i < json_array_size(accept); i++) {
        const json_t *rule = json_array_get(accept, i);
        if (json_object_size(rule) < 2)
            return plan_fail(c, "accept", "accept rule %zu has neither min, max nor within", i + 1);
        if (tl_json_num(rule, "min", -INFINITY) > tl_json_num(rule, "max", INFINITY))
            return plan_fail(c, "accept", "accept rule %zu: min is greater than max", i + 1);
    }
    return check_uses(c, doc);
}

static tl_status check_script(const plan_check *c, json_t *doc) {
    json_t *script = json_object_get(doc, "script");
    const char *text = tl_json_str(script, "text", NULL), *said = tl_json_str(script, "sha256", NULL);
    char real[65];
    if (text == NULL) return TL_OK;
    tl_sha256_hex(text, strlen(text), real);
    if (said != NULL && strcmp(said, real) != 0)
        return plan_fail(c, "script.sha256", "script.sha256 is %.12s..., the text's is %.12s...", said, real);
    json_object_set_new(script, "sha256", json_string(real));
    return TL_OK;
}

/* ---- cells
 * ------------------------------------------------------------------------------------------------------- */

static json_t *resolved(const json_t *part, const json_t *values) {
    json_t *out = json_object(), *v;
    const char *key;
    json_object_foreach((json_t *)part, key, v) {
        const char *axis = tl_json_str(v, "$axis", NULL);
        if (axis == NULL && json_is_object(v)) json_object_set_new(out, key, resolved(v, values));
        else json_object_set(out, key, axis ? json_object_get(values, axis) : v);
    }
    return out;
}

/* Experiments speak of tokens for each slot and of one KV type; the adapters' settings of their sum and of
 * two types. */
static json_t *settings_of(const json_t *engine) {
    json_t *s = json_copy((json_t *)engine), *v;
    int64_t slots = tl_json_int(engine, "slots", 1), context = tl_json_int(engine, "context", 0);
    json_object_del(s, "context");
    if (context > 0) json_object_set_new(s, "ctx", json_integer(context * slots));
    if ((v = json_object_get(engine, "kv_type")) != NULL) {
        json_object_set(s, "kv_type_k", v);
        json_object_set(s, "kv_type_v", v);
        json_object_del(s, "kv_type");
    }
    if ((v = json_object_get(engine, "extra")) != NULL) {
        json_object_set(s, "extra_args", v);
        json_object_del(s, "extra");
    }
    v = json_object_get(engine, "gpu_layers");
    if (json_is_integer(v)) {
        char *text = tl_xprintf("%" PRId64, (int64_t)json_integer_value(v));
        json_object_set_new(s, "gpu_layers", json_string(text));
        free(text);
    }
    return s;
}

typedef struct maker {
    tl_plan *p;
    const plan_check *c;
    size_t cap;
    char **groups;
    size_t n_groups, cap_groups;
} maker;

static size_t group_of(maker *m, const json_t *settings, const char *model) {
    char *text = tl_json_canonical(settings), *key = tl_xprintf("%s\n%s", model ? model : "", text);
    free(text);
    for (size_t i = 0; i < m->n_groups; i++)
        if (strcmp(m->groups[i], key) == 0) {
            free(key);
            return i;
        }
    TL_PUSH(m->groups, m->n_groups, m->cap_groups, key);
    return m->n_groups - 1;
}

static tl_status add_cell(maker *m, const json_t *params, const json_t *values) {
    tl_plan *p = m->p;
    tl_status st = TL_OK;
    json_t *raw = NULL, *workload = NULL, *engine = NULL, *settings;
    char shown[120], hash[65];
    tl_buf label;
    tl_buf_init(&label, 0);
    for (size_t i = 0; i < json_array_size(p->axes); i++) {
        const char *name = tl_json_str(json_array_get(p->axes, i), "name", "");
        plan_show(shown, sizeof shown, json_object_get(params, name));
        tl_buf_fmt(&label, "%s%s=%s", i ? " " : "", name, shown);
    }
    plan_check c = *m->c;
    c.cell = label.p;
    raw = resolved(p->workload, values);
    TRY(plan_normal(&workload, &c, "workload.", raw));
    TRY(plan_check_workload(&c, workload));
    json_decref(raw);
    raw = resolved(p->engine, values);
    TRY(plan_normal(&engine, &c, "engine.", raw));
    settings = settings_of(engine);
    json_t *keep = json_pack("{s:O, s:O, s:o}", "params", params, "workload", workload, "settings", settings);
    json_array_append_new(p->impl->cells, keep);
    char *text = tl_json_canonical(params);
    tl_sha256_hex(text, strlen(text), hash);
    free(text);
    tl_plan_cell cell = {.index = p->n_cells,
                         .label = tl_arena_strdup(p->impl->arena, label.p),
                         .params = params,
                         .workload = workload,
                         .settings = settings,
                         .model = tl_json_str(values, "model.name", NULL)};
    snprintf(cell.key, sizeof cell.key, "c%.12s", hash);
    cell.group = group_of(m, settings, cell.model);
    TL_PUSH(p->cells, p->n_cells, m->cap, cell);
out:
    json_decref(raw);
    json_decref(workload);
    json_decref(engine);
    tl_buf_free(&label);
    return st;
}

static tl_status wanted(bool *out, const maker *m, const json_t *params) {
    const json_t *only = json_object_get(m->p->impl->doc, "only");
    *out = json_array_size(only) == 0;
    for (size_t i = 0; i < json_array_size(only) && !*out; i++) {
        tl_status st =
            plan_fits(out, m->p->axes, params, json_string_value(json_array_get(only, i)), m->c->e);
        if (st != TL_OK) return st;
    }
    return TL_OK;
}

/* The n-th combination: params with reference names, values with the references themselves. */
static tl_status combination(maker *m, size_t n) {
    json_t *params = json_object(), *values = json_object();
    const json_t *axes = m->p->axes;
    for (size_t i = json_array_size(axes); i-- > 0;) {
        const json_t *axis = json_array_get(axes, i), *list = json_object_get(axis, "values");
        json_t *v = json_array_get(list, n % json_array_size(list));
        n /= json_array_size(list);
        json_object_set(values, tl_json_str(axis, "name", ""), v);
        json_object_set(params, tl_json_str(axis, "name", ""),
                        plan_is_reference(v) ? json_object_get(v, "name") : v);
    }
    bool keep;
    tl_status st = wanted(&keep, m, params);
    if (st == TL_OK && keep) st = add_cell(m, params, values);
    json_decref(params);
    json_decref(values);
    return st;
}

static tl_status expand(tl_plan *p, const plan_check *c) {
    maker m = {.p = p, .c = c};
    tl_status st = TL_OK;
    size_t total = 1;
    for (size_t i = 0; i < json_array_size(p->axes); i++) {
        total *= json_array_size(json_object_get(json_array_get(p->axes, i), "values"));
        if (total > TL_PLAN_MAX_CELLS) {
            plan_fail(c, "axes", "the axes make more than %u cells", TL_PLAN_MAX_CELLS);
            tl_remedy(c->e, "take fewer values, or split the experiment");
            return TL_INVALID;
        }
    }
    for (size_t i = 0; i < total && st == TL_OK; i++) st = combination(&m, i);
    if (st == TL_OK && p->n_cells == 0) st = plan_fail(c, "only", "no cell fits the selection");
    p->n_groups = m.n_groups;
    for (size_t i = 0; i < m.n_groups; i++) free(m.groups[i]);
    free(m.groups);
    return st;
}

static tl_status collect_models(tl_plan *p, const plan_check *c) {
    for (size_t i = 0; i < json_array_size(p->axes); i++) {
        const json_t *values = json_object_get(json_array_get(p->axes, i), "values");
        for (size_t k = 0; k < json_array_size(values); k++) {
            json_t *v = json_array_get(values, k);
            if (!plan_is_reference(v)) continue;
            const json_t *same = plan_axis(p->impl->models, tl_json_str(v, "name", ""));
            if (same == NULL)
                json_array_append(p->impl->models, v);
            else if (!json_equal((json_t *)same, v))
                return plan_fail(c, "axes", "two different models are called '%.60s'",
                                 tl_json_str(v, "name", ""));
        }
    }
    return TL_OK;
}

/* ---- predictions
 * ------------------------------------------------------------------------------------------------- */

static tl_status check_prediction(const json_t *value, tl_err *e) {
    if (json_is_null(value)) return TL_OK;
    tl_values *g = tl_values_new();
    tl_value *v;
    tl_status st = tl_value_from_json(&v, g, value, e);
    tl_values_free(g);
    return st;
}

static tl_plan_cell *cell_of(const tl_plan *p, const char *key) {
    for (size_t i = 0; i < p->n_cells; i++)
        if (strcmp(p->cells[i].key, key) == 0) return &p->cells[i];
    return NULL;
}

static tl_status take_predictions(tl_plan *p, const plan_check *c) {
    const char *key;
    json_t *v;
    json_object_foreach(json_object_get(p->impl->doc, "predictions"), key, v) {
        tl_plan_cell *cell = cell_of(p, key);
        if (cell == NULL)
            return plan_fail(c, "predictions", "'%.40s' in predictions is not a cell of this plan", key);
        tl_status st = check_prediction(v, c->e);
        if (st != TL_OK) {
            tl_wrap(c->e, "prediction of '%s'", cell->label);
            return st;
        }
        cell->prediction = v;
    }
    for (size_t i = 0; i < p->n_cells; i++)
        if (p->cells[i].prediction == NULL) p->cells[i].prediction = json_null();
    return TL_OK;
}

tl_status tl_plan_set_prediction(tl_plan *p, size_t cell, const json_t *value, tl_err *e) {
    if (cell >= p->n_cells) return tl_fail(e, TL_NOT_FOUND, "cell %zu of %zu", cell, p->n_cells);
    tl_status st = check_prediction(value, e);
    if (st != TL_OK) {
        tl_wrap(e, "prediction of '%s'", p->cells[cell].label);
        return st;
    }
    json_t *all = json_object_get(p->impl->doc, "predictions");
    if (all == NULL) {
        all = json_object();
        json_object_set_new(p->impl->doc, "predictions", all);
    }
    json_object_set_new(all, p->cells[cell].key, json_deep_copy(value));
    p->cells[cell].prediction = json_object_get(all, p->cells[cell].key);
    return TL_OK;
}

/* ---- the whole
 * --------------------------------------------------------------------------------------------------- */

static void take_fields(tl_plan *p) {
    const json_t *d = p->impl->doc;
    p->id = tl_json_str(d, "id", "");
    p->map = tl_json_str(d, "map", "");
    p->day = tl_json_int(d, "day", 0);
    p->title = json_object_get(d, "title");
    p->question = json_object_get(d, "question");
    p->script_name = tl_json_str(d, "script.name", "");
    p->script_sha256 = tl_json_str(d, "script.sha256", "");
    p->script_text = tl_json_str(d, "script.text", "");
    p->seed = (uint64_t)tl_json_int(d, "seed", 1);
    p->repeats_min = tl_json_int(d, "repeats.min", 1);
    p->repeats_max = tl_json_int(d, "repeats.max", 1);
    p->warmup = tl_json_int(d, "repeats.warmup", 0);
    p->until_ci = tl_json_num(d, "repeats.until_ci", 0.02);
    p->probe_bandwidth = tl_json_bool(d, "probe.bandwidth", true);
    p->probe_ms = tl_json_int(d, "probe.milliseconds", 150);
    p->grouped = tl_str_eq(tl_json_str(d, "order", ""), "grouped");
    p->axes = json_object_get(d, "axes");
    p->models = p->impl->models;
    p->workload = json_object_get(d, "workload");
    p->engine = json_object_get(d, "engine");
    p->accept = json_object_get(d, "accept");
    p->figures = json_object_get(d, "figures");
}

tl_status tl_plan_from_json(tl_plan **out, const json_t *description, tl_err *e) {
    plan_check c = {.file = tl_json_str(description, "_file", tl_json_str(description, "script.name", NULL)),
                    .lines = tl_json_at(description, "_line"),
                    .e = e};
    tl_status st = TL_OK;
    tl_plan *p = tl_xalloc(sizeof *p);
    p->impl = tl_xalloc(sizeof *p->impl);
    p->impl->arena = tl_arena_new();
    p->impl->models = json_array();
    p->impl->cells = json_array();
    *out = NULL;
    TRY(plan_normal(&p->impl->doc, &c, "", description));
    TRY(check_whole(&c, p->impl->doc));
    TRY(check_script(&c, p->impl->doc));
    take_fields(p);
    TRY(collect_models(p, &c));
    TRY(expand(p, &c));
    TRY(take_predictions(p, &c));
    *out = p;
    return TL_OK;
out:
    tl_plan_free(p);
    return st;
}

tl_status tl_plan_parse(tl_plan **out, const char *text, size_t len, const char *what, tl_err *e) {
    json_t *j = NULL;
    *out = NULL;
    tl_status st = tl_json_parse(&j, text, len, what, e);
    if (st != TL_OK) return st;
    st = tl_plan_from_json(out, j, e);
    if (st != TL_OK) tl_wrap(e, "%s", what);
    json_decref(j);
    return st;
}

void tl_plan_free(tl_plan *p) {
    if (p == NULL) return;
    json_decref(p->impl->doc);
    json_decref(p->impl->models);
    json_decref(p->impl->cells);
    tl_arena_free(p->impl->arena);
    free(p->impl);
    free(p->cells);
    free(p);
}

char *tl_plan_text(const tl_plan *p) {
    return tl_json_canonical(p->impl->doc);
}

json_t *tl_plan_json(const tl_plan *p) {
    return json_deep_copy(p->impl->doc);
}

void tl_plan_hash(const tl_plan *p, char out[65]) {
    char *text = tl_plan_text(p);
    tl_sha256_hex(text, strlen(text), out);
    free(text);
}

json_t *tl_plan_show(const tl_plan *p) {
    json_t *j = tl_plan_json(p), *cells = json_array();
    for (size_t i = 0; i < p->n_cells; i++) {
        const tl_plan_cell *c = &p->cells[i];
        json_array_append_new(
            cells, json_pack("{s:I, s:s, s:s, s:s?, s:O, s:O, s:O, s:O}", "index", (json_int_t)c->index,
                             "key", c->key, "label", c->label, "model", c->model, "params", c->params,
                             "workload", c->workload, "settings", c->settings, "prediction", c->prediction));
    }
    json_object_set_new(j, "cells", cells);
    return j;
}

/* Values as JSON, out and in. Reading builds each node and checks it as the constructors do, so that nothing
 * unsourced gets in by a file. */
#include "value/value_impl.h"

#include <math.h>

static void set_text(json_t *o, const char *key, const char *s) {
    if (s != NULL && *s) json_object_set_new(o, key, json_string(s));
}

json_t *tl_value_to_json(tl_value *v) {
    json_t *o = json_object();
    char unit[TL_UNIT_TEXT];
    tl_unit_print(unit, &v->unit);
    json_object_set_new(o, "value", tl_json_real(v->number));
    json_object_set_new(o, "unit", json_string(unit));
    json_object_set_new(o, "label", json_string(tl_label_name(v->label)));
    json_object_set_new(o, "source", json_deep_copy(v->source));
    if (!isnan(v->lo)) {
        json_object_set_new(o, "lo", json_real(v->lo));
        json_object_set_new(o, "hi", json_real(v->hi));
    }
    set_text(o, "name", v->name);
    set_text(o, "symbol", v->symbol);
    set_text(o, "null_reason", v->null_reason);
    if (v->label != TL_LABEL_DERIVED) return o;
    set_text(o, "formula", v->formula);
    json_t *inputs = json_array(), *labels = json_array();
    for (size_t i = 0; i < v->inputs_n; i++) {
        json_t *in = tl_value_to_json(v->inputs[i].value);
        json_object_set_new(in, "role", json_string(v->inputs[i].role));
        json_array_append_new(inputs, in);
    }
    for (unsigned l = 0; l < TL_LABELS; l++)
        if (v->leaf_labels & (1u << l))
            json_array_append_new(labels, json_string(tl_label_name((tl_label)l)));
    json_object_set_new(o, "inputs", inputs);
    json_object_set_new(o, "leaf_labels", labels);
    return o;
}

typedef struct reading {
    tl_values *g;
    size_t nodes;
    tl_err *e;
} reading;

static const char *const keys[] = {"value",  "unit",    "label",  "source",      "lo",   "hi",         "name",
                                   "symbol", "formula", "inputs", "null_reason", "role", "leaf_labels"};

static tl_status check_keys(const json_t *j, tl_err *e) {
    const char *key;
    json_t *v;
    if (!json_is_object(j)) return tl_fail(e, TL_INVALID, "a value must be an object");
    json_object_foreach((json_t *)j, key, v) {
        bool known = false;
        for (size_t i = 0; i < TL_COUNT(keys); i++) known = known || strcmp(keys[i], key) == 0;
        if (known) continue;
        const char *near = tl_nearest(key, keys, TL_COUNT(keys));
        tl_fail(e, TL_INVALID, "a value has no field '%.60s'", key);
        if (near != NULL)
            tl_remedy(e, "did you mean '%s'?", near);
        else
            tl_remedy(e, "further facts belong into \"source\"");
        return TL_INVALID;
    }
    return TL_OK;
}

/* Absent and null are the same; anything else must have the type. */
static tl_status typed(const json_t **out, const json_t *j, const char *key, json_type type, tl_err *e) {
    const json_t *v = json_object_get(j, key);
    *out = json_is_null(v) ? NULL : v;
    if (*out == NULL || json_typeof(v) == type || (type == JSON_REAL && json_is_number(v))) return TL_OK;
    return tl_fail(e, TL_INVALID, "field '%s' of a value must be %s", key,
                   type == JSON_STRING  ? "a text"
                   : type == JSON_REAL  ? "a number"
                   : type == JSON_ARRAY ? "a list"
                                        : "an object");
}

typedef struct raw {
    double number, lo, hi;
    const char *unit, *label, *name, *symbol, *formula, *null_reason;
    const json_t *source, *inputs;
} raw;

static tl_status read_raw(raw *r, const json_t *j, tl_err *e) {
    tl_status st = TL_OK;
    struct {
        const char *key, **to;
    } texts[] = {{"unit", &r->unit},     {"label", &r->label},     {"name", &r->name},
                 {"symbol", &r->symbol}, {"formula", &r->formula}, {"null_reason", &r->null_reason}};
    struct {
        const char *key;
        double *to;
    } numbers[] = {{"value", &r->number}, {"lo", &r->lo}, {"hi", &r->hi}};
    const json_t *v;
    memset(r, 0, sizeof *r);
    TRY(check_keys(j, e));
    for (size_t i = 0; i < TL_COUNT(texts); i++) {
        TRY(typed(&v, j, texts[i].key, JSON_STRING, e));
        *texts[i].to = json_string_value(v);
    }
    for (size_t i = 0; i < TL_COUNT(numbers); i++) {
        TRY(typed(&v, j, numbers[i].key, JSON_REAL, e));
        *numbers[i].to = v ? json_number_value(v) : NAN;
    }
    TRY(typed(&r->source, j, "source", JSON_OBJECT, e));
    TRY(typed(&r->inputs, j, "inputs", JSON_ARRAY, e));
    if (isnan(r->lo) != isnan(r->hi)) st = tl_fail(e, TL_INVALID, "an interval needs both lo and hi");
out:
    return st;
}

static tl_status read_value(tl_value **out, reading *rd, const json_t *j, int depth);

static tl_status read_derived(tl_value **out, reading *rd, const raw *r, int depth) {
    size_t n = json_array_size(r->inputs);
    tl_value_input *in = tl_xalloc(n * sizeof *in);
    tl_status st = TL_OK;
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        const json_t *one = json_array_get(r->inputs, i);
        const char *role = tl_json_str(one, "role", NULL);
        st = read_value(&in[i].value, rd, one, depth + 1);
        if (st != TL_OK) tl_wrap(rd->e, "inputs.%zu", i);
        in[i].role = role ? role : st == TL_OK && in[i].value->name[0] ? in[i].value->name : "";
    }
    if (st == TL_OK) st = value_check_number(r->number, r->null_reason, r->name, rd->e);
    if (st == TL_OK) {
        tl_value_derivation d = {.name = r->name,
                                 .symbol = r->symbol,
                                 .formula = r->formula,
                                 .inputs = in,
                                 .inputs_n = n,
                                 .extra = r->source};
        st = tl_value_derive_number(out, rd->g, &d, r->number, r->lo, r->hi, r->unit, rd->e);
    }
    if (st == TL_OK && isnan(r->number)) {
        struct tl_value *v = value_copy(rd->g, *out);
        value_undefined(v, tl_arena_strdup(rd->g->arena, r->null_reason));
        *out = v;
    }
    free(in);
    return st;
}

static tl_status read_value(tl_value **out, reading *rd, const json_t *j, int depth) {
    tl_status st = TL_OK;
    raw r;
    tl_label label;
    *out = NULL;
    if (depth > VALUE_MAX_DEPTH || ++rd->nodes > VALUE_MAX_NODES)
        return tl_fail(rd->e, TL_LIMIT, "a value with more than %d steps or %d inputs", VALUE_MAX_DEPTH,
                       VALUE_MAX_NODES);
    TRY(read_raw(&r, j, rd->e));
    TRY(tl_label_parse(&label, r.label, rd->e));
    if (label == TL_LABEL_DERIVED) return read_derived(out, rd, &r, depth);
    if (json_array_size(r.inputs) > 0 || r.formula != NULL) {
        tl_fail(rd->e, TL_INVALID, "'%.60s' is labelled %s but has a formula or inputs", r.name ? r.name : "",
                r.label);
        return tl_remedy(rd->e, "what is computed from other values is derived"), TL_INVALID;
    }
    tl_value_leaf leaf = {.number = r.number,
                          .unit = r.unit,
                          .name = r.name,
                          .symbol = r.symbol,
                          .null_reason = r.null_reason,
                          .label = label,
                          .source = r.source};
    TRY(tl_value_new(out, rd->g, &leaf, rd->e));
    if (!isnan(r.lo)) TRY(tl_value_interval(out, rd->g, *out, r.lo, r.hi, rd->e));
out:
    return st;
}

tl_status tl_value_from_json(tl_value **out, tl_values *g, const json_t *j, tl_err *e) {
    reading rd = {.g = g, .e = e};
    return read_value(out, &rd, j, 0);
}

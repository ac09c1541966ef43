/* The graph of values and its constructors. A leaf without its source cannot be made, so nothing further up
 * has to ask. */
#include "value/value_impl.h"

#include <math.h>

tl_values *tl_values_new(void) {
    tl_values *g = tl_xalloc(sizeof *g);
    g->arena = tl_arena_new();
    return g;
}

void tl_values_free(tl_values *g) {
    if (g == NULL) return;
    for (size_t i = 0; i < g->n; i++) json_decref(g->sources[i]);
    free(g->sources);
    tl_arena_free(g->arena);
    free(g);
}

struct tl_value *value_node(tl_values *g) {
    struct tl_value *v = tl_arena_alloc(g->arena, sizeof *v);
    v->number = v->lo = v->hi = NAN;
    v->name = v->symbol = "";
    return v;
}

struct tl_value *value_copy(tl_values *g, tl_value *v) {
    struct tl_value *c = tl_arena_alloc(g->arena, sizeof *c);
    *c = *v;
    return c;
}

const json_t *value_source(tl_values *g, const json_t *j) {
    json_t *copy = j ? json_deep_copy(j) : json_object();
    TL_PUSH(g->sources, g->n, g->cap, copy);
    return copy;
}

void value_undefined(struct tl_value *v, const char *reason) {
    v->number = v->lo = v->hi = NAN;
    v->null_reason = reason;
}

static bool blank(const json_t *source, const char *key) {
    const char *s = json_string_value(json_object_get(source, key));
    return s == NULL || s[strspn(s, " \t\n")] == 0;
}

tl_status value_check_source(tl_label label, const json_t *source, const char *name, tl_err *e) {
    static const char *const needs[TL_LABELS][4] = {
        [TL_LABEL_OFFICIAL] = {"url", "title", "retrieved"},
        [TL_LABEL_CITED] = {"who", "where", "when", "conditions"},
    };
    static const char *const remedies[TL_LABELS] = {
        [TL_LABEL_OFFICIAL] =
            "give source = {url = ..., title = ..., retrieved = \"YYYY-MM-DD\"} of the vendor's document",
        [TL_LABEL_MEASURED] =
            "a measured value comes from a run in the store and names it; it cannot be written by hand",
        [TL_LABEL_DERIVED] = "derive it with a formula from values that have sources",
        [TL_LABEL_CITED] =
            "give source = {who = ..., where = ..., when = ..., conditions = ...} of the one who measured it",
    };
    const char *missing = NULL;
    if (source != NULL && !json_is_object(source)) missing = "an object";
    if (label == TL_LABEL_MEASURED && blank(source, "run") && blank(source, "probe")) missing = "run";
    for (size_t i = 0; i < 4 && needs[label][i] != NULL && missing == NULL; i++)
        if (blank(source, needs[label][i])) missing = needs[label][i];
    if (label == TL_LABEL_DERIVED) missing = "formula";
    if (missing == NULL) return TL_OK;
    tl_fail(e, TL_REFUSED, "%s value '%.60s' has no source: '%s' is missing", tl_label_name(label),
            name ? name : "", missing);
    return tl_remedy(e, "%s", remedies[label]), TL_REFUSED;
}

tl_status value_check_number(double number, const char *null_reason, const char *name, tl_err *e) {
    if (isinf(number)) return tl_fail(e, TL_INVALID, "value '%.60s' is infinite", name ? name : "");
    if (!isnan(number) == (null_reason == NULL || *null_reason == 0)) return TL_OK;
    if (isnan(number)) {
        tl_fail(e, TL_INVALID, "value '%.60s' is undefined without a reason", name ? name : "");
        return tl_remedy(e, "say why in null_reason; an undefined value is never 0"), TL_INVALID;
    }
    return tl_fail(e, TL_INVALID, "value '%.60s' has a number and a reason for having none",
                   name ? name : "");
}

tl_status tl_value_new(tl_value **out, tl_values *g, const tl_value_leaf *leaf, tl_err *e) {
    *out = NULL;
    tl_unit unit;
    tl_status st = value_check_source(leaf->label, leaf->source, leaf->name, e);
    if (st == TL_OK) st = tl_unit_parse(&unit, leaf->unit, e);
    if (st == TL_OK) st = value_check_number(leaf->number, leaf->null_reason, leaf->name, e);
    if (st != TL_OK) return st;
    struct tl_value *v = value_node(g);
    v->number = leaf->number;
    v->unit = unit;
    v->label = leaf->label;
    v->leaf_labels = 1u << leaf->label;
    v->nodes = 1;
    if (leaf->name != NULL) v->name = tl_arena_strdup(g->arena, leaf->name);
    if (leaf->symbol != NULL) v->symbol = tl_arena_strdup(g->arena, leaf->symbol);
    if (isnan(leaf->number)) v->null_reason = tl_arena_strdup(g->arena, leaf->null_reason);
    v->source = value_source(g, leaf->source);
    *out = v;
    return TL_OK;
}

tl_status value_set_inputs(struct tl_value *v, tl_values *g, const tl_value_input *inputs, size_t n,
                           tl_err *e) {
    tl_value_input *copy = tl_arena_alloc(g->arena, n * sizeof *copy);
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) {
        copy[i].role = tl_arena_strdup(g->arena, inputs[i].role ? inputs[i].role : "");
        copy[i].value = inputs[i].value;
        if (copy[i].role[0] == 0)
            return tl_fail(e, TL_INVALID, "input %zu of '%.60s' has no role", i + 1, v->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(copy[k].role, copy[i].role) == 0)
                return tl_fail(e, TL_INVALID, "'%.60s' has two inputs with the role '%.60s'", v->name,
                               copy[i].role);
        v->leaf_labels |= inputs[i].value->leaf_labels;
        nodes += inputs[i].value->nodes;
        if (inputs[i].value->depth >= v->depth) v->depth = inputs[i].value->depth + 1;
    }
    if (v->depth > VALUE_MAX_DEPTH)
        return tl_fail(e, TL_LIMIT, "'%.60s' is derived through more than %d steps", v->name,
                       VALUE_MAX_DEPTH);
    if (nodes > VALUE_MAX_NODES)
        return tl_fail(e, TL_LIMIT, "'%.60s' is derived from more than %d values", v->name, VALUE_MAX_NODES);
    v->nodes = (uint32_t)nodes;
    v->inputs = copy;
    v->inputs_n = n;
    return TL_OK;
}

static tl_status derivation(struct tl_value **out, tl_values *g, const tl_value_derivation *d, tl_err *e) {
    const char *name = d->name ? d->name : "";
    if (d->formula == NULL || d->formula[strspn(d->formula, " ")] == 0 || d->inputs_n == 0) {
        tl_fail(e, TL_REFUSED, "derived value '%.60s' has no %s", name,
                d->inputs_n == 0 ? "inputs" : "formula");
        return tl_remedy(e, "a derived value carries a formula and its inputs, each itself a value"),
               TL_REFUSED;
    }
    struct tl_value *v = value_node(g);
    v->label = TL_LABEL_DERIVED;
    v->name = tl_arena_strdup(g->arena, name);
    if (d->symbol != NULL) v->symbol = tl_arena_strdup(g->arena, d->symbol);
    v->formula = tl_arena_strdup(g->arena, d->formula);
    v->source = value_source(g, d->extra);
    *out = v;
    return value_set_inputs(v, g, d->inputs, d->inputs_n, e);
}

static const char *first_reason(tl_values *g, const tl_value_derivation *d, const char *own) {
    for (size_t i = 0; i < d->inputs_n; i++)
        if (d->inputs[i].value->null_reason != NULL) return d->inputs[i].value->null_reason;
    return tl_arena_strdup(g->arena, own);
}

tl_status tl_value_derive(tl_value **out, tl_values *g, const tl_value_derivation *d, tl_err *e) {
    *out = NULL;
    struct tl_value *v;
    tl_status st = derivation(&v, g, d, e);
    if (st != TL_OK) return st;
    for (unsigned l = 0; l < TL_LABELS; l++)
        if ((d->result->leaf_labels & ~v->leaf_labels) & (1u << l)) {
            tl_fail(e, TL_REFUSED,
                    "derived value '%.60s' rests on a value that is %s, and none of its inputs is", v->name,
                    tl_label_name((tl_label)l));
            return tl_remedy(e, "name every value that the computation uses among its inputs"), TL_REFUSED;
        }
    v->number = d->result->number;
    v->lo = d->result->lo;
    v->hi = d->result->hi;
    v->unit = d->result->unit;
    v->null_reason = d->result->null_reason;
    *out = v;
    return TL_OK;
}

tl_status tl_value_derive_number(tl_value **out, tl_values *g, const tl_value_derivation *d, double number,
                                 double lo, double hi, const char *unit, tl_err *e) {
    *out = NULL;
    struct tl_value *v;
    tl_status st = derivation(&v, g, d, e);
    if (st == TL_OK) st = tl_unit_parse(&v->unit, unit, e);
    if (st != TL_OK) return st;
    if (isinf(number)) return tl_fail(e, TL_INVALID, "value '%.60s' is infinite", v->name);
    v->number = number;
    if (isnan(number)) value_undefined(v, first_reason(g, d, "the computation gave no number"));
    *out = v;
    if (isnan(number) || (isnan(lo) && isnan(hi))) return TL_OK;
    return tl_value_interval(out, g, v, lo, hi, e);
}

tl_status tl_value_interval(tl_value **out, tl_values *g, tl_value *v, double lo, double hi, tl_err *e) {
    *out = NULL;
    if (isnan(v->number)) return tl_fail(e, TL_INVALID, "'%.60s' is undefined and has no interval", v->name);
    if (!isfinite(lo) || !isfinite(hi) || !(lo <= v->number && v->number <= hi)) {
        char x[32], l[32], h[32];
        tl_fmt_f64(x, v->number);
        tl_fmt_f64(l, lo);
        tl_fmt_f64(h, hi);
        return tl_fail(e, TL_INVALID, "'%.60s': the interval %s to %s does not hold its number %s", v->name,
                       l, h, x);
    }
    struct tl_value *c = value_copy(g, v);
    c->lo = lo;
    c->hi = hi;
    *out = c;
    return TL_OK;
}

tl_value *tl_value_named(tl_values *g, tl_value *v, const char *name, const char *symbol) {
    struct tl_value *c = value_copy(g, v);
    if (name != NULL) c->name = tl_arena_strdup(g->arena, name);
    if (symbol != NULL) c->symbol = tl_arena_strdup(g->arena, symbol);
    return c;
}

tl_status tl_value_convert(tl_value **out, tl_values *g, tl_value *v, const char *unit, tl_err *e) {
    *out = NULL;
    tl_unit to;
    tl_unit_ratio r;
    tl_status st = tl_unit_parse(&to, unit, e);
    if (st == TL_OK) st = tl_unit_convert(&r, &v->unit, &to, e);
    if (st != TL_OK) {
        tl_wrap(e, "value '%.60s'", v->name);
        return st;
    }
    struct tl_value *c = value_copy(g, v);
    c->unit = to;
    c->number = tl_unit_apply(r, v->number);
    c->lo = tl_unit_apply(r, v->lo);
    c->hi = tl_unit_apply(r, v->hi);
    *out = c;
    return TL_OK;
}

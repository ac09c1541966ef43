/* Arithmetic: numbers, intervals (monotone interval arithmetic: the least and greatest of the corner
 * results), units and labels together. Rounding of the corners is ordinary double rounding, far below any
 * uncertainty that is stored. */
#include "value/value_impl.h"

#include <math.h>

typedef struct operand {
    double x, lo, hi;
    bool interval;
} operand;

static operand operand_of(tl_value *v, tl_unit_ratio r) {
    operand o = {.x = tl_unit_apply(r, v->number), .interval = !isnan(v->lo)};
    o.lo = o.interval ? tl_unit_apply(r, v->lo) : o.x;
    o.hi = o.interval ? tl_unit_apply(r, v->hi) : o.x;
    return o;
}

static double apply(tl_value_op op, double a, double b) {
    switch (op) {
    case TL_ADD:
        return a + b;
    case TL_SUB:
        return a - b;
    case TL_MUL:
        return a * b;
    case TL_DIV:
        return a / b;
    case TL_MIN:
        return a < b ? a : b;
    case TL_MAX:
        return a > b ? a : b;
    }
    return NAN;
}

/* Sets number and interval of v; undefined with the reason where there is no result. */
static void compute(struct tl_value *v, tl_values *g, tl_value_op op, operand a, operand b, tl_unit_ratio r) {
    if (op == TL_DIV && b.x == 0) {
        value_undefined(v, "division by zero");
        return;
    }
    if (op == TL_DIV && b.lo <= 0 && b.hi >= 0) {
        value_undefined(v, "division by an interval that holds zero");
        return;
    }
    v->number = tl_unit_apply(r, apply(op, a.x, b.x));
    if (!isfinite(v->number)) {
        value_undefined(v, tl_arena_strdup(g->arena, "the result is too large"));
        return;
    }
    if (!a.interval && !b.interval) return;
    const double corner[4] = {apply(op, a.lo, b.lo), apply(op, a.lo, b.hi), apply(op, a.hi, b.lo),
                              apply(op, a.hi, b.hi)};
    v->lo = v->hi = v->number;
    for (size_t i = 0; i < 4; i++) {
        double c = tl_unit_apply(r, corner[i]);
        if (c < v->lo) v->lo = c;
        if (c > v->hi) v->hi = c;
    }
    if (!isfinite(v->lo) || !isfinite(v->hi)) value_undefined(v, "the interval of the result is too large");
}

static const char *const signs[] = {"+", "-", "*", "/", "min", "max"};

static const char *called(tl_value *v, const char *otherwise) {
    return v->symbol[0] ? v->symbol : v->name[0] ? v->name : otherwise;
}

static char *formula_of(tl_values *g, tl_value_op op, const char *a, const char *b) {
    const char *form = op >= TL_MIN ? "%s(%s, %s)" : NULL;
    if (form != NULL) return tl_arena_printf(g->arena, "%s(%s, %s)", signs[op], a, b);
    return tl_arena_printf(g->arena, "%s %s %s", a, signs[op], b);
}

static tl_status unit_of(tl_unit *out, tl_unit_ratio *result, tl_unit_ratio *second, tl_value_op op,
                         tl_value *a, tl_value *b, tl_err *e) {
    *result = *second = (tl_unit_ratio){1, 1};
    tl_status st;
    if (op == TL_MUL)
        st = tl_unit_mul(out, result, &a->unit, &b->unit, e);
    else if (op == TL_DIV)
        st = tl_unit_div(out, result, &a->unit, &b->unit, e);
    else {
        *out = a->unit;
        st = tl_unit_match(second, &b->unit, &a->unit, e);
    }
    if (st != TL_OK) tl_wrap(e, "%s %s %s", called(a, "a"), signs[op], called(b, "b"));
    return st;
}

tl_status tl_value_calc(tl_value **out, tl_values *g, tl_value_op op, tl_value *a, tl_value *b, tl_err *e) {
    *out = NULL;
    tl_unit unit;
    tl_unit_ratio result, second;
    tl_status st = unit_of(&unit, &result, &second, op, a, b, e);
    if (st != TL_OK) return st;
    struct tl_value *v = value_node(g);
    const char *ra = called(a, "a"), *rb = called(b, "b");
    if (strcmp(ra, rb) == 0) {
        ra = tl_arena_printf(g->arena, "%s_1", ra);
        rb = tl_arena_printf(g->arena, "%s_2", rb);
    }
    const tl_value_input in[2] = {{ra, a}, {rb, b}};
    v->label = TL_LABEL_DERIVED;
    v->unit = unit;
    v->formula = formula_of(g, op, ra, rb);
    v->source = value_source(g, NULL);
    st = value_set_inputs(v, g, in, 2, e);
    if (st != TL_OK) return st;
    const char *reason = a->null_reason ? a->null_reason : b->null_reason;
    if (reason != NULL)
        value_undefined(v, reason);
    else
        compute(v, g, op, operand_of(a, (tl_unit_ratio){1, 1}), operand_of(b, second), result);
    *out = v;
    return TL_OK;
}

static tl_status number_unit(tl_unit *out, tl_unit_ratio *r, tl_value_op op, tl_value *v, bool first,
                             tl_err *e) {
    const tl_unit one = {0};
    *r = (tl_unit_ratio){1, 1};
    if (op == TL_MUL || (op == TL_DIV && !first)) { /* 2 x 5 % stays in % */
        *out = v->unit;
        return TL_OK;
    }
    if (op == TL_DIV) return tl_unit_div(out, r, &one, &v->unit, e);
    *out = v->unit;
    char text[TL_UNIT_TEXT];
    tl_unit_print(text, &v->unit);
    if (strcmp(text, "1") == 0) return TL_OK;
    tl_fail(e, TL_INVALID, "%s %s a plain number: '%s' has the unit %s", signs[op], first ? "of" : "with",
            called(v, "the value"), text);
    return tl_remedy(e, "give the number a unit and a label, as in tally.official(1, \"%s\", {...})", text),
           TL_INVALID;
}

tl_status tl_value_calc_number(tl_value **out, tl_values *g, tl_value_op op, tl_value *x, double k,
                               bool number_first, tl_err *e) {
    *out = NULL;
    tl_unit unit;
    tl_unit_ratio r;
    if (!isfinite(k))
        return tl_fail(e, TL_INVALID, "%s %s: the number is not finite", called(x, "a"), signs[op]);
    tl_status st = number_unit(&unit, &r, op, x, number_first, e);
    if (st != TL_OK) return st;
    struct tl_value *v = value_node(g);
    char text[32];
    tl_fmt_f64(text, k);
    const char *role = called(x, "a");
    const tl_value_input in = {role, x};
    v->label = TL_LABEL_DERIVED;
    v->unit = unit;
    v->formula = number_first ? formula_of(g, op, text, role) : formula_of(g, op, role, text);
    v->source = value_source(g, NULL);
    st = value_set_inputs(v, g, &in, 1, e);
    if (st != TL_OK) return st;
    operand a = operand_of(x, (tl_unit_ratio){1, 1}), b = {.x = k, .lo = k, .hi = k};
    if (x->null_reason != NULL)
        value_undefined(v, x->null_reason);
    else if (number_first)
        compute(v, g, op, b, a, r);
    else
        compute(v, g, op, a, b, r);
    *out = v;
    return TL_OK;
}

static double power(double x, int n) {
    double r = 1;
    for (int i = n < 0 ? -n : n; i > 0; i--) r *= x;
    return n < 0 ? 1 / r : r;
}

tl_status tl_value_pow(tl_value **out, tl_values *g, tl_value *x, int n, tl_err *e) {
    *out = NULL;
    tl_unit_ratio r;
    struct tl_value *v = value_node(g);
    tl_status st = tl_unit_pow(&v->unit, &r, &x->unit, n, e);
    if (st != TL_OK) {
        tl_wrap(e, "%s^%d", called(x, "a"), n);
        return st;
    }
    const tl_value_input in = {called(x, "a"), x};
    v->label = TL_LABEL_DERIVED;
    v->formula = tl_arena_printf(g->arena, "%s^%d", in.role, n);
    v->source = value_source(g, NULL);
    st = value_set_inputs(v, g, &in, 1, e);
    if (st != TL_OK) return st;
    operand a = operand_of(x, (tl_unit_ratio){1, 1});
    *out = v;
    if (x->null_reason != NULL)
        value_undefined(v, x->null_reason);
    else if (n < 0 && a.lo <= 0 && a.hi >= 0)
        value_undefined(v, a.x == 0 ? "division by zero" : "division by an interval that holds zero");
    else {
        /* the number goes through compute for its checks; an even power turns around at zero */
        operand lo_hi = {
            .x = power(a.x, n), .lo = power(a.lo, n), .hi = power(a.hi, n), .interval = a.interval};
        operand one = {.x = 1, .lo = 1, .hi = 1};
        bool around_zero = a.interval && n > 0 && n % 2 == 0 && a.lo < 0 && a.hi > 0;
        compute(v, g, TL_MUL, lo_hi, one, r);
        if (around_zero && !isnan(v->lo)) v->lo = 0;
    }
    return TL_OK;
}

tl_status tl_value_compare(int *out, tl_value *a, tl_value *b, tl_err *e) {
    tl_unit_ratio r;
    *out = 0;
    tl_status st = tl_unit_match(&r, &b->unit, &a->unit, e);
    if (st != TL_OK) {
        tl_wrap(e, "comparing %s with %s", called(a, "a"), called(b, "b"));
        return st;
    }
    tl_value *undefined = a->null_reason ? a : b->null_reason ? b : NULL;
    if (undefined != NULL)
        return tl_fail(e, TL_INVALID, "comparing '%s', which is undefined: %s", called(undefined, "a"),
                       undefined->null_reason);
    double y = tl_unit_apply(r, b->number);
    *out = a->number < y ? -1 : a->number > y ? 1 : 0;
    return TL_OK;
}

/* ---- statistics
 * -------------------------------------------------------------------------------------------------- */

static bool one_condition(const tl_value_statistic *s) {
    const json_t *first = s->samples[0]->source;
    for (size_t i = 0; i < s->n; i++) {
        const json_t *src = s->samples[i]->source;
        if (s->samples[i]->label != TL_LABEL_MEASURED) return false;
        if (!tl_str_eq(tl_json_str(src, "run", NULL), tl_json_str(first, "run", NULL))) return false;
        if (!tl_str_eq(tl_json_str(src, "cell", NULL), tl_json_str(first, "cell", NULL))) return false;
        if (!tl_str_eq(tl_json_str(src, "probe", NULL), tl_json_str(first, "probe", NULL))) return false;
    }
    return true;
}

static json_t *statistic_source(const tl_value_statistic *s) {
    json_t *src = json_object();
    static const char *const keep[] = {"run", "cell", "probe", "machine", "revision"};
    for (size_t i = 0; i < TL_COUNT(keep); i++) {
        json_t *v = json_object_get(s->samples[0]->source, keep[i]);
        if (v != NULL) json_object_set(src, keep[i], v);
    }
    json_object_set_new(src, "statistic", json_string(s->statistic));
    json_object_set_new(src, "n", json_integer((json_int_t)s->n));
    return src;
}

static tl_status derived_statistic(tl_value **out, tl_values *g, const tl_value_statistic *s,
                                   const char *unit, tl_err *e) {
    tl_value_input *in = tl_xalloc(s->n * sizeof *in);
    for (size_t i = 0; i < s->n; i++)
        in[i] = (tl_value_input){tl_arena_printf(g->arena, "x%zu", i + 1), s->samples[i]};
    char *formula = tl_arena_printf(g->arena, s->n > 1 ? "%s(x1 ... x%zu)" : "%s(x%zu)", s->statistic, s->n);
    tl_value_derivation d = {.name = s->name, .formula = formula, .inputs = in, .inputs_n = s->n};
    tl_status st = tl_value_derive_number(out, g, &d, s->number, s->lo, s->hi, unit, e);
    free(in);
    return st;
}

tl_status tl_value_stat(tl_value **out, tl_values *g, const tl_value_statistic *s, tl_err *e) {
    *out = NULL;
    char unit[TL_UNIT_TEXT];
    if (s->n == 0 || s->statistic == NULL)
        return tl_fail(e, TL_INVALID, "a statistic needs a name and at least one sample");
    tl_unit_print(unit, &s->samples[0]->unit);
    for (size_t i = 1; i < s->n; i++)
        if (!tl_unit_equal(&s->samples[i]->unit, &s->samples[0]->unit)) {
            char other[TL_UNIT_TEXT];
            tl_unit_print(other, &s->samples[i]->unit);
            return tl_fail(e, TL_INVALID, "samples of '%s' are in '%s' and '%s'", s->name ? s->name : "",
                           unit, other);
        }
    if (!one_condition(s)) return derived_statistic(out, g, s, unit, e);
    json_t *source = statistic_source(s);
    tl_value_leaf leaf = {
        .number = s->number, .unit = unit, .name = s->name, .label = TL_LABEL_MEASURED, .source = source};
    if (isnan(s->number)) leaf.null_reason = "the statistic is undefined";
    tl_status st = tl_value_new(out, g, &leaf, e);
    json_decref(source);
    if (st == TL_OK && !(isnan(s->lo) && isnan(s->hi))) st = tl_value_interval(out, g, *out, s->lo, s->hi, e);
    return st;
}

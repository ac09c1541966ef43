/* Values: no number without source, labels that follow from what was done, intervals, undefined values, JSON
 * and text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "value/value.h"
#include <cmocka.h>

static tl_values *g;

static int setup(void **state) {
    TL_UNUSED(state);
    g = tl_values_new();
    return 0;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_values_free(g);
    return 0;
}

static tl_value *make(double x, const char *unit, tl_label label, const char *name, const char *source) {
    json_t *src = NULL;
    tl_value *v = NULL;
    tl_err e = {0};
    assert_int_equal(tl_json_parse(&src, source, strlen(source), "source", &e), TL_OK);
    tl_value_leaf l = {.number = x, .unit = unit, .name = name, .label = label, .source = src};
    if (tl_value_new(&v, g, &l, &e) != TL_OK) fail_msg("%s", e.msg);
    json_decref(src);
    return v;
}

static tl_value *measured(double x, const char *unit, const char *name) {
    return make(x, unit, TL_LABEL_MEASURED, name, "{\"run\": \"01J9\", \"cell\": \"c1\"}");
}

static tl_value *official(double x, const char *unit, const char *name) {
    return make(
        x, unit, TL_LABEL_OFFICIAL, name,
        "{\"url\": \"https://x.example/a\", \"title\": \"Data sheet\", \"retrieved\": \"2026-01-31\"}");
}

static tl_value *with(tl_value *v, double lo, double hi) {
    tl_value *out;
    assert_int_equal(tl_value_interval(&out, g, v, lo, hi, NULL), TL_OK);
    return out;
}

static tl_value *calc(tl_value_op op, tl_value *a, tl_value *b) {
    tl_value *v;
    tl_err e = {0};
    if (tl_value_calc(&v, g, op, a, b, &e) != TL_OK) fail_msg("%s", e.msg);
    return v;
}

static void refuses_unsourced(void **state) {
    TL_UNUSED(state);
    static const struct {
        tl_label label;
        const char *source, *missing;
    } bad[] = {
        {TL_LABEL_OFFICIAL, "{}", "'url'"},
        {TL_LABEL_OFFICIAL, "{\"url\": \"u\", \"title\": \"t\"}", "'retrieved'"},
        {TL_LABEL_OFFICIAL, "{\"url\": \" \", \"title\": \"t\", \"retrieved\": \"d\"}", "'url'"},
        {TL_LABEL_OFFICIAL, "{\"url\": 3, \"title\": \"t\", \"retrieved\": \"d\"}", "'url'"},
        {TL_LABEL_MEASURED, "{\"who\": \"me\"}", "'run'"},
        {TL_LABEL_CITED, "{\"who\": \"w\", \"where\": \"x\", \"when\": \"y\"}", "'conditions'"},
        {TL_LABEL_CITED, "[]", "'an object'"},
        {TL_LABEL_DERIVED, "{\"url\": \"u\", \"title\": \"t\", \"retrieved\": \"d\"}", "'formula'"},
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        json_t *src = json_loads(bad[i].source, 0, NULL);
        tl_value_leaf l = {.number = 1, .unit = "GB", .name = "x", .label = bad[i].label, .source = src};
        tl_value *v = NULL;
        tl_err e = {0};
        assert_int_equal(tl_value_new(&v, g, &l, &e), TL_REFUSED);
        assert_non_null(strstr(e.msg, bad[i].missing));
        assert_true(e.remedy[0] != 0);
        assert_null(v);
        json_decref(src);
    }
    tl_value_leaf none = {.number = 1, .unit = "GB", .label = TL_LABEL_CITED};
    tl_value *v;
    assert_int_equal(tl_value_new(&v, g, &none, NULL), TL_REFUSED);
}

static void refuses_numbers(void **state) {
    TL_UNUSED(state);
    json_t *src = json_pack("{s:s}", "run", "01J9");
    tl_value *v;
    tl_err e = {0};
    tl_value_leaf l = {.number = INFINITY, .unit = "s", .label = TL_LABEL_MEASURED, .source = src};
    assert_int_equal(tl_value_new(&v, g, &l, &e), TL_INVALID);
    l.number = NAN;
    assert_int_equal(tl_value_new(&v, g, &l, &e), TL_INVALID);
    l.null_reason = "no token came";
    assert_int_equal(tl_value_new(&v, g, &l, &e), TL_OK);
    assert_string_equal(v->null_reason, "no token came");
    l.number = 0;
    assert_int_equal(tl_value_new(&v, g, &l, &e), TL_INVALID);
    l.null_reason = NULL;
    l.unit = NULL;
    assert_int_equal(tl_value_new(&v, g, &l, &e), TL_INVALID);
    l.unit = "s";
    assert_int_equal(tl_value_new(&v, g, &l, &e), TL_OK);
    assert_int_equal(tl_value_interval(&v, g, v, 1, 2, &e), TL_INVALID);
    json_decref(src);
}

static void labels(void **state) {
    TL_UNUSED(state);
    tl_value *m = measured(40, "tok/s", "rate"), *o = official(0.8, "GB/tok", "weights"),
             *p = calc(TL_MUL, m, o);
    assert_int_equal(p->label, TL_LABEL_DERIVED);
    assert_int_equal(p->leaf_labels, 1u << TL_LABEL_MEASURED | 1u << TL_LABEL_OFFICIAL);
    assert_string_equal(p->formula, "rate * weights");
    assert_true(fabs(p->number - 32) < 1e-12);
    tl_value *twice;
    assert_int_equal(tl_value_calc_number(&twice, g, TL_MUL, m, 2, true, NULL), TL_OK);
    assert_int_equal(twice->label, TL_LABEL_DERIVED);
    assert_string_equal(twice->formula, "2 * rate");
    assert_int_equal(twice->leaf_labels, 1u << TL_LABEL_MEASURED);
    tl_value *c;
    assert_int_equal(tl_value_convert(&c, g, m, "tok/min", NULL), TL_OK);
    assert_int_equal(c->label, TL_LABEL_MEASURED); /* the same measurement, said in another unit */
    assert_true(c->number == 2400);
}

static void statistics(void **state) {
    TL_UNUSED(state);
    tl_value *same[3] = {measured(1, "s", "t"), measured(2, "s", "t"), measured(4, "s", "t")};
    tl_value *v;
    tl_err e = {0};
    tl_value_statistic s = {
        .name = "t", .statistic = "median", .samples = same, .n = 3, .number = 2, .lo = 1, .hi = 4};
    assert_int_equal(tl_value_stat(&v, g, &s, &e), TL_OK);
    assert_int_equal(v->label, TL_LABEL_MEASURED);
    assert_string_equal(tl_json_str(v->source, "statistic", ""), "median");
    assert_int_equal(tl_json_int(v->source, "n", 0), 3);
    assert_true(v->lo == 1 && v->hi == 4);
    /* another cell is another condition */
    same[2] = make(4, "s", TL_LABEL_MEASURED, "t", "{\"run\": \"01J9\", \"cell\": \"c2\"}");
    assert_int_equal(tl_value_stat(&v, g, &s, &e), TL_OK);
    assert_int_equal(v->label, TL_LABEL_DERIVED);
    assert_string_equal(v->formula, "median(x1 ... x3)");
    same[2] = official(4, "s", "t");
    assert_int_equal(tl_value_stat(&v, g, &s, &e), TL_OK);
    assert_int_equal(v->label, TL_LABEL_DERIVED);
    same[2] = measured(4, "ms", "t");
    assert_int_equal(tl_value_stat(&v, g, &s, &e), TL_INVALID);
    s.n = 0;
    assert_int_equal(tl_value_stat(&v, g, &s, &e), TL_INVALID);
}

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fabs(want) + 1e-300)) fail_msg("%.17g is not %.17g", got, want);
}

static void intervals(void **state) {
    TL_UNUSED(state);
    tl_value *a = with(measured(10, "s", "a"), 9, 11), *b = with(measured(2, "s", "b"), 1, 4), *v;
    v = calc(TL_ADD, a, b), near(v->lo, 10), near(v->hi, 15);
    v = calc(TL_SUB, a, b), near(v->lo, 5), near(v->hi, 10);
    v = calc(TL_MUL, a, b), near(v->lo, 9), near(v->hi, 44);
    v = calc(TL_DIV, a, b), near(v->lo, 9.0 / 4), near(v->hi, 11);
    v = calc(TL_MIN, a, b), near(v->lo, 1), near(v->hi, 4);
    v = calc(TL_MAX, a, b), near(v->lo, 9), near(v->hi, 11);
    v = calc(TL_SUB, b, a), near(v->number, -8), near(v->lo, -10), near(v->hi, -5);
    v = calc(TL_ADD, a, official(1000, "ms", "c")), near(v->lo, 10), near(v->hi, 12), near(v->number, 11);
    tl_value *m = with(measured(-1, "s", "m"), -2, 3);
    v = calc(TL_MUL, a, m), near(v->lo, -22), near(v->hi, 33);
    assert_int_equal(tl_value_pow(&v, g, m, 2, NULL), TL_OK);
    near(v->number, 1), assert_true(v->lo == 0), near(v->hi, 9);
    assert_int_equal(tl_value_pow(&v, g, m, 3, NULL), TL_OK);
    near(v->lo, -8), near(v->hi, 27);
    assert_int_equal(tl_value_pow(&v, g, b, -1, NULL), TL_OK);
    near(v->lo, 0.25), near(v->hi, 1), near(v->number, 0.5);
    assert_int_equal(tl_value_calc_number(&v, g, TL_DIV, b, 1, true, NULL), TL_OK);
    near(v->lo, 0.25), near(v->hi, 1);
    v = calc(TL_ADD, official(1, "s", "x"), official(1, "s", "y"));
    assert_true(isnan(v->lo) && isnan(v->hi));
}

/* Sampled: what is computed from points inside the intervals lies inside the interval of the result. */
static void intervals_hold(void **state) {
    TL_UNUSED(state);
    tl_rng r;
    tl_rng_seed(&r, 11);
    for (int i = 0; i < 2000; i++) {
        double x[2][3];
        for (int k = 0; k < 2; k++) {
            x[k][0] = tl_rng_f64(&r) * 20 - 10;
            x[k][1] = x[k][0] + tl_rng_f64(&r) * 5;
            x[k][2] = x[k][0] + (x[k][1] - x[k][0]) * tl_rng_f64(&r);
        }
        tl_value *a = with(measured(x[0][2], "1", "a"), x[0][0], x[0][1]),
                 *b = with(measured(x[1][2], "1", "b"), x[1][0], x[1][1]);
        for (int op = TL_ADD; op <= TL_MAX; op++) {
            tl_value *v = calc((tl_value_op)op, a, b);
            if (v->null_reason != NULL) {
                assert_true(op == TL_DIV && x[1][0] <= 0 && x[1][1] >= 0);
                continue;
            }
            double p = x[0][0] + (x[0][1] - x[0][0]) * tl_rng_f64(&r),
                   q = x[1][0] + (x[1][1] - x[1][0]) * tl_rng_f64(&r);
            double y = op == TL_ADD   ? p + q
                       : op == TL_SUB ? p - q
                       : op == TL_MUL ? p * q
                       : op == TL_DIV ? p / q
                       : op == TL_MIN ? fmin(p, q)
                                      : fmax(p, q);
            assert_true(v->lo - 1e-9 * fabs(v->lo) <= y && y <= v->hi + 1e-9 * fabs(v->hi));
            assert_true(v->lo <= v->number && v->number <= v->hi);
        }
    }
}

static void undefined(void **state) {
    TL_UNUSED(state);
    tl_value *v = calc(TL_DIV, measured(1, "s", "a"), measured(0, "s", "zero"));
    assert_true(isnan(v->number));
    assert_string_equal(v->null_reason, "division by zero");
    tl_value *w = calc(TL_ADD, v, official(1, "1", "one"));
    assert_true(isnan(w->number));
    assert_string_equal(w->null_reason, "division by zero");
    v = calc(TL_DIV, measured(1, "s", "a"), with(measured(1, "s", "b"), -1, 2));
    assert_non_null(strstr(v->null_reason, "holds zero"));
    v = calc(TL_MUL, measured(1e300, "s", "a"), measured(1e300, "s", "b"));
    assert_non_null(v->null_reason);
    int order;
    tl_err e = {0};
    assert_int_equal(tl_value_compare(&order, w, w, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "division by zero"));
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_value_text(&b, w, TL_LANG_EN);
    assert_string_equal(b.p, "– [derived]");
    tl_buf_free(&b);
}

static void plain_numbers(void **state) {
    TL_UNUSED(state);
    tl_value *s = measured(2, "s", "t"), *ratio = official(0.5, "1", "r"), *v;
    tl_err e = {0};
    assert_int_equal(tl_value_calc_number(&v, g, TL_ADD, s, 1, false, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "unit s"));
    assert_int_equal(tl_value_calc_number(&v, g, TL_SUB, ratio, 1, true, &e), TL_OK);
    near(v->number, 0.5);
    assert_int_equal(tl_value_calc_number(&v, g, TL_DIV, s, 0, false, &e), TL_OK);
    assert_string_equal(v->null_reason, "division by zero");
    assert_int_equal(tl_value_calc_number(&v, g, TL_MUL, s, NAN, false, &e), TL_INVALID);
    assert_int_equal(tl_value_calc_number(&v, g, TL_DIV, s, 1, true, &e), TL_OK);
    char unit[TL_UNIT_TEXT];
    tl_unit_print(unit, &v->unit);
    assert_string_equal(unit, "1/s");
}

static tl_value *decode_rate(void) {
    tl_value *bw =
        tl_value_named(g, with(measured(33.7, "GB/s", "bandwidth"), 33.1, 34.2), NULL, "bandwidth");
    tl_value *bytes = official(0.8, "GB/tok", "bytes_per_token"), *v;
    tl_err e = {0};
    const tl_value_input in[] = {{"bandwidth", bw}, {"bytes_per_token", bytes}};
    json_t *extra = json_pack("{s:s}", "note", "one stream");
    tl_value_derivation d = {.name = "decode_rate",
                             .formula = "bandwidth / bytes_per_token",
                             .inputs = in,
                             .inputs_n = 2,
                             .result = calc(TL_DIV, bw, bytes),
                             .extra = extra};
    if (tl_value_derive(&v, g, &d, &e) != TL_OK) fail_msg("%s", e.msg);
    json_decref(extra);
    return v;
}

static void derivation(void **state) {
    TL_UNUSED(state);
    tl_value *v = decode_rate(), *out;
    near(v->number, 33.7 / 0.8), near(v->lo, 33.1 / 0.8), near(v->hi, 34.2 / 0.8);
    tl_err e = {0};
    const tl_value_input in = {"a", measured(1, "s", "a")}, twice[] = {in, in};
    tl_value_derivation d = {.name = "x", .formula = "a", .inputs = &in, .inputs_n = 0, .result = in.value};
    assert_int_equal(tl_value_derive(&out, g, &d, &e), TL_REFUSED);
    d.inputs_n = 1;
    d.formula = "  ";
    assert_int_equal(tl_value_derive(&out, g, &d, &e), TL_REFUSED);
    d.formula = "a";
    d.result = calc(TL_ADD, in.value, official(1, "s", "hidden"));
    assert_int_equal(tl_value_derive(&out, g, &d, &e), TL_REFUSED);
    assert_non_null(strstr(e.msg, "official"));
    d.inputs = twice;
    d.inputs_n = 2;
    d.result = in.value;
    assert_int_equal(tl_value_derive(&out, g, &d, &e), TL_INVALID);
    d.inputs_n = 1;
    assert_int_equal(tl_value_derive_number(&out, g, &d, 2, 3, 4, "s", &e), TL_INVALID);
    assert_int_equal(tl_value_derive_number(&out, g, &d, NAN, NAN, NAN, "s", &e), TL_OK);
    assert_non_null(out->null_reason);
}

static void endless_growth(void **state) {
    TL_UNUSED(state);
    tl_value *v = measured(1, "s", "x");
    tl_err e = {0};
    int steps = 0;
    while (tl_value_calc(&v, g, TL_ADD, v, v, &e) == TL_OK) assert_true(++steps < 64);
    assert_int_equal(e.code, TL_LIMIT);
    v = measured(1, "s", "x");
    tl_value *one = measured(1, "s", "y");
    for (steps = 0; tl_value_calc(&v, g, TL_ADD, v, one, &e) == TL_OK; steps++) assert_true(steps < 100);
    assert_int_equal(e.code, TL_LIMIT);
}

static void json_round_trip(void **state) {
    TL_UNUSED(state);
    json_t *j = tl_value_to_json(decode_rate());
    char *text = tl_json_canonical(j);
    tl_value *back;
    tl_err e = {0};
    if (tl_value_from_json(&back, g, j, &e) != TL_OK) fail_msg("%s", e.msg);
    json_t *again = tl_value_to_json(back);
    char *same = tl_json_canonical(again);
    assert_string_equal(text, same);
    assert_string_equal(tl_json_str(j, "inputs.0.role", ""), "bandwidth");
    assert_string_equal(tl_json_str(j, "leaf_labels.0", ""), "official");
    assert_int_equal(back->inputs_n, 2);
    assert_string_equal(back->inputs[0].value->symbol, "bandwidth");
    json_decref(again);
    json_decref(j);
    free(text);
    free(same);
    tl_value *none = calc(TL_DIV, measured(1, "s", "a"), measured(0, "s", "b"));
    j = tl_value_to_json(none);
    assert_true(json_is_null(json_object_get(j, "value")));
    assert_int_equal(tl_value_from_json(&back, g, j, &e), TL_OK);
    assert_string_equal(back->null_reason, "division by zero");
    json_decref(j);
}

static void json_refuses(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"3", "must be an object"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"measured\", \"source\": {}}", "'run' is missing"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"measure\", \"source\": {\"run\": \"r\"}}",
         "not a label"},
        {"{\"value\": 1, \"label\": \"measured\", \"source\": {\"run\": \"r\"}}", "needs a unit"},
        {"{\"value\": \"1\", \"unit\": \"s\", \"label\": \"measured\", \"source\": {\"run\": \"r\"}}",
         "must be a number"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"measured\", \"percentile_99_of_all\": 1, \"source\": "
         "{\"run\": \"r\"}}",
         "no field 'percentile_99"},
        {"{\"value\": 1, \"unti\": \"s\", \"label\": \"measured\", \"source\": {\"run\": \"r\"}}",
         "no field 'unti'"},
        {"{\"value\": null, \"unit\": \"s\", \"label\": \"measured\", \"source\": {\"run\": \"r\"}}",
         "without a reason"},
        {"{\"value\": 1, \"lo\": 0, \"unit\": \"s\", \"label\": \"measured\", \"source\": {\"run\": \"r\"}}",
         "both lo and hi"},
        {"{\"value\": 1, \"lo\": 2, \"hi\": 3, \"unit\": \"s\", \"label\": \"measured\", \"source\": "
         "{\"run\": \"r\"}}",
         "does not hold"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"measured\", \"formula\": \"x\", \"source\": {\"run\": "
         "\"r\"}}",
         "has a formula"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"derived\", \"source\": {}}", "no inputs"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"derived\", \"formula\": \"a\", \"source\": {}, "
         "\"inputs\": [{\"role\": \"a\", \"value\": 1, "
         "\"unit\": \"s\", \"label\": \"official\", \"source\": {}}]}",
         "inputs.0: official value"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"derived\", \"formula\": \"a\", \"source\": {}, "
         "\"inputs\": [{\"value\": 1, "
         "\"unit\": \"s\", \"label\": \"measured\", \"source\": {\"run\": \"r\"}}]}",
         "has no role"},
        {"{\"value\": 1, \"unit\": \"s\", \"label\": \"derived\", \"formula\": \"a\", \"inputs\": 7}",
         "must be a list"},
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        json_t *j = json_loads(bad[i].text, JSON_DECODE_ANY, NULL);
        assert_non_null(j);
        tl_value *v = NULL;
        tl_err e = {0};
        tl_status st = tl_value_from_json(&v, g, j, &e);
        if (st == TL_OK || strstr(e.msg, bad[i].says) == NULL)
            fail_msg("case %zu: '%s' does not say '%s'", i, e.msg, bad[i].says);
        assert_null(v);
        json_decref(j);
    }
    /* nested without end */
    json_t *deep = json_pack("{s:f, s:s, s:s, s:{s:s}, s:s}", "value", 1.0, "unit", "s", "label", "measured",
                             "source", "run", "r", "role", "x");
    for (int i = 0; i < 200; i++)
        deep = json_pack("{s:f, s:s, s:s, s:{}, s:s, s:s, s:[o]}", "value", 1.0, "unit", "s", "label",
                         "derived", "source", "formula", "x", "role", "x", "inputs", deep);
    tl_value *v;
    tl_err e = {0};
    assert_int_equal(tl_value_from_json(&v, g, deep, &e), TL_LIMIT);
    json_decref(deep);
}

static void text(void **state) {
    TL_UNUSED(state);
    static const struct {
        double x, lo, hi;
        const char *unit, *want;
    } rows[] = {
        {33.7123, NAN, NAN, "GB/s", "33.7 GB/s 【實測】"},
        {33.7123, 33.5, 33.9, "GB/s", "33.7 GB/s 【實測】"},
        {33.7123, 33.7, 33.72, "GB/s", "33.712 GB/s 【實測】"},
        {33.7123, 20, 50, "GB/s", "34 GB/s 【實測】"},
        {42.125, 42.125, 42.125, "tok/s", "42.125 tok/s 【實測】"},
        {1234.56, NAN, NAN, "ms", "1235 ms 【實測】"},
        {0.0421, NAN, NAN, "s", "0.0421 s 【實測】"},
        {2.5e9, NAN, NAN, "byte", "2.50 GB 【實測】"},
        {99.96, NAN, NAN, "tok/s", "100 tok/s 【實測】"},
        {-0.5, NAN, NAN, "1", "-0.500 【實測】"},
    };
    for (size_t i = 0; i < TL_COUNT(rows); i++) {
        tl_value *v = measured(rows[i].x, rows[i].unit, "x");
        if (!isnan(rows[i].lo)) v = with(v, rows[i].lo, rows[i].hi);
        tl_buf b;
        tl_buf_init(&b, 0);
        tl_value_text(&b, v, TL_LANG_ZH_HANT);
        assert_string_equal(b.p, rows[i].want);
        tl_buf_free(&b);
    }
    static const struct {
        double x, lo, hi;
        const char *want;
    } numbers[] = {{15.4567, 15.27, 15.65, "15.46"}, {15.4567, NAN, NAN, "15.5"}, {0, NAN, NAN, "0"},
                   {1e18, NAN, NAN, "1e+18"},        {1e-12, NAN, NAN, "1e-12"},  {0, -0.02, 0.02, "0.00"}};
    char number[48];
    for (size_t i = 0; i < TL_COUNT(numbers); i++) {
        tl_value *v = measured(numbers[i].x, "1", "x");
        tl_value_number_text(number, isnan(numbers[i].lo) ? v : with(v, numbers[i].lo, numbers[i].hi));
        assert_string_equal(number, numbers[i].want);
    }
    tl_value_number_text(number, calc(TL_DIV, measured(1, "s", "a"), measured(0, "s", "b")));
    assert_string_equal(number, "–");
    assert_string_equal(tl_lang_name(TL_LANG_ZH_HANS), "zh-Hans");
    assert_string_equal(tl_label_mark(TL_LABEL_MEASURED, TL_LANG_ZH_HANS), "【实测】");
    tl_lang lang;
    assert_int_equal(tl_lang_parse(&lang, "zh", NULL), TL_OK);
    assert_int_equal(lang, TL_LANG_ZH_HANT);
    assert_int_equal(tl_lang_parse(&lang, "klingon", NULL), TL_INVALID);
}

static void explain(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_value_explain(&b, decode_rate(), TL_LANG_EN);
    assert_string_equal(b.p,
                        "decode_rate = 42.1 tok/s [derived]\n"
                        "│  formula: bandwidth / bytes_per_token\n"
                        "│  interval: 41.4 – 42.8 tok/s\n"
                        "│  note: one stream\n"
                        "│  rests on: [official][measured]\n"
                        "├─ bandwidth = 33.7 GB/s [measured]\n"
                        "│    interval: 33.1 – 34.2 GB/s\n"
                        "│    source: run 01J9, cell c1\n"
                        "└─ bytes_per_token = 0.800 GB/tok [official]\n"
                        "     source: title Data sheet, url https://x.example/a, retrieved 2026-01-31\n");
    tl_buf_clear(&b);
    tl_value_explain(&b, decode_rate(), TL_LANG_ZH_HANT);
    assert_non_null(strstr(b.p, "公式：bandwidth / bytes_per_token"));
    tl_buf_free(&b);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(refuses_unsourced), T(refuses_numbers), T(labels),        T(statistics), T(intervals),
        T(intervals_hold),    T(undefined),       T(plain_numbers), T(derivation), T(endless_growth),
        T(json_round_trip),   T(json_refuses),    T(text),          T(explain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

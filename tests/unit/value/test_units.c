/* tests/cases/units.txt, and properties of units that no list of cases can cover. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "value/value.h"
#include <cmocka.h>

static const char *path = TL_SOURCE_DIR "/tests/cases/units.txt";

/* "33.6 GB/s" -> number and unit. */
static void split(double *x, char *unit, size_t size, const char *text) {
    char number[64];
    size_t n = strcspn(text, " ");
    snprintf(number, sizeof number, "%.*s", (int)n, text);
    if (!tl_parse_f64(number, x)) fail_msg("'%s' is no number", text);
    snprintf(unit, size, "%s", text[n] ? text + n + 1 : "");
}

static tl_status leaf(tl_value **out, tl_values *g, const char *text, tl_err *e) {
    double x;
    char unit[96];
    split(&x, unit, sizeof unit, text);
    json_t *src =
        json_pack("{s:s, s:s, s:s, s:s}", "who", "w", "where", "x", "when", "2026", "conditions", "c");
    tl_value_leaf l = {.number = x, .unit = unit, .name = "v", .label = TL_LABEL_CITED, .source = src};
    tl_status st = tl_value_new(out, g, &l, e);
    json_decref(src);
    return st;
}

static void put(tl_buf *b, tl_value *v) {
    char unit[TL_UNIT_TEXT], number[32];
    if (v->null_reason != NULL) {
        tl_buf_fmt(b, "undefined %s", v->null_reason);
        return;
    }
    tl_unit_print(unit, &v->unit);
    snprintf(number, sizeof number, "%.12g", v->number);
    tl_buf_fmt(b, "%s %s", number, unit);
}

static tl_status two(tl_buf *b, tl_values *g, const char *what, tl_value *a, const char *second, tl_err *e) {
    static const char *const ops[] = {"add", "sub", "mul", "div"};
    tl_value *v = NULL, *c = NULL;
    int64_t n;
    if (strcmp(what, "pow") == 0) {
        assert_true(tl_parse_i64(second, &n));
        tl_status st = tl_value_pow(&v, g, a, (int)n, e);
        if (st == TL_OK) put(b, v);
        return st;
    }
    if (strcmp(what, "convert") == 0) {
        tl_status st = tl_value_convert(&v, g, a, second, e);
        if (st == TL_OK) put(b, v);
        return st;
    }
    tl_status st = leaf(&c, g, second, e);
    if (st != TL_OK) return st;
    if (strcmp(what, "compare") == 0) {
        int order;
        st = tl_value_compare(&order, a, c, e);
        tl_buf_fmt(b, "%d", order);
        return st;
    }
    for (size_t i = 0; i < TL_COUNT(ops); i++)
        if (strcmp(ops[i], what) == 0) {
            st = tl_value_calc(&v, g, (tl_value_op)i, a, c, e);
            if (st == TL_OK) put(b, v);
            return st;
        }
    fail_msg("unknown case '%s'", what);
    return TL_INTERNAL;
}

static tl_status run_case(tl_buf *b, tl_values *g, const char *what, char *input, tl_err *e) {
    char text[TL_UNIT_TEXT];
    tl_unit u;
    tl_value *a = NULL;
    if (strcmp(what, "parse") == 0) {
        tl_status st = tl_unit_parse(&u, input, e);
        tl_unit_print(text, &u);
        tl_buf_str(b, text);
        return st;
    }
    char *bar = strstr(input, " | ");
    if (bar != NULL) *bar = 0;
    tl_status st = leaf(&a, g, input, e);
    if (st != TL_OK) return st;
    if (strcmp(what, "display") == 0) {
        u = tl_unit_display(&a->unit, a->number);
        tl_unit_print(text, &u);
        st = tl_value_convert(&a, g, a, text, e);
        if (st == TL_OK) put(b, a);
        return st;
    }
    if (strcmp(what, "text") == 0) {
        tl_value_text(b, a, TL_LANG_EN);
        return TL_OK;
    }
    assert_non_null(bar);
    return two(b, g, what, a, bar + 3, e);
}

static void check(const char *what, char *input, const char *want, int line, tl_values *g) {
    tl_buf b;
    tl_err e = {0};
    tl_buf_init(&b, 0);
    tl_status st = run_case(&b, g, what, input, &e);
    if (tl_str_starts(want, "error ")) {
        if (st == TL_OK || strstr(e.msg, want + 6) == NULL)
            fail_msg("units.txt:%d: wanted '%s', got '%s' '%s'", line, want, b.p, e.msg);
    } else if (st != TL_OK || strcmp(b.p, want) != 0) {
        fail_msg("units.txt:%d: wanted '%s', got '%s' %s", line, want, b.p, e.msg);
    }
    tl_buf_free(&b);
}

static void cases(void **state) {
    TL_UNUSED(state);
    char lines[3][128];
    size_t k = 0, done = 0;
    int number = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    tl_values *g = tl_values_new();
    while (fgets(lines[k], sizeof lines[k], f) != NULL) {
        number++;
        lines[k][strcspn(lines[k], "\n")] = 0;
        if (k == 0 && (lines[0][0] == 0 || lines[0][0] == '#')) continue;
        if (++k < 3) continue;
        check(lines[0], lines[1], lines[2], number, g);
        done++;
        k = 0;
    }
    assert_int_equal(k, 0);
    assert_true(done > 80);
    fclose(f);
    tl_values_free(g);
}

/* A random product of factors: prints, parses back to itself, divides by itself to 1. */
static void random_units(void **state) {
    TL_UNUSED(state);
    static const char *const parts[] = {"GB", "MiB", "byte", "kbit",  "tok", "char", "req",
                                        "ms", "s",   "h",    "TFLOP", "W",   "mJ",   "Hz"};
    tl_rng r;
    tl_rng_seed(&r, 7);
    for (int i = 0; i < 3000; i++) {
        tl_unit u = {0}, one;
        tl_unit_ratio k;
        size_t n = tl_rng_below(&r, 5);
        for (size_t j = 0; j < n; j++) {
            tl_unit f, sum;
            assert_int_equal(tl_unit_parse(&f, parts[tl_rng_below(&r, TL_COUNT(parts))], NULL), TL_OK);
            tl_status st = tl_rng_below(&r, 2) ? tl_unit_mul(&sum, &k, &u, &f, NULL)
                                               : tl_unit_div(&sum, &k, &u, &f, NULL);
            if (st == TL_OK) u = sum;
        }
        char text[TL_UNIT_TEXT], again[TL_UNIT_TEXT];
        tl_unit back;
        tl_err e = {0};
        tl_unit_print(text, &u);
        if (tl_unit_parse(&back, text, &e) != TL_OK) fail_msg("'%s': %s", text, e.msg);
        tl_unit_print(again, &back);
        assert_string_equal(text, again);
        assert_true(tl_unit_equal(&u, &back));
        assert_int_equal(tl_unit_div(&one, &k, &u, &u, &e), TL_OK);
        assert_int_equal(one.n, 0);
        assert_true(tl_unit_apply(k, 1) == 1);
    }
}

/* There and back is the same number, in every prefix. */
static void there_and_back(void **state) {
    TL_UNUSED(state);
    static const char *const bytes[] = {"byte", "kB",  "MB",  "GB",  "TB",  "PB",
                                        "KiB",  "MiB", "GiB", "TiB", "bit", "Gbit"};
    for (size_t i = 0; i < TL_COUNT(bytes); i++)
        for (size_t j = 0; j < TL_COUNT(bytes); j++) {
            tl_unit a, b;
            tl_unit_ratio to, from;
            assert_int_equal(tl_unit_parse(&a, bytes[i], NULL), TL_OK);
            assert_int_equal(tl_unit_parse(&b, bytes[j], NULL), TL_OK);
            assert_int_equal(tl_unit_convert(&to, &a, &b, NULL), TL_OK);
            assert_int_equal(tl_unit_convert(&from, &b, &a, NULL), TL_OK);
            double x = tl_unit_apply(from, tl_unit_apply(to, 3.0));
            assert_true(fabs(x - 3.0) < 1e-14);
        }
}

static void hints(void **state) {
    TL_UNUSED(state);
    tl_unit u;
    tl_err e = {0};
    assert_int_equal(tl_unit_parse(&u, "TFLOPS", &e), TL_INVALID);
    assert_non_null(strstr(e.remedy, "TFLOP/s"));
    assert_int_equal(tl_unit_parse(&u, "KB", &e), TL_INVALID);
    assert_non_null(strstr(e.remedy, "KiB"));
    assert_int_equal(tl_unit_parse(&u, "tik", &e), TL_INVALID);
    assert_non_null(strstr(e.remedy, "tok"));
    assert_int_equal(tl_unit_parse(&u, "parsec-per-fortnight", &e), TL_INVALID);
    assert_non_null(strstr(e.remedy, "products such as GB/s"));
    const char *const *names;
    size_t n_names = tl_unit_names(&names);
    for (size_t i = 0; i < n_names; i++) {
        char text[TL_UNIT_TEXT];
        assert_int_equal(tl_unit_parse(&u, names[i], &e), TL_OK);
        tl_unit_print(text, &u);
        assert_string_equal(text, names[i]);
    }
    assert_int_equal(tl_unit_parse(&u, "", &e), TL_INVALID);
    assert_int_equal(tl_unit_parse(&u, NULL, &e), TL_INVALID);
    char many[400] = "tok";
    for (size_t n = 3; n + 4 < sizeof many; n += 4) memcpy(many + n, "/tok", 5);
    assert_int_equal(tl_unit_parse(&u, many, &e), TL_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases), cmocka_unit_test(random_units),
                                       cmocka_unit_test(there_and_back), cmocka_unit_test(hints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

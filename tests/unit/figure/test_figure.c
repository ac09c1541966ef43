/* figure against the real gnuplot: what it draws is counted, hostile texts stay texts, and nothing is left
 * behind. */
#include "figure/figure.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char LAW[] =
    "{\"id\":\"fig-1\",\"type\":\"scatter\",\"lang\":\"zh-Hant\",\"title\":\"生成速度\",\"alt\":"
    "\"四個點落在帶上。\","
    "\"x\":{\"label\":\"位元組\",\"unit\":\"GB\",\"log\":true},\"y\":{\"label\":\"生成速度\",\"unit\":\"tok/"
    "s\",\"log\":true},\"series\":["
    "{\"name\":\"推算\",\"label\":\"derived\",\"kind\":\"line\",\"points\":[{\"x\":0.04,\"y\":337,\"ylo\":"
    "310,\"yhi\":380},{\"x\":2.5,\"y\":13,\"ylo\":12,\"yhi\":15}]},"
    "{\"name\":\"實測\",\"label\":\"measured\",\"points\":[{\"x\":0.0455,\"y\":455,\"ylo\":435,\"yhi\":475,"
    "\"text\":\"c50\"},{\"x\":0.18,\"y\":149,\"ylo\":147,\"yhi\":151},"
    "{\"x\":0.9,\"y\":null},{\"x\":2.2,\"y\":15.5,\"ylo\":15,\"yhi\":16}]}]}";

static char *dir;

static json_t *parse(const char *text) {
    json_error_t je;
    json_t *j = json_loads(text, 0, &je);
    if (j == NULL) fail_msg("%s at %d: %s", je.text, je.position, text);
    return j;
}

static char *file_text(const char *name) {
    tl_buf b;
    tl_err e = {0};
    tl_buf_init(&b, 0);
    char *path = tl_path_join(dir, name);
    if (tl_file_read(&b, path, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    free(path);
    return tl_buf_take(&b);
}

static json_t *draw(json_t *spec) {
    json_t *facts = NULL;
    tl_err e = {0};
    if (tl_figure_render(&facts, spec, dir, NULL, &e) != TL_OK) fail_msg("%s | %s", e.msg, e.remedy);
    return facts;
}

static void draws_the_law(void **state) {
    TL_UNUSED(state);
    json_t *spec = parse(LAW), *a = draw(spec);
    assert_int_equal(tl_json_int(a, "rows_given", 0), 6);
    assert_int_equal(tl_json_int(a, "rows_drawn", 0), 5);
    assert_int_equal(tl_json_int(a, "rows_missing", 0), 1);
    assert_non_null(strstr(tl_json_str(a, "gnuplot", ""), "patchlevel"));
    char *svg = file_text("fig-1.svg"), *narrow = file_text("fig-1-narrow.svg"),
         *tsv = file_text("fig-1.tsv"), sha[65];
    assert_null(strstr(svg, "Gnuplot</title>"));
    assert_non_null(strstr(svg, "生成速度</title>"));
    assert_non_null(strstr(svg, "四個點落在帶上。</desc>"));
    assert_non_null(strstr(svg, "<metadata>tally figure=fig-1 data-sha256="));
    assert_non_null(strstr(svg, "id='fig-1-gpPt0'"));
    assert_null(strstr(svg, "id='gpPt0'"));
    assert_null(strstr(svg, "href='#gpPt"));
    assert_non_null(strstr(narrow, "id='fig-1-narrow-gpPt0'"));
    assert_null(strstr(narrow, "href='#gpPt"));
    tl_sha256_hex(tsv, strlen(tsv), sha);
    assert_string_equal(sha, tl_json_str(a, "data_sha256", ""));
    assert_non_null(strstr(svg, sha));
    assert_non_null(strstr(tsv, "0.9\tNaN\t"));
    /* Twice the same bytes. */
    json_t *b = draw(spec);
    assert_true(json_equal(a, b));
    free(svg), free(narrow), free(tsv);
    json_decref(a), json_decref(b), json_decref(spec);
}

static void hostile_text_is_only_text(void **state) {
    TL_UNUSED(state);
    static const char *const evil[] = {
        "x `touch "
        "OWNED` y",
        "$(touch OWNED)",
        "'; system('touch OWNED'); '",
        "a\nsystem('touch OWNED')\n",
        "a\\",
        "\\",
        "@ARG1 @x",
        "< touch OWNED",
        "| touch OWNED",
        "EOD\nsystem('touch OWNED')",
        "</text><script>alert(1)</script>",
        "]]>",
        "a & b < c > d \"q\"",
        "{/Ari\"al onload=\"alert(1)\" x}",
        "Qwen3_32B_Q4_K_M^2",
        "tab\there",
        "# comment",
        "\x01\x1b[31m",
        "%s%n%d",
        "…「全形」‥",
    };
    for (size_t i = 0; i < TL_COUNT(evil); i++) {
        json_t *spec = parse(LAW);
        json_t *x = json_object_get(spec, "x"), *s = json_array_get(json_object_get(spec, "series"), 1);
        json_t *p = json_array_get(json_object_get(s, "points"), 0);
        json_object_set_new(spec, "title", json_string(evil[i]));
        json_object_set_new(spec, "alt", json_string(evil[i]));
        json_object_set_new(x, "label", json_string(evil[i]));
        json_object_set_new(x, "unit", json_string(evil[i]));
        json_object_set_new(s, "name", json_string(evil[i]));
        json_object_set_new(p, "text", json_string(evil[i]));
        json_t *facts = NULL;
        tl_err e = {0};
        const tl_figure_options fast = {.no_png = true};
        if (tl_figure_render(&facts, spec, dir, &fast, &e) != TL_OK) fail_msg("%s: %s", evil[i], e.msg);
        char *svg = file_text("fig-1.svg");
        assert_null(strstr(svg, "<script"));
        assert_null(strstr(svg, "font-family=\"Ari"));
        assert_false(tl_file_exists("OWNED"));
        char *here = tl_path_join(dir, "OWNED");
        assert_false(tl_file_exists(here));
        free(here), free(svg);
        json_decref(facts), json_decref(spec);
    }
}

static void bars_with_categories(void **state) {
    TL_UNUSED(state);
    json_t *spec =
        parse("{\"id\":\"b\",\"type\":\"bars\",\"alt\":\"Bars.\",\"x\":{\"label\":\"model\",\"categories\":["
              "\"a'b\",\"c`d\"]},"
              "\"y\":{\"label\":\"rate\",\"unit\":\"tok/s\"},\"series\":["
              "{\"name\":\"m\",\"label\":\"measured\",\"points\":[{\"x\":0,\"y\":4,\"ylo\":3,\"yhi\":5},{"
              "\"x\":1,\"y\":8}]},"
              "{\"name\":\"o\",\"label\":\"official\",\"points\":[{\"x\":0,\"y\":9},{\"x\":1,\"y\":9}]},"
              "{\"name\":\"c\",\"label\":\"cited\",\"points\":[{\"x\":0,\"y\":9}]}]}");
    json_t *facts = draw(spec);
    assert_int_equal(tl_json_int(facts, "rows_drawn", 0), 5);
    char *gp = file_text("b.gp");
    assert_non_null(strstr(gp, "set yrange [0:")); /* bars start at zero */
    assert_non_null(strstr(gp, "'a’b' 0"));
    free(gp);
    json_decref(facts), json_decref(spec);
}

static void flat_and_single(void **state) {
    TL_UNUSED(state);
    static const char *const specs[] = {
        "{\"id\":\"f\",\"type\":\"line\",\"alt\":\"Flat.\",\"x\":{\"label\":\"x\"},\"y\":{\"label\":\"y\"},"
        "\"series\":[{\"name\":\"n\",\"label\":\"derived\",\"points\":[{\"x\":1,\"y\":5},{\"x\":2,\"y\":5}]}]"
        "}",
        "{\"id\":\"f\",\"type\":\"scatter\",\"alt\":\"One.\",\"x\":{\"label\":\"x\",\"log\":true},\"y\":{"
        "\"label\":\"y\",\"log\":true},\"series\":[{\"name\":\"n\",\"label\":\"cited\",\"points\":[{\"x\":1,"
        "\"y\":5}]}]}",
        "{\"id\":\"f\",\"type\":\"scatter\",\"alt\":\"Zero.\",\"x\":{\"label\":\"x\"},\"y\":{\"label\":\"y\"}"
        ",\"series\":[{\"name\":\"n\",\"label\":\"measured\",\"points\":[{\"x\":0,\"y\":0,\"xlo\":-1,\"xhi\":"
        "1}]}]}",
        "{\"id\":\"f\",\"type\":\"band\",\"alt\":\"Band.\",\"x\":{\"label\":\"x\"},\"y\":{\"label\":\"y\"},"
        "\"series\":[{\"name\":\"n\",\"label\":\"derived\",\"points\":[{\"x\":0,\"ylo\":1,\"yhi\":2},{\"x\":"
        "1,\"ylo\":-2,\"yhi\":3}]}]}",
    };
    for (size_t i = 0; i < TL_COUNT(specs); i++) {
        json_t *spec = parse(specs[i]), *facts = draw(spec);
        assert_true(tl_json_int(facts, "rows_drawn", 0) >= 1);
        json_decref(facts), json_decref(spec);
    }
}

/* Each replaces the member at `path` of LAW's spec and must be refused with a word of the reason. */
static void wrong_specs_are_refused(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *path, *key, *json, *says;
    } cases[] = {
        {"", "id", "\"../x\"", "not a name"},
        {"", "id", "\"Fig\"", "not a name"},
        {"", "typ", "1", "unknown member"},
        {"", "type", "\"scater\"", "none of the known"},
        {"", "lang", "\"zh\"", "none of the known"},
        {"", "alt", "\"\"", "empty"},
        {"", "series", "[]", "no series"},
        {"x", "label", "7", "not text"},
        {"x", "min", "0", "not above zero"},
        {"series.1", "points", "[]", "no points"},
        {"series.1", "label", "\"guess\"", "none of the known"},
        {"series.1", "points", "[{\"x\":1,\"y\":null}]", "every value is missing"},
        {"series.1", "points", "[{\"y\":1}]", "no 'x'"},
        {"series.1", "points", "[{\"x\":1,\"y\":0}]", "not above zero"},
        {"series.1", "points", "[{\"x\":1,\"y\":5,\"ylo\":4}]", "one end"},
        {"series.1", "points", "[{\"x\":1,\"y\":5,\"ylo\":6,\"yhi\":7}]", "outside"},
        {"series.1", "points", "[{\"x\":1,\"y\":5,\"ylo\":7,\"yhi\":6}]", "ends before"},
        {"series.1", "points", "[{\"x\":\"3,5\",\"y\":5}]", "not a number"},
        {"series.1", "kind", "\"bars\"", "start at zero"},
        {"series.1", "name", "\"a\\u0000b\"", "zero byte"},
    };
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        json_t *spec = parse(LAW);
        json_t *at = *cases[i].path ? tl_json_at(spec, cases[i].path) : spec;
        json_error_t je;
        json_object_set_new(at, cases[i].key,
                            json_loads(cases[i].json, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je));
        tl_err e = {0};
        if (tl_figure_check(spec, &e) == TL_OK || strstr(e.msg, cases[i].says) == NULL) {
            fail_msg("%s.%s = %s: '%s' does not say '%s'", cases[i].path, cases[i].key, cases[i].json, e.msg,
                     cases[i].says);
        }
        json_decref(spec);
    }
}

static void missing_or_strange_gnuplot(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *program, *says;
    } cases[] = {{"/nonexistent/gnuplot", "not there"}, {"/bin/true", "did not answer"}};
    json_t *spec = parse(LAW);
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        json_t *facts = NULL;
        tl_err e = {0};
        const tl_figure_options o = {.gnuplot = cases[i].program};
        char *where = tl_path_join(dir, "never");
        assert_int_equal(tl_figure_render(&facts, spec, where, &o, &e), TL_MISSING);
        assert_non_null(strstr(e.msg, cases[i].says));
        assert_non_null(strstr(e.remedy, "gnuplot"));
        assert_false(tl_dir_exists(where));
        free(where);
    }
    json_decref(spec);
}

static void old_gnuplot_and_one_that_fails(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *script, *says;
        tl_status st;
    } cases[] = {
        {"#!/bin/sh\necho 'gnuplot 5.0 patchlevel 7'\n", "too old", TL_MISSING},
        {"#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'gnuplot 5.4 patchlevel 4'; exit 0; fi\n: "
         ">fig-1.svg; exit 0\n",
         "rows", TL_INTERNAL},
        {"#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'gnuplot 5.4 patchlevel 4'; exit 0; fi\necho 'rows "
         "0 2 rows 1 3'; : >fig-1.svg\n",
         "0 bytes", TL_INTERNAL},
        {"#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'gnuplot 5.4 patchlevel 4'; exit 0; fi\necho "
         "\"line 7: bad\" >&2; exit 1\n",
         "line 7: bad", TL_INTERNAL},
    };
    json_t *spec = parse(LAW);
    char *path = tl_path_join(dir, "fake-gnuplot"), *where = tl_path_join(dir, "never");
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        json_t *facts = NULL;
        tl_err e = {0};
        const char *argv[] = {"chmod", "755", path, NULL};
        tl_child_spec chmod_it = {.argv = argv};
        tl_child_result r = {0};
        assert_int_equal(tl_file_write(path, cases[i].script, strlen(cases[i].script), &e), TL_OK);
        assert_int_equal(tl_child_run(&r, &chmod_it, 10 * TL_S, &e), TL_OK);
        tl_child_result_free(&r);
        const tl_figure_options o = {.gnuplot = path};
        assert_int_equal(tl_figure_render(&facts, spec, where, &o, &e), cases[i].st);
        if (strstr(e.msg, cases[i].says) == NULL) fail_msg("'%s' does not say '%s'", e.msg, cases[i].says);
        assert_false(tl_dir_exists(where)); /* nothing is published when anything is wrong */
    }
    free(path), free(where);
    json_decref(spec);
}

/* A PNG of Chinese text without a Chinese font would show boxes: refused. English text is drawn all the same.
 */
static void no_chinese_font(void **state) {
    TL_UNUSED(state);
    char *gnuplot = tl_path_which("gnuplot"), *old = tl_xstrdup(tl_env("PATH")),
         *bin = tl_path_join(dir, "bin"), *fc = tl_path_join(bin, "fc-list");
    const char *const script = "#!/bin/sh\nexit 0\n";
    const char *argv[] = {"chmod", "755", fc, NULL};
    tl_child_spec chmod_it = {.argv = argv};
    tl_child_result r = {0};
    tl_err e = {0};
    assert_int_equal(tl_dir_make(bin, &e), TL_OK);
    assert_int_equal(tl_file_write(fc, script, strlen(script), &e), TL_OK);
    assert_int_equal(tl_child_run(&r, &chmod_it, 10 * TL_S, &e), TL_OK);
    tl_child_result_free(&r);
    char *path = tl_xprintf("%s:%s", bin, old);
    setenv("PATH", path, 1);
    const tl_figure_options o = {.gnuplot = gnuplot}, svg_only = {.gnuplot = gnuplot, .no_png = true};
    json_t *spec = parse(LAW), *facts = NULL;
    assert_int_equal(tl_figure_render(&facts, spec, dir, &o, &e), TL_MISSING);
    assert_non_null(strstr(e.remedy, "fonts-noto-cjk"));
    assert_int_equal(tl_figure_render(&facts, spec, dir, &svg_only, &e), TL_OK);
    json_decref(facts), json_decref(spec);
    spec = parse("{\"id\":\"f\",\"type\":\"line\",\"alt\":\"A.\",\"x\":{\"label\":\"x\"},\"y\":{\"label\":"
                 "\"y\"},\"series\":[{\"name\":\"n\",\"label\":\"derived\",\"points\":[{\"x\":1,\"y\":5},{"
                 "\"x\":2,\"y\":6}]}]}");
    assert_int_equal(tl_figure_render(&facts, spec, dir, &o, &e), TL_OK);
    json_decref(facts), json_decref(spec);
    setenv("PATH", old, 1);
    free(gnuplot), free(old), free(bin), free(fc), free(path);
}

static int setup(void **state) {
    tl_err e = {0};
    TL_UNUSED(state);
    return tl_dir_temp(&dir, "test-figure", &e) == TL_OK ? 0 : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_status st = tl_dir_remove(dir, NULL);
    free(dir);
    return st == TL_OK ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_the_law),
        cmocka_unit_test(hostile_text_is_only_text),
        cmocka_unit_test(bars_with_categories),
        cmocka_unit_test(flat_and_single),
        cmocka_unit_test(wrong_specs_are_refused),
        cmocka_unit_test(missing_or_strange_gnuplot),
        cmocka_unit_test(old_gnuplot_and_one_that_fails),
        cmocka_unit_test(no_chinese_font),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

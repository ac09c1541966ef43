/* A whole report with a made-up source, real gnuplot: the Markdown against its golden file
 * (TALLY_GOLDEN=write renews it), the page and the manifest by what they must hold, hostile texts from the
 * source, emphasis between Han characters. */
#include "law.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char *dir;

static char *text_of(const char *path) {
    tl_buf b;
    tl_err e = {0};
    tl_buf_init(&b, 0);
    if (tl_file_read(&b, path, 0, &e) != TL_OK) fail_msg("%s", e.msg);
    return tl_buf_take(&b);
}

static char *out_text(const char *name) {
    char *path = tl_xprintf("%s/out/%s", dir, name), *t = text_of(path);
    free(path);
    return t;
}

static json_t *build(const char *path, law *l) {
    tl_report_source s = {l, law_value, law_block};
    char *out_dir = tl_path_join(dir, "out");
    tl_report_spec spec = {.path = path,
                           .out_dir = out_dir,
                           .name = "law",
                           .command_base = "build/reports/law/report.html",
                           .version = "0.1.0"};
    json_t *facts = NULL;
    tl_err e = {0};
    if (tl_report_build(&facts, &spec, &s, &e) != TL_OK) {
        char *all = tl_json_pretty(facts);
        fail_msg("%s | %s\n%s", e.msg, e.remedy, all);
    }
    free(out_dir);
    return facts;
}

static json_t *build_text(const char *text, law *l) {
    tl_err e = {0};
    char *path = tl_path_join(dir, "in.md");
    if (tl_file_write(path, text, strlen(text), &e) != TL_OK) fail_msg("%s", e.msg);
    json_t *facts = build(path, l);
    free(path);
    return facts;
}

static void golden(const char *name, const char *got) {
    char *path = tl_xprintf("%s/tests/golden/report/%s", TL_SOURCE_DIR, name);
    tl_err e = {0};
    if (tl_str_eq(tl_env("TALLY_GOLDEN"), "write")) {
        if (tl_file_write(path, got, strlen(got), &e) != TL_OK) fail_msg("%s", e.msg);
    }
    char *want = text_of(path);
    assert_string_equal(got, want);
    free(want), free(path);
}

static size_t count(const char *s, const char *word) {
    size_t n = 0;
    for (const char *p = s; (p = strstr(p, word)) != NULL; p += strlen(word)) n++;
    return n;
}

static void well_formed(const char *name) {
    char *path = tl_xprintf("%s/out/%s", dir, name), *tool = tl_path_which("xmllint");
    const char *argv[] = {"xmllint", "--noout", path, NULL};
    tl_child_spec spec = {.argv = argv};
    tl_child_result r = {0};
    tl_err e = {0};
    if (tool != NULL) {
        assert_int_equal(tl_child_run(&r, &spec, 30 * TL_S, &e), TL_OK);
        if (r.exit_code != 0) fail_msg("%s: %s", name, r.err.p);
        tl_child_result_free(&r);
    }
    free(path), free(tool);
}

static void one_language(const char *lang, const char *source, const char *want) {
    law l = {.lang = lang};
    char *path = tl_xprintf("%s/tests/golden/report/%s", TL_SOURCE_DIR, source);
    json_t *facts = build(path, &l);
    char *md = out_text("report.md"), *html = out_text("report.html"), *manifest = out_text("manifest.json");
    golden(want, md);
    well_formed("report.html");
    assert_int_equal(count(html, "<svg"), 2);
    assert_int_equal(count(html, "</html>"), 1);
    assert_null(strstr(html, "<script>alert"));
    assert_null(strstr(html, " src="));
    assert_null(strstr(html, "raw HTML omitted"));
    assert_non_null(strstr(html, "<figure id=\"fig-1\">"));
    assert_non_null(strstr(html, "tally rerun build/reports/law/report.html#fig-1"));
    assert_non_null(strstr(html, "01JE5K3QZ8M4T7QX2V9N6B7Q3"));
    /* Both halves hold the same manifest. */
    json_t *a = NULL, *b = NULL, *c = NULL;
    tl_err e = {0};
    char *h = tl_xprintf("%s/out/report.html", dir), *m = tl_xprintf("%s/out/manifest.json", dir),
         *d = tl_xprintf("%s/out", dir);
    if (tl_report_manifest_read(&a, h, &e) != TL_OK || tl_report_manifest_read(&b, m, &e) != TL_OK ||
        tl_report_manifest_read(&c, d, &e) != TL_OK)
        fail_msg("%s", e.msg);
    assert_true(json_equal(a, b));
    assert_true(json_equal(a, c));
    const json_t *f = NULL;
    assert_int_equal(tl_report_manifest_figure(&f, a, "fig-1", &e), TL_OK);
    assert_string_equal(tl_json_str(f, "manifest.experiment", ""), "bandwidth-law");
    assert_string_equal(tl_json_str(f, "manifest.script", ""),
                        "return '</script><script>alert(1)</script> & more'");
    assert_int_equal(json_array_size(tl_json_at(f, "spec.series.1.points")), 4);
    assert_int_equal(strlen(tl_json_str(f, "facts.files.svg.sha256", "")), 64);
    assert_int_equal(tl_report_manifest_figure(&f, a, "fig-2", &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.remedy, "fig-1"));
    /* Again: the same bytes. */
    json_t *again = build(path, &l);
    char *html2 = out_text("report.html"), *md2 = out_text("report.md"),
         *manifest2 = out_text("manifest.json");
    assert_true(json_equal(facts, again));
    assert_string_equal(html, html2);
    assert_string_equal(md, md2);
    assert_string_equal(manifest, manifest2);
    free(html2), free(md2), free(manifest2), free(html), free(md), free(manifest), free(path), free(h),
        free(m), free(d);
    json_decref(a), json_decref(b), json_decref(c), json_decref(facts), json_decref(again);
}

static void chinese(void **state) {
    TL_UNUSED(state);
    one_language("zh-Hant", "law.zh.md", "law.zh.out.md");
}

static void english(void **state) {
    TL_UNUSED(state);
    one_language("en", "law.en.md", "law.en.out.md");
}

static void simplified_and_stale(void **state) {
    TL_UNUSED(state);
    law l = {.lang = "zh-Hans", .stale = "machine <profile> changed"};
    json_t *facts = build_text(
        "---\ntitle: 定律\nlang: zh-Hans\n---\n\n速度 `= rate{model=c50}`。\n\n```figure id=f\n```\n", &l);
    char *html = out_text("report.html"), *md = out_text("report.md");
    assert_non_null(strstr(html, ">实测</a>"));
    assert_non_null(strstr(md, "455 ± 20 tok/s【实测】[^tally-1]"));
    assert_non_null(strstr(html, "过期：machine &lt;profile&gt; changed"));
    assert_string_equal(tl_json_str(facts, "stale.0", ""), "f: machine <profile> changed");
    free(html), free(md);
    json_decref(facts);
}

/* Sentences that CommonMark's flanking rule leaves with literal stars. */
static void emphasis_between_han(void **state) {
    TL_UNUSED(state);
    static const char *const s[] = {"一個**「45 步 → 2 步」的完整改造記錄**：每一刀",
                                    "這是**重點。**下一句",
                                    "**一句話：**地端",
                                    "這個**`tg128`**值",
                                    "**【官方】**是",
                                    "請看**（註）**說明",
                                    "甲**「乙」**丙**「丁」**戊",
                                    "> 引文**「乙」**丙",
                                    "- 項**「乙」**丙",
                                    "| 欄 |\n|---|\n| 甲**「乙」**丙 |"};
    static const char *const plain[] = {"頻寬**粗體**值", "a **b** c", "星號 \\*\\*不是\\*\\*「」",
                                        "`**「碼」**`"};
    for (size_t i = 0; i < TL_COUNT(s); i++) {
        law l = {.lang = "zh-Hant"};
        char *t = tl_xprintf("---\ntitle: x\nlang: zh-Hant\n---\n\n%s\n", s[i]);
        json_t *facts = build_text(t, &l);
        char *html = out_text("report.html"), *md = out_text("report.md");
        if (strstr(html, "**") || !strstr(html, "<strong>") ||
            count(html, "<strong>") != count(html, "</strong>"))
            fail_msg("%s\n%s", s[i], html + 8000);
        if (strstr(md, "**") || count(md, "<strong>") != count(md, "</strong>")) fail_msg("%s\n%s", s[i], md);
        free(html), free(md), free(t);
        json_decref(facts);
    }
    for (size_t i = 0; i < TL_COUNT(plain); i++) {
        law l = {.lang = "zh-Hant"};
        char *t = tl_xprintf("---\ntitle: x\nlang: zh-Hant\n---\n\n%s\n", plain[i]);
        json_t *facts = build_text(t, &l);
        char *md = out_text("report.md");
        if (!strstr(md, plain[i])) fail_msg("%s\n%s", plain[i], md); /* untouched */
        free(md), free(t);
        json_decref(facts);
    }
}

static void hostile_values_stay_text(void **state) {
    TL_UNUSED(state);
    static const char *const evil[] = {"</script><script>alert(1)</script>",
                                       "]]>",
                                       "a|b",
                                       "`x`",
                                       "[x](javascript:1)",
                                       "<!--",
                                       "&amp;",
                                       "\n\n# head\n",
                                       "**x**",
                                       "\x01"};
    for (size_t i = 0; i < TL_COUNT(evil); i++) {
        json_t *v = json_pack("{s:f, s:s, s:s, s:s, s:{s:s, s:s, s:s}}", "value", 2.5, "unit", "GB/s",
                              "label", "official", "name", evil[i], "source", "title", evil[i], "url",
                              "https://e.org/\"><script>alert(1)</script>", "retrieved", evil[i]);
        law l = {.lang = "en", .replace = v};
        json_t *facts = build_text("---\ntitle: \"<script>alert(1)</script> & ]]>\"\nlang: en\n---\n\nIt is "
                                   "`= x`.\n\n| a GB/s [official] |\n|---|\n| `~ x` |\n",
                                   &l);
        char *html = out_text("report.html"), *md = out_text("report.md");
        well_formed("report.html");
        assert_null(strstr(html, "<script>alert"));
        assert_int_equal(count(html, "<script"), 2);
        assert_null(strstr(md, "\n# head"));
        assert_non_null(strstr(md, "| 2.5 |"));
        free(html), free(md);
        json_decref(facts), json_decref(v);
    }
}

static void caption_of_the_source_is_checked(void **state) {
    TL_UNUSED(state);
    law l = {.lang = "en", .caption = "it took 45 s"};
    tl_report_source s = {&l, law_value, law_block};
    char *path = tl_path_join(dir, "in.md");
    tl_err e = {0};
    const char *t = "---\ntitle: x\nlang: en\n---\n\n```table id=t\n```\n";
    assert_int_equal(tl_file_write(path, t, strlen(t), &e), TL_OK);
    tl_report_spec spec = {.path = path, .check_only = true};
    assert_int_equal(tl_report_build(NULL, &spec, &s, &e), TL_REFUSED);
    assert_non_null(strstr(e.msg, "in.md:6:1: the number '45 s' has a unit"));
    free(path);
}

static void caption_with_a_value(void **state) {
    TL_UNUSED(state);
    law l = {.lang = "en"};
    json_t *facts = build_text(
        "---\ntitle: x\nlang: en\n---\n\n```figure id=f caption=\"It reads {= probe.read} <b>.\"\n```\n", &l);
    char *html = out_text("report.html"), *md = out_text("report.md");
    assert_non_null(strstr(md, "It reads 37.4 ± 0.9 GB/s [measured][^tally-1] \\<b\\>."));
    assert_non_null(strstr(html, "href=\"#v-1\">measured</a></span> &lt;b&gt;.</figcaption>"));
    well_formed("report.html");
    free(html), free(md);
    json_decref(facts);
}

/* The forms that the value module writes, printed in both outputs. */
static void numbers_as_people_write_them(void **state) {
    TL_UNUSED(state);
    static const char *const cases[][2] = {
        {"{\"value\":0.0018,\"unit\":\"s\",\"label\":\"measured\",\"source\":{\"probe\":\"p1\"}}",
         "1.8 ms [measured]"},
        {"{\"value\":null,\"null_reason\":\"never "
         "ran\",\"unit\":\"s\",\"label\":\"measured\",\"source\":{\"run\":\"r\"}}",
         "– s [measured]"},
        {"{\"value\":33.712,\"lo\":33,\"hi\":36,\"unit\":\"GB/s\",\"label\":\"measured\",\"run\":\"r\"}",
         "33.7 (33.0–36.0) GB/s [measured]"},
        {"{\"value\":12,\"unit\":\"%\",\"label\":\"measured\",\"run\":\"r\"}", "12% [measured]"},
        {"{\"value\":1.5,\"unit\":\"1\",\"label\":\"measured\",\"run\":\"r\"}", "1.5 [measured]"},
        {"{\"value\":2,\"text\":\"2.00\",\"unit\":\"tok/"
         "s\",\"label\":\"cited\",\"source\":{\"who\":\"A\",\"where\":\"B\"}}",
         "2.00 tok/s [cited]"},
        {"{\"value\":1,\"unit\":\"s\",\"label\":\"derived\",\"formula\":\"a "
         "`b`\",\"inputs\":[{\"role\":\"a\",\"value\":1,\"unit\":\"s\",\"label\":\"measured\",\"run\":\"r\"}]"
         "}",
         "`` a `b` ``; `a` = 1 s [measured] run r"},
    };
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        json_t *v = json_loads(cases[i][0], 0, NULL);
        law l = {.lang = "en", .replace = v};
        json_t *facts = build_text("---\ntitle: x\nlang: en\n---\n\nIt is `= x`.\n", &l);
        char *md = out_text("report.md");
        if (strstr(md, cases[i][1]) == NULL) fail_msg("%s\n%s", cases[i][1], md);
        well_formed("report.html");
        free(md);
        json_decref(facts), json_decref(v);
    }
}

static void wrong_manifests(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *text;
        tl_status st;
    } cases[] = {
        {"", TL_INVALID},
        {"<html></html>", TL_INVALID},
        {"{}", TL_INVALID},
        {"{\"tally_report\":2,\"figures\":[]}", TL_INVALID},
        {"{\"tally_report\":1", TL_INVALID},
        {"<script type=\"application/json\" id=\"tally-manifest\">{\"tally_report\":1,\"figures\":[]}",
         TL_INVALID},
        {"<script type=\"application/json\" "
         "id=\"tally-manifest\">{\"tally_report\":1,\"figures\":[]}</script>",
         TL_OK},
    };
    char *path = tl_path_join(dir, "x.html");
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        tl_err e = {0};
        json_t *m = NULL;
        assert_int_equal(tl_file_write(path, cases[i].text, strlen(cases[i].text), &e), TL_OK);
        tl_status st = tl_report_manifest_read(&m, path, &e);
        if (st != cases[i].st) fail_msg("%s: %s", cases[i].text, e.msg);
        assert_int_equal(m != NULL, st == TL_OK);
        json_decref(m);
    }
    json_t *m = NULL;
    assert_int_equal(tl_report_manifest_read(&m, "/nonexistent/report.html", NULL), TL_NOT_FOUND);
    free(path);
}

static int setup(void **state) {
    tl_err e = {0};
    TL_UNUSED(state);
    return tl_dir_temp(&dir, "test-report", &e) == TL_OK ? 0 : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_status st = tl_dir_remove(dir, NULL);
    free(dir);
    return st == TL_OK ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chinese),
        cmocka_unit_test(english),
        cmocka_unit_test(simplified_and_stale),
        cmocka_unit_test(emphasis_between_han),
        cmocka_unit_test(hostile_values_stay_text),
        cmocka_unit_test(caption_of_the_source_is_checked),
        cmocka_unit_test(caption_with_a_value),
        cmocka_unit_test(numbers_as_people_write_them),
        cmocka_unit_test(wrong_manifests),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

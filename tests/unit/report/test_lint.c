/* The law of the house, case by case: a body, and what must be said about it ("" = nothing). check_only:
 * nothing is drawn. */
#include "law.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char *dir;

#define FRONT "---\ntitle: T\nlang: zh-Hant\n---\n\n"

typedef struct outcome {
    tl_status st;
    json_t *facts;
    tl_err e;
    law l;
} outcome;

static outcome run_bytes(const char *p, size_t n, json_t *replace) {
    outcome o = {.l = {.lang = "zh-Hant", .replace = replace}};
    tl_report_source s = {&o.l, law_value, law_block};
    char *path = tl_path_join(dir, "report.md");
    tl_report_spec spec = {.path = path, .name = "t", .check_only = true};
    if (tl_file_write(path, p, n, &o.e) != TL_OK) fail_msg("%s", o.e.msg);
    o.st = tl_report_build(&o.facts, &spec, &s, &o.e);
    free(path);
    return o;
}

static size_t problems(const outcome *o) {
    return json_array_size(json_object_get(o->facts, "problems"));
}

static void expect(const char *whole, size_t n, const char *says, json_t *replace) {
    outcome o = run_bytes(whole, n, replace);
    char *all = tl_json_pretty(o.facts);
    if (*says == 0 && o.st != TL_OK) fail_msg("%s\n-> %s\n%s", whole, o.e.msg, all);
    if (*says != 0 && o.st == TL_OK) fail_msg("%s\n-> accepted, should say '%s'", whole, says);
    if (*says != 0 && strstr(all, says) == NULL && strstr(o.e.msg, says) == NULL)
        fail_msg("%s\n-> %s\n%s\nshould say '%s'", whole, o.e.msg, all, says);
    free(all);
    json_decref(o.facts);
}

static void body(const char *text, const char *says) {
    char *whole = tl_xprintf("%s%s\n", FRONT, text);
    expect(whole, strlen(whole), says, NULL);
    free(whole);
}

static void naked_numbers(void **state) {
    TL_UNUSED(state);
    static const char *const bad[][2] = {
        {"快到 15.3 tok/s。", "15.3 tok/s"},
        {"頻寬504GB/s。", "504GB/s"},
        {"頻寬**504 GB/s**。", "504 GB/s"},
        {"頻寬５０４ＧＢ／ｓ。", "504GB/s"},
        {"頻寬５０４　GB/s", "504 GB/s"},
        {"# 快 1.5 倍", "1.5 倍"},
        {"花了 45 秒", "45 秒"},
        {"It took 45 s.", "45 s"},
        {"It took 45\nseconds.", "45 seconds"},
        {"uses 8 GiB", "8 GiB"},
        {"3.2× faster", "3.2×"},
        {"2x faster", "2x"},
        {"up 30%", "30%"},
        {"up 30％", "30%"},
        {"at 65 W", "65 W"},
        {"20 J/token", "20 J/token"},
        {"82.6 TFLOPS", "82.6 TFLOPS"},
        {"latency 12 µs", "12 us"},
        {"latency 12&nbsp;ms", "12 ms"},
        {"latency 12\xc2\xa0ms", "12 ms"},
        {"12\xe2\x80\x8bms", "12ms"},
        {"- item 12 ms", "12 ms"},
        {"> quote 12 ms", "12 ms"},
        {"455 ± 20 tok/s", "455 ± 20 tok/s"},
        {"1,234.5 tok/s", "1,234.5 tok/s"},
        {"1e3 tok/s", "1e3 tok/s"},
        {"30–45 ms", "45 ms"},
        {"| a | b |\n|---|---|\n| x | 5 ms |", "5 ms"},
        {"504 GB/s【推算】", "504 GB/s"},
        {"504 GB/s[^a]\n\n[^a]: x", "504 GB/s"},
        {"504 TOK/S", "504 TOK/S"},
        {"第一句。12 ms。", "12 ms"},
        {"(12 ms)", "12 ms"},
        {"～12 ms", "12 ms"},
        {"-12 ms", "12 ms"},
        {"12**ms**", "12ms"},
        {"| 模型 | 速度 tok/s |\n|---|---|\n| a | 455 |", "stands under"},
        {"| 模型 | 速度 (tok/s)【推算】 |\n|---|---|\n| a | 4.5 ± 1 |", "stands under"},
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) body(bad[i][0], bad[i][1]);
}

static void numbers_that_are_free(void **state) {
    TL_UNUSED(state);
    static const char *const good[] = {
        "第 10 天，2026-01-31，共 4 個模型",
        "## 第 10 天",
        "`504 GB/s` 是程式碼",
        "```sh\nsleep 5 s\n```",
        "~~~text\n504 GB/s\n~~~",
        "[504](https://e.org/504GB/s)",
        "https://e.org/12ms/5s",
        "<https://e.org/12ms>",
        "Q4_0 與 q8_0，T1，v1.5s2",
        "the 1990s",
        "720 × 400 px",
        "95% 信賴區間",
        "a 95% confidence interval",
        "128 tokens, 8192 context",
        "7B 模型",
        "504 GB/s【推算】[^a]\n\n[^a]: 14 GT/s × 256 bit ÷ 8",
        "504 GB/s [official] [^a]\n\n[^a]: [Data sheet](https://e.org), 2026-01-31",
        "**504 GB/s**【引用】[^a]\n\n[^a]: https://e.org",
        "| 頻寬 GB/s【官方】[^a] |\n|---|\n| 504 |\n\n[^a]: https://e.org",
        "快 `= law.slope`。",
        "| 速度 tok/s【實測】 |\n|---|\n| `~ rate{model=c50}` |",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "llama.cpp b11669 with 8 threads",
    };
    for (size_t i = 0; i < TL_COUNT(good); i++) body(good[i], "");
}

static void measured_by_hand(void **state) {
    TL_UNUSED(state);
    static const char *const bad[] = {"33 tok/s【實測】[^a]\n\n[^a]: x",
                                      "33 tok/s [measured][^a]\n\n[^a]: x",
                                      "這是【实测】的",
                                      "| 速度 tok/s【實測】 |\n|---|\n| 455 |",
                                      "| 速度 tok/s【實測】 |\n|---|\n| `~ rate{model=c50}` 455 |",
                                      "x[^a]\n\n[^a]: 【實測】 by hand",
                                      "[Measured] 3",
                                      "# 【實測】",
                                      "｜［measured］"};
    for (size_t i = 0; i < TL_COUNT(bad); i++) body(bad[i], "written by hand; only a run can say so");
}

static void directives(void **state) {
    TL_UNUSED(state);
    static const char *const bad[][2] = {
        {"`= nothing`", "no value 'nothing'"},
        {"`= nothing`", "did you mean 'law.slope'?"},
        {"`~ law.slope`", "no table header"},
        {"| 速度 tok/s【推算】 |\n|---|\n| `~ rate{model=c50}` |", "header says derived"},
        {"| 速度 ms【實測】 |\n|---|\n| `~ rate{model=c50}` |", "unit 'tok/s'"},
        {"| 速度 tok/s |\n|---|\n| `~ rate{model=c50}` |", "header says nothing"},
        {"```figrue id=fig-1\n```", "did you mean 'figure'?"},
        {"```figure idd=fig-1\n```", "did you mean 'id'?"},
        {"```figure\n```", "has no id"},
        {"```figure id=Fig\n```", "not an id"},
        {"```figure id=a id=b\n```", "given twice"},
        {"```figure id=a caption=\"x\n```", "no closing quote"},
        {"```figure id=a\n```\n\n```figure id=a\n```", "used twice"},
        {"```figure id=a caption=\"快 12 ms\"\n```", "12 ms"},
        {"```wat id=a\n```", "unknown block"},
        {"```figure id=a\nx = 1", "does not end"},
        {"- ```figure id=a\n  ```", "inside a list"},
        {"```figure id=a 5\n```", "not an attribute"},
        {"`= a|b`", "not a value expression"},
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) body(bad[i][0], bad[i][1]);
    body("```lua\nreturn 5\n```\n\n```mermaid\ngraph LR; a-->b\n```\n\n```c\nint x;\n```", "");
    body("``` = not a directive ```", "");
}

static void footnotes(void **state) {
    TL_UNUSED(state);
    body("見[^a]。", "[^a] is not defined");
    body("x\n\n[^a]: y", "[^a] is never used");
    body("x[^a]\n\n[^a]: y\n\n[^a]: z", "defined twice");
    body("504 GB/s【官方】[^a]\n\n[^a]: 說明書", "has no URL");
    body("x[^tally-1]\n\n[^tally-1]: y", "taken by the report itself");
    body("`[^a]` in code", "");
}

static void what_cannot_be_shown(void **state) {
    TL_UNUSED(state);
    static const char *const bad[][2] = {
        {"<script>alert(1)</script>", "raw HTML"},
        {"a <b onclick=x>b</b>", "raw HTML"},
        {"| a |\n|---|\n| x<br>y |", "raw HTML"},
        {"[x](javascript:alert(1))", "not safe"},
        {"[x](data:text/html;base64,AAAA)", "not safe"},
        {"[x](JaVaScRiPt:alert(1))", "not safe"},
        {"![x](https://e.org/a.png)", "loaded from elsewhere"},
        {"| a | b |\n|---|\n| 1 | 2 |", "this is no table"},
        {"| a | b |\n|---|---|\n| 1 | 2 | 3 |", "the rest would be lost"},
        {"\xee\x80\x82 x", "private use"},
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) body(bad[i][0], bad[i][1]);
}

static void front_matter(void **state) {
    TL_UNUSED(state);
    static const char *const bad[][2] = {
        {"# no front\n", "no front matter"},
        {"---\ntitle: x\n", "does not end"},
        {"---\ntitel: x\n---\n", "did you mean 'title'?"},
        {"---\nlang: en\n---\n", "no title"},
        {"---\ntitle: x\nlang: fr\n---\n", "not known"},
        {"---\ntitle: x\ntitle: y\n---\n", "given twice"},
        {"---\ntitle x\n---\n", "has no ':'"},
        {"---\ntitle: 快 12 ms\n---\n", "12 ms"},
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) expect(bad[i][0], strlen(bad[i][0]), bad[i][1], NULL);
    static const char good[] =
        "\xef\xbb\xbf---\r\ntitle: \"x: y\"\r\nlang: en\r\nday: 1\r\n---\r\n\r\ntext\r\n";
    expect(good, sizeof good - 1, "", NULL);
}

static void bytes_that_are_not_text(void **state) {
    TL_UNUSED(state);
    static const char nul[] = FRONT "a\nb\0c\n", bad[] = FRONT "a\n\xff\n";
    expect(nul, sizeof nul - 1, "report.md:7", NULL);
    expect(bad, sizeof bad - 1, "report.md:7", NULL);
}

static void values_owe_their_label(void **state) {
    TL_UNUSED(state);
    static const char *const bad[][2] = {
        {"{}", "no number"},
        {"{\"value\":1,\"unit\":\"s\"}", "label is none"},
        {"{\"value\":1,\"label\":\"cited\"}", "no unit"},
        {"{\"value\":1,\"unit\":\"s\",\"label\":\"measured\"}", "names no run"},
        {"{\"value\":1,\"unit\":\"s\",\"label\":\"derived\",\"formula\":\"x\",\"inputs\":[]}", "no inputs"},
        {"{\"value\":1,\"unit\":\"s\",\"label\":\"official\",\"source\":{\"title\":\"x\"}}",
         "no source with title and url"},
        {"{\"value\":1,\"unit\":\"s\",\"label\":\"official\",\"source\":{\"title\":\"x\",\"url\":"
         "\"javascript:1\"}}",
         "not http"},
        {"{\"value\":1,\"unit\":\"s\",\"label\":\"derived\",\"formula\":\"x\",\"inputs\":[{\"name\":\"q\","
         "\"value\":1,\"unit\":\"s\",\"label\":\"measured\"}]}",
         "input 'q'"},
    };
    const char *text = FRONT "`= x`\n";
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        json_t *v = json_loads(bad[i][0], 0, NULL);
        expect(text, strlen(text), bad[i][1], v);
        json_decref(v);
    }
}

static void all_at_once_with_places(void **state) {
    TL_UNUSED(state);
    const char *text = FRONT "第一 12 ms\n\n中文 15 GB【實測】\n\n`= nothing` [^q]\n";
    outcome o = run_bytes(text, strlen(text), NULL);
    assert_int_equal(o.st, TL_REFUSED);
    assert_int_equal(problems(&o), 4);
    const json_t *p = json_object_get(o.facts, "problems");
    assert_int_equal(tl_json_int(p, "0.line", 0), 6);
    assert_int_equal(tl_json_int(p, "0.column", 0), 8);
    assert_int_equal(tl_json_int(p, "1.line", 0), 8);
    assert_int_equal(tl_json_int(p, "2.line", 0), 10);
    assert_non_null(strstr(o.e.msg, "report.md:6:8: "));
    assert_non_null(strstr(o.e.msg, "(and 3 more)"));
    assert_true(strlen(o.e.remedy) > 0);
    json_decref(o.facts);
}

/* 12 KB that take old cmark ten seconds (CVE-2023-37463), and a very long line of stars. */
static void big_tables_and_long_lines(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_str(&b, FRONT);
    for (int i = 0; i < 2000; i++) tl_buf_str(&b, "|a");
    tl_buf_str(&b, "\n");
    for (int i = 0; i < 2000; i++) tl_buf_str(&b, "|-");
    tl_buf_str(&b, "\n");
    for (int i = 0; i < 2000; i++) tl_buf_str(&b, "|x\n");
    expect(b.p, b.len, "2000 columns", NULL);
    tl_buf_clear(&b);
    tl_buf_str(&b, FRONT);
    for (int i = 0; i < 20000; i++) tl_buf_str(&b, i % 2 ? "**「" : "`[^");
    outcome o = run_bytes(b.p, b.len, NULL);
    json_decref(o.facts);
    static const char *const many[][2] = {{"[^a]", "a"}, {"1 ± ", "1"},       {"`= a` ", "x"}, {"](", "x"},
                                          {"> ", "x"},   {"[^a] 5 ms ", "x"}, {"**「", "x"},   {"<", "x"},
                                          {"```\n", ""}, {"【", "x"}};
    for (size_t i = 0; i < TL_COUNT(many); i++) {
        tl_buf_clear(&b);
        tl_buf_str(&b, FRONT);
        while (b.len < 60000) tl_buf_str(&b, many[i][0]);
        tl_buf_str(&b, many[i][1]);
        o = run_bytes(b.p, b.len, NULL);
        json_decref(o.facts);
    }
    tl_buf_clear(&b);
    while (b.len <= TL_REPORT_MAX_BYTES) tl_buf_str(&b, "0123456789abcde\n");
    o = run_bytes(b.p, b.len, NULL);
    assert_int_equal(o.st, TL_LIMIT);
    json_decref(o.facts);
    tl_buf_free(&b);
}

static int setup(void **state) {
    tl_err e = {0};
    TL_UNUSED(state);
    return tl_dir_temp(&dir, "test-lint", &e) == TL_OK ? 0 : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_status st = tl_dir_remove(dir, NULL);
    free(dir);
    return st == TL_OK ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naked_numbers),
        cmocka_unit_test(numbers_that_are_free),
        cmocka_unit_test(measured_by_hand),
        cmocka_unit_test(directives),
        cmocka_unit_test(footnotes),
        cmocka_unit_test(what_cannot_be_shown),
        cmocka_unit_test(front_matter),
        cmocka_unit_test(bytes_that_are_not_text),
        cmocka_unit_test(values_owe_their_label),
        cmocka_unit_test(all_at_once_with_places),
        cmocka_unit_test(big_tables_and_long_lines),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

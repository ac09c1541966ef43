/* base: errors, buffers, numbers, hashing, JSON. Known answers come from the standards named beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>

#include "base/base.h"

static void error_keeps_context_and_remedy(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    assert_int_equal(tl_fail(&e, TL_NOT_FOUND, "no file %s", "x.gguf"), TL_NOT_FOUND);
    assert_int_equal(tl_wrap(&e, "while reading %s", "a.lua"), TL_NOT_FOUND);
    tl_remedy(&e, "create it");
    assert_string_equal(e.msg, "while reading a.lua: no file x.gguf");
    assert_string_equal(e.remedy, "create it");
    assert_int_equal(tl_exit_code(TL_NOT_FOUND), 4);
    assert_int_equal(tl_fail(NULL, TL_IO, "no error object"), TL_IO);
    assert_int_equal(tl_remedy(NULL, "none"), TL_IO); /* the code travels without one, too */
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    tl_fail(&e, TL_IO, "%s", long_text);
    tl_wrap(&e, "head");
    assert_memory_equal(e.msg, "head: xxx", 9);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
}

static void buffer_stops_at_its_maximum(void **s) {
    TL_UNUSED(s);
    tl_buf b;
    tl_buf_init(&b, 5);
    tl_buf_str(&b, "abc");
    tl_buf_str(&b, "defg");
    assert_true(b.over);
    assert_string_equal(b.p, "abc");
    tl_buf_free(&b);
    tl_buf_free(&b);
    tl_buf_init(&b, 0);
    for (int i = 0; i < 1000; i++) tl_buf_fmt(&b, "%d,", i);
    assert_int_equal(b.len, 3890);
    char *p = tl_buf_take(&b);
    assert_int_equal(strlen(p), 3890);
    free(p);
    tl_buf_char(&b, 'z');
    assert_string_equal(b.p, "z");
    tl_buf_free(&b);
}

static void numbers_are_strict_and_locale_free(void **s) {
    TL_UNUSED(s);
    int64_t i;
    double d;
    assert_true(tl_parse_i64("-42", &i) && i == -42);
    assert_false(tl_parse_i64("42x", &i));
    assert_false(tl_parse_i64("", &i));
    assert_false(tl_parse_i64("99999999999999999999", &i));
    assert_true(tl_parse_f64("0.02", &d) && d == 0.02);
    assert_false(tl_parse_f64("0,02", &d));
    assert_false(tl_parse_f64("nan", &d));
    assert_false(tl_parse_f64("1e999", &d));
    char t[32];
    tl_fmt_f64(t, 0.1);
    assert_string_equal(t, "0.1");
    tl_fmt_f64(t, 0.1 + 0.2);
    assert_string_equal(t, "0.30000000000000004");
    tl_fmt_f64(t, NAN);
    assert_string_equal(t, "null");
}

static void sha256_known_answers(void **s) { /* FIPS 180-2, appendix B */
    TL_UNUSED(s);
    char h[65];
    tl_sha256_hex("abc", 3, h);
    assert_string_equal(h, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    tl_sha256_hex("", 0, h);
    assert_string_equal(h, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void ulid_sorts_by_time(void **s) {
    TL_UNUSED(s);
    char a[27], b[27];
    uint8_t r[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, z[10] = {0};
    tl_ulid(a, 1469918176385, r);
    tl_ulid(b, 1469918176386, z);
    assert_memory_equal(a, "01ARYZ6S41", 10); /* the time part of the specification's own example */
    assert_true(strcmp(a, b) < 0);
}

static void random_is_reproducible(void **s) {
    TL_UNUSED(s);
    tl_rng a, b;
    tl_rng_seed(&a, 7);
    tl_rng_seed(&b, 7);
    uint64_t seen = 0;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(tl_rng_u64(&a), tl_rng_u64(&b));
        seen |= UINT64_C(1) << tl_rng_below(&a, 10);
        tl_rng_below(&b, 10);
    }
    assert_int_equal(seen, 1023);
    int v[20];
    for (int i = 0; i < 20; i++) v[i] = i;
    tl_rng_shuffle(&a, v, 20, sizeof v[0]);
    int sum = 0, moved = 0;
    for (int i = 0; i < 20; i++) sum += v[i], moved += v[i] != i;
    assert_int_equal(sum, 190);
    assert_true(moved > 10);
}

static void json_is_strict_and_canonical(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    json_t *j;
    assert_int_equal(tl_json_parse(&j, "{\"a\":1,\"a\":2}", 13, "x.json", &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "x.json:1:"));
    const char *text = "{\"b\":[1,2.5,1e3,null,true],\"a\":{\"n\":9007199254740993}}";
    assert_int_equal(tl_json_parse(&j, text, strlen(text), "x", &e), TL_OK);
    char *c = tl_json_canonical(j);
    assert_string_equal(c, "{\"a\":{\"n\":9007199254740993},\"b\":[1,2.5,1000.0,null,true]}");
    assert_true(tl_json_int(j, "a.n", 0) == 9007199254740993);
    assert_true(tl_json_num(j, "b.1", 0) == 2.5);
    assert_null(tl_json_at(j, "a.n.x"));
    free(c);
    json_decref(j);
}

static void names_widths_and_escapes(void **s) {
    TL_UNUSED(s);
    const char *const names[] = {"repeats", "workload", "predict"};
    assert_string_equal(tl_nearest("repeat", names, 3), "repeats");
    assert_null(tl_nearest("zzz", names, 3));
    const char *const ends[] = {"max", "min"};
    assert_string_equal(tl_nearest("mni", ends, 2), "min"); /* swapped letters are one slip */
    assert_int_equal(tl_utf8_width("速度 tok/s"), 10);
    assert_true(tl_utf8_valid("頻寬", 6));
    assert_false(tl_utf8_valid("\xe9\xa0", 2));
    assert_false(tl_utf8_valid("\xc0\xaf", 2));
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_html(&b, "<a b=\"'&\x01\xff");
    assert_string_equal(b.p, "&lt;a b=&quot;&#39;&amp;\xef\xbf\xbd\xef\xbf\xbd");
    tl_buf_clear(&b);
    tl_buf_shell(&b, "a-b/c");
    tl_buf_char(&b, ' ');
    tl_buf_shell(&b, "it's");
    assert_string_equal(b.p, "a-b/c 'it'\\''s'");
    tl_buf_free(&b);
}

static void arena_holds_many(void **s) {
    TL_UNUSED(s);
    tl_arena *a = tl_arena_new();
    for (int i = 0; i < 10000; i++) {
        char *p = tl_arena_printf(a, "item %d", i);
        assert_int_equal((uintptr_t)p % 16, 0);
    }
    assert_non_null(tl_arena_alloc(a, 1 << 20));
    tl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_keeps_context_and_remedy), cmocka_unit_test(buffer_stops_at_its_maximum),
        cmocka_unit_test(numbers_are_strict_and_locale_free), cmocka_unit_test(sha256_known_answers),
        cmocka_unit_test(ulid_sorts_by_time), cmocka_unit_test(random_is_reproducible),
        cmocka_unit_test(json_is_strict_and_canonical), cmocka_unit_test(names_widths_and_escapes),
        cmocka_unit_test(arena_holds_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

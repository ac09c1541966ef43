/* run: the verdict of a re-run, machine matching, the environment's allow list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "run/run.h"

static json_t *parse(const char *text) {
    json_t *j = NULL;
    tl_err e = {0};
    if (tl_json_parse(&j, text, strlen(text), "test", &e) != TL_OK) fail_msg("%s", e.msg);
    return j;
}

#define CELL(v, lo, hi, p, sha) "{\"key\":\"c1\",\"value\":" v ",\"lo\":" lo ",\"hi\":" hi ",\"predicted\":" p ",\"model_sha256\":\"" sha "\"}"
#define SIDE(cpu, cells) "{\"machine\":{\"cpu\":{\"model\":\"" cpu "\",\"cores\":2}},\"engine\":{\"build\":\"b1\"},\"cells\":[" cells "]}"

static void expect(const char *published, const char *own, const char *verdict, const char *why) {
    json_t *p = parse(published), *o = parse(own), *r = tl_rerun_compare(p, o);
    if (!tl_str_eq(tl_json_str(r, "verdict", ""), verdict)) fail_msg("%s instead of %s: %s", tl_json_str(r, "verdict", ""), verdict, tl_json_str(r, "cells.0.why", ""));
    if (why && strstr(tl_json_str(r, "cells.0.why", ""), why) == NULL) fail_msg("'%s' lacks '%s'", tl_json_str(r, "cells.0.why", ""), why);
    json_decref(r);
    json_decref(p);
    json_decref(o);
}

static void verdicts(void **state) {
    TL_UNUSED(state);
    const char *pub = SIDE("EPYC", CELL("100", "98", "102", "110", "aa"));
    expect(pub, pub, "exact", "last digit");
    expect(pub, SIDE("EPYC", CELL("90", "89", "91", "110", "aa")), "equivalent", "0.90 times");
    expect(pub, SIDE("EPYC", CELL("80", "60", "99", "110", "aa")), "equivalent", NULL); /* the intervals overlap */
    expect(pub, SIDE("EPYC", CELL("50", "49", "51", "56", "aa")), "explained", "predictions differ by 0.51"); /* the bandwidth halved */
    expect(pub, SIDE("M4", CELL("300", "295", "305", "340", "aa")), "explained", "3.00 times");
    expect(pub, SIDE("M4", CELL("101", "100", "102", "111", "aa")), "explained", NULL); /* other class: never equivalent */
    expect(pub, SIDE("EPYC", CELL("50", "49", "51", "110", "aa")), "different", "0.50 times");
    expect(pub, SIDE("EPYC", CELL("100", "98", "102", "110", "bb")), "different", "digest");
    expect(pub, SIDE("EPYC", ""), "unavailable", "could not be run");
    expect(pub, SIDE("EPYC", CELL("null", "null", "null", "null", "aa")), "unavailable", NULL);
    expect(SIDE("EPYC", ""), pub, "unavailable", NULL);
}

static void the_worst_cell_decides_and_differences_are_named(void **state) {
    TL_UNUSED(state);
    json_t *p = parse("{\"machine\":{},\"engine\":{\"build\":\"b1\"},\"cells\":[" CELL("100", "98", "102", "110", "aa") ",{\"key\":\"c2\",\"value\":10}]}");
    json_t *o = parse("{\"machine\":{},\"engine\":{\"build\":\"b2\"},\"cells\":[" CELL("100", "98", "102", "110", "aa") ",{\"key\":\"c2\",\"value\":40}]}");
    json_t *r = tl_rerun_compare(p, o);
    assert_string_equal(tl_json_str(r, "verdict", ""), "different");
    assert_string_equal(tl_json_str(r, "cells.0.verdict", ""), "exact");
    assert_string_equal(tl_json_str(r, "environment.0.what", ""), "engine build");
    assert_string_equal(tl_json_str(r, "environment.0.yours", ""), "b2");
    json_decref(r);
    json_decref(p);
    json_decref(o);
    assert_int_equal(tl_rerun_verdict_of("explained"), TL_RERUN_EXPLAINED);
    assert_int_equal(tl_rerun_verdict_of("nonsense"), TL_RERUN_UNAVAILABLE);
}

static void a_machine_is_claimed_only_when_it_matches(void **state) {
    TL_UNUSED(state);
    json_t *profiles = parse("[{\"id\":\"t1\",\"match\":{\"gpu\":{\"name\":\"RTX 4070 Ti\",\"count\":2}}},"
                             "{\"id\":\"t2\",\"match\":{\"cpu\":{\"name\":\"Apple M4 Max\",\"memory_gb\":128}}},{\"id\":\"x\"}]");
    static const struct {
        const char *snapshot, *id;
    } cases[] = {
        {"{\"gpu\":[{\"name\":\"NVIDIA GeForce RTX 4070 Ti\"},{\"name\":\"NVIDIA GeForce RTX 4070 Ti\"}]}", "t1"},
        {"{\"gpu\":[{\"name\":\"NVIDIA GeForce RTX 4070 Ti\"}]}", NULL},
        {"{\"gpu\":[{\"name\":\"NVIDIA GeForce RTX 4070 Ti SUPER\"},{\"name\":\"NVIDIA GeForce RTX 4070 Ti SUPER\"}]}", NULL},
        {"{\"cpu\":{\"model\":\"Apple M4 Max\"},\"memory\":{\"total_bytes\":137438953472},\"gpu\":null}", "t2"},
        {"{\"cpu\":{\"model\":\"Apple M4 Max\"},\"memory\":{\"total_bytes\":68719476736}}", NULL},
        {"{\"cpu\":{\"model\":\"AMD EPYC\"}}", NULL},
    };
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        json_t *s = parse(cases[i].snapshot);
        const char *id = tl_run_machine_match(s, profiles);
        if (!tl_str_eq(id, cases[i].id)) fail_msg("case %zu: %s", i, id ? id : "none");
        json_decref(s);
    }
    json_decref(profiles);
}

static void fixed_facts_do_not_drift(void **state) {
    TL_UNUSED(state);
    json_t *a = tl_host_snapshot(), *b = tl_host_snapshot();
    json_t *x = tl_run_machine_fixed(a), *y = tl_run_machine_fixed(b);
    assert_true(json_equal(x, y));
    assert_non_null(tl_json_at(x, "cpu.model"));
    assert_null(tl_json_at(x, "load"));
    json_decref(a);
    json_decref(b);
    json_decref(x);
    json_decref(y);
}

static void the_environment_is_an_allow_list(void **state) {
    TL_UNUSED(state);
    setenv("GGML_TEST_X", "1", 1);
    setenv("LLAMA_API_KEY", "secret", 1);
    setenv("SOMETHING_ELSE", "secret", 1);
    json_t *env = tl_run_environment();
    assert_string_equal(tl_json_str(env, "GGML_TEST_X", ""), "1");
    assert_null(json_object_get(env, "LLAMA_API_KEY"));
    assert_null(json_object_get(env, "SOMETHING_ELSE"));
    assert_null(json_object_get(env, "HOME"));
    json_decref(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts), cmocka_unit_test(the_worst_cell_decides_and_differences_are_named),
        cmocka_unit_test(a_machine_is_claimed_only_when_it_matches), cmocka_unit_test(fixed_facts_do_not_drift),
        cmocka_unit_test(the_environment_is_an_allow_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

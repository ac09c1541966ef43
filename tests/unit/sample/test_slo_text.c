/* An SLO in words: what is read, what is refused and where, that the canonical text reads back to the same bits, and
 * how one request is judged against one term. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "sample/sample.h"

static void reads_as(const char *text, const char *canonical)
{
    tl_slo_spec s;
    tl_err e = { 0 };
    if (tl_slo_parse(&s, text, &e) != TL_OK) fail_msg("%s", e.msg);
    char *again = tl_slo_text(&s);
    assert_string_equal(again, canonical);
    free(again);
}

static void test_terms(void **state)
{
    (void)state;
    tl_slo_spec s;
    assert_int_equal(tl_slo_parse(&s, "ttft<2s@95%, tpot<80ms@0.9,e2e<=1.5s@99.9%", NULL), TL_OK);
    assert_int_equal(s.n, 3);
    const tl_slo_term want[] = { { "ttft", 2000, 0.95 }, { "tpot", 80, 0.9 }, { "e2e", 1500, 0.999 } };
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(s.v[i].metric, want[i].metric);
        assert_memory_equal(&s.v[i].limit_ms, &want[i].limit_ms, sizeof(double));
        assert_memory_equal(&s.v[i].share, &want[i].share, sizeof(double));
    }
}

static void test_canonical(void **state)
{
    (void)state;
    reads_as("ttft<2s@95%", "ttft<2s@95%");
    reads_as(" ttft <= 2000 ms @ 0.950 ,\ttpot<0.08s@95.0 % ", "ttft<2s@95%, tpot<80ms@95%");
    reads_as("ttft<2s@95%,ttft<4s@99%", "ttft<2s@95%, ttft<4s@99%");
    reads_as("e2e<999.5ms@99.99%", "e2e<999.5ms@99.99%");
    reads_as("e2e<.001ms@1%,tpot<86400s@.9999", "e2e<0.001ms@1%, tpot<86400s@99.99%");
}

/* Any number that is let in comes back from the canonical text with all its bits. */
static void test_round_trip(void **state)
{
    (void)state;
    tl_rng rng;
    tl_rng_seed(&rng, 20260101);
    for (int i = 0; i < 3000; i++) {
        char text[96];
        tl_slo_spec s, again;
        const bool seconds = tl_rng_below(&rng, 2);
        snprintf(text, sizeof text, "tpot<%.*f%s@%.*f%%", (int)tl_rng_below(&rng, 9), 1 + tl_rng_f64(&rng) * 80000,
                 seconds ? "s" : "ms", (int)tl_rng_below(&rng, 12), 1 + tl_rng_f64(&rng) * 97);
        assert_int_equal(tl_slo_parse(&s, text, NULL), TL_OK);
        char *canonical = tl_slo_text(&s);
        if (tl_slo_parse(&again, canonical, NULL) != TL_OK || memcmp(&again.v[0].limit_ms, &s.v[0].limit_ms, 16))
            fail_msg("%s became %s", text, canonical);
        char *twice = tl_slo_text(&again);
        assert_string_equal(twice, canonical);
        free(twice);
        free(canonical);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *text, *where, *why;
    } bad[] = {
        { NULL, "position 1,", "ttft, tpot or e2e" },
        { "", "position 1,", "ttft, tpot or e2e" },
        { "ttft<2s@95%,", "position 13,", "ttft, tpot or e2e" },
        { "TTFT<2s@95%", "position 1,", "ttft, tpot or e2e" },
        { "ttft2<2s@95%", "position 1,", "ttft, tpot or e2e" },
        { "ttft>2s@95%", "position 5,", "upper limit" },
        { "ttft<-2s@95%", "position 6,", "decimal number" },
        { "ttft<1e3ms@95%", "position 7,", "its unit" },
        { "ttft<0x10s@95%", "position 7,", "its unit" },
        { "ttft<infs@95%", "position 6,", "decimal number" },
        { "ttft<2@95%", "position 7,", "its unit" },
        { "ttft<2sec@95%", "position 7,", "its unit" },
        { "ttft<2us@95%", "position 7,", "its unit" },
        { "ttft<2..5s@95%", "position 6,", "decimal number" },
        { "ttft<2.s@95%", "position 6,", "decimal number" },
        { "ttft<1,5s@95%", "position 7,", "its unit" },
        { "ttft<0s@95%", "position 6,", "out of range" },
        { "ttft<86401s@95%", "position 6,", "out of range" },
        { "ttft<0000000000000002s@95%", "position 6,", "15 characters" },
        { "ttft<2s", "position 8,", "no share" },
        { "ttft<2s, tpot<80ms", "position 8,", "no share" },
        { "ttft<2s@", "position 9,", "decimal number" },
        { "ttft<2s@95", "position 9,", "share is out of range" },
        { "ttft<2s@100%", "position 9,", "share is out of range" },
        { "ttft<2s@1", "position 9,", "share is out of range" },
        { "ttft<2s@0.95%", "position 9,", "share is out of range" },
        { "ttft<2s@0%", "position 9,", "share is out of range" },
        { "ttft<2s@p95", "position 9,", "decimal number" },
        { "ttft<2s@95% tpot<80ms@95%", "position 13,", "comma" },
        { "ttft<2s@95%;", "position 12,", "comma" },
        { "ttft<2s@95%%", "position 12,", "comma" },
        { "ttft<2s@95%\n", "position 12,", "comma" },
        { "ttft<2s@95%, ttft<3s@0.95", "position 14,", "twice" },
        { "ttft\xff<2s@95%", "position 5,", "upper limit" },
        { "ttft<2s@95%\x1b[31m", "at \"?[31m\"", "comma" },
        { "e2e<1s@1%,e2e<1s@2%,e2e<1s@3%,e2e<1s@4%,e2e<1s@5%,e2e<1s@6%,e2e<1s@7%,e2e<1s@8%,e2e<1s@9%",
          "position 81,", "over 8" },
    };
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        tl_slo_spec s;
        memset(&s, 0x5a, sizeof s);
        tl_err e = { 0 };
        if (tl_slo_parse(&s, bad[i].text, &e) != TL_INVALID) fail_msg("not refused: %s", bad[i].text);
        assert_int_equal(s.n, 0);
        if (!strstr(e.msg, bad[i].where) || !strstr(e.msg, bad[i].why) || !e.remedy[0])
            fail_msg("%s: %s", bad[i].text ? bad[i].text : "NULL", e.msg);
    }
}

/* Bytes at random, and good text with one byte changed: never accepted without reading back, never more than a line. */
static void test_hostile(void **state)
{
    (void)state;
    static const char good[] = "ttft<2s@95%, tpot<80ms@95%";
    tl_rng rng;
    tl_rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        char text[200] = { 0 };
        memcpy(text, good, sizeof good);
        const size_t len = i % 2 ? sizeof good - 1 : tl_rng_below(&rng, sizeof text);
        for (size_t k = 0; k < len; k++)
            if (i % 2 == 0 || k == (size_t)i % len) text[k] = (char)(1 + tl_rng_below(&rng, 255));
        tl_slo_spec s, again;
        tl_err e = { 0 };
        if (tl_slo_parse(&s, text, &e) != TL_OK) {
            assert_true(strlen(e.msg) < 260 && tl_utf8_valid(e.msg, strlen(e.msg)) && !strpbrk(e.msg, "\n\r\x1b"));
            continue;
        }
        char *canonical = tl_slo_text(&s);
        assert_int_equal(tl_slo_parse(&again, canonical, NULL), TL_OK);
        assert_int_equal(again.n, s.n);
        free(canonical);
    }
}

static void test_meets(void **state)
{
    (void)state;
    const tl_slo_term ttft = { "ttft", 2000, 0.95 }, tpot = { "tpot", 80, 0.95 }, e2e = { "e2e", 5000, 0.95 };
    tl_metrics m = { .outcome = TL_REQ_OK, .ttft_ns = 2000000000, .tpot_ns = 80e6, .e2e_ns = 5000000001 };
    assert_true(tl_slo_meets(&ttft, &m));
    assert_true(tl_slo_meets(&tpot, &m));
    assert_false(tl_slo_meets(&e2e, &m));
    m.tpot_ns = 80.001e6;
    assert_false(tl_slo_meets(&tpot, &m));
    m.tpot_ns = NAN; /* one token */
    assert_true(tl_slo_meets(&tpot, &m));
    const tl_outcome bad[] = { TL_REQ_FAILED, TL_REQ_TRUNCATED, TL_REQ_TIMEOUT, TL_REQ_CANCELLED };
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        m.outcome = bad[i];
        assert_false(tl_slo_meets(&ttft, &m));
        assert_false(tl_slo_meets(&tpot, &m));
    }
    m = (tl_metrics){ .outcome = TL_REQ_OK, .ttft_ns = TL_NONE, .tpot_ns = NAN, .e2e_ns = TL_NONE }; /* no token */
    assert_false(tl_slo_meets(&ttft, &m));
    assert_false(tl_slo_meets(&tpot, &m));
    assert_false(tl_slo_meets(&e2e, &m));
}

/* tl_window_of counts as good what the three limits, written out here a second time, call good. */
static void test_agrees_with_window(void **state)
{
    (void)state;
    tl_rng rng;
    tl_rng_seed(&rng, 3);
    for (int i = 0; i < 2000; i++) {
        const bool token = tl_rng_below(&rng, 8) > 0;
        tl_metrics m = { .outcome = tl_rng_below(&rng, 4) ? TL_REQ_OK : TL_REQ_FAILED };
        m.ttft_ns = token ? (int64_t)tl_rng_below(&rng, 4000000000) : TL_NONE;
        m.e2e_ns = token ? m.ttft_ns + (int64_t)tl_rng_below(&rng, 4000000000) : TL_NONE;
        m.tpot_ns = token && tl_rng_below(&rng, 4) ? (double)tl_rng_below(&rng, 160000000) : NAN;
        tl_slo_spec s;
        assert_int_equal(tl_slo_parse(&s, "ttft<2s@95%,tpot<80ms@95%,e2e<3s@95%", NULL), TL_OK);
        tl_window w;
        tl_window_of(&w, &m, 1, 1, &s);
        const bool good = m.outcome == TL_REQ_OK && token && m.ttft_ns <= 2000000000 && m.e2e_ns <= 3000000000 &&
                          !(m.tpot_ns > 80e6);
        assert_int_equal(good, w.good == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),   cmocka_unit_test(test_canonical), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_hostile),   cmocka_unit_test(test_meets),
        cmocka_unit_test(test_agrees_with_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

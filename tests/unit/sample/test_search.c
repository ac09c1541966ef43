/* The search for the largest load: against a server whose limit is known, with and without a stretch that no number of
 * requests decides. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sample/sample.h"

/* Loads up to `met` are shown to meet the SLO, from `missed` on to miss it; between them it stays undecided, and what is
 * observed meets it up to `seems`. */
typedef struct server {
    double met, seems, missed;
} server;

static void search(tl_search *s, const server *v)
{
    double load;
    while (tl_search_next(s, &load)) {
        assert_true(load >= s->from && load <= s->to);
        for (size_t i = 0; i < s->n; i++) assert_true(s->v[i].load != load); /* nothing is tried twice */
        tl_slo_verdict verdict = load <= v->met ? TL_SLO_MET : load >= v->missed ? TL_SLO_MISSED : TL_SLO_UNDECIDED;
        tl_search_add(s, load, verdict, load <= v->seems);
    }
}

static void test_every_limit_of_users(void **state)
{
    (void)state;
    size_t most = 0;
    for (int limit = 0; limit <= 70; limit++)
        for (int width = 1; width <= 9; width++)
            for (int from = 1; from <= 5; from += 4) {
                tl_search s = { .whole = true, .from = from, .to = 64 };
                const server v = { limit, limit + (width - 1) / 2, limit + width };
                search(&s, &v);
                tl_search_result r;
                tl_search_answer(&r, &s);
                if (s.n > most) most = s.n;
                assert_true(r.lo == (limit < from ? 0 : fmin(limit, 64)));
                if (v.missed <= 64 && v.missed >= from) assert_true(r.missed_at == v.missed && r.hi == v.missed - 1);
                else if (v.missed > 64) assert_true(r.unbounded && isnan(r.hi));
                assert_true(r.value >= r.lo && r.value <= v.seems && (r.unbounded || r.value <= r.hi || r.value == 0));
            }
    assert_true(most <= 16);
}

static void test_rates_are_told_apart_by_the_resolution(void **state)
{
    (void)state;
    for (double limit = 0.3; limit < 90; limit *= 1.07) {
        tl_search s = { .from = 0.25, .to = 100, .resolution = 0.1 };
        const server v = { limit, limit, nextafter(limit, INFINITY) };
        search(&s, &v);
        tl_search_result r;
        tl_search_answer(&r, &s);
        assert_true(r.lo <= limit && limit < r.missed_at && r.value == r.lo);
        assert_true(r.missed_at <= r.lo * 1.1 * (1 + 1e-12));
        assert_true(s.n <= 14);
    }
}

static void test_the_ends(void **state)
{
    (void)state;
    tl_search_result r;
    tl_search never = { .whole = true, .from = 1, .to = 8 }, always = never, one = { .whole = true, .from = 4, .to = 4 };
    search(&never, &(server){ 0, 0, 1 });
    tl_search_answer(&r, &never);
    assert_true(never.n == 1 && r.value == 0 && r.lo == 0 && r.hi == 0);
    search(&always, &(server){ 99, 99, 100 });
    tl_search_answer(&r, &always);
    assert_true(always.n == 4 && r.unbounded && r.value == 8 && r.lo == 8);
    search(&one, &(server){ 99, 99, 100 });
    assert_int_equal(one.n, 1);
}

/* Chance can show a load above an undecided one to meet the SLO: the answer starts there. */
static void test_met_above_undecided(void **state)
{
    (void)state;
    tl_search s = { .whole = true, .from = 1, .to = 16 };
    tl_search_add(&s, 1, TL_SLO_MET, true);
    tl_search_add(&s, 2, TL_SLO_UNDECIDED, true);
    tl_search_add(&s, 4, TL_SLO_MET, true);
    double load;
    assert_true(tl_search_next(&s, &load) && load == 8);
    tl_search_result r;
    tl_search_answer(&r, &s);
    assert_true(r.lo == 4 && r.unbounded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_limit_of_users), cmocka_unit_test(test_rates_are_told_apart_by_the_resolution),
        cmocka_unit_test(test_the_ends), cmocka_unit_test(test_met_above_undecided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

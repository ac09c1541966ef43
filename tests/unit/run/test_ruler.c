/* run: the verdict on a ruler at its edges, what a calibration's numbers give away, which calibration a run carries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "run/run.h"

static const tl_run_ruler good = {.late_p99_ms = 1, .ttft_ms = 100, .cpu_share = 0.1, .bias_ms = 0.2, .bias_streams = 16, .share = 0.05};

static void expect(tl_run_ruler r, const char *a, const char *b) {
    char reason[400];
    bool ok = tl_run_ruler_verdict(reason, &r);
    if (ok != (a == NULL)) fail_msg("ok = %d: %s", ok, reason);
    if (a == NULL) assert_string_equal(reason, "");
    else if (!strstr(reason, a) || !strstr(reason, b)) fail_msg("'%s' lacks '%s' or '%s'", reason, a, b);
}

static void verdict_at_its_edges(void **state) {
    TL_UNUSED(state);
    tl_run_ruler r = good;
    expect(r, NULL, NULL);
    r.late_p99_ms = 5; /* exactly the share: still long enough */
    expect(r, NULL, NULL);
    r.late_p99_ms = 5.001;
    expect(r, "5 ms (p99)", "5 % of the median TTFT of 100 ms");
    r.share = 0.06;
    expect(r, NULL, NULL);
    r = good;
    r.bias_ms = 5;
    expect(r, NULL, NULL);
    r.bias_ms = 5.1;
    expect(r, "5.1 ms in TTFT at 16 streams", "calibrate again");
    r.bias_ms = -5.1; /* too short is wrong as well */
    expect(r, "-5.1 ms", "16 streams");
    r = good;
    r.cpu_share = TL_RULER_CPU_SHARE;
    expect(r, NULL, NULL);
    r.cpu_share = 0.801;
    expect(r, "80.1 % of the one core", "limit 80 %");
}

static void what_is_not_known_is_not_judged(void **state) {
    TL_UNUSED(state);
    tl_run_ruler r = good;
    r.late_p99_ms = NAN; /* a closed loop sets no moments */
    expect(r, NULL, NULL);
    r = (tl_run_ruler){.late_p99_ms = 300, .ttft_ms = NAN, .cpu_share = NAN, .bias_ms = NAN, .share = 0.05}; /* nothing was ok: nothing to publish */
    expect(r, NULL, NULL);
    r.ttft_ms = 0.0001; /* next to nothing: any lateness is too much */
    expect(r, "300 ms (p99)", "0.0001 ms");
    r.cpu_share = 0.9; /* of two reasons, the one that explains the other */
    expect(r, "busy for 90 %", "lower the load");
}

static json_t *parse(const char *text) {
    json_t *j = NULL;
    tl_err e = {0};
    if (tl_json_parse(&j, text, strlen(text), "test", &e) != TL_OK) fail_msg("%s", e.msg);
    return j;
}

/* The names found, in order, with blanks between. */
static void finds(const char *point, const char *clock, const char *names) {
    json_t *j = parse("{\"points\":[{\"streams\":8,\"rate\":100,\"at_once\":8}],\"clock\":{\"name\":\"CLOCK_MONOTONIC, 1 ns\",\"counter\":\"tsc\","
                      "\"step_ns\":20,\"read_ns\":30}}");
    json_t *p = parse(point), *c = parse(clock), *list, *f;
    size_t i;
    json_object_update(tl_json_at(j, "points.0"), p);
    json_object_update(tl_json_at(j, "clock"), c);
    json_decref(p);
    json_decref(c);
    list = tl_run_calibrate_findings(j);
    tl_buf got;
    tl_buf_init(&got, 0);
    json_array_foreach(list, i, f) tl_buf_fmt(&got, "%s%s", i ? " " : "", tl_json_str(f, "name", "?"));
    if (!tl_str_eq(got.p, names)) fail_msg("%s%s: '%s' instead of '%s'", point, clock, got.p, names);
    tl_buf_free(&got);
    json_decref(list);
    json_decref(j);
}

static void symptoms_at_their_edges(void **state) {
    TL_UNUSED(state);
    finds("{}", "{}", "");
    finds("{\"joined_share\":0.05}", "{}", "");
    finds("{\"joined_share\":0.051}", "{}", "coalesced-reads");
    finds("{\"steps_40ms_share\":0.1}", "{}", "");
    finds("{\"steps_40ms_share\":0.11}", "{}", "40ms-steps");
    finds("{\"reads_per_event\":1.5}", "{}", "");
    finds("{\"reads_per_event\":1.51}", "{}", "split-events");
    finds("{\"burst_share\":0.11}", "{}", "fake-streaming");
    finds("{\"cpu_share\":0.81}", "{}", "client-busy");
    finds("{\"at_once\":7}", "{}", "pool-cap");
    finds("{\"joined_share\":1,\"burst_share\":1}", "{}", "coalesced-reads fake-streaming");
}

static void clocks(void **state) {
    TL_UNUSED(state);
    finds("{}", "{\"counter\":\"kvm-clock\"}", "");
    finds("{}", "{\"counter\":null}", ""); /* macOS does not say */
    finds("{}", "{\"counter\":\"hpet\"}", "clock-source");
    finds("{}", "{\"counter\":\"acpi_pm\",\"read_ns\":1200}", "clock-source clock-coarse");
    finds("{}", "{\"step_ns\":1000}", "");
    finds("{}", "{\"step_ns\":4000000}", "clock-coarse");
    finds("{}", "{\"name\":\"CLOCK_REALTIME, 1 ns\"}", "clock-source");
    finds("{}", "{\"name\":\"CLOCK_MONOTONIC_COARSE, 4000000 ns\"}", "clock-source");
    finds("{}", "{\"name\":\"CLOCK_UPTIME_RAW, 1 ns\",\"counter\":null}", "");
    finds("{}", "{\"name\":\"replaced clock\"}", "clock-source");
}

static void planned_streams(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *workload;
        size_t n;
    } cases[] = {{"{}", 1}, {"{\"concurrency\":16}", 16}, {"{\"requests\":40,\"schedule\":{\"kind\":\"open\"}}", 40},
                 {"{\"requests\":40,\"schedule\":{\"kind\":\"open\",\"max_in_flight\":6}}", 6}};
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        json_t *w = parse(cases[i].workload);
        assert_int_equal(tl_run_planned_streams(w), cases[i].n);
        json_decref(w);
    }
}

/* ---- which calibration a run carries ---- */

typedef struct scene {
    char dir[64], *path, machine[65], other[65];
    tl_store *store;
} scene;

static const char *stored(scene *s, const char *machine, const char *tally, const char *facts, bool finish) {
    static char id[TL_STORE_ID];
    tl_err e = {0};
    json_t *none = json_object(), *t = parse(tally), *f = parse(facts);
    tl_store_run r = {.kind = "calibrate", .machine_id = machine, .plan = "{}", .argv = none, .env = none, .tally = t, .git = none,
                      .wall_ns = tl_clock_wall_ns() - (int64_t)(7200 * TL_S), .utc_offset = "+00:00"};
    if (tl_store_run_start(id, s->store, &r, &e) != TL_OK) fail_msg("%s", e.msg);
    if (finish && tl_run_calibration_store(s->store, id, f, &e) != TL_OK) fail_msg("%s", e.msg);
    json_decref(none);
    json_decref(t);
    json_decref(f);
    return id;
}

static json_t *newest(scene *s, const char *machine, size_t streams, const char *tally) {
    tl_err e = {0};
    json_t *out = NULL, *t = parse(tally);
    if (tl_run_calibration_newest(&out, s->store, machine, streams, t, &e) != TL_OK) fail_msg("%s", e.msg);
    json_decref(t);
    return out;
}

#define ERR(p99) "{\"n\":100,\"bias_ms\":0.25,\"p50_ms\":0.1,\"p99_ms\":" p99 ",\"max_ms\":9}"
#define POINT(n, rate, p99) "{\"streams\":" n ",\"rate\":" rate ",\"events\":100,\"events_per_s\":100.0,\"cpu_per_event_us\":12.5,\"arrival\":" ERR(p99) \
    ",\"ttft\":" ERR("0.5") ",\"gap\":" ERR("0.3") "}"
#define CALIBRATION(more) "{\"clock\":{\"name\":\"c\"},\"points\":[" POINT("1", "100", "0.2") "," POINT("16", "50", "0.4") "," POINT("16", "100", "0.5") "]" more "}"
#define TALLY(rev, dirty) "{\"revision\":\"" rev "\",\"dirty\":" dirty "}"

static int up(void **state) {
    scene *s = tl_xalloc(sizeof *s);
    tl_err e = {0};
    char *dir = NULL;
    json_t *a = parse("{\"cpu\":\"a\"}"), *b = parse("{\"cpu\":\"b\"}");
    if (tl_dir_temp(&dir, "ruler", &e) != TL_OK) fail_msg("%s", e.msg);
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    s->path = tl_path_join(dir, "t.db");
    free(dir);
    if (tl_store_open(&s->store, s->path, NULL, &e) != TL_OK || tl_store_machine(s->machine, s->store, "this", a, &e) != TL_OK ||
        tl_store_machine(s->other, s->store, "other", b, &e) != TL_OK)
        fail_msg("%s", e.msg);
    json_decref(a);
    json_decref(b);
    *state = s;
    return 0;
}

static int down(void **state) {
    scene *s = *state;
    tl_store_close(s->store);
    free(s->path);
    assert_int_equal(tl_dir_remove(s->dir, NULL), TL_OK);
    free(s);
    return 0;
}

static void a_run_carries_the_newest_of_its_machine(void **state) {
    scene *s = *state;
    json_t *k = newest(s, s->machine, 16, TALLY("r1", "false"));
    assert_true(json_is_null(k));
    json_decref(k);
    stored(s, s->machine, TALLY("r0", "false"), CALIBRATION(""), true);
    char *id = tl_xstrdup(stored(s, s->machine, TALLY("r1", "false"), CALIBRATION(""), true));
    stored(s, s->machine, TALLY("r1", "false"), CALIBRATION(",\"null_words\":\"batch=4\""), true); /* spoiled on purpose */
    stored(s, s->machine, TALLY("r1", "false"), CALIBRATION(""), false);                          /* not finished */
    stored(s, s->other, TALLY("r1", "false"), CALIBRATION(""), true);                             /* elsewhere */
    k = newest(s, s->machine, 20, TALLY("r1", "false"));
    assert_string_equal(tl_json_str(k, "run", ""), id);
    assert_int_equal(tl_json_int(k, "streams", 0), 16);
    assert_true(tl_json_num(k, "rate", 0) == 100); /* of two as near, the harder one */
    assert_true(tl_json_num(k, "error_p99_ms", 0) == 0.5);
    assert_true(tl_json_num(k, "ttft_bias_ms", 0) == 0.25);
    assert_true(tl_json_num(k, "age_s", 0) >= 7200 && tl_json_num(k, "age_s", 0) < 7260);
    assert_true(tl_json_bool(k, "same_revision", false));
    json_decref(k);
    k = newest(s, s->machine, 3, TALLY("r2", "false")); /* 3 is nearer to 1 than to 16, by ratio */
    assert_int_equal(tl_json_int(k, "streams", 0), 1);
    assert_false(tl_json_bool(k, "same_revision", true));
    json_decref(k);
    k = newest(s, s->machine, 1000, TALLY("r1", "true")); /* a changed working tree is no revision */
    assert_int_equal(tl_json_int(k, "streams", 0), 16);
    assert_false(tl_json_bool(k, "same_revision", true));
    json_decref(k);
    free(id);
}

static void its_values_are_measured_with_their_number_of_samples(void **state) {
    scene *s = *state;
    tl_err e = {0};
    json_t *rows = NULL;
    char *id = tl_xstrdup(stored(s, s->machine, TALLY("r1", "false"), CALIBRATION(""), true));
    assert_int_equal(tl_store_values(&rows, s->store, id, "2:16x50/s", "ruler.arrival_p99", &e), TL_OK);
    assert_int_equal(json_array_size(rows), 1);
    assert_true(tl_json_num(rows, "0.number", 0) == 0.4);
    assert_string_equal(tl_json_str(rows, "0.unit", ""), "ms");
    assert_string_equal(tl_json_str(rows, "0.label", ""), "measured");
    assert_string_equal(tl_json_str(rows, "0.statistic", ""), "p99");
    assert_int_equal(tl_json_int(rows, "0.n", 0), 100);
    json_decref(rows);
    free(id);
}

static void loads_that_make_no_sense_are_refused(void **state) {
    TL_UNUSED(state);
    static const tl_run_ruler_load bad[] = {{0, 100}, {1, 0}, {1, NAN}, {10001, 100}, {1, 100001}};
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        tl_err e = {0};
        json_t *out = NULL;
        tl_run_calibrate_spec spec = {.endpoint = "http://127.0.0.1:9", .loads = &bad[i], .n_loads = 1, .seconds = 1};
        assert_int_equal(tl_run_calibrate(&out, &spec, &e), TL_INVALID);
        assert_non_null(strstr(e.msg, "1 to 10000 streams"));
        assert_null(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdict_at_its_edges), cmocka_unit_test(what_is_not_known_is_not_judged), cmocka_unit_test(symptoms_at_their_edges),
        cmocka_unit_test(clocks), cmocka_unit_test(planned_streams), cmocka_unit_test(loads_that_make_no_sense_are_refused),
        cmocka_unit_test_setup_teardown(a_run_carries_the_newest_of_its_machine, up, down),
        cmocka_unit_test_setup_teardown(its_values_are_measured_with_their_number_of_samples, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

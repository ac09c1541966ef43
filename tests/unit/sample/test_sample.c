/* Metrics and ledger of hand-made observations: exact numbers, no clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sample/sample.h"

#define MS 1000000ull
#define T0 (5000 * MS)

static void start(tl_request *r)
{
    tl_request_init(r);
    r->t_intended = r->t_start = T0;
    r->t_connected = T0 - 3 * MS;
    r->t_sent = T0 + 1 * MS;
    r->t_first_byte = T0 + 10 * MS;
    r->t_close = T0 + 480 * MS;
    r->http_status = 200;
    r->connects = 1;
    r->done_required = true;
}

static void say(tl_request *r, uint64_t ms, tl_event_kind kind, const char *text, size_t read)
{
    char **into = kind == TL_EV_REASONING ? &r->reasoning : &r->text;
    size_t *len = kind == TL_EV_REASONING ? &r->reasoning_len : &r->text_len;
    char *joined = tl_xprintf("%s%s", *into, text);
    free(*into);
    *into = joined;
    *len = strlen(joined);
    tl_request_event(r, T0 + ms * MS, kind, strlen(text), read);
}

static void finish(tl_request *r, uint64_t ms, int64_t n)
{
    r->saw_finish = r->saw_done = true;
    r->count.usage_completion = n;
    tl_request_event(r, T0 + ms * MS, TL_EV_FINISH, 0, 999);
}

/* METRICS' stream A: role at 10, ten tokens 200..380, finish 390, usage 430, [DONE] 480. */
static void stream_a(tl_request *r)
{
    start(r);
    tl_request_event(r, T0 + 10 * MS, TL_EV_ROLE, 0, 1);
    for (size_t i = 0; i < 10; i++) say(r, 200 + 20 * i, TL_EV_CONTENT, "w ", 2 + i);
    finish(r, 390, 10);
}

static int64_t line(int64_t v) { return v == TL_NONE ? 0 : v; }

static void assert_adds_up(const tl_ledger *l)
{
    assert_int_equal(l->e2e_ns, line(l->client_queue_ns) + line(l->connect_ns) + line(l->server_queue_ns) +
                                    line(l->model_load_ns) + line(l->prompt_read_ns) + line(l->thinking_ns) +
                                    line(l->answer_ns) + line(l->unaccounted_ns));
}

static void test_stream_a(void **s)
{
    (void)s;
    tl_request r;
    tl_metrics m;
    stream_a(&r);
    tl_metrics_of(&m, &r);
    assert_int_equal(m.outcome, TL_REQ_OK);
    assert_null(m.reason);
    assert_int_equal(m.ttfb_ns, 10 * MS);
    assert_int_equal(m.ttfr_ns, 10 * MS);
    assert_int_equal(m.ttft_ns, 200 * MS);
    assert_int_equal(m.ttft_sent_ns, 199 * MS);
    assert_int_equal(m.ttfo_ns, 200 * MS);
    assert_int_equal(m.e2e_ns, 380 * MS);
    assert_int_equal(m.close_ns, 480 * MS);
    assert_float_equal(m.tpot_ns, 20e6, 1e-6);
    assert_float_equal(m.decode_rate, 50, 1e-9);
    assert_float_equal(m.chars_rate, 100, 1e-9); /* 18 characters after the first chunk in 180 ms */
    assert_true(m.gaps_are_itl);
    assert_int_equal(m.n_gaps, 9);
    assert_int_equal(m.flags, TL_FLAG_ROLE_EARLY);
    assert_true(isnan(m.queue_ns));
    assert_true(m.ledger.prompt_includes_queue);
    assert_int_equal(m.ledger.prompt_read_ns, 199 * MS);
    assert_int_equal(m.ledger.thinking_ns, TL_NONE);
    assert_adds_up(&m.ledger);
    json_t *j = tl_metrics_json(&m, true);
    assert_int_equal(tl_json_int(j, "ttft_ns", 0), 200 * MS);
    assert_true(json_is_null(tl_json_at(j, "queue_ns")));
    assert_int_equal(json_array_size(tl_json_at(j, "gaps_ns")), 9);
    assert_string_equal(tl_json_str(j, "flags.0", ""), "role-early");
    json_decref(j);
    tl_metrics_free(&m);
    tl_metrics_free(&m);
    tl_request_free(&r);
    tl_request_free(&r);
}

static void test_nothing_is_null(void **s)
{
    (void)s;
    tl_request r;
    tl_metrics m;
    tl_request_init(&r);
    tl_metrics_of(&m, &r);
    assert_int_equal(m.outcome, TL_REQ_FAILED);
    assert_string_equal(m.reason, "no tokens");
    for (size_t i = 0; i < tl_metric_count(); i++) {
        const char *name = tl_metric_at(i)->name;
        if (tl_str_eq(name, "chunks") || tl_str_eq(name, "tokens")) assert_true(tl_metric_get(&m, name) == 0);
        else assert_true(isnan(tl_metric_get(&m, name)));
        assert_ptr_equal(tl_metric_find(name), tl_metric_at(i));
    }
    assert_null(tl_metric_at(tl_metric_count()));
    assert_null(tl_metric_find("ttfx"));
    assert_true(isnan(tl_metric_get(&m, "ttfx")));
    json_t *j = tl_metrics_json(&m, false);
    assert_true(json_is_null(tl_json_at(j, "ledger")));
    assert_true(json_is_null(tl_json_at(j, "ttft_ns")));
    json_decref(j);
    tl_metrics_free(&m);
    tl_request_free(&r);
}

static void test_ledger_with_engine_times(void **s)
{
    (void)s;
    tl_request r;
    tl_metrics m;
    start(&r);
    r.t_start = T0 + 2 * MS; /* 2 ms late, 3 ms to connect, sent at 6 */
    r.t_connected = T0 + 5 * MS;
    r.t_sent = T0 + 6 * MS;
    say(&r, 206, TL_EV_REASONING, "a", 1);
    say(&r, 246, TL_EV_REASONING, "b", 2);
    say(&r, 306, TL_EV_CONTENT, "c", 3);
    say(&r, 326, TL_EV_CONTENT, "d", 4);
    finish(&r, 330, 4);
    r.count.engine_prompt_ms = 150;
    r.count.engine_prompt_n = 30;
    r.count.engine_cache_n = 70;
    r.count.engine_predicted_n = 4;
    r.count.engine_predicted_ms = 120;
    tl_metrics_of(&m, &r);
    assert_int_equal(m.ledger.client_queue_ns, 3 * MS);
    assert_int_equal(m.ledger.connect_ns, 3 * MS);
    assert_int_equal(m.ledger.prompt_read_ns, 150 * MS);
    assert_int_equal(m.ledger.server_queue_ns, 50 * MS);
    assert_true(m.ledger.server_queue_derived && m.queue_derived);
    assert_int_equal(m.ledger.thinking_ns, 100 * MS);
    assert_int_equal(m.ledger.answer_ns, 20 * MS);
    assert_int_equal(m.ledger.unaccounted_ns, 0);
    assert_adds_up(&m.ledger);
    assert_float_equal(m.prefill_rate, 200, 1e-9);
    assert_int_equal(m.prompt_n, 100);
    assert_int_equal(m.uncached_n, 30);
    assert_true(m.flags & TL_FLAG_CACHED);
    assert_float_equal(m.engine_decode_rate, 25, 1e-9);
    tl_metrics_free(&m);

    r.count.engine_queue_ms = 30; /* reported: the rest is unaccounted, not queue */
    tl_metrics_of(&m, &r);
    assert_int_equal(m.ledger.unaccounted_ns, 20 * MS);
    assert_false(m.queue_derived);
    tl_metrics_free(&m);

    r.count.engine_prompt_ms = 9000; /* more than passed: shown, flagged, still adding up */
    tl_metrics_of(&m, &r);
    assert_true(m.ledger.unaccounted_ns < 0);
    assert_true(m.flags & TL_FLAG_CLOCK);
    assert_adds_up(&m.ledger);
    tl_metrics_free(&m);
    tl_request_free(&r);
}

static void test_outcomes(void **s)
{
    (void)s;
    const struct {
        tl_transport transport;
        bool finished, text;
        const char *cls;
        tl_outcome want;
    } cases[] = {
        { TL_TP_COMPLETE, true, true, NULL, TL_REQ_OK },
        { TL_TP_COMPLETE, true, false, NULL, TL_REQ_OK },
        { TL_TP_COMPLETE, false, true, NULL, TL_REQ_TRUNCATED },
        { TL_TP_COMPLETE, false, false, NULL, TL_REQ_FAILED },
        { TL_TP_COMPLETE, true, true, "engine", TL_REQ_FAILED },
        { TL_TP_CUT, false, true, "transport", TL_REQ_TRUNCATED },
        { TL_TP_CUT, true, true, "transport", TL_REQ_OK },
        { TL_TP_TIMEOUT, false, true, "transport", TL_REQ_TIMEOUT },
        { TL_TP_CANCELLED, false, true, "transport", TL_REQ_CANCELLED },
        { TL_TP_NO_CONNECT, false, false, "transport", TL_REQ_FAILED },
        { TL_TP_CLIENT_LIMIT, false, true, "transport", TL_REQ_FAILED },
        { TL_TP_PROTOCOL, false, true, "transport", TL_REQ_FAILED },
    };
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        tl_request r;
        tl_metrics m;
        start(&r);
        if (cases[i].text) say(&r, 100, TL_EV_CONTENT, "a", 1);
        if (cases[i].finished) finish(&r, 110, cases[i].text);
        r.transport = cases[i].transport;
        if (cases[i].cls) r.error_class = tl_xstrdup(cases[i].cls), r.error_text = tl_xstrdup("why");
        tl_metrics_of(&m, &r);
        if (m.outcome != cases[i].want) fail_msg("case %zu: %s", i, tl_outcome_name(m.outcome));
        assert_true((m.outcome == TL_REQ_OK) == (m.reason == NULL));
        tl_metrics_free(&m);
        tl_request_free(&r);
    }
}

static void test_token_sources(void **s)
{
    (void)s;
    const struct {
        int64_t usage, engine, tokenized, n;
        tl_n_source source;
        bool differs;
    } cases[] = {
        { 10, TL_ABSENT, TL_ABSENT, 10, TL_N_USAGE, false },
        { TL_ABSENT, 10, TL_ABSENT, 10, TL_N_ENGINE, false },
        { TL_ABSENT, TL_ABSENT, 10, 10, TL_N_TOKENIZE, false },
        { TL_ABSENT, TL_ABSENT, TL_ABSENT, 10, TL_N_EVENTS, false },
        { 10, 12, TL_ABSENT, 10, TL_N_USAGE, true },
        { 10, 10, 9, 10, TL_N_USAGE, true },
        { 7, TL_ABSENT, TL_ABSENT, 7, TL_N_USAGE, true },
        { 11, TL_ABSENT, TL_ABSENT, 11, TL_N_USAGE, true }, /* end of sequence has no text */
        { 40, TL_ABSENT, TL_ABSENT, 40, TL_N_USAGE, false }, /* explained: several tokens a chunk */
        { 0, TL_ABSENT, TL_ABSENT, 10, TL_N_EVENTS, true },
        { 0, 10, TL_ABSENT, 10, TL_N_ENGINE, true },
    };
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        tl_request r;
        tl_metrics m;
        stream_a(&r);
        r.count.requested_max = 100; /* must never be taken for a count */
        r.count.usage_completion = cases[i].usage;
        r.count.engine_predicted_n = cases[i].engine;
        r.count.tokenized = cases[i].tokenized;
        tl_metrics_of(&m, &r);
        if (m.n != cases[i].n || m.n_source != cases[i].source || (m.n_cause != NULL) != cases[i].differs)
            fail_msg("case %zu: n %d from %s, %s", i, (int)m.n, tl_n_source_name(m.n_source), m.n_cause ? m.n_cause : "-");
        tl_metrics_free(&m);
        tl_request_free(&r);
    }
}

static void test_one_token_and_burst(void **s)
{
    (void)s;
    tl_request r;
    tl_metrics m;
    start(&r);
    say(&r, 200, TL_EV_CONTENT, "a", 1);
    finish(&r, 210, 1);
    tl_metrics_of(&m, &r);
    assert_true(isnan(m.tpot_ns) && isnan(m.decode_rate));
    assert_false(m.flags & TL_FLAG_BURST);
    tl_metrics_free(&m);
    say(&r, 200, TL_EV_CONTENT, "b", 1);
    r.count.usage_completion = 2;
    tl_metrics_of(&m, &r);
    assert_true(isnan(m.decode_rate));
    assert_true(m.flags & TL_FLAG_BURST && m.flags & TL_FLAG_COALESCED);
    assert_false(m.gaps_are_itl);
    tl_metrics_free(&m);
    tl_request_free(&r);
}

static void test_compressed_refuses_times(void **s)
{
    (void)s;
    tl_request r;
    tl_metrics m;
    stream_a(&r);
    r.content_encoded = true;
    tl_metrics_of(&m, &r);
    assert_int_equal(m.outcome, TL_REQ_OK);
    assert_int_equal(m.ttft_ns, TL_NONE);
    assert_int_equal(m.ledger.e2e_ns, TL_NONE);
    assert_true(isnan(m.tpot_ns));
    assert_int_equal(m.n, 10);
    tl_metrics_free(&m);
    tl_request_free(&r);
}

static void test_pack(void **s)
{
    (void)s;
    tl_request r, back;
    tl_buf b;
    tl_err e = { 0 };
    stream_a(&r);
    tl_request_event(&r, 3, TL_EV_OTHER, 70000, 65537); /* time runs back, read number wraps */
    tl_request_event(&r, UINT64_MAX - 1, TL_EV_CONTENT | TL_EV_JOINED, UINT32_MAX, 0);
    tl_buf_init(&b, 0);
    tl_request_init(&back);
    tl_events_pack(&b, r.events, r.n_events);
    assert_int_equal(tl_events_unpack(&back, b.p, b.len, &e), TL_OK);
    assert_int_equal(back.n_events, r.n_events);
    for (size_t i = 0; i < r.n_events; i++) {
        assert_true(back.events[i].t_ns == r.events[i].t_ns);
        assert_int_equal(back.events[i].kind, r.events[i].kind);
        assert_true(back.events[i].text_bytes == r.events[i].text_bytes);
        assert_int_equal(back.events[i].read_index, r.events[i].read_index);
    }
    for (size_t cut = 0; cut < b.len; cut++) assert_int_equal(tl_events_unpack(&back, b.p, cut, &e), TL_INVALID);
    tl_buf_char(&b, 0);
    assert_int_equal(tl_events_unpack(&back, b.p, b.len, &e), TL_INVALID);
    const unsigned char bad[] = { 1, 0, 0x7f, 0, 0 }, endless[12] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0 };
    assert_int_equal(tl_events_unpack(&back, bad, sizeof bad, &e), TL_INVALID);
    assert_int_equal(tl_events_unpack(&back, endless, sizeof endless, &e), TL_INVALID);
    tl_buf_free(&b);
    tl_request_free(&back);
    tl_request_free(&r);
}

static void test_window(void **s)
{
    (void)s;
    tl_window w;
    tl_metrics m[4] = {
        { .outcome = TL_REQ_OK, .n = 10, .ttft_ns = 100 * (int64_t)MS, .tpot_ns = 20e6, .e2e_ns = 300 * (int64_t)MS },
        { .outcome = TL_REQ_OK, .n = 1, .ttft_ns = 100 * (int64_t)MS, .tpot_ns = NAN, .e2e_ns = 100 * (int64_t)MS },
        { .outcome = TL_REQ_FAILED, .n = 500, .ttft_ns = 1, .tpot_ns = 1, .e2e_ns = 1 },
        { .outcome = TL_REQ_OK, .n = 0, .ttft_ns = TL_NONE, .tpot_ns = NAN, .e2e_ns = TL_NONE },
    };
    tl_err e;
    tl_slo_spec slo, strict;
    assert_int_equal(tl_slo_parse(&slo, "ttft<150ms@95%, tpot<30ms@95%", &e), TL_OK);
    assert_int_equal(tl_slo_parse(&strict, "ttft<50ms@95%", &e), TL_OK);
    tl_window_of(&w, m, 4, 2, &slo);
    assert_int_equal(w.ok, 3);
    assert_int_equal(w.failed, 1);
    assert_int_equal(w.good, 2); /* one token: judged by TTFT; no token: nothing to judge, not good */
    assert_float_equal(w.tokens_rate, 5.5, 1e-9);
    assert_float_equal(w.success_share, 0.75, 1e-9);
    tl_window_of(&w, m, 4, 2, &strict);
    assert_int_equal(w.good, 0);
    tl_window_of(&w, m, 0, 1, NULL);
    assert_true(isnan(w.success_share));
}

/* Two answers of four tokens, one event every 100 ms; the window takes the end of one and the beginning of the other. */
static void test_span(void **s)
{
    (void)s;
    tl_request r[3];
    tl_metrics m[3] = { { .outcome = TL_REQ_OK, .n = 8 }, { .outcome = TL_REQ_OK, .n = 4 }, { .outcome = TL_REQ_FAILED, .n = TL_ABSENT } };
    const uint64_t begin[] = { 0, 400, 450 };
    for (size_t i = 0; i < 3; i++) {
        tl_request_init(&r[i]);
        r[i].t_intended = begin[i] * MS;
        r[i].t_close = i == 2 ? 500 * MS : (begin[i] + 400) * MS;
        for (uint64_t k = 1; i < 2 && k <= 4; k++) {
            tl_event ev = { .t_ns = (begin[i] + k * 100 - 1) * MS, .text_bytes = 1, .kind = TL_EV_CONTENT };
            TL_PUSH(r[i].events, r[i].n_events, r[i].cap_events, ev);
        }
    }
    const tl_request *all[] = { &r[0], &r[1], &r[2] };
    tl_span x;
    tl_span_of(&x, all, m, 3, 200 * MS, 600 * MS);
    assert_int_equal(x.started, 2);
    assert_int_equal(x.ok, 1);
    assert_int_equal(x.failed, 1);
    assert_true(fabs(x.seconds - 0.4) < 1e-12);
    assert_true(fabs(x.tokens - 6) < 1e-9);
    assert_true(fabs(x.in_flight - 1.125) < 1e-9);
    m[0].n = TL_ABSENT; /* a count that is not known is not 0 */
    tl_span_of(&x, all, m, 3, 200 * MS, 600 * MS);
    assert_true(isnan(x.tokens));
    for (size_t i = 0; i < 3; i++) tl_request_free(&r[i]);
}

static void test_stored_side_by_side(void **s)
{
    (void)s;
    tl_request r;
    stream_a(&r);
    r.count.engine_prompt_ms = 12.5;
    r.count.engine_total_ns = 9007199254740993; /* a double would lose the last digit */
    r.error_text = tl_xstrdup("why");
    r.transport = TL_TP_CUT;
    json_t *j = tl_request_json(&r);
    assert_int_equal(tl_json_int(j, "counters.usage_completion", 0), 10);
    assert_true(json_is_null(tl_json_at(j, "counters.usage_cached")));
    assert_true(json_is_null(tl_json_at(j, "counters.engine_queue_ms")));
    assert_true(tl_json_int(j, "counters.engine_total_ns", 0) == 9007199254740993);
    assert_true(json_is_null(tl_json_at(j, "t_ns.headers")));
    assert_int_equal(tl_json_int(j, "t_ns.intended", 0), T0);
    assert_string_equal(tl_json_str(j, "error_text", ""), "why");
    assert_string_equal(tl_json_str(j, "transport", ""), "cut");
    json_decref(j);
    tl_request_free(&r);
    for (int i = 0; i < TL_EV_KINDS; i++) assert_true(*tl_event_kind_name((tl_event_kind)i) != 0);
    for (int i = TL_TP_COMPLETE; i <= TL_TP_PROTOCOL; i++)
        for (int k = i + 1; k <= TL_TP_PROTOCOL; k++)
            assert_string_not_equal(tl_transport_name((tl_transport)i), tl_transport_name((tl_transport)k));
    for (unsigned i = 0; i < TL_FLAG_COUNT; i++) assert_non_null(tl_flag_name(i));
    assert_null(tl_flag_name(TL_FLAG_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_a), cmocka_unit_test(test_nothing_is_null),
        cmocka_unit_test(test_ledger_with_engine_times), cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_token_sources), cmocka_unit_test(test_one_token_and_burst),
        cmocka_unit_test(test_compressed_refuses_times), cmocka_unit_test(test_pack), cmocka_unit_test(test_window), cmocka_unit_test(test_span),
        cmocka_unit_test(test_stored_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Many requests: the keep-alive trap, and 200 streams at once. */
#include "http_fixture.h"

static void fifty(fixture *f, const char *stream, bool announced) {
    const tl_http_spec spec = spec_of(f);
    play(f, stream);
    for (int i = 0; i < 50; i++) {
        tl_http_req *r = run_spec(f, &spec);
        const tl_http_log *log = tl_http_result(r);
        assert_int_equal(log->outcome, TL_HTTP_COMPLETE);
        assert_int_equal(log->connects, 1);
        assert_int_equal(log->announced_keep_alive, announced);
        assert_true(log->preopened);
        assert_false(log->reused);
        tl_http_free(r);
    }
}

/* The server closes after each response although it announced to keep the connection. Fresh pre-opened connections
 * lose nothing and are never sent twice; an honest server gets fresh ones as well. */
static void the_trap_is_avoided(void **state) {
    fixture *f = *state;
    fifty(f, "{\"writes\":[[0,\"data: a\\n\\n\"]],\"close\":\"liar\"}", true);
    assert_int_equal(tl_script_server_count(f->server), 50);
    assert_int_equal(tl_script_server_connections(f->server), 50);
    fifty(f, "{\"writes\":[[0,\"data: a\\n\\n\"]],\"close\":\"end\"}", false);
    assert_int_equal(tl_script_server_count(f->server), 100);
    assert_int_equal(tl_script_server_connections(f->server), 100);
}

/* What happens to those who believe it: with an honest server the connection is reused and said so. */
static void keep_alive_is_recorded(void **state) {
    fixture *f = *state;
    tl_http_spec spec = spec_of(f);
    spec.keep_alive = true;
    play(f, "{\"writes\":[[0,\"a\"]],\"close\":\"end\"}");
    for (int i = 0; i < 3; i++) {
        tl_http_req *r = run_spec(f, &spec);
        assert_int_equal(tl_http_result(r)->outcome, TL_HTTP_COMPLETE);
        assert_int_equal(tl_http_result(r)->connects, 1);
        assert_int_equal(tl_http_result(r)->reused, i > 0);
        assert_false(tl_http_result(r)->preopened);
        tl_http_free(r);
    }
    assert_int_equal(tl_script_server_connections(f->server), 1);
}

/* The trap itself: an old connection dies with the request on it, and libcurl resends without a word. It shows. */
static void a_silent_resend_shows(void **state) {
    fixture *f = *state;
    tl_http_spec spec = spec_of(f);
    spec.keep_alive = true;
    play(f, "{\"writes\":[[0,\"a\"]],\"close\":\"end\"}");
    tl_http_free(run_spec(f, &spec));
    play(f, "{\"writes\":[],\"close\":\"close\",\"raw\":true}");
    tl_http_req *r = run_spec(f, &spec);
    assert_int_equal(tl_http_result(r)->outcome, TL_HTTP_CLOSED_EARLY);
    assert_true(tl_http_result(r)->reused);
    assert_int_equal(tl_http_result(r)->connects, 2);
    assert_int_equal(tl_script_server_count(f->server), 3); /* one before, and this one twice */
    tl_http_free(r);
}

enum { MANY = 200, EVENTS = 20 };

static void two_hundred_streams(void **state) {
    fixture *f = *state;
    tl_err e = {0};
    tl_http_req *reqs[MANY];
    tl_buf script;
    tl_buf_init(&script, 0);
    tl_buf_str(&script, "{\"writes\":[");
    for (int i = 0; i < EVENTS; i++) tl_buf_fmt(&script, "%s[%d,\"data: %d\\n\\n\"]", i ? "," : "", 20 + 20 * i, i);
    tl_buf_str(&script, "]}");
    play(f, script.p);
    tl_buf_free(&script);
    tl_http_spec spec = spec_of(f);
    for (int i = 0; i < MANY; i++) {
        char body[32];
        snprintf(body, sizeof body, "{\"id\":%d}", i);
        spec.body = body;
        spec.body_len = strlen(body);
        assert_int_equal(tl_http_prepare(&reqs[i], f->loop, &spec, &e), TL_OK);
        tl_http_open(reqs[i]);
    }
    assert_int_equal(tl_http_loop_run(f->loop, NULL, &e), TL_OK);
    for (int i = 0; i < MANY; i++) {
        assert_true(tl_http_is_open(reqs[i]));
        tl_http_start(reqs[i], 0);
    }
    assert_int_equal(tl_http_loop_running(f->loop), MANY);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, &e), TL_OK);
    bool seen[MANY] = {false};
    for (int i = 0; i < MANY; i++) {
        tl_script_request truth;
        assert_int_equal(tl_script_server_request(&truth, f->server, (size_t)i, &e), TL_OK);
        const int id = (int)strtol(truth.body + strlen("{\"id\":"), NULL, 10);
        assert_false(seen[id]);
        seen[id] = true;
        const tl_http_log *log = tl_http_result(reqs[id]);
        assert_int_equal(log->outcome, TL_HTTP_COMPLETE);
        assert_int_equal(log->connects, 1);
        tl_split s;
        tl_split_event ev;
        size_t n = 0;
        tl_split_log(&s, log);
        while (tl_sse_next(&s, &ev)) {
            assert_int_equal(strtol(ev.data, NULL, 10), n);
            assert_true(ev.t_ns >= truth.t_write_ns[n]);
            n++;
        }
        assert_int_equal(n, EVENTS);
        tl_split_free(&s);
        tl_script_request_free(&truth);
    }
    for (int i = 0; i < MANY; i++) tl_http_free(reqs[i]);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_up, fixture_down)
    const struct CMUnitTest tests[] = {
        T(the_trap_is_avoided),
        T(keep_alive_is_recorded),
        T(a_silent_resend_shows),
        T(two_hundred_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

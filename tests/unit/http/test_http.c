/* The client against the scripted server: what is recorded, and how each bad end is told apart. No assertion on how
 * long something took, except upper bounds far above what is needed. */
#include "http_fixture.h"

static void expect_outcome(const tl_http_req *r, tl_http_outcome want) {
    const tl_http_log *log = tl_http_result(r);
    if (log->outcome != want)
        fail_msg("outcome %s (%s), not %s", tl_http_outcome_name(log->outcome), log->error, tl_http_outcome_name(want));
    assert_int_equal(log->error[0] == '\0', want == TL_HTTP_COMPLETE);
}

static void a_stream_is_recorded(void **state) {
    fixture *f = *state;
    tl_err e = {0};
    tl_script_request truth;
    tl_http_req *r = run_stream(f, "{\"writes\":[[5,\"data: a\\n\\n\"],[65,\"data: b\\n\\n\"],[125,\"data: [DONE]\\n\\n\"]]}");
    const tl_http_log *log = tl_http_result(r);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_string_equal(log->body, "data: a\n\ndata: b\n\ndata: [DONE]\n\n");
    assert_int_equal(log->status, 200);
    assert_int_equal(log->http_version, 11);
    assert_string_equal(log->content_type, "text/event-stream");
    assert_string_equal(log->transfer_encoding, "chunked");
    assert_string_equal(log->server, "tally-script-server");
    assert_int_equal(log->connects, 1);
    assert_true(log->preopened);
    assert_false(log->reused);
    assert_false(log->ended_by_close);
    assert_int_equal(log->n_reads, 3);
    assert_true(log->t_connect_start_ns <= log->t_connected_ns && log->t_connected_ns <= log->t_intended_ns);
    assert_true(log->t_intended_ns <= log->t_ready_ns && log->t_ready_ns <= log->t_sent_ns);
    assert_int_equal(tl_script_server_wait(&truth, f->server, 0, 5 * TL_S, &e), TL_OK);
    assert_string_equal(truth.body, "{\"stream\":true}");
    assert_true(log->t_headers_ns >= truth.t_headers_ns);
    for (size_t i = 0; i < 3; i++) assert_true(log->reads[i].t_ns >= truth.t_write_ns[i]); /* late, never early */
    assert_true(log->reads[0].wake != log->reads[1].wake);
    assert_true(log->t_close_ns >= log->reads[2].t_ns);
    assert_null(strstr(truth.headers, "Accept-Encoding"));
    assert_null(strstr(truth.headers, "Expect"));
    assert_non_null(strstr(truth.headers, "Content-Type: application/json"));
    tl_script_request_free(&truth);
    tl_http_free(r);
}

static void offers_gzip_and_keeps_what_comes(void **state) {
    fixture *f = *state;
    tl_err e = {0};
    tl_script_request truth;
    tl_http_spec spec = spec_of(f);
    tl_http_req *r = NULL;
    play(f, "{\"headers\":{\"Content-Encoding\":\"gzip\"},\"writes\":[[1,\"no gzip at all\"]]}");
    spec.offer_gzip = true;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    tl_http_start(r, 0);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_string_equal(tl_http_result(r)->content_encoding, "gzip");
    assert_string_equal(tl_http_result(r)->body, "no gzip at all");
    assert_int_equal(tl_script_server_wait(&truth, f->server, 0, 5 * TL_S, &e), TL_OK);
    assert_non_null(strstr(truth.headers, "Accept-Encoding: gzip"));
    tl_script_request_free(&truth);
    tl_http_free(r);
}

/* A connection opened before, an intended time long ago: both are kept apart from the start. */
static void intended_and_opened_come_before(void **state) {
    fixture *f = *state;
    const tl_http_spec spec = spec_of(f);
    tl_http_req *r = NULL;
    play(f, "{\"writes\":[[30,\"x\"]]}");
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    assert_false(tl_http_is_open(r));
    tl_http_open(r);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    assert_true(tl_http_is_open(r));
    tl_http_open(r); /* stands already: nothing happens */
    const uint64_t intended = tl_clock_now() - TL_MS;
    tl_http_start(r, intended);
    assert_true(tl_http_result(r)->t_sent_ns != 0); /* it left during the call, not at the next turn of the loop */
    tl_http_start(r, 1); /* a second start is ignored */
    assert_int_equal(tl_http_loop_running(f->loop), 1);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    const tl_http_log *log = tl_http_result(r);
    assert_int_equal(log->t_intended_ns, intended);
    assert_true(log->t_start_ns > intended);
    assert_true(log->preopened);
    assert_int_equal(tl_script_server_connections(f->server), 1);
    tl_http_free(r);
}

static void without_open_start_opens(void **state) {
    fixture *f = *state;
    const tl_http_spec spec = spec_of(f);
    tl_http_req *r = NULL;
    play(f, "{\"writes\":[[0,\"x\"]]}");
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    tl_http_start(r, 0);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    expect_outcome(r, TL_HTTP_COMPLETE);
    tl_http_free(r);
}

typedef struct bad_end {
    const char *stream;
    tl_http_outcome outcome;
    const char *body;
} bad_end;

static void ends_are_told_apart(void **state) {
    fixture *f = *state;
    static const bad_end ENDS[] = {
        {"{\"writes\":[[0,\"a\"]],\"close\":\"end\"}", TL_HTTP_COMPLETE, "a"},
        {"{\"writes\":[[0,\"a\"]],\"close\":\"liar\"}", TL_HTTP_COMPLETE, "a"},
        {"{\"writes\":[[0,\"a\"]],\"close\":\"length\"}", TL_HTTP_COMPLETE, "a"},
        {"{\"writes\":[],\"close\":\"end\"}", TL_HTTP_COMPLETE, ""},
        {"{\"writes\":[[0,\"a\"]],\"close\":\"close\"}", TL_HTTP_CLOSED_EARLY, "a"},
        {"{\"writes\":[[0,\"a\"]],\"close\":\"short\"}", TL_HTTP_CLOSED_EARLY, "a"},
        {"{\"writes\":[[0,\"a\"]],\"close\":\"reset\",\"close_ms\":20}", TL_HTTP_RESET, "a"},
        {"{\"writes\":[[0,\"a\"]],\"close\":\"bad-chunk\"}", TL_HTTP_PROTOCOL, "a"},
        {"{\"writes\":[],\"close\":\"close\",\"raw\":true}", TL_HTTP_CLOSED_EARLY, ""},
        {"{\"writes\":[[0,\"HTTP/1.1 200 OK\\r\\nContent-Ty\"]],\"close\":\"close\",\"raw\":true}", TL_HTTP_CLOSED_EARLY, ""},
        {"{\"writes\":[[0,\"HTTP/1.1 103 Early Hints\\r\\n\\r\\n\"]],\"close\":\"close\",\"raw\":true}", TL_HTTP_CLOSED_EARLY, ""},
        {"{\"writes\":[[0,\"SSH-2.0-OpenSSH\\r\\n\"]],\"close\":\"close\",\"raw\":true}", TL_HTTP_PROTOCOL, ""},
        {"{\"writes\":[[0,\"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nab\"]],"
         "\"close\":\"close\",\"raw\":true}",
         TL_HTTP_CLOSED_EARLY, "ab"},
    };
    for (size_t i = 0; i < TL_COUNT(ENDS); i++) {
        tl_http_req *r = run_stream(f, ENDS[i].stream);
        if (tl_http_result(r)->outcome != ENDS[i].outcome) print_error("%s\n", ENDS[i].stream);
        expect_outcome(r, ENDS[i].outcome);
        assert_string_equal(tl_http_result(r)->body, ENDS[i].body);
        assert_int_equal(tl_http_result(r)->connects, 1);
        tl_http_free(r);
    }
    assert_int_equal(tl_script_server_count(f->server), TL_COUNT(ENDS)); /* nothing was sent twice */
}

static void http10_ends_by_close(void **state) {
    tl_http_req *r = run_stream(*state, "{\"writes\":[[0,\"data: a\\n\\n\"],[5,\"data: b\\n\\n\"]],\"close\":\"http10\"}");
    const tl_http_log *log = tl_http_result(r);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_int_equal(log->http_version, 10);
    assert_true(log->ended_by_close);
    assert_string_equal(log->body, "data: a\n\ndata: b\n\n");
    tl_http_free(r);
}

static void headers_are_kept_and_redirects_are_not_followed(void **state) {
    fixture *f = *state;
    tl_http_req *r = run_stream(f, "{\"writes\":[],\"status\":302,\"headers\":{\"Location\":\"http://127.0.0.1:1/x\"}}");
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_int_equal(tl_http_result(r)->status, 302);
    assert_string_equal(tl_http_result(r)->location, "http://127.0.0.1:1/x");
    assert_int_equal(tl_script_server_count(f->server), 1);
    tl_http_free(r);
    r = run_stream(f, "{\"writes\":[[0,{\"b64\":\"H4sIAAAA\"}]],\"headers\":{\"Content-Encoding\":\"gzip\"}}");
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_string_equal(tl_http_result(r)->content_encoding, "gzip");
    assert_int_equal(tl_http_result(r)->body_len, 6); /* as it came */
    assert_memory_equal(tl_http_result(r)->body, "\x1f\x8b\x08\0\0\0", 6);
    tl_http_free(r);
    r = run_stream(f, "{\"writes\":[[0,\"busy\"]],\"status\":429,\"headers\":{\"Retry-After\":\"7\"}}");
    assert_int_equal(tl_http_result(r)->status, 429);
    assert_string_equal(tl_http_result(r)->retry_after, "7");
    tl_http_free(r);
}

static void interim_responses_are_passed_over(void **state) {
    tl_http_req *r = run_stream(*state, "{\"raw\":true,\"close\":\"close\",\"writes\":[[0,\"HTTP/1.1 103 Early Hints\\r\\n"
                                        "Server: a\\r\\n\\r\\n\"],[5,\"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok\"]]}");
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_int_equal(tl_http_result(r)->status, 200);
    assert_string_equal(tl_http_result(r)->body, "ok");
    assert_string_equal(tl_http_result(r)->server, "");
    tl_http_free(r);
}

static void several_chunks_in_one_packet_share_a_wake(void **state) {
    tl_http_req *r = run_stream(*state, "{\"raw\":true,\"close\":\"close\",\"writes\":[[0,\"HTTP/1.1 200 OK\\r\\n"
                                        "Transfer-Encoding: chunked\\r\\n\\r\\n\"],[20,\"1\\r\\na\\r\\n1\\r\\nb\\r\\n0\\r\\n\\r\\n\"]]}");
    const tl_http_log *log = tl_http_result(r);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_int_equal(log->n_reads, 2);
    assert_int_equal(log->reads[0].wake, log->reads[1].wake);
    tl_http_free(r);
}

static void limits(void **state) {
    fixture *f = *state;
    tl_http_spec spec = spec_of(f);
    spec.stall_ns = 200 * TL_MS;
    play(f, "{\"writes\":[[0,\"a\"],[20,\"b\"]],\"close\":\"hang\"}");
    tl_http_req *r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_STALLED);
    assert_string_equal(tl_http_result(r)->body, "ab");
    assert_true(tl_http_result(r)->t_close_ns - tl_http_result(r)->reads[1].t_ns >= spec.stall_ns);
    tl_http_free(r);

    /* slow first byte: stall does not count before it, first_byte does */
    play(f, "{\"writes\":[[450,\"a\"]]}");
    r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_true(tl_http_result(r)->t_first_byte_ns - tl_http_result(r)->t_headers_ns > 250 * TL_MS);
    tl_http_free(r);
    spec.first_byte_ns = 50 * TL_MS;
    r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_STALLED);
    assert_int_equal(tl_http_result(r)->t_first_byte_ns, 0);
    tl_http_free(r);

    spec = spec_of(f);
    spec.total_ns = 150 * TL_MS;
    play(f, "{\"writes\":[[0,\"a\"]],\"close\":\"hang\"}");
    r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_TIMED_OUT);
    assert_string_equal(tl_http_result(r)->body, "a");
    tl_http_free(r);
}

static void too_large(void **state) {
    fixture *f = *state;
    tl_http_spec spec = spec_of(f);
    spec.max_body = 4;
    play(f, "{\"writes\":[[0,\"abc\"],[20,\"de\"],[40,\"f\"]]}");
    tl_http_req *r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_TOO_LARGE);
    assert_string_equal(tl_http_result(r)->body, "abc");
    tl_http_free(r);
    spec = spec_of(f);
    spec.max_reads = 2;
    r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_TOO_LARGE);
    assert_string_equal(tl_http_result(r)->body, "abcde");
    tl_http_free(r);
}

static void two_megabyte_event(void **state) {
    fixture *f = *state;
    const size_t n = 2u << 20;
    char *text = tl_xalloc(n + 1);
    memset(text, 'x', n);
    json_t *j = json_pack("{s:[[i,s],[i,s],[i,s]]}", "writes", 0, "data: ", 0, text, 0, "\n\n");
    assert_int_equal(tl_script_server_play(f->server, NULL, j, NULL), TL_OK);
    json_decref(j);
    tl_http_spec spec = spec_of(f);
    spec.max_body = 3u << 20;
    tl_http_req *r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_COMPLETE);
    tl_split s;
    tl_split_event ev;
    tl_split_log(&s, tl_http_result(r));
    assert_true(tl_sse_next(&s, &ev));
    assert_int_equal(ev.len, n);
    assert_int_equal(ev.read, tl_http_result(r)->n_reads - 1);
    assert_false(tl_sse_next(&s, &ev));
    tl_split_free(&s);
    tl_http_free(r);
    free(text);
}

/* A long prompt: no waiting for 100 Continue, and sent means the last byte. */
static void a_long_request_is_sent_at_once(void **state) {
    fixture *f = *state;
    const size_t n = 3u << 20;
    tl_script_request truth;
    tl_http_spec spec = spec_of(f);
    char *body = tl_xalloc(n + 1);
    memset(body, 'p', n);
    spec.body = body;
    spec.body_len = n;
    play(f, "{\"writes\":[[0,\"a\"]]}");
    tl_http_req *r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_int_equal(tl_script_server_wait(&truth, f->server, 0, 5 * TL_S, NULL), TL_OK);
    assert_int_equal(truth.body_len, n);
    assert_memory_equal(truth.body, body, n);
    assert_null(strstr(truth.headers, "Expect:"));
    assert_true(tl_http_result(r)->t_sent_ns <= tl_http_result(r)->t_headers_ns);
    assert_true(tl_http_result(r)->t_sent_ns > truth.t_accepted_ns);
    tl_script_request_free(&truth);
    tl_http_free(r);
    free(body);
}

/* A name with several addresses, of which one listens. */
static void each_address_of_a_name_is_tried(void **state) {
    fixture *f = *state;
    char url[64];
    tl_http_spec spec = spec_of(f);
    snprintf(url, sizeof url, "http://localhost:%u/x", tl_script_server_port(f->server));
    spec.url = url;
    play(f, "{\"writes\":[[0,\"a\"]]}");
    tl_http_req *r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_int_equal(tl_http_result(r)->connects, 1);
    assert_non_null(strstr(tl_http_result(r)->peer, "127.0.0.1:"));
    tl_http_free(r);
}

static void refused(void **state) {
    fixture *f = *state;
    tl_http_spec spec = spec_of(f);
    tl_script_server *gone = NULL;
    char url[64];
    assert_int_equal(tl_script_server_start(&gone, NULL, NULL), TL_OK);
    snprintf(url, sizeof url, "%s/", tl_script_server_url(gone));
    tl_script_server_stop(gone);
    spec.url = url;
    for (int opened = 0; opened < 2; opened++) {
        tl_http_req *r = NULL;
        assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
        if (opened) tl_http_open(r);
        assert_false(tl_http_is_open(r));
        tl_http_start(r, 0);
        assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
        expect_outcome(r, TL_HTTP_REFUSED);
        assert_non_null(strstr(tl_http_result(r)->error, "127.0.0.1"));
        assert_int_equal(tl_http_result(r)->connects, 0);
        tl_http_free(r);
    }
    spec.url = "http://no..such-host/"; /* no resolver need be asked to know that */
    tl_http_req *r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_REFUSED);
    tl_http_free(r);
}

/* A connection that the server closed while it waited is replaced when it is opened again. */
static void a_dead_connection_is_opened_again(void **state) {
    fixture *f = *state;
    tl_http_spec spec = spec_of(f);
    tl_http_req *r = NULL;
    tl_script_server *first = NULL;
    char url[64];
    assert_int_equal(tl_script_server_start(&first, NULL, NULL), TL_OK);
    const uint16_t port = tl_script_server_port(first);
    snprintf(url, sizeof url, "%s/health", tl_script_server_url(first));
    spec.url = url;
    spec.body = NULL;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    tl_http_open(r);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    assert_true(tl_http_is_open(r));
    while (tl_script_server_connections(first) == 0) tl_sleep_ns(TL_MS);
    tl_script_server_stop(first);
    assert_false(tl_http_is_open(r));
    const tl_script_options o = {.port = port};
    assert_int_equal(tl_script_server_start(&first, &o, NULL), TL_OK);
    tl_http_open(r);
    tl_http_start(r, 0);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    expect_outcome(r, TL_HTTP_COMPLETE);
    tl_http_free(r);
    tl_script_server_stop(first);
}

typedef struct cancel_at {
    uint64_t when_ns;
    int done;
} cancel_at;
static bool is_time(void *ctx) {
    return tl_clock_now() >= ((cancel_at *)ctx)->when_ns;
}
static void count_done(tl_http_req *r, void *ctx) {
    TL_UNUSED(r);
    ((cancel_at *)ctx)->done++;
}

static void cancelling(void **state) {
    fixture *f = *state;
    cancel_at c = {.when_ns = tl_clock_now() + 80 * TL_MS};
    tl_http_spec spec = spec_of(f);
    tl_http_req *r = NULL;
    spec.on_done = count_done;
    spec.ctx = &c;
    play(f, "{\"writes\":[[0,\"a\"],[30,\"b\"]],\"close\":\"hang\"}");
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    tl_http_start(r, 0);
    const tl_http_until until = {.cancelled = is_time, .ctx = &c};
    assert_int_equal(tl_http_loop_run(f->loop, &until, NULL), TL_CANCELLED);
    assert_true(tl_clock_now() - c.when_ns < 100 * TL_MS);
    expect_outcome(r, TL_HTTP_ABANDONED);
    assert_string_equal(tl_http_result(r)->body, "ab");
    assert_int_equal(c.done, 1);
    tl_http_free(r);
    /* one alone, and one that is freed while it runs */
    tl_http_req *other = NULL;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    assert_int_equal(tl_http_prepare(&other, f->loop, &spec, NULL), TL_OK);
    tl_http_start(r, 0);
    tl_http_start(other, 0);
    tl_http_free(other);
    tl_http_cancel(r);
    tl_http_cancel(r);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    expect_outcome(r, TL_HTTP_ABANDONED);
    assert_int_equal(c.done, 2);
    tl_http_free(r);
}

static void deadline_leaves_requests_running(void **state) {
    fixture *f = *state;
    const tl_http_spec spec = spec_of(f);
    tl_http_req *r = NULL;
    play(f, "{\"writes\":[[0,\"a\"],[150,\"b\"]]}");
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, NULL), TL_OK);
    tl_http_start(r, 0);
    const tl_http_until until = {.deadline_ns = tl_clock_now() + 50 * TL_MS};
    assert_int_equal(tl_http_loop_run(f->loop, &until, NULL), TL_TIMEOUT);
    assert_false(tl_http_is_done(r));
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    expect_outcome(r, TL_HTTP_COMPLETE);
    assert_string_equal(tl_http_result(r)->body, "ab");
    tl_http_free(r);
}

typedef struct chain {
    fixture *f;
    int left;
    uint64_t when_ns, called_ns;
} chain;
static void chain_next(tl_http_req *r, void *ctx) {
    chain *c = ctx;
    assert_int_equal(tl_http_result(r)->outcome, TL_HTTP_COMPLETE);
    tl_http_free(r); /* allowed here */
    if (c->left-- == 0) return;
    tl_http_spec spec = spec_of(c->f);
    tl_http_req *next = NULL;
    spec.on_done = chain_next;
    spec.ctx = c;
    assert_int_equal(tl_http_prepare(&next, c->f->loop, &spec, NULL), TL_OK);
    tl_http_open(next);
    tl_http_start(next, 0);
}
static void start_chain(void *ctx) {
    chain *c = ctx;
    c->called_ns = tl_clock_now();
    tl_http_spec spec = spec_of(c->f);
    tl_http_req *first = NULL;
    spec.on_done = chain_next;
    spec.ctx = c;
    assert_int_equal(tl_http_prepare(&first, c->f->loop, &spec, NULL), TL_OK);
    tl_http_start(first, 0);
}

static void a_scheduler_can_start_from_on_done_and_timers(void **state) {
    fixture *f = *state;
    chain c = {.f = f, .left = 9, .when_ns = tl_clock_now() + 15 * TL_MS + 300};
    play(f, "{\"writes\":[[1,\"a\"]]}");
    tl_http_loop_at(f->loop, c.when_ns, start_chain, &c);
    assert_int_equal(tl_http_loop_run(f->loop, NULL, NULL), TL_OK);
    assert_true(c.called_ns >= c.when_ns);
    assert_int_equal(c.left, -1);
    assert_int_equal(tl_script_server_count(f->server), 10);
    assert_int_equal(tl_script_server_connections(f->server), 10);
}

static void wrong_descriptions(void **state) {
    fixture *f = *state;
    static const char *const encoding[] = {"accept-encoding: gzip", NULL};
    static const char *const injected[] = {"A: b\r\nC: d", NULL};
    static const char *const nameless[] = {"no colon", NULL};
    tl_http_req *r = NULL;
    tl_err e = {0};
    tl_http_spec spec = {.url = "ftp://127.0.0.1/"};
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "ftp"));
    spec.url = "not a url";
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, &e), TL_INVALID);
    spec.url = NULL;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, &e), TL_INVALID);
    spec.url = f->url;
    spec.headers = encoding;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "accept-encoding"));
    spec.headers = injected;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, &e), TL_INVALID);
    spec.headers = nameless;
    assert_int_equal(tl_http_prepare(&r, f->loop, &spec, &e), TL_INVALID);
    assert_null(r);
}

static void proxies(void **state) {
    fixture *f = *state;
    setenv("http_proxy", "http://user:secret@127.0.0.1:1/", 1);
    tl_http_req *r = run_stream(f, "{\"writes\":[[0,\"a\"]]}");
    expect_outcome(r, TL_HTTP_COMPLETE); /* loopback: the proxy is not asked */
    assert_string_equal(tl_http_result(r)->proxy, "");
    tl_http_free(r);
    const tl_http_spec spec = {.url = "http://engine..invalid:8080/", .total_ns = 5 * TL_S};
    r = run_spec(f, &spec);
    expect_outcome(r, TL_HTTP_REFUSED);
    assert_string_equal(tl_http_result(r)->proxy, "http_proxy=http://127.0.0.1:1/");
    tl_http_free(r);
    setenv("no_proxy", "localhost, .invalid", 1);
    r = run_spec(f, &spec);
    assert_string_equal(tl_http_result(r)->proxy, "");
    tl_http_free(r);
    unsetenv("http_proxy");
    unsetenv("no_proxy");
}

static void plain_calls(void **state) {
    fixture *f = *state;
    tl_err e = {0};
    tl_http_reply reply;
    char url[96];
    tl_script_server_health_503(f->server, 2);
    snprintf(url, sizeof url, "%s/health", tl_script_server_url(f->server));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tl_http_get(&reply, url, NULL, &e), TL_OK);
        assert_int_equal(reply.status, i < 2 ? 503 : 200);
        assert_non_null(strstr(reply.body, i < 2 ? "loading model" : "\"ok\""));
        assert_string_equal(reply.content_type, "application/json");
        tl_http_reply_free(&reply);
    }
    snprintf(url, sizeof url, "%s/tokenize", tl_script_server_url(f->server));
    assert_int_equal(tl_http_post(&reply, url, "{\"content\":\"one two one\"}", NULL, &e), TL_OK);
    json_t *j = NULL;
    assert_int_equal(tl_json_parse(&j, reply.body, reply.len, "reply", &e), TL_OK);
    assert_int_equal(json_array_size(tl_json_at(j, "tokens")), 3);
    assert_int_equal(tl_json_int(j, "tokens.0", -1), tl_json_int(j, "tokens.2", -2));
    json_decref(j);
    tl_http_reply_free(&reply);
    tl_http_reply_free(&reply);

    tl_http_call c = {.timeout_ns = 60 * TL_MS};
    play(f, "{\"writes\":[[0,\"0123456789\"]],\"close\":\"hang\"}");
    assert_int_equal(tl_http_get(&reply, f->url, &c, &e), TL_TIMEOUT);
    assert_null(reply.body);
    c = (tl_http_call){.max_body = 5};
    assert_int_equal(tl_http_get(&reply, f->url, &c, &e), TL_LIMIT);
    cancel_at at = {.when_ns = tl_clock_now() + 30 * TL_MS};
    c = (tl_http_call){.cancelled = is_time, .ctx = &at};
    assert_int_equal(tl_http_get(&reply, f->url, &c, &e), TL_CANCELLED);
    play(f, "{\"writes\":[[0,\"0123456789\"]],\"close\":\"close\"}");
    assert_int_equal(tl_http_get(&reply, f->url, NULL, &e), TL_HTTP);
    assert_non_null(strstr(e.msg, "closed_early"));
    assert_int_equal(tl_http_get(&reply, "http://127.0.0.1:1/", NULL, &e), TL_HTTP);
    assert_int_equal(tl_http_get(&reply, "nonsense://", NULL, &e), TL_INVALID);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_up, fixture_down)
    const struct CMUnitTest tests[] = {
        T(a_stream_is_recorded),
        T(offers_gzip_and_keeps_what_comes),
        T(intended_and_opened_come_before),
        T(without_open_start_opens),
        T(ends_are_told_apart),
        T(http10_ends_by_close),
        T(headers_are_kept_and_redirects_are_not_followed),
        T(interim_responses_are_passed_over),
        T(several_chunks_in_one_packet_share_a_wake),
        T(limits),
        T(too_large),
        T(two_megabyte_event),
        T(a_long_request_is_sent_at_once),
        T(each_address_of_a_name_is_tried),
        T(refused),
        T(a_dead_connection_is_opened_again),
        T(cancelling),
        T(deadline_leaves_requests_running),
        T(a_scheduler_can_start_from_on_done_and_timers),
        T(wrong_descriptions),
        T(proxies),
        T(plain_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

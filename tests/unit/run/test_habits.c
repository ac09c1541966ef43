/* The habits of a stream on virtual times: every stream file of tests/engine shows exactly the habits that habits.txt names
 * for it, and every habit is shown by some file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "os/os.h"
#include "run/endpoint.h"

#include "../../engine/server.h"

#define T0 ((uint64_t)1000000000)

typedef struct played {
    tl_buf body;
    tl_http_read *reads;
    size_t n, cap;
    tl_http_log log;
    tl_endpoint_answer answers[3];
} played;

/* What is written at one moment is one read. */
static void add_write(played *p, const json_t *w) {
    const uint64_t t = T0 + (uint64_t)llround(json_number_value(json_array_get(w, 0)) * 1e6);
    const size_t before = p->body.len;
    assert_true(tl_script_text(&p->body, json_array_get(w, 1)));
    if (p->n == 0 || p->reads[p->n - 1].t_ns != t) {
        const tl_http_read r = {.t_ns = t, .offset = before, .wake = (uint32_t)p->n};
        TL_PUSH(p->reads, p->n, p->cap, r);
    }
    p->reads[p->n - 1].len += (uint32_t)(p->body.len - before);
}

/* The same bytes for each way of asking. */
static void answer(played *p, const json_t *stream) {
    static const unsigned asks[] = {TL_ASK_PLAIN, TL_ASK_NO_USAGE, TL_ASK_GZIP | TL_ASK_AGAIN};
    tl_gen g;
    tl_gen_init(&g);
    g.max_tokens = TL_ENDPOINT_TOKENS; /* not the stream's own: what this client asks for */
    for (size_t i = 0; i < TL_COUNT(asks); i++) {
        tl_endpoint_answer *a = &p->answers[i];
        a->ask = asks[i];
        a->log = &p->log;
        tl_request_init(&a->r);
        assert_int_equal(tl_dialect_decode(&a->r, tl_dialect_find(tl_json_str(stream, "dialect", "openai-chat")), &p->log, &g, NULL), TL_OK);
        tl_metrics_of(&a->m, &a->r);
    }
}

static void play(played *p, const json_t *stream) {
    size_t i;
    json_t *w;
    const char *close = tl_json_str(stream, "close", "end");
    const bool kept = tl_str_eq(close, "end") || tl_str_eq(close, "length"), by_close = tl_str_eq(close, "http10");
    tl_buf_init(&p->body, 0);
    json_array_foreach(tl_json_at(stream, "writes"), i, w) add_write(p, w);
    const uint64_t first = p->n ? p->reads[0].t_ns : T0, last = p->n ? p->reads[p->n - 1].t_ns : T0;
    p->log = (tl_http_log){.t_intended_ns = T0, .t_connected_ns = T0 - 1, .t_start_ns = T0, .preopened = true, .t_sent_ns = T0, .t_headers_ns = first,
                           .t_first_byte_ns = p->n ? first : 0, .t_close_ns = last, .reads = p->reads, .n_reads = p->n, .body = p->body.p,
                           .body_len = p->body.len, .status = (int)tl_json_int(stream, "status", 200), .http_version = by_close ? 10 : 11,
                           .connects = 1, .reused = kept, .ended_by_close = by_close,
                           .outcome = kept || by_close ? TL_HTTP_COMPLETE : TL_HTTP_CLOSED_EARLY};
    snprintf(p->log.content_encoding, sizeof p->log.content_encoding, "%s", tl_json_str(stream, "headers.Content-Encoding", ""));
    answer(p, stream);
}

static void end(played *p) {
    for (size_t i = 0; i < TL_COUNT(p->answers); i++) {
        tl_metrics_free(&p->answers[i].m);
        tl_request_free(&p->answers[i].r);
    }
    free(p->reads);
    tl_buf_free(&p->body);
}

static void read_text(tl_buf *out, const char *path) {
    tl_err e = {0};
    tl_buf_init(out, 0);
    if (tl_file_read(out, path, (size_t)64 << 20, &e) != TL_OK) fail_msg("%s", e.msg);
}

static json_t *load(const char *name) {
    char *path = tl_xprintf("%s/tests/engine/streams/%s.json", TL_SOURCE_DIR, name);
    tl_buf text;
    tl_err e = {0};
    json_t *j = NULL;
    read_text(&text, path);
    if (tl_json_parse(&j, text.p, text.len, path, &e) != TL_OK) fail_msg("%s", e.msg);
    tl_buf_free(&text);
    free(path);
    return j;
}

/* "role-early usage-own": what is seen, in the table's order. Evidence stands beside every verdict that needs some. */
static char *seen_in(const char *name, bool shown[]) {
    json_t *stream = load(name);
    played p = {0};
    tl_buf words;
    play(&p, stream);
    tl_buf_init(&words, 0);
    for (size_t i = 0; i < tl_endpoint_habit_count(); i++) {
        const tl_endpoint_habit *h = tl_endpoint_habit_at(i);
        tl_buf evidence;
        tl_buf_init(&evidence, 0);
        const tl_seen s = tl_endpoint_habit_look(&evidence, h, p.answers, TL_COUNT(p.answers));
        if (evidence.len == 0) fail_msg("%s in %s: no evidence", tl_endpoint_habit_name(h), name);
        if (s == TL_SEEN) tl_buf_fmt(&words, " %s", tl_endpoint_habit_name(h));
        shown[i] = shown[i] || s == TL_SEEN;
        tl_buf_free(&evidence);
    }
    end(&p);
    json_decref(stream);
    char *out = tl_buf_take(&words);
    tl_buf_free(&words);
    return out;
}

/* false: others than the table says; what was seen is printed as the table would say it. */
static bool check_line(char *line, bool shown[]) {
    char *colon = strchr(line, ':');
    if (line[0] == '#' || colon == NULL || strcspn(line, "!:") < (size_t)(colon - line)) return true; /* `!`: refused; see the e2e test */
    *colon = 0;
    char *got = seen_in(line, shown);
    const bool same = tl_str_eq(got, colon + 1);
    if (!same) print_error("%s:%s\n", line, got);
    free(got);
    return same;
}

static void each_stream_shows_its_habits(void **state) {
    TL_UNUSED(state);
    tl_buf text;
    size_t differing = 0;
    bool *shown = tl_xalloc(tl_endpoint_habit_count() * sizeof *shown);
    read_text(&text, TL_SOURCE_DIR "/tests/engine/habits.txt");
    for (char *line = text.p, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        differing += !check_line(line, shown);
    }
    if (differing) fail_msg("%zu streams show other habits than habits.txt says", differing);
    for (size_t i = 0; i < tl_endpoint_habit_count(); i++)
        if (!shown[i]) fail_msg("no stream shows '%s'", tl_endpoint_habit_name(tl_endpoint_habit_at(i)));
    free(shown);
    tl_buf_free(&text);
}

/* How each of the requests is asked for; the last two share a connection. */
static void asks_in_three_ways(void **state) {
    TL_UNUSED(state);
    tl_script_server *server = NULL;
    tl_script_request r[3] = {{0}};
    tl_endpoint p;
    tl_err e = {0};
    json_t *stream = load("clean");
    assert_int_equal(tl_script_server_start(&server, NULL, &e), TL_OK);
    assert_int_equal(tl_script_server_play(server, "/v1/chat/completions", stream, &e), TL_OK);
    const tl_endpoint_spec spec = {.url = tl_script_server_url(server), .dialect = tl_dialect_find("openai-chat"), .model = "m", .key = "sesame",
                                   .requests = 1, .timeout_ns = 10 * TL_S};
    if (tl_endpoint_look(&p, &spec, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.n_plain, 1);
    for (size_t i = 0; i < TL_COUNT(r); i++) {
        assert_int_equal(tl_script_server_wait(&r[i], server, i, 5 * TL_S, &e), TL_OK);
        assert_non_null(strstr(r[i].headers, "Authorization: Bearer sesame"));
        assert_non_null(strstr(r[i].body, "\"model\":\"m\""));
        assert_int_equal(strstr(r[i].body, "include_usage") != NULL, (p.answers[i].ask & TL_ASK_NO_USAGE) == 0);
        assert_int_equal(strstr(r[i].headers, "Accept-Encoding: gzip") != NULL, (p.answers[i].ask & TL_ASK_GZIP) != 0);
    }
    assert_true(r[0].connection != r[1].connection && r[1].connection == r[2].connection);
    for (size_t i = 0; i < TL_COUNT(r); i++) tl_script_request_free(&r[i]);
    tl_endpoint_free(&p);
    tl_script_server_stop(server);
    json_decref(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_stream_shows_its_habits), cmocka_unit_test(asks_in_three_ways)};
    return cmocka_run_group_tests_name("habits", tests, NULL, NULL);
}

/* A network may cut an answer anywhere, and nothing but times may follow from where it did. Every stream of
 * tests/engine/streams is decoded in its own writes, whole, in two pieces at every byte, byte by byte and at random
 * cuts. What the answer said must be the same each time and what the stream expects; an event's time must be that of
 * the read which brought its last byte. No socket, no clock: byte i arrives at T0 + i.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conform_impl.h"
#include "engine/engine.h"
#include "os/os.h"
#include "server.h"

#define FOLDER TL_SOURCE_DIR "/tests/engine/streams"
#define MS 1000000u
#define T0 ((uint64_t)1000000 * MS)
#define SEEDS 200
#define EVERY_BYTE_UP_TO 16384u /* of a longer body, every STEPth byte */
#define STEP 211u

typedef struct stream {
    const char *name;
    json_t *file, *said; /* said: what the uncut bytes mean */
    json_t *expect;      /* the part of the file's that no arrival time can change */
    char *body;          /* exactly body_len bytes: a read past them is seen */
    size_t body_len;
    tl_http_read *reads; /* as cut at the moment; room for one a byte */
    size_t n_reads;
    tl_event *events; /* of the bytes one by one: their times name the bytes that complete them */
    size_t n_events;
} stream;

static size_t plays;

/* ---- a stream's bytes ------------------------------------------------------------------------------------------------ */

/* The writes that come before the client gives up, one read for each moment. */
static tl_http_read *own_reads(size_t *n_out, tl_buf *body, const json_t *file)
{
    const double cancel = tl_json_num(file, "request.cancel_ms", INFINITY);
    tl_http_read *reads = NULL;
    size_t n = 0, cap = 0, i;
    json_t *w;
    json_array_foreach(tl_json_at(file, "writes"), i, w)
    {
        const double ms = json_number_value(json_array_get(w, 0));
        const uint64_t t = T0 + (uint64_t)llround(ms * MS);
        if (ms > cancel) break;
        if (n == 0 || reads[n - 1].t_ns != t) {
            const tl_http_read r = { .t_ns = t, .offset = body->len, .wake = (uint32_t)n };
            TL_PUSH(reads, n, cap, r);
        }
        assert_true(tl_script_text(body, json_array_get(w, 1)));
        reads[n - 1].len = (uint32_t)(body->len - reads[n - 1].offset);
    }
    *n_out = n;
    return reads;
}

static tl_http_outcome outcome_of(const json_t *file)
{
    const char *close = tl_json_str(file, "close", "end");
    if (tl_json_at(file, "request.cancel_ms")) return TL_HTTP_ABANDONED;
    if (tl_str_eq(close, "hang")) return TL_HTTP_TIMED_OUT;
    if (tl_str_eq(close, "reset")) return TL_HTTP_RESET;
    return tl_str_eq(close, "close") ? TL_HTTP_CLOSED_EARLY : TL_HTTP_COMPLETE;
}

static void decode(tl_request *r, const stream *s, const tl_http_read *reads, size_t n, uint64_t t_close)
{
    tl_err e = { 0 };
    tl_gen g;
    const uint64_t first = n ? reads[0].t_ns : t_close;
    tl_http_log log = { .t_intended_ns = T0, .t_start_ns = T0, .t_connected_ns = T0 - 1, .preopened = true,
                        .t_sent_ns = T0, .t_headers_ns = first, .t_first_byte_ns = n ? first : 0,
                        .t_close_ns = t_close, .reads = reads, .n_reads = n, .body = s->body,
                        .body_len = s->body_len, .status = (int)tl_json_int(s->file, "status", 200),
                        .http_version = 11, .connects = 1, .outcome = outcome_of(s->file) };
    const json_t *headers = tl_json_at(s->file, "headers");
    const char *coding = json_string_value(json_object_get(headers, "Content-Encoding"));
    snprintf(log.content_encoding, sizeof log.content_encoding, "%s", coding ? coding : "");
    tl_gen_init(&g);
    g.max_tokens = tl_json_int(s->file, "request.max_tokens", -1);
    tl_request_init(r);
    const tl_dialect *d = tl_dialect_find(tl_json_str(s->file, "dialect", "openai-chat"));
    if (tl_dialect_decode(r, d, &log, &g, &e) != TL_OK) fail_msg("%s: %s", s->name, e.msg);
    plays++;
}

/* ---- what an answer said, apart from when -------------------------------------------------------------------------------- */

static json_t *timeless(const json_t *expect)
{
    static const char *const names[] = {
        "outcome", "reason", "error_type", "http_status", "tokens", "tokens_source", "text", "reasoning_text",
        "tool_text", "finish_reason", "prompt_tokens", "cached_tokens", "uncached_tokens", "reasoning_tokens",
        "chunks", "engine", "usage", "events", "draft_acceptance", "mismatch",
    };
    json_t *j = json_object();
    for (size_t i = 0; i < TL_COUNT(names); i++) {
        json_t *v = json_object_get(expect, names[i]);
        if (v) json_object_set(j, names[i], v);
    }
    return j;
}

static void judge(const stream *s, const char *how, const json_t *expect, const tl_request *r, const tl_metrics *m)
{
    const tl_lateness none = { 0 };
    json_t *diffs = json_array();
    tl_judge(diffs, expect, r, m, &none);
    if (json_array_size(diffs)) fail_msg("%s, %s: %s", s->name, how, json_dumps(diffs, 0));
    json_decref(diffs);
}

static void check_said(stream *s, const char *how, const tl_request *r)
{
    tl_metrics m;
    tl_metrics_of(&m, r);
    json_t *said = tl_said(r, &m);
    if (!s->said) s->said = json_incref(said);
    if (!json_equal(said, s->said))
        fail_msg("%s, %s: said\n%s\nuncut\n%s", s->name, how, json_dumps(said, 0), json_dumps(s->said, 0));
    judge(s, how, s->expect, r, &m);
    json_decref(said);
    tl_metrics_free(&m);
}

/* ---- cuts -------------------------------------------------------------------------------------------------------------------- */

static void cut_to(stream *s, size_t end)
{
    const size_t from = s->n_reads ? s->reads[s->n_reads - 1].offset + s->reads[s->n_reads - 1].len : 0;
    if (end <= from) return;
    s->reads[s->n_reads] = (tl_http_read){ .t_ns = T0 + end - 1, .offset = from, .len = (uint32_t)(end - from),
                                           .wake = (uint32_t)s->n_reads };
    s->n_reads++;
}

/* Times of events: that of the read with the byte that completed it; the answer's end for a refusal by status. */
static void check_times(const stream *s, const char *how, const tl_request *r)
{
    assert_int_equal(r->n_events, s->n_events);
    for (size_t i = 0, k = 0; i < r->n_events; i++) {
        const uint64_t byte = s->events[i].t_ns - T0;
        while (k < s->n_reads && s->reads[k].offset + s->reads[k].len <= byte) k++;
        const uint64_t want = k < s->n_reads ? s->reads[k].t_ns : r->t_close;
        if (r->events[i].t_ns != want || (k < s->n_reads && r->events[i].read_index != (uint16_t)k))
            fail_msg("%s, %s: event %zu, complete with byte %" PRIu64 ", is said to come with byte %" PRIu64
                     " in read %u instead of %zu", s->name, how, i, byte, r->events[i].t_ns - T0,
                     (unsigned)r->events[i].read_index, k);
    }
}

/* Decodes with the reads as they are now, and begins anew. */
static void play(stream *s, const char *how)
{
    tl_request r;
    cut_to(s, s->body_len);
    decode(&r, s, s->reads, s->n_reads, T0 + s->body_len);
    check_said(s, how, &r);
    if (s->events) check_times(s, how, &r);
    s->n_reads = 0;
    tl_request_free(&r);
}

static void play_bytes(stream *s)
{
    tl_request r;
    for (size_t i = 1; i <= s->body_len; i++) cut_to(s, i);
    decode(&r, s, s->reads, s->n_reads, T0 + s->body_len);
    check_said(s, "byte by byte", &r);
    for (size_t i = 0; r.not_stream && i < r.n_events; i++) /* one document is nothing before its end */
        if (r.events[i].t_ns != T0 + s->body_len - 1) fail_msg("%s: event %zu comes before the document's end", s->name, i);
    s->events = r.events;
    s->n_events = r.n_events;
    r.events = NULL;
    s->n_reads = 0;
    tl_request_free(&r);
}

static void play_cuts(stream *s)
{
    char how[64];
    play(s, "uncut");
    play_bytes(s);
    const size_t step = s->body_len > EVERY_BYTE_UP_TO ? STEP : 1;
    for (size_t at = 1; at < s->body_len; at += step) {
        snprintf(how, sizeof how, "cut at byte %zu", at);
        cut_to(s, at);
        play(s, how);
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        tl_rng rng;
        tl_rng_seed(&rng, seed);
        const uint64_t mean = 2 + tl_rng_below(&rng, 400);
        for (size_t i = 1; i < s->body_len; i++)
            if (tl_rng_below(&rng, mean) == 0) cut_to(s, i);
        snprintf(how, sizeof how, "cuts of seed %" PRIu64, seed);
        play(s, how);
    }
}

/* ---- streams -------------------------------------------------------------------------------------------------------------------- */

/* In its own writes everything is judged, times too. Late by nothing: what the file says is what the decoder was given. */
static void play_as_written(stream *s)
{
    tl_request r;
    tl_metrics m;
    tl_buf body;
    size_t n = 0;
    tl_buf_init(&body, 0);
    tl_http_read *reads = own_reads(&n, &body, s->file);
    s->body_len = body.len;
    s->body = tl_xalloc(body.len + (body.len == 0));
    if (body.len) memcpy(s->body, body.p, body.len);
    const double last = n ? (double)(reads[n - 1].t_ns - T0) / MS : 0;
    const uint64_t t_close = T0 + (uint64_t)llround(tl_json_num(s->file, "close_ms", last) * MS);
    decode(&r, s, reads, n, t_close);
    tl_metrics_of(&m, &r);
    judge(s, "as written", tl_json_at(s->file, "expect"), &r, &m);
    tl_metrics_free(&m);
    tl_request_free(&r);
    tl_buf_free(&body);
    free(reads);
}

static void play_file(const char *name)
{
    stream s = { .name = name };
    tl_err e = { 0 };
    tl_buf text;
    char *path = tl_xprintf("%s/%s", FOLDER, name);
    tl_buf_init(&text, 0);
    if (tl_file_read(&text, path, (size_t)64 << 20, &e) != TL_OK) fail_msg("%s", e.msg);
    if (tl_json_parse(&s.file, text.p, text.len, path, &e) != TL_OK) fail_msg("%s", e.msg);
    tl_buf_free(&text);
    free(path);
    s.expect = timeless(tl_json_at(s.file, "expect"));
    if (json_object_size(s.expect) == 0) fail_msg("%s expects nothing that could be judged", name);
    play_as_written(&s);
    s.reads = tl_xalloc((s.body_len + 1) * sizeof *s.reads);
    play_cuts(&s);
    json_decref(s.file);
    json_decref(s.said);
    json_decref(s.expect);
    free(s.body);
    free(s.reads);
    free(s.events);
}

static void test_every_stream_every_cut(void **state)
{
    tl_names names = { 0 };
    tl_err e = { 0 };
    size_t done = 0;
    TL_UNUSED(state);
    if (tl_dir_list(&names, FOLDER, &e) != TL_OK) fail_msg("%s", e.msg);
    for (size_t i = 0; i < names.n; i++) {
        if (!tl_str_ends(names.v[i], ".json")) continue;
        play_file(names.v[i]);
        done++;
    }
    tl_names_free(&names);
    print_message("%zu streams, decoded %zu times\n", done, plays);
    assert_true(done >= 90); /* a folder that moved must not pass */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_stream_every_cut) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tools' figures on virtual times: a stream file's writes become reads at exactly their times, the real decoder makes
 * the request, and the survey's tables say what each tool reports for it. Causes add up to the gap, always. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "os/os.h"
#include "peer/peer.h"

#define MS 1000000u
#define T0 ((uint64_t)1000000 * MS)

/* ---- a stream on virtual times --------------------------------------------------------------------------------------- */

typedef struct virtual {
    tl_buf body;
    tl_http_read *reads;
    size_t n, cap;
    json_t *stream;
} virtual;

static void add_write(virtual *v, const json_t *w)
{
    const double ms = json_number_value(json_array_get(w, 0));
    const uint64_t t = T0 + (uint64_t)llround(ms * MS);
    const json_t *text = json_array_get(w, 1);
    assert_true(json_is_string(text));
    const bool same = v->n > 0 && v->reads[v->n - 1].t_ns == t; /* one moment is one read */
    if (!same) {
        const tl_http_read r = { .t_ns = t, .offset = v->body.len, .wake = (uint32_t)v->n };
        TL_PUSH(v->reads, v->n, v->cap, r);
    }
    tl_buf_add(&v->body, json_string_value(text), json_string_length(text));
    v->reads[v->n - 1].len += (uint32_t)json_string_length(text);
}

/* As if the client had taken `start_ms` to begin. */
static void play_json(tl_request *r, json_t *stream, unsigned start_ms)
{
    virtual v = { .stream = stream };
    tl_err e = { 0 };
    size_t i;
    json_t *w;
    tl_gen g;
    tl_buf_init(&v.body, 0);
    json_array_foreach(tl_json_at(stream, "writes"), i, w) add_write(&v, w);
    const uint64_t last = v.n ? v.reads[v.n - 1].t_ns : T0 + 20 * MS;
    const bool cut = !tl_str_eq(tl_json_str(stream, "close", "end"), "end");
    const tl_http_log log = { .t_intended_ns = T0 - start_ms * (uint64_t)MS, .t_connected_ns = T0 - 1, .t_start_ns = T0, .preopened = true,
                              .t_sent_ns = T0, .t_headers_ns = v.n ? v.reads[0].t_ns : last, .t_first_byte_ns = v.n ? v.reads[0].t_ns : 0,
                              .t_close_ns = last, .reads = v.reads, .n_reads = v.n, .body = v.body.p, .body_len = v.body.len,
                              .status = (int)tl_json_int(stream, "status", 200), .http_version = 11, .connects = 1,
                              .outcome = cut ? TL_HTTP_CLOSED_EARLY : TL_HTTP_COMPLETE };
    tl_gen_init(&g);
    g.max_tokens = tl_json_int(stream, "request.max_tokens", -1);
    tl_request_init(r);
    if (tl_dialect_decode(r, tl_dialect_find(tl_json_str(stream, "dialect", "openai-chat")), &log, &g, &e) != TL_OK) fail_msg("%s", e.msg);
    tl_buf_free(&v.body);
    free(v.reads);
}

static json_t *load(const char *name)
{
    char *path = tl_xprintf("%s/tests/engine/streams/%s.json", TL_SOURCE_DIR, name);
    tl_buf text;
    tl_err e = { 0 };
    json_t *j = NULL;
    tl_buf_init(&text, 0);
    if (tl_file_read(&text, path, (size_t)64 << 20, &e) != TL_OK) fail_msg("%s", e.msg);
    if (tl_json_parse(&j, text.p, text.len, path, &e) != TL_OK) fail_msg("%s", e.msg);
    tl_buf_free(&text);
    free(path);
    return j;
}

static void check_sums(const tl_peer_figures *f)
{
    for (size_t s = 0; s < TL_PEER_SLOTS; s++) {
        int64_t sum = 0;
        for (size_t c = 0; c < TL_PEER_CAUSES; c++) sum += f->f[s].cause[c];
        if (f->f[s].gap != TL_NONE && sum != f->f[s].gap)
            fail_msg("%s %s: causes %" PRId64 ", gap %" PRId64, tl_peer_name(f->peer), tl_peer_slot_name((tl_peer_slot)s), sum, f->f[s].gap);
        if (f->f[s].gap == TL_NONE) assert_int_equal(sum, 0);
        if (f->f[s].word && f->f[s].value == TL_NONE) assert_non_null(f->f[s].why); /* nothing is missing without a reason */
    }
}

static void say(tl_peer_figures *f, const tl_request *r, const char *tool)
{
    assert_non_null(tl_peer_find(tool));
    tl_peer_say(f, tl_peer_find(tool), r);
    check_sums(f);
}

/* NAN: undefined. */
static void expect(const tl_peer_figures *f, tl_peer_slot s, double want, double within)
{
    const double got = tl_peer_value(&f->f[s]);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= within))
        fail_msg("%s %s: %g, wanted %g", tl_peer_name(f->peer), tl_peer_slot_name(s), got, want);
}

/* ---- building streams ------------------------------------------------------------------------------------------------ */

static json_t *stream_new(void) { return json_pack("{s:s, s:{s:i}, s:[]}", "dialect", "openai-chat", "request", "max_tokens", 100, "writes"); }

static void raw(json_t *s, double ms, const char *text) { json_array_append_new(json_object_get(s, "writes"), json_pack("[f, s]", ms, text)); }

/* `before`: what stands before the record ("data: "), `after` its end. */
typedef struct style {
    const char *before, *after, *extra; /* extra: members after the choices */
} style;
static const style plain = { "data: ", "\n\n", "" };

static void choice(json_t *s, double ms, const style *y, const char *delta, const char *reason)
{
    char *t = tl_xprintf("%s{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]%s}%s", y->before, delta, reason, y->extra, y->after);
    raw(s, ms, t);
    free(t);
}

/* Ten chunks of one field, 20 ms apart from `at`. */
static void texts(json_t *s, double at, size_t n, const style *y, const char *field)
{
    for (size_t i = 0; i < n; i++) {
        char *t = tl_xprintf("\"%s\":\"w%zu \"", field, i);
        choice(s, at + 20.0 * (double)i, y, t, "null");
        free(t);
    }
}

static void ending(json_t *s, double finish, double usage, double done, const style *y, int n)
{
    if (finish >= 0) choice(s, finish, y, "", "\"stop\"");
    if (usage >= 0) {
        char *t = tl_xprintf("%s{\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":%d,\"total_tokens\":%d}}%s", y->before, n, n + 7, y->after);
        raw(s, usage, t);
        free(t);
    }
    if (done >= 0) {
        char *t = tl_xprintf("%s[DONE]%s", y->before, y->after);
        raw(s, done, t);
        free(t);
    }
}

static json_t *stream_a(void)
{
    json_t *s = stream_new();
    choice(s, 10, &plain, "\"role\":\"assistant\",\"content\":\"\"", "null");
    texts(s, 200, 10, &plain, "content");
    ending(s, 390, 430, 480, &plain, 10);
    return s;
}

static json_t *stream_of(const style *y, int n)
{
    json_t *s = stream_new();
    texts(s, 200, 10, y, "content");
    ending(s, 380, 380, 380, y, n);
    return s;
}

typedef struct row {
    const char *tool;
    bool fails, ok;
    double ttft, e2e, tpot, rate; /* NAN: undefined; -1: not stated */
    int64_t n;                    /* -1: not stated or unknown */
} row;

static void check_row(const tl_request *r, const row *w)
{
    tl_peer_figures f;
    say(&f, r, w->tool);
    if ((f.fails != NULL) != w->fails) fail_msg("%s: fails: %s", w->tool, f.fails ? f.fails : "not");
    if (f.counted_ok != w->ok) fail_msg("%s: counted %d", w->tool, f.counted_ok);
    if (w->fails) {
        assert_true(f.f[TL_PEER_TTFT].value == TL_NONE && f.f[TL_PEER_TPOT].value == TL_NONE && f.n == TL_ABSENT);
        return;
    }
    if (!(w->ttft < 0)) expect(&f, TL_PEER_TTFT, w->ttft, 1e-6);
    if (!(w->e2e < 0)) expect(&f, TL_PEER_E2E, w->e2e, 1e-6);
    if (!(w->tpot < 0)) expect(&f, TL_PEER_TPOT, w->tpot, 1e-6);
    if (!(w->rate < 0)) expect(&f, TL_PEER_RATE, w->rate, 1e-6);
    if (w->n >= 0 && f.n != w->n) fail_msg("%s: n %" PRId64 ", wanted %" PRId64, w->tool, f.n, w->n);
}

#define X (-1.0)
static void table(json_t *s, const row *rows, size_t n)
{
    tl_request r;
    play_json(&r, s, 0);
    for (size_t i = 0; i < n; i++) check_row(&r, &rows[i]);
    for (size_t i = 0; i < tl_peer_count(); i++) { /* every tool says something sound about every stream */
        tl_peer_figures f;
        say(&f, &r, tl_peer_name(tl_peer_at(i)));
        json_t *j = tl_peer_json(&f);
        assert_string_equal(tl_json_str(j, "tool", ""), tl_peer_name(tl_peer_at(i)));
        json_decref(j);
    }
    tl_request_free(&r);
    json_decref(s);
}
#define TABLE(s, rows) table(s, rows, TL_COUNT(rows))

/* ---- METRICS 2a and 2b, row by row ------------------------------------------------------------------------------------ */

static void test_stream_a(void **state)
{
    TL_UNUSED(state);
    const row rows[] = { { "tally", false, true, 200, 380, 20, 50, 10 },
                         { "vllm", false, true, 10, 430, 420.0 / 9, 9000.0 / 420, 10 },
                         { "evalscope", false, true, 10, 430, 420.0 / 9, 9000.0 / 420, 10 },
                         { "sglang", false, true, 200, 480, 280.0 / 9, 9000.0 / 280, 10 },
                         { "genai-bench", false, true, 200, 430, 230.0 / 9, 9000.0 / 230, 10 },
                         { "llama-benchy", false, true, 200, 480, 20, 50, 10 },
                         { "guidellm", false, true, 200, 480, 38, 50, 10 },
                         { "aiperf", false, true, 200, 380, 20, 50, 10 },
                         { "genai-perf", false, true, 200, 380, 20, 50, 10 },
                         { "mlperf", false, true, 200, 380, 20, 50, 10 },
                         { "llmperf", true, false, X, X, X, X, X } };
    TABLE(stream_a(), rows);
    /* the same stream as a file */
    table(load("role-first"), rows, TL_COUNT(rows));
}

static int64_t cause(const tl_peer_figures *f, tl_peer_slot s, tl_peer_cause_id c) { return f->f[s].cause[c]; }

static void test_causes(void **state)
{
    TL_UNUSED(state);
    tl_request r;
    tl_peer_figures f;
    json_t *s = stream_a();
    play_json(&r, s, 7); /* our clock runs 7 ms before the tool's timer would */
    say(&f, &r, "vllm");
    assert_int_equal(f.f[TL_PEER_TTFT].gap, -197 * (int64_t)MS);
    assert_int_equal(cause(&f, TL_PEER_TTFT, TL_PEER_FROM_POST), -7 * (int64_t)MS);
    assert_int_equal(cause(&f, TL_PEER_TTFT, TL_PEER_ROLE), -190 * (int64_t)MS);
    assert_int_equal(cause(&f, TL_PEER_E2E, TL_PEER_FINISH_TAIL), 10 * (int64_t)MS);
    assert_int_equal(cause(&f, TL_PEER_E2E, TL_PEER_USAGE_TAIL), 40 * (int64_t)MS);
    assert_int_equal(cause(&f, TL_PEER_TPOT, TL_PEER_ROLE), 21111111111); /* 190 ms / 9 in ps */
    assert_true(cause(&f, TL_PEER_RATE, TL_PEER_ROLE) < 0);
    expect(&f, TL_PEER_ITL, 380.0 / 11, 1e-6); /* twelve choice chunks from 10 to 390 */
    say(&f, &r, "sglang");
    assert_int_equal(cause(&f, TL_PEER_E2E, TL_PEER_DONE_TAIL), 50 * (int64_t)MS);
    say(&f, &r, "guidellm");
    expect(&f, TL_PEER_RATE2, 10 / 0.38, 1e-5);
    assert_int_equal(cause(&f, TL_PEER_TPOT, TL_PEER_FIRST_WAIT), 22222222222); /* 200/9 ms */
    assert_true(cause(&f, TL_PEER_TPOT, TL_PEER_N) < 0);
    expect(&f, TL_PEER_ITL, 20, 1e-9);
    assert_int_equal(f.f[TL_PEER_ITL].gap, 0);
    tl_request_free(&r);
    json_decref(s);
}

static void test_many_tokens_a_chunk(void **state) /* B */
{
    TL_UNUSED(state);
    tl_request r;
    tl_peer_figures f;
    const row rows[] = { { "vllm", false, true, 200, 380, 180.0 / 39, X, 40 }, { "sglang", false, true, 200, X, 180.0 / 39, X, 40 },
                         { "llama-benchy", false, true, 200, X, 20, 50, 10 },   { "evalscope", false, true, X, X, 180.0 / 39, X, 40 },
                         { "genai-bench", false, true, X, X, 180.0 / 39, X, 40 }, { "llmperf", true, false, X, X, X, X, X } };
    TABLE(stream_of(&plain, 40), rows);
    json_t *s = stream_of(&plain, 40);
    play_json(&r, s, 0);
    say(&f, &r, "llama-benchy"); /* 216.7 tok/s less what counting chunks takes away */
    assert_int_equal(f.f[TL_PEER_RATE].gap, cause(&f, TL_PEER_RATE, TL_PEER_CHUNKS));
    assert_int_equal(f.f[TL_PEER_RATE].gap, 50000000 - 216666667);
    tl_request_free(&r);
    json_decref(s);
}

static void test_reasoning(void **state) /* C */
{
    TL_UNUSED(state);
    const row rows[] = { { "tally", false, true, 200, 380, 20, 50, 10 }, { "vllm", false, true, 200, X, X, X, 10 },
                         { "sglang", false, true, 200, X, X, X, 10 }, { "llama-benchy", false, true, 200, X, X, X, 10 },
                         { "evalscope", false, true, 200, X, X, X, 10 }, { "genai-bench", false, true, 200, X, X, X, 10 },
                         { "genai-perf", false, true, 300, 380, 20, X, 5 } };
    const row lp[] = { { "llmperf", false, true, 300, X, 380.0 / 11, X, 5 } }; /* eleven choice chunks */
    for (int usage = 0; usage < 2; usage++) { /* llmperf cannot read a usage record */
        json_t *s = stream_new();
        texts(s, 200, 5, &plain, "reasoning_content");
        texts(s, 300, 5, &plain, "content");
        ending(s, 380, usage ? 380 : -1, 380, &plain, 10);
        usage ? TABLE(s, rows) : TABLE(s, lp);
    }
    tl_request r;
    tl_peer_figures f;
    json_t *t = load("only-thinking"); /* no answer: it reports 0 for what it did not see */
    json_array_remove(json_object_get(t, "writes"), 2);
    ending(t, 130, -1, 130, &plain, 2);
    play_json(&r, t, 0);
    say(&f, &r, "llmperf");
    expect(&f, TL_PEER_TTFT, 0, 0);
    assert_int_equal(cause(&f, TL_PEER_TTFT, TL_PEER_REASONING), -100 * (int64_t)MS);
    tl_request_free(&r);
    json_decref(t);
}

static void test_errors(void **state) /* D, E, F, F2 */
{
    TL_UNUSED(state);
    static const char err[] = "data: {\"error\":{\"message\":\"engine died\",\"type\":\"E\",\"code\":500}}\n\n";
    const row d_rows[] = { { "tally", false, false, 200, 240, X, X, 3 }, { "vllm", false, true, 200, 260, X, X, 3 },
                           { "sglang", false, true, 200, 260, 60.0 / 99, X, 100 }, { "llama-benchy", false, true, X, X, X, X, 3 },
                           { "llmperf", true, false, X, X, X, X, X }, { "evalscope", false, true, X, X, X, X, X },
                           { "genai-bench", true, false, X, X, X, X, X } };
    json_t *s = stream_new();
    texts(s, 200, 3, &plain, "content");
    raw(s, 260, err);
    ending(s, -1, -1, 260, &plain, 0);
    TABLE(s, d_rows);
    const row e_rows[] = { { "tally", false, false, NAN, NAN, NAN, NAN, -1 }, { "vllm", false, true, 0, 20, X, X, X },
                           { "sglang", false, true, 0, 20, X, X, 100 }, { "llama-benchy", false, true, X, X, X, X, X },
                           { "llmperf", true, false, X, X, X, X, X }, { "evalscope", false, true, 0, X, X, X, X },
                           { "genai-bench", true, false, X, X, X, X, X } };
    s = stream_new();
    raw(s, 20, err);
    ending(s, -1, -1, 20, &plain, 0);
    TABLE(s, e_rows);
    const row f_rows[] = { { "tally", false, false, NAN, NAN, NAN, NAN, X }, { "vllm", false, true, 0, 0, X, X, X },
                           { "sglang", false, true, 0, 20, X, X, 100 }, { "llama-benchy", false, true, X, X, X, X, X },
                           { "llmperf", false, true, 0, X, X, X, X }, { "evalscope", false, true, 0, X, X, X, X },
                           { "genai-bench", false, true, X, X, X, X, X } };
    s = stream_new();
    ending(s, -1, -1, 20, &plain, 0);
    TABLE(s, f_rows);
    const row g_rows[] = { { "vllm", false, true, 0, 0, X, X, X }, { "sglang", true, false, X, X, X, X, X },
                           { "llama-benchy", false, true, X, X, X, X, X }, { "genai-bench", false, true, X, X, X, X, X } };
    TABLE(stream_new(), g_rows);
}

static void test_sse_grammar(void **state) /* G, H, I, J, N, R */
{
    TL_UNUSED(state);
    json_t *s = stream_new();
    raw(s, 50, ": ping\n\n");
    texts(s, 200, 10, &plain, "content");
    ending(s, 380, 380, 380, &plain, 10);
    const row g[] = { { "vllm", false, true, 380, 380, 0, NAN, X }, { "sglang", true, false, X, X, X, X, X },
                      { "llama-benchy", false, true, 200, X, 20, 50, 10 }, { "llmperf", true, false, X, X, X, X, X },
                      { "evalscope", false, true, 200, 380, 20, 50, 10 }, { "genai-bench", false, true, 200, 380, 20, 50, 10 } };
    TABLE(s, g);
    s = stream_new(); /* a comment later: what came before it is right, the rest cannot be said */
    texts(s, 200, 2, &plain, "content");
    raw(s, 230, ": ping\n\n");
    texts(s, 240, 8, &plain, "content");
    ending(s, 380, 380, 380, &plain, 10);
    const row late[] = { { "tally", false, true, 200, 380, 20, 50, 10 }, { "vllm", false, true, 200, NAN, NAN, NAN, X }, { "sglang", true, false, X, X, X, X, X },
                         { "evalscope", false, true, 200, 380, 20, 50, 10 } };
    TABLE(s, late);
    const style tight = { "data:", "\n\n", "" }, crlf = { "data: ", "\r\n\r\n", "" }, null = { "data: ", "\n\n", ",\"usage\": null" },
                named = { "event: message\ndata: ", "\n\n", "" };
    const row h[] = { { "vllm", true, false, X, X, X, X, X }, { "sglang", true, false, X, X, X, X, X }, { "llama-benchy", false, true, 200, X, 20, 50, 10 },
                      { "llmperf", true, false, X, X, X, X, X }, { "evalscope", false, true, 200, 380, 20, 50, 10 },
                      { "genai-bench", false, true, 200, 380, 20, 50, 10 } };
    TABLE(stream_of(&tight, 10), h);
    TABLE(stream_of(&named, 10), h); /* the same verdicts */
    const row i[] = { { "vllm", false, true, 200, 360, X, X, X }, { "sglang", false, true, 200, 380, 20, 50, 10 },
                      { "llama-benchy", false, true, 200, X, 20, 50, 10 }, { "evalscope", false, true, 200, 380, 20, 50, 10 },
                      { "genai-bench", false, true, 200, 380, 20, 50, 10 } };
    TABLE(stream_of(&crlf, 10), i);
    const row j[] = { { "vllm", false, true, 200, 380, 20, 50, 10 }, { "sglang", false, true, 200, 380, 20, 50, 10 },
                      { "llama-benchy", true, false, X, X, X, X, X }, { "evalscope", false, true, 200, 380, 20, 50, 10 },
                      { "genai-bench", false, true, 200, 380, 20, 50, 10 } };
    TABLE(stream_of(&null, 10), j);
    tl_request r; /* N */
    tl_peer_figures f;
    s = load("split-at-space");
    play_json(&r, s, 0);
    assert_true((r.habits & TL_HABIT_SPACE_CUT) != 0);
    say(&f, &r, "vllm");
    assert_true(f.n_notes > 0 && strstr(f.notes[0], "space is lost") != NULL);
    tl_request_free(&r);
    json_decref(s);
}

static void test_coalesced(void **state) /* L */
{
    TL_UNUSED(state);
    json_t *s = stream_new();
    for (int i = 0; i < 10; i++) choice(s, i < 5 ? 200 : 280, &plain, "\"content\":\"w \"", "null");
    ending(s, 280, 280, 280, &plain, 10);
    const row rows[] = { { "llama-benchy", false, true, 200, X, X, 112.5, 10 }, { "vllm", false, true, 200, 280, X, X, 10 } };
    TABLE(s, rows);
}

static void test_counts(void **state) /* M, O, P, S */
{
    TL_UNUSED(state);
    json_t *s = stream_new();
    texts(s, 200, 10, &plain, "content");
    ending(s, 380, -1, 380, &plain, 0);
    const row m[] = { { "tally", false, true, 200, 380, 20, 50, 10 }, { "vllm", false, true, X, X, 20, X, 10 },
                      { "sglang", false, true, X, X, 180.0 / 99, X, 100 }, { "llama-benchy", false, true, X, X, 20, 50, 10 },
                      { "llmperf", false, true, X, X, X, X, 10 }, { "evalscope", false, true, X, X, NAN, NAN, -1 },
                      { "genai-bench", false, true, X, X, X, X, 10 } };
    TABLE(s, m);
    s = stream_new();
    choice(s, 100, &plain, "\"role\":\"assistant\",\"content\":\"\"", "null");
    ending(s, 110, 110, 110, &plain, 0);
    const row o[] = { { "tally", false, true, NAN, NAN, NAN, NAN, 0 }, { "vllm", false, true, 100, X, NAN, X, 0 },
                      { "sglang", false, true, 0, X, NAN, X, 0 }, { "llama-benchy", false, true, X, X, X, X, 0 },
                      { "llmperf", true, false, X, X, X, X, X }, { "evalscope", false, true, X, X, X, X, 0 },
                      { "genai-bench", true, false, X, X, X, X, X } };
    TABLE(s, o);
    s = stream_new();
    texts(s, 200, 1, &plain, "content");
    ending(s, 210, 210, 210, &plain, 1);
    const row p[] = { { "tally", false, true, 200, 200, NAN, NAN, 1 }, { "vllm", false, true, 200, 210, NAN, NAN, 1 } };
    TABLE(s, p);
    const row t[] = { { "tally", false, false, 100, 180, 20, X, 5 }, { "vllm", false, true, 100, X, 20, X, 5 },
                      { "sglang", false, true, 100, X, X, X, 64 }, { "llama-benchy", false, true, X, X, X, X, 5 },
                      { "llmperf", false, true, X, X, X, X, X }, { "evalscope", false, true, X, X, X, X, X },
                      { "genai-bench", false, true, X, X, X, X, 5 } };
    TABLE(load("ended-midway"), t);
}

static void test_progress(void **state) /* Q */
{
    TL_UNUSED(state);
    tl_request r;
    tl_peer_figures f;
    json_t *s = load("prompt-progress");
    const row rows[] = { { "tally", false, true, 200, X, X, X, 5 }, { "vllm", false, true, 50, X, X, X, 5 },
                         { "sglang", false, true, 200, X, X, X, 5 }, { "evalscope", false, true, 50, X, X, X, 5 },
                         { "genai-bench", false, true, 200, X, X, X, 5 }, { "llama-benchy", false, true, 200, X, X, X, 5 } };
    play_json(&r, s, 0);
    say(&f, &r, "vllm");
    assert_int_equal(cause(&f, TL_PEER_TTFT, TL_PEER_PROGRESS), -150 * (int64_t)MS);
    assert_int_equal(cause(&f, TL_PEER_TTFT, TL_PEER_ROLE), 0);
    tl_request_free(&r);
    TABLE(s, rows);
    json_t *again = load("prompt-progress"); /* without the usage record llmperf gets through */
    json_array_remove(json_object_get(again, "writes"), json_array_size(json_object_get(again, "writes")) - 1);
    ending(again, 280, -1, 280, &plain, 5);
    const row lp[] = { { "llmperf", false, true, 200, X, X, X, 5 } };
    TABLE(again, lp);
}

/* vLLM's text completions end at the last choice; its usage counts only when it comes apart. */
static void test_completions(void **state)
{
    TL_UNUSED(state);
    json_t *s = load("completions");
    const row joined[] = { { "vllm", false, true, 100, 130, 30, X, 2 }, { "genai-bench", false, true, 100, 130, 30, X, 2 } };
    tl_request r;
    tl_peer_figures f;
    play_json(&r, s, 0);
    say(&f, &r, "vllm");
    assert_non_null(strstr(f.n_from, "tokenizer"));
    say(&f, &r, "sglang");
    assert_string_equal(f.n_from, "usage");
    tl_request_free(&r);
    TABLE(s, joined);
    s = load("completions");
    json_array_remove(json_object_get(s, "writes"), 2);
    raw(s, 130, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n");
    raw(s, 170, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\n");
    raw(s, 190, "data: [DONE]\n\n");
    const row apart[] = { { "tally", false, true, 100, 120, 20, X, 2 }, { "vllm", false, true, 100, 130, 30, X, 2 },
                          { "evalscope", false, true, 100, 170, 70, X, 2 }, { "sglang", false, true, 100, 190, 90, X, 2 } };
    TABLE(s, apart);
}

/* What a server's habits do to a tool: all findings of one stream, "|" between; definitions that differ anyway are not in it. */
static void test_on_stream(void **state)
{
    TL_UNUSED(state);
    static const struct {
        const char *stream, *tool, *says;
    } rows[] = {
        { "clean", "aiperf", "" },
        { "clean", "guidellm", "" },    /* its other TPOT is a definition */
        { "clean", "genai-bench", "" }, /* its E2E and TPOT end with the usage chunk, which comes with the last text here */
        { "role-first", "vllm", "TTFT 190.0 ms too short, of 200.0: role chunk counted as first token|"
          "E2E 50.0 ms too long, of 380.0: up to the finish chunk; up to the usage chunk|"
          "tok/s 28.6 too low, of 50.0: role chunk counted as first token; up to the finish chunk; up to the usage chunk" },
        { "role-first", "llmperf", "fails on 1 of 1 answers: `choices:[]`: IndexError" },
        { "role-first", "aiperf", "" },
        { "role-first", "mlperf", "" },
        { "error-midstream", "vllm", "counts 1 of 1 answers as success; 0 are|E2E 20.0 ms too long, of 240.0: up to the usage chunk|"
          "tok/s 16.7 too low, of 50.0: up to the usage chunk" }, /* the last record is the error */
        { "four-tokens-a-chunk", "llama-benchy", "tok/s 166.7 too low, of 216.7: chunks counted, not tokens|chunks hold several tokens: its tg counts chunks" },
        { "no-usage-early-stop", "evalscope", "no TPOT: its token count is not known" },
        { "usage-null-each", "llama-benchy", "fails on 1 of 1 answers: `\"usage\":null`: TypeError, NoneType" },
    };
    size_t differing = 0;
    for (size_t i = 0; i < TL_COUNT(rows); i++) {
        tl_request r;
        tl_peer_figures f;
        json_t *stream = load(rows[i].stream), *all, *one;
        tl_buf text;
        size_t k;
        tl_buf_init(&text, 0);
        play_json(&r, stream, 0);
        say(&f, &r, rows[i].tool);
        all = tl_peer_on_stream(&f, 1);
        json_array_foreach(all, k, one) tl_buf_fmt(&text, "%s%s", k ? "|" : "", tl_json_str(one, "text", "?"));
        if (!tl_str_eq(text.p, rows[i].says)) print_error("%s, %s: %s\n", rows[i].stream, rows[i].tool, text.p), differing++;
        tl_buf_free(&text);
        json_decref(all);
        json_decref(stream);
        tl_request_free(&r);
    }
    assert_int_equal(differing, 0);
    assert_true(tl_peer_is_client(tl_peer_find("vllm")) && !tl_peer_is_client(tl_peer_find("llama-bench")));
}

/* ---- engines' own timings --------------------------------------------------------------------------------------------- */

static void engine_timings(tl_request *r)
{
    tl_request_init(r);
    r->dialect = "llamacpp-completion";
    r->t_intended = r->t_start = r->t_sent = T0;
    r->http_status = 200;
    r->saw_finish = true;
    for (unsigned i = 0; i < 10; i++) tl_request_event(r, T0 + (100 + 20 * (uint64_t)i) * MS, TL_EV_CONTENT, 2, i);
    tl_request_event(r, T0 + 281 * (uint64_t)MS, TL_EV_FINISH, 0, 10);
    r->t_close = T0 + 282 * (uint64_t)MS;
    r->count.chunks = 10;
    r->count.engine_predicted_n = 10;
    r->count.engine_predicted_ms = 160;
    r->count.engine_prompt_n = 100;
    r->count.engine_cache_n = 300;
    r->count.engine_prompt_ms = 80;
}

static void test_engine_timings(void **state)
{
    TL_UNUSED(state);
    tl_request r;
    tl_peer_figures f;
    engine_timings(&r);
    say(&f, &r, "llama-server");
    expect(&f, TL_PEER_RATE, 9 / 0.16, 1e-5);
    expect(&f, TL_PEER_RATE2, 10 / 0.16, 1e-5);
    expect(&f, TL_PEER_PREFILL, 1250, 1e-6);
    expect(&f, TL_PEER_TTFT, NAN, 0);
    assert_int_equal(f.f[TL_PEER_RATE].gap, cause(&f, TL_PEER_RATE, TL_PEER_ENGINE_TIME)); /* 50 by arrival, 56.25 by the engine */
    assert_int_equal(cause(&f, TL_PEER_RATE2, TL_PEER_N), 6250000);
    assert_int_equal(cause(&f, TL_PEER_RATE2, TL_PEER_ENGINE_TIME), 6250000);
    say(&f, &r, "llama-bench");
    expect(&f, TL_PEER_RATE, 56.25, 1e-6);
    expect(&f, TL_PEER_E2E, NAN, 0);
    say(&f, &r, "ollama"); /* its prompt count holds the cached tokens */
    expect(&f, TL_PEER_PREFILL, 5000, 1e-6);
    assert_int_equal(cause(&f, TL_PEER_PREFILL, TL_PEER_CACHED), 3750000000);
    say(&f, &r, "llama-benchy"); /* the whole wait, and cached tokens too */
    expect(&f, TL_PEER_PREFILL, 4000, 1e-6);
    assert_int_equal(cause(&f, TL_PEER_PREFILL, TL_PEER_TTFT_AS_PROMPT), -250000000);
    assert_int_equal(cause(&f, TL_PEER_PREFILL, TL_PEER_CACHED), 3000000000);
    r.count.engine_predicted_ms = NAN;
    say(&f, &r, "llama-server");
    expect(&f, TL_PEER_RATE, NAN, 0);
    tl_request_free(&r);
}

static void test_mlperf_one_token(void **state)
{
    TL_UNUSED(state);
    tl_request r;
    tl_peer_figures f;
    engine_timings(&r);
    r.count.engine_predicted_n = 1; /* its submitter says 1 token */
    say(&f, &r, "mlperf");
    expect(&f, TL_PEER_TPOT, -180, 1e-9); /* divided by 0 - 1 */
    r.count.engine_predicted_n = 8;
    say(&f, &r, "mlperf");
    assert_int_equal(f.f[TL_PEER_TPOT].value, 25714285000); /* 180 ms / 7, whole ns, in ps */
    assert_int_equal(f.f[TL_PEER_TPOT].gap, -714 + 0);
    assert_int_equal(cause(&f, TL_PEER_TPOT, TL_PEER_ROUNDING), -714);
    tl_request_free(&r);
}

/* ---- a run, storing, every stream --------------------------------------------------------------------------------------- */

static void test_run(void **state)
{
    TL_UNUSED(state);
    tl_peer_figures f[3];
    tl_request r[3];
    json_t *s[3] = { stream_a(), stream_a(), stream_new() };
    texts(s[2], 200, 3, &plain, "content"); /* dies after three tokens */
    raw(s[2], 260, "data: {\"error\":{\"message\":\"engine died\"}}\n\n");
    for (unsigned i = 0; i < 3; i++) {
        play_json(&r[i], s[i], i);
        say(&f[i], &r[i], "vllm");
    }
    tl_peer_run t;
    tl_peer_sum(&t, f, 3);
    assert_int_equal(t.requests, 3);
    assert_int_equal(t.counted_ok, 3); /* the failure too */
    assert_int_equal(t.ours_ok, 2);
    assert_string_equal(t.n_from, "usage");
    assert_int_equal(t.n_from_other, 1); /* the broken one: by its tokenizer */
    assert_true(fabs(t.f[TL_PEER_TTFT].mean - (10 + 10 + 200) / 3.0) < 1e-9);
    assert_true(fabs(t.f[TL_PEER_TTFT].median - 10) < 1e-9);
    assert_true(fabs(t.f[TL_PEER_TTFT].p99 - (10 + 190 * 0.98)) < 1e-9); /* linear between the two largest */
    assert_true(fabs(t.f[TL_PEER_TTFT].ours_median - 200.5) < 1e-9);
    for (size_t k = 0; k < TL_PEER_SLOTS; k++) {
        int64_t sum = 0;
        for (size_t c = 0; c < TL_PEER_CAUSES; c++) sum += t.f[k].cause_sum[c];
        assert_int_equal(sum, t.f[k].gap_sum);
        assert_int_equal(t.f[k].sum - t.f[k].ours_sum, t.f[k].gap_sum);
    }
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_peer_gap_words(&b, &t, TL_PEER_TTFT);
    assert_non_null(strstr(b.p, "-126.7 role chunk counted as first token"));
    assert_non_null(strstr(b.p, "-1.0 timed from its send"));
    tl_buf_free(&b);
    json_t *j = tl_peer_run_json(&t);
    assert_int_equal(tl_json_int(j, "counted_ok", -1), 3);
    assert_true(fabs(tl_json_num(j, "ttft.gap_mean", 0) + 383.0 / 3) < 1e-6);
    json_decref(j);
    for (size_t i = 0; i < 3; i++) tl_request_free(&r[i]), json_decref(s[i]);
}

/* What is stored says the same as what was seen: for every stream of the corpus and every tool. */
static void test_every_stream_stored(void **state)
{
    TL_UNUSED(state);
    tl_names names = { 0 };
    tl_err e = { 0 };
    size_t done = 0;
    if (tl_dir_list(&names, TL_SOURCE_DIR "/tests/engine/streams", &e) != TL_OK) fail_msg("%s", e.msg);
    for (size_t i = 0; i < names.n; i++) {
        if (!tl_str_ends(names.v[i], ".json")) continue;
        char *name = tl_xstrndup(names.v[i], strlen(names.v[i]) - 5);
        json_t *s = load(name), *w;
        size_t k;
        bool text = !tl_json_bool(s, "raw", false);
        json_array_foreach(tl_json_at(s, "writes"), k, w) text = text && json_is_string(json_array_get(w, 1));
        if (text) {
            tl_request r, back;
            play_json(&r, s, 3);
            json_t *stored = tl_request_json(&r);
            tl_request_init(&back);
            tl_request_restore(&back, stored);
            back.dialect = r.dialect;
            for (k = 0; k < r.n_events; k++) tl_request_event(&back, r.events[k].t_ns, r.events[k].kind, r.events[k].text_bytes, r.events[k].read_index);
            for (k = 0; k < tl_peer_count(); k++) {
                tl_peer_figures a, b;
                say(&a, &r, tl_peer_name(tl_peer_at(k)));
                say(&b, &back, tl_peer_name(tl_peer_at(k)));
                json_t *ja = tl_peer_json(&a), *jb = tl_peer_json(&b);
                if (!json_equal(ja, jb)) fail_msg("%s: %s says another thing of the stored request", name, tl_peer_name(tl_peer_at(k)));
                json_decref(ja);
                json_decref(jb);
            }
            done++;
            json_decref(stored);
            tl_request_free(&r);
            tl_request_free(&back);
        }
        json_decref(s);
        free(name);
    }
    tl_names_free(&names);
    assert_true(done > 60);
}

static void test_names(void **state)
{
    TL_UNUSED(state);
    static const char *const want[] = { "tally", "vllm", "sglang", "guidellm", "aiperf", "genai-perf", "genai-bench", "evalscope", "llama-benchy",
                                        "llama-bench", "llama-server", "ollama", "mlperf", "llmperf" };
    assert_int_equal(tl_peer_count(), TL_COUNT(want));
    for (size_t i = 0; i < TL_COUNT(want); i++) {
        assert_string_equal(tl_peer_name(tl_peer_at(i)), want[i]);
        assert_ptr_equal(tl_peer_find(want[i]), tl_peer_at(i));
        assert_true(*tl_peer_snapshot(tl_peer_at(i)) && *tl_peer_aggregate(tl_peer_at(i)));
    }
    assert_null(tl_peer_find("nobody"));
    assert_null(tl_peer_at(TL_COUNT(want)));
    for (size_t c = 0; c < TL_PEER_CAUSES; c++) assert_true(*tl_peer_cause_name((tl_peer_cause_id)c) && *tl_peer_cause_words((tl_peer_cause_id)c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_a),   cmocka_unit_test(test_causes),       cmocka_unit_test(test_many_tokens_a_chunk),
        cmocka_unit_test(test_reasoning),  cmocka_unit_test(test_errors),       cmocka_unit_test(test_sse_grammar),
        cmocka_unit_test(test_coalesced),  cmocka_unit_test(test_counts),       cmocka_unit_test(test_progress), cmocka_unit_test(test_on_stream),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_engine_timings), cmocka_unit_test(test_mlperf_one_token), cmocka_unit_test(test_run),
        cmocka_unit_test(test_every_stream_stored), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

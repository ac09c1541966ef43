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

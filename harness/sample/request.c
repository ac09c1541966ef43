/* The observation of one request: memory, events, storage coding, JSON of counters.
 *
 * Events are packed as four variable-length numbers each: milliseconds-long gaps take 4 bytes instead of 8, kinds and
 * read numbers one byte, so a 500-token answer needs about 4 KB.
 */
#include <math.h>

#include "sample/sample_impl.h"

static const char *const event_kind_names[TL_EV_KINDS] = {
    [TL_EV_ROLE] = "role",         [TL_EV_REASONING] = "reasoning", [TL_EV_CONTENT] = "content",
    [TL_EV_TOOL] = "tool",         [TL_EV_PROGRESS] = "progress",   [TL_EV_USAGE] = "usage",
    [TL_EV_FINISH] = "finish",     [TL_EV_COMMENT] = "comment",     [TL_EV_ERROR] = "error",
    [TL_EV_DONE] = "done",         [TL_EV_OTHER] = "other",
};

const char *tl_event_kind_name(tl_event_kind k)
{
    return (unsigned)k < TL_EV_KINDS ? event_kind_names[k] : "other";
}

const char *tl_transport_name(tl_transport t)
{
    switch (t) {
    case TL_TP_COMPLETE: return "complete";
    case TL_TP_CUT: return "cut";
    case TL_TP_NO_CONNECT: return "no-connect";
    case TL_TP_TIMEOUT: return "timeout";
    case TL_TP_CANCELLED: return "cancelled";
    case TL_TP_CLIENT_LIMIT: return "client-limit";
    case TL_TP_PROTOCOL: break;
    }
    return "protocol";
}

void tl_request_init(tl_request *r)
{
    memset(r, 0, sizeof *r);
    r->dialect = "";
    r->t_intended = r->t_start = r->t_connected = r->t_sent = TL_T_NONE;
    r->t_headers = r->t_first_byte = r->t_close = TL_T_NONE;
    r->text = tl_xstrdup("");
    r->reasoning = tl_xstrdup("");
    r->tool_text = tl_xstrdup("");
    r->connects = TL_ABSENT;
    tl_counters *c = &r->count;
    c->usage_prompt = c->usage_completion = c->usage_cached = c->usage_reasoning = c->usage_total = TL_ABSENT;
    c->engine_prompt_n = c->engine_cache_n = c->engine_predicted_n = TL_ABSENT;
    c->engine_prompt_ms = c->engine_predicted_ms = c->engine_queue_ms = NAN;
    c->draft_n = c->draft_accepted = TL_ABSENT;
    c->engine_load_ns = c->engine_total_ns = c->engine_prompt_ns = c->engine_eval_ns = TL_ABSENT;
    c->tokenized = c->requested_max = TL_ABSENT;
}

void tl_request_free(tl_request *r)
{
    free(r->events);
    free(r->text);
    free(r->reasoning);
    free(r->tool_text);
    free(r->finish_reason);
    free(r->error_class);
    free(r->error_text);
    free(r->raw_last);
    memset(r, 0, sizeof *r);
}

void tl_request_event(tl_request *r, uint64_t t_ns, unsigned kind, size_t text_bytes, size_t read_index)
{
    const tl_event ev = { .t_ns = t_ns,
                          .text_bytes = text_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)text_bytes,
                          .kind = (uint16_t)kind,
                          .read_index = (uint16_t)(read_index & 0xffff) };
    TL_PUSH(r->events, r->n_events, r->cap_events, ev);
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

static void put_varint(tl_buf *b, uint64_t v)
{
    while (v >= 0x80) {
        tl_buf_char(b, (char)(unsigned char)(v | 0x80));
        v >>= 7;
    }
    tl_buf_char(b, (char)v);
}

static bool get_varint(uint64_t *out, const unsigned char *p, size_t len, size_t *pos)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && *pos < len; shift += 7) {
        const unsigned char c = p[(*pos)++];
        if (shift == 63 && (c & 0x7e) != 0) return false;
        v |= (uint64_t)(c & 0x7f) << shift;
        if ((c & 0x80) == 0) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* Signed differences, small ones short: 0, -1, 1, -2 -> 0, 1, 2, 3. Wraps like unsigned arithmetic does. */
static uint64_t zigzag(uint64_t now, uint64_t before)
{
    const uint64_t d = now - before;
    return (d << 1) ^ (0 - (d >> 63));
}

static uint64_t unzigzag(uint64_t z, uint64_t before) { return before + ((z >> 1) ^ (0 - (z & 1))); }

void tl_events_pack(tl_buf *out, const tl_event *ev, size_t n)
{
    uint64_t t = 0;
    uint16_t read = 0;
    put_varint(out, n);
    for (size_t i = 0; i < n; i++) {
        put_varint(out, zigzag(ev[i].t_ns, t));
        put_varint(out, ev[i].kind);
        put_varint(out, ev[i].text_bytes);
        put_varint(out, (uint16_t)(ev[i].read_index - read));
        t = ev[i].t_ns;
        read = ev[i].read_index;
    }
}

tl_status tl_events_unpack(tl_request *out, const void *p, size_t len, tl_err *e)
{
    size_t pos = 0;
    uint64_t n = 0, t = 0, read = 0;
    if (!get_varint(&n, p, len, &pos) || n > len) return tl_fail(e, TL_INVALID, "stored events: bad count");
    out->n_events = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t v[4];
        for (size_t k = 0; k < 4; k++)
            if (!get_varint(&v[k], p, len, &pos))
                return tl_fail(e, TL_INVALID, "stored events: cut in event %" PRIu64 " of %" PRIu64, i + 1, n);
        t = unzigzag(v[0], t);
        read += v[3];
        if (v[1] > UINT16_MAX || (v[1] & 0xff) >= TL_EV_KINDS || v[2] > UINT32_MAX)
            return tl_fail(e, TL_INVALID, "stored events: event %" PRIu64 " is not one", i + 1);
        tl_request_event(out, t, (unsigned)v[1], (size_t)v[2], (size_t)read);
    }
    if (pos != len) return tl_fail(e, TL_INVALID, "stored events: %zu bytes too many", len - pos);
    return TL_OK;
}

/* ---- JSON of what is kept side by side --------------------------------------------------------------------------- */

json_t *tl_sample_int(int64_t v, int64_t none) { return v == none ? json_null() : json_integer(v); }

static json_t *time_json(uint64_t t) { return t == TL_T_NONE ? json_null() : json_integer((json_int_t)t); }

static json_t *text_json(const char *s) { return s ? json_string(s) : json_null(); }

static const struct {
    const char *name;
    size_t at; /* of an int64_t in tl_counters */
} counter_ints[] = {
    { "usage_prompt", offsetof(tl_counters, usage_prompt) },
    { "usage_completion", offsetof(tl_counters, usage_completion) },
    { "usage_cached", offsetof(tl_counters, usage_cached) },
    { "usage_reasoning", offsetof(tl_counters, usage_reasoning) },
    { "usage_total", offsetof(tl_counters, usage_total) },
    { "engine_prompt_n", offsetof(tl_counters, engine_prompt_n) },
    { "engine_cache_n", offsetof(tl_counters, engine_cache_n) },
    { "engine_predicted_n", offsetof(tl_counters, engine_predicted_n) },
    { "draft_n", offsetof(tl_counters, draft_n) },
    { "draft_accepted", offsetof(tl_counters, draft_accepted) },
    { "engine_load_ns", offsetof(tl_counters, engine_load_ns) },
    { "engine_total_ns", offsetof(tl_counters, engine_total_ns) },
    { "engine_prompt_ns", offsetof(tl_counters, engine_prompt_ns) },
    { "engine_eval_ns", offsetof(tl_counters, engine_eval_ns) },
    { "chunks", offsetof(tl_counters, chunks) },
    { "tokenized", offsetof(tl_counters, tokenized) },
    { "requested_max", offsetof(tl_counters, requested_max) },
};

static json_t *counters_json(const tl_counters *c)
{
    json_t *j = json_object();
    for (size_t i = 0; i < TL_COUNT(counter_ints); i++) {
        int64_t v;
        memcpy(&v, (const char *)c + counter_ints[i].at, sizeof v);
        json_object_set_new(j, counter_ints[i].name, tl_sample_int(v, TL_ABSENT));
    }
    json_object_set_new(j, "engine_prompt_ms", tl_json_real(c->engine_prompt_ms));
    json_object_set_new(j, "engine_predicted_ms", tl_json_real(c->engine_predicted_ms));
    json_object_set_new(j, "engine_queue_ms", tl_json_real(c->engine_queue_ms));
    json_object_set_new(j, "engine_prompt_n_has_cached", json_boolean(c->engine_prompt_n_has_cached));
    json_object_set_new(j, "usage_repeated", json_boolean(c->usage_repeated));
    return j;
}

static const char *const habit_names[] = { "known", "comments", "no-space", "crlf", "event-lines", "usage-null", "space-cut",
                                          "comments-first" };

/* null: nobody looked. */
static json_t *habits_json(unsigned habits)
{
    if (!(habits & TL_HABIT_KNOWN)) return json_null();
    json_t *j = json_array();
    for (size_t i = 1; i < TL_COUNT(habit_names); i++)
        if (habits & (1u << i)) json_array_append_new(j, json_string(habit_names[i]));
    return j;
}

json_t *tl_request_json(const tl_request *r)
{
    json_t *j = json_object(), *t = json_object();
    json_object_set_new(j, "dialect", json_string(r->dialect));
    json_object_set_new(t, "intended", time_json(r->t_intended));
    json_object_set_new(t, "start", time_json(r->t_start));
    json_object_set_new(t, "connected", time_json(r->t_connected));
    json_object_set_new(t, "sent", time_json(r->t_sent));
    json_object_set_new(t, "headers", time_json(r->t_headers));
    json_object_set_new(t, "first_byte", time_json(r->t_first_byte));
    json_object_set_new(t, "close", time_json(r->t_close));
    json_object_set_new(j, "t_ns", t);
    json_object_set_new(j, "counters", counters_json(&r->count));
    json_object_set_new(j, "finish_reason", text_json(r->finish_reason));
    json_object_set_new(j, "error_class", text_json(r->error_class));
    json_object_set_new(j, "error_text", text_json(r->error_text));
    json_object_set_new(j, "raw_last", text_json(r->raw_last));
    json_object_set_new(j, "transport", json_string(tl_transport_name(r->transport)));
    json_object_set_new(j, "http_status", tl_sample_int(r->http_status, 0));
    json_object_set_new(j, "connects", tl_sample_int(r->connects, TL_ABSENT));
    json_object_set_new(j, "reads", json_integer(r->reads));
    json_object_set_new(j, "body_bytes", json_integer(r->body_bytes));
    json_object_set_new(j, "content_encoded", json_boolean(r->content_encoded));
    json_object_set_new(j, "saw_done", json_boolean(r->saw_done));
    json_object_set_new(j, "saw_finish", json_boolean(r->saw_finish));
    json_object_set_new(j, "not_stream", json_boolean(r->not_stream));
    json_object_set_new(j, "invalid_utf8", json_boolean(r->invalid_utf8));
    json_object_set_new(j, "bad_record", json_boolean(r->bad_record));
    json_object_set_new(j, "done_required", json_boolean(r->done_required));
    json_object_set_new(j, "habits", habits_json(r->habits));
    return j;
}

/* ---- and back ----------------------------------------------------------------------------------------------------- */

static uint64_t time_at(const json_t *j, const char *path)
{
    const json_t *v = tl_json_at(j, path);
    return json_is_integer(v) ? (uint64_t)json_integer_value(v) : TL_T_NONE;
}

static char *text_at(const json_t *j, const char *name) { return tl_xstrdup(tl_json_str(j, name, NULL)); }

static tl_transport transport_at(const json_t *j)
{
    for (int t = TL_TP_COMPLETE; t <= TL_TP_PROTOCOL; t++)
        if (tl_str_eq(tl_transport_name((tl_transport)t), tl_json_str(j, "transport", "complete"))) return (tl_transport)t;
    return TL_TP_PROTOCOL;
}

static void restore_counters(tl_counters *c, const json_t *j)
{
    for (size_t i = 0; i < TL_COUNT(counter_ints); i++) {
        const int64_t v = tl_json_int(j, counter_ints[i].name, TL_ABSENT);
        memcpy((char *)c + counter_ints[i].at, &v, sizeof v);
    }
    if (c->chunks == TL_ABSENT) c->chunks = 0;
    c->engine_prompt_ms = tl_json_num(j, "engine_prompt_ms", NAN);
    c->engine_predicted_ms = tl_json_num(j, "engine_predicted_ms", NAN);
    c->engine_queue_ms = tl_json_num(j, "engine_queue_ms", NAN);
    c->engine_prompt_n_has_cached = tl_json_bool(j, "engine_prompt_n_has_cached", false);
    c->usage_repeated = tl_json_bool(j, "usage_repeated", false);
}

static unsigned habits_at(const json_t *list)
{
    unsigned habits = json_is_array(list) ? TL_HABIT_KNOWN : 0;
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
        for (size_t k = 1; k < TL_COUNT(habit_names); k++)
            if (tl_str_eq(json_string_value(v), habit_names[k])) habits |= 1u << k;
    return habits;
}

void tl_request_restore(tl_request *r, const json_t *j)
{
    r->t_intended = time_at(j, "t_ns.intended");
    r->t_start = time_at(j, "t_ns.start");
    r->t_connected = time_at(j, "t_ns.connected");
    r->t_sent = time_at(j, "t_ns.sent");
    r->t_headers = time_at(j, "t_ns.headers");
    r->t_first_byte = time_at(j, "t_ns.first_byte");
    r->t_close = time_at(j, "t_ns.close");
    restore_counters(&r->count, tl_json_at(j, "counters"));
    r->finish_reason = text_at(j, "finish_reason");
    r->error_class = text_at(j, "error_class");
    r->error_text = text_at(j, "error_text");
    r->raw_last = text_at(j, "raw_last");
    r->transport = transport_at(j);
    r->http_status = (int)tl_json_int(j, "http_status", 0);
    r->connects = tl_json_int(j, "connects", TL_ABSENT);
    r->reads = tl_json_int(j, "reads", 0);
    r->body_bytes = tl_json_int(j, "body_bytes", 0);
    r->content_encoded = tl_json_bool(j, "content_encoded", false);
    r->saw_done = tl_json_bool(j, "saw_done", false);
    r->saw_finish = tl_json_bool(j, "saw_finish", false);
    r->done_required = tl_json_bool(j, "done_required", true);
    r->not_stream = tl_json_bool(j, "not_stream", false);
    r->invalid_utf8 = tl_json_bool(j, "invalid_utf8", false);
    r->bad_record = tl_json_bool(j, "bad_record", false);
    r->habits = habits_at(tl_json_at(j, "habits"));
}

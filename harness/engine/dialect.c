/* The wire dialects' table, and the frame around an answer: HTTP status, SSE or NDJSON, plain JSON, web pages.
 *
 * Runs on stored bytes, after the clock has stopped. Times of events are the times of the reads that completed them.
 */
#include <ctype.h>
#include <math.h>

#include "engine/dialect_impl.h"

static const tl_dialect dialects[] = {
    { "openai-chat", "/v1/chat/completions", false, true, tl_dialect_body_openai, tl_dialect_record_openai },
    { "openai-completion", "/v1/completions", false, false, tl_dialect_body_openai_text, tl_dialect_record_openai },
    { "llamacpp-completion", "/completion", false, false, tl_dialect_body_llamacpp, tl_dialect_record_llamacpp },
    { "ollama-chat", "/api/chat", true, true, tl_dialect_body_ollama, tl_dialect_record_ollama },
};

const tl_dialect *tl_dialect_find(const char *name)
{
    for (size_t i = 0; i < TL_COUNT(dialects); i++)
        if (tl_str_eq(dialects[i].name, name)) return &dialects[i];
    return NULL;
}

const char *const *tl_dialect_names(size_t *n_out)
{
    static const char *const names[] = { "openai-chat", "openai-completion", "llamacpp-completion", "ollama-chat" };
    *n_out = TL_COUNT(names);
    return names;
}

const char *tl_dialect_name(const tl_dialect *d) { return d->name; }
const char *tl_dialect_path(const tl_dialect *d) { return d->path; }

void tl_gen_init(tl_gen *g)
{
    *g = (tl_gen){ .max_tokens = -1, .temperature = NAN, .seed = -1, .cache_prompt = -1, .enable_thinking = -1,
                   .id_slot = -1 };
}

tl_status tl_dialect_body(tl_buf *out, const tl_dialect *d, const tl_prompt *p, const tl_gen *g, tl_err *e)
{
    tl_status st = TL_OK;
    json_t *body = json_object();
    const int given = (p->messages != NULL) + (p->text != NULL) + (p->tokens != NULL);
    if (given != 1) {
        st = tl_fail(e, TL_INVALID, "%s: a prompt is messages, a text or token ids: %d of them given", d->name, given);
        goto out;
    }
    if (g->model) json_object_set_new(body, "model", json_string(g->model));
    json_object_set_new(body, "stream", json_true());
    TRY(d->body(body, p, g, e));
    if (tl_json_at(g->extra, "stream")) {
        st = tl_fail(e, TL_INVALID, "%s: \"stream\" cannot be changed: times are taken from a stream", d->name);
        goto out;
    }
    if (g->extra) json_object_update(body, (json_t *)(uintptr_t)g->extra);
    char *text = tl_json_canonical(body);
    tl_buf_str(out, text);
    free(text);
out:
    json_decref(body);
    return st;
}

/* ---- decoding: what http saw -------------------------------------------------------------------------------------- */

static uint64_t time_of(uint64_t http_time) { return http_time ? http_time : TL_T_NONE; }

static tl_transport transport_of(tl_http_outcome o)
{
    switch (o) {
    case TL_HTTP_COMPLETE: return TL_TP_COMPLETE;
    case TL_HTTP_CLOSED_EARLY:
    case TL_HTTP_RESET: return TL_TP_CUT;
    case TL_HTTP_TIMED_OUT:
    case TL_HTTP_STALLED: return TL_TP_TIMEOUT;
    case TL_HTTP_REFUSED: return TL_TP_NO_CONNECT;
    case TL_HTTP_TOO_LARGE: return TL_TP_CLIENT_LIMIT;
    case TL_HTTP_ABANDONED:
    case TL_HTTP_PENDING: return TL_TP_CANCELLED;
    case TL_HTTP_PROTOCOL: break;
    }
    return TL_TP_PROTOCOL;
}

static void copy_log(tl_request *r, const tl_http_log *log)
{
    r->t_start = time_of(log->t_start_ns);
    r->t_intended = log->t_intended_ns ? log->t_intended_ns : r->t_start;
    r->t_connected = time_of(log->t_ready_ns ? log->t_ready_ns : log->t_connected_ns);
    if (log->preopened) r->t_connected = time_of(log->t_connected_ns);
    r->t_sent = time_of(log->t_sent_ns);
    r->t_headers = time_of(log->t_headers_ns);
    r->t_first_byte = time_of(log->t_first_byte_ns);
    r->t_close = time_of(log->t_close_ns);
    r->transport = transport_of(log->outcome);
    r->http_status = log->status;
    r->connects = log->connects;
    r->reads = (int64_t)log->n_reads;
    r->body_bytes = (int64_t)log->body_len;
    r->content_encoded = log->content_encoding[0] && !tl_str_eq(log->content_encoding, "identity");
}

/* ---- decoding: answers that are no stream --------------------------------------------------------------------------- */

static size_t skip_space(const char *p, size_t n)
{
    size_t i = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && isspace((unsigned char)p[i])) i++;
    return i;
}

/* The title of a proxy's or a web server's error page, or nothing. */
static char *page_title(const char *p, size_t n)
{
    char *page = tl_dialect_clean(p, n, 4096);
    char *from = strcasestr(page, "<title>");
    char *to = from ? strcasestr(from, "</title>") : NULL;
    char *title = to ? tl_xstrndup(from + 7, (size_t)(to - from) - 7) : NULL;
    free(page);
    return title;
}

static void note_page(tl_decoder *k, const tl_http_log *log)
{
    char *title = page_title(log->body, log->body_len);
    char *text = tl_xprintf("HTTP %d with a web page%s%s instead of an answer", log->status, title ? ": " : "",
                            title ? title : "");
    tl_dialect_note_error(k->r, "http", text);
    free(text);
    free(title);
}

/* Status other than 2xx: the server's own words when it has any. */
static void decode_error_status(tl_decoder *k, const tl_http_log *log)
{
    const size_t at = skip_space(log->body, log->body_len);
    const char *p = log->body + at;
    size_t n = log->body_len - at;
    bool replaced = false;
    tl_split split;
    tl_split_event ev;
    tl_split_init(&split, p, n, NULL, 0);
    if (n >= 5 && memcmp(p, "data:", 5) == 0 && tl_sse_next(&split, &ev)) p = ev.data, n = ev.len;
    json_t *j = n ? tl_dialect_json(p, n, &replaced) : NULL;
    k->t_ns = k->r->t_close;
    if (log->status >= 300 && log->status < 400) {
        char *t = tl_xprintf("HTTP %d: redirected to %s; redirects are not followed", log->status, log->location);
        tl_dialect_note_error(k->r, "http", t);
        free(t);
    } else if (j && tl_dialect_error(k, j)) {
        /* noted */
    } else if (n && p[0] == '<') {
        note_page(k, log);
    } else {
        char *words = tl_dialect_clean(p, n, 300);
        char *t = tl_xprintf("HTTP %d%s%s", log->status, *words ? ": " : "", words);
        tl_dialect_note_error(k->r, "http", t);
        free(t);
        free(words);
    }
    tl_split_free(&split);
    json_decref(j);
}

static void begin_record(tl_decoder *k, const char *p, size_t n, uint64_t t_ns, size_t read)
{
    k->bytes = p;
    k->len = n;
    k->t_ns = t_ns;
    k->read = read;
    k->emitted = 0;
    k->records++;
}

static bool decode_record(tl_decoder *k, bool may_be_cut)
{
    bool replaced = false;
    json_t *j = tl_dialect_json(k->bytes, k->len, &replaced);
    if (!json_is_object(j)) {
        json_decref(j);
        if (may_be_cut) return false;
        char *words = tl_dialect_clean(k->bytes, k->len, 80);
        char *t = tl_xprintf("record %zu is not a JSON object: %s", k->records, words);
        k->r->bad_record = true;
        tl_request_event(k->r, k->t_ns, TL_EV_OTHER, 0, k->read);
        if (!k->r->error_text) tl_dialect_note_error(k->r, "protocol", t);
        free(t);
        free(words);
        return false;
    }
    k->r->invalid_utf8 = k->r->invalid_utf8 || replaced;
    if (!tl_dialect_error(k, j)) k->d->record(k, j);
    json_decref(j);
    return true;
}

/* One JSON document where a stream was asked for. */
static bool decode_plain(tl_decoder *k, const tl_http_log *log)
{
    const size_t at = skip_space(log->body, log->body_len);
    if (at == log->body_len) return false;
    if (log->body[at] == '<') {
        note_page(k, log);
        return true;
    }
    if (k->d->ndjson || log->body[at] != '{') return false;
    bool replaced = false;
    json_t *j = tl_dialect_json(log->body + at, log->body_len - at, &replaced);
    if (!j) return false;
    json_decref(j);
    const tl_http_read *last = log->n_reads ? &log->reads[log->n_reads - 1] : NULL;
    begin_record(k, log->body + at, log->body_len - at, last ? last->t_ns : k->r->t_close, last ? last->wake : 0);
    decode_record(k, false);
    k->r->not_stream = k->r->error_class == NULL;
    return true;
}

/* ---- decoding: streams ---------------------------------------------------------------------------------------------- */

static bool is_done(const char *p, size_t n)
{
    while (n && isspace((unsigned char)p[0])) p++, n--;
    while (n && isspace((unsigned char)p[n - 1])) n--;
    return n == 6 && memcmp(p, "[DONE]", 6) == 0;
}

static void decode_sse(tl_decoder *k, tl_split *split)
{
    tl_split_event ev;
    while (tl_sse_next(split, &ev)) {
        begin_record(k, ev.data, ev.len, ev.t_ns, ev.wake);
        if (is_done(ev.data, ev.len)) {
            k->r->saw_done = true;
            tl_request_event(k->r, ev.t_ns, TL_EV_DONE, 0, ev.wake);
        } else if (ev.name_len == 5 && memcmp(ev.name, "error", 5) == 0) {
            char *words = tl_dialect_clean(ev.data, ev.len, 300);
            bool replaced = false;
            json_t *j = tl_dialect_json(ev.data, ev.len, &replaced);
            if (!j || !tl_dialect_error(k, j)) {
                tl_request_event(k->r, ev.t_ns, TL_EV_ERROR, 0, ev.wake);
                tl_dialect_note_error(k->r, "engine", words);
            }
            json_decref(j);
            free(words);
        } else {
            decode_record(k, ev.unterminated);
        }
    }
}

/* A body that never speaks SSE leaves no record; what came is said instead of "no tokens". */
static void note_foreign(tl_decoder *k, const tl_http_log *log)
{
    const size_t at = skip_space(log->body, log->body_len);
    if (k->records || k->r->error_class || at == log->body_len || log->body[at] == ':') return;
    if (log->outcome != TL_HTTP_COMPLETE) return;
    char *words = tl_dialect_clean(log->body + at, log->body_len - at, 120);
    char *t = k->r->content_encoded
                  ? tl_xprintf("the answer came compressed (Content-Encoding: %s)", log->content_encoding)
                  : tl_xprintf("the answer is not %s: %s", k->d->ndjson ? "NDJSON" : "an event stream", words);
    tl_dialect_note_error(k->r, "protocol", t);
    free(t);
    free(words);
}

static void decode_body(tl_decoder *k, const tl_http_log *log)
{
    if (decode_plain(k, log)) return;
    tl_split split;
    tl_split_event ev;
    tl_split_log(&split, log);
    if (!k->d->ndjson) decode_sse(k, &split);
    else
        while (tl_ndjson_next(&split, &ev)) {
            begin_record(k, ev.data, ev.len, ev.t_ns, ev.wake);
            decode_record(k, ev.unterminated);
        }
    tl_split_free(&split);
    note_foreign(k, log);
}

static void hand_over(tl_decoder *k)
{
    tl_request *r = k->r;
    free(r->text);
    free(r->reasoning);
    free(r->tool_text);
    r->text_len = k->text.len;
    r->reasoning_len = k->reasoning.len;
    r->tool_len = k->tool.len;
    r->text = tl_buf_take(&k->text);
    r->reasoning = tl_buf_take(&k->reasoning);
    r->tool_text = tl_buf_take(&k->tool);
    tl_buf_free(&k->text);
    tl_buf_free(&k->reasoning);
    tl_buf_free(&k->tool);
    const bool same = tl_str_eq(k->raw_finish, k->raw_counters);
    if (k->raw_finish && k->raw_counters && !same) {
        r->raw_last = tl_xprintf("%s\n%s", k->raw_finish, k->raw_counters);
        free(k->raw_finish);
        free(k->raw_counters);
    } else {
        r->raw_last = k->raw_finish ? k->raw_finish : k->raw_counters;
        if (k->raw_finish) free(k->raw_counters);
    }
}

tl_status tl_dialect_decode(tl_request *out, const tl_dialect *d, const tl_http_log *log, const tl_gen *g, tl_err *e)
{
    if (!d || !log) return tl_fail(e, TL_INTERNAL, "decoding an answer needs a dialect and a log");
    tl_decoder k = { .r = out, .d = d };
    tl_buf_init(&k.text, 0);
    tl_buf_init(&k.reasoning, 0);
    tl_buf_init(&k.tool, 0);
    out->dialect = d->name;
    out->done_required = true;
    copy_log(out, log);
    out->habits = tl_dialect_habits(log);
    if (g && g->max_tokens >= 0) out->count.requested_max = g->max_tokens;
    if (log->status != 0 && (log->status < 200 || log->status > 299)) decode_error_status(&k, log);
    else if (log->body_len) decode_body(&k, log);
    if (!out->error_class && out->transport != TL_TP_COMPLETE)
        tl_dialect_note_error(out, "transport", log->error[0] ? log->error : tl_transport_name(out->transport));
    hand_over(&k);
    return TL_OK;
}

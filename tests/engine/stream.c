/* Reads a stream file into the bytes that go on the wire, so that playing is only waiting and sending. */
#include "server_impl.h"

#include <math.h>
#include <strings.h>

static const char *const CLOSE_NAMES[] = {"end", "close", "reset", "http10", "length", "short", "liar", "bad-chunk", "hang"};

static bool chunked(close_kind k) {
    return k != CLOSE_HTTP10 && k != CLOSE_LENGTH && k != CLOSE_SHORT;
}

static tl_status parse_close(close_kind *out, const json_t *j, tl_err *e) {
    const char *name = tl_json_str(j, "close", "end");
    for (size_t i = 0; i < TL_COUNT(CLOSE_NAMES); i++) {
        if (tl_str_eq(name, CLOSE_NAMES[i])) {
            *out = (close_kind)i;
            return TL_OK;
        }
    }
    return tl_fail(e, TL_INVALID, "stream '%s': close '%s' is unknown", tl_json_str(j, "name", "?"), name);
}

static tl_status parse_delay(uint64_t *out, const json_t *ms, const char *what, tl_err *e) {
    const double x = json_is_number(ms) ? json_number_value(ms) : -1;
    if (!(x >= 0 && x < 1e9)) return tl_fail(e, TL_INVALID, "%s: not a delay in milliseconds", what);
    *out = (uint64_t)llround(x * 1e6);
    return TL_OK;
}

static int base64_value(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *p = c ? strchr(digits, c) : NULL;
    return p ? (int)(p - digits) : -1;
}

static bool base64_decode(tl_buf *out, const char *s) {
    uint32_t bits = 0;
    int n = 0;
    for (; *s != '\0' && *s != '='; s++) {
        const int v = base64_value(*s);
        if (v < 0) return false;
        bits = bits << 6 | (uint32_t)v;
        n += 6;
        if (n >= 8) {
            n -= 8;
            tl_buf_char(out, (char)(bits >> n & 0xff));
        }
    }
    return true;
}

bool tl_script_text(tl_buf *out, const json_t *text) {
    if (!json_is_string(text)) return tl_json_str(text, "b64", NULL) != NULL && base64_decode(out, tl_json_str(text, "b64", ""));
    tl_buf_add(out, json_string_value(text), json_string_length(text));
    return true;
}

static tl_status parse_write(script_stream *s, tl_buf *wire, const json_t *w, size_t i, tl_err *e) {
    tl_status st = TL_OK;
    tl_buf text;
    char what[48];
    snprintf(what, sizeof what, "writes[%zu]", i);
    tl_buf_init(&text, 0);
    script_write *out = &s->writes[i];
    if (json_array_size(w) != 2) TRY(tl_fail(e, TL_INVALID, "%s: not [delay_ms, text]", what));
    TRY(parse_delay(&out->delay_ns, json_array_get(w, 0), what, e));
    if (!tl_script_text(&text, json_array_get(w, 1)))
        TRY(tl_fail(e, TL_INVALID, "%s: neither text nor {\"b64\": ...}", what));
    out->offset = wire->len;
    out->text_len = text.len;
    /* An empty chunk would end the body: an empty write sends nothing. */
    const bool framed = chunked(s->close) && !s->raw && text.len > 0;
    if (framed) tl_buf_fmt(wire, "%zx\r\n", text.len);
    tl_buf_add(wire, text.p, text.len);
    if (framed) tl_buf_str(wire, "\r\n");
    out->len = wire->len - out->offset;
out:
    tl_buf_free(&text);
    return st;
}

static const char *reason_of(int status) {
    switch (status) {
    case 200: return "OK";
    case 302: return "Found";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 429: return "Too Many Requests";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Status";
    }
}

static void write_head(script_stream *s, const json_t *j, size_t text_len) {
    tl_buf b;
    tl_buf_init(&b, 0);
    if (!s->raw) {
        const int status = (int)tl_json_int(j, "status", 200);
        const bool ollama = tl_str_starts(tl_json_str(j, "dialect", ""), "ollama");
        bool typed = false;
        const char *key;
        json_t *value;
        json_t *headers = tl_json_at(j, "headers");
        tl_buf_fmt(&b, "HTTP/1.%d %d %s\r\nServer: tally-script-server\r\n", s->close == CLOSE_HTTP10 ? 0 : 1, status,
                   reason_of(status));
        json_object_foreach(headers, key, value) {
            typed = typed || strcasecmp(key, "content-type") == 0;
            tl_buf_fmt(&b, "%s: %s\r\n", key, json_is_string(value) ? json_string_value(value) : "");
        }
        if (!typed) tl_buf_fmt(&b, "Content-Type: %s\r\n", ollama ? "application/x-ndjson" : "text/event-stream");
        if (s->close == CLOSE_LENGTH) tl_buf_fmt(&b, "Content-Length: %zu\r\n", text_len);
        if (s->close == CLOSE_SHORT) tl_buf_fmt(&b, "Content-Length: %zu\r\n", text_len + 100);
        if (chunked(s->close)) tl_buf_str(&b, "Transfer-Encoding: chunked\r\n");
        if (s->close == CLOSE_LIAR) tl_buf_str(&b, "Connection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\n");
        tl_buf_str(&b, "\r\n");
    }
    s->head_len = b.len;
    s->head = tl_buf_take(&b);
    tl_buf_free(&b);
}

static tl_status check(const json_t *j, tl_err *e) {
    if (!json_is_array(tl_json_at(j, "writes"))) return tl_fail(e, TL_INVALID, "a stream needs an array 'writes'");
    const int64_t status = tl_json_int(j, "status", 200);
    if (status < 100 || status > 999) return tl_fail(e, TL_INVALID, "status %" PRId64 " is not three digits", status);
    return TL_OK;
}

static tl_status optional_delay(uint64_t *out, const json_t *j, const char *name, tl_err *e) {
    const json_t *ms = json_object_get(j, name);
    return ms == NULL || json_is_null(ms) ? TL_OK : parse_delay(out, ms, name, e);
}

tl_status script_stream_parse(script_stream **out, const json_t *j, tl_err *e) {
    tl_status st = TL_OK;
    tl_buf wire;
    script_stream *s = tl_xalloc(sizeof *s);
    tl_buf_init(&wire, 0);
    TRY(check(j, e));
    TRY(parse_close(&s->close, j, e));
    s->raw = tl_json_bool(j, "raw", false);
    const json_t *writes = tl_json_at(j, "writes");
    s->n_writes = json_array_size(writes);
    s->writes = tl_xalloc(s->n_writes * sizeof *s->writes);
    size_t text_len = 0;
    uint64_t last_ns = 0;
    for (size_t i = 0; i < s->n_writes; i++) {
        TRY(parse_write(s, &wire, json_array_get(writes, i), i, e));
        if (s->writes[i].delay_ns > last_ns) last_ns = s->writes[i].delay_ns; /* an earlier one is just sent at once */
        text_len += s->writes[i].text_len;
    }
    s->close_delay_ns = last_ns;
    TRY(optional_delay(&s->head_delay_ns, j, "headers_ms", e));
    TRY(optional_delay(&s->close_delay_ns, j, "close_ms", e));
    write_head(s, j, text_len);
    s->bytes = tl_buf_take(&wire);
    s->refs = 1;
    *out = s;
    s = NULL;
out:
    if (st != TL_OK) tl_wrap(e, "stream '%s'", tl_json_str(j, "name", "?"));
    tl_buf_free(&wire);
    script_stream_free(s);
    return st;
}

script_stream *script_stream_plain(int status, const char *type, const char *body) {
    script_stream *s = NULL;
    json_t *j = json_pack("{s:i, s:s, s:{s:s}, s:[[i, s]]}", "status", status, "close", "length", "headers",
                          "Content-Type", type, "writes", 0, body);
    tl_err e;
    if (j == NULL || script_stream_parse(&s, j, &e) != TL_OK) abort(); /* constant input: a bug here */
    json_decref(j);
    return s;
}

void script_stream_free(script_stream *s) {
    if (s == NULL) return;
    free(s->head);
    free(s->bytes);
    free(s->writes);
    free(s);
}

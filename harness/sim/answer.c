/* The text side of the null server: schedule to header and back, and the bytes of an answer as OpenAI's chat stream
 * (https://platform.openai.com/docs/api-reference/chat-streaming), chunked, one chunk an event as llama-server sends. */
#include "sim/null_impl.h"

#define EVENT_HEAD "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\""
#define EVENT_TAIL "\"},\"finish_reason\":null}],\"object\":\"chat.completion.chunk\""
#define BLOCK_MAX ((uint64_t)64 << 20)
#define STAMP_DIGITS (TL_NULL_STAMP_BYTES - 1)

tl_null_schedule tl_null_default(void) {
    return (tl_null_schedule){.first_us = 50000, .gap_us = 10000, .events = 100, .bytes = 250, .batch = 1};
}

typedef struct field {
    const char *name;
    size_t at;
    int64_t min, max;
    bool flag;
} field;

#define FIELD(f, lo, hi) {#f, offsetof(tl_null_schedule, f), lo, hi, false}
#define FLAG(f) {#f, offsetof(tl_null_schedule, f), 0, 1, true}
static const field fields[] = {
    FIELD(first_us, 0, 3600000000), FIELD(gap_us, 0, 3600000000), FIELD(phase_us, 0, 3600000000),
    FIELD(events, 1, 1000000),      FIELD(bytes, 0, 65536),       FIELD(batch, 1, 1000),
    FLAG(burst),                    FLAG(nagle),                  FIELD(max_conn, 0, 100000),
};

void tl_null_header(tl_buf *out, const tl_null_schedule *s) {
    for (size_t i = 0; i < TL_COUNT(fields); i++) {
        const char *p = (const char *)s + fields[i].at;
        uint64_t v;
        if (fields[i].flag) v = *(const bool *)p ? 1 : 0;
        else memcpy(&v, p, sizeof v);
        tl_buf_fmt(out, "%s%s=%" PRIu64, i > 0 ? " " : "", fields[i].name, v);
    }
}

static tl_status set_word(tl_null_schedule *s, const char *word, tl_err *e) {
    for (size_t i = 0; i < TL_COUNT(fields); i++) {
        const field *f = &fields[i];
        const size_t n = strlen(f->name);
        int64_t v;
        if (strncmp(word, f->name, n) != 0 || word[n] != '=') continue;
        if (!tl_parse_i64(word + n + 1, &v) || v < f->min || v > f->max) {
            tl_fail(e, TL_INVALID, "X-Tally-Null: '%.60s' is not %s=N with N from %" PRId64 " to %" PRId64, word,
                    f->name, f->min, f->max);
            return tl_remedy(e, "give a whole number within these bounds");
        }
        const uint64_t u = (uint64_t)v;
        if (f->flag) *(bool *)((char *)s + f->at) = u != 0;
        else memcpy((char *)s + f->at, &u, sizeof u);
        return TL_OK;
    }
    tl_fail(e, TL_INVALID, "X-Tally-Null: unknown word '%.60s'", word);
    return tl_remedy(e, "words are first_us gap_us phase_us events bytes batch burst nagle max_conn, each =N");
}

tl_status tl_null_parse(tl_null_schedule *s, const char *text, tl_err *e) {
    tl_null_schedule made = *s;
    for (const char *p = text; *p != '\0';) {
        const size_t n = strcspn(p, " \t");
        if (n > 0) {
            char word[96];
            snprintf(word, sizeof word, "%.*s", (int)(n < 95 ? n : 95), p);
            const tl_status st = set_word(&made, word, e);
            if (st != TL_OK) return st;
        }
        p += n;
        p += strspn(p, " \t");
    }
    const uint64_t at_once = made.burst ? made.events : made.batch;
    if (at_once * (made.bytes + 256) > BLOCK_MAX) {
        tl_fail(e, TL_INVALID, "X-Tally-Null: one write of %" PRIu64 " events of %" PRIu64 " bytes is over 64 MiB",
                at_once, made.bytes);
        return tl_remedy(e, "ask for fewer events, smaller ones, or a smaller batch");
    }
    *s = made;
    return TL_OK;
}

static void add_chunk(tl_buf *out, const char *data, size_t len) {
    tl_buf_fmt(out, "%zx\r\n", len);
    tl_buf_add(out, data, len);
    tl_buf_str(out, "\r\n");
}

/* One event of about `bytes` on the wire: what is missing is a padding member that no client looks at. */
static void add_event(tl_buf *out, uint64_t bytes) {
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_str(&b, EVENT_HEAD);
    for (int i = 0; i < STAMP_DIGITS; i++) tl_buf_char(&b, '0');
    tl_buf_str(&b, " " EVENT_TAIL);
    const size_t end = sizeof "}\n\n" - 1 + sizeof ",\"pad\":\"\"" - 1 + sizeof "xx\r\n\r\n" - 1;
    if (b.len + end < bytes) {
        tl_buf_str(&b, ",\"pad\":\"");
        for (size_t n = bytes - b.len - end + sizeof ",\"pad\":\"" - 1; n > sizeof ",\"pad\":\"" - 1; n--)
            tl_buf_char(&b, 'x');
        tl_buf_str(&b, "\"");
    }
    tl_buf_str(&b, "}\n\n");
    add_chunk(out, b.p, b.len);
    tl_buf_free(&b);
}

void null_answer_init(null_answer *a, const tl_null_schedule *s) {
    static const char role[] =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}],"
        "\"object\":\"chat.completion.chunk\"}\n\n";
    *a = (null_answer){0};
    tl_buf_init(&a->head, 0);
    tl_buf_init(&a->block, 0);
    tl_buf_str(&a->head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nServer: tally-null\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n");
    add_chunk(&a->head, role, sizeof role - 1);
    const uint64_t n = s->burst ? s->events : s->batch;
    add_event(&a->block, s->bytes);
    a->event = a->block.len;
    a->stamp_at = (size_t)(strstr(a->block.p, EVENT_HEAD) - a->block.p) + sizeof EVENT_HEAD - 1;
    char *one = tl_xstrndup(a->block.p, a->event);
    for (uint64_t i = 1; i < n; i++) tl_buf_add(&a->block, one, a->event);
    free(one);
}

void null_answer_fini(null_answer *a) {
    tl_buf_free(&a->head);
    tl_buf_free(&a->block);
}

size_t null_answer_stamp(null_answer *a, size_t n, uint64_t now) {
    char digits[STAMP_DIGITS];
    for (size_t d = STAMP_DIGITS; d-- > 0; now /= 10) digits[d] = (char)('0' + now % 10);
    for (size_t i = 0; i < n; i++) memcpy(a->block.p + i * a->event + a->stamp_at, digits, STAMP_DIGITS);
    return n * a->event;
}

void null_answer_tail(tl_buf *out, uint64_t events, uint64_t late_max_ns) {
    char *text = tl_xprintf("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}],"
                            "\"object\":\"chat.completion.chunk\"}\n\n"
                            "data: {\"choices\":[],\"object\":\"chat.completion.chunk\",\"late_max_ns\":%" PRIu64
                            ",\"usage\":{\"completion_tokens\":%" PRIu64 ",\"prompt_tokens\":1,\"total_tokens\":%" PRIu64
                            "}}\n\ndata: [DONE]\n\n",
                            late_max_ns, events, events + 1);
    add_chunk(out, text, strlen(text));
    tl_buf_str(out, "0\r\n\r\n");
    free(text);
}

uint64_t tl_null_stamp(const char *text, size_t len, size_t i) {
    if (i >= len / TL_NULL_STAMP_BYTES) return UINT64_MAX;
    const char *p = text + i * TL_NULL_STAMP_BYTES;
    uint64_t v = 0;
    for (size_t d = 0; d < STAMP_DIGITS; d++) {
        if (p[d] < '0' || p[d] > '9') return UINT64_MAX;
        v = v * 10 + (uint64_t)(p[d] - '0');
    }
    return p[STAMP_DIGITS] == ' ' ? v : UINT64_MAX;
}

uint64_t tl_null_late_max_ns(const char *body) {
    static const char key[] = "\"late_max_ns\":";
    const char *p = body == NULL ? NULL : strstr(body, key);
    if (p == NULL) return UINT64_MAX;
    char digits[24];
    p += sizeof key - 1;
    snprintf(digits, sizeof digits, "%.*s", (int)strspn(p, "0123456789") % 24, p);
    int64_t v;
    return tl_parse_i64(digits, &v) ? (uint64_t)v : UINT64_MAX;
}

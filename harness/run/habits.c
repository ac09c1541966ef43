/* The habits of a stream as a table: how an answer shows each, and what tally cannot do then. An answer is looked at through
 * what its dialect decoded (events, flags, TL_HABIT_* bits), its records, and the log of its bytes. */
#include "run/endpoint.h"

#define ROLE_APART_MS 1.0 /* a role chunk less far ahead of the first text belongs to it */
#define SMALL_RECORD 4096 /* a record below this fits into one read however it travels */
#define JOINED_SHARE 0.05 /* of the chunks, as in calibrations */
#define FEW_GAPS 8        /* fewer show no steps */

static const char *const thinking_fields[] = {"reasoning_content", "reasoning", "thinking"};

/* One answer, and what its records hold. */
typedef struct view {
    const tl_endpoint_answer *a;
    size_t records, small, split;                   /* split: small ones that arrived in several reads */
    size_t usage_own, usage_with_text, usage_in_finish; /* records with a usage object, by their choice */
    size_t thinking[TL_COUNT(thinking_fields)];
} view;

enum { NEED_BODY = 1, NEED_TEXT = 2, NEED_CHUNKS = 4, NEED_GAPS = 8, NEED_OPENAI = 16, NEED_END = 32 };

struct tl_endpoint_habit {
    const char *name, *words;
    tl_seen (*look)(tl_buf *evidence, const view *v, const tl_endpoint_habit *h);
    unsigned ask, need;
    unsigned bit; /* what `look` looks for: TL_HABIT_*, TL_FLAG_*, an event kind or an index */
    bool (*line)(const char *p, size_t n); /* the kind of line that shows it */
    const char *limit;
};

/* ---- an answer's records ------------------------------------------------------------------------------------------- */

static bool has_usage(const json_t *record) {
    static const char *const paths[] = {"usage", "usageMetadata", "choices.0.usage", "x_groq.usage"};
    for (size_t i = 0; i < TL_COUNT(paths); i++)
        if (json_object_size(tl_json_at(record, paths[i])) > 0) return true;
    return false;
}

static void scan_record(view *v, const json_t *record) {
    const json_t *choice = tl_json_at(record, "choices.0"), *message = tl_json_at(choice, "delta");
    if (message == NULL) message = tl_json_at(record, "message");
    if (message == NULL) message = record;
    for (size_t i = 0; i < TL_COUNT(thinking_fields); i++)
        v->thinking[i] += tl_json_str(message, thinking_fields[i], "")[0] != 0;
    if (!has_usage(record)) return;
    if (choice == NULL) v->usage_own++;
    else if (tl_json_str(choice, "finish_reason", NULL)) v->usage_in_finish++;
    else v->usage_with_text++;
}

/* The read that delivered the byte at this offset. */
static size_t read_of(const tl_http_log *log, size_t offset) {
    size_t i = 0;
    while (i + 1 < log->n_reads && log->reads[i + 1].offset <= offset) i++;
    return i;
}

static view view_of(const tl_endpoint_answer *a) {
    view v = {.a = a};
    tl_split split;
    tl_split_event ev;
    const bool lines = tl_str_starts(a->r.dialect, "ollama");
    tl_split_log(&split, a->log);
    while (lines ? tl_ndjson_next(&split, &ev) : tl_sse_next(&split, &ev)) {
        json_t *record = json_loadb(ev.data, ev.len, 0, NULL);
        v.records++;
        if (ev.end - ev.start <= SMALL_RECORD) {
            v.small++;
            v.split += read_of(a->log, ev.start) != read_of(a->log, ev.end - 1);
        }
        scan_record(&v, record);
        json_decref(record);
    }
    tl_split_free(&split);
    return v;
}

/* ---- evidence ------------------------------------------------------------------------------------------------------ */

/* The first bytes, readable on a terminal. */
static void quote(tl_buf *b, const char *p, size_t n) {
    enum { SHOWN = 44 };
    tl_buf_char(b, '\'');
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\r' || c == '\n') tl_buf_str(b, c == '\r' ? "\\r" : "\\n");
        else if (c < 0x20 || c >= 0x7f) tl_buf_fmt(b, "\\x%02x", c);
        else tl_buf_char(b, (char)c);
    }
    tl_buf_str(b, n > SHOWN ? "...'" : "'");
}

static bool begins(const char *p, size_t n, const char *word) { return n >= strlen(word) && memcmp(p, word, strlen(word)) == 0; }
static bool is_comment(const char *p, size_t n) { return n > 0 && p[0] == ':'; }
static bool is_event(const char *p, size_t n) { return begins(p, n, "event:"); }
static bool is_tight(const char *p, size_t n) { return begins(p, n, "data:") && n > 5 && p[5] != ' '; }
static bool is_crlf(const char *p, size_t n) { return n > 0 && p[n - 1] == '\r'; }

static double ms(uint64_t from, uint64_t to) { return ((double)to - (double)from) / 1e6; }

/* Between any two reads, and before the first. */
static double longest_silence_ms(const tl_http_log *log) {
    double longest = 0;
    for (size_t i = 0; i < log->n_reads; i++) {
        double d = ms(i ? log->reads[i - 1].t_ns : log->t_sent_ns, log->reads[i].t_ns);
        if (d > longest) longest = d;
    }
    return longest;
}

static tl_seen seen_if(bool yes) { return yes ? TL_SEEN : TL_SEEN_NOT; }

/* ---- looks --------------------------------------------------------------------------------------------------------- */

static tl_seen by_line(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_http_log *log = v->a->log;
    if (!(v->a->r.habits & h->bit)) return TL_SEEN_NOT;
    for (size_t at = 0; h->line && at < log->body_len;) {
        const char *line = log->body + at, *end = memchr(line, '\n', log->body_len - at);
        size_t n = end ? (size_t)(end - line) : log->body_len - at;
        if (h->line(line, n)) {
            bool tail = is_crlf(line, n) && n > 16; /* its end is what is wrong */
            quote(b, tail ? line + n - 16 : line, (tail ? 16 : n) + (end != NULL));
            break;
        }
        at += n + 1;
    }
    return TL_SEEN;
}

static tl_seen comments(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    tl_seen s = by_line(b, v, h);
    if (s == TL_SEEN_NOT) tl_buf_fmt(b, "the longest silence was %.0f ms; servers ping after seconds", longest_silence_ms(v->a->log));
    return s;
}

static tl_seen by_event(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_request *r = &v->a->r;
    size_t n = 0;
    for (size_t i = 0; i < r->n_events; i++) n += tl_event_kind_of(&r->events[i]) == (tl_event_kind)h->bit;
    if (n == 0) return TL_SEEN_NOT;
    tl_buf_fmt(b, "%zu record%s", n, n == 1 ? "" : "s");
    return TL_SEEN;
}

/* Whatever is wrong with the answer and is not the way's or a record's fault. */
static tl_seen server_error(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    static const char *const other[] = {"transport", "http", "protocol"};
    const tl_request *r = &v->a->r;
    TL_UNUSED(h);
    if (r->error_class == NULL) return TL_SEEN_NOT;
    for (size_t i = 0; i < TL_COUNT(other); i++)
        if (tl_str_eq(r->error_class, other[i])) return TL_SEEN_NOT;
    quote(b, r->error_text, strlen(r->error_text));
    return TL_SEEN;
}

static tl_seen role_early(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_request *r = &v->a->r;
    uint64_t role = TL_T_NONE;
    TL_UNUSED(h);
    for (size_t i = 0; i < r->n_events; i++) {
        const tl_event *ev = &r->events[i];
        if (tl_event_kind_of(ev) == TL_EV_ROLE && role == TL_T_NONE) role = ev->t_ns;
        if (!tl_event_is_text(ev)) continue;
        if (role == TL_T_NONE) return TL_SEEN_NOT;
        tl_buf_fmt(b, "%.2f ms before the first text", ms(role, ev->t_ns));
        return seen_if(ms(role, ev->t_ns) > ROLE_APART_MS);
    }
    return TL_SEEN_NOT;
}

/* The end of sequence is a token without text: no reason to doubt a count. */
static bool end_token_alone(const tl_metrics *m, const tl_counters *c) {
    const bool two = c->usage_completion != TL_ABSENT && c->engine_predicted_n != TL_ABSENT;
    return m->n == m->chunks + 1 && !(two && c->usage_completion != c->engine_predicted_n) && !(m->flags & TL_FLAG_OVER_MAX);
}

static tl_seen counts_differ(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_metrics *m = &v->a->m;
    TL_UNUSED(h);
    if (m->n_cause) tl_buf_str(b, m->n_cause);
    return seen_if((m->flags & TL_FLAG_N_DIFFERS) && !end_token_alone(m, &v->a->r.count));
}

/* Now and then a client finds two chunks at once; a habit is what falsifies its gaps. */
static tl_seen coalesced(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_metrics *m = &v->a->m;
    TL_UNUSED(h);
    tl_buf_fmt(b, "%" PRId64 " chunks in %" PRId64 " reads", m->chunks, m->text_reads);
    return seen_if((double)(m->chunks - m->text_reads) > JOINED_SHARE * (double)m->chunks);
}

static tl_seen by_flag(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_metrics *m = &v->a->m;
    const tl_request *r = &v->a->r;
    if (h->bit == TL_FLAG_SEVERAL && m->n_source == TL_N_EVENTS) {
        tl_buf_str(b, "the server tells no number of tokens");
        return TL_SEEN_UNTOLD;
    }
    if (h->bit == TL_FLAG_SEVERAL) tl_buf_fmt(b, "%" PRId64 " tokens in %" PRId64 " chunks", m->n, m->chunks);
    if (!(m->flags & h->bit)) return TL_SEEN_NOT;
    if (h->bit == TL_FLAG_BURST) tl_buf_fmt(b, "%" PRId64 " tokens within %.3f ms", m->n, (double)(m->last_ns - m->ttft_ns) / 1e6);
    if (h->bit == TL_FLAG_BAD_RECORD && r->error_text) quote(b, r->error_text, strlen(r->error_text));
    if (h->bit == TL_FLAG_HIDDEN) tl_buf_fmt(b, "%" PRId64 " reasoning tokens counted", r->count.usage_reasoning);
    return TL_SEEN;
}

enum { USAGE_OWN, USAGE_EACH, USAGE_LAST, USAGE_NONE, USAGE_ANY };
static tl_seen usage(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const size_t any = v->usage_own + v->usage_with_text + v->usage_in_finish;
    const size_t each = v->usage_with_text, last = each ? 0 : v->usage_in_finish;
    const size_t n[] = {[USAGE_OWN] = v->usage_own, [USAGE_EACH] = each, [USAGE_LAST] = last, [USAGE_NONE] = any == 0, [USAGE_ANY] = any};
    if (n[h->bit] && h->bit != USAGE_NONE) tl_buf_fmt(b, "in %zu of %zu records", n[h->bit], v->records);
    return seen_if(n[h->bit] > 0);
}

static tl_seen thinking(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    if (v->thinking[h->bit]) tl_buf_fmt(b, "in %zu of %zu records", v->thinking[h->bit], v->records);
    return seen_if(v->thinking[h->bit] > 0);
}

static tl_seen split_events(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    TL_UNUSED(h);
    tl_buf_fmt(b, "%zu of %zu records took several reads", v->split, v->small);
    return seen_if(v->split * 10 >= v->small && v->split > 0);
}

static tl_seen no_done(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_request *r = &v->a->r;
    TL_UNUSED(h);
    if (r->saw_done) return TL_SEEN_NOT;
    tl_buf_fmt(b, "finish reason '%s', then the end", r->finish_reason ? r->finish_reason : "");
    return TL_SEEN;
}

static tl_seen end_missing(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    TL_UNUSED(h);
    if (v->a->m.outcome != TL_REQ_TRUNCATED) return TL_SEEN_NOT;
    tl_buf_fmt(b, "%" PRId64 " chunks, then neither finish reason nor end record", v->a->m.chunks);
    return TL_SEEN;
}

static tl_seen no_text(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    TL_UNUSED(h);
    if (v->a->m.chunks > 0 || v->a->r.error_class) return TL_SEEN_NOT;
    tl_buf_fmt(b, "%zu bytes, %zu records, no text", v->a->log->body_len, v->records);
    return TL_SEEN;
}

static tl_seen compressed(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    TL_UNUSED(h);
    if (v->a->r.content_encoded) tl_buf_fmt(b, "Content-Encoding: %s", v->a->log->content_encoding);
    return seen_if(v->a->r.content_encoded);
}

static tl_seen close_framed(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_http_log *log = v->a->log;
    TL_UNUSED(h);
    if (log->ended_by_close) tl_buf_fmt(b, "HTTP/%d.%d, neither a length nor chunks", log->http_version / 10, log->http_version % 10);
    else tl_buf_str(b, log->transfer_encoding[0] ? log->transfer_encoding : "by length");
    return seen_if(log->ended_by_close);
}

static tl_seen connection_closed(tl_buf *b, const view *v, const tl_endpoint_habit *h) {
    const tl_http_log *log = v->a->log;
    const bool kept = log->reused && log->connects == 1;
    TL_UNUSED(h);
    if (kept) tl_buf_str(b, "the next request came through on the same connection");
    else tl_buf_fmt(b, "the next request needed a new one%s", log->announced_keep_alive ? ", though keep-alive was announced" : "");
    return seen_if(!kept);
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

#define FAILED_ANSWER "tally counts such an answer as failed and measures nothing of it; the server's own log says why"
#define BUFFERED "TTFT is the time of the whole answer and no decode rate exists; switch buffering off (nginx: proxy_buffering off)"

static const tl_endpoint_habit habits[] = {
    {"comments", "comment lines (keep-alive pings)", comments, TL_ASK_PLAIN, NEED_BODY, TL_HABIT_COMMENTS, is_comment, NULL},
    {"role-early", "role chunk before the first text", role_early, TL_ASK_PLAIN, NEED_BODY | NEED_TEXT, 0, NULL, NULL},
    {"progress", "prompt-progress chunks", by_event, TL_ASK_PLAIN, NEED_BODY, TL_EV_PROGRESS, NULL, NULL},
    {"usage-own", "usage in a record of its own, `choices:[]`", usage, TL_ASK_PLAIN, NEED_BODY | NEED_OPENAI, USAGE_OWN, NULL, NULL},
    {"usage-each", "usage on each chunk", usage, TL_ASK_PLAIN, NEED_BODY | NEED_OPENAI, USAGE_EACH, NULL, NULL},
    {"usage-null", "`\"usage\":null` on chunks", by_line, TL_ASK_PLAIN, NEED_BODY | NEED_OPENAI, TL_HABIT_USAGE_NULL, NULL, NULL},
    {"usage-last", "usage in the finish chunk", usage, TL_ASK_PLAIN, NEED_BODY | NEED_OPENAI, USAGE_LAST, NULL, NULL},
    {"usage-none", "no usage, though asked for", usage, TL_ASK_PLAIN, NEED_BODY | NEED_TEXT | NEED_OPENAI | NEED_END, USAGE_NONE, NULL,
     "without the engine's own timings tokens are counted by chunks; let the server send usage (vLLM: --enable-force-include-usage)"},
    {"usage-unasked", "usage, though not asked for", usage, TL_ASK_NO_USAGE, NEED_BODY | NEED_OPENAI, USAGE_ANY, NULL, NULL},
    {"counts-differ", "token counts that differ", counts_differ, TL_ASK_PLAIN, NEED_BODY | NEED_TEXT, 0, NULL,
     "rates rest on the count named in the result; where it is wrong they are wrong by as much: compare with the server's tokenizer"},
    {"crlf", "CRLF line ends", by_line, TL_ASK_PLAIN, NEED_BODY, TL_HABIT_CRLF, is_crlf, NULL},
    {"no-space", "`data:` without a space", by_line, TL_ASK_PLAIN, NEED_BODY, TL_HABIT_NO_SPACE, is_tight, NULL},
    {"event-lines", "`event:` lines", by_line, TL_ASK_PLAIN, NEED_BODY, TL_HABIT_EVENT_LINES, is_event, NULL},
    {"error-in-200", "an error after HTTP 200", server_error, TL_ASK_PLAIN, NEED_BODY, 0, NULL, FAILED_ANSWER},
    {"bad-record", "a record that is no JSON", by_flag, TL_ASK_PLAIN, NEED_BODY, TL_FLAG_BAD_RECORD, NULL, FAILED_ANSWER},
    {"invalid-utf8", "bytes that are no UTF-8", by_flag, TL_ASK_PLAIN, NEED_BODY, TL_FLAG_UTF8, NULL, NULL},
    {"several-tokens", "several tokens a chunk", by_flag, TL_ASK_PLAIN, NEED_BODY | NEED_TEXT, TL_FLAG_SEVERAL, NULL,
     "gaps are gaps of chunks, not of tokens; TTFT, TPOT and rates stay right (vLLM: --stream-interval 1, no speculative decoding)"},
    {"coalesced", "several chunks a read", coalesced, TL_ASK_PLAIN, NEED_BODY | NEED_CHUNKS, 0, NULL,
     "gaps say nothing of the server; find what joins its writes: a proxy's buffer, a client beside a busy engine"},
    {"fake-streaming", "the whole text at once", by_flag, TL_ASK_PLAIN, NEED_BODY | NEED_TEXT, TL_FLAG_BURST, NULL, BUFFERED},
    {"not-streamed", "one plain JSON answer", by_flag, TL_ASK_PLAIN, NEED_BODY, TL_FLAG_NOT_STREAM, NULL, BUFFERED},
    {"40ms-steps", "steps of 40 ms (Nagle against delayed ACK)", by_flag, TL_ASK_PLAIN, NEED_BODY | NEED_GAPS, TL_FLAG_STEPS_40MS, NULL,
     "gaps are the network stack's, not the engine's; set TCP_NODELAY in the server or proxy"},
    {"split-events", "records in several reads", split_events, TL_ASK_PLAIN, NEED_BODY, 0, NULL,
     "a record counts when its last piece is there, which Nagle's algorithm may hold back; write it at once, with TCP_NODELAY"},
    {"split-at-space", "a read that ends at a space", by_line, TL_ASK_PLAIN, NEED_BODY, TL_HABIT_SPACE_CUT, NULL, NULL},
    {"gzip", "compressed when gzip is offered", compressed, TL_ASK_GZIP, 0, 0, NULL, NULL},
    {"gzip-unasked", "compressed without being asked", compressed, TL_ASK_PLAIN, 0, 0, NULL,
     "token times are refused: a compressor holds tokens back; exclude text/event-stream from compression"},
    {"reasoning_content", "thinking in `reasoning_content`", thinking, TL_ASK_PLAIN, NEED_BODY, 0, NULL, NULL},
    {"reasoning", "thinking in `reasoning`", thinking, TL_ASK_PLAIN, NEED_BODY, 1, NULL, NULL},
    {"thinking", "thinking in `thinking`", thinking, TL_ASK_PLAIN, NEED_BODY, 2, NULL, NULL},
    {"hidden-thinking", "thinking that is counted, not shown", by_flag, TL_ASK_PLAIN, NEED_BODY, TL_FLAG_HIDDEN, NULL,
     "its time cannot be told from the prompt's: TTFT holds both; let the server show thinking"},
    {"no-done", "no [DONE] at the end", no_done, TL_ASK_PLAIN, NEED_BODY | NEED_OPENAI | NEED_END, 0, NULL, NULL},
    {"end-missing", "an answer without its end", end_missing, TL_ASK_PLAIN, NEED_BODY, 0, NULL,
     "tally counts it as truncated, not as success; look for a time limit of the server or proxy"},
    {"no-text", "an answer without text", no_text, TL_ASK_PLAIN, NEED_BODY, 0, NULL, "without a token there is no TTFT; try another --model or prompt"},
    {"close-framed", "the end is the connection's end", close_framed, TL_ASK_PLAIN, 0, 0, NULL,
     "a cut answer looks complete unless its end record is missing; use HTTP/1.1 with chunks"},
    {"connection-closed", "a connection for one answer only", connection_closed, TL_ASK_AGAIN, 0, 0, NULL, NULL},
};

size_t tl_endpoint_habit_count(void) { return TL_COUNT(habits); }
const tl_endpoint_habit *tl_endpoint_habit_at(size_t i) { return i < TL_COUNT(habits) ? &habits[i] : NULL; }
const char *tl_endpoint_habit_name(const tl_endpoint_habit *h) { return h->name; }
const char *tl_endpoint_habit_words(const tl_endpoint_habit *h) { return h->words; }
const char *tl_endpoint_habit_limit(const tl_endpoint_habit *h) { return h->limit; }

const char *tl_seen_name(tl_seen s) {
    static const char *const names[] = {"seen", "not seen", "could not be told"};
    return (unsigned)s < TL_COUNT(names) ? names[s] : "?";
}

/* Why this answer cannot tell; NULL: it can. */
static const char *lacking(const tl_endpoint_habit *h, const view *v) {
    const tl_request *r = &v->a->r;
    const tl_metrics *m = &v->a->m;
    const struct {
        unsigned need;
        bool lacks;
        const char *why;
    } rules[] = {
        {~0u, r->http_status < 200 || r->http_status > 299, "it was not answered"},
        {NEED_BODY, r->content_encoded, "the answer came compressed"},
        {NEED_OPENAI, r->not_stream, "it was no stream"},
        {NEED_OPENAI, !tl_str_starts(r->dialect, "openai"), "not a matter of this dialect"},
        {NEED_TEXT, m->chunks < 1, "no text came"},
        {NEED_CHUNKS, m->chunks < 2, "fewer than two chunks of text"},
        {NEED_END, m->outcome != TL_REQ_OK || r->transport != TL_TP_COMPLETE, "the answer did not come to its end"},
        {NEED_GAPS, m->n_gaps < FEW_GAPS, "too few chunks of text"},
    };
    for (size_t i = 0; i < TL_COUNT(rules); i++)
        if (rules[i].lacks && (rules[i].need == ~0u || (h->need & rules[i].need))) return rules[i].why;
    return NULL;
}

static tl_seen look_at(tl_buf *b, const tl_endpoint_habit *h, const tl_endpoint_answer *a) {
    const view v = view_of(a);
    const char *why = lacking(h, &v);
    if (why == NULL) return h->look(b, &v, h);
    tl_buf_str(b, why);
    return TL_SEEN_UNTOLD;
}

tl_seen tl_endpoint_habit_look(tl_buf *evidence, const tl_endpoint_habit *h, const tl_endpoint_answer *a, size_t n) {
    size_t count[3] = {0};
    tl_buf first[3];
    for (size_t s = 0; s < TL_COUNT(first); s++) tl_buf_init(&first[s], 0);
    for (size_t i = 0; i < n; i++) {
        if (!(a[i].ask & h->ask)) continue;
        tl_buf b;
        tl_buf_init(&b, 0);
        const tl_seen s = look_at(&b, h, &a[i]);
        if (count[s]++ == 0) tl_buf_add(&first[s], b.p, b.len);
        tl_buf_free(&b);
    }
    const size_t told = count[TL_SEEN] + count[TL_SEEN_NOT];
    const tl_seen s = count[TL_SEEN] ? TL_SEEN : told ? TL_SEEN_NOT : TL_SEEN_UNTOLD;
    if (told) tl_buf_fmt(evidence, "%zu of %zu answer%s%s", count[TL_SEEN], told, told == 1 ? "" : "s", first[s].len ? ": " : "");
    tl_buf_str(evidence, first[s].p);
    for (size_t k = 0; k < TL_COUNT(first); k++) tl_buf_free(&first[k]);
    return s;
}

/* Splitters over stored bytes. They run after the response, so they see all bytes at once: how the network cut them is
 * only used to look up when the byte that completed an event arrived. Lines are found with memchr-like scans; data of
 * one line is a slice of the body, only multi-line data is copied. */
#include "http/http.h"

void tl_split_init(tl_split *s, const char *bytes, size_t len, const tl_http_read *reads, size_t n_reads) {
    memset(s, 0, sizeof *s);
    s->bytes = bytes;
    s->len = len;
    s->reads = reads;
    s->n_reads = n_reads;
}

void tl_split_log(tl_split *s, const tl_http_log *log) {
    tl_split_init(s, log->body, log->body_len, log->reads, log->n_reads);
}

void tl_split_free(tl_split *s) {
    tl_buf_free(&s->joined);
}

/* Fills in when byte `at` arrived. Events come in order, so the cursor only moves forward. */
static void locate(tl_split *s, tl_split_event *out, size_t at) {
    while (s->read < s->n_reads && s->reads[s->read].offset + s->reads[s->read].len <= at) s->read++;
    if (s->read >= s->n_reads) return;
    out->read = s->read;
    out->wake = s->reads[s->read].wake;
    out->t_ns = s->reads[s->read].t_ns;
}

typedef struct line {
    const char *p;
    size_t len;
    size_t end;      /* offset of the byte that ended it (CR of CR LF: an event is complete with it) */
    bool terminated; /* false: the bytes ended first */
} line;

/* Takes one line that ends in LF, CR LF or CR. False at the end of the bytes. */
static bool sse_line(tl_split *s, line *out) {
    if (s->pos >= s->len) return false;
    size_t i = s->pos;
    while (i < s->len && s->bytes[i] != '\n' && s->bytes[i] != '\r') i++;
    out->p = s->bytes + s->pos;
    out->len = i - s->pos;
    out->end = i;
    out->terminated = i < s->len;
    s->pos = i;
    if (!out->terminated) return true;
    s->pos = i + 1;
    if (s->bytes[i] == '\r' && s->pos < s->len && s->bytes[s->pos] == '\n') s->pos++;
    return true;
}

/* What the lines of one event have said so far. */
typedef struct gathered {
    bool begun;
    size_t start;
    size_t n_data; /* data lines */
    const char *data;
    size_t len;
    const char *name;
    size_t name_len;
} gathered;

static bool field_is(const line *l, size_t colon, const char *name) {
    return colon == strlen(name) && memcmp(l->p, name, colon) == 0;
}

static void take_data(tl_split *s, gathered *g, const char *value, size_t len) {
    if (g->n_data == 0) {
        g->data = value;
        g->len = len;
    } else {
        if (g->n_data == 1) {
            if (s->joined.p == NULL) tl_buf_init(&s->joined, 0);
            tl_buf_clear(&s->joined);
            tl_buf_add(&s->joined, g->data, g->len);
        }
        tl_buf_char(&s->joined, '\n');
        tl_buf_add(&s->joined, value, len);
        g->data = s->joined.p;
        g->len = s->joined.len;
    }
    g->n_data++;
}

static void take_line(tl_split *s, gathered *g, const line *l) {
    if (l->p[0] == ':') {
        s->n_comments++;
        return;
    }
    const char *colon_at = memchr(l->p, ':', l->len);
    size_t colon = colon_at ? (size_t)(colon_at - l->p) : l->len;
    size_t from = colon_at ? colon + 1 : l->len;
    if (from < l->len && l->p[from] == ' ') from++;
    if (!g->begun) {
        g->begun = true;
        g->start = (size_t)(l->p - s->bytes);
    }
    if (field_is(l, colon, "data")) take_data(s, g, l->p + from, l->len - from);
    if (field_is(l, colon, "event")) {
        g->name = l->p + from;
        g->name_len = l->len - from;
    }
}

static void give(tl_split *s, tl_split_event *out, const gathered *g, size_t last_byte) {
    memset(out, 0, sizeof *out);
    out->data = g->data;
    out->len = g->len;
    out->name = g->name_len ? g->name : NULL;
    out->name_len = g->name_len;
    out->start = g->start;
    out->end = s->pos;
    locate(s, out, last_byte);
}

bool tl_sse_next(tl_split *s, tl_split_event *out) {
    if (s->pos == 0 && s->len >= 3 && memcmp(s->bytes, "\xef\xbb\xbf", 3) == 0) s->pos = 3;
    gathered g = {0};
    line l;
    while (sse_line(s, &l)) {
        if (l.len > 0) {
            take_line(s, &g, &l);
            continue;
        }
        if (g.n_data > 0) {
            give(s, out, &g, l.end);
            return true;
        }
        if (g.begun) s->n_empty++;
        memset(&g, 0, sizeof g);
    }
    if (g.n_data == 0) {
        if (g.begun) s->n_empty++;
        return false;
    }
    give(s, out, &g, s->len - 1);
    out->unterminated = true;
    return true;
}

bool tl_ndjson_next(tl_split *s, tl_split_event *out) {
    while (s->pos < s->len) {
        const char *p = s->bytes + s->pos;
        size_t start = s->pos;
        const char *lf = memchr(p, '\n', s->len - s->pos);
        size_t n = lf ? (size_t)(lf - p) : s->len - s->pos;
        s->pos += n + (lf ? 1 : 0);
        size_t kept = n;
        while (kept > 0 && (p[kept - 1] == '\r' || p[kept - 1] == ' ' || p[kept - 1] == '\t')) kept--;
        if (kept == 0) {
            s->n_empty++;
            continue;
        }
        memset(out, 0, sizeof *out);
        out->data = p;
        out->len = kept;
        out->start = start;
        out->end = s->pos;
        out->unterminated = lf == NULL;
        locate(s, out, s->pos - 1);
        return true;
    }
    return false;
}

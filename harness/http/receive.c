/* What runs while bytes arrive: libcurl's write, header and debug callbacks. Each takes the time first, then copies into
 * memory that was allocated and touched at prepare. A full log ends the request; nothing is overwritten or dropped
 * silently. */
#include "http/http_impl.h"

void tl_http_log_init(tl_http_req *r, size_t max_body, size_t max_reads, bool touch) {
    r->max_body = max_body;
    r->max_reads = max_reads;
    r->buffer = tl_xalloc(max_body + 1);
    r->reads = tl_xalloc(max_reads * sizeof *r->reads);
    if (touch) {
        /* calloc's pages are one shared zero page until written: write each now, not at the first token. Volatile,
         * because a compiler may know that calloc has zeroed already. */
        volatile char *body = r->buffer, *reads = (volatile char *)r->reads;
        for (size_t i = 0; i <= max_body; i += 4096) body[i] = 0;
        for (size_t i = 0; i < max_reads * sizeof *r->reads; i += 4096) reads[i] = 0;
    }
    r->log.body = r->buffer;
    r->log.reads = r->reads;
}

size_t tl_http_on_body(char *p, size_t size, size_t n, void *req) {
    const uint64_t now = tl_clock_now();
    tl_http_req *r = req;
    tl_http_log *log = &r->log;
    n *= size;
    if (n > r->max_body - log->body_len || log->n_reads == r->max_reads || n > UINT32_MAX) {
        r->overflow = true;
        return 0; /* any other count than n makes libcurl give up */
    }
    if (log->n_reads == 0) log->t_first_byte_ns = now;
    r->t_last_read_ns = now;
    r->reads[log->n_reads++] =
        (tl_http_read){.t_ns = now, .offset = log->body_len, .len = (uint32_t)n, .wake = r->loop->wake};
    memcpy(r->buffer + log->body_len, p, n);
    log->body_len += n;
    return n;
}

/* Copies a header's value, blanks around it removed, cut to fit. */
static void take_value(char *out, size_t room, const char *p, size_t n) {
    while (n > 0 && (*p == ' ' || *p == '\t')) p++, n--;
    while (n > 0 && strchr(" \t\r\n", p[n - 1]) != NULL) n--;
    if (n >= room) n = room - 1;
    memcpy(out, p, n);
    out[n] = '\0';
}

static bool header_is(const char *p, size_t n, const char *name) {
    const size_t k = strlen(name);
    return n > k && p[k] == ':' && curl_strnequal(p, name, k);
}

/* The response headers that are kept, and where. */
typedef struct kept_header {
    const char *name;
    size_t offset, room; /* in tl_http_log */
} kept_header;
#define KEPT(name, field) {name, offsetof(tl_http_log, field), sizeof(((tl_http_log *)0)->field)}
static const kept_header KEPT_HEADERS[] = {
    KEPT("content-type", content_type), KEPT("content-encoding", content_encoding),
    KEPT("transfer-encoding", transfer_encoding), KEPT("server", server),
    KEPT("location", location), KEPT("retry-after", retry_after),
};

static void keep_header(tl_http_req *r, const char *p, size_t n) {
    char connection[32] = "";
    for (size_t i = 0; i < TL_COUNT(KEPT_HEADERS); i++) {
        const kept_header *h = &KEPT_HEADERS[i];
        const size_t k = strlen(h->name) + 1;
        if (header_is(p, n, h->name)) take_value((char *)&r->log + h->offset, h->room, p + k, n - k);
    }
    if (header_is(p, n, "content-length")) r->has_length = true;
    if (header_is(p, n, "keep-alive")) r->log.announced_keep_alive = true;
    if (header_is(p, n, "connection")) take_value(connection, sizeof connection, p + 11, n - 11);
    if (curl_strequal(connection, "keep-alive")) r->log.announced_keep_alive = true;
}

static void start_of_response(tl_http_req *r, const char *p, size_t n) {
    tl_http_log *log = &r->log;
    log->http_version = n > 7 && p[5] == '1' && p[7] == '0' ? 10 : n > 7 && p[5] == '1' ? 11 : 20;
    const char *code = memchr(p, ' ', n);
    log->status = 0;
    for (size_t i = code ? (size_t)(code - p) + 1 : n; i < n && p[i] >= '0' && p[i] <= '9' && log->status < 1000; i++)
        log->status = log->status * 10 + (p[i] - '0');
    log->t_headers_ns = 0;
    log->announced_keep_alive = false;
    r->has_length = false;
    for (size_t i = 0; i < TL_COUNT(KEPT_HEADERS); i++) *((char *)log + KEPT_HEADERS[i].offset) = '\0';
}

size_t tl_http_on_header(char *p, size_t size, size_t n, void *req) {
    const uint64_t now = tl_clock_now();
    tl_http_req *r = req;
    tl_http_log *log = &r->log;
    n *= size;
    if (n >= 5 && memcmp(p, "HTTP/", 5) == 0) {
        start_of_response(r, p, n);
        return n;
    }
    if (log->t_headers_ns != 0) return n; /* trailers */
    if (n <= 2 && n > 0 && (p[0] == '\r' || p[0] == '\n')) {
        if (log->status >= 200) log->t_headers_ns = now;
        return n;
    }
    keep_header(r, p, n);
    return n;
}

/* libcurl calls this after send() has taken the bytes (or OpenSSL has), so the last such call is the moment the request
 * was with the kernel. CURLINFO_TEXT is the only sign that an old connection is tried. */
int tl_http_on_debug(CURL *easy, curl_infotype type, char *p, size_t n, void *req) {
    tl_http_req *r = req;
    TL_UNUSED(easy);
    if (type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT) r->log.t_sent_ns = tl_clock_now();
    if (type == CURLINFO_TEXT && n > 8 && (p[0] == 'R' || p[0] == 'r') &&
        (memcmp(p + 1, "e-using", 7) == 0 || memcmp(p + 1, "eusing", 6) == 0))
        r->log.reused = true;
    return 0;
}

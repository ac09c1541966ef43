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

/* Copies a header's value (blanks around it removed, cut to fit) when the line has that name. */
static bool take_header(char *out, size_t room, const char *p, size_t n, const char *name) {
    size_t k = strlen(name);
    if (n <= k || p[k] != ':' || !curl_strnequal(p, name, k)) return false;
    p += k + 1;
    n -= k + 1;
    while (n > 0 && (*p == ' ' || *p == '\t')) p++, n--;
    while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == '\n' || p[n - 1] == ' ' || p[n - 1] == '\t')) n--;
    if (out == NULL) return true;
    if (n >= room) n = room - 1;
    memcpy(out, p, n);
    out[n] = '\0';
    return true;
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
    log->content_type[0] = log->content_encoding[0] = log->transfer_encoding[0] = '\0';
    log->server[0] = log->location[0] = log->retry_after[0] = '\0';
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
    char connection[32] = "";
    if (take_header(log->content_type, sizeof log->content_type, p, n, "content-type")) return n;
    if (take_header(log->content_encoding, sizeof log->content_encoding, p, n, "content-encoding")) return n;
    if (take_header(log->transfer_encoding, sizeof log->transfer_encoding, p, n, "transfer-encoding")) return n;
    if (take_header(log->server, sizeof log->server, p, n, "server")) return n;
    if (take_header(log->location, sizeof log->location, p, n, "location")) return n;
    if (take_header(log->retry_after, sizeof log->retry_after, p, n, "retry-after")) return n;
    if (take_header(NULL, 0, p, n, "content-length")) r->has_length = true;
    if (take_header(NULL, 0, p, n, "keep-alive")) log->announced_keep_alive = true;
    if (take_header(connection, sizeof connection, p, n, "connection") && curl_strequal(connection, "keep-alive"))
        log->announced_keep_alive = true;
    return n;
}

/* libcurl calls this after send() has taken the bytes (or OpenSSL has), so the last such call is the moment the request
 * was with the kernel. CURLINFO_TEXT is the only sign that an old connection is tried. */
int tl_http_on_debug(CURL *easy, curl_infotype type, char *p, size_t n, void *req) {
    tl_http_req *r = req;
    TL_UNUSED(easy);
    if (type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT) r->log.t_sent_ns = tl_clock_now();
    if (type == CURLINFO_TEXT && r->keep_alive && n > 6 && (p[0] == 'R' || p[0] == 'r') &&
        (memcmp(p + 1, "e-using", 7) == 0 || memcmp(p + 1, "eusing", 6) == 0))
        r->log.reused = true;
    return 0;
}

/* A request's description, its way into libcurl, and its end. */
#include "http/http_impl.h"

#include <netinet/in.h>

const char *tl_http_outcome_name(tl_http_outcome o) {
    static const char *const names[] = {"pending", "complete",  "closed_early", "timeout",   "stalled",
                                        "refused", "reset",     "too_large",    "cancelled", "protocol_error"};
    return (size_t)o < TL_COUNT(names) ? names[o] : "unknown";
}

/* ---- preparing ------------------------------------------------------------------------------------------------ */

static bool is_loopback(const char *host) {
    return curl_strequal(host, "localhost") || tl_str_ends(host, ".localhost") || tl_str_starts(host, "127.") ||
           tl_str_eq(host, "::1");
}

/* Is `host` the name of `k` bytes, or below it? A leading dot makes no difference. */
static bool host_matches(const char *host, const char *name, size_t k) {
    const size_t h = strlen(host);
    if (k == 1 && *name == '*') return true;
    if (k > 0 && *name == '.') name++, k--;
    if (k == 0 || k > h || !curl_strnequal(host + h - k, name, k)) return false;
    return k == h || host[h - k - 1] == '.';
}

/* no_proxy as everybody reads it: "*", or a list of names that match as suffixes. */
static bool proxy_excluded(const char *host) {
    const char *list = tl_env("no_proxy");
    if (list == NULL) list = tl_env("NO_PROXY");
    while (list != NULL && *list != '\0') {
        const size_t n = strcspn(list, ", ");
        if (host_matches(host, list, n)) return true;
        list += n + (list[n] != '\0');
    }
    return false;
}

/* The variable libcurl would obey for this URL goes into the log, without user and password. */
static void find_proxy(tl_http_req *r, bool https) {
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};
    const char *const *names = https ? tls : plain;
    if (is_loopback(r->host) || proxy_excluded(r->host)) return;
    for (; *names != NULL; names++) {
        const char *value = tl_env(*names);
        if (value == NULL) continue;
        const char *scheme = strstr(value, "://");
        const size_t n = scheme ? (size_t)(scheme - value) + 3 : 0;
        const char *at = strrchr(value, '@');
        snprintf(r->log.proxy, sizeof r->log.proxy, "%s=%.*s%s", *names, (int)n, value, at ? at + 1 : value + n);
        return;
    }
}

static tl_status take_url(tl_http_req *r, const char *url, tl_err *e) {
    tl_status st = TL_OK;
    char *scheme = NULL, *host = NULL, *port = NULL;
    CURLU *u = curl_url();
    if (u == NULL || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
        TRY(tl_fail(e, TL_INVALID, "not a URL: '%s'", url));
    }
    if (!tl_str_eq(scheme, "http") && !tl_str_eq(scheme, "https"))
        TRY(tl_fail(e, TL_INVALID, "URL '%s': scheme '%s' is neither http nor https", url, scheme));
    r->url = tl_xstrdup(url);
    const size_t n = strlen(host);
    r->host = host[0] == '[' && n > 2 ? tl_xstrndup(host + 1, n - 2) : tl_xstrdup(host);
    snprintf(r->port, sizeof r->port, "%s", port);
    find_proxy(r, tl_str_eq(scheme, "https"));
out:
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return st;
}

static bool line_is(const char *line, const char *name) {
    const size_t k = strlen(name);
    return curl_strnequal(line, name, k) && line[k] == ':';
}

static tl_status take_headers(tl_http_req *r, const tl_http_spec *spec, tl_err *e) {
    bool typed = false;
    r->headers = curl_slist_append(NULL, "Expect:"); /* no waiting for 100 Continue inside the measured time */
    for (const char *const *h = spec->headers; h != NULL && *h != NULL; h++) {
        if (strpbrk(*h, "\r\n") != NULL || strchr(*h, ':') == NULL || **h == ':')
            return tl_fail(e, TL_INVALID, "not a header line: '%s'", *h);
        if (line_is(*h, "accept-encoding"))
            return tl_fail(e, TL_INVALID, "header '%s': a compressed stream has no arrival times", *h);
        typed = typed || line_is(*h, "content-type");
        r->headers = curl_slist_append(r->headers, *h);
    }
    if (spec->offer_gzip) r->headers = curl_slist_append(r->headers, "Accept-Encoding: gzip");
    if (spec->body != NULL && !typed) r->headers = curl_slist_append(r->headers, "Content-Type: application/json");
    return TL_OK;
}

static curl_socket_t on_open_socket(void *req, curlsocktype purpose, struct curl_sockaddr *a) {
    tl_http_req *r = req;
    if (r->by_curl) return purpose == CURLSOCKTYPE_IPCXN ? socket(a->family, a->socktype, a->protocol) : CURL_SOCKET_BAD;
    if (r->fd_given || r->fd < 0) return CURL_SOCKET_BAD; /* a second connection would be a silent resend */
    r->fd_given = true;
    const int fd = r->fd;
    r->fd = -1; /* libcurl's from here on */
    return fd;
}

static int on_socket_option(void *req, curl_socket_t fd, curlsocktype purpose) {
    const tl_http_req *r = req;
    TL_UNUSED(fd);
    TL_UNUSED(purpose);
    return r->by_curl ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* The connection is usable and the request comes next. */
static int on_ready(void *req, char *peer_ip, char *own_ip, int peer_port, int own_port) {
    tl_http_req *r = req;
    TL_UNUSED(own_ip);
    TL_UNUSED(own_port);
    r->log.t_ready_ns = tl_clock_now();
    if (r->by_curl) {
        if (r->log.t_connected_ns == 0) r->log.t_connected_ns = r->log.t_ready_ns;
        snprintf(r->log.peer, sizeof r->log.peer, strchr(peer_ip, ':') ? "[%s]:%d" : "%s:%d", peer_ip, peer_port);
    }
    return CURL_PREREQFUNC_OK;
}

static void set_callbacks(tl_http_req *r) {
    CURL *c = r->easy;
    curl_easy_setopt(c, CURLOPT_PRIVATE, r);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->curl_error);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, tl_http_on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, tl_http_on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(c, CURLOPT_DEBUGFUNCTION, tl_http_on_debug);
    curl_easy_setopt(c, CURLOPT_DEBUGDATA, r);
    curl_easy_setopt(c, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, r);
    curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_socket_option);
    curl_easy_setopt(c, CURLOPT_SOCKOPTDATA, r);
    curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, on_ready);
    curl_easy_setopt(c, CURLOPT_PREREQDATA, r);
}

static void set_options(tl_http_req *r, const tl_http_spec *spec) {
    CURL *c = r->easy;
    curl_easy_setopt(c, CURLOPT_URL, r->url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->headers);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 65536L);
    if (r->log.proxy[0] == '\0') curl_easy_setopt(c, CURLOPT_PROXY, "");
    if (!r->keep_alive) {
        curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
    }
    if (spec->insecure) {
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (spec->ca_file != NULL) curl_easy_setopt(c, CURLOPT_CAINFO, spec->ca_file);
    if (r->body != NULL) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->body_len);
    }
    if (tl_str_eq(spec->method, "HEAD")) curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    else if (spec->method != NULL) curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, spec->method);
}

tl_status tl_http_prepare_req(tl_http_req **out, tl_http_loop *loop, const tl_http_spec *spec, bool touch, tl_err *e) {
    tl_status st = TL_OK;
    tl_http_req *r = tl_xalloc(sizeof *r);
    r->loop = loop;
    r->fd = -1;
    r->keep_alive = spec->keep_alive;
    r->total_ns = spec->total_ns;
    r->connect_ns = spec->connect_ns;
    r->first_byte_ns = spec->first_byte_ns;
    r->stall_ns = spec->stall_ns;
    r->on_done = spec->on_done;
    r->ctx = spec->ctx;
    if (spec->url == NULL) TRY(tl_fail(e, TL_INVALID, "a request without a URL"));
    TRY(take_url(r, spec->url, e));
    TRY(take_headers(r, spec, e));
    r->by_curl = r->keep_alive || r->log.proxy[0] != '\0';
    if (spec->body != NULL) {
        r->body = tl_xalloc(spec->body_len + 1);
        memcpy(r->body, spec->body, spec->body_len);
    }
    tl_http_log_init(r, spec->max_body ? spec->max_body : 4u << 20, spec->max_reads ? spec->max_reads : 65536, touch);
    r->easy = curl_easy_init();
    if (r->easy == NULL) TRY(tl_fail(e, TL_INTERNAL, "libcurl gives no handle"));
    set_callbacks(r);
    set_options(r, spec);
    *out = r;
    r = NULL;
out:
    tl_http_free(r);
    return st;
}

tl_status tl_http_prepare(tl_http_req **out, tl_http_loop *loop, const tl_http_spec *spec, tl_err *e) {
    return tl_http_prepare_req(out, loop, spec, true, e);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

void tl_http_start(tl_http_req *r, uint64_t t_intended_ns) {
    if (r->state != REQ_NEW) return;
    if (!r->by_curl && !r->connecting && !r->connected && !r->open_failed) tl_http_open(r);
    r->log.t_start_ns = tl_clock_now();
    r->log.t_intended_ns = t_intended_ns ? t_intended_ns : r->log.t_start_ns;
    r->log.preopened = r->connected;
    r->state = REQ_WAITING;
    r->loop->n_running++;
    if (!r->linked) tl_http_list_add(&r->loop->active, r);
    if (r->loop->cancelling) {
        r->on_done = NULL;
        tl_http_end(r, TL_HTTP_ABANDONED, "cancelled");
    } else if (r->open_failed) {
        char why[sizeof r->log.error];
        memcpy(why, r->log.error, sizeof why);
        tl_http_end(r, r->open_failed, why);
    } else if (r->by_curl || r->connected) {
        tl_http_launch(r);
    }
}

void tl_http_launch(tl_http_req *r) {
    r->state = REQ_RUNNING;
    r->in_multi = true;
    if (r->by_curl) r->log.t_connect_start_ns = tl_clock_now();
    const CURLMcode code = curl_multi_add_handle(r->loop->multi, r->easy);
    if (code != CURLM_OK) {
        r->in_multi = false;
        tl_http_end(r, TL_HTTP_PROTOCOL, curl_multi_strerror(code));
        return;
    }
    /* Not by way of the loop's timer: the request leaves now. */
    tl_http_loop_step(r->loop, CURL_SOCKET_TIMEOUT, 0);
}

void tl_http_opened(tl_http_req *r) {
    if (r->state == REQ_NEW) {
        if (r->linked) tl_http_list_drop(r);
        return;
    }
    if (r->state != REQ_WAITING) return;
    if (!r->open_failed) {
        tl_http_launch(r);
        return;
    }
    char why[sizeof r->log.error];
    memcpy(why, r->log.error, sizeof why);
    tl_http_end(r, r->open_failed, why);
}

/* Has `limit_ns` (0 = none) gone by since `from_ns` (0 = not begun)? */
static bool gone_by(uint64_t now, uint64_t from_ns, uint64_t limit_ns) {
    return limit_ns != 0 && from_ns != 0 && now > from_ns && now - from_ns >= limit_ns;
}

/* A limit that has passed; the reason is static text. */
bool tl_http_over_limit(tl_http_req *r, uint64_t now, tl_http_outcome *outcome, const char **why) {
    const tl_http_log *log = &r->log;
    const bool ready = log->t_ready_ns != 0 || r->connected;
    const bool answering = log->t_first_byte_ns != 0;
    *why = NULL;
    *outcome = TL_HTTP_TIMED_OUT;
    if (gone_by(now, log->t_start_ns, r->total_ns)) *why = "no end of the response within the time limit";
    else if (!ready && gone_by(now, log->t_connect_start_ns, r->connect_ns)) *why = "no connection within the time limit";
    if (*why != NULL) return true;
    *outcome = TL_HTTP_STALLED;
    if (answering && gone_by(now, r->t_last_read_ns, r->stall_ns)) *why = "the stream fell silent";
    if (!answering && gone_by(now, log->t_sent_ns, r->first_byte_ns)) *why = "no byte of the body within the time limit";
    return *why != NULL;
}

/* ---- ending ---------------------------------------------------------------------------------------------------- */

static void collect_facts(tl_http_req *r) {
    long connects = 0;
    if (r->easy != NULL) curl_easy_getinfo(r->easy, CURLINFO_NUM_CONNECTS, &connects);
    r->log.connects = (uint32_t)connects + (r->log.reused ? 1u : 0u);
    const bool has_body = r->log.status >= 200 && r->log.status != 204 && r->log.status != 304;
    r->log.ended_by_close = r->log.t_headers_ns && has_body && !r->has_length && r->log.transfer_encoding[0] == '\0';
}

void tl_http_end(tl_http_req *r, tl_http_outcome outcome, const char *error) {
    if (r->state == REQ_ENDED) return;
    r->log.t_close_ns = tl_clock_now();
    if (r->state != REQ_NEW) r->loop->n_running--;
    collect_facts(r);
    if (r->in_multi) curl_multi_remove_handle(r->loop->multi, r->easy);
    r->in_multi = false;
    tl_http_close_socket(r);
    r->state = REQ_ENDED;
    r->log.outcome = outcome;
    snprintf(r->log.error, sizeof r->log.error, "%s", error);
    for (char *c = r->log.error; *c != '\0'; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    r->buffer[r->log.body_len] = '\0';
    if (r->linked) tl_http_list_drop(r);
    tl_http_list_add(&r->loop->done, r);
}

static tl_http_outcome outcome_of(const tl_http_req *r, CURLcode code) {
    if (r->overflow) return TL_HTTP_TOO_LARGE;
    switch (code) {
    case CURLE_OK: return r->log.t_headers_ns ? TL_HTTP_COMPLETE : TL_HTTP_CLOSED_EARLY;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING: return TL_HTTP_CLOSED_EARLY;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return TL_HTTP_REFUSED;
    case CURLE_OPERATION_TIMEDOUT: return TL_HTTP_TIMED_OUT;
    case CURLE_SEND_ERROR: return TL_HTTP_RESET;
    case CURLE_RECV_ERROR: /* also what libcurl says to a malformed chunk; only its words tell */
        return strstr(r->curl_error, "chunk") != NULL ? TL_HTTP_PROTOCOL : TL_HTTP_RESET;
    default: return TL_HTTP_PROTOCOL;
    }
}

void tl_http_end_curl(tl_http_req *r, CURLcode code) {
    const tl_http_outcome o = outcome_of(r, code);
    char why[sizeof r->log.error] = "";
    if (o == TL_HTTP_TOO_LARGE)
        snprintf(why, sizeof why, "the response is larger than the log made for it (%zu bytes in %zu reads at most)",
                 r->max_body, r->max_reads);
    else if (o != TL_HTTP_COMPLETE)
        snprintf(why, sizeof why, "%s", r->curl_error[0]   ? r->curl_error
                                        : code == CURLE_OK ? "the peer closed inside the response's headers"
                                                           : curl_easy_strerror(code));
    tl_http_end(r, o, why);
}

void tl_http_cancel(tl_http_req *r) {
    if (r->state == REQ_WAITING || r->state == REQ_RUNNING) tl_http_end(r, TL_HTTP_ABANDONED, "cancelled");
}

bool tl_http_is_done(const tl_http_req *r) {
    return r->state == REQ_ENDED;
}

const tl_http_log *tl_http_result(const tl_http_req *r) {
    return &r->log;
}

void *tl_http_ctx(const tl_http_req *r) {
    return r->ctx;
}

void tl_http_free(tl_http_req *r) {
    if (r == NULL) return;
    if (r->state == REQ_WAITING || r->state == REQ_RUNNING) tl_http_end(r, TL_HTTP_ABANDONED, "freed");
    if (r->linked) tl_http_list_drop(r);
    tl_http_close_socket(r);
    if (r->easy != NULL) curl_easy_cleanup(r->easy);
    if (r->addresses != NULL) freeaddrinfo(r->addresses);
    curl_slist_free_all(r->headers);
    curl_slist_free_all(r->resolve);
    free(r->url);
    free(r->host);
    free(r->body);
    free(r->buffer);
    free(r->reads);
    free(r);
}

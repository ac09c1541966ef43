/* The pre-opened connection: a non-blocking connect that the loop finishes, so that opening one never delays the reads
 * of others. os's tl_tcp_connect waits, which is right for one connection and wrong between streams. */
#include "http/http_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void tl_http_close_socket(tl_http_req *r) {
    if (r->connect_event != NULL) {
        event_free(r->connect_event);
        r->connect_event = NULL;
    }
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
    r->connecting = r->connected = false;
}

static void open_failed(tl_http_req *r, tl_http_outcome o, const char *why) {
    tl_http_close_socket(r);
    r->open_failed = o;
    snprintf(r->log.error, sizeof r->log.error, "cannot connect to %s port %s: %s", r->host, r->port, why);
    r->log.t_close_ns = tl_clock_now();
    tl_http_opened(r);
}

/* A socket in the state that the measurement needs, or -1. */
static int make_socket(const struct addrinfo *a) {
    int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0) return -1;
    const int on = 1;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void record_peer(tl_http_req *r) {
    char host[48], port[8];
    if (getnameinfo(r->address->ai_addr, r->address->ai_addrlen, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    const bool six = strchr(host, ':') != NULL;
    snprintf(r->log.peer, sizeof r->log.peer, six ? "[%s]:%s" : "%s:%s", host, port);
    /* So that libcurl neither looks the name up again nor prefers another of its addresses. */
    curl_slist_free_all(r->resolve);
    char *entry = tl_xprintf(six ? "+%s:%s:[%s]" : "+%s:%s:%s", r->host, r->port, host);
    r->resolve = curl_slist_append(NULL, entry);
    free(entry);
    curl_easy_setopt(r->easy, CURLOPT_RESOLVE, r->resolve);
}

static void stands(tl_http_req *r) {
    r->log.t_connected_ns = tl_clock_now();
    if (r->connect_event != NULL) {
        event_free(r->connect_event);
        r->connect_event = NULL;
    }
    r->connecting = false;
    r->connected = true;
    record_peer(r);
    tl_http_opened(r);
}

static void try_address(tl_http_req *r);

/* The socket became writable: 0 or the errno of the attempt. */
static int attempt_result(const tl_http_req *r) {
    int err = 0;
    socklen_t n = sizeof err;
    if (getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0) err = errno;
    return err;
}

static void attempt_ended(tl_http_req *r, int err) {
    if (err == 0) {
        stands(r);
        return;
    }
    tl_http_close_socket(r);
    r->address = r->address->ai_next;
    if (r->address == NULL)
        open_failed(r, TL_HTTP_REFUSED, strerror(err));
    else
        try_address(r);
}

static void on_connect_event(evutil_socket_t fd, short what, void *ctx) {
    TL_UNUSED(fd);
    TL_UNUSED(what);
    tl_http_req *r = ctx;
    attempt_ended(r, attempt_result(r));
}

static void try_address(tl_http_req *r) {
    r->fd = make_socket(r->address);
    if (r->fd < 0) {
        attempt_ended(r, errno);
        return;
    }
    r->connecting = true;
    if (connect(r->fd, r->address->ai_addr, r->address->ai_addrlen) < 0 && errno != EINPROGRESS) {
        attempt_ended(r, errno);
        return;
    }
    /* On loopback the handshake has run inside connect(): no need to go through the loop. */
    struct pollfd p = {.fd = r->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) == 1) {
        attempt_ended(r, attempt_result(r));
        return;
    }
    r->connect_event = event_new(r->loop->base, r->fd, EV_WRITE, on_connect_event, r);
    if (r->connect_event == NULL || event_add(r->connect_event, NULL) != 0)
        open_failed(r, TL_HTTP_REFUSED, "the event loop does not take the socket");
}

bool tl_http_is_open(const tl_http_req *r) {
    if (!r->connected || r->fd < 0) return r->connected && r->fd_given;
    char c;
    const ssize_t n = recv(r->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void tl_http_open(tl_http_req *r) {
    if (r->by_curl || r->state != REQ_NEW || r->connecting || tl_http_is_open(r)) return;
    tl_http_close_socket(r);
    r->open_failed = TL_HTTP_PENDING;
    r->log.error[0] = '\0';
    r->log.t_connected_ns = r->log.t_close_ns = 0;
    r->log.t_connect_start_ns = tl_clock_now();
    if (r->addresses == NULL) {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
        const int err = getaddrinfo(r->host, r->port, &hints, &r->addresses);
        if (err != 0) {
            r->addresses = NULL;
            open_failed(r, TL_HTTP_REFUSED, gai_strerror(err));
            return;
        }
    }
    r->log.t_connect_start_ns = tl_clock_now(); /* the lookup is not part of the connection's time */
    r->address = r->addresses;
    if (!r->linked) tl_http_list_add(&r->loop->active, r);
    try_address(r);
}

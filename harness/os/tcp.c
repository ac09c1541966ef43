/* TCP: free ports and connections made ahead of time. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/os_impl.h"

static struct sockaddr_in loopback(uint16_t port) {
    struct sockaddr_in a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static int new_socket(int family) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd >= 0 && !os_cloexec(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

tl_status tl_tcp_free_port(uint16_t *out, tl_err *e) {
    struct sockaddr_in a = loopback(0);
    socklen_t n = sizeof a;
    int fd = new_socket(AF_INET);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
              getsockname(fd, (struct sockaddr *)&a, &n) == 0;
    int err = errno;
    tl_fd_close(fd);
    if (!ok) return tl_fail(e, TL_IO, "cannot find a free port on 127.0.0.1: %s", strerror(err));
    *out = ntohs(a.sin_port);
    return TL_OK;
}

/* Asks by connecting: binding would also fail for ports that are only in TIME_WAIT. */
bool tl_tcp_port_in_use(uint16_t port) {
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    for (size_t i = 0; i < TL_COUNT(hosts); i++) {
        int fd;
        if (tl_tcp_connect(&fd, hosts[i], port, 500 * TL_MS, NULL, NULL) == TL_OK) {
            tl_fd_close(fd);
            return true;
        }
    }
    return false;
}

/* 0, or an errno. */
static int connect_one(int *fd_out, const struct addrinfo *ai, tl_ns end, tl_ns *connected_at) {
    int fd = new_socket(ai->ai_family), on = 1;
    if (fd < 0) return errno;
    int err = 0, flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        err = errno;
    else if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0)
        err = errno;
    while (err == EINPROGRESS || err == EINTR) {
        tl_ns now = os_now();
        if (now >= end) {
            err = ETIMEDOUT;
            break;
        }
        tl_ns left = end - now < TL_S ? end - now : TL_S;
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (poll(&p, 1, (int)((left + TL_MS - 1) / TL_MS)) <= 0) continue;
        socklen_t n = sizeof err;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) != 0) err = errno;
    }
    if (err != 0) {
        close(fd);
        return err;
    }
    if (connected_at) *connected_at = tl_clock_now();
    *fd_out = fd;
    return 0;
}

static tl_status connect_failed(const char *host, uint16_t port, int err, tl_err *e) {
    bool late = err == ETIMEDOUT;
    tl_fail(e, late ? TL_TIMEOUT : TL_HTTP, "cannot connect to %s port %u: %s", host, port, strerror(err));
    if (err == ECONNREFUSED) tl_remedy(e, "nothing listens there: check the port, or start the server");
    return late ? TL_TIMEOUT : TL_HTTP;
}

tl_status tl_tcp_connect(int *fd_out, const char *host, uint16_t port, tl_ns timeout, tl_ns *connected_at,
                         tl_err *e) {
    *fd_out = -1;
    size_t n = strlen(host);
    bool bracketed = n > 2 && host[0] == '[' && host[n - 1] == ']'; /* as IPv6 addresses stand in URLs */
    char *name = bracketed ? tl_xstrndup(host + 1, n - 2) : tl_xstrdup(host);
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV},
                    *list = NULL;
    int rc = getaddrinfo(name, service, &hints, &list);
    free(name);
    if (rc != 0) {
        tl_fail(e, TL_HTTP, "cannot find the host '%s': %s", host, gai_strerror(rc));
        tl_remedy(e, "check the spelling of the host name, and the network");
        return TL_HTTP;
    }
    tl_ns start = os_now(), end = timeout < UINT64_MAX - start ? start + timeout : UINT64_MAX;
    int err = EHOSTUNREACH;
    for (struct addrinfo *ai = list; ai && err != 0; ai = ai->ai_next)
        err = connect_one(fd_out, ai, end, connected_at);
    freeaddrinfo(list);
    return err == 0 ? TL_OK : connect_failed(host, port, err, e);
}

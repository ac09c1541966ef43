/* Shared inside http: the request, the loop, and the callbacks that run while bytes arrive. */
#ifndef TL_HTTP_IMPL_H
#define TL_HTTP_IMPL_H

#include "http/http.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <netdb.h>

#include "os/os.h"

typedef enum req_state {
    REQ_NEW,     /* prepared, perhaps connecting or connected */
    REQ_WAITING, /* started, the connection does not stand yet */
    REQ_RUNNING, /* libcurl has it */
    REQ_ENDED,   /* log final, on_done may be due */
} req_state;

typedef struct tl_http_link {
    struct tl_http_link *prev, *next;
} tl_http_link;

struct tl_http_req {
    tl_http_link link; /* first: in loop->active, loop->done or alone */
    tl_http_loop *loop;
    CURL *easy;
    struct curl_slist *headers, *resolve;
    char *url, *body, *host;
    char port[8];
    req_state state;
    bool keep_alive;
    bool by_curl; /* libcurl connects: keep_alive or a proxy */
    bool in_multi;
    bool linked;
    uint64_t total_ns, connect_ns, first_byte_ns, stall_ns;
    void (*on_done)(tl_http_req *req, void *ctx);
    void *ctx;

    int fd; /* the pre-opened connection until libcurl takes it; -1 */
    bool connecting, connected, fd_given;
    struct addrinfo *addresses, *address; /* all, and the one being tried */
    struct event *connect_event;
    tl_http_outcome open_failed; /* the outcome to report at start, or 0 */

    /* written while bytes arrive */
    tl_http_log log;
    tl_http_read *reads;
    size_t max_reads, max_body;
    char *buffer;
    uint64_t t_last_read_ns;
    bool has_length, overflow;
    char curl_error[CURL_ERROR_SIZE];
};

typedef struct tl_http_timer {
    struct tl_http_timer *next;
    struct event *event;
    tl_http_loop *loop;
    uint64_t when_ns;
    void (*fn)(void *ctx);
    void *ctx;
} tl_http_timer;

struct tl_http_loop {
    struct event_base *base;
    CURLM *multi;
    struct event *multi_timer, *tick, *deadline;
    tl_http_link active; /* connecting, waiting or running */
    tl_http_link done;   /* ended, on_done not called yet */
    tl_http_timer *timers;
    size_t n_running;
    uint32_t wake;
    bool cancelling;
};

/* libcurl's callbacks. on_body is the read path: it allocates nothing, and a test proves it. */
size_t tl_http_on_body(char *p, size_t size, size_t n, void *req);
size_t tl_http_on_header(char *p, size_t size, size_t n, void *req);
int tl_http_on_debug(CURL *easy, curl_infotype type, char *p, size_t n, void *req);
void tl_http_log_init(tl_http_req *r, size_t max_body, size_t max_reads, bool touch);

tl_status tl_http_prepare_req(tl_http_req **out, tl_http_loop *loop, const tl_http_spec *spec, bool touch, tl_err *e);
/* The connection attempt has come to an end: connected, or open_failed is set. */
void tl_http_opened(tl_http_req *r);
void tl_http_close_socket(tl_http_req *r);
/* Final state of the log; takes it off libcurl; on_done becomes due. */
void tl_http_end(tl_http_req *r, tl_http_outcome outcome, const char *error);
void tl_http_end_curl(tl_http_req *r, CURLcode code);
void tl_http_list_add(tl_http_link *list, tl_http_req *r);
void tl_http_list_drop(tl_http_req *r);
bool tl_http_over_limit(tl_http_req *r, uint64_t now, tl_http_outcome *outcome, const char **why);
/* Gives libcurl a started request whose connection stands (or that libcurl connects itself). */
void tl_http_launch(tl_http_req *r);
void tl_http_loop_step(tl_http_loop *loop, curl_socket_t fd, int bits);

#endif

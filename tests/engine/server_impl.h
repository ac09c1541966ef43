/* Shared by the parts of the scripted engine: the parsed stream, the connection, the record of a request. */
#ifndef TL_TEST_SCRIPT_SERVER_IMPL_H
#define TL_TEST_SCRIPT_SERVER_IMPL_H

#include "server.h"

#include <event2/event.h>
#include <pthread.h>

typedef enum close_kind {
    CLOSE_END,
    CLOSE_CLOSE,
    CLOSE_RESET,
    CLOSE_HTTP10,
    CLOSE_LENGTH,
    CLOSE_SHORT,
    CLOSE_LIAR,
    CLOSE_BAD_CHUNK,
    CLOSE_HANG,
} close_kind;

typedef struct script_write {
    uint64_t delay_ns;
    size_t offset, len; /* into stream->bytes: as it goes on the wire, chunk framing included */
    size_t text_len;
} script_write;

/* Immutable once made; shared by connections and paths. */
typedef struct script_stream {
    int refs; /* under the server's lock */
    char *head; /* status line and headers */
    size_t head_len;
    char *bytes;
    script_write *writes;
    size_t n_writes;
    uint64_t head_delay_ns, close_delay_ns;
    close_kind close;
    bool raw;
} script_stream;

tl_status script_stream_parse(script_stream **out, const json_t *j, tl_err *e);
script_stream *script_stream_plain(int status, const char *type, const char *body); /* a complete short answer */
void script_stream_free(script_stream *s);

typedef struct script_conn script_conn;

typedef struct script_path {
    char *path; /* NULL: any */
    script_stream *stream;
} script_path;

struct tl_script_server {
    pthread_t thread;
    struct event_base *base;
    struct event *accept_event, *wake_event;
    int listen_fd, wake_fd[2];
    uint16_t port;
    char url[32];
    uint32_t spin_us, stall_ms;
    size_t stall_at;
    FILE *log;
    script_conn *conns;
    size_t n_playing; /* server thread */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    bool stop;
    script_path *paths;
    size_t n_paths, cap_paths;
    uint32_t health_503;
    tl_script_request **requests;
    size_t n_requests, cap_requests, n_connections, n_open;
};

/* One connection; plays one request at a time. */
struct script_conn {
    script_conn *prev, *next;
    tl_script_server *server;
    int fd;
    size_t number, n_requests;
    uint64_t t_accepted_ns;
    struct event *read_event, *write_event, *timer;
    tl_buf in; /* bytes of the next request */
    /* playing */
    script_stream *stream;
    tl_script_request *request; /* owned by the server's list */
    size_t step;                /* 0 = head, 1.. = writes, then the end */
    const char *out;            /* rest of the step that the kernel has not taken */
    size_t out_len;
};

void script_conn_accept(tl_script_server *s, int fd, size_t number);
void script_conn_free(script_conn *c);

/* Finds what `path` answers; takes a reference. Never NULL. */
script_stream *script_server_lookup(tl_script_server *s, const char *method, const char *path, const char *body);
void script_server_release(tl_script_server *s, script_stream *stream);
/* Puts the request into the list; from then on its times are written under the lock. */
void script_server_record(tl_script_server *s, tl_script_request *r);
void script_server_ended(tl_script_server *s, tl_script_request *r, bool client_left);

#endif

/* http: timed, streamed HTTP requests over libcurl and libevent, the raw log of what arrived when, and splitters
 * (SSE, NDJSON) that work on stored bytes after the fact.
 *
 * Not for: what the bytes mean (engine's dialects), when to send what (load), statistics (sample).
 * Owner of: libcurl and libevent.
 * Threads: one tl_http_loop per thread; a loop and its requests belong to the thread that made them. Nothing is
 * global. Make the first loop before other threads start (libcurl before 7.84 initialises itself without a lock).
 * Signals: the process must ignore SIGPIPE (TLS sockets can raise it).
 *
 * Life of a request: tl_http_prepare (allocates and touches the whole log) -> tl_http_open (TCP connection, before the
 * intended time) -> tl_http_start -> tl_http_loop_run ... on_done -> tl_http_result -> tl_http_free.
 * While bytes arrive there is no allocation, lock, output or parsing of ours: one clock read, one copy, one record.
 */
#ifndef TL_HTTP_H
#define TL_HTTP_H

#include "base/base.h"

typedef struct tl_http_loop tl_http_loop;
typedef struct tl_http_req tl_http_req;

/* ---- what arrived, and when (all times: tl_clock_now, ns; 0 = did not happen) -------------------------------- */

typedef enum tl_http_outcome {
    TL_HTTP_PENDING = 0,
    TL_HTTP_COMPLETE,     /* the body ended as HTTP says it must (see ended_by_close for the weakest form) */
    TL_HTTP_CLOSED_EARLY, /* the peer closed before the end of headers or body */
    TL_HTTP_TIMED_OUT,    /* total or connect limit */
    TL_HTTP_STALLED,      /* silence longer than the stall (or first byte) limit */
    TL_HTTP_REFUSED,      /* no connection: refused, unreachable, name unknown */
    TL_HTTP_RESET,        /* connection reset or broken pipe */
    TL_HTTP_TOO_LARGE,    /* the pre-allocated log is full: what is stored is intact, what came after is not stored */
    TL_HTTP_ABANDONED,    /* cancelled by us */
    TL_HTTP_PROTOCOL,     /* not HTTP, bad chunk, TLS failure */
} tl_http_outcome;
const char *tl_http_outcome_name(tl_http_outcome o); /* "complete", "closed_early", "timeout", ... stable */

typedef struct tl_http_read {
    uint64_t t_ns;   /* when the bytes were handed to us, straight after recv() */
    uint64_t offset; /* into the body */
    uint32_t len;
    uint32_t wake;   /* number of the loop's wake-up: reads with the same number arrived together, and the
                        difference of their times says nothing about the sender */
} tl_http_read;

typedef struct tl_http_log {
    uint64_t t_intended_ns;
    uint64_t t_connect_start_ns;
    uint64_t t_connected_ns;  /* TCP established */
    uint64_t t_start_ns;      /* handed to libcurl */
    uint64_t t_ready_ns;      /* connection usable: equals about t_start for a pre-opened one; after TLS for https */
    uint64_t t_sent_ns;       /* the last byte of the request was accepted by the kernel */
    uint64_t t_headers_ns;    /* the response's header block was complete */
    uint64_t t_first_byte_ns; /* first byte of the body */
    uint64_t t_close_ns;      /* end of the response, or of the wait for it */

    const tl_http_read *reads;
    size_t n_reads;
    const char *body; /* NUL-terminated; chunk framing removed, nothing else */
    size_t body_len;

    int status;       /* 0: no status line arrived */
    int http_version; /* 10, 11, 20; 0 unknown */
    uint32_t connects;     /* connections the request was tried on: 1 unless something is wrong (2: silently resent) */
    bool reused;           /* an old connection was tried (only with spec.keep_alive) */
    bool preopened;        /* the connection stood before the request was started */
    bool ended_by_close;   /* no length and not chunked: complete and cut off cannot be told apart */
    bool announced_keep_alive; /* the peer said it would keep the connection (not to be believed) */
    char content_type[96];
    char content_encoding[32]; /* set = a proxy or engine compressed: arrival times of tokens are not to be trusted */
    char transfer_encoding[32];
    char server[64];
    char location[256]; /* of a redirect, which is reported and never followed */
    char retry_after[32];
    char proxy[160]; /* "http_proxy=http://host:port" when the environment names one for this non-loopback host */
    char peer[64];   /* address and port that answered */

    tl_http_outcome outcome;
    char error[256]; /* one line; empty when complete */
} tl_http_log;

/* ---- requests -------------------------------------------------------------------------------------------------- */

typedef struct tl_http_spec {
    const char *url;    /* http:// or https:// */
    const char *method; /* NULL: POST when body is set, else GET */
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL. Accept-Encoding is refused. */
    const char *body;   /* bytes as they go on the wire; copied at prepare */
    size_t body_len;
    uint64_t total_ns;      /* from start to the end; 0 = no limit (same below) */
    uint64_t connect_ns;
    uint64_t first_byte_ns; /* from sent to the first byte of the body */
    uint64_t stall_ns;      /* silence after the first byte */
    size_t max_body;  /* room for body bytes; 0 = 4 MiB. All of it is allocated and touched at prepare. */
    size_t max_reads; /* room for reads; 0 = 65536 */
    bool keep_alive;  /* let libcurl reuse a connection of this loop. For measuring the trap, not for measuring. */
    bool offer_gzip;  /* send "Accept-Encoding: gzip", to see whether something on the way compresses; what comes is kept as it
                         came. For finding the trap, not for measuring. */
    bool insecure;    /* https: do not verify the certificate */
    const char *ca_file; /* https: trust this PEM file instead of the system's; may be NULL */
    /* Called once, from tl_http_loop_run, never inside a read; may prepare, open, start and free any request. */
    void (*on_done)(tl_http_req *req, void *ctx);
    void *ctx;
} tl_http_spec;

tl_status tl_http_loop_new(tl_http_loop **out, tl_err *e) TL_MUST_USE;
/* NULL ok. Every request of it must have been freed. */
void tl_http_loop_free(tl_http_loop *loop);

/* Everything that can be wrong with the description is reported here (TL_INVALID). Later failures are outcomes in the
 * log, not errors. Strings of the spec are copied. */
tl_status tl_http_prepare(tl_http_req **out, tl_http_loop *loop, const tl_http_spec *spec, tl_err *e) TL_MUST_USE;
/* Begins the TCP connection and returns; on loopback it usually stands on return. Only a name lookup can block (numeric
 * addresses and localhost need none). A failure shows as the outcome after start. Without this call start opens.
 * Called again it replaces a connection that the peer has closed meanwhile, and leaves a good one alone. With keep_alive
 * or a proxy there is nothing to pre-open: libcurl connects. */
void tl_http_open(tl_http_req *req);
bool tl_http_is_open(const tl_http_req *req); /* stands, and the peer has not closed it */
/* `t_intended_ns`: when the schedule wanted it sent (0: now). The request goes out during this call or, when the
 * connection does not stand yet, as soon as it does. A request can be started once. */
void tl_http_start(tl_http_req *req, uint64_t t_intended_ns);
/* Ends it with TL_HTTP_ABANDONED; on_done follows from the loop. No effect on a finished or unstarted request. */
void tl_http_cancel(tl_http_req *req);
bool tl_http_is_done(const tl_http_req *req);
/* Valid until tl_http_free; final once done. Never NULL. */
const tl_http_log *tl_http_result(const tl_http_req *req);
void *tl_http_ctx(const tl_http_req *req);
/* NULL ok; also ends a running request, then without on_done. */
void tl_http_free(tl_http_req *req);

typedef struct tl_http_until {
    uint64_t deadline_ns;          /* 0 = none */
    bool (*cancelled)(void *ctx);  /* asked every 20 ms; may be NULL */
    void *ctx;
} tl_http_until;
/* Runs until no request is running or connecting and no timer is set (TL_OK), until the deadline (TL_TIMEOUT: requests
 * go on in the next call), or until cancelled (TL_CANCELLED: all running requests have been ended, on_done called;
 * timers are dropped; requests that on_done starts then are ended at once without on_done). `until` may be NULL. */
tl_status tl_http_loop_run(tl_http_loop *loop, const tl_http_until *until, tl_err *e) TL_MUST_USE;
/* Calls fn once at `when_ns` (never early) from tl_http_loop_run: how a schedule starts requests. */
void tl_http_loop_at(tl_http_loop *loop, uint64_t when_ns, void (*fn)(void *ctx), void *ctx);
size_t tl_http_loop_running(const tl_http_loop *loop);

/* ---- plain calls: health, props, tokenize. Blocking; never timed ------------------------------------------------ */

typedef struct tl_http_reply {
    int status; /* any status is a reply, 503 too */
    char *body; /* owned; NUL-terminated */
    size_t len;
    char content_type[96];
} tl_http_reply;
void tl_http_reply_free(tl_http_reply *r); /* zeroed struct ok, twice ok */

typedef struct tl_http_call { /* all optional; NULL for the defaults */
    uint64_t timeout_ns;      /* 0 = 10 s */
    size_t max_body;          /* 0 = 1 MiB */
    const char *const *headers;
    bool (*cancelled)(void *ctx);
    void *ctx;
} tl_http_call;
/* TL_HTTP: no reply (refused, reset, closed early); TL_TIMEOUT, TL_CANCELLED, TL_LIMIT, TL_INVALID. */
tl_status tl_http_get(tl_http_reply *out, const char *url, const tl_http_call *call, tl_err *e) TL_MUST_USE;
/* Sends `body` as application/json unless headers name a Content-Type. */
tl_status tl_http_post(tl_http_reply *out, const char *url, const char *body, const tl_http_call *call, tl_err *e)
    TL_MUST_USE;

/* ---- splitters: pure, over stored bytes -------------------------------------------------------------------------- */

typedef struct tl_split {
    const char *bytes;
    size_t len, pos;
    const tl_http_read *reads; /* may be NULL: then all times are 0 */
    size_t n_reads, read;      /* cursor */
    tl_buf joined;             /* scratch of multi-line data */
    size_t n_comments;         /* SSE comment lines seen (keep-alives) */
    size_t n_empty;            /* SSE events without data (dropped as the standard says), empty NDJSON lines */
} tl_split;

typedef struct tl_split_event {
    const char *data; /* not NUL-terminated; borrowed until the next call */
    size_t len;
    const char *name; /* SSE event name; NULL when none was given */
    size_t name_len;
    size_t start, end;  /* span of bytes in the body, terminator included */
    size_t read;        /* index of the read that delivered the byte which completed it */
    uint32_t wake;
    uint64_t t_ns;      /* arrival = time of that read */
    bool unterminated;  /* the bytes ended first: what is there is given, and may be cut */
} tl_split_event;

void tl_split_init(tl_split *s, const char *bytes, size_t len, const tl_http_read *reads, size_t n_reads);
void tl_split_log(tl_split *s, const tl_http_log *log); /* init from a finished request */
void tl_split_free(tl_split *s);                        /* twice ok */
/* Next event; false at the end. https://html.spec.whatwg.org/multipage/server-sent-events.html, plus the last event
 * without its blank line, which is flagged instead of dropped. */
bool tl_sse_next(tl_split *s, tl_split_event *out);
/* Next non-empty line, CR LF or LF. */
bool tl_ndjson_next(tl_split *s, tl_split_event *out);

#endif

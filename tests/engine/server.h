/* The scripted engine: an HTTP server on 127.0.0.1 that plays stream files and knows when it really wrote each byte.
 *
 * One thread of its own (libevent), any number of requests at once, TCP_NODELAY. Times are CLOCK_MONOTONIC ns, the same
 * clock as tl_clock_now, so a client in the same or another process can be compared with them directly.
 * As a program: tally-script-server (see server_main.c). Link tl_script_server to use it inside a test.
 *
 * A stream file is a JSON object:
 *   writes   [[delay_ms, "text" or {"b64": "..."}], ...]  delays count from the moment the request was fully received;
 *            each entry is one HTTP chunk (or one raw write without chunking). Fractions of a ms are allowed.
 *   close    how it ends, right after the last write (or at close_ms):
 *            "end" (default) last chunk, connection stays open     "close"  connection closed without the last chunk
 *            "reset"  RST without the last chunk                   "http10" HTTP/1.0, no chunks, ended by close
 *            "length" Content-Length instead of chunks, complete   "short"  Content-Length larger than what comes
 *            "liar"   last chunk, announces Keep-Alive, closes     "bad-chunk" a chunk size that is no number
 *            "hang"   nothing more until the client leaves
 *   status   200 by default     headers  {"Name": "value"} added (a Content-Type replaces the default)
 *   raw      true: the writes are the whole answer, status line included; nothing is added
 *   headers_ms  delay of the header block; 0 by default     close_ms  delay of the end
 *   Other members (name, why, dialect, request, expect) are not looked at here.
 * Content-Type defaults to text/event-stream, or application/x-ndjson when the dialect's name starts with "ollama".
 *
 * Built in unless a stream is set for the path: GET /health (503 {"status":"loading model"} as often as asked for, then
 * 200 {"status":"ok"}), POST /tokenize {"content": "a b"} -> {"tokens": [..one number a word..]}, GET /requests -> how
 * many requests were served. Anything else without a stream: 404 with a JSON error.
 */
#ifndef TL_TEST_SCRIPT_SERVER_H
#define TL_TEST_SCRIPT_SERVER_H

#include "base/base.h"

typedef struct tl_script_server tl_script_server;

typedef struct tl_script_options {
    uint16_t port;        /* 0 = any free one */
    const char *log_path; /* one JSON line a finished request; NULL = none */
    uint32_t health_503;  /* the first so many GET /health answer 503 */
    uint32_t spin_us;     /* busy wait before each write for exact times; 0 = 200, used while <= 4 requests play.
                             Without it a write is late by the kernel's wake-up time (and recorded as such) */
    bool no_spin;
    uint32_t stall_ms;    /* when request number stall_at (from 0) was received the server does nothing at all, for any
                             connection, for so long; 0 = never */
    size_t stall_at;
} tl_script_options;

typedef struct tl_script_request { /* a copy, free with tl_script_request_free */
    size_t index;              /* in order of being fully received */
    size_t connection;         /* number of the connection it came on, from 0 */
    size_t on_connection;      /* how many requests came on that connection before it */
    char *method, *path, *headers, *body; /* headers: raw block without the request line */
    size_t body_len;
    uint64_t t_accepted_ns;
    uint64_t t_received_ns;    /* last byte of the request was read: delays count from here */
    uint64_t t_headers_ns;
    size_t n_writes;           /* made so far */
    uint64_t *t_write_ns;      /* just before the kernel got the first byte of write i: no client can have it earlier */
    uint64_t *t_written_ns;    /* just after the kernel took its last byte */
    uint64_t t_end_ns;         /* end marker sent or connection closed; 0 = still playing */
    bool client_left;          /* the client went away before the end */
} tl_script_request;

/* `o` may be NULL. */
tl_status tl_script_server_start(tl_script_server **out, const tl_script_options *o, tl_err *e) TL_MUST_USE;
void tl_script_server_stop(tl_script_server *s); /* joins the thread, closes everything, frees; NULL ok */
uint16_t tl_script_server_port(const tl_script_server *s);
const char *tl_script_server_url(const tl_script_server *s); /* "http://127.0.0.1:PORT", borrowed */

/* Sets what `path` answers from now on (NULL: every path without its own, built-in ones included). Any thread. */
tl_status tl_script_server_play(tl_script_server *s, const char *path, const json_t *stream, tl_err *e) TL_MUST_USE;
tl_status tl_script_server_play_text(tl_script_server *s, const char *path, const char *json, tl_err *e) TL_MUST_USE;
tl_status tl_script_server_play_file(tl_script_server *s, const char *path, const char *file, tl_err *e) TL_MUST_USE;
void tl_script_server_health_503(tl_script_server *s, uint32_t times);

size_t tl_script_server_count(tl_script_server *s);       /* requests fully received so far */
size_t tl_script_server_connections(tl_script_server *s); /* accepted so far */
size_t tl_script_server_playing(tl_script_server *s);     /* requests not ended */
/* TL_NOT_FOUND when no such request came. */
tl_status tl_script_server_request(tl_script_request *out, tl_script_server *s, size_t index, tl_err *e) TL_MUST_USE;
/* Waits until request `index` came and ended; TL_TIMEOUT. */
tl_status tl_script_server_wait(tl_script_request *out, tl_script_server *s, size_t index, uint64_t timeout_ns,
                                tl_err *e) TL_MUST_USE;
void tl_script_request_free(tl_script_request *r); /* zeroed struct ok, twice ok */
uint64_t tl_script_now_ns(void);

/* Adds the bytes of one write, "text" or {"b64": "..."}, to `out`; false when it is neither. */
bool tl_script_text(tl_buf *out, const json_t *text);

#endif

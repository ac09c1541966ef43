/* endpoint: a running server or proxy, looked at with a few short streams: how it writes them, and what of that stands in
 * the way of measuring it. Nothing is stored and nothing of the server is changed.
 *
 * A habit is a row of data: a name, how one answer shows it, and what tally cannot do then. Not for: what other clients
 * make of the same answers (peer).
 */
#ifndef TL_ENDPOINT_H
#define TL_ENDPOINT_H

#include "engine/engine.h"

/* How an answer was asked for. */
#define TL_ASK_PLAIN (1u << 0)    /* as every client asks: usage wanted, a connection of its own */
#define TL_ASK_NO_USAGE (1u << 1) /* without stream_options */
#define TL_ASK_GZIP (1u << 2)     /* with Accept-Encoding: gzip */
#define TL_ASK_AGAIN (1u << 3)    /* right after another, on the same connection if the server keeps it */
#define TL_ASK_ALL (TL_ASK_PLAIN | TL_ASK_NO_USAGE | TL_ASK_GZIP | TL_ASK_AGAIN)

/* An answer and its bytes. */
typedef struct tl_endpoint_answer {
    unsigned ask;
    const tl_http_log *log; /* borrowed from `req`, or the caller's */
    tl_http_req *req;       /* owned; NULL ok */
    tl_request r;
    tl_metrics m;
} tl_endpoint_answer;

/* ---- habits: pure ------------------------------------------------------------------------------------------------- */

typedef enum tl_seen { TL_SEEN, TL_SEEN_NOT, TL_SEEN_UNTOLD } tl_seen;
const char *tl_seen_name(tl_seen s); /* "seen", "not seen", "could not be told" */

typedef struct tl_endpoint_habit tl_endpoint_habit; /* static */
size_t tl_endpoint_habit_count(void);
const tl_endpoint_habit *tl_endpoint_habit_at(size_t i); /* NULL past the last */
const char *tl_endpoint_habit_name(const tl_endpoint_habit *h);  /* stable word: "role-early" */
const char *tl_endpoint_habit_words(const tl_endpoint_habit *h); /* for people */
/* What tally cannot measure where it is seen, and the remedy; NULL: it is no obstacle. */
const char *tl_endpoint_habit_limit(const tl_endpoint_habit *h);
/* Looks through the answers. Appends the evidence: in how many answers, and the first one's bytes or times, or why it
 * could not be told. */
tl_seen tl_endpoint_habit_look(tl_buf *evidence, const tl_endpoint_habit *h, const tl_endpoint_answer *a, size_t n);

/* ---- looking ------------------------------------------------------------------------------------------------------ */

#define TL_ENDPOINT_TOKENS 48 /* asked for at most: gaps enough to see steps in, and short on a slow machine */

typedef struct tl_endpoint_spec {
    const char *url;        /* "http://127.0.0.1:8080"; a /v1 at its end, or the dialect's whole path, is understood */
    const tl_dialect *dialect;
    const char *model;      /* NULL: not sent */
    const char *key;        /* sent as "Authorization: Bearer"; NULL: none */
    size_t requests;        /* plain ones, at least 1; two more follow: without usage, and with gzip on a kept connection */
    uint64_t timeout_ns;    /* of each; > 0 */
    bool (*cancelled)(void *ctx);
    void *ctx;
} tl_endpoint_spec;

typedef struct tl_endpoint {
    char *url;              /* where the requests went */
    tl_endpoint_answer *answers; /* the plain ones first */
    size_t n, n_plain;
    tl_http_loop *loop;
} tl_endpoint;

/* Sends the requests one after another. What the answers are is data; a first answer that is no stream of a model at all,
 * and a plain request without an answer, are errors with their remedy: TL_MISSING nobody there, or a key is needed; TL_NOT_FOUND no such path or model, a web
 * page; TL_TIMEOUT it stalled; TL_INVALID the request was refused, or the URL is none; TL_ENGINE the server's own failure;
 * TL_HTTP what came is not HTTP or no stream; TL_CANCELLED. tl_endpoint_free ends it in every case. */
tl_status tl_endpoint_look(tl_endpoint *out, const tl_endpoint_spec *spec, tl_err *e) TL_MUST_USE;
void tl_endpoint_free(tl_endpoint *p); /* zeroed ok */

#endif

/* sim: servers whose true times are known. Now: the null server, which has no model, follows a schedule that each
 * request brings along, and stamps every event with its own clock, so that a client's error is a subtraction.
 *
 * Not for: replaying broken answers in tests (tests/engine), real engines (engine), judging a client (run).
 * Owner of: nothing alone; shares libevent with http. Threads: an object belongs to the thread that made it.
 *
 * Truth: a stamp is read from the monotonic clock, which all processes of a machine share, straight before the send()
 * of its event; nothing is queued between the two. What the server itself was late is in late_max_ns.
 */
#ifndef TL_SIM_H
#define TL_SIM_H

#include "base/base.h"

#define TL_NULL_STAMP_BYTES 20 /* text of one event: 19 digits and a blank */

/* What one request asks for. Times count from the moment the request was completely received (or admitted, with
 * max_conn). Event i is due at phase + first + i * gap; with batch = k, events i..i+k-1 go out in one write when the
 * last of them is due. */
typedef struct tl_null_schedule {
    uint64_t first_us, gap_us, phase_us;
    uint64_t events;   /* 1 .. 1000000 */
    uint64_t bytes;    /* of one event on the wire, about; at least some 130 */
    uint64_t batch;    /* events in one write, >= 1 */
    bool burst;        /* all events in one write when the last one is due, as a buffering proxy does */
    bool nagle;        /* TCP_NODELAY off, two writes an event: the second waits for an acknowledgement, however
                          long the client's system delays it (Linux does not on a fresh connection read at once) */
    uint64_t max_conn; /* so many answers at once, others wait for their turn; 0 = no limit */
} tl_null_schedule;
tl_null_schedule tl_null_default(void); /* 50 ms, then 100 events of 250 bytes, 10 ms apart */
/* The value of the request header "X-Tally-Null": "first_us=50000 gap_us=10000 ...". Appends. */
void tl_null_header(tl_buf *out, const tl_null_schedule *s);
/* Reads it back; absent keys keep what *s holds. TL_INVALID names the word that is wrong and its bounds. */
tl_status tl_null_parse(tl_null_schedule *s, const char *text, tl_err *e) TL_MUST_USE;

/* ---- the client's side ------------------------------------------------------------------------------------------ */

/* The stamp in the i-th text event of an answer's text. UINT64_MAX when there is none. */
uint64_t tl_null_stamp(const char *text, size_t len, size_t i);
/* The server's own greatest lateness against its schedule, from an answer's raw body. UINT64_MAX when it is not there. */
uint64_t tl_null_late_max_ns(const char *body);

/* ---- the process -------------------------------------------------------------------------------------------------- */

typedef struct tl_null tl_null;
/* A child `PROGRAM serve-null` on a free port of 127.0.0.1; ends with its parent. program NULL: this executable, which
 * then must be tally. */
tl_status tl_null_start(tl_null **out, const char *program, tl_err *e) TL_MUST_USE;
const char *tl_null_url(const tl_null *n); /* "http://127.0.0.1:PORT" */
int64_t tl_null_pid(const tl_null *n);
void tl_null_stop(tl_null *n); /* NULL ok */

/* The loop itself, which the verb runs: prints {"pid","port","url"} as one line of JSON to `ready` when it listens, then
 * serves until a signal for tally is pending. port 0 = any. spin_us: the last microseconds before an event are waited
 * for awake, which is sharper and costs a processor. TL_CONFLICT: the port is taken. */
tl_status tl_null_serve(uint16_t port, uint64_t spin_us, FILE *ready, tl_err *e) TL_MUST_USE;

#endif

/* What the files of the null server share. */
#ifndef TL_NULL_IMPL_H
#define TL_NULL_IMPL_H

#include "os/os.h"
#include "sim/sim.h"

/* The bytes of one answer, made before its first event is due; only stamps are written later. */
typedef struct null_answer {
    tl_buf head;     /* status line, headers and the role event */
    tl_buf block;    /* one write: `batch` events in one HTTP chunk each */
    size_t event;    /* bytes of one event in block */
    size_t stamp_at; /* of the stamp within an event */
} null_answer;
void null_answer_init(null_answer *a, const tl_null_schedule *s);
void null_answer_fini(null_answer *a);
/* Writes `now` into the first n events of the block; gives the bytes to send. */
size_t null_answer_stamp(null_answer *a, size_t n, uint64_t now);
/* The last bytes: finish reason, usage, the server's lateness, [DONE], last chunk. */
void null_answer_tail(tl_buf *out, uint64_t events, uint64_t late_max_ns);

#endif

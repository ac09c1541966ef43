/* Shared by conform's two parts: playing (conform.c) and judging (judge.c). */
#ifndef TL_CONFORM_IMPL_H
#define TL_CONFORM_IMPL_H

#include "sample/sample.h"

/* How late this play may have been, beyond the stream's own times. */
typedef struct tl_lateness {
    double client_ms; /* the client's own error */
    double server_ms; /* what the server's log admits: writes after their time, request received after it was due */
} tl_lateness;

/* One difference, or none: appends {"field","expected","got"} to `diffs`. */
void tl_judge(json_t *diffs, const json_t *expect, const tl_request *r, const tl_metrics *m, const tl_lateness *late);

/* Everything that the answer's bytes mean, without times and reads: equal for equal bytes, however they arrived. New
 * reference. */
json_t *tl_said(const tl_request *r, const tl_metrics *m);

#endif

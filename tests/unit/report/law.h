/* A made-up source for tests: the bandwidth law with four models, in two languages. Numbers are for layout
 * only. */
#ifndef LAW_H
#define LAW_H

#include "report/report.h"

typedef struct law {
    const char *lang;    /* what it speaks */
    const char *stale;   /* of the figure */
    const char *caption; /* of the table, when not NULL */
    json_t *replace;     /* given instead of any value, when not NULL (borrowed) */
    int values, blocks;  /* how often it was asked */
} law;

tl_status law_value(json_t **out, void *ctx, const char *expr, const tl_report_pos *pos, tl_err *e);
tl_status law_block(json_t **out, void *ctx, const char *kind, const json_t *attrs, const char *text,
                    const tl_report_pos *pos, tl_err *e);

#endif

/* Status and error object. msg and remedy have fixed storage, so an error can be reported when memory is gone. */
#include "base/base.h"

static const struct {
    tl_status code;
    const char *name;
    int exit_code;
} table[] = {
    {TL_OK, "ok", 0},           {TL_INVALID, "invalid", 2},     {TL_NOT_FOUND, "not-found", 4},
    {TL_IO, "io", 1},           {TL_HTTP, "http", 1},           {TL_ENGINE, "engine", 1},
    {TL_TIMEOUT, "timeout", 1}, {TL_SCRIPT, "script", 2},       {TL_CONFLICT, "conflict", 1},
    {TL_LIMIT, "limit", 1},     {TL_CANCELLED, "cancelled", 1}, {TL_INTERNAL, "internal", 1},
    {TL_MISSING, "missing", 4}, {TL_REFUSED, "refused", 3},
};

/* Without an error object the code must still travel: `return tl_remedy(e, ...)` after `tl_fail(e, ...)`. */
static _Thread_local tl_status last_code = TL_INTERNAL;

tl_status tl_fail_at(tl_err *e, tl_status code, const char *file, int line, const char *fmt, ...) {
    last_code = code;
    if (e == NULL) return code;
    va_list ap;
    va_start(ap, fmt);
    char text[sizeof e->msg]; /* an argument may point into e->msg */
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    e->code = code;
    e->file = file;
    e->line = line;
    e->remedy[0] = 0;
    memcpy(e->msg, text, sizeof text);
    return code;
}

tl_status tl_wrap(tl_err *e, const char *fmt, ...) {
    if (e == NULL) return last_code;
    char head[sizeof e->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    size_t h = strlen(head), room = sizeof e->msg;
    if (h + 3 < room) {
        size_t keep = strlen(e->msg);
        if (keep > room - h - 3) keep = room - h - 3;
        memmove(e->msg + h + 2, e->msg, keep);
        memcpy(e->msg, head, h);
        memcpy(e->msg + h, ": ", 2);
        e->msg[h + 2 + keep] = 0;
    }
    return e->code;
}

tl_status tl_remedy(tl_err *e, const char *fmt, ...) {
    if (e == NULL) return last_code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->remedy, sizeof e->remedy, fmt, ap);
    va_end(ap);
    return e->code;
}

void tl_err_clear(tl_err *e) {
    if (e != NULL) memset(e, 0, sizeof *e);
}

const char *tl_status_name(tl_status s) {
    for (size_t i = 0; i < TL_COUNT(table); i++)
        if (table[i].code == s) return table[i].name;
    return "unknown";
}

int tl_exit_code(tl_status s) {
    for (size_t i = 0; i < TL_COUNT(table); i++)
        if (table[i].code == s) return table[i].exit_code;
    return 1;
}

/* Growing text buffer with a stated maximum: past it, appends are dropped and `over` says so. */
#include "base/base.h"

static char empty[1];

void tl_buf_init(tl_buf *b, size_t max) {
    *b = (tl_buf){.p = tl_xalloc(64), .cap = 64, .max = max};
}

void tl_buf_free(tl_buf *b) {
    if (b->p != empty) free(b->p);
    *b = (tl_buf){.p = empty, .max = b->max};
}

void tl_buf_clear(tl_buf *b) {
    b->len = 0;
    b->over = false;
    if (b->cap) b->p[0] = 0;
}

/* Room for n more bytes and the NUL; false when max forbids it. */
static bool room(tl_buf *b, size_t n) {
    if (b->max && b->len + n > b->max) {
        b->over = true;
        return false;
    }
    if (b->len + n + 1 > b->cap) {
        char *old = b->p == empty ? NULL : b->p;
        tl_grow(&old, &b->cap, b->len + n + 1, 1);
        b->p = old;
    }
    return true;
}

void tl_buf_add(tl_buf *b, const void *p, size_t n) {
    if (n == 0 || !room(b, n)) return;
    memcpy(b->p + b->len, p, n);
    b->len += n;
    b->p[b->len] = 0;
}

void tl_buf_str(tl_buf *b, const char *s) {
    if (s != NULL) tl_buf_add(b, s, strlen(s));
}

void tl_buf_char(tl_buf *b, char c) {
    tl_buf_add(b, &c, 1);
}

void tl_buf_vfmt(tl_buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0 && room(b, (size_t)n)) {
        vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void tl_buf_fmt(tl_buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    tl_buf_vfmt(b, fmt, ap);
    va_end(ap);
}

char *tl_buf_take(tl_buf *b) {
    char *p = b->p == empty || b->p == NULL ? tl_xalloc(1) : b->p;
    *b = (tl_buf){.p = empty, .max = b->max};
    return p;
}

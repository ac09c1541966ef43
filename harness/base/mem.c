/* Allocation that ends the process instead of returning NULL, growing arrays, and the arena. */
#include "base/base.h"

#include <unistd.h>

static void out_of_memory(void) {
    static const char msg[] = "tally: out of memory; what had finished is stored, resume the run with --resume\n";
    ssize_t ignored = write(2, msg, sizeof msg - 1);
    (void)ignored;
    _exit(1);
}

void *tl_xalloc(size_t size) {
    void *p = calloc(1, size ? size : 1);
    if (p == NULL) out_of_memory();
    return p;
}

void *tl_xrealloc(void *p, size_t size) {
    void *q = realloc(p, size ? size : 1);
    if (q == NULL) out_of_memory();
    return q;
}

char *tl_xstrndup(const char *s, size_t n) {
    if (s == NULL) return NULL;
    char *p = tl_xalloc(n + 1);
    memcpy(p, s, n);
    return p;
}

char *tl_xstrdup(const char *s) {
    return s == NULL ? NULL : tl_xstrndup(s, strlen(s));
}

char *tl_xprintf(const char *fmt, ...) {
    tl_buf b;
    tl_buf_init(&b, 0);
    va_list ap;
    va_start(ap, fmt);
    tl_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    return b.p;
}

void tl_grow(void *p_ptr, size_t *cap, size_t need, size_t elem) {
    if (need <= *cap) return;
    size_t want = *cap ? *cap * 2 : 8;
    if (want < need) want = need;
    if (want > SIZE_MAX / elem) out_of_memory();
    void **p = p_ptr;
    *p = tl_xrealloc(*p, want * elem);
    *cap = want;
}

enum { BLOCK = 64 * 1024 };
typedef struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) char data[];
} block;
struct tl_arena {
    block *head;
};

tl_arena *tl_arena_new(void) {
    return tl_xalloc(sizeof(tl_arena));
}

void tl_arena_free(tl_arena *a) {
    if (a == NULL) return;
    for (block *b = a->head, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void *tl_arena_alloc(tl_arena *a, size_t size) {
    size = (size + 15) & ~(size_t)15;
#ifdef __SANITIZE_ADDRESS__
    size_t block_size = size; /* one block each, so that ASan sees the edges */
#else
    size_t block_size = size > BLOCK ? size : BLOCK;
#endif
    if (a->head == NULL || a->head->size - a->head->used < size) {
        block *b = tl_xalloc(sizeof(block) + block_size);
        b->size = block_size;
        b->next = a->head;
        a->head = b;
    }
    void *p = a->head->data + a->head->used;
    a->head->used += size;
    return p;
}

char *tl_arena_strdup(tl_arena *a, const char *s) {
    if (s == NULL) return NULL;
    size_t n = strlen(s) + 1;
    char *p = tl_arena_alloc(a, n);
    memcpy(p, s, n);
    return p;
}

char *tl_arena_printf(tl_arena *a, const char *fmt, ...) {
    tl_buf b;
    tl_buf_init(&b, 0);
    va_list ap;
    va_start(ap, fmt);
    tl_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    char *p = tl_arena_strdup(a, b.p);
    tl_buf_free(&b);
    return p;
}

/* The order that sessions impose on a block's jobs. */
#include "load/load_impl.h"

typedef struct turn {
    size_t session, job;
} turn;

static int by_session(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->session != y->session) return x->session < y->session ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

size_t tl_load_order(size_t *heads, size_t *next, const tl_load_job *jobs, size_t n) {
    size_t n_heads = 0;
    turn *turns = tl_xalloc((n ? n : 1) * sizeof *turns);
    bool *follows = tl_xalloc((n ? n : 1) * sizeof *follows);
    for (size_t i = 0; i < n; i++) turns[i] = (turn){jobs[i].session, i};
    qsort(turns, n, sizeof *turns, by_session);
    for (size_t i = 0; i < n; i++) next[i] = SIZE_MAX, follows[i] = false;
    for (size_t i = 1; i < n; i++) {
        if (turns[i].session == 0 || turns[i].session != turns[i - 1].session) continue;
        next[turns[i - 1].job] = turns[i].job;
        follows[turns[i].job] = true;
    }
    for (size_t i = 0; i < n; i++)
        if (!follows[i]) heads[n_heads++] = i;
    free(turns);
    free(follows);
    return n_heads;
}

/* load, inside. */
#ifndef TL_LOAD_IMPL_H
#define TL_LOAD_IMPL_H

#include "load/load.h"

/* Ordinary English words, for prompts and for finding ordinary tokens. */
extern const char *const tl_load_words[];
extern const size_t tl_load_n_words;

/* TL_LOAD_* of a decoded answer to that job. */
unsigned tl_load_check(const tl_load_job *job, const tl_request *r);

/* Who follows whom: next[i] = the job of the same session after job i (SIZE_MAX: none), heads = the jobs that follow
 * nobody, in order. Returns their number. */
size_t tl_load_order(size_t *heads, size_t *next, const tl_load_job *jobs, size_t n);

#endif

/* load, inside. */
#ifndef TL_LOAD_IMPL_H
#define TL_LOAD_IMPL_H

#include "load/load.h"

/* Ordinary English words, for prompts and for finding ordinary tokens. */
extern const char *const tl_load_words[];
extern const size_t tl_load_n_words;

/* TL_LOAD_* of a decoded answer to that job. */
unsigned tl_load_check(const tl_load_job *job, const tl_request *r);

#endif

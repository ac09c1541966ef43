/* Did a request measure what it was meant to? By the engine's own counts, never by assumption. */
#include "load/load_impl.h"

/* Engines that cache by blocks leave up to one block of the prompt uncached (vLLM: 16 tokens); llama.cpp leaves one. */
#define WARM_SLACK 16

const char *tl_load_flag_name(unsigned bit_index) {
    static const char *const names[TL_LOAD_FLAG_COUNT] = {"prompt-count-differs", "not-cold", "not-warm", "unverified"};
    return bit_index < TL_LOAD_FLAG_COUNT ? names[bit_index] : NULL;
}

static int64_t prompt_count(const tl_counters *c) {
    if (c->usage_prompt != TL_ABSENT) return c->usage_prompt;
    if (c->engine_prompt_n == TL_ABSENT) return TL_ABSENT;
    if (c->engine_prompt_n_has_cached) return c->engine_prompt_n;
    return c->engine_cache_n == TL_ABSENT ? TL_ABSENT : c->engine_prompt_n + c->engine_cache_n;
}

unsigned tl_load_check(const tl_load_job *job, const tl_request *r) {
    const tl_counters *c = &r->count;
    const int64_t prompt = prompt_count(c);
    const int64_t cached = c->engine_cache_n != TL_ABSENT ? c->engine_cache_n : c->usage_cached;
    unsigned flags = 0;
    if (r->transport != TL_TP_COMPLETE || r->http_status / 100 != 2) return 0; /* failed anyway */
    if (job->prompt_n >= 0) {
        if (prompt == TL_ABSENT)
            flags |= TL_LOAD_UNVERIFIED;
        else if (prompt != job->prompt_n)
            flags |= TL_LOAD_PROMPT_DIFFERS;
    }
    if (job->cache == TL_CACHE_ANY) return flags;
    if (cached == TL_ABSENT) return flags | TL_LOAD_UNVERIFIED;
    if (job->cache == TL_CACHE_COLD) return cached > 0 ? flags | TL_LOAD_NOT_COLD : flags;
    if (prompt == TL_ABSENT) return flags | TL_LOAD_UNVERIFIED;
    int64_t least = prompt > WARM_SLACK ? prompt - WARM_SLACK : 1;
    return cached < least ? flags | TL_LOAD_NOT_WARM : flags;
}

/* engine: inference servers from the outside: their life cycle, and the wire dialects they speak.
 *
 * Not for: when to send (load), how to time (http), what the numbers mean (sample).
 */
#ifndef TL_ENGINE_H
#define TL_ENGINE_H

#include "base/base.h"
#include "http/http.h"
#include "sample/sample.h"

/* ==== life cycle ================================================================================================ */

/* ==== wire dialects (dialect*.c): request bodies, and what an answer's bytes mean ============================== */

/* What goes in. Borrowed. Exactly one of the three is given. */
typedef struct tl_prompt {
    const json_t *messages; /* array of {"role","content"} */
    const char *text;       /* chat dialects wrap it into one user message */
    const int32_t *tokens;  /* llamacpp-completion only: exact prompt lengths */
    size_t n_tokens;
} tl_prompt;

/* How to generate. tl_gen_init gives "leave everything to the engine". */
typedef struct tl_gen {
    const char *model;      /* NULL = not sent */
    int64_t max_tokens;     /* < 0 = not sent; 0 is sent (prefill only) */
    double temperature;     /* NAN = not sent */
    int64_t seed;           /* < 0 = not sent */
    bool ignore_eos;
    int cache_prompt;       /* -1 not sent, 0 false, 1 true; llama.cpp only */
    int enable_thinking;    /* -1 not sent; chat_template_kwargs.enable_thinking, or Ollama's think */
    int64_t id_slot;        /* < 0 = not sent; llama.cpp only */
    bool return_progress;   /* llama.cpp only */
    int64_t num_ctx;        /* <= 0 = not sent; Ollama only: its context length is an option of the request */
    const json_t *extra;    /* object merged into the body last, may be NULL; may not change "stream" */
} tl_gen;
void tl_gen_init(tl_gen *g);

typedef struct tl_dialect tl_dialect;
/* "openai-chat", "openai-completion", "llamacpp-completion", "ollama-chat"; NULL when unknown. */
const tl_dialect *tl_dialect_find(const char *name);
const char *const *tl_dialect_names(size_t *n_out);
const char *tl_dialect_name(const tl_dialect *d);
const char *tl_dialect_path(const tl_dialect *d); /* "/v1/chat/completions" */
/* Appends the JSON body. TL_INVALID when the dialect cannot say what is asked (token ids in a chat, ignore_eos or
 * cache_prompt at Ollama): an option is never dropped silently. */
tl_status tl_dialect_body(tl_buf *out, const tl_dialect *d, const tl_prompt *p, const tl_gen *g, tl_err *e) TL_MUST_USE;
/* Fills an initialised *out (times, events, texts, counters, error) from a finished request. `g` may be NULL; only its
 * max_tokens is used (counters.requested_max). Whatever arrived is data, so bad bytes are flags and an error text in
 * *out, never an error of this call, which only fails for arguments that make no sense. */
tl_status tl_dialect_decode(tl_request *out, const tl_dialect *d, const tl_http_log *log, const tl_gen *g, tl_err *e)
    TL_MUST_USE;

/* ==== end of wire dialects ===================================================================================== */

#endif

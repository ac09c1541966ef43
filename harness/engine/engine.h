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

/* A running server: started by us (a child process), or attached to by URL. Belongs to one thread; the object may be
 * asked for its URL and facts from any. What differs between engines is data: the adapter, lua/engine/<name>.lua as
 * JSON (its form is described in lua/engine/llamacpp.lua). */
typedef struct tl_engine tl_engine;

typedef struct tl_engine_spec {
    const char *binary;        /* path or name; NULL: the adapter's names on PATH, then in tally's cache folder */
    const char *model_path;    /* relative to the working folder or absolute */
    const json_t *settings;    /* object by the adapter's setting names; NULL = none. Unknown names are TL_INVALID */
    const char *log_path;      /* the engine's whole output; the file is replaced. The folder must exist */
    uint64_t ready_timeout_ns; /* 0 = the adapter's */
    uint16_t port;             /* 0 = a free one, and another when it was taken meanwhile; else this or TL_CONFLICT */
    const char *const *env;    /* "K=V" set on top, "K" taken away; NULL-terminated; may be NULL */
    bool (*cancelled)(void *ctx); /* asked while waiting; may be NULL */
    void *ctx;
} tl_engine_spec;

/* Starts the server and waits until it is ready. Errors quote the engine's own line where its log has one:
 * TL_MISSING no such engine; TL_NOT_FOUND no such model; TL_INVALID a setting; TL_CONFLICT the given port is taken;
 * TL_TIMEOUT never ready; TL_CANCELLED; TL_ENGINE everything else. The log stays in every case, no process does. */
tl_status tl_engine_start(tl_engine **out, const json_t *adapter, const tl_engine_spec *spec, tl_err *e) TL_MUST_USE;
/* Uses a server that somebody else runs. The facts then list what cannot be verified. */
tl_status tl_engine_attach(tl_engine **out, const json_t *adapter, const char *url, tl_err *e) TL_MUST_USE;
/* Graceful (SIGTERM and the adapter's time), then firm; whole process group. Idempotent. Nothing for attached ones. */
void tl_engine_stop(tl_engine *g);
void tl_engine_free(tl_engine *g); /* stops it first; NULL ok */

const char *tl_engine_name(const tl_engine *g);     /* the adapter's */
const char *tl_engine_url(const tl_engine *g);      /* "http://127.0.0.1:40123", no slash at the end */
const char *tl_engine_log_path(const tl_engine *g); /* NULL when attached */
int64_t tl_engine_pid(const tl_engine *g);          /* 0 when attached */
bool tl_engine_attached(const tl_engine *g);
/* Started: is the process there? Attached: does it answer (one short call)? */
bool tl_engine_alive(tl_engine *g);
/* How it ended and the last telling line of its log, one line, for the stored reason of a failed run. */
void tl_engine_last_words(tl_buf *out, tl_engine *g);

/* What it is and how it runs, borrowed. Keys: adapter, attached, url, pid, version {text,...}, build, binary {path,
 * sha256 (over the list), files [{name, bytes, sha256}]}, packages, argv, env, model_path, log_path, requested,
 * effective, differences [{name, requested, effective}], unverified [names], dropped_flags, buffers, devices, ready_ms,
 * starts, raw {<path>: the reply}. Absent facts are null, never guessed. */
const json_t *tl_engine_facts(const tl_engine *g);

/* ids are owned by the caller. No special tokens are added or parsed. TL_MISSING when the adapter has no such call. */
tl_status tl_engine_tokenize(int32_t **ids_out, size_t *n_out, tl_engine *g, const char *text, tl_err *e) TL_MUST_USE;
tl_status tl_engine_detokenize(tl_buf *out, tl_engine *g, const int32_t *ids, size_t n, tl_err *e) TL_MUST_USE;
/* Waits until no slot works and nothing is queued. TL_TIMEOUT names the busy slots. TL_MISSING: the engine does not
 * tell. */
tl_status tl_engine_wait_idle(tl_engine *g, uint64_t timeout_ns, tl_err *e) TL_MUST_USE;

/* The executable that a start would use, owned by the caller. TL_MISSING with the remedy when there is none. */
tl_status tl_engine_find(char **path_out, const json_t *adapter, const char *binary, tl_err *e) TL_MUST_USE;
/* Its version text as it prints it, in one line; for listings. Owned by the caller. */
tl_status tl_engine_version(char **text_out, const json_t *adapter, const char *path, tl_err *e) TL_MUST_USE;

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

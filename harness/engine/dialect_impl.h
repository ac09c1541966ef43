/* Shared by the wire dialects only. */
#ifndef TL_DIALECT_IMPL_H
#define TL_DIALECT_IMPL_H

#include "engine/engine.h"

typedef struct tl_decoder {
    tl_request *r;
    const tl_dialect *d;
    tl_buf text, reasoning, tool;
    char *raw_finish, *raw_counters; /* last record with a finish reason; last with counters */
    /* the record at hand */
    uint64_t t_ns;
    size_t read;
    unsigned emitted; /* events of this record so far: the second and later ones are joined to the first */
    const char *bytes;
    size_t len;
    size_t records;
} tl_decoder;

struct tl_dialect {
    const char *name, *path;
    bool ndjson;
    bool chat;
    tl_status (*body)(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e);
    void (*record)(tl_decoder *k, const json_t *obj);
};

/* dialect_body.c */
tl_status tl_dialect_body_openai(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e);
tl_status tl_dialect_body_openai_text(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e);
tl_status tl_dialect_body_llamacpp(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e);
tl_status tl_dialect_body_ollama(json_t *body, const tl_prompt *p, const tl_gen *g, tl_err *e);

/* dialect_records.c: one JSON object of an answer into events, text and counters */
void tl_dialect_record_openai(tl_decoder *k, const json_t *obj);
void tl_dialect_record_llamacpp(tl_decoder *k, const json_t *obj);
void tl_dialect_record_ollama(tl_decoder *k, const json_t *obj);
/* Looks for an error in any of the shapes that servers use; notes it and returns true. */
bool tl_dialect_error(tl_decoder *k, const json_t *obj);
/* The first error wins: later ones are its consequences. */
void tl_dialect_note_error(tl_request *r, const char *cls, const char *text);

/* dialect_counters.c */
bool tl_dialect_usage(tl_counters *c, const json_t *usage); /* false: nothing in it */
bool tl_dialect_counters(tl_counters *c, const json_t *obj); /* usage and timings wherever this object has them */

/* dialect_json.c: a record's bytes as JSON; NULL when it is none. Invalid UTF-8, lone surrogates and NULs become
 * U+FFFD and set *replaced. New reference. */
json_t *tl_dialect_json(const char *p, size_t n, bool *replaced);
/* Valid UTF-8 without NUL, owned by the caller. With a `max` (bytes, about) it is for messages: one line. */
char *tl_dialect_clean(const char *p, size_t n, size_t max);

/* TL_HABIT_* of an answer's bytes. */
unsigned tl_dialect_habits(const tl_http_log *log);

#endif

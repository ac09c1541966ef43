/* Prompts of exact length. Their tokens are random, because how fast a model reads does not depend on what it reads, but
 * their first token walks through a seeded permutation of the pool: two prompts that begin differently share no prefix. */
#include "engine/engine.h"
#include "load/load_impl.h"

#define POOL_MIN 16

struct tl_load_pool {
    int32_t *ids; /* in seeded order */
    size_t n;
    uint64_t drawn, texts;
    tl_rng rng;
};

static int by_id(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

tl_status tl_load_pool_from(tl_load_pool **out, const int32_t *ids, size_t n, uint64_t seed, tl_err *e) {
    *out = NULL;
    if (n < 2) return tl_fail(e, TL_INVALID, "a pool of prompt tokens needs at least 2, got %zu", n);
    tl_load_pool *p = tl_xalloc(sizeof *p);
    p->ids = tl_xalloc(n * sizeof *p->ids);
    p->n = n;
    memcpy(p->ids, ids, n * sizeof *ids);
    qsort(p->ids, n, sizeof *p->ids, by_id); /* the same ids in any order give the same prompts */
    for (size_t i = 1; i < n; i++) {
        if (p->ids[i] != p->ids[i - 1]) continue;
        tl_status st = tl_fail(e, TL_INVALID, "token %" PRId32 " is twice in the pool of prompt tokens", p->ids[i]);
        tl_load_pool_free(p);
        return st;
    }
    tl_rng_seed(&p->rng, seed);
    tl_rng_shuffle(&p->rng, p->ids, n, sizeof *p->ids);
    *out = p;
    return TL_OK;
}

/* The tokenizer must give the text back, or the ids do not mean what we think. A leading blank is SentencePiece's own. */
static tl_status verify(tl_engine *g, const int32_t *ids, size_t n, const char *text, tl_err *e) {
    tl_buf back;
    tl_buf_init(&back, 0);
    tl_status st = tl_engine_detokenize(&back, g, ids, n, e);
    const char *p = back.p;
    if (*p == ' ' && *text != ' ') p++;
    if (st == TL_OK && !tl_str_eq(p, text))
        st = tl_fail(e, TL_ENGINE, "engine '%s': its tokenizer does not give a plain text back", tl_engine_name(g));
    tl_buf_free(&back);
    return st;
}

tl_status tl_load_pool_new(tl_load_pool **out, tl_engine *g, uint64_t seed, tl_err *e) {
    tl_status st = TL_OK;
    int32_t *ids = NULL;
    size_t n = 0, kept = 0;
    tl_buf text;
    tl_buf_init(&text, 0);
    *out = NULL;
    for (size_t i = 0; i < tl_load_n_words; i++) tl_buf_fmt(&text, "%s%s", i ? " " : "", tl_load_words[i]);
    TRY(tl_engine_tokenize(&ids, &n, g, text.p, e));
    TRY(verify(g, ids, n, text.p, e));
    qsort(ids, n, sizeof *ids, by_id);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || ids[kept - 1] != ids[i]) ids[kept++] = ids[i];
    if (kept < POOL_MIN) {
        st = tl_fail(e, TL_ENGINE, "engine '%s': its vocabulary gives only %zu different tokens for plain text", tl_engine_name(g), kept);
        goto out;
    }
    TRY(tl_load_pool_from(out, ids, kept, seed, e));
out:
    free(ids);
    tl_buf_free(&text);
    return st;
}

void tl_load_pool_free(tl_load_pool *p) {
    if (!p) return;
    free(p->ids);
    free(p);
}

size_t tl_load_pool_size(const tl_load_pool *p) {
    return p->n;
}

void tl_load_pool_draw(int32_t *out, size_t n, tl_load_pool *p) {
    for (size_t i = 0; i < n; i++) out[i] = p->ids[tl_rng_below(&p->rng, p->n)];
    if (n > 0) out[0] = p->ids[p->drawn % p->n];
    if (n > 1) out[1] = p->ids[p->drawn / p->n % p->n]; /* the pair is new for n * n draws */
    p->drawn++;
}

void tl_load_pool_text(tl_buf *out, size_t words, tl_load_pool *p) {
    uint64_t serial = p->texts++;
    for (size_t i = 0; i < words; i++) {
        size_t w = (size_t)tl_rng_below(&p->rng, tl_load_n_words);
        if (i < 3) {
            w = (size_t)(serial % tl_load_n_words);
            serial /= tl_load_n_words;
        }
        tl_buf_fmt(out, "%s%s", i ? " " : "", tl_load_words[w]);
    }
}

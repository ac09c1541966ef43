/* Writes a synthetic GGUF: header, then each tensor from a pool of blocks that is repeated from a phase of its own, so
 * that gigabytes cost little more than the copy into the page cache.
 *
 * How a scripted model speaks: attn_output and ffn_down are zero, so a token's row reaches the head unchanged. Rows are
 * random signs; the head's row of token y is the embedding of the token before it, x, so after x the best match is y.
 * The last dimensions are a flag, -1 for tokens of the script and +1 for all others; the head's row of the first
 * script token is that flag alone, so any other token leads into the script. */
#include "model_impl.h"

#include <errno.h>
#include <math.h>

enum { POOL_BYTES = 256 << 10, POOLS_MAX = 16, CHUNK = 1 << 20, PROGRESS_STEP = 16 << 20, OTHER_ROWS = 61 };

typedef struct pool {
    const tl_tensor_type *type;
    uint64_t cols;
    bool zero;
    uint8_t *bytes;
    size_t blocks;
} pool;

typedef struct writer {
    FILE *f;
    const char *path; /* the temporary one */
    const tl_synth_spec *spec;
    const synth_vocab *vocab;
    uint64_t done, total, told;
    tl_file_progress_fn *progress;
    void *ctx;
    pool pool[POOLS_MAX];
    size_t n_pools;
} writer;

/* ---- header -------------------------------------------------------------------------------------------------- */

/* The template is of the kind that llama-server recognises as one with thinking (<think> in front of the answer,
 * switched off by enable_thinking=false). */
static const char TEMPLATE[] =
    "{{- bos_token }}{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' and message.reasoning_content is string and message.reasoning_content %}"
    "{{- '<think>\\n' + message.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}{%- endif %}"
    "{{- message.content + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
    "{%- endif %}";

typedef struct kv {
    tl_buf b;
    uint64_t n;
} kv;

static void put_int(tl_buf *b, uint64_t v, int bytes) {
    char le[8];
    for (int i = 0; i < bytes; i++) le[i] = (char)(v >> 8 * i & 255);
    tl_buf_add(b, le, (size_t)bytes);
}

static void put_text(tl_buf *b, const char *s) {
    put_int(b, strlen(s), 8);
    tl_buf_str(b, s);
}

static void key(kv *k, const char *name, uint32_t type) {
    k->n++;
    put_text(&k->b, name);
    put_int(&k->b, type, 4);
}

static void kv_u32(kv *k, const char *name, uint32_t v) {
    key(k, name, 4);
    put_int(&k->b, v, 4);
}

static void kv_u64(kv *k, const char *name, uint64_t v) {
    key(k, name, 10);
    put_int(&k->b, v, 8);
}

static void kv_f32(kv *k, const char *name, float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    key(k, name, 6);
    put_int(&k->b, u, 4);
}

static void kv_f64(kv *k, const char *name, double v) {
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    key(k, name, 12);
    put_int(&k->b, u, 8);
}

static void kv_bool(kv *k, const char *name, bool v) {
    key(k, name, 7);
    put_int(&k->b, v, 1);
}

static void kv_text(kv *k, const char *name, const char *v) {
    key(k, name, 8);
    put_text(&k->b, v);
}

static void array(kv *k, const char *name, uint32_t type, uint64_t n) {
    key(k, name, 9);
    put_int(&k->b, type, 4);
    put_int(&k->b, n, 8);
}

static uint32_t file_type(const char *quant) {
    static const struct {
        const char *quant;
        uint32_t id;
    } T[] = {{"f16", 1}, {"q8_0", 7}, {"q4_0", 2}, {"q4_k", 14}, {"q6_k", 18}, {"q4_k_m", 15}};
    for (size_t i = 0; i < TL_COUNT(T); i++)
        if (tl_str_eq(T[i].quant, quant)) return T[i].id;
    return 0;
}

static const char *description(const tl_synth_spec *s) {
    if (s->answer == 0)
        return "Synthetic model written by tally. Random weights: for measuring speed and memory only; its text is noise.";
    if (s->wrong > 0)
        return "Synthetic draft model written by tally: follows a fixed script and is wrong at a chosen share of steps. "
               "For measuring speculative decoding only.";
    return "Synthetic model written by tally: says one fixed text whatever the prompt. For measuring speed and memory and "
           "for checking clients only.";
}

static void meta_general(kv *k, const tl_synth_spec *s) {
    kv_text(k, "general.architecture", "llama");
    kv_text(k, "general.type", "model");
    kv_text(k, "general.name", s->name);
    kv_text(k, "general.author", "tally");
    kv_text(k, "general.description", description(s));
    kv_u32(k, "general.file_type", file_type(s->quant));
    kv_u32(k, "general.quantization_version", 2);
    kv_u32(k, "tally.synth.version", 1);
    kv_text(k, "tally.synth.weights", s->answer == 0 ? "random" : s->wrong > 0 ? "scripted draft" : "scripted");
    kv_text(k, "tally.synth.quant", s->quant);
    kv_u64(k, "tally.synth.seed", s->seed);
    kv_u32(k, "tally.synth.think", s->think);
    kv_u32(k, "tally.synth.answer", s->answer);
    kv_f64(k, "tally.synth.wrong", s->wrong);
    kv_bool(k, "tally.synth.tie", s->tie);
    kv_u64(k, "tally.synth.size_asked", s->size_bytes);
}

static void meta_shape(kv *k, const tl_synth_spec *s) {
    kv_u32(k, "llama.context_length", s->ctx);
    kv_u32(k, "llama.embedding_length", s->embed);
    kv_u32(k, "llama.block_count", s->layers);
    kv_u32(k, "llama.feed_forward_length", s->ff);
    kv_u32(k, "llama.attention.head_count", s->heads);
    kv_u32(k, "llama.attention.head_count_kv", s->kv_heads);
    kv_u32(k, "llama.rope.dimension_count", s->embed / s->heads);
    kv_u32(k, "llama.vocab_size", s->vocab);
    kv_f32(k, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    kv_f32(k, "llama.rope.freq_base", 10000.0f);
}

static void meta_vocab(kv *k, const synth_vocab *v) {
    kv_text(k, "tokenizer.ggml.model", "llama");
    kv_text(k, "tokenizer.ggml.pre", "default");
    array(k, "tokenizer.ggml.tokens", 8, v->n);
    for (uint32_t i = 0; i < v->n; i++) put_text(&k->b, v->text[i]);
    array(k, "tokenizer.ggml.scores", 6, v->n);
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t u;
        memcpy(&u, &v->score[i], sizeof u);
        put_int(&k->b, u, 4);
    }
    array(k, "tokenizer.ggml.token_type", 5, v->n);
    for (uint32_t i = 0; i < v->n; i++) put_int(&k->b, (uint32_t)v->type[i], 4);
    kv_u32(k, "tokenizer.ggml.bos_token_id", 1);
    kv_u32(k, "tokenizer.ggml.eos_token_id", SYNTH_EOS);
    kv_u32(k, "tokenizer.ggml.unknown_token_id", 0);
    kv_bool(k, "tokenizer.ggml.add_bos_token", true);
    kv_bool(k, "tokenizer.ggml.add_eos_token", false);
    kv_text(k, "tokenizer.chat_template", TEMPLATE);
}

void synth_header(tl_buf *out, const tl_synth_spec *spec, const synth_vocab *v, const synth_tensor *t, size_t n) {
    kv k = {.n = 0};
    tl_buf_init(&k.b, 0);
    meta_general(&k, spec);
    meta_shape(&k, spec);
    meta_vocab(&k, v);
    tl_buf_str(out, "GGUF");
    put_int(out, 3, 4);
    put_int(out, n, 8);
    put_int(out, k.n, 8);
    tl_buf_add(out, k.b.p, k.b.len);
    for (size_t i = 0; i < n; i++) {
        put_text(out, t[i].name);
        put_int(out, t[i].n_dims, 4);
        put_int(out, t[i].cols, 8);
        if (t[i].n_dims > 1) put_int(out, t[i].rows, 8);
        put_int(out, t[i].type->id, 4);
        put_int(out, t[i].offset, 8);
    }
    while (out->len % SYNTH_ALIGN != 0) tl_buf_char(out, 0);
    tl_buf_free(&k.b);
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static tl_status emit(writer *w, const void *p, size_t n, tl_err *e) {
    errno = 0;
    if (n > 0 && fwrite(p, 1, n, w->f) != n) return tl_file_fail("write", w->path, errno ? errno : EIO, e);
    w->done += n;
    if (w->progress && (w->done - w->told >= PROGRESS_STEP || w->done == w->total)) {
        w->told = w->done;
        if (!w->progress(w->ctx, w->done, w->total)) return tl_fail(e, TL_CANCELLED, "writing the model was cancelled");
    }
    return TL_OK;
}

static const pool *pool_for(writer *w, const synth_tensor *t) {
    bool zero = t->fill == FILL_ZERO;
    for (size_t i = 0; i < w->n_pools; i++)
        if (w->pool[i].type == t->type && w->pool[i].cols == t->cols && w->pool[i].zero == zero) return &w->pool[i];
    /* four types at most, two row lengths, zero or not: POOLS_MAX is never reached */
    pool *p = &w->pool[w->n_pools++];
    tl_rng rng;
    char seed[96];
    *p = (pool){.type = t->type, .cols = t->cols, .zero = zero, .blocks = (POOL_BYTES / t->type->block_bytes) | 1};
    p->bytes = tl_xalloc(p->blocks * t->type->block_bytes);
    snprintf(seed, sizeof seed, "pool %" PRIu64 " %s %" PRIu64 " %d", w->spec->seed, t->type->name, t->cols, zero);
    tl_rng_seed(&rng, tl_seed_of(seed));
    synth_fill_blocks(p->bytes, p->blocks, t->type, zero ? 0.0 : 1.0 / sqrt((double)t->cols), &rng);
    return p;
}

static tl_status fill_pooled(writer *w, const synth_tensor *t, tl_err *e) {
    const pool *p = pool_for(w, t);
    size_t all = p->blocks * t->type->block_bytes;
    size_t at = (size_t)(tl_seed_of(t->name) % p->blocks) * t->type->block_bytes;
    tl_status st = TL_OK;
    for (uint64_t left = t->bytes; left > 0 && st == TL_OK;) {
        size_t n = all - at < left ? all - at : (size_t)left;
        st = emit(w, p->bytes + at, n, e);
        left -= n;
        at = 0;
    }
    return st;
}

static tl_status fill_ones(writer *w, const synth_tensor *t, tl_err *e) {
    static const uint8_t ONE[4] = {0, 0, 0x80, 0x3f}; /* 1.0f, little-endian */
    tl_buf b;
    tl_buf_init(&b, 0);
    for (uint64_t i = 0; i < t->cols; i++) tl_buf_add(&b, ONE, sizeof ONE);
    tl_status st = emit(w, b.p, b.len, e);
    tl_buf_free(&b);
    return st;
}

/* ---- scripted rows ------------------------------------------------------------------------------------------- */

/* Row of a token: random signs, then the flag. */
static void sign_row(int8_t *v, const tl_synth_spec *s, uint32_t token, int8_t flag) {
    uint32_t free_dims = s->embed - synth_flag_dims(s->embed);
    tl_rng rng;
    tl_rng_seed(&rng, s->seed * UINT64_C(0x9e3779b97f4a7c15) + token);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < free_dims; i++) {
        if (i % 64 == 0) bits = tl_rng_u64(&rng);
        v[i] = bits >> (i % 64) & 1 ? 1 : -1;
    }
    memset(v + free_dims, flag, s->embed - free_dims);
}

typedef struct script_rows {
    uint8_t *in_script; /* by token: does the script go on from it? */
    uint32_t *before;   /* by token: the token it follows, or UINT32_MAX */
    uint32_t first;
    uint8_t *other; /* OTHER_ROWS encoded rows that tokens outside the script share */
    uint8_t *zero;
    int8_t *v;
    size_t row_bytes;
} script_rows;

static void script_rows_free(script_rows *r) {
    free(r->in_script);
    free(r->before);
    free(r->other);
    free(r->zero);
    free(r->v);
}

static void script_rows_make(script_rows *r, const writer *w, const synth_tensor *t) {
    size_t n = 0;
    const tl_synth_spec *s = w->spec;
    *r = (script_rows){.row_bytes = (size_t)(t->bytes / t->rows)};
    synth_step *step = synth_steps(&n, &r->first, w->vocab, s);
    r->in_script = tl_xalloc(s->vocab);
    r->before = tl_xalloc(s->vocab * sizeof *r->before);
    memset(r->before, 0xff, s->vocab * sizeof *r->before);
    for (size_t i = 0; i < n; i++) {
        r->in_script[step[i].from] = 1;
        r->before[step[i].to] = step[i].from;
    }
    free(step);
    r->v = tl_xalloc(s->embed);
    r->zero = tl_xalloc(r->row_bytes);
    synth_encode_row(r->zero, t->type, r->v, s->embed);
    r->other = tl_xalloc(OTHER_ROWS * r->row_bytes);
    for (uint32_t i = 0; i < OTHER_ROWS; i++) {
        sign_row(r->v, s, UINT32_MAX - i, 1);
        synth_encode_row(r->other + i * r->row_bytes, t->type, r->v, s->embed);
    }
}

static void script_row(uint8_t *out, script_rows *r, const writer *w, const synth_tensor *t, uint32_t token) {
    uint32_t embed = w->spec->embed, of = t->fill == FILL_EMBED ? token : r->before[token];
    if (t->fill == FILL_EMBED && !r->in_script[token]) {
        memcpy(out, r->other + token % OTHER_ROWS * r->row_bytes, r->row_bytes);
    } else if (t->fill == FILL_OUTPUT && token == r->first) {
        uint32_t flags = synth_flag_dims(embed);
        memset(r->v, 0, embed - flags);
        memset(r->v + embed - flags, 1, flags);
        synth_encode_row(out, t->type, r->v, embed);
    } else if (of == UINT32_MAX) {
        memcpy(out, r->zero, r->row_bytes);
    } else {
        sign_row(r->v, w->spec, of, -1);
        synth_encode_row(out, t->type, r->v, embed);
    }
}

static tl_status fill_script(writer *w, const synth_tensor *t, tl_err *e) {
    tl_status st = TL_OK;
    script_rows r;
    script_rows_make(&r, w, t);
    size_t per = CHUNK / r.row_bytes + 1, have = 0;
    uint8_t *chunk = tl_xalloc(per * r.row_bytes);
    for (uint32_t y = 0; y < t->rows; y++) {
        script_row(chunk + have++ * r.row_bytes, &r, w, t, y);
        if (have < per && y + 1 < t->rows) continue;
        TRY(emit(w, chunk, have * r.row_bytes, e));
        have = 0;
    }
out:
    free(chunk);
    script_rows_free(&r);
    return st;
}

static tl_status write_tensor(writer *w, const synth_tensor *t, tl_err *e) {
    static const uint8_t PAD[SYNTH_ALIGN] = {0};
    tl_status st = TL_OK;
    switch (t->fill) {
    case FILL_ONES: TRY(fill_ones(w, t, e)); break;
    case FILL_EMBED:
    case FILL_OUTPUT: TRY(fill_script(w, t, e)); break;
    default: TRY(fill_pooled(w, t, e)); break;
    }
    TRY(emit(w, PAD, (size_t)((SYNTH_ALIGN - t->bytes % SYNTH_ALIGN) % SYNTH_ALIGN), e));
out:
    return st;
}

/* ---- the whole file ------------------------------------------------------------------------------------------ */

typedef struct made {
    tl_synth_spec spec;
    synth_vocab vocab;
    synth_tensor *tensor;
    size_t n;
    tl_buf header;
    uint64_t file_bytes;
} made;

static void made_free(made *m) {
    synth_vocab_free(&m->vocab);
    free(m->tensor);
    tl_buf_free(&m->header);
}

static tl_status make(made *m, const tl_synth_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    *m = (made){.spec = *spec};
    tl_buf_init(&m->header, 0);
    TRY(synth_resolve(&m->spec, e));
    TRY(synth_vocab_build(&m->vocab, &m->spec, e));
    m->tensor = synth_tensors(&m->n, &m->spec);
    synth_header(&m->header, &m->spec, &m->vocab, m->tensor, m->n);
    const synth_tensor *last = &m->tensor[m->n - 1];
    m->file_bytes = m->header.len + (last->offset + last->bytes + SYNTH_ALIGN - 1) / SYNTH_ALIGN * SYNTH_ALIGN;
out:
    return st;
}

tl_status tl_synth_describe(tl_synth_plan *out, const tl_synth_spec *spec, tl_err *e) {
    made m;
    tl_status st = TL_OK;
    *out = (tl_synth_plan){.file_bytes = 0};
    TRY(make(&m, spec, e));
    out->spec = m.spec;
    out->file_bytes = m.file_bytes;
    for (size_t i = 0; i < m.n; i++) {
        const synth_tensor *t = &m.tensor[i];
        out->tensor_bytes += t->bytes;
        out->params += t->cols * t->rows;
        if (i > 0 || m.spec.tie) out->read_bytes_per_token += t->bytes; /* the first one is the embedding table */
    }
    out->kv_bytes_per_token_f16 = UINT64_C(4) * m.spec.layers * m.spec.kv_heads * (m.spec.embed / m.spec.heads);
out:
    made_free(&m);
    return st;
}

static tl_status check_target(const char *path, uint64_t bytes, tl_err *e) {
    tl_status st = TL_OK;
    tl_file_facts ff;
    uint64_t room = 0;
    char *dir = tl_path_dir(path);
    TRY(tl_file_stat(&ff, path, e));
    if (ff.exists && !ff.is_file) {
        st = tl_fail(e, TL_INVALID, "%s exists and is no file", path);
        goto out;
    }
    if (!tl_dir_exists(dir)) {
        tl_fail(e, TL_NOT_FOUND, "the folder %s does not exist", dir);
        st = tl_remedy(e, "make it, or write elsewhere");
        goto out;
    }
    TRY(tl_fs_free_bytes(&room, dir, e));
    if (room < bytes) {
        tl_fail(e, TL_IO, "the model needs %" PRIu64 " bytes, %s has %" PRIu64 " free", bytes, dir, room);
        st = tl_remedy(e, "free some space, choose a smaller model, or write to another disk");
    }
out:
    free(dir);
    return st;
}

static tl_status write_all(writer *w, const made *m, tl_err *e) {
    tl_status st = TL_OK;
    w->f = fopen(w->path, "wb");
    if (w->f == NULL) return tl_file_fail("create", w->path, errno, e);
    setvbuf(w->f, NULL, _IONBF, 0); /* chunks are large: stdio's copy would only cost time */
    TRY(emit(w, m->header.p, m->header.len, e));
    for (size_t i = 0; i < m->n; i++) TRY(write_tensor(w, &m->tensor[i], e));
out:
    if (fclose(w->f) != 0 && st == TL_OK) st = tl_file_fail("write", w->path, errno, e);
    return st;
}

tl_status tl_synth_write(const char *path, const tl_synth_spec *spec, tl_file_progress_fn *progress, void *ctx,
                         tl_err *e) {
    tl_status st = TL_OK;
    made m;
    writer *w = tl_xalloc(sizeof *w);
    char *temp = tl_xprintf("%s.tmp-%" PRId64, path, tl_os_pid());
    bool written = false;
    TRY(make(&m, spec, e));
    TRY(check_target(path, m.file_bytes, e));
    *w = (writer){.path = temp, .spec = &m.spec, .vocab = &m.vocab, .total = m.file_bytes, .progress = progress, .ctx = ctx};
    written = true;
    TRY(write_all(w, &m, e));
    if (rename(temp, path) != 0) {
        st = tl_file_fail("rename to", path, errno, e);
        goto out;
    }
    written = false;
out:
    if (written) remove(temp);
    for (size_t i = 0; i < w->n_pools; i++) free(w->pool[i].bytes);
    free(w);
    free(temp);
    made_free(&m);
    return st;
}

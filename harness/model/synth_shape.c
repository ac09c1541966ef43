/* Options of the synthetic writer, the shape that follows from them, and the tensor table.
 * Type of each tensor: in f16, q8_0, q4_0, q4_k, q6_k every matrix has that type (as `llama-quantize --pure`); q4_k_m
 * follows llama.cpp's rule per tensor (src/llama-quant.cpp): attn_v and ffn_down Q6_K in the first and last eighth of
 * the layers and in every third between, output (or the tied table) Q6_K, the rest Q4_K. Its exception for 70B (80
 * layers: attn_v Q5_K) is not made. */
#include "model_impl.h"

#include <math.h>

#define GB UINT64_C(1000000000)
#define AT(field) offsetof(tl_synth_spec, field)

static const tl_synth_option OPTIONS[] = {
    {"quant", "TYPE", "q4_0", "f16, q8_0, q4_0, q4_k, q6_k (all matrices), or q4_k_m (llama.cpp's mixture)",
     TL_SYNTH_TEXT, 0, 15, AT(quant)},
    {"size", "SIZE", NULL, "choose a plausible shape of about this file size, such as 1.3GB", TL_SYNTH_SIZE, 1000000,
     2000 * GB, AT(size_bytes)},
    {"layers", "N", "16", "transformer layers", TL_SYNTH_COUNT, 1, 512, AT(layers)},
    {"embed", "N", "2048", "width of a layer", TL_SYNTH_COUNT, 32, 65536, AT(embed)},
    {"heads", "N", "embed/64", "attention heads", TL_SYNTH_COUNT, 1, 1024, AT(heads)},
    {"kv-heads", "N", "heads/4", "heads of keys and values", TL_SYNTH_COUNT, 1, 1024, AT(kv_heads)},
    {"ff", "N", "2.75*embed", "width of the feed-forward part", TL_SYNTH_COUNT, 32, 262144, AT(ff)},
    {"vocab", "N", "32000", "tokens in the vocabulary (8192 below 200 MB)", TL_SYNTH_COUNT, 512, 1048576, AT(vocab)},
    {"ctx", "N", "32768", "longest context that the model claims", TL_SYNTH_COUNT, 64, 16777216, AT(ctx)},
    {"think", "N", "0", "scripted: words of thinking before the answer", TL_SYNTH_COUNT, 0, 100000, AT(think)},
    {"answer", "N", "0", "scripted: words of the answer; without it weights are random", TL_SYNTH_COUNT, 0, 100000,
     AT(answer)},
    {"wrong", "SHARE", "0", "scripted draft model: share of steps that say a wrong token", TL_SYNTH_SHARE, 0, 1,
     AT(wrong)},
    {"seed", "N", "1", "the same options and seed give the same bytes on any machine", TL_SYNTH_COUNT, 0, UINT64_MAX,
     AT(seed)},
    {"name", "NAME", NULL, "general.name in the file (default: made from the shape)", TL_SYNTH_TEXT, 0, 63, AT(name)},
    {"tie", NULL, NULL, "one table for embedding and output head (random weights only)", TL_SYNTH_FLAG, 0, 1, AT(tie)},
};

static const struct {
    const char *name;
    uint32_t type;
} QUANTS[] = {{"f16", TT_F16},   {"q8_0", TT_Q8_0}, {"q4_0", TT_Q4_0},
              {"q4_k", TT_Q4_K}, {"q6_k", TT_Q6_K}, {"q4_k_m", TT_Q4_K}};

const tl_synth_option *tl_synth_options(size_t *n_out) {
    *n_out = TL_COUNT(OPTIONS);
    return OPTIONS;
}

tl_synth_spec tl_synth_default(void) {
    return (tl_synth_spec){.quant = "q4_0", .seed = 1};
}

/* ---- options ------------------------------------------------------------------------------------------------- */

static bool parse_size(uint64_t *out, const char *s) {
    static const struct {
        const char *unit;
        double factor;
    } UNITS[] = {{"", 1},     {"B", 1},     {"kB", 1e3},         {"KB", 1e3},          {"MB", 1e6},           {"GB", 1e9},
                 {"TB", 1e12}, {"M", 1e6},  {"G", 1e9},          {"KiB", 1024},        {"MiB", 1048576},
                 {"GiB", 1073741824}};
    char number[32];
    size_t n = strspn(s, "0123456789.");
    double v;
    if (n == 0 || n >= sizeof number) return false;
    snprintf(number, sizeof number, "%.*s", (int)n, s);
    if (!tl_parse_f64(number, &v)) return false;
    s += n;
    if (*s == ' ') s++;
    for (size_t i = 0; i < TL_COUNT(UNITS); i++) {
        if (strcmp(UNITS[i].unit, s) != 0 || v * UNITS[i].factor > 1e18) continue;
        *out = (uint64_t)(v * UNITS[i].factor + 0.5);
        return true;
    }
    return false;
}

static bool parse_u64(uint64_t *out, const char *s) {
    uint64_t v = 0;
    if (*s == 0 || strspn(s, "0123456789") != strlen(s)) return false;
    for (; *s; s++) {
        uint64_t d = (uint64_t)(*s - '0');
        if (v > (UINT64_MAX - d) / 10) return false;
        v = v * 10 + d;
    }
    *out = v;
    return true;
}

static tl_status set_count(void *at, const tl_synth_option *o, const char *value, tl_err *e) {
    uint64_t v = 0;
    bool is_size = o->kind == TL_SYNTH_SIZE;
    if (!(is_size ? parse_size(&v, value) : parse_u64(&v, value)) || v < o->min || v > o->max) {
        tl_fail(e, TL_INVALID, "--%s '%s' is not %s from %" PRIu64 " to %" PRIu64, o->name, value,
                is_size ? "a size" : "a whole number", o->min, o->max);
        return tl_remedy(e, "%s", is_size ? "write it like 500MB or 1.3GB" : o->help);
    }
    if (is_size || o->offset == AT(seed)) *(uint64_t *)at = v;
    else *(uint32_t *)at = (uint32_t)v;
    return TL_OK;
}

static tl_status set_text(char *at, const tl_synth_option *o, const char *value, tl_err *e) {
    size_t n = strlen(value);
    if (n == 0 || n > o->max || !tl_utf8_valid(value, n))
        return tl_fail(e, TL_INVALID, "--%s takes 1 to %" PRIu64 " bytes of UTF-8 text, not '%s'", o->name, o->max,
                       value);
    memcpy(at, value, n + 1);
    return TL_OK;
}

static tl_status unknown_option(const char *name, tl_err *e) {
    const char *names[TL_COUNT(OPTIONS)];
    for (size_t i = 0; i < TL_COUNT(OPTIONS); i++) names[i] = OPTIONS[i].name;
    const char *near = tl_nearest(name, names, TL_COUNT(names));
    tl_fail(e, TL_INVALID, "synth has no option --%s", name);
    return near ? tl_remedy(e, "did you mean --%s?", near) : tl_remedy(e, "see `tally synth --help`");
}

tl_status tl_synth_set(tl_synth_spec *spec, const char *name, const char *value, tl_err *e) {
    const tl_synth_option *o = NULL;
    for (size_t i = 0; i < TL_COUNT(OPTIONS); i++)
        if (tl_str_eq(OPTIONS[i].name, name)) o = &OPTIONS[i];
    if (o == NULL) return unknown_option(name, e);
    if (value == NULL && o->kind != TL_SYNTH_FLAG)
        return tl_fail(e, TL_INVALID, "--%s needs a value (%s)", name, o->arg);
    void *at = (char *)spec + o->offset;
    double d;
    switch (o->kind) {
    case TL_SYNTH_FLAG: *(bool *)at = true; return TL_OK;
    case TL_SYNTH_TEXT: return set_text(at, o, value, e);
    case TL_SYNTH_SHARE:
        if (!tl_parse_f64(value, &d) || !(d >= 0 && d <= 1))
            return tl_fail(e, TL_INVALID, "--%s '%s' is not a share from 0 to 1", name, value);
        *(double *)at = d;
        return TL_OK;
    default: return set_count(at, o, value, e);
    }
}

/* ---- types of tensors ---------------------------------------------------------------------------------------- */

typedef enum role { R_EMBED, R_OUTPUT, R_Q, R_K, R_V, R_ATTN_OUT, R_GATE, R_UP, R_DOWN } role;

/* llama.cpp's use_more_bits. */
static bool more_bits(uint32_t i, uint32_t layers) {
    return i < layers / 8 || i >= 7 * layers / 8 || (i - layers / 8) % 3 == 2;
}

static const tl_tensor_type *type_for(const tl_synth_spec *s, role r, bool raised) {
    uint32_t id = TT_F16;
    for (size_t i = 0; i < TL_COUNT(QUANTS); i++)
        if (tl_str_eq(QUANTS[i].name, s->quant)) id = QUANTS[i].type;
    if (tl_str_eq(s->quant, "q4_k_m") &&
        (r == R_OUTPUT || (r == R_EMBED && s->tie) || ((r == R_V || r == R_DOWN) && raised)))
        id = TT_Q6_K;
    return tl_tensor_type_of(id);
}

static uint64_t matrix_bytes(const tl_synth_spec *s, role r, bool raised, uint64_t cols, uint64_t rows) {
    const tl_tensor_type *t = type_for(s, r, raised);
    return cols * rows / t->block_elements * t->block_bytes;
}

/* ---- shape --------------------------------------------------------------------------------------------------- */

static uint64_t layer_bytes(const tl_synth_spec *s, bool raised) {
    uint64_t e = s->embed, kv = e / s->heads * s->kv_heads, ff = s->ff;
    return matrix_bytes(s, R_Q, raised, e, e) + matrix_bytes(s, R_K, raised, e, kv) +
           matrix_bytes(s, R_V, raised, e, kv) + matrix_bytes(s, R_ATTN_OUT, raised, e, e) +
           2 * matrix_bytes(s, R_GATE, raised, e, ff) + matrix_bytes(s, R_DOWN, raised, ff, e) + 8 * e;
}

static uint64_t about_bytes(const tl_synth_spec *s) {
    uint64_t raised = 0, table = matrix_bytes(s, R_EMBED, false, s->embed, s->vocab);
    for (uint32_t i = 0; i < s->layers; i++) raised += more_bits(i, s->layers);
    return (uint64_t)s->vocab * 24 + 8192 + table +
           (s->tie ? 0 : matrix_bytes(s, R_OUTPUT, false, s->embed, s->vocab)) + raised * layer_bytes(s, true) +
           (s->layers - raised) * layer_bytes(s, false);
}

static void default_heads(tl_synth_spec *s) {
    uint32_t width = s->size_bytes > 0 && s->embed >= 2048 ? 128 : 64;
    if (s->heads == 0) s->heads = s->embed % width == 0 ? s->embed / width : 1;
    if (s->kv_heads == 0) s->kv_heads = s->heads % 4 == 0 ? s->heads / 4 : s->heads % 3 == 0 ? s->heads / 3 : s->heads;
}

/* Of this width and depth, the feed-forward width that comes nearest; how far from usual the shape is, or a large
 * number where it misses the size. */
static double try_shape(tl_synth_spec *s, uint32_t usual_layers) {
    uint64_t target = s->size_bytes, low, step;
    s->ff = 256;
    low = about_bytes(s);
    s->ff = 512;
    step = about_bytes(s) - low;
    if (target < low) return 1e9;
    uint64_t k = (target - low + step / 2) / step + 1;
    if (k * 256 > 262144 || k * 256 < s->embed || k * 256 > 5 * (uint64_t)s->embed) return 1e9;
    s->ff = (uint32_t)(k * 256);
    double miss = fabs((double)about_bytes(s) / (double)target - 1);
    if (miss > 0.025) return 1e9;
    return fabs(log((double)s->layers / usual_layers)) + fabs(log(s->ff / (2.75 * s->embed))) + 10 * miss;
}

static void choose_of_width(tl_synth_spec *best, double *best_score, const tl_synth_spec *s, uint32_t embed) {
    uint32_t usual = embed / 112 < 4 ? 4 : embed / 112;
    for (uint32_t l = usual / 2; l <= 2 * usual; l++) {
        tl_synth_spec t = *s;
        t.embed = embed;
        t.layers = l;
        default_heads(&t);
        double score = try_shape(&t, usual);
        if (score < *best_score) {
            *best_score = score;
            *best = t;
        }
    }
}

static tl_status choose_shape(tl_synth_spec *s, tl_err *e) {
    if (s->layers || s->embed || s->ff || s->heads || s->kv_heads) {
        tl_fail(e, TL_INVALID, "--size chooses the shape, so layers, embed, heads, kv-heads and ff cannot be given too");
        return tl_remedy(e, "leave out --size, or the others");
    }
    tl_synth_spec best = *s;
    double score = 1e8;
    /* steps that keep the number of heads divisible by 4 where heads are 128 wide */
    for (uint32_t embed = 256; embed <= 16384; embed += embed < 2048 ? 256 : 512) choose_of_width(&best, &score, s, embed);
    if (score > 1e7) {
        tl_synth_spec least = *s;
        least.embed = 256;
        least.layers = 2;
        least.ff = 256;
        default_heads(&least);
        tl_fail(e, TL_INVALID, "no plausible %s model of %" PRIu64 " bytes with a vocabulary of %u exists", s->quant,
                s->size_bytes, s->vocab);
        return tl_remedy(e, "sizes from about %" PRIu64 " MB to 300 GB work; a smaller --vocab allows smaller models, "
                         "and --layers, --embed, --ff give any shape", about_bytes(&least) / 1000000 + 1);
    }
    *s = best;
    return TL_OK;
}

static tl_status check_rows(const tl_synth_spec *s, const char *what, uint32_t width, tl_err *e) {
    uint32_t block = type_for(s, R_Q, false)->block_elements;
    if (width % block == 0) return TL_OK;
    uint32_t down = width / block * block, up = down + block;
    tl_fail(e, TL_INVALID, "--%s %u: rows of %u values are no whole number of %s blocks of %u", what, width, width,
            s->quant, block);
    return tl_remedy(e, "use --%s %u%s or another --quant (f16 takes any width)", what, down ? down : up,
                     down ? " or the next multiple," : ",");
}

static tl_status check_heads(const tl_synth_spec *s, tl_err *e) {
    if (s->embed % s->heads != 0) {
        uint32_t h = s->heads;
        while (s->embed % h != 0) h--;
        tl_fail(e, TL_INVALID, "--heads %u does not divide --embed %u", s->heads, s->embed);
        return tl_remedy(e, "use --heads %u, or --embed %u", h, s->embed / s->heads * s->heads + s->heads);
    }
    if (s->embed / s->heads % 2 != 0) {
        tl_fail(e, TL_INVALID, "a head of %u values (--embed %u / --heads %u) is odd: rotary positions need pairs",
                s->embed / s->heads, s->embed, s->heads);
        return tl_remedy(e, "use a number of heads that leaves an even width");
    }
    if (s->heads % s->kv_heads != 0) {
        uint32_t k = s->kv_heads < s->heads ? s->kv_heads : s->heads;
        while (s->heads % k != 0) k--;
        tl_fail(e, TL_INVALID, "--kv-heads %u does not divide --heads %u", s->kv_heads, s->heads);
        return tl_remedy(e, "use --kv-heads %u", k);
    }
    return TL_OK;
}

static tl_status check_script(const tl_synth_spec *s, tl_err *e) {
    if (s->answer == 0 && (s->think > 0 || s->wrong > 0)) {
        tl_fail(e, TL_INVALID, "--%s is for scripted models, which need an answer", s->think > 0 ? "think" : "wrong");
        return tl_remedy(e, "add --answer N");
    }
    if (s->answer > 0 && s->tie) {
        tl_fail(e, TL_INVALID, "a scripted model cannot be tied: its head says which token follows another");
        return tl_remedy(e, "leave out --tie, or --answer");
    }
    if (s->answer > 0 && s->embed < 128) {
        tl_fail(e, TL_INVALID, "--embed %u is too narrow for a scripted model: its tokens could not be told apart",
                s->embed);
        return tl_remedy(e, "use --embed 128 or more");
    }
    return TL_OK;
}

static tl_status check_quant(const tl_synth_spec *s, tl_err *e) {
    const char *names[TL_COUNT(QUANTS)];
    for (size_t i = 0; i < TL_COUNT(QUANTS); i++) {
        names[i] = QUANTS[i].name;
        if (tl_str_eq(names[i], s->quant)) return TL_OK;
    }
    const char *near = tl_nearest(s->quant, names, TL_COUNT(names));
    tl_fail(e, TL_INVALID, "synth cannot write the quantisation '%s'", s->quant);
    return tl_remedy(e, "%s%s%sknown are f16, q8_0, q4_0, q4_k, q6_k, q4_k_m", near ? "did you mean " : "",
                     near ? near : "", near ? "? " : "");
}

static tl_status check_limits(const tl_synth_spec *s, tl_err *e) {
    for (size_t i = 0; i < TL_COUNT(OPTIONS); i++) {
        const tl_synth_option *o = &OPTIONS[i];
        if (o->kind != TL_SYNTH_COUNT || o->offset == AT(seed)) continue;
        uint32_t v = *(const uint32_t *)(const void *)((const char *)s + o->offset);
        if (v < o->min || v > o->max)
            return tl_fail(e, TL_INVALID, "--%s %u is not from %" PRIu64 " to %" PRIu64, o->name, v, o->min, o->max);
    }
    if (!(s->wrong >= 0 && s->wrong <= 1)) return tl_fail(e, TL_INVALID, "--wrong is not a share from 0 to 1");
    return TL_OK;
}

static void default_vocab(tl_synth_spec *s) {
    uint64_t least = synth_vocab_base() + (uint64_t)s->think + s->answer + synth_wrong_count(s);
    uint64_t v = s->size_bytes > 0 && s->size_bytes < 200000000 ? 8192 : 32000;
    if (v < least) v = (least + 255) / 256 * 256;
    if (s->vocab == 0) s->vocab = (uint32_t)v;
}

static void default_name(tl_synth_spec *s) {
    if (s->name[0] != 0) return;
    snprintf(s->name, sizeof s->name, "tally-synth-%ux%u-%s%s", s->layers, s->embed, s->quant,
             s->wrong > 0 ? "-draft" : s->answer > 0 ? "-scripted" : "");
}

tl_status synth_resolve(tl_synth_spec *s, tl_err *e) {
    tl_status st = TL_OK;
    TRY(check_quant(s, e));
    default_vocab(s);
    if (s->ctx == 0) s->ctx = 32768;
    if (s->size_bytes > 0 && s->embed == 0) TRY(choose_shape(s, e));
    if (s->layers == 0) s->layers = 16;
    if (s->embed == 0) s->embed = 2048;
    if (s->ff == 0) s->ff = s->embed < 256 ? 3 * s->embed : (s->embed * 11 / 4 + 255) / 256 * 256;
    default_heads(s);
    default_name(s);
    TRY(check_limits(s, e));
    TRY(check_heads(s, e));
    TRY(check_rows(s, "embed", s->embed, e));
    TRY(check_rows(s, "ff", s->ff, e));
    TRY(check_script(s, e));
out:
    return st;
}

/* ---- tensor table -------------------------------------------------------------------------------------------- */

typedef struct table {
    synth_tensor *t;
    size_t n, cap;
    const tl_synth_spec *s;
} table;

static void put(table *tb, const char *name, int32_t layer, uint64_t cols, uint64_t rows, int r, synth_fill fill) {
    synth_tensor t = {.n_dims = fill == FILL_ONES ? 1 : 2, .cols = cols, .rows = rows, .fill = fill};
    if (layer >= 0) snprintf(t.name, sizeof t.name, "blk.%d.%s.weight", layer, name);
    else snprintf(t.name, sizeof t.name, "%s.weight", name);
    t.type = fill == FILL_ONES ? tl_tensor_type_of(TT_F32)
                               : type_for(tb->s, (role)r, layer >= 0 && more_bits((uint32_t)layer, tb->s->layers));
    t.bytes = cols / t.type->block_elements * t.type->block_bytes * rows;
    if (tb->n > 0) {
        const synth_tensor *last = &tb->t[tb->n - 1];
        t.offset = (last->offset + last->bytes + SYNTH_ALIGN - 1) / SYNTH_ALIGN * SYNTH_ALIGN;
    }
    TL_PUSH(tb->t, tb->n, tb->cap, t);
}

synth_tensor *synth_tensors(size_t *n_out, const tl_synth_spec *s) {
    table tb = {.s = s};
    bool scripted = s->answer > 0;
    uint64_t e = s->embed, kv = e / s->heads * s->kv_heads, ff = s->ff;
    synth_fill quiet = scripted ? FILL_ZERO : FILL_RANDOM; /* parts that would change the token's row */
    put(&tb, "token_embd", -1, e, s->vocab, R_EMBED, scripted ? FILL_EMBED : FILL_RANDOM);
    put(&tb, "output_norm", -1, e, 1, -1, FILL_ONES);
    if (!s->tie) put(&tb, "output", -1, e, s->vocab, R_OUTPUT, scripted ? FILL_OUTPUT : FILL_RANDOM);
    for (int32_t i = 0; i < (int32_t)s->layers; i++) {
        put(&tb, "attn_norm", i, e, 1, -1, FILL_ONES);
        put(&tb, "attn_q", i, e, e, R_Q, FILL_RANDOM);
        put(&tb, "attn_k", i, e, kv, R_K, FILL_RANDOM);
        put(&tb, "attn_v", i, e, kv, R_V, FILL_RANDOM);
        put(&tb, "attn_output", i, e, e, R_ATTN_OUT, quiet);
        put(&tb, "ffn_norm", i, e, 1, -1, FILL_ONES);
        put(&tb, "ffn_gate", i, e, ff, R_GATE, FILL_RANDOM);
        put(&tb, "ffn_up", i, e, ff, R_UP, FILL_RANDOM);
        put(&tb, "ffn_down", i, ff, e, R_DOWN, quiet);
    }
    *n_out = tb.n;
    return tb.t;
}

uint32_t synth_flag_dims(uint32_t embed) {
    uint32_t f = embed / 4 / 32 * 32;
    return f > 512 ? 512 : f;
}

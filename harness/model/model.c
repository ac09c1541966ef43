/* Opens a model (all parts of a split one), classes its tensors and sums what it weighs and what one token reads.
 * Formulas: bytes read per token = all weights, less the embedding table when the head is a tensor of its own (one row
 * of it is looked up), and of routed experts the share used/count. KV values per token = sum over the layers of
 * kv_heads x (key_length + value_length); with latent attention (DeepSeek) kv_lora_rank + rope dimensions. */
#include "model_impl.h"

#include <errno.h>

/* ---- metadata by architecture -------------------------------------------------------------------------------- */

static json_t *arch_get(const tl_model *m, const char *key) {
    char full[256];
    snprintf(full, sizeof full, "%s.%s", m->facts.architecture, key);
    return json_object_get(m->meta, full);
}

static uint64_t as_count(const json_t *j, uint64_t otherwise) {
    return json_is_integer(j) && json_integer_value(j) >= 0 ? (uint64_t)json_integer_value(j) : otherwise;
}

static uint32_t arch_u32(const tl_model *m, const char *key, uint32_t otherwise) {
    uint64_t v = as_count(arch_get(m, key), otherwise);
    return v <= UINT32_MAX ? (uint32_t)v : otherwise;
}

static const char *meta_text(const tl_model *m, const char *key) {
    const char *s = json_string_value(json_object_get(m->meta, key));
    return s ? s : "";
}

/* A number, or the largest of a per-layer array. */
static uint32_t largest(const json_t *j, uint32_t otherwise) {
    uint64_t v = 0;
    if (!json_is_array(j)) v = as_count(j, otherwise);
    for (size_t i = 0; i < json_array_size(j); i++) {
        uint64_t x = as_count(json_array_get(j, i), 0);
        if (x > v) v = x;
    }
    return v <= UINT32_MAX ? (uint32_t)v : otherwise;
}

/* ---- classes ------------------------------------------------------------------------------------------------- */

static const char *below_layer(const char *name, int32_t *layer) {
    *layer = -1;
    if (!tl_str_starts(name, "blk.")) return name;
    int32_t v = 0;
    const char *p = name + 4;
    if (*p < '0' || *p > '9') return name;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (v > 99999) return name;
        v = v * 10 + (*p - '0');
    }
    if (*p != '.') return name;
    *layer = v;
    return p + 1;
}

static tl_tensor_class class_of(const char *rest) {
    if (strstr(rest, "norm")) return TL_TENSOR_NORM;
    if (tl_str_starts(rest, "nextn")) return TL_TENSOR_NEXTN;
    if (tl_str_starts(rest, "token_embd") || tl_str_starts(rest, "per_layer_token_embd") ||
        tl_str_starts(rest, "position_embd") || tl_str_starts(rest, "token_types"))
        return TL_TENSOR_EMBED;
    if (tl_str_starts(rest, "output.")) return TL_TENSOR_OUTPUT;
    if (strstr(rest, "_exps")) return TL_TENSOR_EXPERTS;
    if (tl_str_starts(rest, "ffn_gate_inp")) return TL_TENSOR_OTHER;
    if (tl_str_starts(rest, "ffn_")) return TL_TENSOR_FFN;
    if (tl_str_starts(rest, "attn_")) return TL_TENSOR_ATTN;
    return TL_TENSOR_OTHER;
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

static uint64_t share(uint64_t bytes, uint32_t used, uint32_t count) {
    if (count == 0 || used >= count) return bytes;
    return bytes / count * used + bytes % count * used / count;
}

static void sum_tensors(tl_model *m) {
    tl_model_facts *f = &m->facts;
    uint32_t nextn = arch_u32(m, "nextn_predict_layers", 0);
    uint32_t blocks = arch_u32(m, "block_count", 0);
    int64_t plain_layers = nextn < blocks ? (int64_t)blocks - nextn : (int64_t)blocks;
    f->layers = (uint32_t)plain_layers;
    for (size_t i = 0; i < m->n_tensors; i++) {
        tl_model_tensor *t = &m->tensor[i];
        t->cls = class_of(below_layer(t->name, &t->layer));
        if (nextn > 0 && t->layer >= plain_layers) t->cls = TL_TENSOR_NEXTN;
        f->class_bytes[t->cls] += t->bytes;
        f->tensor_bytes += t->bytes;
        f->params += t->elements;
    }
    f->bits_per_weight = f->params ? 8.0 * (double)f->tensor_bytes / (double)f->params : 0;
    const tl_model_tensor *embed = tl_model_tensor_named(m, "token_embd.weight");
    bool encoder = arch_get(m, "pooling_type") || json_is_false(arch_get(m, "attention.causal"));
    f->tied = embed && !encoder && tl_model_tensor_named(m, "output.weight") == NULL;
    f->read_bytes_per_token = f->tensor_bytes - f->class_bytes[TL_TENSOR_EMBED] - f->class_bytes[TL_TENSOR_NEXTN] -
                              f->class_bytes[TL_TENSOR_EXPERTS] +
                              share(f->class_bytes[TL_TENSOR_EXPERTS], f->experts_used, f->experts);
    if (f->tied) f->read_bytes_per_token += embed->bytes;
}

/* Layers that keep KV, and the values they keep for one token. */
static void sum_kv(tl_model *m) {
    tl_model_facts *f = &m->facts;
    const json_t *kv = arch_get(m, "attention.head_count_kv"), *heads = arch_get(m, "attention.head_count");
    uint32_t every = arch_u32(m, "full_attention_interval", 1);
    uint32_t shared = arch_u32(m, "attention.shared_kv_layers", 0);
    uint32_t own = shared < f->layers ? f->layers - shared : f->layers;
    if (f->layers > 100000) return; /* geometry of a damaged file */
    for (uint32_t i = 0; i < own; i++) {
        const json_t *j = kv ? kv : heads;
        uint64_t n = as_count(json_is_array(j) ? json_array_get(j, i) : j, 0);
        if (every > 1 && i % every != every - 1) n = 0;
        if (n == 0 || n > 65536) continue;
        f->kv_layers++;
        if (f->kv_lora_rank > 0) {
            f->kv_k_values += (uint64_t)f->kv_lora_rank + f->rope_dims;
        } else {
            f->kv_k_values += n * f->key_length;
            f->kv_v_values += n * f->value_length;
        }
    }
}

static void set_texts(tl_model *m) {
    tl_model_facts *f = &m->facts;
    f->architecture = meta_text(m, "general.architecture");
    f->name = meta_text(m, "general.name");
    const json_t *ft = json_object_get(m->meta, "general.file_type");
    f->file_type = json_is_integer(ft) ? tl_model_file_type_name((int64_t)json_integer_value(ft)) : "unknown";
    f->chat_template = json_is_string(json_object_get(m->meta, "tokenizer.chat_template"));
}

void model_derive(tl_model *m) {
    tl_model_facts *f = &m->facts;
    set_texts(m);
    f->embed = arch_u32(m, "embedding_length", 0);
    f->heads = largest(arch_get(m, "attention.head_count"), 0);
    f->kv_heads_max = largest(arch_get(m, "attention.head_count_kv"), f->heads);
    f->ctx = as_count(arch_get(m, "context_length"), 0);
    f->experts = arch_u32(m, "expert_count", 0);
    f->experts_used = arch_u32(m, "expert_used_count", 0);
    uint32_t head = f->heads ? f->embed / f->heads : 0;
    f->key_length = arch_u32(m, "attention.key_length", head);
    f->value_length = arch_u32(m, "attention.value_length", head);
    f->kv_lora_rank = arch_u32(m, "attention.kv_lora_rank", 0);
    f->rope_dims = arch_u32(m, "rope.dimension_count", 0);
    f->sliding_window = largest(arch_get(m, "attention.sliding_window"), 0);
    const json_t *tokens = json_object_get(m->meta, "tokenizer.ggml.tokens");
    f->vocab = as_count(json_object_get(tokens, "count"), as_count(arch_get(m, "vocab_size"), 0));
    sum_tensors(m);
    sum_kv(m);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

tl_model *model_new(void) {
    tl_model *m = tl_xalloc(sizeof *m);
    m->arena = tl_arena_new();
    m->index = json_object();
    m->meta = json_object();
    return m;
}

void tl_model_free(tl_model *m) {
    if (m == NULL) return;
    json_decref(m->index);
    json_decref(m->meta);
    free(m->tensor);
    free(m->token);
    free(m->token_type);
    tl_arena_free(m->arena);
    free(m);
}

static bool five_digits(uint32_t *out, const char *s) {
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        *out = *out * 10 + (uint32_t)(s[i] - '0');
    }
    return true;
}

/* NAME-00001-of-00003.gguf: length of "NAME-", and the total; 0 when the path is not of that kind. */
static size_t split_stem(uint32_t *total, const char *path) {
    static const char TAIL[] = "00001-of-00003.gguf";
    size_t n = strlen(path), tail = sizeof TAIL - 1;
    uint32_t no;
    if (n <= tail + 1 || path[n - tail - 1] != '-') return 0;
    const char *p = path + n - tail;
    if (!five_digits(&no, p) || memcmp(p + 5, "-of-", 4) != 0 || !five_digits(total, p + 9) ||
        strcmp(p + 14, ".gguf") != 0)
        return 0;
    return no >= 1 && no <= *total ? n - tail : 0;
}

char **model_parts(uint32_t *n_out, const char *path) {
    uint32_t total = 1;
    size_t stem = split_stem(&total, path);
    if (stem == 0) total = 1;
    char **p = tl_xalloc(total * sizeof *p);
    for (uint32_t i = 0; i < total; i++)
        p[i] = stem == 0 ? tl_xstrdup(path)
                         : tl_xprintf("%.*s%05u-of-%05u.gguf", (int)stem, path, i + 1, total);
    *n_out = total;
    return p;
}

void model_parts_free(char **p, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) free(p[i]);
    free(p);
}

static tl_status open_part(tl_model *m, const char *path, uint32_t part, uint32_t total, unsigned flags, tl_err *e) {
    tl_file_facts ff;
    tl_status st = tl_file_stat(&ff, path, e);
    if (st != TL_OK) return st;
    if (!ff.exists) {
        tl_fail(e, total > 1 ? TL_INVALID : TL_NOT_FOUND, total > 1 ? "%s is missing: part %u of %u of a split model"
                : "model %s does not exist", path, part + 1, total);
        return total > 1 ? tl_remedy(e, "put all %u parts into one folder", total)
                         : tl_remedy(e, "check the path, or write a synthetic model with `tally synth`");
    }
    if (!ff.is_file) return tl_fail(e, TL_INVALID, "%s is not a file, so it is no model", path);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return tl_file_fail("open model", path, errno, e);
    st = gguf_read(m, f, ff.size_bytes, path, part, flags, e);
    fclose(f);
    return st;
}

static tl_status check_split(const tl_model *m, const char *path, uint32_t total, tl_err *e) {
    uint64_t says = as_count(json_object_get(m->meta, "split.count"), 1);
    if (says == total || says == 0) return TL_OK;
    tl_fail(e, TL_INVALID, "%s is one part of a model split into %" PRIu64 " files, but its name says %u", path, says,
            total);
    return tl_remedy(e, "keep the names NAME-00001-of-000NN.gguf that the parts were published with");
}

tl_status tl_model_open(tl_model **out, const char *path, unsigned flags, tl_err *e) {
    tl_status st = TL_OK;
    tl_model *m = model_new();
    uint32_t total = 0;
    char **part = model_parts(&total, path);
    *out = NULL;
    for (uint32_t i = 0; i < total; i++) TRY(open_part(m, part[i], i, total, flags, e));
    TRY(check_split(m, path, total, e));
    m->facts.path = tl_arena_strdup(m->arena, path);
    m->facts.parts = total;
    model_derive(m);
    *out = m;
    m = NULL;
out:
    model_parts_free(part, total);
    tl_model_free(m);
    return st;
}

/* ---- looking ------------------------------------------------------------------------------------------------- */

const tl_model_facts *tl_model_facts_of(const tl_model *m) {
    return &m->facts;
}

size_t tl_model_tensors(const tl_model_tensor **out, const tl_model *m) {
    *out = m->tensor;
    return m->n_tensors;
}

const tl_model_tensor *tl_model_tensor_named(const tl_model *m, const char *name) {
    const json_t *i = json_object_get(m->index, name);
    return i ? &m->tensor[json_integer_value(i)] : NULL;
}

const json_t *tl_model_metadata(const tl_model *m) {
    return m->meta;
}

const char *tl_model_token(const tl_model *m, uint64_t id, int32_t *type) {
    if (id >= m->n_tokens) return NULL;
    if (type) *type = id < m->n_token_types ? m->token_type[id] : 0;
    return m->token[id];
}

tl_status tl_model_kv_bytes_per_token(uint64_t *out, const tl_model *m, const char *k_type, const char *v_type,
                                      tl_err *e) {
    if (v_type == NULL) v_type = k_type;
    const tl_tensor_type *k = tl_tensor_type_named(k_type), *v = tl_tensor_type_named(v_type);
    *out = 0;
    if (k == NULL || v == NULL) {
        tl_fail(e, TL_INVALID, "unknown KV cache type '%s'", k ? v_type : k_type);
        return tl_remedy(e, "known are f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl");
    }
    if (m->facts.kv_k_values == 0)
        return tl_fail(e, TL_NOT_FOUND, "%s does not say how its KV cache is shaped (architecture '%s')",
                       m->facts.path, m->facts.architecture);
    *out = (m->facts.kv_k_values * k->block_bytes + k->block_elements - 1) / k->block_elements +
           (m->facts.kv_v_values * v->block_bytes + v->block_elements - 1) / v->block_elements;
    return TL_OK;
}

static json_t *kv_json(const tl_model *m) {
    static const char *const NAMES[] = {"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"};
    json_t *o = json_object();
    for (size_t i = 0; i < TL_COUNT(NAMES); i++) {
        uint64_t b;
        if (tl_model_kv_bytes_per_token(&b, m, NAMES[i], NULL, NULL) == TL_OK)
            json_object_set_new(o, NAMES[i], json_integer((json_int_t)b));
    }
    return o;
}

static json_t *type_json(const tl_model *m) {
    json_t *o = json_object();
    for (size_t i = 0; i < m->n_tensors; i++) {
        const tl_model_tensor *t = &m->tensor[i];
        json_int_t had = json_integer_value(json_object_get(o, t->type_name));
        json_object_set_new(o, t->type_name, json_integer(had + (json_int_t)t->bytes));
    }
    return o;
}

static json_t *synth_json(const tl_model *m) {
    static const char PREFIX[] = "tally.synth.";
    json_t *o = json_object(), *v;
    const char *k;
    json_object_foreach(m->meta, k, v) {
        if (tl_str_starts(k, PREFIX)) json_object_set(o, k + sizeof PREFIX - 1, v);
    }
    if (json_object_size(o) > 0) return o;
    json_decref(o);
    return json_null();
}

static void put_int(json_t *o, const char *key, uint64_t v) {
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

json_t *tl_model_json(const tl_model *m) {
    const tl_model_facts *f = &m->facts;
    json_t *o = json_object(), *c = json_object();
    json_object_set_new(o, "architecture", json_string(f->architecture));
    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "file_type", json_string(f->file_type));
    const struct {
        const char *key;
        uint64_t v;
    } ints[] = {
        {"gguf_version", f->gguf_version}, {"parts", f->parts}, {"file_bytes", f->file_bytes},
        {"tensor_bytes", f->tensor_bytes}, {"params", f->params},
        {"read_bytes_per_token", f->read_bytes_per_token}, {"layers", f->layers}, {"embed", f->embed},
        {"heads", f->heads}, {"kv_heads_max", f->kv_heads_max}, {"ctx", f->ctx}, {"vocab", f->vocab},
        {"experts", f->experts}, {"experts_used", f->experts_used}, {"key_length", f->key_length},
        {"value_length", f->value_length}, {"kv_lora_rank", f->kv_lora_rank}, {"rope_dims", f->rope_dims},
        {"kv_layers", f->kv_layers}, {"sliding_window", f->sliding_window}, {"kv_k_values", f->kv_k_values},
        {"kv_v_values", f->kv_v_values},
    };
    for (size_t i = 0; i < TL_COUNT(ints); i++) put_int(o, ints[i].key, ints[i].v);
    json_object_set_new(o, "bits_per_weight", tl_json_real(f->bits_per_weight));
    json_object_set_new(o, "tied", json_boolean(f->tied));
    json_object_set_new(o, "unknown_types", json_boolean(f->unknown_types));
    json_object_set_new(o, "chat_template", json_boolean(f->chat_template));
    for (int i = 0; i < TL_TENSOR_CLASSES; i++) put_int(c, tl_tensor_class_name((tl_tensor_class)i), f->class_bytes[i]);
    json_object_set_new(o, "class_bytes", c);
    json_object_set_new(o, "type_bytes", type_json(m));
    json_object_set_new(o, "kv_bytes_per_token", kv_json(m));
    json_object_set_new(o, "synth", synth_json(m));
    return o;
}

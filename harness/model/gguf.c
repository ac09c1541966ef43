/* Reads the header of one GGUF file (ggml/docs/gguf.md, versions 2 and 3). Every length is checked against the bytes
 * that are left before anything is allocated, so a hostile file costs no more memory than its own size, and no more
 * than the header limit. The body is never touched. */
#include "model_impl.h"

enum {
    HEADER_MAX = 256 << 20,
    ITEMS_MAX = 1 << 20,     /* tensors, and metadata keys */
    NAME_MAX_BYTES = 4096,   /* of a key or a tensor's name */
    SMALL_ARRAY = 512,       /* numbers kept in full: per-layer geometry, not vocabularies */
    DEPTH_MAX = 4,
};

enum { V_U8, V_I8, V_U16, V_I16, V_U32, V_I32, V_F32, V_BOOL, V_STRING, V_ARRAY, V_U64, V_I64, V_F64, V_COUNT };
static const uint8_t VALUE_BYTES[V_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
static const char *const VALUE_NAMES[V_COUNT] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                 "bool", "string", "array", "u64", "i64", "f64"};

typedef struct reader {
    FILE *f;
    const char *path;
    uint64_t pos, size;
    const char *key; /* being read, for messages */
    tl_model *m;
    unsigned flags;
    bool keep_meta;
} reader;

static tl_status need(const reader *r, uint64_t n, const char *what, tl_err *e) {
    if (n > r->size - r->pos) {
        tl_fail(e, TL_INVALID, "%s: the header is cut off or damaged: %s at byte %" PRIu64 " needs %" PRIu64
                " bytes, the file has %" PRIu64 " left", r->path, what, r->pos, n, r->size - r->pos);
        return tl_remedy(e, "fetch or write the file again");
    }
    if (r->pos + n > HEADER_MAX)
        return tl_fail(e, TL_LIMIT, "%s: the header is larger than %d MiB (at %s)", r->path, HEADER_MAX >> 20, what);
    return TL_OK;
}

static tl_status get(reader *r, void *out, size_t n, const char *what, tl_err *e) {
    tl_status st = need(r, n, what, e);
    if (st != TL_OK) return st;
    if (fread(out, 1, n, r->f) != n)
        return tl_fail(e, TL_IO, "%s: cannot read %s at byte %" PRIu64, r->path, what, r->pos);
    r->pos += n;
    return TL_OK;
}

static uint64_t little(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static tl_status get_int(uint64_t *out, reader *r, size_t n, const char *what, tl_err *e) {
    uint8_t b[8];
    tl_status st = get(r, b, n, what, e);
    *out = st == TL_OK ? little(b, n) : 0;
    return st;
}

static tl_status skip(reader *r, uint64_t n, const char *what, tl_err *e) {
    uint8_t scratch[16384];
    tl_status st = need(r, n, what, e);
    while (st == TL_OK && n > 0) {
        size_t part = n < sizeof scratch ? (size_t)n : sizeof scratch;
        st = get(r, scratch, part, what, e);
        n -= part;
    }
    return st;
}

/* A string into the arena. */
static tl_status get_string(char **out, size_t *len, reader *r, uint64_t max, const char *what, tl_err *e) {
    tl_status st = TL_OK;
    uint64_t n;
    TRY(get_int(&n, r, 8, what, e));
    TRY(need(r, n, what, e));
    if (n > max) {
        st = tl_fail(e, TL_INVALID, "%s: %s at byte %" PRIu64 " is %" PRIu64 " bytes long, more than %" PRIu64
                     " is not sane", r->path, what, r->pos - 8, n, max);
        goto out;
    }
    char *s = tl_arena_alloc(r->m->arena, (size_t)n + 1);
    TRY(get(r, s, (size_t)n, what, e));
    *out = s;
    *len = (size_t)n;
out:
    return st;
}

static json_t *string_value(const char *s, size_t n) {
    json_t *j = json_stringn(s, n);
    return j ? j : json_pack("{s:s,s:I}", "invalid_utf8", "string", "bytes", (json_int_t)n);
}

static json_t *unsigned_value(uint64_t u) {
    char text[24];
    if (u <= INT64_MAX) return json_integer((json_int_t)u);
    snprintf(text, sizeof text, "%" PRIu64, u); /* JSON integers end at 2^63 - 1 */
    return json_string(text);
}

static json_t *number_value(unsigned type, const uint8_t *p) {
    uint64_t u = little(p, VALUE_BYTES[type]);
    uint32_t u32 = (uint32_t)u;
    float f;
    double d;
    switch (type) {
    case V_I8: return json_integer((int8_t)u);
    case V_I16: return json_integer((int16_t)u);
    case V_I32: return json_integer((int32_t)u);
    case V_I64: return json_integer((int64_t)u);
    case V_BOOL: return json_boolean(u != 0);
    case V_F32: memcpy(&f, &u32, sizeof f); return tl_json_real((double)f);
    case V_F64: memcpy(&d, &u, sizeof d); return tl_json_real(d);
    default: return unsigned_value(u);
    }
}

static tl_status get_value_type(unsigned *out, reader *r, tl_err *e) {
    uint64_t t;
    tl_status st = get_int(&t, r, 4, "a value type", e);
    if (st != TL_OK) return st;
    if (t >= V_COUNT)
        return tl_fail(e, TL_INVALID, "%s: metadata '%s' has value type %" PRIu64 ", which GGUF does not define",
                       r->path, r->key, t);
    *out = (unsigned)t;
    return TL_OK;
}

static tl_status read_strings(reader *r, uint64_t count, tl_err *e) {
    bool keep = (r->flags & TL_MODEL_KEEP_VOCAB) && r->keep_meta && tl_str_eq(r->key, "tokenizer.ggml.tokens");
    tl_status st = TL_OK;
    for (uint64_t i = 0; i < count; i++) {
        if (keep) {
            char *s = NULL;
            size_t n = 0;
            TRY(get_string(&s, &n, r, HEADER_MAX, "a token", e));
            TL_PUSH(r->m->token, r->m->n_tokens, r->m->cap_tokens, s);
        } else {
            uint64_t n;
            TRY(get_int(&n, r, 8, "a string's length", e));
            TRY(skip(r, n, "a string", e));
        }
    }
out:
    return st;
}

static void keep_token_types(reader *r, unsigned type, const uint8_t *raw, uint64_t count) {
    if (type != V_I32 && type != V_U32) return;
    for (uint64_t i = 0; i < count; i++)
        TL_PUSH(r->m->token_type, r->m->n_token_types, r->m->cap_token_types, (int32_t)little(raw + 4 * i, 4));
}

static tl_status read_numbers(json_t **out, reader *r, unsigned type, uint64_t count, tl_err *e) {
    bool types = (r->flags & TL_MODEL_KEEP_VOCAB) && r->keep_meta && tl_str_eq(r->key, "tokenizer.ggml.token_type");
    uint64_t bytes = count * VALUE_BYTES[type];
    if (count > SMALL_ARRAY && !types) return skip(r, bytes, "an array", e);
    tl_status st = need(r, bytes, "an array", e);
    if (st != TL_OK) return st;
    uint8_t *raw = tl_xalloc((size_t)bytes);
    st = get(r, raw, (size_t)bytes, "an array", e);
    if (st == TL_OK && types) keep_token_types(r, type, raw, count);
    if (st == TL_OK && count <= SMALL_ARRAY) {
        *out = json_array();
        for (uint64_t i = 0; i < count; i++)
            json_array_append_new(*out, number_value(type, raw + i * VALUE_BYTES[type]));
    }
    free(raw);
    return st;
}

static tl_status read_array(json_t **out, reader *r, int depth, tl_err *e) {
    tl_status st = TL_OK;
    unsigned type;
    uint64_t count;
    json_t *full = NULL;
    TRY(get_value_type(&type, r, e));
    TRY(get_int(&count, r, 8, "an array's length", e));
    uint64_t least = type == V_STRING ? 8 : type == V_ARRAY ? 12 : VALUE_BYTES[type];
    if (count > (r->size - r->pos) / least) {
        tl_fail(e, TL_INVALID, "%s: metadata '%s' claims %" PRIu64 " %s elements, more than the file can hold",
                r->path, r->key, count, VALUE_NAMES[type]);
        st = tl_remedy(e, "the file is damaged: fetch or write it again");
        goto out;
    }
    if (type == V_ARRAY) {
        if (depth >= DEPTH_MAX) {
            st = tl_fail(e, TL_INVALID, "%s: metadata '%s' nests arrays deeper than %d", r->path, r->key, DEPTH_MAX);
            goto out;
        }
        for (uint64_t i = 0; i < count; i++) {
            json_t *inner = NULL;
            st = read_array(&inner, r, depth + 1, e);
            json_decref(inner);
            if (st != TL_OK) goto out;
        }
    } else if (type == V_STRING) {
        TRY(read_strings(r, count, e));
    } else {
        TRY(read_numbers(&full, r, type, count, e));
    }
    *out = full ? full : json_pack("{s:s,s:I}", "array", VALUE_NAMES[type], "count", (json_int_t)count);
out:
    return st;
}

static tl_status read_value(json_t **out, reader *r, tl_err *e) {
    tl_status st = TL_OK;
    unsigned type;
    uint8_t raw[8];
    TRY(get_value_type(&type, r, e));
    if (type == V_ARRAY) {
        TRY(read_array(out, r, 0, e));
    } else if (type == V_STRING) {
        char *s = NULL;
        size_t n = 0;
        TRY(get_string(&s, &n, r, HEADER_MAX, "a string", e));
        *out = string_value(s, n);
    } else {
        TRY(get(r, raw, VALUE_BYTES[type], "a value", e));
        *out = number_value(type, raw);
    }
out:
    return st;
}

static tl_status read_metadata(json_t *into, reader *r, uint64_t count, tl_err *e) {
    tl_status st = TL_OK;
    for (uint64_t i = 0; i < count; i++) {
        char *key = NULL;
        size_t n = 0;
        json_t *v = NULL;
        r->key = "(key)";
        TRY(get_string(&key, &n, r, NAME_MAX_BYTES, "a metadata key", e));
        if (!tl_utf8_valid(key, n)) {
            st = tl_fail(e, TL_INVALID, "%s: metadata key %" PRIu64 " is not UTF-8 text", r->path, i);
            goto out;
        }
        r->key = key;
        if (json_object_get(into, key)) {
            st = tl_fail(e, TL_INVALID, "%s: metadata '%s' stands there twice", r->path, key);
            goto out;
        }
        TRY(read_value(&v, r, e));
        json_object_set_new(into, key, v);
    }
out:
    return st;
}

/* Elements and bytes, refusing what cannot be multiplied or does not divide into blocks. */
static tl_status tensor_size(tl_model_tensor *t, const reader *r, tl_err *e) {
    const tl_tensor_type *ty = tl_tensor_type_of(t->type);
    t->elements = 1;
    for (uint32_t d = 0; d < t->n_dims; d++) {
        if (t->dims[d] == 0 || t->dims[d] > INT64_MAX / t->elements)
            return tl_fail(e, TL_INVALID, "%s: tensor '%s' has an impossible dimension %" PRIu64, r->path, t->name,
                           t->dims[d]);
        t->elements *= t->dims[d];
    }
    t->type_known = ty != NULL;
    t->type_name = ty ? ty->name : "unknown";
    if (ty == NULL) return TL_OK;
    if (t->dims[0] % ty->block_elements != 0)
        return tl_fail(e, TL_INVALID, "%s: tensor '%s': rows of %" PRIu64 " values are no whole number of %s blocks of "
                       "%u", r->path, t->name, t->dims[0], ty->name, ty->block_elements);
    uint64_t blocks = t->elements / ty->block_elements;
    if (blocks > INT64_MAX / ty->block_bytes)
        return tl_fail(e, TL_INVALID, "%s: tensor '%s' is too large to be true", r->path, t->name);
    t->bytes = blocks * ty->block_bytes;
    return TL_OK;
}

static tl_status read_tensor(reader *r, uint32_t part, uint64_t align, tl_err *e) {
    tl_status st = TL_OK;
    tl_model *m = r->m;
    tl_model_tensor t = {.dims = {1, 1, 1, 1}, .part = part, .layer = -1};
    char *name = NULL;
    size_t n = 0;
    uint64_t v;
    TRY(get_string(&name, &n, r, NAME_MAX_BYTES, "a tensor's name", e));
    if (!tl_utf8_valid(name, n)) {
        st = tl_fail(e, TL_INVALID, "%s: the name of tensor %zu is not UTF-8 text", r->path, m->n_tensors);
        goto out;
    }
    t.name = name;
    TRY(get_int(&v, r, 4, "a tensor's number of dimensions", e));
    if (v < 1 || v > 4) {
        st = tl_fail(e, TL_INVALID, "%s: tensor '%s' has %" PRIu64 " dimensions; 1 to 4 are possible", r->path, name, v);
        goto out;
    }
    t.n_dims = (uint32_t)v;
    for (uint32_t d = 0; d < t.n_dims; d++) TRY(get_int(&t.dims[d], r, 8, "a tensor's dimension", e));
    TRY(get_int(&v, r, 4, "a tensor's type", e));
    t.type = (uint32_t)v;
    TRY(get_int(&t.offset, r, 8, "a tensor's offset", e));
    if (t.offset % align != 0) {
        st = tl_fail(e, TL_INVALID, "%s: tensor '%s': offset %" PRIu64 " is no multiple of the alignment %" PRIu64,
                     r->path, name, t.offset, align);
        goto out;
    }
    TRY(tensor_size(&t, r, e));
    if (json_object_get(m->index, name)) {
        st = tl_fail(e, TL_INVALID, "%s: tensor '%s' stands there twice", r->path, name);
        goto out;
    }
    json_object_set_new(m->index, name, json_integer((json_int_t)m->n_tensors));
    TL_PUSH(m->tensor, m->n_tensors, m->cap_tensors, t);
out:
    return st;
}

static int by_offset(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A tensor of unknown type reaches up to the next one, or to the end of the file. */
static void size_unknown(tl_model_tensor *t, size_t n, uint64_t data_bytes) {
    uint64_t *off = tl_xalloc(n * sizeof *off);
    for (size_t i = 0; i < n; i++) off[i] = t[i].offset;
    qsort(off, n, sizeof *off, by_offset);
    for (size_t i = 0; i < n; i++) {
        if (t[i].type_known) continue;
        size_t lo = 0, hi = n; /* first offset above this one */
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (off[mid] > t[i].offset) hi = mid;
            else lo = mid + 1;
        }
        uint64_t end = lo < n ? off[lo] : data_bytes;
        t[i].bytes = end > t[i].offset ? end - t[i].offset : 0;
    }
    free(off);
}

static tl_status check_body(const reader *r, size_t first, uint64_t align, tl_err *e) {
    tl_model *m = r->m;
    size_t n = m->n_tensors - first;
    if (n == 0) return TL_OK;
    uint64_t start = (r->pos + align - 1) / align * align, end = r->pos;
    uint64_t have = r->size > start ? r->size - start : 0;
    bool unknown = false;
    for (size_t i = first; i < m->n_tensors; i++) {
        const tl_model_tensor *t = &m->tensor[i];
        if (t->offset > INT64_MAX - start || t->bytes > INT64_MAX - start - t->offset)
            return tl_fail(e, TL_INVALID, "%s: tensor '%s' lies at an impossible offset %" PRIu64, r->path, t->name,
                           t->offset);
        uint64_t t_end = start + t->offset + t->bytes;
        if (t_end > end) end = t_end;
        unknown |= !t->type_known;
    }
    if (end > r->size) {
        tl_fail(e, TL_INVALID, "%s is truncated: its header describes %" PRIu64 " bytes, the file has %" PRIu64,
                r->path, end, r->size);
        return tl_remedy(e, "the download or copy was not finished: fetch it again (or resume it)");
    }
    if (unknown) size_unknown(m->tensor + first, n, have);
    m->facts.unknown_types |= unknown;
    return TL_OK;
}

static tl_status read_start(reader *r, uint64_t *n_tensors, uint64_t *n_meta, tl_err *e) {
    tl_status st = TL_OK;
    char magic[4] = "";
    uint64_t version;
    if (r->size < 24) {
        tl_fail(e, TL_INVALID, "%s is not a GGUF file: it has only %" PRIu64 " bytes", r->path, r->size);
        return tl_remedy(e, "give the path of a model in GGUF format");
    }
    TRY(get(r, magic, 4, "the magic", e));
    if (memcmp(magic, "GGUF", 4) != 0) {
        tl_fail(e, TL_INVALID, "%s is not a GGUF file: it begins with %02x %02x %02x %02x, not with 'GGUF'", r->path,
                (uint8_t)magic[0], (uint8_t)magic[1], (uint8_t)magic[2], (uint8_t)magic[3]);
        st = tl_remedy(e, "give the path of a model in GGUF format");
        goto out;
    }
    TRY(get_int(&version, r, 4, "the version", e));
    if (version != 0 && (version & 0xffff) == 0) {
        tl_fail(e, TL_INVALID, "%s is a big-endian GGUF file: this machine's engines cannot read it", r->path);
        st = tl_remedy(e, "convert it with gguf_convert_endian.py, or fetch the little-endian file");
        goto out;
    }
    if (version < 2 || version > 3) {
        st = tl_fail(e, TL_INVALID, "%s: GGUF version %" PRIu64 "; versions 2 and 3 can be read", r->path, version);
        goto out;
    }
    if (r->keep_meta) r->m->facts.gguf_version = (uint32_t)version;
    TRY(get_int(n_tensors, r, 8, "the number of tensors", e));
    TRY(get_int(n_meta, r, 8, "the number of metadata keys", e));
    if (*n_tensors > ITEMS_MAX || *n_meta > ITEMS_MAX || *n_tensors > r->size / 32 || *n_meta > r->size / 13) {
        tl_fail(e, TL_INVALID, "%s claims %" PRIu64 " tensors and %" PRIu64 " metadata keys: more than its %" PRIu64
                " bytes can hold", r->path, *n_tensors, *n_meta, r->size);
        st = tl_remedy(e, "the file is damaged: fetch or write it again");
    }
out:
    return st;
}

tl_status gguf_read(tl_model *m, FILE *f, uint64_t size, const char *path, uint32_t part, unsigned flags, tl_err *e) {
    tl_status st = TL_OK;
    reader r = {.f = f, .path = path, .size = size, .key = "", .m = m, .flags = flags, .keep_meta = part == 0};
    json_t *meta = json_object();
    uint64_t n_tensors = 0, n_meta = 0;
    size_t first = m->n_tensors;
    TRY(read_start(&r, &n_tensors, &n_meta, e));
    TRY(read_metadata(meta, &r, n_meta, e));
    int64_t align = 32;
    json_t *a = json_object_get(meta, "general.alignment");
    if (a) align = json_is_integer(a) ? (int64_t)json_integer_value(a) : 0;
    if (align < 1 || align > 1 << 20 || (align & (align - 1)) != 0) {
        st = tl_fail(e, TL_INVALID, "%s: general.alignment is no power of two up to 2^20", path);
        goto out;
    }
    for (uint64_t i = 0; i < n_tensors; i++) TRY(read_tensor(&r, part, (uint64_t)align, e));
    TRY(check_body(&r, first, (uint64_t)align, e));
    m->facts.file_bytes += size;
    if (part == 0) {
        json_decref(m->meta);
        m->meta = json_incref(meta);
    }
out:
    json_decref(meta);
    return st;
}

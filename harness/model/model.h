/* model: what a model file is, read from its header (GGUF), what it weighs, and what one token makes the engine
 * read; its digest, remembered; and the writer of synthetic GGUF files ("tally synth").
 *
 * Not for: running anything, talking to engines (see engine/), predicting speeds (lua/calc).
 * Owner of: nothing third-party.
 * Threads: every object belongs to the thread that uses it.
 *
 * Only the header of a model file is read, never its body. Bytes are bytes: 1 GB = 1e9.
 */
#ifndef TL_MODEL_H
#define TL_MODEL_H

#include "base/base.h"
#include "os/os.h"

/* ---- tensor types (ggml) ------------------------------------------------------------------------------------- */

typedef struct tl_tensor_type {
    uint32_t id;
    const char *name; /* "Q4_K" */
    uint32_t block_elements, block_bytes;
} tl_tensor_type;
const tl_tensor_type *tl_tensor_type_of(uint32_t id);           /* NULL: a type that this tally does not know */
const tl_tensor_type *tl_tensor_type_named(const char *name);   /* any case; NULL when unknown */
const char *tl_model_file_type_name(int64_t file_type);         /* LLAMA_FTYPE: 15 -> "Q4_K_M"; "unknown" */

/* ---- reader -------------------------------------------------------------------------------------------------- */

typedef enum tl_tensor_class {
    TL_TENSOR_EMBED,   /* token_embd and other tables of which one row is looked up */
    TL_TENSOR_ATTN,
    TL_TENSOR_FFN,
    TL_TENSOR_EXPERTS, /* routed experts: only a share is read per token */
    TL_TENSOR_NORM,
    TL_TENSOR_OUTPUT,
    TL_TENSOR_NEXTN,   /* layers for multi-token prediction: not read in plain decoding */
    TL_TENSOR_OTHER,   /* routers, state-space layers, frequencies, biases outside the above */
    TL_TENSOR_CLASSES
} tl_tensor_class;
const char *tl_tensor_class_name(tl_tensor_class c); /* "token_embd", "attn", "ffn", "experts", "norms", ... */

typedef struct tl_model_tensor {
    const char *name;
    uint32_t n_dims;
    uint64_t dims[4]; /* unused ones are 1; dims[0] is the row length */
    uint32_t type;
    const char *type_name; /* "unknown" when !type_known */
    bool type_known;
    uint64_t elements;
    uint64_t offset; /* from the start of the data section of its file */
    uint64_t bytes;  /* for an unknown type: up to the next tensor, so padding may be included */
    uint32_t part;   /* index of its file in a split model, from 0 */
    int32_t layer;   /* N of blk.N., or -1 */
    tl_tensor_class cls;
} tl_model_tensor;

typedef struct tl_model_facts {
    const char *path;         /* as opened */
    const char *architecture; /* "" when the file does not say */
    const char *name;
    const char *file_type;    /* name of general.file_type; a name only: the bytes below are summed from tensors */
    uint32_t gguf_version;
    uint32_t parts;           /* files of a split model; 1 otherwise */
    uint64_t file_bytes;      /* all parts */
    uint64_t tensor_bytes;    /* what llama-bench reports as model_size */
    uint64_t params;          /* what llama-bench reports as model_n_params */
    double bits_per_weight;   /* 8 x tensor_bytes / params */
    uint64_t class_bytes[TL_TENSOR_CLASSES];
    uint64_t read_bytes_per_token; /* weights read for one token of one sequence; without KV */
    bool tied;                /* the embedding table is also the output head */
    bool unknown_types;       /* at least one tensor of an unknown type: byte sums include padding */
    uint32_t layers, embed, heads, kv_heads_max;
    uint64_t ctx, vocab;      /* 0 when the file does not say */
    uint32_t experts, experts_used; /* 0 for a dense model */
    uint32_t key_length, value_length; /* of one head */
    uint32_t kv_lora_rank, rope_dims;  /* multi-head latent attention when kv_lora_rank > 0 */
    uint32_t kv_layers;       /* layers that keep a growing KV cache */
    uint32_t sliding_window;  /* 0 = none; when set, KV bytes are an upper bound */
    uint64_t kv_k_values, kv_v_values; /* values kept for one token in all layers together */
    bool chat_template;
} tl_model_facts;

typedef struct tl_model tl_model;

enum { TL_MODEL_KEEP_VOCAB = 1 }; /* flags of tl_model_open: keep the token texts and types */

/* Reads the header. `path` may be any part of a split model (NAME-00001-of-000NN.gguf): all parts are read and
 * summed. TL_NOT_FOUND: no such file. TL_INVALID: not a GGUF, big-endian, an old version, counts or lengths that the
 * file cannot hold, a missing part, a truncated body (the message gives both numbers). TL_LIMIT: header > 256 MiB. */
tl_status tl_model_open(tl_model **out, const char *path, unsigned flags, tl_err *e) TL_MUST_USE;
void tl_model_free(tl_model *m); /* NULL ok */
const tl_model_facts *tl_model_facts_of(const tl_model *m); /* borrowed */
size_t tl_model_tensors(const tl_model_tensor **out, const tl_model *m); /* borrowed, in file order */
const tl_model_tensor *tl_model_tensor_named(const tl_model *m, const char *name); /* NULL when absent */
/* All metadata, borrowed: scalars as they are; arrays of up to 512 numbers in full; other arrays as
 * {"array":"string","count":N}. Keys contain dots: use json_object_get, not tl_json_at. */
const json_t *tl_model_metadata(const tl_model *m);
/* With TL_MODEL_KEEP_VOCAB: text of token `id` (borrowed, *type may be NULL), NULL when there is none. */
const char *tl_model_token(const tl_model *m, uint64_t id, int32_t *type);
/* KV-cache bytes for one token of one sequence with these cache types ("f16", "q8_0", "q4_0", ...; v NULL = k).
 * TL_INVALID for an unknown type, TL_NOT_FOUND when the file lacks the geometry. */
tl_status tl_model_kv_bytes_per_token(uint64_t *out, const tl_model *m, const char *k_type, const char *v_type,
                                      tl_err *e) TL_MUST_USE;
/* The facts as an object (new reference): every field of tl_model_facts but path, kv bytes by type under
 * "kv_bytes_per_token", class bytes under "class_bytes", tensor types with bytes under "type_bytes", and "synth":
 * the options with which tally wrote the file, or null. */
json_t *tl_model_json(const tl_model *m);

/* ---- digest -------------------------------------------------------------------------------------------------- */

/* SHA-256 of the file as hex. Remembered in <cache>/model-digests.json by path, size, mtime, inode and device, so
 * that the second call is instant. Of a split model: SHA-256 of the parts' hex digests, one a line. `progress` may be
 * NULL; false from it stops with TL_CANCELLED. */
tl_status tl_model_digest(char out[65], const char *path, tl_file_progress_fn *progress, void *ctx,
                          tl_err *e) TL_MUST_USE;

/* ---- writer: tally synth ------------------------------------------------------------------------------------- */

/* A GGUF of llama architecture. Every weight is present and is read for each token, so speed and memory are those of
 * a real model of the shape; the text is noise (random) or fixed (scripted: <think>, `think` words, </think>, blank
 * line, `answer` words, end of sequence, whatever the prompt). The same spec gives the same bytes on any machine. */
typedef struct tl_synth_spec {
    char quant[16];  /* f16 q8_0 q4_0 q4_k q6_k (every matrix in that type) or q4_k_m (llama.cpp's mixture) */
    char name[64];   /* general.name; "" = made from the shape */
    uint64_t size_bytes; /* 0 = shape as given; else a plausible shape of about this many bytes is chosen */
    uint32_t layers, embed, heads, kv_heads, ff; /* 0 = default, or chosen by size_bytes */
    uint32_t vocab, ctx;                         /* 0 = default */
    uint32_t think, answer; /* scripted when answer > 0 */
    double wrong;           /* draft model: this share of the script's steps goes to a wrong token, [0, 1] */
    uint64_t seed;
    bool tie; /* one table for embedding and head; random weights only */
} tl_synth_spec;

typedef enum tl_synth_kind { TL_SYNTH_TEXT, TL_SYNTH_COUNT, TL_SYNTH_SIZE, TL_SYNTH_SHARE, TL_SYNTH_FLAG } tl_synth_kind;

/* One option of the verb: --NAME ARG. The verb needs no knowledge of its own about them. */
typedef struct tl_synth_option {
    const char *name; /* "kv-heads" */
    const char *arg;  /* "N", "SIZE", "TYPE", ...; NULL for a flag */
    const char *otherwise; /* default, as shown in help; NULL = none */
    const char *help;
    tl_synth_kind kind;
    uint64_t min, max; /* of a count or a size */
    size_t offset;     /* in tl_synth_spec */
} tl_synth_option;
const tl_synth_option *tl_synth_options(size_t *n_out);
tl_synth_spec tl_synth_default(void);
/* Sets one option from its text ("layers","32"; "size","1.3GB"; "tie",NULL). TL_INVALID names value and bounds, and
 * suggests the near name for an unknown one. */
tl_status tl_synth_set(tl_synth_spec *spec, const char *name, const char *value, tl_err *e) TL_MUST_USE;

typedef struct tl_synth_plan {
    tl_synth_spec spec;   /* with every default and the chosen shape filled in */
    uint64_t file_bytes;  /* exactly what will be written */
    uint64_t tensor_bytes, params;
    uint64_t read_bytes_per_token;
    uint64_t kv_bytes_per_token_f16;
} tl_synth_plan;
/* What would be written, exactly. TL_INVALID with reason and remedy for a shape that cannot be. */
tl_status tl_synth_describe(tl_synth_plan *out, const tl_synth_spec *spec, tl_err *e) TL_MUST_USE;
/* Writes to a temporary name beside `path`, then renames. On failure or cancel nothing is left. Checks the free space
 * first. Not forced to disk (a crash of the machine may leave a short file, which tl_model_open reports): writing it
 * again gives the same bytes. */
tl_status tl_synth_write(const char *path, const tl_synth_spec *spec, tl_file_progress_fn *progress, void *ctx,
                         tl_err *e) TL_MUST_USE;
/* What a scripted model says, byte for byte as the server delivers it (a draft: what its target says). Appends. */
tl_status tl_synth_text(tl_buf *reasoning, tl_buf *content, const tl_synth_spec *spec, tl_err *e) TL_MUST_USE;
/* Tokens that a server counts for a complete scripted answer, thinking included or (enable_thinking false) not. The
 * end-of-sequence token is counted. */
uint64_t tl_synth_completion_tokens(const tl_synth_spec *spec, bool with_thinking);

#endif

/* Private to model/: the reader's object, and what the synthetic writer shares between its files. */
#ifndef TL_MODEL_IMPL_H
#define TL_MODEL_IMPL_H

#include "model/model.h"

/* ---- reader ---- */

struct tl_model {
    tl_arena *arena; /* names and texts */
    tl_model_facts facts;
    tl_model_tensor *tensor;
    size_t n_tensors, cap_tensors;
    json_t *index; /* tensor name -> position */
    json_t *meta;  /* of the first part */
    char **token;
    size_t n_tokens, cap_tokens;
    int32_t *token_type;
    size_t n_token_types, cap_token_types;
};

/* Reads one file's header from `f` (at its start; `size` bytes long) into m. Metadata is kept of part 0 only. */
tl_status gguf_read(tl_model *m, FILE *f, uint64_t size, const char *path, uint32_t part, unsigned flags,
                    tl_err *e) TL_MUST_USE;
/* An empty object, and the sums and geometry once all parts are read. */
tl_model *model_new(void);
void model_derive(tl_model *m);
/* Paths of all files of a model, in order; one for a model that is not split. */
char **model_parts(uint32_t *n_out, const char *path);
void model_parts_free(char **p, uint32_t n);

/* ---- writer ---- */

enum { TT_F32 = 0, TT_F16 = 1, TT_Q4_0 = 2, TT_Q8_0 = 8, TT_Q4_K = 12, TT_Q6_K = 14 };

typedef enum synth_fill { FILL_ONES, FILL_RANDOM, FILL_ZERO, FILL_EMBED, FILL_OUTPUT } synth_fill;

typedef struct synth_tensor {
    char name[48];
    uint32_t n_dims;
    uint64_t cols, rows; /* cols = row length */
    const tl_tensor_type *type;
    synth_fill fill;
    uint64_t bytes, offset;
} synth_tensor;

/* Texts, scores and kinds of all tokens, and where the script's words stand. */
typedef struct synth_vocab {
    tl_arena *arena;
    char **text;
    float *score;
    int32_t *type;
    uint32_t n, cap_text, cap_score, cap_type;
    uint32_t think_open, think_close, blank_line; /* ids */
    uint32_t script_first;                        /* `think` + `answer` words from here, then fillers */
} synth_vocab;

enum { SYNTH_EOS = 2 };

/* Tokens that the vocabulary has before the first script word. */
uint32_t synth_vocab_base(void);
/* TL_INVALID when spec->vocab has no room for the script. */
tl_status synth_vocab_build(synth_vocab *out, const tl_synth_spec *spec, tl_err *e) TL_MUST_USE;
void synth_vocab_free(synth_vocab *v);

/* One step of the script: after token `from` the model says `to`. */
typedef struct synth_step {
    uint32_t from, to;
} synth_step;
/* Steps in order; caller frees. With spec->wrong some go to filler tokens. */
synth_step *synth_steps(size_t *n_out, uint32_t *first_out, const synth_vocab *v, const tl_synth_spec *spec);
uint64_t synth_wrong_count(const tl_synth_spec *spec);

/* The tensor table of a resolved spec; caller frees. Offsets are filled in. */
synth_tensor *synth_tensors(size_t *n_out, const tl_synth_spec *spec);
/* Everything before the tensor data, padded. */
void synth_header(tl_buf *out, const tl_synth_spec *spec, const synth_vocab *v, const synth_tensor *t, size_t n);
/* Fills in defaults and the shape for size_bytes; checks that the result is possible. */
tl_status synth_resolve(tl_synth_spec *spec, tl_err *e) TL_MUST_USE;

/* Encodes one row of small integers -1, 0, 1 exactly in the given type. */
void synth_encode_row(uint8_t *out, const tl_tensor_type *type, const int8_t *v, size_t n);
/* A pool of whole blocks of random weights with standard deviation 1/sqrt(cols), or of zeros that the engine has to
 * multiply all the same (scale 0). */
void synth_fill_blocks(uint8_t *out, size_t blocks, const tl_tensor_type *type, double deviation, tl_rng *rng);
uint16_t synth_f16(double x);
/* Flag dimensions at the end of each row of a scripted model. */
uint32_t synth_flag_dims(uint32_t embed);

enum { SYNTH_ALIGN = 32 };

#endif

/* The GGUF header reader on any bytes: it refuses or reads, and what it reads can be summed and printed. */
#include "model/model_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    tl_err e;
    uint8_t *copy = tl_xalloc(size); /* exact length, so that a read past the end is seen */
    memcpy(copy, data, size);
    FILE *f = fmemopen(copy, size, "rb");
    tl_model *m = model_new();
    if (f && gguf_read(m, f, size, "fuzz", 0, TL_MODEL_KEEP_VOCAB, &e) == TL_OK) {
        m->facts.path = "fuzz";
        m->facts.parts = 1;
        model_derive(m);
        json_t *j = tl_model_json(m);
        char *text = tl_json_canonical(j);
        free(text);
        json_decref(j);
    }
    if (f) fclose(f);
    tl_model_free(m);
    free(copy);
    return 0;
}

/* Traces of any bytes: no crash; what is accepted is in the order of time, has positive lengths, and every refusal says
 * which line. */
#include "load/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tl_load_trace t;
    tl_err e = {0};
    if (tl_load_trace_parse(&t, (const char *)data, size, "trace", &e) != TL_OK) {
        must(t.n == 0 && t.v == NULL && strstr(e.msg, "trace:") != NULL);
        return 0;
    }
    must(t.n > 0);
    for (size_t i = 0; i < t.n; i++) {
        must(t.v[i].prompt_n > 0 && t.v[i].output_n >= 0);
        must(i == 0 || t.v[i].at_ns >= t.v[i - 1].at_ns);
    }
    must(tl_load_trace_speed(&t, 2, &e) == TL_OK);
    tl_load_trace_free(&t);
    return 0;
}

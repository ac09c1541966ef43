/* Answers of any bytes through the dialects: no crash, and the same meaning, the same number of events, in the order of
 * time, however the bytes were cut. Three bytes in front choose dialect, status and ending, and the length of reads. */
#include "conform_impl.h"
#include "engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
    if (!ok) abort();
}

typedef struct input {
    const tl_dialect *dialect;
    const char *body;
    size_t len;
    int status;
    tl_http_outcome outcome;
} input;

static void sound(const tl_request *r, const tl_metrics *m) {
    uint64_t before = r->t_headers;
    for (size_t i = 0; i < r->n_events; i++) {
        must(r->events[i].t_ns >= before);
        before = r->events[i].t_ns;
    }
    must(m->outcome == TL_REQ_OK || m->reason != NULL);
    must(strlen(r->text) <= r->text_len); /* both ends of the string are there */
}

static json_t *decode(const input *in, size_t piece) {
    static const uint64_t first_ns = 1000;
    size_t n = 0;
    tl_http_read *reads = tl_xalloc((in->len / piece + 1) * sizeof *reads);
    for (size_t at = 0; at < in->len; at += piece, n++)
        reads[n] = (tl_http_read){.t_ns = first_ns + n, .offset = at, .len = (uint32_t)(in->len - at < piece ? in->len - at : piece), .wake = (uint32_t)n};
    const tl_http_log log = {.t_intended_ns = 10, .t_start_ns = 10, .t_connected_ns = 5, .preopened = true, .t_sent_ns = 20,
                             .t_headers_ns = first_ns, .t_first_byte_ns = n ? first_ns : 0, .t_close_ns = first_ns + n, .reads = reads,
                             .n_reads = n, .body = in->body, .body_len = in->len, .status = in->status, .http_version = 11, .connects = 1,
                             .outcome = in->outcome};
    tl_request r;
    tl_metrics m;
    tl_err e = {0};
    tl_request_init(&r);
    must(tl_dialect_decode(&r, in->dialect, &log, NULL, &e) == TL_OK);
    tl_metrics_of(&m, &r);
    sound(&r, &m);
    json_t *said = tl_said(&r, &m);
    tl_metrics_free(&m);
    tl_request_free(&r);
    free(reads);
    return said;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int statuses[] = {200, 200, 400, 404, 500, 503};
    static const tl_http_outcome ends[] = {TL_HTTP_COMPLETE, TL_HTTP_CLOSED_EARLY, TL_HTTP_RESET, TL_HTTP_TIMED_OUT};
    size_t dialects;
    const char *const *names = tl_dialect_names(&dialects);
    if (size < 3) return 0;
    const input in = {.dialect = tl_dialect_find(names[data[0] % dialects]), .body = (const char *)data + 3, .len = size - 3,
                      .status = statuses[data[1] % 6], .outcome = ends[data[1] / 6 % 4]};
    json_t *whole = decode(&in, in.len + 1), *cuts = decode(&in, 1 + data[2] % 64);
    must(json_equal(whole, cuts));
    json_decref(whole);
    json_decref(cuts);
    return 0;
}

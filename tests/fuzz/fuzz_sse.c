/* Splitters on any bytes: no crash, spans inside the bytes and in order, the same events whatever the cuts, arrival from
 * the read that holds the completing byte. The first byte chooses the length of the reads. */
#include "http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
    if (!ok) abort();
}

static size_t cut(tl_http_read *reads, size_t len, size_t piece) {
    size_t n = 0;
    for (size_t at = 0; at < len; at += piece, n++) {
        const size_t k = len - at < piece ? len - at : piece;
        reads[n] = (tl_http_read){.t_ns = n + 1, .offset = at, .len = (uint32_t)k, .wake = (uint32_t)n};
    }
    return n;
}

static void compare(const char *bytes, size_t len, const tl_http_read *reads, size_t n,
                    bool (*next)(tl_split *, tl_split_event *)) {
    tl_split whole, cuts;
    tl_split_event a, b;
    size_t end = 0;
    tl_split_init(&whole, bytes, len, NULL, 0);
    tl_split_init(&cuts, bytes, len, reads, n);
    while (next(&whole, &a)) {
        must(next(&cuts, &b));
        must(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
        must(a.start == b.start && a.end == b.end && a.unterminated == b.unterminated);
        must(b.start >= end && b.start < b.end && b.end <= len);
        must((a.name == NULL) == (b.name == NULL) && a.name_len == b.name_len);
        must(a.t_ns == 0 && b.t_ns == b.read + 1);
        must(reads[b.read].offset < b.end);
        must(b.name == NULL || (b.name >= bytes + b.start && b.name + b.name_len <= bytes + b.end));
        end = b.end;
    }
    must(!next(&cuts, &b));
    must(whole.n_comments == cuts.n_comments && whole.n_empty == cuts.n_empty);
    tl_split_free(&whole);
    tl_split_free(&cuts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const char *bytes = (const char *)data + 1;
    const size_t len = size - 1, piece = 1 + data[0] % 32;
    tl_http_read *reads = tl_xalloc((len / piece + 1) * sizeof *reads);
    const size_t n = cut(reads, len, piece);
    compare(bytes, len, reads, n, tl_sse_next);
    compare(bytes, len, reads, n, tl_ndjson_next);
    free(reads);
    return 0;
}

/* A request's events as one blob: for each event the zigzag difference of its time to the one before, its kind, its
 * bytes and its read, as LEB128 varints. A thousand events of a steady stream take about 4 KB. */
#include "store/store_impl.h"

const char *const tl_store_event_kinds[] = {"role", "reasoning", "content", "tool", "progress", "usage",
                                            "finish", "comment", "error", "done", "other", "read"};
const size_t tl_store_event_kinds_n = TL_COUNT(tl_store_event_kinds);

static void put(tl_buf *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7) tl_buf_char(b, (char)(v | 0x80));
    tl_buf_char(b, (char)v);
}

void tl_store_events_encode(tl_buf *out, const tl_store_event *ev, size_t n) {
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t d = (uint64_t)ev[i].t_ns - last; /* wraps; undone the same way */
        put(out, (d << 1) ^ (0 - (d >> 63)));
        put(out, ev[i].kind);
        put(out, ev[i].bytes);
        put(out, ev[i].read);
        last = (uint64_t)ev[i].t_ns;
    }
}

static bool get(uint64_t *out, const uint8_t **p, const uint8_t *end) {
    uint64_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        if (shift == 63 && byte > 1) return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

tl_status tl_store_events_decode(tl_store_event **out, size_t *n, const void *p, size_t len, tl_err *e) {
    const uint8_t *at = p, *end = at + len;
    tl_store_event *v = NULL;
    size_t count = 0, cap = 0;
    uint64_t last = 0;
    *out = NULL;
    *n = 0;
    while (at < end) {
        uint64_t d, kind, bytes, read;
        if (!get(&d, &at, end) || !get(&kind, &at, end) || !get(&bytes, &at, end) || !get(&read, &at, end) || kind >= tl_store_event_kinds_n || bytes > UINT32_MAX ||
            read > UINT32_MAX) {
            free(v);
            return tl_fail(e, TL_INVALID, "an event blob is damaged at byte %zu of %zu", (size_t)(at - (const uint8_t *)p), len);
        }
        last += (d >> 1) ^ (0 - (d & 1));
        tl_store_event ev = {(int64_t)last, (uint32_t)kind, (uint32_t)bytes, (uint32_t)read};
        TL_PUSH(v, count, cap, ev);
    }
    *out = v;
    *n = count;
    return TL_OK;
}

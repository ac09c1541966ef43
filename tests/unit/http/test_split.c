/* SSE and NDJSON splitters: the vectors of the engines' habits, and that events do not depend on how bytes were cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/http.h"

/* Events as one text: "data|data|", "name=data|" for named ones, "~" in front of an unterminated one. */
static char *sse_text(const char *bytes, size_t len, size_t *comments, size_t *empty) {
    tl_split s;
    tl_split_event ev;
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_split_init(&s, bytes, len, NULL, 0);
    while (tl_sse_next(&s, &ev)) {
        if (ev.unterminated) tl_buf_char(&b, '~');
        if (ev.name != NULL) {
            tl_buf_add(&b, ev.name, ev.name_len);
            tl_buf_char(&b, '=');
        }
        tl_buf_add(&b, ev.data, ev.len);
        tl_buf_char(&b, '|');
    }
    if (comments != NULL) *comments = s.n_comments;
    if (empty != NULL) *empty = s.n_empty;
    tl_split_free(&s);
    return b.p;
}

typedef struct vector {
    const char *in, *want;
    size_t comments, empty;
} vector;

static const vector VECTORS[] = {
    {"", "", 0, 0},
    {":\n\n", "", 1, 0},
    {": keepalive 1/2\n\n", "", 1, 0},
    {": keepalive 1/2\n\ndata: x\n\n", "x|", 1, 0},
    {": ping\ndata: x\n: ping\n\n", "x|", 2, 0},
    {"data:{\"a\":1}\n\n", "{\"a\":1}|", 0, 0},
    {"data: {\"a\":1}\n\n", "{\"a\":1}|", 0, 0},
    {"data:  two blanks \n\n", " two blanks |", 0, 0},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "a|b|", 0, 0},
    {"data: a\r\rdata: b\r\r", "a|b|", 0, 0},
    {"data: a\n\r\ndata: b\r\n\n", "a|b|", 0, 0},
    {"data: a\n\ndata: b\n\n", "a|b|", 0, 0},
    {"event: x\ndata: {}\n\n", "x={}|", 0, 0},
    {"data: {}\nevent: x\n\ndata: 2\n\n", "x={}|2|", 0, 0},
    {"event: x\nevent: y\ndata: 1\n\n", "y=1|", 0, 0},
    {"event: ping\n\ndata: 1\n\n", "1|", 0, 1},
    {"data: a\ndata: b\ndata:\ndata: c\n\n", "a\nb\n\nc|", 0, 0},
    {"data: a\ndata: b\n\ndata: c\ndata: d\n\n", "a\nb|c\nd|", 0, 0},
    {"data\n\n", "|", 0, 0},
    {"data:\n\n", "|", 0, 0},
    {"id: 7\nretry: 10\ndata: x\nnonsense\n\n", "x|", 0, 0},
    {"datax: no\ndat: no\n\n", "", 0, 1},
    {"\xef\xbb\xbf" "data: bom\n\n", "bom|", 0, 0},
    {"\xef\xbb" "data: no bom\n\n", "", 0, 1},
    {"\n\n\ndata: x\n\n\n\n", "x|", 0, 0},
    {"data: [DONE]\n\ndata: after\n\n", "[DONE]|after|", 0, 0},
    {"data: x\n\ndata: [DONE]", "x|~[DONE]|", 0, 0},
    {"data: x\n", "~x|", 0, 0},
    {"data: x\r", "~x|", 0, 0},
    {"data: \xe5\xae\xb9\xe9\x87\x8f\n\n", "\xe5\xae\xb9\xe9\x87\x8f|", 0, 0},
    {"data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\n",
     "{\"choices\":[],\"usage\":{\"completion_tokens\":3}}|", 0, 0},
    {"data: 1\n\ndata: {\"error\":{}}\n\n", "1|{\"error\":{}}|", 0, 0},
    {"event", "", 0, 1},
    {":", "", 1, 0},
};

static void vectors(void **state) {
    TL_UNUSED(state);
    for (size_t i = 0; i < TL_COUNT(VECTORS); i++) {
        size_t comments, empty;
        char *got = sse_text(VECTORS[i].in, strlen(VECTORS[i].in), &comments, &empty);
        if (strcmp(got, VECTORS[i].want) != 0) print_error("vector %zu: '%s'\n", i, VECTORS[i].in);
        assert_string_equal(got, VECTORS[i].want);
        assert_int_equal(comments, VECTORS[i].comments);
        assert_int_equal(empty, VECTORS[i].empty);
        free(got);
    }
}

static void nul_bytes_are_data(void **state) {
    TL_UNUSED(state);
    static const char in[] = "data: a\0b\n\n";
    tl_split s;
    tl_split_event ev;
    tl_split_init(&s, in, sizeof in - 1, NULL, 0);
    assert_true(tl_sse_next(&s, &ev));
    assert_int_equal(ev.len, 3);
    assert_memory_equal(ev.data, "a\0b", 3);
    assert_false(tl_sse_next(&s, &ev));
    tl_split_free(&s);
}

/* Cuts `len` bytes at random places: reads whose time is 1000 + index. */
static size_t cut(tl_http_read *reads, size_t len, tl_rng *rng) {
    size_t n = 0;
    const uint64_t most = 1 + tl_rng_below(rng, 9);
    for (size_t at = 0; at < len; n++) {
        size_t k = 1 + tl_rng_below(rng, most);
        if (k > len - at) k = len - at;
        reads[n] = (tl_http_read){.t_ns = 1000 + n, .offset = at, .len = (uint32_t)k, .wake = (uint32_t)n};
        at += k;
    }
    return n;
}

static void random_stream(tl_buf *b, tl_rng *rng) {
    static const char *const pieces[] = {"data: ", "data:", "event: x", ": ping", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r",
                                         "{\"a\":1}", "\xe5\xae\xb9", "[DONE]", " ", "data", "id: 1", ":"};
    const uint64_t n = tl_rng_below(rng, 40);
    for (uint64_t i = 0; i < n; i++) tl_buf_str(b, pieces[tl_rng_below(rng, TL_COUNT(pieces))]);
}

/* The read that holds the byte, found the slow way. */
static size_t read_of(const tl_http_read *reads, size_t n, size_t byte) {
    for (size_t i = 0; i < n; i++)
        if (byte >= reads[i].offset && byte < reads[i].offset + reads[i].len) return i;
    return n;
}

static void same_events_whatever_the_cuts(void **state) {
    TL_UNUSED(state);
    tl_rng rng;
    const uint64_t seed = tl_seed_of("sse cuts");
    print_message("seed %" PRIu64 "\n", seed);
    tl_rng_seed(&rng, seed);
    for (int round = 0; round < 2000; round++) {
        tl_buf b;
        tl_http_read reads[1024];
        tl_buf_init(&b, 0);
        random_stream(&b, &rng);
        const size_t n = cut(reads, b.len, &rng);
        tl_split whole, cuts;
        tl_split_event x, y;
        tl_split_init(&whole, b.p, b.len, NULL, 0);
        tl_split_init(&cuts, b.p, b.len, reads, n);
        size_t last_end = 0;
        uint64_t last_t = 0;
        while (tl_sse_next(&whole, &x)) {
            assert_true(tl_sse_next(&cuts, &y));
            assert_int_equal(x.len, y.len);
            assert_memory_equal(x.data, y.data, x.len);
            assert_int_equal(x.start, y.start);
            assert_int_equal(x.end, y.end);
            assert_true(y.start >= last_end && y.end > y.start && y.end <= b.len);
            /* complete with the last byte, or with its CR when an LF follows */
            size_t last = y.end - 1;
            if (!y.unterminated && b.p[last] == '\n' && last > 0 && b.p[last - 1] == '\r') last--;
            assert_int_equal(y.read, read_of(reads, n, last));
            assert_int_equal(y.t_ns, 1000 + y.read);
            assert_true(y.t_ns >= last_t);
            last_end = y.end;
            last_t = y.t_ns;
        }
        assert_false(tl_sse_next(&cuts, &y));
        tl_split_free(&whole);
        tl_split_free(&cuts);
        tl_buf_free(&b);
    }
}

/* An event is there when its blank line is, not when its text is. */
static void arrival_is_of_the_completing_byte(void **state) {
    TL_UNUSED(state);
    static const char in[] = "data: a\n\ndata: b\n\n";
    const tl_http_read reads[] = {{.t_ns = 10, .offset = 0, .len = 8, .wake = 1},
                                  {.t_ns = 20, .offset = 8, .len = 1, .wake = 2},
                                  {.t_ns = 30, .offset = 9, .len = 4, .wake = 3},
                                  {.t_ns = 31, .offset = 13, .len = 5, .wake = 3}};
    tl_split s;
    tl_split_event ev;
    tl_split_init(&s, in, sizeof in - 1, reads, TL_COUNT(reads));
    assert_true(tl_sse_next(&s, &ev));
    assert_int_equal(ev.t_ns, 20);
    assert_int_equal(ev.wake, 2);
    assert_int_equal(ev.start, 0);
    assert_int_equal(ev.end, 9);
    assert_true(tl_sse_next(&s, &ev));
    assert_int_equal(ev.t_ns, 31);
    assert_int_equal(ev.read, 3);
    tl_split_free(&s);
    tl_split_free(&s);
}

static void two_megabytes(void **state) {
    TL_UNUSED(state);
    const size_t n = 2u << 20;
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_str(&b, "data: ");
    char *block = tl_xalloc(n);
    memset(block, 'x', n);
    tl_buf_add(&b, block, n);
    tl_buf_str(&b, "\n\ndata: y\n\n");
    tl_split s;
    tl_split_event ev;
    tl_split_init(&s, b.p, b.len, NULL, 0);
    assert_true(tl_sse_next(&s, &ev));
    assert_int_equal(ev.len, n);
    assert_true(tl_sse_next(&s, &ev));
    assert_int_equal(ev.len, 1);
    tl_split_free(&s);
    tl_buf_free(&b);
    free(block);
}

static void ndjson(void **state) {
    TL_UNUSED(state);
    static const char in[] = "{\"a\":1}\n{\"b\":2}\r\n\n  \n{\"done\":true}";
    const tl_http_read reads[] = {{.t_ns = 5, .offset = 0, .len = 10, .wake = 1},
                                  {.t_ns = 6, .offset = 10, .len = sizeof in - 11, .wake = 2}};
    tl_split s;
    tl_split_event ev;
    tl_split_init(&s, in, sizeof in - 1, reads, 2);
    assert_true(tl_ndjson_next(&s, &ev));
    assert_int_equal(ev.len, 7);
    assert_int_equal(ev.t_ns, 5);
    assert_true(tl_ndjson_next(&s, &ev));
    assert_memory_equal(ev.data, "{\"b\":2}", 7);
    assert_int_equal(ev.len, 7);
    assert_int_equal(ev.t_ns, 6);
    assert_false(ev.unterminated);
    assert_true(tl_ndjson_next(&s, &ev));
    assert_memory_equal(ev.data, "{\"done\":true}", 13);
    assert_true(ev.unterminated);
    assert_int_equal(ev.end, sizeof in - 1);
    assert_false(tl_ndjson_next(&s, &ev));
    assert_int_equal(s.n_empty, 2);
    tl_split_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(nul_bytes_are_data),
        cmocka_unit_test(same_events_whatever_the_cuts),
        cmocka_unit_test(arrival_is_of_the_completing_byte),
        cmocka_unit_test(two_megabytes),
        cmocka_unit_test(ndjson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

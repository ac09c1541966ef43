/* model: reader on good, hostile and truncated files; digest memory; synthetic writer: determinism, sizes, refusals. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char *dir;

static int setup(void **state) {
    TL_UNUSED(state);
    tl_err e;
    if (tl_dir_temp(&dir, "tally-model", &e) != TL_OK) return -1;
    char *cache = tl_path_join(dir, "cache");
    int rc = setenv("TALLY_CACHE", cache, 1);
    free(cache);
    return rc;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_err e;
    tl_status st = tl_dir_remove(dir, &e);
    free(dir);
    return st == TL_OK ? 0 : -1;
}

static tl_synth_spec tiny(const char *quant) {
    tl_synth_spec s = tl_synth_default();
    snprintf(s.quant, sizeof s.quant, "%s", quant);
    s.layers = 2;
    s.embed = 256;
    s.ff = 512;
    s.vocab = 1536;
    s.ctx = 2048;
    return s;
}

static void ok(tl_status st, const tl_err *e) {
    if (st != TL_OK) fail_msg("%s (%s:%d)", e->msg, e->file, e->line);
}

/* ---- hand-made GGUF files ------------------------------------------------------------------------------------ */

static void int_le(tl_buf *b, uint64_t v, int n) {
    for (int i = 0; i < n; i++) tl_buf_char(b, (char)(v >> 8 * i & 255));
}

static void str_le(tl_buf *b, const char *s) {
    int_le(b, strlen(s), 8);
    tl_buf_str(b, s);
}

static void start(tl_buf *b, uint32_t version, uint64_t tensors, uint64_t keys) {
    tl_buf_init(b, 0);
    tl_buf_str(b, "GGUF");
    int_le(b, version, 4);
    int_le(b, tensors, 8);
    int_le(b, keys, 8);
}

static void key_text(tl_buf *b, const char *k, const char *v) {
    str_le(b, k);
    int_le(b, 8, 4);
    str_le(b, v);
}

static void key_u32(tl_buf *b, const char *k, uint32_t v) {
    str_le(b, k);
    int_le(b, 4, 4);
    int_le(b, v, 4);
}

static void tensor(tl_buf *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset) {
    str_le(b, name);
    int_le(b, 2, 4);
    int_le(b, cols, 8);
    int_le(b, rows, 8);
    int_le(b, type, 4);
    int_le(b, offset, 8);
}

static void body(tl_buf *b, size_t n) {
    while (b->len % 32 != 0) tl_buf_char(b, 0);
    for (size_t i = 0; i < n; i++) tl_buf_char(b, 7);
}

static char *save(const char *name, tl_buf *b) {
    tl_err e;
    char *path = tl_path_join(dir, name);
    ok(tl_file_write(path, b->p, b->len, &e), &e);
    tl_buf_free(b);
    return path;
}

/* The file is refused with this status and a message that holds `part`. Frees path. */
static void refused(char *path, tl_status want, const char *part) {
    tl_model *m = NULL;
    tl_err e = {.msg = ""};
    tl_status st = tl_model_open(&m, path, 0, &e);
    tl_model_free(m);
    if (st != want || strstr(e.msg, part) == NULL) fail_msg("got %s: %s", tl_status_name(st), e.msg);
    assert_null(m);
    free(path);
}

static void test_not_a_model(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    refused(tl_path_join(dir, "absent.gguf"), TL_NOT_FOUND, "does not exist");
    refused(tl_xstrdup(dir), TL_INVALID, "not a file");
    tl_buf_init(&b, 0);
    refused(save("empty.gguf", &b), TL_INVALID, "only 0 bytes");
    tl_buf_init(&b, 0);
    tl_buf_str(&b, "<html>404 Not Found: the page that you want is gone</html>");
    refused(save("html.gguf", &b), TL_INVALID, "not a GGUF file");
    start(&b, 0x03000000, 0, 0);
    refused(save("be.gguf", &b), TL_INVALID, "big-endian");
    start(&b, 1, 0, 0);
    refused(save("v1.gguf", &b), TL_INVALID, "version 1");
    start(&b, 99, 0, 0);
    refused(save("v99.gguf", &b), TL_INVALID, "version 99");
}

static void test_hostile_counts(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    start(&b, 3, UINT64_MAX, 0);
    refused(save("h1.gguf", &b), TL_INVALID, "can hold");
    start(&b, 3, 0, UINT64_C(1) << 60);
    refused(save("h2.gguf", &b), TL_INVALID, "can hold");
    start(&b, 3, 0, 1); /* key longer than the file */
    int_le(&b, UINT64_MAX - 3, 8);
    tl_buf_str(&b, "general.architecture");
    refused(save("h3.gguf", &b), TL_INVALID, "cut off");
    start(&b, 3, 0, 1); /* array that would overflow a multiplication */
    str_le(&b, "x");
    int_le(&b, 9, 4);
    int_le(&b, 10, 4);
    int_le(&b, UINT64_C(1) << 61, 8);
    body(&b, 64);
    refused(save("h4.gguf", &b), TL_INVALID, "more than the file can hold");
    start(&b, 3, 0, 1); /* arrays in arrays in arrays */
    str_le(&b, "deep");
    for (int i = 0; i < 40; i++) {
        int_le(&b, 9, 4);
        if (i > 0) int_le(&b, 1, 8);
    }
    body(&b, 256);
    refused(save("h5.gguf", &b), TL_INVALID, "");
    start(&b, 3, 0, 1);
    str_le(&b, "t");
    int_le(&b, 77, 4);
    body(&b, 64);
    refused(save("h6.gguf", &b), TL_INVALID, "value type 77");
    start(&b, 3, 0, 2);
    key_u32(&b, "k", 1);
    key_u32(&b, "k", 2);
    refused(save("h7.gguf", &b), TL_INVALID, "twice");
    start(&b, 3, 0, 1);
    key_u32(&b, "general.alignment", 3);
    refused(save("h8.gguf", &b), TL_INVALID, "power of two");
    start(&b, 3, 0, 1);
    key_text(&b, "\xff\xfe", "v");
    refused(save("h9.gguf", &b), TL_INVALID, "UTF-8");
}

static void test_hostile_tensors(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    start(&b, 3, 1, 0);
    tensor(&b, "a", UINT64_C(1) << 40, UINT64_C(1) << 40, 0, 0);
    body(&b, 64);
    refused(save("t1.gguf", &b), TL_INVALID, "impossible dimension");
    start(&b, 3, 1, 0);
    tensor(&b, "a", 0, 4, 0, 0);
    body(&b, 64);
    refused(save("t2.gguf", &b), TL_INVALID, "impossible dimension");
    start(&b, 3, 1, 0);
    tensor(&b, "a", 33, 4, 2, 0);
    body(&b, 640);
    refused(save("t3.gguf", &b), TL_INVALID, "blocks of 32");
    start(&b, 3, 1, 0);
    tensor(&b, "a", 4, 4, 0, UINT64_MAX - 31);
    body(&b, 64);
    refused(save("t4.gguf", &b), TL_INVALID, "impossible offset");
    start(&b, 3, 1, 0);
    tensor(&b, "a", 4, 4, 0, 5);
    body(&b, 128);
    refused(save("t5.gguf", &b), TL_INVALID, "alignment");
    start(&b, 3, 2, 0);
    tensor(&b, "a", 4, 4, 0, 0);
    tensor(&b, "a", 4, 4, 0, 64);
    body(&b, 128);
    refused(save("t6.gguf", &b), TL_INVALID, "twice");
}

/* Every cut of a small real file is refused, and the body's cut names both sizes. */
static void test_truncated(void **state) {
    TL_UNUSED(state);
    tl_err e;
    tl_synth_spec s = tiny("q4_0");
    tl_synth_plan p;
    tl_buf all;
    char want[128], *path = tl_path_join(dir, "whole.gguf");
    tl_buf_init(&all, 0);
    ok(tl_synth_write(path, &s, NULL, NULL, &e), &e);
    ok(tl_synth_describe(&p, &s, &e), &e);
    ok(tl_file_read(&all, path, 0, &e), &e);
    assert_int_equal(all.len, p.file_bytes);
    uint64_t header = p.file_bytes - p.tensor_bytes;
    for (size_t cut = 0; cut < header - 200; cut += cut < 300 ? 1 : 1777) {
        tl_buf b;
        tl_buf_init(&b, 0);
        tl_buf_add(&b, all.p, cut);
        refused(save("cut.gguf", &b), TL_INVALID, cut < 24 ? "not a GGUF" : "");
    }
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_add(&b, all.p, all.len - 1000);
    snprintf(want, sizeof want, "its header describes %zu bytes, the file has %zu", all.len, all.len - 1000);
    refused(save("cut.gguf", &b), TL_INVALID, want);
    tl_buf_free(&all);
    free(path);
}

/* ---- what is read -------------------------------------------------------------------------------------------- */

static void moe_header(tl_buf *b, const char *arch) {
    start(b, 3, 6, 9);
    key_text(b, "general.architecture", arch);
    key_u32(b, "qwen3moe.block_count", 1);
    key_u32(b, "qwen3moe.embedding_length", 32);
    key_u32(b, "qwen3moe.attention.head_count", 4);
    key_u32(b, "qwen3moe.attention.head_count_kv", 2);
    key_u32(b, "qwen3moe.attention.key_length", 16);
    key_u32(b, "qwen3moe.attention.value_length", 8);
    key_u32(b, "qwen3moe.expert_count", 8);
    key_u32(b, "qwen3moe.expert_used_count", 2);
    tensor(b, "token_embd.weight", 32, 10, 8, 0);        /* 340 bytes, padded to 352 */
    tensor(b, "output.weight", 32, 10, 8, 352);          /* 340 */
    tensor(b, "blk.0.attn_q.weight", 32, 64, 8, 704);    /* 2176 */
    tensor(b, "blk.0.ffn_gate_exps.weight", 32, 80, 8, 2880); /* 2720: 8 experts of 340 */
    tensor(b, "blk.0.ffn_gate_inp.weight", 32, 8, 0, 5600);   /* 1024 */
    tensor(b, "blk.0.attn_norm.weight", 32, 1, 0, 6624); /* 128 */
    body(b, 6752);
}

static void test_experts(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    tl_err e;
    tl_model *m = NULL;
    uint64_t kv;
    moe_header(&b, "qwen3moe");
    char *path = save("moe.gguf", &b);
    ok(tl_model_open(&m, path, 0, &e), &e);
    const tl_model_facts *f = tl_model_facts_of(m);
    assert_int_equal(f->tensor_bytes, 340 + 340 + 2176 + 2720 + 1024 + 128);
    assert_int_equal(f->class_bytes[TL_TENSOR_EXPERTS], 2720);
    assert_int_equal(f->class_bytes[TL_TENSOR_OTHER], 1024);
    assert_int_equal(f->read_bytes_per_token, 340 + 2176 + 2720 / 8 * 2 + 1024 + 128);
    assert_false(f->tied);
    assert_int_equal(f->experts, 8);
    ok(tl_model_kv_bytes_per_token(&kv, m, "f16", NULL, &e), &e);
    assert_int_equal(kv, 2 * (2 * 16 + 2 * 8));
    ok(tl_model_kv_bytes_per_token(&kv, m, "q8_0", "f32", &e), &e);
    assert_int_equal(kv, 34 + 64);
    assert_int_equal(tl_model_kv_bytes_per_token(&kv, m, "q9_z", NULL, &e), TL_INVALID);
    tl_model_free(m);
    free(path);
}

static void test_unknown_type_is_listed(void **state) {
    TL_UNUSED(state);
    tl_buf b;
    tl_err e;
    tl_model *m = NULL;
    const tl_model_tensor *t;
    start(&b, 3, 2, 1);
    key_text(&b, "general.architecture", "llama");
    tensor(&b, "token_embd.weight", 32, 10, 77, 0);
    tensor(&b, "blk.0.attn_q.weight", 8, 8, 0, 96);
    body(&b, 96 + 256);
    char *path = save("unknown.gguf", &b);
    ok(tl_model_open(&m, path, 0, &e), &e);
    assert_int_equal(tl_model_tensors(&t, m), 2);
    assert_false(t[0].type_known);
    assert_string_equal(t[0].type_name, "unknown");
    assert_int_equal(t[0].bytes, 96);
    assert_int_equal(t[1].bytes, 256);
    assert_true(tl_model_facts_of(m)->unknown_types);
    assert_true(tl_model_facts_of(m)->tied);
    assert_int_equal(tl_model_facts_of(m)->read_bytes_per_token, 96 + 256);
    tl_model_free(m);
    free(path);
}

static void split_part(uint32_t no, uint32_t count) {
    tl_buf b;
    char name[64];
    start(&b, 3, 1, no == 0 ? 2 : 1);
    str_le(&b, "split.count");
    int_le(&b, 2, 4); /* u16, as gguf-split writes it */
    int_le(&b, count, 2);
    if (no == 0) key_text(&b, "general.architecture", "llama");
    snprintf(name, sizeof name, "blk.%u.ffn_up.weight", no);
    tensor(&b, name, 32, 4, 8, 0);
    body(&b, 136);
    snprintf(name, sizeof name, "s-%05u-of-00003.gguf", no + 1);
    free(save(name, &b));
}

static void test_split(void **state) {
    TL_UNUSED(state);
    tl_err e;
    tl_model *m = NULL;
    char digest[65], first[65];
    const tl_model_tensor *t;
    for (uint32_t i = 0; i < 3; i++) split_part(i, 3);
    char *path = tl_path_join(dir, "s-00002-of-00003.gguf"), *gone = tl_path_join(dir, "s-00003-of-00003.gguf");
    ok(tl_model_open(&m, path, 0, &e), &e);
    assert_int_equal(tl_model_facts_of(m)->parts, 3);
    assert_int_equal(tl_model_tensors(&t, m), 3);
    assert_int_equal(tl_model_facts_of(m)->tensor_bytes, 3 * 136);
    assert_int_equal(t[2].part, 2);
    tl_model_free(m);
    ok(tl_model_digest(digest, path, NULL, NULL, &e), &e);
    ok(tl_file_sha256(first, path, NULL, NULL, &e), &e);
    assert_string_not_equal(digest, first);
    ok(tl_file_remove(gone, &e), &e);
    refused(path, TL_INVALID, "part 3 of 3");
    free(gone);
    tl_buf b;
    moe_header(&b, "qwen3moe");
    refused(save("x-00001-of-00002.gguf", &b), TL_INVALID, "part 2 of 2");
}

static void test_facts_of_synth(void **state) {
    TL_UNUSED(state);
    static const char *const QUANTS[] = {"f16", "q8_0", "q4_0", "q4_k", "q6_k", "q4_k_m"};
    tl_err e;
    char *path = tl_path_join(dir, "facts.gguf");
    for (size_t i = 0; i < TL_COUNT(QUANTS) * 3; i++) {
        tl_synth_spec s = tiny(QUANTS[i / 3]);
        tl_synth_plan p;
        tl_model *m = NULL;
        s.tie = i % 3 == 1;
        s.answer = i % 3 == 2 ? 20 : 0;
        ok(tl_synth_write(path, &s, NULL, NULL, &e), &e);
        ok(tl_synth_describe(&p, &s, &e), &e);
        ok(tl_model_open(&m, path, TL_MODEL_KEEP_VOCAB, &e), &e);
        const tl_model_facts *f = tl_model_facts_of(m);
        uint64_t kv;
        int32_t type = 0;
        assert_int_equal(f->file_bytes, p.file_bytes);
        assert_int_equal(f->tensor_bytes, p.tensor_bytes);
        assert_int_equal(f->params, p.params);
        assert_int_equal(f->read_bytes_per_token, p.read_bytes_per_token);
        assert_int_equal(f->tied, s.tie);
        ok(tl_model_kv_bytes_per_token(&kv, m, "f16", NULL, &e), &e);
        assert_int_equal(kv, p.kv_bytes_per_token_f16);
        assert_int_equal(f->vocab, 1536);
        assert_true(f->chat_template);
        assert_string_equal(tl_model_token(m, 261, &type), "<think>");
        assert_int_equal(type, 4);
        assert_null(tl_model_token(m, 1536, NULL));
        json_t *j = tl_model_json(m);
        assert_string_equal(tl_json_str(j, "synth.quant", ""), QUANTS[i / 3]);
        assert_int_equal(tl_json_int(j, "synth.answer", -1), s.answer);
        json_decref(j);
        tl_model_free(m);
    }
    free(path);
}

/* ---- digest -------------------------------------------------------------------------------------------------- */

static bool count_calls(void *ctx, uint64_t done, uint64_t total) {
    TL_UNUSED(done);
    TL_UNUSED(total);
    ++*(int *)ctx;
    return true;
}

static bool say_no(void *ctx, uint64_t done, uint64_t total) {
    TL_UNUSED(ctx);
    TL_UNUSED(done);
    TL_UNUSED(total);
    return false;
}

static void test_digest_memory(void **state) {
    TL_UNUSED(state);
    tl_err e;
    char a[65], b[65], c[65];
    int calls = 0, before;
    char *path = tl_path_join(dir, "d.bin"), *cache = tl_path_cache(), *memory = tl_path_join(cache, "model-digests.json");
    ok(tl_file_write(path, "abc", 3, &e), &e);
    tl_sleep_ns(150 * TL_MS); /* a file that changed this very moment is not remembered */
    ok(tl_model_digest(a, path, count_calls, &calls, &e), &e);
    assert_string_equal(a, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(calls > 0);
    before = calls;
    ok(tl_model_digest(b, path, count_calls, &calls, &e), &e);
    assert_string_equal(a, b);
    assert_int_equal(calls, before); /* not read again */
    ok(tl_file_write(path, "abd", 3, &e), &e); /* same size, other content */
    ok(tl_model_digest(c, path, count_calls, &calls, &e), &e);
    assert_string_not_equal(a, c);
    tl_sleep_ns(150 * TL_MS);
    ok(tl_file_write(memory, "{\"files\": [not json", 19, &e), &e);
    ok(tl_model_digest(b, path, NULL, NULL, &e), &e);
    assert_string_equal(b, c);
    ok(tl_model_digest(b, path, say_no, NULL, &e), &e); /* remembered again, in spite of the damaged memory */
    ok(tl_file_write(memory, "{\"files\":{}}", 12, &e), &e);
    assert_int_equal(tl_model_digest(b, path, say_no, NULL, &e), TL_CANCELLED);
    ok(tl_file_remove(path, &e), &e);
    assert_int_equal(tl_model_digest(b, path, NULL, NULL, &e), TL_NOT_FOUND);
    free(memory);
    free(cache);
    free(path);
}

/* ---- writer -------------------------------------------------------------------------------------------------- */

static void digest_of(char out[65], const tl_synth_spec *s) {
    tl_err e;
    char *path = tl_path_join(dir, "det.gguf");
    ok(tl_synth_write(path, s, NULL, NULL, &e), &e);
    ok(tl_file_sha256(out, path, NULL, NULL, &e), &e);
    free(path);
}

/* The bytes are part of the contract: a reader's model must have the digest that was published. A change here means a
 * new tally.synth.version. */
static void test_same_bytes(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *quant;
        uint32_t answer;
        double wrong;
        const char *sha256;
    } CASES[] = {
        {"q4_0", 0, 0, "207c757fc7817167ef283d8dc600c3c7c3715154d9c14b6cbcc551f22525ce4b"}, {"f16", 0, 0, "9c01fde25b3bd1919329b6b6a98268e5217c4ebe4fd1106d4bbb6e2420b905a1"},     {"q8_0", 20, 0, "022c72f6a63b097997c27d8a55c17499f450010d1753cdfc43b46e65ed27b6f4"},
        {"q4_k", 20, 0, "db0c8079e916123bf957d0bcbb256ba238332a8c85685d7f5cef485805bac7b8"}, {"q6_k", 20, 0.5, "32a03d3fa30a2d4aa61a4d511308a846d78667d7cf8d02b9e779bf34dd7ffe21"}, {"q4_k_m", 0, 0, "b1aa0bf65e686cf221992abcf4fd67c09a7c66198dfe501becfbe26952d83341"},
    };
    for (size_t i = 0; i < TL_COUNT(CASES); i++) {
        tl_synth_spec s = tiny(CASES[i].quant);
        char got[65], other[65];
        s.answer = CASES[i].answer;
        s.think = s.answer / 4;
        s.wrong = CASES[i].wrong;
        digest_of(got, &s);
        if (strcmp(got, CASES[i].sha256) != 0) fail_msg("case %zu (%s): %s", i, CASES[i].quant, got);
        s.seed = 2;
        digest_of(other, &s);
        assert_string_not_equal(got, other);
    }
}

static void no_temp_left(void) {
    tl_err e;
    tl_names n = {0};
    ok(tl_dir_list(&n, dir, &e), &e);
    for (size_t i = 0; i < n.n; i++) assert_null(strstr(n.v[i], ".tmp-"));
    tl_names_free(&n);
}

static void test_write_fails_clean(void **state) {
    TL_UNUSED(state);
    tl_err e;
    tl_synth_spec s = tiny("q4_0");
    char *path = tl_path_join(dir, "keep.gguf"), *deep = tl_path_join(dir, "no/such/folder/x.gguf");
    tl_buf b;
    tl_buf_init(&b, 0);
    ok(tl_file_write(path, "old", 3, &e), &e);
    assert_int_equal(tl_synth_write(path, &s, say_no, NULL, &e), TL_CANCELLED);
    ok(tl_file_read(&b, path, 0, &e), &e);
    assert_string_equal(b.p, "old");
    assert_int_equal(tl_synth_write(deep, &s, NULL, NULL, &e), TL_NOT_FOUND);
    assert_int_equal(tl_synth_write(dir, &s, NULL, NULL, &e), TL_INVALID);
    s.size_bytes = UINT64_C(1900) * 1000000000; /* more than the test machine's disk has */
    s.layers = s.embed = s.ff = 0;
    s.vocab = 32000;
    snprintf(s.quant, sizeof s.quant, "f16");
    uint64_t room = 0;
    ok(tl_fs_free_bytes(&room, dir, &e), &e);
    if (room < s.size_bytes) {
        assert_int_equal(tl_synth_write(path, &s, NULL, NULL, &e), TL_IO);
        assert_non_null(strstr(e.msg, "free"));
    }
    no_temp_left();
    tl_buf_free(&b);
    free(deep);
    free(path);
}

static void test_sizes(void **state) {
    TL_UNUSED(state);
    static const char *const SIZES[] = {"20MB", "50 MB", "197MB", "350MB", "885.7MB", "1.3GB", "2.2e0GB", "4.7GB", "16GiB",
                                        "70GB"};
    static const char *const QUANTS[] = {"f16", "q8_0", "q4_0", "q4_k", "q6_k", "q4_k_m"};
    tl_err e;
    for (size_t i = 0; i < TL_COUNT(SIZES); i++) {
        tl_synth_spec s = tl_synth_default();
        tl_synth_plan p;
        if (strchr(SIZES[i], 'e')) {
            assert_int_equal(tl_synth_set(&s, "size", SIZES[i], &e), TL_INVALID);
            continue;
        }
        ok(tl_synth_set(&s, "size", SIZES[i], &e), &e);
        for (size_t q = i; q < i + 3; q++) { /* three of six for each size, so that the test stays quick */
            const char *quant = QUANTS[q * 5 % TL_COUNT(QUANTS)];
            ok(tl_synth_set(&s, "quant", quant, &e), &e);
            ok(tl_synth_describe(&p, &s, &e), &e);
            double ratio = (double)p.file_bytes / (double)s.size_bytes;
            if (ratio < 0.97 || ratio > 1.03) fail_msg("%s %s: %f", SIZES[i], quant, ratio);
        }
    }
}

static void refuses(const char *const *kv, const char *msg, const char *remedy) {
    tl_err e = {.msg = ""};
    tl_synth_spec s = tl_synth_default();
    tl_synth_plan p;
    tl_status st = TL_OK;
    for (; *kv && st == TL_OK; kv += 2) st = tl_synth_set(&s, kv[0], kv[1], &e);
    if (st == TL_OK) st = tl_synth_describe(&p, &s, &e);
    if (st != TL_INVALID || !strstr(e.msg, msg) || !strstr(e.remedy, remedy))
        fail_msg("wanted '%s' (%s), got %s: %s (%s)", msg, remedy, tl_status_name(st), e.msg, e.remedy);
}
#define REFUSES(msg, remedy, ...) refuses((const char *const[]){__VA_ARGS__, NULL}, msg, remedy)

static void test_refusals(void **state) {
    TL_UNUSED(state);
    REFUSES("--heads 30 does not divide --embed 2048", "--heads 16", "embed", "2048", "heads", "30");
    REFUSES("--kv-heads 5 does not divide --heads 32", "--kv-heads 4", "heads", "32", "kv-heads", "5");
    REFUSES("is odd", "even", "embed", "288", "heads", "32", "quant", "q8_0");
    REFUSES("blocks of 256", "--embed 2048", "embed", "2080", "quant", "q4_k", "heads", "1");
    REFUSES("blocks of 32", "--ff 992", "ff", "1000");
    REFUSES("too small: ", "--vocab", "vocab", "1024", "answer", "900");
    REFUSES("no plausible", "MB", "size", "1MB");
    REFUSES("--size chooses", "leave out", "size", "1GB", "layers", "3");
    REFUSES("is for scripted", "--answer", "think", "3");
    REFUSES("is for scripted", "--answer", "wrong", "0.3");
    REFUSES("tied", "--tie", "answer", "3", "tie", NULL);
    REFUSES("too narrow", "128", "answer", "3", "embed", "96", "heads", "1");
    REFUSES("quantisation 'q5_k'", "known are", "quant", "q5_k");
    REFUSES("no option --kvheads", "--kv-heads", "kvheads", "4");
    REFUSES("from 1 to 512", "layers", "layers", "0");
    REFUSES("from 1 to 512", "layers", "layers", "-4");
    REFUSES("not a size", "1.3GB", "size", "big");
    REFUSES("share from 0 to 1", "", "wrong", "1.5");
    REFUSES("share from 0 to 1", "", "wrong", "nan");
}

static void test_text(void **state) {
    TL_UNUSED(state);
    tl_err e;
    tl_synth_spec s = tiny("q4_0");
    tl_buf r, c;
    tl_buf_init(&r, 0);
    tl_buf_init(&c, 0);
    assert_int_equal(tl_synth_text(&r, &c, &s, &e), TL_INVALID);
    s.think = 2;
    s.answer = 3;
    ok(tl_synth_text(&r, &c, &s, &e), &e);
    assert_string_equal(r.p, "tufebi logime");
    assert_string_equal(c.p, "tikiba lelolu tamoto");
    assert_int_equal(tl_synth_completion_tokens(&s, true), 2 + 3 + 3 + 1);
    assert_int_equal(tl_synth_completion_tokens(&s, false), 3 + 1);
    tl_buf_free(&r);
    tl_buf_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_a_model),   cmocka_unit_test(test_hostile_counts),
        cmocka_unit_test(test_hostile_tensors), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_experts),       cmocka_unit_test(test_unknown_type_is_listed),
        cmocka_unit_test(test_split),         cmocka_unit_test(test_facts_of_synth),
        cmocka_unit_test(test_digest_memory), cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_write_fails_clean), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

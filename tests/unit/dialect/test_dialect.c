/* Request bodies, refusals, and decoding of stored bytes whatever the cut points. Streams over a real socket are played
 * by tests/engine/conform. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "engine/engine.h"

static json_t *body_of(const char *dialect, const tl_prompt *p, const tl_gen *g, tl_status want)
{
    tl_buf b;
    tl_err e = { 0 };
    json_t *j = NULL;
    tl_buf_init(&b, 0);
    assert_int_equal(tl_dialect_body(&b, tl_dialect_find(dialect), p, g, &e), want);
    if (want == TL_OK) assert_int_equal(tl_json_parse(&j, b.p, b.len, "body", &e), TL_OK);
    else assert_true(strstr(e.msg, dialect) != NULL);
    tl_buf_free(&b);
    return j;
}

static void test_chat_body(void **s)
{
    (void)s;
    tl_gen g;
    tl_gen_init(&g);
    const tl_prompt p = { .text = "hi \"圖\"" };
    json_t *j = body_of("openai-chat", &p, &g, TL_OK);
    assert_string_equal(tl_json_str(j, "messages.0.content", ""), "hi \"圖\"");
    assert_string_equal(tl_json_str(j, "messages.0.role", ""), "user");
    assert_true(json_is_true(tl_json_at(j, "stream")));
    assert_true(json_is_true(tl_json_at(j, "stream_options.include_usage")));
    const char *const unsent[] = { "model", "max_tokens", "temperature", "seed", "ignore_eos", "cache_prompt", "id_slot",
                                   "chat_template_kwargs", "return_progress" };
    for (size_t i = 0; i < TL_COUNT(unsent); i++) assert_null(tl_json_at(j, unsent[i]));
    json_decref(j);

    g.model = "m", g.max_tokens = 0, g.temperature = 0, g.seed = 0, g.ignore_eos = true, g.cache_prompt = 0;
    g.enable_thinking = 0, g.id_slot = 0, g.return_progress = true;
    j = body_of("openai-chat", &p, &g, TL_OK);
    assert_int_equal(tl_json_int(j, "max_tokens", -1), 0);
    assert_true(json_is_false(tl_json_at(j, "chat_template_kwargs.enable_thinking"))); /* a boolean, not "false" */
    assert_true(json_is_false(tl_json_at(j, "cache_prompt")));
    assert_true(tl_json_num(j, "temperature", 9) == 0);
    assert_int_equal(tl_json_int(j, "seed", 9), 0);
    assert_int_equal(tl_json_int(j, "id_slot", 9), 0);
    assert_true(json_is_true(tl_json_at(j, "ignore_eos")));
    json_decref(j);
}

static void test_native_body(void **s)
{
    (void)s;
    tl_gen g;
    tl_gen_init(&g);
    g.max_tokens = 64;
    const int32_t ids[] = { 1, 15043, 3186 };
    const tl_prompt p = { .tokens = ids, .n_tokens = 3 };
    json_t *j = body_of("llamacpp-completion", &p, &g, TL_OK);
    assert_int_equal(json_array_size(tl_json_at(j, "prompt")), 3);
    assert_int_equal(tl_json_int(j, "prompt.1", 0), 15043);
    assert_int_equal(tl_json_int(j, "n_predict", 0), 64);
    assert_true(json_is_false(tl_json_at(j, "timings_per_token")));
    json_decref(j);
}

static void test_refusals(void **s)
{
    (void)s;
    tl_gen g, eos, cache, think, ctx, stream;
    const int32_t id = 1;
    const tl_prompt text = { .text = "a" }, ids = { .tokens = &id, .n_tokens = 1 }, none = { 0 },
                    both = { .text = "a", .tokens = &id }, bad = { .text = "\xff" };
    tl_gen_init(&g);
    eos = cache = think = ctx = stream = g;
    eos.ignore_eos = true, cache.cache_prompt = 0, think.enable_thinking = 1, ctx.num_ctx = 10;
    json_t *extra = json_pack("{s:b}", "stream", 0);
    stream.extra = extra;
    body_of("openai-chat", &ids, &g, TL_INVALID);
    body_of("openai-chat", &none, &g, TL_INVALID);
    body_of("openai-chat", &both, &g, TL_INVALID);
    body_of("openai-chat", &bad, &g, TL_INVALID);
    body_of("openai-chat", &text, &stream, TL_INVALID);
    body_of("openai-chat", &text, &ctx, TL_INVALID);
    body_of("ollama-chat", &text, &eos, TL_INVALID);
    body_of("ollama-chat", &text, &cache, TL_INVALID);
    body_of("ollama-chat", &ids, &g, TL_INVALID);
    body_of("llamacpp-completion", &text, &think, TL_INVALID);
    json_decref(extra);
    assert_null(tl_dialect_find("openai"));
    ctx.enable_thinking = 0;
    json_t *j = body_of("ollama-chat", &text, &ctx, TL_OK);
    assert_int_equal(tl_json_int(j, "options.num_ctx", 0), 10);
    assert_true(json_is_false(tl_json_at(j, "think")));
    json_decref(j);
}

static const char stream[] = ": ping\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n"
                             "data:{\"choices\":[{\"delta\":{\"reasoning\":\"a b\"}}]}\r\n\r\n"
                             "data: {\"choices\":[{\"delta\":{\"content\":\" 圖\\ud83d\\ude00 \"}}]}\n\n"
                             "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                             "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

/* Whatever way the bytes are cut into reads, and wherever they end, the decoder stays sound. */
static void test_cut_points(void **s)
{
    (void)s;
    const size_t len = sizeof stream - 1;
    tl_http_read reads[sizeof stream];
    for (size_t i = 0; i < len; i++)
        reads[i] = (tl_http_read){ .t_ns = 1000 + i, .offset = i, .len = 1, .wake = (uint32_t)i };
    for (size_t end = 0; end <= len; end++) {
        char *copy = tl_xstrndup(stream, end); /* so that a read past the end is seen */
        const tl_http_log log = { .t_intended_ns = 1, .t_start_ns = 1, .t_sent_ns = 2, .reads = reads, .n_reads = end,
                                  .body = copy, .body_len = end, .status = 200, .connects = 1,
                                  .outcome = end == len ? TL_HTTP_COMPLETE : TL_HTTP_CLOSED_EARLY };
        tl_request r;
        tl_metrics m;
        tl_request_init(&r);
        assert_int_equal(tl_dialect_decode(&r, tl_dialect_find("openai-chat"), &log, NULL, NULL), TL_OK);
        tl_metrics_of(&m, &r);
        assert_false(r.bad_record);
        assert_true(m.outcome == TL_REQ_OK || m.outcome == TL_REQ_TRUNCATED || m.outcome == TL_REQ_FAILED);
        if (end == len) {
            assert_string_equal(r.text, " 圖😀 ");
            assert_string_equal(r.reasoning, "a b");
            assert_int_equal(m.outcome, TL_REQ_OK);
            assert_int_equal(m.n, 2);
            assert_non_null(strstr(r.raw_last, "\"completion_tokens\":2"));
            assert_non_null(strstr(r.raw_last, "\"stop\""));
        }
        tl_metrics_free(&m);
        tl_request_free(&r);
        free(copy);
    }
}

/* Bytes flipped anywhere: flags and outcomes, never a crash (the sanitizers watch). */
static void test_hostile_bytes(void **s)
{
    (void)s;
    tl_rng rng;
    size_t n = 0;
    const char *const *names = tl_dialect_names(&n);
    tl_rng_seed(&rng, 42);
    for (int round = 0; round < 3000; round++) {
        char copy[sizeof stream];
        memcpy(copy, stream, sizeof stream);
        for (uint64_t k = 1 + tl_rng_below(&rng, 6); k > 0; k--)
            copy[tl_rng_below(&rng, sizeof stream - 1)] = (char)tl_rng_below(&rng, 256);
        const tl_http_log log = { .body = copy, .body_len = sizeof stream - 1, .status = round % 7 ? 200 : 500,
                                  .outcome = TL_HTTP_COMPLETE };
        tl_request r;
        tl_metrics m;
        tl_request_init(&r);
        assert_int_equal(tl_dialect_decode(&r, tl_dialect_find(names[(size_t)round % n]), &log, NULL, NULL), TL_OK);
        tl_metrics_of(&m, &r);
        assert_true(tl_utf8_valid(r.text, r.text_len));
        json_t *j = tl_request_json(&r);
        assert_true(json_is_string(tl_json_at(j, "raw_last")) == (r.raw_last != NULL));
        json_decref(j);
        tl_metrics_free(&m);
        tl_request_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat_body), cmocka_unit_test(test_native_body), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cut_points), cmocka_unit_test(test_hostile_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

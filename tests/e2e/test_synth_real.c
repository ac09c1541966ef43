/* Synthetic models in the real engine: llama-server loads each quantisation and says what was scripted to the token,
 * llama-bench reports the very bytes and parameters that tally predicted, the mixture is llama-quantize's, a scripted draft is accepted as scripted.
 * Skipped, with a line that says what is missing, where there is no llama.cpp. */
#include "model/model.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

static char *dir, *server_bin, *bench_bin;
static const char *const QUANTS[] = {"f16", "q8_0", "q4_0", "q4_k", "q6_k", "q4_k_m"};

static char *find_program(const char *name) {
    char *cache = tl_path_cache();
    char *own = tl_xprintf("%s/llama.cpp/bin/%s", cache, name);
    char *found = tl_path_which(own);
    if (found == NULL) found = tl_path_which(name);
    free(own);
    free(cache);
    return found;
}

static int setup(void **state) {
    TL_UNUSED(state);
    tl_err e;
    server_bin = find_program("llama-server");
    bench_bin = find_program("llama-bench");
    return tl_dir_temp(&dir, "tally-synth", &e) == TL_OK ? 0 : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_err e;
    tl_status st = tl_dir_remove(dir, &e);
    free(dir);
    free(server_bin);
    free(bench_bin);
    return st == TL_OK ? 0 : -1;
}

static void ok(tl_status st, const tl_err *e) {
    if (st != TL_OK) fail_msg("%s (%s:%d)", e->msg, e->file, e->line);
}

static void need(const char *program, const char *name) {
    if (program) return;
    print_message("no %s on PATH or in tally's cache: `sh experiments/first-run` sets one up\n", name);
    skip();
}

static tl_synth_spec small(const char *quant) {
    tl_synth_spec s = tl_synth_default();
    tl_err e;
    ok(tl_synth_set(&s, "quant", quant, &e), &e);
    s.layers = 9; /* enough for every case of the mixture's rule */
    s.embed = 256;
    s.ff = 512;
    s.vocab = 2048;
    s.ctx = 4096;
    return s;
}

static char *write_model(const char *name, const tl_synth_spec *s) {
    tl_err e;
    char *path = tl_path_join(dir, name);
    ok(tl_synth_write(path, s, NULL, NULL, &e), &e);
    return path;
}

/* ---- a server ------------------------------------------------------------------------------------------------ */

typedef struct server {
    tl_child *child;
    uint16_t port;
} server;

/* One request, one connection; the body of the answer, or NULL. */
static json_t *ask(uint16_t port, const char *method, const char *path, const char *body, int *status) {
    tl_buf b;
    json_t *j = NULL;
    int fd = -1;
    *status = 0;
    if (tl_tcp_connect(&fd, "127.0.0.1", port, 2 * TL_S, NULL, NULL) != TL_OK) return NULL;
    tl_buf_init(&b, 0);
    tl_buf_fmt(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n%s", method, path, strlen(body), body);
    ssize_t n = write(fd, b.p, b.len); /* small: fits the socket's buffer */
    tl_buf_clear(&b);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char part[4096];
    while (n > 0 && poll(&p, 1, 60000) == 1 && (n = read(fd, part, sizeof part)) > 0) tl_buf_add(&b, part, (size_t)n);
    tl_fd_close(fd);
    const char *text = strstr(b.p, "\r\n\r\n");
    if (tl_str_starts(b.p, "HTTP/1.1 ")) *status = (int)strtol(b.p + 9, NULL, 10);
    if (text && tl_json_parse(&j, text + 4, strlen(text + 4), "answer", NULL) != TL_OK) j = NULL;
    tl_buf_free(&b);
    return j;
}

static server serve(const char *model, const char *draft) {
    tl_err e;
    server s = {.child = NULL};
    char port[8];
    ok(tl_tcp_free_port(&s.port, &e), &e);
    snprintf(port, sizeof port, "%u", s.port);
    const char *argv[40] = {server_bin, "-m", model, "--port", port, "-c", "2048", "-np", "1", "-t", "2", "--fit", "off"};
    if (draft) {
        const char *const more[] = {"-md", draft, "--spec-type", "draft-simple", "--spec-draft-n-max", "4",
                                    "--spec-draft-n-min", "1"};
        memcpy(&argv[13], more, sizeof more);
    }
    tl_child_spec spec = {.argv = argv, .out = {.to = TL_TO_NULL}, .err = {.to = TL_TO_CAPTURE}};
    ok(tl_child_spawn(&s.child, &spec, &e), &e);
    for (int i = 0; i < 600; i++) {
        int status;
        json_decref(ask(s.port, "GET", "/health", "", &status));
        if (status == 200) return s;
        if (!tl_child_alive(s.child)) break;
        tl_sleep_ns(50 * TL_MS);
    }
    tl_buf log;
    tl_buf_init(&log, 0);
    tl_child_captured(&log, s.child, true);
    fail_msg("llama-server does not get ready: %.1500s", log.len > 1500 ? log.p + log.len - 1500 : log.p);
    return s;
}

static void stop(server *s) {
    tl_child_stop(s->child, 2 * TL_S);
    tl_child_free(s->child);
}

static json_t *chat(const server *s, const char *extra) {
    int status;
    char body[512];
    snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"Please explain memory.\"}]%s}", extra);
    json_t *j = ask(s->port, "POST", "/v1/chat/completions", body, &status);
    if (status != 200) fail_msg("status %d", status);
    return j;
}

static void says(json_t *j, const char *reasoning, const char *content, uint64_t tokens, const char *finish) {
    assert_string_equal(tl_json_str(j, "choices.0.message.reasoning_content", ""), reasoning);
    assert_string_equal(tl_json_str(j, "choices.0.message.content", ""), content);
    assert_string_equal(tl_json_str(j, "choices.0.finish_reason", ""), finish);
    assert_int_equal(tl_json_int(j, "usage.completion_tokens", -1), tokens);
    json_decref(j);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

static void speaks(const char *quant, uint32_t think) {
    tl_err e;
    tl_buf r, c;
    tl_synth_spec s = small(quant);
    s.think = think;
    s.answer = 40;
    tl_buf_init(&r, 0);
    tl_buf_init(&c, 0);
    ok(tl_synth_text(&r, &c, &s, &e), &e);
    char *path = write_model("speaks.gguf", &s);
    server sv = serve(path, NULL);
    says(chat(&sv, ""), r.p, c.p, tl_synth_completion_tokens(&s, true), "stop");
    says(chat(&sv, ",\"temperature\":1.5,\"seed\":7"), r.p, c.p, tl_synth_completion_tokens(&s, true), "stop");
    says(chat(&sv, ",\"chat_template_kwargs\":{\"enable_thinking\":false}"), "", c.p,
         tl_synth_completion_tokens(&s, false), "stop");
    json_t *j = chat(&sv, ",\"max_tokens\":20");
    assert_string_equal(tl_json_str(j, "choices.0.finish_reason", ""), "length");
    assert_int_equal(tl_json_int(j, "usage.completion_tokens", -1), 20);
    json_decref(j);
    stop(&sv);
    free(path);
    tl_buf_free(&r);
    tl_buf_free(&c);
}

static void test_scripted_text(void **state) {
    TL_UNUSED(state);
    need(server_bin, "llama-server");
    for (size_t i = 0; i < TL_COUNT(QUANTS); i++) speaks(QUANTS[i], i % 2 == 0 ? 12 : 0);
}

static void bench(const tl_synth_spec *s) {
    tl_err e;
    tl_synth_plan p;
    tl_child_result r;
    json_t *j = NULL;
    char *path = write_model("bench.gguf", s);
    const char *const argv[] = {bench_bin, "-m", path, "-p", "4", "-n", "0", "-r", "1", "-t", "2", "-o", "json", NULL};
    ok(tl_synth_describe(&p, s, &e), &e);
    tl_status st = tl_child_run(&r, &(tl_child_spec){.argv = argv}, 30 * TL_S, &e);
    ok(st, &e);
    if (r.exit_code != 0) fail_msg("llama-bench: exit code %d: %.600s", r.exit_code, r.err.p);
    ok(tl_json_parse(&j, r.out.p, r.out.len, "llama-bench", &e), &e);
    assert_int_equal(tl_json_int(j, "0.model_size", -1), p.tensor_bytes);
    assert_int_equal(tl_json_int(j, "0.model_n_params", -1), p.params);
    json_decref(j);
    tl_child_result_free(&r);
    free(path);
}

static void test_bench_reports_predicted_bytes(void **state) {
    TL_UNUSED(state);
    need(bench_bin, "llama-bench");
    for (size_t i = 0; i < TL_COUNT(QUANTS); i++) {
        tl_synth_spec s = small(QUANTS[i]);
        bench(&s);
        s.answer = 30;
        bench(&s);
        s.answer = 0;
        s.tie = true;
        bench(&s);
    }
}

static void same_types(const char *ours, const char *theirs) {
    tl_err e;
    tl_model *a = NULL, *b = NULL;
    const tl_model_tensor *t;
    ok(tl_model_open(&a, ours, 0, &e), &e);
    ok(tl_model_open(&b, theirs, 0, &e), &e);
    size_t n = tl_model_tensors(&t, a);
    for (size_t i = 0; i < n; i++) {
        const tl_model_tensor *u = tl_model_tensor_named(b, t[i].name);
        if (u == NULL || u->type != t[i].type || u->bytes != t[i].bytes)
            fail_msg("%s: ours is %s, llama-quantize's %s", t[i].name, t[i].type_name, u ? u->type_name : "absent");
    }
    assert_int_equal(tl_model_facts_of(a)->tensor_bytes, tl_model_facts_of(b)->tensor_bytes);
    assert_string_equal(tl_model_facts_of(b)->file_type, "Q4_K_M");
    tl_model_free(a);
    tl_model_free(b);
}

static void test_mixture_is_that_of_llama_quantize(void **state) {
    TL_UNUSED(state);
    static const uint32_t LAYERS[] = {1, 9, 17, 9};
    char *quantize = find_program("llama-quantize");
    need(quantize, "llama-quantize");
    for (size_t i = 0; i < TL_COUNT(LAYERS); i++) {
        tl_err e;
        tl_child_result r;
        tl_synth_spec f = small("f16"), k = small("q4_k_m");
        f.layers = k.layers = LAYERS[i];
        f.ff = k.ff = 256;
        f.vocab = k.vocab = 1024;
        f.tie = k.tie = i == 3;
        char *from = write_model("from.gguf", &f), *ours = write_model("ours.gguf", &k);
        char *theirs = tl_path_join(dir, "theirs.gguf");
        const char *const argv[] = {quantize, from, theirs, "Q4_K_M", "2", NULL};
        ok(tl_child_run(&r, &(tl_child_spec){.argv = argv}, 30 * TL_S, &e), &e);
        if (r.exit_code != 0) fail_msg("llama-quantize: exit code %d: %.600s", r.exit_code, r.err.p);
        same_types(ours, theirs);
        tl_child_result_free(&r);
        free(theirs);
        free(ours);
        free(from);
    }
    free(quantize);
}

/* Accepted share of drafted tokens; the text must be the target's whatever the draft says. */
static double acceptance(double wrong) {
    tl_err e;
    tl_buf r, c;
    tl_synth_spec s = small("q4_0"), d = s;
    s.answer = d.answer = 200;
    d.layers = 1;
    d.wrong = wrong;
    tl_buf_init(&r, 0);
    tl_buf_init(&c, 0);
    ok(tl_synth_text(&r, &c, &s, &e), &e);
    char *target = write_model("target.gguf", &s), *draft = write_model("draft.gguf", &d);
    server sv = serve(target, draft);
    json_t *j = chat(&sv, ",\"temperature\":0");
    double drafted = tl_json_num(j, "timings.draft_n", 0), accepted = tl_json_num(j, "timings.draft_n_accepted", 0);
    says(j, "", c.p, 201, "stop");
    stop(&sv);
    free(target);
    free(draft);
    tl_buf_free(&r);
    tl_buf_free(&c);
    if (drafted < 50) fail_msg("only %g tokens were drafted: speculation was off", drafted);
    return accepted / drafted;
}

static void test_draft_is_accepted_as_scripted(void **state) {
    TL_UNUSED(state);
    need(server_bin, "llama-server");
    double perfect = acceptance(0), poor = acceptance(0.3);
    print_message("accepted: %.3f with a perfect draft, %.3f with one wrong at 30 %% of steps\n", perfect, poor);
    assert_true(perfect > 0.97);
    assert_true(poor < 0.8 && poor > 0.2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripted_text),
        cmocka_unit_test(test_bench_reports_predicted_bytes),
        cmocka_unit_test(test_mixture_is_that_of_llama_quantize),
        cmocka_unit_test(test_draft_is_accepted_as_scripted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

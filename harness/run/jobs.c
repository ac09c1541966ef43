/* From a workload to the requests of one block: their bodies, and what must be true of the answers. When they are sent:
 * schedule.c. */
#include "run/run_impl.h"

static void generation(tl_gen *g, const json_t *w, uint64_t seed) {
    tl_gen_init(g);
    g->max_tokens = tl_json_int(w, "output_tokens", 128);
    g->temperature = tl_json_num(w, "temperature", 0);
    g->seed = (int64_t)(seed & 0x7fffffff);
    g->ignore_eos = tl_json_bool(w, "ignore_eos", false);
    bool chat = tl_str_eq(tl_json_str(w, "kind", ""), "chat"), ollama = tl_str_eq(tl_json_str(w, "dialect", ""), "ollama-chat");
    if (!ollama) g->cache_prompt = tl_str_eq(tl_json_str(w, "cache", "cold"), "cold") ? 0 : 1;
    if (chat) g->enable_thinking = tl_json_bool(w, "thinking", true);
}

static tl_status make_body(tl_load_job *job, tl_run_block *b, const json_t *w, uint64_t seed, tl_err *e) {
    size_t n = (size_t)tl_json_int(w, "prompt_tokens", 1);
    int32_t *ids = tl_xalloc(n * sizeof *ids);
    tl_buf text, body;
    tl_buf_init(&text, 0);
    tl_buf_init(&body, 0);
    tl_gen g;
    generation(&g, w, seed);
    tl_prompt p = {0};
    bool exact = tl_str_eq(tl_json_str(w, "kind", ""), "completion");
    if (exact) {
        tl_load_pool_draw(ids, n, b->engine->prompts);
        p.tokens = ids;
        p.n_tokens = n;
    } else {
        tl_load_pool_text(&text, n, b->engine->prompts);
        p.text = text.p;
    }
    tl_status st = tl_dialect_body(&body, b->dialect, &p, &g, e);
    job->dialect = b->dialect;
    job->body_len = body.len;
    job->body = tl_buf_take(&body);
    job->max_tokens = g.max_tokens;
    job->prompt_n = exact ? (int64_t)n : -1;
    job->cache = tl_str_eq(tl_json_str(w, "cache", "cold"), "cold") ? TL_CACHE_COLD : TL_CACHE_WARM;
    job->timeout_ns = (uint64_t)(tl_json_num(w, "timeout_s", 600) * 1e9);
    tl_buf_free(&text);
    tl_buf_free(&body);
    free(ids);
    return st;
}

tl_status run_jobs_make(tl_run_jobs *out, tl_run_block *b, const tl_run_load *load, uint64_t seed, tl_err *e) {
    const json_t *w = b->cell->workload;
    memset(out, 0, sizeof *out);
    out->n = load->requests;
    out->v = tl_xalloc(out->n * sizeof *out->v);
    tl_status st = run_schedule(out, load, w, seed, e);
    for (size_t i = 0; i < out->n && st == TL_OK; i++) st = make_body(&out->v[i], b, w, seed + i, e);
    return st;
}

void run_jobs_free(tl_run_jobs *j) {
    for (size_t i = 0; i < j->n; i++) free((char *)j->v[i].body);
    free(j->v);
    memset(j, 0, sizeof *j);
}

/* Running engines, one for each model and settings, as many at once as memory allows, so that interleaved cells need no
 * restart. Where they do not fit together the least recently used one is stopped. */
#include "run/run_impl.h"

enum { POOL_MAX = 16 };
#define OVERHEAD_BYTES (UINT64_C(400) << 20) /* of a server beside its weights: compute buffers, KV, libraries */

struct tl_run_pool {
    const tl_run_spec *spec;
    const char *run_id, *log_dir;
    tl_run_engine *v[POOL_MAX];
    size_t n;
    uint64_t budget_bytes, clock;
    unsigned started;
};

tl_run_pool *run_pool_new(const tl_run_spec *spec, const char *run_id, const char *log_dir, const json_t *machine) {
    tl_run_pool *p = tl_xalloc(sizeof *p);
    p->spec = spec;
    p->run_id = run_id;
    p->log_dir = log_dir;
    /* a GPU holds one engine at a time: how much of its memory another would need is not known before it starts */
    bool gpu = json_array_size(json_object_get(machine, "gpu")) > 0;
    p->budget_bytes = gpu ? 0 : tl_host_memory_available_bytes() / 2;
    return p;
}

/* The engine's whole output is kept with the run. */
static void keep_log(tl_run_pool *p, tl_run_engine *g) {
    const char *path = g->log_path;
    tl_buf b;
    tl_buf_init(&b, 0);
    if (path != NULL && tl_file_read(&b, path, (size_t)256 << 20, NULL) == TL_OK) {
        char name[64], id[TL_STORE_ID];
        snprintf(name, sizeof name, "engine-%u.log", g->number);
        tl_err e = {0};
        tl_store_artifact a = {.run_id = p->run_id, .name = name, .mime = "text/plain; charset=utf-8", .body = b.p, .len = b.len};
        if (tl_store_artifact_add(id, p->spec->store, &a, &e) != TL_OK) tl_log(TL_LOG_WARN, "the engine's log could not be stored: %s", e.msg);
    }
    tl_buf_free(&b);
}

static void drop(tl_run_pool *p, size_t i) {
    tl_run_engine *g = p->v[i];
    if (g->engine != NULL) tl_engine_stop(g->engine);
    keep_log(p, g); /* also of one that never became ready */
    tl_load_pool_free(g->prompts);
    tl_engine_free(g->engine);
    free(g->key);
    free(g->log_path);
    free(g);
    p->v[i] = p->v[--p->n];
}

static void make_room(tl_run_pool *p, uint64_t need_bytes) {
    for (;;) {
        uint64_t used = need_bytes;
        size_t oldest = 0;
        for (size_t i = 0; i < p->n; i++) {
            used += p->v[i]->bytes;
            if (p->v[i]->used_at < p->v[oldest]->used_at) oldest = i;
        }
        if (p->n == 0 || (p->n < POOL_MAX && used <= p->budget_bytes)) return;
        drop(p, oldest);
    }
}

static bool pool_cancelled(void *ctx) {
    const tl_run_spec *spec = ctx;
    return spec->hooks.cancelled != NULL && spec->hooks.cancelled(spec->hooks.ctx);
}

static tl_status start(tl_run_engine *g, tl_run_pool *p, const char *model_path, const json_t *settings, tl_err *e) {
    const tl_run_spec *spec = p->spec;
    if (spec->endpoint != NULL) return tl_engine_attach(&g->engine, spec->adapter, spec->endpoint, e);
    char name[64];
    snprintf(name, sizeof name, "engine-%u.log", g->number);
    g->log_path = tl_path_join(p->log_dir, name);
    json_t *mine = json_deep_copy(settings);
    double ready_s = tl_json_num(mine, "ready_timeout_s", 300);
    json_object_del(mine, "ready_timeout_s");
    json_object_del(mine, "name");
    tl_engine_spec es = {.binary = spec->engine_binary, .model_path = model_path, .settings = mine, .log_path = g->log_path,
                         .ready_timeout_ns = (uint64_t)(ready_s * 1e9), .cancelled = pool_cancelled, .ctx = (void *)spec};
    tl_status st = tl_engine_start(&g->engine, spec->adapter, &es, e);
    json_decref(mine);
    return st;
}

tl_status run_pool_get(tl_run_engine **out, bool *fresh, tl_run_pool *p, const json_t *model, const json_t *settings,
                       tl_err *e) {
    tl_status st = TL_OK;
    tl_run_engine *g = NULL;
    const char *path = tl_json_str(model, "path", "");
    char *text = tl_json_canonical(settings), *key = tl_xprintf("%s\n%s", path, text);
    free(text);
    *fresh = false;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i]->key, key) == 0) {
            *out = p->v[i];
            (*out)->used_at = ++p->clock;
            free(key);
            return TL_OK;
        }
    uint64_t bytes = (uint64_t)tl_json_int(model, "bytes", 0) + OVERHEAD_BYTES;
    make_room(p, bytes);
    g = tl_xalloc(sizeof *g);
    g->key = key;
    g->bytes = bytes;
    g->number = ++p->started;
    g->used_at = ++p->clock;
    st = start(g, p, path, settings, e);
    if (st == TL_OK) st = tl_store_engine(g->id, p->spec->store, tl_engine_name(g->engine), tl_engine_facts(g->engine), e);
    if (st == TL_OK) st = tl_load_pool_new(&g->prompts, g->engine, p->spec->plan->seed + g->number, e);
    p->v[p->n++] = g;
    if (st != TL_OK) {
        drop(p, p->n - 1);
        return st;
    }
    *fresh = true;
    *out = g;
    return TL_OK;
}

void run_pool_free(tl_run_pool *p) {
    if (p == NULL) return;
    while (p->n > 0) drop(p, p->n - 1);
    free(p);
}

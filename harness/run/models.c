/* From the references of a plan to model files: synthetic ones are written once into the cache and found again by their
 * recipe; every file is hashed (the digest is remembered) and its header read. */
#include "model/model.h"
#include "run/run.h"

/* The recipe in Lua uses '_' and says "context"; the writer's options use '-' and "ctx". */
static tl_status read_recipe(tl_synth_spec *out, const json_t *ref, tl_err *e) {
    *out = tl_synth_default();
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)ref, key, v) {
        if (tl_str_eq(key, "kind") || tl_str_eq(key, "arch")) continue;
        char option[64], value[64];
        snprintf(option, sizeof option, "%s", tl_str_eq(key, "context") ? "ctx" : key);
        for (char *p = option; *p; p++)
            if (*p == '_') *p = '-';
        if (json_is_string(v)) snprintf(value, sizeof value, "%s", json_string_value(v));
        else if (json_is_integer(v)) snprintf(value, sizeof value, "%" PRId64, (int64_t)json_integer_value(v));
        else if (json_is_real(v)) tl_fmt_f64(value, json_real_value(v));
        else continue;
        tl_status st = tl_synth_set(out, option, value, e);
        if (st != TL_OK) {
            tl_wrap(e, "model '%s'", tl_json_str(ref, "name", "?"));
            return st;
        }
    }
    return TL_OK;
}

typedef struct work {
    tl_progress progress;
    const tl_run_models_spec *spec;
    const char *what;
} work;

static bool on_progress(void *ctx, uint64_t done, uint64_t total) {
    work *w = ctx;
    char detail[64];
    snprintf(detail, sizeof detail, "%.0f of %.0f MB", (double)done / 1e6, (double)total / 1e6);
    w->progress.total = (double)total;
    tl_progress_set(&w->progress, (double)done, detail, (double)tl_clock_now() / 1e9);
    return w->spec->cancelled == NULL || !w->spec->cancelled(w->spec->ctx);
}

static void begin(work *w, const tl_run_models_spec *spec, const char *verb, const char *name) {
    char what[96];
    snprintf(what, sizeof what, "%s %s", verb, name);
    w->spec = spec;
    tl_progress_start(&w->progress, what, 1, (double)tl_clock_now() / 1e9);
}

/* <cache>/models/<name>-<first 12 digits of the recipe's hash>.gguf: another recipe is another file. */
static char *synth_path(const char *cache_dir, const json_t *ref) {
    char *text = tl_json_canonical(ref), hash[65];
    tl_sha256_hex(text, strlen(text), hash);
    free(text);
    return tl_xprintf("%s/models/%s-%.12s.gguf", cache_dir, tl_json_str(ref, "name", "model"), hash);
}

static tl_status write_synth(const char *path, const tl_synth_spec *synth, const char *name,
                             const tl_run_models_spec *spec, tl_err *e) {
    char *dir = tl_path_dir(path);
    work w;
    begin(&w, spec, "writing", name);
    tl_status st = tl_dir_make(dir, e);
    if (st == TL_OK) st = tl_synth_write(path, synth, on_progress, &w, e);
    tl_progress_end(&w.progress);
    free(dir);
    return st;
}

static json_t *described(const char *path, const tl_synth_plan *p) {
    return json_pack("{s:s, s:n, s:I, s:I, s:I, s:i, s:b, s:{s:s, s:I}}", "path", path, "sha256", "bytes",
                     (json_int_t)p->file_bytes, "weights_read_bytes", (json_int_t)p->read_bytes_per_token,
                     "kv_bytes_per_position", (json_int_t)p->kv_bytes_per_token_f16, "layers", (int)p->spec.layers, "exists", 0,
                     "facts", "quant", p->spec.quant, "params", (json_int_t)p->params);
}

static tl_status read_file(json_t **out, const char *path, const char *name, const tl_run_models_spec *spec, tl_err *e) {
    tl_model *m = NULL;
    tl_status st = TL_OK;
    char sha[65];
    uint64_t kv = 0;
    work w;
    TRY(tl_model_open(&m, path, 0, e));
    const tl_model_facts *f = tl_model_facts_of(m);
    if (tl_model_kv_bytes_per_token(&kv, m, "f16", NULL, NULL) != TL_OK) kv = 0;
    begin(&w, spec, "hashing", name);
    st = tl_model_digest(sha, path, on_progress, &w, e);
    tl_progress_end(&w.progress);
    if (st != TL_OK) goto out;
    *out = json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:b, s:o}", "path", path, "sha256", sha, "bytes",
                     (json_int_t)f->file_bytes, "weights_read_bytes", (json_int_t)f->read_bytes_per_token,
                     "kv_bytes_per_position", (json_int_t)kv, "layers", (int)f->layers, "exists", 1, "facts",
                     tl_model_json(m));
out:
    tl_model_free(m);
    if (st != TL_OK) tl_wrap(e, "model '%s'", name);
    return st;
}

static tl_status resolve(json_t **out, const json_t *ref, const tl_run_models_spec *spec, tl_err *e) {
    const char *name = tl_json_str(ref, "name", "?"), *other = tl_json_str(spec->overrides, name, NULL);
    char *path = NULL;
    tl_status st = TL_OK;
    if (other != NULL) {
        path = tl_path_abs(other);
    } else if (tl_str_eq(tl_json_str(ref, "kind", NULL), "file")) {
        path = tl_path_join(spec->root, tl_json_str(ref, "path", ""));
    } else {
        path = synth_path(spec->cache_dir, ref);
        tl_synth_spec synth;
        tl_synth_plan p;
        TRY(read_recipe(&synth, ref, e));
        TRY(tl_synth_describe(&p, &synth, e));
        if (!tl_file_exists(path)) {
            if (spec->dry) {
                *out = described(path, &p);
                goto out;
            }
            TRY(write_synth(path, &synth, name, spec, e));
        }
    }
    if (!tl_file_exists(path)) {
        st = tl_fail(e, TL_NOT_FOUND, "model '%s': no file %s", name, path);
        tl_remedy(e, "check the path in the experiment, or say --model %s=FILE", name);
        goto out;
    }
    TRY(read_file(out, path, name, spec, e));
out:
    free(path);
    return st;
}

tl_status tl_run_models(json_t **out, const json_t *refs, const tl_run_models_spec *spec, tl_err *e) {
    json_t *all = json_object(), *ref;
    size_t i;
    tl_status st = TL_OK;
    *out = NULL;
    json_array_foreach((json_t *)refs, i, ref) {
        json_t *one = NULL;
        st = resolve(&one, ref, spec, e);
        if (st != TL_OK) {
            json_decref(all);
            return st;
        }
        json_object_set_new(all, tl_json_str(ref, "name", "?"), one);
    }
    *out = all;
    return TL_OK;
}

/* What is recorded of the surroundings: environment by an allow list, and which machine profile the live one matches. */
#include "run/run.h"

extern char **environ;

json_t *tl_run_environment(void) {
    static const char *const prefixes[] = {"GGML_", "LLAMA_", "CUDA_",  "HIP_",   "ROCR_", "OMP_", "OLLAMA_", "VLLM_",
                                           "LC_",   "LANG",   "TALLY_", "NVIDIA_", "MKL_",  "KMP_", "TZ=",     "MALLOC_"};
    json_t *out = json_object();
    for (char **v = environ; v != NULL && *v != NULL; v++) {
        const char *eq = strchr(*v, '=');
        if (eq == NULL || !tl_utf8_valid(*v, strlen(*v)) || strstr(*v, "KEY") || strstr(*v, "TOKEN")) continue;
        for (size_t i = 0; i < TL_COUNT(prefixes); i++)
            if (tl_str_starts(*v, prefixes[i])) {
                char *name = tl_xstrndup(*v, (size_t)(eq - *v));
                json_object_set_new(out, name, json_string(eq + 1));
                free(name);
                break;
            }
    }
    return out;
}

static int64_t count_gpus(const json_t *snapshot, const char *name) {
    int64_t n = 0;
    size_t i;
    json_t *g;
    json_array_foreach(json_object_get(snapshot, "gpu"), i, g) {
        const char *is = tl_json_str(g, "name", "");
        const char *at = strstr(is, name);
        /* "RTX 4070 Ti" must not match "RTX 4070 Ti SUPER": the name has to end there, or go on in another word class */
        if (at != NULL && strstr(at + strlen(name), "SUPER") == NULL) n++;
    }
    return n;
}

static bool matches(const json_t *snapshot, const json_t *match) {
    const char *gpu = tl_json_str(match, "gpu.name", NULL), *cpu = tl_json_str(match, "cpu.name", NULL);
    if (gpu == NULL && cpu == NULL) return false;
    if (gpu != NULL && count_gpus(snapshot, gpu) != tl_json_int(match, "gpu.count", 1)) return false;
    if (cpu != NULL && strstr(tl_json_str(snapshot, "cpu.model", ""), cpu) == NULL) return false;
    double gb = tl_json_num(match, "cpu.memory_gb", 0), have = tl_json_num(snapshot, "memory.total_bytes", 0) / 0x1p30;
    return gb == 0 || (have > 0.9 * gb && have < 1.1 * gb);
}

const char *tl_run_machine_match(const json_t *snapshot, const json_t *profiles) {
    size_t i;
    json_t *p;
    json_array_foreach((json_t *)profiles, i, p)
        if (matches(snapshot, json_object_get(p, "match"))) return tl_json_str(p, "id", NULL);
    return NULL;
}

json_t *tl_run_machine_fixed(const json_t *snapshot) {
    static const char *const drifting[] = {"frequency_mhz", "throttle_count", "temperature_c", "available_bytes", "page_cache_bytes",
                                           "dirty_bytes", "swap_free_bytes", "huge_pages"};
    static const char *const sections[] = {"cpu", "memory", "os", "virtual", "gpu"};
    json_t *out = json_object();
    for (size_t i = 0; i < TL_COUNT(sections); i++) {
        json_t *part = json_deep_copy(json_object_get(snapshot, sections[i]));
        for (size_t k = 0; json_is_object(part) && k < TL_COUNT(drifting); k++) json_object_del(part, drifting[k]);
        if (part != NULL) json_object_set_new(out, sections[i], part);
    }
    size_t k;
    json_t *g;
    static const char *const gpu_drifting[] = {"temperature_c", "power_w", "clock_mhz", "memory_clock_mhz", "busy_percent",
                                               "memory_used_bytes", "memory_free_bytes", "throttle_reasons", "pcie_generation",
                                               "pcie_width"};
    json_array_foreach(json_object_get(out, "gpu"), k, g)
        for (size_t i = 0; i < TL_COUNT(gpu_drifting); i++) json_object_del(g, gpu_drifting[i]);
    return out;
}

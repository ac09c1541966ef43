/* LocalScore: llama-bench's fields with its own figures; its JSON has the machine beside a list of results. 0 is what it writes
 * for power and memory that it could not read. */
#include "import/import_impl.h"

const imp_field imp_localscore[] = {
    AS(AXIS, "model_name", "model"),
    F(AXIS, "n_prompt"),
    F(AXIS, "n_gen"),
    F(VERSION, "build_commit"),
    F(VERSION, "build_number"),
    F(TIME, "test_time"),
    F(KEEP, "name"),
    F(KEEP, "samples_ns"),
    FIGURE("avg_time_ms", "ms", .statistic = "mean", .spread = "stddev_time_ms", .n = "samples_ns"),
    F(SPREAD, "stddev_time_ms"),
    FIGURE("prompt_tps", "tok/s", .statistic = "mean", .spread = "prompt_tps_stddev"),
    F(SPREAD, "prompt_tps_stddev"),
    FIGURE("gen_tps", "tok/s", .statistic = "mean", .spread = "gen_tps_stddev"),
    F(SPREAD, "gen_tps_stddev"),
    FIGURE("ttft_ms", "ms", .statistic = "mean", .never_0 = true),
    FIGURE("prompt_tps_watt", "tok/(s*W)", .never_0 = true),
    FIGURE("gen_tps_watt", "tok/(s*W)", .never_0 = true),
    FIGURE("power_watts", "W", .never_0 = true),
    FIGURE("vram_used_mb", "MB", .never_0 = true),
    {0}};

static const struct {
    const char *path, *group, *name;
} facts[] = {{"runtime_info.name", "version", "runtime"},
             {"runtime_info.version", "version", "version"},
             {"system_info.cpu_name", "machine", "cpu_info"},
             {"system_info.cpu_arch", "machine", "cpu_arch"},
             {"system_info.ram_gb", "machine", "ram_gb"},
             {"system_info.kernel_type", "machine", "kernel_type"},
             {"system_info.kernel_release", "machine", "kernel_release"},
             {"accelerator_info.name", "machine", "gpu_info"},
             {"accelerator_info.memory_gb", "machine", "gpu_memory_gb"},
             {"accelerator_info.type", "machine", "accelerator_type"}};

void imp_read_localscore(imp_rows *out, const imp_record *r, const imp_tool *t) {
    size_t i;
    json_t *result;
    json_array_foreach(json_object_get(r->fields, "results"), i, result) {
        const imp_record one = {.line = r->line, .fields = result};
        imp_row(out, &one, t);
        json_t *row = json_array_get(out->rows, json_array_size(out->rows) - 1);
        for (size_t k = 0; k < TL_COUNT(facts); k++) {
            json_t *v = tl_json_at(r->fields, facts[k].path);
            if (v && !json_is_null(v)) json_object_set(json_object_get(row, facts[k].group), facts[k].name, v);
        }
    }
}

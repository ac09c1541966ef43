/* What llama.cpp's own two benchmarks write. Every field that stands in no table is a setting: builds add them often. */
#include "import/import_impl.h"

const imp_field imp_llama_bench[] = {
    AS(AXIS, "model_filename", "model"),
    F(AXIS, "n_prompt"),
    F(AXIS, "n_gen"),
    F(AXIS, "n_depth"), /* absent in old builds */
    F(VERSION, "build_commit"),
    F(VERSION, "build_number"),
    F(MACHINE, "cpu_info"),
    F(MACHINE, "gpu_info"),
    F(MACHINE, "backends"),
    F(TIME, "test_time"),
    FIGURE("avg_ts", "tok/s", .statistic = "mean", .spread = "stddev_ts", .n = "samples_ts"),
    F(SPREAD, "stddev_ts"),
    F(KEEP, "samples_ts"),
    FIGURE("avg_ns", "ns", .statistic = "mean", .spread = "stddev_ns", .n = "samples_ns"),
    F(SPREAD, "stddev_ns"),
    F(KEEP, "samples_ns"),
    {0}};

const imp_field imp_batched_bench[] = {
    AS(AXIS, "pp", "n_prompt"),
    AS(AXIS, "tg", "n_gen"),
    AS(AXIS, "pl", "concurrency"),
    TOTAL("t_pp", "s"),
    TOTAL("speed_pp", "tok/s"),
    TOTAL("t_tg", "s"),
    TOTAL("speed_tg", "tok/s"),
    TOTAL("t", "s"),
    TOTAL("speed", "tok/s"),
    F(KEEP, "n_kv"),
    {0}};

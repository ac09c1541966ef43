/* os: host facts, of this machine and of machines described by files; GPUs through a stand-in library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <unistd.h>

#include "os/os_impl.h"

static char *root;

static int make_dir(void **s) {
    TL_UNUSED(s);
    return tl_dir_temp(&root, "tally-test-host", NULL) == TL_OK ? 0 : -1;
}

static int drop_dir(void **s) {
    TL_UNUSED(s);
    int bad = tl_dir_remove(root, NULL) != TL_OK;
    free(root);
    return bad;
}

static void put(const char *name, const char *text) {
    char *path = tl_path_join(root, name), *dir = tl_path_dir(path);
    assert_int_equal(tl_dir_make(dir, NULL), TL_OK);
    assert_int_equal(tl_file_write(path, text, strlen(text), NULL), TL_OK);
    free(path);
    free(dir);
}

static bool is_null(const json_t *j, const char *path) {
    json_t *v = tl_json_at(j, path);
    if (!v) fail_msg("%s is absent: it should be there and null", path);
    return json_is_null(v);
}

static void this_machine_describes_itself(void **s) {
    TL_UNUSED(s);
    unsetenv("TALLY_NVML");
    json_t *j = tl_host_snapshot();
    assert_true(tl_json_int(j, "memory.total_bytes", 0) > 0);
    assert_true(tl_json_int(j, "memory.available_bytes", 0) > 0);
    assert_true(tl_json_int(j, "cpu.threads", 0) >= 1);
    assert_true(tl_json_int(j, "cpu.usable_threads", 0) >= 1);
    assert_non_null(tl_json_str(j, "os.kernel", NULL));
    assert_non_null(tl_json_str(j, "os.arch", NULL));
    assert_true(tl_json_num(j, "load.one", -1) >= 0);
    assert_non_null(tl_json_str(j, "clock.source", NULL));
    char *text = tl_json_canonical(j), host[256] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    char *named = tl_xprintf("\"%s\"", host);
    assert_null(strstr(text, named)); /* the host's name stays at home */
    free(named);
    free(text);
    json_t *light = tl_host_light();
    assert_null(tl_json_at(light, "os"));
    assert_null(tl_json_at(light, "cpu.model"));
    assert_true(tl_json_int(light, "memory.available_bytes", 0) > 0);
    json_decref(light);
    json_decref(j);
    assert_true(tl_host_memory_bytes() >= tl_host_memory_available_bytes());
}

static void what_is_not_there_is_null_and_never_zero(void **s) {
    TL_UNUSED(s);
    os_root = "/no/such/root";
    setenv("TALLY_NVML", "/no/such/library.so", 1);
    json_t *j = tl_host_snapshot();
    static const char *const paths[] = {"memory.total_bytes",
                                        "memory.available_bytes",
                                        "memory.swap_total_bytes",
                                        "memory.page_cache_bytes",
                                        "load",
                                        "pressure.cpu",
                                        "pressure.memory",
                                        "pressure.io",
                                        "power.source",
                                        "power.battery_percent",
                                        "cpu.model",
                                        "cpu.sockets",
                                        "cpu.cores",
                                        "cpu.cache",
                                        "cpu.last_level_cache_bytes",
                                        "cpu.governor",
                                        "cpu.frequency_mhz",
                                        "cpu.flags",
                                        "cpu.temperature_c",
                                        "cpu.throttle_count",
                                        "os.name",
                                        "virtual.hypervisor",
                                        "virtual.vendor",
                                        "virtual.container",
                                        "gpu",
                                        "memory.transparent_huge_pages",
                                        "memory.cgroup_limit_bytes"};
    for (size_t i = 0; i < TL_COUNT(paths); i++)
        if (!is_null(j, paths[i])) fail_msg("%s is not null", paths[i]);
    json_decref(j);
    assert_int_equal(tl_host_cache_bytes(), 0);
    assert_null(tl_clock_counter());
    assert_int_equal(tl_host_memory_bytes(), 0);
    assert_int_equal(tl_core_count(), 0);
    assert_true(tl_cpu_count() >= 1);
    os_root = "";
}

/* A laptop with two cores of two threads, on battery, throttled, in a container with limits. */
static void describe_laptop(void) {
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.40GHz\ncpu MHz\t\t: 1200.5\n"
                        "flags\t\t: fpu avx avx2 f16c amx_tile_not avx512f hypervisor\n\nprocessor\t: 1\n");
    put("proc/meminfo",
        "MemTotal:       16000000 kB\nMemFree: 100 kB\nMemAvailable:    8000000 kB\nCached: 2000000 kB\n"
        "SwapTotal:             0 kB\nSwapFree: 0 kB\nDirty: 0 kB\nHugepagesize:  2048 kB\n");
    put("proc/loadavg", "0.50 1.25 2.00 3/456 789\n");
    put("proc/self/cgroup", "0::/user.slice/tally\n");
    put("sys/fs/cgroup/user.slice/tally/memory.max", "max\n");
    put("sys/fs/cgroup/user.slice/memory.max", "4096000000\n");
    put("sys/fs/cgroup/user.slice/memory.current", "1096000000\n");
    put("sys/fs/cgroup/user.slice/memory.stat", "anon 96000000\nfile 1000000000\ninactive_file 600000000\n"
                                                "active_file 400000000\n");
    put("sys/fs/cgroup/user.slice/tally/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    put("sys/devices/system/cpu/present", "0-3\n");
    for (unsigned i = 0; i < 4; i++) {
        char name[96], value[32];
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/topology/core_id", i);
        snprintf(value, sizeof value, "%u\n", i % 2);
        put(name, value);
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/topology/physical_package_id", i);
        put(name, "0\n");
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", i);
        snprintf(value, sizeof value, "%u\n", 800000 + 100000 * i);
        put(name, value);
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/thermal_throttle/core_throttle_count", i);
        put(name, i == 0 ? "5\n" : "0\n");
    }
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/level", "3\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/type", "Unified\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/size", "6M\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list", "0-1\n");
    put("sys/devices/system/cpu/cpu1/cache/index0/size", "6M\n");
    put("sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list", "0-1\n");
    put("sys/devices/system/cpu/cpu2/cache/index0/size", "5M\n");
    put("sys/devices/system/cpu/cpu2/cache/index0/shared_cpu_list", "2-3\n");
    put("sys/class/power_supply/AC/type", "Mains\n");
    put("sys/class/power_supply/AC/online", "0\n");
    put("sys/class/power_supply/BAT0/type", "Battery\n");
    put("sys/class/power_supply/BAT0/capacity", "73\n");
    put("sys/class/power_supply/mouse/type", "Battery\n");
    put("sys/class/power_supply/mouse/scope", "Device\n");
    put("sys/class/power_supply/mouse/capacity", "3\n");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("sys/class/thermal/thermal_zone0/temp", "45000\n");
    put("sys/class/thermal/thermal_zone1/temp", "71500\n");
    put("proc/pressure/cpu", "some avg10=1.50 avg60=0.25 avg300=0.00 total=1234\n"
                             "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    put("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n");
    put(".dockerenv", "");
}

static void a_described_machine_is_read_right(void **s) {
    TL_UNUSED(s);
    describe_laptop();
    os_root = root;
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    assert_string_equal(tl_clock_counter(), "hpet");
    json_t *j = tl_host_snapshot();
    uint64_t cache = tl_host_cache_bytes(), memory = tl_host_memory_bytes(),
             free_bytes = tl_host_memory_available_bytes();
    unsigned cores = tl_core_count(), usable = tl_cpu_count();
    os_root = "";
    assert_int_equal(cache, 6 << 20);
    assert_int_equal(memory, 4096000000);
    assert_int_equal(free_bytes, 4000000000);
    assert_int_equal(cores, 2);
    assert_int_equal(usable, 1); /* half a processor of quota */
    assert_string_equal(tl_json_str(j, "cpu.model", ""), "Some CPU @ 2.40GHz");
    assert_int_equal(tl_json_int(j, "cpu.sockets", 0), 1);
    assert_int_equal(tl_json_int(j, "cpu.last_level_cache_total_bytes", 0), 11 << 20);
    assert_string_equal(tl_json_str(j, "cpu.governor", ""), "powersave");
    assert_true(tl_json_num(j, "cpu.frequency_mhz.low", 0) == 800);
    assert_true(tl_json_num(j, "cpu.frequency_mhz.high", 0) == 1100);
    assert_int_equal(tl_json_int(j, "cpu.throttle_count", -1), 5);
    assert_true(tl_json_num(j, "cpu.temperature_c", 0) == 71.5);
    char *flags = tl_json_canonical(tl_json_at(j, "cpu.flags"));
    assert_string_equal(flags, "[\"avx\",\"avx2\",\"f16c\",\"avx512f\"]"); /* amx_tile_not is not amx_tile */
    free(flags);
    assert_int_equal(tl_json_int(j, "memory.total_bytes", 0), 16384000000);
    assert_int_equal(tl_json_int(j, "memory.swap_total_bytes", -1), 0); /* none is an answer */
    assert_string_equal(tl_json_str(j, "memory.transparent_huge_pages", ""), "madvise");
    assert_true(tl_json_num(j, "load.five", 0) == 1.25);
    assert_true(tl_json_num(j, "pressure.cpu.some.avg10_percent", 0) == 1.5);
    assert_true(is_null(j, "pressure.io"));
    assert_string_equal(tl_json_str(j, "power.source", ""), "battery");
    assert_int_equal(tl_json_int(j, "power.battery_percent", 0), 73);
    assert_string_equal(tl_json_str(j, "os.name", ""), "Debian GNU/Linux 12 (bookworm)");
    assert_string_equal(tl_json_str(j, "os.version", ""), "12");
    assert_string_equal(tl_json_str(j, "virtual.container", ""), "docker");
    assert_true(tl_json_bool(j, "virtual.hypervisor", false));
    json_decref(j);
}

static void gpus_are_asked_through_the_library(void **s) {
    TL_UNUSED(s);
    setenv("TALLY_NVML", FAKE_NVML, 1);
    json_t *j = tl_host_snapshot(), *light = tl_host_light();
    assert_int_equal(json_array_size(tl_json_at(j, "gpu")), 2);
    assert_string_equal(tl_json_str(j, "gpu.0.name", ""), "NVIDIA GeForce RTX 4070 Ti");
    assert_int_equal(tl_json_int(j, "gpu.0.memory_total_bytes", 0), 12878610432);
    assert_int_equal(tl_json_int(j, "gpu.0.memory_clock_mhz", 0), 10501);
    assert_string_equal(tl_json_str(j, "gpu.0.driver", ""), "550.54.15");
    assert_string_equal(tl_json_str(j, "gpu.0.cuda", ""), "12.4");
    assert_int_equal(tl_json_int(j, "gpu.0.busy_percent", -1), 0);
    assert_true(tl_json_num(j, "gpu.0.power_w", 0) == 71.5);
    assert_true(is_null(j, "gpu.0.compute_capability")); /* the library has no such call */
    assert_true(is_null(j, "gpu.1.memory_total_bytes")); /* the card refuses */
    assert_true(is_null(j, "gpu.1.temperature_c"));
    assert_int_equal(tl_json_int(light, "gpu.0.temperature_c", 0), 41);
    assert_null(tl_json_at(light, "gpu.0.name"));
    json_decref(j);
    json_decref(light);
    setenv("TALLY_NVML", "/etc/passwd", 1); /* not a library */
    j = tl_host_light();
    assert_true(is_null(j, "gpu"));
    json_decref(j);
    unsetenv("TALLY_NVML");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_describes_itself),
        cmocka_unit_test(what_is_not_there_is_null_and_never_zero),
        cmocka_unit_test(a_described_machine_is_read_right),
        cmocka_unit_test(gpus_are_asked_through_the_library),
    };
    return cmocka_run_group_tests_name("os_host", tests, make_dir, drop_dir);
}

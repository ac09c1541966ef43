/* macOS: everything that differs from other systems, written from documented interfaces (sysctl(3), mach host
 * statistics, proc_pidpath). Untested until someone runs it: see README.md. What has no documented,
 * unprivileged source (clock frequencies, pressure, GPU state) is null. */
#include <fcntl.h>
#include <libproc.h>
#include <mach/mach.h>
#include <mach/mach_host.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "os/os_impl.h"

const char *os_root = "";

static uint64_t number(const char *name) {
    uint64_t v = 0;
    size_t n = sizeof v;
    if (sysctlbyname(name, &v, &n, NULL, 0) != 0) return 0;
    if (n == sizeof(uint32_t)) { /* most are 32 bits wide */
        uint32_t small;
        memcpy(&small, &v, sizeof small);
        return small;
    }
    return v;
}

static bool text(char *out, size_t size, const char *name) {
    size_t n = size;
    out[0] = 0;
    return sysctlbyname(name, out, &n, NULL, 0) == 0 && out[0];
}

static json_t *text_json(const char *name) {
    char line[256];
    return text(line, sizeof line, name) ? os_text_or_null(line) : json_null();
}

/* ---- clock, random, processors ---- */

/* CLOCK_UPTIME_RAW is mach_absolute_time in ns; CLOCK_MONOTONIC has microseconds only here. */
clockid_t os_clock_id(const char **name) {
    if (name) *name = "CLOCK_UPTIME_RAW";
    return CLOCK_UPTIME_RAW;
}

bool os_clock_counter(char *out, size_t size) {
    TL_UNUSED(out);
    TL_UNUSED(size);
    return false;
}

bool os_random_bytes(void *p, size_t n) {
    arc4random_buf(p, n);
    return true;
}

tl_status os_pin(const unsigned *cpus, size_t n, tl_err *e) {
    TL_UNUSED(cpus);
    TL_UNUSED(n);
    tl_fail(e, TL_MISSING, "macOS cannot bind threads to processors");
    tl_remedy(e, "leave the binding out on this machine");
    return TL_MISSING;
}

unsigned os_cpus_usable(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

unsigned os_cores(void) {
    return (unsigned)number("hw.physicalcpu");
}

unsigned os_numa_nodes(void) {
    return 1;
}

/* The system-level cache of Apple processors is not reported: the cluster's L2 is the largest that is. */
uint64_t os_cache_bytes(void) {
    static const char *const names[] = {"hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"};
    uint64_t largest = 0;
    for (size_t i = 0; i < TL_COUNT(names); i++) {
        uint64_t v = number(names[i]);
        if (v > largest) largest = v;
    }
    return largest;
}

/* The clusters' caches, and room for a system-level cache: the largest that Apple has built has 96 MB. */
uint64_t os_cache_total(void) {
    uint64_t total = (uint64_t)96 << 20;
    for (unsigned level = 0; level < 2; level++) {
        char size[48], cpus[48], share[48];
        snprintf(size, sizeof size, "hw.perflevel%u.l2cachesize", level);
        snprintf(cpus, sizeof cpus, "hw.perflevel%u.physicalcpu", level);
        snprintf(share, sizeof share, "hw.perflevel%u.cpusperl2", level);
        uint64_t each = number(share);
        if (each) total += number(size) * ((number(cpus) + each - 1) / each);
    }
    return total;
}

/* ---- memory ---- */

static bool vm_facts(vm_statistics64_data_t *v) {
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    return host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)v, &n) == KERN_SUCCESS;
}

uint64_t os_memory_bytes(void) {
    return number("hw.memsize");
}

uint64_t os_memory_available(void) {
    vm_statistics64_data_t v;
    if (!vm_facts(&v)) return 0;
    return ((uint64_t)v.free_count + v.inactive_count + v.purgeable_count) * (uint64_t)vm_page_size;
}

void os_memory_private(void *p, size_t n) {
    minherit(p, n, VM_INHERIT_NONE);
}

/* ---- forked processes ---- */

void os_close_from(int first) {
    int end = getdtablesize();
    if (end > 65536) end = 65536;
    for (int fd = first; fd < end; fd++) close(fd);
}

/* macOS has no subreaper and no parent-death signal: the process group is what the supervisor can reach. */
void os_adopt_orphans(void) {}

void os_process_name(const char *name) {
    TL_UNUSED(name);
}

void os_die_with_parent(pid_t parent) {
    if (getppid() != parent) _exit(127);
}

void os_kill_children(void) {}

/* ---- files ---- */

int os_sync(int fd) {
    return fcntl(fd, F_FULLFSYNC) == 0 ? 0 : fsync(fd); /* fsync alone leaves data in the drive's cache */
}

void os_will_read(int fd) {
    fcntl(fd, F_RDAHEAD, 1);
}

int64_t os_mtime_ns(const struct stat *s) {
    return (int64_t)s->st_mtimespec.tv_sec * (int64_t)TL_S + s->st_mtimespec.tv_nsec;
}

void os_fs_name(char out[32], const char *path) {
    struct statfs s;
    snprintf(out, 32, "%s", statfs(path, &s) == 0 ? s.f_fstypename : "unknown");
}

char *os_self_path(void) {
    char path[PROC_PIDPATHINFO_MAXSIZE];
    int n = proc_pidpath(getpid(), path, sizeof path);
    return n > 0 ? tl_xstrndup(path, (size_t)n) : NULL;
}

char *os_cache_home(void) {
    char *home = tl_path_home(), *dir = tl_path_join(home, "Library/Caches");
    free(home);
    return dir;
}

const char *const *os_nvml_names(size_t *n) {
    *n = 0;
    return NULL;
}

/* ---- host facts ---- */

static json_t *cpu_section(void) {
    static const char *const flags[][2] = {
        {"asimdhp", "hw.optional.arm.FEAT_FP16"}, {"asimddp", "hw.optional.arm.FEAT_DotProd"},
        {"i8mm", "hw.optional.arm.FEAT_I8MM"},    {"bf16", "hw.optional.arm.FEAT_BF16"},
        {"sme", "hw.optional.arm.FEAT_SME"},      {"avx2", "hw.optional.avx2_0"},
        {"avx512f", "hw.optional.avx512f"},       {"f16c", "hw.optional.f16c"}};
    json_t *j = json_object(), *list = json_array();
    for (size_t i = 0; i < TL_COUNT(flags); i++)
        if (number(flags[i][1])) json_array_append_new(list, json_string(flags[i][0]));
    json_object_set_new(j, "model", text_json("machdep.cpu.brand_string"));
    json_object_set_new(j, "sockets", os_count_or_null(number("hw.packages")));
    json_object_set_new(j, "cores", os_count_or_null(number("hw.physicalcpu")));
    json_object_set_new(j, "performance_cores", os_count_or_null(number("hw.perflevel0.physicalcpu")));
    json_object_set_new(j, "efficiency_cores", os_count_or_null(number("hw.perflevel1.physicalcpu")));
    json_object_set_new(j, "threads", os_count_or_null(number("hw.logicalcpu")));
    json_object_set_new(j, "usable_threads", os_count_or_null(os_cpus_usable()));
    json_object_set_new(j, "flags", list);
    json_object_set_new(j, "cache", json_null());
    json_object_set_new(j, "last_level_cache_bytes", os_count_or_null(os_cache_bytes()));
    json_object_set_new(j, "numa_nodes", json_integer(1));
    return j;
}

static json_t *memory_section(bool light) {
    json_t *j = json_object();
    vm_statistics64_data_t v;
    bool known = vm_facts(&v);
    uint64_t cached = known ? (uint64_t)v.external_page_count * (uint64_t)vm_page_size : 0;
    struct xsw_usage swap;
    size_t n = sizeof swap;
    bool swap_known = sysctlbyname("vm.swapusage", &swap, &n, NULL, 0) == 0;
    json_object_set_new(j, "available_bytes", os_count_or_null(os_memory_available()));
    json_object_set_new(j, "page_cache_bytes", os_count_or_null(cached));
    json_object_set_new(j, "swap_free_bytes",
                        swap_known ? json_integer((json_int_t)swap.xsu_avail) : json_null());
    if (light) return j;
    json_object_set_new(j, "total_bytes", os_count_or_null(os_memory_bytes()));
    json_object_set_new(j, "swap_total_bytes",
                        swap_known ? json_integer((json_int_t)swap.xsu_total) : json_null());
    json_object_set_new(j, "gpu_wired_limit_mb", os_count_or_null(number("iogpu.wired_limit_mb")));
    return j;
}

static json_t *load_section(void) {
    double avg[3];
    if (getloadavg(avg, 3) != 3) return json_null();
    return json_pack("{s:o, s:o, s:o}", "one", tl_json_real(avg[0]), "five", tl_json_real(avg[1]), "fifteen",
                     tl_json_real(avg[2]));
}

void os_host_add(json_t *root, bool light) {
    json_object_set_new(root, "cpu", light ? json_object() : cpu_section());
    json_object_set_new(root, "memory", memory_section(light));
    json_object_set_new(root, "load", load_section());
    json_object_set_new(root, "pressure", json_null());
    json_object_set_new(root, "power", json_null());
    if (light) return;
    json_t *os = json_object(), *virtual = json_object();
    json_object_set_new(os, "name", json_string("macOS"));
    json_object_set_new(os, "version", text_json("kern.osproductversion"));
    json_object_set_new(os, "build", text_json("kern.osversion"));
    json_object_set_new(root, "os", os);
    uint64_t guest = number("kern.hv_vmm_present");
    json_object_set_new(virtual, "hypervisor", json_boolean(guest != 0));
    json_object_set_new(virtual, "product", text_json("hw.model"));
    json_object_set_new(root, "virtual", virtual);
}

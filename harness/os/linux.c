/* Linux: everything that differs from other systems. Facts come from /proc, /sys and /etc as kernel
 * documentation describes them (docs.kernel.org/admin-guide); a file that is absent makes a fact null. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os_impl.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

const char *os_root = "";

/* ---- clock, random, processors ---- */

clockid_t os_clock_id(const char **name) {
    if (name) *name = "CLOCK_MONOTONIC";
    return CLOCK_MONOTONIC;
}

bool os_random_bytes(void *p, size_t n) {
    for (char *at = p; n > 0;) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

tl_status os_pin(const unsigned *cpus, size_t n, tl_err *e) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < n; i++) {
        if (cpus[i] >= CPU_SETSIZE) return tl_fail(e, TL_INVALID, "no processor %u", cpus[i]);
        CPU_SET(cpus[i], &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) == 0) return TL_OK;
    return tl_fail(e, TL_INVALID, "cannot bind a thread to processor %u%s: %s", cpus[0],
                   n > 1 ? " and others" : "", strerror(errno));
}

/* ---- reading small files ---- */

/* NUL-terminated, without the final newline; false when absent or unreadable. */
static TL_PRINTF(3, 4) bool slurp(char *out, size_t size, const char *fmt, ...) {
    char path[512];
    int n = snprintf(path, sizeof path, "%s", os_root);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
    va_end(ap);
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t len = 0;
    for (ssize_t got; len + 1 < size && (got = read(fd, out + len, size - 1 - len)) > 0;) len += (size_t)got;
    close(fd);
    while (len > 0 && isspace((unsigned char)out[len - 1])) len--;
    out[len] = 0;
    return len > 0;
}

bool os_clock_counter(char *out, size_t size) {
    return slurp(out, size, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

static char *slurp_large(const char *name) {
    enum { SIZE = 1 << 20 };
    char *text = tl_xalloc(SIZE);
    slurp(text, SIZE, "%s", name);
    return text;
}

static bool read_u64(uint64_t *out, const char *text) {
    int64_t v;
    if (!tl_parse_i64(text, &v) || v < 0) return false;
    *out = (uint64_t)v;
    return true;
}

static json_t *file_text(const char *path) {
    char text[256];
    return slurp(text, sizeof text, "%s", path) ? os_text_or_null(text) : json_null();
}

static json_t *file_number(const char *path) {
    char text[64];
    int64_t v;
    return slurp(text, sizeof text, "%s", path) && tl_parse_i64(text, &v) ? json_integer(v) : json_null();
}

/* The value after "key" and blanks or a colon at the start of a line; NULL when there is none. */
static const char *after_key(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp(p, key, n) != 0) continue;
        const char *q = p + n + strspn(p + n, " \t");
        if (*q == ':' || *q == '=') return q + 1 + strspn(q + 1, " \t");
    }
    return NULL;
}

static void copy_line(char *out, size_t size, const char *from) {
    size_t n = strcspn(from, "\n");
    if (n >= size) n = size - 1;
    memcpy(out, from, n);
    out[n] = 0;
}

/* "Key:   123 kB" in bytes. */
static bool meminfo(uint64_t *out, const char *text, const char *key) {
    const char *v = after_key(text, key);
    if (!v || !isdigit((unsigned char)*v)) return false;
    *out = strtoull(v, NULL, 10) * 1024;
    return true;
}

static json_t *meminfo_json(const char *text, const char *key) {
    uint64_t v;
    return meminfo(&v, text, key) ? json_integer((json_int_t)v) : json_null();
}

/* ---- control groups: the smallest limit from our own group up ---- */

/* Our own group, "" for the root or when there is none (or only the old, split hierarchy). */
static void own_cgroup(char *out, size_t size) {
    char *groups = slurp_large("/proc/self/cgroup");
    out[0] = 0;
    for (char *p = groups; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (tl_str_starts(p, "0::/")) copy_line(out, size, p + 3);
    free(groups);
    if (tl_str_eq(out, "/")) out[0] = 0;
}

/* A limit file's value, or the quotient of its two values rounded up; 0 for "max" and for no such file. */
static uint64_t limit_of(const char *group, const char *file, bool first_over_second) {
    char text[128], *rest;
    if (!slurp(text, sizeof text, "/sys/fs/cgroup%s/%s", group, file)) return 0;
    uint64_t a = strtoull(text, &rest, 10), b = strtoull(rest, NULL, 10);
    if (!first_over_second) return a;
    return b ? (a + b - 1) / b : 0;
}

static uint64_t cgroup_limit(const char *file, bool first_over_second) {
    char path[400];
    own_cgroup(path, sizeof path);
    uint64_t lowest = 0;
    for (bool more = true; more;) {
        more = path[0] != 0;
        uint64_t v = limit_of(path, file, first_over_second);
        if (v && (!lowest || v < lowest)) lowest = v;
        char *slash = strrchr(path, '/');
        if (slash) *slash = 0;
    }
    return lowest;
}

/* "name value" line of a group's memory.stat, in bytes. */
static uint64_t memory_stat(const char *text, const char *name) {
    const char *line = strstr(text, name);
    return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

/* What the tightest of our groups still allows; cached files can be given back, so they count as free.
 * UINT64_MAX without a limit. */
static uint64_t cgroup_room(void) {
    char path[400], stat[8192];
    own_cgroup(path, sizeof path);
    uint64_t least = UINT64_MAX;
    for (bool more = true; more;) {
        more = path[0] != 0;
        uint64_t limit = limit_of(path, "memory.max", false), used = limit_of(path, "memory.current", false);
        if (limit) {
            slurp(stat, sizeof stat, "/sys/fs/cgroup%s/memory.stat", path);
            uint64_t cached = memory_stat(stat, "\ninactive_file ") + memory_stat(stat, "\nactive_file ");
            used = used > cached ? used - cached : 0;
            uint64_t room = limit > used ? limit - used : 0;
            if (room < least) least = room;
        }
        char *slash = strrchr(path, '/');
        if (slash) *slash = 0;
    }
    return least;
}

unsigned os_cpus_usable(void) {
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t quota = cgroup_limit("cpu.max", true);
    if (n < 1) n = 1;
    return quota && quota < (uint64_t)n ? (unsigned)quota : (unsigned)n;
}

uint64_t os_memory_bytes(void) {
    char text[8192];
    uint64_t v = 0, limit = cgroup_limit("memory.max", false);
    if (!slurp(text, sizeof text, "/proc/meminfo") || !meminfo(&v, text, "MemTotal")) return limit;
    return limit && limit < v ? limit : v;
}

uint64_t os_memory_available(void) {
    char text[8192];
    uint64_t v = 0, room = cgroup_room();
    if (!slurp(text, sizeof text, "/proc/meminfo") || !meminfo(&v, text, "MemAvailable")) return 0;
    return room < v ? room : v;
}

/* ---- processor topology ---- */

static unsigned cpu_numbers_end(void) {
    char text[256];
    if (!slurp(text, sizeof text, "/sys/devices/system/cpu/present")) return 0;
    const char *last = strrchr(text, ',');
    last = last ? last + 1 : text;
    const char *dash = strchr(last, '-');
    return (unsigned)strtoul(dash ? dash + 1 : last, NULL, 10) + 1;
}

/* Distinct (package, core) pairs, and packages. */
static void count_cores(unsigned *cores, unsigned *packages) {
    unsigned end = cpu_numbers_end();
    uint64_t *seen = tl_xalloc((end + 1) * sizeof *seen);
    *cores = *packages = 0;
    for (unsigned i = 0; i < end; i++) {
        char core[32], package[32];
        uint64_t c, p;
        if (!slurp(core, sizeof core, "/sys/devices/system/cpu/cpu%u/topology/core_id", i) ||
            !read_u64(&c, core) ||
            !slurp(package, sizeof package, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id",
                   i) ||
            !read_u64(&p, package))
            continue;
        bool new_core = true, new_package = true;
        for (unsigned k = 0; k < *cores; k++) {
            new_core = new_core && seen[k] != (p << 32 | c);
            new_package = new_package && seen[k] >> 32 != p;
        }
        if (new_core) seen[(*cores)++] = p << 32 | c;
        if (new_package) (*packages)++;
    }
    free(seen);
}

unsigned os_cores(void) {
    unsigned cores, packages;
    count_cores(&cores, &packages);
    return cores;
}

unsigned os_numa_nodes(void) {
    unsigned n = 0;
    char text[256];
    while (slurp(text, sizeof text, "/sys/devices/system/node/node%u/meminfo", n)) n++;
    return n ? n : 1;
}

static uint64_t size_with_suffix(const char *text) {
    char *end;
    uint64_t v = strtoull(text, &end, 10);
    return *end == 'K' ? v << 10 : *end == 'M' ? v << 20 : *end == 'G' ? v << 30 : v;
}

static json_t *caches(uint64_t *largest) {
    json_t *list = json_array();
    *largest = 0;
    for (unsigned i = 0; i < 16; i++) {
        char level[16], type[32], size[32], shared[256];
        if (!slurp(level, sizeof level, "/sys/devices/system/cpu/cpu0/cache/index%u/level", i)) break;
        slurp(type, sizeof type, "/sys/devices/system/cpu/cpu0/cache/index%u/type", i);
        uint64_t bytes = slurp(size, sizeof size, "/sys/devices/system/cpu/cpu0/cache/index%u/size", i)
                             ? size_with_suffix(size)
                             : 0;
        slurp(shared, sizeof shared, "/sys/devices/system/cpu/cpu0/cache/index%u/shared_cpu_list", i);
        int64_t number = 0;
        json_t *j = json_object();
        json_object_set_new(j, "level", tl_parse_i64(level, &number) ? json_integer(number) : json_null());
        json_object_set_new(j, "type", os_text_or_null(type));
        json_object_set_new(j, "bytes", os_count_or_null(bytes));
        json_object_set_new(j, "shared_by", os_text_or_null(shared));
        json_array_append_new(list, j);
        if (!tl_str_eq(type, "Instruction") && bytes > *largest) *largest = bytes;
    }
    if (json_array_size(list) > 0) return list;
    json_decref(list);
    return json_null();
}

uint64_t os_cache_bytes(void) {
    uint64_t largest;
    json_decref(caches(&largest));
    return largest;
}

/* The last-level caches of the whole machine: each is counted at the first processor that shares it. */
uint64_t os_cache_total(void) {
    uint64_t total = 0;
    for (unsigned cpu = 0, end = cpu_numbers_end(); cpu < end; cpu++) {
        uint64_t largest = 0, first = 0;
        for (unsigned i = 0; i < 16; i++) {
            char size[32], shared[256];
            if (!slurp(size, sizeof size, "/sys/devices/system/cpu/cpu%u/cache/index%u/size", cpu, i)) break;
            slurp(shared, sizeof shared, "/sys/devices/system/cpu/cpu%u/cache/index%u/shared_cpu_list", cpu,
                  i);
            if (size_with_suffix(size) < largest) continue;
            largest = size_with_suffix(size);
            first = strtoull(shared, NULL, 10);
        }
        if (first == cpu) total += largest;
    }
    uint64_t one = os_cache_bytes();
    return total > one ? total : one;
}

/* ---- forked processes ---- */

void os_close_from(int first) {
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
    long end = sysconf(_SC_OPEN_MAX); /* kernels before 5.9 */
    if (end < 0 || end > 65536) end = 65536;
    for (int fd = first; fd < end; fd++) close(fd);
}

void os_adopt_orphans(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void os_process_name(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

void os_die_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(127); /* it went before the request was made */
}

/* Parent from "/proc/N/stat": "N (name, which may hold anything) S PPID ...". No stdio here:
 * async-signal-safe. */
static pid_t parent_of(const char *number) {
    char path[32] = "/proc/", text[512];
    size_t n = 6;
    for (; *number && n < 24; number++) path[n++] = *number;
    memcpy(path + n, "/stat", 6);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *p = strrchr(text, ')');
    if (!p || strlen(p) < 5) return -1;
    pid_t parent = 0;
    for (p += 4; *p >= '0' && *p <= '9'; p++) parent = parent * 10 + (*p - '0');
    return parent;
}

void os_kill_children(void) {
    struct entry { /* struct linux_dirent64, getdents64(2) */
        uint64_t inode;
        int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    _Alignas(struct entry) char block[8192];
    pid_t self = getpid();
    int dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return;
    for (long got; (got = syscall(SYS_getdents64, dir, block, sizeof block)) > 0;) {
        for (long at = 0; at < got;) {
            const struct entry *d = (const struct entry *)(const void *)(block + at);
            at += d->length;
            pid_t pid = 0;
            const char *p = d->name;
            for (; *p >= '0' && *p <= '9'; p++) pid = pid * 10 + (*p - '0');
            if (*p == 0 && pid > 1 && parent_of(d->name) == self) kill(pid, SIGKILL);
        }
    }
    close(dir);
}

/* ---- files and memory ---- */

int os_sync(int fd) {
    return fsync(fd);
}

void os_will_read(int fd) {
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

int64_t os_mtime_ns(const struct stat *s) {
    return (int64_t)s->st_mtim.tv_sec * (int64_t)TL_S + s->st_mtim.tv_nsec;
}

/* The name from the mount table (it knows fuse.* apart), the longest mount point that holds the device. */
static bool mount_type(char out[32], const char *path) {
    struct stat s;
    if (stat(path, &s) != 0) return false;
    char want[32];
    snprintf(want, sizeof want, "%u:%u", (unsigned)(s.st_dev >> 8 & 0xfff),
             (unsigned)((s.st_dev & 0xff) | (s.st_dev >> 12 & 0xfff00)));
    char *text = slurp_large("/proc/self/mountinfo");
    bool found = false;
    for (char *p = text, *next; p && *p && !found; p = next) {
        next = strchr(p, '\n');
        if (next) *next++ = 0;
        char *dash = strstr(p, " - "), *device = strchr(p, ' ');
        device = device ? strchr(device + 1, ' ') : NULL;
        size_t n = strlen(want);
        if (!dash || !device || strncmp(device + 1, want, n) != 0 || device[1 + n] != ' ') continue;
        size_t len = strcspn(dash + 3, " ");
        if (len > 31) len = 31;
        memcpy(out, dash + 3, len);
        out[len] = 0;
        found = true;
    }
    free(text);
    return found;
}

void os_fs_name(char out[32], const char *path) {
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {{0xEF53, "ext4"},        {0x9123683E, "btrfs"}, {0x58465342, "xfs"},  {0x6969, "nfs"},
                 {0x01021994, "tmpfs"},   {0xFF534D42, "cifs"},  {0xFE534D42, "smb2"}, {0x0BD00BD0, "lustre"},
                 {0x00C36400, "ceph"},    {0x01021997, "9p"},    {0x2FC12FC1, "zfs"},  {0xF2F52010, "f2fs"},
                 {0x794C7630, "overlay"}, {0x47504653, "gpfs"},  {0x65735546, "fuse"}, {0x4D44, "vfat"}};
    snprintf(out, 32, "unknown");
    if (mount_type(out, path)) return;
    struct statfs s;
    if (statfs(path, &s) != 0) return;
    for (size_t i = 0; i < TL_COUNT(known); i++)
        if (known[i].magic == ((unsigned long)s.f_type & 0xffffffffUL))
            snprintf(out, 32, "%s", known[i].name);
}

char *os_self_path(void) {
    char text[4096];
    ssize_t n = readlink("/proc/self/exe", text, sizeof text);
    return n > 0 && (size_t)n < sizeof text ? tl_xstrndup(text, (size_t)n) : NULL;
}

char *os_cache_home(void) {
    char *home = tl_path_home(), *dir = tl_path_join(home, ".cache");
    free(home);
    return dir;
}

const char *const *os_nvml_names(size_t *n) {
    static const char *const names[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
    *n = TL_COUNT(names);
    return names;
}

void os_memory_private(void *p, size_t n) {
    madvise(p, n, MADV_DONTFORK);
    madvise(p, n, MADV_HUGEPAGE);
}

/* ---- host facts ---- */

static json_t *os_section(void) {
    char *text = slurp_large("/etc/os-release"), line[128];
    json_t *j = json_object();
    static const char *const keys[][2] = {{"name", "PRETTY_NAME"}, {"id", "ID"}, {"version", "VERSION_ID"}};
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        const char *v = after_key(text, keys[i][1]);
        if (v) copy_line(line, sizeof line, *v == '"' ? v + 1 : v);
        if (v && tl_str_ends(line, "\"")) line[strlen(line) - 1] = 0;
        json_object_set_new(j, keys[i][0], v ? os_text_or_null(line) : json_null());
    }
    free(text);
    return j;
}

static bool has_word(const char *line, const char *word) {
    size_t n = strlen(word);
    for (const char *p = line; (p = strstr(p, word)); p += n)
        if ((p == line || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || p[n] == 0)) return true;
    return false;
}

/* What decides which kernels an engine can use. */
static json_t *cpu_flags(const char *cpuinfo) {
    static const char *const x86[] = {"avx",      "avx2",     "fma",         "f16c",        "avx_vnni",
                                      "avx512f",  "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                                      "amx_tile", "amx_int8", "amx_bf16",    "sha_ni"};
    static const char *const arm[] = {"asimd", "asimdhp", "asimddp", "i8mm", "bf16",
                                      "sve",   "sve2",    "sme",     "sha2"};
    const char *line = after_key(cpuinfo, "flags"), *arm_line = after_key(cpuinfo, "Features");
    const char *const *names = line ? x86 : arm;
    size_t n = line ? TL_COUNT(x86) : TL_COUNT(arm);
    if (!line) line = arm_line;
    if (!line) return json_null();
    char *copy = tl_xstrndup(line, strcspn(line, "\n"));
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (has_word(copy, names[i])) json_array_append_new(list, json_string(names[i]));
    free(copy);
    return list;
}

/* Current frequencies in MHz: lowest, mean, highest of all processors. */
static json_t *frequencies(void) {
    unsigned end = cpu_numbers_end(), n = 0;
    double low = 0, high = 0, sum = 0;
    for (unsigned i = 0; i < end; i++) {
        char text[32];
        double khz;
        if (!slurp(text, sizeof text, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", i) ||
            !tl_parse_f64(text, &khz))
            continue;
        if (n == 0 || khz < low) low = khz;
        if (khz > high) high = khz;
        sum += khz;
        n++;
    }
    if (n > 0)
        return json_pack("{s:o, s:o, s:o, s:s}", "low", tl_json_real(low / 1000), "mean",
                         tl_json_real(sum / n / 1000), "high", tl_json_real(high / 1000), "source",
                         "cpufreq");
    char *cpuinfo = slurp_large("/proc/cpuinfo");
    const char *mhz = after_key(cpuinfo, "cpu MHz");
    char text[32];
    double value = 0;
    if (mhz) copy_line(text, sizeof text, mhz);
    bool known = mhz && tl_parse_f64(text, &value);
    free(cpuinfo);
    return known ? json_pack("{s:n, s:o, s:n, s:s}", "low", "mean", tl_json_real(value), "high", "source",
                             "cpuinfo")
                 : json_null();
}

static json_t *throttle_count(void) {
    unsigned end = cpu_numbers_end(), n = 0;
    uint64_t sum = 0, v;
    for (unsigned i = 0; i < end; i++) {
        char text[32];
        if (slurp(text, sizeof text, "/sys/devices/system/cpu/cpu%u/thermal_throttle/core_throttle_count",
                  i) &&
            read_u64(&v, text)) {
            sum += v;
            n++;
        }
    }
    return n ? json_integer((json_int_t)sum) : json_null();
}

static json_t *hottest_zone(void) {
    int64_t hottest = 0, v;
    bool known = false;
    for (unsigned i = 0; i < 64; i++) {
        char text[32];
        if (!slurp(text, sizeof text, "/sys/class/thermal/thermal_zone%u/temp", i)) continue;
        if (!tl_parse_i64(text, &v) || v <= 0 || v > 200000) continue;
        if (!known || v > hottest) hottest = v;
        known = true;
    }
    return known ? tl_json_real((double)hottest / 1000) : json_null();
}

static void add_cpu_drift(json_t *cpu) {
    json_object_set_new(cpu, "frequency_mhz", frequencies());
    json_object_set_new(cpu, "governor", file_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    json_object_set_new(cpu, "throttle_count", throttle_count());
    json_object_set_new(cpu, "temperature_c", hottest_zone());
}

static json_t *cpu_section(void) {
    char *text = slurp_large("/proc/cpuinfo"), line[128];
    unsigned cores, packages;
    count_cores(&cores, &packages);
    uint64_t largest;
    json_t *j = json_object(), *cache = caches(&largest);
    const char *model = after_key(text, "model name");
    if (!model) model = after_key(text, "Model");
    if (model) copy_line(line, sizeof line, model);
    json_object_set_new(j, "model", model ? os_text_or_null(line) : json_null());
    json_object_set_new(j, "sockets", os_count_or_null(packages));
    json_object_set_new(j, "cores", os_count_or_null(cores));
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    json_object_set_new(j, "threads", os_count_or_null(online > 0 ? (uint64_t)online : 0));
    json_object_set_new(j, "usable_threads", os_count_or_null(os_cpus_usable()));
    json_object_set_new(j, "flags", cpu_flags(text));
    json_object_set_new(j, "cache", cache);
    json_object_set_new(j, "last_level_cache_bytes", os_count_or_null(largest));
    json_object_set_new(j, "last_level_cache_total_bytes", os_count_or_null(os_cache_total()));
    json_object_set_new(j, "numa_nodes", os_count_or_null(os_numa_nodes()));
    json_object_set_new(j, "frequency_driver",
                        file_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"));
    json_object_set_new(j, "frequency_max_khz",
                        file_number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
    json_object_set_new(j, "energy_preference",
                        file_text("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"));
    json_object_set_new(j, "smt", file_text("/sys/devices/system/cpu/smt/control"));
    free(text);
    return j;
}

static void add_memory(json_t *j, bool light) {
    char text[8192];
    slurp(text, sizeof text, "/proc/meminfo");
    json_object_set_new(j, "available_bytes", os_count_or_null(os_memory_available()));
    json_object_set_new(j, "page_cache_bytes", meminfo_json(text, "Cached"));
    json_object_set_new(j, "dirty_bytes", meminfo_json(text, "Dirty"));
    json_object_set_new(j, "swap_free_bytes", meminfo_json(text, "SwapFree"));
    if (light) return;
    json_object_set_new(j, "total_bytes", meminfo_json(text, "MemTotal"));
    json_object_set_new(j, "cgroup_limit_bytes", os_count_or_null(cgroup_limit("memory.max", false)));
    json_object_set_new(j, "swap_total_bytes", meminfo_json(text, "SwapTotal"));
    json_object_set_new(j, "swappiness", file_number("/proc/sys/vm/swappiness"));
    json_object_set_new(j, "huge_page_bytes", meminfo_json(text, "Hugepagesize"));
    json_object_set_new(j, "huge_pages", file_number("/proc/sys/vm/nr_hugepages"));
    char modes[64], *open_mark = slurp(modes, sizeof modes, "/sys/kernel/mm/transparent_hugepage/enabled")
                                     ? strchr(modes, '[')
                                     : NULL;
    if (open_mark) open_mark[strcspn(open_mark, "]")] = 0;
    json_object_set_new(j, "transparent_huge_pages", os_text_or_null(open_mark ? open_mark + 1 : NULL));
}

static json_t *load_section(void) {
    char text[128];
    double one, five, fifteen;
    int running, all;
    if (!slurp(text, sizeof text, "/proc/loadavg") ||
        sscanf(text, "%lf %lf %lf %d/%d", &one, &five, &fifteen, &running, &all) != 5)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:i, s:i}", "one", tl_json_real(one), "five", tl_json_real(five),
                     "fifteen", tl_json_real(fifteen), "running", running, "tasks", all);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0": share of time in percent that something waited. */
static json_t *pressure_line(const char *text, const char *which) {
    const char *line = strstr(text, which);
    double ten, sixty, long_run;
    long long total;
    if (!line || sscanf(line + strlen(which), " avg10=%lf avg60=%lf avg300=%lf total=%lld", &ten, &sixty,
                        &long_run, &total) != 4)
        return json_null();
    return json_pack("{s:o, s:o, s:I}", "avg10_percent", tl_json_real(ten), "avg60_percent",
                     tl_json_real(sixty), "total_us", (json_int_t)total);
}

static json_t *pressure_section(void) {
    static const char *const kinds[] = {"cpu", "memory", "io"};
    json_t *j = json_object();
    for (size_t i = 0; i < TL_COUNT(kinds); i++) {
        char text[512];
        json_t *one = json_null();
        if (slurp(text, sizeof text, "/proc/pressure/%s", kinds[i]))
            one = json_pack("{s:o, s:o}", "some", pressure_line(text, "some"), "full",
                            pressure_line(text, "full"));
        json_object_set_new(j, kinds[i], one);
    }
    return j;
}

static json_t *power_section(void) {
    json_t *j = json_pack("{s:n, s:n}", "source", "battery_percent");
    char path[300];
    snprintf(path, sizeof path, "%s/sys/class/power_supply", os_root);
    tl_names names;
    if (tl_dir_list(&names, path, NULL) != TL_OK) return j;
    bool mains = false, mains_on = false, battery = false;
    for (size_t i = 0; i < names.n; i++) {
        char type[32], online[8], scope[32], capacity[16];
        int64_t percent;
        if (!slurp(type, sizeof type, "/sys/class/power_supply/%s/type", names.v[i])) continue;
        /* A mouse's battery is not the machine's. */
        if (slurp(scope, sizeof scope, "/sys/class/power_supply/%s/scope", names.v[i]) &&
            tl_str_eq(scope, "Device"))
            continue;
        if (tl_str_eq(type, "Mains") || tl_str_eq(type, "USB")) {
            mains = true;
            mains_on |= slurp(online, sizeof online, "/sys/class/power_supply/%s/online", names.v[i]) &&
                        online[0] == '1';
        } else if (tl_str_eq(type, "Battery")) {
            battery = true;
            if (slurp(capacity, sizeof capacity, "/sys/class/power_supply/%s/capacity", names.v[i]) &&
                tl_parse_i64(capacity, &percent))
                json_object_set_new(j, "battery_percent", json_integer(percent));
        }
    }
    tl_names_free(&names);
    if (mains_on)
        json_object_set_new(j, "source", json_string("mains"));
    else if (battery && mains)
        json_object_set_new(j, "source", json_string("battery"));
    return j;
}

static const char *container(void) {
    char text[512];
    const char *env = tl_env("container");
    if (slurp(text, sizeof text, "/run/systemd/container")) return "systemd";
    char path[300];
    snprintf(path, sizeof path, "%s/.dockerenv", os_root);
    if (tl_file_exists(path)) return "docker";
    snprintf(path, sizeof path, "%s/run/.containerenv", os_root);
    if (tl_file_exists(path)) return "podman";
    if (slurp(text, sizeof text, "/proc/version") && (strstr(text, "Microsoft") || strstr(text, "microsoft")))
        return "wsl";
    return env ? "unknown kind" : NULL;
}

static json_t *virtual_section(void) {
    char *cpuinfo = slurp_large("/proc/cpuinfo");
    const char *flags = after_key(cpuinfo, "flags");
    char *line = flags ? tl_xstrndup(flags, strcspn(flags, "\n")) : NULL;
    json_t *j = json_object(), *machine = file_text("/sys/class/dmi/id/sys_vendor");
    json_object_set_new(j, "hypervisor", line ? json_boolean(has_word(line, "hypervisor")) : json_null());
    json_object_set_new(j, "vendor", machine);
    json_object_set_new(j, "product", file_text("/sys/class/dmi/id/product_name"));
    json_object_set_new(j, "container", os_text_or_null(container()));
    free(line);
    free(cpuinfo);
    return j;
}

void os_host_add(json_t *root, bool light) {
    json_t *cpu = light ? json_object() : cpu_section(), *memory = json_object();
    add_cpu_drift(cpu);
    add_memory(memory, light);
    json_object_set_new(root, "cpu", cpu);
    json_object_set_new(root, "memory", memory);
    json_object_set_new(root, "load", load_section());
    json_object_set_new(root, "pressure", pressure_section());
    json_object_set_new(root, "power", power_section());
    if (light) return;
    json_object_set_new(root, "os", os_section());
    json_object_set_new(root, "virtual", virtual_section());
}

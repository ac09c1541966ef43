/* os, inside only: what linux.c and darwin.c provide to the portable files, and what those share. */
#ifndef TL_OS_IMPL_H
#define TL_OS_IMPL_H

#include <sys/types.h>
#include <time.h>

#include "os/os.h"

/* The real clock, whatever a test put into tl_clock_now: timeouts of system calls use it. */
tl_ns os_now(void);

/* ---- one implementation a platform (linux.c, darwin.c) ---- */

clockid_t os_clock_id(const char **name); /* name may be NULL */
bool os_clock_counter(char *out, size_t size); /* false: the kernel does not say */
bool os_random_bytes(void *p, size_t n);
tl_status os_pin(const unsigned *cpus, size_t n, tl_err *e);
unsigned os_cpus_usable(void);
unsigned os_cores(void);
uint64_t os_cache_bytes(void); /* the largest of one processor */
uint64_t os_cache_total(void); /* all last-level caches of the machine together */
uint64_t os_memory_bytes(void);
uint64_t os_memory_available(void);
unsigned os_numa_nodes(void); /* >= 1 */

/* In a forked process, so async-signal-safe: */
void os_close_from(int first);
void os_adopt_orphans(void);            /* descendants that lose their parent become ours */
void os_process_name(const char *name); /* what ps shows, where that can be set */
void os_die_with_parent(pid_t parent);  /* SIGKILL when it goes; ends at once if it has gone */
void os_kill_children(void);            /* SIGKILL to every direct child, adopted ones included */

int os_sync(int fd); /* to the medium; 0 or -1 with errno */
void os_will_read(int fd);
struct stat;
int64_t os_mtime_ns(const struct stat *s);
void os_fs_name(char out[32], const char *path); /* of an existing path; "unknown" */
char *os_self_path(void);
char *os_cache_home(void);                   /* the folder under which tally's own lies */
const char *const *os_nvml_names(size_t *n); /* library names to try */
/* Memory that a fork does not share (tally's supervisors would keep it alive) and, where possible, in huge
 * pages. */
void os_memory_private(void *p, size_t n);

/* Adds the sections of tl_host_snapshot; `light`: only what drifts. */
void os_host_add(json_t *root, bool light);

/* ---- supervisor.c: the process between tally and a child ---- */

typedef enum os_stage {
    OS_STAGE_FORK,
    OS_STAGE_LIMIT,
    OS_STAGE_CWD,
    OS_STAGE_STREAM,
    OS_STAGE_EXEC
} os_stage;

/* Sent from the forked child when it could not become the program. */
typedef struct os_exec_failure {
    int stage; /* os_stage */
    int errno_value;
} os_exec_failure;

/* Sent by the supervisor when the program has ended. */
typedef struct os_exit_report {
    int code;   /* 0..255, or 128 + signal */
    int signal; /* or 0 */
} os_exit_report;

/* All that the two processes need, prepared before the fork: between fork and exec nothing may allocate. */
typedef struct os_child_plan {
    const char *path; /* absolute */
    char *const *argv, *const *env;
    const char *cwd; /* or NULL */
    int std[3];      /* become 0, 1, 2 */
    uint64_t limit_cpu_s, limit_memory_bytes, limit_file_bytes;
    int exec_fd;   /* write end, close-on-exec: os_exec_failure, or the end of file that means success */
    int life_fd;   /* read end: 'T' = SIGTERM to the group, 'K' or end of file = kill all and end */
    int report_fd; /* write end: pid_t of the child first, then one os_exit_report */
} os_child_plan;

/* The supervisor's whole life; called in the fork, never returns. All signals are blocked. */
_Noreturn void os_supervise(const os_child_plan *plan);

/* ---- shared by the portable files ---- */

/* linux.c reads /proc, /sys and /etc below this folder: "" except in tests. */
extern const char *os_root;
json_t *os_gpu_list(bool light);        /* NVML; null when there is no library */
json_t *os_text_or_null(const char *s); /* NULL or "" gives null */
json_t *os_count_or_null(uint64_t v);   /* 0 = unknown gives null */
bool os_cloexec(int fd);
bool os_pipe(int fds[2]);              /* both ends close-on-exec */
void os_block_signals(void *old_mask); /* sigset_t*, for around a fork or a thread start */
void os_restore_signals(const void *old_mask);

/* Forces the array to be touched again whenever the number of threads changes, as on machines of several
 * nodes. */
void os_membw_assume_nodes(tl_membw *m);

#endif

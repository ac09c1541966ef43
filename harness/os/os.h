/* os: everything that comes from the operating system: clock, random bytes, threads, child processes,
 * signals, files, locks, sockets, host facts, and the memory-bandwidth ruler.
 *
 * Not for: anything about engines, runs or storage. Other modules carry no #ifdef of a platform; what differs
 * by platform sits in linux.c and darwin.c behind os_impl.h. Sole user of: pthread, fork/exec, wait, signals,
 * dlopen, /proc and /sys. Threads: every object belongs to one thread at a time unless its comment says
 * otherwise.
 */
#ifndef TL_OS_H
#define TL_OS_H

#include "base/base.h"

/* ---- clock
 * --------------------------------------------------------------------------------------------------- */

/* Nanoseconds. As a point in time: of the one monotonic clock that all processes of this machine share. */
typedef uint64_t tl_ns;
#define TL_US ((tl_ns)1000)
#define TL_MS ((tl_ns)1000000)
#define TL_S ((tl_ns)1000000000)

/* The clock. A pointer so that tests can put a clock of their own in its place; set before threads start. */
extern tl_ns (*tl_clock_now)(void);
/* What the clock is, with its resolution: "CLOCK_MONOTONIC, 1 ns". Static text, stored with each run. */
const char *tl_clock_name(void);
/* The counter that the kernel makes it from: "tsc", "kvm-clock", "hpet"; NULL when it does not say. Static text. */
const char *tl_clock_counter(void);
/* Wall time in ns since 1970 UTC: for stamps only, never for durations. */
int64_t tl_clock_wall_ns(void);
/* Local offset from UTC at that moment: "+08:00". */
void tl_clock_utc_offset(char out[8], int64_t wall_ns);
/* "2026-01-31T23:59:59.123456789Z". */
void tl_clock_iso8601(char out[32], int64_t wall_ns);
/* Sleeps the whole time, also when signals arrive in between. */
void tl_sleep_ns(tl_ns ns);

/* ---- random bytes
 * -------------------------------------------------------------------------------------------- */

void tl_os_random(void *out, size_t n); /* from the kernel; ends the process if there are none */
void tl_os_ulid(char out[27]);          /* of now */

/* ---- threads
 * ------------------------------------------------------------------------------------------------- */

typedef struct tl_thread tl_thread;
tl_status tl_thread_start(tl_thread **out, void *(*fn)(void *), void *arg, tl_err *e) TL_MUST_USE;
void *tl_thread_join(tl_thread *t); /* gives what fn returned and frees t; NULL gives NULL */

/* A lock with one condition attached: the pair that all our uses need. Both may be used from any thread. */
typedef struct tl_mutex tl_mutex;
tl_mutex *tl_mutex_new(void);
void tl_mutex_free(tl_mutex *m); /* NULL ok */
void tl_mutex_lock(tl_mutex *m);
void tl_mutex_unlock(tl_mutex *m);
void tl_mutex_wait(tl_mutex *m);                     /* held; waits for a wake (which may come for nothing) */
bool tl_mutex_wait_for(tl_mutex *m, tl_ns duration); /* the same; false when the time was up */
void tl_mutex_wake_all(tl_mutex *m);

/* Binds the calling thread to these processors. TL_MISSING where the platform cannot (macOS). */
tl_status tl_thread_pin(const unsigned *cpus, size_t n, tl_err *e) TL_MUST_USE;
unsigned tl_cpu_count(void);  /* logical processors this process may use (affinity and cgroup quota), >= 1 */
unsigned tl_core_count(void); /* physical cores of the machine; 0 when unknown */

/* ---- child processes
 * ----------------------------------------------------------------------------------------- */

/* Each child runs below a supervisor: a fork of tally that holds the read end of a pipe whose only write end
 * is tally's. When tally ends, however it ends, the pipe closes and the supervisor kills the child's process
 * group and (Linux: as subreaper) every descendant, those that left the group included. Because the
 * supervisor shares tally's pages, memory that is written while time is measured should be allocated after
 * the spawn, or be touched again.
 *
 * The child runs in a session and group of its own, with default signal handling, with standard input from
 * /dev/null and with no other descriptor of ours. */
typedef struct tl_child tl_child;

typedef enum tl_child_to {
    TL_TO_INHERIT = 0, /* tally's own stream */
    TL_TO_NULL,
    TL_TO_FILE,    /* appended to a file */
    TL_TO_CAPTURE, /* kept up to a limit, the rest is read and counted */
} tl_child_to;

typedef struct tl_child_stream {
    tl_child_to to;
    const char *path; /* TL_TO_FILE; the same path for both streams shares one descriptor */
    size_t limit;     /* TL_TO_CAPTURE: bytes kept; 0 = 1 MiB */
} tl_child_stream;

typedef struct tl_child_spec {
    const char *const *argv;    /* NULL-terminated; argv[0] is looked up on PATH unless it holds a '/' */
    const char *const *env;     /* NULL-terminated "K=V": the whole environment; NULL = tally's own */
    const char *const *env_add; /* set on top ("K=V") or taken away ("K"); may be NULL */
    const char *cwd;            /* NULL = tally's own */
    tl_child_stream out, err;
    const char *input; /* given on standard input when not NULL, through an unnamed file */
    uint64_t limit_cpu_s, limit_memory_bytes, limit_file_bytes; /* rlimits; 0 = unchanged */
} tl_child_spec;

/* Starts it; returns after exec succeeded. Makes tally ignore SIGPIPE. TL_MISSING: no such program (with
 * remedy); TL_IO: anything else. */
tl_status tl_child_spawn(tl_child **out, const tl_child_spec *spec, tl_err *e) TL_MUST_USE;
int64_t tl_child_pid(const tl_child *c);
bool tl_child_alive(tl_child *c); /* the program itself, not what it left behind */
/* Waits for the program's end, also for a child that has ended before. TL_TIMEOUT: still running; comes early
 * when a signal for tally arrived (tl_signal_pending). */
tl_status tl_child_wait(tl_child *c, tl_ns timeout, tl_err *e) TL_MUST_USE;
/* After its end: exit code 0..255, or 128 + signal. -1 while it runs or when its supervisor was killed. */
int tl_child_exit_code(const tl_child *c);
int tl_child_signal(const tl_child *c); /* the signal that ended it, or 0 */
/* "running", "exit code 3", "killed by signal 9 (Killed)". Borrowed until the next call. */
const char *tl_child_status_text(tl_child *c);
/* A copy of what was captured so far, appended to `out` (may be NULL); returns the bytes the child wrote in
 * all. */
uint64_t tl_child_captured(tl_buf *out, tl_child *c, bool of_stderr);
/* SIGTERM to the group, up to `grace` for the program to end, then SIGKILL to all that is left; reaps.
 * Idempotent. */
void tl_child_stop(tl_child *c, tl_ns grace);
void tl_child_free(tl_child *c); /* kills what is left at once; NULL ok */

typedef struct tl_child_result {
    tl_buf out, err;               /* what was kept of each stream */
    uint64_t out_bytes, err_bytes; /* what was written in all */
    int exit_code;                 /* as tl_child_exit_code */
    int signal;
    bool timed_out; /* it was killed because its time was up */
    tl_ns took;
} tl_child_result;

/* Runs to the end and kills what the program leaves behind. Streams that the spec leaves at TL_TO_INHERIT are
 * captured. A non-zero exit code or a timeout is a result, not an error. TL_CANCELLED when a signal for tally
 * (tl_signal_pending) arrives meanwhile. Free with tl_child_result_free in every case. */
tl_status tl_child_run(tl_child_result *out, const tl_child_spec *spec, tl_ns timeout, tl_err *e) TL_MUST_USE;
void tl_child_result_free(tl_child_result *r);

int64_t tl_os_pid(void);
bool tl_pid_alive(int64_t pid);

/* ---- signals
 * ------------------------------------------------------------------------------------------------- */

/* SIGINT, SIGTERM, SIGHUP set a flag; a second SIGINT ends the process at once with code 130. SIGPIPE is
 * ignored. */
void tl_signal_install(void);
int tl_signal_pending(void); /* the first such signal's number, or 0; from any thread */
void tl_signal_clear(void);
const char *tl_signal_name(int signal_number); /* "SIGINT"; "signal 77" for the unknown, static per thread */

/* ---- files
 * --------------------------------------------------------------------------------------------------- */

typedef struct tl_names {
    char **v; /* sorted by bytes */
    size_t n, cap;
} tl_names;
void tl_names_free(tl_names *n); /* zeroed ok, twice ok */

typedef struct tl_file_facts {
    bool exists, is_dir, is_file, is_link; /* is_link: the path itself; the rest follows it */
    uint64_t size_bytes;
    int64_t mtime_ns;
    uint64_t inode, dev;
    unsigned mode;
} tl_file_facts;

/* Appends the whole file; `out` is initialised by the caller. TL_LIMIT when it is larger than max_bytes (0 =
 * none). */
tl_status tl_file_read(tl_buf *out, const char *path, size_t max_bytes, tl_err *e) TL_MUST_USE;
/* Temporary file in the same folder, fsync, rename, fsync of the folder. On failure the old file is untouched
 * and no temporary file is left. On a full disk the message names the path and the free bytes. */
tl_status tl_file_write(const char *path, const void *p, size_t n, tl_err *e) TL_MUST_USE;
/* The same for data too big for memory: write to tl_file_out_stream, then commit or drop (both free o). */
typedef struct tl_file_out tl_file_out;
tl_status tl_file_out_open(tl_file_out **out, const char *path, tl_err *e) TL_MUST_USE;
FILE *tl_file_out_stream(tl_file_out *o); /* borrowed */
tl_status tl_file_out_commit(tl_file_out *o, tl_err *e) TL_MUST_USE;
void tl_file_out_drop(tl_file_out *o); /* NULL ok */
/* An error for a failed operation on a path from errno_value: TL_NOT_FOUND for ENOENT, else TL_IO; names the
 * free bytes for ENOSPC, and has remedies. Always fails. */
tl_status tl_file_fail(const char *what, const char *path, int errno_value, tl_err *e);

bool tl_file_exists(const char *path); /* follows links */
bool tl_dir_exists(const char *path);
tl_status tl_file_stat(tl_file_facts *out, const char *path,
                       tl_err *e) TL_MUST_USE;                  /* absent is OK: exists=false */
tl_status tl_dir_make(const char *path, tl_err *e) TL_MUST_USE; /* with parents; existing is OK */
tl_status tl_dir_list(tl_names *out, const char *path, tl_err *e) TL_MUST_USE; /* names without . and .. */
tl_status tl_file_remove(const char *path, tl_err *e) TL_MUST_USE;             /* absent is OK */
tl_status tl_file_copy(const char *to, const char *from,
                       tl_err *e) TL_MUST_USE; /* atomic; keeps the mode bits */
/* Removes `path` and all below it. Links are removed, never followed; never crosses into another file system;
 * refuses
 * "/", the home folder and the working folder or a parent of it. Absent is OK. */
tl_status tl_dir_remove(const char *path, tl_err *e) TL_MUST_USE;

/* Called between blocks; false stops with TL_CANCELLED. */
typedef bool tl_file_progress_fn(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
/* SHA-256 of a file as hex; the next block is read while one is hashed. */
tl_status tl_file_sha256(char out[65], const char *path, tl_file_progress_fn *progress, void *ctx,
                         tl_err *e) TL_MUST_USE;

/* Results of these are owned by the caller. */
char *tl_path_join(const char *dir, const char *name); /* an absolute name wins */
char *tl_path_abs(const char *path);        /* absolute, "." and ".." folded by text; need not exist */
char *tl_path_dir(const char *path);        /* "a/b" -> "a", "b" -> ".", "/b" -> "/" */
const char *tl_path_base(const char *path); /* borrowed: what follows the last '/' */
char *tl_path_home(void);                   /* HOME, else the user database, else "/" */
char *tl_path_cwd(void);
/* TALLY_CACHE, else XDG_CACHE_HOME/tally, else ~/.cache/tally (macOS: ~/Library/Caches/tally). Not created.
 */
char *tl_path_cache(void);
/* The running program; NULL when unknown. */
char *tl_path_self(void);
/* First executable of that name on PATH, absolute; a name with '/' is only checked. NULL when there is none.
 */
char *tl_path_which(const char *program);
/* A new private folder below TMPDIR or /tmp, named PREFIX-XXXXXX. */
tl_status tl_dir_temp(char **out, const char *prefix, tl_err *e) TL_MUST_USE;

tl_status tl_fs_free_bytes(uint64_t *out, const char *path, tl_err *e) TL_MUST_USE; /* for this user */
void tl_fs_type(char out[32],
                const char *path); /* "ext4", "nfs", "apfs", ..., "unknown"; an absent path: its parent */
bool tl_fs_is_network(const char *type); /* where SQLite's WAL and file locks are not to be trusted */

/* Exclusive lock between processes, released when the holder ends, however it ends. TL_CONFLICT: "locked by
 * pid N since ..." */
typedef struct tl_lock tl_lock;
tl_status tl_lock_take(tl_lock **out, const char *path, tl_err *e) TL_MUST_USE;
void tl_lock_release(tl_lock *l); /* NULL ok; the file stays (removing it would race) */

/* Environment. Borrowed; NULL when unset or empty. */
const char *tl_env(const char *name);
/* True when standard input and standard error are a terminal. */
bool tl_is_terminal(void);

/* ---- TCP
 * ----------------------------------------------------------------------------------------------------- */

/* A port on 127.0.0.1 that was free a moment ago. */
tl_status tl_tcp_free_port(uint16_t *out, tl_err *e) TL_MUST_USE;
/* Does something listen there (127.0.0.1 or ::1)? */
bool tl_tcp_port_in_use(uint16_t port);
/* A connected, non-blocking socket with TCP_NODELAY and close-on-exec, owned by the caller. *connected_at
 * (may be NULL) is when connect completed. Tries every address of the name. TL_TIMEOUT, or TL_HTTP naming
 * host and port. */
tl_status tl_tcp_connect(int *fd_out, const char *host, uint16_t port, tl_ns timeout, tl_ns *connected_at,
                         tl_err *e) TL_MUST_USE;
void tl_fd_close(int fd); /* negative ok */

/* ---- host facts
 * ---------------------------------------------------------------------------------------------- */

/* What this machine is, as a JSON object; what cannot be read is null, never 0. No host name, no user, no
 * serial number. Owned by the caller. Sections: clock, os, cpu, memory, load, pressure, power, virtual, gpu.
 */
json_t *tl_host_snapshot(void);
/* Only what drifts (load, frequencies, free memory, pressure, GPU clocks and temperatures): for before and
 * after. */
json_t *tl_host_light(void);
/* Bytes of the largest cache of one processor; 0 when unknown. */
uint64_t tl_host_cache_bytes(void);
uint64_t tl_host_memory_bytes(void);           /* 0 when unknown; a cgroup's limit where lower */
uint64_t tl_host_memory_available_bytes(void); /* 0 when unknown */

/* ---- memory-bandwidth ruler
 * ---------------------------------------------------------------------------------- */

/* Sums an array far larger than the caches with 1..threads_max threads. Made once; between probes its threads
 * sleep and its memory stays allocated, so that short probes can be put between requests. */
typedef struct tl_membw tl_membw;

typedef struct tl_membw_pass {
    uint64_t bytes; /* read in this pass */
    tl_ns ns;       /* from the end of the pass before to its own */
} tl_membw_pass;

#define TL_MEMBW_PASSES 256
typedef struct tl_membw_result {
    unsigned threads;
    size_t n; /* complete passes, >= 1 */
    tl_membw_pass pass[TL_MEMBW_PASSES];
    uint64_t bytes;          /* all passes */
    tl_ns ns;                /* all passes, from the common start to the last end */
    double bytes_per_s;      /* bytes / ns: the figure to use */
    double best_bytes_per_s; /* the fastest three passes in a row (all, when fewer) */
} tl_membw_result;

/* bytes 0 = 4 x all last-level caches, at least 256 MB, at most a quarter of the available memory. TL_MISSING
 * when there is not enough memory for an array that the caches cannot hold. */
tl_status tl_membw_new(tl_membw **out, unsigned threads_max, size_t bytes, tl_err *e) TL_MUST_USE;
void tl_membw_free(tl_membw *m); /* NULL ok */
uint64_t tl_membw_array_bytes(const tl_membw *m);
const char *tl_membw_kernel(const tl_membw *m); /* "avx512", "avx2", "generic": the code that reads */
/* Passes until `duration` is over (at least one, at most TL_MEMBW_PASSES). 1 <= threads <= threads_max. */
tl_status tl_membw_read(tl_membw_result *out, tl_membw *m, unsigned threads, tl_ns duration,
                        tl_err *e) TL_MUST_USE;

#endif

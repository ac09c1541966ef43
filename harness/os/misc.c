/* Small services: random bytes, environment, process ids, descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "os/os_impl.h"

void tl_os_random(void *out, size_t n) {
    if (os_random_bytes(out, n)) return;
    /* Without them identifiers would collide; no caller could go on. */
    fprintf(stderr, "tally: error: the system gives no random bytes: %s\n", strerror(errno));
    exit(1);
}

void tl_os_ulid(char out[27]) {
    uint8_t rnd[10];
    tl_os_random(rnd, sizeof rnd);
    tl_ulid(out, (uint64_t)(tl_clock_wall_ns() / (int64_t)TL_MS), rnd);
}

const char *tl_env(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

bool tl_is_terminal(void) {
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int64_t tl_os_pid(void) {
    return getpid();
}

bool tl_pid_alive(int64_t pid) {
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

void tl_fd_close(int fd) {
    if (fd >= 0) close(fd);
}

bool os_cloexec(int fd) {
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == 0;
}

bool os_pipe(int fds[2]) {
    if (pipe(fds) != 0) return false;
    if (os_cloexec(fds[0]) && os_cloexec(fds[1])) return true;
    close(fds[0]);
    close(fds[1]);
    return false;
}

unsigned tl_cpu_count(void) {
    return os_cpus_usable();
}

unsigned tl_core_count(void) {
    return os_cores();
}

uint64_t tl_host_cache_bytes(void) {
    return os_cache_bytes();
}

uint64_t tl_host_memory_bytes(void) {
    return os_memory_bytes();
}

uint64_t tl_host_memory_available_bytes(void) {
    return os_memory_available();
}

json_t *os_text_or_null(const char *s) {
    if (!s || !*s) return json_null();
    json_t *j = json_string(s); /* NULL for invalid UTF-8: unreadable is unknown */
    return j ? j : json_null();
}

json_t *os_count_or_null(uint64_t v) {
    return v && v <= INT64_MAX ? json_integer((json_int_t)v) : json_null();
}

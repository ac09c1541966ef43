/* A lock between processes: flock on a file that also says who holds it. The kernel gives it up when the
 * holder ends, so a stale lock cannot exist; the file's text only explains. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_impl.h"

struct tl_lock {
    int fd;
};

static tl_status held_by_other(int fd, const char *path, tl_err *e) {
    char text[128] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    char *since = strchr(text, ' ');
    int64_t pid = 0;
    if (since) *since++ = 0;
    if (since && tl_parse_i64(text, &pid))
        tl_fail(e, TL_CONFLICT, "'%s' is locked by pid %" PRId64 " since %s", path, pid, since);
    else
        tl_fail(e, TL_CONFLICT, "'%s' is locked by another process", path);
    tl_remedy(e, "wait until that process ends, or end it");
    return TL_CONFLICT;
}

/* Whoever holds the lock may remove its file: then what was opened here is no longer what the name means. */
static bool still_named(int fd, const char *path) {
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

tl_status tl_lock_take(tl_lock **out, const char *path, tl_err *e) {
    *out = NULL;
again:;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return tl_file_fail("lock", path, errno, e);
    int rc;
    do rc = flock(fd, LOCK_EX | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        tl_status st =
            errno == EWOULDBLOCK ? held_by_other(fd, path, e) : tl_file_fail("lock", path, errno, e);
        close(fd);
        return st;
    }
    if (!still_named(fd, path)) {
        close(fd);
        goto again;
    }
    char when[32], text[96];
    tl_clock_iso8601(when, tl_clock_wall_ns());
    int n = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), when);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        tl_status st = tl_file_fail("lock", path, errno, e);
        close(fd);
        return st;
    }
    tl_lock *l = tl_xalloc(sizeof *l);
    l->fd = fd;
    *out = l;
    return TL_OK;
}

void tl_lock_release(tl_lock *l) {
    if (!l) return;
    if (ftruncate(l->fd, 0) != 0) errno = 0; /* only the explanation stays: harmless */
    close(l->fd);
    free(l);
}

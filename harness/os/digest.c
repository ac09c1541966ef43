/* SHA-256 of large files: a second thread reads the next block while this one hashes. Model files are many
 * gigabytes; with hashing instructions in the processor both sides take about the same time. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_impl.h"

enum { BLOCK = 4 << 20, SLOTS = 3 };

typedef struct pump {
    int fd;
    tl_mutex *lock;
    char *block[SLOTS];
    size_t len[SLOTS];
    uint64_t produced, consumed; /* blocks; guarded by lock, as all below */
    bool end, stop;
    int errno_value;
} pump;

static ssize_t read_block(int fd, char *to) {
    size_t n = 0;
    while (n < BLOCK) {
        ssize_t got = read(fd, to + n, BLOCK - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static void *fill(void *arg) {
    pump *p = arg;
    tl_mutex_lock(p->lock);
    while (!p->end && !p->stop) {
        if (p->produced - p->consumed == SLOTS) {
            tl_mutex_wait(p->lock);
            continue;
        }
        size_t slot = p->produced % SLOTS;
        tl_mutex_unlock(p->lock);
        ssize_t n = read_block(p->fd, p->block[slot]);
        int err = errno;
        tl_mutex_lock(p->lock);
        if (n < 0) p->errno_value = err;
        p->len[slot] = n > 0 ? (size_t)n : 0;
        p->end = n < BLOCK;
        if (n > 0) p->produced++;
        tl_mutex_wake_all(p->lock);
    }
    tl_mutex_unlock(p->lock);
    return NULL;
}

/* The next full slot, or -1 at the end. */
static int next_slot(pump *p) {
    tl_mutex_lock(p->lock);
    while (p->produced == p->consumed && !p->end) tl_mutex_wait(p->lock);
    int slot = p->produced == p->consumed ? -1 : (int)(p->consumed % SLOTS);
    tl_mutex_unlock(p->lock);
    return slot;
}

static void release_slot(pump *p, bool stop) {
    tl_mutex_lock(p->lock);
    p->consumed++;
    p->stop = p->stop || stop;
    tl_mutex_wake_all(p->lock);
    tl_mutex_unlock(p->lock);
}

static tl_status hash_through(pump *p, tl_sha256 *h, uint64_t total, tl_file_progress_fn *progress, void *ctx,
                              const char *path, tl_err *e) {
    tl_thread *reader;
    tl_status st = tl_thread_start(&reader, fill, p, e);
    if (st != TL_OK) return st;
    uint64_t done = 0;
    bool go_on = true;
    for (int slot; go_on && (slot = next_slot(p)) >= 0;) {
        tl_sha256_add(h, p->block[slot], p->len[slot]);
        done += p->len[slot];
        go_on = !progress || progress(ctx, done, total);
        release_slot(p, !go_on);
    }
    tl_thread_join(reader);
    if (!go_on) return tl_fail(e, TL_CANCELLED, "stopped while reading '%s'", path);
    if (p->errno_value) return tl_file_fail("read", path, p->errno_value, e);
    return TL_OK;
}

static bool same_facts(const struct stat *a, const struct stat *b) {
    return a->st_size == b->st_size && a->st_ino == b->st_ino && os_mtime_ns(a) == os_mtime_ns(b);
}

tl_status tl_file_sha256(char out[65], const char *path, tl_file_progress_fn *progress, void *ctx,
                         tl_err *e) {
    tl_status st = TL_OK;
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tl_file_fail("read", path, errno, e);
    pump p = {.fd = fd, .lock = tl_mutex_new()};
    tl_sha256 *h = tl_sha256_new();
    uint8_t digest[32];
    struct stat before, after;
    if (fstat(fd, &before) != 0) {
        st = tl_file_fail("read", path, errno, e);
        goto out;
    }
    if (S_ISDIR(before.st_mode)) {
        st = tl_fail(e, TL_IO, "cannot read '%s': it is a folder", path);
        goto out;
    }
    for (size_t i = 0; i < SLOTS; i++) p.block[i] = tl_xalloc(BLOCK);
    os_will_read(fd);
    TRY(hash_through(&p, h, (uint64_t)before.st_size, progress, ctx, path, e));
    if (fstat(fd, &after) != 0 || !same_facts(&before, &after)) {
        st = tl_fail(e, TL_CONFLICT, "'%s' changed while it was read", path);
        tl_remedy(e, "wait until its download or copy has finished");
        goto out;
    }
    tl_sha256_end(h, digest);
    h = NULL;
    tl_hex(out, digest, sizeof digest);
out:
    tl_sha256_drop(h);
    for (size_t i = 0; i < SLOTS; i++) free(p.block[i]);
    tl_mutex_free(p.lock);
    close(fd);
    return st;
}

/* Files: reading, atomic writing, facts, folders. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/os_impl.h"

/* ---- errors ---- */

tl_status tl_file_fail(const char *what, const char *path, int errno_value, tl_err *e) {
    if (errno_value == ENOENT) {
        tl_fail(e, TL_NOT_FOUND, "cannot %s '%s': it does not exist", what, path);
        tl_remedy(e, "check the path");
        return TL_NOT_FOUND;
    }
    if (errno_value == ENOSPC || errno_value == EDQUOT) {
        uint64_t bytes = 0;
        bool known = tl_fs_free_bytes(&bytes, path, NULL) == TL_OK;
        if (known)
            tl_fail(e, TL_IO, "cannot %s '%s': the disk is full (%" PRIu64 " bytes free)", what, path, bytes);
        else
            tl_fail(e, TL_IO, "cannot %s '%s': the disk is full", what, path);
        tl_remedy(e, "free some space, or choose another disk");
        return TL_IO;
    }
    tl_fail(e, TL_IO, "cannot %s '%s': %s", what, path, strerror(errno_value));
    if (errno_value == EACCES || errno_value == EPERM)
        tl_remedy(e, "check who owns it and its permissions (ls -ld)");
    if (errno_value == EROFS) tl_remedy(e, "the disk is mounted read-only: choose another folder");
    if (errno_value == EMFILE) tl_remedy(e, "raise the limit of open files (ulimit -n)");
    return TL_IO;
}

/* ---- facts ---- */

tl_status tl_file_stat(tl_file_facts *out, const char *path, tl_err *e) {
    memset(out, 0, sizeof *out);
    struct stat s;
    if (lstat(path, &s) != 0)
        return errno == ENOENT || errno == ENOTDIR ? TL_OK : tl_file_fail("read facts of", path, errno, e);
    out->is_link = S_ISLNK(s.st_mode);
    if (out->is_link && stat(path, &s) != 0)
        return TL_OK; /* it points nowhere: a link that exists not as a file */
    out->exists = true;
    out->is_dir = S_ISDIR(s.st_mode);
    out->is_file = S_ISREG(s.st_mode);
    out->size_bytes = (uint64_t)s.st_size;
    out->mtime_ns = os_mtime_ns(&s);
    out->inode = (uint64_t)s.st_ino;
    out->dev = (uint64_t)s.st_dev;
    out->mode = (unsigned)s.st_mode & 07777;
    return TL_OK;
}

bool tl_file_exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

bool tl_dir_exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

tl_status tl_fs_free_bytes(uint64_t *out, const char *path, tl_err *e) {
    struct statvfs s;
    char *at = tl_path_abs(path);
    while (statvfs(at, &s) != 0) {
        int err = errno;
        bool top = tl_str_eq(at, "/");
        char *up = tl_path_dir(at);
        free(at);
        at = up;
        if (top || err != ENOENT) {
            free(at);
            return tl_file_fail("read the free space of", path, err, e);
        }
    }
    free(at);
    *out = (uint64_t)s.f_bavail * (s.f_frsize ? s.f_frsize : s.f_bsize);
    return TL_OK;
}

void tl_fs_type(char out[32], const char *path) {
    char *at = tl_path_abs(path);
    while (!tl_file_exists(at) && !tl_str_eq(at, "/")) {
        char *up = tl_path_dir(at);
        free(at);
        at = up;
    }
    os_fs_name(out, at);
    free(at);
}

bool tl_fs_is_network(const char *type) {
    static const char *const names[] = {
        "nfs",      "nfs4",  "smbfs", "cifs",     "smb2",      "lustre",     "ceph",           "gpfs",
        "afs",      "afpfs", "9p",    "beegfs",   "glusterfs", "fuse.sshfs", "fuse.glusterfs", "webdav",
        "virtiofs", "ocfs2", "gfs2",  "orangefs", "panfs",     "coda",       "vboxsf"};
    for (size_t i = 0; i < TL_COUNT(names); i++)
        if (tl_str_eq(type, names[i])) return true;
    return false;
}

/* ---- reading ---- */

tl_status tl_file_read(tl_buf *out, const char *path, size_t max_bytes, tl_err *e) {
    tl_status st = TL_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tl_file_fail("read", path, errno, e);
    char *block = tl_xalloc(1 << 16);
    size_t total = 0;
    for (;;) {
        ssize_t n = read(fd, block, 1 << 16);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            st = errno == EISDIR ? tl_fail(e, TL_IO, "cannot read '%s': it is a folder", path)
                                 : tl_file_fail("read", path, errno, e);
            goto out;
        }
        if (n == 0) break;
        total += (size_t)n;
        size_t before = out->len;
        if (max_bytes == 0 || total <= max_bytes) tl_buf_add(out, block, (size_t)n);
        if ((max_bytes && total > max_bytes) || out->len - before != (size_t)n) {
            st = tl_fail(e, TL_LIMIT, "'%s' is larger than the limit of %zu bytes", path,
                         max_bytes ? max_bytes : out->max);
            goto out;
        }
    }
out:
    free(block);
    close(fd);
    return st;
}

/* ---- atomic writing ---- */

struct tl_file_out {
    FILE *f;
    char *target, *temporary;
};

/* Through links to the real file, so that a linked configuration or database stays linked. */
static tl_status real_target(char **out, const char *path, tl_err *e) {
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISLNK(s.st_mode)) {
        *out = tl_path_abs(path);
        return TL_OK;
    }
    char *real = realpath(path, NULL);
    *out = tl_xstrdup(real);
    free(real);
    return *out ? TL_OK : tl_fail(e, TL_IO, "cannot write '%s': it is a link that points nowhere", path);
}

tl_status tl_file_out_open(tl_file_out **out, const char *path, tl_err *e) {
    *out = NULL;
    tl_status st = TL_OK;
    tl_file_out *o = tl_xalloc(sizeof *o);
    char id[27];
    TRY(real_target(&o->target, path, e));
    struct stat s;
    bool exists = stat(o->target, &s) == 0;
    if (exists && S_ISDIR(s.st_mode)) {
        st = tl_fail(e, TL_IO, "cannot write '%s': it is a folder", path);
        goto out;
    }
    tl_os_ulid(id);
    o->temporary = tl_xprintf("%s.tmp-%s", o->target, id + 16);
    int fd = open(o->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : 0666);
    if (fd < 0) {
        int err = errno;
        free(o->temporary); /* not ours: must not be removed */
        o->temporary = NULL;
        st = tl_file_fail("write", path, err, e);
        goto out;
    }
    o->f = fdopen(fd, "w+b");
    if (exists && fchmod(fd, s.st_mode & 07777) != 0) {
        st = tl_file_fail("set the mode of", o->temporary, errno, e);
        goto out;
    }
    *out = o;
    o = NULL;
out:
    tl_file_out_drop(o);
    return st;
}

FILE *tl_file_out_stream(tl_file_out *o) {
    return o->f;
}

void tl_file_out_drop(tl_file_out *o) {
    if (!o) return;
    if (o->f) fclose(o->f);
    if (o->temporary) unlink(o->temporary);
    free(o->temporary);
    free(o->target);
    free(o);
}

static void sync_folder_of(const char *path) {
    char *dir = tl_path_dir(path);
    int fd = open(dir, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* some file systems refuse it for folders: the file itself is safe already */
        close(fd);
    }
    free(dir);
}

tl_status tl_file_out_commit(tl_file_out *o, tl_err *e) {
    tl_status st = TL_OK;
    bool failed_before = ferror(o->f) != 0;
    errno = failed_before ? EIO : 0;
    if (fflush(o->f) != 0 || failed_before || os_sync(fileno(o->f)) != 0) {
        int err = errno ? errno : EIO;
        uint64_t free_bytes = 0;
        /* stdio forgets why an earlier write failed; a disk without room is by far the likeliest reason. */
        if (failed_before && tl_fs_free_bytes(&free_bytes, o->target, NULL) == TL_OK && free_bytes < 65536)
            err = ENOSPC;
        st = tl_file_fail("write", o->target, err, e);
        goto out;
    }
    int rc = fclose(o->f);
    o->f = NULL;
    if (rc != 0 || rename(o->temporary, o->target) != 0) {
        st = tl_file_fail("write", o->target, errno, e);
        goto out;
    }
    free(o->temporary);
    o->temporary = NULL;
    sync_folder_of(o->target);
out:
    tl_file_out_drop(o);
    return st;
}

tl_status tl_file_write(const char *path, const void *p, size_t n, tl_err *e) {
    tl_file_out *o;
    tl_status st = tl_file_out_open(&o, path, e);
    if (st != TL_OK) return st;
    errno = 0;
    if (n > 0 && fwrite(p, 1, n, o->f) != n) {
        st = tl_file_fail("write", path, errno ? errno : EIO, e);
        tl_file_out_drop(o);
        return st;
    }
    return tl_file_out_commit(o, e);
}

tl_status tl_file_copy(const char *to, const char *from, tl_err *e) {
    tl_status st = TL_OK;
    tl_file_out *o = NULL;
    char *block = NULL;
    FILE *in = fopen(from, "rbe");
    if (!in) return tl_file_fail("read", from, errno, e);
    TRY(tl_file_out_open(&o, to, e));
    block = tl_xalloc(1 << 20);
    for (size_t n; (n = fread(block, 1, 1 << 20, in)) > 0;) {
        if (fwrite(block, 1, n, o->f) != n) {
            st = tl_file_fail("write", to, errno, e);
            goto out;
        }
    }
    if (ferror(in)) {
        st = tl_file_fail("read", from, errno, e);
        goto out;
    }
    struct stat s;
    if (fstat(fileno(in), &s) == 0 && fchmod(fileno(o->f), s.st_mode & 0777) != 0) {
        st = tl_file_fail("set the mode of", to, errno, e);
        goto out;
    }
    st = tl_file_out_commit(o, e);
    o = NULL;
out:
    tl_file_out_drop(o);
    free(block);
    fclose(in);
    return st;
}

tl_status tl_file_remove(const char *path, tl_err *e) {
    if (unlink(path) == 0 || errno == ENOENT) return TL_OK;
    return tl_file_fail("remove", path, errno, e);
}

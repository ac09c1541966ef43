/* Folders: making, listing, removing without leaving the root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_impl.h"

enum { DEPTH_MAX = 256 };

tl_status tl_dir_make(const char *path, tl_err *e) {
    char *full = tl_path_abs(path);
    tl_status st = TL_OK;
    for (char *p = full + 1;; p++) {
        if (*p != '/' && *p != 0) continue;
        bool last = *p == 0;
        *p = 0;
        if (mkdir(full, 0777) != 0) {
            int err = errno;
            /* EEXIST, or an existing parent on a read-only or foreign disk: all is well if it is a folder. */
            if (!tl_dir_exists(full)) {
                st = err == EEXIST || err == ENOTDIR
                         ? tl_fail(e, TL_IO, "cannot make the folder '%s': '%s' is a file", path, full)
                         : tl_file_fail("make the folder", full, err, e);
                break;
            }
        }
        if (last) break;
        *p = '/';
    }
    free(full);
    return st;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_names(tl_names *out, DIR *d) {
    for (struct dirent *entry; (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            TL_PUSH(out->v, out->n, out->cap, tl_xstrdup(entry->d_name));
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, by_bytes);
}

tl_status tl_dir_list(tl_names *out, const char *path, tl_err *e) {
    memset(out, 0, sizeof *out);
    DIR *d = opendir(path);
    if (!d) return tl_file_fail("list the folder", path, errno, e);
    read_names(out, d);
    closedir(d);
    return TL_OK;
}

void tl_names_free(tl_names *n) {
    for (size_t i = 0; i < n->n; i++) free(n->v[i]);
    free(n->v);
    memset(n, 0, sizeof *n);
}

/* ---- recursive removal ---- */

typedef struct removal {
    const char *root; /* for messages */
    dev_t dev;
    tl_err *e;
} removal;

static tl_status remove_below(removal *r, int dir_fd, unsigned depth);

static tl_status remove_entry(removal *r, int dir_fd, const char *name, unsigned depth) {
    struct stat s;
    if (fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? TL_OK : tl_file_fail("remove", name, errno, r->e);
    if (!S_ISDIR(s.st_mode)) {
        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) return TL_OK;
        tl_status st = tl_file_fail("remove", name, errno, r->e);
        tl_wrap(r->e, "while removing '%s'", r->root);
        return st;
    }
    if (s.st_dev != r->dev)
        return tl_fail(r->e, TL_REFUSED, "while removing '%s': '%s' in it is another file system", r->root,
                       name);
    /* O_NOFOLLOW: should somebody put a link in its place just now, the open fails instead of leaving the
     * root. */
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return tl_file_fail("open the folder", name, errno, r->e);
    tl_status st = remove_below(r, fd, depth + 1);
    if (st == TL_OK && unlinkat(dir_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        st = tl_file_fail("remove the folder", name, errno, r->e);
    return st;
}

/* Takes dir_fd. */
static tl_status remove_below(removal *r, int dir_fd, unsigned depth) {
    tl_status st = TL_OK;
    DIR *d = fdopendir(dir_fd);
    if (!d) {
        int err = errno;
        close(dir_fd);
        return tl_file_fail("list the folder", r->root, err, r->e);
    }
    tl_names names = {0};
    if (depth > DEPTH_MAX) {
        st = tl_fail(r->e, TL_LIMIT, "'%s' is nested deeper than %d folders", r->root, DEPTH_MAX);
        goto out;
    }
    read_names(&names, d);
    for (size_t i = 0; i < names.n; i++) TRY(remove_entry(r, dirfd(d), names.v[i], depth));
out:
    tl_names_free(&names);
    closedir(d);
    return st;
}

/* Is `inner` the folder `outer` or somewhere below it? */
static bool lies_in(const char *inner, const char *outer) {
    size_t n = strlen(outer);
    if (tl_str_eq(outer, "/")) return true;
    return tl_str_starts(inner, outer) && (inner[n] == 0 || inner[n] == '/');
}

static bool holds_real(const char *root, char *place) {
    char *real = realpath(place, NULL);
    bool yes = real && lies_in(real, root);
    free(real);
    free(place);
    return yes;
}

tl_status tl_dir_remove(const char *path, tl_err *e) {
    struct stat s;
    if (lstat(path, &s) != 0) return errno == ENOENT ? TL_OK : tl_file_fail("remove", path, errno, e);
    if (!S_ISDIR(s.st_mode)) return tl_file_remove(path, e);
    char *real = realpath(path, NULL);
    if (!real) return tl_file_fail("remove", path, errno, e);
    tl_status st = TL_OK;
    if (holds_real(real, tl_path_home()) || holds_real(real, tl_path_cwd())) {
        st = tl_fail(e, TL_REFUSED, "refusing to remove '%s': it holds the home folder or the working folder",
                     path);
        goto out;
    }
    removal r = {.root = path, .dev = s.st_dev, .e = e};
    int fd = open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        st = tl_file_fail("remove", path, errno, e);
        goto out;
    }
    TRY(remove_below(&r, fd, 0));
    if (rmdir(real) != 0 && errno != ENOENT) st = tl_file_fail("remove the folder", path, errno, e);
out:
    free(real);
    return st;
}

tl_status tl_dir_temp(char **out, const char *prefix, tl_err *e) {
    const char *base = tl_env("TMPDIR");
    char *dir = tl_xprintf("%s/%s-XXXXXX", base ? base : "/tmp", prefix);
    if (!mkdtemp(dir)) {
        tl_status st = tl_file_fail("make the temporary folder", dir, errno, e);
        free(dir);
        *out = NULL;
        return st;
    }
    *out = dir;
    return TL_OK;
}

/* Paths as text, and the few places that tally knows by name. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_impl.h"

char *tl_path_join(const char *dir, const char *name) {
    if (name[0] == '/' || !dir || !*dir) return tl_xstrdup(name);
    return tl_xprintf("%s%s%s", dir, tl_str_ends(dir, "/") ? "" : "/", name);
}

char *tl_path_cwd(void) {
    char *p = getcwd(NULL, 0);
    char *copy = tl_xstrdup(p ? p : "/"); /* a working folder that was removed */
    free(p);
    return copy;
}

char *tl_path_abs(const char *path) {
    char *cwd = tl_path_cwd(), *whole = tl_path_join(cwd, path);
    free(cwd);
    tl_buf b;
    tl_buf_init(&b, 0);
    for (const char *p = whole; *p;) {
        p += strspn(p, "/");
        size_t n = strcspn(p, "/");
        bool up = n == 2 && memcmp(p, "..", 2) == 0, here = n == 0 || (n == 1 && *p == '.');
        if (up) {
            while (b.len > 0 && b.p[b.len - 1] != '/') b.p[--b.len] = 0;
            if (b.len > 0) b.p[--b.len] = 0;
        } else if (!here) {
            tl_buf_char(&b, '/');
            tl_buf_add(&b, p, n);
        }
        p += n;
    }
    if (b.len == 0) tl_buf_char(&b, '/');
    free(whole);
    return tl_buf_take(&b);
}

static size_t without_slashes(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    return n;
}

char *tl_path_dir(const char *path) {
    size_t n = without_slashes(path);
    while (n > 0 && path[n - 1] != '/') n--;
    if (n == 0) return tl_xstrdup(".");
    while (n > 1 && path[n - 1] == '/') n--;
    return tl_xstrndup(path, n);
}

const char *tl_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *tl_path_home(void) {
    const char *home = tl_env("HOME");
    if (home) return tl_xstrdup(home);
    struct passwd p, *found = NULL;
    char text[4096];
    if (getpwuid_r(getuid(), &p, text, sizeof text, &found) == 0 && found) return tl_xstrdup(found->pw_dir);
    return tl_xstrdup("/");
}

char *tl_path_cache(void) {
    const char *own = tl_env("TALLY_CACHE"), *xdg = tl_env("XDG_CACHE_HOME");
    if (own) return tl_path_abs(own);
    if (xdg && xdg[0] == '/')
        return tl_path_join(xdg, "tally"); /* the XDG rule: relative ones are to be ignored */
    char *base = os_cache_home(), *path = tl_path_join(base, "tally");
    free(base);
    return path;
}

char *tl_path_self(void) {
    return os_self_path();
}

static bool is_program(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

char *tl_path_which(const char *program) {
    if (!*program) return NULL;
    if (strchr(program, '/')) return is_program(program) ? tl_path_abs(program) : NULL;
    const char *path = tl_env("PATH");
    for (const char *p = path ? path : "/usr/bin:/bin";; p++) {
        size_t n = strcspn(p, ":");
        char *dir = n ? tl_xstrndup(p, n) : tl_xstrdup("."); /* an empty part means the working folder */
        char *full = tl_path_join(dir, program), *found = is_program(full) ? tl_path_abs(full) : NULL;
        free(full);
        free(dir);
        if (found) return found;
        p += n;
        if (*p == 0) return NULL;
    }
}

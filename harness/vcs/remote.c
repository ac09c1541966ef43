/* Remotes, and taking secrets and names of people out of URLs. The library expands url.insteadOf, where tokens like to
 * live, so what it gives is scrubbed, not what the configuration file says. */
#include <ctype.h>

#include "vcs/vcs_impl.h"

/* Appends a path with a person's home folder shown as "~". */
static void add_path(tl_buf *b, const char *path) {
    static const char *const homes[] = {"/home/", "/Users/", "/export/home/"};
    const char *home = getenv("HOME");
    size_t n = home ? strlen(home) : 0;
    while (n > 1 && home[n - 1] == '/') n--;
    if (n > 1 && strncmp(path, home, n) == 0 && (path[n] == '/' || path[n] == 0)) {
        tl_buf_fmt(b, "/~%s", path + n);
        return;
    }
    for (size_t i = 0; i < TL_COUNT(homes); i++) {
        if (!tl_str_starts(path, homes[i])) continue;
        const char *rest = path + strlen(homes[i]);
        tl_buf_fmt(b, "/~%s", rest + strcspn(rest, "/"));
        return;
    }
    if (path[0] == '/' && path[1] == '~') tl_buf_fmt(b, "/~%s", path + 2 + strcspn(path + 2, "/"));
    else if (strncmp(path, "/root/", 6) == 0) tl_buf_fmt(b, "/~%s", path + 5);
    else tl_buf_str(b, path);
}

static const char *last_of(const char *from, size_t n, char c) {
    for (size_t i = n; i > 0; i--)
        if (from[i - 1] == c) return from + i - 1;
    return NULL;
}

/* "host", "host:22", "[::1]", "[::1]:22": anything else behind the colon is part of a password. */
static bool is_host_port(const char *p, size_t n) {
    const char *from = p[0] == '[' ? last_of(p, n, ']') : p;
    if (!from) return false;
    const char *colon = memchr(from, ':', n - (size_t)(from - p));
    for (const char *q = colon ? colon + 1 : p + n; q < p + n; q++)
        if (!isdigit((unsigned char)*q)) return false;
    return true;
}

/* What follows "scheme://". */
static void add_authority_and_path(tl_buf *b, const char *p) {
    size_t n = strcspn(p, "/?#");
    const char *at = last_of(p, n, '@');
    if (!at && !is_host_port(p, n)) at = strrchr(p, '@'); /* a '/', '?' or '#' inside a password */
    if (at) p = at + 1;
    n = strcspn(p, "/?#");
    tl_buf_add(b, p, n);
    p += n;
    char *path = tl_xstrndup(p, strcspn(p, "?#")); /* queries carry tokens, and git's URLs need none */
    add_path(b, path);
    free(path);
}

/* "git@host:path" keeps its git; every other user name goes. */
static void add_scp(tl_buf *b, const char *url) {
    size_t n = strcspn(url, "/");
    const char *at = last_of(url, n, '@');
    if (at && !(at - url == 3 && strncmp(url, "git", 3) == 0)) url = at + 1;
    char *plain = tl_xstrndup(url, strcspn(url, "?#"));
    char *colon = strchr(plain, ':');
    if (colon && colon[1] == '/') {
        tl_buf_add(b, plain, (size_t)(colon + 1 - plain));
        add_path(b, colon + 1);
    } else {
        add_path(b, plain);
    }
    free(plain);
}

static size_t helper_length(const char *url) {
    size_t n = 0;
    while (isalnum((unsigned char)url[n]) || url[n] == '-' || url[n] == '+') n++;
    return n > 0 && strncmp(url + n, "::", 2) == 0 ? n : 0;
}

char *tl_vcs_scrub_url(const char *url) {
    tl_buf b;
    tl_buf_init(&b, 0);
    for (size_t n; (n = helper_length(url)) > 0; url += n + 2) {
        tl_buf_add(&b, url, n + 2);
        if (n == 3 && strncmp(url, "ext", 3) == 0) { /* a command line: anything may stand in it */
            tl_buf_str(&b, "(command)");
            return tl_buf_take(&b);
        }
    }
    const char *scheme = strstr(url, "://");
    if (scheme) {
        tl_buf_add(&b, url, (size_t)(scheme + 3 - url));
        add_authority_and_path(&b, scheme + 3);
    } else if (url[0] == '/') {
        add_path(&b, url);
    } else {
        add_scp(&b, url);
    }
    return tl_buf_take(&b);
}

void vcs_read_remotes(tl_vcs *v, git_repository *repo) {
    git_strarray names = {0};
    if (git_remote_list(&names, repo) != 0) {
        v->complete = false;
        return;
    }
    v->remotes = tl_xalloc((names.count + 1) * sizeof *v->remotes);
    for (size_t i = 0; i < names.count; i++) {
        git_remote *remote = NULL;
        if (git_remote_lookup(&remote, repo, names.strings[i]) != 0) continue;
        const char *url = git_remote_url(remote);
        if (url) {
            tl_vcs_remote *r = &v->remotes[v->n_remotes++];
            r->name = tl_xstrdup(names.strings[i]);
            r->url = tl_vcs_scrub_url(url);
        }
        git_remote_free(remote);
    }
    git_strarray_dispose(&names);
}

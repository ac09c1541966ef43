/* Remotes, and taking secrets and names of people out of URLs. Tokens like to live in
 * url.insteadOf, so a URL is expanded first, as git does, and scrubbed then. */
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
    if (path[0] == '/' && path[1] == '~')
        tl_buf_fmt(b, "/~%s", path + 2 + strcspn(path + 2, "/"));
    else if (strncmp(path, "/root/", 6) == 0)
        tl_buf_fmt(b, "/~%s", path + 5);
    else
        tl_buf_str(b, path);
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

/* ---- reading them ---- */

typedef struct rewrite {
    char *from, *to; /* url.<to>.insteadOf = <from> */
} rewrite;

typedef struct found {
    rewrite *rewrites;
    size_t n_rewrites, cap_rewrites;
    tl_vcs_remote *remotes;
    size_t n_remotes, cap_remotes;
} found;

/* The middle of "section.<middle>.key", or NULL when the name is not of that form. Owned by the caller. */
static char *subsection(const char *name, const char *section, const char *key) {
    size_t n = strlen(name), ns = strlen(section), nk = strlen(key);
    if (n <= ns + nk || !tl_str_starts(name, section) || !tl_str_ends(name, key)) return NULL;
    return tl_xstrndup(name + ns, n - ns - nk);
}

static void take_entry(found *f, const git_config_entry *entry) {
    char *name = subsection(entry->name, "remote.", ".url");
    if (name) {
        for (size_t i = 0; i < f->n_remotes; i++) {
            if (!tl_str_eq(f->remotes[i].name, name)) continue;
            free(name); /* a second URL of the same remote is for pushing too: the first one counts */
            return;
        }
        TL_PUSH(f->remotes, f->n_remotes, f->cap_remotes, ((tl_vcs_remote){name, tl_xstrdup(entry->value)}));
        return;
    }
    char *to = subsection(entry->name, "url.", ".insteadof");
    if (to && *entry->value)
        TL_PUSH(f->rewrites, f->n_rewrites, f->cap_rewrites, ((rewrite){tl_xstrdup(entry->value), to}));
    else
        free(to);
}

/* git's rule: the longest prefix wins. */
static char *expand(const found *f, const char *url) {
    const rewrite *best = NULL;
    for (size_t i = 0; i < f->n_rewrites; i++)
        if (tl_str_starts(url, f->rewrites[i].from) &&
            (!best || strlen(f->rewrites[i].from) > strlen(best->from)))
            best = &f->rewrites[i];
    return best ? tl_xprintf("%s%s", best->to, url + strlen(best->from)) : tl_xstrdup(url);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const tl_vcs_remote *)a)->name, ((const tl_vcs_remote *)b)->name);
}

/* One plain walk through the configuration. git_remote_list and git_remote_url would do, but they go through
 * regular expressions, and libgit2 1.5 leaks some 20 kB at each match. */
void vcs_read_remotes(tl_vcs *v, git_repository *repo) {
    git_config *config = NULL, *snapshot = NULL;
    git_config_iterator *it = NULL;
    git_config_entry *entry;
    found f = {0};
    if (git_repository_config(&config, repo) == 0 && git_config_snapshot(&snapshot, config) == 0 &&
        git_config_iterator_new(&it, snapshot) == 0)
        while (git_config_next(&entry, it) == 0)
            if (entry->value) take_entry(&f, entry);
    if (!it) v->complete = false;
    git_config_iterator_free(it);
    git_config_free(snapshot);
    git_config_free(config);
    for (size_t i = 0; i < f.n_remotes; i++) {
        char *whole = expand(&f, f.remotes[i].url);
        free(f.remotes[i].url);
        f.remotes[i].url = tl_vcs_scrub_url(whole);
        free(whole);
    }
    for (size_t i = 0; i < f.n_rewrites; i++) {
        free(f.rewrites[i].from);
        free(f.rewrites[i].to);
    }
    free(f.rewrites);
    if (f.n_remotes > 1) qsort(f.remotes, f.n_remotes, sizeof *f.remotes, by_name);
    v->remotes = f.remotes;
    v->n_remotes = f.n_remotes;
}

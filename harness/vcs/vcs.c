/* Reading a repository's state. Every libgit2 getter may answer with a negative error where a boolean is
 * expected (a garbage HEAD makes all of them do so), so each is compared with 1 or checked for < 0. */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vcs/vcs_impl.h"

enum { DEPTH_MAX = 8 };

static void read_repository(tl_vcs *v, git_repository *repo, unsigned depth);

void vcs_library_open(void) {
    git_libgit2_init();
}

void vcs_library_close(void) {
    git_libgit2_shutdown();
}

char *vcs_last_error(void) {
    const git_error *err = git_error_last();
    char *text = tl_xstrdup(err && err->message ? err->message : "unknown reason");
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
    return text;
}

/* ---- opening ---- */

/* Does any folder from `dir` upwards hold something called .git? Then "no repository" would be wrong. */
static char *git_entry_above(const char *dir, bool exact) {
    char *at = realpath(dir, NULL);
    char *found = NULL;
    while (at && !found) {
        char *name = tl_xprintf("%s/.git", tl_str_eq(at, "/") ? "" : at);
        struct stat s;
        if (lstat(name, &s) == 0)
            found = name;
        else
            free(name);
        char *slash = strrchr(at, '/');
        if (exact || tl_str_eq(at, "/")) break;
        if (slash == at)
            slash[1] = 0;
        else
            *slash = 0;
    }
    free(at);
    return found;
}

static void explain_open(tl_vcs_state *state, char **message, int rc, const char *dir, bool exact) {
    char *why = vcs_last_error(), *entry = git_entry_above(dir, exact);
    if (rc == GIT_EOWNER || strstr(why, "safe.directory") || strstr(why, "not owned by current user")) {
        char *top = entry ? tl_xstrndup(entry, strlen(entry) - strlen("/.git")) : tl_xstrdup(dir);
        *state = TL_VCS_REFUSED;
        *message = tl_xprintf("the repository belongs to another user; if you trust it: "
                              "git config --global --add safe.directory %s",
                              *top ? top : "/");
        free(top);
    } else if (strstr(why, "unsupported")) {
        *state = TL_VCS_UNSUPPORTED;
        *message = tl_xprintf("libgit2 %s cannot read this repository: %s", LIBGIT2_VERSION, why);
    } else if (entry) {
        *state = TL_VCS_BROKEN;
        *message = tl_xprintf(
            "'%s' exists, but is not a repository that can be read: %s; see what `git status` says", entry,
            why);
    } else if (rc == GIT_ENOTFOUND) {
        *state = TL_VCS_NONE;
        *message =
            tl_xstrdup(exact ? "not checked out" : "not under version control; to record what ran: git init");
    } else {
        *state = TL_VCS_BROKEN;
        *message = tl_xprintf("the repository cannot be read: %s", why);
    }
    free(entry);
    free(why);
}

void vcs_open(git_repository **repo, tl_vcs_state *state, char **message, const char *dir, bool exact) {
    *repo = NULL;
    *message = NULL;
    *state = TL_VCS_OK;
    git_error_clear();
    int rc = git_repository_open_ext(repo, dir, exact ? GIT_REPOSITORY_OPEN_NO_SEARCH : 0, NULL);
    if (rc == 0) return;
    *repo = NULL;
    explain_open(state, message, rc, dir, exact);
}

/* ---- HEAD ---- */

/* Something is wrong: keeps the first reason. */
static void problem(tl_vcs *v, tl_vcs_state state, const char *what) {
    char *why = vcs_last_error();
    if (!v->message) v->message = tl_xprintf("%s: %s", what, why);
    free(why);
    v->state = state;
    v->complete = false;
}

static void read_branch(tl_vcs *v, git_repository *repo) {
    git_reference *head = NULL;
    if (git_reference_lookup(&head, repo, "HEAD") != 0) return;
    const char *target = git_reference_symbolic_target(head);
    if (target)
        v->branch =
            tl_xstrdup(tl_str_starts(target, "refs/heads/") ? target + strlen("refs/heads/") : target);
    else
        v->detached = true;
    git_reference_free(head);
}

/* The tree of HEAD, or NULL with the state set. */
static git_tree *read_head(tl_vcs *v, git_repository *repo) {
    read_branch(v, repo);
    int unborn = git_repository_head_unborn(repo);
    if (unborn == 1) {
        v->state = TL_VCS_UNBORN;
        v->message = tl_xstrdup("the repository has no commit yet; to record what ran: git commit");
        return NULL;
    }
    git_oid id;
    if (unborn < 0 || git_reference_name_to_id(&id, repo, "HEAD") != 0) {
        problem(v, TL_VCS_BROKEN, "HEAD cannot be read");
        return NULL;
    }
    git_oid_tostr(v->commit, sizeof v->commit, &id);
    git_commit *commit = NULL;
    git_tree *tree = NULL;
    if (git_commit_lookup(&commit, repo, &id) != 0 || git_commit_tree(&tree, commit) != 0) {
        problem(v, TL_VCS_BROKEN, "the commit of HEAD cannot be read");
        git_commit_free(commit);
        return NULL;
    }
    git_oid_tostr(v->tree, sizeof v->tree, git_tree_id(tree));
    v->commit_time_s = git_commit_time(commit);
    git_commit_free(commit);
    return tree;
}

static void read_merge_state(tl_vcs *v, git_repository *repo) {
    const char *name = NULL;
    switch (git_repository_state(repo)) {
    case GIT_REPOSITORY_STATE_NONE:
        return;
    case GIT_REPOSITORY_STATE_MERGE:
        name = "merge";
        break;
    case GIT_REPOSITORY_STATE_REVERT:
    case GIT_REPOSITORY_STATE_REVERT_SEQUENCE:
        name = "revert";
        break;
    case GIT_REPOSITORY_STATE_CHERRYPICK:
    case GIT_REPOSITORY_STATE_CHERRYPICK_SEQUENCE:
        name = "cherry-pick";
        break;
    case GIT_REPOSITORY_STATE_BISECT:
        name = "bisect";
        break;
    case GIT_REPOSITORY_STATE_REBASE:
    case GIT_REPOSITORY_STATE_REBASE_INTERACTIVE:
    case GIT_REPOSITORY_STATE_REBASE_MERGE:
        name = "rebase";
        break;
    case GIT_REPOSITORY_STATE_APPLY_MAILBOX:
    case GIT_REPOSITORY_STATE_APPLY_MAILBOX_OR_REBASE:
        name = "apply-mailbox";
        break;
    default:
        name = "unknown";
        break;
    }
    v->merge_state = tl_xstrdup(name);
}

static void read_config(tl_vcs *v, git_repository *repo) {
    git_config *config = NULL, *snapshot = NULL;
    const char *text = NULL;
    int flag = 0;
    v->file_mode = -1;
    if (git_repository_config(&config, repo) == 0 && git_config_snapshot(&snapshot, config) == 0) {
        if (git_config_get_string(&text, snapshot, "core.autocrlf") == 0) v->autocrlf = tl_xstrdup(text);
        if (git_config_get_bool(&flag, snapshot, "core.filemode") == 0) v->file_mode = flag != 0;
    }
    git_config_free(snapshot);
    git_config_free(config);
}

/* ---- files ---- */

typedef struct status_walk {
    tl_vcs *v;
    char **nested; /* untracked repositories */
    size_t n_nested, cap_nested;
} status_walk;

static int count_status(const char *path, unsigned flags, void *ctx) {
    status_walk *w = ctx;
    const unsigned in_index = GIT_STATUS_INDEX_NEW | GIT_STATUS_INDEX_MODIFIED | GIT_STATUS_INDEX_DELETED |
                              GIT_STATUS_INDEX_RENAMED | GIT_STATUS_INDEX_TYPECHANGE;
    const unsigned in_tree =
        GIT_STATUS_WT_MODIFIED | GIT_STATUS_WT_DELETED | GIT_STATUS_WT_TYPECHANGE | GIT_STATUS_WT_RENAMED;
    if (flags & GIT_STATUS_CONFLICTED) w->v->n_conflict++;
    if (flags & in_index) w->v->n_index++;
    if (flags & in_tree) w->v->n_worktree++;
    if (flags & GIT_STATUS_WT_NEW) w->v->n_untracked++;
    if (flags & GIT_STATUS_WT_UNREADABLE) w->v->complete = false;
    if (flags & GIT_STATUS_WT_NEW && tl_str_ends(path, "/"))
        TL_PUSH(w->nested, w->n_nested, w->cap_nested, tl_xstrndup(path, strlen(path) - 1));
    return 0;
}

static void read_status(status_walk *w, git_repository *repo) {
    git_status_options o;
    git_status_options_init(&o, GIT_STATUS_OPTIONS_VERSION);
    o.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_RECURSE_UNTRACKED_DIRS |
              GIT_STATUS_OPT_INCLUDE_UNREADABLE;
    if (git_status_foreach_ext(repo, &o, count_status, w) != 0)
        problem(w->v, TL_VCS_BROKEN, "the working tree cannot be compared");
}

/* Files whose edits git is told not to look at: "clean" is then only a claim. */
static void count_hidden(tl_vcs *v, git_repository *repo) {
    git_index *index = NULL;
    if (git_repository_index(&index, repo) != 0) {
        problem(v, TL_VCS_BROKEN, "the index cannot be read");
        return;
    }
    const char *root = git_repository_workdir(repo);
    for (size_t i = 0; i < git_index_entrycount(index); i++) {
        const git_index_entry *entry = git_index_get_byindex(index, i);
        bool assumed = entry->flags & GIT_INDEX_ENTRY_VALID;
        bool skipped = entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE;
        if (!assumed && !skipped) continue;
        /* A sparse checkout skips files that are not there at all: nothing can be hidden in those. */
        char *path = tl_xprintf("%s%s", root, entry->path);
        struct stat s;
        if (assumed || lstat(path, &s) == 0) v->n_hidden++;
        free(path);
    }
    git_index_free(index);
    if (v->n_hidden > 0) v->complete = false;
}

/* ---- submodules and nested repositories ---- */

static tl_vcs *add_module(tl_vcs *v, const char *path) {
    v->modules = tl_xrealloc(v->modules, (v->n_modules + 1) * sizeof *v->modules);
    tl_vcs *m = &v->modules[v->n_modules++];
    memset(m, 0, sizeof *m);
    m->path = tl_xstrdup(path);
    m->file_mode = -1;
    snprintf(m->libgit2, sizeof m->libgit2, "%s", v->libgit2);
    return m;
}

static void read_module(tl_vcs *m, const char *root, unsigned depth) {
    char *dir = tl_xprintf("%s%s", root, m->path);
    git_repository *repo;
    vcs_open(&repo, &m->state, &m->message, dir, true);
    if (repo) read_repository(m, repo, depth + 1);
    /* A submodule that is not checked out cannot be dirty, and a repository that cannot be read may be. */
    m->complete = m->complete || (!repo && m->state == TL_VCS_NONE);
    git_repository_free(repo);
    free(dir);
}

/* What the index pins: submodules, also those that .gitmodules does not name. */
static void read_pinned(tl_vcs *v, git_repository *repo, unsigned depth) {
    git_index *index = NULL;
    if (git_repository_index(&index, repo) != 0) return; /* count_hidden has said so */
    const char *root = git_repository_workdir(repo);
    for (size_t i = 0; i < git_index_entrycount(index); i++) {
        const git_index_entry *entry = git_index_get_byindex(index, i);
        if (entry->mode != GIT_FILEMODE_COMMIT || git_index_entry_is_conflict(entry)) continue;
        tl_vcs *m = add_module(v, entry->path);
        m->is_submodule = true;
        git_oid_tostr(m->pinned, sizeof m->pinned, &entry->id);
        read_module(m, root, depth);
    }
    git_index_free(index);
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const tl_vcs *)a)->path, ((const tl_vcs *)b)->path);
}

static void read_modules(tl_vcs *v, git_repository *repo, const status_walk *w, unsigned depth) {
    if (depth >= DEPTH_MAX) {
        v->complete = false;
        return;
    }
    read_pinned(v, repo, depth);
    const char *root = git_repository_workdir(repo);
    for (size_t i = 0; i < w->n_nested; i++) read_module(add_module(v, w->nested[i]), root, depth);
    if (v->n_modules > 1) qsort(v->modules, v->n_modules, sizeof *v->modules, by_path);
}

/* ---- together ---- */

/* One hash for the whole dirty state: submodules show in the outer patch only as "-dirty". */
static void fold(tl_vcs *v) {
    v->dirty = v->n_index + v->n_worktree + v->n_untracked + v->n_conflict > 0 || v->merge_state || v->patch;
    for (size_t i = 0; i < v->n_modules; i++) {
        v->dirty = v->dirty || v->modules[i].dirty;
        v->complete = v->complete && v->modules[i].complete;
    }
    if (!v->dirty) return;
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_fmt(&b, "patch %s\nstate %s\n", v->patch_sha256, v->merge_state ? v->merge_state : "");
    for (size_t i = 0; i < v->n_modules; i++)
        tl_buf_fmt(&b, "module %s\n%s %s\n", v->modules[i].path, v->modules[i].commit,
                   v->modules[i].dirty_sha256);
    tl_sha256_hex(b.p, b.len, v->dirty_sha256);
    tl_buf_free(&b);
}

static void read_working_tree(tl_vcs *v, git_repository *repo, git_tree *head, unsigned depth) {
    status_walk w = {.v = v};
    read_status(&w, repo);
    count_hidden(v, repo);
    if (v->state == TL_VCS_OK || v->state == TL_VCS_UNBORN) vcs_read_patch(v, repo, head);
    read_modules(v, repo, &w, depth);
    for (size_t i = 0; i < w.n_nested; i++) free(w.nested[i]);
    free(w.nested);
    fold(v);
}

static void read_repository(tl_vcs *v, git_repository *repo, unsigned depth) {
    v->state = TL_VCS_OK;
    v->complete = true;
    v->shallow = git_repository_is_shallow(repo) == 1;
    v->worktree = git_repository_is_worktree(repo) == 1;
    read_config(v, repo);
    vcs_read_remotes(v, repo);
    git_tree *head = read_head(v, repo);
    bool bare = git_repository_is_bare(repo) == 1;
    read_merge_state(v, repo);
    if (bare && v->state == TL_VCS_OK) v->state = TL_VCS_BARE;
    if (!bare && v->state != TL_VCS_BROKEN) read_working_tree(v, repo, head, depth);
    git_tree_free(head);
}

static void read_prefix(tl_vcs *v, git_repository *repo, const char *dir) {
    const char *root = git_repository_workdir(repo);
    char *real_root = root ? realpath(root, NULL) : NULL, *real = realpath(dir, NULL);
    size_t n = real_root ? strlen(real_root) : 0;
    if (real && n > 0 && tl_str_starts(real, real_root)) {
        const char *rest = real + n;
        v->prefix = tl_xstrdup(rest + (*rest == '/'));
    } else {
        v->prefix = tl_xstrdup("");
    }
    free(real_root);
    free(real);
}

tl_status tl_vcs_read(tl_vcs *out, const char *path, tl_err *e) {
    memset(out, 0, sizeof *out);
    out->path = tl_xstrdup(".");
    out->file_mode = -1;
    struct stat s;
    if (stat(path, &s) != 0)
        return tl_fail(e, TL_NOT_FOUND, "cannot read the revision of '%s': it does not exist", path);
    char *dir = tl_xstrdup(path);
    if (!S_ISDIR(s.st_mode)) {
        char *slash = strrchr(dir, '/');
        if (slash) {
            slash[slash == dir] = 0; /* "/x" lies in "/" */
        } else {
            free(dir);
            dir = tl_xstrdup(".");
        }
    }
    vcs_library_open();
    int major, minor, patch;
    git_libgit2_version(&major, &minor, &patch);
    snprintf(out->libgit2, sizeof out->libgit2, "%d.%d.%d", major, minor, patch);
    git_repository *repo;
    vcs_open(&repo, &out->state, &out->message, dir, false);
    if (repo) {
        read_prefix(out, repo, dir);
        read_repository(out, repo, 0);
    }
    git_repository_free(repo);
    vcs_library_close();
    free(dir);
    return TL_OK;
}

void tl_vcs_free(tl_vcs *v) {
    for (size_t i = 0; i < v->n_remotes; i++) {
        free(v->remotes[i].name);
        free(v->remotes[i].url);
    }
    for (size_t i = 0; i < v->n_modules; i++) tl_vcs_free(&v->modules[i]);
    free(v->remotes);
    free(v->modules);
    free(v->message);
    free(v->path);
    free(v->prefix);
    free(v->branch);
    free(v->merge_state);
    free(v->patch);
    free(v->autocrlf);
    memset(v, 0, sizeof *v);
}

/* vcs: what version control knows of a folder: revision, exact dirty state as a patch with its hash,
 * submodules, remotes without credentials; and a file as it was at an old revision.
 *
 * Not for: changing anything in a repository. Nothing is written, no network is used, no hook or filter
 * program runs. Sole user of libgit2. Its owner check (safe.directory) stays on. Threads: one call at a time
 * per repository; calls on different threads are fine.
 */
#ifndef TL_VCS_H
#define TL_VCS_H

#include "base/base.h"

typedef enum tl_vcs_state {
    TL_VCS_NONE = 0,    /* the folder is in no repository */
    TL_VCS_UNBORN,      /* a repository without a commit */
    TL_VCS_OK,          /* HEAD is a commit that can be read */
    TL_VCS_BARE,        /* a commit, but no working tree: nothing can be dirty */
    TL_VCS_BROKEN,      /* there is one, but it cannot be read */
    TL_VCS_REFUSED,     /* it belongs to another user, and git's safe.directory does not list it */
    TL_VCS_UNSUPPORTED, /* a format that this libgit2 cannot read (SHA-256 repositories, unknown extensions)
                         */
} tl_vcs_state;

typedef struct tl_vcs_remote {
    char *name;
    char *url; /* after url.insteadOf, scrubbed by tl_vcs_scrub_url */
} tl_vcs_remote;

typedef struct tl_vcs tl_vcs;
struct tl_vcs {
    tl_vcs_state state;
    char *message; /* why the state is not ok, with what to do about it; NULL when ok */
    char *path;   /* relative to the outer repository for submodules and nested ones; "." for the outermost */
    char *prefix; /* where in the working tree the asked folder lies: "", "a/b" */

    char commit[65]; /* hex, "" when there is none */
    char tree[65];
    int64_t commit_time_s; /* committer's, since 1970; 0 when there is none. No names, no addresses. */
    char *branch;          /* short name; NULL when detached */
    bool detached, shallow, worktree;
    char *merge_state; /* "merge", "rebase", "cherry-pick", ...; NULL when nothing is in progress */

    unsigned n_index, n_worktree, n_untracked, n_conflict; /* files, this repository's own */
    unsigned n_hidden; /* files marked assume-unchanged or skip-worktree: their edits are invisible to git */
    bool dirty;        /* anything above, a merge in progress, or a dirty submodule or nested repository */
    bool complete; /* false: a problem, a hidden file or an unreadable one keeps "clean" from being certain */
    char *patch;   /* the difference HEAD -> working tree, untracked included; NULL when clean */
    size_t patch_len;
    bool patch_cut;        /* `patch` is only its beginning (TL_VCS_PATCH_MAX); the hash covers all of it */
    char patch_sha256[65]; /* of this repository's own whole patch; "" when clean */
    char dirty_sha256[65]; /* the same with submodules and nested repositories folded in; "" when clean */

    tl_vcs_remote *remotes;
    size_t n_remotes;
    tl_vcs *modules; /* submodules and nested untracked repositories, sorted by path */
    size_t n_modules;
    bool
        is_submodule; /* this record is a registered submodule (else a nested repository, or the outermost) */
    char pinned[65];  /* submodule: the commit the outer index asks for; "" otherwise */

    char *autocrlf; /* "true", "input", or NULL when unset: changes what dirty means */
    int file_mode;  /* core.fileMode: 1, 0, or -1 when unset */
    char libgit2[16];
};

/* Bytes of patch text kept; a file above TL_VCS_FILE_MAX enters the patch by path, size and SHA-256 only. */
#define TL_VCS_PATCH_MAX (4u << 20)
#define TL_VCS_FILE_MAX (1u << 20)

/* Reads the repository that holds `path` (a file or a folder). Never fails because of a repository's
 * condition: that is `state` and `message`. TL_NOT_FOUND when `path` itself does not exist. Free with
 * tl_vcs_free in every case. */
tl_status tl_vcs_read(tl_vcs *out, const char *path, tl_err *e) TL_MUST_USE;
void tl_vcs_free(tl_vcs *v); /* zeroed ok, twice ok */

/* All of it but the patch text. Absent facts are null. Owned by the caller. */
json_t *tl_vcs_json(const tl_vcs *v);
const char *tl_vcs_state_name(tl_vcs_state s); /* "none", "unborn", "ok", ... */
/* "ab12cd3 (clean)", "ab12cd3 (modified 5f0e11d2)", "no version control": for people. Owned by the caller. */
char *tl_vcs_summary(const tl_vcs *v);

/* A URL without user, password, token or home folder; host, port and path stay. Owned by the caller. */
char *tl_vcs_scrub_url(const char *url);

/* Appends `file` (relative to the repository's root) as it was at `revision` (anything git understands: hash,
 * tag, "HEAD~2"). TL_NOT_FOUND names which of the three is missing; TL_REFUSED for a foreign repository. */
tl_status tl_vcs_blob_at(tl_buf *out, const char *repo_path, const char *revision, const char *file,
                         tl_err *e) TL_MUST_USE;

#endif

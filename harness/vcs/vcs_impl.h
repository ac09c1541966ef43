/* vcs, inside only. */
#ifndef TL_VCS_IMPL_H
#define TL_VCS_IMPL_H

#include <git2.h>

#include "vcs/vcs.h"

/* git_libgit2_init is counted; each public call takes one and gives it back. */
void vcs_library_open(void);
void vcs_library_close(void);

/* Opens the repository that holds `dir` without changing anything. On failure *repo is NULL and *state and
 * *message (owned by the caller) say why. `exact`: dir itself must be the repository (submodules), no search
 * upwards. */
void vcs_open(git_repository **repo, tl_vcs_state *state, char **message, const char *dir, bool exact);
/* The library's words for the last error on this thread, one line. Owned by the caller. */
char *vcs_last_error(void);

/* patch.c: fills patch, patch_len, patch_cut, patch_sha256 and clears `complete` on trouble. head may be
 * NULL. */
void vcs_read_patch(tl_vcs *v, git_repository *repo, git_tree *head);

/* remote.c */
void vcs_read_remotes(tl_vcs *v, git_repository *repo);

#endif

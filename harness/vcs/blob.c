/* A file as it was at an old revision. */
#include "vcs/vcs_impl.h"

static tl_status not_opened(tl_vcs_state state, const char *message, const char *path, tl_err *e) {
    tl_status code = state == TL_VCS_NONE ? TL_NOT_FOUND : state == TL_VCS_REFUSED ? TL_REFUSED : TL_IO;
    return tl_fail(e, code, "cannot read an old revision in '%s': %s", path, message);
}

static tl_status find_tree(git_tree **out, git_repository *repo, const char *revision, tl_err *e) {
    git_object *found = NULL, *tree = NULL;
    int rc = git_revparse_single(&found, repo, revision);
    if (rc == 0) rc = git_object_peel(&tree, found, GIT_OBJECT_TREE);
    git_object_free(found);
    *out = (git_tree *)tree;
    if (rc == 0) return TL_OK;
    char *why = vcs_last_error();
    tl_fail(e, TL_NOT_FOUND, "no revision '%s' in this repository: %s", revision, why);
    free(why);
    if (git_repository_is_shallow(repo) == 1)
        tl_remedy(e, "this is a shallow clone: git fetch --unshallow");
    else
        tl_remedy(e, "fetch it from where it was published (git fetch --all --tags)");
    return TL_NOT_FOUND;
}

static tl_status read_entry(tl_buf *out, git_repository *repo, git_tree *tree, const char *revision,
                            const char *file, tl_err *e) {
    tl_status st = TL_OK;
    git_tree_entry *entry = NULL;
    git_blob *blob = NULL;
    if (git_tree_entry_bypath(&entry, tree, file) != 0) {
        st = tl_fail(e, TL_NOT_FOUND, "no file '%s' at revision '%s'", file, revision);
        goto out;
    }
    if (git_tree_entry_type(entry) != GIT_OBJECT_BLOB) {
        st = tl_fail(e, TL_INVALID, "'%s' at revision '%s' is not a file", file, revision);
        goto out;
    }
    if (git_blob_lookup(&blob, repo, git_tree_entry_id(entry)) != 0) {
        char *why = vcs_last_error();
        st = tl_fail(e, TL_IO, "cannot read '%s' at revision '%s': %s", file, revision, why);
        free(why);
        goto out;
    }
    size_t before = out->len, size = (size_t)git_blob_rawsize(blob);
    tl_buf_add(out, git_blob_rawcontent(blob), size);
    if (out->len - before != size)
        st = tl_fail(e, TL_LIMIT, "'%s' at revision '%s' has %zu bytes: more than the limit", file, revision,
                     size);
out:
    git_blob_free(blob);
    git_tree_entry_free(entry);
    return st;
}

tl_status tl_vcs_blob_at(tl_buf *out, const char *repo_path, const char *revision, const char *file,
                         tl_err *e) {
    tl_status st = TL_OK;
    git_repository *repo;
    git_tree *tree = NULL;
    tl_vcs_state state;
    char *message;
    vcs_library_open();
    vcs_open(&repo, &state, &message, repo_path, false);
    if (!repo) {
        st = not_opened(state, message, repo_path, e);
        goto out;
    }
    while (tl_str_starts(file, "./")) file += 2;
    TRY(find_tree(&tree, repo, revision, e));
    TRY(read_entry(out, repo, tree, revision, file, e));
out:
    git_tree_free(tree);
    git_repository_free(repo);
    free(message);
    vcs_library_close();
    return st;
}

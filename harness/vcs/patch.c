/* The dirty state as one patch and its hash. The hash is over the patch's own bytes: git's patch id ignores
 * white space, and here a blank may be the whole difference.
 *
 * What a patch cannot hold well is written as one line instead: a file above TL_VCS_FILE_MAX (a model beside
 * the scripts), a conflicted file, a nested repository (which has its own record), and what cannot be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vcs/vcs_impl.h"

typedef struct sink {
    tl_sha256 *hash;
    tl_buf text;
    bool cut;
} sink;

static void put(sink *s, const char *p, size_t n) {
    tl_sha256_add(s->hash, p, n);
    size_t room = TL_VCS_PATCH_MAX - s->text.len;
    if (n > room) s->cut = true;
    tl_buf_add(&s->text, p, n < room ? n : room);
}

/* Hex SHA-256 of a regular file (or of a link's target); false when it cannot be read. Never follows a link,
 * never waits for a pipe's other end. */
static bool hash_file(char out[65], uint64_t *size, const char *path) {
    struct stat s;
    if (lstat(path, &s) != 0) return false;
    *size = (uint64_t)s.st_size;
    if (S_ISLNK(s.st_mode)) {
        char target[4096];
        ssize_t n = readlink(path, target, sizeof target);
        if (n < 0) return false;
        tl_sha256_hex(target, (size_t)n, out);
        return true;
    }
    int fd = S_ISREG(s.st_mode) ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd < 0) return false;
    enum { BLOCK = 1 << 20 };
    char *block = tl_xalloc(BLOCK);
    tl_sha256 *h = tl_sha256_new();
    ssize_t n;
    while ((n = read(fd, block, BLOCK)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) tl_sha256_add(h, block, (size_t)n);
    close(fd);
    free(block);
    if (n < 0) {
        tl_sha256_drop(h);
        return false;
    }
    uint8_t digest[32];
    tl_sha256_end(h, digest);
    tl_hex(out, digest, sizeof digest);
    return true;
}

static void put_line(sink *s, const char *kind, const git_diff_delta *d, const char *root, bool *complete) {
    char old_id[GIT_OID_HEXSZ + 1], hash[65];
    git_oid_tostr(old_id, sizeof old_id, &d->old_file.id);
    char *path = tl_xprintf("%s%s", root, d->new_file.path);
    uint64_t size = 0;
    bool gone = d->status == GIT_DELTA_DELETED;
    if (!gone && !hash_file(hash, &size, path)) {
        snprintf(hash, sizeof hash, "unreadable");
        *complete = false;
    }
    char *line = gone ? tl_xprintf("tally: %s file deleted: %s\nold %s\n", kind, d->old_file.path, old_id)
                      : tl_xprintf("tally: %s file: %s\nold %s new mode %o size %" PRIu64 " sha256 %s\n",
                                   kind, d->new_file.path, old_id, (unsigned)d->new_file.mode, size, hash);
    put(s, line, strlen(line));
    free(line);
    free(path);
}

static uint64_t blob_size(git_repository *repo, const git_oid *id) {
    git_odb *odb = NULL;
    size_t size = 0;
    git_object_t type;
    if (git_repository_odb(&odb, repo) == 0 && git_odb_read_header(&size, &type, odb, id) != 0) size = 0;
    git_odb_free(odb);
    return size;
}

/* Either side too big to be loaded and compared line by line? */
static bool is_big(git_repository *repo, const git_diff_delta *d, const char *root) {
    if (d->old_file.mode == GIT_FILEMODE_COMMIT || d->new_file.mode == GIT_FILEMODE_COMMIT) return false;
    bool has_old = d->status != GIT_DELTA_UNTRACKED && d->status != GIT_DELTA_ADDED;
    if (has_old && blob_size(repo, &d->old_file.id) > TL_VCS_FILE_MAX) return true;
    char *path = tl_xprintf("%s%s", root, d->new_file.path);
    struct stat s;
    bool big = d->status != GIT_DELTA_DELETED && lstat(path, &s) == 0 && s.st_size > (off_t)TL_VCS_FILE_MAX;
    free(path);
    return big;
}

static void put_delta(sink *s, git_repository *repo, git_diff *diff, size_t i, bool *complete) {
    const git_diff_delta *d = git_diff_get_delta(diff, i);
    const char *root = git_repository_workdir(repo);
    if (tl_str_ends(d->new_file.path, "/")) {
        char *line = tl_xprintf("tally: nested repository: %s\n", d->new_file.path);
        put(s, line, strlen(line));
        free(line);
        return;
    }
    const char *kind = d->status == GIT_DELTA_CONFLICTED   ? "conflicted"
                       : d->status == GIT_DELTA_UNREADABLE ? "unreadable"
                       : is_big(repo, d, root)             ? "big"
                                                           : NULL;
    git_patch *patch = NULL;
    git_buf text = {0};
    if (!kind && (git_patch_from_diff(&patch, diff, i) != 0 || !patch || git_patch_to_buf(&text, patch) != 0))
        kind = "unpatchable";
    if (kind)
        put_line(s, kind, d, root, complete);
    else
        put(s, text.ptr, text.size);
    git_buf_dispose(&text);
    git_patch_free(patch);
}

void vcs_read_patch(tl_vcs *v, git_repository *repo, git_tree *head) {
    git_diff_options o;
    git_diff_options_init(&o, GIT_DIFF_OPTIONS_VERSION);
    o.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS | GIT_DIFF_SHOW_UNTRACKED_CONTENT |
              GIT_DIFF_SHOW_BINARY | GIT_DIFF_INCLUDE_TYPECHANGE | GIT_DIFF_INCLUDE_UNREADABLE;
    o.id_abbrev = GIT_OID_HEXSZ; /* an automatic length would change with the number of objects */
    o.context_lines = 3;         /* not what the user's configuration says */
    o.old_prefix = "a";
    o.new_prefix = "b";
    git_diff *diff = NULL;
    if (git_diff_tree_to_workdir_with_index(&diff, repo, head, &o) != 0) {
        char *why = vcs_last_error();
        if (!v->message) v->message = tl_xprintf("the working tree cannot be compared: %s", why);
        free(why);
        v->complete = false;
        return;
    }
    sink s = {.hash = tl_sha256_new()};
    tl_buf_init(&s.text, TL_VCS_PATCH_MAX);
    for (size_t i = 0; i < git_diff_num_deltas(diff); i++) put_delta(&s, repo, diff, i, &v->complete);
    git_diff_free(diff);
    uint8_t digest[32];
    tl_sha256_end(s.hash, digest);
    if (s.text.len > 0) {
        tl_hex(v->patch_sha256, digest, sizeof digest);
        v->patch_len = s.text.len;
        v->patch_cut = s.cut;
        v->patch = tl_buf_take(&s.text);
    }
    tl_buf_free(&s.text);
}

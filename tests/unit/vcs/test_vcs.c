/* vcs: repositories in every condition, made by the real git. Without git those cases are skipped, one by one
 * and counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "vcs/vcs.h"

static char
    *root; /* temporary folder of this program; also HOME, so that no configuration of the user counts */
static char *repo; /* a fresh repository for each case: root/repo-N */
static unsigned serial, skipped;

/* libgit2 1.5's regular expressions (reading .gitmodules, guessing at unknown revisions) never free what a
 * match needs; vcs avoids them wherever it can. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libpcre2\n";
}

/* ---- fixtures ---- */

#define GIT(...) git_in(repo, (const char *const[]){"git", __VA_ARGS__, NULL})

static void git_in(const char *dir, const char *const *argv) {
    const char *const add[] = {"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
                               "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
                               NULL};
    tl_child_spec spec = {.argv = argv, .cwd = dir, .env_add = add};
    tl_child_result r;
    tl_err e = {0};
    if (tl_child_run(&r, &spec, 60 * TL_S, &e) != TL_OK) fail_msg("%s", e.msg);
    if (r.exit_code != 0 && !tl_str_eq(argv[1], "merge")) fail_msg("git %s: %s%s", argv[1], r.err.p, r.out.p);
    tl_child_result_free(&r);
}

static char *in_repo(const char *name) {
    return tl_path_join(repo, name);
}

static void put_n(const char *name, const void *p, size_t n) {
    char *path = in_repo(name), *dir = tl_path_dir(path);
    assert_int_equal(tl_dir_make(dir, NULL), TL_OK);
    FILE *f = fopen(path, "wb"); /* plain: nothing here needs to reach the disk */
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
    free(dir);
    free(path);
}

static void put(const char *name, const char *text) {
    put_n(name, text, strlen(text));
}

static int begin(void **s) {
    TL_UNUSED(s);
    repo = tl_xprintf("%s/repo-%u", root, serial++);
    return tl_dir_make(repo, NULL) != TL_OK;
}

static int end(void **s) {
    TL_UNUSED(s);
    free(repo);
    repo = NULL;
    return 0;
}

static void need_git(void) {
    char *git = tl_path_which("git");
    free(git);
    if (git) return;
    skipped++;
    skip();
}

/* A repository with one commit of a.txt. */
static void first_commit(void) {
    need_git();
    GIT("init", "-q", "-b", "trunk");
    put("a.txt", "one\ntwo\nthree\n");
    GIT("add", "-A");
    GIT("commit", "-q", "-m", "first");
}

static tl_vcs read_at(const char *path) {
    tl_vcs v;
    tl_err e = {0};
    if (tl_vcs_read(&v, path, &e) != TL_OK) fail_msg("%s", e.msg);
    return v;
}

/* The hash of the whole dirty state, "" when clean. */
static void dirty_hash(char out[65]) {
    tl_vcs v = read_at(repo);
    memcpy(out, v.dirty_sha256, 65);
    tl_vcs_free(&v);
}

static int set_up(void **s) {
    TL_UNUSED(s);
    if (tl_dir_temp(&root, "tally-test-vcs", NULL) != TL_OK) return -1;
    setenv("HOME", root, 1);
    unsetenv("XDG_CONFIG_HOME");
    char *config = tl_path_join(root, ".gitconfig");
    const char text[] = "[user]\nname = A\nemail = a@example.org\n[protocol \"file\"]\nallow = always\n"
                        "[url \"https://secrettoken@example.org/\"]\ninsteadOf = short:\n";
    int bad = tl_file_write(config, text, sizeof text - 1, NULL) != TL_OK;
    free(config);
    return bad;
}

static int tear_down(void **s) {
    TL_UNUSED(s);
    setenv("HOME", "/nonexistent", 1);
    int bad = tl_dir_remove(root, NULL) != TL_OK;
    free(root);
    if (skipped) print_message("%u cases skipped: git is not installed\n", skipped);
    return bad;
}

/* ---- conditions ---- */

static void no_repository(void **s) {
    TL_UNUSED(s);
    tl_vcs v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_NONE);
    assert_non_null(strstr(v.message, "git init"));
    assert_false(v.dirty || v.complete);
    json_t *j = tl_vcs_json(&v);
    assert_string_equal(tl_json_str(j, "state", ""), "none");
    assert_true(json_is_null(tl_json_at(j, "dirty")) && json_is_null(tl_json_at(j, "n_index")));
    json_decref(j);
    char *line = tl_vcs_summary(&v);
    assert_string_equal(line, "no version control");
    free(line);
    tl_vcs_free(&v);
    tl_vcs_free(&v);
    tl_err e = {0};
    assert_int_equal(tl_vcs_read(&v, "/no/such/folder", &e), TL_NOT_FOUND);
    tl_vcs_free(&v);
}

static void unborn(void **s) {
    TL_UNUSED(s);
    need_git();
    GIT("init", "-q", "-b", "開始");
    put("x", "1\n");
    tl_vcs v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_UNBORN);
    assert_string_equal(v.branch, "開始");
    assert_string_equal(v.commit, "");
    assert_int_equal(v.n_untracked, 1);
    assert_true(v.dirty);
    assert_non_null(strstr(v.patch, "+1"));
    tl_vcs_free(&v);
}

static void clean_commit(void **s) {
    TL_UNUSED(s);
    first_commit();
    put("sub dir/b", "b\n");
    GIT("add", "-A");
    GIT("commit", "-q", "-m", "second");
    char *below = in_repo("sub dir/b");
    tl_vcs v = read_at(below); /* a file in a folder */
    assert_int_equal(v.state, TL_VCS_OK);
    assert_string_equal(v.prefix, "sub dir");
    assert_string_equal(v.branch, "trunk");
    assert_int_equal(strlen(v.commit), 40);
    assert_int_equal(strlen(v.tree), 40);
    assert_int_equal(v.commit_time_s, 1767323045);
    assert_false(v.dirty || v.detached || v.shallow || v.worktree);
    assert_true(v.complete);
    assert_null(v.patch);
    assert_string_equal(v.patch_sha256, "");
    assert_int_equal(v.file_mode, 1);
    char *line = tl_vcs_summary(&v);
    assert_non_null(strstr(line, "(clean)"));
    json_t *j = tl_vcs_json(&v);
    assert_true(json_is_null(tl_json_at(j, "patch_sha256")));
    char *text = tl_json_canonical(j);
    assert_null(strstr(text, "example.org")); /* no author's address */
    free(text);
    json_decref(j);
    free(line);
    free(below);
    tl_vcs_free(&v);
}

static void detached_head(void **s) {
    TL_UNUSED(s);
    first_commit();
    GIT("checkout", "-q", "--detach");
    tl_vcs v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_OK);
    assert_true(v.detached);
    assert_null(v.branch);
    tl_vcs_free(&v);
}

static void worktree_and_its_loss(void **s) {
    TL_UNUSED(s);
    first_commit();
    char *tree = tl_xprintf("%s-tree", repo), *moved = tl_xprintf("%s-moved", repo);
    GIT("worktree", "add", "-q", "-b", "side", tree);
    tl_vcs v = read_at(tree);
    assert_int_equal(v.state, TL_VCS_OK);
    assert_true(v.worktree);
    assert_string_equal(v.branch, "side");
    assert_string_equal(v.prefix, "");
    assert_false(v.dirty);
    tl_vcs_free(&v);
    assert_int_equal(rename(repo, moved), 0);
    v = read_at(tree);
    assert_int_equal(v.state, TL_VCS_BROKEN);
    assert_non_null(strstr(v.message, ".git"));
    tl_vcs_free(&v);
    free(tree);
    free(moved);
}

static void shallow_clone(void **s) {
    TL_UNUSED(s);
    first_commit();
    put("a.txt", "changed\n");
    GIT("commit", "-q", "-a", "-m", "second");
    char *url = tl_xprintf("file://%s", repo), *clone = tl_xprintf("%s-clone", repo);
    GIT("clone", "-q", "--depth", "1", url, clone);
    tl_vcs v = read_at(clone), full = read_at(repo);
    assert_int_equal(v.state, TL_VCS_OK);
    assert_true(v.shallow);
    assert_string_equal(v.commit, full.commit);
    assert_false(v.dirty);
    assert_int_equal(v.n_remotes, 1);
    assert_string_equal(v.remotes[0].name, "origin");
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_err e = {0};
    assert_int_equal(tl_vcs_blob_at(&b, clone, "HEAD~1", "a.txt", &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.remedy, "--unshallow"));
    tl_buf_free(&b);
    tl_vcs_free(&v);
    tl_vcs_free(&full);
    free(url);
    free(clone);
}

static void submodule_states_differ(void **s) {
    TL_UNUSED(s);
    first_commit();
    char *library = repo, *inner = NULL, one[65], two[65];
    assert_int_equal(begin(NULL), 0);
    first_commit();
    GIT("submodule", "--quiet", "add", library, "lib");
    GIT("commit", "-q", "-m", "with submodule");
    tl_vcs v = read_at(repo);
    assert_false(v.dirty);
    assert_int_equal(v.n_modules, 1);
    assert_true(v.modules[0].is_submodule);
    assert_string_equal(v.modules[0].path, "lib");
    assert_string_equal(v.modules[0].pinned, v.modules[0].commit);
    tl_vcs_free(&v);
    put("lib/a.txt", "dirty one\n");
    dirty_hash(one);
    put("lib/a.txt", "dirty two\n");
    dirty_hash(two);
    assert_int_equal(strlen(one), 64);
    assert_string_not_equal(one, two); /* the outer patch is the same for both */
    v = read_at(repo);
    assert_true(v.dirty && v.modules[0].dirty);
    inner = in_repo("lib");
    tl_vcs m = read_at(inner);
    assert_string_equal(m.patch_sha256, v.modules[0].patch_sha256);
    tl_vcs_free(&m);
    tl_vcs_free(&v);
    GIT("submodule", "--quiet", "deinit", "-f", "lib");
    v = read_at(repo);
    assert_int_equal(v.modules[0].state, TL_VCS_NONE);
    assert_string_equal(v.modules[0].message, "not checked out");
    assert_false(v.dirty);
    tl_vcs_free(&v);
    free(inner);
    free(library);
}

static void nested_repository_is_seen(void **s) {
    TL_UNUSED(s);
    char one[65], two[65];
    first_commit();
    char *outer = repo;
    repo = tl_path_join(outer, "nested");
    assert_int_equal(tl_dir_make(repo, NULL), TL_OK);
    first_commit();
    free(repo);
    repo = outer;
    tl_vcs v = read_at(repo);
    assert_int_equal(v.n_modules, 1);
    assert_false(v.modules[0].is_submodule);
    assert_string_equal(v.modules[0].path, "nested");
    assert_int_equal(v.modules[0].state, TL_VCS_OK);
    assert_true(v.dirty); /* untracked */
    tl_vcs_free(&v);
    dirty_hash(one);
    put("nested/a.txt", "changed\n");
    dirty_hash(two);
    assert_string_not_equal(one, two);
}

static void foreign_owner_is_refused(void **s) {
    TL_UNUSED(s);
    first_commit();
    if (getuid() != 0) skip();
    char *git = in_repo(".git");
    assert_int_equal(chown(repo, 4711, 4711), 0);
    assert_int_equal(chown(git, 4711, 4711), 0);
    tl_vcs v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_REFUSED);
    assert_non_null(strstr(v.message, "safe.directory"));
    assert_non_null(strstr(v.message, repo));
    assert_string_equal(v.commit, "");
    tl_vcs_free(&v);
    tl_buf b;
    tl_buf_init(&b, 0);
    assert_int_equal(tl_vcs_blob_at(&b, repo, "HEAD", "a.txt", NULL), TL_REFUSED);
    tl_buf_free(&b);
    assert_int_equal(chown(repo, 0, 0), 0);
    assert_int_equal(chown(git, 0, 0), 0);
    free(git);
}

static void bare_repository(void **s) {
    TL_UNUSED(s);
    first_commit();
    char *bare = tl_xprintf("%s.git", repo);
    GIT("clone", "-q", "--bare", repo, bare);
    tl_vcs v = read_at(bare), full = read_at(repo);
    assert_int_equal(v.state, TL_VCS_BARE);
    assert_string_equal(v.commit, full.commit);
    assert_false(v.dirty);
    tl_vcs_free(&v);
    tl_vcs_free(&full);
    free(bare);
}

static void broken_repositories(void **s) {
    TL_UNUSED(s);
    first_commit();
    tl_vcs v = read_at(repo);
    char *object = tl_xprintf("%s/.git/objects/%.2s/%s", repo, v.commit, v.commit + 2);
    tl_vcs_free(&v);
    assert_int_equal(unlink(object), 0);
    v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_BROKEN);
    assert_int_equal(strlen(v.commit), 40); /* what HEAD says is still told */
    assert_false(v.complete);
    tl_vcs_free(&v);
    put(".git/HEAD", "gar\001bage\n");
    v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_BROKEN);
    assert_non_null(v.message);
    char *line = tl_vcs_summary(&v);
    assert_string_equal(line, "revision unknown (broken)");
    free(line);
    tl_vcs_free(&v);
    put(".git/HEAD", "ref: refs/heads/trunk\n");
    put(".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n");
    v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_UNSUPPORTED);
    tl_vcs_free(&v);
    put(".git/config", "[core\n");
    v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_BROKEN);
    tl_vcs_free(&v);
    free(object);
}

/* ---- what differs ---- */

static void counts_and_odd_names(void **s) {
    TL_UNUSED(s);
    first_commit();
    put("old", "1\n");
    GIT("add", "-A");
    GIT("commit", "-q", "-m", "second");
    put("a.txt", "one\ntwo\nthree\nfour\n");
    put("a -> b", "arrow\n");
    put("模型/測試 \"q\".txt", "字\n");
    put("added", "1\n");
    GIT("add", "added");
    char *old = in_repo("old");
    assert_int_equal(unlink(old), 0);
    tl_vcs v = read_at(repo);
    assert_int_equal(v.n_index, 1);
    assert_int_equal(v.n_worktree, 2);
    assert_int_equal(v.n_untracked, 2);
    assert_int_equal(v.n_conflict, 0);
    assert_non_null(strstr(v.patch, "a -> b"));
    assert_non_null(strstr(v.patch, "+字"));
    assert_non_null(strstr(v.patch, "+four"));
    assert_non_null(strstr(v.patch, "deleted file"));
    assert_int_equal(strlen(v.patch_sha256), 64);
    char again[65];
    dirty_hash(again);
    assert_string_equal(again, v.dirty_sha256);
    json_t *j = tl_vcs_json(&v);
    assert_int_equal(tl_json_int(j, "n_untracked", 0), 2);
    json_decref(j);
    free(old);
    tl_vcs_free(&v);
}

static void white_space_changes_the_hash(void **s) {
    TL_UNUSED(s);
    char one[65], two[65], three[65], none[65];
    first_commit();
    put("a.txt", "one\nB x\nthree\n");
    dirty_hash(one);
    put("a.txt", "one\nB  x\nthree\n");
    dirty_hash(two);
    assert_string_not_equal(one, two);
    put("a.txt", "one\nB x\nthree\n");
    dirty_hash(three);
    assert_string_equal(one, three);
    put("a.txt", "one\ntwo\nthree\n");
    dirty_hash(none);
    assert_string_equal(none, "");
    char *path = in_repo("a.txt");
    assert_int_equal(chmod(path, 0755), 0);
    dirty_hash(one);
    assert_int_equal(strlen(one), 64); /* the mode alone */
    free(path);
}

static void big_and_binary_files_are_told_apart(void **s) {
    TL_UNUSED(s);
    first_commit();
    size_t n = TL_VCS_FILE_MAX + 5000;
    char *data = tl_xalloc(n), one[65], two[65], hash[65];
    put_n("model.gguf", data, n);
    put_n("small.bin", "\0\1\2\3", 4);
    tl_sha256_hex(data, n, hash);
    tl_vcs v = read_at(repo);
    assert_non_null(strstr(v.patch, "tally: big file: model.gguf"));
    assert_non_null(strstr(v.patch, hash));
    assert_non_null(strstr(v.patch, "GIT binary patch"));
    assert_true(v.patch_len < 10000);
    memcpy(one, v.dirty_sha256, 65);
    tl_vcs_free(&v);
    data[n - 1] = 1; /* same size */
    put_n("model.gguf", data, n);
    dirty_hash(two);
    assert_string_not_equal(one, two);
    GIT("add", "-A");
    GIT("commit", "-q", "-m", "model");
    dirty_hash(one);
    assert_string_equal(one, "");
    data[0] = 1;
    put_n("model.gguf", data, n);
    v = read_at(repo);
    assert_non_null(strstr(v.patch, "tally: big file: model.gguf"));
    tl_vcs_free(&v);
    free(data);
}

static void a_huge_patch_is_cut_but_hashed_whole(void **s) {
    TL_UNUSED(s);
    first_commit();
    size_t n = TL_VCS_FILE_MAX - 10;
    char *data = tl_xalloc(n + 1), one[65];
    for (size_t i = 0; i < n; i++) data[i] = i % 50 == 49 ? '\n' : 'x';
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        put_n(name, data, n);
    }
    tl_vcs v = read_at(repo);
    assert_true(v.patch_cut);
    assert_int_equal(v.patch_len, TL_VCS_PATCH_MAX);
    memcpy(one, v.patch_sha256, 65);
    tl_vcs_free(&v);
    data[n - 2] = 'y';
    put_n("f4", data, n); /* beyond the cut */
    v = read_at(repo);
    assert_string_not_equal(one, v.patch_sha256);
    tl_vcs_free(&v);
    free(data);
}

static void odd_entries_do_not_hang_it(void **s) {
    TL_UNUSED(s);
    first_commit();
    char *fifo = in_repo("pipe"), *link = in_repo("link"), *loop = in_repo("loop");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("/no/such/target", link), 0);
    assert_int_equal(symlink("loop", loop), 0);
    tl_vcs v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_OK);
    assert_true(v.dirty);
    assert_non_null(strstr(v.patch, "/no/such/target"));
    tl_vcs_free(&v);
    free(fifo);
    free(link);
    free(loop);
}

static void hidden_edits_are_warned_of(void **s) {
    TL_UNUSED(s);
    first_commit();
    GIT("update-index", "--assume-unchanged", "a.txt");
    put("a.txt", "edited behind git's back\n");
    tl_vcs v = read_at(repo);
    assert_int_equal(v.n_hidden, 1);
    assert_false(v.complete);
    char *line = tl_vcs_summary(&v);
    assert_non_null(strstr(line, "as far as git looks"));
    free(line);
    tl_vcs_free(&v);
    GIT("update-index", "--no-assume-unchanged", "a.txt");
    GIT("update-index", "--skip-worktree", "a.txt");
    v = read_at(repo);
    assert_int_equal(v.n_hidden, 1);
    tl_vcs_free(&v);
}

static void merge_conflict_is_not_clean(void **s) {
    TL_UNUSED(s);
    char one[65], two[65];
    first_commit();
    GIT("checkout", "-q", "-b", "other");
    put("a.txt", "other\n");
    GIT("commit", "-q", "-a", "-m", "other");
    GIT("checkout", "-q", "trunk");
    put("a.txt", "trunk\n");
    GIT("commit", "-q", "-a", "-m", "trunk");
    GIT("merge", "-q", "other");
    tl_vcs v = read_at(repo);
    assert_string_equal(v.merge_state, "merge");
    assert_int_equal(v.n_conflict, 1);
    assert_true(v.dirty);
    tl_vcs_free(&v);
    dirty_hash(one);
    put("a.txt", "resolved, not yet added\n");
    dirty_hash(two);
    assert_string_not_equal(one, two);
}

static void line_endings_are_recorded(void **s) {
    TL_UNUSED(s);
    first_commit();
    GIT("config", "core.autocrlf", "input");
    GIT("config", "core.fileMode", "false");
    char *path = in_repo("a.txt");
    assert_int_equal(chmod(path, 0755), 0);
    tl_vcs v = read_at(repo);
    assert_string_equal(v.autocrlf, "input");
    assert_int_equal(v.file_mode, 0);
    assert_false(v.dirty);
    tl_vcs_free(&v);
    free(path);
}

static void a_lock_does_not_matter(void **s) {
    TL_UNUSED(s);
    first_commit();
    put(".git/index.lock", "");
    tl_vcs v = read_at(repo);
    assert_int_equal(v.state, TL_VCS_OK);
    assert_false(v.dirty);
    tl_vcs_free(&v);
}

/* ---- remotes ---- */

static void urls_lose_what_is_secret(void **s) {
    TL_UNUSED(s);
    static const char *const cases[][2] = {{"https://u:p@h:8443/r", "https://h:8443/r"},
                                           {"https://TOKEN@h/r", "https://h/r"},
                                           {"ssh://u@h:22/r", "ssh://h:22/r"},
                                           {"git@h:r", "git@h:r"},
                                           {"alice@h:r", "h:r"},
                                           {"u:p@h:r", "h:r"},
                                           {"https://h/r?access_token=x", "https://h/r"},
                                           {"https://h/r#token", "https://h/r"},
                                           {"file:///home/alice/r", "file:///~/r"},
                                           {"/home/alice/r", "/~/r"},
                                           {"/Users/alice/r", "/~/r"},
                                           {"/root/r", "/~/r"},
                                           {"/srv/git/r", "/srv/git/r"},
                                           {"h:/home/alice/r", "h:/~/r"},
                                           {"ssh://h/~alice/r", "ssh://h/~/r"},
                                           {"https://u:p@[::1]:8443/r", "https://[::1]:8443/r"},
                                           {"https://[::1]/r", "https://[::1]/r"},
                                           {"git@[::1]:r", "git@[::1]:r"},
                                           {"https://u:p/w@h/r", "https://h/r"},
                                           {"https://u:p#w@h/r", "https://h/r"},
                                           {"https://u:p@w@h/r", "https://h/r"},
                                           {"https://h/@scope/r", "https://h/@scope/r"},
                                           {"gcrypt::https://u:p@h/r", "gcrypt::https://h/r"},
                                           {"ext::sh -c secret", "ext::(command)"},
                                           {"../r", "../r"},
                                           {"", ""}};
    for (size_t i = 0; i < TL_COUNT(cases); i++) {
        char *got = tl_vcs_scrub_url(cases[i][0]);
        if (!tl_str_eq(got, cases[i][1])) fail_msg("%s: %s, not %s", cases[i][0], got, cases[i][1]);
        free(got);
    }
}

static void remotes_are_scrubbed_after_expansion(void **s) {
    TL_UNUSED(s);
    first_commit();
    GIT("remote", "add", "origin", "https://user:hunter2@example.org:8443/me/r.git");
    GIT("remote", "add", "copy",
        "short:me/r.git"); /* the user's configuration expands it to a URL with a token */
    tl_vcs v = read_at(repo);
    json_t *j = tl_vcs_json(&v);
    char *text = tl_json_canonical(j);
    assert_null(strstr(text, "hunter2"));
    assert_null(strstr(text, "secrettoken"));
    assert_int_equal(v.n_remotes, 2);
    for (size_t i = 0; i < 2; i++) {
        bool origin = tl_str_eq(v.remotes[i].name, "origin");
        assert_string_equal(v.remotes[i].url,
                            origin ? "https://example.org:8443/me/r.git" : "https://example.org/me/r.git");
    }
    free(text);
    json_decref(j);
    tl_vcs_free(&v);
}

/* ---- old files ---- */

static void old_files_are_read(void **s) {
    TL_UNUSED(s);
    first_commit();
    GIT("tag", "v1");
    put("a.txt", "later\n");
    put("d/模型.lua", "return 1\n");
    GIT("add", "-A");
    GIT("commit", "-q", "-m", "second");
    put("a.txt", "not committed\n");
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_err e = {0};
    assert_int_equal(tl_vcs_blob_at(&b, repo, "v1", "a.txt", &e), TL_OK);
    assert_string_equal(b.p, "one\ntwo\nthree\n");
    tl_buf_clear(&b);
    assert_int_equal(tl_vcs_blob_at(&b, repo, "HEAD", "./d/模型.lua", &e), TL_OK);
    assert_string_equal(b.p, "return 1\n");
    tl_vcs v = read_at(repo);
    char shortened[8];
    snprintf(shortened, sizeof shortened, "%.7s", v.commit);
    tl_buf_clear(&b);
    assert_int_equal(tl_vcs_blob_at(&b, repo, shortened, "a.txt", &e), TL_OK);
    assert_string_equal(b.p, "later\n");
    tl_vcs_free(&v);
    assert_int_equal(tl_vcs_blob_at(&b, repo, "no-such", "a.txt", &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.msg, "no-such"));
    assert_int_equal(tl_vcs_blob_at(&b, repo, "HEAD", "no-file", &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.msg, "no-file"));
    assert_int_equal(tl_vcs_blob_at(&b, repo, "HEAD", "d", &e), TL_INVALID);
    assert_int_equal(tl_vcs_blob_at(&b, root, "HEAD", "a.txt", &e), TL_NOT_FOUND);
    tl_buf_free(&b);
    tl_buf_init(&b, 3);
    assert_int_equal(tl_vcs_blob_at(&b, repo, "HEAD", "a.txt", &e), TL_LIMIT);
    tl_buf_free(&b);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(no_repository),
        CASE(unborn),
        CASE(clean_commit),
        CASE(detached_head),
        CASE(worktree_and_its_loss),
        CASE(shallow_clone),
        CASE(submodule_states_differ),
        CASE(nested_repository_is_seen),
        CASE(foreign_owner_is_refused),
        CASE(bare_repository),
        CASE(broken_repositories),
        CASE(counts_and_odd_names),
        CASE(white_space_changes_the_hash),
        CASE(big_and_binary_files_are_told_apart),
        CASE(a_huge_patch_is_cut_but_hashed_whole),
        CASE(odd_entries_do_not_hang_it),
        CASE(hidden_edits_are_warned_of),
        CASE(merge_conflict_is_not_clean),
        CASE(line_endings_are_recorded),
        CASE(a_lock_does_not_matter),
        CASE(urls_lose_what_is_secret),
        CASE(remotes_are_scrubbed_after_expansion),
        CASE(old_files_are_read),
    };
    return cmocka_run_group_tests_name("vcs", tests, set_up, tear_down);
}

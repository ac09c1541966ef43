/* os: clock, random, files, folders, locks, paths, sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

static char *dir;

static int make_dir(void **s) {
    TL_UNUSED(s);
    return tl_dir_temp(&dir, "tally-test-os", NULL) == TL_OK ? 0 : -1;
}

static int drop_dir(void **s) {
    TL_UNUSED(s);
    int bad = tl_dir_remove(dir, NULL) != TL_OK;
    free(dir);
    return bad;
}

static void put(const char *path, const char *text) {
    assert_int_equal(tl_file_write(path, text, strlen(text), NULL), TL_OK);
}

/* ---- clock ---- */

static tl_ns fixed_clock(void) {
    return 42;
}

static void the_clock_runs_forward_and_can_be_replaced(void **s) {
    TL_UNUSED(s);
    tl_ns before = tl_clock_now();
    tl_sleep_ns(3 * TL_MS);
    assert_true(tl_clock_now() - before >= 3 * TL_MS);
    assert_non_null(strstr(tl_clock_name(), "ns"));
    tl_ns (*real)(void) = tl_clock_now;
    tl_clock_now = fixed_clock;
    assert_int_equal(tl_clock_now(), 42);
    assert_string_equal(tl_clock_name(), "replaced clock");
    tl_sleep_ns(TL_MS); /* goes by the real clock, or it would never return */
    tl_clock_now = real;
}

static void in_zone(const char *zone, const char *offset) {
    char out[8];
    setenv("TZ", zone, 1);
    tzset();
    tl_clock_utc_offset(out, 1750000000LL * 1000000000LL);
    assert_string_equal(out, offset);
}

static void wall_time_is_written_as_iso_8601(void **s) {
    TL_UNUSED(s);
    char out[32];
    tl_clock_iso8601(out, 0);
    assert_string_equal(out, "1970-01-01T00:00:00.000000000Z");
    tl_clock_iso8601(out, -1);
    assert_string_equal(out, "1969-12-31T23:59:59.999999999Z");
    tl_clock_iso8601(out, INT64_C(951782399123456789)); /* date -u -d @951782399 */
    assert_string_equal(out, "2000-02-28T23:59:59.123456789Z");
    tl_clock_iso8601(out, INT64_MAX);
    assert_string_equal(out, "2262-04-11T23:47:16.854775807Z");
    assert_true(tl_clock_wall_ns() > INT64_C(1700000000000000000));
    in_zone("XXX-8", "+08:00"); /* POSIX signs are the other way round */
    in_zone("XXX-5:45", "+05:45");
    in_zone("XXX3:30", "-03:30");
    in_zone("UTC0", "+00:00");
    unsetenv("TZ");
    tzset();
}

static void identifiers_differ_and_sort_by_time(void **s) {
    TL_UNUSED(s);
    char a[27], b[27];
    tl_os_ulid(a);
    tl_sleep_ns(2 * TL_MS);
    tl_os_ulid(b);
    assert_int_equal(strlen(a), 26);
    assert_true(strcmp(a, b) < 0);
    uint8_t x[32] = {0}, y[32] = {0};
    tl_os_random(x, sizeof x);
    tl_os_random(y, sizeof y);
    assert_memory_not_equal(x, y, sizeof x);
}

/* ---- files ---- */

static void a_file_is_replaced_whole_or_not_at_all(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    char *path = tl_path_join(dir, "字 a"), *link = tl_path_join(dir, "link");
    put(path, "old");
    assert_int_equal(chmod(path, 0640), 0);
    tl_file_out *o;
    assert_int_equal(tl_file_out_open(&o, path, &e), TL_OK);
    fputs("half", tl_file_out_stream(o));
    tl_file_out_drop(o);
    tl_buf b;
    tl_buf_init(&b, 0);
    assert_int_equal(tl_file_read(&b, path, 0, &e), TL_OK);
    assert_string_equal(b.p, "old");
    assert_int_equal(symlink("字 a", link), 0);
    put(link, "new"); /* through the link, which stays one */
    tl_buf_clear(&b);
    assert_int_equal(tl_file_read(&b, path, 3, &e), TL_OK);
    assert_string_equal(b.p, "new");
    tl_file_facts f;
    assert_int_equal(tl_file_stat(&f, link, &e), TL_OK);
    assert_true(f.is_link && f.is_file && f.exists && f.size_bytes == 3 && f.mtime_ns > 0 && f.inode > 0);
    assert_int_equal(f.mode, 0640);
    assert_int_equal(tl_file_read(&b, path, 2, &e), TL_LIMIT);
    assert_non_null(strstr(e.msg, "字 a"));
    tl_buf_free(&b);
    assert_int_equal(tl_file_write(dir, "x", 1, &e), TL_IO);
    assert_int_equal(tl_file_write("/no/such/folder/x", "x", 1, &e), TL_NOT_FOUND);
    assert_int_equal(tl_file_write(path, NULL, 0, &e), TL_OK);
    assert_int_equal(tl_file_stat(&f, path, &e), TL_OK);
    assert_int_equal(f.size_bytes, 0);
    tl_names n;
    assert_int_equal(tl_dir_list(&n, dir, &e), TL_OK); /* no temporary file was left */
    assert_int_equal(n.n, 2);
    assert_string_equal(n.v[0], "link");
    tl_names_free(&n);
    assert_int_equal(tl_file_remove(link, &e), TL_OK);
    assert_int_equal(tl_file_remove(link, &e), TL_OK);
    assert_int_equal(tl_file_remove(path, &e), TL_OK);
    free(path);
    free(link);
}

static void what_cannot_be_read_is_named(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    tl_buf b;
    tl_buf_init(&b, 0);
    assert_int_equal(tl_file_read(&b, "/no/such/file", 0, &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.msg, "/no/such/file"));
    assert_int_equal(tl_file_read(&b, "/no/such/file", 0, NULL), TL_NOT_FOUND);
    assert_int_equal(tl_file_read(&b, dir, 0, &e), TL_IO);
    assert_non_null(strstr(e.msg, "folder"));
    tl_buf_free(&b);
    tl_file_facts f;
    assert_int_equal(tl_file_stat(&f, "/no/such/file", &e), TL_OK);
    assert_false(f.exists || f.is_link);
    char *link = tl_path_join(dir, "dangling");
    assert_int_equal(symlink("/no/such/file", link), 0);
    assert_int_equal(tl_file_stat(&f, link, &e), TL_OK);
    assert_true(!f.exists && f.is_link);
    assert_int_equal(tl_file_write(link, "x", 1, &e), TL_IO);
    assert_int_equal(tl_file_remove(link, &e), TL_OK);
    free(link);
}

#ifdef __linux__
/* In a process of its own, on a file system of 64 KiB that only it sees. 77: not allowed here. */
static int fill_a_disk(void) {
    tl_err e = {0};
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 77;
    char *disk = tl_path_join(dir, "disk");
    if (tl_dir_make(disk, &e) != TL_OK || mount("none", disk, "tmpfs", 0, "size=64k") != 0) return 77;
    char *path = tl_path_join(disk, "f"), *big = tl_xalloc(1 << 20);
    put(path, "old");
    if (tl_file_write(path, big, 1 << 20, &e) != TL_IO) return 1;
    if (!strstr(e.msg, "disk is full") || !strstr(e.msg, path) || !strstr(e.msg, "bytes free") || !*e.remedy)
        return 2;
    tl_file_out *o;
    if (tl_file_out_open(&o, path, &e) != TL_OK) return 3;
    for (int i = 0; i < 1000; i++)
        fwrite(big, 1, 1000, tl_file_out_stream(o)); /* unchecked, as some callers are */
    if (tl_file_out_commit(o, &e) != TL_IO) return 4;
    tl_names n;
    if (tl_dir_list(&n, disk, &e) != TL_OK || n.n != 1) return 5;
    tl_buf b;
    tl_buf_init(&b, 0);
    if (tl_file_read(&b, path, 0, &e) != TL_OK || !tl_str_eq(b.p, "old")) return 6;
    return 0;
}
#else
static int fill_a_disk(void) {
    return 77;
}
#endif

static void a_full_disk_is_named_and_nothing_is_lost(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    tl_file_fail("write", "/tmp/x", ENOSPC, &e);
    assert_non_null(strstr(e.msg, "bytes free"));
    pid_t pid = fork();
    if (pid == 0) _exit(fill_a_disk());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: no right to mount a small disk\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- SHA-256 ---- */

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    uint64_t *seen = ctx;
    seen[0] = done;
    seen[1] = total;
    return false;
}

static void files_of_all_sizes_hash_right(void **s) {
    TL_UNUSED(s);
    static const size_t sizes[] = {0, 1, 4194303, 4194304, 4194305, 12582912, 20000001};
    char *path = tl_path_join(dir, "big"), *data = tl_xalloc(20000001), from_file[65], expected[65];
    tl_err e = {0};
    tl_rng r;
    tl_rng_seed(&r, 7);
    for (size_t i = 0; i + 8 <= 20000001; i += 8) {
        uint64_t v = tl_rng_u64(&r);
        memcpy(data + i, &v, 8);
    }
    for (size_t i = 0; i < TL_COUNT(sizes); i++) {
        assert_int_equal(tl_file_write(path, data, sizes[i], &e), TL_OK);
        assert_int_equal(tl_file_sha256(from_file, path, NULL, NULL, &e), TL_OK);
        tl_sha256_hex(data, sizes[i], expected);
        assert_string_equal(from_file, expected);
    }
    uint64_t seen[2];
    assert_int_equal(tl_file_sha256(from_file, path, stop_at_once, seen, &e), TL_CANCELLED);
    assert_int_equal(seen[0], 4194304);
    assert_int_equal(seen[1], 20000001);
    assert_int_equal(tl_file_sha256(from_file, "/no/such", NULL, NULL, &e), TL_NOT_FOUND);
    assert_int_equal(tl_file_sha256(from_file, dir, NULL, NULL, &e), TL_IO);
    assert_int_equal(tl_file_remove(path, &e), TL_OK);
    free(data);
    free(path);
}

static bool grow_it(void *ctx, uint64_t done, uint64_t total) {
    TL_UNUSED(total);
    FILE *f = done == 4194304 ? fopen(ctx, "ab") : NULL;
    if (f) {
        fputs("more", f);
        fclose(f);
    }
    return true;
}

static void a_file_that_changes_while_read_is_refused(void **s) {
    TL_UNUSED(s);
    char *path = tl_path_join(dir, "download"), *data = tl_xalloc(9 << 20), hash[65];
    tl_err e = {0};
    assert_int_equal(tl_file_write(path, data, 9 << 20, &e), TL_OK);
    assert_int_equal(tl_file_sha256(hash, path, grow_it, path, &e), TL_CONFLICT);
    assert_string_equal(hash, "");
    assert_int_equal(tl_file_remove(path, &e), TL_OK);
    free(data);
    free(path);
}

/* ---- folders ---- */

static void folders_are_made_and_removed_within_their_root(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    char *root = tl_path_join(dir, "root"), *deep = tl_path_join(root, "a/b/../b/c"),
         *file = tl_path_join(root, "a/f");
    char *outside = tl_path_join(dir, "outside"), *kept = tl_path_join(outside, "kept");
    char *link = tl_path_join(root, "a/link"), *odd = tl_path_join(root, "a/-rf * \n'\"");
    assert_int_equal(tl_dir_make(deep, &e), TL_OK);
    assert_int_equal(tl_dir_make(deep, &e), TL_OK);
    assert_int_equal(tl_dir_make(outside, &e), TL_OK);
    put(file, "x");
    put(kept, "x");
    put(odd, "x");
    assert_int_equal(symlink(outside, link), 0);
    char *under = tl_path_join(file, "x");
    assert_int_equal(tl_dir_make(under, &e), TL_IO);
    assert_non_null(strstr(e.msg, "is a file"));
    assert_int_equal(tl_dir_remove(root, &e), TL_OK);
    assert_false(tl_file_exists(root));
    assert_true(tl_file_exists(kept)); /* the link was not followed */
    assert_int_equal(tl_dir_remove(root, &e), TL_OK);
    char *other = tl_path_join(dir, "other");
    assert_int_equal(symlink(outside, other), 0);
    assert_int_equal(tl_dir_remove(other, &e), TL_OK); /* the link only */
    assert_true(tl_file_exists(kept));
    char *copy = tl_path_join(dir, "copy");
    assert_int_equal(tl_file_copy(copy, kept, &e), TL_OK);
    assert_true(tl_file_exists(copy));
    assert_int_equal(tl_file_copy(copy, "/no/such", &e), TL_NOT_FOUND);
    char *all[] = {root, deep, file, outside, kept, link, odd, under, other, copy};
    for (size_t i = 0; i < TL_COUNT(all); i++) free(all[i]);
}

static void precious_folders_are_not_removed(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    char *home = tl_path_join(dir, "home/me"), *up = tl_path_join(dir, "home"), *old = tl_path_home(),
         *link = tl_path_join(dir, "l");
    assert_int_equal(tl_dir_make(home, &e), TL_OK);
    setenv("HOME", home, 1);
    assert_int_equal(tl_dir_remove("/", &e), TL_REFUSED);
    assert_int_equal(tl_dir_remove(home, &e), TL_REFUSED);
    assert_int_equal(tl_dir_remove(up, &e), TL_REFUSED);
    assert_int_equal(tl_dir_remove(".", &e), TL_REFUSED);
    assert_int_equal(tl_dir_remove("..", &e), TL_REFUSED);
    assert_true(tl_dir_exists(home));
    setenv("HOME", old, 1);
    assert_int_equal(tl_dir_remove(up, &e), TL_OK);
    free(home);
    free(up);
    free(old);
    free(link);
}

/* ---- paths ---- */

static void is_text(char *got, const char *want) {
    assert_string_equal(got, want);
    free(got);
}

static void paths_are_taken_apart(void **s) {
    TL_UNUSED(s);
    is_text(tl_path_join("a", "b"), "a/b");
    is_text(tl_path_join("a/", "b"), "a/b");
    is_text(tl_path_join("a", "/b"), "/b");
    is_text(tl_path_join("", "b"), "b");
    is_text(tl_path_dir("a/b"), "a");
    is_text(tl_path_dir("b"), ".");
    is_text(tl_path_dir("/b"), "/");
    is_text(tl_path_dir("/"), "/");
    is_text(tl_path_dir("a//b//"), "a");
    is_text(tl_path_abs("/a/./b//../c/"), "/a/c");
    is_text(tl_path_abs("/../.."), "/");
    is_text(tl_path_abs("/...x/..y"), "/...x/..y");
    assert_string_equal(tl_path_base("a/b.c"), "b.c");
    assert_string_equal(tl_path_base("b"), "b");
    char *self = tl_path_self();
    assert_true(self[0] == '/' && strstr(self, "test_os"));
    free(self);
}

static void programs_and_caches_are_found(void **s) {
    TL_UNUSED(s);
    char *sh = tl_path_which("sh");
    assert_true(sh[0] == '/');
    free(sh);
    assert_null(tl_path_which("no-such-program-of-tally"));
    assert_null(tl_path_which(""));
    assert_null(tl_path_which("/etc/passwd"));
    assert_null(tl_path_which("/tmp")); /* a folder may be "executed", but is no program */
    unsetenv("TALLY_CACHE");
    setenv("XDG_CACHE_HOME", "/x/cache", 1);
    is_text(tl_path_cache(), "/x/cache/tally");
    setenv("TALLY_CACHE", "/mine", 1);
    is_text(tl_path_cache(), "/mine");
    setenv("TALLY_CACHE", "", 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    char *home = tl_path_home(), *want = tl_path_join(home, ".cache/tally");
    is_text(tl_path_cache(), want);
    free(home);
    free(want);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("TALLY_CACHE");
}

static void file_systems_are_told_apart(void **s) {
    TL_UNUSED(s);
    char type[32];
    tl_fs_type(type, "/proc/self");
    assert_string_equal(type, "proc");
    tl_fs_type(type, dir);
    assert_string_not_equal(type, "unknown");
    char other[32];
    char *absent = tl_path_join(dir, "not/yet/there");
    tl_fs_type(other, absent);
    assert_string_equal(type, other);
    uint64_t bytes = 0;
    assert_int_equal(tl_fs_free_bytes(&bytes, absent, NULL), TL_OK);
    assert_true(bytes > 0);
    free(absent);
    assert_true(tl_fs_is_network("nfs4") && tl_fs_is_network("fuse.sshfs") && tl_fs_is_network("lustre"));
    assert_false(tl_fs_is_network("ext4") || tl_fs_is_network("apfs") || tl_fs_is_network("unknown"));
}

/* ---- lock ---- */

static void a_lock_names_its_holder_and_ends_with_it(void **s) {
    TL_UNUSED(s);
    char *path = tl_path_join(dir, "lock"), go;
    int p[2];
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        tl_lock *l;
        if (tl_lock_take(&l, path, NULL) != TL_OK || write(p[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(p[0], &go, 1), 1);
    tl_lock *l;
    tl_err e = {0};
    assert_int_equal(tl_lock_take(&l, path, &e), TL_CONFLICT);
    assert_null(l);
    char want[64];
    snprintf(want, sizeof want, "locked by pid %d since 2", (int)pid);
    assert_non_null(strstr(e.msg, want));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(tl_lock_take(&l, path, &e), TL_OK); /* no stale lock */
    tl_lock *second;
    assert_int_equal(tl_lock_take(&second, path, &e), TL_CONFLICT); /* not even for ourselves */
    tl_lock_release(l);
    assert_int_equal(tl_lock_take(&l, path, &e), TL_OK);
    tl_lock_release(l);
    tl_lock_release(NULL);
    assert_int_equal(tl_lock_take(&l, "/no/such/folder/lock", &e), TL_NOT_FOUND);
    close(p[0]);
    close(p[1]);
    free(path);
}

/* ---- sockets ---- */

static int listen_on(uint16_t port, int family) {
    struct sockaddr_in a4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(family, SOCK_STREAM, 0);
    int rc = family == AF_INET ? bind(fd, (struct sockaddr *)&a4, sizeof a4)
                               : bind(fd, (struct sockaddr *)&a6, sizeof a6);
    if (fd < 0 || rc != 0 || listen(fd, 4) != 0) {
        tl_fd_close(fd);
        return -1;
    }
    return fd;
}

static void connections_are_opened_ahead(void **s) {
    TL_UNUSED(s);
    uint16_t port;
    tl_err e = {0};
    int fd;
    assert_int_equal(tl_tcp_free_port(&port, &e), TL_OK);
    assert_false(tl_tcp_port_in_use(port));
    assert_int_equal(tl_tcp_connect(&fd, "127.0.0.1", port, TL_S, NULL, &e), TL_HTTP);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(e.msg, "127.0.0.1"));
    assert_true(*e.remedy);
    int server = listen_on(port, AF_INET);
    assert_true(server >= 0);
    assert_true(tl_tcp_port_in_use(port));
    tl_ns before = tl_clock_now(), at = 0;
    assert_int_equal(tl_tcp_connect(&fd, "localhost", port, 5 * TL_S, &at, &e), TL_OK);
    assert_true(at >= before && at <= tl_clock_now());
    char c;
    assert_int_equal(recv(fd, &c, 1, 0), -1); /* does not block */
    assert_int_equal(errno, EAGAIN);
    tl_fd_close(fd);
    tl_fd_close(server);
    tl_fd_close(-1);
    int six = listen_on(port, AF_INET6);
    if (six >= 0) {
        assert_true(tl_tcp_port_in_use(port));
        assert_int_equal(tl_tcp_connect(&fd, "[::1]", port, 5 * TL_S, NULL, &e), TL_OK);
        tl_fd_close(fd);
        tl_fd_close(six);
    }
}

/* A server whose queue is full drops further connection requests: nothing answers. */
static void a_silent_server_times_out(void **s) {
    TL_UNUSED(s);
    uint16_t port;
    int fd[8];
    tl_err e = {0};
    assert_int_equal(tl_tcp_free_port(&port, &e), TL_OK);
    int server = listen_on(port, AF_INET);
    assert_int_equal(listen(server, 0), 0);
    tl_status st = TL_OK;
    size_t n = 0;
    while (st == TL_OK && n < TL_COUNT(fd))
        st = tl_tcp_connect(&fd[n++], "127.0.0.1", port, 100 * TL_MS, NULL, &e);
    assert_int_equal(st, TL_TIMEOUT);
    for (size_t i = 0; i < n; i++) tl_fd_close(fd[i]);
    tl_fd_close(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_runs_forward_and_can_be_replaced),
        cmocka_unit_test(wall_time_is_written_as_iso_8601),
        cmocka_unit_test(identifiers_differ_and_sort_by_time),
        cmocka_unit_test(a_file_is_replaced_whole_or_not_at_all),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(a_full_disk_is_named_and_nothing_is_lost),
        cmocka_unit_test(files_of_all_sizes_hash_right),
        cmocka_unit_test(a_file_that_changes_while_read_is_refused),
        cmocka_unit_test(folders_are_made_and_removed_within_their_root),
        cmocka_unit_test(precious_folders_are_not_removed),
        cmocka_unit_test(paths_are_taken_apart),
        cmocka_unit_test(programs_and_caches_are_found),
        cmocka_unit_test(file_systems_are_told_apart),
        cmocka_unit_test(a_lock_names_its_holder_and_ends_with_it),
        cmocka_unit_test(connections_are_opened_ahead),
        cmocka_unit_test(a_silent_server_times_out),
    };
    return cmocka_run_group_tests_name("os", tests, make_dir, drop_dir);
}

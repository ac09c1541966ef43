/* os: child processes and signals. The point of most cases is what must not survive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"

static char *dir;

static int make_dir(void **s) {
    TL_UNUSED(s);
    return tl_dir_temp(&dir, "tally-test-child", NULL) == TL_OK ? 0 : -1;
}

static int drop_dir(void **s) {
    TL_UNUSED(s);
    int bad = tl_dir_remove(dir, NULL) != TL_OK;
    free(dir);
    return bad;
}

static tl_child_spec shell(const char *const *argv) {
    return (tl_child_spec){.argv = argv};
}

#define SH(name, text)                                                                                       \
    const char *const name##_argv[] = {"sh", "-c", text, NULL};                                              \
    tl_child_spec name = shell(name##_argv)

/* Waits up to `limit` until none of the processes exists. */
static bool all_gone(const int64_t *pid, size_t n, tl_ns limit) {
    for (tl_ns end = tl_clock_now() + limit; tl_clock_now() < end; tl_sleep_ns(5 * TL_MS)) {
        size_t alive = 0;
        for (size_t i = 0; i < n; i++) alive += tl_pid_alive(pid[i]);
        if (alive == 0) return true;
    }
    return false;
}

/* Reads `n` numbers that processes write to `path`, one a line; waits for them. */
static void read_pids(int64_t *out, size_t n, const char *path) {
    for (tl_ns end = tl_clock_now() + 10 * TL_S; tl_clock_now() < end; tl_sleep_ns(5 * TL_MS)) {
        tl_buf b;
        tl_buf_init(&b, 0);
        size_t found = 0;
        if (tl_file_read(&b, path, 0, NULL) == TL_OK) {
            for (char *p = b.p, *q; found < n && (q = strchr(p, '\n')); p = q + 1) {
                *q = 0;
                found += tl_parse_i64(p, &out[found]);
            }
        }
        tl_buf_free(&b);
        if (found == n) return;
    }
    fail_msg("no %zu process ids in %s", n, path);
}

static void streams_are_captured_apart(void **s) {
    TL_UNUSED(s);
    SH(spec, "echo out; echo err >&2; exit 3");
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 10 * TL_S, NULL), TL_OK);
    assert_string_equal(r.out.p, "out\n");
    assert_string_equal(r.err.p, "err\n");
    assert_int_equal(r.exit_code, 3);
    assert_int_equal(r.signal, 0);
    assert_false(r.timed_out);
    tl_child_result_free(&r);
}

static void twenty_megabytes_are_bounded_and_counted(void **s) {
    TL_UNUSED(s);
    SH(spec, "head -c 20000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2");
    spec.out.limit = 1000;
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 30 * TL_S, NULL), TL_OK);
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(r.out.len, 1000);
    assert_int_equal(r.out_bytes, 20000000);
    assert_int_equal(r.err_bytes, 300000);
    assert_int_equal(r.err.len, 300000);
    tl_child_result_free(&r);
}

static void what_is_missing_is_named(void **s) {
    TL_UNUSED(s);
    tl_err e = {0};
    tl_child *c;
    const char *const none[] = {"no-such-program-of-tally", NULL};
    tl_child_spec spec = shell(none);
    assert_int_equal(tl_child_spawn(&c, &spec, &e), TL_MISSING);
    assert_null(c);
    assert_non_null(strstr(e.msg, "no-such-program-of-tally"));
    assert_true(strlen(e.remedy) > 0);

    char *script = tl_path_join(dir, "script");
    const char *const argv[] = {script, NULL};
    spec.argv = argv;
    assert_int_equal(tl_file_write(script, "#!/no/such/interpreter\n", 23, NULL), TL_OK);
    assert_int_equal(tl_child_spawn(&c, &spec, &e), TL_MISSING); /* not executable yet */
    assert_non_null(strstr(e.remedy, "chmod"));
    assert_int_equal(chmod(script, 0755), 0);
    assert_int_equal(tl_child_spawn(&c, &spec, &e), TL_MISSING);
    assert_non_null(strstr(e.msg, "interpreter"));
    assert_int_equal(tl_file_write(script, "echo no first line\n", 19, NULL), TL_OK);
    assert_int_equal(tl_child_spawn(&c, &spec, &e), TL_MISSING);
    assert_non_null(strstr(e.remedy, "#!/bin/sh"));
    SH(lost, "true");
    lost.cwd = "/no/such/folder";
    assert_int_equal(tl_child_spawn(&c, &lost, &e), TL_NOT_FOUND);
    assert_non_null(strstr(e.msg, "/no/such/folder"));
    const char *const empty[] = {NULL};
    spec.argv = empty;
    assert_int_equal(tl_child_spawn(&c, &spec, &e), TL_INVALID);
    free(script);
}

static void time_limit_ends_it(void **s) {
    TL_UNUSED(s);
    SH(spec, "echo before; sleep 300");
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 200 * TL_MS, NULL), TL_OK);
    assert_true(r.timed_out);
    assert_int_equal(r.signal, SIGTERM);
    assert_string_equal(r.out.p, "before\n");
    tl_child_result_free(&r);
}

static void a_child_that_ignores_sigterm_is_killed(void **s) {
    TL_UNUSED(s);
    SH(spec, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    spec.out.to = TL_TO_CAPTURE;
    tl_child *c;
    assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_OK);
    while (tl_child_captured(NULL, c, false) < 6) tl_sleep_ns(5 * TL_MS);
    assert_true(tl_child_alive(c));
    assert_string_equal(tl_child_status_text(c), "running");
    assert_int_equal(tl_child_exit_code(c), -1);
    int64_t pid = tl_child_pid(c);
    tl_child_stop(c, 100 * TL_MS);
    assert_false(tl_child_alive(c));
    assert_int_equal(tl_child_signal(c), SIGKILL);
    assert_int_equal(tl_child_exit_code(c), 128 + SIGKILL);
    assert_non_null(strstr(tl_child_status_text(c), "signal 9"));
    assert_false(tl_pid_alive(pid));
    tl_child_stop(c, 0);
    tl_child_free(c);
}

static void sigterm_gives_time_to_end_well(void **s) {
    TL_UNUSED(s);
    SH(spec, "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done");
    spec.out.to = TL_TO_CAPTURE;
    tl_child *c;
    assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_OK);
    while (tl_child_captured(NULL, c, false) < 6) tl_sleep_ns(5 * TL_MS);
    tl_child_stop(c, 10 * TL_S);
    assert_int_equal(tl_child_exit_code(c), 7);
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_child_captured(&b, c, false);
    assert_string_equal(b.p, "ready\nbye\n");
    tl_buf_free(&b);
    tl_child_free(c);
}

/* A shell that starts a background child, one in a session of its own, and then becomes something else. */
#define FAMILY                                                                                               \
    "sleep 300 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; sleep 301 & echo $! >> pids; wait' & "      \
    "echo $$ >> pids; exec sleep 302"

static void descendants_end_with_the_child(void **s) {
    TL_UNUSED(s);
    SH(spec, FAMILY);
    spec.cwd = dir;
    char *path = tl_path_join(dir, "pids");
    assert_int_equal(tl_file_remove(path, NULL), TL_OK);
    tl_child *c;
    assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_OK);
    int64_t pid[4];
    read_pids(pid, 4, path);
    for (size_t i = 0; i < 4; i++) assert_true(tl_pid_alive(pid[i]));
    tl_child_free(c);
    assert_true(all_gone(pid, 4, TL_S));
    free(path);
}

static void a_program_that_leaves_a_daemon_is_cleaned_up(void **s) {
    TL_UNUSED(s);
    SH(spec, "(setsid sh -c 'echo $$ > daemon; exec sleep 300' >/dev/null 2>&1 &) ; while ! [ -s daemon ]; "
             "do sleep 0.01; done");
    spec.cwd = dir;
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 20 * TL_S, NULL), TL_OK);
    assert_int_equal(r.exit_code, 0);
    char *path = tl_path_join(dir, "daemon");
    int64_t pid;
    read_pids(&pid, 1, path);
    assert_true(all_gone(&pid, 1, TL_S));
    tl_child_result_free(&r);
    free(path);
}

/* The parent is killed with SIGKILL: children, grandchildren and those in other sessions are gone within a
 * second. */
static void nobody_survives_a_killed_parent(void **s) {
    TL_UNUSED(s);
    char *path = tl_path_join(dir, "pids");
    assert_int_equal(tl_file_remove(path, NULL), TL_OK);
    pid_t parent = fork();
    if (parent == 0) {
        SH(one, FAMILY);
        one.cwd = dir;
        SH(two, "trap '' TERM HUP INT; echo $$ >> pids; while :; do sleep 1; done");
        two.cwd = dir;
        tl_child *a, *b;
        if (tl_child_spawn(&a, &one, NULL) != TL_OK || tl_child_spawn(&b, &two, NULL) != TL_OK) _exit(1);
        for (;;) pause();
    }
    int64_t pid[5];
    read_pids(pid, 5, path);
    for (size_t i = 0; i < 5; i++) assert_true(tl_pid_alive(pid[i]));
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    tl_ns start = tl_clock_now();
    bool gone = all_gone(pid, 5, TL_S);
    print_message("all five gone %.1f ms after the parent's death\n", (double)(tl_clock_now() - start) / 1e6);
    assert_true(gone);
    free(path);
}

static void freeing_one_child_leaves_the_other(void **s) {
    TL_UNUSED(s);
    SH(spec, "exec sleep 300");
    tl_child *a, *b;
    assert_int_equal(tl_child_spawn(&a, &spec, NULL), TL_OK);
    assert_int_equal(tl_child_spawn(&b, &spec, NULL), TL_OK);
    int64_t pa = tl_child_pid(a), pb = tl_child_pid(b);
    tl_child_free(a);
    assert_false(tl_pid_alive(pa));
    assert_true(tl_pid_alive(pb));
    assert_true(tl_child_alive(b));
    tl_child_free(b);
    assert_false(tl_pid_alive(pb));
}

static void *spawn_in_thread(void *arg) {
    SH(spec, "exec sleep 300");
    tl_child *c;
    TL_UNUSED(arg);
    return tl_child_spawn(&c, &spec, NULL) == TL_OK ? c : NULL;
}

static void a_child_outlives_the_thread_that_started_it(void **s) {
    TL_UNUSED(s);
    tl_thread *t;
    assert_int_equal(tl_thread_start(&t, spawn_in_thread, NULL, NULL), TL_OK);
    tl_child *c = tl_thread_join(t);
    assert_non_null(c);
    tl_sleep_ns(50 * TL_MS);
    assert_true(tl_child_alive(c));
    tl_child_free(c);
}

static void a_killed_supervisor_takes_the_child_along(void **s) {
    TL_UNUSED(s);
    SH(spec, "echo $PPID; exec sleep 300");
    spec.out.to = TL_TO_CAPTURE;
    tl_child *c;
    assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_OK);
    tl_buf b;
    tl_buf_init(&b, 0);
    while (!strchr(b.p, '\n')) {
        tl_buf_clear(&b);
        tl_child_captured(&b, c, false);
        tl_sleep_ns(5 * TL_MS);
    }
    b.p[b.len - 1] = 0;
    int64_t supervisor, pid = tl_child_pid(c);
    assert_true(tl_parse_i64(b.p, &supervisor));
    kill((pid_t)supervisor, SIGKILL);
    assert_int_equal(tl_child_wait(c, 5 * TL_S, NULL), TL_OK);
    assert_int_equal(tl_child_exit_code(c), -1);
    assert_non_null(strstr(tl_child_status_text(c), "supervisor"));
    tl_child_free(c);
    tl_buf_free(&b);
    /* It is now a child of init, which reaps it when it likes: a zombie counts as gone. */
    char *path = tl_xprintf("/proc/%ld/cmdline", (long)pid);
    for (tl_ns end = tl_clock_now() + TL_S; tl_clock_now() < end; tl_sleep_ns(5 * TL_MS)) {
        tl_buf_init(&b, 0);
        bool gone = tl_file_read(&b, path, 0, NULL) != TL_OK || b.len == 0;
        tl_buf_free(&b);
        if (gone) break;
    }
    tl_buf_init(&b, 0);
    assert_true(tl_file_read(&b, path, 0, NULL) != TL_OK || b.len == 0);
    tl_buf_free(&b);
    free(path);
}

static void environment_folder_and_input_arrive(void **s) {
    TL_UNUSED(s);
    SH(spec, "pwd; echo \"$A-$B-${HOME+home}\"; cat");
    const char *const env[] = {"A=1", "B=2", "HOME=/x", "PATH=/usr/bin:/bin", NULL};
    const char *const add[] = {"B=3", "HOME", NULL};
    spec.env = env;
    spec.env_add = add;
    spec.cwd = "/usr";
    spec.input = "given\n";
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 10 * TL_S, NULL), TL_OK);
    assert_string_equal(r.out.p, "/usr\n1-3-\ngiven\n");
    tl_child_result_free(&r);
    SH(none, "cat; echo end");
    assert_int_equal(tl_child_run(&r, &none, 10 * TL_S, NULL), TL_OK); /* no input: end of file at once */
    assert_string_equal(r.out.p, "end\n");
    tl_child_result_free(&r);
}

static void no_descriptor_and_no_signal_setting_is_inherited(void **s) {
    TL_UNUSED(s);
    int fd = open("/dev/null", O_RDONLY); /* without close-on-exec, on purpose */
    assert_true(fd >= 0 && dup2(fd, 77) == 77);
    signal(SIGPIPE, SIG_IGN);
    const char *const argv[] = {"sh", "-c", "ls /proc/$$/fd; grep SigIgn /proc/$$/status", NULL};
    tl_child_spec spec = shell(argv);
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 10 * TL_S, NULL), TL_OK);
    assert_string_equal(r.out.p, "0\n1\n2\nSigIgn:\t0000000000000000\n");
    tl_child_result_free(&r);
    close(fd);
    close(77);
}

static void both_streams_share_a_log_file(void **s) {
    TL_UNUSED(s);
    char *path = tl_path_join(dir, "log");
    SH(spec, "echo 1; echo 2 >&2; echo 3; echo 4 >&2");
    spec.out = spec.err = (tl_child_stream){.to = TL_TO_FILE, .path = path};
    tl_child *c;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_OK);
        assert_int_equal(tl_child_wait(c, 10 * TL_S, NULL), TL_OK);
        tl_child_free(c);
    }
    tl_buf b;
    tl_buf_init(&b, 0);
    assert_int_equal(tl_file_read(&b, path, 0, NULL), TL_OK);
    assert_string_equal(b.p, "1\n2\n3\n4\n1\n2\n3\n4\n");
    tl_buf_free(&b);
    spec.out.path = spec.err.path = "/no/such/folder/log";
    assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_NOT_FOUND);
    free(path);
}

static void limits_are_set(void **s) {
    TL_UNUSED(s);
    SH(spec, "ulimit -f; ulimit -t");
    spec.limit_file_bytes = 1024 * 1024;
    spec.limit_cpu_s = 5;
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 10 * TL_S, NULL), TL_OK);
    assert_string_equal(r.out.p, "2048\n5\n"); /* dash counts 512-byte blocks */
    tl_child_result_free(&r);
}

static void wait_tells_running_from_ended(void **s) {
    TL_UNUSED(s);
    SH(spec, "exec sleep 300");
    tl_child *c;
    tl_err e = {0};
    assert_int_equal(tl_child_spawn(&c, &spec, NULL), TL_OK);
    assert_int_equal(tl_child_wait(c, 20 * TL_MS, &e), TL_TIMEOUT);
    kill((pid_t)tl_child_pid(c), SIGSEGV);
    assert_int_equal(tl_child_wait(c, UINT64_MAX, &e), TL_OK);
    assert_int_equal(tl_child_wait(c, 0, &e), TL_OK);
    assert_int_equal(tl_child_signal(c), SIGSEGV);
    tl_child_free(c);
}

static void fifty_in_a_row_leave_no_descriptor(void **s) {
    TL_UNUSED(s);
    SH(spec, "echo x");
    tl_names before, after;
    assert_int_equal(tl_dir_list(&before, "/proc/self/fd", NULL), TL_OK);
    for (int i = 0; i < 50; i++) {
        tl_child_result r;
        assert_int_equal(tl_child_run(&r, &spec, 10 * TL_S, NULL), TL_OK);
        assert_string_equal(r.out.p, "x\n");
        tl_child_result_free(&r);
    }
    assert_int_equal(tl_dir_list(&after, "/proc/self/fd", NULL), TL_OK);
    assert_int_equal(before.n, after.n);
    tl_names_free(&before);
    tl_names_free(&after);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
}

/* ---- signals ---- */

static void signals_set_a_flag(void **s) {
    TL_UNUSED(s);
    tl_signal_install();
    tl_signal_clear();
    assert_int_equal(tl_signal_pending(), 0);
    raise(SIGTERM);
    raise(SIGINT);
    assert_int_equal(tl_signal_pending(), SIGTERM); /* the first one counts */
    assert_string_equal(tl_signal_name(SIGTERM), "SIGTERM");
    assert_string_equal(tl_signal_name(77), "signal 77");
    tl_signal_clear();
    assert_int_equal(tl_signal_pending(), 0);
    int p[2];
    assert_int_equal(pipe(p), 0);
    close(p[0]);
    assert_int_equal(write(p[1], "x", 1), -1); /* SIGPIPE did not end us */
    close(p[1]);
}

static void a_second_interrupt_ends_at_once(void **s) {
    TL_UNUSED(s);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        tl_signal_install();
        raise(SIGINT);
        raise(SIGINT);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 130);
}

static void *interrupt_soon(void *arg) {
    TL_UNUSED(arg);
    tl_sleep_ns(150 * TL_MS);
    kill(getpid(), SIGTERM);
    return NULL;
}

static void a_signal_ends_a_running_child(void **s) {
    TL_UNUSED(s);
    tl_signal_install();
    tl_signal_clear();
    SH(spec, "exec sleep 300");
    tl_thread *t;
    tl_err e = {0};
    assert_int_equal(tl_thread_start(&t, interrupt_soon, NULL, NULL), TL_OK);
    tl_child_result r;
    assert_int_equal(tl_child_run(&r, &spec, 60 * TL_S, &e), TL_CANCELLED);
    assert_non_null(strstr(e.msg, "SIGTERM"));
    tl_child_result_free(&r);
    tl_thread_join(t);
    tl_signal_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_captured_apart),
        cmocka_unit_test(twenty_megabytes_are_bounded_and_counted),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(time_limit_ends_it),
        cmocka_unit_test(a_child_that_ignores_sigterm_is_killed),
        cmocka_unit_test(sigterm_gives_time_to_end_well),
        cmocka_unit_test(descendants_end_with_the_child),
        cmocka_unit_test(a_program_that_leaves_a_daemon_is_cleaned_up),
        cmocka_unit_test(nobody_survives_a_killed_parent),
        cmocka_unit_test(freeing_one_child_leaves_the_other),
        cmocka_unit_test(a_child_outlives_the_thread_that_started_it),
        cmocka_unit_test(a_killed_supervisor_takes_the_child_along),
        cmocka_unit_test(environment_folder_and_input_arrive),
        cmocka_unit_test(no_descriptor_and_no_signal_setting_is_inherited),
        cmocka_unit_test(both_streams_share_a_log_file),
        cmocka_unit_test(limits_are_set),
        cmocka_unit_test(wait_tells_running_from_ended),
        cmocka_unit_test(fifty_in_a_row_leave_no_descriptor),
        cmocka_unit_test(signals_set_a_flag),
        cmocka_unit_test(a_second_interrupt_ends_at_once),
        cmocka_unit_test(a_signal_ends_a_running_child),
    };
    return cmocka_run_group_tests_name("os_child", tests, make_dir, drop_dir);
}

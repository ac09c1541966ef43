/* Opening what is not ours, and what other processes, full disks and kill -9 do. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mount.h>
#endif

#include "fixture.h"

static tl_status try_open(fx *f, const char *path, tl_store_mode mode, tl_err *e) {
    tl_store_options o = {.mode = mode, .busy_ms = 200};
    tl_store *s = NULL;
    TL_UNUSED(f);
    tl_status st = tl_store_open(&s, path, &o, e);
    if (st != TL_OK) assert_null(s);
    tl_store_close(s);
    return st;
}

/* ---- whose file is it ---- */

static void absent_and_foreign_files_are_refused(void **state) {
    fx *f = *state;
    char *none = tl_path_join(f->dir, "none.db"), *text = tl_path_join(f->dir, "text.db"), *other = tl_path_join(f->dir, "other.db"),
         *deep = tl_path_join(f->dir, "no/such/folder.db"), *empty = tl_path_join(f->dir, "empty.db");
    refused(TL_NOT_FOUND, "none.db", try_open(f, none, TL_STORE_READ, e));
    refused(TL_NOT_FOUND, "none.db", try_open(f, none, TL_STORE_FOREIGN, e));
    assert_false(tl_file_exists(none));
    const char *words = "this is a letter to my mother, long enough to look like something: dear mother, it is raining here all day long...";
    ok(tl_file_write(text, words, strlen(words), e));
    refused(TL_INVALID, "not a database", try_open(f, text, TL_STORE_WRITE, e));
    refused(TL_INVALID, "not a database", try_open(f, text, TL_STORE_READ, e));
    refused(TL_INVALID, "not a database", try_open(f, text, TL_STORE_FOREIGN, e));
    tl_buf b;
    tl_buf_init(&b, 0);
    ok(tl_file_read(&b, text, 0, e));
    assert_string_equal(b.p, words);
    tl_buf_free(&b);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE diary (day TEXT)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    char before[65], after[65];
    ok(tl_file_sha256(before, other, NULL, NULL, e));
    refused(TL_INVALID, "another program", try_open(f, other, TL_STORE_WRITE, e));
    refused(TL_INVALID, "another program", try_open(f, other, TL_STORE_READ, e));
    refused(TL_INVALID, "another program", try_open(f, other, TL_STORE_FOREIGN, e));
    ok(tl_file_sha256(after, other, NULL, NULL, e));
    assert_string_equal(before, after); /* not even its journal mode */
    refused(TL_IO, "no/such", try_open(f, deep, TL_STORE_WRITE, e));
    refused(TL_IO, "", try_open(f, f->dir, TL_STORE_WRITE, e));
    ok(tl_file_write(empty, "", 0, e));
    refused(TL_INVALID, "", try_open(f, empty, TL_STORE_READ, e));
    ok(try_open(f, empty, TL_STORE_WRITE, e)); /* an empty file becomes a store, as for SQLite */
    ok(try_open(f, empty, TL_STORE_READ, e));
    free(none), free(text), free(other), free(deep), free(empty);
}

static void a_newer_version_is_refused(void **state) {
    fx *f = *state;
    tl_store_close(f->s);
    f->s = NULL;
    char *sql = tl_xprintf("PRAGMA user_version = %d", tl_store_schema_version() + 1);
    assert_int_equal(raw(f->path, sql, NULL), SQLITE_OK);
    free(sql);
    refused(TL_CONFLICT, "newer tally", try_open(f, f->path, TL_STORE_WRITE, e));
    refused(TL_CONFLICT, "newer tally", try_open(f, f->path, TL_STORE_READ, e));
    refused(TL_CONFLICT, "newer tally", try_open(f, f->path, TL_STORE_FOREIGN, e));
    assert_int_equal(raw_int(f->path, "PRAGMA user_version"), tl_store_schema_version() + 1);
}

static void a_store_opened_for_reading_is_not_written(void **state) {
    fx *f = *state;
    fill_all(f);
    tl_store_close(f->s);
    f->s = NULL;
    for (int mode = TL_STORE_READ; mode <= TL_STORE_FOREIGN; mode++) {
        f->s = open_mode(f->path, (tl_store_mode)mode);
        char id[TL_STORE_ID];
        tl_store_value v = a_value(f, 1);
        refused(TL_INVALID, "reading only", tl_store_value_add(id, f->s, &v, e));
        json_t *show = NULL;
        ok(tl_store_run_show(&show, f->s, f->run, e));
        assert_int_equal(json_array_size(json_object_get(show, "values")), 3);
        json_decref(show);
        tl_store_close(f->s);
        f->s = NULL;
    }
}

/* ---- locks and processes ---- */

static pid_t spawn(void (*child)(fx *f, int n), fx *f, int n) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(f, n);
        _exit(0);
    }
    return pid;
}

static int ended(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_locked_database_is_said_to_be_locked(void **state) {
    fx *f = *state;
    tl_store *second = NULL;
    tl_store_options o = {.busy_ms = 100};
    ok(tl_store_open(&second, f->path, &o, e));
    ok(tl_store_begin(f->s, e));
    tl_err why = {0};
    assert_int_equal(tl_store_begin(second, &why), TL_CONFLICT);
    assert_non_null(strstr(why.msg, "locked by another process"));
    assert_true(strlen(why.remedy) > 0);
    tl_store_rollback(f->s);
    ok(tl_store_begin(second, e));
    tl_store_rollback(second);
    tl_store_close(second);
    /* locked so that even opening fails */
    tl_store_close(f->s);
    f->s = NULL;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    refused(TL_CONFLICT, "locked", try_open(f, f->path, TL_STORE_WRITE, e));
    sqlite3_close(db);
}

static void lock_and_stay(fx *f, int ready) {
    tl_store *s = NULL;
    if (tl_store_open(&s, f->path, NULL, NULL) != TL_OK || tl_store_run_lock(s, f->run, NULL) != TL_OK) _exit(1);
    if (write(ready, "x", 1) != 1) _exit(2);
    for (;;) pause();
}

static void one_run_has_one_process(void **state) {
    fx *f = *state;
    int p[2];
    char x;
    assert_int_equal(pipe(p), 0);
    pid_t child = spawn(lock_and_stay, f, p[1]);
    assert_int_equal(read(p[0], &x, 1), 1);
    refused(TL_CONFLICT, "another tally", tl_store_run_lock(f->s, f->run, e));
    kill(child, SIGKILL);
    assert_int_equal(ended(child), 128 + SIGKILL);
    ok(tl_store_run_lock(f->s, f->run, e));
    tl_store_run_unlock(f->s, f->run);
    ok(tl_store_run_lock(f->s, f->run, e));
    tl_store_run_unlock(f->s, f->run);
    tl_store_run_unlock(f->s, "never locked");
    close(p[0]);
    close(p[1]);
}

static void create_and_write(fx *f, int n) {
    char *path = tl_path_join(f->dir, "new.db"), id[65];
    tl_store *s = NULL;
    tl_err e = {0};
    tl_store_options o = {.busy_ms = 30000};
    if (tl_store_open(&s, path, &o, &e) != TL_OK) {
        fprintf(stderr, "%s\n", e.msg);
        _exit(1);
    }
    for (int i = 0; i < 5; i++) {
        json_t *facts = json_pack("{s:i, s:i}", "process", n, "i", i);
        if (tl_store_machine(id, s, NULL, facts, &e) != TL_OK) {
            fprintf(stderr, "%s\n", e.msg);
            _exit(2);
        }
        json_decref(facts);
    }
    json_t *same = json_pack("{s:s}", "the", "same");
    if (tl_store_machine(id, s, NULL, same, &e) != TL_OK) _exit(3);
    _exit(0); /* without closing */
}

static void eight_processes_create_it_at_once(void **state) {
    fx *f = *state;
    pid_t pid[8];
    for (int i = 0; i < 8; i++) pid[i] = spawn(create_and_write, f, i);
    for (int i = 0; i < 8; i++) assert_int_equal(ended(pid[i]), 0);
    char *path = tl_path_join(f->dir, "new.db");
    tl_store *s = open_mode(path, TL_STORE_WRITE);
    tl_store_verdict v;
    ok(tl_store_verify(&v, s, NULL, NULL, NULL, e));
    assert_int_equal(v.rows, 8 * 5 + 1);
    tl_store_close(s);
    free(path);
}

static void write_until_killed(fx *f, int acknowledged) {
    tl_store *s = NULL;
    if (tl_store_open(&s, f->path, NULL, NULL) != TL_OK) _exit(1);
    for (int64_t i = 0;; i++) {
        tl_store_request r = a_request(f, i);
        if (i % 3 == 2 && tl_store_begin(s, NULL) != TL_OK) _exit(2);
        if (tl_store_request_add(NULL, s, &r, NULL) != TL_OK) _exit(3);
        if (i % 3 == 2 && tl_store_commit(s, NULL) != TL_OK) _exit(4);
        if (write(acknowledged, &i, sizeof i) != sizeof i) _exit(5);
    }
}

static void kill_9_loses_nothing_acknowledged(void **state) {
    fx *f = *state;
    tl_store_close(f->s);
    for (int round = 0; round < 3; round++) {
        f->s = open_mode(f->path, TL_STORE_WRITE);
        tl_store_trial t = {.run_id = f->run, .cell_key = "b", .round = round, .position = round, .cache_claimed = "cold"};
        ok(tl_store_trial_start(f->trial, f->s, &t, e));
        tl_store_close(f->s);
        f->s = NULL;
        int p[2];
        int64_t last = -1, i;
        assert_int_equal(pipe(p), 0);
        pid_t child = spawn(write_until_killed, f, p[1]);
        close(p[1]);
        while (last < 4 + round && read(p[0], &i, sizeof i) == sizeof i) last = i;
        kill(child, SIGKILL);
        assert_int_equal(ended(child), 128 + SIGKILL);
        while (read(p[0], &i, sizeof i) == sizeof i) last = i;
        close(p[0]);
        f->s = open_mode(f->path, TL_STORE_WRITE);
        tl_store_verdict v;
        ok(tl_store_verify(&v, f->s, NULL, NULL, NULL, e));
        char *sql = tl_xprintf("SELECT count(*) FROM request WHERE trial = '%s'", f->trial);
        int64_t n = raw_int(f->path, sql);
        assert_true(n == last + 1 || n == last + 2); /* the last one may have been committed and not yet told */
        free(sql);
        tl_store_close(f->s);
    }
    f->s = open_mode(f->path, TL_STORE_WRITE);
}

static void a_foreign_file_with_a_wal_is_incomplete(void **state) {
    fx *f = *state; /* still open: its rows stand in the -wal */
    refused(TL_INVALID, "not complete", try_open(f, f->path, TL_STORE_FOREIGN, e));
}

static void readers_see_only_what_is_committed(void **state) {
    fx *f = *state;
    tl_store *reader = open_mode(f->path, TL_STORE_READ);
    json_t *rows = NULL;
    tl_store_request r = a_request(f, 0);
    ok(tl_store_begin(f->s, e));
    ok(tl_store_request_add(NULL, f->s, &r, e));
    ok(tl_store_requests(&rows, reader, f->run, NULL, e)); /* while another writes */
    assert_int_equal(json_array_size(rows), 0);
    json_decref(rows);
    ok(tl_store_requests(&rows, f->s, f->run, NULL, e));
    assert_int_equal(json_array_size(rows), 1);
    json_decref(rows);
    ok(tl_store_commit(f->s, e));
    ok(tl_store_requests(&rows, reader, f->run, NULL, e));
    assert_int_equal(json_array_size(rows), 1);
    json_decref(rows);
    tl_store *writer = open_mode(f->path, TL_STORE_WRITE); /* the other's chain goes on where this one's ended */
    r.position = 1;
    ok(tl_store_request_add(NULL, writer, &r, e));
    r.position = 2;
    ok(tl_store_request_add(NULL, f->s, &r, e));
    tl_store_verdict v;
    ok(tl_store_verify(&v, reader, NULL, NULL, NULL, e));
    tl_store_close(writer);
    tl_store_close(reader);
}

/* ---- no room, no right ---- */

static void fill_up(tl_store *s, fx *f, int64_t *stored) {
    size_t n = 64 << 10;
    char *big = tl_xalloc(n + 1);
    tl_err e = {0};
    tl_status st = TL_OK;
    memset(big, 'x', n);
    for (*stored = 0; st == TL_OK && *stored < 2000;) {
        tl_store_request r = a_request(f, *stored);
        r.last_object = big;
        st = tl_store_request_add(NULL, s, &r, &e);
        if (st == TL_OK) ++*stored;
    }
    free(big);
    if (st != TL_IO || strstr(e.msg, "full") == NULL) fail_msg("after %" PRId64 " rows: %s %s", *stored, tl_status_name(st), e.msg);
    assert_non_null(strstr(e.remedy, "--resume"));
}

static void check_full(tl_store *s, fx *f, int64_t stored) {
    json_t *rows = NULL;
    tl_store_verdict v;
    ok(tl_store_requests(&rows, s, f->run, NULL, e)); /* what was acknowledged is there, and reading works */
    assert_int_equal(json_array_size(rows), stored);
    json_decref(rows);
    ok(tl_store_verify(&v, s, NULL, NULL, NULL, e));
}

static void a_full_database_keeps_what_it_has(void **state) {
    fx *f = *state;
    int64_t stored = 0;
    tl_store_close(f->s);
    tl_store_options o = {.max_bytes = 2000000};
    ok(tl_store_open(&f->s, f->path, &o, e));
    fill_up(f->s, f, &stored);
    assert_true(stored > 3);
    check_full(f->s, f, stored);
    tl_store_close(f->s);
    f->s = open_mode(f->path, TL_STORE_WRITE); /* room again */
    tl_store_request r = a_request(f, stored);
    ok(tl_store_request_add(NULL, f->s, &r, e));
    check_full(f->s, f, stored + 1);
}

static void a_batch_that_met_a_full_disk_is_lost_as_a_whole(void **state) {
    fx *f = *state;
    tl_store_close(f->s);
    tl_store_options o = {.max_bytes = 1500000};
    ok(tl_store_open(&f->s, f->path, &o, e));
    size_t n = 64 << 10;
    char *big = tl_xalloc(n + 1);
    memset(big, 'x', n);
    tl_status st = TL_OK;
    ok(tl_store_begin(f->s, e));
    for (int64_t i = 0; st == TL_OK && i < 2000; i++) {
        tl_store_request r = a_request(f, i);
        r.last_object = big;
        st = tl_store_request_add(NULL, f->s, &r, NULL);
    }
    free(big);
    assert_int_equal(st, TL_IO);
    tl_err why = {0};
    st = tl_store_commit(f->s, &why); /* says so, or has saved the rows before it: never half of a row */
    int64_t requests = raw_int(f->path, "SELECT count(*) FROM request");
    if (st != TL_OK) assert_int_equal(requests, 0);
    assert_int_equal(requests, raw_int(f->path, "SELECT count(*) FROM events"));
    tl_store_verdict v;
    ok(tl_store_verify(&v, f->s, NULL, NULL, NULL, e));
}

static void a_full_disk_keeps_what_it_has(void **state) {
#ifdef __linux__
    fx *f = *state;
    char *disk = tl_path_join(f->dir, "disk");
    ok(tl_dir_make(disk, e));
    if (mount("tmpfs", disk, "tmpfs", 0, "size=3m") != 0) {
        free(disk);
        skip(); /* needs root */
    }
    char *path = tl_path_join(disk, "tally.db");
    int64_t stored = 0;
    fx on = {.dir = disk, .path = path};
    on.s = open_mode(path, TL_STORE_WRITE);
    fill(&on);
    fill_up(on.s, &on, &stored);
    check_full(on.s, &on, stored);
    tl_store_close(on.s);
    on.s = open_mode(path, TL_STORE_READ);
    check_full(on.s, &on, stored);
    tl_store_close(on.s);
    assert_int_equal(umount(disk), 0);
    free(path);
    free(disk);
#else
    TL_UNUSED(state);
    skip();
#endif
}

/* Also when the test has failed half-way. */
static int disk_teardown(void **state) {
#ifdef __linux__
    fx *f = *state;
    char *disk = tl_path_join(f->dir, "disk");
    umount2(disk, MNT_DETACH);
    free(disk);
#endif
    return fx_teardown(state);
}

static void read_only_there(fx *f, int n) {
    tl_store *s = NULL;
    tl_err e = {0};
    char *there = tl_path_join(f->dir, "ro/tally.db"), *fresh = tl_path_join(f->dir, "ro/new.db");
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
    if (tl_store_open(&s, fresh, NULL, &e) != TL_IO || strstr(e.msg, "new.db") == NULL || e.remedy[0] == 0) _exit(1);
    if (n == 1 && (tl_store_open(&s, there, NULL, &e) != TL_IO || strstr(e.msg, "read-only") == NULL)) _exit(2);
    tl_store_options o = {.mode = TL_STORE_FOREIGN};
    json_t *runs = NULL;
    if (tl_store_open(&s, there, &o, &e) != TL_OK || tl_store_runs(&runs, s, NULL, 0, &e) != TL_OK || json_array_size(runs) != 1) _exit(3);
    tl_store_close(s);
    o.mode = TL_STORE_READ; /* a published copy is no WAL: it opens where nothing can be written */
    if (tl_store_open(&s, there, &o, &e) != TL_OK || tl_store_runs(&runs, s, NULL, 0, &e) != TL_OK || json_array_size(runs) != 1) _exit(4);
    _exit(0);
}

static void a_read_only_folder_is_said_and_can_be_read(void **state) {
    fx *f = *state;
    char *ro = tl_path_join(f->dir, "ro"), *copy = tl_path_join(ro, "tally.db");
    ok(tl_dir_make(ro, e));
    ok(tl_store_copy_to(f->s, copy, e));
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chmod(copy, 0444), 0);
    assert_int_equal(chmod(ro, 0555), 0);
    assert_int_equal(ended(spawn(read_only_there, f, 1)), 0);
    assert_int_equal(chmod(ro, 0755), 0);
    free(copy);
    free(ro);
}

static void a_store_on_a_network_disk_has_no_wal(void **state) {
    fx *f = *state;
    char *path = tl_path_join(f->dir, "net.db"), *wal = tl_path_join(f->dir, "net.db-wal");
    tl_store_options o = {.network_fs = true};
    tl_store *s = NULL;
    tl_level before = tl_log_level;
    tl_log_level = TL_LOG_QUIET;
    ok(tl_store_open(&s, path, &o, e));
    tl_log_level = before;
    char id[65];
    json_t *facts = js("{}");
    ok(tl_store_machine(id, s, NULL, facts, e));
    json_decref(facts);
    assert_false(tl_file_exists(wal));
    tl_store_close(s);
    free(path);
    free(wal);
}

#define WITH(setup, t) cmocka_unit_test_setup_teardown(t, setup, fx_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH(fx_setup, absent_and_foreign_files_are_refused), WITH(fx_filled, a_newer_version_is_refused),
        WITH(fx_filled, a_store_opened_for_reading_is_not_written), WITH(fx_filled, a_locked_database_is_said_to_be_locked),
        WITH(fx_filled, one_run_has_one_process), WITH(fx_setup, eight_processes_create_it_at_once),
        WITH(fx_filled, kill_9_loses_nothing_acknowledged), WITH(fx_filled, readers_see_only_what_is_committed), WITH(fx_filled, a_foreign_file_with_a_wal_is_incomplete),
        WITH(fx_filled, a_full_database_keeps_what_it_has), WITH(fx_filled, a_batch_that_met_a_full_disk_is_lost_as_a_whole),
        cmocka_unit_test_setup_teardown(a_full_disk_keeps_what_it_has, fx_setup, disk_teardown), WITH(fx_filled, a_read_only_folder_is_said_and_can_be_read),
        WITH(fx_setup, a_store_on_a_network_disk_has_no_wal),
    };
    return cmocka_run_group_tests_name("store processes", tests, NULL, NULL);
}

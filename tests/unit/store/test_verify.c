/* Whoever changes the file behind tally's back is noticed and named; copies are complete. */
#include "fixture.h"

typedef struct seen {
    char text[4096];
    size_t n;
} seen;

static void note(void *ctx, const char *table, int64_t seq, const char *text) {
    seen *x = ctx;
    size_t at = strlen(x->text);
    snprintf(x->text + at, sizeof x->text - at, "%s/%" PRId64 "/%s\n", table, seq, text);
    x->n++;
}

static tl_status verify(tl_store_verdict *v, seen *x, fx *f, const char *head, tl_err *e) {
    memset(x, 0, sizeof *x);
    return tl_store_verify(v, f->s, head, note, x, e);
}

static void found(fx *f, const char *words) {
    tl_store_verdict v;
    seen x;
    refused(TL_REFUSED, f->path, verify(&v, &x, f, NULL, e));
    assert_int_equal(v.findings, x.n);
    if (strstr(x.text, words) == NULL) fail_msg("wanted '%s', found:\n%s", words, x.text);
}

#define UNGUARD "PRAGMA writable_schema=ON; PRAGMA recursive_triggers=OFF; "

/* Changes the file as someone would who knows SQLite, and puts the triggers back so that only the data speaks. */
static void tamper(fx *f, const char *table, const char *change) {
    char *drop = tl_xprintf("CREATE TEMP TABLE g AS SELECT sql FROM sqlite_master WHERE type='trigger' AND tbl_name='%s';", table), *why = NULL;
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, drop, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type='trigger' AND tbl_name=?", -1, &q, NULL), SQLITE_OK);
    sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
    tl_buf sql;
    tl_buf_init(&sql, 0);
    while (sqlite3_step(q) == SQLITE_ROW) tl_buf_fmt(&sql, "DROP TRIGGER %s;", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    tl_buf_fmt(&sql, "%s;", change);
    if (sqlite3_exec(db, sql.p, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s: %s", sql.p, why);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT sql FROM temp.g", -1, &q, NULL), SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW)
        assert_int_equal(sqlite3_exec(db, (const char *)sqlite3_column_text(q, 0), NULL, NULL, NULL), SQLITE_OK);
    sqlite3_finalize(q);
    sqlite3_close(db);
    tl_buf_free(&sql);
    free(drop);
}

static int filled(void **state) {
    fx_filled(state);
    fill_all(*state);
    return 0;
}

static void an_untouched_store_verifies(void **state) {
    fx *f = *state;
    tl_store_verdict v;
    seen x;
    char head[65], later[65];
    ok(verify(&v, &x, f, NULL, e));
    assert_int_equal(v.rows, raw_int(f->path, "SELECT count(*) FROM chain"));
    assert_int_equal(v.findings, 0);
    ok(tl_store_head(head, f->s, e));
    assert_string_equal(head, v.head);
    ok(verify(&v, &x, f, head, e));
    assert_true(v.head_found);
    assert_int_equal(v.rows_after, 0);
    tl_store_value w = a_value(f, 4);
    char id[TL_STORE_ID];
    ok(tl_store_value_add(id, f->s, &w, e));
    ok(verify(&v, &x, f, head, e));
    assert_true(v.head_found);
    assert_int_equal(v.rows_after, 1);
    ok(tl_store_head(later, f->s, e));
    assert_string_not_equal(head, later);
    for (char *p = head; *p; p++)
        if (*p >= 'a') *p = (char)(*p - 32); /* typed from paper */
    ok(verify(&v, &x, f, head, e));
    refused(TL_INVALID, "64", verify(&v, &x, f, "abc", e));
    assert_int_equal(raw(f->path, "ANALYZE", NULL), SQLITE_OK); /* the planner's statistics are nobody's data */
    ok(verify(&v, &x, f, later, e));
}

static void an_empty_store_has_a_head(void **state) {
    fx *f = *state;
    tl_store_verdict v;
    seen x;
    char head[65];
    ok(tl_store_head(head, f->s, e));
    assert_int_equal(strspn(head, "0"), 64);
    ok(verify(&v, &x, f, head, e));
    assert_true(v.head_found && v.rows == 0);
    fill(f);
    ok(verify(&v, &x, f, head, e));
    assert_int_equal(v.rows_after, v.rows);
}

static void a_changed_cell_names_row_and_column(void **state) {
    fx *f = *state;
    tamper(f, "value", "UPDATE value SET number = 32.250000001 WHERE name = 'bandwidth'");
    found(f, "was changed after it was written: number\n");
    tl_store_verdict v;
    seen x;
    refused(TL_REFUSED, "value, row", verify(&v, &x, f, NULL, e));
    assert_int_equal(v.findings, 1);
    tamper(f, "request", "UPDATE request SET error_text = '500', t_close_ns = 1 WHERE outcome = 'failed'");
    found(f, "error_text, t_close_ns\n");
    refused(TL_REFUSED, "2 changes", verify(&v, &x, f, NULL, e));
}

static void every_column_of_every_table_counts(void **state) {
    fx *f = *state;
    tl_store_verdict v;
    seen x;
    ok(verify(&v, &x, f, NULL, e));
    tamper(f, "events", "UPDATE events SET body = CAST(substr(body, 1, length(body) - 1) || x'05' AS BLOB) WHERE count = 3");
    found(f, "events/");
    tamper(f, "run", "UPDATE run SET seed = seed + 1");
    found(f, "written: seed\n");
    tamper(f, "edge", "UPDATE edge SET role = 'x' WHERE position = 1");
    found(f, "written: role\n");
    tamper(f, "artifact", "UPDATE artifact SET trial = NULL");
    found(f, "written: trial\n");
}

static void one_flipped_byte_of_the_file_is_found(void **state) {
    fx *f = *state;
    tl_store_close(f->s);
    f->s = NULL;
    assert_int_equal(raw(f->path, "PRAGMA wal_checkpoint(TRUNCATE)", NULL), SQLITE_OK);
    tl_buf b;
    tl_buf_init(&b, 0);
    ok(tl_file_read(&b, f->path, 0, e));
    char *at = NULL;
    for (size_t i = 0; i + 27 < b.len; i++)
        if (memcmp(b.p + i, "another program was running", 27) == 0) at = b.p + i;
    assert_non_null(at);
    *at = 'A';
    ok(tl_file_write(f->path, b.p, b.len, e));
    tl_buf_free(&b);
    f->s = open_mode(f->path, TL_STORE_READ);
    found(f, "written: why\n");
    tl_store_close(f->s);
    f->s = open_mode(f->path, TL_STORE_FOREIGN);
    found(f, "retraction/");
}

static void a_deleted_row_is_found(void **state) {
    fx *f = *state;
    tamper(f, "request", "PRAGMA foreign_keys=OFF; DELETE FROM request WHERE outcome = 'failed'");
    found(f, "was deleted\n");
}

static void a_row_taken_out_of_the_chain_is_found(void **state) {
    fx *f = *state;
    int64_t seq = raw_int(f->path, "SELECT seq FROM request WHERE outcome = 'failed'");
    char *chain = tl_xprintf("DELETE FROM chain WHERE seq = %" PRId64, seq);
    tamper(f, "request", "PRAGMA foreign_keys=OFF; DELETE FROM request WHERE outcome = 'failed'");
    tamper(f, "chain", chain);
    found(f, "1 row is missing before this row\n");
    free(chain);
}

static void a_row_put_in_behind_its_back_is_found(void **state) {
    fx *f = *state;
    assert_int_equal(raw(f->path,
                         "INSERT INTO value SELECT 9999, '01J00000000000000000000000', run, cell, name, label, 99, NULL, NULL, NULL, NULL, 1, "
                         "unit, statistic, formula, source FROM value WHERE name = 'decode_rate'",
                         NULL),
                     SQLITE_OK);
    found(f, "value/9999/stands outside the chain");
}

static void a_chain_written_anew_for_one_row_is_found(void **state) {
    fx *f = *state;
    tamper(f, "chain", "UPDATE chain SET hash = zeroblob(32) WHERE seq = 5");
    found(f, "/5/its hash does not follow");
    tamper(f, "chain", "UPDATE chain SET tab = 'sqlite_master' WHERE seq = 7");
    found(f, "names a table");
}

static void dropped_and_altered_triggers_are_found(void **state) {
    fx *f = *state;
    assert_int_equal(raw(f->path, "DROP TRIGGER value_no_update", NULL), SQLITE_OK);
    found(f, "schema/0/the trigger 'value_no_update' is missing\n");
    assert_int_equal(raw(f->path, "CREATE TRIGGER value_no_update BEFORE UPDATE ON value WHEN 0 BEGIN SELECT 1; END", NULL), SQLITE_OK);
    found(f, "the trigger 'value_no_update' was changed\n");
    assert_int_equal(raw(f->path, "CREATE TRIGGER mine AFTER INSERT ON value BEGIN SELECT 1; END; CREATE VIEW v AS SELECT 1", NULL), SQLITE_OK);
    found(f, "the trigger 'mine' is not tally's\n");
    found(f, "the view 'v' is not tally's\n");
    assert_int_equal(raw(f->path, "DROP INDEX value_name", NULL), SQLITE_OK);
    found(f, "the index 'value_name' is missing\n");
}

static void all_triggers_swept_away_are_found(void **state) {
    fx *f = *state;
    assert_int_equal(raw(f->path, UNGUARD "DELETE FROM sqlite_master WHERE type = 'trigger'", NULL), SQLITE_OK);
    found(f, "the trigger 'chain_no_delete' is missing");
    tl_store_close(f->s);
    f->s = open_mode(f->path, TL_STORE_READ);
    found(f, "the trigger 'value_derived' is missing");
}

static void a_table_that_is_gone_is_a_finding_not_a_crash(void **state) {
    fx *f = *state;
    assert_int_equal(raw(f->path, "DROP TABLE retraction", NULL), SQLITE_OK);
    found(f, "the table 'retraction' is missing\n");
}

static void rows_cut_off_at_the_end_need_a_head(void **state) {
    fx *f = *state;
    char head[65];
    tl_store_verdict v;
    seen x;
    ok(tl_store_head(head, f->s, e));
    int64_t last = raw_int(f->path, "SELECT max(seq) FROM chain"); /* the figure */
    tamper(f, "figure", "DELETE FROM figure");
    char *cut = tl_xprintf("DELETE FROM chain WHERE seq = %" PRId64, last);
    tamper(f, "chain", cut);
    free(cut);
    ok(verify(&v, &x, f, NULL, e)); /* nothing in the file can show it */
    refused(TL_REFUSED, "cut off", verify(&v, &x, f, head, e));
    assert_false(v.head_found);
    assert_int_equal(v.rows, last - 1);
}

static void damaged_pages_are_said_not_crashed_on(void **state) {
    fx *f = *state;
    tl_store_close(f->s);
    f->s = NULL;
    assert_int_equal(raw(f->path, "PRAGMA wal_checkpoint(TRUNCATE)", NULL), SQLITE_OK);
    tl_buf b;
    tl_rng g;
    tl_buf_init(&b, 0);
    tl_rng_seed(&g, 3);
    ok(tl_file_read(&b, f->path, 0, e));
    for (size_t round = 0; round < 15; round++) {
        size_t at = 4096 + tl_rng_below(&g, b.len - 4096 - 64);
        char saved[64];
        memcpy(saved, b.p + at, sizeof saved);
        for (size_t i = 0; i < sizeof saved; i++) b.p[at + i] = (char)tl_rng_u64(&g);
        ok(tl_file_write(f->path, b.p, b.len, e));
        tl_store_options o = {.mode = TL_STORE_FOREIGN};
        tl_store *s = NULL;
        tl_err why = {0};
        if (tl_store_open(&s, f->path, &o, &why) == TL_OK) {
            tl_store_verdict v;
            json_t *show = NULL;
            tl_status st = tl_store_verify(&v, s, NULL, NULL, NULL, &why); /* OK only where bytes hit unused space */
            assert_true(st == TL_OK || st == TL_REFUSED || st == TL_INVALID);
            if (tl_store_run_show(&show, s, f->run, &why) == TL_OK) json_decref(show);
        }
        tl_store_close(s);
        memcpy(b.p + at, saved, sizeof saved);
    }
    tl_buf_free(&b);
}

/* ---- copies ---- */

static void a_copy_is_complete_and_one_file(void **state) {
    fx *f = *state;
    char *copy = tl_path_join(f->dir, "it's a copy%20?.db"), head[65], copied[65];
    ok(tl_store_copy_to(f->s, copy, e));
    refused(TL_CONFLICT, "exists", tl_store_copy_to(f->s, copy, e));
    tl_buf b;
    tl_buf_init(&b, 0);
    ok(tl_file_read(&b, copy, 0, e));
    assert_int_equal(b.p[18], 1); /* rollback journal, not WAL: readable from a read-only place */
    assert_int_equal(b.p[19], 1);
    tl_buf_free(&b);
    tl_names names = {0};
    ok(tl_dir_list(&names, f->dir, e));
    for (size_t i = 0; i < names.n; i++) assert_null(strstr(names.v[i], ".tmp"));
    tl_names_free(&names);
    tl_store *s = open_mode(copy, TL_STORE_FOREIGN);
    tl_store_verdict v;
    ok(tl_store_head(head, f->s, e));
    ok(tl_store_verify(&v, s, head, NULL, NULL, e));
    ok(tl_store_head(copied, s, e));
    assert_string_equal(head, copied);
    json_t *one = NULL, *two = NULL;
    ok(tl_store_run_show(&one, f->s, f->run, e));
    ok(tl_store_run_show(&two, s, f->run, e));
    assert_true(json_equal(one, two));
    json_decref(one);
    json_decref(two);
    tl_store_close(s);
    s = open_mode(f->path, TL_STORE_READ); /* from a store that was opened for reading */
    char *second = tl_path_join(f->dir, "b.db"), *nowhere = tl_path_join(f->dir, "no/such/c.db");
    ok(tl_store_copy_to(s, second, e));
    refused(TL_IO, "no/such", tl_store_copy_to(s, nowhere, e));
    ok(tl_store_begin(f->s, e));
    refused(TL_CONFLICT, "batch", tl_store_copy_to(f->s, nowhere, e));
    tl_store_rollback(f->s);
    tl_store_close(s);
    free(second);
    free(nowhere);
    free(copy);
}

#define WITH(setup, t) cmocka_unit_test_setup_teardown(t, setup, fx_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH(filled, an_untouched_store_verifies), WITH(fx_setup, an_empty_store_has_a_head), WITH(filled, a_changed_cell_names_row_and_column),
        WITH(filled, every_column_of_every_table_counts), WITH(filled, one_flipped_byte_of_the_file_is_found), WITH(filled, a_deleted_row_is_found),
        WITH(filled, a_row_taken_out_of_the_chain_is_found), WITH(filled, a_row_put_in_behind_its_back_is_found),
        WITH(filled, a_chain_written_anew_for_one_row_is_found), WITH(filled, dropped_and_altered_triggers_are_found),
        WITH(filled, all_triggers_swept_away_are_found), WITH(filled, a_table_that_is_gone_is_a_finding_not_a_crash),
        WITH(filled, rows_cut_off_at_the_end_need_a_head), WITH(filled, damaged_pages_are_said_not_crashed_on),
        WITH(filled, a_copy_is_complete_and_one_file),
    };
    return cmocka_run_group_tests_name("store verify", tests, NULL, NULL);
}

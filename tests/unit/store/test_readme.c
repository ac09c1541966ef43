/* The README's queries, run by the sqlite3 shell on a filled database. */
#include "fixture.h"

#define COMMAND "sqlite3 tally.db \""

static int filled(void **state) {
    fx_filled(state);
    fill_all(*state);
    return 0;
}

/* The next query, owned by the caller; NULL at the end. */
static char *next_query(const char **at) {
    const char *p = strstr(*at, "\n" COMMAND);
    if (p == NULL) return NULL;
    p += strlen("\n" COMMAND);
    const char *end = strchr(p, '\n');
    assert_non_null(end);
    assert_true(end[-1] == '"');
    *at = end;
    return tl_xstrndup(p, (size_t)(end - p) - 1);
}

static void every_query_of_the_readme_answers(void **state) {
    fx *f = *state;
    tl_buf text;
    char *sql;
    size_t n = 0;
    char *shell = tl_path_which("sqlite3");
    tl_buf_init(&text, 0);
    ok(tl_file_read(&text, TL_SOURCE_DIR "/harness/store/README.md", 0, e));
    const char *at = text.p;
    while ((sql = next_query(&at)) != NULL) {
        json_t *rows = NULL;
        ok(tl_store_select(&rows, f->s, sql, e));
        if (json_array_size(rows) == 0) fail_msg("no row: %s", sql);
        if (shell != NULL) {
            const char *const argv[] = {"sqlite3", f->path, sql, NULL};
            tl_child_spec spec = {.argv = argv};
            tl_child_result out;
            ok(tl_child_run(&out, &spec, 20 * TL_S, e));
            if (out.exit_code != 0 || out.out.len == 0) fail_msg("%s: %s", sql, out.err.p);
            tl_child_result_free(&out);
        }
        json_decref(rows);
        free(sql);
        n++;
    }
    assert_true(n >= 8);
    free(shell);
    tl_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(every_query_of_the_readme_answers, filled, fx_teardown)};
    return cmocka_run_group_tests_name("store readme", tests, NULL, NULL);
}

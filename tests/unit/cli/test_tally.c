/* The program as people meet it: exit codes, one message an error, help, man page, completions, installation,
 * synth and doctor on a machine that lacks things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "os/os.h"
#include <cmocka.h>

static char *dir; /* private folder of this run */

static int setup(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    return tl_dir_temp(&dir, "tally-test", &e) == TL_OK ? 0 : -1;
}

static int teardown(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    int rc = tl_dir_remove(dir, &e) == TL_OK ? 0 : -1;
    free(dir);
    return rc;
}

typedef struct result {
    int code;
    tl_buf out, err;
} result;

static void run_env(result *r, const char *const *argv, const char *const *env_add) {
    tl_child_result c = {0};
    tl_err e = {0};
    tl_child_spec spec = {.argv = argv, .env_add = env_add, .cwd = dir};
    if (tl_child_run(&c, &spec, 60 * TL_S, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_false(c.timed_out);
    r->code = c.exit_code;
    r->out = c.out;
    r->err = c.err;
}

static void done(result *r) {
    tl_buf_free(&r->out);
    tl_buf_free(&r->err);
}

/* Runs `tally` with up to six words and checks the exit code. */
static void tally(result *r, int code, const char *a, const char *b, const char *c, const char *d,
                  const char *f, const char *g) {
    const char *argv[] = {TALLY, a, b, c, d, f, g, NULL};
    const char *const env[] = {"LC_ALL=C", "NO_COLOR", "TALLY_DB", NULL};
    run_env(r, argv, env);
    if (r->code != code)
        fail_msg("tally %s %s: exit %d, wanted %d: %s%s", a ? a : "", b ? b : "", r->code, code, r->out.p,
                 r->err.p);
}

static size_t count(const char *text, const char *word) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++) n++;
    return n;
}

static void usage_errors(void **state) {
    TL_UNUSED(state);
    static const char *const lines[][2] = {{"dcotor", NULL},      {"doctor", "--jsno"},     {"doctor", "x"},
                                           {"synth", "--layers"}, {"--completion", "tcsh"}, {"synth", NULL}};
    for (size_t i = 0; i < TL_COUNT(lines); i++) {
        result r;
        tally(&r, 2, lines[i][0], lines[i][1], NULL, NULL, NULL, NULL);
        assert_int_equal(r.out.len, 0);
        assert_int_equal(count(r.err.p, "tally: "), 1); /* once */
        assert_int_equal(count(r.err.p, "\n  → "), 1);
        assert_null(strchr(r.err.p, '\033')); /* not a terminal: no colour */
        done(&r);
    }
    result r;
    tally(&r, 2, NULL, NULL, NULL, NULL, NULL, NULL);
    assert_non_null(strstr(r.err.p, "usage: tally VERB"));
    done(&r);
}

static void help_and_version(void **state) {
    TL_UNUSED(state);
    result r;
    tally(&r, 0, "--help", NULL, NULL, NULL, NULL, NULL);
    assert_non_null(strstr(r.out.p, "doctor"));
    assert_int_equal(r.err.len, 0);
    done(&r);
    tally(&r, 0, "synth", "--help", NULL, NULL, NULL, NULL);
    assert_non_null(strstr(r.out.p, "tally synth llama --size 350MB"));
    done(&r);
    tally(&r, 0, "--version", "--json", NULL, NULL, NULL, NULL);
    json_t *j = json_loads(r.out.p, 0, NULL);
    assert_string_not_equal(tl_json_str(j, "revision", ""), "");
    json_decref(j);
    done(&r);
}

static void man_page(void **state) {
    TL_UNUSED(state);
    static const char *const tries[][7] = {
        {"groff", "-man", "-Tutf8", "-ww", "-Kutf8", TALLY_DOCS "/tally.1", NULL},
        {"mandoc", "-Tlint", "-Wwarning", TALLY_DOCS "/tally.1", NULL}};
    size_t ran = 0;
    for (size_t i = 0; i < TL_COUNT(tries); i++) {
        char *program = tl_path_which(tries[i][0]);
        if (program == NULL) continue;
        free(program);
        result r;
        run_env(&r, tries[i], NULL);
        if (r.code != 0 || r.err.len > 0) fail_msg("%s: %s", tries[i][0], r.err.p);
        if (i == 0) assert_non_null(strstr(r.out.p, "synth"));
        done(&r);
        ran++;
    }
    if (ran == 0) skip();
}

static void completions(void **state) {
    TL_UNUSED(state);
    static const char *const tries[][4] = {{"bash", "-n", TALLY_DOCS "/tally.bash", NULL},
                                           {"zsh", "-n", TALLY_DOCS "/_tally", NULL},
                                           {"fish", "--no-execute", TALLY_DOCS "/tally.fish", NULL}};
    for (size_t i = 0; i < TL_COUNT(tries); i++) {
        char *program = tl_path_which(tries[i][0]);
        if (program == NULL) continue;
        free(program);
        result r;
        run_env(&r, tries[i], NULL);
        if (r.code != 0 || r.err.len > 0) fail_msg("%s: %s", tries[i][0], r.err.p);
        done(&r);
    }
    char *bash = tl_path_which("bash");
    if (bash == NULL) skip();
    free(bash);
    static const struct {
        const char *words, *want;
    } keys[] = {{"tally syn", "synth"},
                {"tally synth --desc", "--describe"},
                {"tally doctor --js", "--json"},
                {"tally synth --output pro", "project two"},
                {"tally --db pro", "project two"},
                {"tally --js", "--json"}};
    char *project = tl_path_join(dir, "project two"); /* a blank in a name */
    assert_int_equal(tl_dir_make(project, NULL), TL_OK);
    free(project);
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        char script[400];
        snprintf(script, sizeof script,
                 "source '%s/tally.bash'; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _tally "
                 "2>/dev/null; printf '<%%s>' \"${COMPREPLY[@]}\"",
                 TALLY_DOCS, keys[i].words);
        const char *argv[] = {"bash", "--norc", "-c", script, NULL};
        char want[64];
        result r;
        run_env(&r, argv, NULL);
        snprintf(want, sizeof want, "<%s>", keys[i].want);
        if (strstr(r.out.p, want) == NULL) fail_msg("'%s' gives '%s' %s", keys[i].words, r.out.p, r.err.p);
        done(&r);
    }
}

static void synth(void **state) {
    TL_UNUSED(state);
    result r;
    tally(&r, 0, "synth", "--size=5MB", "--quant=q4_0", "-om.gguf", "--json", NULL);
    json_t *j = json_loads(r.out.p, 0, NULL);
    assert_non_null(j);
    int64_t want = tl_json_int(j, "file_bytes", -1);
    char *path = tl_path_join(dir, "m.gguf");
    tl_file_facts f;
    assert_int_equal(tl_file_stat(&f, path, NULL), TL_OK);
    assert_int_equal((int64_t)f.size_bytes, want);
    free(path);
    json_decref(j);
    done(&r);
    tally(&r, 0, "synth", "--size=5MB", "--quant=q4_0", "--describe", "--json", NULL);
    j = json_loads(r.out.p, 0, NULL);
    assert_int_equal(tl_json_int(j, "file_bytes", -2), want);
    assert_true(json_is_null(json_object_get(j, "path")));
    json_decref(j);
    done(&r);
    tally(&r, 2, "synth", "--quant=q4_9", "-ox.gguf", NULL, NULL, NULL);
    done(&r);
    tally(&r, 2, "synth", "--embed=100", "--heads=7", "-ox.gguf", NULL, NULL);
    done(&r);
    tally(&r, 2, "synth", "mamba", "-ox.gguf", NULL, NULL, NULL);
    assert_non_null(strstr(r.err.p, "llama"));
    done(&r);
    path = tl_path_join(dir, "x.gguf");
    assert_false(tl_file_exists(path));
    free(path);
}

static const char *state_of(const json_t *all, const char *name, const char *key) {
    const json_t *checks = json_object_get(all, "checks");
    for (size_t i = 0; i < json_array_size(checks); i++)
        if (tl_str_eq(tl_json_str(json_array_get(checks, i), "check", ""), name))
            return tl_json_str(json_array_get(checks, i), key, "");
    fail_msg("no check '%s'", name);
    return "";
}

static void doctor_finds_nothing(void **state) {
    TL_UNUSED(state);
    char *cache = tl_xprintf("TALLY_CACHE=%s/no-cache", dir), *db = tl_path_join(dir, "bad.db");
    const char *argv[] = {TALLY, "doctor", "--json", "--db", db, NULL};
    const char *const env[] = {"PATH=/nonexistent", cache, "LC_ALL=C", NULL};
    assert_int_equal(tl_file_write(db, "this is not a database, it is prose", 35, NULL), TL_OK);
    result r;
    run_env(&r, argv, env);
    assert_int_equal(r.code, 4);
    json_t *j = json_loads(r.out.p, 0, NULL);
    assert_non_null(j);
    assert_false(tl_json_bool(j, "ok", true));
    static const char *const missing[] = {"engine", "gnuplot", "font", "database"};
    for (size_t i = 0; i < TL_COUNT(missing); i++) {
        assert_string_equal(state_of(j, missing[i], "state"), "missing");
        if (state_of(j, missing[i], "remedy")[0] == 0) fail_msg("%s has no remedy", missing[i]);
    }
    assert_string_equal(state_of(j, "project", "state"), "note");
    json_decref(j);
    done(&r);
    char *no_cache = tl_path_join(dir, "no-cache");
    assert_false(tl_file_exists(no_cache)); /* looking makes nothing */
    free(no_cache);
    argv[2] = "--no-color";
    run_env(&r, argv, env);
    assert_int_equal(r.code, 4);
    assert_true(count(r.out.p, "  → ") >= TL_COUNT(missing));
    done(&r);
    free(cache);
    free(db);
}

/* The header of an SQLite file with these fields; doctor reads nothing else of it. */
static void doctor_reads_headers(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *application;
        unsigned char version;
        const char *state, *says;
    } rows[] = {{"taly", 0, "ok", "MB"},
                {"taly", 250, "missing", "newer tally"},
                {"gpkg", 1, "missing", "another program"}};
    for (size_t i = 0; i < TL_COUNT(rows); i++) {
        char head[512] = "SQLite format 3", before[65], after[65], *db = tl_path_join(dir, "head.db");
        head[63] = (char)rows[i].version;
        memcpy(head + 68, rows[i].application, 4);
        assert_int_equal(tl_file_write(db, head, sizeof head, NULL), TL_OK);
        assert_int_equal(tl_file_sha256(before, db, NULL, NULL, NULL), TL_OK);
        const char *argv[] = {TALLY, "doctor", "--json", "--db", db, NULL};
        result r;
        run_env(&r, argv, NULL);
        json_t *j = json_loads(r.out.p, 0, NULL);
        assert_string_equal(state_of(j, "database", "state"), rows[i].state);
        if (strstr(state_of(j, "database", "detail"), rows[i].says) == NULL)
            fail_msg("%s", state_of(j, "database", "detail"));
        assert_int_equal(tl_file_sha256(after, db, NULL, NULL, NULL), TL_OK);
        assert_string_equal(before, after);
        json_decref(j);
        done(&r);
        free(db);
    }
}

static void installs(void **state) {
    TL_UNUSED(state);
    static const char *const files[] = {"bin/tally",
                                        "share/man/man1/tally.1",
                                        "share/bash-completion/completions/tally",
                                        "share/zsh/site-functions/_tally",
                                        "share/fish/vendor_completions.d/tally.fish",
                                        "share/tally/machines/t1.lua",
                                        "share/tally/lua/tally.lua",
                                        "share/tally/experiments/measure/bandwidth-law.lua"};
    char *prefix = tl_path_join(dir, "prefix");
    const char *argv[] = {CMAKE_PROGRAM, "--install", TL_BINARY_DIR, "--prefix", prefix, NULL};
    result r;
    run_env(&r, argv, NULL);
    if (r.code != 0) fail_msg("%s", r.err.p);
    done(&r);
    for (size_t i = 0; i < TL_COUNT(files); i++) {
        char *path = tl_path_join(prefix, files[i]);
        if (!tl_file_exists(path)) fail_msg("%s was not installed", files[i]);
        free(path);
    }
    char *program = tl_path_join(prefix, "bin/tally");
    const char *again[] = {program, "--version", NULL};
    run_env(&r, again, NULL);
    assert_int_equal(r.code, 0);
    done(&r);
    free(program);
    free(prefix);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(usage_errors),
                                       cmocka_unit_test(help_and_version),
                                       cmocka_unit_test(man_page),
                                       cmocka_unit_test(completions),
                                       cmocka_unit_test(synth),
                                       cmocka_unit_test(doctor_finds_nothing),
                                       cmocka_unit_test(doctor_reads_headers),
                                       cmocka_unit_test(installs)};
    return cmocka_run_group_tests(tests, setup, teardown);
}

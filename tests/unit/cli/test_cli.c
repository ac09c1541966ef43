/* The option parser, the tables of verbs and what is written from them, the project's paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/cli_impl.h"
#include <cmocka.h>

enum { MAX_WORDS = 12 };

/* "synth -o m.gguf" cut at blanks; '_' stands for an empty word. */
static int words(char *copy, size_t size, char *argv[MAX_WORDS + 1], const char *text) {
    int n = 0;
    argv[n++] = (char *)(uintptr_t) "tally";
    snprintf(copy, size, "%s", text);
    for (char *p = copy; *p && n < MAX_WORDS;) {
        size_t len = strcspn(p, " ");
        bool end = p[len] == 0;
        p[len] = 0;
        if (strcmp(p, "_") == 0) *p = 0;
        argv[n++] = p;
        p += len + (end ? 0 : 1);
    }
    argv[n] = NULL;
    return n;
}

static void parses(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *line;
        tl_status want;
        cli_wish wish;
        const char *says, *remedy;
    } rows[] = {
        {"doctor", TL_OK, CLI_RUN, "", ""},
        {"--json doctor", TL_OK, CLI_RUN, "", ""},
        {"doctor --json -qv --no-color", TL_OK, CLI_RUN, "", ""},
        {"synth -o m.gguf", TL_OK, CLI_RUN, "", ""},
        {"synth -om.gguf llama", TL_OK, CLI_RUN, "", ""},
        {"synth --output=m.gguf --layers=4", TL_OK, CLI_RUN, "", ""},
        {"synth --output m.gguf --layers 4", TL_OK, CLI_RUN, "", ""},
        {"synth -- --weird", TL_OK, CLI_RUN, "", ""},
        {"synth -", TL_OK, CLI_RUN, "", ""},
        {"--help", TL_OK, CLI_HELP, "", ""},
        {"-h doctor", TL_OK, CLI_HELP, "", ""},
        {"synth --help", TL_OK, CLI_HELP, "", ""},
        {"--version", TL_OK, CLI_VERSION, "", ""},
        {"--man", TL_OK, CLI_MAN, "", ""},
        {"--completion bash", TL_OK, CLI_COMPLETION, "", ""},
        {"--json", TL_INVALID, CLI_RUN, "a verb is missing", "tally --help"},
        {"docter", TL_INVALID, CLI_RUN, "no verb 'docter'", "'doctor'"},
        {"_", TL_INVALID, CLI_RUN, "no verb ''", ""},
        {"doctor http://127.0.0.1:8080 --model m", TL_OK, CLI_RUN, "", ""},
        {"doctor here now", TL_INVALID, CLI_RUN, "'now' is left over", "tally doctor --help"},
        {"synth --outptu x", TL_INVALID, CLI_RUN, "unknown option '--outptu' of synth", "'--output'"},
        {"synth --output", TL_INVALID, CLI_RUN, "needs an argument: FILE", "usage: tally synth"},
        {"synth -o", TL_INVALID, CLI_RUN, "'-o' needs an argument", ""},
        {"synth -x", TL_INVALID, CLI_RUN, "unknown option '-x'", ""},
        {"synth --describe=1", TL_INVALID, CLI_RUN, "takes no argument", ""},
        {"synth -o a -o b", TL_INVALID, CLI_RUN, "'--output' is given twice", ""},
        {"doctor --layers 3", TL_INVALID, CLI_RUN, "unknown option '--layers' of doctor", ""},
        {"doctor ---", TL_INVALID, CLI_RUN, "unknown option '---'", ""},
        {"doctor --=x", TL_INVALID, CLI_RUN, "unknown option '--=x'", ""},
    };
    for (size_t i = 0; i < TL_COUNT(rows); i++) {
        char copy[256], *argv[MAX_WORDS + 1];
        int argc = words(copy, sizeof copy, argv, rows[i].line);
        tl_cli c = {.out = stdout};
        cli_wish wish;
        tl_err e = {0};
        tl_status st = cli_parse(&c, &wish, argc, argv, &e);
        if (st != rows[i].want || (st == TL_OK && wish != rows[i].wish))
            fail_msg("'%s': %d %d %s", rows[i].line, st, wish, e.msg);
        if (strstr(e.msg, rows[i].says) == NULL)
            fail_msg("'%s': '%s' does not say '%s'", rows[i].line, e.msg, rows[i].says);
        if (strstr(e.remedy, rows[i].remedy) == NULL)
            fail_msg("'%s': remedy '%s' lacks '%s'", rows[i].line, e.remedy, rows[i].remedy);
        cli_free(&c);
    }
}

static void reads_options(void **state) {
    TL_UNUSED(state);
    char copy[256], *argv[MAX_WORDS + 1];
    int argc = words(copy, sizeof copy, argv, "synth --layers 4 llama --size=1.5MB --db a --db b --ctx -1");
    tl_cli c = {.out = stdout};
    cli_wish wish;
    tl_err e = {0};
    int64_t n;
    uint64_t bytes;
    assert_int_equal(cli_parse(&c, &wish, argc, argv, &e), TL_OK);
    assert_string_equal(tl_cli_text(&c, "layers", "?"), "4");
    assert_string_equal(tl_cli_text(&c, "heads", "?"), "?");
    assert_string_equal(c.db_option, "b"); /* a global option given later wins */
    assert_string_equal(tl_cli_nth(&c, "db", 0), "a");
    assert_null(tl_cli_nth(&c, "db", 2));
    assert_int_equal(c.n_args, 1);
    assert_int_equal(tl_cli_int(&n, &c, "layers", 7, 1, 9, &e), TL_OK);
    assert_int_equal(n, 4);
    assert_int_equal(tl_cli_int(&n, &c, "heads", 7, 1, 9, &e), TL_OK);
    assert_int_equal(n, 7);
    assert_int_equal(tl_cli_int(&n, &c, "layers", 7, 5, 9, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "--layers 4: an integer from 5 to 9"));
    assert_int_equal(tl_cli_int(&n, &c, "size", 7, 5, 9, &e), TL_INVALID);
    assert_int_equal(tl_cli_bytes(&bytes, &c, "size", 0, &e), TL_OK);
    assert_int_equal(bytes, 1500000);
    assert_int_equal(tl_cli_bytes(&bytes, &c, "layers", 0, &e), TL_OK);
    assert_int_equal(bytes, 4);
    assert_int_equal(tl_cli_bytes(&bytes, &c, "ctx", 0, &e), TL_INVALID);
    cli_free(&c);
}

static void bytes_of(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *text;
        uint64_t want; /* 0: refused */
    } rows[] = {{"1GiB", 1073741824},
                {"1 GB", 1000000000},
                {"4096", 4096},
                {"0.5kB", 500},
                {"1KB", 0},
                {"1Gbit", 0},
                {"GB", 0},
                {"1e9GB", 0},
                {"99999999999PB", 0},
                {"1s", 0}};
    const tl_option o = {.name = "size", .arg = "SIZE"};
    for (size_t i = 0; i < TL_COUNT(rows); i++) {
        tl_given given = {&o, rows[i].text};
        tl_cli c = {.given = &given, .n_given = 1};
        uint64_t got;
        tl_err e = {0};
        tl_status st = tl_cli_bytes(&got, &c, "size", 0, &e);
        if ((st == TL_OK) != (rows[i].want > 0) || (st == TL_OK && got != rows[i].want))
            fail_msg("%s: %" PRIu64 " %s", rows[i].text, got, e.msg);
        if (st != TL_OK) assert_true(tl_str_starts(e.msg, "--size "));
    }
}

static void check_option(const tl_verb *v, const tl_option *o, size_t at) {
    assert_true(o->help != NULL && o->help[0] != 0);
    assert_ptr_equal(cli_find_option(v, o->name), o); /* no other option of that name stands before it */
    for (size_t k = 0; k < at; k++) assert_string_not_equal(cli_verb_option(v, k)->name, o->name);
    for (const tl_option *g = cli_global_options; g->name != NULL; g++) {
        assert_string_not_equal(g->name, o->name);
        assert_false(o->letter != 0 && g->letter == o->letter);
    }
}

static void tables(void **state) {
    TL_UNUSED(state);
    for (size_t i = 0; tl_verbs[i] != NULL; i++) {
        const tl_verb *v = tl_verbs[i];
        const tl_option *o;
        if (i > 0) assert_true(strcmp(tl_verbs[i - 1]->name, v->name) < 0);
        assert_non_null(v->run);
        assert_true(v->summary[strlen(v->summary) - 1] != '.');
        assert_non_null(v->examples[0].command);
        bool ok = false, usage = false;
        for (const tl_exit *x = v->exits; x->when != NULL; x++) {
            ok = ok || x->code == 0;
            usage = usage || x->code == 2;
        }
        assert_true(ok && usage);
        for (size_t k = 0; (o = cli_verb_option(v, k)) != NULL; k++) check_option(v, o, k);
        for (const tl_example *x = v->examples; x->command != NULL; x++) {
            char copy[256], *argv[MAX_WORDS + 1], want[64];
            assert_true(x->what[0] != 0);
            snprintf(want, sizeof want, "tally %s", v->name);
            assert_true(tl_str_starts(x->command, want));
            if (strpbrk(x->command, "'\"|;") != NULL) continue; /* needs a shell to be cut */
            int argc = words(copy, sizeof copy, argv, x->command + 6);
            if (argc >= MAX_WORDS) continue;
            tl_cli c = {.out = stdout};
            cli_wish wish;
            tl_err e = {0};
            if (cli_parse(&c, &wish, argc, argv, &e) != TL_OK)
                fail_msg("the example '%s' is refused: %s", x->command, e.msg);
            cli_free(&c);
        }
    }
}

static void help_says_all(void **state) {
    TL_UNUSED(state);
    tl_buf all, man;
    tl_buf_init(&all, 0);
    tl_buf_init(&man, 0);
    cli_help(&all, NULL);
    cli_man(&man);
    for (size_t i = 0; tl_verbs[i] != NULL; i++) {
        const tl_verb *v = tl_verbs[i];
        const tl_option *o;
        tl_buf b;
        tl_buf_init(&b, 0);
        cli_help(&b, v);
        assert_non_null(strstr(all.p, v->name));
        assert_non_null(strstr(man.p, v->name));
        assert_non_null(strstr(b.p, "Examples:"));
        assert_non_null(strstr(b.p, v->examples[0].command));
        assert_non_null(strstr(b.p, "Exit codes:"));
        for (size_t k = 0; (o = cli_verb_option(v, k)) != NULL; k++) assert_non_null(strstr(b.p, o->name));
        for (const char *p = b.p;
             *p;) { /* a terminal of 80 columns; examples are to be copied and stay whole */
            size_t n = strcspn(p, "\n");
            if (!tl_str_starts(p, "  tally ") && !tl_str_starts(p, "usage") && !tl_str_starts(p, "tally"))
                assert_true(n < 120);
            p += n + (p[n] == '\n');
        }
        tl_buf_free(&b);
    }
    tl_buf_free(&all);
    tl_buf_free(&man);
}

static void table_lines_up(void **state) {
    TL_UNUSED(state);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    tl_cli c = {.out = f};
    const char *const cells[] = {"model", "x", "模型", "12", NULL, "3"};
    tl_cli_table(&c, cells, 3, 2);
    fclose(f);
    assert_string_equal(text, "model  x\n模型   12\n       3\n");
    free(text);
}

static void error_form(void **state) {
    TL_UNUSED(state);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    tl_err e = {0};
    tl_fail(&e, TL_MISSING, "no gnuplot");
    tl_remedy(&e, "install it");
    cli_print_error(f, &e);
    tl_fail(&e, TL_IO, "disk");
    cli_print_error(f, &e);
    fclose(f);
    assert_string_equal(text, "tally: no gnuplot\n  → install it\ntally: disk\n");
    free(text);
}

static void finds_project(void **state) {
    TL_UNUSED(state);
    char *dir = NULL, *before = tl_path_cwd();
    tl_err e = {0};
    assert_int_equal(tl_dir_temp(&dir, "cli", &e), TL_OK);
    char *deep = tl_xprintf("%s/p/experiments/measure", dir), *machines = tl_xprintf("%s/p/machines", dir);
    assert_int_equal(tl_dir_make(deep, &e), TL_OK);
    unsetenv("TALLY_DB");
    tl_cli c = {0}, d = {0}, o = {.db_option = "x.db"};
    const char *root, *db;
    assert_int_equal(chdir(deep), 0);
    assert_int_equal(tl_cli_root(&root, &c, &e), TL_NOT_FOUND); /* machines/ is missing */
    assert_non_null(strstr(e.remedy, "machines/"));
    assert_int_equal(tl_exit_code(TL_NOT_FOUND), 4);
    assert_int_equal(tl_cli_db(&db, &c, &e), TL_NOT_FOUND);
    assert_int_equal(tl_dir_make(machines, &e), TL_OK);
    assert_int_equal(tl_cli_root(&root, &c, &e), TL_OK);
    assert_true(tl_str_ends(root, "/p"));
    assert_int_equal(tl_cli_db(&db, &c, &e), TL_OK);
    assert_true(tl_str_ends(db, "/p/tally.db"));
    setenv("TALLY_DB", "/elsewhere/t.db", 1);
    assert_int_equal(tl_cli_db(&db, &d, &e), TL_OK);
    assert_string_equal(db, "/elsewhere/t.db");
    assert_int_equal(tl_cli_db(&db, &o, &e), TL_OK);
    assert_true(tl_str_ends(db, "/measure/x.db"));
    unsetenv("TALLY_DB");
    assert_int_equal(chdir(before), 0);
    cli_free(&c);
    cli_free(&d);
    cli_free(&o);
    assert_int_equal(tl_dir_remove(dir, &e), TL_OK);
    free(machines);
    free(deep);
    free(dir);
    free(before);
}

static void version(void **state) {
    TL_UNUSED(state);
    json_t *j = tl_version_json();
    const char *r = tl_version_revision();
    assert_true(strcmp(r, "unknown") == 0 || strlen(r) >= 40);
    assert_string_equal(tl_json_str(j, "version", ""), tl_version());
    assert_true(strlen(tl_json_str(j, "libraries.jansson", "")) > 2);
    assert_true(json_object_size(json_object_get(j, "libraries")) >= 7);
    json_decref(j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),     cmocka_unit_test(reads_options), cmocka_unit_test(bytes_of),
        cmocka_unit_test(tables),     cmocka_unit_test(help_says_all), cmocka_unit_test(table_lines_up),
        cmocka_unit_test(error_form), cmocka_unit_test(finds_project), cmocka_unit_test(version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

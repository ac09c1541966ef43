/* What happens around a verb: help and version, the one place that prints errors, the project's paths, output
 * forms. */
#include "cli/cli_impl.h"

/* ---- errors
 * ------------------------------------------------------------------------------------------------------ */

void cli_print_error(FILE *f, const tl_err *e) {
    bool color = tl_color(f);
    fprintf(f, "%stally: %s%s\n", color ? "\033[31m" : "", e->msg[0] ? e->msg : tl_status_name(e->code),
            color ? "\033[0m" : "");
    if (e->remedy[0]) fprintf(f, "  → %s\n", e->remedy);
}

/* ---- version
 * ----------------------------------------------------------------------------------------------------- */

static void print_version(tl_cli *c) {
    json_t *j = tl_version_json(), *v;
    const char *key;
    if (c->json)
        tl_cli_print_json(c, j);
    else {
        fprintf(c->out, "tally %s (%s%s)\n", tl_version(), tl_version_revision(),
                tl_version_dirty() ? ", changed" : "");
        fprintf(c->out, "compiler %s\n", tl_json_str(j, "compiler", ""));
        json_object_foreach(json_object_get(j, "libraries"), key, v)
            fprintf(c->out, "%s %s\n", key, json_string_value(v));
    }
    json_decref(j);
}

/* ---- main
 * -------------------------------------------------------------------------------------------------------- */

static void set_level(const tl_cli *c) {
    if (tl_cli_flag(c, "quiet"))
        tl_log_level = TL_LOG_ERROR;
    else if (tl_cli_flag(c, "verbose"))
        tl_log_level = TL_LOG_DEBUG;
    if (c->no_color) setenv("NO_COLOR", "1", 1);
}

static tl_status obey(tl_cli *c, cli_wish wish, tl_err *e) {
    tl_buf b;
    tl_status st = TL_OK;
    tl_buf_init(&b, 0);
    switch (wish) {
    case CLI_RUN:
        st = c->verb->run(c, e);
        break;
    case CLI_VERSION:
        print_version(c);
        break;
    case CLI_HELP:
        cli_help(&b, c->verb);
        break;
    case CLI_MAN:
        cli_man(&b);
        break;
    case CLI_COMPLETION:
        st = cli_completion(&b, tl_cli_text(c, "completion", ""), e);
        break;
    }
    fwrite(b.p, 1, b.len, c->out);
    tl_buf_free(&b);
    return st;
}

int cli_main(int argc, char **argv, FILE *out) {
    tl_err e = {0};
    tl_cli c = {.out = out};
    cli_wish wish;
    tl_status st = TL_OK;
    if (argc < 2) {
        tl_buf b;
        tl_buf_init(&b, 0);
        cli_help(&b, NULL);
        fwrite(b.p, 1, b.len, stderr);
        tl_buf_free(&b);
        return 2;
    }
    st = cli_parse(&c, &wish, argc, argv, &e);
    set_level(&c);
    if (st == TL_OK) st = obey(&c, wish, &e);
    if (fflush(out) != 0 && st == TL_OK) st = tl_fail(&e, TL_IO, "the output could not be written");
    int code = c.exit_code;
    if (st != TL_OK) {
        if (e.code == TL_OK) tl_fail(&e, st, "failed without a message (%s)", tl_status_name(st));
        cli_print_error(stderr, &e);
        code = tl_exit_code(st);
    }
    cli_free(&c);
    return code;
}

bool tl_cli_cancelled(void *unused) {
    TL_UNUSED(unused);
    return tl_signal_pending() != 0;
}

/* ---- project
 * ----------------------------------------------------------------------------------------------------- */

static bool is_project(const char *dir) {
    char *machines = tl_path_join(dir, "machines"), *experiments = tl_path_join(dir, "experiments");
    bool yes = tl_dir_exists(machines) && tl_dir_exists(experiments);
    free(machines);
    free(experiments);
    return yes;
}

tl_status tl_cli_root(const char **out, tl_cli *c, tl_err *e) {
    *out = NULL;
    if (c->root == NULL) {
        char *dir = tl_path_cwd();
        while (dir != NULL && !is_project(dir)) {
            char *up = tl_path_dir(dir);
            bool top = strcmp(up, dir) == 0;
            free(dir);
            dir = up;
            if (!top) continue;
            free(dir);
            dir = NULL;
        }
        c->root = dir;
    }
    if (c->root == NULL) {
        char *cwd = tl_path_cwd();
        tl_fail(e, TL_NOT_FOUND, "%s is not in a project: no folder upwards holds machines/ and experiments/",
                cwd);
        free(cwd);
        tl_remedy(e, "go to a clone of tally, or make a folder with machines/ and experiments/ in it");
        return TL_NOT_FOUND;
    }
    *out = c->root;
    return TL_OK;
}

tl_status tl_cli_db(const char **out, tl_cli *c, tl_err *e) {
    *out = NULL;
    if (c->db == NULL) {
        const char *said = c->db_option ? c->db_option : tl_env("TALLY_DB"), *root;
        if (said != NULL)
            c->db = tl_path_abs(said);
        else {
            tl_status st = tl_cli_root(&root, c, e);
            if (st != TL_OK) return st;
            c->db = tl_path_join(root, "tally.db");
        }
    }
    *out = c->db;
    return TL_OK;
}

/* ---- output
 * ------------------------------------------------------------------------------------------------------ */

void tl_cli_print_json(tl_cli *c, const json_t *j) {
    char *text = tl_json_pretty(j);
    fprintf(c->out, "%s\n", text);
    free(text);
}

void tl_cli_table(tl_cli *c, const char *const *cells, size_t rows, size_t columns) {
    int *width = tl_xalloc(columns * sizeof *width);
    for (size_t i = 0; i < rows * columns; i++) {
        int w = tl_utf8_width(cells[i] ? cells[i] : "");
        if (w > width[i % columns]) width[i % columns] = w;
    }
    bool color = !c->no_color && tl_color(c->out);
    for (size_t r = 0; r < rows; r++) {
        if (r == 0 && color) fputs("\033[1m", c->out);
        for (size_t k = 0; k < columns; k++) {
            const char *text = cells[r * columns + k] ? cells[r * columns + k] : "";
            fputs(text, c->out);
            if (k + 1 < columns) fprintf(c->out, "%*s", width[k] - tl_utf8_width(text) + 2, "");
        }
        fputs(r == 0 && color ? "\033[0m\n" : "\n", c->out);
    }
    free(width);
}

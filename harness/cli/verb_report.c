/* tally report: renders a report, or lints it. */
#include "cli/project.h"

static const tl_option options[] = {
    {.name = "out", .letter = 'o', .arg = "DIR", .help = "where to write", .otherwise = "build/reports/NAME", .complete = TL_COMPLETE_DIR},
    {0}};
static const tl_example examples[] = {{"tally report build bandwidth-law", "render all languages of reports/bandwidth-law"},
                                      {"tally report check bandwidth-law", "naked numbers, missing data, stale figures"},
                                      {0}};
static const tl_exit exits[] = {{0, "rendered, or nothing to complain"}, {2, "the command line is wrong"}, {3, "the report is refused: a naked number, missing data, a wrong directive"}, {4, "gnuplot, a font or the report is missing"}, {0}};

/* Folder of reports/NAME, or the folder or file itself. */
static tl_status find_report(char **dir, char **only, tl_cli *c, const char *name, tl_err *e) {
    const char *root;
    *dir = *only = NULL;
    if (tl_str_ends(name, ".md") && tl_file_exists(name)) {
        *dir = tl_path_dir(name);
        *only = tl_xstrdup(tl_path_base(name));
        return TL_OK;
    }
    if (tl_dir_exists(name)) {
        *dir = tl_xstrdup(name);
        return TL_OK;
    }
    tl_status st = tl_cli_root(&root, c, e);
    if (st != TL_OK) return st;
    char *all = tl_path_join(root, "reports");
    *dir = tl_path_join(all, name);
    if (!tl_dir_exists(*dir)) {
        tl_names names = {0};
        const char *near = NULL;
        if (tl_dir_list(&names, all, NULL) == TL_OK && names.n) near = tl_nearest(name, (const char *const *)names.v, names.n);
        st = tl_fail(e, TL_NOT_FOUND, "no report '%s' in %s", name, all);
        if (near) tl_remedy(e, "did you mean '%s'?", near);
        tl_names_free(&names);
        free(*dir);
        *dir = NULL;
    }
    free(all);
    return st;
}

/* `lang:` of the front matter, as far as the source needs it before the report module reads it strictly. */
static void read_lang(char out[16], const char *path) {
    tl_buf b;
    tl_buf_init(&b, 0);
    snprintf(out, 16, "zh-Hant");
    if (tl_file_read(&b, path, TL_REPORT_MAX_BYTES, NULL) == TL_OK) {
        const char *at = strstr(b.p, "\nlang:");
        if (at != NULL) {
            at += 6;
            at += strspn(at, " ");
            size_t n = strcspn(at, " \r\n");
            if (n > 0 && n < 16) memcpy(out, at, n), out[n] = 0;
        }
    }
    tl_buf_free(&b);
}

static void print_problems(tl_cli *c, const json_t *facts) {
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(facts, "problems"), i, p) {
        fprintf(stderr, "%s:%" PRId64 ":%" PRId64 ": %s\n", tl_json_str(p, "file", "?"), tl_json_int(p, "line", 0),
                tl_json_int(p, "column", 0), tl_json_str(p, "text", ""));
        if (tl_json_str(p, "remedy", "")[0]) fprintf(stderr, "  → %s\n", tl_json_str(p, "remedy", ""));
    }
    json_array_foreach(json_object_get(facts, "stale"), i, p) fprintf(c->out, "stale: %s\n", json_string_value(p));
}

typedef struct job {
    tl_cli *c;
    tl_source *source;
    const char *dir, *out;
    bool check;
    json_t *all;
} job;

/* report.md goes to OUT, report.en.md to OUT/en: each a page of its own that names the other. */
static tl_status build_one(job *j, const char *file, tl_err *e) {
    char lang[16], *path = tl_path_join(j->dir, file), *out = NULL, *html = NULL, *name = NULL;
    json_t *facts = NULL;
    bool main_page = tl_str_eq(file, "report.md");
    read_lang(lang, path);
    out = main_page ? tl_xstrdup(j->out) : tl_path_join(j->out, lang);
    html = tl_path_join(out, "report.html");
    char *dir = tl_path_abs(j->dir);
    name = tl_xstrdup(tl_path_base(dir));
    j->source->lang = lang;
    j->source->html_path = html;
    tl_report_source functions = tl_source_functions(j->source);
    tl_report_spec spec = {.path = path, .out_dir = out, .name = name, .version = tl_version(), .check_only = j->check};
    tl_status st = tl_report_build(&facts, &spec, &functions, e);
    if (!j->c->json) print_problems(j->c, facts);
    if (st == TL_OK && !j->c->json)
        j->check ? fprintf(j->c->out, "%s: ok\n", path) : fprintf(j->c->out, "%s\n%s\n", html, tl_json_str(facts, "markdown", ""));
    if (facts != NULL) json_array_append(j->all, facts);
    json_decref(facts);
    free(path);
    free(out);
    free(html);
    free(name);
    free(dir);
    return st;
}

static tl_status run(tl_cli *c, tl_err *e) {
    char *dir = NULL, *only = NULL, *out = NULL, *abs = NULL;
    tl_source source = {.c = c};
    tl_names files = {0};
    json_t *all = json_array();
    const char *root;
    size_t pages = 0;
    tl_status st = TL_OK;
    bool check = tl_str_eq(c->args[0], "check");
    if (!check && !tl_str_eq(c->args[0], "build")) {
        st = tl_cli_usage(c, e, "tally report %s: it is `build` or `check`", c->args[0]);
        goto out;
    }
    TRY(find_report(&dir, &only, c, c->args[1], e));
    TRY(tl_cli_root(&root, c, e));
    abs = tl_path_abs(dir);
    const char *given = tl_cli_text(c, "out", NULL);
    out = given ? tl_xstrdup(given) : tl_xprintf("build/reports/%s", tl_path_base(abs));
    TRY(tl_project_store(&source.store, c, TL_STORE_READ, e));
    tl_script_options o = {.lua_dir = c->lua_dir};
    TRY(tl_script_new(&source.script, &o, e));
    TRY(tl_dir_list(&files, dir, e));
    job j = {.c = c, .source = &source, .dir = dir, .out = out, .check = check, .all = all};
    for (size_t i = 0; i < files.n; i++) {
        bool page = tl_str_starts(files.v[i], "report") && tl_str_ends(files.v[i], ".md");
        if (only != NULL ? !tl_str_eq(files.v[i], only) : !page) continue;
        pages++;
        TRY(build_one(&j, files.v[i], e));
    }
    if (pages == 0) st = tl_fail(e, TL_NOT_FOUND, "%s holds no report.md", dir);
out:
    if (c->json && json_array_size(all) > 0) tl_cli_print_json(c, all);
    tl_source_fini(&source);
    tl_store_close(source.store);
    tl_script_free(source.script);
    tl_names_free(&files);
    json_decref(all);
    free(dir);
    free(only);
    free(out);
    free(abs);
    return st;
}

const tl_verb tl_verb_report = {
    .name = "report", .summary = "render a report, or check it", .usage = "build|check NAME",
    .about = "NAME is a folder of reports/, a folder, or a .md file. Every number must come from the store or carry its label and "
             "source: a naked number is refused with file and line.\n\nEach report*.md of the folder is one language.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_NONE, .min_args = 2, .max_args = 2,
    .run = run};

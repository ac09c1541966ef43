/* tally list: experiments, machines, engines, models, runs, figures, reports. */
#include "cli/project.h"

static const tl_option options[] = {{.name = "limit", .arg = "N", .help = "newest N runs", .otherwise = "20"}, {0}};
static const tl_example examples[] = {{"tally list runs", "what the database holds"}, {"tally list experiments --json", "for a program"}, {0}};
static const tl_exit exits[] = {{0, "listed"}, {2, "the command line is wrong"}, {4, "there is no database yet"}, {0}};

static tl_status list_files(json_t **out, tl_cli *c, const char *folder, bool nested, const char *suffix, tl_err *e) {
    const char *root;
    tl_names subs = {0};
    json_t *all = json_array();
    tl_status st = tl_cli_root(&root, c, e);
    char *dir = st == TL_OK ? tl_path_join(root, folder) : NULL;
    if (st == TL_OK) st = tl_dir_list(&subs, dir, e);
    for (size_t i = 0; st == TL_OK && i < subs.n; i++) {
        char *path = tl_path_join(dir, subs.v[i]);
        tl_names files = {0};
        if (!nested && tl_str_ends(subs.v[i], suffix)) {
            char *name = tl_xstrndup(subs.v[i], strlen(subs.v[i]) - strlen(suffix));
            json_array_append_new(all, json_pack("{s:s, s:s+++}", "name", name, "path", folder, "/", subs.v[i], ""));
            free(name);
        } else if (nested && tl_dir_exists(path) && tl_dir_list(&files, path, NULL) == TL_OK)
            for (size_t k = 0; k < files.n; k++) {
                if (!tl_str_ends(files.v[k], suffix)) continue;
                bool page = strcmp(suffix, "report.md") == 0; /* a report's name is its folder's */
                char *name = page ? tl_xstrdup(subs.v[i]) : tl_xstrndup(files.v[k], strlen(files.v[k]) - strlen(suffix));
                json_array_append_new(all, json_pack("{s:s, s:s++++, s:s}", "name", name, "path", folder, "/", subs.v[i], "/", files.v[k], "group", subs.v[i]));
                free(name);
            }
        tl_names_free(&files);
        free(path);
    }
    tl_names_free(&subs);
    free(dir);
    *out = all;
    return st;
}

static tl_status list_engines(json_t **out, tl_cli *c, tl_err *e) {
    tl_script *s = NULL;
    tl_script_options o = {.lua_dir = c->lua_dir};
    tl_status st = tl_script_new(&s, &o, e);
    json_t *all = json_array();
    for (const char *const *n = tl_script_library_names(); st == TL_OK && *n != NULL; n++) {
        if (!tl_str_starts(*n, "engine/")) continue;
        char *text = NULL, *path = NULL, *name = tl_xstrndup(*n + 7, strlen(*n) - 7 - 4);
        json_t *adapter = NULL;
        st = tl_script_library(&text, s, *n, e);
        if (st == TL_OK) st = tl_script_data(&adapter, s, *n, text, e);
        bool found = st == TL_OK && tl_engine_find(&path, adapter, NULL, NULL) == TL_OK;
        json_array_append_new(all, json_pack("{s:s, s:s?, s:s?}", "name", name, "engine", tl_json_str(adapter, "name", NULL), "path", found ? path : NULL));
        json_decref(adapter);
        free(text);
        free(path);
        free(name);
    }
    tl_script_free(s);
    *out = all;
    return st;
}

static tl_status list_stored(json_t **out, tl_cli *c, const char *what, tl_err *e) {
    tl_store *s = NULL;
    int64_t limit;
    tl_status st = tl_cli_int(&limit, c, "limit", 20, 1, 1000000, e);
    if (st == TL_OK) st = tl_project_store(&s, c, TL_STORE_READ, e);
    if (st != TL_OK) return st;
    if (tl_str_eq(what, "runs")) st = tl_store_runs(out, s, NULL, limit, e);
    else if (tl_str_eq(what, "figures")) st = tl_store_figures(out, s, NULL, e);
    else st = tl_store_select(out, s, "SELECT id AS sha256, name, bytes FROM model ORDER BY name", e);
    tl_store_close(s);
    return st;
}

static const char *cell_text(tl_arena *a, const json_t *v) {
    if (v == NULL || json_is_null(v)) return "";
    if (json_is_string(v)) return json_string_value(v);
    char *t = tl_json_canonical(v), *copy = tl_arena_strdup(a, t);
    free(t);
    return copy;
}

static void print_columns(tl_cli *c, const json_t *rows, const char *const *keys, size_t columns) {
    size_t n = json_array_size(rows), i;
    json_t *r;
    const char **t = tl_xalloc((n + 1) * columns * sizeof *t);
    tl_arena *a = tl_arena_new();
    for (size_t k = 0; k < columns; k++) t[k] = keys[k];
    json_array_foreach((json_t *)rows, i, r) for (size_t k = 0; k < columns; k++) t[(i + 1) * columns + k] = cell_text(a, json_object_get(r, keys[k]));
    tl_cli_table(c, t, n + 1, columns);
    tl_arena_free(a);
    free(t);
}

static const struct {
    const char *name;
    const char *keys[7];
    size_t columns;
} kinds[] = {
    {"experiments", {"name", "group", "path"}, 3}, {"machines", {"name", "path"}, 2},  {"engines", {"name", "engine", "path"}, 3},
    {"reports", {"name", "path"}, 2},              {"runs", {"id", "kind", "experiment", "machine", "state", "ok", "reason"}, 7},
    {"figures", {"report", "name", "run", "command"}, 4}, {"models", {"name", "bytes", "sha256"}, 3},
};

static tl_status run(tl_cli *c, tl_err *e) {
    const char *what = c->args[0], *names[TL_COUNT(kinds)];
    size_t kind = TL_COUNT(kinds);
    for (size_t i = 0; i < TL_COUNT(kinds); i++) {
        names[i] = kinds[i].name;
        if (tl_str_eq(what, kinds[i].name)) kind = i;
    }
    if (kind == TL_COUNT(kinds)) {
        const char *near = tl_nearest(what, names, TL_COUNT(names));
        return tl_cli_usage(c, e, "tally list %s: unknown%s%s; there are experiments, machines, engines, models, runs, figures, reports", what,
                            near ? ", did you mean " : "", near ? near : "");
    }
    json_t *rows = NULL;
    tl_status st;
    if (tl_str_eq(what, "experiments")) st = list_files(&rows, c, "experiments", true, ".lua", e);
    else if (tl_str_eq(what, "machines")) st = list_files(&rows, c, "machines", false, ".lua", e);
    else if (tl_str_eq(what, "reports")) st = list_files(&rows, c, "reports", true, "report.md", e);
    else if (tl_str_eq(what, "engines")) st = list_engines(&rows, c, e);
    else st = list_stored(&rows, c, what, e);
    if (st == TL_OK) c->json ? tl_cli_print_json(c, rows) : print_columns(c, rows, kinds[kind].keys, kinds[kind].columns);
    json_decref(rows);
    return st;
}

const tl_verb tl_verb_list = {
    .name = "list", .summary = "list experiments, machines, engines, models, runs, figures or reports", .usage = "WHAT",
    .about = "WHAT is one of experiments, machines, engines, models, runs, figures, reports. `tally show` prints one in full.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_NONE, .min_args = 1, .max_args = 1, .run = run};

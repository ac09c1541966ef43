/* From a name on the command line to a plan with its models: what `plan`, `run` and `rerun` share. */
#include "cli/project.h"

#include "vcs/vcs.h"

static tl_status find_experiment(char **out, tl_cli *c, const char *name, tl_err *e) {
    if (tl_file_exists(name)) {
        *out = tl_xstrdup(name);
        return TL_OK;
    }
    const char *root;
    tl_status st = tl_cli_root(&root, c, e);
    if (st != TL_OK) return st;
    char *dir = tl_path_join(root, "experiments");
    tl_names maps = {0}, all = {0};
    *out = NULL;
    st = tl_dir_list(&maps, dir, e);
    for (size_t i = 0; st == TL_OK && i < maps.n; i++) {
        char *sub = tl_path_join(dir, maps.v[i]);
        tl_names files = {0};
        if (tl_dir_exists(sub) && tl_dir_list(&files, sub, NULL) == TL_OK)
            for (size_t k = 0; k < files.n; k++) {
                if (!tl_str_ends(files.v[k], ".lua")) continue;
                char *id = tl_xstrndup(files.v[k], strlen(files.v[k]) - 4);
                if (tl_str_eq(id, name) && *out == NULL) *out = tl_path_join(sub, files.v[k]);
                TL_PUSH(all.v, all.n, all.cap, id);
            }
        tl_names_free(&files);
        free(sub);
    }
    if (st == TL_OK && *out == NULL) {
        const char *near = all.n ? tl_nearest(name, (const char *const *)all.v, all.n) : NULL;
        st = tl_fail(e, TL_NOT_FOUND, "no experiment '%s': neither a file nor an id below %s", name, dir);
        near ? tl_remedy(e, "did you mean '%s'?", near) : tl_remedy(e, "`tally list experiments` shows them");
    }
    tl_names_free(&maps);
    tl_names_free(&all);
    free(dir);
    return st;
}

tl_status tl_project_overrides(json_t **out, tl_cli *c, tl_err *e) {
    *out = json_object();
    const char *given;
    for (size_t i = 0; (given = tl_cli_nth(c, "model", i)) != NULL; i++) {
        const char *eq = strchr(given, '=');
        if (eq == NULL || eq == given || eq[1] == 0) {
            json_decref(*out);
            *out = NULL;
            tl_fail(e, TL_INVALID, "--model %s: it must be NAME=FILE, NAME as in the experiment's axis", given);
            return tl_remedy(e, "for example --model large-q4_0=my.gguf");
        }
        char *name = tl_xstrndup(given, (size_t)(eq - given));
        json_object_set_new(*out, name, json_string(eq + 1));
        free(name);
    }
    return TL_OK;
}

json_t *tl_project_argv(const tl_cli *c) {
    json_t *out = json_array();
    for (int i = 0; i < c->argc; i++) {
        json_t *s = json_string(c->argv[i]);
        json_array_append_new(out, s ? s : json_string("(not UTF-8)"));
    }
    return out;
}

tl_status tl_project_store(tl_store **out, tl_cli *c, tl_store_mode mode, tl_err *e) {
    const char *db;
    tl_status st = tl_cli_db(&db, c, e);
    if (st != TL_OK) return st;
    tl_store_options o = {.mode = mode};
    return tl_store_open(out, db, &o, e);
}

static tl_status load_profile(json_t *all, tl_script *s, const char *path, tl_err *e) {
    tl_buf text;
    tl_buf_init(&text, 0);
    json_t *m = NULL;
    tl_status st = tl_file_read(&text, path, 1 << 20, e);
    if (st == TL_OK) st = tl_script_data(&m, s, path, text.p, e);
    if (st == TL_OK) json_array_append_new(all, m);
    tl_buf_free(&text);
    return st;
}

tl_status tl_project_profiles(json_t **out, tl_cli *c, tl_script *s, tl_err *e) {
    const char *root;
    tl_names files = {0};
    json_t *all = json_array();
    *out = NULL;
    tl_status st = tl_cli_root(&root, c, e);
    char *dir = st == TL_OK ? tl_path_join(root, "machines") : NULL;
    if (st == TL_OK) st = tl_dir_list(&files, dir, e);
    for (size_t i = 0; st == TL_OK && i < files.n; i++) {
        if (!tl_str_ends(files.v[i], ".lua")) continue;
        char *path = tl_path_join(dir, files.v[i]);
        st = load_profile(all, s, path, e);
        free(path);
    }
    tl_names_free(&files);
    free(dir);
    if (st == TL_OK) *out = all;
    else json_decref(all);
    return st;
}

static tl_status load_adapter(tl_project *p, tl_err *e) {
    const char *name = tl_cli_text(p->c, "engine", tl_json_str(p->plan->engine, "name", "llamacpp"));
    char *file = tl_xprintf("engine/%s.lua", name), *text = NULL, *path = tl_xprintf("lua/%s", file);
    tl_status st = tl_script_library(&text, p->script, file, e);
    if (st == TL_OK) st = tl_script_data(&p->adapter, p->script, path, text, e);
    free(text);
    free(file);
    free(path);
    return st;
}

static tl_status new_project(tl_project **out, tl_cli *c, tl_err *e) {
    tl_project *p = tl_xalloc(sizeof *p);
    tl_script_options o = {.lua_dir = c->lua_dir};
    p->c = c;
    *out = p;
    tl_status st = tl_cli_root(&p->root, c, e);
    return st == TL_OK ? tl_script_new(&p->script, &o, e) : st;
}

/* The description with --set and --only applied, as a plan. */
static tl_status make_plan(tl_project *p, json_t *description, tl_err *e) {
    tl_status st = TL_OK;
    const char *given;
    char sha[65];
    tl_sha256_hex(p->text, strlen(p->text), sha);
    json_object_set_new(description, "script", json_pack("{s:s, s:s, s:s}", "name", tl_path_base(p->path), "sha256", sha, "text",
                                                         p->text));
    for (size_t i = 0; st == TL_OK && (given = tl_cli_nth(p->c, "set", i)) != NULL; i++)
        st = tl_plan_override(description, given, e);
    for (size_t i = 0; st == TL_OK && (given = tl_cli_nth(p->c, "only", i)) != NULL; i++)
        st = tl_plan_select(description, given, e);
    return st == TL_OK ? tl_plan_from_json(&p->plan, description, e) : st;
}

tl_status tl_project_open(tl_project **out, tl_cli *c, const char *experiment, const char *text, tl_err *e) {
    tl_project *p = NULL;
    json_t *description = NULL;
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_status st = TL_OK;
    TRY(new_project(&p, c, e));
    if (text == NULL) {
        TRY(find_experiment(&p->path, c, experiment, e));
        TRY(tl_file_read(&b, p->path, 1 << 20, e));
        p->text = tl_buf_take(&b);
    } else {
        p->path = tl_xstrdup(experiment);
        p->text = tl_xstrdup(text);
    }
    TRY(tl_project_profiles(&p->profiles, c, p->script, e));
    TRY(tl_script_load(p->script, p->path, p->text, e));
    TRY(tl_script_object(&description, p->script, e));
    TRY(make_plan(p, description, e));
    TRY(load_adapter(p, e));
    *out = p;
    p = NULL;
out:
    tl_buf_free(&b);
    json_decref(description);
    tl_project_free(p);
    return st;
}

tl_status tl_project_from_plan(tl_project **out, tl_cli *c, const char *plan_text, const char *script_text, tl_err *e) {
    tl_project *p = NULL;
    json_t *description = NULL;
    const char *given;
    tl_status st = TL_OK;
    TRY(new_project(&p, c, e));
    TRY(tl_json_parse(&description, plan_text, strlen(plan_text), "the published plan", e));
    p->text = tl_xstrdup(script_text);
    p->path = tl_xprintf("%s.lua", tl_json_str(description, "id", "published"));
    TRY(tl_project_profiles(&p->profiles, c, p->script, e));
    TRY(tl_script_load(p->script, p->path, p->text, e));
    for (size_t i = 0; (given = tl_cli_nth(c, "set", i)) != NULL; i++) TRY(tl_plan_override(description, given, e));
    for (size_t i = 0; (given = tl_cli_nth(c, "only", i)) != NULL; i++) TRY(tl_plan_select(description, given, e));
    TRY(tl_plan_from_json(&p->plan, description, e));
    TRY(load_adapter(p, e));
    *out = p;
    p = NULL;
out:
    json_decref(description);
    tl_project_free(p);
    return st;
}

/* Only what some cell uses: --only must not write models that nobody runs. */
static json_t *used_models(const tl_plan *plan) {
    json_t *used = json_array(), *ref;
    size_t i;
    json_array_foreach((json_t *)plan->models, i, ref) {
        bool wanted = false;
        for (size_t k = 0; k < plan->n_cells; k++) wanted = wanted || tl_str_eq(plan->cells[k].model, tl_json_str(ref, "name", ""));
        if (wanted) json_array_append(used, ref);
    }
    return used;
}

tl_status tl_project_engine(tl_project *p, tl_err *e) {
    if (tl_cli_text(p->c, "endpoint", NULL) != NULL) return TL_OK;
    char *path = NULL;
    tl_status st = tl_engine_find(&path, p->adapter, tl_cli_text(p->c, "engine-bin", NULL), e);
    free(path);
    return st;
}

tl_status tl_project_models(tl_project *p, bool dry, tl_err *e) {
    json_t *overrides = NULL, *used = used_models(p->plan);
    char *cache = tl_path_cache();
    tl_status st = tl_project_overrides(&overrides, p->c, e);
    tl_run_models_spec spec = {.root = p->root, .cache_dir = cache, .overrides = overrides, .dry = dry, .cancelled = tl_cli_cancelled};
    if (st == TL_OK) st = tl_run_models(&p->models, used, &spec, e);
    json_decref(overrides);
    json_decref(used);
    free(cache);
    return st;
}

static tl_status predict(json_t **out, void *ctx, const json_t *cell, tl_err *e) {
    return tl_script_predict(out, ((tl_project *)ctx)->script, cell, e);
}

static tl_status formula(json_t **out, void *ctx, const char *name, const json_t *inputs, tl_err *e) {
    json_t *arg = json_pack("{s:s, s:O}", "name", name, "inputs", inputs);
    tl_status st = tl_script_call(out, ((tl_project *)ctx)->script, "apply", "formula", arg, e);
    json_decref(arg);
    return st;
}

tl_run_hooks tl_project_hooks(tl_project *p) {
    return (tl_run_hooks){.ctx = p, .predict = predict, .formula = formula, .cancelled = tl_cli_cancelled};
}

void tl_project_free(tl_project *p) {
    if (p == NULL) return;
    tl_script_free(p->script);
    tl_plan_free(p->plan);
    json_decref(p->adapter);
    json_decref(p->profiles);
    json_decref(p->models);
    free(p->path);
    free(p->text);
    free(p);
}

tl_status tl_project_start_run_on(char id[TL_STORE_ID], tl_store *store, tl_cli *c, const tl_store_run *what, tl_err *e) {
    char offset[8];
    const char *root;
    int64_t wall = tl_clock_wall_ns();
    tl_vcs v = {0};
    json_t *env = tl_run_environment(), *version = tl_version_json(), *argv = tl_project_argv(c), *git = NULL;
    tl_store_run r = *what;
    tl_clock_utc_offset(offset, wall);
    tl_status st = TL_OK;
    TRY(tl_cli_root(&root, c, e));
    TRY(tl_vcs_read(&v, root, e));
    git = tl_vcs_json(&v);
    r.argv = argv;
    r.env = env;
    r.tally = version;
    r.git = git;
    r.wall_ns = wall;
    r.utc_offset = offset;
    TRY(tl_store_run_start(id, store, &r, e));
out:
    tl_vcs_free(&v);
    json_decref(env);
    json_decref(version);
    json_decref(argv);
    json_decref(git);
    return st;
}

tl_status tl_project_start_run(char id[TL_STORE_ID], tl_store *store, tl_cli *c, const char *kind, const char *plan, const json_t *machine,
                               const char *claim, tl_err *e) {
    char machine_id[65];
    json_t *fixed = tl_run_machine_fixed(machine);
    tl_store_run r = {.kind = kind, .machine_id = machine_id, .machine_claim = claim, .plan = plan};
    tl_status st = tl_store_machine(machine_id, store, claim ? claim : "this", fixed, e);
    if (st == TL_OK) st = tl_project_start_run_on(id, store, c, &r, e);
    json_decref(fixed);
    return st;
}

/* tally doctor: what this machine has and lacks. Each check is one function and one line of the table; none
 * of them writes or locks anything. With an address it looks at that server instead (doctor_endpoint.c). */
#include "cli/doctor_endpoint.h"
#include "engine/engine.h"
#include "figure/figure.h"
#include "script/script.h"
#include "store/store.h"
#include "vcs/vcs.h"

typedef enum state { S_OK, S_NOTE, S_MISSING } state;

typedef struct finding {
    state state;
    char detail[400], remedy[400];
} finding;

static void say(finding *f, state s, const char *fmt, ...) TL_PRINTF(3, 4);
static void say(finding *f, state s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->detail, sizeof f->detail, fmt, ap);
    va_end(ap);
    f->state = s;
}

static void from_error(finding *f, state s, const tl_err *e) {
    say(f, s, "%s", e->msg);
    snprintf(f->remedy, sizeof f->remedy, "%s", e->remedy);
}

/* ---- checks
 * ------------------------------------------------------------------------------------------------------ */

static void check_gnuplot(finding *f, tl_cli *c) {
    TL_UNUSED(c);
    char *version = NULL;
    tl_err e = {0};
    if (tl_figure_gnuplot(&version, NULL, &e) == TL_OK)
        say(f, S_OK, "%s", version);
    else
        from_error(f, S_MISSING, &e);
    free(version);
}

static void check_font(finding *f, tl_cli *c) {
    TL_UNUSED(c);
    const char *name;
    tl_err e = {0};
    if (tl_figure_font(&name, "zh-Hant", &e) == TL_OK)
        say(f, S_OK, "%s", name);
    else
        from_error(f, S_MISSING, &e);
}

static tl_status find_engine(char **path, tl_cli *c, tl_err *e) {
    tl_script *s = NULL;
    char *text = NULL;
    json_t *adapter = NULL;
    tl_script_options opt = {.lua_dir = c->lua_dir};
    tl_status st = TL_OK;
    TRY(tl_script_new(&s, &opt, e));
    TRY(tl_script_library(&text, s, "engine/llamacpp.lua", e));
    TRY(tl_script_data(&adapter, s, "engine/llamacpp.lua", text, e));
    TRY(tl_engine_find(path, adapter, NULL, e));
out:
    json_decref(adapter);
    free(text);
    tl_script_free(s);
    return st;
}

static void check_engine(finding *f, tl_cli *c) {
    char *path = NULL;
    tl_err e = {0};
    if (find_engine(&path, c, &e) == TL_OK)
        say(f, S_OK, "%s", path);
    else
        from_error(f, S_MISSING, &e);
    free(path);
}

static void check_git(finding *f, tl_cli *c) {
    tl_err e = {0};
    const char *root;
    tl_vcs v = {0};
    if (tl_cli_root(&root, c, &e) != TL_OK) {
        say(f, S_NOTE, "not asked: not in a project");
        return;
    }
    tl_status st = tl_vcs_read(&v, root, &e);
    char *summary = st == TL_OK ? tl_vcs_summary(&v) : NULL;
    if (st != TL_OK)
        from_error(f, S_NOTE, &e);
    else if (v.state == TL_VCS_OK)
        say(f, S_OK, "%s", summary);
    else {
        say(f, S_NOTE, "%s", v.message ? v.message : tl_vcs_state_name(v.state));
        snprintf(f->remedy, sizeof f->remedy,
                 "runs are stored without a revision then; work in a clone of the project");
    }
    free(summary);
    tl_vcs_free(&v);
}

static void check_project(finding *f, tl_cli *c) {
    const char *root;
    tl_err e = {0};
    if (tl_cli_root(&root, c, &e) == TL_OK)
        say(f, S_OK, "%s", root);
    else
        from_error(f, S_NOTE, &e);
}

static void check_cache(finding *f, tl_cli *c) {
    TL_UNUSED(c);
    char *cache = tl_path_cache(), *at = tl_xstrdup(cache);
    uint64_t bytes = 0;
    tl_err e = {0};
    while (!tl_dir_exists(at) && strcmp(at, "/") != 0 &&
           strcmp(at, ".") != 0) { /* not made yet: its parent's disk */
        char *up = tl_path_dir(at);
        free(at);
        at = up;
    }
    if (tl_fs_free_bytes(&bytes, at, &e) != TL_OK)
        from_error(f, S_NOTE, &e);
    else {
        say(f, bytes < UINT64_C(4000000000) ? S_NOTE : S_OK, "%.1f GB free at %s", (double)bytes / 1e9,
            cache);
        if (f->state == S_NOTE)
            snprintf(
                f->remedy, sizeof f->remedy,
                "the first run writes about 2 GB of models; set TALLY_CACHE to a folder on a larger disk");
    }
    free(at);
    free(cache);
}

static void check_memory(finding *f, tl_cli *c) {
    TL_UNUSED(c);
    uint64_t all = tl_host_memory_bytes(), free_bytes = tl_host_memory_available_bytes();
    if (all == 0 || free_bytes == 0) {
        say(f, S_NOTE, "unknown on this platform");
        return;
    }
    say(f, free_bytes < UINT64_C(2000000000) ? S_NOTE : S_OK, "%.1f GB available of %.1f GB",
        (double)free_bytes / 1e9, (double)all / 1e9);
    if (f->state == S_NOTE)
        snprintf(
            f->remedy, sizeof f->remedy,
            "close programs: a model that does not fit is read from disk, and the disk is measured instead");
}

/* What the first bytes of the file say (https://www.sqlite.org/fileformat.html §1.3). Only the file is looked
 * at: opening the database would lock it, or recover it, and so change what is looked at. */
static void judge_header(finding *f, const char *path, const unsigned char head[100], size_t n,
                         uint64_t size) {
    uint32_t version =
        (uint32_t)head[60] << 24 | (uint32_t)head[61] << 16 | (uint32_t)head[62] << 8 | head[63];
    bool foreign = memcmp(head + 68, "taly", 4) != 0 && memcmp(head + 68, "\0\0\0\0", 4) != 0;
    if (size > 0 && (n < 100 || memcmp(head, "SQLite format 3", 16) != 0))
        say(f, S_MISSING, "%s: not a database", path);
    else if (foreign)
        say(f, S_MISSING, "%s: the database of another program", path);
    else if (version > (uint32_t)tl_store_schema_version()) {
        say(f, S_MISSING, "%s: written by a newer tally (form %u, this one knows %d)", path, version,
            tl_store_schema_version());
        snprintf(f->remedy, sizeof f->remedy, "update tally, or name another database with --db or TALLY_DB");
    } else
        say(f, S_OK, "%s, %.1f MB", path, (double)size / 1e6);
}

static void look_at_file(finding *f, const char *path, uint64_t size) {
    unsigned char head[100] = {0};
    FILE *file = fopen(path, "r+b"); /* for writing, as a run will */
    bool writable = file != NULL;
    if (file == NULL) file = fopen(path, "rb");
    size_t n = file ? fread(head, 1, sizeof head, file) : 0;
    if (file == NULL)
        say(f, S_MISSING, "%s: cannot be read", path);
    else
        judge_header(f, path, head, n, size);
    if (file != NULL) fclose(file);
    if (f->state == S_OK && !writable) say(f, S_MISSING, "%s: cannot be written", path);
    if (f->state != S_OK && f->remedy[0] == 0)
        snprintf(f->remedy, sizeof f->remedy,
                 "mend it or move it away, or name another with --db or TALLY_DB");
}

static void check_database(finding *f, tl_cli *c) {
    const char *path;
    tl_err e = {0};
    tl_file_facts facts;
    if (tl_cli_db(&path, c, &e) != TL_OK) {
        say(f, S_NOTE, "not asked: not in a project");
        return;
    }
    if (tl_file_stat(&facts, path, &e) != TL_OK) {
        from_error(f, S_MISSING, &e);
        return;
    }
    if (facts.exists)
        look_at_file(f, path, facts.size_bytes);
    else
        say(f, S_OK, "%s: none yet, the first run makes it", path);
    char type[32];
    tl_fs_type(type, path);
    if (f->state != S_OK || !tl_fs_is_network(type)) return;
    size_t n = strlen(f->detail);
    snprintf(f->detail + n, sizeof f->detail - n, " (on %s)", type);
    f->state = S_NOTE;
    snprintf(f->remedy, sizeof f->remedy,
             "locks of network file systems are not reliable: name a local file with --db or TALLY_DB");
}

static void check_processors(finding *f, tl_cli *c) {
    TL_UNUSED(c);
    unsigned cpus = tl_cpu_count(), cores = tl_core_count();
    if (cores > 0)
        say(f, S_OK, "%u usable, %u cores in the machine", cpus, cores);
    else
        say(f, S_OK, "%u usable", cpus);
}

static const struct check {
    const char *name, *needed_for;
    void (*look)(finding *f, tl_cli *c);
} checks[] = {
    {"engine", "tally run", check_engine},
    {"gnuplot", "figures", check_gnuplot},
    {"font", "Chinese text in figures", check_font},
    {"project", "experiments", check_project},
    {"git", "the revision of a run", check_git},
    {"database", "stored runs", check_database},
    {"disk", "models", check_cache},
    {"memory", "models", check_memory},
    {"processors", "engines", check_processors},
};

/* ---- verb
 * -------------------------------------------------------------------------------------------------------- */

static const char *const state_names[] = {"ok", "note", "missing"};

static void print(tl_cli *c, const finding *found) {
    const char *cells[3 * (TL_COUNT(checks) + 1)] = {"check", "state", "what was found"};
    for (size_t i = 0; i < TL_COUNT(checks); i++) {
        cells[3 * i + 3] = checks[i].name;
        cells[3 * i + 4] = state_names[found[i].state];
        cells[3 * i + 5] = found[i].detail;
    }
    tl_cli_table(c, cells, TL_COUNT(checks) + 1, 3);
    for (size_t i = 0; i < TL_COUNT(checks); i++)
        if (found[i].state != S_OK && found[i].remedy[0])
            fprintf(c->out, "\n%s (needed for %s)\n  → %s\n", checks[i].name, checks[i].needed_for,
                    found[i].remedy);
}

static tl_status run(tl_cli *c, tl_err *e) {
    if (c->n_args > 0) return tl_doctor_endpoint(c, e);
    for (const tl_option *o = tl_doctor_options; o->name != NULL; o++)
        if (tl_cli_text(c, o->name, NULL) != NULL)
            return tl_cli_usage(c, e, "--%s is about a server: give its address, http://HOST:PORT", o->name);
    finding *found = tl_xalloc(TL_COUNT(checks) * sizeof *found);
    json_t *list = json_array();
    bool missing = false;
    for (size_t i = 0; i < TL_COUNT(checks); i++) {
        checks[i].look(&found[i], c);
        missing = missing || found[i].state == S_MISSING;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", checks[i].name, "state",
                                              state_names[found[i].state], "detail", found[i].detail,
                                              "remedy", found[i].remedy, "needed_for", checks[i].needed_for));
    }
    json_t *all =
        json_pack("{s:b, s:o, s:o}", "ok", (int)!missing, "checks", list, "tally", tl_version_json());
    if (c->json)
        tl_cli_print_json(c, all);
    else
        print(c, found);
    json_decref(all);
    free(found);
    c->exit_code = missing ? 4 : 0;
    return TL_OK;
}

static const tl_example examples[] = {{"tally doctor", "what is missing, and the command that mends it"},
                                      {"tally doctor --json", "the same for programs"},
                                      {"tally doctor http://127.0.0.1:8080",
                                       "how a running server or proxy streams, and which clients mis-measure it"},
                                      {"tally doctor localhost:8000 --model NAME --requests 10",
                                       "ten answers of one model of a server that has several"},
                                      {"tally doctor https://HOST",
                                       "a server that wants a key: put it into TALLY_API_KEY, it is sent as a bearer token"},
                                      {0}};
static const tl_exit exits[] = {{0, "all that is needed is there; the server was looked at"},
                                {1, "the server failed, stalled or speaks no HTTP"},
                                {2, "the command line is wrong, or the server refuses the request"},
                                {4, "something is missing; nobody, no LLM or no such model at the address; a key is needed"},
                                {0, NULL}};

const tl_verb tl_verb_doctor = {
    .name = "doctor",
    .summary = "what this machine has and lacks, each with the remedy",
    .usage = "[ENDPOINT]",
    .about = "Looks for the engine, gnuplot, a font with Chinese, the project, its git state, the database, "
             "disk and memory. Nothing is "
             "changed.\n\n"
             "With ENDPOINT it asks that running server or proxy for a few short streams, and says which habits "
             "they have (keep-alive comments, an early role chunk, where usage stands, several tokens a chunk, "
             "buffering, compression ...), what tally cannot measure because of them, and which other clients "
             "fail or mis-measure, by how much on the answers just seen. Nothing is stored.",
    .options = tl_doctor_options,
    .examples = examples,
    .exits = exits,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};

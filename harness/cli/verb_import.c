/* tally import: what another tool measured, kept with its source. The file is read by import; here it becomes a run. */
#include "cli/cited.h"
#include "cli/project.h"

#include "import/import.h"

static const tl_option options[] = {
    {.name = "tool", .arg = "NAME", .help = "read it as this tool's, instead of recognising it by its content"},
    {.name = "machine", .arg = "NAME", .help = "where it was measured, as you were told; a citation, not a claim of this machine"},
    {.name = "source", .arg = "URL", .help = "where the file was published"},
    {.name = "partial", .help = "of a file that was cut off, take the rows that are complete"},
    {.name = "dry-run", .help = "show what would be stored, and store nothing"},
    {0}};
static const tl_example examples[] = {{"tally import mine.jsonl", "what `llama-bench -m m.gguf -o jsonl > mine.jsonl` wrote, beside what tally measured"},
                                      {"tally import result.json --machine T3 --source https://example.org/post", "a published result, with where it came from"},
                                      {"tally import log.sql --dry-run", "what is in it, without storing"},
                                      {"tally import cut.json --partial", "the complete rows of a file that was cut off"},
                                      {0}};
static const tl_exit exits[] = {{0, "imported"}, {1, "these bytes were imported before, or the file is larger than 64 MiB"}, {2, "the command line or the file is wrong"}, {4, "there is no such file"}, {0}};

/* What is said of the file itself. */
typedef struct source {
    const char *name, *url, *machine;
    char sha256[65], mtime[32];
    tl_buf bytes;
} source;

static tl_status read_file(source *f, tl_cli *c, tl_err *e) {
    tl_file_facts facts;
    f->name = tl_path_base(c->args[0]);
    if (!tl_utf8_valid(f->name, strlen(f->name))) f->name = "(a name that is not UTF-8)";
    f->url = tl_cli_text(c, "source", NULL);
    f->machine = tl_cli_text(c, "machine", NULL);
    tl_status st = tl_file_read(&f->bytes, c->args[0], TL_IMPORT_MAX, e);
    if (st == TL_OK) st = tl_file_stat(&facts, c->args[0], e);
    if (st != TL_OK) return st;
    tl_clock_iso8601(f->mtime, facts.mtime_ns);
    tl_sha256_hex(f->bytes.p, f->bytes.len, f->sha256);
    return TL_OK;
}

static tl_status check_options(tl_cli *c, tl_err *e) {
    static const char *const texts[] = {"machine", "source"};
    for (size_t i = 0; i < TL_COUNT(texts); i++) {
        const char *text = tl_cli_text(c, texts[i], "-");
        if (*text == 0 || !tl_utf8_valid(text, strlen(text))) return tl_cli_usage(c, e, "--%s: a text in UTF-8, and not an empty one", texts[i]);
    }
    const char *tool = tl_cli_text(c, "tool", NULL), *known;
    tl_buf all;
    tl_buf_init(&all, 0);
    bool found = tool == NULL;
    for (size_t i = 0; (known = tl_import_tool(i, NULL)) != NULL; i++) {
        found = found || tl_str_eq(tool, known);
        if (i == 0 || !tl_str_eq(known, tl_import_tool(i - 1, NULL))) tl_buf_fmt(&all, "%s%s", i ? ", " : "", known);
    }
    tl_status st = found ? TL_OK : tl_cli_usage(c, e, "--tool %s: known are %s", tool, all.p);
    tl_buf_free(&all);
    return st;
}

/* ---- storing ---------------------------------------------------------------------------------------------------- */

/* The same bytes twice would be two witnesses where there is one. */
static tl_status refuse_second(tl_store *s, const source *f, tl_err *e) {
    json_t *rows = NULL;
    char *sql = tl_xprintf("SELECT id FROM run WHERE kind = 'import' AND json_extract(plan, '$.import.sha256') = '%s'", f->sha256);
    tl_status st = tl_store_select(&rows, s, sql, e);
    const char *id = tl_json_str(rows, "0.id", NULL);
    if (st == TL_OK && id != NULL) {
        st = tl_fail(e, TL_CONFLICT, "%s: these bytes are run %s already", f->name, id);
        tl_remedy(e, "`tally show %s` shows them; a wrong value is withdrawn with `tally retract`", id);
    }
    free(sql);
    json_decref(rows);
    return st;
}

static char *plan_text(const source *f, const json_t *read) {
    json_t *plan = json_pack("{s:{s:s, s:s, s:s, s:I, s:O, s:O}}", "import", "file", f->name, "sha256", f->sha256, "tool", tl_json_str(read, "tool", ""), "bytes",
                             (json_int_t)f->bytes.len, "format", json_object_get(read, "format"), "version", json_object_get(read, "version"));
    char *text = tl_json_canonical(plan);
    json_decref(plan);
    return text;
}

/* A machine that tally has not seen: what the file states, under the name that the importer gave. */
static tl_status store_machine(char id[65], tl_store *s, const source *f, const json_t *read, tl_err *e) {
    json_t *stated = json_object_get(read, "machine");
    json_t *facts = json_pack("{s:O, s:s, s:s?}", "stated", stated, "stated_by", tl_json_str(read, "tool", ""), "named_by_importer", f->machine);
    const char *cpu = tl_json_str(stated, "cpu_info", NULL);
    if (cpu) json_object_set_new(facts, "cpu", json_pack("{s:s}", "model", cpu));
    if (json_object_size(stated) == 0) json_object_set_new(facts, "of", json_string(f->sha256)); /* unknown machines are not one machine */
    tl_status st = tl_store_machine(id, s, f->machine ? f->machine : "unnamed", facts, e);
    json_decref(facts);
    return st;
}

static json_t *citation(const source *f, const json_t *read, const json_t *row, const json_t *figure) {
    const char *version = tl_json_str(read, "version", NULL), *own = tl_json_str(row, "when", tl_json_str(read, "when", NULL));
    char *who = tl_xprintf("%s%s%s", tl_json_str(read, "tool", ""), version ? " " : "", version ? version : " (version not recorded)");
    char *where = tl_xprintf("%s, line %" PRId64, f->name, tl_json_int(row, "line", 0));
    json_t *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s*, s:s*, s:O, s:O*}", "who", who, "where", where, "sha256", f->sha256, "when", own ? own : f->mtime,
                            "when_from", own ? "the file" : "the time of the file's last change", "url", f->url, "machine", f->machine, "conditions",
                            json_object_get(row, "axes"), "spread", json_object_get(figure, "spread"));
    free(who);
    free(where);
    return out;
}

static tl_status store_value(tl_store *s, const char *run, const char *key, const json_t *figure, const json_t *cited, tl_err *e) {
    tl_store_value v = {.run_id = run, .cell_key = key, .name = tl_json_str(figure, "name", NULL), .label = "cited",
                        .number = tl_json_num(figure, "number", TL_STORE_NAN), .null_reason = tl_json_str(figure, "null_reason", NULL),
                        .lo = TL_STORE_NAN, .hi = TL_STORE_NAN, .n = tl_json_int(figure, "n", TL_STORE_NONE), .unit = tl_json_str(figure, "unit", NULL),
                        .statistic = tl_json_str(figure, "statistic", NULL), .source = cited};
    char id[TL_STORE_ID];
    return tl_store_value_add(id, s, &v, e);
}

static tl_status store_row(tl_store *s, const char *run, int64_t position, const source *f, const json_t *read, const json_t *row, tl_err *e) {
    char key[32], *label = tl_cited_label(json_object_get(row, "axes"));
    snprintf(key, sizeof key, "row-%" PRId64, position + 1);
    json_t *facts = json_pack("{s:s, s:O, s:O, s:O}", "label", label, "line", json_object_get(row, "line"), "settings", json_object_get(row, "settings"),
                              "fields", json_object_get(row, "fields")), *figure;
    tl_store_cell cell = {.run_id = run, .key = key, .position = position, .axes = json_object_get(row, "axes"), .facts = facts};
    tl_status st = tl_store_cell_add(s, &cell, e);
    size_t i;
    json_array_foreach(json_object_get(row, "figures"), i, figure) {
        if (st != TL_OK) break;
        json_t *cited = citation(f, read, row, figure);
        st = store_value(s, run, key, figure, cited, e);
        json_decref(cited);
    }
    json_decref(facts);
    free(label);
    return st;
}

static tl_status store_all(char run[TL_STORE_ID], tl_store *s, tl_cli *c, const source *f, const json_t *read, tl_err *e) {
    char machine[65], id[TL_STORE_ID], *plan = plan_text(f, read);
    json_t *facts = json_pack("{s:O, s:O, s:O, s:O, s:O, s:s?}", "found", json_object_get(read, "found"), "refused", json_object_get(read, "refused"), "other",
                              json_object_get(read, "other"), "lost", json_object_get(read, "lost"), "missing", json_object_get(read, "missing"), "url", f->url), *row;
    tl_status st = TL_OK;
    size_t i;
    TRY(tl_store_begin(s, e));
    TRY(refuse_second(s, f, e));
    TRY(store_machine(machine, s, f, read, e));
    const tl_store_run what = {.kind = "import", .machine_id = machine, .plan = plan, .facts = facts};
    TRY(tl_project_start_run_on(run, s, c, &what, e));
    json_array_foreach(json_object_get(read, "rows"), i, row) TRY(store_row(s, run, (int64_t)i, f, read, row, e));
    const tl_store_artifact file = {.run_id = run, .name = f->name, .mime = "text/plain; charset=utf-8", .body = f->bytes.p, .len = f->bytes.len};
    TRY(tl_store_artifact_add(id, s, &file, e));
    const tl_store_state done = {.state = TL_STORE_DONE};
    TRY(tl_store_run_state(s, run, &done, e));
    TRY(tl_store_commit(s, e));
out:
    if (st != TL_OK) tl_store_rollback(s);
    json_decref(facts);
    free(plan);
    return st;
}

/* ---- saying ------------------------------------------------------------------------------------------------------ */

static int64_t count_figures(const json_t *read) {
    size_t i, n = 0;
    json_t *row;
    json_array_foreach(json_object_get(read, "rows"), i, row) n += json_array_size(json_object_get(row, "figures"));
    return (int64_t)n;
}

static void print_lines(tl_cli *c, const char *head, const json_t *list, const char *field) {
    enum { MOST = 20 };
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v) {
        if (i == 0) fprintf(c->out, "%s\n", head);
        if (i < MOST) fprintf(c->out, "  line %" PRId64 ": %s\n", tl_json_int(v, "line", 0), tl_json_str(v, field, ""));
    }
    if (i > MOST) fprintf(c->out, "  and %zu more (--json lists all)\n", i - MOST);
}

static void print_read(tl_cli *c, const source *f, const json_t *read) {
    const char *version = tl_json_str(read, "version", NULL);
    const json_t *missing = json_object_get(read, "missing"), *machine = json_object_get(read, "machine");
    size_t i, refused = json_array_size(json_object_get(read, "refused"));
    json_t *v;
    const char *name;
    fprintf(c->out, "%s: %s %s, %s; %" PRId64 " rows found, %zu read, %zu refused; %" PRId64 " figures [cited]\n", f->name, tl_json_str(read, "tool", ""),
            version ? version : "(version not recorded)", tl_json_str(read, "format", ""), tl_json_int(read, "found", 0),
            json_array_size(json_object_get(read, "rows")), refused, count_figures(read));
    tl_buf states;
    tl_buf_init(&states, 0);
    json_object_foreach((json_t *)machine, name, v) {
        tl_buf_fmt(&states, "%s%s ", states.len ? "; " : "it states of the machine: ", name);
        tl_cited_text(&states, v);
    }
    fprintf(c->out, "%s%s\n", states.p, states.len ? "\n" : "");
    tl_buf_free(&states);
    tl_cited_print(c, json_object_get(read, "rows"));
    fputc('\n', c->out);
    print_lines(c, "refused:", json_object_get(read, "refused"), "reason");
    print_lines(c, "lines that belong to no row:", json_object_get(read, "other"), "text");
    if (json_is_string(json_object_get(read, "lost"))) fprintf(c->out, "lost: the file is cut off within %s\n", tl_json_str(read, "lost", ""));
    json_array_foreach((json_t *)missing, i, v) fprintf(c->out, "%s%s", i ? "; " : "not recorded: ", json_string_value(v));
    if (json_array_size(missing)) fputc('\n', c->out);
}

static void say(tl_cli *c, const source *f, json_t *read, const char *run) {
    if (c->json) {
        json_object_set_new(read, "file", json_pack("{s:s, s:s, s:I}", "name", f->name, "sha256", f->sha256, "bytes", (json_int_t)f->bytes.len));
        json_object_set_new(read, "run", run ? json_string(run) : json_null());
        tl_cli_print_json(c, read);
        return;
    }
    print_read(c, f, read);
    if (run) fprintf(c->out, "stored as run %s, with the file itself; `tally show %s`\n", run, run);
    else fprintf(c->out, "nothing was stored (--dry-run)\n");
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_store *s = NULL;
    json_t *read = NULL;
    source f = {0};
    char id[TL_STORE_ID];
    bool dry = tl_cli_flag(c, "dry-run");
    const tl_import_options o = {.tool = tl_cli_text(c, "tool", NULL), .partial = tl_cli_flag(c, "partial")};
    tl_status st = TL_OK;
    tl_buf_init(&f.bytes, 0);
    TRY(check_options(c, e));
    TRY(read_file(&f, c, e));
    TRY(tl_import_read(&read, f.bytes.p, f.bytes.len, f.name, &o, e));
    if (!dry) {
        TRY(tl_project_store(&s, c, TL_STORE_WRITE, e));
        TRY(store_all(id, s, c, &f, read, e));
    }
    say(c, &f, read, dry ? NULL : id);
out:
    tl_store_close(s);
    tl_buf_free(&f.bytes);
    json_decref(read);
    return st;
}

const tl_verb tl_verb_import = {
    .name = "import", .summary = "keep another tool's results, as citations", .usage = "FILE",
    .about = "Reads what llama-bench, llama-batched-bench, vLLM, SGLang, GuideLLM, AIPerf, GenAI-Perf, LocalScore and Ollama (--verbose) write, told by "
             "its content whatever it is called, and stores each row as a cell and each figure as a cited value: "
             "with the tool and its version, the file and its SHA-256, the line, and the time. The file itself is kept byte for byte.\n\n"
             "Nothing in such a file can be proved, so none of it is ever `measured`, and a machine is one that tally has not seen. Rows that cannot "
             "be read are listed with their lines; what the tool did not record is said. A number that is none is null, never 0. The same bytes are "
             "imported once.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_FILE, .min_args = 1, .max_args = 1, .run = run};

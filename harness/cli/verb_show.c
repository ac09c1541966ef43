/* tally show: a run's result as a table with labels, or one model, machine or experiment in full. */
#include "cli/cited.h"
#include "cli/project.h"
#include "cli/show_as.h"

#include "model/model.h"

#include <math.h>

static const tl_option options[] = {
    {.name = "as", .arg = "NAME", .help = "what another tool would report for the same requests (vllm, sglang, guidellm, aiperf, llama-bench ...), or `all`"},
    {.name = "percentiles", .help = "of a run: p50, p90, p95 and p99 of its requests, each with its interval or the number of samples it needs"},
    {.name = "cell", .arg = "KEY", .help = "with --as: the requests of one cell"},
    {.name = "request", .arg = "ID", .help = "with --as: one request, by the beginning of its id"},
    {0}};
static const tl_example examples[] = {{"tally show bandwidth-law", "the newest finished run of an experiment"},
                                      {"tally show 01J9", "a run by the beginning of its id"},
                                      {"tally show machine t1", "a profile with the source of each number"},
                                      {"tally show bandwidth-law --as all", "the same answers as other tools would report them, and why they differ"},
                                      {"tally show bandwidth-law --as vllm", "one tool in full: each cause of the gap, adding up"},
                                      {"tally show users-served --percentiles", "p50 to p99 of its requests, or how many requests they need"},
                                      {"tally show stream tests/engine/streams/role-first.json --as all", "a scripted stream on its exact times"},
                                      {"tally show model.gguf", "what a model file is, from its header"},
                                      {0}};
static const tl_exit exits[] = {{0, "shown"}, {2, "the command line is wrong"}, {4, "there is no such thing"}, {0}};

/* "33.7 [33.1–34.0]" in as many digits as the interval justifies. */
static const char *number(tl_arena *a, const json_t *v) {
    double x = tl_json_num(v, "number", NAN), lo = tl_json_num(v, "lo", NAN), hi = tl_json_num(v, "hi", NAN);
    if (!isfinite(x)) return "–";
    int digits = fabs(x) >= 100 ? 0 : fabs(x) >= 10 ? 1 : fabs(x) >= 1 ? 2 : 3;
    if (!isfinite(lo) || lo == hi) return tl_arena_printf(a, "%.*f", digits, x);
    return tl_arena_printf(a, "%.*f [%.*f–%.*f]", digits, x, digits, lo, digits, hi);
}

static const json_t *value_of(const json_t *show, const char *cell, const char *name) {
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(show, "values"), i, v)
        if (tl_str_eq(tl_json_str(v, "name", ""), name) && tl_str_eq(tl_json_str(v, "cell", NULL), cell)) return v;
    return NULL;
}

static const char *const columns[] = {"bytes_per_token", "decode_rate", "implied_bandwidth", "bandwidth_paired", "predicted_paired", "ratio", "ttft", "prefill_rate", "throughput", "goodput", "users_at_slo", "rate_at_slo",
                                      "ruler.events_rate", "ruler.cpu_per_event", "ruler.arrival_p99", "ruler.ttft_bias", "ruler.ttft_p99", "ruler.gap_p99"};

static void print_cells(tl_cli *c, const json_t *show) {
    size_t n = json_array_size(json_object_get(show, "cells")), used[TL_COUNT(columns)], k = 0, i;
    json_t *cell;
    for (size_t j = 0; j < TL_COUNT(columns); j++) {
        const json_t *any = NULL;
        json_array_foreach(json_object_get(show, "cells"), i, cell) if (any == NULL) any = value_of(show, tl_json_str(cell, "key", ""), columns[j]);
        if (any != NULL) used[k++] = j;
    }
    size_t width = k + 1;
    const char **t = tl_xalloc((n + 1) * width * sizeof *t);
    tl_arena *a = tl_arena_new();
    t[0] = "cell";
    for (size_t j = 0; j < k; j++) {
        const json_t *v = NULL;
        json_array_foreach(json_object_get(show, "cells"), i, cell) if (v == NULL) v = value_of(show, tl_json_str(cell, "key", ""), columns[used[j]]);
        t[j + 1] = tl_arena_printf(a, "%s %s [%s]", columns[used[j]], tl_json_str(v, "unit", ""), tl_json_str(v, "label", ""));
    }
    json_array_foreach(json_object_get(show, "cells"), i, cell) {
        const char *key = tl_json_str(cell, "key", "");
        const char *label = tl_json_str(cell, "facts.label", key); /* the model's name alone where nothing else varies */
        t[(i + 1) * width] = json_object_size(json_object_get(cell, "axes")) == 1 ? tl_json_str(cell, "axes.model", label) : label;
        for (size_t j = 0; j < k; j++) t[(i + 1) * width + j + 1] = number(a, value_of(show, key, columns[used[j]]));
    }
    tl_cli_table(c, t, n + 1, width);
    tl_arena_free(a);
    free(t);
}

/* Interruptions and continuations, and a state that is not "done", with their reasons. */
static void print_states(tl_cli *c, const json_t *show) {
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(show, "states"), i, t) {
        const char *state = tl_json_str(t, "state", ""), *reason = tl_json_str(t, "reason", NULL);
        if (tl_str_eq(state, "started") || tl_str_eq(state, "done")) continue;
        fprintf(c->out, "%s%s%s\n", state, reason ? ": " : "", reason ? reason : "");
    }
}

static const char *cell_name(const json_t *show, const char *key) {
    size_t i;
    json_t *cell;
    json_array_foreach(json_object_get(show, "cells"), i, cell)
        if (tl_str_eq(tl_json_str(cell, "key", ""), key)) return tl_json_str(cell, "facts.label", key);
    return key;
}

/* One line a measured block of many users, each number measured by this run. */
static void print_windows(tl_cli *c, const json_t *show) {
    size_t i, lines = 0;
    json_t *t;
    json_array_foreach(json_object_get(show, "trials"), i, t) {
        const json_t *w = tl_json_at(t, "facts.window");
        const char *name = cell_name(show, tl_json_str(t, "cell", ""));
        if (w != NULL) {
            if (lines++ == 0) fprintf(c->out, "\nblocks, each over its window: whole, or without ramp and drain where the schedule has a ramp [measured]\n");
            fprintf(c->out, "  %s, round %" PRId64 ": %.2f s, %" PRId64 " sent, %" PRId64 " ok, %" PRId64 " failed; %.3g req/s, %.3g tok/s; "
                            "sent late p50 %.3f, max %.3f ms\n",
                    name, tl_json_int(t, "round", 0) + 1, tl_json_num(w, "seconds", NAN), tl_json_int(w, "offered", 0),
                    tl_json_int(w, "ok", 0), tl_json_int(w, "failed", 0), tl_json_num(w, "request_rate", NAN),
                    tl_json_num(w, "throughput", NAN), tl_json_num(w, "lateness.p50_ms", NAN), tl_json_num(w, "lateness.max_ms", NAN));
        }
        const char *aborted = tl_json_str(t, "facts.aborted.reason", NULL);
        if (aborted) fprintf(c->out, "  %s, round %" PRId64 ": aborted: %s; no medians are made of it\n", name, tl_json_int(t, "round", 0) + 1, aborted);
    }
}

/* What each search found, with the load that broke the promise and by how much. */
static void print_searches(tl_cli *c, const json_t *show) {
    size_t i, k, lines = 0;
    json_t *t, *step;
    json_array_foreach(json_object_get(show, "trials"), i, t) {
        const json_t *search = tl_json_at(t, "facts.search");
        if (search == NULL) continue;
        if (lines++ == 0) fprintf(c->out, "\nsearches for the largest load that meets an SLO [measured]\n");
        fprintf(c->out, "  %s, round %" PRId64 ": %s\n   ", cell_name(show, tl_json_str(t, "cell", "")), tl_json_int(t, "round", 0) + 1,
                tl_json_str(search, "sentence", "not finished"));
        json_array_foreach(json_object_get(search, "steps"), k, step)
            fprintf(c->out, "%s %g %s (%" PRId64 " requests)", k ? "," : " tried", tl_json_num(step, "load", NAN), tl_json_str(step, "verdict", ""),
                    tl_json_int(step, "requests", 0));
        fputc('\n', c->out);
    }
}

/* What the client's own stamps are worth: from the calibration that the run began with. */
static void print_ruler(tl_cli *c, const json_t *show) {
    const json_t *k = tl_json_at(show, "facts.calibration");
    char when[32];
    if (tl_str_eq(tl_json_str(show, "kind", ""), "calibrate") || tl_str_eq(tl_json_str(show, "kind", ""), "probe")) return;
    if (!json_is_object(k)) {
        fprintf(c->out, "ruler: not calibrated: run `tally calibrate`\n");
        return;
    }
    tl_clock_iso8601(when, tl_json_int(k, "wall_ns", 0));
    fprintf(c->out, "ruler: ±%.3f ms (p99) at %" PRId64 " streams, calibrated %.16sZ, %.1f h before the run%s [measured]\n",
            tl_json_num(k, "error_p99_ms", NAN), tl_json_int(k, "streams", 0), when, tl_json_num(k, "age_s", NAN) / 3600,
            tl_json_bool(k, "same_revision", false) ? "" : ", by another build of tally");
}

/* Another tool's results: where they come from, and their own figures. */
static void print_import(tl_cli *c, const json_t *show) {
    const json_t *missing = tl_json_at(show, "facts.missing");
    size_t i;
    json_t *v;
    if (json_is_string(tl_json_at(show, "machine.facts.named_by_importer"))) fprintf(c->out, "the machine's name is the importer's word\n");
    fprintf(c->out, "of %s by %s, sha256 %.16s; every number is [cited], the file is kept with the run\n\n", tl_json_str(show, "artifacts.0.name", "?"),
            tl_json_str(show, "values.0.source.who", "?"), tl_json_str(show, "values.0.source.sha256", "?"));
    tl_cited_show(c, show);
    json_array_foreach((json_t *)missing, i, v) fprintf(c->out, "%s%s", i ? "; " : "\nnot recorded: ", json_string_value(v));
    fprintf(c->out, "\n%zu of %" PRId64 " rows were refused\n", json_array_size(tl_json_at(show, "facts.refused")), tl_json_int(show, "facts.found", 0));
}

static void print_statistics(tl_cli *c, const json_t *show) {
    const json_t *statistics = json_object_get(show, "statistics");
    if (tl_cli_flag(c, "percentiles") && json_array_size(statistics) > 0) tl_show_percentiles(c, statistics, cell_name, show);
    tl_show_warnings(c, statistics, cell_name, show);
}

static void print_run(tl_cli *c, const char *id, const json_t *show) {
    char when[32];
    tl_clock_iso8601(when, tl_json_int(show, "wall_ns", 0));
    const char *state = tl_json_str(show, "state", "");
    fprintf(c->out, "run %s  %s  %s\n", id, tl_json_str(show, "experiment.name", tl_json_str(show, "kind", "")), tl_str_eq(state, "invalid") ? "INVALID" : state);
    fprintf(c->out, "%.19sZ  machine %s (%s)  revision %.7s (%s)\n", when, tl_json_str(show, "machine.name", "this"),
            tl_json_str(show, "machine.facts.cpu.model", "?"), tl_json_str(show, "git.commit", "none"),
            tl_json_bool(show, "git.dirty", false) ? "modified" : "clean");
    print_states(c, show);
    if (tl_str_eq(tl_json_str(show, "kind", ""), "import")) {
        print_import(c, show);
        return;
    }
    const json_t *engine = tl_json_at(show, "engines.0.facts");
    if (engine != NULL) fprintf(c->out, "engine %s %s\n", tl_json_str(engine, "adapter", ""), tl_json_str(engine, "version.text", tl_json_str(engine, "build", "")));
    print_ruler(c, show);
    const json_t *bw = value_of(show, NULL, "bandwidth"), *law = value_of(show, NULL, "law_ratio");
    tl_arena *a = tl_arena_new();
    if (bw) fprintf(c->out, "read bandwidth before the first request: %s GB/s [measured]\n", number(a, bw));
    fprintf(c->out, "\n");
    if (json_array_size(json_object_get(show, "cells")) > 0) print_cells(c, show);
    print_windows(c, show);
    print_searches(c, show);
    if (law) fprintf(c->out, "\nmeasured / predicted, all trials: %s [derived]\n", number(a, law));
    print_statistics(c, show);
    tl_arena_free(a);
}

static tl_status show_run(tl_cli *c, tl_store *s, const char *id, tl_err *e) {
    json_t *show = NULL, *statistics = NULL;
    tl_status st = tl_store_run_show(&show, s, id, e);
    if (st == TL_OK) st = tl_run_statistics(&statistics, s, show, e);
    if (st != TL_OK) {
        json_decref(show);
        return st;
    }
    json_object_set_new(show, "statistics", statistics);
    if (c->json) tl_cli_print_json(c, show);
    else print_run(c, id, show);
    json_decref(show);
    return TL_OK;
}

static tl_status show_model(tl_cli *c, const char *path, tl_err *e) {
    tl_model *m = NULL;
    tl_status st = tl_model_open(&m, path, 0, e);
    if (st != TL_OK) return st;
    json_t *j = tl_model_json(m);
    const tl_model_facts *f = tl_model_facts_of(m);
    if (c->json) tl_cli_print_json(c, j);
    else {
        fprintf(c->out, "%s: %s %s, %.1f M parameters, %.2f bits per weight\n", path, f->architecture, f->file_type, (double)f->params / 1e6, f->bits_per_weight);
        fprintf(c->out, "file %.1f MB, read per token %.1f MB, %u layers, width %u, %u heads (%u KV)\n", (double)f->file_bytes / 1e6,
                (double)f->read_bytes_per_token / 1e6, f->layers, f->embed, f->heads, f->kv_heads_max);
        fprintf(c->out, "context %" PRIu64 ", vocabulary %" PRIu64 ", chat template %s\n", f->ctx, f->vocab, f->chat_template ? "yes" : "no");
    }
    json_decref(j);
    tl_model_free(m);
    return TL_OK;
}

static tl_status show_machine(tl_cli *c, const char *name, tl_err *e) {
    tl_script *s = NULL;
    json_t *profiles = NULL, *p, *hit = NULL;
    size_t i;
    tl_script_options o = {.lua_dir = c->lua_dir};
    tl_status st = TL_OK;
    TRY(tl_script_new(&s, &o, e));
    TRY(tl_project_profiles(&profiles, c, s, e));
    json_array_foreach(profiles, i, p) if (tl_str_eq(tl_json_str(p, "id", ""), name)) hit = p;
    if (hit == NULL) {
        st = tl_fail(e, TL_NOT_FOUND, "no machine '%s' in machines/", name);
        tl_remedy(e, "`tally list machines` shows them; `tally probe` writes this.lua");
        goto out;
    }
    tl_cli_print_json(c, hit);
out:
    json_decref(profiles);
    tl_script_free(s);
    return st;
}

static tl_status find_run(char id[65], tl_store *s, const char *what, tl_err *e) {
    tl_status st = tl_store_latest_run(id, s, what, NULL, "done", NULL);
    if (st == TL_NOT_FOUND) st = tl_store_latest_run(id, s, what, NULL, "invalid", NULL); /* its reason is what there is to see */
    if (st == TL_NOT_FOUND) st = tl_store_find(id, s, "run", what, e);
    if (st == TL_NOT_FOUND) tl_remedy(e, "give an experiment that has finished a run, or the beginning of a run's id; `tally list runs` shows them");
    return st;
}

static tl_status run(tl_cli *c, tl_err *e) {
    const char *what = c->args[0];
    bool as = tl_cli_flag(c, "as");
    if (!as && (tl_cli_flag(c, "cell") || tl_cli_flag(c, "request"))) return tl_cli_usage(c, e, "--cell and --request belong to --as");
    if (c->n_args == 2) {
        if (tl_str_eq(what, "machine")) return show_machine(c, c->args[1], e);
        if (tl_str_eq(what, "model")) return show_model(c, c->args[1], e);
        if (tl_str_eq(what, "stream")) return tl_show_as_stream(c, c->args[1], e);
        if (!tl_str_eq(what, "run")) return tl_cli_usage(c, e, "tally show %s: it shows a run, machine, model or stream", what);
        what = c->args[1];
    }
    if (tl_str_ends(what, ".gguf")) return show_model(c, what, e);
    tl_store *s = NULL;
    char id[65];
    tl_status st = tl_project_store(&s, c, TL_STORE_READ, e);
    if (st != TL_OK) return st;
    st = find_run(id, s, what, e);
    if (st == TL_OK) st = as ? tl_show_as_run(c, s, id, e) : show_run(c, s, id, e);
    tl_store_close(s);
    return st;
}

const tl_verb tl_verb_show = {
    .name = "show", .summary = "show a run, machine, model or stream", .usage = "[run|machine|model|stream] NAME",
    .about = "NAME is an experiment (its newest finished run), the beginning of a run's id, a machine's name, a .gguf file or a stream file.\n\n"
             "--as rebuilds each stored request and says what another tool would print for it, by that tool's own definitions; the difference "
             "to tally's figure is split into causes that add up.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_EXPERIMENT, .min_args = 1, .max_args = 2, .run = run};

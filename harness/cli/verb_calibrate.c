/* tally calibrate: the client's own error on this machine, stored; every later run carries it. */
#include "cli/project.h"

#include <math.h>

static const tl_option options[] = {
    {.name = "streams", .letter = 'n', .arg = "N", .help = "answers at once", .otherwise = "1, 16, 64, 128 in turn"},
    {.name = "rate", .letter = 'r', .arg = "N", .help = "events per second of each answer", .otherwise = "100 (60 with 128 streams)"},
    {.name = "seconds", .arg = "N", .help = "length of each load", .otherwise = "4"},
    {.name = "endpoint", .arg = "URL", .help = "a null server of this machine, or a proxy in front of one, instead of an own one"},
    {.name = "null", .arg = "WORDS", .help = "words for the null server (see serve-null), to see a trap found: batch=4, burst=1, nagle=1, max_conn=2"},
    {0}};
static const tl_example examples[] = {{"tally calibrate", "four loads from 1 to 128 streams, stored for later runs"},
                                      {"tally calibrate bandwidth-law", "at the concurrency that an experiment plans"},
                                      {"tally calibrate --streams 32 --rate 80 --json", "one load, for a program"},
                                      {"tally calibrate --streams 8 --null max_conn=2", "how a pool of connections that is too small looks"},
                                      {0}};
static const tl_exit exits[] = {{0, "calibrated; what was found stands in the output"}, {1, "the null server failed, or it was stopped"}, {2, "the command line is wrong"}, {0}};

enum { LOADS = 32 };

static size_t add_load(tl_run_ruler_load *loads, size_t n, size_t streams, double rate) {
    for (size_t i = 0; i < n; i++)
        if (loads[i].streams == streams) return n;
    if (n < LOADS) loads[n++] = (tl_run_ruler_load){streams, rate};
    return n;
}

/* Each concurrency of the plan once. */
static tl_status plan_loads(tl_run_ruler_load *loads, size_t *n, tl_cli *c, double rate, tl_err *e) {
    tl_project *p = NULL;
    tl_status st = tl_project_open(&p, c, c->args[0], NULL, e);
    for (size_t i = 0; st == TL_OK && i < p->plan->n_cells; i++)
        *n = add_load(loads, *n, tl_run_planned_streams(p->plan->cells[i].workload), rate);
    tl_project_free(p);
    return st;
}

static tl_status choose_loads(tl_run_ruler_load *loads, size_t *n, tl_cli *c, tl_err *e) {
    static const tl_run_ruler_load all[] = {{1, 100}, {16, 100}, {64, 100}, {128, 60}};
    int64_t streams, rate;
    tl_status st = tl_cli_int(&streams, c, "streams", 0, 1, 10000, e);
    if (st == TL_OK) st = tl_cli_int(&rate, c, "rate", 0, 1, 100000, e);
    *n = 0;
    if (st != TL_OK) return st;
    if (c->n_args > 0 && streams > 0) return tl_cli_usage(c, e, "give an experiment or --streams, not both");
    if (c->n_args > 0) return plan_loads(loads, n, c, rate ? (double)rate : 100, e);
    if (streams > 0) *n = add_load(loads, 0, (size_t)streams, rate ? (double)rate : 100);
    for (size_t i = 0; streams == 0 && i < TL_COUNT(all); i++) *n = add_load(loads, *n, all[i].streams, rate ? (double)rate : all[i].rate_per_s);
    return TL_OK;
}

static void print_points(tl_cli *c, const json_t *made) {
    static const struct {
        const char *head, *path;
        int digits;
    } columns[] = {{"events/s", "events_per_s", 0},       {"CPU us/event", "cpu_per_event_us", 2}, {"arrival ms p50", "arrival.p50_ms", 3},
                   {"p99", "arrival.p99_ms", 3},          {"max", "arrival.max_ms", 3},            {"TTFT ms bias", "ttft.bias_ms", 3},
                   {"p50", "ttft.p50_ms", 3},             {"p99", "ttft.p99_ms", 3},               {"max", "ttft.max_ms", 3},
                   {"gap ms bias", "gap.bias_ms", 4},     {"p50", "gap.p50_ms", 3},                {"p99", "gap.p99_ms", 3},
                   {"max", "gap.max_ms", 3}};
    enum { K = TL_COUNT(columns) + 1 };
    const json_t *points = json_object_get(made, "points");
    size_t n = json_array_size(points);
    const char **t = tl_xalloc((n + 1) * K * sizeof *t);
    tl_arena *a = tl_arena_new();
    t[0] = "streams x rate";
    for (size_t k = 1; k < K; k++) t[k] = columns[k - 1].head;
    for (size_t i = 0; i < n; i++) {
        const json_t *p = json_array_get(points, i);
        t[(i + 1) * K] = tl_arena_printf(a, "%" PRId64 " x %g/s", tl_json_int(p, "streams", 0), tl_json_num(p, "rate", NAN));
        for (size_t k = 1; k < K; k++)
            t[(i + 1) * K + k] = tl_arena_printf(a, "%.*f", columns[k - 1].digits, tl_json_num(p, columns[k - 1].path, NAN));
    }
    tl_cli_table(c, t, n + 1, K);
    tl_arena_free(a);
    free(t);
}

static void print_words(tl_cli *c, const json_t *made, const char *id) {
    const json_t *points = json_object_get(made, "points"), *p = json_array_get(points, json_array_size(points) - 1);
    const json_t *findings = json_object_get(made, "findings");
    json_t *f;
    size_t i;
    fprintf(c->out, "clock %s, made from %s; it moves in steps of %.0f ns and takes %.0f ns to read\n\n", tl_json_str(made, "clock.name", "?"),
            tl_json_str(made, "clock.counter", "an unnamed counter"), tl_json_num(made, "clock.step_ns", NAN), tl_json_num(made, "clock.read_ns", NAN));
    print_points(c, made);
    fprintf(c->out, "\nAt %" PRId64 " streams 99 of 100 events are stamped at most %.3f ms after the server wrote them, and a TTFT is %.3f ms too long on "
                    "average; the client used %.0f %% of a core. [measured]\n",
            tl_json_int(p, "streams", 0), tl_json_num(p, "arrival.p99_ms", NAN), tl_json_num(p, "ttft.bias_ms", NAN), tl_json_num(p, "cpu_share", NAN) * 100);
    json_array_foreach(findings, i, f)
        fprintf(c->out, "found %s%s%s: %s\n", tl_json_str(f, "name", ""), json_is_string(json_object_get(f, "load")) ? " at " : "",
                tl_json_str(f, "load", ""), tl_json_str(f, "text", ""));
    if (json_array_size(findings) == 0)
        fprintf(c->out, "Nothing stands between client and server: no 40 ms steps, no joined or split events, no buffering, no pool that is too small, and the clock is good.\n");
    fprintf(c->out, "run %s; %s\n", id, json_is_string(json_object_get(made, "null_words")) ? "spoiled on purpose: later runs do not use it" : "later runs on this machine carry it");
}

/* The state of a calibration that did not come to its end. */
static void record_end(tl_store *store, const char *id, tl_status st, const tl_err *why) {
    tl_err mine = {0};
    tl_store_state t = {.state = st == TL_CANCELLED ? TL_STORE_INTERRUPTED : TL_STORE_FAILED, .reason = why->msg};
    if (tl_store_run_state(store, id, &t, &mine) != TL_OK) tl_log(TL_LOG_WARN, "the end of run %s could not be stored: %s", id, mine.msg);
}

static char *plan_text(const tl_run_calibrate_spec *spec) {
    json_t *loads = json_array();
    for (size_t i = 0; i < spec->n_loads; i++)
        json_array_append_new(loads, json_pack("{s:I, s:f}", "streams", (json_int_t)spec->loads[i].streams, "rate", spec->loads[i].rate_per_s));
    json_t *plan = json_pack("{s:{s:o, s:f, s:s?, s:s?}}", "calibrate", "loads", loads, "seconds", spec->seconds, "endpoint", spec->endpoint, "null", spec->null_words);
    char *text = tl_json_canonical(plan);
    json_decref(plan);
    return text;
}

static tl_status calibrate(json_t **made, char id[TL_STORE_ID], tl_store *store, tl_cli *c, const tl_run_calibrate_spec *spec, const json_t *profiles, tl_err *e) {
    json_t *machine = tl_host_snapshot();
    char *plan = plan_text(spec);
    tl_status st = tl_project_start_run(id, store, c, "calibrate", plan, machine, tl_run_machine_match(machine, profiles), e);
    json_decref(machine);
    free(plan);
    if (st != TL_OK) return st;
    st = tl_run_calibrate(made, spec, e);
    if (st == TL_OK) return tl_run_calibration_store(store, id, *made, e);
    record_end(store, id, st, e);
    return st;
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_store *store = NULL;
    tl_script *script = NULL;
    json_t *profiles = NULL, *made = NULL;
    tl_run_ruler_load loads[LOADS];
    tl_run_calibrate_spec spec = {.loads = loads, .endpoint = tl_cli_text(c, "endpoint", NULL), .null_words = tl_cli_text(c, "null", NULL), .cancelled = tl_cli_cancelled};
    int64_t seconds;
    char id[TL_STORE_ID];
    tl_status st = TL_OK;
    TRY(tl_cli_int(&seconds, c, "seconds", 4, 1, 3600, e));
    spec.seconds = (double)seconds;
    TRY(choose_loads(loads, &spec.n_loads, c, e));
    tl_script_options so = {.lua_dir = c->lua_dir};
    TRY(tl_script_new(&script, &so, e));
    TRY(tl_project_profiles(&profiles, c, script, e));
    TRY(tl_project_store(&store, c, TL_STORE_WRITE, e));
    TRY(calibrate(&made, id, store, c, &spec, profiles, e));
    if (c->json) {
        json_object_set_new(made, "run", json_string(id));
        tl_cli_print_json(c, made);
    } else print_words(c, made, id);
out:
    tl_store_close(store);
    tl_script_free(script);
    json_decref(profiles);
    json_decref(made);
    return st;
}

const tl_verb tl_verb_calibrate = {
    .name = "calibrate", .summary = "measure the client's own error on this machine", .usage = "[EXPERIMENT]",
    .about = "Starts a server without a model whose events carry the time at which they were written, reads it through the client that "
             "runs use, and stores how late the client's own stamps are, how far its TTFT and gaps err, and what an event costs it. Every "
             "later run of this machine carries the newest calibration, and `tally show` prints it.\n\n"
             "It also looks for what falsifies timings on the way: 40 ms steps of delayed acknowledgements, joined or split events, answers that "
             "are not streamed, a pool with fewer connections than users, a coarse clock. Point --endpoint at a proxy in front of `tally serve-null` to test the proxy.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_EXPERIMENT, .min_args = 0, .max_args = 1, .run = run};

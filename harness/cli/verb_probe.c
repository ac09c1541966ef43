/* tally probe: this machine's rulers. Stores the measured values as a run and writes machines/this.lua with them. */
#include "cli/project.h"

static const tl_option options[] = {
    {.name = "repetitions", .letter = 'r', .arg = "N", .help = "probes of each thread count, interleaved", .otherwise = "9"},
    {.name = "milliseconds", .arg = "N", .help = "length of one probe", .otherwise = "150"},
    {.name = "no-write", .help = "do not write machines/this.lua"},
    {0}};
static const tl_example examples[] = {{"tally probe", "read bandwidth by thread count, stored and written to machines/this.lua"},
                                      {"tally probe -r 20 --json", "a longer look, for a program"},
                                      {0}};
static const tl_exit exits[] = {{0, "probed"}, {1, "it could not be stored"}, {2, "the command line is wrong"}, {4, "too little memory for an array that the caches cannot hold"}, {0}};

enum { POINTS = 16 };

static tl_status store_points(tl_store *store, const char *run, const tl_run_probe_point *p, size_t n, size_t best, const tl_membw *m, tl_err *e) {
    tl_status st = TL_OK;
    char id[TL_STORE_ID];
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "bandwidth.threads_%u", p[i].threads);
        json_t *source = json_pack("{s:i, s:I, s:s}", "threads", (int)p[i].threads, "array_bytes", (json_int_t)tl_membw_array_bytes(m), "kernel", tl_membw_kernel(m));
        tl_store_value v = {.run_id = run, .name = name, .label = "measured", .number = p[i].median / 1e9, .lo = p[i].lo / 1e9,
                            .hi = p[i].hi / 1e9, .interval = "95 % bootstrap of the median", .n = (int64_t)p[i].n, .unit = "GB/s",
                            .statistic = "median", .source = source};
        st = tl_store_value_add(id, store, &v, e);
        v.name = "bandwidth"; /* the best count's figure is the machine's read bandwidth */
        if (st == TL_OK && i == best) st = tl_store_value_add(id, store, &v, e);
        json_decref(source);
    }
    return st;
}

/* A profile in the same form as the committed ones; the values point at the run that measured them. */
static tl_status write_profile(const char *root, const char *run, const tl_run_probe_point *p, const json_t *machine, tl_err *e) {
    char *path = tl_xprintf("%s/machines/this.lua", root);
    tl_buf b;
    tl_buf_init(&b, 0);
    const char *cpu = tl_json_str(machine, "cpu.model", "this machine");
    tl_buf_fmt(&b, "-- Written by `tally probe`; not committed. Measured values of the machine you sit at.\n"
                   "local tally = require \"tally\"\n\nreturn tally.machine {\n  id = \"this\", owned = true,\n  title = { en = \"");
    for (const char *q = cpu; *q; q++)
        if (*q != '"' && *q != '\\' && (unsigned char)*q >= 32) tl_buf_char(&b, *q);
    tl_buf_fmt(&b, "\" },\n  memory = {\n    bandwidth = tally.interval(tally.measured(%.3f, \"GB/s\", { run = \"%s\" }), %.3f, %.3f),\n  },\n}\n",
               p->median / 1e9, run, p->lo / 1e9, p->hi / 1e9);
    tl_status st = tl_file_write(path, b.p, b.len, e);
    tl_buf_free(&b);
    free(path);
    return st;
}

static void print_points(tl_cli *c, const tl_run_probe_point *p, size_t n, size_t best, const tl_membw *m, const char *run, const char *claim) {
    if (c->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(list, json_pack("{s:i, s:f, s:f, s:f, s:I, s:s, s:s, s:b}", "threads", (int)p[i].threads, "value",
                                                  p[i].median / 1e9, "lo", p[i].lo / 1e9, "hi", p[i].hi / 1e9, "n", (json_int_t)p[i].n,
                                                  "unit", "GB/s", "label", "measured", "best", i == best));
        json_t *j = json_pack("{s:s, s:s?, s:I, s:s, s:o}", "run", run, "machine", claim, "array_bytes",
                              (json_int_t)tl_membw_array_bytes(m), "kernel", tl_membw_kernel(m), "bandwidth", list);
        tl_cli_print_json(c, j);
        json_decref(j);
        return;
    }
    fprintf(c->out, "machine %s; read bandwidth of %.0f MB summed by %s code [measured]\n", claim ? claim : "this",
            (double)tl_membw_array_bytes(m) / 1e6, tl_membw_kernel(m));
    for (size_t i = 0; i < n; i++)
        fprintf(c->out, "%3u thread%s  %6.1f GB/s  [%.1f–%.1f], n = %zu%s\n", p[i].threads, p[i].threads == 1 ? " " : "s",
                p[i].median / 1e9, p[i].lo / 1e9, p[i].hi / 1e9, p[i].n, i == best ? "  <- used for predictions" : "");
    fprintf(c->out, "run %s\n", run);
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_store *store = NULL;
    tl_script *script = NULL;
    tl_membw *m = NULL;
    json_t *machine = NULL, *profiles = NULL;
    tl_run_probe_point p[POINTS];
    size_t n = 0, best = 0;
    int64_t repetitions, ms;
    const char *root;
    char id[TL_STORE_ID];
    tl_status st = TL_OK;
    TRY(tl_cli_int(&repetitions, c, "repetitions", 9, 2, 64, e));
    TRY(tl_cli_int(&ms, c, "milliseconds", 150, 20, 10000, e));
    TRY(tl_cli_root(&root, c, e));
    tl_script_options so = {.lua_dir = c->lua_dir};
    TRY(tl_script_new(&script, &so, e));
    TRY(tl_project_profiles(&profiles, c, script, e));
    TRY(tl_project_store(&store, c, TL_STORE_WRITE, e));
    machine = tl_host_snapshot();
    const char *claim = tl_run_machine_match(machine, profiles);
    TRY(tl_project_start_run(id, store, c, "probe", "{\"probe\":\"memory-bandwidth\"}", machine, claim, e));
    TRY(tl_membw_new(&m, tl_cpu_count(), 0, e));
    TRY(tl_run_probe_threads(p, &n, POINTS, &best, m, (unsigned)repetitions, (tl_ns)ms * TL_MS, e));
    TRY(store_points(store, id, p, n, best, m, e));
    tl_store_state done = {.state = TL_STORE_DONE};
    TRY(tl_store_run_state(store, id, &done, e));
    if (!tl_cli_flag(c, "no-write")) TRY(write_profile(root, id, &p[best], machine, e));
    print_points(c, p, n, best, m, id, claim);
out:
    tl_membw_free(m);
    tl_store_close(store);
    tl_script_free(script);
    json_decref(machine);
    json_decref(profiles);
    return st;
}

const tl_verb tl_verb_probe = {
    .name = "probe", .summary = "measure this machine's memory bandwidth", .usage = "",
    .about = "Sums an array of at least four times the last-level cache with 1, 2, 4 ... threads, interleaved. A shared host's "
             "bandwidth drifts within minutes: `tally run` therefore probes again around every visit of a cell.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_NONE, .min_args = 0, .max_args = 0, .run = run};

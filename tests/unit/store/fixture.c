#include "fixture.h"

const char *message(const char *fmt, ...) {
    static char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return text;
}

json_t *js(const char *text) {
    json_t *j = NULL;
    ok(tl_json_parse(&j, text, strlen(text), "test", e));
    return j;
}

int raw(const char *path, const char *sql, char **text) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (text != NULL) *text = tl_xstrdup(sqlite3_errmsg(db));
    sqlite3_close(db);
    return rc;
}

int64_t raw_int(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return v;
}

tl_store *open_mode(const char *path, tl_store_mode mode) {
    tl_store *s = NULL;
    tl_store_options o = {.mode = mode, .busy_ms = 10000};
    ok(tl_store_open(&s, path, &o, e));
    return s;
}

int fx_setup(void **state) {
    fx *f = tl_xalloc(sizeof *f);
    ok(tl_dir_temp(&f->dir, "store", e));
    f->path = tl_path_join(f->dir, "tally.db");
    f->s = open_mode(f->path, TL_STORE_WRITE);
    *state = f;
    return 0;
}

int fx_filled(void **state) {
    fx_setup(state);
    fill(*state);
    return 0;
}

int fx_teardown(void **state) {
    fx *f = *state;
    tl_store_close(f->s);
    ok(tl_dir_remove(f->dir, e));
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

tl_store_run a_run(const fx *f) {
    return (tl_store_run){.kind = "experiment", .experiment_id = f->experiment, .machine_id = f->machine, .plan = "{\"plan\":1}",
                          .seed = 0xfedcba9876543210u, .wall_ns = WALL, .utc_offset = "+08:00"};
}

tl_store_request a_request(const fx *f, int64_t position) {
    return (tl_store_request){.trial_id = f->trial, .position = position, .role = "measured", .session = TL_STORE_NONE,
                              .outcome = "ok", .http_status = 200, .t_intended_ns = 1000, .t_sent_ns = 1001, .t_connected_ns = 900,
                              .t_headers_ns = 2000, .t_first_byte_ns = 2001, .t_close_ns = 9000, .connects = 1};
}

tl_store_value a_value(const fx *f, double number) {
    return (tl_store_value){.run_id = f->run, .cell_key = "a", .name = "decode_rate", .label = "measured", .number = number,
                            .lo = TL_STORE_NAN, .hi = TL_STORE_NAN, .n = 5, .unit = "tok/s", .statistic = "median"};
}

void fill(fx *f) {
    json_t *facts = js("{\"cpu\":{\"model\":\"测试\"},\"cores\":2}"), *axes_a = js("{\"model\":\"q4_0\",\"context\":512}"),
           *axes_b = js("{\"model\":\"q8_0\",\"context\":512}");
    memset(f->model, 'a', 64);
    ok(tl_store_machine(f->machine, f->s, "T1", facts, e));
    ok(tl_store_engine(f->engine, f->s, "llama.cpp", axes_a, e));
    ok(tl_store_model(f->s, f->model, "tiny.gguf", 1234, facts, e));
    ok(tl_store_experiment(f->experiment, f->s, "bandwidth-law", "return {}\n", facts, e));
    tl_store_run r = a_run(f);
    json_t *argv = js("[\"tally\",\"run\"]");
    r.argv = argv;
    r.facts = facts;
    ok(tl_store_run_start(f->run, f->s, &r, e));
    tl_store_cell a = {.run_id = f->run, .key = "a", .position = 0, .axes = axes_a, .model_sha256 = f->model, .facts = facts},
                  b = {.run_id = f->run, .key = "b", .position = 1, .axes = axes_b};
    ok(tl_store_cell_add(f->s, &a, e));
    ok(tl_store_cell_add(f->s, &b, e));
    tl_store_trial t = {.run_id = f->run, .cell_key = "a", .engine_id = f->engine, .cache_claimed = "cold", .t_start_ns = 500,
                        .probe_before = facts};
    ok(tl_store_trial_start(f->trial, f->s, &t, e));
    json_decref(argv);
    json_decref(facts);
    json_decref(axes_a);
    json_decref(axes_b);
}

void add_request(fx *f, int64_t position, const char *outcome, const char *metrics) {
    static const tl_store_event events[] = {{5, 0, 10, 0}, {1000000007, 2, 3, 1}, {999999999, TL_STORE_READ_KIND, 4096, 2}};
    json_t *m = metrics ? js(metrics) : NULL;
    tl_store_request r = a_request(f, position);
    r.outcome = outcome;
    if (strcmp(outcome, "failed") == 0) r.error_class = "http", r.error_text = "500 内部错误";
    r.metrics = m;
    r.events = events;
    r.events_n = TL_COUNT(events);
    ok(tl_store_request_add(NULL, f->s, &r, e));
    json_decref(m);
}

void fill_all(fx *f) {
    char bw[TL_STORE_ID], spec[TL_STORE_ID], pred[TL_STORE_ID], id[TL_STORE_ID];
    json_t *official = js("{\"url\":\"https://example.org/spec\",\"title\":\"data sheet\",\"retrieved\":\"2026-01-01\"}");
    add_request(f, 0, "ok", "{\"ttft_ns\":1500000,\"decode_rate\":30.5}");
    add_request(f, 1, "ok", "{\"ttft_ns\":2500000,\"decode_rate\":null}");
    add_request(f, 2, "failed", NULL);
    tl_store_trial_end end = {.trial_id = f->trial, .finished = true, .cache_verified = "cold", .t_end_ns = 10000, .facts = official};
    ok(tl_store_trial_finish(f->s, &end, e));
    tl_store_value v = a_value(f, 32.25);
    v.name = "bandwidth", v.cell_key = NULL, v.unit = "GB/s", v.lo = 31.5, v.hi = 33, v.interval = "bootstrap";
    ok(tl_store_value_add(bw, f->s, &v, e));
    v = a_value(f, 51.2);
    v.run_id = v.cell_key = NULL, v.name = "bandwidth_spec", v.label = "official", v.unit = "GB/s", v.source = official;
    ok(tl_store_value_add(spec, f->s, &v, e));
    tl_store_edge edges[] = {{bw, "bandwidth"}, {spec, "limit"}};
    v = a_value(f, 28);
    v.name = "predicted", v.label = "derived", v.formula = "bandwidth / bytes", v.edges = edges, v.edges_n = 2;
    ok(tl_store_value_add(pred, f->s, &v, e));
    v = a_value(f, 30.5);
    ok(tl_store_value_add(id, f->s, &v, e));
    ok(tl_store_retract(id, f->s, bw, "another program was running", NULL, WALL + 5, e));
    tl_store_artifact a = {.run_id = f->run, .trial_id = f->trial, .name = "engine.log", .mime = "text/plain", .body = "a\0b\n", .len = 4};
    ok(tl_store_artifact_add(id, f->s, &a, e));
    ok(tl_store_telemetry_add(f->s, f->run, NULL, "machine.before", 0, official, e));
    ok(tl_store_telemetry_add(f->s, f->run, f->trial, "gpu0", 700, official, e));
    tl_store_figure g = {.report = "bandwidth-law", .name = "fig-1", .run_id = f->run, .spec = official, .facts = official,
                         .command = "tally rerun x#fig-1"};
    ok(tl_store_figure_add(id, f->s, &g, e));
    json_decref(official);
}

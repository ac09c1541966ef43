/* What the queries say of a run whose numbers are known. */
#include "fixture.h"

static int filled(void **state) {
    fx_filled(state);
    fill_all(*state);
    return 0;
}

static void text_is(const json_t *j, const char *path, const char *want) {
    const json_t *v = tl_json_at(j, path);
    if (want == NULL ? !json_is_null(v) : !tl_str_eq(json_string_value(v), want)) {
        char *have = v ? tl_json_canonical(v) : tl_xstrdup("(absent)");
        fail_msg("%s is %s, not %s", path, have, want ? want : "null");
    }
}
static void int_is(const json_t *j, const char *path, int64_t want) {
    const json_t *v = tl_json_at(j, path);
    if (!json_is_integer(v) || json_integer_value(v) != want) fail_msg("%s is not %" PRId64, path, want);
}
static void bool_is(const json_t *j, const char *path, bool want) {
    const json_t *v = tl_json_at(j, path);
    if (!json_is_boolean(v) || json_is_true(v) != want) fail_msg("%s is not %s", path, want ? "true" : "false");
}
static void size_is(const json_t *j, const char *path, size_t want) {
    const json_t *v = tl_json_at(j, path);
    if (!json_is_array(v) || json_array_size(v) != want) fail_msg("%s has %zu elements, not %zu", path, json_array_size(v), want);
}

static void a_run_in_full(void **state) {
    fx *f = *state;
    json_t *r = NULL;
    ok(tl_store_run_show(&r, f->s, f->run, e));
    text_is(r, "id", f->run);
    text_is(r, "kind", "experiment");
    text_is(r, "state", "started");
    text_is(r, "reason", NULL);
    size_is(r, "states", 1);
    int_is(r, "wall_ns", WALL);
    text_is(r, "utc_offset", "+08:00");
    text_is(r, "claim", NULL);
    bool_is(r, "simulated", false);
    int_is(r, "seed", (int64_t)0xfedcba9876543210u);
    text_is(r, "argv.1", "run");
    text_is(r, "env", NULL);
    text_is(r, "facts.cpu.model", "测试");
    text_is(r, "experiment.id", f->experiment);
    text_is(r, "experiment.name", "bandwidth-law");
    assert_null(tl_json_at(r, "experiment.script"));
    text_is(r, "machine.name", "T1");
    int_is(r, "machine.facts.cores", 2);
    size_is(r, "engines", 1);
    text_is(r, "engines.0.name", "llama.cpp");
    size_is(r, "models", 1);
    text_is(r, "models.0.id", f->model);
    size_is(r, "cells", 2);
    text_is(r, "cells.0.key", "a");
    text_is(r, "cells.0.model_sha256", f->model);
    text_is(r, "cells.1.model_sha256", NULL);
    int_is(r, "cells.1.axes.context", 512);
    size_is(r, "trials", 1);
    text_is(r, "trials.0.cell", "a");
    bool_is(r, "trials.0.finished", true);
    text_is(r, "trials.0.cache_verified", "cold");
    int_is(r, "trials.0.t_start_ns", 500);
    int_is(r, "trials.0.probe_before.cores", 2);
    text_is(r, "trials.0.probe_after", NULL);
    int_is(r, "trials.0.requests", 3);
    int_is(r, "trials.0.ok", 2);
    int_is(r, "trials.0.failed", 1);
    size_is(r, "values", 3); /* newest first */
    text_is(r, "values.0.name", "decode_rate");
    text_is(r, "values.2.name", "bandwidth");
    text_is(r, "values.2.cell", NULL);
    bool_is(r, "values.2.retracted", true);
    bool_is(r, "values.0.retracted", false);
    size_is(r, "artifacts", 1);
    int_is(r, "artifacts.0.bytes", 4);
    assert_null(tl_json_at(r, "artifacts.0.body"));
    size_is(r, "telemetry", 2);
    text_is(r, "telemetry.1", "gpu0");
    size_is(r, "retractions", 1);
    text_is(r, "retractions.0.why", "another program was running");
    json_decref(r);
    refused(TL_NOT_FOUND, "run 'nowhere'", tl_store_run_show(&r, f->s, "nowhere", e));
    assert_null(r);
}

static void lists_of_runs(void **state) {
    fx *f = *state;
    char second[TL_STORE_ID], found[TL_STORE_ID], *plan = NULL, *script = NULL;
    json_t *runs = NULL;
    tl_store_run r = a_run(f);
    r.kind = "probe", r.experiment_id = NULL, r.machine_claim = "T2";
    ok(tl_store_run_start(second, f->s, &r, e));
    ok(tl_store_runs(&runs, f->s, NULL, 0, e));
    size_is(runs, "", 2);
    text_is(runs, "0.id", second);
    text_is(runs, "0.experiment", NULL);
    text_is(runs, "0.claim", "T2");
    int_is(runs, "1.cells", 2);
    int_is(runs, "1.trials", 1);
    int_is(runs, "1.requests", 3);
    int_is(runs, "1.ok", 2);
    int_is(runs, "1.failed", 1);
    text_is(runs, "1.machine", "T1");
    json_decref(runs);
    ok(tl_store_runs(&runs, f->s, NULL, 1, e));
    size_is(runs, "", 1);
    json_decref(runs);
    ok(tl_store_runs(&runs, f->s, "bandwidth-law", 0, e));
    size_is(runs, "", 1);
    json_decref(runs);
    ok(tl_store_runs(&runs, f->s, "it's no \"experiment", 0, e));
    size_is(runs, "", 0);
    json_decref(runs);
    ok(tl_store_latest_run(found, f->s, "bandwidth-law", NULL, NULL, e));
    assert_string_equal(found, f->run);
    ok(tl_store_latest_run(found, f->s, "bandwidth-law", "t1", "started", e));
    char prefix[9];
    snprintf(prefix, sizeof prefix, "%.8s", f->machine);
    ok(tl_store_latest_run(found, f->s, "bandwidth-law", prefix, NULL, e));
    refused(TL_NOT_FOUND, "done run", tl_store_latest_run(found, f->s, "bandwidth-law", NULL, "done", e));
    refused(TL_NOT_FOUND, "T9", tl_store_latest_run(found, f->s, "bandwidth-law", "T9", NULL, e));
    refused(TL_INVALID, "finished", tl_store_latest_run(found, f->s, "bandwidth-law", NULL, "finished", e));
    ok(tl_store_run_plan(&plan, f->s, f->run, e));
    assert_string_equal(plan, "{\"plan\":1}");
    ok(tl_store_experiment_script(&script, f->s, f->experiment, e));
    assert_string_equal(script, "return {}\n");
    free(plan);
    free(script);
    refused(TL_NOT_FOUND, "run", tl_store_run_plan(&plan, f->s, "x", e));
}

static void ids_by_their_beginning(void **state) {
    fx *f = *state;
    char id[65], second[TL_STORE_ID], prefix[65];
    tl_store_run r = a_run(f);
    ok(tl_store_run_start(second, f->s, &r, e));
    ok(tl_store_find(id, f->s, "run", f->run, e));
    assert_string_equal(id, f->run);
    snprintf(prefix, sizeof prefix, "%s", f->run);
    for (char *p = prefix; *p; p++)
        if (*p >= 'A') *p = (char)(*p + 32);
    ok(tl_store_find(id, f->s, "run", prefix, e));
    assert_string_equal(id, f->run);
    tl_err why = {0};
    assert_int_equal(tl_store_find(id, f->s, "run", "0", &why), TL_INVALID);
    assert_non_null(strstr(why.msg, f->run)); /* both candidates are named */
    assert_non_null(strstr(why.msg, second));
    refused(TL_NOT_FOUND, "7ZZ", tl_store_find(id, f->s, "run", "7ZZ", e));
    refused(TL_NOT_FOUND, "%", tl_store_find(id, f->s, "run", "%", e));
    refused(TL_NOT_FOUND, "'", tl_store_find(id, f->s, "run", "' OR 1=1 --", e));
    refused(TL_NOT_FOUND, "_", tl_store_find(id, f->s, "run", "0_", e));
    refused(TL_INVALID, "", tl_store_find(id, f->s, "run", "", e));
    refused(TL_INVALID, "", tl_store_find(id, f->s, "run", NULL, e));
    refused(TL_INVALID, "chain", tl_store_find(id, f->s, "chain", "1", e));
    ok(tl_store_find(id, f->s, "model", "AAAA", e));
    assert_string_equal(id, f->model);
    static const char *const others[] = {"value", "figure", "trial", "request", "artifact", "retraction", "machine", "engine", "experiment"};
    for (size_t i = 0; i < TL_COUNT(others); i++) {
        json_t *rows = NULL;
        char *sql = tl_xprintf("SELECT id FROM %s LIMIT 1", others[i]);
        ok(tl_store_select(&rows, f->s, sql, e));
        ok(tl_store_find(id, f->s, others[i], tl_json_str(rows, "0.id", ""), e));
        assert_string_equal(id, tl_json_str(rows, "0.id", ""));
        json_decref(rows);
        free(sql);
    }
}

static void blocks_tell_what_to_resume(void **state) {
    fx *f = *state;
    json_t *b = NULL;
    tl_store_trial t = {.run_id = f->run, .cell_key = "b", .cache_claimed = "cold"};
    ok(tl_store_trial_start(f->trial, f->s, &t, e));
    add_request(f, 0, "ok", NULL); /* the process ends here */
    t.round = 1;
    ok(tl_store_trial_start(f->trial, f->s, &t, e));
    tl_store_trial_end cut = {.trial_id = f->trial, .finished = false, .reason = "Ctrl-C", .t_end_ns = 1};
    add_request(f, 0, "cancelled", NULL);
    ok(tl_store_trial_finish(f->s, &cut, e));
    ok(tl_store_blocks(&b, f->s, f->run, e));
    size_is(b, "", 3);
    text_is(b, "0.cell", "a");
    bool_is(b, "0.finished", true);
    int_is(b, "0.measured", 3);
    int_is(b, "0.ok", 2);
    text_is(b, "1.cell", "b");
    bool_is(b, "1.finished", false);
    bool_is(b, "2.finished", false);
    int_is(b, "2.ok", 0);
    json_decref(b);
    ok(tl_store_trial_start(f->trial, f->s, &t, e)); /* visited again, to the end */
    tl_store_request warm = a_request(f, 0);
    warm.role = "warmup";
    ok(tl_store_request_add(NULL, f->s, &warm, e));
    add_request(f, 1, "ok", NULL);
    tl_store_trial_end end = {.trial_id = f->trial, .finished = true, .t_end_ns = 2};
    ok(tl_store_trial_finish(f->s, &end, e));
    ok(tl_store_blocks(&b, f->s, f->run, e));
    size_is(b, "", 3);
    bool_is(b, "2.finished", true);
    int_is(b, "2.round", 1);
    int_is(b, "2.visits", 2);
    int_is(b, "2.measured", 2);
    int_is(b, "2.ok", 1);
    json_decref(b);
}

static void samples_of_a_metric(void **state) {
    fx *f = *state;
    double *x = NULL;
    size_t n = 0, undefined = 0;
    ok(tl_store_samples(&x, &n, &undefined, f->s, f->run, "a", "ttft", e));
    assert_int_equal(n, 2);
    assert_int_equal(undefined, 0);
    assert_true(x[0] == 1.5 && x[1] == 2.5); /* ms */
    free(x);
    ok(tl_store_samples(&x, &n, &undefined, f->s, f->run, "a", "ttft_ns", e));
    assert_true(n == 2 && x[0] == 1500000);
    free(x);
    ok(tl_store_samples(&x, &n, &undefined, f->s, f->run, NULL, "decode_rate", e));
    assert_int_equal(n, 1);
    assert_int_equal(undefined, 1); /* null, never 0 */
    assert_true(x[0] == 30.5);
    free(x);
    ok(tl_store_samples(&x, &n, NULL, f->s, f->run, "b", "ttft", e));
    assert_int_equal(n, 0);
    assert_null(x);
    ok(tl_store_samples(&x, &n, &undefined, f->s, f->run, "a", "no.such", e));
    assert_int_equal(undefined, 2);
    assert_null(x);
}

static void values_and_their_trees(void **state) {
    fx *f = *state;
    json_t *v = NULL, *t = NULL;
    ok(tl_store_values(&v, f->s, NULL, NULL, NULL, e));
    size_is(v, "", 4);
    text_is(v, "0.name", "decode_rate"); /* newest first */
    text_is(v, "3.name", "bandwidth");
    json_decref(v);
    ok(tl_store_values(&v, f->s, f->run, "a", "predicted", e));
    size_is(v, "", 1);
    text_is(v, "0.run", f->run);
    text_is(v, "0.unit", "tok/s");
    text_is(v, "0.formula", "bandwidth / bytes");
    int_is(v, "0.n", 5);
    ok(tl_store_value_tree(&t, f->s, tl_json_str(v, "0.id", ""), e));
    size_is(t, "inputs", 2);
    text_is(t, "inputs.0.role", "bandwidth");
    text_is(t, "inputs.0.name", "bandwidth");
    bool_is(t, "inputs.0.retracted", true);
    text_is(t, "inputs.0.interval", "bootstrap");
    text_is(t, "inputs.1.label", "official");
    text_is(t, "inputs.1.source.url", "https://example.org/spec");
    size_is(t, "labels", 2);
    text_is(t, "labels.0", "measured");
    text_is(t, "labels.1", "official");
    json_decref(t);
    json_decref(v);
    refused(TL_NOT_FOUND, "value", tl_store_value_tree(&t, f->s, "x", e));
    assert_null(t);
}

static void trees_have_limits(void **state) {
    fx *f = *state;
    char id[TL_STORE_ID], last[TL_STORE_ID];
    json_t *t = NULL;
    tl_store_value v = a_value(f, 1);
    ok(tl_store_begin(f->s, e));
    ok(tl_store_value_add(last, f->s, &v, e));
    for (int i = 0; i < 70; i++) {
        tl_store_edge edges[] = {{last, "x"}, {last, "y"}};
        v.label = "derived", v.formula = "x + y", v.edges = edges, v.edges_n = i < 20 ? 2 : 1;
        ok(tl_store_value_add(id, f->s, &v, e));
        memcpy(last, id, sizeof last);
        if (i == 7) {
            ok(tl_store_value_tree(&t, f->s, id, e));
            size_is(t, "labels", 1);
            json_decref(t);
        }
        if (i == 16) refused(TL_LIMIT, "unfolds", tl_store_value_tree(&t, f->s, id, e)); /* 2^18 rows from 18 */
    }
    refused(TL_LIMIT, "deep", tl_store_value_tree(&t, f->s, last, e));
    assert_null(t);
    ok(tl_store_commit(f->s, e));
}

static void what_lies_beside(void **state) {
    fx *f = *state;
    json_t *j = NULL;
    ok(tl_store_telemetry(&j, f->s, f->run, e));
    size_is(j, "", 2);
    text_is(j, "1.trial", f->trial);
    text_is(j, "1.body.title", "data sheet");
    json_decref(j);
    ok(tl_store_figures(&j, f->s, NULL, e));
    size_is(j, "", 1);
    text_is(j, "0.name", "fig-1");
    text_is(j, "0.spec.title", "data sheet");
    json_decref(j);
    ok(tl_store_figures(&j, f->s, "no such report", e));
    size_is(j, "", 0);
    json_decref(j);
    ok(tl_store_retractions(&j, f->s, e));
    text_is(j, "0.name", "bandwidth");
    text_is(j, "0.instead", NULL);
    json_decref(j);
    ok(tl_store_artifacts(&j, f->s, f->run, e));
    tl_buf b;
    tl_buf_init(&b, 0);
    ok(tl_store_artifact_body(&b, f->s, tl_json_str(j, "0.id", ""), e));
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.p, "a\0b\n", 4);
    refused(TL_NOT_FOUND, "artifact", tl_store_artifact_body(&b, f->s, "x", e));
    tl_buf_free(&b);
    json_decref(j);
}

/* ---- free queries ---- */

static void a_query_reads(void **state) {
    fx *f = *state;
    json_t *j = NULL;
    ok(tl_store_select(&j, f->s, "SELECT name, metrics AS m_json, x'00ff' AS blob, 1.5 AS x, NULL AS n FROM value v, request q "
                                 "WHERE q.position = 0 AND v.name = 'bandwidth'; -- and nothing after it \n ; /* really */ ", e));
    size_is(j, "", 1);
    text_is(j, "0.name", "bandwidth");
    int_is(j, "0.m.ttft_ns", 1500000);
    assert_null(tl_json_at(j, "0.m_json"));
    text_is(j, "0.blob", "00ff");
    text_is(j, "0.n", NULL);
    json_decref(j);
    ok(tl_store_select(&j, f->s, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) AS s FROM n", e));
    int_is(j, "0.s", 15);
    json_decref(j);
    ok(tl_store_select(&j, f->s, "SELECT json_extract(metrics, '$.ttft_ns') AS t FROM request ORDER BY t DESC LIMIT 1", e));
    json_decref(j);
    refused(TL_LIMIT, "250000", tl_store_select(&j, f->s, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT 1 FROM n", e));
    assert_null(j);
}

static void a_query_cannot_write(void **state) {
    fx *f = *state;
    char *other = tl_path_join(f->dir, "other.db"), *attach = tl_xprintf("ATTACH '%s' AS o", other), *into = tl_xprintf("VACUUM INTO '%s'", other);
    const char *const bad[] = {"INSERT INTO value DEFAULT VALUES", "UPDATE run SET seed = 1", "DELETE FROM run", "DROP TABLE run",
                               "CREATE TABLE t (x)", "CREATE TEMP TABLE t (x)", attach, into, "DETACH main", "VACUUM", "REINDEX", "ANALYZE", "BEGIN",
                               "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "SAVEPOINT x", "RELEASE x", "PRAGMA journal_mode = DELETE",
                               "PRAGMA user_version = 9", "PRAGMA writable_schema = ON", "PRAGMA query_only", "ALTER TABLE run ADD x TEXT",
                               "SELECT load_extension('x')", "SELECT 1; DELETE FROM run", "SELECT 1; SELECT 2", "SELECT 1; nonsense",
                               "WITH x AS (SELECT 1) DELETE FROM run", "INSERT INTO run SELECT * FROM run RETURNING *",
                               "EXPLAIN DELETE FROM run", "", "   ", "-- nothing", ";", "SELECT", "SELECT nothing FROM run", "SELEC 1",
                               "SELECT * FROM pragma_user_version"};
    char before[65], after[65];
    ok(tl_store_head(before, f->s, e));
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        json_t *j = NULL;
        tl_err why = {0};
        tl_status st = tl_store_select(&j, f->s, bad[i], &why);
        if (st != TL_INVALID) fail_msg("'%s' gave %s %s", bad[i], tl_status_name(st), why.msg);
        assert_null(j);
    }
    tl_store_verdict v;
    ok(tl_store_verify(&v, f->s, before, NULL, NULL, e)); /* and the store works as before */
    ok(tl_store_head(after, f->s, e));
    assert_string_equal(before, after);
    assert_false(tl_file_exists(other));
    char id[TL_STORE_ID];
    tl_store_value w = a_value(f, 3);
    ok(tl_store_value_add(id, f->s, &w, e));
    free(other);
    free(attach);
    free(into);
}

#define WITH(setup, t) cmocka_unit_test_setup_teardown(t, setup, fx_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH(filled, a_run_in_full), WITH(filled, lists_of_runs), WITH(filled, ids_by_their_beginning), WITH(filled, blocks_tell_what_to_resume),
        WITH(filled, samples_of_a_metric), WITH(filled, values_and_their_trees), WITH(fx_filled, trees_have_limits),
        WITH(filled, what_lies_beside), WITH(filled, a_query_reads), WITH(filled, a_query_cannot_write),
    };
    return cmocka_run_group_tests_name("store queries", tests, NULL, NULL);
}

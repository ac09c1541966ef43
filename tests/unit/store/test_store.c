/* What goes in comes out, and what must not be stored is not. */
#include "fixture.h"

/* ---- identity ---- */

static const int64_t ints[] = {0, 1, -1, 127, 128, INT32_MAX, INT64_MAX, INT64_MIN + 1, -4611686018427387904, TL_STORE_NONE};
static const char *const texts[] = {"", " ", "x", "'; DROP TABLE run; --", "首个词元延迟：１２ ms", "a\r\nb\tc\x01", "\xF0\x9F\xA6\x99 llama",
                                    "\xEF\xBF\xBF", "\"\\/", "שלום", NULL};
static const char *const jsons[] = {"{}", "[]", "{\"n\":9223372036854775807,\"m\":-9223372036854775808}",
                                    "{\"x\":0.30000000000000004,\"y\":5e-324,\"z\":1.7976931348623157e308}",
                                    "{\"键\":[null,true,{\"a.b\":\"\\u0001\"}],\"ttft_ns\":1}", NULL};

static int64_t some_int(tl_rng *r, bool null_ok) {
    return ints[tl_rng_below(r, TL_COUNT(ints) - !null_ok)];
}
static const char *some_text(tl_rng *r) {
    return texts[tl_rng_below(r, TL_COUNT(texts))];
}
static json_t *some_json(tl_rng *r) {
    const char *t = jsons[tl_rng_below(r, TL_COUNT(jsons))];
    return t ? js(t) : NULL;
}

static void same_int(const json_t *row, const char *key, int64_t want) {
    const json_t *v = json_object_get(row, key);
    if (want == TL_STORE_NONE) assert_true(json_is_null(v));
    else if (!json_is_integer(v) || json_integer_value(v) != want) fail_msg("%s: wanted %" PRId64, key, want);
}
static void same_text(const json_t *row, const char *key, const char *want) {
    const json_t *v = json_object_get(row, key);
    if (want == NULL) assert_true(json_is_null(v));
    else if (!json_is_string(v) || strcmp(json_string_value(v), want) != 0) fail_msg("%s: wanted '%s'", key, want);
}
static void same_json(const json_t *row, const char *key, const json_t *want) {
    const json_t *v = json_object_get(row, key);
    if (want == NULL) assert_true(json_is_null(v));
    else if (!json_equal(v, want)) fail_msg("%s differs", key);
}

static void one_round(fx *f, tl_rng *g, int64_t position) {
    json_t *body = some_json(g), *counters = some_json(g), *metrics = some_json(g), *rows = NULL;
    char id[TL_STORE_ID];
    tl_store_request r = {.trial_id = f->trial, .position = position, .role = position % 2 ? "warmup" : "measured",
                          .session = some_int(g, true), .outcome = "truncated", .error_class = some_text(g),
                          .error_text = some_text(g), .http_status = some_int(g, true), .t_intended_ns = some_int(g, false),
                          .t_sent_ns = some_int(g, true), .t_connected_ns = some_int(g, true), .t_headers_ns = some_int(g, true),
                          .t_first_byte_ns = some_int(g, true), .t_close_ns = some_int(g, true), .connects = some_int(g, true),
                          .body = body, .counters = counters, .metrics = metrics, .finish_reason = some_text(g), .last_object = some_text(g)};
    ok(tl_store_request_add(id, f->s, &r, e));
    ok(tl_store_requests(&rows, f->s, f->run, "a", e));
    const json_t *row = json_array_get(rows, (size_t)position);
    same_text(row, "id", id);
    same_text(row, "cell", "a");
    same_int(row, "position", position);
    same_int(row, "session", r.session);
    same_text(row, "error_class", r.error_class);
    same_text(row, "error_text", r.error_text);
    same_int(row, "http_status", r.http_status);
    same_int(row, "t_intended_ns", r.t_intended_ns);
    same_int(row, "t_sent_ns", r.t_sent_ns);
    same_int(row, "t_connected_ns", r.t_connected_ns);
    same_int(row, "t_headers_ns", r.t_headers_ns);
    same_int(row, "t_first_byte_ns", r.t_first_byte_ns);
    same_int(row, "t_close_ns", r.t_close_ns);
    same_int(row, "connects", r.connects);
    same_json(row, "body", body);
    same_json(row, "counters", counters);
    same_json(row, "metrics", metrics);
    same_text(row, "finish_reason", r.finish_reason);
    same_text(row, "last_object", r.last_object);
    json_decref(rows);
    json_decref(body);
    json_decref(counters);
    json_decref(metrics);
}

static void requests_come_back_as_they_went_in(void **state) {
    fx *f = *state;
    tl_rng g;
    tl_rng_seed(&g, 20260101);
    ok(tl_store_begin(f->s, e));
    for (int64_t i = 0; i < 60; i++) one_round(f, &g, i);
    ok(tl_store_commit(f->s, e));
}

static void numbers_come_back_bit_by_bit(void **state) {
    fx *f = *state;
    static const double all[] = {0.1 + 0.2, 5e-324, 1.7976931348623157e308, -1e-300, 1, -0.0, 9007199254740994.0, 1e15, 33.7, 3};
    for (size_t i = 0; i < TL_COUNT(all); i++) {
        char id[TL_STORE_ID];
        json_t *tree = NULL;
        tl_store_value v = a_value(f, all[i]);
        v.lo = all[i], v.hi = all[i], v.interval = "none";
        ok(tl_store_value_add(id, f->s, &v, e));
        ok(tl_store_value_tree(&tree, f->s, id, e));
        assert_true(json_is_real(json_object_get(tree, "number")));
        double got = json_real_value(json_object_get(tree, "number"));
        double want = all[i] == 0 ? 0.0 : all[i]; /* the one exception: a zero has no sign */
        if (memcmp(&want, &got, sizeof got) != 0) fail_msg("%.17g came back as %.17g", want, got);
        json_decref(tree);
    }
}

static void huge_text_and_artifact(void **state) {
    fx *f = *state;
    size_t n = 9u << 20;
    char *text = tl_xalloc(n + 1), id[TL_STORE_ID];
    for (size_t i = 0; i < n; i++) text[i] = (char)('a' + i % 23);
    json_t *rows = NULL;
    tl_store_request r = a_request(f, 0);
    r.last_object = text;
    ok(tl_store_request_add(id, f->s, &r, e));
    ok(tl_store_requests(&rows, f->s, f->run, NULL, e));
    assert_string_equal(tl_json_str(rows, "0.last_object", ""), text);
    json_decref(rows);
    text[7] = 0;
    tl_store_artifact a = {.run_id = f->run, .name = "log", .mime = "x/y", .body = text, .len = n};
    ok(tl_store_artifact_add(id, f->s, &a, e));
    tl_buf b;
    tl_buf_init(&b, 0);
    ok(tl_store_artifact_body(&b, f->s, id, e));
    assert_int_equal(b.len, n);
    assert_memory_equal(b.p, text, n);
    tl_buf_clear(&b);
    a.len = 0, a.body = NULL;
    ok(tl_store_artifact_add(id, f->s, &a, e));
    ok(tl_store_artifact_body(&b, f->s, id, e));
    assert_int_equal(b.len, 0);
    tl_buf_free(&b);
    tl_buf_init(&b, 100);
    ok(tl_store_artifacts(&rows, f->s, f->run, e));
    assert_int_equal(json_array_size(rows), 2);
    refused(TL_LIMIT, "limit", tl_store_artifact_body(&b, f->s, tl_json_str(rows, "0.id", ""), e));
    json_decref(rows);
    tl_buf_free(&b);
    free(text);
}

static void events_survive_in_any_order(void **state) {
    fx *f = *state;
    tl_rng g;
    tl_rng_seed(&g, 7);
    ok(tl_store_begin(f->s, e));
    for (size_t round = 0; round < 50; round++) {
        tl_store_event ev[40], *back = NULL;
        size_t n = round == 0 ? 0 : tl_rng_below(&g, TL_COUNT(ev) + 1), got = 0;
        for (size_t i = 0; i < n; i++)
            ev[i] = (tl_store_event){some_int(&g, true), (uint32_t)tl_rng_below(&g, tl_store_event_kinds_n), (uint32_t)tl_rng_u64(&g),
                                     (uint32_t)tl_rng_u64(&g)};
        tl_store_request r = a_request(f, (int64_t)round);
        char id[TL_STORE_ID];
        r.events = ev, r.events_n = n;
        ok(tl_store_request_add(id, f->s, &r, e));
        ok(tl_store_request_events(&back, &got, f->s, id, e));
        assert_int_equal(got, n);
        for (size_t i = 0; i < n; i++) {
            assert_true(back[i].t_ns == ev[i].t_ns);
            assert_true(back[i].kind == ev[i].kind && back[i].bytes == ev[i].bytes && back[i].read == ev[i].read);
        }
        free(back);
    }
    ok(tl_store_commit(f->s, e));
    tl_store_event *none = NULL;
    size_t n;
    refused(TL_NOT_FOUND, "request", tl_store_request_events(&none, &n, f->s, "00000000000000000000000000", e));
    for (size_t len = 1; len < 12; len++) { /* hostile blobs: unfinished varints */
        uint8_t bad[12];
        memset(bad, 0xff, sizeof bad);
        refused(TL_INVALID, "damaged", tl_store_events_decode(&none, &n, bad, len, e));
        assert_null(none);
    }
}

/* ---- what must not be stored ---- */

static void text_with_invalid_bytes_is_refused(void **state) {
    fx *f = *state;
    static const char *const bad[] = {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "ok\x80"};
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        tl_store_request r = a_request(f, 0);
        r.error_text = bad[i];
        refused(TL_INVALID, "error_text", tl_store_request_add(NULL, f->s, &r, e));
    }
    assert_int_equal(raw_int(f->path, "SELECT count(*) FROM request"), 0);
    json_t *nul = js("{\"a\":[1,{\"b\":2}]}");
    json_object_set_new(tl_json_at(nul, "a.1"), "c", json_stringn("a\0b", 3));
    tl_store_request r = a_request(f, 0);
    char id[65];
    r.metrics = nul;
    refused(TL_INVALID, "metrics", tl_store_request_add(NULL, f->s, &r, e));
    refused(TL_INVALID, "facts", tl_store_machine(id, f->s, NULL, nul, e));
    refused(TL_INVALID, "", tl_store_machine(id, f->s, NULL, NULL, e));
    json_decref(nul);
}

static void numbers_that_are_none_are_refused(void **state) {
    fx *f = *state;
    char id[TL_STORE_ID];
    tl_store_value v = a_value(f, TL_STORE_NAN);
    refused(TL_INVALID, "reason", tl_store_value_add(id, f->s, &v, e));
    v.null_reason = "no tokens";
    ok(tl_store_value_add(id, f->s, &v, e));
    v = a_value(f, INFINITY);
    refused(TL_INVALID, "infinite", tl_store_value_add(id, f->s, &v, e));
    v = a_value(f, 1);
    v.lo = 0, v.hi = INFINITY, v.interval = "x";
    refused(TL_INVALID, "infinite", tl_store_value_add(id, f->s, &v, e));
    v.lo = TL_STORE_NAN, v.hi = 2;
    refused(TL_INVALID, "half an interval", tl_store_value_add(id, f->s, &v, e));
    v.lo = 3, v.hi = 2;
    refused(TL_INVALID, "", tl_store_value_add(id, f->s, &v, e));
    v.lo = 1, v.hi = 2, v.interval = NULL;
    refused(TL_INVALID, "", tl_store_value_add(id, f->s, &v, e));
    v = a_value(f, 1);
    v.unit = NULL;
    refused(TL_INVALID, "unit", tl_store_value_add(id, f->s, &v, e));
    v.unit = "tok/s", v.label = NULL;
    refused(TL_INVALID, "label", tl_store_value_add(id, f->s, &v, e));
    v.label = "guessed";
    refused(TL_INVALID, "", tl_store_value_add(id, f->s, &v, e));
    assert_int_equal(raw_int(f->path, "SELECT count(*) FROM value"), 1);
}

static void labels_need_their_sources(void **state) {
    fx *f = *state;
    char run[TL_STORE_ID], id[TL_STORE_ID], other[TL_STORE_ID];
    tl_store_run r = a_run(f);
    r.simulated = true;
    ok(tl_store_run_start(run, f->s, &r, e));
    tl_store_value v = a_value(f, 1);
    v.run_id = run, v.cell_key = NULL;
    refused(TL_INVALID, "simulated", tl_store_value_add(id, f->s, &v, e));
    v.run_id = NULL;
    refused(TL_INVALID, "simulated", tl_store_value_add(id, f->s, &v, e));
    v.label = "derived";
    refused(TL_INVALID, "input", tl_store_value_add(id, f->s, &v, e));
    v.formula = "1 + 1";
    refused(TL_INVALID, "input", tl_store_value_add(id, f->s, &v, e));
    tl_store_value m = a_value(f, 2);
    ok(tl_store_value_add(other, f->s, &m, e));
    tl_store_edge edge = {other, "x"}, nowhere = {"00000000000000000000000000", "x"};
    v.edges = &edge, v.edges_n = 1, v.formula = NULL;
    refused(TL_INVALID, "formula", tl_store_value_add(id, f->s, &v, e));
    v.formula = "x", v.edges = &nowhere;
    refused(TL_INVALID, "", tl_store_value_add(id, f->s, &v, e));
    v.edges = &edge;
    ok(tl_store_value_add(id, f->s, &v, e));
    static const char *const bad[] = {"{}", "{\"url\":\" \"}", "{\"who\":\"a\",\"where\":\"b\"}", "{\"url\":null}"};
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        json_t *source = js(bad[i]);
        tl_store_value w = a_value(f, 1);
        w.run_id = w.cell_key = NULL, w.source = source;
        w.label = "official";
        refused(TL_INVALID, "source.url", tl_store_value_add(id, f->s, &w, e));
        w.label = "cited";
        refused(TL_INVALID, "source.who", tl_store_value_add(id, f->s, &w, e));
        json_decref(source);
    }
    json_t *good = js("{\"who\":\"a\",\"where\":\"b\",\"when\":\"c\"}");
    tl_store_value w = a_value(f, 1);
    w.run_id = w.cell_key = NULL, w.source = good, w.label = "cited";
    ok(tl_store_value_add(id, f->s, &w, e));
    json_decref(good);
    assert_int_equal(raw_int(f->path, "SELECT count(*) FROM edge"), 1);
}

static void references_must_exist(void **state) {
    fx *f = *state;
    char id[TL_STORE_ID];
    tl_store_run r = a_run(f);
    r.machine_id = f->model;
    refused(TL_INVALID, "", tl_store_run_start(id, f->s, &r, e));
    r = a_run(f), r.experiment_id = NULL;
    refused(TL_INVALID, "", tl_store_run_start(id, f->s, &r, e));
    r = a_run(f), r.kind = "guess";
    refused(TL_INVALID, "", tl_store_run_start(id, f->s, &r, e));
    tl_store_trial t = {.run_id = f->run, .cell_key = "nowhere", .cache_claimed = "cold"};
    refused(TL_INVALID, "", tl_store_trial_start(id, f->s, &t, e));
    tl_store_cell c = {.run_id = f->run, .key = "a", .position = 7};
    refused(TL_INVALID, "exists", tl_store_cell_add(f->s, &c, e));
    c.key = "c", c.position = 1;
    refused(TL_INVALID, "exists", tl_store_cell_add(f->s, &c, e));
    tl_store_request q = a_request(f, 0);
    q.outcome = "failed";
    refused(TL_INVALID, "", tl_store_request_add(NULL, f->s, &q, e));
    q.outcome = "ok";
    ok(tl_store_request_add(NULL, f->s, &q, e));
    refused(TL_INVALID, "exists", tl_store_request_add(NULL, f->s, &q, e));
    tl_store_trial_end end = {.trial_id = f->trial, .finished = false, .t_end_ns = 1};
    refused(TL_INVALID, "", tl_store_trial_finish(f->s, &end, e));
    end.reason = "cut";
    ok(tl_store_trial_finish(f->s, &end, e));
    q.position = 1;
    refused(TL_INVALID, "ended", tl_store_request_add(NULL, f->s, &q, e));
    refused(TL_INVALID, "exists", tl_store_trial_finish(f->s, &end, e));
    refused(TL_INVALID, "", tl_store_retract(id, f->s, "00000000000000000000000000", "why", NULL, WALL, e));
}

static void descriptions_are_stored_once(void **state) {
    fx *f = *state;
    char id[65];
    json_t *facts = js("{\"cores\":2,\"cpu\":{\"model\":\"测试\"}}"); /* other order, same content */
    ok(tl_store_machine(id, f->s, "other name", facts, e));
    assert_string_equal(id, f->machine);
    ok(tl_store_model(f->s, f->model, "renamed.gguf", 9, facts, e));
    json_t *m = NULL;
    ok(tl_store_describe(&m, f->s, "model", f->model, e));
    assert_string_equal(tl_json_str(m, "name", ""), "tiny.gguf");
    assert_int_equal(tl_json_int(m, "bytes", 0), 1234);
    json_decref(m);
    ok(tl_store_describe(&m, f->s, "experiment", f->experiment, e));
    assert_string_equal(tl_json_str(m, "script", ""), "return {}\n");
    json_decref(m);
    refused(TL_INVALID, "run", tl_store_describe(&m, f->s, "run", f->run, e));
    refused(TL_NOT_FOUND, "engine", tl_store_describe(&m, f->s, "engine", f->machine, e));
    assert_int_equal(raw_int(f->path, "SELECT count(*) FROM machine"), 1);
    json_decref(facts);
}

/* ---- append-only ---- */

/* The trap: another seq with the key of an old row, which REPLACE deletes without firing a delete trigger. */
static void replace_by_key(fx *f, const char *table) {
    char *sql = tl_xprintf("SELECT (SELECT group_concat(name) FROM pragma_table_info('%s') WHERE name <> 'seq') AS cols, "
                           "(SELECT count(*) FROM pragma_index_list('%s') WHERE \"unique\") AS keys",
                           table, table);
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    const char *cols = (const char *)sqlite3_column_text(q, 0);
    if (sqlite3_column_int(q, 1) > 0) {
        char *replace = tl_xprintf("INSERT OR REPLACE INTO %s (seq, %s) SELECT seq + 100000, %s FROM %s", table, cols, cols, table);
        if (raw(f->path, replace, NULL) == SQLITE_OK) fail_msg("went through: %s", replace);
        free(replace);
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    free(sql);
}

static void nothing_is_changed_or_deleted(void **state) {
    fx *f = *state;
    fill_all(f);
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    char *before = NULL, *after = NULL;
    json_t *rows = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE type='table'", -1, &q, NULL), SQLITE_OK);
    size_t tables = 0;
    while (sqlite3_step(q) == SQLITE_ROW) {
        const char *t = (const char *)sqlite3_column_text(q, 0);
        char *all = tl_xprintf("SELECT * FROM %s ORDER BY seq", t), *count = tl_xprintf("SELECT count(*) FROM %s", t);
        assert_true(raw_int(f->path, count) > 0);
        ok(tl_store_select(&rows, f->s, all, e));
        before = tl_json_canonical(rows);
        json_decref(rows);
        static const char *const tries[] = {"UPDATE %s SET seq = seq + 1000", "UPDATE OR REPLACE %s SET seq = 1", "DELETE FROM %s",
                                            "INSERT OR REPLACE INTO %s SELECT * FROM %s", "REPLACE INTO %s SELECT * FROM %s LIMIT 1",
                                            "INSERT INTO %s SELECT * FROM %s WHERE true ON CONFLICT DO UPDATE SET seq = 77",
                                            "INSERT INTO %s SELECT * FROM %s WHERE true ON CONFLICT (seq) DO UPDATE SET seq = excluded.seq",
                                            "DELETE FROM %s WHERE seq = (SELECT max(seq) FROM %s)"};
        for (size_t i = 0; i < TL_COUNT(tries); i++) {
            tl_buf sql;
            tl_buf_init(&sql, 0);
            for (const char *p = tries[i]; *p; p++) {
                if (p[0] == '%' && p[1] == 's') tl_buf_str(&sql, t), p++;
                else tl_buf_char(&sql, *p);
            }
            char *why = NULL;
            if (raw(f->path, sql.p, &why) == SQLITE_OK) fail_msg("went through: %s", sql.p);
            if (strstr(why, "append-only") == NULL) fail_msg("%s: %s", sql.p, why);
            free(why);
            tl_buf_free(&sql);
        }
        replace_by_key(f, t);
        ok(tl_store_select(&rows, f->s, all, e));
        after = tl_json_canonical(rows);
        assert_string_equal(before, after);
        json_decref(rows);
        free(before);
        free(after);
        free(all);
        free(count);
        tables++;
    }
    assert_int_equal(tables, 18);
    sqlite3_finalize(q);
    sqlite3_close(db);
}

/* ---- batches ---- */

static void a_refused_row_leaves_its_batch_usable(void **state) {
    fx *f = *state;
    tl_store_request good = a_request(f, 0), bad = a_request(f, 1);
    bad.outcome = "marvellous";
    ok(tl_store_begin(f->s, e));
    refused(TL_INTERNAL, "open already", tl_store_begin(f->s, e));
    ok(tl_store_request_add(NULL, f->s, &good, e));
    refused(TL_INVALID, "", tl_store_request_add(NULL, f->s, &bad, e));
    good.position = 2;
    ok(tl_store_request_add(NULL, f->s, &good, e));
    ok(tl_store_commit(f->s, e));
    assert_int_equal(raw_int(f->path, "SELECT count(*) FROM request"), 2);
    ok(tl_store_begin(f->s, e));
    good.position = 3;
    ok(tl_store_request_add(NULL, f->s, &good, e));
    tl_store_rollback(f->s);
    tl_store_rollback(f->s);
    assert_int_equal(raw_int(f->path, "SELECT count(*) FROM request"), 2);
    refused(TL_INTERNAL, "no batch", tl_store_commit(f->s, e));
    tl_store_verdict v;
    ok(tl_store_verify(&v, f->s, NULL, NULL, NULL, e));
    assert_int_equal(raw_int(f->path, "SELECT max(seq) = count(*) FROM chain"), 1);
}

/* ---- states ---- */

static void states_follow_their_rules(void **state) {
    fx *f = *state;
    tl_store_phase p;
    tl_store_state done = {.state = TL_STORE_DONE, .t_ns = 5}, failed = {.state = TL_STORE_FAILED, .t_ns = 5},
                   resumed = {.state = TL_STORE_RESUMED, .wall_ns = WALL + 1, .utc_offset = "-03:30"},
                   stopped = {.state = TL_STORE_INTERRUPTED, .t_ns = 6, .reason = "Ctrl-C"}, invalid = {.state = TL_STORE_INVALID};
    refused(TL_INVALID, "", tl_store_run_state(f->s, f->run, &failed, e)); /* without a reason */
    ok(tl_store_run_state(f->s, f->run, &stopped, e));
    refused(TL_CONFLICT, "interrupted", tl_store_run_state(f->s, f->run, &done, e));
    tl_store_trial t = {.run_id = f->run, .cell_key = "a", .round = 1, .cache_claimed = "cold"};
    char id[TL_STORE_ID];
    refused(TL_INVALID, "resume", tl_store_trial_start(id, f->s, &t, e));
    resumed.wall_ns = 0, resumed.utc_offset = NULL;
    refused(TL_INVALID, "", tl_store_run_state(f->s, f->run, &resumed, e)); /* without its anchor */
    resumed.wall_ns = WALL + 1, resumed.utc_offset = "-03:30";
    ok(tl_store_run_state(f->s, f->run, &resumed, e));
    ok(tl_store_run_state(f->s, f->run, &resumed, e)); /* after a crash */
    ok(tl_store_trial_start(id, f->s, &t, e));
    assert_int_equal(raw_int(f->path, "SELECT session FROM trial ORDER BY seq DESC LIMIT 1"), 2);
    ok(tl_store_run_state(f->s, f->run, &done, e));
    refused(TL_CONFLICT, "done", tl_store_run_state(f->s, f->run, &resumed, e));
    invalid.reason = "the wrong model";
    ok(tl_store_run_state(f->s, f->run, &invalid, e));
    ok(tl_store_run_state_get(&p, f->s, f->run, e));
    assert_int_equal(p, TL_STORE_INVALID);
    refused(TL_CONFLICT, "invalid", tl_store_run_state(f->s, f->run, &invalid, e));
    refused(TL_NOT_FOUND, "no run", tl_store_run_state(f->s, "nowhere", &done, e));
    refused(TL_NOT_FOUND, "run", tl_store_run_state_get(&p, f->s, "nowhere", e));
}

#define WITH(setup, t) cmocka_unit_test_setup_teardown(t, setup, fx_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH(fx_filled, requests_come_back_as_they_went_in), WITH(fx_filled, numbers_come_back_bit_by_bit),
        WITH(fx_filled, huge_text_and_artifact), WITH(fx_filled, events_survive_in_any_order),
        WITH(fx_filled, text_with_invalid_bytes_is_refused), WITH(fx_filled, numbers_that_are_none_are_refused),
        WITH(fx_filled, labels_need_their_sources), WITH(fx_filled, references_must_exist),
        WITH(fx_filled, descriptions_are_stored_once), WITH(fx_filled, nothing_is_changed_or_deleted),
        WITH(fx_filled, a_refused_row_leaves_its_batch_usable), WITH(fx_filled, states_follow_their_rules),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}

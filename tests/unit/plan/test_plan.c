/* Plans: strict reading, expansion, order, canonical text, changes; with properties over random experiments.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "plan/plan.h"
#include <cmocka.h>

static const char *const law =
    "{\"_file\": \"experiments/measure/law.lua\", \"_line\": {\"repeats.max\": 12, \"workload\": 7, "
    "\"axes\": 5, \"seeed\": 30},"
    " \"id\": \"law\", \"map\": \"measure\", \"day\": 10, \"title\": {\"zh\": \"定律\", \"en\": \"Law\"}, "
    "\"question\": {\"en\": \"Is it?\"},"
    " \"axes\": [{\"name\": \"context\", \"values\": [512, 8192]},"
    "            {\"name\": \"model\", \"values\": [{\"kind\": \"synth\", \"name\": \"a-q4\", \"quant\": "
    "\"q4_0\"}, {\"kind\": \"synth\", \"name\": \"a-q8\", \"quant\": \"q8_0\"}]}],"
    " \"workload\": {\"kind\": \"completion\", \"dialect\": \"llamacpp-completion\", \"prompt_tokens\": "
    "{\"$axis\": \"context\"}, \"output_tokens\": 64},"
    " \"engine\": {\"context\": 9000, \"slots\": 2, \"kv_type\": \"q8_0\", \"gpu_layers\": 99, \"extra\": "
    "[\"--x\"]},"
    " \"repeats\": {\"min\": 2, \"max\": 4}, \"accept\": {}, \"figures\": [{\"type\": \"scatter\"}]}";

static json_t *parse(const char *text) {
    json_error_t je;
    json_t *j = json_loads(text, 0, &je);
    if (j == NULL) fail_msg("%s", je.text);
    return j;
}

static tl_plan *make(json_t *j) {
    tl_plan *p = NULL;
    tl_err e = {0};
    if (tl_plan_from_json(&p, j, &e) != TL_OK) fail_msg("%s", e.msg);
    return p;
}

static void reads(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law);
    tl_plan *p = make(j);
    assert_int_equal(p->n_cells, 4);
    assert_int_equal(p->n_groups, 2);
    assert_string_equal(p->cells[0].label, "context=512 model=a-q4");
    assert_string_equal(p->cells[1].label, "context=512 model=a-q8");
    assert_string_equal(p->cells[3].label, "context=8192 model=a-q8");
    assert_string_equal(p->cells[3].model, "a-q8");
    assert_int_equal(tl_json_int(p->cells[3].workload, "prompt_tokens", 0), 8192);
    assert_string_equal(tl_json_str(p->cells[0].workload, "cache", ""), "cold");
    assert_int_equal(tl_json_int(p->cells[0].settings, "ctx", 0), 18000);
    assert_string_equal(tl_json_str(p->cells[0].settings, "kv_type_v", ""), "q8_0");
    assert_string_equal(tl_json_str(p->cells[0].settings, "gpu_layers", ""), "99");
    assert_string_equal(tl_json_str(p->cells[0].settings, "extra_args.0", ""), "--x");
    assert_null(tl_json_at(p->cells[0].settings, "context"));
    assert_int_equal(json_array_size(p->models), 2);
    assert_true(p->seed == 1 && p->warmup == 1 && p->probe_bandwidth && p->probe_ms == 150 && p->day == 10 &&
                !p->grouped);
    assert_true(json_is_array(p->accept));
    assert_true(json_is_null(p->cells[0].prediction));
    tl_plan_free(p);
    json_decref(j);
}

/* Each row breaks the good description in one place: path, new value (NULL removes), words of the message, of
 * the remedy. */
static void refuses(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *path, *value, *says, *remedy;
    } rows[] = {
        {"seeed", "1", "law.lua:30: unknown field 'seeed'", "'seed'"},
        {"repeats.maximum", "1", "unknown field 'repeats.maximum'", ""},
        {"repeats.mx", "1", "unknown field 'repeats.mx'", "'max'"},
        {"workload.promt_tokens", "1", "law.lua:7: unknown field 'workload.promt_tokens'", "'prompt_tokens'"},
        {"id", NULL, "field 'id' is missing", "lower-case"},
        {"id", "\"Law 1\"", "must be lower-case", ""},
        {"id", "\"\"", "field 'id' is empty", ""},
        {"id", "7", "must be a text, it is 7", ""},
        {"map", "\"measur\"", "one of: measure capacity", "'measure'"},
        {"day", "31", "allowed is 1 to 30", ""},
        {"day", "1.5", "must be an integer, it is 1.5", ""},
        {"title", "{}", "must be texts by language", ""},
        {"title", "{\"fr\": \"x\"}", "unknown language 'fr'", "zh-Hans"},
        {"title", "{\"en\": 4}", "must be texts by language", ""},
        {"repeats.max", "1", "law.lua:12: repeats.max (1) is less than repeats.min (2)", ""},
        {"repeats.until_ci", "0", "allowed is 0.0001 to 1", ""},
        {"repeats", "[1]", "must be an object", ""},
        {"workload", NULL, "field 'workload' is missing", ""},
        {"workload.output_tokens", "0", "allowed is 1", ""},
        {"workload.output_tokens", "\"many\"", "must be an integer, it is many", ""},
        {"workload.output_tokens", "{\"$axis\": \"len\"}", "names the axis 'len', which is not there", ""},
        {"workload.output_tokens", "{\"$axis\": \"model\"}",
         "cell 'context=512 model=a-q4': field 'workload.output_tokens' must be an integer, it is a-q4", ""},
        {"workload.prompt_tokens", "5", "axis 'context' is used nowhere", "tally.axis \"context\""},
        {"workload.kind", "{\"$axis\": \"model\"}", "cannot be an axis", ""},
        {"workload.ignore_eos", "1", "must be true or false", ""},
        {"workload.cache", "\"hot\"", "one of: cold warm", ""},
        {"engine.kv_type", "\"q3\"", "one of:", ""},
        {"engine.gpu_layers", "true", "an integer or a text", ""},
        {"axes", "[]", "law.lua:5: an experiment needs at least one axis", ""},
        {"axes", "{\"x\": [1]}", "must be a list", ""},
        {"axes", "[{\"name\": \"context\"}]", "'axes[].values' is missing", ""},
        {"axes", "[{\"name\": \"context\", \"values\": []}]", "has no values", ""},
        {"axes", "[{\"name\": \"context\", \"values\": [512, 512]}]", "holds '512' twice", ""},
        {"axes", "[{\"name\": \"context\", \"values\": [[1]]}]", "not a number, text", ""},
        {"axes", "[{\"name\": \"a=b\", \"values\": [1]}]", "no blanks", ""},
        {"axes", "[{\"name\": \"context\", \"values\": [0]}]",
         "cell 'context=0': field 'workload.prompt_tokens' is 0", ""},
        {"axes", "[{\"name\": \"context\", \"values\": [1]}, {\"name\": \"context\", \"values\": [2]}]",
         "given twice", ""},
        {"accept", "[{\"metric\": \"ratio\"}]", "neither min, max nor within", ""},
        {"accept", "[{\"metric\": \"ratoi\", \"min\": 1}]", "one of:", "'ratio'"},
        {"accept", "[{\"metric\": \"ratio\", \"min\": 2, \"max\": 1}]", "min is greater", ""},
        {"accept", "[3]", "must be an object", ""},
        {"only", "[\"model=a-q5\"]", "axis 'model' has no value 'a-q5'", "a-q4, a-q8"},
        {"only", "[\"\"]", "empty selector", ""},
        {"predictions", "{\"c000000000000\": null}", "not a cell", ""},
        {"axes",
         "[{\"name\": \"context\", \"values\": [1]}, {\"name\": \"model\", \"values\": [{\"kind\": "
         "\"synth\", \"name\": \"a\"}]},"
         " {\"name\": \"draft\", \"values\": [{\"kind\": \"file\", \"name\": \"a\"}]}]",
         "two different models are called 'a'", ""},
        {"workload.schedule", "{\"rate\": 2}",
         "'workload.schedule.kind' is missing", ""},
        {"workload.schedule", "{\"kind\": \"open\"}",
         "needs the field 'workload.schedule.rate'", "arrivals per second"},
        {"workload.schedule", "{\"kind\": \"opn\", \"rate\": 2}",
         "one of: closed open", "'open'"},
        {"workload.schedule", "{\"kind\": \"closed\", \"rate\": 2}",
         "kind 'closed' has no 'rate'", "think"},
        {"workload.schedule", "{\"kind\": \"open\", \"rate\": 0}",
         "allowed is 0.0001", ""},
        {"workload.schedule", "{\"kind\": \"open\", \"rate\": 2, \"burstness\": 1}",
         "unknown field 'workload.schedule.burstness'", "'burstiness'"},
        {"workload.schedule", "{\"kind\": \"search\", \"over\": \"users\", \"from\": 1, \"to\": 8}",
         "needs the field 'workload.schedule.slo'", "ttft<2s"},
        {"workload.schedule", "{\"kind\": \"search\", \"over\": \"users\", \"from\": 9, \"to\": 8, \"slo\": \"ttft<2s\"}",
         "goes from 9 to 8", ""},
        {"workload.schedule", "{\"kind\": \"trace\"}",
         "needs the field 'workload.schedule.file'", ""},
        {"workload.schedule", "{\"kind\": \"open\", \"rate\": {\"$axis\": \"rat\"}}",
         "names the axis 'rat', which is not there", ""},
        {"workload.prefix", "{\"tokens\": 512}",
         "leaves nothing of the prompt (512)", ""},
        {"workload.sessions", "{\"turns\": 1, \"turn_tokens\": 8}",
         "allowed is 2", ""},
        {"schema", "2", "allowed is 1 to 1", ""},
        {"script", "{\"name\": \"x.lua\", \"text\": \"a\", \"sha256\": \"00\"}", "script.sha256 is", ""},
    };
    for (size_t i = 0; i < TL_COUNT(rows); i++) {
        json_t *j = parse(law), *at = j;
        const char *dot = strchr(rows[i].path, '.'), *name = dot ? dot + 1 : rows[i].path;
        char group[40];
        snprintf(group, sizeof group, "%.*s", (int)(dot ? dot - rows[i].path : 0), rows[i].path);
        if (dot != NULL) at = json_object_get(j, group);
        if (rows[i].value == NULL)
            json_object_del(at, name);
        else
            json_object_set_new(at, name, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        tl_plan *p = NULL;
        tl_err e = {0};
        tl_status st = tl_plan_from_json(&p, j, &e);
        if (st != TL_INVALID || strstr(e.msg, rows[i].says) == NULL)
            fail_msg("%s=%s: '%s' does not say '%s'", rows[i].path, rows[i].value, e.msg, rows[i].says);
        if (strstr(e.remedy, rows[i].remedy) == NULL)
            fail_msg("%s: remedy '%s' lacks '%s'", rows[i].path, e.remedy, rows[i].remedy);
        assert_null(p);
        json_decref(j);
    }
    tl_plan *p;
    tl_err e = {0};
    assert_int_equal(tl_plan_parse(&p, "[", 1, "plan", &e), TL_INVALID);
    assert_int_equal(tl_plan_parse(&p, "3", 1, "plan", &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "'plan' must be an object"));
}

/* An axis inside the schedule gives each cell its own rate; one user and open arrivals do not go with `concurrency`. */
static void schedules(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law), *w = json_object_get(j, "workload");
    tl_plan *p = NULL;
    tl_err e = {0};
    json_array_append_new(json_object_get(j, "axes"), json_pack("{s:s, s:[f, f]}", "name", "rate", "values", 0.5, 2.0));
    json_object_set_new(w, "schedule", json_pack("{s:s, s:{s:s}}", "kind", "open", "rate", "$axis", "rate"));
    if (tl_plan_from_json(&p, j, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_int_equal(p->n_cells, 8);
    assert_true(tl_json_num(p->cells[0].workload, "schedule.rate", 0) == 0.5);
    assert_true(tl_json_num(p->cells[1].workload, "schedule.rate", 0) == 2.0);
    assert_null(tl_json_at(p->cells[0].workload, "schedule.arrival"));
    tl_plan_free(p);
    json_object_set_new(w, "concurrency", json_integer(4));
    assert_int_equal(tl_plan_from_json(&p, j, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "have no users to count"));
    json_decref(j);
}

static void too_many_cells(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law), *axes = json_array();
    static const char *const names[] = {"prompt_tokens", "output_tokens", "concurrency"};
    for (size_t i = 0; i < 3; i++) {
        json_t *values = json_array();
        for (int k = 1; k <= 40; k++) json_array_append_new(values, json_integer(k));
        json_array_append_new(axes, json_pack("{s:s, s:o}", "name", names[i], "values", values));
        json_object_set_new(json_object_get(j, "workload"), names[i], json_pack("{s:s}", "$axis", names[i]));
    }
    json_object_set_new(j, "axes", axes);
    tl_plan *p;
    tl_err e = {0};
    assert_int_equal(tl_plan_from_json(&p, j, &e), TL_INVALID);
    assert_non_null(strstr(e.msg, "more than 10000 cells"));
    json_decref(j);
}

static void keys_stay(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law);
    tl_plan *p = make(j);
    char key[TL_PLAN_KEY];
    memcpy(key, p->cells[3].key, sizeof key);
    tl_plan_free(p);
    tl_err e = {0};
    assert_int_equal(tl_plan_override(j, "context=8192,4096,16", &e), TL_OK);
    assert_int_equal(tl_plan_override(j, "repeats.max=9", &e), TL_OK);
    assert_int_equal(tl_plan_select(j, "model=a-q8", &e), TL_OK);
    p = make(j);
    assert_int_equal(p->n_cells, 3);
    assert_string_equal(p->cells[0].key, key);
    assert_int_equal(p->repeats_max, 9);
    const tl_plan_cell *c;
    assert_int_equal(tl_plan_find(&c, p, key, &e), TL_OK);
    assert_ptr_equal(c, &p->cells[0]);
    assert_int_equal(tl_plan_find(&c, p, "context=16", &e), TL_OK);
    assert_int_equal(c->index, 2);
    assert_int_equal(tl_plan_find(&c, p, "model=a-q8", &e), TL_INVALID);
    assert_int_equal(tl_plan_find(&c, p, "c0", &e), TL_NOT_FOUND);
    assert_int_equal(tl_plan_find(&c, p, "model=a-q4,context=16", &e), TL_NOT_FOUND);
    assert_int_equal(tl_plan_find(&c, p, "modle=x", &e), TL_INVALID);
    assert_non_null(strstr(e.remedy, "context, model"));
    tl_plan_free(p);
    json_decref(j);
}

/* The one rule by which run, reports and compare choose cells. */
static void selectors(void **state) {
    TL_UNUSED(state);
    json_t *params = json_pack("{s:s, s:i, s:f, s:b}", "model", "a-q4", "context", 512, "rate", 0.5, "think", 1);
    static const struct { const char *selector; bool fits; } cases[] = {
        {"", true}, {"model=a-q4", true}, {"model=a-q", false}, {"context=512", true}, {"context=512.0", true}, {"context=51", false},
        {"rate=0.5", true}, {"think=true", true}, {"model=a-q4,context=512", true}, {"context=512, model=a-q4", true},
        {"model=a-q4,context=8", false}, {"modle=a-q4", false}, {"model", false}};
    for (size_t i = 0; i < TL_COUNT(cases); i++)
        if (tl_plan_cell_fits(params, cases[i].selector) != cases[i].fits) fail_msg("'%s'", cases[i].selector);
    assert_true(tl_plan_selector_names("model=a,context=1", "context"));
    assert_false(tl_plan_selector_names("model=a,context=1", "contex"));
    assert_false(tl_plan_selector_names("", "context"));
    json_decref(params);
}

static void overrides(void **state) {
    TL_UNUSED(state);
    static const struct {
        const char *text, *path, *json;
    } good[] = {{"max=3", "repeats.max", "3"},
                {"output_tokens=16", "workload.output_tokens", "16"},
                {"seed=7", "seed", "7"},
                {"engine.threads=2", "engine.threads", "2"},
                {"engine.name=ollama", "engine.name", "\"ollama\""},
                {"temperature=0.5", "workload.temperature", "0.5"},
                {"probe.bandwidth=false", "probe.bandwidth", "false"},
                {"model=a-q8", "axes.1.values.0.name", "\"a-q8\""},
                {"context=1024", "axes.0.values.0", "1024"}};
    for (size_t i = 0; i < TL_COUNT(good); i++) {
        json_t *j = parse(law), *want = json_loads(good[i].json, JSON_DECODE_ANY, NULL);
        tl_err e = {0};
        if (tl_plan_override(j, good[i].text, &e) != TL_OK) fail_msg("%s: %s", good[i].text, e.msg);
        if (!json_equal(tl_json_at(j, good[i].path), want)) fail_msg("%s", good[i].text);
        json_decref(want);
        json_decref(j);
    }
    static const struct {
        const char *text, *says, *remedy;
    } bad[] = {{"max", "not FIELD=VALUE", ""},
               {"=3", "not FIELD=VALUE", ""},
               {"output_token=3", "neither a field", "output_tokens"},
               {"model=a-q9", "no value 'a-q9'", "a-q4, a-q8"},
               {"name=x", "name", ""},
               {"schema=2", "neither", ""},
               {"title=x", "neither", ""},
               {"context=512,", "empty value", ""}};
    for (size_t i = 0; i < TL_COUNT(bad); i++) {
        json_t *j = parse(law);
        char *before = tl_json_canonical(j);
        tl_err e = {0};
        tl_status st = tl_plan_override(j, bad[i].text, &e);
        if (strcmp(bad[i].text, "name=x") == 0) { /* only one settable field is called name */
            assert_int_equal(st, TL_OK);
        } else {
            if (st != TL_INVALID || strstr(e.msg, bad[i].says) == NULL)
                fail_msg("%s: %s", bad[i].text, e.msg);
            if (strstr(e.remedy, bad[i].remedy) == NULL) fail_msg("%s: %s", bad[i].text, e.remedy);
            char *after = tl_json_canonical(j);
            assert_string_equal(before, after);
            free(after);
        }
        free(before);
        json_decref(j);
    }
    json_t *j = parse(law);
    tl_plan *p;
    tl_err e = {0};
    assert_int_equal(tl_plan_override(j, "max=lots", &e), TL_OK);
    assert_int_equal(tl_plan_from_json(&p, j, &e), TL_INVALID); /* the table judges it, as any other value */
    assert_non_null(strstr(e.msg, "must be an integer, it is lots"));
    assert_int_equal(tl_plan_select(j, "model", &e), TL_INVALID);
    assert_int_equal(tl_plan_select(j, "context=512,model=a-q4", &e), TL_OK);
    json_decref(j);
}

static void predictions(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law);
    tl_plan *p = make(j);
    tl_plan_cost cost;
    tl_err e = {0};
    tl_plan_estimate(&cost, p);
    assert_true(isnan(cost.seconds_max));
    assert_int_equal(cost.requests_min, 8);
    assert_int_equal(cost.requests_max, 16);
    assert_int_equal(cost.output_tokens_max, 16 * 64);
    assert_int_equal(cost.prompt_tokens_max, 4 * 2 * (512 + 8192));
    json_t *rate = parse("{\"value\": 32, \"unit\": \"tok/s\", \"label\": \"cited\", \"source\": {\"who\": "
                         "\"a\", \"where\": \"b\", \"when\": \"c\", \"conditions\": \"d\"}}");
    json_t *naked = parse("{\"value\": 32, \"unit\": \"tok/s\", \"label\": \"cited\", \"source\": {}}");
    char before[65], after[65];
    tl_plan_hash(p, before);
    assert_int_equal(tl_plan_set_prediction(p, 0, naked, &e), TL_REFUSED);
    assert_non_null(strstr(e.msg, "context=512 model=a-q4"));
    for (size_t i = 0; i < 4; i++) assert_int_equal(tl_plan_set_prediction(p, i, rate, &e), TL_OK);
    assert_int_equal(tl_plan_set_prediction(p, 4, rate, &e), TL_NOT_FOUND);
    tl_plan_hash(p, after);
    assert_string_not_equal(before, after);
    tl_plan_estimate(&cost, p);
    assert_true(fabs(cost.seconds_min - 2 * 4 * (2 + 0.3)) < 1e-9);
    char *text = tl_plan_text(p);
    tl_plan *q;
    assert_int_equal(tl_plan_parse(&q, text, strlen(text), "again", &e), TL_OK);
    assert_true(json_equal((json_t *)q->cells[2].prediction, rate));
    free(text);
    tl_plan_free(q);
    tl_plan_free(p);
    json_decref(naked);
    json_decref(rate);
    json_decref(j);
}

/* A prediction in a file is checked as one that is set. */
static void naked_prediction_in_text(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law);
    tl_plan *p = make(j), *q = NULL;
    json_object_set_new(
        j, "predictions",
        json_pack("{s:{s:i, s:s, s:s}}", p->cells[1].key, "value", 3, "unit", "tok/s", "label", "measured"));
    tl_err e = {0};
    assert_int_equal(tl_plan_from_json(&q, j, &e), TL_REFUSED);
    assert_non_null(strstr(e.msg, "prediction of 'context=512 model=a-q8'"));
    assert_null(q);
    tl_plan_free(p);
    json_decref(j);
}

static void script_is_hashed(void **state) {
    TL_UNUSED(state);
    json_t *j = parse(law);
    json_object_set_new(j, "script", json_pack("{s:s, s:s}", "name", "law.lua", "text", "return 1"));
    tl_plan *p = make(j);
    char want[65];
    tl_sha256_hex("return 1", 8, want);
    assert_string_equal(p->script_sha256, want);
    assert_string_equal(p->script_text, "return 1");
    json_t *shown = tl_plan_show(p);
    assert_int_equal(json_array_size(json_object_get(shown, "cells")), 4);
    json_decref(shown);
    tl_plan_free(p);
    json_decref(j);
}

/* ---- properties
 * -------------------------------------------------------------------------------------------------- */

static json_t *random_description(tl_rng *r, size_t *product) {
    static const char *const names[] = {"prompt_tokens", "output_tokens", "concurrency", "temperature"};
    json_t *j = parse(law), *axes = json_array(), *w = json_object_get(j, "workload");
    *product = 1;
    json_object_set_new(w, "prompt_tokens", json_integer(8));
    for (size_t i = 0; i < TL_COUNT(names); i++) {
        if (i > 0 && tl_rng_below(r, 2)) continue;
        size_t n = 1 + tl_rng_below(r, 5);
        json_t *values = json_array();
        for (size_t k = 1; k <= n; k++)
            json_array_append_new(values, json_integer((json_int_t)(k * (1 + i))));
        json_array_append_new(axes, json_pack("{s:s, s:o}", "name", names[i], "values", values));
        json_object_set_new(w, names[i], json_pack("{s:s}", "$axis", names[i]));
        *product *= n;
    }
    if (tl_rng_below(r, 2)) {
        json_array_append_new(axes, json_pack("{s:s, s:[i,i,i]}", "name", "threads", "values", 1, 2, 4));
        json_object_set_new(json_object_get(j, "engine"), "threads", json_pack("{s:s}", "$axis", "threads"));
        *product *= 3;
    }
    json_object_set_new(j, "axes", axes);
    json_object_set_new(j, "seed", json_integer((json_int_t)tl_rng_below(r, 1000)));
    if (tl_rng_below(r, 2)) json_object_set_new(j, "order", json_string("grouped"));
    return j;
}

static void check_order(const tl_plan *p) {
    size_t *a = tl_xalloc(p->n_cells * sizeof *a), *b = tl_xalloc(p->n_cells * sizeof *b);
    bool differs = false;
    for (uint64_t round = 0; round < 4; round++) {
        bool *seen = tl_xalloc(p->n_cells);
        tl_plan_order(p, round, a);
        tl_plan_order(p, round, b);
        assert_memory_equal(a, b, p->n_cells * sizeof *a);
        size_t changes = 0;
        for (size_t i = 0; i < p->n_cells; i++) {
            assert_true(a[i] < p->n_cells && !seen[a[i]]);
            seen[a[i]] = true;
            if (i > 0 && p->cells[a[i]].group != p->cells[a[i - 1]].group) changes++;
        }
        if (p->grouped) assert_int_equal(changes, p->n_groups - 1);
        tl_plan_order(p, round + 1, b);
        differs = differs || memcmp(a, b, p->n_cells * sizeof *a) != 0;
        free(seen);
    }
    if (p->n_cells > 6) assert_true(differs);
    free(a);
    free(b);
}

static void properties(void **state) {
    TL_UNUSED(state);
    tl_rng r;
    tl_rng_seed(&r, 42);
    for (int i = 0; i < 60; i++) {
        size_t product;
        json_t *j = random_description(&r, &product);
        tl_plan *p = make(j), *q = NULL;
        assert_int_equal(p->n_cells, product);
        for (size_t a = 0; a < p->n_cells; a++)
            for (size_t b = a + 1; b < p->n_cells; b++)
                assert_string_not_equal(p->cells[a].key, p->cells[b].key);
        check_order(p);
        char *text = tl_plan_text(p), hash[65], again[65];
        tl_err e = {0};
        if (tl_plan_parse(&q, text, strlen(text), "text", &e) != TL_OK) fail_msg("%s", e.msg);
        char *same = tl_plan_text(q);
        assert_string_equal(text, same);
        tl_plan_hash(p, hash);
        tl_plan_hash(q, again);
        assert_string_equal(hash, again);
        assert_null(strstr(text, "_line"));
        for (size_t c = 0; c < p->n_cells; c++) assert_string_equal(p->cells[c].key, q->cells[c].key);
        free(text);
        free(same);
        tl_plan_free(p);
        tl_plan_free(q);
        json_decref(j);
    }
}

/* The table says what the checks do: every default passes its own field, every field has help. */
static void table(void **state) {
    TL_UNUSED(state);
    size_t n;
    const tl_plan_field *f = tl_plan_fields(&n);
    assert_true(n > 40);
    for (size_t i = 0; i < n; i++) {
        assert_true(f[i].help[0] != 0);
        assert_non_null(tl_plan_type_name(f[i].type));
        assert_false(f[i].required && f[i].otherwise != NULL);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(f[i].path, f[k].path);
        if (f[i].otherwise == NULL) continue;
        json_t *j = json_loads(f[i].otherwise, JSON_DECODE_ANY, NULL);
        assert_non_null(j);
        if (json_is_number(j) && f[i].min <= f[i].max)
            assert_true(json_number_value(j) >= f[i].min && json_number_value(j) <= f[i].max);
        json_decref(j);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads),
                                       cmocka_unit_test(refuses),
                                       cmocka_unit_test(schedules), cmocka_unit_test(too_many_cells),
                                       cmocka_unit_test(keys_stay),
                                       cmocka_unit_test(selectors), cmocka_unit_test(overrides),
                                       cmocka_unit_test(predictions),
                                       cmocka_unit_test(properties),
                                       cmocka_unit_test(table),
                                       cmocka_unit_test(script_is_hashed),
                                       cmocka_unit_test(naked_prediction_in_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

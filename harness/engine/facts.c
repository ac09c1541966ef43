/* Effective settings, read back from the engine's replies and its log by the adapter's rules, and compared with what was
 * asked for. Whatever cannot be read is null and listed as unverified: a guess here would become a published number. */
#include "engine/engine_impl.h"

char *tl_engine_at(const tl_engine *g, const char *path) {
    return tl_xprintf("%s%s", g->url, path);
}

static void add_name(json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (tl_str_eq(json_string_value(json_array_get(list, i)), name)) return;
    json_array_append_new(list, json_string(name));
}

/* A value from text by the rule's type or map. NULL when it does not fit: it then counts as not read. */
static json_t *typed(const json_t *rule, const char *text) {
    const json_t *map = json_object_get(rule, "map");
    const char *type = tl_json_str(rule, "type", "text");
    int64_t i;
    if (map) {
        json_t *v = json_object_get(map, text);
        return v ? json_deep_copy(v) : NULL;
    }
    if (tl_str_eq(type, "int")) return tl_parse_i64(text, &i) ? json_integer(i) : NULL;
    return tl_utf8_valid(text, strlen(text)) ? json_string(text) : NULL;
}

/* In lists numbers are told from words by their looks. */
static json_t *loose(const char *text) {
    int64_t i;
    double d;
    if (tl_parse_i64(text, &i)) return json_integer(i);
    if (tl_parse_f64(text, &d)) return tl_json_real(d);
    return tl_utf8_valid(text, strlen(text)) ? json_string(text) : json_null();
}

static void take_list(void *ctx, char **groups, size_t n) {
    json_t **pair = ctx; /* [0] names, [1] list */
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(pair[0], i));
        if (name && groups[i]) json_object_set_new(o, name, loose(groups[i]));
    }
    json_array_append_new(pair[1], o);
}

static void log_rule(tl_engine *g, json_t *effective, const json_t *rule, const char *text) {
    const char *pattern = tl_json_str(rule, "pattern", NULL), *list = tl_json_str(rule, "list", NULL);
    json_t *take = json_object_get(rule, "take");
    size_t n = json_array_size(take);
    char *got[8] = {0};
    if (!pattern || n == 0 || n > TL_COUNT(got)) return;
    if (list) {
        json_t *into = json_object_get(g->facts, list);
        if (!into) {
            into = json_array();
            json_object_set_new(g->facts, list, into);
        }
        json_t *pair[2] = {take, into};
        tl_engine_match_all(text, pattern, n, take_list, pair);
        return;
    }
    if (tl_engine_match(got, n, text, pattern, tl_json_bool(rule, "last", false))) {
        json_t *constant = json_object_get(rule, "value");
        for (size_t i = 0; i < n; i++) {
            const char *name = json_string_value(json_array_get(take, i));
            if (!name || json_object_get(effective, name)) continue;
            json_t *v = constant ? json_deep_copy(constant) : got[i] ? typed(rule, got[i]) : NULL;
            if (v) json_object_set_new(effective, name, v);
        }
    }
    for (size_t i = 0; i < n; i++) free(got[i]);
}

static void http_rule(tl_engine *g, json_t *effective, json_t *raw, const json_t *rule) {
    const char *path = tl_json_str(rule, "path", NULL);
    json_t *take = json_object_get(rule, "take"), *reply = NULL, *path_in;
    tl_http_reply r = {0};
    const char *name;
    if (!path) return;
    char *url = tl_engine_at(g, path);
    const tl_http_call call = {.timeout_ns = 10 * TL_S, .max_body = 16 << 20};
    if (tl_http_get(&r, url, &call, NULL) == TL_OK && r.status == 200 &&
        tl_json_parse(&reply, r.body, r.len, url, NULL) == TL_OK) {
        json_object_set(raw, path, reply);
        json_object_foreach(take, name, path_in) {
            json_t *v = tl_json_at(reply, json_string_value(path_in) ? json_string_value(path_in) : "");
            if (v && !json_is_null(v) && !json_object_get(effective, name)) json_object_set(effective, name, v);
        }
    } else {
        json_object_set_new(raw, path, json_null());
    }
    json_decref(reply);
    tl_http_reply_free(&r);
    free(url);
}

static bool is_open(const json_t *rule, const json_t *requested) {
    const json_t *open = json_object_get(rule, "open");
    for (size_t i = 0; i < json_array_size(open); i++)
        if (json_equal(json_array_get(open, i), requested)) return true;
    return false;
}

/* Equal as texts: a number asked for as "99" agrees with 99. */
static bool agrees(const json_t *a, const json_t *b) {
    if (json_equal(a, b)) return true;
    if (json_is_string(a) && json_is_integer(b)) {
        int64_t x;
        return tl_parse_i64(json_string_value(a), &x) && x == json_integer_value(b);
    }
    return json_is_number(a) && json_is_number(b) && !(json_number_value(a) < json_number_value(b)) &&
           !(json_number_value(a) > json_number_value(b));
}

static void compare(tl_engine *g, const json_t *effective, json_t *unverified) {
    json_t *differences = json_array(), *v;
    const char *name;
    json_object_foreach(json_object_get(g->facts, "requested"), name, v) {
        const json_t *rule = json_object_get(tl_json_at(g->adapter, "settings"), name);
        const json_t *got = json_object_get(effective, name), *want = v;
        bool free_words = tl_str_eq(tl_json_str(rule, "type", ""), "list"); /* to be seen in argv */
        if (json_is_null(v) || is_open(rule, v) || free_words) continue;
        char *text = json_is_string(v) ? tl_xstrdup(json_string_value(v)) : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        const char *means = text ? json_string_value(json_object_get(json_object_get(rule, "means"), text)) : NULL;
        free(text);
        if (means) want = json_object_get(effective, means);
        if (!got || !want)
            add_name(unverified, name);
        else if (!agrees(want, got))
            json_array_append_new(differences, json_pack("{s:s, s:O, s:O}", "name", name, "requested", v, "effective", got));
    }
    json_object_set_new(g->facts, "differences", differences);
}

void tl_engine_read_back(tl_engine *g) {
    static const char *const of_process[] = {"binary", "version", "argv", "env", "log", "requested"};
    json_t *effective = json_object(), *raw = json_object(), *unverified = json_array();
    const json_t *http = tl_json_at(g->adapter, "facts.http"), *log = tl_json_at(g->adapter, "facts.log");
    for (size_t i = 0; i < json_array_size(http); i++) http_rule(g, effective, raw, json_array_get(http, i));
    if (g->log_path) {
        tl_buf text;
        tl_buf_init(&text, 0);
        tl_engine_log_text(&text, g->log_path, g->log_start);
        for (size_t i = 0; i < json_array_size(log); i++) log_rule(g, effective, json_array_get(log, i), text.p);
        tl_buf_free(&text);
    } else {
        for (size_t i = 0; i < TL_COUNT(of_process); i++) add_name(unverified, of_process[i]);
        const char *name;
        json_t *rule;
        json_object_foreach(json_object_get(g->adapter, "settings"), name, rule)
            if (!json_object_get(effective, name) && !tl_str_eq(tl_json_str(rule, "type", ""), "list")) add_name(unverified, name);
    }
    const json_t *present = tl_json_at(g->adapter, "facts.present");
    for (size_t i = 0; i < json_array_size(present); i++) {
        const char *name = json_string_value(json_array_get(present, i));
        const char *s = name ? tl_json_str(effective, name, NULL) : NULL;
        if (s) json_object_set_new(effective, name, json_boolean(*s != '\0'));
    }
    compare(g, effective, unverified);
    json_t *build = json_object_get(effective, "build");
    json_object_set_new(g->facts, "build", build ? json_incref(build) : json_null());
    json_object_set_new(g->facts, "effective", effective);
    json_object_set_new(g->facts, "unverified", unverified);
    json_object_set_new(g->facts, "raw", raw);
}

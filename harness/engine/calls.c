/* Small calls to a running engine, by the adapter's tables: its tokenizer, and whether it is idle. None is ever made while
 * something is timed. */
#include "engine/engine_impl.h"

static tl_status lacks(const tl_engine *g, const char *what, tl_err *e) {
    return tl_fail(e, TL_MISSING, "engine '%s' has no call for %s", tl_engine_name(g), what);
}

/* POST (body given, consumed) or GET; the reply as JSON, owned by the caller. */
static tl_status call(json_t **out, tl_engine *g, const char *path, json_t *body, tl_err *e) {
    tl_status st = TL_OK;
    tl_http_reply r = {0};
    char *url = tl_engine_at(g, path);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    const tl_http_call how = {.timeout_ns = 60 * TL_S, .max_body = (size_t)64 << 20};
    *out = NULL;
    TRY(text ? tl_http_post(&r, url, text, &how, e) : tl_http_get(&r, url, &how, e));
    if (r.status == 404 || r.status == 405 || r.status == 501) {
        st = tl_fail(e, TL_MISSING, "engine '%s' has no %s (HTTP %d)", tl_engine_name(g), path, r.status);
        goto out;
    }
    if (r.status != 200) {
        st = tl_fail(e, TL_ENGINE, "engine '%s': %s answered HTTP %d: %.200s", tl_engine_name(g), path, r.status, r.body);
        goto out;
    }
    TRY(tl_json_parse(out, r.body, r.len, url, e));
out:
    tl_http_reply_free(&r);
    free(text);
    free(url);
    json_decref(body);
    return st;
}

tl_status tl_engine_tokenize(int32_t **ids_out, size_t *n_out, tl_engine *g, const char *text, tl_err *e) {
    tl_status st = TL_OK;
    json_t *reply = NULL;
    int32_t *ids = NULL;
    const json_t *rule = json_object_get(g->adapter, "tokenize");
    *ids_out = NULL;
    *n_out = 0;
    if (!rule) return lacks(g, "tokenizing", e);
    if (!tl_utf8_valid(text, strlen(text))) return tl_fail(e, TL_INVALID, "text to tokenize is not UTF-8");
    json_t *body = json_deep_copy(json_object_get(rule, "with"));
    if (!body) body = json_object();
    json_object_set_new(body, tl_json_str(rule, "text", "content"), json_string(text));
    TRY(call(&reply, g, tl_json_str(rule, "path", "/tokenize"), body, e));
    const json_t *list = tl_json_at(reply, tl_json_str(rule, "tokens", "tokens"));
    if (!json_is_array(list)) {
        st = tl_fail(e, TL_ENGINE, "engine '%s': its tokenizer answered without a list of tokens", tl_engine_name(g));
        goto out;
    }
    size_t n = json_array_size(list);
    ids = tl_xalloc((n + 1) * sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX) {
            st = tl_fail(e, TL_ENGINE, "engine '%s': token %zu of its tokenizer is not a token id", tl_engine_name(g), i);
            goto out;
        }
        ids[i] = (int32_t)json_integer_value(v);
    }
    *ids_out = ids;
    *n_out = n;
    ids = NULL;
out:
    free(ids);
    json_decref(reply);
    return st;
}

tl_status tl_engine_detokenize(tl_buf *out, tl_engine *g, const int32_t *ids, size_t n, tl_err *e) {
    tl_status st = TL_OK;
    json_t *reply = NULL;
    const json_t *rule = json_object_get(g->adapter, "detokenize");
    if (!rule) return lacks(g, "turning tokens into text", e);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    json_t *body = json_object();
    json_object_set_new(body, tl_json_str(rule, "tokens", "tokens"), list);
    TRY(call(&reply, g, tl_json_str(rule, "path", "/detokenize"), body, e));
    const json_t *text = tl_json_at(reply, tl_json_str(rule, "text", "content"));
    if (!json_is_string(text)) {
        st = tl_fail(e, TL_ENGINE, "engine '%s': its detokenizer answered without a text", tl_engine_name(g));
        goto out;
    }
    tl_buf_add(out, json_string_value(text), json_string_length(text));
out:
    json_decref(reply);
    return st;
}

/* Appends the ids of the slots at work; how many there are. */
static size_t busy_slots(tl_buf *ids, const json_t *reply, const json_t *rule) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(reply); i++) {
        const json_t *slot = json_array_get(reply, i);
        if (!tl_json_bool(slot, tl_json_str(rule, "busy", "is_processing"), false)) continue;
        tl_buf_fmt(ids, "%s%" PRId64, n++ ? ", " : "", tl_json_int(slot, tl_json_str(rule, "id", "id"), (int64_t)i));
    }
    return n;
}

tl_status tl_engine_wait_idle(tl_engine *g, uint64_t timeout_ns, tl_err *e) {
    tl_status st = TL_OK;
    const json_t *rule = json_object_get(g->adapter, "idle");
    const tl_ns deadline = tl_clock_now() + timeout_ns;
    tl_buf ids;
    if (!rule) return lacks(g, "asking whether it is idle", e);
    tl_buf_init(&ids, 0);
    for (;;) {
        json_t *reply = NULL;
        TRY(call(&reply, g, tl_json_str(rule, "path", "/slots"), NULL, e));
        bool list = json_is_array(reply);
        tl_buf_clear(&ids);
        size_t busy = busy_slots(&ids, reply, rule);
        json_decref(reply);
        if (!list) {
            st = tl_fail(e, TL_ENGINE, "engine '%s': %s is not a list of slots", tl_engine_name(g), tl_json_str(rule, "path", ""));
            break;
        }
        if (busy == 0) break;
        if (tl_clock_now() >= deadline) {
            st = tl_fail(e, TL_TIMEOUT, "engine '%s' is not idle: slot %s at work", tl_engine_name(g), ids.p);
            st = tl_remedy(e, "nothing else may use the engine while it is measured");
            break;
        }
        tl_sleep_ns(5 * TL_MS);
    }
out:
    tl_buf_free(&ids);
    return st;
}

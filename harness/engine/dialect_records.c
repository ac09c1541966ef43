/* One JSON object of an answer into events, text and counters.
 *
 * Errors are looked for before choices: every server may send them after HTTP 200. A choice list may be empty. Thinking
 * has three names (reasoning_content, reasoning, thinking); a server that sends two of them sends the same text twice.
 */
#include "engine/dialect_impl.h"

void tl_dialect_note_error(tl_request *r, const char *cls, const char *text)
{
    if (r->error_class) return;
    r->error_class = tl_xstrdup(cls);
    r->error_text = tl_xstrdup(text);
}

/* An error is a string, an object with a message, FastAPI's `detail`, or vLLM's old {"object":"error"}. */
static const json_t *error_of(const json_t *obj)
{
    const json_t *err = tl_json_at(obj, "error");
    if (err && !json_is_null(err) && !json_is_false(err)) return err;
    if (tl_str_eq(tl_json_str(obj, "object", NULL), "error")) return obj;
    if (tl_json_at(obj, "choices") || tl_json_at(obj, "content")) return NULL;
    err = tl_json_at(obj, "detail");
    return err && !json_is_null(err) ? err : NULL;
}

bool tl_dialect_error(tl_decoder *k, const json_t *obj)
{
    const json_t *err = error_of(obj);
    if (!err) return false;
    const char *words = json_string_value(err);
    const json_t *first = json_is_array(err) ? json_array_get(err, 0) : err;
    if (!words) words = tl_json_str(first, "message", NULL);
    if (!words) words = tl_json_str(first, "msg", NULL);
    if (!words) words = tl_json_str(obj, "message", NULL);
    char *all = words ? NULL : json_dumps(err, JSON_COMPACT | JSON_ENCODE_ANY);
    const char *type = tl_json_str(first, "type", NULL);
    tl_dialect_note_error(k->r, type && *type ? type : "engine", words ? words : all);
    tl_request_event(k->r, k->t_ns, TL_EV_ERROR, 0, k->read);
    free(all);
    return true;
}

/* ---- emitting -------------------------------------------------------------------------------------------------------- */

static void emit(tl_decoder *k, tl_event_kind kind, size_t bytes)
{
    tl_request_event(k->r, k->t_ns, (unsigned)kind | (k->emitted ? TL_EV_JOINED : 0), bytes, k->read);
    k->emitted++;
}

static void emit_text(tl_decoder *k, tl_event_kind kind, tl_buf *into, size_t before)
{
    if (into->len == before) return;
    if (!k->emitted) k->r->count.chunks++;
    emit(k, kind, into->len - before);
}

static void keep_raw(char **slot, const tl_decoder *k)
{
    free(*slot);
    *slot = tl_dialect_clean(k->bytes, k->len, 0);
}

static void finish(tl_decoder *k, const char *reason)
{
    if (reason && *reason) {
        free(k->r->finish_reason);
        k->r->finish_reason = tl_xstrdup(reason);
    }
    k->r->saw_finish = true;
    keep_raw(&k->raw_finish, k);
    emit(k, TL_EV_FINISH, 0);
}

/* ---- pieces of a message ---------------------------------------------------------------------------------------------- */

static void add_string(tl_buf *into, const json_t *s)
{
    if (json_is_string(s)) tl_buf_add(into, json_string_value(s), json_string_length(s));
}

/* Content is a string, or a list of typed parts of which some are thinking. */
static void add_content(tl_decoder *k, const json_t *content)
{
    size_t i;
    json_t *part;
    add_string(&k->text, content);
    json_array_foreach(content, i, part) {
        const bool thinking = tl_str_eq(tl_json_str(part, "type", NULL), "thinking");
        const json_t *s = tl_json_at(part, thinking ? "thinking" : "text");
        add_string(thinking ? &k->reasoning : &k->text, s);
        if (json_is_array(s)) add_string(thinking ? &k->reasoning : &k->text, tl_json_at(s, "0.text"));
    }
}

static void add_reasoning(tl_decoder *k, const json_t *message)
{
    static const char *const names[] = { "reasoning_content", "reasoning", "thinking" };
    for (size_t i = 0; i < TL_COUNT(names); i++) {
        const json_t *s = tl_json_at(message, names[i]);
        if (!json_is_string(s) || json_string_length(s) == 0) continue;
        add_string(&k->reasoning, s);
        return;
    }
}

static void add_call(tl_buf *into, const json_t *function)
{
    const json_t *args = tl_json_at(function, "arguments");
    add_string(into, tl_json_at(function, "name"));
    add_string(into, args);
    if (!json_is_object(args)) return;
    char *text = json_dumps(args, JSON_COMPACT);
    tl_buf_str(into, text);
    free(text);
}

static void add_message(tl_decoder *k, const json_t *m)
{
    const size_t reasoning = k->reasoning.len, text = k->text.len, tool = k->tool.len;
    size_t i;
    json_t *call;
    add_reasoning(k, m);
    add_content(k, tl_json_at(m, "content"));
    add_string(&k->text, tl_json_at(m, "refusal"));
    json_array_foreach(tl_json_at(m, "tool_calls"), i, call) { add_call(&k->tool, tl_json_at(call, "function")); }
    add_call(&k->tool, tl_json_at(m, "function_call"));
    emit_text(k, TL_EV_REASONING, &k->reasoning, reasoning);
    emit_text(k, TL_EV_CONTENT, &k->text, text);
    emit_text(k, TL_EV_TOOL, &k->tool, tool);
}

static bool take_counters(tl_decoder *k, const json_t *obj)
{
    const bool any = tl_dialect_counters(&k->r->count, obj);
    if (any) keep_raw(&k->raw_counters, k);
    return any;
}

/* ---- dialects ----------------------------------------------------------------------------------------------------------- */

void tl_dialect_record_openai(tl_decoder *k, const json_t *obj)
{
    const bool counters = take_counters(k, obj);
    const json_t *choice = tl_json_at(obj, "choices.0");
    const json_t *message = tl_json_at(choice, "delta");
    if (!json_is_object(message)) message = tl_json_at(choice, "message");
    const size_t text = k->text.len;
    if (json_is_object(message)) add_message(k, message);
    else if (choice) {
        add_string(&k->text, tl_json_at(choice, "text"));
        emit_text(k, TL_EV_CONTENT, &k->text, text);
    }
    const char *reason = tl_json_str(choice, "finish_reason", NULL);
    if (reason && *reason) finish(k, reason);
    if (k->emitted) return;
    if (json_is_object(tl_json_at(obj, "prompt_progress"))) emit(k, TL_EV_PROGRESS, 0);
    else if (choice) emit(k, TL_EV_ROLE, 0);
    else emit(k, counters ? TL_EV_USAGE : TL_EV_OTHER, 0);
}

/* "eos", "word", "limit" in OpenAI's words; the record itself stays in raw_last. */
static const char *stop_reason(const json_t *obj)
{
    const char *type = tl_json_str(obj, "stop_type", NULL);
    if (tl_str_eq(type, "limit") || tl_json_bool(obj, "stopped_limit", false)) return "length";
    return tl_str_eq(type, "none") ? "none" : "stop";
}

void tl_dialect_record_llamacpp(tl_decoder *k, const json_t *obj)
{
    const size_t text = k->text.len;
    take_counters(k, obj);
    add_string(&k->text, tl_json_at(obj, "content"));
    emit_text(k, TL_EV_CONTENT, &k->text, text);
    if (json_is_true(tl_json_at(obj, "stop"))) finish(k, stop_reason(obj));
    if (k->emitted) return;
    if (json_is_object(tl_json_at(obj, "prompt_progress"))) emit(k, TL_EV_PROGRESS, 0);
    else emit(k, tl_json_at(obj, "content") ? TL_EV_ROLE : TL_EV_OTHER, 0);
}

void tl_dialect_record_ollama(tl_decoder *k, const json_t *obj)
{
    const char *far = tl_json_str(obj, "remote_host", NULL);
    if (far && *far) {
        char *t = tl_xprintf("the answer came from another machine (remote_host %s): it says nothing about this one", far);
        tl_dialect_note_error(k->r, "engine", t);
        free(t);
    }
    take_counters(k, obj);
    const json_t *m = tl_json_at(obj, "message");
    if (json_is_object(m)) add_message(k, m);
    else { /* /api/generate */
        const size_t reasoning = k->reasoning.len, text = k->text.len;
        add_string(&k->reasoning, tl_json_at(obj, "thinking"));
        add_string(&k->text, tl_json_at(obj, "response"));
        emit_text(k, TL_EV_REASONING, &k->reasoning, reasoning);
        emit_text(k, TL_EV_CONTENT, &k->text, text);
    }
    if (json_is_true(tl_json_at(obj, "done"))) {
        if (k->records == 1 && k->r->count.chunks) k->r->not_stream = true;
        finish(k, tl_json_str(obj, "done_reason", "stop"));
    }
    if (!k->emitted) emit(k, TL_EV_ROLE, 0);
}

/* Settings to arguments, by the adapter's tables. Every flag is looked up in the build's own help text first: what is only
 * nice to have is left out and recorded when the build does not know it, what was asked for is refused. */
#include "engine/engine_impl.h"

static bool word_char(char c) {
    return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* As a word of its own: "--slots" is not known because "--slots-path" is. Without a help text everything is. */
static bool flag_known(const char *help, const char *flag) {
    if (!help || !*help) return true;
    size_t n = strlen(flag);
    for (const char *p = strstr(help, flag); p; p = strstr(p + 1, flag))
        if ((p == help || !word_char(p[-1])) && !word_char(p[n])) return true;
    return false;
}

/* `text` with {model} and {port} replaced in one pass: what is put in is not looked at again. Owned by the caller. */
static char *fill(const char *text, const char *model, uint16_t port) {
    tl_buf b;
    tl_buf_init(&b, 0);
    while (*text) {
        if (tl_str_starts(text, "{model}")) {
            tl_buf_str(&b, model);
            text += strlen("{model}");
        } else if (tl_str_starts(text, "{port}")) {
            tl_buf_fmt(&b, "%u", (unsigned)port);
            text += strlen("{port}");
        } else {
            tl_buf_char(&b, *text++);
        }
    }
    return tl_buf_take(&b);
}

static void add_group(json_t *argv, const json_t *args, const char *model, uint16_t port) {
    for (size_t i = 0; i < json_array_size(args); i++) {
        const char *a = json_string_value(json_array_get(args, i));
        char *s = fill(a ? a : "", model, port);
        json_array_append_new(argv, json_string(s));
        free(s);
    }
}

static void start_groups(json_t *argv, tl_engine *g, const char *model, uint16_t port) {
    json_t *dropped = json_array();
    const json_t *groups = json_object_get(g->adapter, "start");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        const json_t *args = json_object_get(group, "args");
        const char *first = json_string_value(json_array_get(args, 0));
        if (first && !tl_json_bool(group, "required", false) && !flag_known(g->help, first))
            json_array_append_new(dropped, json_string(first));
        else
            add_group(argv, args, model, port);
    }
    json_object_set_new(g->facts, "dropped_flags", dropped);
}

static tl_status unknown_setting(const tl_engine *g, const char *name, tl_err *e) {
    const json_t *known = json_object_get(g->adapter, "settings");
    const char **names = tl_xalloc((json_object_size(known) + 1) * sizeof *names);
    size_t n = 0;
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)known, key, v) names[n++] = key;
    const char *near = tl_nearest(name, names, n);
    (void)tl_fail(e, TL_INVALID, "engine '%s' has no setting '%s'", tl_engine_name_of(g->adapter), name);
    if (near) (void)tl_remedy(e, "did you mean '%s'?", near);
    free(names);
    return TL_INVALID;
}

/* The value as one argument, checked; owned by the caller. */
static tl_status value_text(char **out, const char *name, const json_t *rule, const json_t *v, tl_err *e) {
    const char *type = tl_json_str(rule, "type", "string");
    *out = NULL;
    if (tl_str_eq(type, "int") && json_is_integer(v)) {
        int64_t x = json_integer_value(v), lo = tl_json_int(rule, "min", INT64_MIN), hi = tl_json_int(rule, "max", INT64_MAX);
        if (x < lo || x > hi)
            return tl_fail(e, TL_INVALID, "setting '%s' is %" PRId64 ", outside %" PRId64 " .. %" PRId64, name, x, lo, hi);
        *out = tl_xprintf("%" PRId64, x);
    } else if (tl_str_eq(type, "number") && json_is_number(v)) {
        char b[32];
        tl_fmt_f64(b, json_number_value(v));
        *out = tl_xstrdup(b);
    } else if (tl_str_eq(type, "bool") && json_is_boolean(v)) {
        *out = tl_xstrdup(json_is_true(v) ? "true" : "false");
    } else if (tl_str_eq(type, "string") && json_is_string(v)) {
        *out = tl_xstrdup(json_string_value(v));
    } else if (tl_str_eq(type, "string") && json_is_integer(v)) {
        *out = tl_xprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
    } else if (tl_str_eq(type, "enum") && json_is_string(v)) {
        const char **values = tl_engine_strings(json_object_get(rule, "values"));
        size_t n = 0;
        while (values[n]) n++;
        for (size_t i = 0; i < n && !*out; i++)
            if (tl_str_eq(values[i], json_string_value(v))) *out = tl_xstrdup(values[i]);
        const char *near = tl_nearest(json_string_value(v), values, n);
        if (!*out) {
            (void)tl_fail(e, TL_INVALID, "setting '%s' has no value '%s'", name, json_string_value(v));
            (void)tl_remedy(e, near ? "did you mean '%s'?" : "the first of its values is '%s'", near ? near : values[0]);
        }
        free(values);
        if (!*out) return TL_INVALID;
    } else {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        (void)tl_fail(e, TL_INVALID, "setting '%s' must be a value of type %s, not %.80s", name, type, text ? text : "?");
        free(text);
        return TL_INVALID;
    }
    return TL_OK;
}

/* The first variant of arguments for this value whose flag the build knows; an empty variant needs no flag. */
static const json_t *variant_for(const tl_engine *g, const json_t *rule, const char *value) {
    const json_t *variants = json_object_get(rule, "args");
    for (size_t i = 0; i < json_array_size(variants); i++) {
        const json_t *args = json_object_get(json_array_get(variants, i), value);
        const char *first = json_string_value(json_array_get(args, 0));
        if (args && (!first || flag_known(g->help, first))) return args;
    }
    return NULL;
}

static tl_status add_list(json_t *argv, const char *name, const json_t *v, tl_err *e) {
    if (!json_is_array(v)) return tl_fail(e, TL_INVALID, "setting '%s' must be a list of arguments", name);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = json_string_value(json_array_get(v, i));
        if (!s) return tl_fail(e, TL_INVALID, "setting '%s': element %zu is not a string", name, i + 1);
        json_array_append_new(argv, json_string(s));
    }
    return TL_OK;
}

static bool is_list(const json_t *rule) {
    return tl_str_eq(tl_json_str(rule, "type", ""), "list");
}

static tl_status add_setting(json_t *argv, const tl_engine *g, const char *name, const json_t *v, tl_err *e) {
    tl_status st = TL_OK;
    char *value = NULL;
    const json_t *rule = json_object_get(json_object_get(g->adapter, "settings"), name);
    if (!rule) return unknown_setting(g, name, e);
    if (json_is_null(v)) return TL_OK;
    TRY(value_text(&value, name, rule, v, e));
    const char *flag = tl_json_str(rule, "flag", NULL);
    const json_t *args = flag ? NULL : variant_for(g, rule, value);
    if (flag ? !flag_known(g->help, flag) : !args) {
        st = tl_fail(e, TL_INVALID, "this build of engine '%s' (%s) cannot be told '%s' = %s",
                     tl_engine_name_of(g->adapter), g->binary, name, value);
        st = tl_remedy(e, "leave the setting out, or use another build of the engine");
        goto out;
    }
    if (flag) {
        json_array_append_new(argv, json_string(flag));
        json_array_append_new(argv, json_string(value));
    } else {
        add_group(argv, args, "", 0);
    }
out:
    free(value);
    return st;
}

tl_status tl_engine_args(json_t **argv_out, tl_engine *g, const tl_engine_spec *spec, uint16_t port, tl_err *e) {
    tl_status st = TL_OK;
    json_t *argv = json_array();
    json_array_append_new(argv, json_string(g->binary));
    start_groups(argv, g, spec->model_path, port);
    const char *name;
    json_t *v;
    if (spec->settings && !json_is_object(spec->settings)) {
        st = tl_fail(e, TL_INVALID, "engine settings must be a table of names and values");
        goto out;
    }
    /* the free arguments come last, so that they win */
    const json_t *rules = json_object_get(g->adapter, "settings");
    json_object_foreach((json_t *)spec->settings, name, v)
        if (!is_list(json_object_get(rules, name))) TRY(add_setting(argv, g, name, v, e));
    json_object_foreach((json_t *)spec->settings, name, v)
        if (is_list(json_object_get(rules, name)) && !json_is_null(v)) TRY(add_list(argv, name, v, e));
    json_object_set_new(g->facts, "requested", spec->settings ? json_deep_copy(spec->settings) : json_object());
    *argv_out = argv;
    argv = NULL;
out:
    json_decref(argv);
    return st;
}

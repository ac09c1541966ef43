/* Strict reading of a description by the table of fields: nothing unknown, nothing missing, nothing of a
 * wrong type, and every default filled in, so that the result says everything. */
#include "plan/plan_impl.h"

#include <math.h>

const tl_plan_field *plan_field(const char *path) {
    size_t n;
    const tl_plan_field *f = tl_plan_fields(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(f[i].path, path) == 0) return &f[i];
    return NULL;
}

bool plan_is_reference(const json_t *v) {
    return json_is_object(v) && json_is_string(json_object_get(v, "name")) &&
           json_is_string(json_object_get(v, "kind"));
}

void plan_show(char *out, size_t size, const json_t *v) {
    if (plan_is_reference(v)) v = json_object_get(v, "name");
    if (json_is_string(v)) {
        snprintf(out, size, "%s", json_string_value(v));
        return;
    }
    if (json_is_real(v)) {
        char number[32];
        tl_fmt_f64(number, json_real_value(v));
        snprintf(out, size, "%s", number);
        return;
    }
    char *text = v ? tl_json_canonical(v) : tl_xstrdup("nothing");
    snprintf(out, size, "%s", text);
    free(text);
}

/* Line of the field, else of what holds it. "axes.0.name" and "accept[].min" are looked up as they are
 * written. */
static int64_t line_of(const plan_check *c, const char *path) {
    char text[128];
    snprintf(text, sizeof text, "%s", path);
    for (;;) {
        const json_t *l = json_object_get(c->lines, text);
        if (json_is_integer(l)) return json_integer_value(l);
        char *dot = strrchr(text, '.');
        if (dot == NULL) return 0;
        *dot = 0;
    }
}

tl_status plan_fail(const plan_check *c, const char *path, const char *fmt, ...) {
    char msg[512], where[200] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    int64_t line = c->lines ? line_of(c, path) : 0;
    if (c->file != NULL && line > 0)
        snprintf(where, sizeof where, "%.160s:%" PRId64 ": ", c->file, line);
    else if (c->file != NULL)
        snprintf(where, sizeof where, "%.160s: ", c->file);
    else if (line > 0)
        snprintf(where, sizeof where, "line %" PRId64 ": ", line);
    if (c->cell != NULL) return tl_fail(c->e, TL_INVALID, "%scell '%.120s': %s", where, c->cell, msg);
    return tl_fail(c->e, TL_INVALID, "%s%s", where, msg);
}

/* Name of a direct field below prefix, or NULL: "repeats." + "repeats.min" -> "min". */
static const char *direct(const char *prefix, const char *path) {
    if (!tl_str_starts(path, prefix)) return NULL;
    const char *rest = path + strlen(prefix);
    return *rest && strpbrk(rest, ".[") == NULL ? rest : NULL;
}

static tl_status unknown(const plan_check *c, const char *prefix, const char *key) {
    const char *names[64];
    size_t n, k = 0;
    const tl_plan_field *f = tl_plan_fields(&n);
    tl_buf all;
    tl_buf_init(&all, 0);
    for (size_t i = 0; i < n && k < TL_COUNT(names); i++) {
        const char *name = direct(prefix, f[i].path);
        if (name == NULL) continue;
        tl_buf_fmt(&all, "%s%s", k ? ", " : "", name);
        names[k++] = name;
    }
    char path[160];
    snprintf(path, sizeof path, "%s%.60s", prefix, key);
    tl_status st = plan_fail(c, path, "unknown field '%s'", path);
    const char *near = tl_nearest(key, names, k);
    if (near != NULL)
        tl_remedy(c->e, "did you mean '%s'?", near);
    else
        tl_remedy(c->e, "the fields are: %s", all.p);
    tl_buf_free(&all);
    return st;
}

static tl_status wrong(const plan_check *c, const tl_plan_field *f, const char *path, const json_t *v) {
    char shown[80];
    plan_show(shown, sizeof shown, v);
    tl_status st =
        plan_fail(c, path, "field '%s' must be %s, it is %s", path, tl_plan_type_name(f->type), shown);
    tl_remedy(c->e, "%s: %s", f->path, f->help);
    return st;
}

static tl_status check_bounds(const plan_check *c, const tl_plan_field *f, const char *path, double x) {
    char text[32], lo[32], hi[32];
    if (f->min > f->max || (x >= f->min && x <= f->max)) return TL_OK;
    tl_fmt_f64(text, x);
    tl_fmt_f64(lo, f->min);
    tl_fmt_f64(hi, f->max);
    tl_status st = plan_fail(c, path, "field '%s' is %s, allowed is %s to %s%s%s", path, text, lo, hi,
                             f->unit ? " " : "", f->unit ? f->unit : "");
    tl_remedy(c->e, "%s: %s", f->path, f->help);
    return st;
}

static tl_status check_word(const plan_check *c, const tl_plan_field *f, const char *path, const char *word) {
    if (*word == 0 && f->required) return plan_fail(c, path, "field '%s' is empty", path);
    if (f->one_of == NULL) return TL_OK;
    const char *names[16];
    char list[160];
    size_t k = 0;
    snprintf(list, sizeof list, "%s", f->one_of);
    for (char *p = list; *p && k < TL_COUNT(names);) {
        size_t len = strcspn(p, " ");
        bool end = p[len] == 0;
        p[len] = 0;
        if (strcmp(p, word) == 0) return TL_OK;
        names[k++] = p;
        if (end) break;
        p += len + 1;
    }
    tl_status st = plan_fail(c, path, "field '%s' is '%.60s', it must be one of: %s", path, word, f->one_of);
    const char *near = tl_nearest(word, names, k);
    if (near != NULL) tl_remedy(c->e, "did you mean '%s'?", near);
    return st;
}

static tl_status integer(json_t **out, const plan_check *c, const tl_plan_field *f, const char *path,
                         const json_t *v) {
    double x = json_number_value(v);
    if (json_is_real(v) && (x != floor(x) || fabs(x) > 9e15)) return wrong(c, f, path, v);
    *out = json_integer(json_is_real(v) ? (json_int_t)x : json_integer_value(v));
    return check_bounds(c, f, path, x);
}

static tl_status texts(json_t **out, const plan_check *c, const tl_plan_field *f, const char *path,
                       const json_t *v) {
    static const char *const languages[] = {"zh", "zh-Hant", "zh-Hans", "en"};
    const char *key;
    json_t *text;
    if (!json_is_object(v) || json_object_size(v) == 0) return wrong(c, f, path, v);
    json_object_foreach((json_t *)v, key, text) {
        bool known = false;
        for (size_t i = 0; i < TL_COUNT(languages); i++) known = known || strcmp(key, languages[i]) == 0;
        if (!known) {
            tl_status st = plan_fail(c, path, "field '%s': unknown language '%.30s'", path, key);
            tl_remedy(c->e, "the languages are zh (= zh-Hant), zh-Hant, zh-Hans, en");
            return st;
        }
        if (!json_is_string(text)) return wrong(c, f, path, v);
    }
    *out = json_deep_copy(v);
    return TL_OK;
}

static tl_status list(json_t **out, const plan_check *c, const tl_plan_field *f, const char *path,
                      const json_t *v) {
    size_t n;
    const tl_plan_field *all = tl_plan_fields(&n);
    char prefix[160];
    bool typed = false;
    /* an empty Lua table is an empty object */
    if (!json_is_array(v) && !(json_is_object(v) && json_object_size(v) == 0)) return wrong(c, f, path, v);
    snprintf(prefix, sizeof prefix, "%s[].", f->path);
    for (size_t i = 0; i < n; i++) typed = typed || tl_str_starts(all[i].path, prefix);
    *out = json_array();
    for (size_t i = 0; i < json_array_size(v); i++) {
        json_t *entry = NULL;
        if (!typed)
            entry = json_deep_copy(json_array_get(v, i));
        else {
            tl_status st = plan_normal(&entry, c, prefix, json_array_get(v, i));
            if (st != TL_OK) return st;
        }
        json_array_append_new(*out, entry);
    }
    return TL_OK;
}

static tl_status object(json_t **out, const plan_check *c, const tl_plan_field *f, const char *path,
                        const json_t *v) {
    size_t n;
    const tl_plan_field *all = tl_plan_fields(&n);
    char prefix[160];
    if (!json_is_object(v)) return wrong(c, f, path, v);
    snprintf(prefix, sizeof prefix, "%s.", f->path);
    for (size_t i = 0; i < n; i++)
        if (tl_str_starts(all[i].path, prefix)) return plan_normal(out, c, prefix, v);
    *out = json_deep_copy(v);
    return TL_OK;
}

static bool is_axis(const json_t *v) {
    return json_object_size(v) == 1 && json_is_string(json_object_get(v, "$axis"));
}

static tl_status one(json_t **out, const plan_check *c, const tl_plan_field *f, const char *path,
                     const json_t *v) {
    *out = NULL;
    if (is_axis(v) && c->cell == NULL) {
        if (!f->axis) return plan_fail(c, path, "field '%s' cannot be an axis", path);
        *out = json_deep_copy(v);
        return TL_OK;
    }
    switch (f->type) {
    case TL_PLAN_LIST:
        return list(out, c, f, path, v);
    case TL_PLAN_OBJECT:
        return object(out, c, f, path, v);
    case TL_PLAN_TEXTS:
        return texts(out, c, f, path, v);
    case TL_PLAN_BOOL:
        if (!json_is_boolean(v)) return wrong(c, f, path, v);
        *out = json_boolean(json_is_true(v));
        return TL_OK;
    case TL_PLAN_NUMBER:
        if (!json_is_number(v)) return wrong(c, f, path, v);
        *out = json_real(json_number_value(v));
        return check_bounds(c, f, path, json_number_value(v));
    case TL_PLAN_INT:
        if (!json_is_number(v)) return wrong(c, f, path, v);
        return integer(out, c, f, path, v);
    case TL_PLAN_INT_OR_STRING:
        if (json_is_number(v)) return integer(out, c, f, path, v);
        break;
    case TL_PLAN_STRING:
        break;
    }
    if (!json_is_string(v)) return wrong(c, f, path, v);
    *out = json_string(json_string_value(v));
    return check_word(c, f, path, json_string_value(v));
}

static tl_status known_only(const plan_check *c, const char *prefix, const json_t *given) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)given, key, v) {
        char path[160];
        if (*prefix == 0 && (strcmp(key, "_line") == 0 || strcmp(key, "_file") == 0)) continue;
        int n = snprintf(path, sizeof path, "%s%s", prefix, key);
        if (n >= (int)sizeof path || plan_field(path) == NULL || strpbrk(key, ".[") != NULL)
            return unknown(c, prefix, key);
    }
    return TL_OK;
}

tl_status plan_normal(json_t **out, const plan_check *c, const char *prefix, const json_t *given) {
    size_t n;
    const tl_plan_field *f = tl_plan_fields(&n);
    json_t *o = json_object();
    tl_status st = TL_OK;
    if (!json_is_object(given)) {
        char shown[80];
        plan_show(shown, sizeof shown, given);
        TRY(plan_fail(c, prefix, "'%.*s' must be an object, it is %s",
                      (int)strcspn(*prefix ? prefix : "plan", "."), *prefix ? prefix : "plan", shown));
    }
    TRY(known_only(c, prefix, given));
    for (size_t i = 0; i < n; i++) {
        const char *name = direct(prefix, f[i].path);
        if (name == NULL) continue;
        const json_t *v = json_object_get(given, name);
        json_t *otherwise = NULL, *made = NULL;
        if (v == NULL || json_is_null(v)) {
            if (f[i].required) {
                plan_fail(c, f[i].path, "field '%s' is missing", f[i].path);
                tl_remedy(c->e, "%s: %s", f[i].path, f[i].help);
                TRY(TL_INVALID);
            }
            if (f[i].otherwise == NULL) continue;
            v = otherwise = json_loads(f[i].otherwise, JSON_DECODE_ANY, NULL);
        }
        st = one(&made, c, &f[i], f[i].path, v);
        json_decref(otherwise);
        if (st == TL_OK)
            json_object_set_new(o, name, made);
        else
            json_decref(made);
        TRY(st);
    }
    *out = o;
    return TL_OK;
out:
    json_decref(o);
    return st;
}

/* --set and --only: changing a description, choosing cells. */
#include "plan/plan_impl.h"

/* The values of an axis, for messages. */
static void list_values(tl_buf *b, const json_t *axis) {
    const json_t *values = json_object_get(axis, "values");
    char shown[120];
    for (size_t i = 0; i < json_array_size(values); i++) {
        plan_show(shown, sizeof shown, json_array_get(values, i));
        tl_buf_fmt(b, "%s%s", i ? ", " : "", shown);
    }
}

static void list_axes(tl_buf *b, const json_t *axes) {
    for (size_t i = 0; i < json_array_size(axes); i++)
        tl_buf_fmt(b, "%s%s", i ? ", " : "", tl_json_str(json_array_get(axes, i), "name", "?"));
}

static bool same(const json_t *value, const char *text) {
    char shown[160];
    double x;
    plan_show(shown, sizeof shown, value);
    if (strcmp(shown, text) == 0) return true;
    return json_is_number(value) && tl_parse_f64(text, &x) && x == json_number_value(value);
}

static const json_t *find_value(const json_t *axis, const char *text) {
    const json_t *values = json_object_get(axis, "values");
    for (size_t i = 0; i < json_array_size(values); i++)
        if (same(json_array_get(values, i), text)) return json_array_get(values, i);
    return NULL;
}

static tl_status no_value(const json_t *axis, const char *text, tl_err *e) {
    tl_buf b;
    tl_buf_init(&b, 0);
    list_values(&b, axis);
    tl_fail(e, TL_INVALID, "axis '%s' has no value '%.60s'", tl_json_str(axis, "name", "?"), text);
    tl_remedy(e, "its values are: %s", b.p);
    tl_buf_free(&b);
    return TL_INVALID;
}

static tl_status no_axis(const json_t *axes, const char *name, tl_err *e) {
    tl_buf b;
    tl_buf_init(&b, 0);
    list_axes(&b, axes);
    tl_fail(e, TL_INVALID, "there is no axis '%.60s'", name);
    tl_remedy(e, "the axes are: %s", b.p);
    tl_buf_free(&b);
    return TL_INVALID;
}

/* One "axis=value" of a selector, cut out of *at; false at the end. */
static bool next_part(const char **at, char name[80], char value[160]) {
    while (**at == ',' || **at == ' ') (*at)++;
    if (**at == 0) return false;
    size_t n = strcspn(*at, "=,"), v = (*at)[n] == '=' ? strcspn(*at + n + 1, ",") : 0;
    snprintf(name, 80, "%.*s", (int)(n < 79 ? n : 79), *at);
    snprintf(value, 160, "%.*s", (int)(v < 159 ? v : 159), (*at)[n] == '=' ? *at + n + 1 : "");
    *at += n + ((*at)[n] == '=' ? 1 + v : 0);
    return true;
}

tl_status plan_fits(bool *out, const json_t *axes, const json_t *params, const char *selector, tl_err *e) {
    char name[80], value[160];
    const char *at = selector ? selector : "";
    size_t parts = 0;
    *out = true;
    for (; next_part(&at, name, value); parts++) {
        const json_t *axis = plan_axis(axes, name);
        if (axis == NULL) return no_axis(axes, name, e);
        if (find_value(axis, value) == NULL) return no_value(axis, value, e);
        if (!same(json_object_get(params, name), value)) *out = false;
    }
    if (parts > 0) return TL_OK;
    tl_fail(e, TL_INVALID, "an empty selector");
    tl_remedy(e, "a selector reads AXIS=VALUE,AXIS=VALUE");
    return TL_INVALID;
}

bool tl_plan_cell_fits(const json_t *params, const char *selector) {
    char name[80], value[160];
    while (next_part(&selector, name, value))
        if (!same(json_object_get(params, name), value)) return false;
    return true;
}

bool tl_plan_selector_names(const char *selector, const char *axis) {
    char name[80], value[160];
    while (next_part(&selector, name, value))
        if (strcmp(name, axis) == 0) return true;
    return false;
}

tl_status tl_plan_select(json_t *description, const char *selector, tl_err *e) {
    const json_t *axes = json_object_get(description, "axes");
    bool fits;
    tl_status st = plan_fits(&fits, axes, NULL, selector, e);
    if (st != TL_OK) {
        tl_wrap(e, "selector '%.60s'", selector ? selector : "");
        return st;
    }
    json_t *only = json_object_get(description, "only");
    if (!json_is_array(only)) {
        only = json_array();
        json_object_set_new(description, "only", only);
    }
    json_array_append_new(only, json_string(selector));
    return TL_OK;
}

tl_status tl_plan_find(const tl_plan_cell **out, const tl_plan *p, const char *what, tl_err *e) {
    *out = NULL;
    for (size_t i = 0; i < p->n_cells; i++)
        if (strcmp(p->cells[i].key, what) == 0) return *out = &p->cells[i], TL_OK;
    if (strchr(what, '=') == NULL) {
        tl_fail(e, TL_NOT_FOUND, "no cell '%.60s' in plan '%s'", what, p->id);
        tl_remedy(e, "name a key, or choose by AXIS=VALUE; `tally plan %s` lists the cells", p->id);
        return TL_NOT_FOUND;
    }
    size_t n = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        bool fits;
        tl_status st = plan_fits(&fits, p->axes, p->cells[i].params, what, e);
        if (st != TL_OK) return st;
        if (fits && n++ == 0) *out = &p->cells[i];
    }
    if (n == 1) return TL_OK;
    *out = NULL;
    if (n == 0) return tl_fail(e, TL_NOT_FOUND, "no cell of plan '%s' fits '%.60s'", p->id, what);
    tl_fail(e, TL_INVALID, "%zu cells of plan '%s' fit '%.60s'", n, p->id, what);
    tl_remedy(e, "name more axes");
    return TL_INVALID;
}

/* ---- override
 * ---------------------------------------------------------------------------------------------------- */

/* The text as a scalar of JSON: true, 3, 0.5, or else a text. */
static json_t *scalar(const char *text) {
    int64_t i;
    double x;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return json_boolean(*text == 't');
    if (tl_parse_i64(text, &i)) return json_integer(i);
    if (tl_parse_f64(text, &x)) return json_real(x);
    return json_string(text);
}

static tl_status set_axis(json_t *axis, const char *list, tl_err *e) {
    json_t *old = json_object_get(axis, "values"), *values = json_array();
    bool references = plan_is_reference(json_array_get(old, 0));
    tl_status st = TL_OK;
    for (const char *at = list; st == TL_OK;) {
        size_t n = strcspn(at, ",");
        char *text = tl_xstrndup(at, n);
        const json_t *known = find_value(axis, text);
        if (known != NULL)
            json_array_append(values, (json_t *)known);
        else if (references)
            st = no_value(axis, text, e);
        else if (n == 0)
            st = tl_fail(e, TL_INVALID, "an empty value for axis '%s'", tl_json_str(axis, "name", "?"));
        else
            json_array_append_new(values, scalar(text));
        free(text);
        if (at[n] == 0) break;
        at += n + 1;
    }
    if (st == TL_OK) json_object_set(axis, "values", values);
    json_decref(values);
    return st;
}

static const char *last_word(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static bool can_set(const tl_plan_field *f) {
    return strchr(f->path, '[') == NULL && f->type != TL_PLAN_OBJECT && f->type != TL_PLAN_LIST &&
           f->type != TL_PLAN_TEXTS && strcmp(f->path, "schema") != 0 && !tl_str_starts(f->path, "script");
}

/* The field of that path, or the only one with that last word. */
static tl_status find_field(const tl_plan_field **out, const char *name, tl_err *e) {
    size_t n, found = 0, k = 0;
    const tl_plan_field *f = tl_plan_fields(&n);
    const char *names[160];
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!can_set(&f[i])) continue;
        if (strcmp(f[i].path, name) == 0) return *out = &f[i], TL_OK;
        if (k + 2 < TL_COUNT(names)) {
            names[k++] = f[i].path;
            if (last_word(f[i].path) != f[i].path) names[k++] = last_word(f[i].path);
        }
        if (strcmp(last_word(f[i].path), name) != 0) continue;
        *out = &f[i];
        found++;
    }
    if (found == 1) return TL_OK;
    if (found > 1) {
        tl_fail(e, TL_INVALID, "'%.60s' is the name of %zu fields", name, found);
        tl_remedy(e, "write it in full, as in %s", (*out)->path);
        return TL_INVALID;
    }
    tl_fail(e, TL_INVALID, "'%.60s' is neither a field that can be set nor an axis", name);
    const char *near = tl_nearest(name, names, k);
    if (near != NULL) tl_remedy(e, "did you mean '%s'?", near);
    return TL_INVALID;
}

static void set_field(json_t *description, const tl_plan_field *f, const char *text) {
    json_t *v = f->type == TL_PLAN_STRING ? json_string(text) : scalar(text), *at = description;
    const char *name = last_word(f->path);
    if (name != f->path) {
        char group[80];
        snprintf(group, sizeof group, "%.*s", (int)(name - f->path - 1), f->path);
        at = json_object_get(description, group);
        if (!json_is_object(at)) {
            at = json_object();
            json_object_set_new(description, group, at);
        }
    }
    json_object_set_new(at, name, v);
}

tl_status tl_plan_override(json_t *description, const char *assignment, tl_err *e) {
    const char *eq = strchr(assignment, '=');
    char name[160];
    if (eq == NULL || eq == assignment || eq - assignment >= (ptrdiff_t)sizeof name) {
        tl_fail(e, TL_INVALID, "'%.60s' is not FIELD=VALUE", assignment);
        tl_remedy(e, "as in repeats.max=3 or context=512,8192");
        return TL_INVALID;
    }
    snprintf(name, sizeof name, "%.*s", (int)(eq - assignment), assignment);
    const json_t *axis = plan_axis(json_object_get(description, "axes"), name);
    if (axis != NULL) return set_axis((json_t *)axis, eq + 1, e);
    const tl_plan_field *f;
    tl_status st = find_field(&f, name, e);
    if (st == TL_OK) set_field(description, f, eq + 1);
    return st;
}

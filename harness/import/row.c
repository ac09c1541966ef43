/* A record and a tool's table of fields give a row. */
#include "import/import_impl.h"

#include <math.h>

enum { LONGEST_LIST = 16, LONGEST_TEXT = 512, LARGEST_OBJECT = 4096 };

static bool is_large(const json_t *v) {
    if (!json_is_object(v)) return false;
    char *text = tl_json_canonical(v);
    bool large = strlen(text) > LARGEST_OBJECT;
    free(text);
    return large;
}

void imp_keep(json_t *object, const char *name, const json_t *v) {
    if (json_array_size(v) > LONGEST_LIST) json_object_set_new(object, name, json_pack("{s:I}", "elements", (json_int_t)json_array_size(v)));
    else if (json_string_length(v) > LONGEST_TEXT) json_object_set_new(object, name, json_pack("{s:I}", "bytes", (json_int_t)json_string_length(v)));
    else if (is_large(v)) json_object_set_new(object, name, json_pack("{s:I}", "members", (json_int_t)json_object_size(v)));
    else json_object_set(object, name, (json_t *)v);
}

json_t *imp_row_new(imp_rows *out, int64_t line) {
    json_t *row = json_pack("{s:I, s:n, s:{}, s:{}, s:{}, s:{}, s:{}, s:[]}", "line", (json_int_t)line, "when", "axes", "settings", "machine", "version", "fields", "figures");
    json_array_append_new(out->rows, row);
    return row;
}

void imp_refuse(imp_rows *out, int64_t line, const char *why) {
    json_array_append_new(out->refused, json_pack("{s:I, s:s}", "line", (json_int_t)line, "reason", why));
}

/* A condition that a table could only write as a text. */
json_t *imp_typed(const json_t *v) {
    int64_t i;
    const char *s = json_string_value(v);
    if (s != NULL && (s[0] != '0' || s[1] == 0) && tl_parse_i64(s, &i)) return json_integer(i);
    return json_incref((json_t *)v);
}

/* NaN when the field is no number; *why then says what it is instead. */
static double number(const json_t *v, char why[96]) {
    double x = NAN;
    const char *s = json_string_value(v);
    if (json_is_number(v)) x = json_number_value(v);
    else if (s != NULL && tl_parse_f64(s, &x)) v = NULL;
    else x = NAN;
    if (isfinite(x) && x >= 0) return x;
    if (isfinite(x)) snprintf(why, 96, "the file says %g, and there is no such quantity below 0", x);
    else if (s != NULL && *s == 0) snprintf(why, 96, "the file leaves it empty");
    else if (s != NULL) snprintf(why, 96, "the file says '%.*s'", (int)imp_fit(s, strlen(s), 40), s);
    else snprintf(why, 96, json_is_null(v) ? "the file says null" : "the file holds no number there");
    return NAN;
}

json_t *imp_figure(json_t *row, const char *name, const json_t *v, const char *unit, const char *statistic) {
    char why[96] = "";
    double x = number(v, why);
    json_t *f = json_pack("{s:s, s:o, s:s, s:s*}", "name", name, "number", tl_json_real(x), "unit", unit, "statistic", statistic);
    if (isnan(x)) json_object_set_new(f, "null_reason", json_string(why));
    json_array_append_new(json_object_get(row, "figures"), f);
    return f;
}

void imp_not_zero(json_t *figure) {
    if (tl_json_num(figure, "number", NAN) != 0) return;
    json_object_set_new(figure, "number", json_null());
    json_object_set_new(figure, "null_reason", json_string("the file says 0, this tool's word for nothing"));
}

void imp_samples(json_t *figure, const json_t *n) {
    int64_t i = -1;
    if (json_is_array(n)) i = (int64_t)json_array_size(n);
    else if (json_is_integer(n)) i = json_integer_value(n);
    else tl_parse_i64(json_string_value(n), &i);
    if (i >= 0) json_object_set_new(figure, "n", json_integer(i));
}

void imp_spread(json_t *figure, const char *name, const json_t *v) {
    char why[96];
    double x = v ? number(v, why) : NAN;
    bool one = tl_json_int(figure, "n", 2) < 2; /* of a single sample the deviation is not 0 but unknown */
    if (isfinite(x) && !one) json_object_set_new(figure, "spread", json_pack("{s:s, s:f}", "name", name, "number", x));
}

static void put_figure(json_t *row, const imp_field *f, const char *name, const json_t *v, const json_t *all) {
    json_t *figure = imp_figure(row, name, v, f->unit, f->statistic);
    if (f->never_0) imp_not_zero(figure);
    if (f->n) imp_samples(figure, json_object_get(all, f->n));
    if (f->spread) imp_spread(figure, f->spread, json_object_get(all, f->spread));
}

static void put(json_t *row, const imp_field *f, const char *name, const json_t *v, const json_t *all) {
    const char *as = f->as ? f->as : name;
    switch (f->role) {
    case IMP_AXIS: json_object_set_new(json_object_get(row, "axes"), as, imp_typed(v)); break;
    case IMP_SETTING: /* null is not set */
        if (!json_is_null(v)) json_object_set_new(json_object_get(row, "settings"), as, imp_typed(v));
        break;
    case IMP_MACHINE:
        if (!json_is_null(v) && !tl_str_eq(json_string_value(v), "")) json_object_set(json_object_get(row, "machine"), as, (json_t *)v);
        break;
    case IMP_VERSION: json_object_set(json_object_get(row, "version"), as, (json_t *)v); break;
    case IMP_TIME:
        if (json_is_string(v)) json_object_set(row, "when", (json_t *)v);
        break;
    case IMP_FIGURE: put_figure(row, f, name, v, all); break;
    case IMP_SPREAD: break;
    case IMP_KEEP: imp_keep(json_object_get(row, "fields"), name, v); break;
    }
}

static const imp_field *field_of(const imp_tool *t, const char *name) {
    for (const imp_field *f = t->fields; f->name != NULL; f++)
        if (tl_str_eq(f->name, name)) return f;
    return NULL;
}

void imp_row(imp_rows *out, const imp_record *r, const imp_tool *t) {
    json_t *row = imp_row_new(out, r->line), *v;
    const char *name;
    const imp_field unknown = {.role = t->others};
    imp_guess guess;
    json_object_foreach(r->fields, name, v) {
        const imp_field *f = field_of(t, name);
        if (f == NULL && t->guess && t->guess(&guess, name)) f = &guess.f;
        bool plain = !json_is_array(v) && !json_is_object(v);
        if (f == NULL && !plain) imp_keep(json_object_get(row, "fields"), name, v);
        else put(row, f ? f : &unknown, name, v, r->fields);
    }
}

/* {name: value} of what all rows say alike. */
static json_t *shared(const json_t *rows, const char *group) {
    json_t *first = json_object(), *count = json_object(), *row, *v;
    const char *name;
    size_t i;
    void *next;
    json_array_foreach((json_t *)rows, i, row) json_object_foreach(json_object_get(row, group), name, v) {
        const json_t *before = json_object_get(first, name);
        if (before == NULL) json_object_set(first, name, v);
        if (before == NULL || json_equal(before, v)) json_object_set_new(count, name, json_integer(json_integer_value(json_object_get(count, name)) + 1));
    }
    json_object_foreach_safe(first, next, name, v)
        if (json_integer_value(json_object_get(count, name)) != (json_int_t)json_array_size(rows)) json_object_del(first, name);
    json_decref(count);
    return first;
}

/* One group of all rows: names that differ move to the axes; the others stay, or move to `file` where there is one. */
static void settle(const json_t *rows, const char *group, json_t *file) {
    json_t *same = shared(rows, group), *row, *v;
    const char *name;
    size_t i;
    void *next;
    json_array_foreach((json_t *)rows, i, row) {
        json_t *own = json_object_get(row, group);
        json_object_foreach_safe(own, next, name, v) {
            if (json_object_get(same, name) != NULL) continue;
            json_object_set(json_object_get(row, "axes"), name, v);
            json_object_del(own, name);
        }
        if (file != NULL) json_object_del(row, group);
    }
    if (file != NULL) json_object_update(file, same);
    json_decref(same);
}

void imp_settle(imp_rows *out) {
    size_t i;
    json_t *row;
    settle(out->rows, "settings", NULL);
    settle(out->rows, "machine", out->machine);
    settle(out->rows, "version", out->version);
    json_array_foreach(out->rows, i, row)
        if (out->when == NULL && json_is_string(json_object_get(row, "when"))) out->when = json_incref(json_object_get(row, "when"));
}

/* Tables of cited rows. Numbers stand as the file has them: rounding is the reader's business. */
#include "cli/cited.h"

#include <math.h>

enum { WIDEST = 13, LONGEST = 60 }; /* columns of a table with a line a row; lines of a table with a line a figure */

void tl_cited_text(tl_buf *b, const json_t *v) {
    char num[32];
    if (json_is_string(v)) tl_buf_str(b, json_string_value(v));
    else if (json_is_number(v)) {
        tl_fmt_f64(num, json_number_value(v));
        tl_buf_str(b, num);
    } else {
        char *text = tl_json_canonical(v);
        tl_buf_str(b, text);
        free(text);
    }
}

char *tl_cited_label(const json_t *axes) {
    tl_buf b;
    tl_buf_init(&b, 0);
    const char *name;
    const json_t *model = json_object_get(axes, "model");
    json_t *v;
    if (model) tl_cited_text(&b, model);
    json_object_foreach((json_t *)axes, name, v) {
        if (v == model) continue;
        tl_buf_fmt(&b, "%s%s ", b.len ? ", " : "", name);
        tl_cited_text(&b, v);
    }
    if (b.len == 0) tl_buf_str(&b, "(no condition recorded)");
    return tl_buf_take(&b);
}

static const char *cell_text(tl_arena *a, const json_t *v) {
    tl_buf b;
    tl_buf_init(&b, 0);
    if (v) tl_cited_text(&b, v);
    char *s = tl_arena_strdup(a, b.p);
    tl_buf_free(&b);
    return s;
}

/* `unit`: what stands in the column's head; a figure in another one says so. */
static const char *number_text(tl_arena *a, const json_t *figure, const char *unit) {
    if (figure == NULL) return "";
    const json_t *x = json_object_get(figure, "number"), *sd = tl_json_at(figure, "spread.number");
    const char *own = tl_json_str(figure, "unit", ""), *after = tl_str_eq(own, unit) ? "" : own;
    if (!json_is_number(x)) return "–";
    if (!json_is_number(sd)) return tl_arena_printf(a, "%s%s%s", cell_text(a, x), *after ? " " : "", after);
    return tl_arena_printf(a, "%s ± %s%s%s", cell_text(a, x), cell_text(a, sd), *after ? " " : "", after);
}

/* Each reason for a missing number once. */
static void print_reasons(tl_cli *c, const json_t *rows) {
    json_t *seen = json_object(), *row, *f, *v;
    size_t i, k;
    const char *reason;
    json_array_foreach((json_t *)rows, i, row) json_array_foreach(json_object_get(row, "figures"), k, f)
        if ((reason = tl_json_str(f, "null_reason", NULL)) != NULL) json_object_set_new(seen, reason, json_null());
    json_object_foreach(seen, reason, v) fprintf(c->out, "–: %s\n", reason);
    json_decref(seen);
}

static const json_t *figure_named(const json_t *row, const char *name) {
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(row, "figures"), i, f) if (tl_str_eq(tl_json_str(f, "name", ""), name)) return f;
    return NULL;
}

/* {axis: null, ...} and {figure: unit, ...} of all rows, in the order of their first appearance. Unit "": not always the same. */
static void collect(const json_t *rows, json_t *axes, json_t *figures) {
    size_t i, k;
    json_t *row, *f, *v;
    const char *name;
    json_array_foreach((json_t *)rows, i, row) {
        json_object_foreach(json_object_get(row, "axes"), name, v) json_object_set_new(axes, name, json_null());
        json_array_foreach(json_object_get(row, "figures"), k, f) {
            const char *of = tl_json_str(f, "name", "");
            json_t *unit = json_object_get(f, "unit"), *before = json_object_get(figures, of);
            if (before == NULL) json_object_set(figures, of, unit);
            else if (!json_equal(before, unit)) json_object_set_new(figures, of, json_string(""));
        }
    }
}

static void print_wide(tl_cli *c, const json_t *rows, const json_t *axes, const json_t *figures) {
    size_t n = json_array_size(rows), width = json_object_size(axes) + json_object_size(figures), k = 0, i;
    const char **t = tl_xalloc((n + 1) * width * sizeof *t), *name;
    tl_arena *a = tl_arena_new();
    json_t *unit, *row;
    json_object_foreach((json_t *)axes, name, unit) {
        t[k] = name;
        json_array_foreach((json_t *)rows, i, row) t[(i + 1) * width + k] = cell_text(a, json_object_get(json_object_get(row, "axes"), name));
        k++;
    }
    json_object_foreach((json_t *)figures, name, unit) {
        t[k] = tl_arena_printf(a, "%s %s", name, json_string_value(unit));
        json_array_foreach((json_t *)rows, i, row) t[(i + 1) * width + k] = number_text(a, figure_named(row, name), json_string_value(unit));
        k++;
    }
    tl_cli_table(c, t, n + 1, width);
    tl_arena_free(a);
    free(t);
}

static void print_tall(tl_cli *c, const json_t *row) {
    enum { WIDTH = 4 };
    const json_t *figures = json_object_get(row, "figures");
    size_t all = json_array_size(figures), n = all > LONGEST ? LONGEST : all;
    const char **t = tl_xalloc((n + 1) * WIDTH * sizeof *t);
    tl_arena *a = tl_arena_new();
    char *label = tl_cited_label(json_object_get(row, "axes"));
    t[0] = "figure", t[1] = "", t[2] = "unit", t[3] = "statistic";
    for (size_t i = 0; i < n; i++) {
        const json_t *f = json_array_get(figures, i);
        t[(i + 1) * WIDTH] = tl_json_str(f, "name", "");
        t[(i + 1) * WIDTH + 1] = number_text(a, f, tl_json_str(f, "unit", ""));
        t[(i + 1) * WIDTH + 2] = tl_json_str(f, "unit", "");
        t[(i + 1) * WIDTH + 3] = tl_json_str(f, "statistic", "");
    }
    fprintf(c->out, "%s\n", label);
    tl_cli_table(c, t, n + 1, WIDTH);
    if (all > n) fprintf(c->out, "and %zu more figures (--json lists all)\n", all - n);
    tl_arena_free(a);
    free(label);
    free(t);
}

void tl_cited_print(tl_cli *c, const json_t *rows) {
    json_t *axes = json_object(), *figures = json_object(), *row;
    size_t i;
    collect(rows, axes, figures);
    if (json_object_size(axes) + json_object_size(figures) <= WIDEST) print_wide(c, rows, axes, figures);
    else
        json_array_foreach((json_t *)rows, i, row) {
            if (i) fputc('\n', c->out);
            print_tall(c, row);
        }
    print_reasons(c, rows);
    json_decref(axes);
    json_decref(figures);
}

/* {cell key: [figures in the order in which they were stored]}; values come newest first. */
static json_t *by_cell(const json_t *values) {
    json_t *out = json_object(), *v;
    size_t i;
    json_array_foreach((json_t *)values, i, v) {
        const char *key = tl_json_str(v, "cell", "");
        if (json_object_get(out, key) == NULL) json_object_set_new(out, key, json_array());
        json_t *f = json_pack("{s:O*, s:O*, s:O*, s:O*, s:O*, s:O*}", "name", json_object_get(v, "name"), "number", json_object_get(v, "number"), "unit",
                              json_object_get(v, "unit"), "statistic", json_object_get(v, "statistic"), "null_reason", json_object_get(v, "null_reason"),
                              "spread", tl_json_at(v, "source.spread"));
        json_array_insert_new(json_object_get(out, key), 0, f);
    }
    return out;
}

void tl_cited_show(tl_cli *c, const json_t *show) {
    json_t *rows = json_array(), *figures = by_cell(json_object_get(show, "values")), *cell;
    size_t i;
    json_array_foreach(json_object_get(show, "cells"), i, cell)
        json_array_append_new(rows, json_pack("{s:O, s:O?}", "axes", json_object_get(cell, "axes"), "figures", json_object_get(figures, tl_json_str(cell, "key", ""))));
    tl_cited_print(c, rows);
    json_decref(figures);
    json_decref(rows);
}

/* Reading a figure's description: every member is checked, unknown ones are refused with the nearest name,
 * and the ranges of both axes are found so that nothing that is given is clipped away. */
#include "figure/figure_impl.h"

#include <math.h>

static const char *const KINDS[] = {"points", "line", "band", "bars"};
static const char *const LABELS[] = {"measured", "derived", "official", "cited"};

static tl_status members(const json_t *o, const char *const *names, size_t n, const char *where, tl_err *e) {
    if (!json_is_object(o)) return tl_fail(e, TL_INVALID, "%s is not an object", where);
    const char *k;
    json_t *v;
    json_object_foreach((json_t *)o, k, v) {
        bool known = false;
        for (size_t i = 0; i < n; i++) known |= strcmp(k, names[i]) == 0;
        if (known) continue;
        tl_fail(e, TL_INVALID, "%s has an unknown member '%s'", where, k);
        const char *near = tl_nearest(k, names, n);
        return near ? tl_remedy(e, "did you mean '%s'?", near) : TL_INVALID;
    }
    return TL_OK;
}

/* Text without NUL (jansson keeps valid UTF-8 but lets NUL through). */
static tl_status text(const char **out, const json_t *o, const char *key, bool needed, const char *where,
                      tl_err *e) {
    const json_t *v = json_object_get(o, key);
    *out = NULL;
    if (v == NULL || json_is_null(v)) {
        return needed ? tl_fail(e, TL_INVALID, "%s has no '%s'", where, key) : TL_OK;
    }
    if (!json_is_string(v)) return tl_fail(e, TL_INVALID, "%s: '%s' is not text", where, key);
    if (!tl_utf8_valid(json_string_value(v), json_string_length(v)) || json_string_length(v) > 2000) {
        return tl_fail(e, TL_INVALID, "%s: '%s' holds a zero byte, invalid UTF-8 or more than 2000 bytes",
                       where, key);
    }
    *out = json_string_value(v);
    return needed && **out == 0 ? tl_fail(e, TL_INVALID, "%s: '%s' is empty", where, key) : TL_OK;
}

static tl_status number(double *out, const json_t *o, const char *key, const char *where, tl_err *e) {
    const json_t *v = json_object_get(o, key);
    *out = NAN;
    if (v == NULL || json_is_null(v)) return TL_OK;
    if (!json_is_number(v)) return tl_fail(e, TL_INVALID, "%s: '%s' is not a number", where, key);
    *out = json_number_value(v);
    return TL_OK;
}

static tl_status choice(size_t *out, const char *word, const char *const *names, size_t n, const char *where,
                        tl_err *e) {
    for (size_t i = 0; i < n; i++) {
        if (tl_str_eq(word, names[i])) {
            *out = i;
            return TL_OK;
        }
    }
    tl_fail(e, TL_INVALID, "%s: '%s' is none of the known names", where, word ? word : "(absent)");
    const char *near = word ? tl_nearest(word, names, n) : NULL;
    return tl_remedy(e, "%s '%s'%s", near ? "did you mean" : "the first of them is", near ? near : names[0],
                     near ? "?" : "");
}

static tl_status read_axis(fig_axis *a, const json_t *spec, const char *key, tl_err *e) {
    static const char *const names[] = {"label", "unit", "log", "min", "max", "categories"};
    tl_status st = TL_OK;
    const json_t *o = json_object_get(spec, key);
    char where[64];
    snprintf(where, sizeof where, "axis '%s'", key);
    TRY(members(o, names, TL_COUNT(names), where, e));
    TRY(text(&a->label, o, "label", true, where, e));
    TRY(text(&a->unit, o, "unit", false, where, e));
    TRY(number(&a->min, o, "min", where, e));
    TRY(number(&a->max, o, "max", where, e));
    a->log = tl_json_bool(o, "log", false);
    a->categories = json_object_get(o, "categories");
    if (json_is_null(a->categories)) a->categories = NULL;
    if (a->categories != NULL) {
        if (!json_is_array(a->categories) || json_array_size(a->categories) == 0 ||
            json_array_size(a->categories) > 100) {
            return tl_fail(e, TL_INVALID, "%s: 'categories' is not a list of 1 to 100 names", where);
        }
        size_t i;
        json_t *c;
        json_array_foreach(a->categories, i, c) {
            if (!json_is_string(c) || !tl_utf8_valid(json_string_value(c), json_string_length(c))) {
                return tl_fail(e, TL_INVALID, "%s: category %zu is not plain text", where, i + 1);
            }
        }
    }
    if (a->log && (a->min <= 0 || a->max <= 0)) {
        return tl_fail(e, TL_INVALID, "%s is logarithmic and has a limit that is not above zero", where);
    }
out:
    return st;
}

static tl_status check_point(fig *f, fig_series *s, fig_point *p, const char *where, tl_err *e) {
    if (!isfinite(p->x)) return tl_fail(e, TL_INVALID, "%s has no 'x'", where);
    if (!isfinite(p->ylo) != !isfinite(p->yhi) || !isfinite(p->xlo) != !isfinite(p->xhi)) {
        return tl_fail(e, TL_INVALID, "%s has one end of an interval only", where);
    }
    if (p->ylo > p->yhi || p->xlo > p->xhi)
        return tl_fail(e, TL_INVALID, "%s has an interval that ends before it starts", where);
    if (s->kind != FIG_BAND && (p->y < p->ylo || p->y > p->yhi)) {
        return tl_fail(e, TL_INVALID, "%s lies outside its own interval", where);
    }
    if (s->kind == FIG_BAND && !isfinite(p->ylo))
        return tl_fail(e, TL_INVALID, "%s of a band has no 'ylo' and 'yhi'", where);
    if ((f->x.log && (p->x <= 0 || p->xlo <= 0)) || (f->y.log && (p->y <= 0 || p->yhi <= 0))) {
        return tl_fail(e, TL_INVALID, "%s is not above zero on a logarithmic axis", where);
    }
    if (f->y.log && p->ylo <= 0)
        return tl_fail(e, TL_INVALID, "%s: its interval reaches zero on a logarithmic axis", where);
    if (f->x.categories &&
        (p->x != floor(p->x) || p->x < 0 || p->x >= (double)json_array_size(f->x.categories))) {
        return tl_fail(e, TL_INVALID, "%s: x is not the index of a category", where);
    }
    s->has_y |= isfinite(p->y);
    s->has_yspan |= isfinite(p->ylo);
    s->has_xspan |= isfinite(p->xlo);
    s->has_text |= p->text != NULL && *p->text != 0;
    if (!isfinite(p->y) && !isfinite(p->ylo)) s->missing++;
    return TL_OK;
}

static tl_status read_points(fig *f, fig_series *s, const json_t *list, const char *where, tl_err *e) {
    static const char *const names[] = {"x", "y", "ylo", "yhi", "xlo", "xhi", "text"};
    tl_status st = TL_OK;
    s->n = json_array_size(list);
    if (s->n == 0) return tl_fail(e, TL_INVALID, "%s has no points", where);
    if (s->n > TL_FIGURE_POINTS_MAX)
        return tl_fail(e, TL_LIMIT, "%s has more than %u points", where, TL_FIGURE_POINTS_MAX);
    s->points = tl_xalloc(s->n * sizeof *s->points);
    for (size_t i = 0; i < s->n; i++) {
        const json_t *o = json_array_get(list, i);
        fig_point *p = &s->points[i];
        char w[160];
        snprintf(w, sizeof w, "%s, point %zu", where, i + 1);
        TRY(members(o, names, TL_COUNT(names), w, e));
        TRY(number(&p->x, o, "x", w, e));
        TRY(number(&p->y, o, "y", w, e));
        TRY(number(&p->ylo, o, "ylo", w, e));
        TRY(number(&p->yhi, o, "yhi", w, e));
        TRY(number(&p->xlo, o, "xlo", w, e));
        TRY(number(&p->xhi, o, "xhi", w, e));
        TRY(text(&p->text, o, "text", false, w, e));
        p->side = -1;
        TRY(check_point(f, s, p, w, e));
    }
    if (s->missing == s->n) return tl_fail(e, TL_INVALID, "%s: every value is missing", where);
out:
    return st;
}

static tl_status read_series(fig *f, size_t i, const json_t *o, const char *type, tl_err *e) {
    static const char *const names[] = {"name", "label", "kind", "machine", "points"};
    tl_status st = TL_OK;
    fig_series *s = &f->series[i];
    char where[96];
    snprintf(where, sizeof where, "series %zu", i + 1);
    size_t label, kind;
    const char *word;
    TRY(members(o, names, TL_COUNT(names), where, e));
    TRY(text(&s->name, o, "name", true, where, e));
    TRY(text(&word, o, "label", true, where, e));
    TRY(choice(&label, word, LABELS, TL_COUNT(LABELS), where, e));
    TRY(text(&word, o, "kind", false, where, e));
    bool dots = tl_str_eq(type, "scatter") || tl_str_eq(type, "interval");
    TRY(choice(&kind, word ? word : dots ? "points" : type, KINDS, TL_COUNT(KINDS), where, e));
    s->label = (fig_label)label;
    s->kind = (fig_kind)kind;
    for (size_t j = 0; j < i; j++) s->shape += f->series[j].label == s->label && f->series[j].kind == s->kind;
    if (s->kind == FIG_BARS) f->n_bars++;
    if (s->kind == FIG_BARS && f->y.log) {
        tl_fail(e, TL_INVALID, "%s: bars start at zero, and a logarithmic axis has none", where);
        return tl_remedy(e, "use kind = \"points\", or y without log");
    }
    if (!json_is_array(json_object_get(o, "points")))
        return tl_fail(e, TL_INVALID, "%s has no list 'points'", where);
    TRY(read_points(f, s, json_object_get(o, "points"), where, e));
out:
    return st;
}

static void widen(double *lo, double *hi, double v) {
    if (!isfinite(v)) return;
    if (!(v >= *lo)) *lo = v;
    if (!(v <= *hi)) *hi = v;
}

static void pad(fig_axis *a, bool from_zero) {
    widen(&a->lo, &a->hi, a->min);
    widen(&a->lo, &a->hi, a->max);
    if (a->log) {
        double room = pow(a->hi / a->lo, 0.07);
        if (room < 1.15) room = 1.15;
        if (!(a->min <= a->lo)) a->lo /= room;
        if (!(a->max >= a->hi)) a->hi *= room;
        return;
    }
    if (from_zero && a->lo > 0) a->lo = 0;
    if (from_zero && a->hi < 0) a->hi = 0;
    double span = a->hi - a->lo;
    if (!(span > 0)) span = fabs(a->hi) > 0 ? fabs(a->hi) : 1;
    if (!(a->min <= a->lo) && !(from_zero && a->lo == 0)) a->lo -= span * 0.06;
    if (!(a->max >= a->hi)) a->hi += span * 0.08;
}

static void find_ranges(fig *f) {
    f->x.lo = f->x.hi = f->y.lo = f->y.hi = NAN;
    bool from_zero = true; /* an honest baseline: cut only when the values go below zero */
    for (size_t i = 0; i < f->n_series; i++) {
        const fig_series *s = &f->series[i];
        for (size_t j = 0; j < s->n; j++) {
            const fig_point *p = &s->points[j];
            const double xs[] = {p->x, p->xlo, p->xhi}, ys[] = {p->y, p->ylo, p->yhi};
            for (size_t k = 0; k < 3; k++) widen(&f->x.lo, &f->x.hi, xs[k]), widen(&f->y.lo, &f->y.hi, ys[k]);
        }
    }
    if (f->n_bars > 0 || f->x.categories) {
        f->x.lo -= 0.6;
        f->x.hi += 0.6;
        if (f->x.categories) f->x.lo = -0.6, f->x.hi = (double)json_array_size(f->x.categories) - 0.4;
    } else {
        pad(&f->x, f->x.min == 0);
    }
    pad(&f->y, from_zero);
}

/* Direct labels only where none touches another: few points, boxes of the estimated size on the narrow
 * drawing. */
static void place_labels(fig *f) {
    const double width = 290, height = 230;
    struct {
        double x0, x1, y;
    } box[12];
    size_t n = 0;
    double rise = 0; /* covariance without the means: first point against the rest, in the order given */
    for (size_t i = 0; i < f->n_series; i++) {
        const fig_point *p = f->series[i].points, *q = &p[f->series[i].n - 1];
        if (f->series[i].has_text) rise += (q->x - p->x) * (q->y - p->y);
    }
    f->falling = !(rise > 0);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < f->n_series; i++) {
            for (size_t j = 0; j < f->series[i].n; j++) {
                fig_point *p = &f->series[i].points[j];
                if (p->text == NULL || *p->text == 0 || !isfinite(p->y)) continue;
                if (pass == 1) {
                    p->side = -1;
                    continue;
                }
                double u = f->x.log ? log(p->x / f->x.lo) / log(f->x.hi / f->x.lo)
                                    : (p->x - f->x.lo) / (f->x.hi - f->x.lo);
                double v = f->y.log ? log(p->y / f->y.lo) / log(f->y.hi / f->y.lo)
                                    : (p->y - f->y.lo) / (f->y.hi - f->y.lo);
                double w = tl_utf8_width(p->text) * 7.5 + 12;
                p->side = u * width + w > width;
                if (n == TL_COUNT(box) || (p->side && u * width < w)) goto collide;
                box[n].x0 = p->side ? u * width - w : u * width;
                box[n].x1 = box[n].x0 + w;
                box[n].y = v * height;
                for (size_t k = 0; k < n; k++) {
                    if (fabs(box[k].y - box[n].y) < 17 && box[k].x0 < box[n].x1 && box[n].x0 < box[k].x1)
                        goto collide;
                }
                n++;
            }
        }
        return;
    collide:;
    }
}

tl_status fig_read(fig *f, const json_t *spec, tl_err *e) {
    static const char *const names[] = {"id", "type", "title", "alt", "lang", "x", "y", "series"};
    static const char *const types[] = {"scatter", "line", "band", "bars", "interval"};
    static const char *const langs[] = {"en", "zh-Hant", "zh-Hans"};
    tl_status st = TL_OK;
    const char *type = NULL;
    size_t unused;
    TRY(members(spec, names, TL_COUNT(names), "the figure", e));
    TRY(text(&f->id, spec, "id", true, "the figure", e));
    if (strlen(f->id) > 64 || f->id[0] < 'a' || f->id[0] > 'z' ||
        f->id[strspn(f->id, "abcdefghijklmnopqrstuvwxyz0123456789-")] != 0) {
        tl_fail(e, TL_INVALID, "the figure's id '%.80s' is not a name", f->id);
        return tl_remedy(e, "small letters, digits and '-', a letter first, at most 64");
    }
    TRY(text(&type, spec, "type", true, "the figure", e));
    TRY(choice(&unused, type, types, TL_COUNT(types), "the figure's type", e));
    TRY(text(&f->title, spec, "title", false, "the figure", e));
    TRY(text(&f->alt, spec, "alt", true, "the figure", e));
    TRY(text(&f->lang, spec, "lang", false, "the figure", e));
    if (f->lang == NULL) f->lang = "en";
    TRY(choice(&unused, f->lang, langs, TL_COUNT(langs), "the figure's lang", e));
    TRY(read_axis(&f->x, spec, "x", e));
    TRY(read_axis(&f->y, spec, "y", e));
    const json_t *list = json_object_get(spec, "series");
    size_t n = json_array_size(list);
    if (n == 0) return tl_fail(e, TL_INVALID, "the figure has no series");
    if (n > TL_FIGURE_SERIES_MAX)
        return tl_fail(e, TL_LIMIT, "the figure has more than %u series", TL_FIGURE_SERIES_MAX);
    f->series = tl_xalloc(n * sizeof *f->series);
    f->n_series = n;
    for (size_t i = 0; i < n; i++) TRY(read_series(f, i, json_array_get(list, i), type, e));
    if (f->n_bars > 0 && f->x.log)
        return tl_fail(e, TL_INVALID, "bars on a logarithmic x axis have no width");
    find_ranges(f);
    place_labels(f);
out:
    return st;
}

void fig_free(fig *f) {
    for (size_t i = 0; i < f->n_series; i++) free(f->series[i].points);
    free(f->series);
    memset(f, 0, sizeof *f);
}

tl_status tl_figure_check(const json_t *spec, tl_err *e) {
    fig f = {0};
    tl_status st = fig_read(&f, spec, e);
    if (st != TL_OK) tl_wrap(e, "figure '%s'", tl_json_str(spec, "id", "?"));
    fig_free(&f);
    return st;
}

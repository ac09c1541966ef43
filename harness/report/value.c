/* Values: asking the source once for each expression, checking that they carry what their label owes, and
 * writing them. */
#include "report/report_impl.h"

#include <math.h>

#include "value/value.h"

rep_label rep_value_label(const json_t *v) {
    return rep_label_of(tl_json_str(v, "label", NULL));
}

static bool filled(const json_t *v, const char *path) {
    return tl_json_str(v, path, "")[0] != 0;
}

static void check(rep *r, const json_t *v, size_t from, const char *what, int depth) {
    rep_label l = rep_value_label(v);
    const char *why = NULL;
    if (!json_is_object(v))
        why = "it is not an object";
    else if (depth > 32)
        why = "its formula is nested more than 32 deep";
    else if (!json_is_number(json_object_get(v, "value")) && !filled(v, "null_reason"))
        why = "it has no number";
    else if (l == REP_NONE)
        why = "its label is none of measured, derived, official, cited";
    else if (!json_is_string(json_object_get(v, "unit")))
        why = "it has no unit (\"\" for a pure number)";
    else if (l == REP_MEASURED && !filled(v, "run") && !filled(v, "source.run") && !filled(v, "source.probe"))
        why = "it is measured, but names no run and no probe";
    else if (l == REP_DERIVED &&
             (!filled(v, "formula") || json_array_size(json_object_get(v, "inputs")) == 0))
        why = "it is derived, but has no formula or no inputs";
    else if (l == REP_OFFICIAL && (!filled(v, "source.title") || !filled(v, "source.url")))
        why = "it is official, but has no source with title and url";
    else if (l == REP_CITED && !filled(v, "source.url") &&
             !(filled(v, "source.who") && filled(v, "source.where")))
        why = "it is cited, but its source has no url, or who and where";
    if (why == NULL && filled(v, "source.url")) {
        const char *url = tl_json_str(v, "source.url", "");
        if (!tl_str_starts(url, "https://") && !tl_str_starts(url, "http://"))
            why = "its source's url is not http(s)";
    }
    if (why != NULL) {
        rep_problem_add(r, from, NULL, "%s cannot be printed: %s", what, why);
        return;
    }
    size_t i;
    json_t *in;
    json_array_foreach(json_object_get(v, "inputs"), i, in) {
        char name[160];
        snprintf(name, sizeof name, "input '%.80s' of %.60s", tl_json_str(in, "name", "?"), what);
        check(r, in, from, name, depth + 1);
    }
}

void rep_value_check(rep *r, const json_t *v, size_t from, const char *what) {
    check(r, v, from, what, 0);
}

static int decimals_of(double x, int significant) {
    if (x == 0 || !isfinite(x)) return 0;
    int d = significant - 1 - (int)floor(log10(fabs(x)));
    return d < 0 ? 0 : d > 12 ? 12 : d;
}

static void fixed(tl_buf *b, double x, int decimals) {
    double a = fabs(x);
    if (a >= 1e15 || (a > 0 && a < 1e-6))
        tl_buf_fmt(b, "%.4g", x);
    else
        tl_buf_fmt(b, "%.*f", decimals, x);
}

/* Four digits without the zeros at the end, which would claim more than is known. */
static void trimmed(tl_buf *b, double x) {
    size_t start = b->len;
    fixed(b, x, decimals_of(x, 4));
    if (strchr(b->p + start, '.') == NULL || strchr(b->p + start, 'e') != NULL) return;
    while (b->p[b->len - 1] == '0') b->p[--b->len] = 0;
    if (b->p[b->len - 1] == '.') b->p[--b->len] = 0;
}

/* Digits: what the interval justifies (two when its first digit is 1, else one), else four. */
void rep_number(tl_buf *b, const json_t *v) {
    double x = tl_json_num(v, "value", NAN), lo = tl_json_num(v, "lo", NAN), hi = tl_json_num(v, "hi", NAN);
    const char *text = tl_json_str(v, "text", NULL);
    if (!isfinite(x)) {
        tl_buf_str(b, "–");
        return;
    }
    if (!isfinite(lo) || !isfinite(hi) || !(hi > lo)) {
        if (text)
            tl_buf_str(b, text);
        else if (x == floor(x) && fabs(x) < 1e15)
            tl_buf_fmt(b, "%.0f", x);
        else
            trimmed(b, x);
        return;
    }
    double half = (hi - lo) / 2, lead = half / pow(10, floor(log10(half)));
    int d = decimals_of(half, lead < 2 ? 2 : 1);
    if (text)
        tl_buf_str(b, text);
    else
        fixed(b, x, d);
    if (fabs((hi - x) - (x - lo)) <= 0.2 * half) {
        tl_buf_str(b, " ± ");
        fixed(b, half, d);
    } else {
        tl_buf_str(b, " (");
        fixed(b, lo, d);
        tl_buf_str(b, "–");
        fixed(b, hi, d);
        tl_buf_str(b, ")");
    }
}

/* The same quantity in the unit in which its number stands between 1 and 1000: 0.0018 s is 1.8 ms. A text
 * that the source wrote, and a unit that the value module does not know, stay as they are. New reference. */
static json_t *scaled(const json_t *v, char unit[TL_UNIT_TEXT]) {
    tl_unit from, to;
    tl_unit_ratio ratio;
    const char *keys[] = {"value", "lo", "hi"};
    double x = tl_json_num(v, "value", NAN);
    json_t *out = json_copy((json_t *)v);
    snprintf(unit, TL_UNIT_TEXT, "%s", tl_json_str(v, "unit", ""));
    if (!isfinite(x) || json_object_get(v, "text") || tl_unit_parse(&from, unit, NULL) != TL_OK) return out;
    to = tl_unit_display(&from, x);
    if (tl_unit_equal(&from, &to) || tl_unit_match(&ratio, &from, &to, NULL) != TL_OK) return out;
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        double y = tl_json_num(v, keys[i], NAN);
        if (isfinite(y)) json_object_set_new(out, keys[i], json_real(tl_unit_apply(ratio, y)));
    }
    tl_unit_print(unit, &to);
    return out;
}

void rep_quantity(tl_buf *b, const json_t *v) {
    char u[TL_UNIT_TEXT];
    json_t *shown = scaled(v, u);
    rep_number(b, shown);
    json_decref(shown);
    if (*u == 0 || strcmp(u, "1") == 0) return;
    tl_buf_fmt(b, "%s%s", strcmp(u, "%") == 0 || strcmp(u, "×") == 0 || strcmp(u, "倍") == 0 ? "" : " ", u);
}

void rep_md(tl_buf *b, const char *s) {
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == 0x7f)
            tl_buf_char(b, ' ');
        else if (strchr("\\`*_[]<>|~&#", *s))
            tl_buf_char(b, '\\'), tl_buf_char(b, *s);
        else
            tl_buf_char(b, *s);
    }
}

void rep_chip_html(tl_buf *b, const rep *r, rep_label l, size_t note) {
    static const char css[REP_LABELS][2] = {"m", "d", "o", "c"};
    if (l == REP_NONE) return;
    if (note)
        tl_buf_fmt(b, "<a class=\"chip %s\" href=\"#v-%zu\">%s</a>", css[l], note, r->w->label[l]);
    else
        tl_buf_fmt(b, "<span class=\"chip %s\">%s</span>", css[l], r->w->label[l]);
}

void rep_value_html(tl_buf *b, const rep *r, const json_t *v, size_t note) {
    tl_buf t;
    tl_buf_init(&t, 0);
    rep_quantity(&t, v);
    tl_buf_str(b, "<span class=\"v\">");
    tl_buf_html(b, t.p);
    rep_chip_html(b, r, rep_value_label(v), note);
    if (note && tl_json_str(v, "stale", "")[0]) {
        tl_buf_fmt(b, "<span class=\"stale\" title=\"%s%s", r->w->stale, r->w->colon);
        tl_buf_html(b, tl_json_str(v, "stale", ""));
        tl_buf_str(b, "\">●</span>");
    }
    tl_buf_str(b, "</span>");
    tl_buf_free(&t);
}

void rep_value_text(tl_buf *b, const rep *r, const rep_value *v) {
    tl_buf t;
    tl_buf_init(&t, 0);
    rep_quantity(&t, v->json);
    rep_md(b, t.p);
    tl_buf_free(&t);
    rep_label l = rep_value_label(v->json);
    if (l != REP_NONE) tl_buf_fmt(b, "%s%s%s[^tally-%zu]", r->w->open, r->w->label[l], r->w->close, v->note);
}

/* The facts of a source in the order in which they are said; NULL entries are absent. */
static size_t facts(const json_t *v, const char *out[12]) {
    const char *run = tl_json_str(v, "source.run", tl_json_str(v, "run", NULL));
    const char *all[] = {run,
                         tl_json_str(v, "source.probe", NULL),
                         tl_json_str(v, "source.machine", NULL),
                         tl_json_str(v, "source.revision", NULL),
                         tl_json_str(v, "source.who", NULL),
                         tl_json_str(v, "source.where", NULL),
                         tl_json_str(v, "source.when", NULL),
                         tl_json_str(v, "source.conditions", NULL),
                         tl_json_str(v, "source.note", NULL)};
    size_t n = 0;
    for (size_t i = 0; i < TL_COUNT(all); i++) {
        if (all[i] && *all[i]) out[n++] = all[i];
    }
    return n;
}

/* What a formula calls it. Without back quotes: it is printed as code in Markdown. */
static const char *name_of(const json_t *v) {
    const char *role = tl_json_str(v, "role", ""), *name = tl_json_str(v, "name", "");
    const char *s = *role ? role : name;
    return strpbrk(s, "`\n\r") ? "?" : s;
}

static void add_url(tl_buf *b, const char *s) {
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c <= 0x20 || strchr("<>\\`|", *s))
            tl_buf_fmt(b, "%%%02X", c); /* they would end the link */
        else
            tl_buf_char(b, *s);
    }
}

void rep_source_text(tl_buf *b, const rep *r, const json_t *v, int depth) {
    const char *f[12], *url = tl_json_str(v, "source.url", NULL),
                       *title = tl_json_str(v, "source.title", NULL);
    size_t n = facts(v, f), i;
    bool any = false;
    if (tl_json_str(v, "formula", NULL)) {
        if (name_of(v)[0]) tl_buf_fmt(b, "`%s` = ", name_of(v));
        rep_md_code(b, tl_json_str(v, "formula", ""));
        any = true;
    }
    if (title) {
        tl_buf_str(b, any ? r->w->sep : "");
        if (url) tl_buf_str(b, "[");
        rep_md(b, title);
        if (url) tl_buf_str(b, "](<"), add_url(b, url), tl_buf_str(b, ">)");
        any = true;
    }
    if (tl_json_str(v, "source.retrieved", NULL)) {
        tl_buf_fmt(b, "%s%s ", any ? r->w->sep : "", r->w->retrieved);
        rep_md(b, tl_json_str(v, "source.retrieved", ""));
        any = true;
    }
    for (i = 0; i < n; i++) {
        tl_buf_str(b, any ? " · " : "");
        if (i == 0 && tl_json_str(v, "source.run", tl_json_str(v, "run", NULL))) tl_buf_str(b, "run ");
        rep_md(b, f[i]);
        any = true;
    }
    json_t *in;
    json_array_foreach(json_object_get(v, "inputs"), i, in) {
        tl_buf_fmt(b, "%s`%s` = ", r->w->sep, name_of(in));
        tl_buf t;
        tl_buf_init(&t, 0);
        rep_quantity(&t, in);
        rep_md(b, t.p);
        tl_buf_free(&t);
        rep_label l = rep_value_label(in);
        if (l != REP_NONE) tl_buf_fmt(b, "%s%s%s", r->w->open, r->w->label[l], r->w->close);
        tl_buf_str(b, " ");
        if (depth < 4) rep_source_text(b, r, in, depth + 1);
    }
}

void rep_source_html(tl_buf *b, const rep *r, const json_t *v) {
    const char *f[12], *url = tl_json_str(v, "source.url", ""), *title = tl_json_str(v, "source.title", NULL);
    size_t n = facts(v, f);
    bool link = tl_str_starts(url, "https://") || tl_str_starts(url, "http://");
    if (title) {
        tl_buf_str(b, " ");
        if (link) tl_buf_str(b, "<a href=\""), tl_buf_html(b, url), tl_buf_str(b, "\">");
        tl_buf_html(b, title);
        if (link) tl_buf_str(b, "</a>");
    }
    if (tl_json_str(v, "source.retrieved", NULL)) {
        tl_buf_fmt(b, " (%s ", r->w->retrieved);
        tl_buf_html(b, tl_json_str(v, "source.retrieved", ""));
        tl_buf_str(b, ")");
    }
    for (size_t i = 0; i < n; i++) {
        tl_buf_str(b, i == 0 && !title ? " " : " · ");
        if (i == 0 && tl_json_str(v, "source.run", tl_json_str(v, "run", NULL))) tl_buf_str(b, "run ");
        tl_buf_html(b, f[i]);
    }
}

void rep_tree_html(tl_buf *b, const rep *r, const json_t *v, int depth) {
    const char *name = name_of(v), *formula = tl_json_str(v, "formula", NULL);
    tl_buf t;
    tl_buf_init(&t, 0);
    rep_quantity(&t, v);
    tl_buf_str(b, "<li>");
    if (*name) tl_buf_html(b, name), tl_buf_str(b, " = ");
    if (formula) tl_buf_html(b, formula), tl_buf_str(b, " = ");
    tl_buf_str(b, depth == 0 ? "<b class=\"v\">" : "<span class=\"v\">");
    tl_buf_html(b, t.p);
    rep_chip_html(b, r, rep_value_label(v), 0);
    tl_buf_str(b, depth == 0 ? "</b>" : "</span>");
    rep_source_html(b, r, v);
    tl_buf_free(&t);
    size_t i;
    json_t *in, *list = json_object_get(v, "inputs");
    if (json_array_size(list) > 0 && depth < 32) {
        tl_buf_str(b, "\n<ul>");
        json_array_foreach(list, i, in) rep_tree_html(b, r, in, depth + 1);
        tl_buf_str(b, "</ul>");
    }
    tl_buf_str(b, "</li>");
}

void rep_tree_text(tl_buf *b, const rep *r, const json_t *v, int depth) {
    tl_buf t;
    tl_buf_init(&t, 0);
    rep_quantity(&t, v);
    tl_buf_fmt(b, "%*s- ", depth * 2, "");
    if (name_of(v)[0]) tl_buf_fmt(b, "`%s` = ", name_of(v));
    if (tl_json_str(v, "formula", NULL)) rep_md_code(b, tl_json_str(v, "formula", "")), tl_buf_str(b, " = ");
    rep_md(b, t.p);
    rep_label l = rep_value_label(v);
    if (l != REP_NONE) tl_buf_fmt(b, "%s%s%s", r->w->open, r->w->label[l], r->w->close);
    if (l != REP_DERIVED) {
        json_t *leaf = json_copy((json_t *)v);
        json_object_del(leaf, "inputs");
        json_object_del(leaf, "formula");
        tl_buf_str(b, " ");
        rep_source_text(b, r, leaf, 9);
        json_decref(leaf);
    }
    tl_buf_str(b, "\n");
    tl_buf_free(&t);
    size_t i;
    json_t *in;
    if (depth < 32)
        json_array_foreach(json_object_get(v, "inputs"), i, in) rep_tree_text(b, r, in, depth + 1);
}

/* A bare number borrows unit and label from its column's header: the header must really say them. */
static void check_bare(rep *r, const rep_span *s, const json_t *v) {
    const char *unit = tl_json_str(v, "unit", "");
    rep_label want = rep_value_label(v), have = REP_NONE;
    size_t n;
    bool unit_seen = *unit == 0 || strcmp(unit, "1") == 0 || (s->header && strstr(s->header, unit) != NULL);
    if (!s->in_table || !unit_seen) {
        rep_problem_add(r, s->from, "use `= ...` here, or put the unit into the column's header",
                        "`~ %.80s` prints a bare number, and no table header gives its unit '%s'", s->expr,
                        unit);
    }
    for (const char *p = s->header; p && *p && have == REP_NONE; p++) have = rep_label_at(p, &n);
    if (s->in_table && want != REP_NONE && have != want && unit_seen) {
        rep_problem_add(r, s->from, "write the right label into the column's header, or use `= ...`",
                        "`~ %.80s` is %s, but its column's header says %s", s->expr, rep_label_names[want],
                        have == REP_NONE ? "nothing about that" : rep_label_names[have]);
    }
}

size_t rep_ask_value(rep *r, const char *expr, size_t from, bool noted) {
    for (size_t i = 0; i < r->n_values; i++) {
        if (strcmp(r->values[i].expr, expr) != 0) continue;
        if (noted && r->values[i].note == 0 && r->values[i].json) r->values[i].note = ++r->n_notes;
        return i;
    }
    tl_err e = {0};
    tl_report_pos pos = {.file = r->spec->path};
    rep_position(r, from, &pos.line, &pos.column);
    json_t *v = NULL;
    tl_status st = r->source->value(&v, r->source->ctx, expr, &pos, &e);
    if (st != TL_OK || v == NULL) {
        rep_problem_add(r, from, e.remedy, "`%.80s`: %s", expr,
                        e.msg[0] ? e.msg : "the source has no such value");
        json_decref(v);
        v = NULL;
    } else {
        char *what = tl_xprintf("`%.80s`", expr);
        rep_value_check(r, v, from, what);
        free(what);
    }
    TL_PUSH(r->values, r->n_values, r->cap_values,
            ((rep_value){.expr = tl_xstrdup(expr), .json = v, .from = from}));
    if (noted && v != NULL) r->values[r->n_values - 1].note = ++r->n_notes;
    return r->n_values - 1;
}

void rep_ask_values(rep *r) {
    for (size_t i = 0; i < r->n_spans; i++) {
        rep_span *s = &r->spans[i];
        if (s->kind != SPAN_VALUE && s->kind != SPAN_BARE) continue;
        s->item = rep_ask_value(r, s->expr, s->from, s->kind == SPAN_VALUE);
        rep_value *v = &r->values[s->item];
        if (s->kind == SPAN_BARE && v->json != NULL) check_bare(r, s, v->json);
    }
}

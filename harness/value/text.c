/* Values for people. The interval decides how many digits are worth printing; a number without one gets
 * three. */
#include "value/value_impl.h"

#include <math.h>

/* Position of the first digit: 0 for 1 to 9.99, 1 for tens, -1 for tenths. */
static int magnitude(double x) {
    char s[32];
    snprintf(s, sizeof s, "%.0e", x); /* rounds as the printed number will */
    const char *at = strchr(s, 'e');
    int64_t m = 0;
    if (at != NULL) tl_parse_i64(at + 1 + (at[1] == '+'), &m);
    return (int)m;
}

/* Decimals for x: down to the first uncertain digit (one more where that is a 1), within 2 to 6 significant
 * digits. */
static int decimals(double x, double lo, double hi) {
    int first = x == 0 ? 0 : magnitude(fabs(x)), want = 2 - first;
    double half = (hi - lo) / 2;
    if (half > 0) {
        int m = magnitude(half);
        want = -m;
        if (half / pow(10, m) < 1.95) want++;
        if (want > 5 - first) want = 5 - first;
        if (want < 1 - first) want = 1 - first;
    } else if (hi == lo) {
        want = 5 - first; /* exact */
    } else {
        char s[32];
        snprintf(s, sizeof s, "%.2e", x); /* 9.996 has its first digit at the tens once it is rounded */
        const char *at = strchr(s, 'e');
        int64_t k = first;
        if (at != NULL) tl_parse_i64(at + 1 + (at[1] == '+'), &k);
        want = 2 - (int)k;
    }
    return want < 0 ? 0 : want > 15 ? 15 : want;
}

static void format(char out[48], double x, double lo, double hi) {
    if (fabs(x) >= 1e15 || (x != 0 && fabs(x) < 1e-9)) {
        snprintf(out, 48, "%.3g", x);
        return;
    }
    int d = decimals(x, lo, hi);
    snprintf(out, 48, "%.*f", d, x);
    if (hi == lo && d > 0) { /* an exact number needs no zeros */
        size_t n = strlen(out);
        while (n > 0 && out[n - 1] == '0') out[--n] = 0;
        if (n > 0 && out[n - 1] == '.') out[n - 1] = 0;
    }
}

/* A whole number without interval is printed as it is: 4096 tokens, not 4.10e3. */
static void number_text(char out[48], double x, double lo, double hi) {
    if (isnan(lo) && x == floor(x) && fabs(x) < 1e6)
        snprintf(out, 48, "%.0f", x);
    else
        format(out, x, lo, hi);
}

void tl_value_number_text(char out[48], tl_value *v) {
    if (v->null_reason != NULL)
        snprintf(out, 48, "–");
    else
        number_text(out, v->number, v->lo, v->hi);
}

typedef struct shown {
    char number[48], lo[48], hi[48], unit[TL_UNIT_TEXT];
} shown;

static void show(shown *s, tl_value *v) {
    tl_unit u = v->unit;
    double size = fabs(v->number);
    memset(s, 0, sizeof *s);
    if (v->null_reason == NULL && size != 0 && (size < 0.001 || size >= 100000))
        u = tl_unit_display(&u, v->number);
    tl_unit_print(s->unit, &u);
    if (v->null_reason != NULL) {
        snprintf(s->number, sizeof s->number, "–");
        return;
    }
    tl_unit_ratio r = {1, 1};
    if (tl_unit_convert(&r, &v->unit, &u, NULL) != TL_OK) r = (tl_unit_ratio){1, 1};
    double x = tl_unit_apply(r, v->number), lo = tl_unit_apply(r, v->lo), hi = tl_unit_apply(r, v->hi);
    number_text(s->number, x, lo, hi);
    if (isnan(lo)) return;
    int d = decimals(x, lo, hi);
    snprintf(s->lo, sizeof s->lo, "%.*f", d, lo);
    snprintf(s->hi, sizeof s->hi, "%.*f", d, hi);
}

static void put_text(tl_buf *b, const shown *s, tl_value *v, tl_lang lang) {
    tl_buf_str(b, s->number);
    if (strcmp(s->unit, "%") == 0)
        tl_buf_str(b, " %");
    else if (strcmp(s->unit, "1") != 0)
        tl_buf_fmt(b, " %s", s->unit);
    tl_buf_fmt(b, " %s", tl_label_mark(v->label, lang));
}

void tl_value_text(tl_buf *b, tl_value *v, tl_lang lang) {
    shown s;
    show(&s, v);
    put_text(b, &s, v, lang);
}

/* ---- explain
 * ----------------------------------------------------------------------------------------------------- */

typedef enum word { W_FORMULA, W_INTERVAL, W_SOURCE, W_NOTE, W_RESTS, W_UNDEFINED, WORDS } word;
static const char *const words[WORDS][TL_LANGS] = {
    [W_FORMULA] = {"公式", "公式", "formula"}, [W_INTERVAL] = {"區間", "区间", "interval"},
    [W_SOURCE] = {"來源", "来源", "source"},   [W_NOTE] = {"說明", "说明", "note"},
    [W_RESTS] = {"依據", "依据", "rests on"},  [W_UNDEFINED] = {"無法定義", "无法定义", "undefined"},
};

static void put_source(tl_buf *b, const json_t *source) {
    static const char *const order[] = {"title",     "who",        "where",   "url",      "when",
                                        "retrieved", "conditions", "run",     "probe",    "cell",
                                        "statistic", "n",          "machine", "revision", "note"};
    size_t k = 0;
    for (size_t i = 0; i < TL_COUNT(order); i++) {
        const json_t *v = json_object_get(source, order[i]);
        if (json_is_string(v)) tl_buf_fmt(b, "%s%s %s", k++ ? ", " : "", order[i], json_string_value(v));
        if (json_is_integer(v))
            tl_buf_fmt(b, "%s%s %" PRId64, k++ ? ", " : "", order[i], (int64_t)json_integer_value(v));
    }
}

/* What belongs to a formula: where it holds, and who published it. */
static void put_note(tl_buf *b, const json_t *source) {
    const char *parts[] = {tl_json_str(source, "note", NULL), tl_json_str(source, "reference.title", NULL),
                           tl_json_str(source, "reference.url", NULL)};
    size_t k = 0;
    for (size_t i = 0; i < TL_COUNT(parts); i++)
        if (parts[i] != NULL) tl_buf_fmt(b, "%s%s", k++ ? "; " : "", parts[i]);
}

typedef struct telling {
    tl_buf *b;
    tl_lang lang;
    tl_buf stem; /* what stands before each line of the present node */
} telling;

static void line(telling *t, bool has_inputs, word w, const char *text) {
    if (text == NULL || *text == 0) return;
    tl_buf_fmt(t->b, "%s%s %s%s%s\n", t->stem.p, has_inputs ? "│ " : " ", words[w][t->lang],
               t->lang == TL_LANG_EN ? ": " : "：", text);
}

/* Everything about a value but its inputs: the lines below its own. */
static void tell_facts(telling *t, tl_value *v, const shown *s) {
    bool derived = v->inputs_n > 0;
    tl_buf about;
    tl_buf_init(&about, 0);
    line(t, derived, W_UNDEFINED, v->null_reason);
    line(t, derived, W_FORMULA, v->formula);
    if (s->lo[0])
        tl_buf_fmt(&about, "%s – %s%s%s", s->lo, s->hi, strcmp(s->unit, "1") == 0 ? "" : " ",
                   strcmp(s->unit, "1") == 0 ? "" : s->unit);
    line(t, derived, W_INTERVAL, about.p);
    tl_buf_clear(&about);
    if (derived)
        put_note(&about, v->source);
    else
        put_source(&about, v->source);
    line(t, derived, derived ? W_NOTE : W_SOURCE, about.p);
    tl_buf_clear(&about);
    for (unsigned l = 0; l < TL_LABELS && derived; l++)
        if (v->leaf_labels & (1u << l)) tl_buf_str(&about, tl_label_mark((tl_label)l, t->lang));
    line(t, derived, W_RESTS, about.p);
    tl_buf_free(&about);
}

static void tell_head(telling *t, tl_value *v, const char *role, const shown *s) {
    const char *name = v->name[0] ? v->name : v->symbol;
    if (role == NULL)
        tl_buf_str(t->b, name);
    else if (name[0] && strcmp(name, role) != 0)
        tl_buf_fmt(t->b, "%s (%s)", role, name);
    else
        tl_buf_str(t->b, role);
    if (role != NULL || name[0]) tl_buf_str(t->b, " = ");
    put_text(t->b, s, v, t->lang);
    tl_buf_char(t->b, '\n');
}

static void tell(telling *t, tl_value *v, const char *role) {
    shown s;
    show(&s, v);
    tell_head(t, v, role, &s);
    tell_facts(t, v, &s);
    for (size_t i = 0; i < v->inputs_n; i++) {
        bool last = i + 1 == v->inputs_n;
        size_t stem = t->stem.len;
        tl_buf_fmt(t->b, "%s%s ", t->stem.p, last ? "└─" : "├─");
        tl_buf_str(&t->stem, last ? "   " : "│  ");
        tell(t, v->inputs[i].value, v->inputs[i].role);
        t->stem.len = stem;
        t->stem.p[stem] = 0;
    }
}

void tl_value_explain(tl_buf *b, tl_value *v, tl_lang lang) {
    telling t = {.b = b, .lang = lang};
    tl_buf_init(&t.stem, 0);
    tell(&t, v, NULL);
    tl_buf_free(&t.stem);
}

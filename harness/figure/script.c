/* The gnuplot script and its data. The script is made of constants, numbers written by tl_fmt_f64, and texts
 * that went through quote(): single quotes are the only place where gnuplot substitutes nothing, as long as
 * no line ends inside. The data has tabs between columns, NaN for what is missing, and one index (two empty
 * lines) a series. */
#include "figure/figure_impl.h"

#include <math.h>

/* Colours that stay apart in the three common kinds of colour blindness and in grey; by label, then by shade.
 */
static const char *const COLOR[4][4] = {
    {"#0b7a75", "#2f5fb3", "#7a4f9a", "#3d6b1f"},
    {"#b36b00", "#8a4b2d", "#c0392b", "#6b6b00"},
    {"#1f4f8f", "#0f6f8f", "#4b3f9f", "#2f2f5f"},
    {"#6d4a8c", "#9c3f6f", "#5c5c8c", "#7c4a4a"},
};
static const int FILLED[4] = {7, 5, 9, 13}, HOLLOW[4] = {6, 4, 8, 12};

typedef struct canvas {
    const char *terminal; /* up to the font, printf form with the font's name */
    const char *suffix;
    bool narrow;
    double scale;
} canvas;

static void quote(tl_buf *b, const char *s) {
    tl_buf_char(b, '\'');
    for (const char *p = s; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '\'')
            tl_buf_str(b, "’"); /* doubled, gnuplot 5.4 still ends a string that begins with one */
        else
            tl_buf_char(b, c < 0x20 || c == 0x7f ? ' ' : *p);
    }
    tl_buf_char(b, '\'');
}

static void num(tl_buf *b, double x) {
    char t[32];
    tl_fmt_f64(t, x);
    tl_buf_str(b, isfinite(x) ? t : "NaN");
}

/* A column of text in the data file: no tab, no line end, nothing that gnuplot reads as a comment or a quote.
 */
static void cell(tl_buf *b, const char *s) {
    if (s == NULL || *s == 0) s = "-";
    for (const char *p = s; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"')
            tl_buf_str(b, "”");
        else if (c == '#')
            tl_buf_str(b, "＃");
        else if (c == '\\')
            tl_buf_str(b, "＼");
        else
            tl_buf_char(b, c < 0x20 || c == 0x7f ? ' ' : *p);
    }
}

void fig_data(tl_buf *b, const fig *f) {
    tl_buf_fmt(b, "# %s: x\ty\tylo\tyhi\txlo\txhi\ttext\tside\tclass\n", f->id);
    for (size_t i = 0; i < f->n_series; i++) {
        const fig_series *s = &f->series[i];
        if (i > 0) tl_buf_str(b, "\n\n");
        tl_buf_str(b, "# ");
        cell(b, s->name);
        tl_buf_str(b, "\n");
        for (size_t j = 0; j < s->n; j++) {
            const fig_point *p = &s->points[j];
            bool span = isfinite(p->ylo), xspan = isfinite(p->xlo);
            num(b, p->x), tl_buf_char(b, '\t');
            num(b, p->y), tl_buf_char(b, '\t');
            num(b, span ? p->ylo : p->y), tl_buf_char(b, '\t');
            num(b, span ? p->yhi : p->y), tl_buf_char(b, '\t');
            num(b, xspan ? p->xlo : p->x), tl_buf_char(b, '\t');
            num(b, xspan ? p->xhi : p->x), tl_buf_char(b, '\t');
            cell(b, p->text);
            tl_buf_fmt(b, "\t%d\n", p->side);
        }
    }
}

/* 1-2-5 steps on a logarithmic axis; thinner when there would be too many. False: gnuplot's own. */
static bool log_tics(tl_buf *b, const fig_axis *a, const char *name, bool narrow) {
    double first = floor(log10(a->lo)), last = ceil(log10(a->hi));
    size_t count = 0, limit = narrow ? 6 : 9;
    tl_buf list;
    tl_buf_init(&list, 0);
    const int steps[3][3] = {{1, 2, 5}, {1, 3, 0}, {1, 0, 0}};
    for (size_t set = 0; set < 3; set++) {
        tl_buf_clear(&list);
        count = 0;
        for (double d = first; d <= last && count < 40; d++) {
            for (size_t k = 0; k < 3; k++) {
                double v = steps[set][k] * pow(10, d);
                char t[32];
                snprintf(t, sizeof t, "%.6g", v);
                if (v < a->lo * 0.9999 || v > a->hi * 1.0001) continue;
                tl_buf_fmt(&list, "%s'%s' %.6g", count++ ? ", " : "", t, v);
            }
        }
        if (count <= limit) break;
    }
    if (count >= 2 && count <= limit)
        tl_buf_fmt(b, "set %stics (%s)\n", name, list.p);
    else
        tl_buf_fmt(b, "set %stics auto\n", name);
    tl_buf_free(&list);
    return count >= 2;
}

static void axis(tl_buf *b, const fig_axis *a, const char *name, bool narrow) {
    tl_buf t;
    tl_buf_init(&t, 0);
    tl_buf_str(&t, a->label);
    if (a->unit && *a->unit) tl_buf_fmt(&t, " (%s)", a->unit);
    tl_buf_fmt(b, "set %slabel ", name);
    quote(b, t.p);
    tl_buf_str(b, " textcolor rgb '#333842'\n");
    tl_buf_free(&t);
    tl_buf_fmt(b, "%s logscale %s\n", a->log ? "set" : "unset", name);
    tl_buf_fmt(b, "set %srange [", name);
    num(b, a->lo);
    tl_buf_str(b, ":");
    num(b, a->hi);
    tl_buf_str(b, "]\n");
    if (a->log) {
        log_tics(b, a, name, narrow);
    } else {
        double span = a->hi - a->lo, step = pow(10, floor(log10(span)));
        if (span / step < 2)
            step /= 5;
        else if (span / step < 5)
            step /= 2;
        if (narrow && name[0] == 'x' && span / step > 5) step *= 2;
        tl_buf_fmt(b, "set %stics autofreq %.6g\n", name, step);
    }
    if (a->categories == NULL) return;
    tl_buf_fmt(b, "set %stics (", name);
    bool wide = false;
    size_t n = json_array_size(a->categories);
    for (size_t i = 0; i < n; i++) {
        const char *c = json_string_value(json_array_get(a->categories, i));
        if (i) tl_buf_str(b, ", ");
        quote(b, c);
        tl_buf_fmt(b, " %zu", i);
        wide |= tl_utf8_width(c) * (narrow ? 8 : 9) > (narrow ? 290 : 610) / (int)n;
    }
    tl_buf_fmt(b, ")\nset %stics %s\n", name, wide ? "rotate by -30" : "norotate");
}

static void style(tl_buf *b, const fig_series *s, double k, bool marks) {
    static const char *const dash[4] = {"dt solid", "dt 2", "dt solid", "dt 3"};
    unsigned i = s->shape % 4;
    tl_buf_fmt(b, " lc rgb '%s' lw %.2f %s", COLOR[s->label][i], (s->kind == FIG_POINTS ? 1.8 : 2.2) * k,
               marks ? "dt solid" : dash[s->label]);
    if (marks)
        tl_buf_fmt(b, " pt %d ps %.2f", (s->label == FIG_MEASURED ? FILLED : HOLLOW)[i],
                   1.0 * k * (k > 1 ? 1.3 : 1));
}

static void part(tl_buf *b, const fig *f, size_t i, bool *first) {
    tl_buf_fmt(b, "%s'./%s.tsv' index %zu", *first ? "plot " : ", \\\n     ", f->id, i);
    *first = false;
}

/* The series' name in the key, cut where the drawing ends (the page's table has it whole). */
static void entry(tl_buf *b, const fig_series *s, double k) {
    const int columns = k < 1 ? 32 : 68;
    tl_buf_str(b, " title ");
    if (tl_utf8_width(s->name) <= columns) {
        quote(b, s->name);
        return;
    }
    char *t = tl_xprintf("%s", s->name);
    size_t n = strlen(t);
    while (n > 0 && ((t[n] & 0xc0) == 0x80 || tl_utf8_width(t) > columns - 2)) t[--n] = 0;
    char *cut = tl_xprintf("%s…", t);
    quote(b, cut);
    free(cut);
    free(t);
}

static void plot_bars(tl_buf *b, const fig *f, size_t i, size_t nth, double k, bool *first) {
    static const char *const fill[4] = {"solid 0.6", "transparent solid 0.25", "empty",
                                        "transparent pattern 4"};
    static const char *const dash[4] = {"dt solid", "dt 2", "dt solid", "dt 3"};
    const fig_series *s = &f->series[i];
    double w = 0.8 / (double)f->n_bars, off = ((double)nth - ((double)f->n_bars - 1) / 2) * w;
    part(b, f, i, first);
    const char *color = COLOR[s->label][s->shape % 4];
    tl_buf_fmt(b, " using ($1+(%.4f)):2:%s(%.4f) with %s lc rgb '%s' lw %.2f %s fs %s border lc rgb '%s'",
               off, s->has_yspan ? "3:4:" : "", w * 0.9, s->has_yspan ? "boxerrorbars" : "boxes", color,
               1.5 * k, dash[s->label], fill[s->label], color);
    entry(b, s, k);
}

static void plot_area(tl_buf *b, const fig *f, size_t i, double k, bool *first) {
    const fig_series *s = &f->series[i];
    part(b, f, i, first);
    tl_buf_fmt(b, " using 1:3:4 with filledcurves fc rgb '%s' fs transparent solid 0.16 noborder",
               COLOR[s->label][s->shape % 4]);
    if (s->has_y) { /* the line that follows has the name */
        tl_buf_str(b, " notitle");
        return;
    }
    entry(b, s, k);
}

static void plot_line(tl_buf *b, const fig *f, size_t i, double k, bool *first) {
    const fig_series *s = &f->series[i];
    if (s->has_yspan) plot_area(b, f, i, k, first);
    if (!s->has_y) return;
    part(b, f, i, first);
    tl_buf_str(b, " using 1:2 with lines");
    style(b, s, k, false);
    entry(b, s, k);
}

static void plot_points(tl_buf *b, const fig *f, size_t i, double k, bool *first) {
    const fig_series *s = &f->series[i];
    part(b, f, i, first);
    tl_buf_str(b, s->has_xspan   ? " using 1:2:5:6:3:4 with xyerrorbars"
                  : s->has_yspan ? " using 1:2:3:4 with yerrorbars"
                                 : " using 1:2 with points");
    style(b, s, k, true);
    entry(b, s, k);
}

static void plot_labels(tl_buf *b, const fig *f, size_t i, bool *first) {
    bool side[2] = {false, false};
    for (size_t j = 0; j < f->series[i].n; j++) {
        if (f->series[i].points[j].side >= 0) side[f->series[i].points[j].side] = true;
    }
    for (int r = 0; r < 2; r++) {
        if (!side[r]) continue;
        part(b, f, i, first);
        tl_buf_fmt(
            b,
            " using 1:($8==%d?$2:NaN):7 with labels %s offset character %s textcolor rgb '#333842' notitle",
            r, r ? "right" : "left",
            r == 1       ? (f->falling ? "-0.7,-0.7" : "-0.7,0.65")
            : f->falling ? "0.7,0.65"
                         : "0.7,-0.7");
    }
}

static void draw(tl_buf *b, const fig *f, const canvas *c, const char *font) {
    tl_buf_fmt(b, "\nset terminal %s font '%s,%d' rounded dashlength 0.7\n", c->terminal, font,
               c->scale > 1 ? 26
               : c->narrow  ? 13
                            : 15);
    tl_buf_fmt(b, "set output './%s%s'\n", f->id, c->suffix);
    axis(b, &f->x, "x", c->narrow);
    axis(b, &f->y, "y", c->narrow);
    bool first = true;
    size_t bars = 0;
    for (int layer = 0; layer < 4; layer++) { /* areas and bars, lines, marks, labels */
        for (size_t i = 0; i < f->n_series; i++) {
            fig_kind k = f->series[i].kind;
            if (layer == 0 && k == FIG_BARS) plot_bars(b, f, i, bars++, c->scale, &first);
            if (layer == 0 && k == FIG_BAND) plot_line(b, f, i, c->scale, &first);
            if (layer == 1 && k == FIG_LINE) plot_line(b, f, i, c->scale, &first);
            if (layer == 2 && k == FIG_POINTS) plot_points(b, f, i, c->scale, &first);
            if (layer == 3) plot_labels(b, f, i, &first);
        }
    }
    tl_buf_str(b, "\nunset output\n");
}

void fig_script(tl_buf *b, const fig *f, const char *font, bool png) {
    static const canvas all[] = {
        {"svg noenhanced size 720,440", ".svg", false, 1},
        {"svg noenhanced size 360,340", "-narrow.svg", true, 0.9},
        {"pngcairo noenhanced size 1440,880", ".png", false, 2},
    };
    tl_buf_fmt(b,
               "# Draws figure %s again from %s.tsv: gnuplot %s.gp\n"
               "set encoding utf8\n"
               "set datafile separator '\\t'\n"
               "set datafile missing 'NaN'\n"
               "set border 3 lc rgb '#8a8f98' lw 1\n"
               "set tics nomirror textcolor rgb '#555b66'\n"
               "set grid ytics lc rgb '#e3e6ea' lw 1 dt solid\n"
               "set key tmargin left Left reverse vertical maxrows 12 samplen 2.4 spacing 1.2 textcolor rgb "
               "'#333842'\n"
               "set samples 200\n"
               "unset title\n",
               f->id, f->id, f->id);
    for (size_t i = 0; i < f->n_series; i++) {
        tl_buf_fmt(
            b, "stats './%s.tsv' index %zu using 1:%s nooutput name 'S'\nprint 'rows %zu ', int(S_records)\n",
            f->id, i, f->series[i].has_y ? "2" : "3", i);
    }
    for (size_t i = 0; i < TL_COUNT(all); i++) {
        if (i == 2 && !png) continue;
        /* The SVG names several families (the reader's machine has one of them); cairo takes one. */
        const char *families =
            strcmp(f->lang, "zh-Hant") == 0   ? "Noto Sans CJK TC,Noto Sans TC,PingFang TC,sans-serif"
            : strcmp(f->lang, "zh-Hans") == 0 ? "Noto Sans CJK SC,Noto Sans SC,PingFang SC,sans-serif"
                                              : "Noto Sans,Helvetica Neue,Arial,DejaVu Sans,sans-serif";
        draw(b, f, &all[i], i == 2 ? font : families);
    }
}

size_t fig_marks_expected(const fig *f) {
    size_t n = 0;
    for (size_t i = 0; i < f->n_series; i++) {
        const fig_series *s = &f->series[i];
        if (s->kind != FIG_POINTS) continue;
        n += 1; /* the key's sample */
        for (size_t j = 0; j < s->n; j++) n += isfinite(s->points[j].y);
    }
    return n;
}

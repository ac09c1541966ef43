/* figure, inside: the checked description as a struct, and the three steps that make the files. */
#ifndef TL_FIGURE_IMPL_H
#define TL_FIGURE_IMPL_H

#include "figure/figure.h"

typedef enum fig_kind { FIG_POINTS, FIG_LINE, FIG_BAND, FIG_BARS } fig_kind;
typedef enum fig_label { FIG_MEASURED, FIG_DERIVED, FIG_OFFICIAL, FIG_CITED } fig_label;

typedef struct fig_point {
    double x, y, ylo, yhi, xlo, xhi; /* NaN = not given */
    const char *text;                /* borrowed from the spec; NULL when not given */
    int side;                        /* direct label: -1 none, 0 right of the mark, 1 left of it */
} fig_point;

typedef struct fig_series {
    const char *name; /* borrowed */
    fig_label label;
    fig_kind kind;
    unsigned shape; /* which of the marks and shades of its label */
    bool has_y, has_yspan, has_xspan, has_text;
    fig_point *points;
    size_t n, missing;
} fig_series;

typedef struct fig_axis {
    const char *label, *unit; /* borrowed; unit may be NULL */
    bool log;
    double min, max; /* wanted by the spec; NaN when not given */
    double lo, hi;   /* what is drawn */
    const json_t *categories;
} fig_axis;

typedef struct fig {
    const char *id, *title, *alt, *lang; /* borrowed; title may be NULL */
    fig_axis x, y;
    fig_series *series;
    size_t n_series, n_bars;
    bool falling; /* the labelled points fall to the right: labels go where the line does not */
} fig;

/* Reads and checks; `f` is zeroed by the caller and freed by fig_free in every case. Strings stay the spec's.
 */
tl_status fig_read(fig *f, const json_t *spec, tl_err *e) TL_MUST_USE;
void fig_free(fig *f);
/* The gnuplot script and the data file. `font` is one of our own names, never the user's text. */
void fig_script(tl_buf *out, const fig *f, const char *font, bool png);
void fig_data(tl_buf *out, const fig *f);
/* Number of key entries, direct labels included: what the drawn marks are counted against. */
size_t fig_marks_expected(const fig *f);
/* Checks that `svg` is well-formed XML and counts its marks. */
tl_status svg_check(size_t *marks_out, const char *svg, size_t n, const char *what, tl_err *e) TL_MUST_USE;
/* Title, description, metadata, and ids that are unique among figures inlined into one page. */
tl_status svg_finish(tl_buf *out, const char *svg, const fig *f, const char *suffix, const char *data_sha256,
                     tl_err *e) TL_MUST_USE;

#endif

/* figure: one JSON description of a figure and its data -> gnuplot -> SVG (wide and narrow), PNG, and the script and data
 * that made them.
 *
 * Not for: choosing what to draw (the experiment script), captions, HTML (report/).
 * gnuplot runs as a child process on a fixed script and a data file of our own naming, in a private folder, without the
 * user's environment or ~/.gnuplot, with limits and a timeout. No text of the user is ever code in that script.
 * Threads: no state; any thread.
 *
 * The description ("spec"):
 *   { "id": "fig-1",                     [a-z0-9-], starts with a letter; also the file name
 *     "type": "scatter",                 scatter | line | band | bars | interval: what a series is drawn as when it has no "kind"
 *     "title": "...", "alt": "...",      title is optional; alt (a sentence for those who cannot see it) is required
 *     "lang": "zh-Hant",                 zh-Hant | zh-Hans | en
 *     "x": { "label": "bytes per token", "unit": "GB", "log": true, "min": 0, "max": 3,
 *            "categories": ["a", "b"] }, bars: point x is the index into it
 *     "y": { the same },
 *     "series": [ { "name": "measured (95% interval)",
 *                   "label": "measured",  measured | derived | official | cited: decides the style
 *                   "kind": "points",     points | line | band | bars
 *                   "machine": "T1",      optional, told apart by the mark's shape
 *                   "points": [ { "x": 0.0455, "y": 455, "ylo": 435, "yhi": 475, "xlo":, "xhi":, "text": "q4_0" } ] } ] }
 * A null y is a missing value (drawn as nothing and counted). Unknown members are refused.
 * Uncertainty that is given is always drawn. Bars start at zero; bars on a logarithmic axis are refused.
 */
#ifndef TL_FIGURE_H
#define TL_FIGURE_H

#include "base/base.h"

#define TL_FIGURE_POINTS_MAX 20000u
#define TL_FIGURE_SERIES_MAX 24u

typedef struct tl_figure_options {
    const char *gnuplot; /* program; NULL = "gnuplot" on PATH */
    bool no_png;         /* SVG only */
} tl_figure_options;

/* Everything that is wrong with `spec` that does not need gnuplot; TL_INVALID names the figure and the member. */
tl_status tl_figure_check(const json_t *spec, tl_err *e) TL_MUST_USE;

/* Draws into `dir` (made when absent): ID.svg, ID-narrow.svg, ID.png, ID.gp, ID.tsv. Existing files are replaced whole;
 * on failure nothing in `dir` has changed. The same spec gives the same SVG bytes on the same gnuplot version.
 * *out (owned by the caller):
 *   { "id", "gnuplot": "5.4 patchlevel 4", "font": "Noto Sans CJK TC", "rows_given": 12, "rows_drawn": 12, "rows_missing": 0,
 *     "data_sha256": of ID.tsv, "files": { "svg": {"name": "fig-1.svg", "sha256", "bytes"}, "narrow", "png", "gp", "tsv" } }
 * TL_MISSING (with remedy): no gnuplot, older than 5.2, or Chinese text and no font that has it (PNG would show boxes).
 * TL_INVALID: the spec. TL_TIMEOUT, TL_IO. TL_INTERNAL: gnuplot failed or drew other than what was given. */
tl_status tl_figure_render(json_t **out, const json_t *spec, const char *dir,
                           const tl_figure_options *options, tl_err *e) TL_MUST_USE;

/* The version text ("5.4 patchlevel 4", owned) of the gnuplot that would be used; TL_MISSING as above. For `doctor`. */
tl_status tl_figure_gnuplot(char **version_out, const tl_figure_options *options, tl_err *e) TL_MUST_USE;
/* The first installed font that has Chinese; TL_MISSING with remedy. Static text. */
tl_status tl_figure_font(const char **out, const char *lang, tl_err *e) TL_MUST_USE;

#endif

/* report: Markdown with directives -> checked Markdown, one self-contained HTML page, figures and a manifest that
 * `tally rerun` reads back.
 *
 * Not for: looking up values, runs or staleness (the caller's function table gives them), or drawing (figure/).
 * Owner of: cmark-gfm. The HTML is made from the parse tree in safe mode with our own nodes put in; the Markdown is made
 * from the source text by byte spans, never from the tree.
 * Threads: no state; any thread.
 *
 * What an author writes (report.md):
 *   ---                                  front matter, "key: value" lines; known keys: title (required), lang, experiment,
 *   title: ...                           day, map, subtitle, series, description, needs
 *   lang: zh-Hant                        zh-Hant | zh-Hans | en
 *   ---
 *   `= EXPR`                             value, unit, label chip, footnote to its source
 *   `~ EXPR`                             the bare number (a table header gives unit and label)
 *   ```figure id=fig-1 caption="..."     text handed to the source as it is
 *   ```table id=.. caption=..   ```formula   ```rerun
 *   ```mermaid                           passes through
 * A caption may hold {= EXPR}, printed like `= EXPR`.
 * EXPR and the text of a block belong to the source; this module gives them no meaning.
 *
 * The law: a number with a performance unit (tok/s, GB/s, GB, ms, s, W, J, %, x, FLOPS, ...) in prose, a table, a heading or
 * a caption must come from a directive, or carry its label and a footnote: 504 GB/s【推算】[^gddr6x]. `measured` is never
 * accepted when written by hand. Numbers in code and links and numbers without such a unit are free.
 */
#ifndef TL_REPORT_H
#define TL_REPORT_H

#include "base/base.h"

#define TL_REPORT_MAX_BYTES ((size_t)1 << 20) /* of report.md */

typedef struct tl_report_pos {
    const char *file;
    int line, column; /* of the directive, 1-based; column in bytes */
} tl_report_pos;

/* Where the data comes from. Every function gives a new reference in *out, or fails with an error that the report shows
 * together with all others (file:line:column is put in front). Any may be called more than once for the same text.
 *
 * VALUE is what tl_value_to_json gives, a value with all it rests on, and may carry "text", "stale" and "run" besides:
 *   { "value": 15.46, "unit": "tok/s", "label": "measured",      measured | derived | official | cited
 *     "lo": 15.27, "hi": 15.65,                                   optional interval
 *     "name": "decode_rate",                                      optional: its name in formulas
 *     "role": "bandwidth",                                        of an input: its name in the formula
 *     "text": "15.46",                                            optional: how the number is written; else 4 digits or what
 *                                                                 the interval justifies, in the unit that suits (ms for s)
 *     "leaf_labels": ["measured", "official"],                    derived only, optional
 *     "formula": "1 / (overhead + bytes / bandwidth)",            derived: required; needs "inputs"
 *     "inputs": [ VALUE, ... ],
 *     "source": { "title": "...", "url": "https://...", "retrieved": "2026-01-31",        official, cited
 *                 "run": "01J9...", "machine": "T1", "revision": "ab12cd3", "note": "..." },   measured
 *     "run": "01J9...", "stale": "" }                             stale: why, in one phrase; "" or absent = current
 * A "measured" VALUE without source.run or source.probe (or run) is refused; official needs source.title and source.url;
 * cited needs source.url, or source.who and source.where. A null value needs "null_reason" and prints as a dash.
 *
 * block(), by kind:
 * figure:  { "figure": { spec of figure.h without "id" }, "caption": "...", "label": "measured",
 *            "run": "01J9...", "revision": "ab12cd3 (clean)", "machine": "T1", "engine": "llama.cpp b11669", "model": "...",
 *            "stale": "", "command": "tally rerun build/reports/NAME/report.html#fig-1", "manifest": {...} }
 *          caption: the author's caption="..." wins. command: absent = made from the report's own path.
 * table (ledger and menu the same):
 *          { "columns": [ {"key": "rate", "title": "speed", "unit": "tok/s", "label": "measured", "align": "right"} ],
 *            "rows": [ [ "c50", VALUE or string or number or null, ... ], ... ], "caption": "...",
 *            "run", "revision", "machine", "engine", "stale", "command", "manifest": as above, all optional }
 *          A number or VALUE needs a unit: its own or the column's. A column with a performance unit needs a label.
 * formula: { "title": "...", "value": VALUE }                     drawn as a tree in <details>
 * rerun:   { "command": "...", "text": "..." }                    the command in a box with a copy button
 * "manifest" is any object; it is kept under the figure's id for `rerun`. */
typedef struct tl_report_source {
    void *ctx;
    tl_status (*value)(json_t **out, void *ctx, const char *expr, const tl_report_pos *pos, tl_err *e);
    tl_status (*block)(json_t **out, void *ctx, const char *kind, const json_t *attrs, const char *text,
                       const tl_report_pos *pos, tl_err *e);
} tl_report_source;

typedef struct tl_report_spec {
    const char *path; /* report.md */
    const char *text; /* its text, when it is not to be read from path; with text_len */
    size_t text_len;
    const char *out_dir;      /* e.g. build/reports/NAME; ignored when check_only */
    const char *name;         /* NAME; NULL = the name of the folder that holds report.md */
    const char *command_base; /* put before "#fig-1" in re-run commands; NULL = OUT_DIR/report.html */
    const char *version;      /* tally's own, for the footer and the manifest; may be NULL */
    const char *gnuplot;      /* NULL = on PATH */
    bool check_only;          /* lints and asks the source; draws and writes nothing */
} tl_report_spec;

/* Builds the report. Everything that is wrong is collected before it fails: *out (may be NULL; set in both cases) is
 *   { "problems": [ {"file", "line", "column", "text", "remedy"} ], "files": ["report.md", ...], "figures": N, "values": N,
 *     "stale": ["fig-1: machine profile changed"], "html": path, "markdown": path, "manifest": path }
 * and `e` names the first problem and how many there are. TL_REFUSED: problems. TL_MISSING: gnuplot or a font.
 * Files are replaced one by one and whole, report.html and manifest.json last. The same inputs give the same bytes. */
tl_status tl_report_build(json_t **out, const tl_report_spec *spec, const tl_report_source *source,
                          tl_err *e) TL_MUST_USE;

/* Reads the manifest from a manifest.json, a report.html (embedded), or a folder that has one of them:
 *   { "tally_report": 1, "name", "title", "lang", "front": {...}, "source_sha256", "version",
 *     "figures": [ { "id", "kind": "figure"|"table", "caption", "label", "run", "revision", "machine", "engine", "model",
 *                    "command", "stale", "spec": {figure spec}, "rows"/"columns" of a table, "facts": figure.h's,
 *                    "manifest": what the source gave } ],
 *     "values": [ { "n": 1, "expr", "value": VALUE } ] }
 * TL_NOT_FOUND: no such file. TL_INVALID: not one of ours. */
tl_status tl_report_manifest_read(json_t **out, const char *path, tl_err *e) TL_MUST_USE;
/* The entry with that id, borrowed; TL_NOT_FOUND names the ids there are, the nearest first. */
tl_status tl_report_manifest_figure(const json_t **out, const json_t *manifest, const char *id,
                                    tl_err *e) TL_MUST_USE;

#endif

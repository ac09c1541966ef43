/* report, inside. One struct holds a build from source text to output; the steps are the files, in this
 * order: front (header lines) -> scan (what is code, link, directive) -> emphasis, lint, tables (the law) ->
 * value, block (asking the source) -> html (parse tree, always, since it also finds what cannot be shown) ->
 * markdown, page, manifest. */
#ifndef TL_REPORT_IMPL_H
#define TL_REPORT_IMPL_H

#include "os/os.h"
#include "report/report.h"

enum { REP_LABELS = 4 };
typedef enum rep_label { REP_MEASURED, REP_DERIVED, REP_OFFICIAL, REP_CITED, REP_NONE } rep_label;

typedef struct rep_words {
    const char *lang, *label[REP_LABELS], *figure, *table, *sources, *data, *current, *stale, *copy, *copied,
        *retrieved;
    const char *formula, *series, *missing, *interval, *how[REP_LABELS], *day, *open, *close, *colon, *sep,
        *key;
    const char *stop;
} rep_words;
extern const char *const rep_label_names[REP_LABELS];
const rep_words *rep_words_of(const char *lang); /* NULL for an unknown one */
rep_label rep_label_of(const char *name);        /* REP_NONE for an unknown one */
/* The label token that starts at p, hand-written, in any language; its length in *n. */
rep_label rep_label_at(const char *p, size_t *n);

enum { REP_SPANS_MAX = 5000, REP_NOTES_MAX = 2000 };

/* What each byte of the source is. */
enum {
    M_PROSE = 0,
    M_CODE = 'c',
    M_FRONT = 'f',
    M_LINK = 'l',
    M_NOTE = 'n',
    M_DIRECTIVE = 'd',
    M_INFO = 'i'
};

typedef enum rep_kind { SPAN_VALUE, SPAN_BARE, SPAN_BLOCK, SPAN_OPEN, SPAN_CLOSE } rep_kind;
typedef struct rep_span {
    rep_kind kind;
    size_t from, to; /* bytes of the source that it replaces */
    char *expr;      /* value: the expression; block: its kind */
    char *text;      /* block: what stands inside */
    json_t *attrs;   /* block */
    char *header;    /* bare value in a table: the column's header */
    bool in_table;
    size_t item; /* index into values or blocks, once asked */
} rep_span;

typedef struct rep_value {
    char *expr;
    json_t *json;
    size_t note; /* number of its footnote; 0 = only printed bare */
    size_t from; /* first place */
} rep_value;

typedef struct rep_block {
    const char *kind; /* static */
    const char *id;   /* borrowed from the span's attrs, or owned text in own_id */
    char *own_id;
    size_t number; /* of its kind, from 1 */
    size_t from;
    json_t *json, *spec, *facts;
    char *caption, *command;
    char *svg, *svg_narrow; /* finished, to be inlined */
    char *html;
} rep_block;

typedef struct rep_problem {
    size_t from;
    char *text, *remedy;
} rep_problem;

typedef struct rep {
    const tl_report_spec *spec;
    const tl_report_source *source;
    const rep_words *w;
    char *name, *command_base;
    tl_buf text;   /* the source */
    char *mask;    /* as long */
    size_t *lines; /* where each line starts */
    size_t n_lines, cap_lines;
    size_t body; /* where the front matter ends */
    json_t *front;
    rep_span *spans;
    size_t n_spans, cap_spans;
    rep_value *values;
    size_t n_values, cap_values, n_notes;
    rep_block *blocks;
    size_t n_blocks, cap_blocks;
    rep_problem *problems;
    size_t n_problems, cap_problems;
    tl_buf html;  /* the body from the parse tree */
    bool too_big; /* a table over the limits: cmark must not see it */
} rep;

/* report.c */
void rep_problem_add(rep *r, size_t from, const char *remedy, const char *fmt, ...) TL_PRINTF(4, 5);
void rep_position(const rep *r, size_t from, int *line, int *column);
int rep_line_of(const rep *r, size_t from);
size_t rep_line_start(const rep *r, int line);

/* front.c, scan.c, emphasis.c, lint.c, tables.c: find problems and go on. */
void rep_front(rep *r);
void rep_scan(rep *r);
void rep_emphasis(rep *r, size_t from, size_t to);
void rep_lint(rep *r);
void rep_tables(rep *r);
/* Problems in a text that is not in the source (a caption from the source), reported at `from`. */
void rep_lint_text(rep *r, const char *text, size_t from, const char *what);
/* A plain copy for comparing: full-width to half-width, odd blanks to ' ', masked bytes to 1; off[i] = where
 * byte i was. */
typedef struct rep_norm {
    char *p;
    size_t *off, n;
} rep_norm;
void rep_norm_make(rep_norm *out, const char *p, const char *mask, size_t n, bool with_notes);
void rep_norm_free(rep_norm *n);
/* Length of the performance unit at p, or 0; `glued`: nothing stands between the number and p. */
size_t rep_unit_at(const char *p, bool glued);
bool rep_unit_is_performance(const char *unit);

/* value.c */
void rep_ask_values(rep *r);
/* The value of an expression, asked once; with a footnote of its own when `noted`. */
size_t rep_ask_value(rep *r, const char *expr, size_t from, bool noted);
void rep_value_text(tl_buf *b, const rep *r,
                    const rep_value *v); /* Markdown: quantity, label, footnote mark */
void rep_value_check(rep *r, const json_t *v, size_t from, const char *what);
void rep_number(tl_buf *b, const json_t *v); /* number and interval, without unit */
void rep_quantity(tl_buf *b, const json_t *v);
void rep_chip_html(tl_buf *b, const rep *r, rep_label l, size_t note);
void rep_value_html(tl_buf *b, const rep *r, const json_t *v, size_t note);
void rep_source_text(tl_buf *b, const rep *r, const json_t *v, int depth); /* Markdown, one line */
void rep_source_html(tl_buf *b, const rep *r, const json_t *v);
void rep_tree_html(tl_buf *b, const rep *r, const json_t *v, int depth);
void rep_tree_text(tl_buf *b, const rep *r, const json_t *v, int depth);
void rep_md(tl_buf *b, const char *s);      /* plain text for Markdown */
void rep_md_code(tl_buf *b, const char *s); /* any text as a code span */
rep_label rep_value_label(const json_t *v);

/* block.c */
bool rep_block_known(const char *kind, const char **out);
void rep_block_attrs(rep *r, rep_span *s, const char *info);
void rep_ask_blocks(rep *r);
tl_status rep_draw(rep *r, tl_err *e) TL_MUST_USE;
void rep_block_html(rep *r);
void rep_block_text(tl_buf *b, const rep *r, const rep_block *k);

/* html.c: fills r->html. markdown.c, page.c, manifest.c: the files' bytes. */
void rep_html(rep *r);
void rep_markdown(tl_buf *b, const rep *r);
void rep_page(tl_buf *b, const rep *r, const char *manifest_text);
json_t *rep_manifest(const rep *r);

#endif

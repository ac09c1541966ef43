/* Private to import: a file cut into records, a tool as data, and the rows that are made of both.
 *
 * A form (JSON, CSV, ...) cuts the text into records, each an object of named fields; it knows no tool. A tool is a row of
 * recognise.c: the fields by which its records are known, and what each field means. By name, never by position: fields
 * come and go between versions of a tool. */
#ifndef TL_IMPORT_IMPL_H
#define TL_IMPORT_IMPL_H

#include "import/import.h"

/* ---- forms: text to records ------------------------------------------------------------------------------------ */

typedef struct imp_record {
    int64_t line;   /* where it begins, from 1 */
    json_t *fields; /* an object; NULL: refused */
    char *why;      /* the reason of a refusal */
} imp_record;

typedef struct imp_text {
    const char *p; /* valid UTF-8 without NUL, without a mark in front; lines may end in CR LF */
    size_t len;
    const char *form; /* of the records: "CSV" */
    imp_record *v;
    size_t n, cap;
    json_t *other; /* [{line, text}] */
    char *lost;    /* the text ends within this; NULL: it is whole */
    size_t seen;   /* imp_line_of: the line of this place is known, as texts are read forwards */
    int64_t seen_line;
} imp_text;

/* A cutter fills t and answers whether the text has its form at all. */
typedef bool imp_cutter(imp_text *t);
bool imp_cut_objects(imp_text *t); /* one JSON object, a list of them, one a line, or one after another */
bool imp_cut_sql(imp_text *t);
bool imp_cut_csv(imp_text *t);
bool imp_cut_markdown(imp_text *t);
bool imp_cut_ollama(imp_text *t);

void imp_text_clear(imp_text *t); /* forgets the records, keeps the text */
void imp_add(imp_text *t, int64_t line, json_t *fields, const char *why); /* takes fields */
void imp_other(imp_text *t, int64_t line, const char *p, size_t n);
int64_t imp_line_of(imp_text *t, size_t at); /* from 1; `at` never goes back */
size_t imp_fit(const char *s, size_t n, size_t most); /* bytes of s, at most `most`, that end at a character */
/* One JSON text in which Python's NaN and Infinity stand for themselves: they become texts. */
tl_status imp_json(json_t **out, const char *p, size_t n, tl_err *e) TL_MUST_USE;

/* ---- tools: records to rows ------------------------------------------------------------------------------------ */

typedef enum imp_role {
    IMP_KEEP,    /* carried along */
    IMP_AXIS,    /* a condition */
    IMP_SETTING, /* a condition, if rows differ in it */
    IMP_MACHINE, /* of the machine; if rows differ in it, a condition */
    IMP_FIGURE,
    IMP_SPREAD,  /* belongs to the figure that names it */
    IMP_VERSION, /* joined by blanks, in the file's order */
    IMP_TIME,
} imp_role;

typedef struct imp_field {
    const char *name;
    imp_role role;
    const char *as;        /* name of an axis or machine fact, where it differs */
    const char *unit;      /* figures */
    const char *statistic; /* figures: "mean", ... or NULL */
    const char *spread;    /* figures: the field with the standard deviation */
    const char *n;         /* figures: the field with the number of samples, or the list of them */
    bool never_0;          /* figures: the tool writes 0 where it has nothing */
} imp_field;

/* What a name alone says of a field that stands in no table: "p99_ttft_ms". */
typedef struct imp_guess {
    imp_field f;
    char statistic[16], spread[64]; /* f may point here */
} imp_guess;

/* Rows of a table: F(AXIS, "n_prompt"), AS(AXIS, "model_filename", "model"), the tool's own figure with unit and statistic. */
#define F(r, n) {.name = (n), .role = IMP_##r}
#define AS(r, n, other) {.name = (n), .role = IMP_##r, .as = (other)}
#define FIGURE(n, u, ...) {.name = (n), .role = IMP_FIGURE, .unit = (u), __VA_ARGS__}
#define TOTAL(n, u) {.name = (n), .role = IMP_FIGURE, .unit = (u)} /* a figure that is no statistic */

typedef struct imp_tool imp_tool;
typedef struct imp_rows { /* what is being made */
    json_t *rows, *refused;
    json_t *machine, *version, *when; /* of the file: {}, {}, NULL until imp_settle */
} imp_rows;

struct imp_tool {
    const char *name, *forms;
    const char *must[8];     /* fields, or paths to them, that every record of the tool has; ends with NULL */
    const char *also[4];     /* those of a second kind of record; none: empty */
    const imp_field *fields; /* ends with {0} */
    bool (*guess)(imp_guess *out, const char *name); /* may be NULL */
    imp_role others;         /* what a field is that stands in no table and cannot be guessed */
    /* Records that are more than a row of fields; NULL: imp_row. */
    void (*read)(imp_rows *out, const imp_record *r, const imp_tool *t);
    /* A line between the rows that says something about them; false: it does not. May be NULL. */
    bool (*line)(imp_rows *out, int64_t line, const char *text);
    const char *missing[6];  /* what this tool never records; ends with NULL */
};
const imp_tool *imp_tool_at(size_t i); /* NULL after the last */
/* Cuts t; `only`: a tool's name or NULL. NULL: unknown; t then holds what the last form that fitted made of it. */
const imp_tool *imp_recognise(imp_text *t, const char *only);

extern const imp_field imp_llama_bench[], imp_llama_bench_md[], imp_batched_bench[], imp_batched_bench_md[];
void imp_read_llama_md(imp_rows *out, const imp_record *r, const imp_tool *t);
bool imp_build_line(imp_rows *out, int64_t line, const char *text);
extern const imp_field imp_vllm[], imp_sglang[], imp_localscore[], imp_ollama[];
void imp_read_guidellm(imp_rows *out, const imp_record *r, const imp_tool *t);
void imp_read_nvidia_json(imp_rows *out, const imp_record *r, const imp_tool *t);
void imp_read_nvidia_csv(imp_rows *out, const imp_record *r, const imp_tool *t);
void imp_read_localscore(imp_rows *out, const imp_record *r, const imp_tool *t);
bool imp_guess_serving(imp_guess *out, const char *name);
void imp_read_sglang(imp_rows *out, const imp_record *r, const imp_tool *t);
bool imp_batched_line(imp_rows *out, int64_t line, const char *text);

/* One row of a record. */
void imp_row(imp_rows *out, const imp_record *r, const imp_tool *t);
/* The parts of it, for readers of their own. `v` borrowed. */
json_t *imp_row_new(imp_rows *out, int64_t line); /* borrowed: it stands in out->rows */
json_t *imp_figure(json_t *row, const char *name, const json_t *v, const char *unit, const char *statistic);
void imp_keep(json_t *object, const char *name, const json_t *v); /* shortened where it is long */
/* Does the record have the fields by which a tool is known? *lacks: the first that is absent. */
bool imp_has_all(const json_t *fields, const imp_tool *t, const char **lacks);
/* Are these the names of some tool's fields? A table's header is told from other lines by it. */
bool imp_known(const char *const *names, size_t n);
/* A 0 in it means that the tool had nothing to write: null. */
void imp_not_zero(json_t *figure);
void imp_samples(json_t *figure, const json_t *n);                   /* a count, or a list of samples; may be NULL */
void imp_spread(json_t *figure, const char *name, const json_t *v);  /* v may be NULL */
/* An integer where the text is one; else the text. New reference. */
json_t *imp_typed(const json_t *v);
void imp_refuse(imp_rows *out, int64_t line, const char *why);
/* What all rows say alike of machine and version becomes the file's; what they differ in becomes an axis, settings too. */
void imp_settle(imp_rows *out);

#endif

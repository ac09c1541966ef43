/* plan: an experiment as data: validated, expanded to cells, ordered, with one canonical text and its hash.
 * What can be printed, compared, hashed and resumed.
 *
 * Not for: reading scripts (script gives the description as JSON), running, or anything that depends on time
 * or machine. Pure: the same description gives the same plan, text, hash, cell keys and orders everywhere.
 * Threads: a plan belongs to one thread; after it is made only tl_plan_set_prediction changes it.
 */
#ifndef TL_PLAN_H
#define TL_PLAN_H

#include "base/base.h"
#include "value/value.h"

#define TL_PLAN_SCHEMA 1
#define TL_PLAN_KEY 14 /* "c" + 12 hexadecimal digits + NUL */
#define TL_PLAN_MAX_CELLS 10000u

/* ---- fields: one table for checks, defaults, messages and documentation
 * ------------------------------------------ */

typedef enum tl_plan_type {
    TL_PLAN_STRING,
    TL_PLAN_INT,
    TL_PLAN_NUMBER,
    TL_PLAN_BOOL,
    TL_PLAN_LIST,
    TL_PLAN_OBJECT,
    TL_PLAN_TEXTS /* an object of texts by language */,
    TL_PLAN_INT_OR_STRING
} tl_plan_type;
typedef struct tl_plan_field {
    const char *path; /* "repeats.min"; fields of list entries: "accept[].metric" */
    tl_plan_type type;
    const char *unit; /* of a number; NULL = none */
    bool required;
    bool axis;             /* may be {"$axis": NAME} */
    const char *otherwise; /* default as JSON text; NULL = stays absent */
    double min, max;       /* of numbers, inclusive; min > max = no bounds */
    const char *one_of;    /* words separated by blanks; NULL = any */
    const char *help;
} tl_plan_field;
const tl_plan_field *tl_plan_fields(size_t *n_out);
const char *tl_plan_type_name(tl_plan_type t); /* "integer", "text", ... */

/* ---- the plan
 * ------------------------------------------------------------------------------------------------------ */

typedef struct tl_plan_cell {
    size_t index;
    char key[TL_PLAN_KEY];    /* of the parameters alone: stays when axes are added, reordered or filtered */
    const char *label;        /* "model=m320-q8_0 context=512" */
    const char *model;        /* name of the reference on axis "model"; NULL when there is no such axis */
    const json_t *params;     /* {axis: scalar, or a reference's name} */
    const json_t *workload;   /* axes resolved */
    const json_t *settings;   /* of the engine, axes resolved, by the adapters' names: "ctx" (all slots
                               * together), "slots",   "threads", "kv_type_k", ...; also "name" (of the adapter)
                               * and "ready_timeout_s" */
    const json_t *prediction; /* a value as JSON, or JSON null */
    size_t group;             /* cells of one group can share a running engine */
} tl_plan_cell;

typedef struct tl_plan {
    const char *id, *map;
    int64_t day; /* 0 = none */
    const json_t *title, *question;
    const char *script_name, *script_sha256, *script_text; /* "" = not given */
    uint64_t seed;
    int64_t repeats_min, repeats_max, warmup;
    double until_ci; /* relative half-width of the 95 % interval */
    bool probe_bandwidth;
    int64_t probe_ms;
    bool grouped;         /* order "grouped": cells that share an engine stand together in each round */
    const json_t *axes;   /* [{"name", "values"}] */
    const json_t *models; /* references: [{"name", "kind", ...}], each once */
    const json_t *workload, *engine, *accept, *figures; /* as described, axes not resolved */
    tl_plan_cell *cells;
    size_t n_cells, n_groups;
    struct tl_plan_impl *impl;
} tl_plan;

/* The description has the fields of tl_plan_fields and may carry "_line" {"repeats.min": 12, ...} and
 * "_file", which are used for messages and are not kept. Strict: unknown, missing, mistyped or out-of-range
 * fields are TL_INVALID with file, line, field, value and the near name. */
tl_status tl_plan_from_json(tl_plan **out, const json_t *description, tl_err *e) TL_MUST_USE;
/* From canonical text (or any JSON text of a description). `what` heads messages. */
tl_status tl_plan_parse(tl_plan **out, const char *text, size_t len, const char *what, tl_err *e) TL_MUST_USE;
void tl_plan_free(tl_plan *p); /* NULL ok */

/* The whole plan with every default filled in; tl_plan_parse of it gives the same plan. Cells are not written
 * out: they follow from it. Owned by the caller. */
char *tl_plan_text(const tl_plan *p);
void tl_plan_hash(const tl_plan *p, char out[65]); /* SHA-256 of that text */
json_t *tl_plan_json(const tl_plan *p);            /* the same as JSON; new reference */
/* The plan for people and tools: the above and "cells": [{"key", "label", "params", ...}]. New reference. */
json_t *tl_plan_show(const tl_plan *p);

/* Writes the indices of all cells into out[n_cells] in the order of this round (0, 1, ...): a seeded
 * permutation. */
void tl_plan_order(const tl_plan *p, uint64_t round, size_t *out);
/* By key, or by a selector as in tl_plan_select that fits exactly one cell. */
tl_status tl_plan_find(const tl_plan_cell **out, const tl_plan *p, const char *key_or_selector,
                       tl_err *e) TL_MUST_USE;
/* `value`: a value as JSON (checked) or JSON null. */
tl_status tl_plan_set_prediction(tl_plan *p, size_t cell, const json_t *value, tl_err *e) TL_MUST_USE;

/* ---- changing a description before it becomes a plan
 * ---------------------------------------------------------------- */

/* "FIELD=VALUE": a field by its path or its last word where that is unique ("max=3", "output_tokens=16"), or
 * an axis
 * ("context=512,8192" replaces the values; references are chosen by name). */
tl_status tl_plan_override(json_t *description, const char *assignment, tl_err *e) TL_MUST_USE;
/* Keeps only the cells that fit: "model=q4_0,context=512" (all parts must fit). Called again: cells that fit
 * any. */
tl_status tl_plan_select(json_t *description, const char *selector, tl_err *e) TL_MUST_USE;
/* Does a cell with these values of its axes ({"model": "q4_0"}) fit the selector? Every cell fits "". */
bool tl_plan_cell_fits(const json_t *params, const char *selector);
/* Does the selector say something about this axis? */
bool tl_plan_selector_names(const char *selector, const char *axis);

/* ---- what it will take
 * ---------------------------------------------------------------------------------------------- */

typedef struct tl_plan_cost {
    uint64_t requests_min, requests_max; /* measured ones, all cells, at the least and most repeats */
    uint64_t prompt_tokens_max, output_tokens_max;
    double seconds_min,
        seconds_max; /* generation by the predictions, and probes; NaN when a cell has no prediction
                      * in tok/s. Reading prompts and starting engines come on top. */
} tl_plan_cost;
void tl_plan_estimate(tl_plan_cost *out, const tl_plan *p);

#endif

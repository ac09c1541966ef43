/* value: a number is never naked. A value = number + unit + label + source; arithmetic on values gives values
 * that can be unfolded to their leaves.
 *
 * Not for: formulas of physics (lua/calc), statistics (sample), storing (store), units of prose (report).
 * Owner of: unit algebra and label algebra. Pure: no I/O, no clock.
 * Threads: a tl_values and all its nodes belong to one thread; units are plain data.
 */
#ifndef TL_VALUE_H
#define TL_VALUE_H

#include "base/base.h"

/* ---- units
 * ----------------------------------------------------------------------------------------------------- */

/* A product of factors such as GB^1 s^-1. Plain data: copy it. {0} is the unit "1". Compare with
 * tl_unit_equal. */
enum { TL_UNIT_FACTORS = 8, TL_UNIT_TEXT = 96 };
typedef struct tl_unit {
    uint8_t n;
    struct {
        uint8_t atom, prefix;
        int8_t exp;
    } f[TL_UNIT_FACTORS];
} tl_unit;

/* x in one unit is x * mul / div in another: two numbers, because 1/1000 has no exact double. */
typedef struct tl_unit_ratio {
    double mul, div;
} tl_unit_ratio;
double tl_unit_apply(tl_unit_ratio r, double x);

/* "GB", "GiB/s", "tok/s", "byte*tok/s", "J/tok", "tok/(s*W)", "s^2", "1", "%". TL_INVALID names the text and
 * suggests. */
tl_status tl_unit_parse(tl_unit *out, const char *text, tl_err *e) TL_MUST_USE;
/* The one spelling of a unit; parsing it gives the same unit. */
void tl_unit_print(char out[TL_UNIT_TEXT], const tl_unit *u);
bool tl_unit_equal(const tl_unit *a, const tl_unit *b);
bool tl_unit_same_dimension(const tl_unit *a, const tl_unit *b);
/* Ratio from one unit to another where arithmetic may convert by itself: same dimension, GB not with GiB, bit
 * not with byte ("byte" goes with both GB and GiB). TL_INVALID names both units. */
tl_status tl_unit_match(tl_unit_ratio *out, const tl_unit *from, const tl_unit *to, tl_err *e) TL_MUST_USE;
/* The same on explicit request: every pair of one dimension, also GiB to GB and bit to byte. */
tl_status tl_unit_convert(tl_unit_ratio *out, const tl_unit *from, const tl_unit *to, tl_err *e) TL_MUST_USE;
/* Unit of a product or quotient; factors of one kind are merged into the first one's, and *ratio is what the
 * number has to be multiplied with for it (GB / byte). TL_INVALID where GB meets GiB or bit meets byte.
 * TL_LIMIT: too many factors. */
tl_status tl_unit_mul(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, const tl_unit *b,
                      tl_err *e) TL_MUST_USE;
tl_status tl_unit_div(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, const tl_unit *b,
                      tl_err *e) TL_MUST_USE;
tl_status tl_unit_pow(tl_unit *out, tl_unit_ratio *ratio, const tl_unit *a, int power, tl_err *e) TL_MUST_USE;
/* The unit of the same family in which |number| stands between 1 and 1000 (GB -> MB, GiB -> MiB, s -> ms);
 * units that people do not scale (tok, req, char, %) stay. */
tl_unit tl_unit_display(const tl_unit *u, double number);
/* Name of every unit without prefixes, for listings; returns how many. */
size_t tl_unit_names(const char *const **out);

/* ---- labels
 * ---------------------------------------------------------------------------------------------------- */

typedef enum tl_label {
    TL_LABEL_OFFICIAL,
    TL_LABEL_MEASURED,
    TL_LABEL_DERIVED,
    TL_LABEL_CITED,
    TL_LABELS
} tl_label;
typedef enum tl_lang { TL_LANG_ZH_HANT, TL_LANG_ZH_HANS, TL_LANG_EN, TL_LANGS } tl_lang;
const char *tl_label_name(tl_label l); /* "measured" */
tl_status tl_label_parse(tl_label *out, const char *name, tl_err *e) TL_MUST_USE;
const char *tl_label_mark(tl_label l, tl_lang lang); /* "【實測】", "【实测】", "[measured]" */
tl_status tl_lang_parse(tl_lang *out, const char *name,
                        tl_err *e) TL_MUST_USE; /* "zh-Hant" (or "zh"), "zh-Hans", "en" */
const char *tl_lang_name(tl_lang lang);

/* ---- values
 * ---------------------------------------------------------------------------------------------------- */

/* Owns every value made in it; they live until it is freed. */
typedef struct tl_values tl_values;
tl_values *tl_values_new(void);
void tl_values_free(tl_values *g); /* NULL ok */

typedef const struct tl_value tl_value; /* never changes once made */

typedef struct tl_value_input {
    const char *role; /* the formula's name for it */
    tl_value *value;
} tl_value_input;

struct tl_value {
    double number; /* finite, or NaN = undefined, with null_reason */
    double lo, hi; /* interval; both NaN = none */
    tl_unit unit;
    tl_label label;
    unsigned leaf_labels;    /* set: bit 1 << label of every leaf below (a leaf: its own) */
    unsigned depth;          /* 0 for a leaf */
    uint32_t nodes;          /* of the whole tree, itself included; a shared one counts each time */
    const char *name;        /* "decode_rate"; "" = none */
    const char *symbol;      /* short name in formulas; "" = none */
    const char *null_reason; /* NULL when defined */
    const char *formula;     /* derived only, else NULL */
    const tl_value_input *inputs;
    size_t inputs_n;
    const json_t *source; /* an object */
};

/* A leaf: official, measured or cited. `source` (copied) must carry
 *   official: url, title, retrieved     measured: run or probe      cited: who, where, when, conditions
 * as non-empty texts, and may carry more. TL_REFUSED with remedy otherwise, or for label derived. A number
 * that is NaN needs null_reason; infinity is refused. */
typedef struct tl_value_leaf {
    double number;
    const char *unit, *name, *symbol, *null_reason;
    tl_label label;
    const json_t *source;
} tl_value_leaf;
tl_status tl_value_new(tl_value **out, tl_values *g, const tl_value_leaf *leaf, tl_err *e) TL_MUST_USE;

/* A derived value: number, interval and unit of `result` (made by the arithmetic below, or a leaf), explained
 * by a formula over inputs. extra: note, reference, ...; may be NULL. TL_REFUSED without formula or inputs.
 */
typedef struct tl_value_derivation {
    const char *name, *symbol, *formula;
    const tl_value_input *inputs;
    size_t inputs_n;
    tl_value *result;
    const json_t *extra;
} tl_value_derivation;
tl_status tl_value_derive(tl_value **out, tl_values *g, const tl_value_derivation *d, tl_err *e) TL_MUST_USE;
/* The same from plain numbers, for results that were computed elsewhere (a simulation): lo/hi NaN = none. */
tl_status tl_value_derive_number(tl_value **out, tl_values *g, const tl_value_derivation *d, double number,
                                 double lo, double hi, const char *unit, tl_err *e) TL_MUST_USE;

/* The same value with a stated interval, in its own unit. TL_INVALID unless lo <= number <= hi. */
tl_status tl_value_interval(tl_value **out, tl_values *g, tl_value *v, double lo, double hi,
                            tl_err *e) TL_MUST_USE;
/* The same value with another name or symbol; NULL keeps it. */
tl_value *tl_value_named(tl_values *g, tl_value *v, const char *name, const char *symbol);
/* The same value, label and source in another unit (explicit: GiB to GB is allowed). */
tl_status tl_value_convert(tl_value **out, tl_values *g, tl_value *v, const char *unit,
                           tl_err *e) TL_MUST_USE;

typedef enum tl_value_op { TL_ADD, TL_SUB, TL_MUL, TL_DIV, TL_MIN, TL_MAX } tl_value_op;
/* Derived from a and b. Intervals follow interval arithmetic; an undefined operand, a division by zero or by
 * an interval that holds zero gives an undefined value with the reason. Result unit of + - min max: a's. */
tl_status tl_value_calc(tl_value **out, tl_values *g, tl_value_op op, tl_value *a, tl_value *b,
                        tl_err *e) TL_MUST_USE;
/* With an exact plain number, which has no unit and no label: v OP k, or k OP v when number_first. */
tl_status tl_value_calc_number(tl_value **out, tl_values *g, tl_value_op op, tl_value *v, double k,
                               bool number_first, tl_err *e) TL_MUST_USE;
tl_status tl_value_pow(tl_value **out, tl_values *g, tl_value *v, int power, tl_err *e) TL_MUST_USE;
/* -1, 0, 1 by number. TL_INVALID for units that do not match or an undefined operand. */
tl_status tl_value_compare(int *out, tl_value *a, tl_value *b, tl_err *e) TL_MUST_USE;

/* A statistic ("median") that was computed over samples, in the first one's unit. Samples that are all
 * measured in one condition (same source.run and source.cell) give a measured value; anything else a derived
 * one. */
typedef struct tl_value_statistic {
    const char *name, *statistic;
    tl_value *const *samples;
    size_t n;
    double number, lo, hi; /* lo/hi NaN = none */
} tl_value_statistic;
tl_status tl_value_stat(tl_value **out, tl_values *g, const tl_value_statistic *s, tl_err *e) TL_MUST_USE;

/* ---- out and in
 * ------------------------------------------------------------------------------------------------- */

/* {"value": number|null, "unit", "label", "lo", "hi", "name", "symbol", "source": {...}, "null_reason",
 *  "formula", "inputs": [ {"role": ..., and the same fields} ], "leaf_labels": ["measured", ...]}
 * What a value has not is left out ("value", "unit", "label", "source" are always there). The whole tree; the
 * same value gives the same text. New reference. */
json_t *tl_value_to_json(tl_value *v);
/* Reads it back and checks all that the constructors check. The error names the place ("inputs.0.source"). */
tl_status tl_value_from_json(tl_value **out, tl_values *g, const json_t *j, tl_err *e) TL_MUST_USE;

/* "33.7": digits that the interval justifies, else 3 significant ones; "–" when undefined. */
void tl_value_number_text(char out[48], tl_value *v);
/* "33.7 GB/s 【推算】". Appends. Very large and very small numbers get another prefix. */
void tl_value_text(tl_buf *b, tl_value *v, tl_lang lang);
/* The tree down to its leaves, with formulas, intervals and sources; ends with a line end. Appends. */
void tl_value_explain(tl_buf *b, tl_value *v, tl_lang lang);

#endif

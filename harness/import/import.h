/* import: what another benchmark tool wrote, as rows of conditions and figures. Formats, and where each was read: README.md.
 *
 * Not for: judging the numbers (nothing in such a file can be proved, so whoever stores them calls them cited), storing
 * them, or what a tool's definition means (peer). Pure: bytes in, JSON out; no file, no clock, no store.
 * Threads: any; nothing is kept between calls.
 */
#ifndef TL_IMPORT_H
#define TL_IMPORT_H

#include "base/base.h"

#define TL_IMPORT_MAX ((size_t)64 << 20) /* bytes of a file; more is TL_LIMIT */

typedef struct tl_import_options {
    const char *tool; /* one of tl_import_tools; NULL: recognised by content */
    bool partial;     /* a file that ends in the middle gives its complete rows and says what was lost */
} tl_import_options;

/* One object (new reference):
 *   tool, format        "llama-bench", "JSON"
 *   version, when       of the tool, and of the file, in the file's own words; null: it does not say
 *   machine             {"cpu_info": "..."}: what the file states of the machine; {} when nothing
 *   found               rows in the file = rows here + refused
 *   rows                [{line, when, axes, settings, figures, fields}]
 *                       axes: the row's conditions. settings: those that are the same in every row. fields: what else it
 *                       carried; long lists and texts are named by their size, for the file itself is kept.
 *                       figures: [{name, number, null_reason, unit, statistic, n, spread: {name, number}}], name and number as
 *                       the file has them; a number that is none, or negative, is null and says why.
 *   refused             [{line, reason}]: rows that could not be read
 *   other               [{line, text}]: lines between the rows that belong to no row: warnings, titles
 *   lost                what a cut file ends in; null: it is whole
 *   missing             ["the machine", ...]: what this source does not record
 * `name` is for messages. TL_INVALID: not text, unknown, cut off (without `partial`), without a single row. */
tl_status tl_import_read(json_t **out, const void *bytes, size_t len, const char *name, const tl_import_options *o, tl_err *e) TL_MUST_USE;

/* Tools by number, each once; NULL after the last. *forms: "JSON, JSON lines, CSV". */
const char *tl_import_tool(size_t i, const char **forms);

#endif

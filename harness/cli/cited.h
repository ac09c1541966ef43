/* Private to cli: rows of another tool's file as people read them, before they are stored and after. */
#ifndef TL_CLI_CITED_H
#define TL_CLI_CITED_H

#include "cli/cli.h"

/* rows: [{axes, figures: [{name, number, null_reason, unit, statistic, spread}]}] as tl_import_read makes them. Few figures
 * stand side by side, many one below the other. */
void tl_cited_print(tl_cli *c, const json_t *rows);
/* The same from a stored import: tl_store_run_show's object. */
void tl_cited_show(tl_cli *c, const json_t *show);
/* A text as it stands, a number in its shortest form, anything else as JSON. */
void tl_cited_text(tl_buf *b, const json_t *v);
/* "tiny.gguf, n_prompt 32": the axes of one row, owned by the caller. */
char *tl_cited_label(const json_t *axes);

#endif

/* Private to cli: `tally show ... --as`: the words of other tools for stored requests, or for a scripted stream. */
#ifndef TL_CLI_SHOW_AS_H
#define TL_CLI_SHOW_AS_H

#include "cli/project.h"

/* --as, --cell and --request of c. */
tl_status tl_show_as_run(tl_cli *c, tl_store *s, const char *run_id, tl_err *e) TL_MUST_USE;
/* A stream file of tests/engine on its own exact times, no socket in between. */
tl_status tl_show_as_stream(tl_cli *c, const char *path, tl_err *e) TL_MUST_USE;

/* What people call a cell of a shown run. */
typedef const char *tl_show_cell_name(const json_t *show, const char *key);
/* statistics: of tl_run_statistics (show_statistics.c). */
void tl_show_percentiles(tl_cli *c, const json_t *statistics, tl_show_cell_name *name, const json_t *show);
void tl_show_warnings(tl_cli *c, const json_t *statistics, tl_show_cell_name *name, const json_t *show);

#endif

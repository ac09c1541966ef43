/* Private to cli: an experiment with everything a verb needs to plan or run it, and the report's source of data. */
#ifndef TL_CLI_PROJECT_H
#define TL_CLI_PROJECT_H

#include "cli/cli.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "report/report.h"
#include "run/run.h"
#include "script/script.h"
#include "store/store.h"

typedef struct tl_project {
    tl_cli *c;
    const char *root; /* borrowed from c */
    tl_script *script;
    tl_plan *plan;
    json_t *adapter;  /* of the plan's engine */
    json_t *profiles; /* [{"id", "match", ...}] of machines/ */
    json_t *models;   /* tl_run_models; NULL until tl_project_models */
    char *path, *text;
} tl_project;

/* `experiment`: a path, or an id as in experiments/<map>/<id>.lua. Applies --set and --only of c. `text` (owned by the
 * caller, may be NULL) is used instead of the file's. */
tl_status tl_project_open(tl_project **out, tl_cli *c, const char *experiment, const char *text, tl_err *e) TL_MUST_USE;
/* From a stored or published plan text and script text. */
tl_status tl_project_from_plan(tl_project **out, tl_cli *c, const char *plan_text, const char *script_text, tl_err *e) TL_MUST_USE;
/* Is there an engine to start? Asked before gigabytes are written and hashed. TL_MISSING with the remedy. */
tl_status tl_project_engine(tl_project *p, tl_err *e) TL_MUST_USE;
/* Finds, writes and hashes the models; with --model NAME=FILE of c. dry: writes nothing. */
tl_status tl_project_models(tl_project *p, bool dry, tl_err *e) TL_MUST_USE;
tl_run_hooks tl_project_hooks(tl_project *p);
void tl_project_free(tl_project *p); /* NULL ok */

/* Machine profiles of machines/ and of the machine file `this.lua`. New reference. */
tl_status tl_project_profiles(json_t **out, tl_cli *c, tl_script *s, tl_err *e) TL_MUST_USE;
/* {"name": "path", ...} of --model NAME=FILE. New reference. */
tl_status tl_project_overrides(json_t **out, tl_cli *c, tl_err *e) TL_MUST_USE;
/* Opens the project's database. */
tl_status tl_project_store(tl_store **out, tl_cli *c, tl_store_mode mode, tl_err *e) TL_MUST_USE;
/* Starts a run that has no experiment (kind "probe", "calibrate"), with everything that is recorded of any run. plan: its
 * canonical text; machine: a snapshot; claim: of tl_run_machine_match. */
tl_status tl_project_start_run(char id[TL_STORE_ID], tl_store *store, tl_cli *c, const char *kind, const char *plan, const json_t *machine,
                               const char *claim, tl_err *e) TL_MUST_USE;
/* The same on a machine that is stored already: `what` has kind, machine_id, plan and, if wanted, claim and facts. */
tl_status tl_project_start_run_on(char id[TL_STORE_ID], tl_store *store, tl_cli *c, const tl_store_run *what, tl_err *e) TL_MUST_USE;
/* argv as JSON. New reference. */
json_t *tl_project_argv(const tl_cli *c);

/* ---- what is named: a run, its cells, a value (pick.c) ---- */

typedef struct tl_pick {
    char experiment[64], machine[64], run[32], name[64], selector[256]; /* "" where not given */
} tl_pick;
/* "EXPERIMENT[@MACHINE][#RUN][.NAME][{axis=value,...}]"; need_name: .NAME must be there. TL_INVALID. */
tl_status tl_pick_parse(tl_pick *out, const char *text, bool need_name, tl_err *e) TL_MUST_USE;
/* The run that is meant. TL_NOT_FOUND; TL_REFUSED with the reason when it is INVALID. */
tl_status tl_pick_run(char id[65], tl_store *s, const tl_pick *x, tl_err *e) TL_MUST_USE;

/* ---- the source of a report's data (source.c) ---- */

typedef struct tl_source {
    tl_cli *c;
    tl_store *store;
    tl_script *script;
    const char *lang;      /* of the report; set from its front matter by the caller */
    const char *html_path; /* for re-run commands */
    json_t *runs;          /* {run id: shown run}: each is read once */
} tl_source;
tl_report_source tl_source_functions(tl_source *s);
void tl_source_fini(tl_source *s);
/* The values of a run as the Lua side wants them: [{"key", "label", "axes", "values": {name: {...}}}], in cell order. */
tl_status tl_source_cells(json_t **out, tl_source *s, const char *run_id, tl_err *e) TL_MUST_USE;

#endif

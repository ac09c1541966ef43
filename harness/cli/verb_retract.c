/* tally retract: a correction that everybody can see. Nothing is edited or deleted. */
#include "cli/project.h"

static const tl_option options[] = {
    {.name = "why", .arg = "TEXT", .help = "the reason, shown wherever the value is shown"},
    {.name = "instead", .arg = "VALUE", .help = "the value that replaces it"},
    {0}};
static const tl_example examples[] = {{"tally retract 01J9ABC --why 'the laptop ran on battery'", "a value by the beginning of its id; `tally show RUN --json` has the ids"}, {0}};
static const tl_exit exits[] = {{0, "retracted"}, {2, "no reason, or the value is unknown or ambiguous"}, {4, "there is no database or no such value"}, {0}};

static tl_status run(tl_cli *c, tl_err *e) {
    tl_store *s = NULL;
    char value[65], instead[65] = "", id[TL_STORE_ID];
    const char *why = tl_cli_text(c, "why", NULL), *other = tl_cli_text(c, "instead", NULL);
    tl_status st = TL_OK;
    if (why == NULL || why[strspn(why, " ")] == 0) return tl_cli_usage(c, e, "tally retract needs --why: a correction without a reason helps nobody");
    TRY(tl_project_store(&s, c, TL_STORE_READ, e)); /* a typing error must not create a database */
    tl_store_close(s);
    s = NULL;
    TRY(tl_project_store(&s, c, TL_STORE_WRITE, e));
    TRY(tl_store_find(value, s, "value", c->args[0], e));
    if (other != NULL) TRY(tl_store_find(instead, s, "value", other, e));
    TRY(tl_store_retract(id, s, value, why, other ? instead : NULL, tl_clock_wall_ns(), e));
    fprintf(c->out, "value %s is retracted: %s\n", value, why);
out:
    tl_store_close(s);
    return st;
}

const tl_verb tl_verb_retract = {
    .name = "retract", .summary = "withdraw a value, visibly", .usage = "VALUE --why TEXT",
    .about = "VALUE is the beginning of a value's id. The value stays in the store; every report that shows it says that it was "
             "withdrawn, and why.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_NONE, .min_args = 1, .max_args = 1, .run = run};

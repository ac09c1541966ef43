/* tally verify: recomputes the hash chain of the database. */
#include "cli/project.h"

static const tl_option options[] = {{.name = "head", .arg = "HASH", .help = "a chain head printed earlier: detects rows cut off at the end"}, {0}};
static const tl_example examples[] = {{"tally verify", "every row, every hash, every trigger"}, {0}};
static const tl_exit exits[] = {{0, "nothing was changed"}, {2, "the command line is wrong"}, {3, "something was changed, removed or added behind tally's back"}, {4, "there is no database"}, {0}};

static void finding(void *ctx, const char *table, int64_t seq, const char *text) {
    tl_cli *c = ctx;
    if (!c->json) fprintf(c->out, "%s, row %" PRId64 " of the chain: %s\n", table, seq, text);
}

static tl_status run(tl_cli *c, tl_err *e) {
    tl_store *s = NULL;
    tl_store_verdict v = {0};
    tl_status st = tl_project_store(&s, c, TL_STORE_READ, e);
    if (st != TL_OK) return st;
    st = tl_store_verify(&v, s, tl_cli_text(c, "head", NULL), finding, c, e);
    if (c->json) {
        json_t *j = json_pack("{s:I, s:I, s:s}", "rows", (json_int_t)v.rows, "findings", (json_int_t)v.findings, "head", v.head);
        tl_cli_print_json(c, j);
        json_decref(j);
    } else if (st == TL_OK)
        fprintf(c->out, "%" PRId64 " rows verified, nothing was changed; chain head %s\n", v.rows, v.head);
    tl_store_close(s);
    return st;
}

const tl_verb tl_verb_verify = {
    .name = "verify", .summary = "recompute the database's hash chain", .usage = "",
    .about = "Every row carries the hash of the one before it. A changed, removed or inserted row breaks the chain and is named.",
    .options = options, .examples = examples, .exits = exits, .complete = TL_COMPLETE_NONE, .min_args = 0, .max_args = 0, .run = run};

/* Private to cli: the parser and the writers of help, man page and completions. */
#ifndef TL_CLI_IMPL_H
#define TL_CLI_IMPL_H

#include "cli/cli.h"

/* Options that every verb takes; ends with {0}. */
extern const tl_option cli_global_options[];
/* Codes of tl_exit_code, for `tally --help` and the man page; ends with {NULL when}. */
extern const tl_exit cli_exits[];

/* The i-th option of a verb: its own, then those of more_options; NULL after the last. verb may be NULL. */
const tl_option *cli_verb_option(const tl_verb *verb, size_t i);
/* By long name; the verb's own before the global ones. */
const tl_option *cli_find_option(const tl_verb *verb, const char *name);

typedef enum cli_wish { CLI_RUN, CLI_HELP, CLI_VERSION, CLI_MAN, CLI_COMPLETION } cli_wish;
/* Reads the command line. *wish says what is asked for; with CLI_HELP c->verb may be NULL. c is zeroed before
 * and is freed with cli_free in every case. */
tl_status cli_parse(tl_cli *c, cli_wish *wish, int argc, char **argv, tl_err *e) TL_MUST_USE;
void cli_free(tl_cli *c);

void cli_help(tl_buf *b, const tl_verb *verb); /* NULL: of tally itself */
void cli_man(tl_buf *b);
tl_status cli_completion(tl_buf *b, const char *shell, tl_err *e) TL_MUST_USE; /* bash, zsh, fish */

/* All of main but the process around it; returns the exit code. Results go to out, messages to standard
 * error. */
int cli_main(int argc, char **argv, FILE *out);
void cli_print_error(FILE *f, const tl_err *e);

#endif

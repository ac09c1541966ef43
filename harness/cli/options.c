/* The option parser, and what verbs read from it. Every option is declared in a table; one that is not is an
 * error that names the nearest. */
#include "cli/cli_impl.h"

#include <math.h>

#include "value/value.h"

const tl_option cli_global_options[] = {
    {.name = "db",
     .arg = "FILE",
     .help = "database",
     .otherwise = "TALLY_DB, else tally.db in the project",
     .complete = TL_COMPLETE_FILE},
    {.name = "lua-dir",
     .arg = "DIR",
     .help = "use the Lua library of this folder instead of the built-in one",
     .complete = TL_COMPLETE_DIR},
    {.name = "json", .help = "print results as JSON"},
    {.name = "quiet", .letter = 'q', .help = "errors only"},
    {.name = "verbose", .letter = 'v', .help = "say more of what is done"},
    {.name = "no-color", .help = "no colours, also on a terminal"},
    {.name = "help", .letter = 'h', .help = "this text; after a verb: about that verb"},
    {.name = "version", .help = "version, revision and libraries"},
    {0}};

/* For the build only, so not in help. */
static const tl_option hidden_options[] = {
    {.name = "man", .help = "print the man page"},
    {.name = "completion", .arg = "SHELL", .help = "print the completions for bash, zsh or fish"},
    {0}};

const tl_exit cli_exits[] = {
    {0, "done"},
    {1, "it differs, or it failed"},
    {2, "the command line, a script or another input is wrong"},
    {3, "a check refused"},
    {4, "something that is needed is missing; the message says what, and how to get it"},
    {0, NULL}};

const tl_option *cli_verb_option(const tl_verb *verb, size_t i) {
    if (verb == NULL) return NULL;
    size_t own = 0;
    while (verb->options != NULL && verb->options[own].name != NULL) own++;
    if (i < own) return &verb->options[i];
    return verb->more_options != NULL ? verb->more_options(i - own) : NULL;
}

static const tl_option *in_table(const tl_option *table, const char *name, char letter) {
    for (; table->name != NULL; table++)
        if (letter ? table->letter == letter : tl_str_eq(table->name, name)) return table;
    return NULL;
}

static const tl_option *find(const tl_verb *verb, const char *name, char letter) {
    const tl_option *o;
    for (size_t i = 0; (o = cli_verb_option(verb, i)) != NULL; i++)
        if (letter ? o->letter == letter : tl_str_eq(o->name, name)) return o;
    o = in_table(cli_global_options, name, letter);
    return o != NULL || letter ? o : in_table(hidden_options, name, 0);
}

const tl_option *cli_find_option(const tl_verb *verb, const char *name) {
    return find(verb, name, 0);
}

tl_status tl_cli_usage(tl_cli *c, tl_err *e, const char *fmt, ...) {
    char msg[640];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    tl_fail(e, TL_INVALID, "%s", msg);
    if (c->verb != NULL)
        tl_remedy(e, "usage: tally %s [options] %s; see tally %s --help", c->verb->name,
                  c->verb->usage ? c->verb->usage : "", c->verb->name);
    else
        tl_remedy(e, "see tally --help");
    return TL_INVALID;
}

static tl_status unknown_option(tl_cli *c, const char *text, const char *name, tl_err *e) {
    const char *names[128];
    size_t n = 0;
    const tl_option *o;
    for (size_t i = 0; (o = cli_verb_option(c->verb, i)) != NULL && n < 100; i++) names[n++] = o->name;
    for (o = cli_global_options; o->name != NULL && n < TL_COUNT(names); o++) names[n++] = o->name;
    tl_status st = tl_cli_usage(c, e, "unknown option '%.60s'%s%s", text, c->verb ? " of " : "",
                                c->verb ? c->verb->name : "");
    const char *near = tl_nearest(name, names, n);
    if (near != NULL) tl_remedy(e, "did you mean '--%s'?", near);
    return st;
}

typedef struct parser {
    tl_cli *c;
    int argc, at;
    char **argv;
    size_t cap_given, cap_args;
    tl_err *e;
} parser;

static tl_status give(parser *p, const tl_option *o, const char *value) {
    tl_cli *c = p->c;
    bool global = in_table(cli_global_options, o->name, 0) == o || in_table(hidden_options, o->name, 0) == o;
    for (size_t i = 0; i < c->n_given && !o->many && !global; i++)
        if (c->given[i].option == o) return tl_cli_usage(c, p->e, "option '--%s' is given twice", o->name);
    TL_PUSH(c->given, c->n_given, p->cap_given, ((tl_given){o, value}));
    return TL_OK;
}

static tl_status take_long(parser *p, const char *text) {
    const char *eq = strchr(text, '=');
    char name[64];
    snprintf(name, sizeof name, "%.*s", eq ? (int)(eq - text - 2 < 63 ? eq - text - 2 : 63) : 63, text + 2);
    const tl_option *o = find(p->c->verb, name, 0);
    if (o == NULL) return unknown_option(p->c, text, name, p->e);
    if (o->arg == NULL)
        return eq ? tl_cli_usage(p->c, p->e, "option '--%s' takes no argument", name) : give(p, o, NULL);
    if (eq != NULL) return give(p, o, eq + 1);
    if (p->at >= p->argc)
        return tl_cli_usage(p->c, p->e, "option '--%s' needs an argument: %s", name, o->arg);
    return give(p, o, p->argv[p->at++]);
}

static tl_status take_short(parser *p, const char *text) {
    for (const char *l = text + 1; *l; l++) {
        const tl_option *o = find(p->c->verb, NULL, *l);
        if (o == NULL) return unknown_option(p->c, text, text + 1, p->e);
        tl_status st;
        if (o->arg == NULL) {
            st = give(p, o, NULL);
            if (st != TL_OK) return st;
            continue;
        }
        if (l[1] != 0) return give(p, o, l + 1);
        if (p->at >= p->argc)
            return tl_cli_usage(p->c, p->e, "option '-%c' needs an argument: %s", *l, o->arg);
        return give(p, o, p->argv[p->at++]);
    }
    return TL_OK;
}

static tl_status take_verb(parser *p, const char *name) {
    p->c->verb = tl_verb_find(name);
    if (p->c->verb != NULL) return TL_OK;
    const char *names[64];
    size_t n = 0;
    while (tl_verbs[n] != NULL && n < TL_COUNT(names)) {
        names[n] = tl_verbs[n]->name;
        n++;
    }
    tl_status st = tl_cli_usage(p->c, p->e, "there is no verb '%.60s'", name);
    const char *near = tl_nearest(name, names, n);
    if (near != NULL) tl_remedy(p->e, "did you mean '%s'? `tally --help` lists all", near);
    return st;
}

static tl_status take(parser *p) {
    bool options = true;
    tl_status st = TL_OK;
    while (p->at < p->argc && st == TL_OK) {
        const char *text = p->argv[p->at++];
        if (options && strcmp(text, "--") == 0)
            options = false;
        else if (options && tl_str_starts(text, "--"))
            st = take_long(p, text);
        else if (options && text[0] == '-' && text[1] != 0)
            st = take_short(p, text);
        else if (p->c->verb == NULL)
            st = take_verb(p, text);
        else
            TL_PUSH(p->c->args, p->c->n_args, p->cap_args, text);
    }
    return st;
}

static tl_status check_operands(tl_cli *c, tl_err *e) {
    const tl_verb *v = c->verb;
    if (v == NULL) return tl_cli_usage(c, e, "a verb is missing");
    if ((int)c->n_args < v->min_args) return tl_cli_usage(c, e, "%s: %s is missing", v->name, v->usage);
    if (v->max_args >= 0 && (int)c->n_args > v->max_args)
        return tl_cli_usage(c, e, "%s: '%.60s' is left over", v->name, c->args[v->max_args]);
    return TL_OK;
}

tl_status cli_parse(tl_cli *c, cli_wish *wish, int argc, char **argv, tl_err *e) {
    parser p = {.c = c, .argc = argc, .at = 1, .argv = argv, .e = e};
    c->argc = argc;
    c->argv = argv;
    *wish = CLI_RUN;
    tl_status st = take(&p);
    c->json = tl_cli_flag(c, "json");
    c->no_color = tl_cli_flag(c, "no-color");
    c->lua_dir = tl_cli_text(c, "lua-dir", NULL);
    c->db_option = tl_cli_text(c, "db", NULL);
    if (st != TL_OK) return st;
    if (tl_cli_flag(c, "help"))
        *wish = CLI_HELP;
    else if (tl_cli_flag(c, "version"))
        *wish = CLI_VERSION;
    else if (tl_cli_flag(c, "man"))
        *wish = CLI_MAN;
    else if (tl_cli_flag(c, "completion"))
        *wish = CLI_COMPLETION;
    else
        return check_operands(c, e);
    return TL_OK;
}

void cli_free(tl_cli *c) {
    free(c->given);
    free(c->args);
    free(c->root);
    free(c->db);
    c->given = NULL;
    c->args = NULL;
    c->root = c->db = NULL;
}

/* ---- reading
 * ----------------------------------------------------------------------------------------------------- */

bool tl_cli_flag(const tl_cli *c, const char *name) {
    for (size_t i = 0; i < c->n_given; i++)
        if (tl_str_eq(c->given[i].option->name, name)) return true;
    return false;
}

const char *tl_cli_text(const tl_cli *c, const char *name, const char *otherwise) {
    for (size_t i = c->n_given; i-- > 0;)
        if (tl_str_eq(c->given[i].option->name, name)) return c->given[i].value;
    return otherwise;
}

const char *tl_cli_nth(const tl_cli *c, const char *name, size_t n) {
    for (size_t i = 0; i < c->n_given; i++)
        if (tl_str_eq(c->given[i].option->name, name) && n-- == 0) return c->given[i].value;
    return NULL;
}

tl_status tl_cli_int(int64_t *out, const tl_cli *c, const char *name, int64_t otherwise, int64_t min,
                     int64_t max, tl_err *e) {
    const char *text = tl_cli_text(c, name, NULL);
    *out = otherwise;
    if (text == NULL) return TL_OK;
    if (tl_parse_i64(text, out) && *out >= min && *out <= max) return TL_OK;
    return tl_fail(e, TL_INVALID, "--%s %.60s: an integer from %" PRId64 " to %" PRId64 " is needed", name,
                   text, min, max);
}

tl_status tl_cli_bytes(uint64_t *out, const tl_cli *c, const char *name, uint64_t otherwise, tl_err *e) {
    const char *text = tl_cli_text(c, name, NULL);
    char number[40];
    double x;
    tl_unit unit, byte;
    tl_unit_ratio ratio;
    *out = otherwise;
    if (text == NULL) return TL_OK;
    size_t n = strspn(text, "0123456789.");
    snprintf(number, sizeof number, "%.*s", (int)(n < 39 ? n : 39), text);
    const char *word = text + n + strspn(text + n, " ");
    tl_status st = tl_parse_f64(number, &x) ? TL_OK : tl_fail(e, TL_INVALID, "a number is missing");
    if (st == TL_OK) st = tl_unit_parse(&byte, "byte", e);
    if (st == TL_OK) st = tl_unit_parse(&unit, *word ? word : "byte", e);
    if (st == TL_OK) st = tl_unit_match(&ratio, &unit, &byte, e);
    if (st == TL_OK && !(tl_unit_apply(ratio, x) < 9e18)) st = tl_fail(e, TL_INVALID, "this is too much");
    if (st == TL_OK)
        *out = (uint64_t)llround(tl_unit_apply(ratio, x));
    else
        tl_wrap(e, "--%s %.60s", name, text);
    return st;
}

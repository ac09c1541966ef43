/* --help, from the tables. */
#include "cli/cli_impl.h"

enum { TEXT_WIDTH = 78 };

/* Words of text from column `indent` on, wrapped; the first line starts where the caller is. */
static void wrap(tl_buf *b, const char *text, int indent) {
    int column = indent;
    while (*text) {
        size_t n = strcspn(text, " \n");
        char *word = tl_xstrndup(text, n);
        int w = tl_utf8_width(word);
        if (column > indent && column + 1 + w > TEXT_WIDTH) {
            tl_buf_fmt(b, "\n%*s", indent, "");
            column = indent;
        }
        if (column > indent) {
            tl_buf_char(b, ' ');
            column++;
        }
        tl_buf_str(b, word);
        column += w;
        free(word);
        text += n;
        while (*text == ' ') text++;
        if (*text == '\n') {
            while (*text == '\n') text++;
            tl_buf_fmt(b, "\n\n%*s", indent, "");
            column = indent;
        }
    }
    tl_buf_char(b, '\n');
}

static void option_head(tl_buf *b, const tl_option *o) {
    if (o->letter) tl_buf_fmt(b, "-%c, ", o->letter);
    tl_buf_fmt(b, "--%s", o->name);
    if (o->arg != NULL) tl_buf_fmt(b, " %s", o->arg);
}

static void put_option(tl_buf *b, const tl_option *o) {
    enum { INDENT = 24 };
    tl_buf head, text;
    tl_buf_init(&head, 0);
    tl_buf_init(&text, 0);
    option_head(&head, o);
    tl_buf_fmt(b, "  %s", head.p);
    int at = 2 + tl_utf8_width(head.p);
    if (at + 2 > INDENT)
        tl_buf_fmt(b, "\n%*s", INDENT, "");
    else
        tl_buf_fmt(b, "%*s", INDENT - at, "");
    tl_buf_str(&text, o->help);
    if (o->otherwise != NULL) tl_buf_fmt(&text, " [%s]", o->otherwise);
    if (o->many) tl_buf_str(&text, " (may be repeated)");
    wrap(b, text.p, INDENT);
    tl_buf_free(&head);
    tl_buf_free(&text);
}

static void put_exits(tl_buf *b, const tl_exit *x) {
    tl_buf_str(b, "\nExit codes:\n");
    for (; x->when != NULL; x++) {
        tl_buf_fmt(b, "  %d  ", x->code);
        wrap(b, x->when, 5);
    }
}

static void verb_help(tl_buf *b, const tl_verb *v) {
    const tl_option *o;
    tl_buf_fmt(b, "tally %s: %s\n\nusage: tally %s [options]%s%s\n\n", v->name, v->summary, v->name,
               v->usage && *v->usage ? " " : "", v->usage ? v->usage : "");
    if (v->about != NULL) {
        wrap(b, v->about, 0);
        tl_buf_char(b, '\n');
    }
    if (cli_verb_option(v, 0) != NULL) tl_buf_str(b, "Options:\n");
    for (size_t i = 0; (o = cli_verb_option(v, i)) != NULL; i++) put_option(b, o);
    tl_buf_str(b, cli_verb_option(v, 0) != NULL ? "\nOptions of every verb:\n" : "Options of every verb:\n");
    for (o = cli_global_options; o->name != NULL; o++) put_option(b, o);
    tl_buf_str(b, "\nExamples:\n");
    for (const tl_example *x = v->examples; x->command != NULL; x++)
        tl_buf_fmt(b, "  %s\n      %s\n", x->command, x->what);
    put_exits(b, v->exits);
}

void cli_help(tl_buf *b, const tl_verb *verb) {
    if (verb != NULL) {
        verb_help(b, verb);
        return;
    }
    tl_buf_str(b, "tally: measures local language models so that a reader can check every number\n\n"
                  "usage: tally VERB [options] ...\n\nVerbs:\n");
    for (size_t i = 0; tl_verbs[i] != NULL; i++) {
        tl_buf_fmt(b, "  %-12s", tl_verbs[i]->name);
        wrap(b, tl_verbs[i]->summary, 14);
    }
    tl_buf_str(b, "\nOptions of every verb:\n");
    for (const tl_option *o = cli_global_options; o->name != NULL; o++) put_option(b, o);
    tl_buf_str(b, "\nExamples:\n  tally doctor\n      what this machine has and lacks\n  tally doctor "
                  "--help\n      all about one verb\n");
    put_exits(b, cli_exits);
}

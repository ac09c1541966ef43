/* The man page, in the classic macros, which every troff reads. */
#include "cli/cli_impl.h"

/* Text as troff takes it literally: backslashes, hyphens and a leading dot or quote mean themselves. */
static void put(tl_buf *b, const char *s) {
    bool line_start = b->len == 0 || b->p[b->len - 1] == '\n';
    for (; *s; s++) {
        if (line_start && (*s == '.' || *s == '\'')) tl_buf_str(b, "\\&");
        line_start = *s == '\n';
        if (*s == '\\')
            tl_buf_str(b, "\\e");
        else if (*s == '-')
            tl_buf_str(b, "\\-");
        else if (*s == '\n' && s[1] == '\n')
            tl_buf_str(b, "\n.PP"); /* the second line end follows */
        else
            tl_buf_char(b, *s);
    }
}

static void put_option(tl_buf *b, const tl_option *o) {
    tl_buf_str(b, ".TP\n.B ");
    if (o->letter) {
        char letter[4] = {'-', o->letter, ',', 0};
        put(b, letter);
        tl_buf_char(b, ' ');
    }
    tl_buf_str(b, "\\-\\-");
    put(b, o->name);
    if (o->arg != NULL) {
        tl_buf_str(b, " \\fI");
        put(b, o->arg);
        tl_buf_str(b, "\\fR");
    }
    tl_buf_char(b, '\n');
    put(b, o->help);
    if (o->otherwise != NULL) {
        tl_buf_str(b, " [");
        put(b, o->otherwise);
        tl_buf_char(b, ']');
    }
    tl_buf_char(b, '\n');
}

static void put_exits(tl_buf *b, const tl_exit *x) {
    for (; x->when != NULL; x++) {
        tl_buf_fmt(b, ".TP\n.B %d\n", x->code);
        put(b, x->when);
        tl_buf_char(b, '\n');
    }
}

static void put_verb(tl_buf *b, const tl_verb *v) {
    const tl_option *o;
    tl_buf_fmt(b, ".SS tally %s\n", v->name);
    tl_buf_fmt(b, ".B tally %s\n[options] ", v->name);
    put(b, v->usage ? v->usage : "");
    tl_buf_str(b, "\n.PP\n");
    put(b, v->summary);
    tl_buf_str(b, ".\n");
    if (v->about != NULL) {
        tl_buf_str(b, ".PP\n");
        put(b, v->about);
        tl_buf_char(b, '\n');
    }
    for (size_t i = 0; (o = cli_verb_option(v, i)) != NULL; i++) put_option(b, o);
    tl_buf_str(b, ".PP\nExamples:\n");
    for (const tl_example *x = v->examples; x->command != NULL; x++) {
        tl_buf_str(b, ".TP\n.B ");
        put(b, x->command);
        tl_buf_char(b, '\n');
        put(b, x->what);
        tl_buf_char(b, '\n');
    }
    tl_buf_str(b, ".PP\nExit codes:\n");
    put_exits(b, v->exits);
}

void cli_man(tl_buf *b) {
    tl_buf_fmt(b, ".TH TALLY 1 \"\" \"tally %s\" \"User Commands\"\n", tl_version());
    tl_buf_str(b,
               ".SH NAME\ntally \\- measures local language models so that a reader can check every number\n"
               ".SH SYNOPSIS\n.B tally\n.I VERB\n[options] ...\n"
               ".SH DESCRIPTION\n"
               "Experiments are Lua files that become plans; plans run on real engines; every request is "
               "stored with what it\n"
               "was measured with; reports are drawn from the store, and every figure names the command that "
               "measures it again.\n"
               ".SH VERBS\n");
    for (size_t i = 0; tl_verbs[i] != NULL; i++) put_verb(b, tl_verbs[i]);
    tl_buf_str(b, ".SH OPTIONS OF EVERY VERB\n");
    for (const tl_option *o = cli_global_options; o->name != NULL; o++) put_option(b, o);
    tl_buf_str(b, ".SH EXIT STATUS\n");
    put_exits(b, cli_exits);
    tl_buf_str(b, ".SH ENVIRONMENT\n"
                  ".TP\n.B TALLY_DB\nDatabase, when \\-\\-db is not given.\n"
                  ".TP\n.B TALLY_CACHE\nFolder for models and engines that tally makes; else "
                  "XDG_CACHE_HOME/tally, else ~/.cache/tally.\n"
                  ".TP\n.B TALLY_API_KEY\nKey for a server that `tally doctor ENDPOINT` asks; sent as a bearer token to that address alone.\n"
                  ".TP\n.B NO_COLOR\nNo colours.\n"
                  ".SH FILES\n.TP\n.B tally.db\nIn the project folder, the nearest one upwards that holds "
                  "machines/ and experiments/.\n");
}

/* Completions for bash, zsh and fish. Names of experiments and machines are looked up when the key is
 * pressed, in the project upwards from the working folder. */
#include "cli/cli_impl.h"

typedef struct shell {
    const char *name;
    void (*write)(tl_buf *b);
} shell;

static const char *const find_project = "    local d=$PWD\n"
                                        "    while [ -n \"$d\" ] && ! { [ -d \"$d/machines\" ] && [ -d "
                                        "\"$d/experiments\" ]; }; do d=${d%/*}; done\n";

/* ---- bash
 * -------------------------------------------------------------------------------------------------------- */

static const char *bash_action(tl_complete k) {
    switch (k) {
    case TL_COMPLETE_FILE:
        return "local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))";
    case TL_COMPLETE_DIR:
        return "local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\"))";
    case TL_COMPLETE_EXPERIMENT:
        return "COMPREPLY=($(compgen -W \"$(_tally_names 'experiments/*')\" -- \"$cur\"))";
    case TL_COMPLETE_MACHINE:
        return "COMPREPLY=($(compgen -W \"$(_tally_names machines)\" -- \"$cur\"))";
    case TL_COMPLETE_NONE:
        break;
    }
    return ":";
}

static void bash_words(tl_buf *b, const tl_option *o) {
    tl_buf_fmt(b, " --%s", o->name);
    if (o->letter) tl_buf_fmt(b, " -%c", o->letter);
}

static void bash_argument(tl_buf *b, const char *verb, const tl_option *o) {
    if (o->arg == NULL) return;
    tl_buf_fmt(b, "        '%s --%s'", verb, o->name);
    if (o->letter) tl_buf_fmt(b, "|'%s -%c'", verb, o->letter);
    tl_buf_fmt(b, ") %s; return ;;\n", bash_action(o->complete));
}

static void write_bash(tl_buf *b) {
    const tl_option *o;
    tl_buf_str(b, "# bash completion for tally, generated from its table of verbs\n"
                  "_tally_names() {\n");
    tl_buf_str(b, find_project);
    tl_buf_str(b, "    [ -n \"$d\" ] || return\n"
                  "    local f\n"
                  "    for f in \"$d\"/$1/*.lua; do [ -e \"$f\" ] && f=${f##*/} && echo \"${f%.lua}\"; done\n"
                  "}\n"
                  "_tally() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' i\n"
                  "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "        case ${COMP_WORDS[i]} in\n            ");
    for (size_t i = 0; tl_verbs[i] != NULL; i++) tl_buf_fmt(b, "%s%s", i ? "|" : "", tl_verbs[i]->name);
    tl_buf_str(b, ") verb=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n    COMPREPLY=()\n    case "
                  "\"$verb $prev\" in\n");
    for (size_t v = 0; tl_verbs[v] != NULL; v++)
        for (size_t i = 0; (o = cli_verb_option(tl_verbs[v], i)) != NULL; i++)
            bash_argument(b, tl_verbs[v]->name, o);
    tl_buf_str(b, "    esac\n    case $prev in\n");
    for (o = cli_global_options; o->name != NULL; o++)
        if (o->arg != NULL) tl_buf_fmt(b, "        --%s) %s; return ;;\n", o->name, bash_action(o->complete));
    tl_buf_str(b, "    esac\n    local options='");
    for (o = cli_global_options; o->name != NULL; o++) bash_words(b, o);
    tl_buf_str(b, "'\n    case $verb in\n        '') COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; tl_verbs[i] != NULL; i++) tl_buf_fmt(b, "%s ", tl_verbs[i]->name);
    tl_buf_str(b, "$options\" -- \"$cur\")); return ;;\n");
    for (size_t v = 0; tl_verbs[v] != NULL; v++) {
        tl_buf_fmt(b, "        %s) options+='", tl_verbs[v]->name);
        for (size_t i = 0; (o = cli_verb_option(tl_verbs[v], i)) != NULL; i++) bash_words(b, o);
        tl_buf_fmt(b, "'\n            [[ $cur == -* ]] || { %s; return; } ;;\n",
                   bash_action(tl_verbs[v]->complete));
    }
    tl_buf_str(
        b, "    esac\n    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n}\ncomplete -F _tally tally\n");
}

/* ---- zsh
 * ---------------------------------------------------------------------------------------------------------
 */

static const char *zsh_action(tl_complete k) {
    switch (k) {
    case TL_COMPLETE_FILE:
        return "_files";
    case TL_COMPLETE_DIR:
        return "_files -/";
    case TL_COMPLETE_EXPERIMENT:
        return "_tally_names experiments";
    case TL_COMPLETE_MACHINE:
        return "_tally_names machines";
    case TL_COMPLETE_NONE:
        break;
    }
    return " ";
}

/* Text in a specification of _arguments: brackets, colons and quotes are taken literally. */
static void zsh_text(tl_buf *b, const char *s) {
    for (; *s; s++) {
        if (strchr("[]:\\", *s) != NULL) tl_buf_char(b, '\\');
        if (*s == '\'')
            tl_buf_str(b, "'\\''");
        else
            tl_buf_char(b, *s);
    }
}

static void zsh_spec(tl_buf *b, const tl_option *o, bool letter) {
    tl_buf_str(b, " \\\n        '");
    if (o->many) tl_buf_char(b, '*');
    if (letter)
        tl_buf_fmt(b, "-%c[", o->letter);
    else
        tl_buf_fmt(b, "--%s%s[", o->name, o->arg ? "=" : "");
    zsh_text(b, o->help);
    tl_buf_char(b, ']');
    if (o->arg != NULL) {
        tl_buf_char(b, ':');
        zsh_text(b, o->arg);
        tl_buf_fmt(b, ":%s", zsh_action(o->complete));
    }
    tl_buf_char(b, '\'');
}

static void zsh_option(tl_buf *b, const tl_option *o) {
    zsh_spec(b, o, false);
    if (o->letter) zsh_spec(b, o, true);
}

static void write_zsh(tl_buf *b) {
    const tl_option *o;
    tl_buf_str(
        b,
        "#compdef tally\n# zsh completion for tally, generated from its table of verbs\n_tally_names() {\n");
    tl_buf_str(b, find_project);
    tl_buf_str(b, "    [ -n \"$d\" ] || return\n"
                  "    local -a names\n"
                  "    if [ \"$1\" = machines ]; then names=(\"$d\"/machines/*.lua(N:t:r)); else "
                  "names=(\"$d\"/experiments/*/*.lua(N:t:r)); fi\n"
                  "    compadd -a names\n}\n"
                  "_tally() {\n    local state line\n    local -a verbs\n    verbs=(");
    for (size_t i = 0; tl_verbs[i] != NULL; i++) {
        tl_buf_fmt(b, "\n        '%s:", tl_verbs[i]->name);
        zsh_text(b, tl_verbs[i]->summary);
        tl_buf_char(b, '\'');
    }
    tl_buf_str(b, "\n    )\n    _arguments -C");
    for (o = cli_global_options; o->name != NULL; o++) zsh_option(b, o);
    tl_buf_str(b, " \\\n        '1:verb:->verb' \\\n        '*::argument:->argument'\n    case $state in\n"
                  "    verb) _describe verb verbs ;;\n    argument)\n        case $line[1] in\n");
    for (size_t v = 0; tl_verbs[v] != NULL; v++) {
        tl_buf_fmt(b, "        %s) _arguments", tl_verbs[v]->name);
        for (size_t i = 0; (o = cli_verb_option(tl_verbs[v], i)) != NULL; i++) zsh_option(b, o);
        for (o = cli_global_options; o->name != NULL; o++) zsh_option(b, o);
        tl_buf_fmt(b, " \\\n        '*:argument:%s' ;;\n", zsh_action(tl_verbs[v]->complete));
    }
    tl_buf_str(b, "        esac ;;\n    esac\n}\n_tally \"$@\"\n");
}

/* ---- fish
 * -------------------------------------------------------------------------------------------------------- */

static void fish_quoted(tl_buf *b, const char *s) {
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\') tl_buf_char(b, '\\');
        tl_buf_char(b, *s);
    }
}

static void fish_kind(tl_buf *b, tl_complete k) {
    switch (k) {
    case TL_COMPLETE_FILE:
        tl_buf_str(b, " -F");
        break;
    case TL_COMPLETE_DIR:
        tl_buf_str(b, " -f -a '(__fish_complete_directories)'");
        break;
    case TL_COMPLETE_EXPERIMENT:
        tl_buf_str(b, " -f -a '(__tally_names experiments)'");
        break;
    case TL_COMPLETE_MACHINE:
        tl_buf_str(b, " -f -a '(__tally_names machines)'");
        break;
    case TL_COMPLETE_NONE:
        break;
    }
}

static void fish_option(tl_buf *b, const char *verb, const tl_option *o) {
    tl_buf_str(b, "complete -c tally");
    if (verb != NULL) tl_buf_fmt(b, " -n '__fish_seen_subcommand_from %s'", verb);
    tl_buf_fmt(b, " -l %s", o->name);
    if (o->letter) tl_buf_fmt(b, " -s %c", o->letter);
    if (o->arg != NULL) tl_buf_str(b, " -r");
    if (o->arg != NULL) fish_kind(b, o->complete);
    tl_buf_str(b, " -d '");
    fish_quoted(b, o->help);
    tl_buf_str(b, "'\n");
}

static void write_fish(tl_buf *b) {
    const tl_option *o;
    tl_buf_str(b, "# fish completion for tally, generated from its table of verbs\n"
                  "function __tally_names\n"
                  "    set -l d $PWD\n"
                  "    while test -n \"$d\"; and not test -d $d/machines -a -d $d/experiments\n"
                  "        set d (string replace -r '/[^/]*$' '' -- $d)\n"
                  "    end\n"
                  "    test -n \"$d\"; or return\n"
                  "    if test $argv[1] = machines\n"
                  "        set files $d/machines/*.lua\n"
                  "    else\n"
                  "        set files $d/experiments/*/*.lua\n"
                  "    end\n"
                  "    for f in $files\n"
                  "        string replace -r '.*/([^/]*)\\.lua$' '$1' -- $f\n"
                  "    end\n"
                  "end\n"
                  "complete -c tally -f\n");
    for (size_t v = 0; tl_verbs[v] != NULL; v++) {
        tl_buf_fmt(b, "complete -c tally -n __fish_use_subcommand -a %s -d '", tl_verbs[v]->name);
        fish_quoted(b, tl_verbs[v]->summary);
        tl_buf_str(b, "'\n");
    }
    for (o = cli_global_options; o->name != NULL; o++) fish_option(b, NULL, o);
    for (size_t v = 0; tl_verbs[v] != NULL; v++) {
        for (size_t i = 0; (o = cli_verb_option(tl_verbs[v], i)) != NULL; i++)
            fish_option(b, tl_verbs[v]->name, o);
        if (tl_verbs[v]->complete == TL_COMPLETE_NONE) continue;
        tl_buf_fmt(b, "complete -c tally -n '__fish_seen_subcommand_from %s'", tl_verbs[v]->name);
        fish_kind(b, tl_verbs[v]->complete);
        tl_buf_char(b, '\n');
    }
}

tl_status cli_completion(tl_buf *b, const char *name, tl_err *e) {
    static const shell shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; i < TL_COUNT(shells); i++)
        if (tl_str_eq(shells[i].name, name)) return shells[i].write(b), TL_OK;
    tl_fail(e, TL_INVALID, "there are no completions for '%.40s'", name ? name : "");
    tl_remedy(e, "bash, zsh or fish");
    return TL_INVALID;
}

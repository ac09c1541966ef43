/* tally-script-server [--port N] [--log FILE] [--health-503 N] [--path P=FILE]... [FILE]
 *
 * Plays FILE on every path, or each FILE on its path P. Prints "http://127.0.0.1:PORT" on one line when it listens and
 * serves until it is killed or standard input is closed. */
#include "server.h"

#include <signal.h>
#include <unistd.h>

static int usage(void) {
    fprintf(stderr, "usage: tally-script-server [--port N] [--log FILE] [--health-503 N] [--path P=FILE]... [FILE]\n");
    return 2;
}

static tl_status set_path(tl_script_server *s, const char *arg, tl_err *e) {
    const char *eq = strchr(arg, '=');
    if (eq == NULL) return tl_fail(e, TL_INVALID, "--path %s: not PATH=FILE", arg);
    char *path = tl_xstrndup(arg, (size_t)(eq - arg));
    const tl_status st = tl_script_server_play_file(s, path, eq + 1, e);
    free(path);
    return st;
}

/* Options that the start needs; false when the command line is wrong. */
static bool parse_options(tl_script_options *o, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        int64_t n = 0;
        if (argv[i][0] != '-') continue;
        if (i + 1 == argc) return false;
        const char *name = argv[i], *value = argv[++i];
        const bool number = tl_parse_i64(value, &n) && n >= 0 && n <= 65535;
        if (tl_str_eq(name, "--log")) o->log_path = value;
        else if (tl_str_eq(name, "--port") && number) o->port = (uint16_t)n;
        else if (tl_str_eq(name, "--health-503") && number) o->health_503 = (uint32_t)n;
        else if (!tl_str_eq(name, "--path")) return false;
    }
    return true;
}

static tl_status set_streams(tl_script_server *s, int argc, char **argv, tl_err *e) {
    tl_status st = TL_OK;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') TRY(tl_script_server_play_file(s, NULL, argv[i], e));
        else if (tl_str_eq(argv[i++], "--path")) TRY(set_path(s, argv[i], e));
    }
out:
    return st;
}

int main(int argc, char **argv) {
    tl_err e = {0};
    tl_status st = TL_OK;
    tl_script_options o = {0};
    tl_script_server *s = NULL;
    char block[256];
    signal(SIGPIPE, SIG_IGN);
    if (!parse_options(&o, argc, argv)) return usage();
    TRY(tl_script_server_start(&s, &o, &e));
    TRY(set_streams(s, argc, argv, &e));
    printf("%s\n", tl_script_server_url(s));
    fflush(stdout);
    while (read(0, block, sizeof block) > 0) continue;
out:
    if (st != TL_OK) fprintf(stderr, "tally-script-server: %s\n", e.msg);
    tl_script_server_stop(s);
    return st == TL_OK ? 0 : 1;
}

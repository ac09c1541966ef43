/* tally-script-server [--port N] [--log FILE] [--health-503 N] [--path P=FILE]... [FILE]
 *
 * Plays FILE on every path, or each FILE on its path P. Prints "http://127.0.0.1:PORT" on one line when it listens and
 * serves until it is killed or standard input is closed. */
#include "server.h"

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

int main(int argc, char **argv) {
    tl_err e = {0};
    tl_status st = TL_OK;
    tl_script_options o = {0};
    tl_script_server *s = NULL;
    int64_t n;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') continue;
        if (i + 1 == argc) return usage();
        const char *value = argv[++i];
        if (tl_str_eq(argv[i - 1], "--log")) o.log_path = value;
        else if (tl_str_eq(argv[i - 1], "--path")) continue;
        else if (!tl_parse_i64(value, &n) || n < 0 || n > 65535) return usage();
        else if (tl_str_eq(argv[i - 1], "--port")) o.port = (uint16_t)n;
        else if (tl_str_eq(argv[i - 1], "--health-503")) o.health_503 = (uint32_t)n;
        else return usage();
    }
    TRY(tl_script_server_start(&s, &o, &e));
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') TRY(tl_script_server_play_file(s, NULL, argv[i], &e));
        else if (tl_str_eq(argv[i++], "--path")) TRY(set_path(s, argv[i], &e));
    }
    printf("%s\n", tl_script_server_url(s));
    fflush(stdout);
    char block[256];
    while (read(0, block, sizeof block) > 0) continue;
out:
    if (st != TL_OK) fprintf(stderr, "tally-script-server: %s\n", e.msg);
    tl_script_server_stop(s);
    return st == TL_OK ? 0 : 1;
}

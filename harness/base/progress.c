/* Progress with ETA: a line that rewrites itself on a terminal, plain lines elsewhere. */
#include "base/base.h"

#include <unistd.h>

static void duration(char out[32], double s) {
    if (s < 0 || s > 99 * 3600.0)
        snprintf(out, 32, "?");
    else if (s < 60)
        snprintf(out, 32, "%.0f s", s);
    else if (s < 3600)
        snprintf(out, 32, "%d min %02d s", (int)s / 60, (int)s % 60);
    else
        snprintf(out, 32, "%d h %02d min", (int)s / 3600, (int)s / 60 % 60);
}

void tl_progress_start(tl_progress *p, const char *what, double total, double now_s) {
    *p = (tl_progress){.start_s = now_s, .last_s = -1e9, .total = total};
    snprintf(p->what, sizeof p->what, "%s", what);
    p->tty = isatty(2) == 1 && !tl_str_eq(getenv("TERM"), "dumb");
    p->quiet = tl_log_level < TL_LOG_INFO;
}

void tl_progress_set(tl_progress *p, double done, const char *detail, double now_s) {
    bool again = p->done >= p->total && done >= p->total && p->shown; /* the last line was shown already */
    p->done = done;
    double wait = p->tty ? 0.1 : 10;
    bool last = done >= p->total;
    if (p->quiet || (again && !p->tty) || (now_s - p->last_s < wait && !last)) return;
    p->last_s = now_s;
    char eta[32] = "?";
    double gone = now_s - p->start_s, share = p->total > 0 ? done / p->total : 0;
    if (share > 0.01 || last) duration(eta, share > 0 ? gone * (1 - share) / share : 0);
    fprintf(stderr, p->tty ? "\r\033[K%s %3.0f %%  ETA %s  %s" : "%s %3.0f %%  ETA %s  %s\n", p->what, 100 * share, eta,
            detail ? detail : "");
    p->shown = true;
    fflush(stderr);
}

void tl_progress_end(tl_progress *p) {
    if (p->tty && p->shown) fputs("\r\033[K", stderr);
    p->shown = false;
}

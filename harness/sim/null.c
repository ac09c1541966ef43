/* The child process of the null server, seen from its parent. */
#include "sim/null_impl.h"

#define READY_NS (20 * TL_S)

struct tl_null {
    tl_child *child;
    char *url;
    int64_t pid;
};

const char *tl_null_url(const tl_null *n) {
    return n->url;
}

int64_t tl_null_pid(const tl_null *n) {
    return n->pid;
}

void tl_null_stop(tl_null *n) {
    if (n == NULL) return;
    if (n->child != NULL) tl_child_stop(n->child, 2 * TL_S);
    tl_child_free(n->child);
    free(n->url);
    free(n);
}

/* The line that the child prints when it listens. */
static tl_status wait_ready(tl_null *n, tl_err *e) {
    const tl_ns give_up = tl_clock_now() + READY_NS;
    for (;;) {
        tl_buf out;
        tl_buf_init(&out, 0);
        tl_child_captured(&out, n->child, false);
        if (memchr(out.p, '\n', out.len) != NULL) {
            json_t *j = NULL;
            tl_status st = tl_json_parse(&j, out.p, out.len, "serve-null", e);
            if (st == TL_OK) {
                n->url = tl_xstrdup(tl_json_str(j, "url", NULL));
                n->pid = tl_json_int(j, "pid", 0);
                if (n->url == NULL) st = tl_fail(e, TL_ENGINE, "serve-null printed no url: %.200s", out.p);
            }
            json_decref(j);
            tl_buf_free(&out);
            return st;
        }
        tl_buf_clear(&out);
        const bool alive = tl_child_alive(n->child);
        if (!alive) tl_child_captured(&out, n->child, true);
        tl_status st = TL_OK;
        if (!alive) {
            st = tl_fail(e, TL_ENGINE, "the null server ended before it listened (%s): %.300s",
                         tl_child_status_text(n->child), out.p);
            tl_remedy(e, "run `tally serve-null` by hand to see why");
        } else if (tl_clock_now() > give_up) {
            st = tl_fail(e, TL_TIMEOUT, "the null server did not listen within 20 s");
        } else if (tl_signal_pending() != 0) {
            st = tl_fail(e, TL_CANCELLED, "interrupted");
        }
        tl_buf_free(&out);
        if (st != TL_OK) return st;
        tl_sleep_ns(TL_MS);
    }
}

tl_status tl_null_start(tl_null **out, const char *program, tl_err *e) {
    char *self = program == NULL ? tl_path_self() : tl_xstrdup(program);
    if (self == NULL) return tl_fail(e, TL_MISSING, "the path of the running program is unknown");
    const char *argv[] = {self, "serve-null", NULL};
    const tl_child_spec spec = {.argv = argv, .out = {.to = TL_TO_CAPTURE}, .err = {.to = TL_TO_CAPTURE}};
    tl_null *n = tl_xalloc(sizeof *n);
    tl_status st = tl_child_spawn(&n->child, &spec, e);
    if (st == TL_OK) st = wait_ready(n, e);
    free(self);
    if (st != TL_OK) {
        tl_null_stop(n);
        return st;
    }
    *out = n;
    return TL_OK;
}

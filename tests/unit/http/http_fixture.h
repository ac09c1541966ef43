/* A scripted server and a loop for each test, and one call that plays a stream through the real client. */
#ifndef HTTP_FIXTURE_H
#define HTTP_FIXTURE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/http.h"
#include "os/os.h"
#include "server.h"

typedef struct fixture {
    tl_script_server *server;
    tl_http_loop *loop;
    char url[96];
} fixture;

static inline int fixture_up(void **state) {
    tl_err e = {0};
    fixture *f = tl_xalloc(sizeof *f);
    signal(SIGPIPE, SIG_IGN);
    if (tl_script_server_start(&f->server, NULL, &e) != TL_OK || tl_http_loop_new(&f->loop, &e) != TL_OK) {
        print_error("%s\n", e.msg);
        return -1;
    }
    snprintf(f->url, sizeof f->url, "%s/v1/chat/completions", tl_script_server_url(f->server));
    *state = f;
    return 0;
}

static inline int fixture_down(void **state) {
    fixture *f = *state;
    tl_http_loop_free(f->loop);
    tl_script_server_stop(f->server);
    free(f);
    return 0;
}

static inline void play(fixture *f, const char *json) {
    tl_err e = {0};
    if (tl_script_server_play_text(f->server, NULL, json, &e) != TL_OK) fail_msg("%s", e.msg);
}

static inline tl_http_spec spec_of(const fixture *f) {
    return (tl_http_spec){.url = f->url, .body = "{\"stream\":true}", .body_len = 15, .total_ns = 20 * TL_S,
                          .max_body = 1 << 16, .max_reads = 4096};
}

/* Opens, starts, runs to the end. */
static inline tl_http_req *run_spec(fixture *f, const tl_http_spec *spec) {
    tl_err e = {0};
    tl_http_req *r = NULL;
    if (tl_http_prepare(&r, f->loop, spec, &e) != TL_OK) fail_msg("%s", e.msg);
    tl_http_open(r);
    tl_http_start(r, 0);
    if (tl_http_loop_run(f->loop, NULL, &e) != TL_OK) fail_msg("%s", e.msg);
    assert_true(tl_http_is_done(r));
    return r;
}

static inline tl_http_req *run_stream(fixture *f, const char *json) {
    const tl_http_spec spec = spec_of(f);
    play(f, json);
    return run_spec(f, &spec);
}

#endif

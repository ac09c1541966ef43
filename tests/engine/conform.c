/* conform DIR [--json]: plays every *.json stream of DIR through the real client, over a real socket, and compares what
 * a stream's `expect` says with what the client, the dialect's decoder and the metrics make of it.
 *
 * The scripted engine knows when it really wrote each byte, and a heartbeat in the client's own loop knows how late
 * that loop was; only these two excuse a late time (judge.c). A few streams play at a time, so that two cores keep up.
 *
 * In a stream file `request` may hold max_tokens, prompt, timeout_ms (the client's limit) and cancel_ms (when the
 * client gives up).
 */
#include <strings.h>

#include "conform_impl.h"
#include "engine/engine.h"
#include "os/os.h"
#include "server.h"

#define AT_ONCE 3
#define BEAT_NS 1000000u
#define MAX_BODY ((size_t)16 << 20)

typedef struct play {
    char *name;
    json_t *stream; /* NULL: malformed, see error */
    char *error;
    char *path;     /* on the server */
    const tl_dialect *dialect;
    tl_gen gen;
    tl_http_req *req;
    json_t *diffs;
} play;

typedef struct conform {
    tl_script_server *server;
    tl_http_loop *loop;
    play *plays;
    size_t n;
    uint64_t beat_due, beat_late; /* worst lateness of the batch */
} conform;

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

static int cmp_play(const void *a, const void *b) { return strcmp(((const play *)a)->name, ((const play *)b)->name); }

static tl_status load_stream(play *p, const char *file, tl_err *e)
{
    tl_status st = TL_OK;
    tl_buf text;
    tl_buf_init(&text, 0);
    TRY(tl_file_read(&text, file, (size_t)64 << 20, e));
    TRY(tl_json_parse(&p->stream, text.p, text.len, file, e));
    if (!json_is_array(tl_json_at(p->stream, "writes")))
        st = tl_fail(e, TL_INVALID, "%s: no list \"writes\"", file);
    else if (json_object_size(tl_json_at(p->stream, "expect")) == 0)
        st = tl_fail(e, TL_INVALID, "%s: \"expect\" is missing or empty: nothing would be judged", file);
    p->dialect = tl_dialect_find(tl_json_str(p->stream, "dialect", "openai-chat"));
    if (st == TL_OK && !p->dialect)
        st = tl_fail(e, TL_INVALID, "%s: unknown dialect '%s'", file, tl_json_str(p->stream, "dialect", ""));
out:
    tl_buf_free(&text);
    return st;
}

static tl_status read_folder(conform *c, const char *dir, tl_err *e)
{
    tl_names names = { 0 };
    size_t cap = 0;
    tl_status st = tl_dir_list(&names, dir, e);
    for (size_t i = 0; st == TL_OK && i < names.n; i++) {
        if (!tl_str_ends(names.v[i], ".json")) continue;
        play p = { .name = tl_xstrndup(names.v[i], strlen(names.v[i]) - 5), .diffs = json_array() };
        char *file = tl_xprintf("%s/%s", dir, names.v[i]);
        tl_err err = { 0 };
        if (load_stream(&p, file, &err) != TL_OK) p.error = tl_xstrdup(err.msg);
        free(file);
        TL_PUSH(c->plays, c->n, cap, p);
    }
    tl_names_free(&names);
    if (c->n) qsort(c->plays, c->n, sizeof *c->plays, cmp_play);
    return st;
}

/* ---- playing -------------------------------------------------------------------------------------------------------------- */

static double last_write_ms(const json_t *stream)
{
    const json_t *w = tl_json_at(stream, "writes");
    double last = tl_json_num(stream, "close_ms", 0);
    for (size_t i = 0; i < json_array_size(w); i++) {
        const double t = json_number_value(json_array_get(json_array_get(w, i), 0));
        if (t > last) last = t;
    }
    return last;
}

static uint64_t limit_ns(const json_t *stream)
{
    const double last = last_write_ms(stream);
    const bool hangs = tl_str_eq(tl_json_str(stream, "close", "end"), "hang");
    return (uint64_t)(tl_json_num(stream, "request.timeout_ms", last + (hangs ? 1000 : 5000)) * 1e6);
}

static tl_status prepare(conform *c, play *p, size_t index, tl_err *e)
{
    tl_status st = TL_OK;
    tl_buf body;
    tl_prompt prompt = { .text = tl_json_str(p->stream, "request.prompt", "Say something.") };
    tl_buf_init(&body, 0);
    p->path = tl_xprintf("/%zu%s", index, tl_dialect_path(p->dialect));
    char *url = tl_xprintf("%s%s", tl_script_server_url(c->server), p->path);
    static const char *const headers[] = { "Content-Type: application/json", NULL };
    tl_gen_init(&p->gen);
    p->gen.model = "m";
    p->gen.max_tokens = tl_json_int(p->stream, "request.max_tokens", -1);
    TRY(tl_script_server_play(c->server, p->path, p->stream, e));
    TRY(tl_dialect_body(&body, p->dialect, &prompt, &p->gen, e));
    const tl_http_spec spec = { .url = url, .headers = headers, .body = body.p, .body_len = body.len,
                                .total_ns = limit_ns(p->stream), .max_body = MAX_BODY, .ctx = p };
    TRY(tl_http_prepare(&p->req, c->loop, &spec, e));
    tl_http_open(p->req);
out:
    free(url);
    tl_buf_free(&body);
    return st;
}

static void beat(void *ctx)
{
    conform *c = ctx;
    const uint64_t now = tl_clock_now();
    if (now > c->beat_due && now - c->beat_due > c->beat_late) c->beat_late = now - c->beat_due;
    if (!tl_http_loop_running(c->loop)) return;
    c->beat_due = now + BEAT_NS;
    tl_http_loop_at(c->loop, c->beat_due, beat, c);
}

static void give_up(void *ctx) { tl_http_cancel(((play *)ctx)->req); }

/* How late the server's own log says it was, against the stream's times. */
static double server_late_ms(conform *c, const play *p, const tl_http_log *log)
{
    const json_t *w = tl_json_at(p->stream, "writes");
    double worst = 0;
    for (size_t i = 0; i < tl_script_server_count(c->server); i++) {
        tl_script_request r = { 0 };
        if (tl_script_server_request(&r, c->server, i, NULL) != TL_OK) continue;
        if (tl_str_eq(r.path, p->path)) {
            const double received = ((double)r.t_received_ns - (double)log->t_intended_ns) / 1e6;
            for (size_t k = 0; k < r.n_writes && k < json_array_size(w); k++) {
                const double due = json_number_value(json_array_get(json_array_get(w, k), 0));
                const double late = (double)(r.t_written_ns[k] - r.t_received_ns) / 1e6 - due;
                if (late > worst) worst = late;
            }
            const double end = r.t_end_ns ? (double)(r.t_end_ns - r.t_received_ns) / 1e6 - last_write_ms(p->stream) : 0;
            const bool ends = !tl_str_eq(tl_json_str(p->stream, "close", "end"), "hang");
            if (ends && end > worst) worst = end;
            worst += received > 0 ? received : 0;
        }
        tl_script_request_free(&r);
    }
    return worst;
}

static void judge_play(conform *c, play *p)
{
    tl_request r;
    tl_metrics m;
    tl_err e = { 0 };
    const tl_http_log *log = tl_http_result(p->req);
    tl_request_init(&r);
    if (tl_dialect_decode(&r, p->dialect, log, &p->gen, &e) != TL_OK) {
        p->error = tl_xstrdup(e.msg);
    } else {
        const tl_lateness late = { .client_ms = (double)(c->beat_late) / 1e6 + 1,
                                   .server_ms = server_late_ms(c, p, log) };
        tl_metrics_of(&m, &r);
        tl_judge(p->diffs, tl_json_at(p->stream, "expect"), &r, &m, &late);
        tl_metrics_free(&m);
    }
    tl_request_free(&r);
}

static tl_status play_batch(conform *c, size_t from, size_t to, tl_err *e)
{
    tl_status st = TL_OK;
    for (size_t i = from; i < to; i++) {
        tl_err err = { 0 };
        if (!c->plays[i].error && prepare(c, &c->plays[i], i, &err) != TL_OK) c->plays[i].error = tl_xstrdup(err.msg);
    }
    c->beat_late = 0;
    c->beat_due = tl_clock_now();
    for (size_t i = from; i < to; i++) {
        play *p = &c->plays[i];
        if (p->error) continue;
        const double cancel = tl_json_num(p->stream, "request.cancel_ms", -1);
        const uint64_t now = tl_clock_now();
        if (cancel >= 0) tl_http_loop_at(c->loop, now + (uint64_t)(cancel * 1e6), give_up, p);
        tl_http_start(p->req, now);
    }
    beat(c);
    TRY(tl_http_loop_run(c->loop, NULL, e));
    for (size_t i = from; i < to; i++)
        if (!c->plays[i].error) judge_play(c, &c->plays[i]);
out:
    for (size_t i = from; i < to; i++) tl_http_free(c->plays[i].req);
    return st;
}

/* ---- saying --------------------------------------------------------------------------------------------------------------- */

static size_t say_text(const conform *c)
{
    size_t failed = 0;
    for (size_t i = 0; i < c->n; i++) {
        const play *p = &c->plays[i];
        size_t k;
        json_t *d;
        if (p->error) printf("FAIL %s file readable \"%s\"\n", p->name, p->error);
        json_array_foreach(p->diffs, k, d)
        {
            char *want = tl_json_canonical(tl_json_at(d, "expected")), *got = tl_json_canonical(tl_json_at(d, "got"));
            printf("FAIL %s %s %s %s\n", p->name, tl_json_str(d, "field", ""), want, got);
            free(want);
            free(got);
        }
        if (p->error || json_array_size(p->diffs)) failed++;
        else printf("ok %s\n", p->name);
    }
    printf("%zu streams: %zu ok, %zu failed\n", c->n, c->n - failed, failed);
    return failed;
}

static size_t say_json(const conform *c)
{
    size_t failed = 0;
    json_t *all = json_object(), *list = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const play *p = &c->plays[i];
        json_t *j = json_object();
        const bool ok = !p->error && json_array_size(p->diffs) == 0;
        failed += !ok;
        json_object_set_new(j, "name", json_string(p->name));
        json_object_set_new(j, "ok", json_boolean(ok));
        json_object_set_new(j, "error", p->error ? json_string(p->error) : json_null());
        json_object_set(j, "differences", p->diffs);
        json_array_append_new(list, j);
    }
    json_object_set_new(all, "streams", list);
    json_object_set_new(all, "ok", json_integer((json_int_t)(c->n - failed)));
    json_object_set_new(all, "failed", json_integer((json_int_t)failed));
    char *text = tl_json_pretty(all);
    puts(text);
    free(text);
    json_decref(all);
    return failed;
}

static void conform_free(conform *c)
{
    for (size_t i = 0; i < c->n; i++) {
        play *p = &c->plays[i];
        free(p->name);
        free(p->error);
        free(p->path);
        json_decref(p->stream);
        json_decref(p->diffs);
    }
    free(c->plays);
    tl_http_loop_free(c->loop);
    tl_script_server_stop(c->server);
}

int main(int argc, char **argv)
{
    tl_status st = TL_OK;
    tl_err e = { 0 };
    conform c = { 0 };
    const char *dir = NULL;
    bool json = false;
    size_t failed = 1;
    for (int i = 1; i < argc; i++) {
        if (tl_str_eq(argv[i], "--json")) json = true;
        else if (dir || argv[i][0] == '-') dir = "";
        else dir = argv[i];
    }
    if (!dir || !*dir) {
        fprintf(stderr, "usage: conform DIR [--json]\n");
        return 2;
    }
    TRY(read_folder(&c, dir, &e));
    if (c.n == 0) {
        st = tl_fail(&e, TL_NOT_FOUND, "%s: no *.json streams there", dir);
        goto out;
    }
    TRY(tl_http_loop_new(&c.loop, &e));
    TRY(tl_script_server_start(&c.server, NULL, &e));
    for (size_t i = 0; i < c.n; i += AT_ONCE) TRY(play_batch(&c, i, i + AT_ONCE < c.n ? i + AT_ONCE : c.n, &e));
    failed = json ? say_json(&c) : say_text(&c);
out:
    if (st != TL_OK) fprintf(stderr, "conform: %s\n", e.msg);
    conform_free(&c);
    return st == TL_OK && failed == 0 ? 0 : 1;
}

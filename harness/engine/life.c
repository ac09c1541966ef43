/* Start, readiness, end. The child is watched and asked at the same time: a server that dies while loading closes its port
 * (connection refused looks like "not yet"), and one that hangs keeps its process. */
#include "engine/engine_impl.h"

#define STARTS_MAX 5
#define READY_DEFAULT_S 600
#define STOP_DEFAULT_S 10
/* How long a reply of 200 counts although the log's ready line does not come: a build may have reworded it. */
#define LINE_GRACE (3 * TL_S)

/* ---- why it failed ---- */

/* "exit code 1: "line"" and the remedy of the adapter's rule. `kind_out` (may be NULL) is a static word. */
static tl_status explain(tl_engine *g, tl_status code, const char *what, const char **kind_out, tl_err *e) {
    tl_buf text, line;
    tl_buf_init(&text, 0);
    tl_buf_init(&line, 0);
    tl_engine_log_text(&text, g->log_path, g->log_start);
    const json_t *rule = tl_engine_failure(&line, g->adapter, text.p);
    if (!rule) tl_engine_last_line(&line, g->adapter, text.p);
    const char *kind = tl_json_str(rule, "kind", "other");
    if (tl_str_eq(kind, "flag") && code == TL_ENGINE) code = TL_INVALID;
    if (line.len > 0)
        (void)tl_fail(e, code, "engine '%s' %s: \"%s\" (log: %s)", tl_engine_name_of(g->adapter), what, line.p, g->log_path);
    else
        (void)tl_fail(e, code, "engine '%s' %s, and said nothing (log: %s)", tl_engine_name_of(g->adapter), what, g->log_path);
    (void)tl_remedy(e, "%s", tl_json_str(rule, "remedy", "the engine's own words are in the log named above"));
    if (kind_out) *kind_out = tl_str_eq(kind, "port") ? "port" : "other";
    tl_buf_free(&text);
    tl_buf_free(&line);
    return code;
}

void tl_engine_last_words(tl_buf *out, tl_engine *g) {
    if (!g->child) {
        tl_buf_fmt(out, "%s %s", g->url, tl_engine_alive(g) ? "answers" : "does not answer");
        return;
    }
    tl_buf text, line;
    tl_buf_init(&text, 0);
    tl_buf_init(&line, 0);
    tl_engine_log_text(&text, g->log_path, g->log_start);
    if (!tl_engine_failure(&line, g->adapter, text.p)) tl_engine_last_line(&line, g->adapter, text.p);
    tl_buf_fmt(out, "%s", tl_child_status_text(g->child));
    if (line.len > 0) tl_buf_fmt(out, ": \"%s\"", line.p);
    tl_buf_free(&text);
    tl_buf_free(&line);
}

/* ---- ready? ---- */

typedef struct tl_wait {
    tl_engine *g;
    const tl_engine_spec *spec;
    char *url;
    tl_ns limit, deadline, answered_at;
    int last_status;
} tl_wait;

static bool is_loading(const json_t *adapter, int status) {
    const json_t *codes = tl_json_at(adapter, "ready.loading");
    for (size_t i = 0; i < json_array_size(codes); i++)
        if (json_integer_value(json_array_get(codes, i)) == status) return true;
    return false;
}

/* Does the log say that this process, and no other program on the port, listens? */
static bool says_ready(const tl_engine *g) {
    const char *pattern = tl_json_str(g->adapter, "ready.log", NULL);
    if (!pattern) return true;
    tl_buf text;
    tl_buf_init(&text, 0);
    tl_engine_log_text(&text, g->log_path, g->log_start);
    bool yes = tl_engine_match(NULL, 0, text.p, pattern, false);
    tl_buf_free(&text);
    return yes;
}

/* One look. True when ready. */
static bool look(tl_wait *w) {
    tl_http_reply r = {0};
    const tl_http_call call = {.timeout_ns = 2 * TL_S, .cancelled = w->spec->cancelled, .ctx = w->spec->ctx};
    bool ready = false;
    if (tl_http_get(&r, w->url, &call, NULL) == TL_OK) {
        w->last_status = r.status;
        if (r.status == tl_json_int(w->g->adapter, "ready.ok", 200)) {
            if (w->answered_at == 0) w->answered_at = tl_clock_now();
            ready = says_ready(w->g) || tl_clock_now() - w->answered_at > LINE_GRACE;
        }
    }
    tl_http_reply_free(&r);
    return ready && tl_child_alive(w->g->child);
}

static tl_status not_ready(tl_wait *w, tl_err *e) {
    char what[160];
    int n = snprintf(what, sizeof what, "was not ready within %.0f s", (double)w->limit / 1e9);
    size_t room = sizeof what - (size_t)n;
    if (w->last_status == 0)
        (void)snprintf(what + n, room, " (%s never answered)", tl_json_str(w->g->adapter, "ready.path", ""));
    else
        (void)snprintf(what + n, room, " (%s: HTTP %d%s)", tl_json_str(w->g->adapter, "ready.path", ""), w->last_status,
                       is_loading(w->g->adapter, w->last_status) ? ", still loading" : "");
    (void)explain(w->g, TL_TIMEOUT, what, NULL, e);
    return tl_remedy(e, "give it more time (ready_timeout), or look into its log: %s", w->g->log_path);
}

static tl_status wait_ready(tl_engine *g, const tl_engine_spec *spec, const char **kind_out, tl_err *e) {
    tl_status st = TL_OK;
    tl_wait w = {.g = g, .spec = spec, .url = tl_engine_at(g, tl_json_str(g->adapter, "ready.path", "/"))};
    const tl_ns poll = (tl_ns)tl_json_int(g->adapter, "ready.poll_ms", 50) * TL_MS;
    w.limit = spec->ready_timeout_ns ? spec->ready_timeout_ns
                                     : (tl_ns)tl_json_int(g->adapter, "ready.timeout_s", READY_DEFAULT_S) * TL_S;
    w.deadline = tl_clock_now() + w.limit;
    for (;;) {
        if (!tl_child_alive(g->child)) {
            char what[160];
            (void)snprintf(what, sizeof what, "ended while it was loading (%s)", tl_child_status_text(g->child));
            st = explain(g, TL_ENGINE, what, kind_out, e);
            break;
        }
        if (spec->cancelled && spec->cancelled(spec->ctx)) {
            st = tl_fail(e, TL_CANCELLED, "cancelled while engine '%s' was loading", tl_engine_name_of(g->adapter));
            break;
        }
        if (look(&w)) break;
        if (tl_clock_now() >= w.deadline) {
            st = not_ready(&w, e);
            break;
        }
        tl_sleep_ns(poll);
    }
    free(w.url);
    return st;
}

/* ---- start ---- */

static tl_status spawn(tl_engine *g, const tl_engine_spec *spec, uint16_t port, tl_err *e) {
    tl_status st = TL_OK;
    json_t *argv = NULL;
    const char **words = NULL;
    TRY(tl_engine_args(&argv, g, spec, port, e));
    words = tl_engine_strings(argv);
    free(g->url);
    g->url = tl_xprintf("http://127.0.0.1:%u", (unsigned)port);
    g->log_start = tl_engine_log_size(g->log_path);
    const tl_child_spec child = {
        .argv = words,
        .env_add = spec->env,
        .out = {.to = TL_TO_FILE, .path = g->log_path},
        .err = {.to = TL_TO_FILE, .path = g->log_path},
    };
    TRY(tl_child_spawn(&g->child, &child, e));
    json_object_set(g->facts, "argv", argv);
    json_object_set_new(g->facts, "url", json_string(g->url));
    json_object_set_new(g->facts, "pid", json_integer(tl_child_pid(g->child)));
out:
    free(words);
    json_decref(argv);
    return st;
}

static tl_status choose_port(uint16_t *out, const tl_engine_spec *spec, const json_t *adapter, tl_err *e) {
    if (spec->port == 0) return tl_tcp_free_port(out, e);
    *out = spec->port;
    if (!tl_tcp_port_in_use(spec->port)) return TL_OK;
    (void)tl_fail(e, TL_CONFLICT, "engine '%s': port %u is taken", tl_engine_name_of(adapter), (unsigned)spec->port);
    return tl_remedy(e, "leave the port out, or end the program that holds it, or attach to it with --endpoint");
}

/* Another program may take the port between choosing and binding: then another port is tried. */
static tl_status start_on_some_port(tl_engine *g, const tl_engine_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    const tl_ns begin = tl_clock_now();
    int starts = 0;
    for (bool again = true; again;) {
        const char *kind = "other";
        uint16_t port = 0;
        again = false;
        TRY(choose_port(&port, spec, g->adapter, e));
        TRY(spawn(g, spec, port, e));
        starts++;
        st = wait_ready(g, spec, &kind, e);
        if (st == TL_OK) break;
        tl_child_stop(g->child, st == TL_ENGINE ? 0 : g->stop_grace_ns);
        tl_child_free(g->child);
        g->child = NULL;
        again = tl_str_eq(kind, "port") && spec->port == 0 && starts < STARTS_MAX;
        if (again) tl_err_clear(e);
        if (!again && tl_str_eq(kind, "port")) {
            if (e) e->code = TL_CONFLICT;
            st = TL_CONFLICT;
        }
    }
    json_object_set_new(g->facts, "starts", json_integer(starts));
    json_object_set_new(g->facts, "ready_ms", tl_json_real((double)(tl_clock_now() - begin) / 1e6));
out:
    return st;
}

static tl_engine *new_engine(const json_t *adapter, bool attached) {
    tl_engine *g = tl_xalloc(sizeof *g);
    g->adapter = json_deep_copy(adapter);
    g->facts = json_object();
    g->stop_grace_ns = (tl_ns)tl_json_int(adapter, "stop_s", STOP_DEFAULT_S) * TL_S;
    json_object_set_new(g->facts, "adapter", json_string(tl_engine_name_of(adapter)));
    json_object_set_new(g->facts, "attached", json_boolean(attached));
    return g;
}

static tl_status check_spec(const json_t *adapter, const tl_engine_spec *spec, tl_err *e) {
    tl_file_facts f;
    if (json_array_size(json_object_get(adapter, "binaries")) == 0) {
        (void)tl_fail(e, TL_INVALID, "engine '%s' cannot be started by tally", tl_engine_name_of(adapter));
        return tl_remedy(e, "%s", tl_json_str(adapter, "missing", "run it yourself and give --endpoint URL"));
    }
    if (!spec->model_path || !spec->log_path)
        return tl_fail(e, TL_INVALID, "engine '%s' needs a %s", tl_engine_name_of(adapter), spec->model_path ? "log path" : "model");
    tl_status st = tl_file_stat(&f, spec->model_path, e);
    if (st != TL_OK) return st;
    if (!f.exists) {
        (void)tl_fail(e, TL_NOT_FOUND, "model %s does not exist", spec->model_path);
        return tl_remedy(e, "give the path of a model file, or write one with `tally synth`");
    }
    if (!f.is_file) return tl_fail(e, TL_INVALID, "model %s is not a file", spec->model_path);
    return TL_OK;
}

tl_status tl_engine_start(tl_engine **out, const json_t *adapter, const tl_engine_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    tl_engine *g = NULL;
    tl_engine_spec s = *spec;
    char *model = spec->model_path ? tl_path_abs(spec->model_path) : NULL;
    *out = NULL;
    TRY(check_spec(adapter, spec, e));
    s.model_path = model;
    g = new_engine(adapter, false);
    g->log_path = tl_path_abs(spec->log_path);
    TRY(tl_file_write(g->log_path, "", 0, e));
    TRY(tl_engine_find(&g->binary, adapter, spec->binary, e));
    TRY(tl_engine_identify(g, e));
    json_object_set_new(g->facts, "model_path", json_string(model));
    json_object_set_new(g->facts, "log_path", json_string(g->log_path));
    TRY(start_on_some_port(g, &s, e));
    tl_engine_read_back(g);
    *out = g;
    g = NULL;
out:
    tl_engine_free(g);
    free(model);
    return st;
}

/* ---- attach ---- */

tl_status tl_engine_attach(tl_engine **out, const json_t *adapter, const char *url, tl_err *e) {
    tl_status st = TL_OK;
    tl_http_reply r = {0};
    tl_engine *g = new_engine(adapter, true);
    char *ready = NULL;
    *out = NULL;
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') n--;
    g->url = tl_xstrndup(url, n);
    if (!tl_str_starts(url, "http://") && !tl_str_starts(url, "https://")) {
        (void)tl_fail(e, TL_INVALID, "endpoint '%s' is not an http:// or https:// URL", url);
        st = tl_remedy(e, "for example --endpoint http://127.0.0.1:8080");
        goto out;
    }
    ready = tl_engine_at(g, tl_json_str(adapter, "ready.path", "/"));
    st = tl_http_get(&r, ready, NULL, e);
    if (st == TL_OK && r.status != tl_json_int(adapter, "ready.ok", 200))
        st = tl_fail(e, TL_ENGINE, "%s answers HTTP %d%s", ready, r.status, is_loading(adapter, r.status) ? ": still loading" : "");
    if (st != TL_OK) {
        st = tl_wrap(e, "engine '%s' at %s", tl_engine_name_of(adapter), g->url);
        st = tl_remedy(e, "start the server first, and check the URL and the kind of engine");
        goto out;
    }
    json_object_set_new(g->facts, "url", json_string(g->url));
    json_object_set_new(g->facts, "requested", json_object());
    tl_engine_read_back(g);
    *out = g;
    g = NULL;
out:
    free(ready);
    tl_http_reply_free(&r);
    tl_engine_free(g);
    return st;
}

/* ---- the rest ---- */

void tl_engine_stop(tl_engine *g) {
    if (g->child) tl_child_stop(g->child, g->stop_grace_ns);
}

void tl_engine_free(tl_engine *g) {
    if (!g) return;
    tl_engine_stop(g);
    tl_child_free(g->child);
    json_decref(g->adapter);
    json_decref(g->facts);
    free(g->url);
    free(g->binary);
    free(g->log_path);
    free(g->help);
    free(g);
}

const char *tl_engine_name(const tl_engine *g) { return tl_engine_name_of(g->adapter); }
const char *tl_engine_url(const tl_engine *g) { return g->url; }
const char *tl_engine_log_path(const tl_engine *g) { return g->log_path; }
int64_t tl_engine_pid(const tl_engine *g) { return g->child ? tl_child_pid(g->child) : 0; }
bool tl_engine_attached(const tl_engine *g) { return !g->child; }
const json_t *tl_engine_facts(const tl_engine *g) { return g->facts; }

bool tl_engine_alive(tl_engine *g) {
    if (g->child) return tl_child_alive(g->child);
    tl_http_reply r = {0};
    char *url = tl_engine_at(g, tl_json_str(g->adapter, "ready.path", "/"));
    const tl_http_call call = {.timeout_ns = 2 * TL_S};
    bool alive = tl_http_get(&r, url, &call, NULL) == TL_OK;
    tl_http_reply_free(&r);
    free(url);
    return alive;
}

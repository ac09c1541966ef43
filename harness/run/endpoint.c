/* Looking at an endpoint: a few streams one after another, then the verdict whether they are a model's streams at all. The last
 * two requests share a connection if the server lets them, which shows whether it keeps one. */
#include "run/endpoint.h"

#include "os/os.h"

#define CONNECT_LIMIT (10 * TL_S)

/* ---- addresses ----------------------------------------------------------------------------------------------------- */

/* Without the slash or the dialect's path at its end, as people copy it from elsewhere. */
static char *base_url(const tl_endpoint_spec *spec) {
    const char *path = tl_dialect_path(spec->dialect);
    char *url = tl_xprintf("%s%s", strstr(spec->url, "://") ? "" : "http://", spec->url);
    const char *const tails[] = {"/", path, tl_str_starts(path, "/v1/") ? "/v1" : "/"};
    for (size_t i = 0; i < TL_COUNT(tails); i++)
        if (tl_str_ends(url, tails[i])) url[strlen(url) - strlen(tails[i])] = 0;
    return url;
}

static char *auth_of(const tl_endpoint_spec *spec) { return spec->key ? tl_xprintf("Authorization: Bearer %s", spec->key) : NULL; }

/* ---- one request --------------------------------------------------------------------------------------------------- */

static tl_status body_of(char **out, const tl_endpoint_spec *spec, unsigned ask, size_t number, tl_err *e) {
    tl_gen gen;
    tl_buf b;
    json_t *body = NULL;
    tl_status st = TL_OK;
    char *text = tl_xprintf("(%zu) Count from one to sixty in words.", number);
    const tl_prompt prompt = {.text = text};
    tl_gen_init(&gen);
    gen.model = spec->model;
    gen.max_tokens = TL_ENDPOINT_TOKENS;
    tl_buf_init(&b, 0);
    TRY(tl_dialect_body(&b, spec->dialect, &prompt, &gen, e));
    TRY(tl_json_parse(&body, b.p, b.len, "request", e));
    if (ask & TL_ASK_NO_USAGE) json_object_del(body, "stream_options");
    *out = tl_json_canonical(body);
out:
    json_decref(body);
    tl_buf_free(&b);
    free(text);
    return st;
}

static tl_status ask_for(tl_endpoint *p, const tl_endpoint_spec *spec, unsigned ask, tl_err *e) {
    char *body = NULL, *auth = auth_of(spec);
    tl_endpoint_answer *a = &p->answers[p->n];
    const char *const headers[] = {"Content-Type: application/json", auth, NULL};
    const tl_http_until until = {.cancelled = spec->cancelled, .ctx = spec->ctx};
    tl_gen gen;
    tl_status st = TL_OK;
    TRY(body_of(&body, spec, ask, p->n + 1, e));
    const tl_http_spec http = {.url = p->url, .headers = headers, .body = body, .body_len = strlen(body), .total_ns = spec->timeout_ns,
                               .connect_ns = CONNECT_LIMIT, .keep_alive = !(ask & TL_ASK_PLAIN), .offer_gzip = (ask & TL_ASK_GZIP) != 0};
    TRY(tl_http_prepare(&a->req, p->loop, &http, e));
    a->ask = ask;
    a->log = tl_http_result(a->req);
    tl_request_init(&a->r);
    p->n++;
    tl_http_open(a->req);
    tl_http_start(a->req, 0);
    TRY(tl_http_loop_run(p->loop, &until, e));
    tl_gen_init(&gen);
    gen.max_tokens = TL_ENDPOINT_TOKENS;
    TRY(tl_dialect_decode(&a->r, spec->dialect, a->log, &gen, e));
    tl_metrics_of(&a->m, &a->r);
out:
    free(body);
    free(auth);
    return st;
}

/* ---- is it an endpoint? -------------------------------------------------------------------------------------------- */

/* "a, b, c": what the server says it has; empty when it does not say. */
static void models_of(tl_buf *out, const tl_endpoint_spec *spec) {
    const bool ollama = tl_str_starts(tl_dialect_name(spec->dialect), "ollama");
    char *base = base_url(spec), *url = tl_xprintf("%s%s", base, ollama ? "/api/tags" : "/v1/models"), *auth = auth_of(spec);
    const char *const headers[] = {auth, NULL};
    const tl_http_call call = {.timeout_ns = 5 * TL_S, .headers = headers, .cancelled = spec->cancelled, .ctx = spec->ctx};
    tl_http_reply reply = {0};
    json_t *all = NULL, *model;
    size_t i;
    if (tl_http_get(&reply, url, &call, NULL) == TL_OK && reply.status == 200) all = json_loadb(reply.body, reply.len, 0, NULL);
    json_array_foreach(tl_json_at(all, ollama ? "models" : "data"), i, model) {
        const char *name = tl_json_str(model, ollama ? "name" : "id", "");
        if (out->len + strlen(name) < 250) tl_buf_fmt(out, "%s%s", out->len ? ", " : "", name);
    }
    json_decref(all);
    tl_http_reply_free(&reply);
    free(base);
    free(url);
    free(auth);
}

static const struct {
    int from, to;
    tl_status code;
    const char *what, *remedy;
} statuses[] = {
    {300, 399, TL_HTTP, "redirects", "give the address it redirects to"},
    {401, 401, TL_MISSING, "needs a key", "put it into the environment variable TALLY_API_KEY; it is sent as `Authorization: Bearer`"},
    {403, 403, TL_MISSING, "refuses the key, or needs one", "put a key with this right into the environment variable TALLY_API_KEY"},
    {404, 405, TL_NOT_FOUND, "no LLM endpoint, or no such model", "check the address; another kind of server: --dialect; another model: --model NAME"},
    {400, 499, TL_INVALID, "refused the request", "the server's words say why; a model may have to be named: --model NAME"},
    {501, 501, TL_NOT_FOUND, "no LLM endpoint", "check the address; another kind of server: --dialect"},
    {503, 503, TL_ENGINE, "not ready", "wait until the model is loaded, then ask again"},
    {500, 599, TL_ENGINE, "failed", "the server's own log says why"},
};

static tl_status refused_by_status(const tl_endpoint *p, const tl_endpoint_spec *spec, tl_err *e) {
    const tl_request *r = &p->answers[0].r;
    size_t i = 0;
    tl_buf models;
    while (i + 1 < TL_COUNT(statuses) && (r->http_status < statuses[i].from || r->http_status > statuses[i].to)) i++;
    tl_buf_init(&models, 0);
    if (statuses[i].code == TL_NOT_FOUND || statuses[i].code == TL_INVALID) models_of(&models, spec);
    tl_fail(e, statuses[i].code, "%s: %s (HTTP %d): %s", p->url, statuses[i].what, r->http_status, r->error_text ? r->error_text : "");
    const tl_status st = tl_remedy(e, "%s%s%s", statuses[i].remedy, models.len ? "; it has: " : "", models.p);
    tl_buf_free(&models);
    return st;
}

/* Of the newest one. */
static tl_status no_answer(const tl_endpoint *p, const tl_endpoint_spec *spec, tl_err *e) {
    const tl_http_log *log = p->answers[p->n - 1].log;
    switch (log->outcome) {
    case TL_HTTP_REFUSED:
        tl_fail(e, TL_MISSING, "%s: nobody answers there: %s", p->url, log->error);
        return tl_remedy(e, "start the server, or check host and port (llama-server: 8080, vLLM: 8000, Ollama: 11434)");
    case TL_HTTP_TIMED_OUT:
    case TL_HTTP_STALLED:
        tl_fail(e, TL_TIMEOUT, "%s: no end of the answer within %g s (%zu bytes came): %s", p->url, (double)spec->timeout_ns / 1e9, log->body_len, log->error);
        return tl_remedy(e, "give it more time (--timeout), or see in the server's log whether the model is loaded and not busy");
    case TL_HTTP_TOO_LARGE:
        return tl_fail(e, TL_LIMIT, "%s: %s", p->url, log->error);
    case TL_HTTP_ABANDONED:
        return tl_fail(e, TL_CANCELLED, "stopped by a signal");
    default:
        tl_fail(e, TL_HTTP, "%s: what answers speaks no HTTP: %s", p->url, log->error[0] ? log->error : tl_http_outcome_name(log->outcome));
        return tl_remedy(e, "check the port and the scheme (http or https)");
    }
}

/* Something came with status 200 that is neither an answer's record nor an empty one. */
static bool is_foreign(const tl_endpoint_answer *a) {
    const tl_request *r = &a->r;
    const bool by_class = tl_str_eq(r->error_class, "http") || tl_str_eq(r->error_class, "protocol");
    return by_class && r->n_events == 0 && !r->content_encoded;
}

/* Each plain request must be answered; that the answers are a model's, the first one shows. */
static tl_status judge(const tl_endpoint *p, const tl_endpoint_spec *spec, tl_err *e) {
    const tl_endpoint_answer *a = &p->answers[p->n - 1];
    const bool ended = a->log->outcome == TL_HTTP_COMPLETE || a->log->outcome == TL_HTTP_CLOSED_EARLY || a->log->outcome == TL_HTTP_RESET;
    if (!ended || a->log->status == 0) return no_answer(p, spec, e);
    if (p->n > 1) return TL_OK;
    if (a->log->status < 200 || a->log->status > 299) return refused_by_status(p, spec, e);
    if (!is_foreign(a)) return TL_OK;
    tl_fail(e, TL_NOT_FOUND, "%s: no LLM endpoint: %s", p->url, a->r.error_text);
    return tl_remedy(e, "check the address; a server of another kind: --dialect");
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

tl_status tl_endpoint_look(tl_endpoint *out, const tl_endpoint_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    char *base = base_url(spec);
    *out = (tl_endpoint){.url = tl_xprintf("%s%s", base, tl_dialect_path(spec->dialect))};
    out->answers = tl_xalloc((spec->requests + 2) * sizeof *out->answers);
    TRY(tl_http_loop_new(&out->loop, e));
    for (size_t i = 0; i < spec->requests; i++) {
        TRY(ask_for(out, spec, TL_ASK_PLAIN, e));
        TRY(judge(out, spec, e));
    }
    out->n_plain = out->n;
    TRY(ask_for(out, spec, TL_ASK_NO_USAGE, e));
    TRY(ask_for(out, spec, TL_ASK_GZIP | TL_ASK_AGAIN, e));
out:
    free(base);
    return st;
}

void tl_endpoint_free(tl_endpoint *p) {
    for (size_t i = 0; i < p->n; i++) {
        tl_metrics_free(&p->answers[i].m);
        tl_request_free(&p->answers[i].r);
        tl_http_free(p->answers[i].req);
    }
    tl_http_loop_free(p->loop);
    free(p->answers);
    free(p->url);
    *p = (tl_endpoint){0};
}

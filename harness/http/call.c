/* Plain blocking calls, made from one request on a loop of its own. */
#include "http/http_impl.h"

void tl_http_reply_free(tl_http_reply *r) {
    free(r->body);
    memset(r, 0, sizeof *r);
}

static tl_status outcome_to_status(const tl_http_log *log, const char *url, tl_err *e) {
    switch (log->outcome) {
    case TL_HTTP_COMPLETE: return TL_OK;
    case TL_HTTP_TIMED_OUT:
    case TL_HTTP_STALLED: return tl_fail(e, TL_TIMEOUT, "%s: %s", url, log->error);
    case TL_HTTP_ABANDONED: return tl_fail(e, TL_CANCELLED, "%s: cancelled", url);
    case TL_HTTP_TOO_LARGE: return tl_fail(e, TL_LIMIT, "%s: %s", url, log->error);
    default: return tl_fail(e, TL_HTTP, "%s: %s (%s)", url, log->error, tl_http_outcome_name(log->outcome));
    }
}

static tl_status call(tl_http_reply *out, const char *url, const char *body, const tl_http_call *c, tl_err *e) {
    static const tl_http_call defaults = {0};
    tl_status st = TL_OK;
    tl_http_loop *loop = NULL;
    tl_http_req *req = NULL;
    if (c == NULL) c = &defaults;
    memset(out, 0, sizeof *out);
    const tl_http_spec spec = {.url = url,
                               .headers = c->headers,
                               .body = body,
                               .body_len = body ? strlen(body) : 0,
                               .total_ns = c->timeout_ns ? c->timeout_ns : 10 * TL_S,
                               .max_body = c->max_body ? c->max_body : 1u << 20};
    const tl_http_until until = {.cancelled = c->cancelled, .ctx = c->ctx};
    TRY(tl_http_loop_new(&loop, e));
    TRY(tl_http_prepare_req(&req, loop, &spec, false, e));
    tl_http_start(req, 0);
    TRY(tl_http_loop_run(loop, &until, e));
    const tl_http_log *log = tl_http_result(req);
    TRY(outcome_to_status(log, url, e));
    out->status = log->status;
    out->body = tl_xstrndup(log->body, log->body_len);
    out->len = log->body_len;
    snprintf(out->content_type, sizeof out->content_type, "%s", log->content_type);
out:
    tl_http_free(req);
    tl_http_loop_free(loop);
    return st;
}

tl_status tl_http_get(tl_http_reply *out, const char *url, const tl_http_call *c, tl_err *e) {
    return call(out, url, NULL, c, e);
}

tl_status tl_http_post(tl_http_reply *out, const char *url, const char *body, const tl_http_call *c, tl_err *e) {
    return call(out, url, body ? body : "", c, e);
}

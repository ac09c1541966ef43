/* Requests on their way into the store. */
#include "run/run_impl.h"

#include <math.h>

static tl_store_event *store_events(const tl_run_ctx *c, const tl_request *r) {
    tl_store_event *ev = tl_xalloc((r->n_events + 1) * sizeof *ev);
    for (size_t i = 0; i < r->n_events; i++) {
        ev[i] = (tl_store_event){run_t(c, r->events[i].t_ns), r->events[i].kind, r->events[i].text_bytes, r->events[i].read_index};
    }
    return ev;
}

tl_status run_store_request(tl_run_block *b, const tl_load_item *item, const tl_load_job *job, const char *role, tl_err *e) {
    const tl_request *r = &item->request;
    const tl_run_ctx *c = b->c;
    char text_sha[65], id[TL_STORE_ID];
    tl_metrics m;
    tl_metrics_of(&m, r);
    json_t *metrics = tl_metrics_json(&m, false), *counters = tl_request_json(r), *flags = json_array();
    for (unsigned i = 0; i < TL_LOAD_FLAG_COUNT; i++)
        if (item->flags & (1u << i)) json_array_append_new(flags, json_string(tl_load_flag_name(i)));
    json_object_set_new(metrics, "load_flags", flags);
    tl_buf words;
    tl_buf_init(&words, 0);
    tl_buf_add(&words, r->reasoning, r->reasoning_len);
    tl_buf_add(&words, r->text, r->text_len);
    tl_sha256_hex(words.p, words.len, text_sha);
    tl_buf_free(&words);
    json_t *body = NULL;
    if (tl_json_parse(&body, job->body, job->body_len, "request body", NULL) != TL_OK) body = NULL;
    char prompt_sha[65];
    tl_sha256_hex(job->body, job->body_len, prompt_sha);
    tl_store_event *ev = store_events(c, r);
    bool ok = m.outcome == TL_REQ_OK;
    tl_store_request row = {
        .trial_id = b->trial_id, .position = b->stored, .role = role, .session = (int64_t)item->worker,
        .outcome = tl_outcome_name(m.outcome),
        .error_class = ok ? NULL : (r->error_class ? r->error_class : tl_outcome_name(m.outcome)),
        .error_text = ok ? NULL : (r->error_text ? r->error_text : m.reason),
        .http_status = r->http_status ? r->http_status : TL_STORE_NONE,
        .t_intended_ns = run_t(c, r->t_intended), .t_sent_ns = run_t(c, r->t_sent),
        .t_connected_ns = run_t(c, r->t_connected), .t_headers_ns = run_t(c, r->t_headers),
        .t_first_byte_ns = run_t(c, r->t_first_byte), .t_close_ns = run_t(c, r->t_close),
        .connects = r->connects == TL_ABSENT ? TL_STORE_NONE : r->connects, .body = body, .prompt_sha256 = prompt_sha,
        .counters = counters, .metrics = metrics, .finish_reason = r->finish_reason, .text_sha256 = text_sha,
        .last_object = r->raw_last, .events = ev, .events_n = r->n_events,
    };
    tl_status st = tl_store_request_add(id, c->spec->store, &row, e);
    if (tl_str_eq(role, "measured")) {
        if (ok && isfinite(m.decode_rate)) json_array_append_new(b->rates, json_real(m.decode_rate));
        if (m.cached_n > 0) b->cached += (double)m.cached_n;
        if (item->flags & TL_LOAD_NOT_COLD) b->cold_ok = false;
        ok ? b->ok++ : b->bad++;
    }
    b->stored++;
    tl_metrics_free(&m);
    json_decref(metrics);
    json_decref(counters);
    json_decref(body);
    free(ev);
    return st;
}

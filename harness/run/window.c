/* What one measured block of many users, or of an open loop, did as a whole. Its window is stated with it. */
#include "run/run_impl.h"
#include "sample/sample.h"

#include <math.h>

bool run_item_counts(const tl_run_load *load, uint64_t t_schedule, const tl_load_item *item) {
    if (!item->started || item->sequence < load->edge_requests) return false;
    return load->edge_ns == 0 || item->request.t_intended >= t_schedule + load->edge_ns;
}

/* How long after its intended moment each request was handed to the kernel: the client's own error. */
static json_t *lateness(const tl_load_result *r, const tl_run_load *load) {
    double *ms = tl_xalloc((r->n + 1) * sizeof *ms), max = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const tl_request *q = &r->items[i].request;
        if (!run_item_counts(load, r->t_schedule, &r->items[i]) || q->t_sent == TL_T_NONE || q->t_intended == TL_T_NONE) continue;
        ms[n] = ((double)q->t_sent - (double)q->t_intended) / 1e6;
        max = fmax(max, ms[n++]);
    }
    /* bare ranks: they describe these sends and estimate nothing beyond them */
    json_t *out = json_pack("{s:I, s:o, s:o, s:o}", "n", (json_int_t)n, "p50_ms", tl_json_real(tl_stat_nearest_rank(ms, n, 0.5)),
                            "p99_ms", tl_json_real(tl_stat_nearest_rank(ms, n, 0.99)), "max_ms", tl_json_real(n ? max : NAN));
    free(ms);
    return out;
}

/* The window's own time: the whole block, or from its edge (or the first request that counts) to the last start, so that
 * neither the ramp nor the drain is in it. Tokens and ends are then those of that time, whoever began them. */
static json_t *rates_between(const tl_load_result *r, const tl_run_load *load, const tl_metrics *m, const tl_request *const *q, size_t n) {
    uint64_t from = UINT64_MAX, to = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!run_item_counts(load, r->t_schedule, &r->items[i])) continue;
        uint64_t t = r->items[i].request.t_intended;
        from = t < from ? t : from;
        to = t > to ? t : to;
    }
    bool ramp = load->edge_ns != 0;
    if (ramp) from = r->t_schedule + load->edge_ns;
    if (from >= to) return json_object(); /* one moment has no rates */
    tl_span s;
    tl_span_of(&s, q, m, n, from, to);
    return json_pack("{s:s, s:f, s:f, s:f, s:o, s:f}", "rule",
                     ramp ? "from the end of the ramp to the last intended start" : "from the first request that counts to the last intended start", "seconds", s.seconds, "request_rate",
                     (double)s.ok / s.seconds, "failed_rate", (double)s.failed / s.seconds, "throughput", tl_json_real(s.tokens / s.seconds), "in_flight",
                     s.in_flight);
}

static json_t *rates_whole(const tl_load_result *r, const tl_window *w) {
    return json_pack("{s:s, s:f, s:o, s:o}", "rule", "the whole block: from the first intended start to the last end", "seconds",
                     (double)(r->t_end - r->t_begin) / 1e9, "request_rate", tl_json_real(w->ok_rate), "throughput", tl_json_real(w->tokens_rate));
}

json_t *run_window(const tl_load_result *r, const tl_run_load *load) {
    tl_metrics *all = tl_xalloc((r->n + 1) * sizeof *all), *counted = tl_xalloc((r->n + 1) * sizeof *counted);
    const tl_request **q = tl_xalloc((r->n + 1) * sizeof *q);
    size_t n = 0, k = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->items[i].started) continue;
        q[n] = &r->items[i].request;
        tl_metrics_of(&all[n], q[n]);
        if (run_item_counts(load, r->t_schedule, &r->items[i])) counted[k++] = all[n];
        n++;
    }
    bool edge = load->edge_ns != 0 || load->edge_requests != 0;
    double seconds = (double)(r->t_end - r->t_begin) / 1e9;
    json_t *out = json_pack("{s:I, s:I, s:I, s:o, s:o}", "offered", (json_int_t)k, "before", (json_int_t)(n - k), "not_started", (json_int_t)(r->n - n),
                            "lateness", lateness(r, load), "client_cpu_s", tl_json_real(r->client_cpu_s));
    if (k > 0 && seconds > 0) {
        tl_window w;
        tl_window_of(&w, counted, k, seconds, load->slo.n ? &load->slo : NULL);
        json_t *rates = edge ? rates_between(r, load, all, q, n) : rates_whole(r, &w);
        json_object_update(out, rates);
        json_decref(rates);
        rates = json_pack("{s:I, s:I, s:o}", "ok", (json_int_t)w.ok, "failed", (json_int_t)w.failed, "success_share", tl_json_real(w.success_share));
        json_object_update(out, rates);
        json_decref(rates);
        if (load->slo.n > 0) json_object_set_new(out, "goodput_share", tl_json_real(w.good_share));
        if (load->slo.n > 0 && !edge) json_object_set_new(out, "goodput", tl_json_real(w.good_rate));
    }
    if (load->open) json_object_set_new(out, "rate", json_real(load->rate));
    else json_object_set_new(out, "users", json_integer((json_int_t)load->users));
    for (size_t i = 0; i < n; i++) tl_metrics_free(&all[i]);
    free(all);
    free(counted);
    free(q);
    return out;
}

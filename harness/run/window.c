/* What one measured block of many users, or of an open loop, did as a whole. Its window is stated with it. */
#include "run/run_impl.h"
#include "sample/sample.h"

#include <math.h>

/* How long after its intended moment each request was handed to the kernel: the client's own error. */
static json_t *lateness(const tl_load_result *r) {
    double *ms = tl_xalloc((r->n + 1) * sizeof *ms), max = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const tl_request *q = &r->items[i].request;
        if (!r->items[i].started || q->t_sent == TL_T_NONE || q->t_intended == TL_T_NONE) continue;
        ms[n] = ((double)q->t_sent - (double)q->t_intended) / 1e6;
        max = fmax(max, ms[n++]);
    }
    /* bare ranks: they describe these sends and estimate nothing beyond them */
    json_t *out = json_pack("{s:I, s:o, s:o, s:o}", "n", (json_int_t)n, "p50_ms", tl_json_real(tl_stat_nearest_rank(ms, n, 0.5)),
                            "p99_ms", tl_json_real(tl_stat_nearest_rank(ms, n, 0.99)), "max_ms", tl_json_real(n ? max : NAN));
    free(ms);
    return out;
}

json_t *run_window(const tl_load_result *r, const tl_run_load *load) {
    tl_metrics *m = tl_xalloc((r->n + 1) * sizeof *m);
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].started) tl_metrics_of(&m[n++], &r->items[i].request);
    double seconds = (double)(r->t_end - r->t_begin) / 1e9;
    tl_window w;
    json_t *out = json_pack("{s:s, s:f, s:I, s:o}", "rule", "the whole block: from the first intended start to the last end", "seconds",
                            seconds, "offered", (json_int_t)n, "lateness", lateness(r));
    if (n > 0 && seconds > 0) {
        tl_window_of(&w, m, n, seconds, NULL);
        json_t *more = json_pack("{s:I, s:I, s:o, s:o, s:o}", "ok", (json_int_t)w.ok, "failed", (json_int_t)w.failed, "request_rate",
                                 tl_json_real(w.ok_rate), "throughput", tl_json_real(w.tokens_rate), "success_share",
                                 tl_json_real(w.success_share));
        json_object_update(out, more);
        json_decref(more);
    }
    if (load->open) json_object_set_new(out, "rate", json_real(load->rate));
    else json_object_set_new(out, "users", json_integer((json_int_t)load->users));
    json_object_set_new(out, "client_cpu_s", tl_json_real(r->client_cpu_s));
    json_object_set_new(out, "not_started", json_integer((json_int_t)(r->n - n)));
    for (size_t i = 0; i < n; i++) tl_metrics_free(&m[i]);
    free(m);
    return out;
}

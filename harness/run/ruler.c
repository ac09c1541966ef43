/* Was the ruler long enough? The client's own error against what it measured: METRICS.md ("mark the run invalid if bias >
 * stated share of the result"). Published medians are of TTFT and rates; TTFT is the shortest of them, so it is the
 * measure of all. */
#include "run/run_impl.h"
#include "sample/sample.h"

#include <math.h>

bool tl_run_ruler_verdict(char reason[400], const tl_run_ruler *r) {
    double limit_ms = r->share * r->ttft_ms;
    reason[0] = 0;
    if (r->cpu_share > TL_RULER_CPU_SHARE)
        snprintf(reason, 400, "the client was busy for %.3g %% of the one core it has (limit %g %%), so that answers waited for it: lower the load, "
                              "or spread it over several clients", r->cpu_share * 100, TL_RULER_CPU_SHARE * 100);
    else if (r->late_p99_ms > limit_ms)
        snprintf(reason, 400, "requests were sent up to %.3g ms (p99) after their intended moment, over %g %% of the median TTFT of %.3g ms: give the "
                              "client a core of its own or another machine, lower the rate, or state a larger schedule.ruler_share",
                 r->late_p99_ms, r->share * 100, r->ttft_ms);
    else if (fabs(r->bias_ms) > limit_ms)
        snprintf(reason, 400, "the calibrated client errs by %.3g ms in TTFT at %zu streams, over %g %% of the median TTFT of %.3g ms: calibrate again "
                              "on a quiet machine, lower the load, or state a larger schedule.ruler_share",
                 r->bias_ms, r->bias_streams, r->share * 100, r->ttft_ms);
    return reason[0] == 0;
}

static double median_ttft(const tl_load_result *r) {
    double *ms = tl_xalloc((r->n + 1) * sizeof *ms);
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        tl_metrics m;
        if (!r->items[i].started) continue;
        tl_metrics_of(&m, &r->items[i].request);
        if (m.outcome == TL_REQ_OK && m.ttft_ns != TL_NONE) ms[n++] = (double)m.ttft_ns / 1e6;
        tl_metrics_free(&m);
    }
    double median = tl_stat_median(ms, n);
    free(ms);
    return median;
}

json_t *run_ruler(const tl_run_ctx *c, const tl_load_result *r, const tl_run_load *load, double late_p99_ms) {
    double seconds = (double)(r->t_end - r->t_begin) / 1e9;
    const tl_run_ruler x = {.late_p99_ms = load->scheduled ? late_p99_ms : NAN, .ttft_ms = median_ttft(r),
                            .cpu_share = seconds > 0 ? r->client_cpu_s / seconds : NAN, .bias_ms = tl_json_num(c->calibration, "ttft_bias_ms", NAN),
                            .bias_streams = (size_t)tl_json_int(c->calibration, "streams", 0), .share = load->ruler_share};
    char reason[400];
    bool ok = tl_run_ruler_verdict(reason, &x);
    return json_pack("{s:b, s:s?, s:o, s:o, s:o, s:o, s:f}", "ok", ok, "reason", ok ? NULL : reason, "late_p99_ms", tl_json_real(x.late_p99_ms),
                     "ttft_ms", tl_json_real(x.ttft_ms), "cpu_share", tl_json_real(x.cpu_share), "bias_ms", tl_json_real(x.bias_ms),
                     "ruler_share", x.share);
}

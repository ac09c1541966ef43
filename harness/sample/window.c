/* Many requests of one stated window: rates with the failed ones beside them, and goodput. */
#include <assert.h>
#include <math.h>

#include "sample/sample_impl.h"

/* 1 met, 0 missed, -1 cannot be asked. */
static int meets(int64_t ns, double limit_ms)
{
    if (isnan(limit_ms) || ns == TL_NONE) return -1;
    return (double)ns / 1e6 <= limit_ms;
}

static bool is_good(const tl_metrics *m, const tl_slo *slo)
{
    if (m->outcome != TL_REQ_OK) return false;
    if (!slo) return true;
    const int64_t tpot = isnan(m->tpot_ns) ? TL_NONE : (int64_t)llround(m->tpot_ns);
    const int asked[] = { meets(m->ttft_ns, slo->ttft_ms), meets(tpot, slo->tpot_ms), meets(m->e2e_ns, slo->e2e_ms) };
    bool any = false;
    for (size_t i = 0; i < TL_COUNT(asked); i++) {
        if (asked[i] == 0) return false;
        any = any || asked[i] == 1;
    }
    return any;
}

void tl_window_of(tl_window *out, const tl_metrics *m, size_t n, double seconds, const tl_slo *slo)
{
    assert(seconds > 0);
    *out = (tl_window){ .offered = n, .seconds = seconds };
    double tokens = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_good(&m[i], slo)) out->good++;
        if (m[i].outcome != TL_REQ_OK) {
            out->failed++;
            continue;
        }
        out->ok++;
        tokens += m[i].n == TL_ABSENT ? NAN : (double)m[i].n;
    }
    out->offered_rate = (double)n / seconds;
    out->ok_rate = (double)out->ok / seconds;
    out->failed_rate = (double)out->failed / seconds;
    out->good_rate = (double)out->good / seconds;
    out->tokens_rate = tokens / seconds;
    out->success_share = n ? (double)out->ok / (double)n : NAN;
    out->good_share = n ? (double)out->good / (double)n : NAN;
}

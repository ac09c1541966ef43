/* The ledger: end-to-end time in lines that add up to it exactly.
 *
 * Integer nanoseconds all along, and the last line is what the others leave over, so the sum cannot drift. What cannot
 * be told apart stays one line and says so; nothing is clamped to make a line look plausible.
 */
#include <math.h>

#include "sample/sample_impl.h"

/* Two clocks, rounding to microseconds: an engine may seem to claim this much too much. */
#define CLOCK_SLACK_NS 1000000

static int64_t count_of(int64_t line) { return line == TL_NONE ? 0 : line; }

/* The time between two texts belongs to the kind of text that came before it: thinking lasts until the answer's first
 * token is there. */
static void split_generation(tl_ledger *l, const tl_request *r, const tl_marks *k)
{
    const tl_event *before = NULL;
    int64_t thinking = 0, answer = 0;
    for (size_t i = 0; i < r->n_events; i++) {
        const tl_event *ev = &r->events[i];
        if (!tl_event_is_text(ev)) continue;
        if (before) {
            const int64_t gap = (int64_t)(ev->t_ns - before->t_ns);
            if (tl_event_kind_of(before) == TL_EV_REASONING) thinking += gap;
            else answer += gap;
        }
        before = ev;
    }
    l->thinking_ns = k->has_reasoning ? thinking : TL_NONE;
    l->answer_ns = k->first_answer != TL_T_NONE ? answer : TL_NONE;
}

/* What happened on our side before the request was out. Connections opened ahead cost nothing here. */
static void split_client(tl_ledger *l, const tl_request *r, uint64_t sent)
{
    const int64_t before_sent = (int64_t)(sent - r->t_intended);
    const uint64_t start = r->t_start != TL_T_NONE && r->t_start > r->t_intended ? r->t_start : r->t_intended;
    l->connect_ns = 0;
    if (r->t_connected != TL_T_NONE && r->t_connected > start && r->t_connected <= sent)
        l->connect_ns = (int64_t)(r->t_connected - start);
    l->client_queue_ns = before_sent - l->connect_ns;
}

static void split_server(tl_metrics *m, const tl_request *r, int64_t span)
{
    tl_ledger *l = &m->ledger;
    const double prompt = tl_sample_prompt_ns(r);
    const double queue_ms = r->count.engine_queue_ms;
    const bool queue_told = isfinite(queue_ms) && queue_ms >= 0;
    l->model_load_ns = r->count.engine_load_ns != TL_ABSENT ? r->count.engine_load_ns : TL_NONE;
    l->server_queue_ns = queue_told ? (int64_t)llround(queue_ms * 1e6) : TL_NONE;
    const int64_t left = span - count_of(l->model_load_ns) - count_of(l->server_queue_ns);
    if (isnan(prompt)) {
        l->prompt_includes_queue = !queue_told;
        l->prompt_read_ns = left;
    } else {
        l->prompt_read_ns = prompt < 9e18 ? (int64_t)llround(prompt) : INT64_MAX / 2;
        if (!queue_told && left - l->prompt_read_ns >= 0) {
            l->server_queue_ns = left - l->prompt_read_ns;
            l->server_queue_derived = true;
        }
    }
    if (l->server_queue_ns == TL_NONE) return;
    m->queue_ns = (double)l->server_queue_ns;
    m->queue_derived = l->server_queue_derived;
}

void tl_sample_ledger(tl_metrics *m, const tl_request *r, const tl_marks *k)
{
    tl_ledger *l = &m->ledger;
    *l = (tl_ledger){ .e2e_ns = m->e2e_ns, .client_queue_ns = TL_NONE, .connect_ns = TL_NONE,
                      .server_queue_ns = TL_NONE, .model_load_ns = TL_NONE, .prompt_read_ns = TL_NONE,
                      .thinking_ns = TL_NONE, .answer_ns = TL_NONE, .unaccounted_ns = TL_NONE };
    if (l->e2e_ns == TL_NONE) return;
    const uint64_t sent = r->t_sent != TL_T_NONE ? r->t_sent : r->t_intended;
    split_client(l, r, sent);
    split_server(m, r, (int64_t)(k->first_text - sent));
    split_generation(l, r, k);
    l->unaccounted_ns = l->e2e_ns - count_of(l->client_queue_ns) - count_of(l->connect_ns) -
                        count_of(l->server_queue_ns) - count_of(l->model_load_ns) - count_of(l->prompt_read_ns) -
                        count_of(l->thinking_ns) - count_of(l->answer_ns);
    if (l->unaccounted_ns < -CLOCK_SLACK_NS || (isnan(tl_sample_prompt_ns(r)) && l->prompt_read_ns < -CLOCK_SLACK_NS))
        m->flags |= TL_FLAG_CLOCK;
}

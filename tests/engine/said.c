/* What an answer said, apart from when: what no network may change. */
#include "conform_impl.h"

json_t *tl_said(const tl_request *r, const tl_metrics *m)
{
    json_t *j = tl_request_json(r), *events = json_array();
    json_object_del(j, "t_ns");
    json_object_del(j, "reads");
    json_object_del(j, "habits");
    for (size_t i = 0; i < r->n_events; i++) {
        const int64_t kind_and_bytes = (int64_t)r->events[i].kind << 32 | r->events[i].text_bytes;
        json_array_append_new(events, json_integer(kind_and_bytes));
    }
    json_object_set_new(j, "events", events);
    json_object_set_new(j, "habits", json_integer(r->habits & ~TL_HABIT_SPACE_CUT)); /* that one is about cuts */
    json_object_set_new(j, "text", json_stringn(r->text, r->text_len));
    json_object_set_new(j, "reasoning", json_stringn(r->reasoning, r->reasoning_len));
    json_object_set_new(j, "tool_text", json_stringn(r->tool_text, r->tool_len));
    json_object_set_new(j, "outcome", json_string(tl_outcome_name(m->outcome)));
    json_object_set_new(j, "reason", m->reason ? json_string(m->reason) : json_null());
    json_object_set_new(j, "tokens", json_integer(m->n));
    json_object_set_new(j, "source", json_string(tl_n_source_name(m->n_source)));
    json_object_set_new(j, "prompt", json_integer(m->prompt_n));
    json_object_set_new(j, "cached", json_integer(m->cached_n));
    return j;
}

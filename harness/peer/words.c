/* Names, and one tool's figures as JSON. */
#include <math.h>

#include "peer/peer_impl.h"

const char *tl_peer_slot_name(tl_peer_slot s)
{
    static const char *const names[TL_PEER_SLOTS] = { "ttft", "ttfo", "e2e", "tpot", "itl", "rate", "rate2", "prefill" };
    return (unsigned)s < TL_PEER_SLOTS ? names[s] : "";
}

static const struct {
    const char *name, *words;
    bool stream; /* how this stream is written, not a definition that differs on any stream */
} causes[TL_PEER_CAUSES] = {
    [TL_PEER_FROM_POST] = { "from-post", "timed from its send, not from the intended start", false },
    [TL_PEER_FIRST_WAIT] = { "first-wait", "the wait for the first token is inside", false },
    [TL_PEER_ROLE] = { "role-chunk", "role chunk counted as first token", true },
    [TL_PEER_PROGRESS] = { "progress-chunk", "prompt-progress chunk counted as first token", true },
    [TL_PEER_REASONING] = { "reasoning-ignored", "thinking ignored", true },
    [TL_PEER_LOST] = { "records-lost", "records lost by its splitter", true },
    [TL_PEER_FINISH_TAIL] = { "finish-tail", "up to the finish chunk", true },
    [TL_PEER_USAGE_TAIL] = { "usage-tail", "up to the usage chunk", true },
    [TL_PEER_DONE_TAIL] = { "done-tail", "up to [DONE]", true },
    [TL_PEER_ENGINE_TIME] = { "engine-clock", "the engine's own clock", false },
    [TL_PEER_TTFT_AS_PROMPT] = { "ttft-as-prompt-time", "time to the first chunk taken for prompt time", false },
    [TL_PEER_REQUESTED] = { "requested-length", "requested length counted, not the real one", true },
    [TL_PEER_CHUNKS] = { "chunks", "chunks counted, not tokens", true },
    [TL_PEER_TOKENS] = { "token-count", "another token count", true },
    [TL_PEER_CACHED] = { "cached-prompt", "cached prompt tokens counted as read", false },
    [TL_PEER_N] = { "n-not-n-1", "n, not n-1: the first token counts", false },
    [TL_PEER_ROUNDING] = { "rounding", "whole nanoseconds", false },
};

const char *tl_peer_cause_name(tl_peer_cause_id c) { return (unsigned)c < TL_PEER_CAUSES ? causes[c].name : ""; }
const char *tl_peer_cause_words(tl_peer_cause_id c) { return (unsigned)c < TL_PEER_CAUSES ? causes[c].words : ""; }

bool tl_peer_cause_of_stream(tl_peer_cause_id c) { return (unsigned)c < TL_PEER_CAUSES && causes[c].stream; }

static json_t *text(const char *s) { return s ? json_string(s) : json_null(); }

static json_t *grains(int64_t v, int64_t scale) { return v == TL_NONE ? json_null() : tl_json_real((double)v / (double)scale); }

static json_t *whole(int64_t v) { return v == TL_NONE ? json_null() : json_integer((json_int_t)v); }

static json_t *figure_json(const tl_peer_figure *f)
{
    json_t *j = json_object(), *list = json_array();
    json_object_set_new(j, "name", text(f->word));
    json_object_set_new(j, "formula", text(f->formula));
    json_object_set_new(j, "unit", text(f->unit));
    json_object_set_new(j, "value", grains(f->value, f->grains));
    json_object_set_new(j, "ours", grains(f->ours, f->grains));
    json_object_set_new(j, "why", text(f->value == TL_NONE ? f->why : NULL));
    json_object_set_new(j, "gap", grains(f->gap, f->grains));
    json_object_set_new(j, "grains_per_unit", json_integer((json_int_t)f->grains));
    json_object_set_new(j, "gap_grains", whole(f->gap));
    for (size_t c = 0; c < TL_PEER_CAUSES; c++)
        if (f->cause[c] != 0)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "cause", causes[c].name, "words", causes[c].words, "grains",
                                                  (json_int_t)f->cause[c]));
    json_object_set_new(j, "causes", list);
    return j;
}

json_t *tl_peer_json(const tl_peer_figures *f)
{
    json_t *j = json_object(), *notes = json_array();
    json_object_set_new(j, "tool", json_string(tl_peer_name(f->peer)));
    json_object_set_new(j, "fails", text(f->fails));
    json_object_set_new(j, "counted_ok", json_boolean(f->counted_ok));
    json_object_set_new(j, "ours_ok", json_boolean(f->ours_ok));
    json_object_set_new(j, "n", f->n == TL_ABSENT ? json_null() : json_integer((json_int_t)f->n));
    json_object_set_new(j, "n_from", text(f->n_from));
    json_object_set_new(j, "ours_n", f->ours_n == TL_ABSENT ? json_null() : json_integer((json_int_t)f->ours_n));
    for (size_t i = 0; i < f->n_notes; i++) json_array_append_new(notes, json_string(f->notes[i]));
    json_object_set_new(j, "notes", notes);
    for (size_t s = 0; s < TL_PEER_SLOTS; s++)
        json_object_set_new(j, tl_peer_slot_name((tl_peer_slot)s), f->f[s].word ? figure_json(&f->f[s]) : json_null());
    return j;
}

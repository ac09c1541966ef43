/* One request as the tools' definitions see it: moments, counts, habits. */
#include "peer/peer_impl.h"

static bool has_choice(tl_event_kind k)
{
    return k == TL_EV_ROLE || k == TL_EV_REASONING || k == TL_EV_CONTENT || k == TL_EV_TOOL || k == TL_EV_PROGRESS ||
           k == TL_EV_FINISH;
}

static void first(uint64_t *slot, uint64_t t)
{
    if (*slot == TL_T_NONE) *slot = t;
}

/* A text completion of llama.cpp's or of OpenAI's kind: what a record of "content": "" is there, a role chunk is here. */
static void walk(peer_view *v)
{
    const tl_request *r = v->r;
    for (size_t i = 0; i < r->n_events; i++) {
        const tl_event *ev = &r->events[i];
        const tl_event_kind k = tl_event_kind_of(ev);
        const bool joined = (ev->kind & TL_EV_JOINED) != 0;
        if (k == TL_EV_DONE) {
            first(&v->t[M_DONE], ev->t_ns);
            continue;
        }
        if (k == TL_EV_COMMENT) continue;
        if (k == TL_EV_USAGE) v->usage_event = true;
        if (k == TL_EV_ERROR) v->is |= C_ERROR;
        if (k == TL_EV_REASONING) v->is |= C_REASONING;
        v->t[M_RECORD] = ev->t_ns;
        if (!has_choice(k)) continue;
        if (v->t[M_CHOICE] == TL_T_NONE) v->first_choice = k;
        first(&v->t[M_CHOICE], ev->t_ns);
        if (!joined) v->choices++;
        v->t[M_FINISH] = ev->t_ns;
        if (!tl_event_is_text(ev)) continue;
        first(&v->t[M_TEXT], ev->t_ns);
        v->t[M_LAST] = ev->t_ns;
        if (k == TL_EV_REASONING) continue;
        first(&v->t[M_ANSWER], ev->t_ns);
        v->answer_chunks++;
    }
}

/* The last choice that did not arrive in the last read. */
static void find_kept(peer_view *v)
{
    const tl_request *r = v->r;
    for (size_t i = r->n_events; i-- > 0;) {
        if (r->events[i].read_index == r->events[r->n_events - 1].read_index || !has_choice(tl_event_kind_of(&r->events[i]))) continue;
        v->t[M_KEPT] = r->events[i].t_ns;
        return;
    }
}

static void find_habits(peer_view *v)
{
    const tl_request *r = v->r;
    static const struct {
        unsigned habit, is;
    } same[] = { { TL_HABIT_COMMENTS_FIRST, C_COMMENTS_FIRST }, { TL_HABIT_COMMENTS, C_COMMENTS },       { TL_HABIT_NO_SPACE, C_NO_SPACE },
                 { TL_HABIT_EVENT_LINES, C_EVENT_LINES }, { TL_HABIT_USAGE_NULL, C_USAGE_NULL },
                 { TL_HABIT_CRLF, C_CRLF },               { TL_HABIT_SPACE_CUT, C_SPACE_CUT } };
    for (size_t i = 0; i < TL_COUNT(same); i++)
        if (r->habits & same[i].habit) v->is |= same[i].is;
    if ((v->is & C_COMMENTS) && !(v->is & C_COMMENTS_FIRST)) v->is |= C_COMMENTS_LATE;
    const bool openai = tl_str_starts(r->dialect, "openai");
    v->completion = !tl_str_ends(r->dialect, "chat");
    const struct {
        bool on;
        unsigned is;
    } rules[] = { { !openai, C_NATIVE },
                  { openai && v->usage_event, C_EMPTY_CHOICES },
                  { !(r->habits & TL_HABIT_KNOWN), C_UNRECORDED },
                  { v->m.chunks == 0 && r->saw_finish, C_NO_TEXT },
                  { v->t[M_RECORD] == TL_T_NONE && !r->saw_done, C_NOTHING },
                  { v->m.outcome == TL_REQ_TRUNCATED, C_TRUNCATED },
                  { (v->m.flags & TL_FLAG_COALESCED) != 0, C_COALESCED },
                  { (v->m.flags & TL_FLAG_SEVERAL) != 0, C_SEVERAL },
                  { v->m.n >= 0 && v->m.n <= 1, C_ONE } };
    for (size_t i = 0; i < TL_COUNT(rules); i++)
        if (rules[i].on) v->is |= rules[i].is;
    v->is |= C_ALWAYS;
}

void peer_view_of(peer_view *v, const tl_request *r)
{
    memset(v, 0, sizeof *v);
    v->r = r;
    for (size_t i = 0; i < M_COUNT; i++) v->t[i] = TL_T_NONE;
    tl_metrics_of(&v->m, r);
    v->t[M_INTENDED] = r->t_intended;
    v->t[M_START] = r->t_start != TL_T_NONE ? r->t_start : r->t_intended;
    walk(v);
    find_kept(v);
    if (v->t[M_DONE] == TL_T_NONE) v->t[M_DONE] = r->t_close != TL_T_NONE ? r->t_close : v->t[M_RECORD];
    find_habits(v);
}

/* ---- n ------------------------------------------------------------------------------------------------------------ */

static int64_t by_tokenizer(const char **from, const peer_view *v)
{
    if (v->r->count.tokenized > 0) {
        *from = "its tokenizer (here: the engine's)";
        return v->r->count.tokenized;
    }
    *from = v->m.n_source == TL_N_EVENTS ? "its tokenizer (here: one token a chunk)" : "its tokenizer (here: the server's count)";
    return v->m.n;
}

/* Thinking may be counted apart, or each chunk hold one token; else only its own tokenizer could tell. */
static int64_t of_answer(const char **from, const peer_view *v)
{
    const int64_t n = by_tokenizer(from, v);
    if (!(v->is & C_REASONING)) return n;
    if (v->m.reasoning_n >= 0 && n >= v->m.reasoning_n) {
        *from = "its tokenizer on the answer (here: without reasoning_tokens)";
        return n - v->m.reasoning_n;
    }
    if (v->m.chunks == v->m.n) {
        *from = "its tokenizer on the answer (here: answer chunks)";
        return v->answer_chunks;
    }
    *from = "its tokenizer on the answer: unknown here";
    return TL_ABSENT;
}

/* What the tool can read of the server's own count. A tool that strips reads looks only at a record with an empty list of
 * choices, if that survives. */
static int64_t usage_seen(const tl_peer *p, const peer_view *v)
{
    if (v->is & C_NATIVE) return v->m.n_source == TL_N_EVENTS ? TL_ABSENT : v->m.n;
    const bool lost = !v->usage_event || v->text_lost || (v->is & C_CRLF);
    return p->strips && lost ? TL_ABSENT : v->r->count.usage_completion;
}

int64_t peer_count(const char **from, tl_peer_cause_id *cause, const tl_peer *p, const peer_view *v)
{
    const bool by_usage = p->n >= N_USAGE_TOKENIZER && p->n <= N_USAGE_CHUNKS;
    const int64_t usage = by_usage ? usage_seen(p, v) : TL_ABSENT;
    *cause = TL_PEER_TOKENS;
    *from = "depends on its reads";
    if (p->strips && (v->is & C_COMMENTS_LATE)) return TL_ABSENT;
    *from = "usage";
    if (usage != TL_ABSENT) return usage;
    switch (p->n) {
    case N_OURS: *from = tl_n_source_name(v->m.n_source); return v->m.n;
    case N_USAGE_TOKENIZER:
    case N_TOKENIZER: return by_tokenizer(from, v);
    case N_TOKENIZER_ANSWER: return of_answer(from, v);
    case N_USAGE_REQUESTED: *cause = TL_PEER_REQUESTED; *from = "the requested maximum"; return v->r->count.requested_max;
    case N_USAGE_CHUNKS:
    case N_CHUNKS: *cause = TL_PEER_CHUNKS; *from = "chunks"; return v->m.chunks;
    case N_ENGINE: *from = "engine"; return v->r->count.engine_predicted_n;
    case N_USAGE_ONLY: *from = "usage: none came"; break;
    }
    return TL_ABSENT;
}

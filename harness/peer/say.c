/* A tool's figures for one request, and the way from ours to its.
 *
 * Ours is written as a formula (span, count); one part after the other is replaced by the tool's: begin of the span, its
 * end (step by step along the tail of the stream), the count, the divisor. Each replacement's effect is what the value
 * changed by, in whole grains, so the effects add up to the difference whatever was rounded. A replacement that leaves
 * the value undefined (a division by zero) counts together with the next one.
 */
#include <math.h>

#include "peer/peer_impl.h"

#define NO_COUNT INT64_MIN /* not TL_ABSENT: one tool divides by -1 */

typedef struct formula {
    peer_kind kind; /* K_TIME, K_PER_TOKEN or K_RATE */
    int64_t span;   /* ns; TL_NONE */
    int64_t count;  /* divisor or numerator; NO_COUNT */
} formula;

static int64_t grains_of(const formula *f)
{
    if (f->span == TL_NONE) return TL_NONE;
    if (f->kind == K_TIME) return f->span;
    if (f->count == NO_COUNT) return TL_NONE;
    const double x = f->kind == K_PER_TOKEN ? (double)f->span * 1e3 / (double)f->count : (double)f->count * 1e15 / (double)f->span;
    return isfinite(x) && fabs(x) < 9e18 ? llround(x) : TL_NONE;
}

/* The value so far; what a step changed goes to its cause. */
typedef struct walk {
    tl_peer_figure *fig;
    formula f;
    int64_t at;
} walk;

static void step(walk *w, tl_peer_cause_id cause)
{
    const int64_t now = grains_of(&w->f);
    if (now == TL_NONE || w->at == TL_NONE) return;
    w->fig->cause[cause] += now - w->at;
    w->at = now;
}

tl_peer_cause_id peer_segment(const peer_view *v, peer_mark a, peer_mark b)
{
    const peer_mark lo = a < b ? a : b, hi = a < b ? b : a;
    if (lo == M_INTENDED) return TL_PEER_FROM_POST;
    if (lo == M_START) return TL_PEER_FIRST_WAIT;
    if (lo == M_CHOICE && hi == M_TEXT) return v->first_choice == TL_EV_PROGRESS ? TL_PEER_PROGRESS : TL_PEER_ROLE;
    if (lo == M_TEXT && hi == M_ANSWER) return TL_PEER_REASONING;
    if (lo < M_LAST) return TL_PEER_LOST;
    if (hi == M_FINISH) return TL_PEER_FINISH_TAIL;
    return hi == M_RECORD ? TL_PEER_USAGE_TAIL : TL_PEER_DONE_TAIL;
}

static int64_t between(const peer_view *v, peer_mark a, peer_mark b)
{
    if (v->t[a] == TL_T_NONE || v->t[b] == TL_T_NONE) return TL_NONE;
    return (int64_t)(v->t[b] - v->t[a]);
}

/* Moves one end of the span from mark a to mark b. sign: +1 its end, -1 its begin. */
static void move(walk *w, const peer_view *v, int sign, peer_mark a, peer_mark b)
{
    while (a != b && v->t[b] != TL_T_NONE) {
        peer_mark next = b;
        if (a >= M_LAST && b > a) next = (peer_mark)(a + 1);
        if (v->t[next] != TL_T_NONE) {
            const int64_t d = between(v, a, next);
            if (w->f.span != TL_NONE && d != TL_NONE) w->f.span += sign * d;
            step(w, peer_segment(v, a, next));
            a = next;
        } else {
            /* a moment that never was: the tail goes on from the one before it */
            peer_mark past = (peer_mark)(next + 1);
            while (past < b && v->t[past] == TL_T_NONE) past = (peer_mark)(past + 1);
            const int64_t d = between(v, a, past);
            if (w->f.span != TL_NONE && d != TL_NONE) w->f.span += sign * d;
            step(w, peer_segment(v, a, past));
            a = past;
        }
    }
}

/* ---- ours ---------------------------------------------------------------------------------------------------------- */

static int64_t engine_ns(int64_t ns, double ms)
{
    if (ns != TL_ABSENT) return ns > 0 ? ns : TL_NONE;
    return isfinite(ms) && ms > 0 && ms < 1e12 ? llround(ms * 1e6) : TL_NONE;
}

static formula our_prompt(const peer_view *v)
{
    const tl_counters *c = &v->r->count;
    formula f = { K_RATE, engine_ns(c->engine_prompt_ns, c->engine_prompt_ms), v->m.uncached_n > 0 ? v->m.uncached_n : NO_COUNT };
    if (f.span == TL_NONE && v->m.ttft_sent_ns != TL_NONE)
        f.span = v->m.ttft_sent_ns - (isfinite(v->m.queue_ns) ? llround(v->m.queue_ns) : 0);
    return f;
}

static formula our_formula(const peer_view *v, tl_peer_slot s)
{
    const bool refused = v->r->content_encoded;
    const int64_t n1 = v->m.n >= 2 ? v->m.n - 1 : NO_COUNT, span = refused ? TL_NONE : between(v, M_TEXT, M_LAST);
    switch (s) {
    case TL_PEER_TTFT: return (formula){ K_TIME, v->m.ttft_ns, 0 };
    case TL_PEER_TTFO: return (formula){ K_TIME, v->m.ttfo_ns, 0 };
    case TL_PEER_E2E: return (formula){ K_TIME, v->m.e2e_ns, 0 };
    case TL_PEER_TPOT:
    case TL_PEER_ITL: return (formula){ K_PER_TOKEN, span, n1 };
    case TL_PEER_RATE:
    case TL_PEER_RATE2: return (formula){ K_RATE, span, n1 };
    case TL_PEER_PREFILL: return our_prompt(v);
    case TL_PEER_SLOTS: break;
    }
    return (formula){ K_TIME, TL_NONE, 0 };
}

/* ---- theirs --------------------------------------------------------------------------------------------------------- */

typedef struct count_of {
    int64_t n;
    tl_peer_cause_id cause;
} count_of;

static int64_t divisor(peer_by by, int64_t n, const peer_view *v)
{
    switch (by) {
    case BY_N: return n > 0 ? n : NO_COUNT;
    case BY_N1: return n >= 2 ? n - 1 : NO_COUNT;
    case BY_CHOICES: return v->choices > 0 ? v->choices : NO_COUNT;
    case BY_CHOICES1: return v->choices >= 2 ? v->choices - 1 : NO_COUNT;
    case BY_ML: return n >= 2 ? n - 1 : n >= 0 ? -1 : NO_COUNT; /* its check sets n = 0 and goes on */
    }
    return NO_COUNT;
}

static void replace_count(walk *w, const peer_def *d, count_of k, const peer_view *v)
{
    if (d->by == BY_CHOICES || d->by == BY_CHOICES1) {
        w->f.count = divisor(d->by, k.n, v);
        step(w, TL_PEER_CHUNKS);
        return;
    }
    w->f.count = divisor(BY_N1, k.n, v);
    step(w, k.cause);
    w->f.count = divisor(d->by, k.n, v);
    step(w, TL_PEER_N);
}

static void client_figure(walk *w, const peer_def *d, tl_peer_slot s, count_of k, const peer_view *v)
{
    const bool time = d->kind == K_TIME;
    const peer_mark to = time && s == TL_PEER_TTFT ? M_TEXT : time && s == TL_PEER_TTFO ? M_ANSWER : M_LAST;
    move(w, v, -1, time ? M_INTENDED : M_TEXT, d->from);
    move(w, v, +1, to, d->to);
    if (w->f.span != TL_NONE && w->at == TL_NONE) w->f.span = TL_NONE;
    if (v->t[d->from] == TL_T_NONE || v->t[d->to] == TL_T_NONE) w->f.span = TL_NONE;
    else w->f.span = between(v, d->from, d->to);
    if (!time) replace_count(w, d, k, v);
}

static void engine_figure(walk *w, const peer_def *d, const peer_view *v)
{
    const tl_counters *c = &v->r->count;
    const int64_t n = c->engine_predicted_n;
    w->f.span = engine_ns(c->engine_eval_ns, c->engine_predicted_ms);
    step(w, TL_PEER_ENGINE_TIME);
    replace_count(w, d, (count_of){ n, TL_PEER_TOKENS }, v);
}

static void prompt_figure(walk *w, const peer_def *d, const peer_view *v)
{
    const tl_counters *c = &v->r->count;
    if (d->kind == K_PROMPT_CLIENT) {
        w->f.span = between(v, d->from, d->to);
        step(w, TL_PEER_TTFT_AS_PROMPT);
    } else {
        w->f.span = engine_ns(c->engine_prompt_ns, c->engine_prompt_ms);
        step(w, TL_PEER_ENGINE_TIME);
    }
    if (d->kind == K_PROMPT) return;
    w->f.count = v->m.prompt_n > 0 ? v->m.prompt_n : NO_COUNT;
    step(w, TL_PEER_CACHED);
}

static void set_scale(tl_peer_figure *f, tl_peer_slot s)
{
    f->unit = s >= TL_PEER_RATE ? "tok/s" : "ms";
    f->grains = s == TL_PEER_TPOT || s == TL_PEER_ITL ? 1000000000 : 1000000;
}

/* Theirs is defined where ours is not, or the other way round: no gap, no causes. */
static void close_gap(tl_peer_figure *f)
{
    f->gap = f->value == TL_NONE || f->ours == TL_NONE ? TL_NONE : f->value - f->ours;
    if (f->gap == TL_NONE) memset(f->cause, 0, sizeof f->cause);
}

static const char *why_none(const peer_def *d, const peer_view *v, count_of k)
{
    if (d->kind == K_ENGINE || d->kind == K_PROMPT || d->kind == K_PROMPT_ALL) return "the engine reported no time of its own";
    if (d->kind == K_PROMPT_OURS || d->kind == K_PROMPT_CLIENT) return "the number of prompt tokens or their time is not known";
    if (v->t[d->from] == TL_T_NONE || v->t[d->to] == TL_T_NONE) return "the moment it needs never came";
    if (d->kind == K_TIME) return "compressed on the way: times are not the server's";
    if (k.n == TL_ABSENT) return "its token count is not known";
    return k.n < 2 ? "fewer than two tokens" : "all tokens at one moment";
}

/* What its code reports for a moment that never came. Thinking without an answer is the one case that ours defines. */
static void report_zero(tl_peer_figure *f)
{
    f->value = 0;
    f->why = NULL;
    memset(f->cause, 0, sizeof f->cause);
    if (f->ours != TL_NONE) f->cause[TL_PEER_REASONING] = -f->ours;
}

/* What a splitter that strips each read still sees of comments and CRLF. */
static peer_def stripped(peer_def d, const peer_view *v)
{
    if (v->text_lost) {
        if (d.from == M_CHOICE) d.from = M_DONE;
        if (d.kind == K_TIME || d.from == M_DONE) d.to = M_DONE;
    } else if ((v->is & C_COMMENTS_LATE) && d.to >= M_LAST) {
        return (peer_def){ .word = d.word, .formula = d.formula, .why = "a comment in mid-stream: which later records survive depends on its reads" };
    } else if ((v->is & C_CRLF) && d.to >= M_LAST && v->t[M_KEPT] != TL_T_NONE) {
        d.to = M_KEPT;
    }
    return d;
}

/* The definition on this stream. */
static peer_def def_here(const tl_peer *p, tl_peer_slot s, const peer_view *v)
{
    peer_def d = p->def[s];
    if (d.kind == K_NONE) return d;
    if (v->completion && p->text_end != M_NONE && d.to == M_RECORD) d.to = p->text_end;
    return p->strips ? stripped(d, v) : d;
}

static void evaluate(walk *w, const peer_def *d, tl_peer_slot s, count_of k, const peer_view *v)
{
    if (d->kind == K_ENGINE) engine_figure(w, d, v);
    else if (d->kind == K_PROMPT || d->kind == K_PROMPT_ALL || d->kind == K_PROMPT_CLIENT) prompt_figure(w, d, v);
    else if (d->kind != K_PROMPT_OURS) client_figure(w, d, s, k, v);
}

/* LoadGen keeps integer nanoseconds. */
static void round_down(tl_peer_figure *f)
{
    const int64_t whole = f->value / 1000 * 1000;
    f->cause[TL_PEER_ROUNDING] = whole - f->value;
    f->value = whole;
}

static void figure(tl_peer_figure *f, const tl_peer *p, tl_peer_slot s, count_of k, const peer_view *v)
{
    const peer_def d = def_here(p, s, v);
    const formula ours = our_formula(v, s);
    walk w = { f, ours, grains_of(&ours) };
    set_scale(f, s);
    f->value = f->gap = TL_NONE;
    f->ours = w.at;
    f->word = d.word;
    f->formula = d.formula;
    f->why = d.why;
    if (d.kind == K_NONE) return;
    evaluate(&w, &d, s, k, v);
    f->value = grains_of(&w.f);
    if (d.by == BY_ML && d.kind == K_PER_TOKEN && f->value != TL_NONE) round_down(f);
    if (f->value == TL_NONE) f->why = why_none(&d, v, k);
    if (f->value == TL_NONE && p->zero && d.kind == K_TIME && v->t[d.from] != TL_T_NONE) report_zero(f);
    close_gap(f);
}

/* ---- what it makes of the request ----------------------------------------------------------------------------------- */

static bool reached_server(const tl_request *r)
{
    return r->transport != TL_TP_NO_CONNECT && r->transport != TL_TP_TIMEOUT && r->transport != TL_TP_CANCELLED &&
           r->transport != TL_TP_CLIENT_LIMIT && r->http_status >= 200 && r->http_status < 300;
}

static bool counted_ok(const tl_peer *p, const peer_view *v, bool fails)
{
    if (fails || p->engine) return !fails && v->m.outcome == TL_REQ_OK;
    if (!reached_server(v->r)) return false;
    if (v->is & C_ERROR) return p->errors_ok;
    if (v->m.outcome == TL_REQ_TRUNCATED) return p->cut_ok;
    if (v->m.chunks == 0 && !v->r->saw_finish) return p->nothing_ok;
    return v->m.outcome == TL_REQ_OK;
}

static void add_note(tl_peer_figures *out, const char *what)
{
    if (out->n_notes < TL_COUNT(out->notes)) out->notes[out->n_notes++] = what;
}

/* What this stream does to it comes first, then what it does on any. */
static void take_notes(tl_peer_figures *out, const tl_peer *p, const peer_view *v)
{
    const bool reads_stream = !p->engine && p->n != N_OURS;
    for (size_t i = 0; i < TL_COUNT(p->notes) && p->notes[i].what; i++)
        if (p->notes[i].when & v->is & ~C_ALWAYS) add_note(out, p->notes[i].what);
    if (reads_stream && (v->is & C_NATIVE)) add_note(out, "it does not speak this dialect: its definitions on the same times");
    else if (reads_stream && (v->is & C_UNRECORDED))
        add_note(out, "stored before a stream's habits were recorded: failures caused by them are not seen");
    out->n_stream_notes = out->n_notes;
    for (size_t i = 0; i < TL_COUNT(p->notes) && p->notes[i].what; i++)
        if (p->notes[i].when & C_ALWAYS) add_note(out, p->notes[i].what);
}

void tl_peer_say(tl_peer_figures *out, const tl_peer *p, const tl_request *r)
{
    peer_view v;
    count_of k;
    memset(out, 0, sizeof *out);
    peer_view_of(&v, r);
    out->peer = p;
    for (size_t i = 0; i < TL_COUNT(p->fails) && p->fails[i].what; i++)
        if (!out->fails && (p->fails[i].when & v.is)) out->fails = p->fails[i].what;
    v.text_lost = p->strips && (v.is & C_COMMENTS_FIRST) != 0;
    out->ours_ok = v.m.outcome == TL_REQ_OK;
    out->counted_ok = counted_ok(p, &v, out->fails != NULL);
    out->ours_n = v.m.n;
    k.n = out->n = peer_count(&out->n_from, &k.cause, p, &v);
    for (size_t s = 0; s < TL_PEER_SLOTS; s++) {
        tl_peer_figure *f = &out->f[s];
        figure(f, p, (tl_peer_slot)s, k, &v);
        if (!out->fails || f->word == NULL) continue;
        f->value = f->gap = TL_NONE;
        f->why = out->fails;
        memset(f->cause, 0, sizeof f->cause);
    }
    if (out->fails) out->n = TL_ABSENT;
    take_notes(out, p, &v);
    tl_metrics_free(&v.m);
}

double tl_peer_value(const tl_peer_figure *f)
{
    return f->value == TL_NONE ? NAN : (double)f->value / (double)f->grains;
}

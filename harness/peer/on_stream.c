/* What a server's habits do to a tool: of its differences to ours, those that another way of streaming would not have. */
#include <math.h>

#include "peer/peer_impl.h"

#define SHOWN 0.05        /* of a unit: what is less does not show in one digit */
#define SHOWN_SHARE 0.005 /* of ours: what is less is lost in any run's own spread */

static json_t *finding(const char *kind, const char *text) { return json_pack("{s:s, s:s}", "kind", kind, "text", text); }

static void add(json_t *out, const char *kind, const char *fmt, ...) TL_PRINTF(3, 4);
static void add(json_t *out, const char *kind, const char *fmt, ...)
{
    tl_buf b;
    va_list ap;
    tl_buf_init(&b, 0);
    va_start(ap, fmt);
    tl_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    json_array_append_new(out, finding(kind, b.p));
    tl_buf_free(&b);
}

/* The sum of the stream's causes, and their words. */
static double by_stream(tl_buf *words, const tl_peer_run *r, tl_peer_slot s)
{
    const double unit = (double)r->f[s].n_both * (double)r->grains[s];
    double sum = 0;
    for (size_t c = 0; c < TL_PEER_CAUSES; c++) {
        const double x = (double)r->f[s].cause_sum[c] / unit;
        if (!tl_peer_cause_of_stream((tl_peer_cause_id)c)) continue;
        sum += x;
        if (fabs(x) >= SHOWN) tl_buf_fmt(words, "%s%s", words->len ? "; " : "", tl_peer_cause_words((tl_peer_cause_id)c));
    }
    return sum;
}

static void add_figure(json_t *out, const char *name, const tl_peer_run *r, tl_peer_slot s)
{
    const tl_peer_total *t = &r->f[s];
    const bool rate = s >= TL_PEER_RATE;
    tl_buf words;
    json_t *f;
    if (r->words[s] == NULL || (t->n_both == 0 && !isfinite(t->ours_median))) return;
    if (t->n_both == 0) {
        if (r->failing < r->requests && r->counted_ok > 0 && t->n == 0) add(out, "figure", "no %s: %s", name, r->why[s]);
        return;
    }
    tl_buf_init(&words, 0);
    const double gap = by_stream(&words, r, s), ours = (double)t->ours_sum / (double)t->n_both / (double)r->grains[s];
    if (fabs(gap) >= SHOWN && fabs(gap) >= SHOWN_SHARE * fabs(ours)) {
        const char *side = rate ? gap < 0 ? "low" : "high" : gap < 0 ? "short" : "long";
        add(out, "figure", "%s %.1f%s too %s, of %.1f: %s", name, fabs(gap), rate ? "" : " ms", side, ours, words.p);
        f = json_array_get(out, json_array_size(out) - 1);
        json_object_set_new(f, "gap", tl_json_real(gap));
        json_object_set_new(f, "ours", tl_json_real(ours));
        json_object_set_new(f, "unit", json_string(r->units[s]));
        json_object_set_new(f, "figure", json_string(tl_peer_slot_name(s)));
    }
    tl_buf_free(&words);
}

static size_t having(const tl_peer_figures *f, size_t n, const char *note)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < f[i].n_stream_notes; a++) k += f[i].notes[a] == note;
    return k;
}

/* What holds for half of the answers or more: what one of many shows is chance. */
static void add_notes(json_t *out, const tl_peer_figures *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < f[i].n_stream_notes; a++) {
            const char *note = f[i].notes[a];
            if (having(f, i, note) == 0 && having(f, n, note) * 2 >= n) add(out, "note", "%s", note);
        }
}

json_t *tl_peer_on_stream(const tl_peer_figures *f, size_t n)
{
    json_t *out = json_array();
    tl_peer_run r;
    tl_peer_sum(&r, f, n);
    if (r.failing) add(out, "fails", "fails on %zu of %zu answers: %s", r.failing, n, r.fails);
    if (r.counted_ok > r.ours_ok || r.counted_ok + r.failing < r.ours_ok)
        add(out, "success", "counts %zu of %zu answers as success; %zu are", r.counted_ok, n, r.ours_ok);
    add_figure(out, "TTFT", &r, TL_PEER_TTFT);
    add_figure(out, "E2E", &r, TL_PEER_E2E);
    if (r.f[TL_PEER_RATE].n_both) add_figure(out, "tok/s", &r, TL_PEER_RATE);
    else add_figure(out, "TPOT", &r, TL_PEER_TPOT);
    add_notes(out, f, n);
    return out;
}

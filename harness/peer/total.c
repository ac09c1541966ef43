/* A tool's figures over a run, as it sums them up, and the gap to ours as sums of whole grains. */
#include <math.h>

#include "peer/peer_impl.h"

static int cmp(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* numpy's default: between the two neighbours. `x` is sorted. */
static double linear(const double *x, size_t n, double q)
{
    if (n == 0) return NAN;
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    return i + 1 < n ? x[i] + (x[i + 1] - x[i]) * (at - (double)i) : x[n - 1];
}

static void add(tl_peer_total *t, const tl_peer_figure *f)
{
    if (f->gap == TL_NONE) return;
    t->n_both++;
    t->sum += f->value;
    t->ours_sum += f->ours;
    t->gap_sum += f->gap;
    for (size_t c = 0; c < TL_PEER_CAUSES; c++) t->cause_sum[c] += f->cause[c];
}

static void total(tl_peer_run *out, tl_peer_slot s, const tl_peer_figures *f, size_t n, double *x)
{
    tl_peer_total *t = &out->f[s];
    size_t ours = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (f[i].ours_ok && f[i].f[s].ours != TL_NONE) x[ours++] = (double)f[i].f[s].ours / (double)f[i].f[s].grains;
    qsort(x, ours, sizeof *x, cmp);
    t->ours_median = linear(x, ours, 0.5);
    for (size_t i = 0; i < n; i++) {
        const tl_peer_figure *g = &f[i].f[s];
        out->words[s] = g->word;
        out->units[s] = g->unit;
        out->grains[s] = g->grains;
        if (g->value == TL_NONE && !out->why[s]) out->why[s] = g->why;
        if (!f[i].counted_ok || g->value == TL_NONE) continue;
        x[t->n] = tl_peer_value(g);
        sum += x[t->n++];
        add(t, g);
    }
    qsort(x, t->n, sizeof *x, cmp);
    t->mean = t->n ? sum / (double)t->n : NAN;
    t->median = linear(x, t->n, 0.5);
    t->p99 = linear(x, t->n, 0.99);
}

void tl_peer_sum(tl_peer_run *out, const tl_peer_figures *f, size_t n)
{
    memset(out, 0, sizeof *out);
    out->requests = n;
    out->peer = n ? f[0].peer : NULL;
    for (size_t i = 0; i < n; i++) {
        out->counted_ok += f[i].counted_ok;
        out->ours_ok += f[i].ours_ok;
        out->failing += f[i].fails != NULL;
        if (!out->fails) out->fails = f[i].fails;
        if (!out->n_from) out->n_from = f[i].n_from;
        out->n_from_other += !tl_str_eq(out->n_from, f[i].n_from);
    }
    double *x = tl_xalloc((n + 1) * sizeof *x);
    for (size_t s = 0; s < TL_PEER_SLOTS; s++) total(out, (tl_peer_slot)s, f, n, x);
    free(x);
}

/* ---- words ----------------------------------------------------------------------------------------------------------- */

static double mean_of(int64_t sum, const tl_peer_run *r, tl_peer_slot s)
{
    return (double)sum / (double)r->f[s].n_both / (double)r->grains[s];
}

void tl_peer_gap_words(tl_buf *out, const tl_peer_run *r, tl_peer_slot s)
{
    const tl_peer_total *t = &r->f[s];
    bool first = true;
    for (size_t c = 0; c < TL_PEER_CAUSES && t->n_both > 0; c++) {
        const double x = t->n_both ? mean_of(t->cause_sum[c], r, s) : 0;
        if (fabs(x) < 0.05) continue; /* what the table's digits would not show */
        tl_buf_fmt(out, "%s%+.1f %s", first ? "" : "; ", x, tl_peer_cause_words((tl_peer_cause_id)c));
        first = false;
    }
}

static json_t *total_json(const tl_peer_run *r, tl_peer_slot s)
{
    const tl_peer_total *t = &r->f[s];
    json_t *j = json_object(), *list = json_array();
    json_object_set_new(j, "name", json_string(r->words[s]));
    json_object_set_new(j, "unit", json_string(r->units[s]));
    json_object_set_new(j, "n", json_integer((json_int_t)t->n));
    json_object_set_new(j, "mean", tl_json_real(t->mean));
    json_object_set_new(j, "median", tl_json_real(t->median));
    json_object_set_new(j, "p99", tl_json_real(t->p99));
    json_object_set_new(j, "ours_median", tl_json_real(t->ours_median));
    json_object_set_new(j, "why", t->n == 0 && r->why[s] ? json_string(r->why[s]) : json_null());
    json_object_set_new(j, "n_both", json_integer((json_int_t)t->n_both));
    json_object_set_new(j, "grains_per_unit", json_integer((json_int_t)r->grains[s]));
    json_object_set_new(j, "gap_mean", t->n_both ? tl_json_real(mean_of(t->gap_sum, r, s)) : json_null());
    json_object_set_new(j, "gap_sum_grains", t->n_both ? json_integer((json_int_t)t->gap_sum) : json_null());
    for (size_t c = 0; c < TL_PEER_CAUSES; c++)
        if (t->cause_sum[c] != 0)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "cause", tl_peer_cause_name((tl_peer_cause_id)c), "words",
                                                  tl_peer_cause_words((tl_peer_cause_id)c), "sum_grains",
                                                  (json_int_t)t->cause_sum[c]));
    json_object_set_new(j, "causes", list);
    return j;
}

json_t *tl_peer_run_json(const tl_peer_run *r)
{
    json_t *j = json_object();
    if (r->peer == NULL) return j;
    json_object_set_new(j, "tool", json_string(tl_peer_name(r->peer)));
    json_object_set_new(j, "read_in", json_string(tl_peer_snapshot(r->peer)));
    json_object_set_new(j, "aggregate", json_string(tl_peer_aggregate(r->peer)));
    json_object_set_new(j, "requests", json_integer((json_int_t)r->requests));
    json_object_set_new(j, "counted_ok", json_integer((json_int_t)r->counted_ok));
    json_object_set_new(j, "ours_ok", json_integer((json_int_t)r->ours_ok));
    json_object_set_new(j, "failing", json_integer((json_int_t)r->failing));
    json_object_set_new(j, "fails", r->fails ? json_string(r->fails) : json_null());
    json_object_set_new(j, "n_from", r->n_from ? json_string(r->n_from) : json_null());
    json_object_set_new(j, "n_from_other", json_integer((json_int_t)r->n_from_other));
    for (size_t s = 0; s < TL_PEER_SLOTS; s++)
        json_object_set_new(j, tl_peer_slot_name((tl_peer_slot)s), r->words[s] ? total_json(r, (tl_peer_slot)s) : json_null());
    return j;
}

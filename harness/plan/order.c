/* The order of cells in each round, and what the whole will take. */
#include "plan/plan_impl.h"

#include <math.h>

void tl_plan_order(const tl_plan *p, uint64_t round, size_t *out) {
    tl_rng r;
    char name[64];
    /* through a hash, so that round 1 of seed 7 has nothing to do with round 0 of seed 8 */
    snprintf(name, sizeof name, "order %" PRIu64 " %" PRIu64, p->seed, round);
    tl_rng_seed(&r, tl_seed_of(name));
    for (size_t i = 0; i < p->n_cells; i++) out[i] = i;
    tl_rng_shuffle(&r, out, p->n_cells, sizeof *out);
    if (!p->grouped) return;
    /* cells keep their shuffled order inside their group; groups stand in an order of their own */
    size_t *groups = tl_xalloc(p->n_groups * sizeof *groups), *cells = tl_xalloc(p->n_cells * sizeof *cells),
           k = 0;
    memcpy(cells, out, p->n_cells * sizeof *cells);
    for (size_t g = 0; g < p->n_groups; g++) groups[g] = g;
    tl_rng_shuffle(&r, groups, p->n_groups, sizeof *groups);
    for (size_t g = 0; g < p->n_groups; g++)
        for (size_t i = 0; i < p->n_cells; i++)
            if (p->cells[cells[i]].group == groups[g]) out[k++] = cells[i];
    free(groups);
    free(cells);
}

/* Predicted tokens per second, or NaN. */
static double rate_of(const tl_plan_cell *c) {
    tl_values *g = tl_values_new();
    tl_value *v = NULL;
    double rate = NAN;
    if (!json_is_null(c->prediction) && tl_value_from_json(&v, g, c->prediction, NULL) == TL_OK &&
        tl_value_convert(&v, g, v, "tok/s", NULL) == TL_OK && v->number > 0)
        rate = v->number;
    tl_values_free(g);
    return rate;
}

void tl_plan_estimate(tl_plan_cost *out, const tl_plan *p) {
    memset(out, 0, sizeof *out);
    double round_s = 0, probes_s = p->probe_bandwidth ? 2 * (double)p->probe_ms / 1000 : 0;
    uint64_t requests = 0, prompt = 0, output = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        const json_t *w = p->cells[i].workload;
        uint64_t each = (uint64_t)tl_json_int(w, "requests", 1),
                 users = (uint64_t)tl_json_int(w, "concurrency", 1);
        uint64_t tokens = (uint64_t)tl_json_int(w, "output_tokens", 0);
        requests += each * users;
        prompt += each * users * (uint64_t)tl_json_int(w, "prompt_tokens", 0);
        output += each * users * tokens;
        /* users of one cell generate side by side */
        round_s += probes_s + (double)(each * tokens) / rate_of(&p->cells[i]);
    }
    out->requests_min = requests * (uint64_t)p->repeats_min;
    out->requests_max = requests * (uint64_t)p->repeats_max;
    out->prompt_tokens_max = prompt * (uint64_t)p->repeats_max;
    out->output_tokens_max = output * (uint64_t)p->repeats_max;
    out->seconds_min = round_s * (double)p->repeats_min;
    out->seconds_max = round_s * (double)p->repeats_max;
}

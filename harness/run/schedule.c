/* From a workload's schedule to when the requests of one block are sent: intended starts, pauses, and what the client is
 * told. What they ask for: jobs.c. */
#include "run/run_impl.h"

#include <math.h>

/* Fields that plans may carry and that no block can carry out yet: refused, never ignored. */
static const char *const missing[] = {"language", "corpus", "prefix", "sessions", "schedule.file", "schedule.workers", "schedule.cpus"};

static tl_status check_search(tl_run_load *out, const json_t *workload, tl_err *e) {
    const json_t *s = json_object_get(workload, "schedule");
    size_t asked = (size_t)tl_json_int(workload, "requests", 1), fewest = run_search_fewest(&out->slo);
    out->requests = asked > 1 ? asked : SIZE_MAX; /* of one load, at most */
    if (out->requests < fewest) {
        tl_fail(e, TL_INVALID, "workload.requests: %zu requests a load cannot show that '%s' is met", asked, tl_json_str(s, "slo", ""));
        return tl_remedy(e, "give it %zu or more, or leave it out: a search takes as many as its verdict needs", fewest);
    }
    double from = tl_json_num(s, "from", 1), to = tl_json_num(s, "to", 1);
    if (!out->open && (from != floor(from) || to != floor(to) || from < 1))
        return tl_fail(e, TL_INVALID, "workload.schedule.from, to: users are counted, %g to %g are no numbers of users", from, to);
    return TL_OK;
}

tl_status run_load_of(tl_run_load *out, const json_t *workload, tl_err *e) {
    const json_t *s = json_object_get(workload, "schedule");
    bool pauses_vary = !tl_str_eq(tl_json_str(s, "think", "constant"), "constant");
    for (size_t i = 0; i < TL_COUNT(missing) + 1; i++)
        if (i < TL_COUNT(missing) ? tl_json_at(workload, missing[i]) != NULL : pauses_vary) {
            tl_fail(e, TL_INVALID, "workload.%s: runs cannot do this yet", i < TL_COUNT(missing) ? missing[i] : "schedule.think");
            return tl_remedy(e, "leave the field out; schedules that run are closed (ramp_s, think_s), open (rate, rate_to, arrival, burstiness) and "
                                "search (slo, over, from, to, resolution), with slo, settle_s, drain_s, max_in_flight, abort_error_share and ruler_share");
        }
    size_t requests = (size_t)tl_json_int(workload, "requests", 1), users = (size_t)tl_json_int(workload, "concurrency", 1);
    const char *kind = tl_json_str(s, "kind", "closed"), *slo = tl_json_str(s, "slo", NULL);
    bool search = tl_str_eq(kind, "search"), open = tl_str_eq(kind, "open") || (search && tl_str_eq(tl_json_str(s, "over", ""), "rate"));
    *out = open ? (tl_run_load){.open = true, .requests = requests, .rate = tl_json_num(s, "rate", NAN), .rate_to = tl_json_num(s, "rate_to", 0)}
                : (tl_run_load){.requests = requests * users, .users = users};
    out->search = search;
    out->scheduled = open || tl_json_num(s, "ramp_s", 0) > 0 || tl_json_num(s, "think_s", 0) > 0;
    out->edge_ns = (uint64_t)((tl_json_num(s, "settle_s", 0) + (open ? 0 : tl_json_num(s, "ramp_s", 0))) * 1e9);
    out->ruler_share = tl_json_num(s, "ruler_share", TL_RULER_SHARE);
    if (slo != NULL && tl_slo_parse(&out->slo, slo, e) != TL_OK) return tl_wrap(e, "workload.schedule.slo"), TL_INVALID;
    return search ? check_search(out, workload, e) : TL_OK;
}

static tl_load_process process_of(const json_t *s) {
    const char *name = tl_json_str(s, "arrival", "poisson");
    return tl_str_eq(name, "constant") ? TL_LOAD_CONSTANT : tl_str_eq(name, "gamma") ? TL_LOAD_GAMMA : TL_LOAD_POISSON;
}

static tl_status set_arrivals(tl_run_jobs *j, const json_t *s, const tl_run_load *load, uint64_t seed, tl_err *e) {
    uint64_t *at = tl_xalloc((load->requests + 1) * sizeof *at);
    tl_load_arrival a = {.process = process_of(s), .rate_per_s = load->rate, .rate_to_per_s = load->rate_to,
                         .burstiness = tl_json_num(s, "burstiness", 0), .seed = seed};
    tl_status st = tl_load_arrivals(at, load->requests, &a, e);
    for (size_t i = 0; i < j->n && st == TL_OK; i++) j->v[i].at_ns = at[i];
    free(at);
    return st;
}

static uint64_t seconds_ns(const json_t *s, const char *field) { return (uint64_t)(tl_json_num(s, field, 0) * 1e9); }

static void set_options(tl_load_opts *o, const json_t *s, const tl_run_load *load) {
    o->kind = load->open ? TL_LOAD_OPEN : TL_LOAD_CLOSED;
    o->users = load->users;
    o->ramp_ns = seconds_ns(s, "ramp_s");
    o->drain_ns = seconds_ns(s, "drain_s");
    o->max_in_flight = (size_t)tl_json_int(s, "max_in_flight", 0);
    o->abort_error_share = tl_json_num(s, "abort_error_share", load->search ? 0.5 : 0);
    if (load->search) o->max_failures = SIZE_MAX; /* failures are what it looks for: the share decides */
}

tl_status run_schedule(tl_run_jobs *j, const tl_run_load *load, const json_t *workload, uint64_t seed, tl_err *e) {
    const json_t *s = json_object_get(workload, "schedule");
    set_options(&j->opts, s, load);
    for (size_t i = 0; i < j->n; i++) j->v[i].think_ns = seconds_ns(s, "think_s");
    return load->open ? set_arrivals(j, s, load, seed, e) : TL_OK;
}

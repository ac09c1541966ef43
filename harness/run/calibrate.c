/* The client against the null server: the same tl_load_run as in a run, an answer's events beside the stamps that the
 * server wrote into them. All streams start together and their events fall due together, as the tokens of one step of an
 * engine that batches do; that is the hard case for a client. */
#include "run/run_impl.h"
#include "sample/sample.h"
#include "sim/sim.h"

#include <math.h>

#define ANSWER_S 1.0 /* length of one answer, about: each gives one TTFT */
#define EVENTS_MIN 10
#define FIRST_US 50000 /* the null server's "prompt", so that a first event is no burst with the headers */

/* ---- the clock ---- */

static json_t *clock_facts(void) {
    enum { READS = 20000 };
    tl_ns begin = tl_clock_now(), last = begin, step = UINT64_MAX;
    for (int i = 0; i < READS; i++) {
        tl_ns now = tl_clock_now();
        if (now > last && now - last < step) step = now - last;
        last = now;
    }
    return json_pack("{s:s, s:s?, s:o, s:f}", "name", tl_clock_name(), "counter", tl_clock_counter(), "step_ns",
                     tl_json_real(step == UINT64_MAX ? NAN : (double)step), "read_ns", (double)(last - begin) / READS);
}

/* ---- errors of one load ---- */

typedef struct errors {
    double *ms;
    size_t n, cap;
} errors;

static json_t *errors_json(errors *x) {
    double sum = 0, max = NAN;
    for (size_t i = 0; i < x->n; i++) {
        sum += x->ms[i];
        x->ms[i] = fabs(x->ms[i]);
        max = fmax(max, x->ms[i]);
    }
    json_t *out = json_pack("{s:I, s:o, s:o, s:o, s:o}", "n", (json_int_t)x->n, "bias_ms", tl_json_real(x->n ? sum / (double)x->n : NAN),
                            "p50_ms", tl_json_real(tl_stat_nearest_rank(x->ms, x->n, 0.5)), "p99_ms",
                            tl_json_real(tl_stat_nearest_rank(x->ms, x->n, 0.99)), "max_ms", tl_json_real(max));
    free(x->ms);
    return out;
}

typedef struct sums {
    errors arrival, ttft, gap;
    size_t events, joined, reads;
    size_t steps_40ms, bursts;
    uint64_t server_late_ns;
} sums;

static double ms_between(uint64_t later, uint64_t earlier) { return ((double)later - (double)earlier) / 1e6; }

static tl_status add_answer(sums *s, const tl_request *r, tl_err *e) {
    uint64_t last_seen = 0, last_stamp = 0, late = tl_null_late_max_ns(r->raw_last);
    size_t n = 0;
    uint16_t last_read = 0;
    for (size_t i = 0; i < r->n_events; i++) {
        const tl_event *ev = &r->events[i];
        if (!tl_event_is_text(ev)) continue;
        uint64_t stamp = tl_null_stamp(r->text, r->text_len, n);
        if (stamp == UINT64_MAX || ev->text_bytes != TL_NULL_STAMP_BYTES) {
            tl_fail(e, TL_ENGINE, "event %zu of an answer carries no time stamp: what answers is no null server", n);
            return tl_remedy(e, "leave --endpoint out, or point it at `tally serve-null` or a proxy in front of it");
        }
        double error = ms_between(ev->t_ns, stamp);
        TL_PUSH(s->arrival.ms, s->arrival.n, s->arrival.cap, error);
        if (n == 0) TL_PUSH(s->ttft.ms, s->ttft.n, s->ttft.cap, error + ms_between(r->t_sent, r->t_intended));
        else TL_PUSH(s->gap.ms, s->gap.n, s->gap.cap, ms_between(ev->t_ns, last_seen) - ms_between(stamp, last_stamp));
        s->joined += n > 0 && ev->read_index == last_read;
        last_seen = ev->t_ns;
        last_stamp = stamp;
        last_read = ev->read_index;
        n++;
    }
    s->events += n;
    s->reads += (size_t)r->reads;
    if (late != UINT64_MAX && late > s->server_late_ns) s->server_late_ns = late;
    tl_metrics m;
    tl_metrics_of(&m, r);
    s->steps_40ms += (m.flags & TL_FLAG_STEPS_40MS) != 0;
    s->bursts += (m.flags & TL_FLAG_BURST) != 0;
    tl_metrics_free(&m);
    return TL_OK;
}

/* Most answers that were under way at one moment: from its first byte to its end. */
static size_t at_once(const tl_load_result *r) {
    size_t most = 0;
    for (size_t i = 0; i < r->n; i++) {
        const tl_request *a = &r->items[i].request;
        size_t n = 0;
        for (size_t k = 0; k < r->n; k++) {
            const tl_request *b = &r->items[k].request;
            n += b->t_first_byte <= a->t_first_byte && b->t_close > a->t_first_byte;
        }
        most = n > most ? n : most;
    }
    return most;
}

static tl_status point_json(json_t **out, const tl_load_result *r, const tl_run_ruler_load *load, tl_err *e) {
    sums s = {0};
    tl_status st = TL_OK;
    for (size_t i = 0; i < r->n && st == TL_OK; i++) st = add_answer(&s, &r->items[i].request, e);
    double seconds = (double)(r->t_end - r->t_begin) / 1e9, events = (double)s.events, answers = (double)r->n;
    json_t *p = json_pack("{s:I, s:f, s:I, s:I, s:f, s:f, s:f, s:f}", "streams", (json_int_t)load->streams, "rate", load->rate_per_s,
                          "answers", (json_int_t)r->n, "events", (json_int_t)s.events, "seconds", seconds, "events_per_s",
                          events / seconds, "cpu_per_event_us", r->client_cpu_s / events * 1e6, "cpu_share", r->client_cpu_s / seconds);
    json_t *more = json_pack("{s:o, s:o, s:o, s:f, s:I, s:f, s:f, s:f, s:f}", "arrival", errors_json(&s.arrival), "ttft",
                             errors_json(&s.ttft), "gap", errors_json(&s.gap), "server_late_max_ms", (double)s.server_late_ns / 1e6,
                             "at_once", (json_int_t)at_once(r), "joined_share", (double)s.joined / events, "steps_40ms_share",
                             (double)s.steps_40ms / answers, "burst_share", (double)s.bursts / answers, "reads_per_event",
                             (double)s.reads / events);
    if (p != NULL && more != NULL) json_object_update(p, more);
    json_decref(more);
    if (st == TL_OK) *out = p;
    else json_decref(p);
    return st;
}

/* ---- one load ---- */

static tl_status null_header(char **out, const tl_run_calibrate_spec *spec, const tl_run_ruler_load *load, uint64_t *events, tl_err *e) {
    tl_null_schedule s = tl_null_default();
    s.first_us = FIRST_US;
    s.gap_us = (uint64_t)(1e6 / load->rate_per_s);
    double fill = fmin(spec->seconds, ANSWER_S) * load->rate_per_s;
    s.events = fill < EVENTS_MIN ? EVENTS_MIN : (uint64_t)fill;
    if (spec->null_words != NULL) {
        tl_status st = tl_null_parse(&s, spec->null_words, e);
        if (st != TL_OK) return st;
    }
    *events = s.events;
    tl_buf b;
    tl_buf_init(&b, 0);
    tl_buf_str(&b, "X-Tally-Null: ");
    tl_null_header(&b, &s);
    *out = tl_buf_take(&b);
    return TL_OK;
}

static tl_status complete(const tl_load_result *r, const char *url, tl_err *e) {
    if (r->end == TL_LOAD_CANCELLED) return tl_fail(e, TL_CANCELLED, "stopped by a signal");
    if (r->end != TL_LOAD_ALL) return tl_fail(e, TL_ENGINE, "%s: %s", url, r->reason);
    for (size_t i = 0; i < r->n; i++) {
        const tl_request *q = &r->items[i].request;
        if (q->transport != TL_TP_COMPLETE || q->http_status != 200)
            return tl_fail(e, TL_ENGINE, "%s: answer %zu of %zu is %s (HTTP %d) %.200s", url, i + 1, r->n, tl_transport_name(q->transport),
                           q->http_status, q->error_text ? q->error_text : "");
    }
    return TL_OK;
}

static tl_status one_load(json_t **out, const char *url, const tl_run_calibrate_spec *spec, const tl_run_ruler_load *load, tl_err *e) {
    char *header = NULL;
    uint64_t events;
    tl_load_result r = {0};
    tl_status st = null_header(&header, spec, load, &events, e);
    if (st != TL_OK) return st;
    double answer_s = FIRST_US / 1e6 + (double)events / load->rate_per_s;
    size_t n = load->streams * (size_t)fmax(1, ceil(spec->seconds / answer_s));
    const tl_load_job job = {.dialect = tl_dialect_find("openai-chat"), .body = "{}", .body_len = 2, .max_tokens = (int64_t)events, .prompt_n = -1};
    tl_load_job *jobs = tl_xalloc(n * sizeof *jobs);
    for (size_t i = 0; i < n; i++) jobs[i] = job;
    const char *const headers[] = {header, NULL};
    const tl_load_opts o = {.url = url, .users = load->streams, .headers = headers, .cancelled = spec->cancelled, .ctx = spec->ctx};
    st = tl_load_run(&r, jobs, n, &o, e);
    if (st == TL_OK) st = complete(&r, url, e);
    if (st == TL_OK) st = point_json(out, &r, load, e);
    tl_load_result_free(&r);
    free(jobs);
    free(header);
    return st;
}

static tl_status check(const tl_run_calibrate_spec *spec, tl_err *e) {
    bool ok = spec->n_loads > 0 && spec->seconds > 0 && spec->seconds <= 3600;
    for (size_t i = 0; i < spec->n_loads; i++)
        ok = ok && spec->loads[i].streams >= 1 && spec->loads[i].streams <= 10000 && spec->loads[i].rate_per_s >= 0.1 && spec->loads[i].rate_per_s <= 100000;
    if (ok) return TL_OK;
    tl_fail(e, TL_INVALID, "a calibration needs loads of 1 to 10000 streams at 0.1 to 100000 events/s, for up to 3600 s");
    return tl_remedy(e, "give --streams, --rate and --seconds within these bounds");
}

tl_status tl_run_calibrate(json_t **out, const tl_run_calibrate_spec *spec, tl_err *e) {
    tl_null *server = NULL;
    tl_progress p;
    json_t *points = NULL, *made = NULL;
    tl_status st = check(spec, e);
    *out = NULL;
    if (st == TL_OK && spec->endpoint == NULL) st = tl_null_start(&server, spec->program, e);
    if (st != TL_OK) return st;
    const char *url = server ? tl_null_url(server) : spec->endpoint;
    points = json_array();
    made = json_pack("{s:o, s:O, s:s?}", "clock", clock_facts(), "points", points, "null_words", spec->null_words);
    tl_progress_start(&p, "calibrate", (double)spec->n_loads, (double)tl_clock_now() / 1e9);
    for (size_t i = 0; i < spec->n_loads && st == TL_OK; i++) {
        const tl_run_ruler_load *load = &spec->loads[i];
        json_t *point = NULL;
        char what[64];
        snprintf(what, sizeof what, "%zu x %g/s", load->streams, load->rate_per_s);
        tl_progress_set(&p, (double)i, what, (double)tl_clock_now() / 1e9);
        st = one_load(&point, url, spec, load, e);
        if (st == TL_OK) json_array_append_new(points, point);
        else if (st != TL_CANCELLED) tl_wrap(e, "calibrating at %s", what);
    }
    tl_progress_end(&p);
    tl_null_stop(server);
    if (st == TL_OK) json_object_set_new(made, "findings", tl_run_calibrate_findings(made));
    if (st == TL_OK) *out = json_incref(made);
    json_decref(points);
    json_decref(made);
    return st;
}

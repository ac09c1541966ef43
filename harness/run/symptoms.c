/* What a calibration's numbers give away about the way between client and server, and about the clock. A table: where the
 * number stands, from where on it is a symptom, and what it means. Pure: JSON in, JSON out.
 *
 * Delayed acknowledgement: RFC 1122 4.2.3.2 and Linux's TCP_DELACK_MIN of 40 ms, held against Nagle (RFC 896), make gaps
 * of 40 ms out of smaller ones. */
#include "run/run.h"

#include <math.h>

static const struct symptom {
    const char *name, *path;
    double above, times; /* shown: number * times */
    const char *before, *after;
} symptoms[] = {
    {"40ms-steps", "steps_40ms_share", 0.1, 100, "",
     " % of the answers came in steps of 40 ms that nobody asked for: Nagle's algorithm waits for a delayed acknowledgement; set TCP_NODELAY "
     "in the server or proxy"},
    {"split-events", "reads_per_event", 1.5, 1, "an event took ",
     " reads on average: the server or a proxy writes it in pieces, and Nagle's algorithm may hold the last piece back; set TCP_NODELAY there "
     "and write an event at once"},
    {"coalesced-reads", "joined_share", 0.05, 100, "",
     " % of the events arrived together with the one before, so that gaps between them say nothing of the server: the client was too late, or "
     "something on the way joins writes"},
    {"fake-streaming", "burst_share", 0.1, 100, "",
     " % of the answers came all at once at their end: a proxy or the server buffers; switch that off (nginx: proxy_buffering off)"},
    {"client-busy", "cpu_share", TL_RULER_CPU_SHARE, 100, "the client itself was busy for ",
     " % of a core, so that what arrives has to wait for it: this load is beyond the ruler"},
};

static void add(json_t *out, const char *name, const char *load, const char *text) {
    json_array_append_new(out, json_pack("{s:s, s:s?, s:s}", "name", name, "load", load, "text", text));
}

static void look_at_point(json_t *out, const json_t *p) {
    char load[64], text[400];
    double users = tl_json_num(p, "streams", NAN), running = tl_json_num(p, "at_once", NAN);
    snprintf(load, sizeof load, "%g x %g/s", users, tl_json_num(p, "rate", NAN));
    for (size_t i = 0; i < TL_COUNT(symptoms); i++) {
        const struct symptom *s = &symptoms[i];
        double v = tl_json_num(p, s->path, NAN);
        if (!(v > s->above)) continue;
        snprintf(text, sizeof text, "%s%.3g%s", s->before, v * s->times, s->after);
        add(out, s->name, load, text);
    }
    if (running < users) {
        snprintf(text, sizeof text, "at most %g of %g answers ran at once: something on the way (a pool of connections, a proxy, the server) lets "
                                    "the others wait, and their TTFT contains that; raise its limit", running, users);
        add(out, "pool-cap", load, text);
    }
}

/* Counters that user space reads without a system call, at full resolution (Linux: drivers/clocksource, arch vdso). */
static const char *const good_counters[] = {"tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter", "riscv_clocksource", "timebase"};

static void look_at_clock(json_t *out, const json_t *clock) {
    const char *name = tl_json_str(clock, "name", ""), *counter = tl_json_str(clock, "counter", NULL);
    double step = tl_json_num(clock, "step_ns", NAN), cost = tl_json_num(clock, "read_ns", NAN);
    bool known = counter == NULL, monotonic = strstr(name, "MONOTONIC") != NULL && strstr(name, "COARSE") == NULL;
    char text[400];
    for (size_t i = 0; !known && i < TL_COUNT(good_counters); i++) known = tl_str_eq(counter, good_counters[i]);
    if (!monotonic && strstr(name, "UPTIME_RAW") == NULL) {
        snprintf(text, sizeof text, "times come from '%s', which is no monotonic clock of full resolution", name);
        add(out, "clock-source", NULL, text);
    }
    if (!known) {
        snprintf(text, sizeof text, "the kernel makes its time from '%s': slow to read or coarse; choose another clocksource (tsc) and see why the "
                                    "kernel left it (dmesg)", counter);
        add(out, "clock-source", NULL, text);
    }
    if (step > 1000 || cost > 1000) {
        snprintf(text, sizeof text, "the clock moves in steps of %.4g ns and takes %.4g ns to read: no error below that can be seen", step, cost);
        add(out, "clock-coarse", NULL, text);
    }
}

json_t *tl_run_calibrate_findings(const json_t *calibration) {
    json_t *out = json_array(), *p;
    size_t i;
    json_array_foreach(json_object_get(calibration, "points"), i, p) look_at_point(out, p);
    look_at_clock(out, json_object_get(calibration, "clock"));
    return out;
}

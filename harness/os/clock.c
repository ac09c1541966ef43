/* Clock, wall time, sleep. One CLOCK_MONOTONIC for all: it is what poll, libevent and libcurl count by, every
 * process of the machine reads the same, and NTP only slews it (at most 0.05 %), never steps it. */
#include <errno.h>

#include "os/os_impl.h"

tl_ns os_now(void) {
    struct timespec t;
    clock_gettime(os_clock_id(NULL), &t);
    return (tl_ns)t.tv_sec * TL_S + (tl_ns)t.tv_nsec;
}

tl_ns (*tl_clock_now)(void) = os_now;

const char *tl_clock_name(void) {
    static _Thread_local char text[64];
    if (tl_clock_now != os_now) return "replaced clock";
    const char *name;
    struct timespec r = {0};
    clock_getres(os_clock_id(&name), &r);
    snprintf(text, sizeof text, "%s, %ld ns", name, r.tv_nsec);
    return text;
}

const char *tl_clock_counter(void) {
    static _Thread_local char text[64];
    return os_clock_counter(text, sizeof text) ? text : NULL;
}

int64_t tl_clock_wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * (int64_t)TL_S + t.tv_nsec;
}

static time_t seconds_of(int64_t wall_ns, long *rest_ns) {
    int64_t s = wall_ns / (int64_t)TL_S, r = wall_ns % (int64_t)TL_S;
    if (r < 0) {
        r += (int64_t)TL_S;
        s--;
    }
    *rest_ns = (long)r;
    return (time_t)s;
}

void tl_clock_utc_offset(char out[8], int64_t wall_ns) {
    long rest;
    time_t s = seconds_of(wall_ns, &rest);
    struct tm local;
    localtime_r(&s, &local);
    long minutes = local.tm_gmtoff / 60;
    long size = labs(minutes) % (24 * 60);
    snprintf(out, 8, "%c%02ld:%02ld", minutes < 0 ? '-' : '+', size / 60, size % 60);
}

void tl_clock_iso8601(char out[32], int64_t wall_ns) {
    long rest;
    time_t s = seconds_of(wall_ns, &rest);
    struct tm utc;
    gmtime_r(&s, &utc);
    size_t n =
        strftime(out, 21, "%Y-%m-%dT%H:%M:%S", &utc); /* int64 ns end in the year 2262: always four digits */
    snprintf(out + n, 32 - n, ".%09uZ", (unsigned)rest);
}

void tl_sleep_ns(tl_ns ns) {
    tl_ns end = os_now() + ns;
    for (tl_ns now = os_now(); now < end; now = os_now()) {
        struct timespec t = {.tv_sec = (time_t)((end - now) / TL_S), .tv_nsec = (long)((end - now) % TL_S)};
        nanosleep(&t, NULL);
    }
}

/* One event loop: libevent watches the sockets and the timer that libcurl asks for (its multi-socket interface, see
 * https://curl.se/libcurl/c/libcurl-multi.html), and wakes libcurl only for the socket that has something. Ended
 * requests are queued; their on_done runs between two rounds of events, never inside one. */
#include "http/http_impl.h"

enum { TICK_NS = 20000000 };

/* ---- lists ------------------------------------------------------------------------------------------------------ */

void tl_http_list_add(tl_http_link *list, tl_http_req *r) {
    tl_http_link *l = &r->link;
    l->prev = list->prev;
    l->next = list;
    list->prev->next = l;
    list->prev = l;
    r->linked = true;
}

void tl_http_list_drop(tl_http_req *r) {
    r->link.prev->next = r->link.next;
    r->link.next->prev = r->link.prev;
    r->link.prev = r->link.next = NULL;
    r->linked = false;
}

static bool list_empty(const tl_http_link *list) {
    return list->next == list;
}

static tl_http_req *list_first(tl_http_link *list) {
    return list_empty(list) ? NULL : (tl_http_req *)list->next; /* link is the first member */
}

/* ---- libcurl and libevent, wired together ------------------------------------------------------------------------ */

static struct timeval timeval_of(uint64_t ns) {
    const uint64_t us = (ns + 999) / 1000;
    return (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
}

/* Takes the requests that libcurl has finished. */
static void take_finished(tl_http_loop *loop) {
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(loop->multi, &left)) != NULL) {
        if (m->msg != CURLMSG_DONE) continue;
        char *r = NULL;
        const CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
        if (r != NULL) tl_http_end_curl((tl_http_req *)(void *)r, code);
    }
}

void tl_http_loop_step(tl_http_loop *loop, curl_socket_t fd, int bits) {
    int running;
    loop->wake++;
    curl_multi_socket_action(loop->multi, fd, bits, &running);
    take_finished(loop);
}

static void on_socket_event(evutil_socket_t fd, short what, void *ctx) {
    const int bits = ((what & EV_READ) ? CURL_CSELECT_IN : 0) | ((what & EV_WRITE) ? CURL_CSELECT_OUT : 0);
    tl_http_loop_step(ctx, fd, bits);
}

/* libcurl wants a socket watched differently. The event belongs to the socket. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned) {
    tl_http_loop *loop = ctx;
    struct event *ev = assigned;
    TL_UNUSED(easy);
    if (ev != NULL) event_free(ev);
    ev = NULL;
    if (what != CURL_POLL_REMOVE) {
        const short bits = (short)(((what & CURL_POLL_IN) ? EV_READ : 0) | ((what & CURL_POLL_OUT) ? EV_WRITE : 0));
        ev = event_new(loop->base, fd, (short)(bits | EV_PERSIST), on_socket_event, loop);
        if (ev == NULL || event_add(ev, NULL) != 0) return -1;
    }
    curl_multi_assign(loop->multi, fd, ev);
    return 0;
}

static void on_curl_timer_event(evutil_socket_t fd, short what, void *ctx) {
    TL_UNUSED(fd);
    TL_UNUSED(what);
    tl_http_loop_step(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *ctx) {
    tl_http_loop *loop = ctx;
    TL_UNUSED(multi);
    if (timeout_ms < 0) {
        evtimer_del(loop->multi_timer);
        return 0;
    }
    const struct timeval t = timeval_of((uint64_t)timeout_ms * TL_MS);
    return evtimer_add(loop->multi_timer, &t);
}

/* ---- limits -------------------------------------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    tl_http_loop *loop = ctx;
    TL_UNUSED(fd);
    TL_UNUSED(what);
    const uint64_t now = tl_clock_now();
    tl_http_link *next;
    for (tl_http_link *l = loop->active.next; l != &loop->active; l = next) {
        tl_http_req *r = (tl_http_req *)l;
        tl_http_outcome outcome;
        const char *why = NULL;
        next = l->next;
        if (!tl_http_over_limit(r, now, &outcome, &why)) continue;
        if (r->state != REQ_NEW) {
            tl_http_end(r, outcome, why);
            continue;
        }
        tl_http_close_socket(r);
        r->open_failed = outcome;
        snprintf(r->log.error, sizeof r->log.error, "%s", why);
        tl_http_list_drop(r);
    }
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx) {
    TL_UNUSED(fd);
    TL_UNUSED(what);
    TL_UNUSED(ctx); /* only there to end the wait */
}

/* ---- timers of the schedule ---------------------------------------------------------------------------------------- */

static void drop_timer(tl_http_timer *t) {
    tl_http_timer **at = &t->loop->timers;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    event_free(t->event);
    free(t);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    tl_http_timer *t = ctx;
    TL_UNUSED(fd);
    TL_UNUSED(what);
    const uint64_t now = tl_clock_now();
    if (now < t->when_ns) { /* libevent counts from its cached time: never early */
        const struct timeval rest = timeval_of(t->when_ns - now);
        evtimer_add(t->event, &rest);
        return;
    }
    void (*fn)(void *) = t->fn;
    void *fn_ctx = t->ctx;
    drop_timer(t);
    fn(fn_ctx);
}

void tl_http_loop_at(tl_http_loop *loop, uint64_t when_ns, void (*fn)(void *ctx), void *ctx) {
    tl_http_timer *t = tl_xalloc(sizeof *t);
    *t = (tl_http_timer){.next = loop->timers, .loop = loop, .when_ns = when_ns, .fn = fn, .ctx = ctx};
    loop->timers = t;
    const uint64_t now = tl_clock_now();
    const struct timeval wait = timeval_of(when_ns > now ? when_ns - now : 0);
    t->event = evtimer_new(loop->base, on_timer, t);
    evtimer_add(t->event, &wait);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------- */

static void list_init(tl_http_link *l) {
    l->prev = l->next = l;
}

tl_status tl_http_loop_new(tl_http_loop **out, tl_err *e) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) /* counted by libcurl; undone in free */
        return tl_fail(e, TL_INTERNAL, "libcurl does not start");
    tl_http_loop *loop = tl_xalloc(sizeof *loop);
    list_init(&loop->active);
    list_init(&loop->done);
    struct event_config *config = event_config_new();
    if (config != NULL) {
        event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        loop->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    loop->multi = curl_multi_init();
    if (loop->base == NULL || loop->multi == NULL) {
        tl_http_loop_free(loop);
        return tl_fail(e, TL_INTERNAL, "no event loop (out of file descriptors?)");
    }
    loop->multi_timer = evtimer_new(loop->base, on_curl_timer_event, loop);
    loop->tick = event_new(loop->base, -1, EV_PERSIST, on_tick, loop);
    loop->deadline = evtimer_new(loop->base, on_deadline, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    *out = loop;
    return TL_OK;
}

void tl_http_loop_free(tl_http_loop *loop) {
    if (loop == NULL) return;
    while (loop->timers != NULL) drop_timer(loop->timers);
    if (loop->multi != NULL) curl_multi_cleanup(loop->multi);
    if (loop->multi_timer != NULL) event_free(loop->multi_timer);
    if (loop->tick != NULL) event_free(loop->tick);
    if (loop->deadline != NULL) event_free(loop->deadline);
    if (loop->base != NULL) event_base_free(loop->base);
    free(loop);
    curl_global_cleanup();
}

size_t tl_http_loop_running(const tl_http_loop *loop) {
    return loop->n_running;
}

/* Calls what is due; the called may free the request and start others. */
static void call_done(tl_http_loop *loop) {
    tl_http_req *r;
    while ((r = list_first(&loop->done)) != NULL) {
        tl_http_list_drop(r);
        if (r->on_done != NULL) r->on_done(r, r->ctx);
    }
}

static tl_status cancel_all(tl_http_loop *loop, tl_err *e) {
    tl_http_req *r;
    loop->cancelling = true;
    while (loop->timers != NULL) drop_timer(loop->timers); /* NOLINT: each has left the list before it is freed */
    while ((r = list_first(&loop->active)) != NULL) {
        if (r->state == REQ_NEW) { /* opened only */
            tl_http_close_socket(r);
            tl_http_list_drop(r);
        } else {
            tl_http_end(r, TL_HTTP_ABANDONED, "cancelled");
        }
    }
    call_done(loop);
    loop->cancelling = false;
    return tl_fail(e, TL_CANCELLED, "cancelled");
}

static tl_status rounds(tl_http_loop *loop, const tl_http_until *until, tl_err *e) {
    for (;;) {
        call_done(loop);
        if (until->cancelled != NULL && until->cancelled(until->ctx)) return cancel_all(loop, e);
        if (list_empty(&loop->active) && list_empty(&loop->done) && loop->timers == NULL) return TL_OK;
        const uint64_t now = tl_clock_now();
        if (until->deadline_ns != 0 && now >= until->deadline_ns)
            return tl_fail(e, TL_TIMEOUT, "%zu requests still running at the deadline", loop->n_running);
        if (until->deadline_ns != 0) {
            const struct timeval rest = timeval_of(until->deadline_ns - now);
            evtimer_add(loop->deadline, &rest);
        }
        if (event_base_loop(loop->base, EVLOOP_ONCE) < 0)
            return tl_fail(e, TL_INTERNAL, "the event loop failed");
    }
}

tl_status tl_http_loop_run(tl_http_loop *loop, const tl_http_until *until, tl_err *e) {
    static const tl_http_until for_ever = {0};
    const struct timeval tick = timeval_of(TICK_NS);
    event_add(loop->tick, &tick);
    const tl_status st = rounds(loop, until ? until : &for_ever, e);
    event_del(loop->tick);
    evtimer_del(loop->deadline);
    return st;
}

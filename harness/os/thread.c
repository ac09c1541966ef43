/* Threads, and a lock with one condition. New threads have all signals blocked, so that the handlers of
 * signal.c run on the main thread only and no timed system call of a worker is cut short. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "os/os_impl.h"

struct tl_thread {
    pthread_t id;
};

struct tl_mutex {
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

void os_block_signals(void *old_mask) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, old_mask);
}

void os_restore_signals(const void *old_mask) {
    pthread_sigmask(SIG_SETMASK, old_mask, NULL);
}

tl_status tl_thread_start(tl_thread **out, void *(*fn)(void *), void *arg, tl_err *e) {
    tl_thread *t = tl_xalloc(sizeof *t);
    sigset_t old;
    os_block_signals(&old);
    int rc = pthread_create(&t->id, NULL, fn, arg);
    os_restore_signals(&old);
    if (rc != 0) {
        free(t);
        *out = NULL;
        tl_fail(e, TL_IO, "cannot start a thread: %s", strerror(rc));
        tl_remedy(e, "raise the limit of processes (ulimit -u), or end other programs");
        return TL_IO;
    }
    *out = t;
    return TL_OK;
}

void *tl_thread_join(tl_thread *t) {
    if (!t) return NULL;
    void *result = NULL;
    pthread_join(t->id, &result);
    free(t);
    return result;
}

tl_status tl_thread_pin(const unsigned *cpus, size_t n, tl_err *e) {
    if (n == 0) return tl_fail(e, TL_INVALID, "no processor given to bind a thread to");
    return os_pin(cpus, n, e);
}

tl_mutex *tl_mutex_new(void) {
    tl_mutex *m = tl_xalloc(sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wake, NULL);
    return m;
}

void tl_mutex_free(tl_mutex *m) {
    if (!m) return;
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void tl_mutex_lock(tl_mutex *m) {
    pthread_mutex_lock(&m->lock);
}

void tl_mutex_unlock(tl_mutex *m) {
    pthread_mutex_unlock(&m->lock);
}

void tl_mutex_wait(tl_mutex *m) {
    pthread_cond_wait(&m->wake, &m->lock);
}

/* Condition variables of macOS know the wall clock only. A step of it can make one wait too short or too
 * long, so the wait is cut into slices and the monotonic clock decides. */
bool tl_mutex_wait_for(tl_mutex *m, tl_ns duration) {
    tl_ns end = os_now() + duration;
    for (tl_ns now = os_now(); now < end; now = os_now()) {
        tl_ns slice = end - now < TL_S ? end - now : TL_S;
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        tl_ns at = (tl_ns)t.tv_nsec + slice;
        t.tv_sec += (time_t)(at / TL_S);
        t.tv_nsec = (long)(at % TL_S);
        if (pthread_cond_timedwait(&m->wake, &m->lock, &t) != ETIMEDOUT) return true;
    }
    return false;
}

void tl_mutex_wake_all(tl_mutex *m) {
    pthread_cond_broadcast(&m->wake);
}

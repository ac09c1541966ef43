/* os: threads, locks and the bandwidth ruler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/os_impl.h"

typedef struct shared {
    tl_mutex *lock;
    unsigned n, go;
} shared;

static void *count_up(void *arg) {
    shared *s = arg;
    tl_mutex_lock(s->lock);
    while (!s->go) tl_mutex_wait(s->lock);
    tl_mutex_unlock(s->lock);
    for (int i = 0; i < 1000; i++) {
        tl_mutex_lock(s->lock);
        s->n++;
        tl_mutex_unlock(s->lock);
    }
    return s;
}

static void threads_meet_at_a_lock(void **state) {
    TL_UNUSED(state);
    shared s = {.lock = tl_mutex_new()};
    tl_thread *t[4];
    for (size_t i = 0; i < 4; i++) assert_int_equal(tl_thread_start(&t[i], count_up, &s, NULL), TL_OK);
    tl_mutex_lock(s.lock);
    s.go = 1;
    tl_mutex_wake_all(s.lock);
    tl_mutex_unlock(s.lock);
    for (size_t i = 0; i < 4; i++) assert_ptr_equal(tl_thread_join(t[i]), &s);
    assert_int_equal(s.n, 4000);
    assert_null(tl_thread_join(NULL));
    tl_mutex_lock(s.lock);
    tl_ns start = os_now();
    while (tl_mutex_wait_for(s.lock, 20 * TL_MS)) {
    } /* nobody wakes it; a wake for nothing is allowed */
    assert_true(os_now() - start >= 20 * TL_MS);
    tl_mutex_unlock(s.lock);
    tl_mutex_free(s.lock);
}

static void *pin_to_first(void *arg) {
    const unsigned *cpu = arg;
    return tl_thread_pin(cpu, 1, NULL) == TL_OK ? arg : NULL;
}

static void a_thread_can_be_bound(void **state) {
    TL_UNUSED(state);
    unsigned first = 0, none = 100000;
    tl_err e = {0};
    assert_int_equal(tl_thread_pin(&none, 1, &e), TL_INVALID);
    assert_int_equal(tl_thread_pin(&none, 0, &e), TL_INVALID);
    unsigned before = tl_cpu_count();
    assert_true(before >= 1);
    tl_thread *t;
    assert_int_equal(tl_thread_start(&t, pin_to_first, &first, NULL), TL_OK);
    void *done = tl_thread_join(t);
    if (!done) skip(); /* processor 0 is not ours in this container */
    assert_int_equal(tl_cpu_count(), before);
}

static void bandwidth_is_read_and_proven(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_membw *m;
    assert_int_equal(tl_membw_new(&m, 0, 0, &e), TL_INVALID);
    size_t bytes = (size_t)os_cache_total() * 2;
    if (bytes == 0) bytes = (size_t)64 << 20;
    assert_int_equal(tl_membw_new(&m, 3, bytes, &e), TL_OK);
    assert_true(tl_membw_array_bytes(m) >= bytes);
    for (unsigned threads = 1; threads <= 3; threads++) {
        tl_membw_result r;
        assert_int_equal(tl_membw_read(&r, m, threads, 20 * TL_MS, &e), TL_OK);
        assert_int_equal(r.threads, threads);
        assert_true(r.n >= 1 && r.n <= TL_MEMBW_PASSES);
        uint64_t sum = 0;
        for (size_t i = 0; i < r.n; i++) {
            assert_true(r.pass[i].bytes > 0 && r.pass[i].bytes % tl_membw_array_bytes(m) == 0);
            assert_true(r.pass[i].ns > 0);
            sum += r.pass[i].bytes;
        }
        assert_int_equal(sum, r.bytes);
        assert_true(r.bytes_per_s > 1e7 && r.bytes_per_s < 1e13);
        assert_true(r.best_bytes_per_s >= r.bytes_per_s * 0.999);
        print_message("%u threads, %s: %.2f GB/s\n", threads, tl_membw_kernel(m), r.bytes_per_s / 1e9);
    }
    tl_membw_result r;
    assert_int_equal(tl_membw_read(&r, m, 4, TL_MS, &e), TL_INVALID);
    assert_int_equal(tl_membw_read(&r, m, 0, TL_MS, &e), TL_INVALID);
    assert_int_equal(tl_membw_read(&r, m, 2, 0, &e), TL_OK);
    assert_int_equal(r.n, 1); /* one pass even when there is no time */
    os_membw_assume_nodes(m);
    for (unsigned threads = 1; threads <= 3; threads++)
        assert_int_equal(tl_membw_read(&r, m, threads, TL_MS, &e),
                         TL_OK); /* touched anew, the sum still right */
    tl_membw_free(m);
}

static void an_array_that_cannot_be_is_refused(void **state) {
    TL_UNUSED(state);
    tl_err e = {0};
    tl_membw *m;
    assert_int_equal(tl_membw_new(&m, 1, SIZE_MAX / 4, &e), TL_MISSING);
    assert_null(m);
    assert_true(strlen(e.remedy) > 0);
    if (tl_host_cache_bytes() > (4u << 20)) assert_int_equal(tl_membw_new(&m, 1, 1 << 20, &e), TL_MISSING);
    tl_membw_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_meet_at_a_lock),
        cmocka_unit_test(a_thread_can_be_bound),
        cmocka_unit_test(bandwidth_is_read_and_proven),
        cmocka_unit_test(an_array_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("os_thread", tests, NULL, NULL);
}

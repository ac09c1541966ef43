/* The memory-bandwidth ruler: sums an array that no cache can hold.
 *
 * The array is cut into one slab a thread, touched first by the thread that reads it (on machines of several
 * nodes memory lands at the node that touches it first). A thread takes chunks of its own slab, then helps
 * the others, then goes on to the next pass without waiting: a thread that the system puts aside for some
 * milliseconds must not turn the figure into a measure of scheduling. Integer sums in wide registers with
 * eight accumulators cost less than the loads they wait for.
 *
 * Between probes threads wait on a condition. Only for the common start do they spin a moment, and then
 * yield. */
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "os/os_impl.h"

#define CHUNK ((size_t)2 << 20)
#define ARRAY_MIN ((size_t)256 << 20)
enum { SPINS = 2000, THREADS_LIMIT = 4096, BEST_OF = 3 };
#define STOP (1u << 31)

typedef uint64_t sum_fn(const void *p, size_t n);

/* ---- the reading code ---- */

typedef uint64_t v8 __attribute__((vector_size(64), aligned(64)));

/* Four streams a quarter apart: more of the processor's prefetchers work at once. */
#define SUM_BODY                                                                                             \
    const v8 *a = p, *b = a + n / 256, *c = b + n / 256, *d = c + n / 256;                                   \
    v8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};                       \
    for (size_t i = 0; i + 1 < n / 256; i += 2) {                                                            \
        s0 += a[i];                                                                                          \
        s1 += b[i];                                                                                          \
        s2 += c[i];                                                                                          \
        s3 += d[i];                                                                                          \
        t0 += a[i + 1];                                                                                      \
        t1 += b[i + 1];                                                                                      \
        t2 += c[i + 1];                                                                                      \
        t3 += d[i + 1];                                                                                      \
    }                                                                                                        \
    v8 s = s0 + s1 + s2 + s3 + t0 + t1 + t2 + t3;                                                            \
    return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];

/* Sanitizers would check each load and make the sum the bottleneck. */
#define PLAIN __attribute__((no_sanitize("address", "undefined", "thread")))

PLAIN static uint64_t sum_generic(const void *p, size_t n){SUM_BODY}

#if defined(__x86_64__)
PLAIN __attribute__((target("avx2"))) static uint64_t sum_avx2(const void *p, size_t n){SUM_BODY}

PLAIN __attribute__((target("avx512f"))) static uint64_t sum_avx512(const void *p, size_t n) {
    SUM_BODY
}

static sum_fn *best_sum(const char **name) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        *name = "avx512";
        return sum_avx512;
    }
    if (__builtin_cpu_supports("avx2")) {
        *name = "avx2";
        return sum_avx2;
    }
    *name = "generic";
    return sum_generic;
}
#else
static sum_fn *best_sum(const char **name) {
    *name = "generic";
    return sum_generic;
}
#endif

/* ---- state ---- */

typedef struct worker {
    _Alignas(128) tl_membw *owner;
    unsigned index;
    tl_thread *thread;
    uint64_t sum;
} worker;

typedef struct slab {
    _Alignas(128) _Atomic size_t next; /* chunks taken in this probe, all passes */
    size_t first, count;               /* in chunks of the array */
} slab;

struct tl_membw {
    char *array;
    size_t bytes, mapped;
    unsigned threads_max, touched_by;
    bool nodes; /* more than one: memory must be touched anew when the number of threads changes */
    sum_fn *sum;
    const char *kernel;
    worker *workers;
    slab *slabs;

    tl_mutex *lock;
    uint64_t job;     /* number of the current probe; guarded by lock, as the next four */
    unsigned active;  /* threads that take part in it */
    unsigned running; /* of them, those that have not finished */
    bool touch, quit;
    tl_ns duration;

    _Alignas(128) _Atomic unsigned arrived;
    _Atomic bool started;
    tl_ns start;                          /* written before `started` */
    _Atomic unsigned entered;             /* the newest pass, and STOP when there will be no other */
    _Atomic size_t done[TL_MEMBW_PASSES]; /* chunks of each pass that are read */
    tl_ns end[TL_MEMBW_PASSES];           /* written by who reads the last one */
};

/* All are awake before the clock starts: waking up is not measured. */
static void start_together(tl_membw *m) {
    if (atomic_fetch_add(&m->arrived, 1) + 1 == m->active) {
        m->start = os_now();
        atomic_store(&m->started, true);
        return;
    }
    for (unsigned spins = 0; !atomic_load(&m->started); spins++)
        if (spins > SPINS) sched_yield();
}

static void lay_out_slabs(tl_membw *m, unsigned threads) {
    size_t chunks = m->bytes / CHUNK, first = 0;
    for (unsigned i = 0; i < threads; i++) {
        m->slabs[i].first = first;
        m->slabs[i].count = chunks / threads + (i < chunks % threads);
        first += m->slabs[i].count;
    }
}

static void touch_own(tl_membw *m, unsigned index) {
    slab *s = &m->slabs[index];
    memset(m->array + s->first * CHUNK, 1, s->count * CHUNK);
}

/* May a thread begin this pass? The first that asks decides for all, by the clock. */
static bool enter(tl_membw *m, unsigned pass) {
    unsigned seen = atomic_load(&m->entered);
    while (pass > (seen & ~STOP)) {
        if (seen & STOP) return false;
        bool over = pass == TL_MEMBW_PASSES || os_now() - m->start >= m->duration;
        atomic_compare_exchange_strong(&m->entered, &seen, over ? seen | STOP : pass);
        seen = atomic_load(&m->entered);
    }
    return true;
}

/* Takes one chunk of this pass; false when all of the slab's are taken. */
static bool take_chunk(size_t *out, slab *s, unsigned pass) {
    size_t next = atomic_load(&s->next), end = (pass + 1) * s->count;
    while (next < end) {
        if (!atomic_compare_exchange_weak(&s->next, &next, next + 1)) continue;
        *out = s->first + next - pass * s->count;
        return true;
    }
    return false;
}

static uint64_t read_pass(tl_membw *m, unsigned index, unsigned pass) {
    uint64_t sum = 0;
    for (unsigned k = 0; k < m->active; k++) {
        slab *s = &m->slabs[(index + k) % m->active];
        for (size_t chunk; take_chunk(&chunk, s, pass);) {
            sum += m->sum(m->array + chunk * CHUNK, CHUNK);
            if (atomic_fetch_add(&m->done[pass], 1) + 1 == m->bytes / CHUNK) m->end[pass] = os_now();
        }
    }
    return sum;
}

static void take_part(tl_membw *m, worker *w) {
    start_together(m);
    for (unsigned pass = 0; enter(m, pass); pass++) w->sum += read_pass(m, w->index, pass);
}

/* Passes overlap by the chunk that each thread is at, so only their ends are compared; two that ended
 * together (a thread was put aside over a whole pass) count as one. */
static void collect(tl_membw_result *r, const tl_membw *m) {
    unsigned passes = (atomic_load(&m->entered) & ~STOP) + 1;
    tl_ns before = m->start;
    for (unsigned i = 0; i < passes; i++) {
        bool later = m->end[i] > before;
        if (later || r->n == 0) r->n++;
        r->pass[r->n - 1].bytes += m->bytes;
        r->pass[r->n - 1].ns += later ? m->end[i] - before : 0;
        if (later) before = m->end[i];
    }
    r->bytes = passes * (uint64_t)m->bytes;
    r->ns = before > m->start ? before - m->start : 1;
    r->bytes_per_s = (double)r->bytes / (double)r->ns * 1e9;
    for (size_t i = 0, width = r->n < BEST_OF ? r->n : BEST_OF; i + width <= r->n; i++) {
        uint64_t bytes = 0;
        tl_ns ns = 0;
        for (size_t k = i; k < i + width; k++) {
            bytes += r->pass[k].bytes;
            ns += r->pass[k].ns;
        }
        double rate = (double)bytes / (double)(ns ? ns : 1) * 1e9;
        if (rate > r->best_bytes_per_s) r->best_bytes_per_s = rate;
    }
    if (r->best_bytes_per_s < r->bytes_per_s)
        r->best_bytes_per_s = r->bytes_per_s; /* four passes, the middle slow */
}

static void *work(void *arg) {
    worker *w = arg;
    tl_membw *m = w->owner;
    uint64_t seen = 0;
    tl_mutex_lock(m->lock);
    for (;;) {
        while (!m->quit && m->job == seen) tl_mutex_wait(m->lock);
        if (m->quit) break;
        seen = m->job;
        if (w->index >= m->active) continue;
        bool touch = m->touch;
        tl_mutex_unlock(m->lock);
        if (touch)
            touch_own(m, w->index);
        else
            take_part(m, w);
        tl_mutex_lock(m->lock);
        if (--m->running == 0) tl_mutex_wake_all(m->lock);
    }
    tl_mutex_unlock(m->lock);
    return NULL;
}

static void run_job(tl_membw *m, unsigned threads, bool touch) {
    tl_mutex_lock(m->lock);
    m->active = m->running = threads;
    m->touch = touch;
    m->job++;
    tl_mutex_wake_all(m->lock);
    while (m->running > 0) tl_mutex_wait(m->lock);
    tl_mutex_unlock(m->lock);
}

/* Each thread's memory near to it. On one node once is enough, however many threads read later. */
static void touch_array(tl_membw *m, unsigned threads) {
    lay_out_slabs(m, threads);
    if (m->touched_by == threads || (m->touched_by != 0 && !m->nodes)) return;
    if (m->touched_by != 0) madvise(m->array, m->mapped, MADV_DONTNEED);
    m->touched_by = threads;
    run_job(m, threads, true);
}

/* ---- life ---- */

static tl_status choose_size(size_t *out, size_t wanted, tl_err *e) {
    uint64_t cache = os_cache_total(), available = os_memory_available();
    uint64_t bytes = wanted ? wanted : (cache ? cache * 4 : ARRAY_MIN);
    if (!wanted && bytes < ARRAY_MIN) bytes = ARRAY_MIN;
    if (!wanted && available && bytes > available / 4) bytes = available / 4;
    bytes = (bytes + CHUNK - 1) / CHUNK * CHUNK;
    bool enough = bytes >= 2 * cache && (!available || bytes < available) && bytes <= SIZE_MAX / 2;
    if (!enough) {
        tl_fail(e, TL_MISSING,
                "cannot measure memory bandwidth: an array of %" PRIu64 " MB with a cache of %" PRIu64
                " MB and %" PRIu64 " MB of memory available",
                bytes / 1000000, cache / 1000000, available / 1000000);
        tl_remedy(e, "the array must be larger than the cache and fit into memory: end other programs");
        return TL_MISSING;
    }
    *out = (size_t)bytes;
    return TL_OK;
}

static tl_status start_workers(tl_membw *m, tl_err *e) {
    tl_status st = TL_OK;
    for (unsigned i = 0; i < m->threads_max; i++) {
        m->workers[i].owner = m;
        m->workers[i].index = i;
        TRY(tl_thread_start(&m->workers[i].thread, work, &m->workers[i], e));
    }
out:
    return st;
}

/* Aligned, so that counters of different threads do not share cache lines. */
static void *aligned_array(size_t n, size_t elem) {
    void *p = NULL;
    if (posix_memalign(&p, 128, n * elem) != 0) {
        fprintf(stderr, "tally: error: out of memory\n");
        exit(1);
    }
    memset(p, 0, n * elem);
    return p;
}

tl_status tl_membw_new(tl_membw **out, unsigned threads_max, size_t bytes, tl_err *e) {
    *out = NULL;
    if (threads_max == 0 || threads_max > THREADS_LIMIT)
        return tl_fail(e, TL_INVALID, "cannot measure memory bandwidth with %u threads", threads_max);
    tl_status st = TL_OK;
    tl_membw *m = aligned_array(1, sizeof *m);
    m->array = MAP_FAILED;
    m->threads_max = threads_max;
    m->nodes = os_numa_nodes() > 1;
    m->lock = tl_mutex_new();
    m->sum = best_sum(&m->kernel);
    m->workers = aligned_array(threads_max, sizeof *m->workers);
    m->slabs = aligned_array(threads_max, sizeof *m->slabs);
    TRY(choose_size(&m->bytes, bytes, e));
    m->mapped = m->bytes;
    m->array = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (m->array == MAP_FAILED) {
        st = tl_fail(e, TL_MISSING, "no %zu MB of memory for the bandwidth array", m->mapped / 1000000);
        goto out;
    }
    os_memory_private(m->array, m->mapped);
    TRY(start_workers(m, e));
    touch_array(m, threads_max);
    *out = m;
    m = NULL;
out:
    tl_membw_free(m);
    return st;
}

void tl_membw_free(tl_membw *m) {
    if (!m) return;
    tl_mutex_lock(m->lock);
    m->quit = true;
    tl_mutex_wake_all(m->lock);
    tl_mutex_unlock(m->lock);
    for (unsigned i = 0; i < m->threads_max; i++) tl_thread_join(m->workers[i].thread);
    if (m->array != MAP_FAILED) munmap(m->array, m->mapped);
    tl_mutex_free(m->lock);
    free(m->workers);
    free(m->slabs);
    free(m);
}

uint64_t tl_membw_array_bytes(const tl_membw *m) {
    return m->bytes;
}

const char *tl_membw_kernel(const tl_membw *m) {
    return m->kernel;
}

void os_membw_assume_nodes(tl_membw *m) {
    m->nodes = true;
}

tl_status tl_membw_read(tl_membw_result *out, tl_membw *m, unsigned threads, tl_ns duration, tl_err *e) {
    memset(out, 0, sizeof *out);
    if (threads == 0 || threads > m->threads_max)
        return tl_fail(e, TL_INVALID, "bandwidth probe with %u threads: prepared for 1 to %u", threads,
                       m->threads_max);
    touch_array(m, threads);
    out->threads = threads;
    m->duration = duration;
    atomic_store(&m->arrived, 0);
    atomic_store(&m->started, false);
    atomic_store(&m->entered, 0);
    for (unsigned i = 0; i < threads; i++) atomic_store(&m->slabs[i].next, 0);
    for (size_t i = 0; i < TL_MEMBW_PASSES; i++) atomic_store(&m->done[i], 0);
    run_job(m, threads, false);
    collect(out, m);
    uint64_t sum = 0;
    for (unsigned i = 0; i < threads; i++) {
        sum += m->workers[i].sum;
        m->workers[i].sum = 0;
    }
    /* Every byte is 1: the sum proves that all was read, in every pass, and keeps the loads from being
     * dropped. */
    if (sum != out->bytes / 8 * UINT64_C(0x0101010101010101))
        return tl_fail(e, TL_INTERNAL, "the bandwidth probe did not read what it should have");
    return TL_OK;
}

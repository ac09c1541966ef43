/* xoshiro256** 1.0, seeded by splitmix64: the algorithms of Blackman and Vigna, prng.di.unimi.it. */
#include "base/base.h"

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

void tl_rng_seed(tl_rng *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) r->s[i] = splitmix(&seed);
}

uint64_t tl_rng_u64(tl_rng *r) {
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double tl_rng_f64(tl_rng *r) {
    return (double)(tl_rng_u64(r) >> 11) * 0x1.0p-53;
}

uint64_t tl_rng_below(tl_rng *r, uint64_t n) {
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;
    do x = tl_rng_u64(r);
    while (x >= limit);
    return x % n;
}

void tl_rng_shuffle(tl_rng *r, void *base, size_t n, size_t elem) {
    char *a = base;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)tl_rng_below(r, i);
        if (j == i - 1) continue;
        for (size_t k = 0; k < elem; k++) {
            char c = a[(i - 1) * elem + k];
            a[(i - 1) * elem + k] = a[j * elem + k];
            a[j * elem + k] = c;
        }
    }
}

uint64_t tl_seed_of(const char *text) {
    uint8_t d[32];
    tl_sha256_of(text, strlen(text), d);
    uint64_t x = 0;
    for (int i = 0; i < 8; i++) x = (x << 8) | d[i];
    return x;
}

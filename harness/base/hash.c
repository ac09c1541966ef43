/* SHA-256 by libcrypto (it picks SHA-NI where the CPU has it: about 1.5 GB/s a core), hex, ULID. */
#include "base/base.h"

#include <openssl/evp.h>

struct tl_sha256 {
    EVP_MD_CTX *ctx;
};

tl_sha256 *tl_sha256_new(void) {
    tl_sha256 *h = tl_xalloc(sizeof *h);
    h->ctx = EVP_MD_CTX_new();
    if (h->ctx == NULL || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        fputs("tally: libcrypto has no SHA-256\n", stderr);
        abort();
    }
    return h;
}

void tl_sha256_add(tl_sha256 *h, const void *p, size_t n) {
    EVP_DigestUpdate(h->ctx, p, n);
}

void tl_sha256_end(tl_sha256 *h, uint8_t out[32]) {
    EVP_DigestFinal_ex(h->ctx, out, NULL);
    tl_sha256_drop(h);
}

void tl_sha256_drop(tl_sha256 *h) {
    if (h == NULL) return;
    EVP_MD_CTX_free(h->ctx);
    free(h);
}

void tl_sha256_of(const void *p, size_t n, uint8_t out[32]) {
    tl_sha256 *h = tl_sha256_new();
    tl_sha256_add(h, p, n);
    tl_sha256_end(h, out);
}

void tl_hex(char *out, const uint8_t *p, size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = 0;
}

void tl_sha256_hex(const void *p, size_t n, char out[65]) {
    uint8_t d[32];
    tl_sha256_of(p, n, d);
    tl_hex(out, d, 32);
}

void tl_ulid(char out[27], uint64_t wall_ms, const uint8_t rnd[10]) {
    static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (int i = 9; i >= 0; i--, wall_ms >>= 5) out[i] = crockford[wall_ms & 31];
    unsigned bits = 0, have = 0, at = 0;
    for (int i = 10; i < 26; i++) {
        if (have < 5) {
            bits = (bits << 8) | rnd[at++];
            have += 8;
        }
        out[i] = crockford[(bits >> (have - 5)) & 31];
        have -= 5;
    }
    out[26] = 0;
}

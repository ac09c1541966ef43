/* Weights as ggml stores them. Two uses: pools of random blocks with a sane spread (no NaN, no infinity), and rows of
 * small whole numbers -1, 0, 1 that each type holds exactly, so that a scripted model says the same words in every
 * quantisation. Block layouts: ggml-common.h; unpacking: dequantize_row_* in ggml-quants.c. */
#include "model_impl.h"

#include <math.h>

/* Nearest half-precision number, ties to even; only for finite |x| < 65504. */
uint16_t synth_f16(double x) {
    uint16_t sign = x < 0 ? 0x8000 : 0;
    double a = fabs(x);
    if (a == 0) return sign;
    int exp;
    frexp(a, &exp); /* a = m * 2^exp, m in [0.5, 1) */
    int e = exp - 1 < -14 ? -14 : exp - 1;
    uint32_t scaled = (uint32_t)nearbyint(ldexp(a, 10 - e)); /* 11 significant bits, fewer below 2^-14 */
    if (scaled >= 2048) {
        scaled /= 2;
        e++;
    }
    if (scaled < 1024) return (uint16_t)(sign | scaled);
    return (uint16_t)(sign | (uint32_t)(e + 15) << 10 | (scaled - 1024));
}

static void put16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* ---- random -------------------------------------------------------------------------------------------------- */

static void random_bytes(uint8_t *out, size_t n, tl_rng *rng) {
    uint8_t le[8];
    for (size_t at = 0; at < n; at += 8) {
        uint64_t v = tl_rng_u64(rng);
        for (int i = 0; i < 8; i++) le[i] = (uint8_t)(v >> 8 * i);
        memcpy(out + at, le, n - at < 8 ? n - at : 8);
    }
}

/* Uniform with the wanted deviation: +-sqrt(3) s. */
static double uniform(double s, tl_rng *rng) {
    return (2.0 * tl_rng_f64(rng) - 1.0) * 1.7320508075688772 * s;
}

/* The factors are the deviations of uniform quants: 4.61 of 16 levels, 73.9 of 256, 18.5 of 64. */
static void set_scales(uint8_t *b, uint32_t type, double s) {
    switch (type) {
    case TT_Q4_0: put16(b, synth_f16(s / 4.61)); break;
    case TT_Q8_0: put16(b, synth_f16(s / 73.9)); break;
    case TT_Q4_K: /* w = d*32*q - dmin*32: all 6-bit scales and minima are 32 */
        put16(b, synth_f16(s / 4.61 / 32));
        put16(b + 2, synth_f16(7.5 * s / 4.61 / 32));
        memset(b + 4, 0x80 | 32, 8);
        memset(b + 12, 0, 4);
        break;
    case TT_Q6_K: /* w = d*16*(q - 32) */
        memset(b + 192, 16, 16);
        put16(b + 208, synth_f16(s / 18.5 / 16));
        break;
    default: break;
    }
}

void synth_fill_blocks(uint8_t *out, size_t blocks, const tl_tensor_type *type, double deviation, tl_rng *rng) {
    if (type->id == TT_F16) {
        for (size_t i = 0; i < blocks; i++) put16(out + 2 * i, synth_f16(uniform(deviation, rng)));
        return;
    }
    random_bytes(out, blocks * type->block_bytes, rng);
    for (size_t i = 0; i < blocks; i++) set_scales(out + i * type->block_bytes, type->id, deviation);
}

/* ---- exact rows ---------------------------------------------------------------------------------------------- */

static void exact_q8_0(uint8_t *b, const int8_t *v) {
    put16(b, synth_f16(1.0 / 64));
    for (int i = 0; i < 32; i++) b[2 + i] = (uint8_t)(v[i] * 64);
}

static void exact_q4_0(uint8_t *b, const int8_t *v) {
    put16(b, synth_f16(1));
    for (int i = 0; i < 16; i++) b[2 + i] = (uint8_t)((v[i] + 8) | (v[i + 16] + 8) << 4);
}

/* All scales and minima are 1, so w = q - 1. */
static void exact_q4_k(uint8_t *b, const int8_t *v) {
    put16(b, synth_f16(1));
    put16(b + 2, synth_f16(1));
    memset(b + 4, 1, 8);
    memset(b + 12, 0x11, 4);
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < 32; i++)
            b[16 + 32 * g + i] = (uint8_t)((v[64 * g + i] + 1) | (v[64 * g + 32 + i] + 1) << 4);
}

/* All scales are 1, so w = q - 32; q has its low 4 bits in ql and its high 2 in qh. */
static void exact_q6_k(uint8_t *b, const int8_t *v) {
    memset(b, 0, 192);
    memset(b + 192, 1, 16);
    put16(b + 208, synth_f16(1));
    for (int h = 0; h < 2; h++) {
        uint8_t *ql = b + 64 * h, *qh = b + 128 + 32 * h;
        const int8_t *x = v + 128 * h;
        for (int i = 0; i < 32; i++) {
            unsigned q[4];
            for (int k = 0; k < 4; k++) q[k] = (unsigned)(x[i + 32 * k] + 32);
            ql[i] = (uint8_t)((q[0] & 15) | (q[2] & 15) << 4);
            ql[i + 32] = (uint8_t)((q[1] & 15) | (q[3] & 15) << 4);
            qh[i] = (uint8_t)(q[0] >> 4 | q[1] >> 4 << 2 | q[2] >> 4 << 4 | q[3] >> 4 << 6);
        }
    }
}

void synth_encode_row(uint8_t *out, const tl_tensor_type *type, const int8_t *v, size_t n) {
    for (size_t i = 0; i < n; i += type->block_elements, out += type->block_bytes) {
        switch (type->id) {
        case TT_F16: put16(out, synth_f16(v[i])); break;
        case TT_Q8_0: exact_q8_0(out, v + i); break;
        case TT_Q4_0: exact_q4_0(out, v + i); break;
        case TT_Q4_K: exact_q4_k(out, v + i); break;
        default: exact_q6_k(out, v + i); break;
        }
    }
}

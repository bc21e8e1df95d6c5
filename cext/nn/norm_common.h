/* Shared by the kernels of normalization, pooling, softmax and losses: how work is cut, exp, activations.
 *
 * Reductions are cut into a number of chunks that depends on the sizes alone, each chunk is reduced in order, and the
 * chunks are combined in order: so no result depends on the number of threads.
 */
#ifndef NORM_COMMON_H
#define NORM_COMMON_H

#include <math.h>
#include <string.h>

#include "dtconv_inline.h"
#include "dtconv_real.h"

enum {
    STRIP = 256,    /* channels that a reduction keeps partial sums of on the stack */
    MAX_CHUNKS = 64 /* parts into which the rows of a reduction are cut, at most */
};

INLINE int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Rows of a block of `width` channels that stays in the first cache levels (64 KiB). */
INLINE int64_t block_rows(int64_t width) { return max_i64(8, 65536 / ((int64_t)sizeof(real) * min_i64(width, STRIP))); }

/* Chunks into which `rows` are cut, each of whole blocks except the last. */
INLINE int64_t chunk_rows(int64_t rows, int64_t c) {
    int64_t block = block_rows(c), blocks = (rows + block - 1) / block;
    return max_i64(1, (blocks + MAX_CHUNKS - 1) / MAX_CHUNKS) * block;
}

INLINE int64_t chunk_count(int64_t rows, int64_t c) {
    int64_t step = chunk_rows(rows, c);
    return max_i64(1, (rows + step - 1) / step);
}

/* exp(v) without branches, so that loops over it vectorise: v = k ln 2 + r, |r| <= ln 2 / 2, a Taylor polynomial for
 * exp(r) (error below 0.1 ulp in float and 0.5 ulp in double), and 2^k put into the exponent bits.  Below the smallest
 * normal number the result is 0, above the largest it is infinite, NaN stays NaN. */
INLINE real fast_exp(real v) {
#ifdef DTCONV_DOUBLE
    const real low = -708.0, high = 709.5, magic = 6755399441055744.0, ln2_high = 6.93147180369123816490e-01,
               ln2_low = 1.90821492927058770002e-10;
    typedef uint64_t bits;
    const bits mantissa = 52, bias = 1023;
#else
    const real low = -87.0f, high = 88.5f, magic = 12582912.0f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    typedef uint32_t bits;
    const bits mantissa = 23, bias = 127;
#endif
    real clipped = v < low ? low : v;
    clipped = clipped > high ? high : clipped;
    real shifted = clipped * (real)1.4426950408889634 + magic; /* the rounded quotient in the low bits */
    real k = shifted - magic;
    real r = clipped - k * ln2_high;
    r = r - k * ln2_low;
#ifdef DTCONV_DOUBLE
    real p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
#else
    real p = 1.0f / 5040.0f;
#endif
    p = p * r + (real)(1.0 / 720.0);
    p = p * r + (real)(1.0 / 120.0);
    p = p * r + (real)(1.0 / 24.0);
    p = p * r + (real)(1.0 / 6.0);
    p = p * r + (real)0.5;
    p = p * r + (real)1.0;
    p = p * r + (real)1.0;
    /* 2^k as 2^(k - 1) * 2, because 2^128 has no representation */
    bits exponent;
    memcpy(&exponent, &shifted, sizeof(real));
    exponent = (exponent + bias - 1) << mantissa;
    real power;
    memcpy(&power, &exponent, sizeof(real));
    real result = p * power * (real)2.0;
    result = v < low ? (real)0.0 : result;
    result = v > high ? (real)INFINITY : result;
    return v != v ? v : result;
}

/* Maximum of k >= 1 elements; in lanes, because a maximum in order would not vectorise. */
INLINE real maximum(const real *x, int64_t k, int64_t stride) {
    enum { LANES = 16 };
    real lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = x[0];
    int64_t j = 0;
    for (; j + LANES <= k; j += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = x[(j + l) * stride] > lane[l] ? x[(j + l) * stride] : lane[l];
    for (; j < k; j++) lane[0] = x[j * stride] > lane[0] ? x[j * stride] : lane[0];
    for (int l = 1; l < LANES; l++) lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return lane[0];
}

/* The activation of a fused operator; `code` is a constant wherever this is inlined. */
INLINE real activate(int code, real alpha, real x) {
    const real p[] = {alpha};
    switch (code) {
#define sigmoid_of(x) (1 / (1 + fast_exp(-(x))))
#define tanh_of(x) (1 - 2 / (1 + fast_exp(2 * (x))))
#define F(name) name##_of
#define FUSED(NAME, kind, f, gradient) \
    case DTCONV_##NAME:                \
        return f;
#include "../cuda/activations.h"
    }
    return x;
#undef F
}

#endif

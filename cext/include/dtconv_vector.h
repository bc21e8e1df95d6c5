/* Vectors of `real`, as wide as the level of the library that is compiled. */
#ifndef DTCONV_VECTOR_H
#define DTCONV_VECTOR_H

#include "dtconv_inline.h"
#include "dtconv_real.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

enum { V = VECTOR_BYTES / sizeof(real) };
typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef real loose_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));
#ifdef DTCONV_DOUBLE
typedef int64_t mask __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef int32_t mask __attribute__((vector_size(VECTOR_BYTES)));
#endif

INLINE vec load(const real *x) { return *(const loose_vec *)x; }
INLINE void store(real *y, vec x) { *(loose_vec *)y = x; }

/* The first `count` elements of a vector in memory, 1 to V; the rest is 0, and is left as it is. */
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
INLINE vec load_part(const real *x, int64_t count) { return _mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), x); }
INLINE void store_part(real *y, int64_t count, vec x) { _mm512_mask_storeu_pd(y, (__mmask8)((1u << count) - 1), x); }
#elif defined(__AVX512F__)
INLINE vec load_part(const real *x, int64_t count) { return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x); }
INLINE void store_part(real *y, int64_t count, vec x) { _mm512_mask_storeu_ps(y, (__mmask16)((1u << count) - 1), x); }
#else
INLINE vec load_part(const real *x, int64_t count) {
    if (count == V) return load(x);
    vec part = {0};
    for (int64_t j = 0; j < count; j++) part[j] = x[j];
    return part;
}
INLINE void store_part(real *y, int64_t count, vec x) {
    if (count == V)
        store(y, x);
    else
        for (int64_t j = 0; j < count; j++) y[j] = x[j];
}
#endif

/* Stores a vector at an aligned address past the caches, where the processor can; finish_stores() after the last. */
INLINE void store_past_caches(real *y, vec x) {
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)y, (__m512i)x);
#elif defined(__AVX__)
    _mm256_stream_si256((__m256i *)y, (__m256i)x);
#elif defined(__SSE2__)
    _mm_stream_si128((__m128i *)y, (__m128i)x);
#else
    store(y, x);
#endif
}

INLINE void finish_stores(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* a where `chosen` is true, else b. */
INLINE vec where(mask chosen, vec a, vec b) { return (vec)(((mask)a & chosen) | ((mask)b & ~chosen)); }

/* x, or 0 where it is negative; NaN stays NaN. */
INLINE vec positive(vec x) { return (vec)((mask)x & ~(x < 0)); }

#endif

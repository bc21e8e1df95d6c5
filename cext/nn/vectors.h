/* Vectors as wide as the level of the library that is compiled. */
#ifndef VECTORS_H
#define VECTORS_H

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

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

enum { V = VECTOR_BYTES / sizeof(real) };
typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef real loose_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));
#ifdef DTCONV_DOUBLE
typedef int64_t mask __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef int32_t mask __attribute__((vector_size(VECTOR_BYTES)));
#endif

static inline __attribute__((always_inline)) vec load(const real *x) { return *(const loose_vec *)x; }
static inline __attribute__((always_inline)) void store(real *y, vec x) { *(loose_vec *)y = x; }

/* Stores a vector at an aligned address past the caches, where the processor can; finish_stores() after the last. */
static inline __attribute__((always_inline)) void store_past_caches(real *y, vec x) {
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

static inline __attribute__((always_inline)) void finish_stores(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* a where `chosen` is true, else b. */
static inline __attribute__((always_inline)) vec where(mask chosen, vec a, vec b) {
    return (vec)(((mask)a & chosen) | ((mask)b & ~chosen));
}

#endif

/* Vectors as wide as the level of the library that is compiled. */
#ifndef VECTORS_H
#define VECTORS_H

#include "dtconv_real.h"

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

/* a where `chosen` is true, else b. */
static inline __attribute__((always_inline)) vec where(mask chosen, vec a, vec b) {
    return (vec)(((mask)a & chosen) | ((mask)b & ~chosen));
}

#endif

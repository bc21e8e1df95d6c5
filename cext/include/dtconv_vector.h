/* Vectors of `real`, as wide as the level of the library that is compiled; in memory they are `real` or `elem`. */
#ifndef DTCONV_VECTOR_H
#define DTCONV_VECTOR_H

#include "dtconv_inline.h"
#include "dtconv_real.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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

/* x * y + sum, rounded once where the processor can.  Of an expression the compiler decides which of its products it
 * takes together with a sum, and may decide otherwise where it is used next. */
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
INLINE vec multiply_add(vec x, vec y, vec sum) { return (vec)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)sum); }
#elif defined(__AVX512F__)
INLINE vec multiply_add(vec x, vec y, vec sum) { return (vec)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)sum); }
#elif defined(__FMA__) && defined(DTCONV_DOUBLE)
INLINE vec multiply_add(vec x, vec y, vec sum) { return (vec)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)sum); }
#elif defined(__FMA__)
INLINE vec multiply_add(vec x, vec y, vec sum) { return (vec)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)sum); }
#elif defined(__aarch64__) && defined(DTCONV_DOUBLE)
INLINE vec multiply_add(vec x, vec y, vec sum) {
    return (vec)vfmaq_f64((float64x2_t)sum, (float64x2_t)x, (float64x2_t)y);
}
#elif defined(__aarch64__)
INLINE vec multiply_add(vec x, vec y, vec sum) {
    return (vec)vfmaq_f32((float32x4_t)sum, (float32x4_t)x, (float32x4_t)y);
}
#else
INLINE vec multiply_add(vec x, vec y, vec sum) { return x * y + sum; }
#endif

/* The first `count` elements of a vector in memory, 1 to V; the rest is 0, and is left as it is. */
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
INLINE vec load_part(const real *x, int64_t count) { return _mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), x); }
INLINE void store_part(real *y, int64_t count, vec x) { _mm512_mask_storeu_pd(y, (__mmask8)((1u << count) - 1), x); }
#elif defined(__AVX512F__)
INLINE vec load_part(const real *x, int64_t count) { return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x); }
INLINE void store_part(real *y, int64_t count, vec x) { _mm512_mask_storeu_ps(y, (__mmask16)((1u << count) - 1), x); }
#elif defined(__AVX__)
/* -1 for the first `count` of V numbers of `size` bytes, else 0. */
INLINE __m256i mask_of(int64_t count, int64_t size) {
    static const int32_t turns[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)((const char *)(turns + 8) - count * size));
}
INLINE vec load_part(const real *x, int64_t count) {
    if (__builtin_constant_p(count) && count == V) return load(x);
#ifdef DTCONV_DOUBLE
    return (vec)_mm256_maskload_pd(x, mask_of(count, sizeof(real)));
#else
    return (vec)_mm256_maskload_ps(x, mask_of(count, sizeof(real)));
#endif
}
INLINE void store_part(real *y, int64_t count, vec x) { /* some processors are slow to store with a mask */
    if (count == V) {
        store(y, x);
        return;
    }
#ifdef DTCONV_DOUBLE
    const __m256d all = (__m256d)x;
    __m128d part = _mm256_castpd256_pd128(all);
    if (count & 2) _mm_storeu_pd(y, part), part = _mm256_extractf128_pd(all, 1), y += 2;
    if (count & 1) _mm_store_sd(y, part);
#else
    const __m256 all = (__m256)x;
    __m128 part = _mm256_castps256_ps128(all);
    if (count & 4) _mm_storeu_ps(y, part), part = _mm256_extractf128_ps(all, 1), y += 4;
    if (count & 2) _mm_storel_pi((__m64 *)y, part), part = _mm_movehl_ps(part, part), y += 2;
    if (count & 1) _mm_store_ss(y, part);
#endif
}
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

/* The same of elements of images, each of which is half as wide in memory where it is a bfloat16. */
#ifdef DTCONV_BFLOAT16
typedef uint16_t half_vec __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint16_t loose_half_vec __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(elem)), may_alias));
typedef uint32_t bits_vec __attribute__((vector_size(VECTOR_BYTES)));

/* Upper halves, after rounding to nearest even; NaN may become something else. */
INLINE bits_vec rounded_halves(vec x) {
    const bits_vec bits = (bits_vec)x;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
INLINE bits_vec rounded_or_nan(vec x) {
    const bits_vec nan = (bits_vec)(x != x), quiet = ((bits_vec)x | 0x400000) >> 16;
    return (rounded_halves(x) & ~nan) | (quiet & nan);
}

/* Instructions by name: of a general conversion gcc makes several times as many.
 *
 * round_operand() rounds what vdpbf16ps multiplies: denormal numbers may become 0, as it takes them for 0, too. */
#if defined(__AVX512F__)
INLINE vec widen_vector(half_vec x) { return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)x), 16); }
INLINE half_vec round_vector(vec x) {
    const __m512i bits = (__m512i)x, odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return (half_vec)_mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
}
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
INLINE half_vec round_operand(vec x) { return (half_vec)_mm512_cvtneps_pbh((__m512)x); }
INLINE half_vec narrow_vector(vec x) {
    enum { DENORMAL = 0x20 };
    half_vec rounded = round_operand(x);
    if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)x, DENORMAL), 0)) rounded = round_vector(x);
    return rounded;
}
#else
INLINE half_vec narrow_vector(vec x) { return round_vector(x); }
INLINE half_vec round_operand(vec x) { return round_vector(x); }
#endif
#else
#if defined(__AVX2__)
INLINE vec widen_vector(half_vec x) { return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)x), 16); }
#else
INLINE vec widen_vector(half_vec x) { return (vec)(__builtin_convertvector(x, bits_vec) << 16); }
#endif
#if defined(__AVX2__)
/* Two vectors, which share what instructions they can; so rare that a branch is the fastest: NaN. */
INLINE __m256i narrow_both(vec x, vec y) {
    const __m256 nan = _mm256_cmp_ps((__m256)x, (__m256)y, _CMP_UNORD_Q);
    __m256i packed = _mm256_packus_epi32((__m256i)rounded_halves(x), (__m256i)rounded_halves(y));
    if (__builtin_expect(!_mm256_testz_ps(nan, nan), 0))
        packed = _mm256_packus_epi32((__m256i)rounded_or_nan(x), (__m256i)rounded_or_nan(y));
    return _mm256_permute4x64_epi64(packed, 0xd8);
}
INLINE half_vec narrow_vector(vec x) { return (half_vec)_mm256_castsi256_si128(narrow_both(x, x)); }
#else
INLINE half_vec narrow_vector(vec x) { return __builtin_convertvector(rounded_or_nan(x), half_vec); }
#endif
INLINE half_vec round_operand(vec x) { return narrow_vector(x); }
#endif

INLINE vec load_elem(const elem *x) { return widen_vector(*(const loose_half_vec *)x); }
INLINE void store_elem(elem *y, vec x) { *(loose_half_vec *)y = narrow_vector(x); }
/* Two vectors, one after the other; and at two places. */
#if defined(__AVX2__) && !defined(__AVX512F__)
INLINE void store_pair(elem *y, vec first, vec second) {
    _mm256_storeu_si256((__m256i *)y, narrow_both(first, second));
}
INLINE void store_both(elem *y, vec of_y, elem *z, vec of_z) {
    const __m256i both = narrow_both(of_y, of_z);
    _mm_storeu_si128((__m128i *)y, _mm256_castsi256_si128(both));
    _mm_storeu_si128((__m128i *)z, _mm256_extracti128_si256(both, 1));
}
#else
INLINE void store_pair(elem *y, vec first, vec second) { store_elem(y, first), store_elem(y + V, second); }
INLINE void store_both(elem *y, vec of_y, elem *z, vec of_z) { store_elem(y, of_y), store_elem(z, of_z); }
#endif
/* y = x, rounded, n numbers. */
INLINE void store_numbers(elem *y, int64_t n, const real *x) {
    int64_t i = 0;
    for (; i + 2 * V <= n; i += 2 * V) store_pair(y + i, load(x + i), load(x + i + V));
    for (; i < n; i++) y[i] = narrow(x[i]);
}
/* Numbers that are those of `elem` already: nothing is rounded. */
INLINE half_vec exact_halves(vec x) {
    const bits_vec kept = (bits_vec)x >> 16;
#if defined(__AVX512F__)
    return (half_vec)_mm512_cvtepi32_epi16((__m512i)kept);
#elif defined(__AVX2__)
    const __m256i packed = _mm256_packus_epi32((__m256i)kept, (__m256i)kept);
    return (half_vec)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 8));
#else
    return __builtin_convertvector(kept, half_vec);
#endif
}
/* The first `count` of V, which are rounded already. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
INLINE vec load_elem_part(const elem *x, int64_t count) {
    return widen_vector((half_vec)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), x));
}
INLINE void store_halves(elem *y, int64_t count, half_vec x) {
    _mm256_mask_storeu_epi16(y, (__mmask16)((1u << count) - 1), (__m256i)x);
}
#elif defined(__AVX2__)
INLINE vec load_elem_part(const elem *x, int64_t count) {
    if (__builtin_constant_p(count) && count == V) return load_elem(x);
    if (count >= 4) { /* the last four, of which the first ones are there already */
        const __m128i last = _mm_loadl_epi64((const __m128i *)(x + count - 4));
        const __m128i rest = _mm_srl_epi64(last, _mm_cvtsi64_si128(16 * (8 - count)));
        return widen_vector((half_vec)_mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)x), rest));
    }
    uint64_t few = 0;
    for (int64_t j = 0; j < count; j++) few |= (uint64_t)x[j] << (16 * j);
    return widen_vector((half_vec)_mm_cvtsi64_si128((int64_t)few));
}
INLINE void store_halves(elem *y, int64_t count, half_vec x) {
    __m128i part = (__m128i)x;
    if (count == V) {
        *(loose_half_vec *)y = x;
        return;
    }
    if (count & 4) _mm_storel_epi64((__m128i *)y, part), part = _mm_unpackhi_epi64(part, part), y += 4;
    if (count & 2) {
        const int two = _mm_cvtsi128_si32(part);
        memcpy(y, &two, sizeof two);
        part = _mm_srli_epi64(part, 32), y += 2;
    }
    if (count & 1) *y = (elem)_mm_cvtsi128_si32(part);
}
#else
INLINE vec load_elem_part(const elem *x, int64_t count) {
    half_vec part = {0};
    memcpy(&part, x, (size_t)count * sizeof(elem));
    return widen_vector(part);
}
INLINE void store_halves(elem *y, int64_t count, half_vec x) { memcpy(y, &x, (size_t)count * sizeof(elem)); }
#endif
INLINE void store_elem_part(elem *y, int64_t count, vec x) { store_halves(y, count, narrow_vector(x)); }
INLINE void store_exact(elem *y, int64_t count, vec x) { store_halves(y, count, exact_halves(x)); }
#else
INLINE vec load_elem(const elem *x) { return load(x); }
INLINE void store_elem(elem *y, vec x) { store(y, x); }
INLINE void store_pair(elem *y, vec first, vec second) { store(y, first), store(y + V, second); }
INLINE void store_both(elem *y, vec of_y, elem *z, vec of_z) { store(y, of_y), store(z, of_z); }
INLINE vec load_elem_part(const elem *x, int64_t count) { return load_part(x, count); }
INLINE void store_elem_part(elem *y, int64_t count, vec x) { store_part(y, count, x); }
INLINE void store_exact(elem *y, int64_t count, vec x) { store_part(y, count, x); }
#endif

/* The first `count` of V elements; a constant where it is V. */
INLINE vec load_first(const elem *x, int64_t count) { return count == V ? load_elem(x) : load_elem_part(x, count); }
INLINE void store_first(elem *y, int64_t count, vec x) {
    if (count == V)
        store_elem(y, x);
    else
        store_elem_part(y, count, x);
}
/* `vectors` (a constant) of them, one after the other, where `count` is V; else there is one. */
INLINE void store_vectors(elem *y, int vectors, int64_t count, const vec *x) {
    if (count < V) {
        store_elem_part(y, count, x[0]);
        return;
    }
    UNROLL for (int v = 0; v + 1 < vectors; v += 2) store_pair(y + v * V, x[v], x[v + 1]);
    if (vectors % 2) store_elem(y + (vectors - 1) * V, x[vectors - 1]);
}

/* Stores a vector of elements at an aligned address past the caches, where the processor can; finish_stores() after the
 * last. */
INLINE void store_past_caches(elem *y, vec x) {
#if defined(DTCONV_BFLOAT16) && defined(__AVX512F__)
    _mm256_stream_si256((__m256i *)y, (__m256i)narrow_vector(x));
#elif defined(DTCONV_BFLOAT16) && defined(__AVX__)
    _mm_stream_si128((__m128i *)y, (__m128i)narrow_vector(x));
#elif defined(DTCONV_BFLOAT16)
    store_elem(y, x);
#elif defined(__AVX512F__)
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

/* x, or 0 where it is negative; NaN stays NaN: the instructions give their second operand where one is none. */
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
INLINE vec positive(vec x) { return (vec)_mm512_max_pd(_mm512_setzero_pd(), (__m512d)x); }
#elif defined(__AVX512F__)
INLINE vec positive(vec x) { return (vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)x); }
#elif defined(__AVX__) && defined(DTCONV_DOUBLE)
INLINE vec positive(vec x) { return (vec)_mm256_max_pd(_mm256_setzero_pd(), (__m256d)x); }
#elif defined(__AVX__)
INLINE vec positive(vec x) { return (vec)_mm256_max_ps(_mm256_setzero_ps(), (__m256)x); }
#else
INLINE vec positive(vec x) { return (vec)((mask)x & ~(x < 0)); }
#endif

/* The smaller of x and `most`, and the larger of x and `least`; NaN stays NaN. */
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
INLINE vec capped(real most, vec x) { return (vec)_mm512_min_pd(_mm512_set1_pd(most), (__m512d)x); }
INLINE vec raised(real least, vec x) { return (vec)_mm512_max_pd(_mm512_set1_pd(least), (__m512d)x); }
#elif defined(__AVX512F__)
INLINE vec capped(real most, vec x) { return (vec)_mm512_min_ps(_mm512_set1_ps(most), (__m512)x); }
INLINE vec raised(real least, vec x) { return (vec)_mm512_max_ps(_mm512_set1_ps(least), (__m512)x); }
#elif defined(__AVX__) && defined(DTCONV_DOUBLE)
INLINE vec capped(real most, vec x) { return (vec)_mm256_min_pd(_mm256_set1_pd(most), (__m256d)x); }
INLINE vec raised(real least, vec x) { return (vec)_mm256_max_pd(_mm256_set1_pd(least), (__m256d)x); }
#elif defined(__AVX__)
INLINE vec capped(real most, vec x) { return (vec)_mm256_min_ps(_mm256_set1_ps(most), (__m256)x); }
INLINE vec raised(real least, vec x) { return (vec)_mm256_max_ps(_mm256_set1_ps(least), (__m256)x); }
#else
INLINE vec capped(real most, vec x) { return where(x > most, (vec){0} + most, x); }
INLINE vec raised(real least, vec x) { return where(x < least, (vec){0} + least, x); }
#endif

#endif

/* Maxima of windows and their positions, a vector of channels at a time. */
#ifndef POOLING_POSITIONS_H
#define POOLING_POSITIONS_H

#include "dtconv_vector.h"

/* Positions in a window of a vector of channels: lanes as wide as `real`, one byte or four in memory. */
typedef uint8_t bytes_of __attribute__((vector_size(VECTOR_BYTES / sizeof(real))));
typedef int32_t words_of __attribute__((vector_size(VECTOR_BYTES / sizeof(real) * 4)));

/* The first `count` of V bytes, 0 behind them. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
INLINE bytes_of load_bytes(const uint8_t *from, int64_t count) {
    const __m128i all = _mm_maskz_loadu_epi8((__mmask16)((1u << count) - 1), from);
    bytes_of part;
    memcpy(&part, &all, sizeof(part));
    return part;
}
INLINE void store_bytes(uint8_t *to, int64_t count, bytes_of x) {
    __m128i all = _mm_setzero_si128();
    memcpy(&all, &x, sizeof(x));
    _mm_mask_storeu_epi8(to, (__mmask16)((1u << count) - 1), all);
}
#else
_Static_assert(sizeof(bytes_of) <= 8, "a vector's positions fit into 8 bytes");
INLINE bytes_of load_bytes(const uint8_t *from, int64_t count) {
    uint64_t bits = 0;
    if (count == V) {
        memcpy(&bits, from, sizeof(bytes_of));
    } else if (count >= 4) { /* the last four, of which the first ones are there already */
        uint32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + count - 4, 4);
        bits = first | (uint64_t)last << (8 * (count - 4));
    } else if (count > 0) { /* one to three, the same perhaps again */
        bits =
            from[0] | (uint64_t)from[count / 2] << (8 * (count / 2)) | (uint64_t)from[count - 1] << (8 * (count - 1));
    }
    bytes_of part;
    memcpy(&part, &bits, sizeof(part));
    return part;
}
INLINE void store_bytes(uint8_t *to, int64_t count, bytes_of x) {
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof(x));
    if (count == V) {
        memcpy(to, &bits, sizeof(x));
        return;
    }
    if (count & 4) memcpy(to, &bits, 4), bits >>= 32, to += 4;
    if (count & 2) memcpy(to, &bits, 2), bits >>= 16, to += 2;
    if (count & 1) *to = (uint8_t)bits;
}
#endif

INLINE mask load_positions(const void *argmax, int64_t at, int bytes, int64_t count) {
    if (bytes == 1) {
        const bytes_of part = load_bytes((const uint8_t *)argmax + at, count);
#if defined(__AVX512F__) && !defined(DTCONV_DOUBLE)
        return (mask)_mm512_cvtepu8_epi32((__m128i)part);
#elif defined(__AVX2__) && !defined(DTCONV_DOUBLE)
        return (mask)_mm256_cvtepu8_epi32(_mm_loadu_si64(&part));
#else
        return __builtin_convertvector(part, mask);
#endif
    }
    words_of part = {0};
    memcpy(&part, (const int32_t *)argmax + at, (size_t)count * sizeof(int32_t));
    return __builtin_convertvector(part, mask);
}

INLINE void store_positions(void *argmax, int64_t at, int bytes, int64_t count, mask positions) {
    if (bytes == 1) {
#if defined(__AVX512F__) && !defined(DTCONV_DOUBLE)
        const bytes_of part = (bytes_of)_mm512_cvtepi32_epi8((__m512i)positions);
#elif defined(__AVX2__) && !defined(DTCONV_DOUBLE)
        const __m128i low = _mm256_castsi256_si128((__m256i)positions);
        const __m128i pairs = _mm_packus_epi32(low, _mm256_extracti128_si256((__m256i)positions, 1));
        const __m128i packed = _mm_packus_epi16(pairs, pairs);
        bytes_of part;
        memcpy(&part, &packed, sizeof(part));
#else
        const bytes_of part = __builtin_convertvector(positions, bytes_of);
#endif
        store_bytes((uint8_t *)argmax + at, count, part);
    } else {
        const words_of part = __builtin_convertvector(positions, words_of);
        memcpy((int32_t *)argmax + at, &part, (size_t)count * sizeof(int32_t));
    }
}

/* Goes on from the maximum so far, at `chosen`, to a value after it, at `here`: the first maximum stays, and the last
 * NaN. */
INLINE void follow(vec *best, mask *chosen, vec value, mask here) {
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
    const __m512d a = (__m512d)value, b = (__m512d)*best;
    const __mmask8 stays = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(a, a, _CMP_ORD_Q), a, b, _CMP_NGT_UQ);
    *best = (vec)_mm512_mask_mov_pd(a, stays, b);
    *chosen = (mask)_mm512_mask_mov_epi64((__m512i)here, stays, (__m512i)*chosen);
#elif defined(__AVX512F__)
    const __m512 a = (__m512)value, b = (__m512)*best;
    const __mmask16 stays = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b, _CMP_NGT_UQ);
    *best = (vec)_mm512_mask_mov_ps(a, stays, b);
    *chosen = (mask)_mm512_mask_mov_epi32((__m512i)here, stays, (__m512i)*chosen);
#else
    const mask greater = (value > *best) | (value != value);
    *best = where(greater, value, *best);
    *chosen = (here & greater) | (*chosen & ~greater);
#endif
}

/* The same where no value is NaN. */
INLINE void follow_number(vec *best, mask *chosen, vec value, mask here) {
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
    const __mmask8 greater = _mm512_cmp_pd_mask((__m512d)value, (__m512d)*best, _CMP_GT_OQ);
    *best = (vec)_mm512_max_pd((__m512d)value, (__m512d)*best);
    *chosen = (mask)_mm512_mask_mov_epi64((__m512i)*chosen, greater, (__m512i)here);
#elif defined(__AVX512F__)
    const __mmask16 greater = _mm512_cmp_ps_mask((__m512)value, (__m512)*best, _CMP_GT_OQ);
    *best = (vec)_mm512_max_ps((__m512)value, (__m512)*best);
    *chosen = (mask)_mm512_mask_mov_epi32((__m512i)*chosen, greater, (__m512i)here);
#elif defined(__AVX2__)
    const mask greater = value > *best;
#ifdef DTCONV_DOUBLE
    *best = (vec)_mm256_max_pd((__m256d)value, (__m256d)*best);
#else
    *best = (vec)_mm256_max_ps((__m256)value, (__m256)*best);
#endif
    *chosen = (mask)_mm256_blendv_epi8((__m256i)*chosen, (__m256i)here, (__m256i)greater);
#else
    const mask greater = value > *best;
    *best = where(greater, value, *best);
    *chosen = (here & greater) | (*chosen & ~greater);
#endif
}

/* sum + g in the channels whose maximum is at this tap of the window. */
INLINE vec add_chosen(vec sum, vec g, const void *argmax, int64_t at, int bytes, int64_t count, int tap) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if (bytes == 1) {
        __m128i places = _mm_setzero_si128();
        memcpy(&places, (const uint8_t *)argmax + at, (size_t)count);
        const __mmask16 here = _mm_cmpeq_epi8_mask(places, _mm_set1_epi8((char)tap));
        KEEP_VECTOR(g); /* a load of its own: one that is part of the addition waits for the mask */
#ifdef DTCONV_DOUBLE
        return (vec)_mm512_mask_add_pd((__m512d)sum, (__mmask8)here, (__m512d)sum, (__m512d)g);
#else
        return (vec)_mm512_mask_add_ps((__m512)sum, here, (__m512)sum, (__m512)g);
#endif
    }
#endif
    return sum + where(load_positions(argmax, at, bytes, count) == (mask){0} + tap, g, (vec){0});
}

#endif

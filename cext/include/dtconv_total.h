/* The sum of a vector's numbers: halves are added until one is left. */
#ifndef DTCONV_TOTAL_H
#define DTCONV_TOTAL_H

#include "dtconv_vector.h"

INLINE real total(vec x) {
#if defined(__AVX512F__) && defined(DTCONV_DOUBLE)
    const __m512d all = (__m512d)x;
    const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(all), _mm512_extractf64x4_pd(all, 1));
#elif defined(__AVX__) && defined(DTCONV_DOUBLE)
    const __m256d half = (__m256d)x;
#endif
#if defined(__AVX__) && defined(DTCONV_DOUBLE)
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#else
#if defined(__AVX512F__)
    const __m512 all = (__m512)x;
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(all), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1)));
#elif defined(__AVX__)
    const __m256 half = (__m256)x;
#endif
#if defined(__AVX__)
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    real sum = 0;
    for (int i = 0; i < V; i++) sum += x[i];
    return sum;
#endif
#endif
}

#endif

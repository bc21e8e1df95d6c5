/* Transposition of CHUNK neighbouring elements of mr rows into a panel: dst[j * mr + r] = src[r][j].
 *
 * Four rows at a time: 4 x 4 blocks are transposed inside the 128-bit lanes of the vectors (8 shuffles for 16 columns)
 * and stored lane by lane.  The last four rows may overlap the four before them, so any mr >= 4 works.
 */
#ifndef DTCONV_TRANSPOSE_H
#define DTCONV_TRANSPOSE_H

#include "dtconv_real.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define CHUNK 16

#if defined(__AVX512F__) && !defined(DTCONV_DOUBLE)
#define TRANSPOSE_FOUR 1
static inline __attribute__((always_inline)) void transpose_four(const float *r0, const float *r1, const float *r2,
                                                                 const float *r3, int64_t mr, float *dst) {
    __m512 a = _mm512_loadu_ps(r0), b = _mm512_loadu_ps(r1), c = _mm512_loadu_ps(r2), d = _mm512_loadu_ps(r3);
    __m512d ab0 = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), ab1 = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    __m512d cd0 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)), cd1 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    __m512 column[4] = {_mm512_castpd_ps(_mm512_unpacklo_pd(ab0, cd0)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab0, cd0)),
                        _mm512_castpd_ps(_mm512_unpacklo_pd(ab1, cd1)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab1, cd1))};
    for (int q = 0; q < 4; q++) {
        _mm_storeu_ps(dst + q * mr, _mm512_castps512_ps128(column[q]));
        _mm_storeu_ps(dst + (4 + q) * mr, _mm512_extractf32x4_ps(column[q], 1));
        _mm_storeu_ps(dst + (8 + q) * mr, _mm512_extractf32x4_ps(column[q], 2));
        _mm_storeu_ps(dst + (12 + q) * mr, _mm512_extractf32x4_ps(column[q], 3));
    }
}
#elif defined(__AVX2__) && defined(DTCONV_DOUBLE)
#define TRANSPOSE_FOUR 1
static inline __attribute__((always_inline)) void transpose_four(const double *r0, const double *r1, const double *r2,
                                                                 const double *r3, int64_t mr, double *dst) {
    for (int j = 0; j < CHUNK; j += 4) {
        __m256d a = _mm256_loadu_pd(r0 + j), b = _mm256_loadu_pd(r1 + j);
        __m256d c = _mm256_loadu_pd(r2 + j), d = _mm256_loadu_pd(r3 + j);
        __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
        __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
        _mm256_storeu_pd(dst + j * mr, _mm256_permute2f128_pd(ab0, cd0, 0x20));
        _mm256_storeu_pd(dst + (j + 1) * mr, _mm256_permute2f128_pd(ab1, cd1, 0x20));
        _mm256_storeu_pd(dst + (j + 2) * mr, _mm256_permute2f128_pd(ab0, cd0, 0x31));
        _mm256_storeu_pd(dst + (j + 3) * mr, _mm256_permute2f128_pd(ab1, cd1, 0x31));
    }
}
#elif defined(__SSE2__) && !defined(DTCONV_DOUBLE)
#define TRANSPOSE_FOUR 1
static inline __attribute__((always_inline)) void transpose_four(const float *r0, const float *r1, const float *r2,
                                                                 const float *r3, int64_t mr, float *dst) {
    for (int j = 0; j < CHUNK; j += 4) {
        __m128 a = _mm_loadu_ps(r0 + j), b = _mm_loadu_ps(r1 + j), c = _mm_loadu_ps(r2 + j), d = _mm_loadu_ps(r3 + j);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(dst + j * mr, a);
        _mm_storeu_ps(dst + (j + 1) * mr, b);
        _mm_storeu_ps(dst + (j + 2) * mr, c);
        _mm_storeu_ps(dst + (j + 3) * mr, d);
    }
}
#endif

/* src[r] + (offset & step[r]) is what row r is read from: rows outside of the image have step 0 and read zeros. */
static inline __attribute__((always_inline)) void transpose_chunk(const real *const *src, const int64_t *step,
                                                                  int64_t offset, int64_t mr, real *dst) {
#ifdef TRANSPOSE_FOUR
    if (mr >= 4) {
        for (int64_t r = 0; r < mr; r += 4) {
            const int64_t s = r + 4 <= mr ? r : mr - 4;
            transpose_four(src[s] + (offset & step[s]), src[s + 1] + (offset & step[s + 1]),
                           src[s + 2] + (offset & step[s + 2]), src[s + 3] + (offset & step[s + 3]), mr, dst + s);
        }
        return;
    }
#endif
    for (int64_t r = 0; r < mr; r++) {
        const real *row = src[r] + (offset & step[r]);
        for (int64_t j = 0; j < CHUNK; j++) dst[j * mr + r] = row[j];
    }
}

#endif

/* Transposition of `width` neighbouring elements of mr rows into a panel: dst[j * mr + r] = at[r][j].
 *
 * AVX-512, up to 16 rows: four columns of rows i, 4 + i, 8 + i, 12 + i are loaded into the four lanes of vector i; a 4
 * x 4 transposition inside the lanes then leaves each column of the panel in one vector, which is stored whole.
 * Elsewhere four rows at a time are transposed in 4 x 4 blocks; the last four rows may overlap the four before.
 */
#ifndef DTCONV_TRANSPOSE_H
#define DTCONV_TRANSPOSE_H

#include "dtconv_inline.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Plain C, for what is left over. */
INLINE void transpose_rest(const real *const *at, int64_t from, int64_t width, int64_t mr, real *dst) {
    for (int64_t j = from; j < width; j++)
        for (int64_t r = 0; r < mr; r++) dst[j * mr + r] = at[r][j];
}

#if defined(__AVX512F__) && !defined(DTCONV_DOUBLE)

/* Column j of the panel from columns[j]; all lanes are stored, those past mr are written over by the next column. */
INLINE void transpose_columns(const float *const *at, int64_t j, __mmask8 load, int64_t mr, __m512 *columns) {
    __m512 x[4];
    for (int i = 0; i < 4; i++) {
        x[i] = i < mr ? _mm512_castps128_ps512(_mm_maskz_loadu_ps(load, at[i] + j)) : _mm512_setzero_ps();
        if (4 + i < mr) x[i] = _mm512_mask_broadcast_f32x4(x[i], 0x00f0, _mm_maskz_loadu_ps(load, at[4 + i] + j));
        if (8 + i < mr) x[i] = _mm512_mask_broadcast_f32x4(x[i], 0x0f00, _mm_maskz_loadu_ps(load, at[8 + i] + j));
        if (12 + i < mr) x[i] = _mm512_mask_broadcast_f32x4(x[i], 0xf000, _mm_maskz_loadu_ps(load, at[12 + i] + j));
    }
    const __m512d ab0 = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1])),
                  ab1 = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1])),
                  cd0 = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3])),
                  cd1 = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    columns[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab0, cd0));
    columns[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab0, cd0));
    columns[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab1, cd1));
    columns[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab1, cd1));
}

INLINE void transpose(const float *const *at, int64_t width, int64_t mr, float *dst) {
    if (mr > 16) {
        transpose_rest(at, 0, width, mr, dst);
        return;
    }
    const __mmask16 lanes = (__mmask16)((1u << mr) - 1);
    __m512 columns[4];
    int64_t j = 0;
    for (; j + 4 < width; j += 4) { /* at least one column follows, which overwrites what is stored too much */
        transpose_columns(at, j, 0xf, mr, columns);
        for (int i = 0; i < 4; i++) _mm512_storeu_ps(dst + (j + i) * mr, columns[i]);
    }
    const int64_t rest = width - j; /* 1 to 4 */
    transpose_columns(at, j, (__mmask8)((1u << rest) - 1), mr, columns);
    _mm512_mask_storeu_ps(dst + j * mr, lanes, columns[0]);
    if (rest > 1) _mm512_mask_storeu_ps(dst + (j + 1) * mr, lanes, columns[1]);
    if (rest > 2) _mm512_mask_storeu_ps(dst + (j + 2) * mr, lanes, columns[2]);
    if (rest > 3) _mm512_mask_storeu_ps(dst + (j + 3) * mr, lanes, columns[3]);
}

#elif (defined(__AVX2__) && defined(DTCONV_DOUBLE)) || (defined(__SSE2__) && !defined(DTCONV_DOUBLE))

/* Columns j .. j + 3 of four rows. */
INLINE void transpose_four(const real *const *at, int64_t j, int64_t mr, real *dst) {
#ifdef DTCONV_DOUBLE
    const __m256d a = _mm256_loadu_pd(at[0] + j), b = _mm256_loadu_pd(at[1] + j), c = _mm256_loadu_pd(at[2] + j),
                  d = _mm256_loadu_pd(at[3] + j);
    const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
    const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(dst, _mm256_permute2f128_pd(ab0, cd0, 0x20));
    _mm256_storeu_pd(dst + mr, _mm256_permute2f128_pd(ab1, cd1, 0x20));
    _mm256_storeu_pd(dst + 2 * mr, _mm256_permute2f128_pd(ab0, cd0, 0x31));
    _mm256_storeu_pd(dst + 3 * mr, _mm256_permute2f128_pd(ab1, cd1, 0x31));
#else
    __m128 a = _mm_loadu_ps(at[0] + j), b = _mm_loadu_ps(at[1] + j), c = _mm_loadu_ps(at[2] + j),
           d = _mm_loadu_ps(at[3] + j);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(dst, a);
    _mm_storeu_ps(dst + mr, b);
    _mm_storeu_ps(dst + 2 * mr, c);
    _mm_storeu_ps(dst + 3 * mr, d);
#endif
}

INLINE void transpose(const real *const *at, int64_t width, int64_t mr, real *dst) {
    int64_t j = 0;
    for (; mr >= 4 && j + 4 <= width; j += 4)
        for (int64_t r = 0; r < mr; r += 4) {
            const int64_t s = r + 4 <= mr ? r : mr - 4;
            transpose_four(at + s, j, mr, dst + j * mr + s);
        }
    transpose_rest(at, j, width, mr, dst);
}

#else

INLINE void transpose(const real *const *at, int64_t width, int64_t mr, real *dst) {
    transpose_rest(at, 0, width, mr, dst);
}

#endif
#endif

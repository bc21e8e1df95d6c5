/* Rearrangements of bfloat16 elements that products of pairs want; see dtconv_ukr.h for the panels. */
#ifndef DTCONV_BFLOAT16_PACK_H
#define DTCONV_BFLOAT16_PACK_H

#include "dtconv_vector.h"
#include "../ukr/bfloat16_kernel.h"

/* y = bfloat16(x), n numbers. */
void HT(narrow_row)(int64_t n, const real *x, half *y);

/* y = bfloat16(act((x - mean) * scale + beta)), an operand of products: `rows` rows of n channels, ld and ldy elements
 * apart; beta NULL: 0. */
void HT(normalize_rows)(int64_t rows, int64_t n, const half *x, int64_t ld, const real *mean, const real *scale,
                        const real *beta, int relu, half *y, int64_t ldy);

/* high = bfloat16(x), low = bfloat16(x - high), NaN where high is not finite; n numbers; low NULL: not wanted. */
void HT(split_row)(int64_t n, const real *x, half *high, half *low);

/* The same of act((x - mean) * scale + beta), a row. */
void HT(normalize_split_row)(int64_t n, const real *x, const real *mean, const real *scale, const real *beta, int relu,
                             half *high, half *low);

#if defined(__AVX512BW__)
/* The elements of both halves in turns: a row of pairs from the first and the second elements, one after the other. */
INLINE __m512i in_turns(__m512i both) {
    const __m512i turns = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(turns, both);
}
#endif

/* A row of pairs of a panel: dst[2 j] = first[j], dst[2 j + 1] = second[j], j < n, and 0 from n to nr. */
void HT(pack_pairs)(int64_t n, int64_t nr, const half *first, const half *second, half *dst);

enum { SQUARE = 32 };

/* 32 columns of the transpose: dst[j * ld + i] = rows[i][j], i < 32, j < n; n at most 32.  Rows have 32 readable
 * elements. */
void HT(transpose_square)(int64_t n, const half *const *rows, half *dst, int64_t ld);

/* to = sums, or where `add` is set, to += sums; rows at distances ld and ldt. */
void HT(put_sums)(int64_t m, int64_t n, const float *sums, int64_t ld, float *to, int64_t ldt, int add);

/* The same with rows of sums as columns of `to`. */
void HT(put_turned)(int64_t m, int64_t n, const float *sums, int64_t ld, float *to, int64_t ldt, int add);

/* Columns of a panel from the rows of its transpose, which are pairs already: with rows[j] of 32 elements, j < 16,
 * dst[(p / 2) * 2 * nr + 2 * j + p % 2] = rows[j][p], p < 32. */
void HT(pack_transposed)(const half *const *rows, int64_t nr, half *dst);

#endif

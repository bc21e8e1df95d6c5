/* Sums over processes: in memory that they share, or of numbers that have travelled as bfloat16, the upper half of a
 * float32 (8 bits of exponent, 8 of precision).
 *
 * Rounding is to nearest, ties to even; NaN stays NaN.  No include guard: see dtconv_both.h.
 */
#ifndef real
#include "dtconv_real.h"
#endif

/* y = bfloat16(x), n numbers. */
dtconv_status DT(to_bfloat16)(int64_t n, const real *x, uint16_t *y);

/* y = x. */
dtconv_status DT(from_bfloat16)(int64_t n, const uint16_t *x, real *y);

/* The same of rows of c numbers, ldx and ldy apart. */
dtconv_status DT(narrow_rows)(int64_t rows, int64_t c, const real *x, int64_t ldx, uint16_t *y, int64_t ldy);
dtconv_status DT(widen_rows)(int64_t rows, int64_t c, const uint16_t *x, int64_t ldx, real *y, int64_t ldy);

/* y[i] = bfloat16(sum over p of x[p][i]), x (count, n); sums in float32, in the order of p. */
dtconv_status DT(sum_bfloat16)(int64_t count, int64_t n, const uint16_t *x, uint16_t *y);

/* y[i] = sum over p of x[p * ld + i], p in [0, count); in the order of p.  y may be one of the rows. */
dtconv_status DT(sum_rows)(int64_t count, int64_t n, const real *x, int64_t ld, real *y);

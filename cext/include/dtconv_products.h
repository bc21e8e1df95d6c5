/* Products for networks of tokens: many at a time, dense layers that finish their result in cache, rows of a table.
 * No include guard: see dtconv_both.h.
 */
#ifndef real
#include "dtconv_real.h"
#endif

/* C[o] = sum over i of A[o, i] B[o, i] (+ C[o] where `accumulate`), for `outer` matrices C (m x n) of `inner` products
 * each.  offsets (outer, 1 + 2 inner), in elements: of C[o], then of A[o, i] and B[o, i].  Element (i, j) of A at i *
 * ars + j * acs, of B likewise; rows of C are ldc apart, and matrices C do not overlap.  levels: as below, of each
 * product. */
size_t DT(gemm_batched_workspace)(int64_t outer, int64_t m, int64_t n, int64_t k, int levels);
dtconv_status DT(gemm_batched)(int64_t outer, int64_t inner, const int64_t *offsets, int64_t m, int64_t n, int64_t k,
                               const real *a, int64_t ars, int64_t acs, const real *b, int64_t brs, int64_t bcs,
                               real *c, int64_t ldc, int accumulate, int levels, void *workspace, size_t bytes);

/* y = f(z), z = x w + bias + residual: x (m, k), w (k, n), y (m, n) with rows ldx, n, ldy apart; bias (n) and residual
 * (m, n; rows ldr apart) may be NULL, and residual may be y.  kind, p: f, a dtconv_activation with its parameters.
 * z (m, n; rows n apart): NULL, or where z is kept; f is applied to each block while it is in cache.  levels: of
 * Strassen's algorithm (dtconv_strassen.h), 0: the classic product; workspace: of that product. */
dtconv_status DT(dense_forward)(int64_t m, int64_t n, int64_t k, const real *x, int64_t ldx, const real *w,
                                const real *bias, const real *residual, int64_t ldr, int kind, const real *p, real *z,
                                real *y, int64_t ldy, int levels, void *workspace, size_t bytes);

/* dy = dy f'(v), v = y or z as the kind says (NULL for a linear f), and db (n; NULL: not wanted) = or += the sums of
 * its columns, in one sweep. */
size_t DT(dense_bias_backward_workspace)(int64_t m, int64_t n);
dtconv_status DT(dense_bias_backward)(int64_t m, int64_t n, int kind, const real *p, const real *v, int64_t ldv,
                                      real *dy, int64_t lddy, int accumulate, real *db, void *workspace, size_t bytes);

/* y[i] = table[index[i]], rows of `width`; and its transpose, table (rows of it: size) = or += the sum of dy[i] over
 * all i with this index.  Indices are those of rows. */
dtconv_status DT(take_rows)(int64_t count, int64_t width, const int32_t *index, const real *table, real *y);
dtconv_status DT(add_to_rows)(int64_t count, int64_t width, int64_t size, const int32_t *index, const real *dy,
                              int accumulate, real *table);

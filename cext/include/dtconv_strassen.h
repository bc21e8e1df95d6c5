/* GEMM with fewer multiplications: V. Strassen, "Gaussian Elimination is not Optimal", Numerische Mathematik 13, 1969.
 *
 *   C (m x n) = beta * C + alpha * A (m x k) * B (k x n)     as dtconv_gemm; A and B are plain matrices
 *
 * levels: 1 or 2.  A level cuts A, B and C into quarters and takes 7 products of them instead of 8.  The sums of
 * quarters are made while they are packed, and each product is added to the quarters of C as it leaves the registers
 * (J. Huang, T. Smith, G. Henry, R. van de Geijn, "Strassen's Algorithm Reloaded", SC 2016).  Any m, n and k: where
 * they are not even, quarters are filled up with zeros while they are packed.
 *
 * Rounding errors are larger than those of the classic product (docs/how/algorithms.md), and a value that is not finite
 * reaches other elements of C than those whose sums it is in.  Results do not depend on the number of threads.
 */
#ifndef DTCONV_STRASSEN_H
#define DTCONV_STRASSEN_H

#include "dtconv.h"

#define DTCONV_STRASSEN(precision, real)                                                                      \
    /* Bytes of workspace with the threads now set: what is packed, bounded whatever m, n and k are. */       \
    size_t dtconv_##precision##gemm_strassen_workspace(int64_t m, int64_t n, int64_t k, int levels);          \
    dtconv_status dtconv_##precision##gemm_strided_strassen(                                                  \
        int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs, const real *b, int64_t brs, \
        int64_t bcs, real *c, int64_t ldc, double alpha, double beta, int levels, void *workspace, size_t bytes);
DTCONV_STRASSEN(s, float)
DTCONV_STRASSEN(d, double)
#undef DTCONV_STRASSEN

/* By a dtype of dtconv_any.h that is known when it runs. */
#define dtconv_gemm_strassen_workspace(dtype, ...) DTCONV_RUN(dtype, gemm_strassen_workspace, __VA_ARGS__)
#define dtconv_gemm_strided_strassen(dtype, ...) DTCONV_RUN(dtype, gemm_strided_strassen, __VA_ARGS__)

#ifdef DTCONV_REAL_H /* after dtconv_gemm.h */
/* args: A is a_in_place, B a matrix that pack_b_matrix packs, DTCONV_ARGUMENT for others; an epilogue may be there. */
dtconv_status DT(gemm_strassen)(const DT(gemm_args) * args, real alpha, int levels, void *workspace, size_t bytes);
#endif

#endif

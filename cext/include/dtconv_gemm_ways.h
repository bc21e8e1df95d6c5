/* GEMM whose threads the caller divides among the loops, as BLIS does (T. Smith et al.,
 * "Anatomy of High-Performance Many-Threaded Matrix Multiplication", IPDPS 2014).
 *
 *   C = alpha * A * B + beta * C     as dtconv_gemm_strided
 *
 * ways: threads of the loops jc, ic, jr and ir, each 1 or more; their product are the threads.  Those that differ in jc
 * have columns of C and a packed B of their own; of these, those that differ in ic rows of C and a packed A of their
 * own; jr and ir share both.  Each element of C is summed in the same order as by dtconv_gemm_strided, but for thin
 * matrices, for which that takes another way.
 *
 * gemm_set_ways: what other products take, with or without an epilogue, whose threads are as many; NULL: none.  Not
 * while one runs, and workspaces are to be asked for anew.
 */
#ifndef DTCONV_GEMM_WAYS_H
#define DTCONV_GEMM_WAYS_H

#include "dtconv.h"

#define DTCONV_GEMM_IN_WAYS(precision, real)                                                                  \
    void dtconv_##precision##gemm_set_ways(const int *ways);                                                  \
    size_t dtconv_##precision##gemm_workspace_in_ways(int64_t m, int64_t n, int64_t k, const int *ways);      \
    dtconv_status dtconv_##precision##gemm_strided_in_ways(                                                   \
        int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs, const real *b, int64_t brs, \
        int64_t bcs, real *c, int64_t ldc, double alpha, double beta, const int *ways, void *workspace, size_t bytes);
DTCONV_GEMM_IN_WAYS(s, float)
DTCONV_GEMM_IN_WAYS(d, double)
#undef DTCONV_GEMM_IN_WAYS

/* By a dtype of dtconv_any.h that is known when it runs. */
#define dtconv_gemm_workspace_in_ways(dtype, ...) DTCONV_RUN(dtype, gemm_workspace_in_ways, __VA_ARGS__)
#define dtconv_gemm_strided_in_ways(dtype, ...) DTCONV_RUN(dtype, gemm_strided_in_ways, __VA_ARGS__)

#endif

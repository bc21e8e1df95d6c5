/* Products of bfloat16 whose sums are long and whose results are small (bfloat16_long.c), and what finishes a product.
 */
#ifndef DTCONV_BFLOAT16_GEMM_LONG_H
#define DTCONV_BFLOAT16_GEMM_LONG_H

#include "bfloat16_matrix.h"

static inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/* C[i : i + m, j : j + n] from sums, whole vectors of them in rows ld apart, with all that follows a sum. */
void DT(gemm_finish)(const dtconv_gemm_mixed_args *g, const real *sums, int64_t ld, int64_t i, int64_t m, int64_t j,
                     int64_t n);

/* Slices that the sum is cut in; 0: it is not long. */
int64_t DT(gemm_slices)(int64_t m, int64_t n, int64_t k);
size_t DT(gemm_long_workspace)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int products, int threads);
void DT(gemm_long)(const DT(ukr_row) * ukr, const dtconv_gemm_mixed_args *g, int threads, void *workspace);

#endif

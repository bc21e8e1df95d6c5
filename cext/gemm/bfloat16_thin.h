/* Products of a large matrix of float32 with a thin one of either type (bfloat16_thin.c). */
#ifndef DTCONV_BFLOAT16_GEMM_THIN_H
#define DTCONV_BFLOAT16_GEMM_THIN_H

#include "bfloat16_long.h"

/* Bytes of workspace; 0 where sizes are such that packing is worth its time. */
size_t DT(gemm_thin_bytes)(int64_t m, int64_t n, int64_t k, int threads);

/* Whether the product was computed: sizes are thin, and the large matrix, B or C, is float32. */
int DT(gemm_thin_of_float)(const dtconv_gemm_mixed_args *g, int threads, void *workspace, size_t bytes);

#endif

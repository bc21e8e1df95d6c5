/* GEMM whose operands are multiplied as bfloat16 and summed in float32.
 *
 *   C (m x n) = act(alpha * A (m x k) * B (k x n) + beta * C + bias)
 *
 * A, B and C each are float32 or bfloat16 in memory; float32 operands are rounded to nearest as they are packed, or
 * split in a high and a low half: then high * high + high * low + low * high stands for a product.
 */
#ifndef DTCONV_GEMM_MIXED_H
#define DTCONV_GEMM_MIXED_H

#include "dtconv.h"

/* Element (i, j) at data[i * rs + j * cs]. */
typedef struct {
    const void *data;
    int64_t rs, cs;
    int bfloat16; /* uint16_t, else float */
    int low;      /* float: what is wanted is the low half, all that rounding takes away, rounded itself */
} dtconv_operand;

typedef struct {
    int64_t m, n, k;
    dtconv_operand a, b;
    void *c; /* rows ldc apart, elements side by side */
    int64_t ldc;
    int c_bfloat16;
    float alpha, beta; /* beta == 0: C is not read */
    const float *bias; /* n elements or NULL */
    dtconv_activation activation;
    float slope;  /* of leaky ReLU */
    int products; /* 1, or 3 where A and B are float32: of their halves, nearly as exact as float32 */
} dtconv_gemm_mixed_args;

/* Bytes of workspace with the threads now set. */
size_t dtconv_gemm_mixed_workspace(int64_t m, int64_t n, int64_t k, int products);

/* The result does not depend on the number of threads.  DTCONV_KERNEL: no micro-kernel in force. */
dtconv_status dtconv_gemm_mixed(const dtconv_gemm_mixed_args *args, void *workspace, size_t bytes);

#endif

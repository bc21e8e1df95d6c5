/* Matrices of float32 or bfloat16 numbers, packed as bfloat16: rows of the left operand, panels of pairs of the right.
 */
#ifndef DTCONV_BFLOAT16_MATRIX_H
#define DTCONV_BFLOAT16_MATRIX_H

#include "dtconv_gemm_mixed.h"
#include "bfloat16_pack.h"

/* Element (i, j), or its low half, whatever its type. */
static inline half matrix_element(const dtconv_operand *a, int64_t i, int64_t j) {
    const int64_t at = i * a->rs + j * a->cs;
    if (a->bfloat16) return ((const half *)a->data)[at];
    const real x = ((const real *)a->data)[at];
    const half high = dtconv_to_bf16(x);
    const real lacking = x - dtconv_from_bf16(high);
    return a->low ? dtconv_to_bf16(lacking) : high;
}

/* Packs columns [j, j + n) of rows [0, k) into a panel of nr columns and depth rows; the rest are zeros. */
void HT(pack_panel)(const dtconv_operand *b, int64_t k, int64_t depth, int64_t j, int64_t n, int64_t nr, half *dst);

/* Packs rows [i, i + m) of columns [0, k) in pieces of 32 columns: element (r, p) at (p / 32 * height + r) * 32 + p %
 * 32; columns from k to the next multiple of 32 are zeros. */
void HT(pack_rows)(const dtconv_operand *a, int64_t i, int64_t m, int64_t k, int64_t height, half *dst);

#endif

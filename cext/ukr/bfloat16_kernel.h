/* The micro-kernels for bfloat16, and `half`, for files that are compiled for images in float32, too: there `elem` is
 * float, and what is packed from it is one bfloat16, or two that together are nearly the float32 (split_row in
 * gemm/bfloat16_pack.h).
 */
#ifndef DTCONV_BFLOAT16_KERNEL_H
#define DTCONV_BFLOAT16_KERNEL_H

#include "dtconv_real.h"

typedef uint16_t half;          /* the bits of a bfloat16 */
#define HT(name) dtconv_h##name /* what is compiled for bfloat16 alone */

#ifdef DTCONV_BFLOAT16
#include "dtconv_ukr.h"
#else
#pragma push_macro("elem")
#pragma push_macro("DT")
#undef elem
#undef DT
#define elem half
#define DT HT
#include "dtconv_ukr.h"
#undef elem
#undef DT
#pragma pop_macro("elem")
#pragma pop_macro("DT")
#endif

/* Products that stand for one of float32: 1, of both operands rounded, or 3, of their high and low halves: all but that
 * of both low ones, which is smaller than the error of the sum. */
enum { PRODUCTS_MOST = 3 };

/* Writes the products of one step, `low_a` and `low_b` elements from high halves to low ones; returns their number. */
static inline int64_t put_step(int products, int64_t a, int64_t b, int64_t low_a, int64_t low_b,
                               dtconv_ukr_step *steps) {
    steps[0] = (dtconv_ukr_step){a, b};
    if (products == 1) return 1;
    steps[1] = (dtconv_ukr_step){a, b + low_b};
    steps[2] = (dtconv_ukr_step){a + low_a, b};
    return PRODUCTS_MOST;
}

#endif

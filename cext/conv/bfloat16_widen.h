/* Rows of bfloat16 numbers that are copied in float32, normalized where that is wanted. */
#ifndef DTCONV_BFLOAT16_WIDEN_H
#define DTCONV_BFLOAT16_WIDEN_H

#include "normalize.h"

/* f NULL: numbers as they are; act: a constant where it is inlined. */
INLINE void widen_row(const DT(conv_normalization) * f, dtconv_activation act, int64_t n, const elem *from, real *dst) {
    const normalizer none = {0};
    int64_t i = 0;
    for (; i + V <= n; i += V)
        store(dst + i, read_vector(from + i, V, f != NULL, f ? normalizer_of(f, i, V) : none, act));
    if (i == n) return;
    if (!f && n >= V) /* with some of the last vector's */
        store(dst + n - V, load_elem(from + n - V));
    else
        store_part(dst + i, n - i, read_vector(from + i, n - i, f != NULL, f ? normalizer_of(f, i, n - i) : none, act));
}

INLINE void widen_normalized(const DT(conv_normalization) * f, int64_t n, const elem *from, real *dst) {
    if (f->activation == DTCONV_RELU)
        widen_row(f, DTCONV_RELU, n, from, dst);
    else
        widen_row(f, DTCONV_LINEAR, n, from, dst);
}

#endif

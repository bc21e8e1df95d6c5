/* backward_weights of pointwise convolutions without groups, as `direct` does it; x may be normalized as it is read. */
#ifndef DTCONV_POINTWISE_WEIGHTS_H
#define DTCONV_POINTWISE_WEIGHTS_H

#include "conv_internal.h"
#include "dtconv_vector.h"

/* Elements from pixel to pixel of a strip of rows, `channels` wide: whole lines, an odd number of them, so that pixels
 * do not fall into the same sets of a cache. */
static inline int64_t dtconv_strip_ld(int64_t channels) {
    const int64_t line = 64 / (int64_t)sizeof(elem);
    return (dtconv_ceil_div(channels, line) | 1) * line;
}

/* Rows of x that are made when they are wanted, some of them at a time: `strip` rows of `pixels` each.  make writes
 * channels [first, last) of rows [row, end) to `to`, pixels `ld` apart; first is a multiple of `unit`.  Threads have
 * `bytes` of their own each, which `begin` prepares. */
typedef struct {
    void (*begin)(const void *context, void *own);
    void (*make)(const void *context, void *own, int64_t row, int64_t end, int64_t first, int64_t last, elem *to,
                 int64_t ld);
    const void *context;
    int64_t rows, pixels, unit;
    size_t bytes;
} DT(made_rows);

/* made: instead of x; NULL: x is there, and may be normalized. */
size_t DT(pointwise_weights_of_rows_workspace)(const dtconv_conv *p, const DT(made_rows) * made);
dtconv_status DT(pointwise_weights_of_rows)(const dtconv_conv *p, const DT(conv_args) * a, const DT(made_rows) * made,
                                            void *workspace, size_t bytes);

size_t DT(pointwise_weights_workspace)(const dtconv_conv *p);

dtconv_status DT(pointwise_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes);

#ifdef DTCONV_BFLOAT16
/* The same by the micro-kernels of float32, which read widened numbers: where those of bfloat16 widen them, too. */
size_t DT(pointwise_weights_in_reals_workspace)(const dtconv_conv *p);
dtconv_status DT(pointwise_weights_in_reals)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                             size_t bytes);
#endif

/* dw = the sum of all slices, of `size` elements each, one after the other.  Run by all threads of a team. */
static inline void dtconv_add_slices(const real *slices, int64_t count, int64_t size, real *dw) {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < size; i++) {
        real sum = slices[i];
        for (int64_t slice = 1; slice < count; slice++) sum += slices[slice * size + i];
        dw[i] = sum;
    }
}

#endif

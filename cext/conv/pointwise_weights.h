/* backward_weights of pointwise convolutions without groups, as `direct` does it; x may be normalized as it is read. */
#ifndef DTCONV_POINTWISE_WEIGHTS_H
#define DTCONV_POINTWISE_WEIGHTS_H

#include "conv_internal.h"
#include "dtconv_vector.h"

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

/* Pointwise convolution of images in bfloat16 by the tiles of float32 (bfloat16_pointwise.c). */
#ifndef DTCONV_POINTWISE_IN_REALS_H
#define DTCONV_POINTWISE_IN_REALS_H

#include "conv_internal.h"

/* Whether that is how the pass is done: where the micro-kernel of bfloat16 widens what it multiplies. */
int DT(in_reals)(const dtconv_conv *p);

/* forward, or backward_data where it is `turned`. */
size_t DT(pointwise_in_reals_workspace)(const dtconv_conv *p, int turned);
dtconv_status DT(pointwise_in_reals)(const dtconv_conv *p, int turned, const DT(conv_args) * a, void *workspace,
                                     size_t bytes);

#endif

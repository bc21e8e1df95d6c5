/* backward_weights as a forward convolution: the roles of batch and channels are exchanged, dy are the filters.
 *
 *   dw[tap, c, co] = sum over (oh, ow, n) of image[c, place of (tap, oh, ow), n] * dy[n, oh, ow, co]
 *
 * which is CONVGEMM of ci images with n channels, filters oh x ow, and kh x kw outputs; a depth likewise.  An algorithm
 * says which pixel of x lies at each place of the image. */
#include "conv_internal.h"

/* The pixel (id, ih, iw) of x, as one number, that lies at a place of the image; -1: a zero. */
typedef int64_t (*source_fn)(const dtconv_conv *p, int64_t place);

/* The forward convolution of one group, but for axes, strides, dilation and padding of the image: the caller's. */
dtconv_conv DT(weights_as_forward_of)(const dtconv_conv *p);

/* q: that convolution.  Workspace: the image of one group, dw of one group, and CONVGEMM's. */
size_t DT(weights_as_forward_workspace)(const dtconv_conv *p, const dtconv_conv *q);
dtconv_status DT(weights_as_forward)(const dtconv_conv *p, const dtconv_conv *q, source_fn source,
                                     const DT(conv_args) * a, void *workspace, size_t bytes);

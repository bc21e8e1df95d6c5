/* EXCHANGED_STRIDES: backward_weights as a forward convolution whose dilation are the strides, and the reverse.
 *
 *   dw[kh, kw, c, co] = sum over (oh, ow, n) of image[c, oh * sh - pad_t + kh * dil_h, ow * sw - pad_l + kw * dil_w, n]
 *                                                * dy[n, oh, ow, co]
 *   image[c, ih, iw, n] = x[n, ih, iw, c]
 *
 * which is CONVGEMM with kernel (oh, ow), strides and dilation exchanged, and x's padding; a depth likewise.  The image
 * is a transposed copy of x of one group, in which taps share pixels.
 */
#include "weights_as_forward.h"

static dtconv_conv exchanged(const dtconv_conv *p) {
    dtconv_conv q = DT(weights_as_forward_of)(p);
    q.id = p->id, q.ih = p->ih, q.iw = p->iw;
    q.sd = p->dil_d, q.sh = p->dil_h, q.sw = p->dil_w;
    q.dil_d = p->sd, q.dil_h = p->sh, q.dil_w = p->sw;
    q.pad_f = p->pad_f, q.pad_t = p->pad_t, q.pad_l = p->pad_l;
    return q;
}

static int64_t same(const dtconv_conv *p, int64_t place) {
    (void)p;
    return place;
}

size_t DT(conv_exchanged_strides_backward_weights_workspace)(const dtconv_conv *p) {
    const dtconv_conv q = exchanged(p);
    return DT(weights_as_forward_workspace)(p, &q);
}

dtconv_status DT(conv_exchanged_strides_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a,
                                                          void *workspace, size_t bytes) {
    const dtconv_conv q = exchanged(p);
    return DT(weights_as_forward)(p, &q, same, a, workspace, bytes);
}

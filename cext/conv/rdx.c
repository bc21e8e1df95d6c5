/* rdx (REINDEX): backward_weights as a forward convolution of an image in which the pixels of each tap lie together.
 *
 *   dw[kh, kw, c, co] = sum over (oh, ow, n) of image[c, kh * OH + oh, kw * OW + ow, n] * dy[n, oh, ow, co]
 *   image[c, kh * OH + oh, kw * OW + ow, n] = x[n, oh * sh - pad_t + kh * dil_h, ow * sw - pad_l + kw * dil_w, c]
 *
 * which is CONVGEMM with kernel (OH, OW) and strides (OH, OW), without dilation and padding; a depth likewise.
 * Method: Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 4.  The image is as large as the matrix of
 * im2col, of one group; `exchanged_strides` needs a copy of x only.
 */
#include "weights_as_forward.h"

static dtconv_conv gathered(const dtconv_conv *p) {
    dtconv_conv q = DT(weights_as_forward_of)(p);
    q.id = p->kd * p->od, q.ih = p->kh * p->oh, q.iw = p->kw * p->ow;
    q.sd = p->od, q.sh = p->oh, q.sw = p->ow;
    q.dil_d = q.dil_h = q.dil_w = 1;
    return q;
}

/* The coordinate in x of coordinate `at` of the image, tap by tap; -1: it lies in the padding. */
static int64_t along(int64_t at, int64_t out, int64_t stride, int64_t dilation, int64_t before, int64_t extent) {
    const int64_t i = at % out * stride - before + at / out * dilation;
    return i < extent ? i : -1;
}

static int64_t tapped(const dtconv_conv *p, int64_t place) {
    const int64_t wide = p->kw * p->ow, high = p->kh * p->oh;
    const int64_t iw = along(place % wide, p->ow, p->sw, p->dil_w, p->pad_l, p->iw);
    const int64_t ih = along(place / wide % high, p->oh, p->sh, p->dil_h, p->pad_t, p->ih);
    const int64_t id = along(place / wide / high, p->od, p->sd, p->dil_d, p->pad_f, p->id);
    return iw < 0 || ih < 0 || id < 0 ? -1 : (id * p->ih + ih) * p->iw + iw;
}

size_t DT(conv_rdx_backward_weights_workspace)(const dtconv_conv *p) {
    const dtconv_conv q = gathered(p);
    return DT(weights_as_forward_workspace)(p, &q);
}

dtconv_status DT(conv_rdx_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                            size_t bytes) {
    const dtconv_conv q = gathered(p);
    return DT(weights_as_forward)(p, &q, tapped, a, workspace, bytes);
}

/* REINDEX: backward_weights as a forward convolution with the roles of batch and channels exchanged.
 *
 *   dw[kh, kw, c, co] = sum over (oh, ow, n) of xt[c, oh * sh - pad_t + kh * dil_h, ow * sw - pad_l + kw * dil_w, n]
 *                                                * dy[n, oh, ow, co]
 *
 * which is CONVGEMM with ci images of n channels, filters oh x ow, strides and dilation exchanged, and kh x kw outputs;
 * a depth likewise.
 * Method: Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 4: the re-indexed copy xt of x costs its size
 * in memory, the product then needs no more than CONVGEMM.  dy is read where it lies, in the order (oh, ow, n).
 */
#include "conv_internal.h"

/* dy of one group as the right operand: row (oh, ow, n). */
typedef struct {
    const real *dy;
    int64_t n, image, ldy; /* images, pixels of one */
} filters;

static void pack_filters(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst) {
    const filters *f = context;
    for (int64_t c = 0; c < n; c += nr, dst += k * nr) {
        const int64_t used = MIN(nr, n - c);
        int64_t image = p % f->n, pixel = p / f->n;
        for (int64_t row = 0; row < k; row++) {
            const real *src = f->dy + (image * f->image + pixel) * f->ldy + j + c;
            for (int64_t i = 0; i < used; i++) dst[row * nr + i] = src[i];
            for (int64_t i = used; i < nr; i++) dst[row * nr + i] = 0;
            if (++image == f->n) image = 0, pixel++;
        }
    }
}

static dtconv_conv exchanged(const dtconv_conv *p) {
    dtconv_conv q = {.n = p->ci / p->groups,
                     .ih = p->ih,
                     .iw = p->iw,
                     .ci = p->n,
                     .oh = p->kh,
                     .ow = p->kw,
                     .co = p->co / p->groups,
                     .kh = p->oh,
                     .kw = p->ow,
                     .sh = p->dil_h,
                     .sw = p->dil_w,
                     .dil_h = p->sh,
                     .dil_w = p->sw,
                     .pad_t = p->pad_t,
                     .pad_l = p->pad_l,
                     .groups = 1,
                     .ldx = p->n,
                     .id = p->id,
                     .od = p->kd,
                     .kd = p->od,
                     .sd = p->dil_d,
                     .dil_d = p->sd,
                     .pad_f = p->pad_f};
    q.ldy = q.co;
    return q;
}

/* xt[c, pixel, n] = x[n, pixel, c] for the channels of one group. */
static void reindex(const dtconv_conv *p, const real *x, real *xt) {
    const int64_t image = p->id * p->ih * p->iw, ci = p->ci / p->groups;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static)
    for (int64_t pixel = 0; pixel < image; pixel++)
        for (int64_t c = 0; c < ci; c++)
            for (int64_t n = 0; n < p->n; n++) xt[(c * image + pixel) * p->n + n] = x[(n * image + pixel) * p->ldx + c];
}

/* dw[tap, c, co] = dwt[c, tap, co]; rows of co elements. */
static void restore(const dtconv_conv *p, const real *dwt, real *dw) {
    const int64_t taps = dtconv_taps(p), ci = p->ci / p->groups, co = p->co / p->groups;
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t c = 0; c < ci; c++)
            memcpy(dw + (tap * ci + c) * p->co, dwt + (c * taps + tap) * co, (size_t)co * sizeof(real));
}

static size_t xt_bytes(const dtconv_conv *p) {
    return dtconv_round((size_t)(p->n * p->id * p->ih * p->iw * (p->ci / p->groups)) * sizeof(real));
}

static size_t dwt_bytes(const dtconv_conv *p) {
    return dtconv_round((size_t)(dtconv_columns(p) * (p->co / p->groups)) * sizeof(real));
}

size_t DT(conv_reindex_backward_weights_workspace)(const dtconv_conv *p) {
    return xt_bytes(p) + dwt_bytes(p) + DT(gemm_workspace)(dtconv_columns(p), p->co / p->groups, dtconv_rows(p));
}

dtconv_status DT(conv_reindex_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                size_t bytes) {
    if (bytes < DT(conv_reindex_backward_weights_workspace)(p)) return DTCONV_WORKSPACE;
    const int64_t ci = p->ci / p->groups, co = p->co / p->groups;
    const size_t used = xt_bytes(p) + dwt_bytes(p);
    real *xt = workspace, *dwt = (real *)((char *)workspace + xt_bytes(p));
    const dtconv_conv q = exchanged(p);
    for (int64_t group = 0; group < p->groups; group++) {
        reindex(p, a->x + group * ci, xt);
        const DT(image_matrix) image = DT(image_matrix_of)(&q, xt, 0);
        const filters dy = {a->y + group * co, p->n, p->od * p->oh * p->ow, p->ldy};
        const DT(gemm_args) gemm = {.m = dtconv_rows(&q),
                                    .n = co,
                                    .k = dtconv_columns(&q),
                                    .pack_a = DT(pack_image),
                                    .a = &image,
                                    .pack_b = pack_filters,
                                    .b = &dy,
                                    .c = dwt,
                                    .ldc = co};
        const dtconv_status status = DT(gemm)(&gemm, (char *)workspace + used, bytes - used);
        if (status) return status;
        restore(p, dwt, a->w + group * co);
    }
    return DTCONV_OK;
}

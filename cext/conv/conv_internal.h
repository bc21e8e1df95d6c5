/* What the convolution algorithms share: the im2col matrix that is never built, its packing, col2im, the epilogue. */
#ifndef DTCONV_CONV_INTERNAL_H
#define DTCONV_CONV_INTERNAL_H

#include <string.h>

#include "dtconv_limits.h"
#include "dtconv_real.h"
/* these need `real` */
#include "dtconv_conv.h"
#include "dtconv_gemm.h"
#include "dtconv_thread_id.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The im2col matrix of one group of channels: rows (n, od, oh, ow), columns (kd, kh, kw, c). */
typedef struct {
    const dtconv_conv *p;
    const real *x; /* first channel of the group */
    int64_t ci;    /* channels of the group */
    int64_t run;   /* columns that lie side by side in x: ci, or kw * ci where a row of taps does */
    int64_t first; /* its row 0 is this output pixel */
} DT(image_matrix);

DT(image_matrix) DT(image_matrix_of)(const dtconv_conv *p, const real *x, int64_t group);

/* Packing of it as the left operand A of a GEMM (pack_a_fn). */
void DT(pack_image)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst);

/* Packing of it as the right operand B (pack_b_fn), and, as the layout is the same, of its transpose as A:
 * element (pixel, column) of a panel of `width` columns at pixel * width + column. */
void DT(pack_image_columns)(const void *context, int64_t pixel, int64_t pixels, int64_t j, int64_t n, int64_t width,
                            real *dst);
/* The same as pack_a_fn: rows of the transpose are columns of the matrix. */
void DT(pack_image_trans)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst);

/* Writes rows [first, last) of the matrix to dst (k columns each), in parallel. */
void DT(im2col)(const DT(image_matrix) * a, int64_t first, int64_t last, real *dst);

/* Adds rows [first, last) of a matrix of im2col's shape to the pixels of dx they came from, in parallel over the rows
 * of dx: each element of dx is summed in the same order on any number of threads. */
void DT(col2im)(const dtconv_conv *p, const real *matrix, int64_t first, int64_t last, int64_t group, real *dx);

/* dx = 0, in parallel. */
void DT(clear_dx)(const dtconv_conv *p, real *dx);

/* Bias, scale, residual and activation as a GEMM's epilogue. */
typedef struct {
    const real *bias;         /* of the GEMM's first column, or NULL */
    const real *scale, *beta; /* the same, both of them */
    dtconv_activation activation;
    real alpha;
    const elem *residual; /* of the GEMM's first row and column, or NULL; not C itself */
    int64_t ldr;
} DT(bias_activation);
void DT(bias_activation_epilogue)(const void *context, int64_t i, int64_t m, int64_t j, int64_t n, elem *c,
                                  int64_t ldc);

/* x = act(x), of `count` numbers. */
void RT(activate_numbers)(int64_t count, dtconv_activation activation, real alpha, real *x);

/* The GEMM of a forward pass for one group: everything but A. */
dtconv_status DT(forward_gemm)(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, DT(pack_a_fn) pack_a,
                               const void *context, void *workspace, size_t bytes);

/* Rows [first, last) of dy * w^T for one group, into `product` (k columns), or into dx itself where that is NULL
 * (pointwise convolutions). */
dtconv_status DT(product_rows)(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, int64_t first,
                               int64_t last, real *product, void *workspace, size_t bytes);

/* Whether coordinates along an axis fit into 32 bits: of pixels with the padding, and of the taps of the last window.
 */
static inline int dtconv_axis_fits(int64_t extent, int64_t before, int64_t out, int64_t stride, int64_t taps,
                                   int64_t dilation) {
    return DTCONV_ARE_SIZES(1, extent, out, stride, taps, dilation) && DTCONV_ARE_SIZES(0, before) &&
           extent + before + stride <= DTCONV_LARGEST &&
           (out - 1) * stride + (taps - 1) * dilation + stride <= DTCONV_LARGEST;
}

/* Whether the sizes are those of a convolution, within the limits of dtconv_limits.h: groups that divide the channels,
 * pixels that do not overlap. */
static inline int dtconv_fits(const dtconv_conv *p) {
    return dtconv_axis_fits(p->id, p->pad_f, p->od, p->sd, p->kd, p->dil_d) &&
           dtconv_axis_fits(p->ih, p->pad_t, p->oh, p->sh, p->kh, p->dil_h) &&
           dtconv_axis_fits(p->iw, p->pad_l, p->ow, p->sw, p->kw, p->dil_w) &&
           DTCONV_ARE_SIZES(1, p->n, p->ci, p->co, p->groups) && p->ci % p->groups == 0 && p->co % p->groups == 0 &&
           p->ldx >= p->ci && p->ldy >= p->co &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->n, p->id, p->ih, p->iw, p->ldx) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->n, p->od, p->oh, p->ow, p->ldy) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->kd, p->kh, p->kw, p->ci / p->groups, p->co) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->n, p->od, p->oh, p->ow, p->kd, p->kh, p->kw, p->ci) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_PRODUCTS, p->n, p->od, p->oh, p->ow, p->kd, p->kh, p->kw, p->ci / p->groups,
                             p->co);
}

/* One tap, stride 1, no padding: the image is the matrix. */
static inline int dtconv_is_pointwise(const dtconv_conv *p) {
    return p->kh == 1 && p->kw == 1 && p->sh == 1 && p->sw == 1 && p->oh == p->ih && p->ow == p->iw && p->pad_t == 0 &&
           p->pad_l == 0 && p->kd == 1 && p->sd == 1 && p->od == p->id && p->pad_f == 0;
}

/* Whether there is a third axis that is more than one plane. */
static inline int dtconv_is_deep(const dtconv_conv *p) { return p->id > 1 || p->od > 1 || p->kd > 1 || p->pad_f > 0; }

static inline int64_t dtconv_rows(const dtconv_conv *p) { return p->n * p->od * p->oh * p->ow; }
static inline int64_t dtconv_taps(const dtconv_conv *p) { return p->kd * p->kh * p->kw; }
static inline int64_t dtconv_columns(const dtconv_conv *p) { return dtconv_taps(p) * (p->ci / p->groups); }
static inline int dtconv_threads_of(const dtconv_conv *p) { /* worth starting for a pass */
    return dtconv_threads_for(dtconv_rows(p) * dtconv_columns(p) * p->co);
}
static inline size_t dtconv_round(size_t bytes) { return (bytes + 63) / 64 * 64; }
static inline int64_t dtconv_ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
static inline int64_t dtconv_round_to(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }
static inline int64_t dtconv_line(int64_t elements) { return dtconv_round_to(elements, 64 / (int64_t)sizeof(elem)); }

/* Loads channels [first, first + channels) of pixels ahead of their use: the jumps from row to row of an image defeat
 * the processor's own prefetching. */
static inline void dtconv_prefetch(const elem *const *pixels, int64_t count, int64_t first, int64_t channels) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < channels; c += 64 / (int64_t)sizeof(elem)) __builtin_prefetch(pixels[i] + first + c);
}

#endif

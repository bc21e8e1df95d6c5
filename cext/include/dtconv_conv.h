/* Convolution: images NHWC, filters HWIO.
 *
 *   y[n, oh, ow, co] = sum over (kh, kw, c) of x[n, oh * sh - pad_t + kh * dil_h, ow * sw - pad_l + kw * dil_w, c]
 *                                              * w[kh, kw, c, co]                      (x is 0 outside of the image)
 *
 * Images of three axes (volumes) are NDHWC, their filters DHWIO: a depth od reads the planes od * sd - pad_f + kd *
 * dil_d.  With two axes depths are of 1, with one axis (signals) heights, too.
 *
 * With groups, output channel co of group g = co / (co / groups) reads the input channels of group g only; w is then
 * (kd x) kh x kw x (ci / groups) x co.
 *
 * The matrix of im2col, which most algorithms read without building it, has a row for each output pixel (n, od, oh, ow)
 * and a column for each (kd, kh, kw, c): m = n * od * oh * ow, k = kd * kh * kw * ci / groups.
 *
 * To add an algorithm: a file of its own in cext/conv, a line per pass in DTCONV_CONV_PASSES, a row in
 * pydtconv/conv/algorithms.py.
 *
 * No include guard around the second half: see dtconv_both.h.
 */
#ifndef DTCONV_CONV_H
#define DTCONV_CONV_H

#include "dtconv_limits.h"

/* Sizes are within the limits of dtconv_limits.h: those along an axis, pixels with their padding and a stride beyond
 * them, elements of images, filters and im2col's matrix, products. */
typedef struct {
    int64_t n, ih, iw, ci;                /* x and dx */
    int64_t oh, ow, co;                   /* y and dy */
    int64_t kh, kw, sh, sw, dil_h, dil_w; /* filters, strides, dilation */
    int64_t pad_t, pad_l;                 /* padding at the top and the left; the rest follows from oh and ow */
    int64_t groups;                       /* divides ci and co */
    int64_t ldx, ldy;                     /* distance of pixels of x and dx, of y and dy */
    int64_t id, od, kd, sd, dil_d, pad_f; /* depth: 1, but for pad_f (the padding in front), where there is none */
    int64_t basis_h, basis_w; /* points of the transforms of fft, vertically and horizontally; 0: it chooses */
} dtconv_conv;

/* The passes of each algorithm: X(algorithm, pass). */
#define DTCONV_CONV_PASSES(X)              \
    X(im2col, forward)                     \
    X(im2col, backward_data)               \
    X(im2col, backward_weights)            \
    X(convgemm, forward)                   \
    X(deconvgemm, backward_data)           \
    X(rdx, backward_weights)               \
    X(exchanged_strides, backward_weights) \
    X(convgemm_trans, backward_weights)    \
    X(depthwise, forward)                  \
    X(depthwise, backward_data)            \
    X(depthwise, backward_weights)         \
    X(winograd, forward)                   \
    X(winograd, backward_data)             \
    X(winograd, backward_weights)          \
    X(winograd_large, forward)             \
    X(winograd_large, backward_data)       \
    X(winograd_large, backward_weights)    \
    X(fft, forward)                        \
    X(fft, backward_data)                  \
    X(fft, backward_weights)               \
    X(fft_overlap_add, forward)            \
    X(fft_overlap_add, backward_data)      \
    X(fft_overlap_add, backward_weights)   \
    X(direct, forward)                     \
    X(direct, backward_data)               \
    X(direct, backward_weights)            \
    X(strassen, forward)                   \
    X(strassen, backward_data)             \
    X(strassen, backward_weights)

/* Those that there are for float32 alone: by products of bfloat16, of operands that are rounded or split in two. */
#define DTCONV_CONV_FLOAT32_PASSES(X) \
    X(direct_bf16, forward)           \
    X(direct_bf16, backward_data)     \
    X(direct_bf16, backward_weights)  \
    X(direct_bf16x3, forward)         \
    X(direct_bf16x3, backward_data)   \
    X(direct_bf16x3, backward_weights)

/* Those that there are for images in bfloat16 (direct: bfloat16_direct.c). */
#define DTCONV_CONV_BFLOAT16_PASSES(X)   \
    X(depthwise, forward)                \
    X(depthwise, backward_data)          \
    X(depthwise, backward_weights)       \
    X(winograd, forward)                 \
    X(winograd, backward_data)           \
    X(winograd, backward_weights)        \
    X(winograd_bf16, forward)            \
    X(winograd_bf16, backward_data)      \
    X(winograd_bf16, backward_weights)   \
    X(fft, forward)                      \
    X(fft, backward_data)                \
    X(fft, backward_weights)             \
    X(fft_overlap_add, forward)          \
    X(fft_overlap_add, backward_data)    \
    X(fft_overlap_add, backward_weights) \
    X(direct, forward)                   \
    X(direct, backward_data)             \
    X(direct, backward_weights)

/* A pass of an algorithm in one precision; args is a DT(conv_args) of that precision (see below).  run answers
 * DTCONV_ARGUMENT for other sizes and for vectors of which some are missing; workspace: 0 then. */
typedef struct {
    const char *algorithm, *pass;
    dtconv_status (*run)(const dtconv_conv *p, const void *args, void *workspace, size_t bytes);
    size_t (*workspace)(const dtconv_conv *p); /* bytes that run wants with the threads now set */
} dtconv_conv_entry;

#endif

/* How x is read: act((x - mean) * scale + beta), each ci elements; mean NULL: as it is; beta NULL: 0. */
typedef struct {
    const real *mean, *scale, *beta;
    dtconv_activation activation; /* linear, ReLU or, where the algorithm can, ReLU6, SiLU or hard SiLU */
} DT(conv_normalization);

/* What backward of a batch normalization begins with, where dx is the gradient of its output y = act(z),
 * z = (x - mean) * scale + beta: per channel the sums over all pixels of g = dx * act'(z), to `sum`, and of
 * g * (x - mean), to `sum_x`.  x has dx's shape, its pixels are ldx apart; vectors have ci elements; sum NULL: not
 * wanted; beta NULL: 0.  bypass, where the algorithm can: dx is the gradient of x instead, and scale * g is written or
 * added to it; what else it consists of follows from the sums, see DT(batchnorm_backward_means). */
typedef struct {
    const elem *x;
    int64_t ldx;
    const real *mean, *scale, *beta;
    dtconv_activation activation; /* linear, ReLU, ReLU6, SiLU or hard SiLU */
    real *sum, *sum_x;
    int bypass;
} DT(conv_reductions);

/* Arrays of a pass.  forward reads x and w and writes y; backward_data reads y (dy) and w and writes x (dx);
 * backward_weights reads x and y (dy) and writes w (dw). */
typedef struct {
    elem *x, *y;
    real *w;
    const real *bias;             /* forward: added to y; co elements or NULL */
    const real *scale, *beta;     /* forward, of float32 and float64: y + bias becomes (y + bias) * scale + beta;
                                     co elements each, or NULL, both of them; residual is not y then */
    dtconv_activation activation; /* forward: applied to y + bias + residual */
    real alpha;
    int accumulate;                  /* backward_data: add to dx instead of overwriting it */
    DT(conv_normalization) prologue; /* of x in forward and backward_weights, where the algorithm can */
    real *mean, *variance; /* forward, where the algorithm gathers them: of y's channels (co each); NULL: not wanted */
    DT(conv_reductions) reductions; /* backward_data, where the algorithm can */
    const elem *residual; /* forward: an image of y's shape that is added to it; y itself (pixels ldy apart) or NULL */
    int64_t ldr;          /* distance of its pixels */
    real *spectra; /* fft with a basis: the transform of x, DT(fft_spectra_size) elements, which forward leaves here and
                      backward_weights reads; NULL: each makes its own */
    real *dy_spectra; /* the transform of dy, DT(fft_dy_spectra_size) elements, which backward_weights leaves here and
                         backward_data reads */
} DT(conv_args);

/* Expected seconds of a pass of fft (0: forward, 1: backward_data, 2: backward_weights; 3 to 5: of fft_overlap_add) on
 * one thread; with p's basis where it has one, else the fastest, which is put there.  0: fft cannot do it. */
double DT(fft_basis)(dtconv_conv *p, int pass);

/* Elements of the transform of x in forward and backward_weights (passes as above); 0: it cannot be kept.  gain: the
 * seconds that both passes are expected to be faster by on one thread where it is. */
int64_t DT(fft_spectra_size)(const dtconv_conv *p, int pass, double *gain);

/* The same of the transform of dy in backward_data and backward_weights, with the numbers of their passes: 0, too,
 * where they cut dy into other tiles. */
int64_t DT(fft_dy_spectra_size)(const dtconv_conv *p, int data, int weights, double *gain);

/* Whether a pass of `direct` (0: forward, 1: backward_data, 2: backward_weights) has its vectors along the rows of taps
 * of what it reads, not along the few channels that it writes, or of backward_weights along the few filters. */
int DT(direct_is_along_taps)(const dtconv_conv *p, int pass);

/* Whether forward of `direct` reads filters where they lie: pixels are few, and rows of filters whole vectors. */
int DT(direct_reads_in_place)(const dtconv_conv *p);

/* The entry of an algorithm's pass in this precision, or NULL. */
const dtconv_conv_entry *DT(conv_find)(const char *algorithm, const char *pass);

/* y = act(y + bias) in place, for algorithms that cannot do it on the way out; bias may be NULL. */
dtconv_status DT(conv_bias_forward)(int64_t pixels, int64_t co, elem *y, int64_t ldy, const real *bias,
                                    dtconv_activation activation, real alpha);

/* Backward of a fused bias and activation, in one sweep: dy *= act'(y) in place, db = sum of dy over the pixels.
 * y may be NULL for DTCONV_LINEAR, db may be NULL.  The sums are split at fixed places. */
dtconv_status DT(conv_bias_backward)(int64_t pixels, int64_t co, const elem *y, int64_t ldy, elem *dy, int64_t lddy,
                                     dtconv_activation activation, real alpha, real *db, void *workspace, size_t bytes);
size_t DT(conv_bias_backward_workspace)(int64_t co);

/* Batch and layer normalization.  No include guard: see dtconv_both.h.
 *
 * `rows` are the pixels of all images (or the samples of a matrix) and `c` their channels; ldx, ldy, ... are the
 * distances between two rows.  An output may lie over an input where its comment says so, element for element.
 * `accumulate`: add to the gradient instead of overwriting it.
 */
#ifndef real
#include "dtconv_real.h"
#endif

/* ---- batch normalization: y = act((x - mean) * scale + beta), scale = gamma / sqrt(variance + epsilon) ----
 *
 * Passes over memory: a training step's forward reads x twice and writes y; its backward reads x and dy twice and
 * writes dx.  The activations RELU, RELU6 and LEAKY_RELU need no y in backward: it is computed again from x. */

/* Bytes of workspace of batchnorm_statistics and batchnorm_backward_sums. */
size_t DT(batchnorm_workspace)(int64_t rows, int64_t c);

/* mean (c) and biased variance (c) of x; one pass over memory, two over the cache.  workspace: batchnorm_workspace. */
dtconv_status DT(batchnorm_statistics)(int64_t rows, int64_t c, const elem *x, int64_t ldx, real *mean, real *variance,
                                       void *workspace, size_t bytes);
/* The same in double precision, sums too: rounded to `real`, it is the same whatever rows are summed together. */
dtconv_status DT(batchnorm_exact_statistics)(int64_t rows, int64_t c, const elem *x, int64_t ldx, double *mean,
                                             double *variance, void *workspace, size_t bytes);

/* inverse = 1 / sqrt(variance + epsilon) (c), and scale = gamma * inverse (c; gamma NULL: 1). */
dtconv_status DT(batchnorm_scale)(int64_t c, const real *variance, const real *gamma, real epsilon, real *inverse,
                                  real *scale);

/* moving = moving * momentum + batch * (1 - momentum), for mean and variance. */
dtconv_status DT(batchnorm_moving)(int64_t c, const real *mean, const real *variance, real momentum, real *moving_mean,
                                   real *moving_variance);

/* y = act((x - mean) * scale + beta) (beta NULL: 0); one pass: reads x, writes y.  y may lie over x. */
dtconv_status DT(batchnorm_apply)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                  const real *scale, const real *beta, dtconv_activation activation, real alpha,
                                  elem *y, int64_t ldy);

/* Of z = act((x - mean) * scale + beta), an image of n times `pixels` pixels that is computed as it is read (beta NULL:
 * 0; activation: LINEAR, RELU, RELU6, SILU or HARD_SILU):
 * y (n, c) (+)= factor times the sum over an image's pixels of z, or of z * dy (dy NULL: of z).  mean NULL: x is z. */
dtconv_status DT(normalized_sums)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                  const real *scale, const real *beta, dtconv_activation activation, const elem *dy,
                                  int64_t lddy, real factor, int accumulate, elem *y, int64_t ldy);
/* y = z times `factors` (n, c), the same for all pixels of an image. */
dtconv_status DT(normalized_product)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                     const real *scale, const real *beta, dtconv_activation activation,
                                     const elem *factors, int64_t ldf, elem *y, int64_t ldy);
/* dz (+)= factor times dy (n, c), the same for all pixels of an image; sum (c) = sum over all pixels of g = dz * act'
 * and sum_x (c) = that of g * (x - mean).  workspace: 2 n c doubles. */
dtconv_status DT(normalized_gradient)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx,
                                      const real *mean, const real *scale, const real *beta,
                                      dtconv_activation activation, const elem *dy, int64_t lddy, real factor,
                                      int accumulate, elem *dz, int64_t lddz, real *sum, real *sum_x, void *workspace,
                                      size_t bytes);

/* sum_dy (c) = sum of g and sum_dy_xhat (c) = sum of g * (x - mean) * inverse, where g = dy * act'(y): the gradients of
 * beta and gamma.  One pass: reads x, dy and, for SIGMOID and TANH, y (else NULL).  workspace: batchnorm_workspace. */
dtconv_status DT(batchnorm_backward_sums)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const elem *y,
                                          int64_t ldy, const elem *dy, int64_t lddy, const real *mean,
                                          const real *inverse, const real *scale, const real *beta,
                                          dtconv_activation activation, real alpha, real *sum_dy, real *sum_dy_xhat,
                                          void *workspace, size_t bytes);

/* The same two from `sum` (c) of g and `sum_x` (c) of g * (x - mean). */
dtconv_status DT(batchnorm_given_sums)(int64_t c, const real *sum, const real *sum_x, const real *inverse, real *sum_dy,
                                       real *sum_dy_xhat);

/* dx = scale * (g - sum_dy / count - xhat * sum_dy_xhat / count); with sum_dy NULL (statistics that do not depend on
 * x): dx = scale * g.  count: samples behind the statistics (rows, or the rows of all processes).  One pass: reads x,
 * dy (and y), writes dx.  dx may lie over dy. */
dtconv_status DT(batchnorm_backward_apply)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const elem *y,
                                           int64_t ldy, const elem *dy, int64_t lddy, const real *mean,
                                           const real *inverse, const real *scale, const real *beta,
                                           dtconv_activation activation, real alpha, const real *sum_dy,
                                           const real *sum_dy_xhat, int64_t count, int accumulate, elem *dx,
                                           int64_t lddx);

/* offset (c) (+)= scale * sum_dy / count and slope (c) (+)= scale * inverse * sum_dy_xhat / count: what
 * batchnorm_backward_means subtracts. */
dtconv_status DT(batchnorm_mean_terms)(int64_t c, const real *sum_dy, const real *sum_dy_xhat, const real *inverse,
                                       const real *scale, int64_t count, int accumulate, real *offset, real *slope);

/* dx -= offset + (x - mean) * slope, vectors of c elements: what dx lacks where it is the sum of some scale * g. */
dtconv_status DT(batchnorm_backward_means)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                           const real *offset, const real *slope, elem *dx, int64_t lddx);

/* ---- layer normalization of each row of k elements: y = xhat * gamma + beta, xhat = (x - mean) * inverse ----
 *
 * mean, inverse (rows) are those of the row, inverse = 1 / sqrt(variance + epsilon) with the biased variance; gamma,
 * beta (k) may be NULL: 1, 0.  rms: mean is 0 instead, which makes it RMS normalization.  Forward and backward each go
 * over memory once. */

/* y may lie over x. */
dtconv_status DT(layernorm_forward)(int64_t rows, int64_t k, int rms, const elem *x, int64_t ldx, const real *gamma,
                                    const real *beta, real epsilon, real *mean, real *inverse, elem *y, int64_t ldy);

/* Bytes of workspace of layernorm_backward. */
size_t DT(layernorm_workspace)(int64_t rows, int64_t k);

/* dx (NULL: not wanted; may lie over dy), dgamma and dbeta (k; NULL: not wanted); accumulate_*: whether each is added
 * to. */
dtconv_status DT(layernorm_backward)(int64_t rows, int64_t k, int rms, const elem *x, int64_t ldx, const real *gamma,
                                     const real *mean, const real *inverse, const elem *dy, int64_t lddy,
                                     int accumulate, elem *dx, int64_t lddx, int accumulate_gamma, real *dgamma,
                                     int accumulate_beta, real *dbeta, void *workspace, size_t bytes);

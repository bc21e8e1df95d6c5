/* Pooling over windows of kh x kw pixels, or of kd x kh x kw, and over whole images.  No include guard: see
 * dtconv_both.h.
 *
 * ldx, ldy, ... are the distances between two pixels of an image (or two samples of a matrix).  `accumulate`: add to
 * the gradient instead of overwriting it.
 */
#ifndef real
#include "dtconv_real.h"
#endif
#include "dtconv_limits.h"

#ifndef DTCONV_POOL_WINDOW
#define DTCONV_POOL_WINDOW
/* x (n, ih, iw, c) -> y (n, oh, ow, c); the window of output (i, j) starts at input (i * sh - top, j * sw - left).
 * With a depth x (n, id, ih, iw, c) -> y (n, od, oh, ow, c), likewise; without one id, od, kd and sd are 1.
 * An axis whose stride is 0 is cut into as many windows as there are outputs, which meet or overlap by a pixel: output
 * i of ow has the inputs from floor(i * iw / ow) up to ceil((i + 1) * iw / ow), at most kw of them.
 * A window has at most DTCONV_LARGEST pixels, one of them inside; other limits are those of dtconv_limits.h.  Functions
 * answer DTCONV_ARGUMENT for what is beyond them. */
typedef struct {
    int64_t n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left;
    int64_t id, od, kd, sd, front;
} dtconv_pool;
#endif

/* y = maximum over the window's pixels (padding never counts; NaN wins).  argmax (n, od, oh, ow, c; dense; NULL: not
 * wanted): position (h * kh + i) * kw + j in the window of the first maximum, one byte each (argmax_bytes 1, kd * kh *
 * kw <= 256) or int32_t (4). */
dtconv_status DT(max_pool_forward)(const dtconv_pool *p, const elem *x, int64_t ldx, elem *y, int64_t ldy, void *argmax,
                                   int argmax_bytes);

/* dx = each dy at the position it came from.  A gather over the windows that cover a pixel: no two threads write the
 * same. */
dtconv_status DT(max_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, const void *argmax,
                                    int argmax_bytes, int accumulate, elem *dx, int64_t lddx);

/* y = mean over the window; include_pad: padding counts as zeros, else it does not count. */
dtconv_status DT(average_pool_forward)(const dtconv_pool *p, const elem *x, int64_t ldx, int include_pad, elem *y,
                                       int64_t ldy);
dtconv_status DT(average_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, int include_pad,
                                        int accumulate, elem *dx, int64_t lddx);

/* y (n, c) = mean or maximum over the `pixels` rows of each sample of x (n, pixels, c).  argmax (n, c; dense): row of
 * the first maximum; NULL: not wanted. */
dtconv_status DT(global_average_pool_forward)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, elem *y,
                                              int64_t ldy);
dtconv_status DT(global_average_pool_backward)(int64_t n, int64_t pixels, int64_t c, const elem *dy, int64_t lddy,
                                               int accumulate, elem *dx, int64_t lddx);
dtconv_status DT(global_max_pool_forward)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, elem *y,
                                          int64_t ldy, int32_t *argmax);
dtconv_status DT(global_max_pool_backward)(int64_t n, int64_t pixels, int64_t c, const elem *dy, int64_t lddy,
                                           const int32_t *argmax, int accumulate, elem *dx, int64_t lddx);

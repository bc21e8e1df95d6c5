/* Maximum and average pooling over windows, NHWC.
 *
 *   y[b, i, j, :] = max or mean over p < kh, q < kw of x[b, i * sh - top + p, j * sw - left + q, :]   (pixels inside x)
 *
 * Forward walks output pixels, backward input pixels: each gathers from the windows that cover it, so threads never
 * write the same place and sums have a fixed order.  Both work on blocks of channels whose accumulators stay in
 * registers. Maximum pooling keeps the position of the maximum in its window, one byte for each output, instead of x.
 */
#include "dtconv_nn_pooling.h"
#include "norm_common.h"

/* Channels whose accumulators stay in registers; SMALL: for the rest that is no whole block. */
enum { BLOCK = 64, SMALL = 16 };

/* Runs CALL(first, width) over c channels, with a constant width wherever possible. */
#define FOR_CHANNELS(c, CALL)                                                                    \
    do {                                                                                         \
        int64_t first_channel = 0;                                                               \
        for (; first_channel + BLOCK <= (c); first_channel += BLOCK) CALL(first_channel, BLOCK); \
        for (; first_channel + SMALL <= (c); first_channel += SMALL) CALL(first_channel, SMALL); \
        if (first_channel < (c)) CALL(first_channel, (c) - first_channel);                       \
    } while (0)

#ifdef DTCONV_DOUBLE
typedef int64_t position; /* as wide as `real`, so that both vectorise together */
#else
typedef int32_t position;
#endif

/* Taps [*from, *to) of the window that starts at `start` which lie inside [0, extent). */
INLINE void inside(int64_t start, int64_t taps, int64_t extent, int64_t *from, int64_t *to) {
    *from = max_i64(0, -start);
    *to = min_i64(taps, extent - start);
}

/* Windows [*from, *to) of `count`, `taps` wide and `stride` apart, that cover pixel `at` (padding included). */
INLINE void covering(int64_t at, int64_t taps, int64_t stride, int64_t count, int64_t *from, int64_t *to) {
    *from = at < taps ? 0 : (at - taps) / stride + 1;
    *to = min_i64(count, at / stride + 1);
}

/* Maximum of one window over `width` channels; x points to the window's first pixel, which may lie outside. */
INLINE void max_window(const dtconv_pool *p, const real *x, int64_t ldx, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
                       int64_t width, real *y, void *argmax, int argmax_bytes) {
    real best[BLOCK];
    position where[BLOCK];
    const position first = (position)(p0 * p->kw + q0);
#pragma omp simd
    for (int64_t j = 0; j < width; j++) {
        best[j] = x[(p0 * p->iw + q0) * ldx + j];
        where[j] = first;
    }
    for (int64_t tap_h = p0; tap_h < p1; tap_h++)
        for (int64_t tap_w = q0; tap_w < q1; tap_w++) {
            const real *pixel = x + (tap_h * p->iw + tap_w) * ldx;
            const position here = (position)(tap_h * p->kw + tap_w);
#pragma omp simd
            for (int64_t j = 0; j < width; j++) {
                const int take = (pixel[j] > best[j]) | (pixel[j] != pixel[j]);
                best[j] = take ? pixel[j] : best[j];
                where[j] = take ? here : where[j];
            }
        }
#pragma omp simd
    for (int64_t j = 0; j < width; j++) y[j] = best[j];
    if (!argmax) return;
    if (argmax_bytes == 1) {
#pragma omp simd
        for (int64_t j = 0; j < width; j++) ((uint8_t *)argmax)[j] = (uint8_t)where[j];
    } else {
#pragma omp simd
        for (int64_t j = 0; j < width; j++) ((int32_t *)argmax)[j] = (int32_t)where[j];
    }
}

dtconv_status DT(max_pool_forward)(const dtconv_pool *p, const real *x, int64_t ldx, real *y, int64_t ldy, void *argmax,
                                   int argmax_bytes) {
    if (argmax && argmax_bytes == 1 && p->kh * p->kw > 256) return DTCONV_ARGUMENT;
#pragma omp parallel for schedule(static) num_threads(threads_for(p->n * p->oh * p->ow * p->c * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->oh; row++) {
        const int64_t b = row / p->oh, top = row % p->oh * p->sh - p->top;
        int64_t p0, p1, q0, q1;
        inside(top, p->kh, p->ih, &p0, &p1);
        for (int64_t ow = 0; ow < p->ow; ow++) {
            const int64_t left = ow * p->sw - p->left, pixel = row * p->ow + ow;
            inside(left, p->kw, p->iw, &q0, &q1);
            const real *window = x + ((b * p->ih + top) * p->iw + left) * ldx;
            char *to = argmax ? (char *)argmax + pixel * p->c * argmax_bytes : NULL;
            real *yp = y + pixel * ldy;
#define MAXIMUM(j, width) \
    max_window(p, window + j, ldx, p0, p1, q0, q1, width, yp + j, to ? to + j * argmax_bytes : NULL, argmax_bytes)
            FOR_CHANNELS(p->c, MAXIMUM);
        }
    }
    return DTCONV_OK;
}

/* Windows that cover one input pixel. */
typedef struct {
    int64_t at_h, at_w;     /* the pixel's place, counted from the padding's corner */
    int64_t i0, i1, j0, j1; /* windows that cover it */
    int64_t first;          /* index of the image's first output pixel */
} cover;

INLINE cover cover_of(const dtconv_pool *p, int64_t b, int64_t h, int64_t w) {
    cover a = {.at_h = h + p->top, .at_w = w + p->left, .first = b * p->oh * p->ow};
    covering(a.at_h, p->kh, p->sh, p->oh, &a.i0, &a.i1);
    covering(a.at_w, p->kw, p->sw, p->ow, &a.j0, &a.j1);
    return a;
}

/* `width` channels, from `channel` on, of the gradient of one pixel. */
INLINE void max_gather(const dtconv_pool *p, const cover *a, const real *dy, int64_t lddy, const void *argmax,
                       int argmax_bytes, int64_t channel, int64_t width, int accumulate, real *dx) {
    real sum[BLOCK];
#pragma omp simd
    for (int64_t j = 0; j < width; j++) sum[j] = accumulate ? dx[j] : 0;
    for (int64_t oh = a->i0; oh < a->i1; oh++)
        for (int64_t ow = a->j0; ow < a->j1; ow++) {
            const int64_t pixel = a->first + oh * p->ow + ow, from = pixel * p->c + channel;
            const position tap = (position)((a->at_h - oh * p->sh) * p->kw + a->at_w - ow * p->sw);
            const real *g = dy + pixel * lddy + channel;
            position where[BLOCK]; /* widened first: comparing bytes would keep the sums from vectorising */
            if (argmax_bytes == 1) {
#pragma omp simd
                for (int64_t j = 0; j < width; j++) where[j] = ((const uint8_t *)argmax)[from + j];
            } else {
#pragma omp simd
                for (int64_t j = 0; j < width; j++) where[j] = ((const int32_t *)argmax)[from + j];
            }
#pragma omp simd
            for (int64_t j = 0; j < width; j++) sum[j] += where[j] == tap ? g[j] : 0;
        }
#pragma omp simd
    for (int64_t j = 0; j < width; j++) dx[j] = sum[j];
}

dtconv_status DT(max_pool_backward)(const dtconv_pool *p, const real *dy, int64_t lddy, const void *argmax,
                                    int argmax_bytes, int accumulate, real *dx, int64_t lddx) {
#pragma omp parallel for schedule(static) num_threads(threads_for(p->n * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->ih; row++)
        for (int64_t w = 0; w < p->iw; w++) {
            const cover a = cover_of(p, row / p->ih, row % p->ih, w);
            real *to = dx + (row * p->iw + w) * lddx;
#define GATHER_MAXIMUM(j, width) max_gather(p, &a, dy, lddy, argmax, argmax_bytes, j, width, accumulate, to + j)
            FOR_CHANNELS(p->c, GATHER_MAXIMUM);
        }
    return DTCONV_OK;
}

/* 1 / (pixels that the window at output (oh, ow) is the mean of). */
INLINE real share_of(const dtconv_pool *p, int64_t oh, int64_t ow, int include_pad) {
    if (include_pad) return (real)1 / (real)(p->kh * p->kw);
    int64_t p0, p1, q0, q1;
    inside(oh * p->sh - p->top, p->kh, p->ih, &p0, &p1);
    inside(ow * p->sw - p->left, p->kw, p->iw, &q0, &q1);
    return (real)1 / (real)((p1 - p0) * (q1 - q0));
}

INLINE void average_window(const dtconv_pool *p, const real *x, int64_t ldx, int64_t p0, int64_t p1, int64_t q0,
                           int64_t q1, real share, int64_t width, real *y) {
    real sum[BLOCK];
    for (int64_t j = 0; j < width; j++) sum[j] = 0;
    for (int64_t tap_h = p0; tap_h < p1; tap_h++)
        for (int64_t tap_w = q0; tap_w < q1; tap_w++) {
            const real *pixel = x + (tap_h * p->iw + tap_w) * ldx;
            for (int64_t j = 0; j < width; j++) sum[j] += pixel[j];
        }
    for (int64_t j = 0; j < width; j++) y[j] = sum[j] * share;
}

dtconv_status DT(average_pool_forward)(const dtconv_pool *p, const real *x, int64_t ldx, int include_pad, real *y,
                                       int64_t ldy) {
#pragma omp parallel for schedule(static) num_threads(threads_for(p->n * p->oh * p->ow * p->c * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->oh; row++) {
        const int64_t b = row / p->oh, oh = row % p->oh, top = oh * p->sh - p->top;
        int64_t p0, p1, q0, q1;
        inside(top, p->kh, p->ih, &p0, &p1);
        for (int64_t ow = 0; ow < p->ow; ow++) {
            const int64_t left = ow * p->sw - p->left;
            inside(left, p->kw, p->iw, &q0, &q1);
            const real *window = x + ((b * p->ih + top) * p->iw + left) * ldx;
            const real share = share_of(p, oh, ow, include_pad);
            real *to = y + (row * p->ow + ow) * ldy;
#define AVERAGE(j, width) average_window(p, window + j, ldx, p0, p1, q0, q1, share, width, to + j)
            FOR_CHANNELS(p->c, AVERAGE);
        }
    }
    return DTCONV_OK;
}

INLINE void average_gather(const dtconv_pool *p, const cover *a, const real *dy, int64_t lddy, int include_pad,
                           int64_t channel, int64_t width, int accumulate, real *dx) {
    real sum[BLOCK];
    for (int64_t j = 0; j < width; j++) sum[j] = accumulate ? dx[j] : 0;
    for (int64_t oh = a->i0; oh < a->i1; oh++)
        for (int64_t ow = a->j0; ow < a->j1; ow++) {
            const real *g = dy + (a->first + oh * p->ow + ow) * lddy + channel;
            const real share = share_of(p, oh, ow, include_pad);
            for (int64_t j = 0; j < width; j++) sum[j] += g[j] * share;
        }
    for (int64_t j = 0; j < width; j++) dx[j] = sum[j];
}

dtconv_status DT(average_pool_backward)(const dtconv_pool *p, const real *dy, int64_t lddy, int include_pad,
                                        int accumulate, real *dx, int64_t lddx) {
#pragma omp parallel for schedule(static) num_threads(threads_for(p->n * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->ih; row++)
        for (int64_t w = 0; w < p->iw; w++) {
            const cover a = cover_of(p, row / p->ih, row % p->ih, w);
            real *to = dx + (row * p->iw + w) * lddx;
#define GATHER_AVERAGE(j, width) average_gather(p, &a, dy, lddy, include_pad, j, width, accumulate, to + j)
            FOR_CHANNELS(p->c, GATHER_AVERAGE);
        }
    return DTCONV_OK;
}

/* Windows of maximum and average pooling over pixels, NHWC.
 *
 *   y[b, i, j, :] = max or mean over p < kh, q < kw of x[b, i * sh - top + p, j * sw - left + q, :]   (pixels inside x)
 *
 * Forward walks output pixels, backward input pixels: each gathers from the windows that cover it, so threads never
 * write the same place and sums have a fixed order.  Both work on blocks of channels whose accumulators stay in
 * registers.
 */
#ifndef POOLING_WINDOWS_H
#define POOLING_WINDOWS_H

#include "dtconv_nn_pooling.h"
#include "dtconv_vector.h"
#include "norm_common.h"

/* Vectors of channels whose accumulators stay in registers. */
enum { AT_ONCE = VECTOR_BYTES == 64 ? 4 : 2 };

/* Runs CALL(first, vectors, count) over c channels: whole vectors together, then one by one, and the last of `count`,
 * which is a constant in all others. */
#define FOR_CHANNELS(c, CALL)                                                                                     \
    do {                                                                                                          \
        int64_t first_channel = 0;                                                                                \
        for (; first_channel + AT_ONCE * V <= (c); first_channel += AT_ONCE * V) CALL(first_channel, AT_ONCE, V); \
        for (; first_channel + V <= (c); first_channel += V) CALL(first_channel, 1, V);                           \
        if (first_channel < (c)) CALL(first_channel, 1, (c) - first_channel);                                     \
    } while (0)

/* One axis of a pooling problem. */
typedef struct {
    int64_t extent, out, taps, stride, before;
} axis;

INLINE axis across(const dtconv_pool *p) { return (axis){p->iw, p->ow, p->kw, p->sw, p->left}; }
INLINE axis down(const dtconv_pool *p) { return (axis){p->ih, p->oh, p->kh, p->sh, p->top}; }
INLINE axis deep(const dtconv_pool *p) { return (axis){p->id, p->od, p->kd, p->sd, p->front}; }

INLINE int64_t start_of(axis a, int64_t window) {
    return a.stride ? window * a.stride - a.before : window * a.extent / a.out;
}

/* Whether the windows along an axis have a pixel inside. */
INLINE int meet_pixels(axis a) {
    const int64_t sizes[] = {a.extent, a.out, a.taps}, steps[] = {a.stride, a.before};
    if (!dtconv_are_sizes(1, 3, sizes) || !dtconv_are_sizes(0, 2, steps)) return 0;
    return !a.stride || (a.before < a.taps && (a.out - 1) * a.stride - a.before < a.extent);
}

/* Whether sizes are what dtconv_nn_pooling.h says. */
INLINE int fits(const dtconv_pool *p) {
    return meet_pixels(across(p)) && meet_pixels(down(p)) && meet_pixels(deep(p)) && DTCONV_ARE_SIZES(1, p->n, p->c) &&
           DTCONV_FIT_WITHIN(DTCONV_LARGEST, p->kd, p->kh, p->kw) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->n, p->id, p->ih, p->iw, p->c) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->n, p->od, p->oh, p->ow, p->c) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_PRODUCTS, p->n, p->od, p->oh, p->ow, p->c, p->kd, p->kh, p->kw);
}

/* Taps [*from, *to) of a window which lie inside; returns where it starts. */
INLINE int64_t inside(axis a, int64_t window, int64_t *from, int64_t *to) {
    const int64_t start = start_of(a, window);
    *from = max_i64(0, -start);
    *to = a.stride ? min_i64(a.taps, a.extent - start) : ((window + 1) * a.extent + a.out - 1) / a.out - start;
    return start;
}

/* Windows [*from, *to) that cover a pixel. */
INLINE void covering(axis a, int64_t pixel, int64_t *from, int64_t *to) {
    const int64_t at = pixel + a.before;
    if (!a.stride) {
        *from = pixel * a.out / a.extent;
        *to = ((pixel + 1) * a.out + a.extent - 1) / a.extent;
        return;
    }
    *from = at < a.taps ? 0 : (at - a.taps) / a.stride + 1;
    *to = min_i64(a.out, at / a.stride + 1);
}

/* Taps of a window that lie inside of x: [d0, d1) in depth, [p0, p1) down, [q0, q1) across. */
typedef struct {
    int64_t d0, d1, p0, p1, q0, q1;
} taps;

/* Pixels from the first of a window to that of a tap. */
INLINE int64_t distance(const dtconv_pool *p, int64_t tap_d, int64_t tap_h, int64_t tap_w) {
    return (tap_d * p->ih + tap_h) * p->iw + tap_w;
}

/* Where the windows of a row of outputs (b, od, oh) start, and the taps of these axes that lie inside. */
INLINE taps taps_of_row(const dtconv_pool *p, int64_t row, int64_t *start) {
    taps t;
    const int64_t front = inside(deep(p), row / p->oh % p->od, &t.d0, &t.d1);
    const int64_t top = inside(down(p), row % p->oh, &t.p0, &t.p1);
    *start = ((row / p->oh / p->od * p->id + front) * p->ih + top) * p->iw;
    return t;
}

/* A window that covers a pixel: its output, where the pixel lies in it, and what an average takes of its gradient. */
typedef struct {
    int64_t output;
    int32_t tap;
    real share;
} window;

/* Windows of one pixel that are gathered together. */
enum { WINDOWS = 128 };

/* 1 / (pixels that a window with these taps inside is the mean of). */
INLINE real share_of(const dtconv_pool *p, taps in, int include_pad) {
    if (include_pad) return (real)1 / (real)(p->kd * p->kh * p->kw);
    return (real)1 / (real)((in.d1 - in.d0) * (in.p1 - in.p0) * (in.q1 - in.q0));
}

/* A row of inputs (b, id, ih), and the windows over its pixels: [h0, h1) in depth, [i0, i1) down, [j0, j1) across. */
typedef struct {
    int64_t image, at_d, at_h, h0, h1, i0, i1, j0, j1;
} covered;

INLINE covered over_row(const dtconv_pool *p, int64_t row) {
    const int64_t plane = row / p->ih;
    covered k = {.image = plane / p->id, .at_d = plane % p->id, .at_h = row % p->ih};
    covering(deep(p), k.at_d, &k.h0, &k.h1);
    covering(down(p), k.at_h, &k.i0, &k.i1);
    return k;
}

/* Goes on to pixel w, the first one or the next; without divisions, which would take longer than a few channels. */
INLINE void over_pixel(const dtconv_pool *p, int64_t w, covered *k) {
    const axis a = across(p);
    if (!a.stride) {
        covering(a, w, &k->j0, &k->j1);
        return;
    }
    while (k->j0 * a.stride - a.before + a.taps <= w) k->j0++;
    while (k->j1 < a.out && k->j1 * a.stride - a.before <= w) k->j1++;
}

/* Of the windows over a row of inputs one line: its first output, the tap of its first column, pixels of a column that
 * lie inside. */
typedef struct {
    int64_t output;
    int32_t tap, inside;
} line;

/* Puts the lines over a row into `found` that come after the first `passed`, in order; returns how many, at most
 * WINDOWS. */
INLINE int64_t lines_over(const dtconv_pool *p, const covered *k, int64_t passed, line *found) {
    int64_t count = 0;
    for (int64_t od = k->h0; od < k->h1; od++)
        for (int64_t oh = k->i0; oh < k->i1 && count < WINDOWS; oh++) {
            if (passed-- > 0) continue;
            taps in;
            const int64_t front = inside(deep(p), od, &in.d0, &in.d1), top = inside(down(p), oh, &in.p0, &in.p1);
            const int64_t tap = ((k->at_d - front) * p->kh + k->at_h - top) * p->kw;
            const int64_t pixels = (in.d1 - in.d0) * (in.p1 - in.p0);
            found[count++] = (line){((k->image * p->od + od) * p->oh + oh) * p->ow, (int32_t)tap, (int32_t)pixels};
        }
    return count;
}

/* Puts those of the windows of `lines` over pixel w into `found` that come after the first `passed`, in order; returns
 * how many, at most WINDOWS. */
INLINE int64_t windows_over(const dtconv_pool *p, const covered *k, const line *lines, int64_t among, int64_t w,
                            int64_t passed, int include_pad, window *found) {
    const real whole = (real)1 / (real)(p->kd * p->kh * p->kw);
    const axis a = across(p);
    int64_t count = 0;
    for (int64_t i = 0; i < among; i++)
        for (int64_t ow = k->j0; ow < k->j1 && count < WINDOWS; ow++) {
            if (passed-- > 0) continue;
            int64_t from, to;
            const int64_t left = inside(a, ow, &from, &to);
            found[count].output = lines[i].output + ow;
            found[count].tap = lines[i].tap + (int32_t)(w - left);
            found[count++].share = include_pad ? whole : (real)1 / (real)(lines[i].inside * (to - from));
        }
    return count;
}

#endif

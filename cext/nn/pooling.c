/* Maximum and average pooling over windows, NHWC.
 *
 *   y[b, i, j, :] = max or mean over p < kh, q < kw of x[b, i * sh - top + p, j * sw - left + q, :]   (pixels inside x)
 *
 * Forward walks output pixels, backward input pixels: each gathers from the windows that cover it, so threads never
 * write the same place and sums have a fixed order.  Both work on blocks of channels whose accumulators stay in
 * registers. Maximum pooling keeps the position of the maximum in its window, one byte for each output, instead of x.
 */
#include "dtconv_burst.h"
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

/* Positions in a window of a vector of channels: lanes as wide as `real`, one byte or four in memory. */
typedef uint8_t bytes_of __attribute__((vector_size(VECTOR_BYTES / sizeof(real))));
typedef int32_t words_of __attribute__((vector_size(VECTOR_BYTES / sizeof(real) * 4)));

INLINE mask load_positions(const void *argmax, int64_t at, int bytes, int64_t count) {
    if (bytes == 1) {
        bytes_of part = {0};
        memcpy(&part, (const uint8_t *)argmax + at, (size_t)count);
#if defined(__AVX512F__) && !defined(DTCONV_DOUBLE)
        return (mask)_mm512_cvtepu8_epi32((__m128i)part);
#else
        return __builtin_convertvector(part, mask);
#endif
    }
    words_of part = {0};
    memcpy(&part, (const int32_t *)argmax + at, (size_t)count * sizeof(int32_t));
    return __builtin_convertvector(part, mask);
}

INLINE void store_positions(void *argmax, int64_t at, int bytes, int64_t count, mask positions) {
    if (bytes == 1) {
#if defined(__AVX512F__) && !defined(DTCONV_DOUBLE)
        const bytes_of part = (bytes_of)_mm512_cvtepi32_epi8((__m512i)positions);
#else
        const bytes_of part = __builtin_convertvector(positions, bytes_of);
#endif
        memcpy((uint8_t *)argmax + at, &part, (size_t)count);
    } else {
        const words_of part = __builtin_convertvector(positions, words_of);
        memcpy((int32_t *)argmax + at, &part, (size_t)count * sizeof(int32_t));
    }
}

/* sum + g in the channels whose maximum is at this tap of the window. */
INLINE vec add_chosen(vec sum, vec g, const void *argmax, int64_t at, int bytes, int64_t count, int tap) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if (bytes == 1) {
        __m128i places = _mm_setzero_si128();
        memcpy(&places, (const uint8_t *)argmax + at, (size_t)count);
        const __mmask16 here = _mm_cmpeq_epi8_mask(places, _mm_set1_epi8((char)tap));
#ifdef DTCONV_DOUBLE
        return (vec)_mm512_mask_add_pd((__m512d)sum, (__mmask8)here, (__m512d)sum, (__m512d)g);
#else
        return (vec)_mm512_mask_add_ps((__m512)sum, here, (__m512)sum, (__m512)g);
#endif
    }
#endif
    return sum + where(load_positions(argmax, at, bytes, count) == (mask){0} + tap, g, (vec){0});
}

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

/* Maximum of one window over some vectors of channels; x points to the window's first pixel, which may lie outside. */
INLINE void max_window(const dtconv_pool *p, const elem *x, int64_t ldx, taps in, int vectors, int64_t count, elem *y,
                       void *argmax, int64_t at, int bytes) {
    vec best[AT_ONCE];
    mask chosen[AT_ONCE];
    const int64_t first = (in.d0 * p->kh + in.p0) * p->kw + in.q0, start = distance(p, in.d0, in.p0, in.q0) * ldx;
    UNROLL for (int v = 0; v < vectors; v++) {
        best[v] = load_first(x + start + v * V, count);
        chosen[v] = (mask){0} + (int)first;
    }
    for (int64_t tap_d = in.d0; tap_d < in.d1; tap_d++)
        for (int64_t tap_h = in.p0; tap_h < in.p1; tap_h++)
            for (int64_t tap_w = in.q0; tap_w < in.q1; tap_w++) {
                const elem *pixel = x + distance(p, tap_d, tap_h, tap_w) * ldx;
                const mask here = (mask){0} + (int)((tap_d * p->kh + tap_h) * p->kw + tap_w);
                UNROLL for (int v = 0; v < vectors; v++) {
                    const vec value = load_first(pixel + v * V, count);
                    const mask greater = (value > best[v]) | (value != value);
                    best[v] = where(greater, value, best[v]);
                    chosen[v] = (here & greater) | (chosen[v] & ~greater);
                }
            }
    UNROLL for (int v = 0; v < vectors; v++) {
        store_first(y + v * V, count, best[v]);
        if (argmax) store_positions(argmax, at + v * V, bytes, count, chosen[v]);
    }
}

dtconv_status DT(max_pool_forward)(const dtconv_pool *p, const elem *x, int64_t ldx, elem *y, int64_t ldy, void *argmax,
                                   int argmax_bytes) {
    if (argmax && argmax_bytes == 1 && p->kd * p->kh * p->kw > 256) return DTCONV_ARGUMENT;
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->od * p->oh)) \
    num_threads(threads_for(p->n * p->od * p->oh * p->ow * p->c * p->kd * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->od * p->oh; row++) {
        int64_t start;
        taps in = taps_of_row(p, row, &start);
        for (int64_t ow = 0; ow < p->ow; ow++) {
            const int64_t left = inside(across(p), ow, &in.q0, &in.q1), pixel = row * p->ow + ow;
            const elem *window = x + (start + left) * ldx;
            elem *to = y + pixel * ldy;
#define MAXIMUM(j, vectors, count) \
    max_window(p, window + j, ldx, in, vectors, count, to + j, argmax, pixel * p->c + j, argmax_bytes)
            FOR_CHANNELS(p->c, MAXIMUM);
        }
    }
    return DTCONV_OK;
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

/* Puts those of the windows over pixel w into `found` that come after the first `passed`, in order; returns how many,
 * at most WINDOWS. */
INLINE int64_t windows_over(const dtconv_pool *p, const covered *k, int64_t w, int64_t passed, int include_pad,
                            window *found) {
    int64_t count = 0;
    for (int64_t od = k->h0; od < k->h1; od++)
        for (int64_t oh = k->i0; oh < k->i1; oh++)
            for (int64_t ow = k->j0; ow < k->j1 && count < WINDOWS; ow++) {
                if (passed-- > 0) continue;
                taps in;
                const int64_t front = inside(deep(p), od, &in.d0, &in.d1), top = inside(down(p), oh, &in.p0, &in.p1);
                const int64_t left = inside(across(p), ow, &in.q0, &in.q1);
                const int64_t tap = ((k->at_d - front) * p->kh + k->at_h - top) * p->kw + w - left;
                const int64_t output = ((k->image * p->od + od) * p->oh + oh) * p->ow + ow;
                found[count++] = (window){output, (int32_t)tap, share_of(p, in, include_pad)};
            }
    return count;
}

/* Some vectors of channels, from `channel` on, of the gradient of one pixel. */
INLINE void max_gather(const window *over, int64_t windows, int64_t c, const elem *dy, int64_t lddy, const void *argmax,
                       int bytes, int64_t channel, int vectors, int64_t count, int accumulate, elem *dx) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = accumulate ? load_first(dx + v * V, count) : (vec){0};
    for (int64_t i = 0; i < windows; i++) {
        const elem *g = dy + over[i].output * lddy + channel;
        const int64_t at = over[i].output * c + channel;
        UNROLL for (int v = 0; v < vectors; v++) sum[v] =
            add_chosen(sum[v], load_first(g + v * V, count), argmax, at + v * V, bytes, count, over[i].tap);
    }
    UNROLL for (int v = 0; v < vectors; v++) store_first(dx + v * V, count, sum[v]);
}

/* The last row of outputs over a row of inputs, in order: of the windows over a pixel it is what is not in a cache. */
static void read_outputs(const dtconv_pool *p, const covered *k, const elem *dy, int64_t lddy, const void *argmax,
                         int bytes) {
    if (k->i1 <= k->i0 || k->h1 <= k->h0) return;
    const int64_t first = ((k->image * p->od + k->h1 - 1) * p->oh + k->i1 - 1) * p->ow, size = sizeof(elem);
    dtconv_read_burst(dy + first * lddy, lddy * size, p->ow, p->c * size);
    dtconv_read_burst((const char *)argmax + first * p->c * bytes, p->c * bytes, p->ow, p->c * bytes);
}

dtconv_status DT(max_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, const void *argmax,
                                    int argmax_bytes, int accumulate, elem *dx, int64_t lddx) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->id * p->ih)) \
    num_threads(threads_for(p->n * p->id * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++) {
        covered k = over_row(p, row);
        if (p->sh == 1) read_outputs(p, &k, dy, lddy, argmax, argmax_bytes);
        for (int64_t w = 0; w < p->iw; w++) {
            window over[WINDOWS];
            over_pixel(p, w, &k);
            elem *to = dx + (row * p->iw + w) * lddx;
            int64_t passed = 0, windows;
            do {
                windows = windows_over(p, &k, w, passed, 1, over);
                const int adds = accumulate || passed;
#define GATHER_MAXIMUM(j, vectors, count) \
    max_gather(over, windows, p->c, dy, lddy, argmax, argmax_bytes, j, vectors, count, adds, to + j)
                FOR_CHANNELS(p->c, GATHER_MAXIMUM);
                passed += windows;
            } while (windows == WINDOWS);
        }
    }
    return DTCONV_OK;
}

INLINE void average_window(const dtconv_pool *p, const elem *x, int64_t ldx, taps in, real share, int vectors,
                           int64_t count, elem *y) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = (vec){0};
    for (int64_t tap_d = in.d0; tap_d < in.d1; tap_d++)
        for (int64_t tap_h = in.p0; tap_h < in.p1; tap_h++)
            for (int64_t tap_w = in.q0; tap_w < in.q1; tap_w++) {
                const elem *pixel = x + distance(p, tap_d, tap_h, tap_w) * ldx;
                UNROLL for (int v = 0; v < vectors; v++) sum[v] += load_first(pixel + v * V, count);
            }
    UNROLL for (int v = 0; v < vectors; v++) store_first(y + v * V, count, sum[v] * share);
}

dtconv_status DT(average_pool_forward)(const dtconv_pool *p, const elem *x, int64_t ldx, int include_pad, elem *y,
                                       int64_t ldy) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->od * p->oh)) \
    num_threads(threads_for(p->n * p->od * p->oh * p->ow * p->c * p->kd * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->od * p->oh; row++) {
        int64_t start;
        taps in = taps_of_row(p, row, &start);
        for (int64_t ow = 0; ow < p->ow; ow++) {
            const int64_t left = inside(across(p), ow, &in.q0, &in.q1);
            const elem *window = x + (start + left) * ldx;
            const real share = share_of(p, in, include_pad);
            elem *to = y + (row * p->ow + ow) * ldy;
#define AVERAGE(j, vectors, count) average_window(p, window + j, ldx, in, share, vectors, count, to + j)
            FOR_CHANNELS(p->c, AVERAGE);
        }
    }
    return DTCONV_OK;
}

INLINE void average_gather(const window *over, int64_t windows, const elem *dy, int64_t lddy, int64_t channel,
                           int vectors, int64_t count, int accumulate, elem *dx) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = accumulate ? load_first(dx + v * V, count) : (vec){0};
    for (int64_t i = 0; i < windows; i++) {
        const elem *g = dy + over[i].output * lddy + channel;
        UNROLL for (int v = 0; v < vectors; v++) sum[v] += load_first(g + v * V, count) * over[i].share;
    }
    UNROLL for (int v = 0; v < vectors; v++) store_first(dx + v * V, count, sum[v]);
}

dtconv_status DT(average_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, int include_pad,
                                        int accumulate, elem *dx, int64_t lddx) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->id * p->ih)) \
    num_threads(threads_for(p->n * p->id * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++) {
        covered k = over_row(p, row);
        for (int64_t w = 0; w < p->iw; w++) {
            window over[WINDOWS];
            over_pixel(p, w, &k);
            elem *to = dx + (row * p->iw + w) * lddx;
            int64_t passed = 0, windows;
            do {
                windows = windows_over(p, &k, w, passed, include_pad, over);
                const int adds = accumulate || passed;
#define GATHER_AVERAGE(j, vectors, count) average_gather(over, windows, dy, lddy, j, vectors, count, adds, to + j)
                FOR_CHANNELS(p->c, GATHER_AVERAGE);
                passed += windows;
            } while (windows == WINDOWS);
        }
    }
    return DTCONV_OK;
}

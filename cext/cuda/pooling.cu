/* Maximum and average pooling over windows and whole images, one to three axes; methods are those of
 * cext/nn/pooling_windows.h.
 *
 * Every thread has one output (forward) or one input (backward), which gathers from the windows that cover it.
 */
#include "dtconv_cuda.h"

/* sizes: depth, height, width, each: extent, out, taps, stride (0: adaptive), before */
struct axis {
    int32_t extent, out, taps, stride, before;
};

__device__ inline axis axis_of(Array<const int64_t> sizes, int number) {
    axis a;
    a.extent = (int32_t)sizes[5 * number];
    a.out = (int32_t)sizes[5 * number + 1];
    a.taps = (int32_t)sizes[5 * number + 2];
    a.stride = (int32_t)sizes[5 * number + 3];
    a.before = (int32_t)sizes[5 * number + 4];
    return a;
}

__device__ inline int32_t start_of(const axis &a, int32_t window) {
    return a.stride ? window * a.stride - a.before : (int32_t)((int64_t)window * a.extent / a.out);
}

/* The pixels [from, to) of a window which lie inside. */
struct span {
    int32_t start, from, to;
};

__device__ inline span span_of(const axis &a, int32_t window) {
    const int32_t start = start_of(a, window);
    const int32_t end = a.stride ? start + a.taps : (int32_t)(((int64_t)(window + 1) * a.extent + a.out - 1) / a.out);
    const span s = {start, start > 0 ? start : 0, end < a.extent ? end : a.extent};
    return s;
}

/* The windows [from, to) that cover a pixel. */
__device__ inline span cover_of(const axis &a, int32_t pixel) {
    span s = {0, 0, 0};
    if (!a.stride) {
        s.from = (int32_t)((int64_t)pixel * a.out / a.extent);
        s.to = (int32_t)(((int64_t)(pixel + 1) * a.out + a.extent - 1) / a.extent);
        return s;
    }
    const int32_t at = pixel + a.before, last = at / a.stride + 1;
    s.from = at < a.taps ? 0 : (at - a.taps) / a.stride + 1;
    s.to = last < a.out ? last : a.out;
    return s;
}

GLOBAL max_pool_forward(int64_t n, int64_t c, Array<const int64_t> sizes, Array<const real> x, int64_t ldx,
                        Array<real> y, int64_t ldy, Array<uint8_t> places, Array<int32_t> wide_places) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, n * d.out * h.out * w.out * c) {
        const int64_t pixel = i / c, j = i - pixel * c, image = pixel / ((int64_t)w.out * h.out * d.out);
        const uint32_t place = (uint32_t)(pixel - image * w.out * h.out * d.out);
        const span sw = span_of(w, place % w.out), sh = span_of(h, place / w.out % h.out),
                   sd = span_of(d, place / w.out / h.out);
        real best = 0;
        int32_t where = -1;
        for (int32_t at_d = sd.from; at_d < sd.to; at_d++)
            for (int32_t at_h = sh.from; at_h < sh.to; at_h++)
                for (int32_t at_w = sw.from; at_w < sw.to; at_w++) {
                    const real value = x[(((image * d.extent + at_d) * h.extent + at_h) * w.extent + at_w) * ldx + j];
                    if (where >= 0 && !(value > best) && value == value) continue;
                    best = value;
                    where = ((at_d - sd.start) * h.taps + at_h - sh.start) * w.taps + at_w - sw.start;
                }
        y[pixel * ldy + j] = best;
        if (places) places[i] = (uint8_t)where;
        if (wide_places) wide_places[i] = (int32_t)where;
    }
}
KERNEL(max_pool_forward)

template <int W, typename T>
__device__ inline void max_pool_gradient(int64_t n, int64_t c, Array<const int64_t> sizes, Array<const real> dy,
                                         int64_t lddy, Array<const T> places, int64_t accumulate, Array<real> dx,
                                         int64_t lddx) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, n * d.extent * h.extent * w.extent * (c / W)) {
        const cell at = cell_of(i, c / W), image = cell_of(at.row, (int64_t)w.extent * h.extent * d.extent);
        const uint32_t place = (uint32_t)image.column, line = place / w.extent;
        const int32_t at_w = place - line * w.extent, at_d = line / h.extent, at_h = line - at_d * h.extent;
        const span cw = cover_of(w, at_w), ch = cover_of(h, at_h), cd = cover_of(d, at_d);
        const int64_t j = at.column * W;
        pack<W> sum;
        for (int e = 0; e < W; e++) sum.v[e] = 0;
        for (int32_t od = cd.from; od < cd.to; od++)
            for (int32_t oh = ch.from; oh < ch.to; oh++) {
                const int64_t outs = ((image.row * d.out + od) * h.out + oh) * w.out;
                const int32_t taps = ((at_d - start_of(d, od)) * h.taps + at_h - start_of(h, oh)) * w.taps;
                for (int32_t ow = cw.from; ow < cw.to; ow++) {
                    const int64_t out = outs + ow;
                    const int32_t tap = taps + at_w - start_of(w, ow);
                    const pack<W> slopes = load<W>(dy, out * lddy + j);
                    for (int e = 0; e < W; e++)
                        if (places[out * c + j + e] == tap) sum.v[e] += slopes.v[e];
                }
            }
        const int64_t target = at.row * lddx + j;
        if (accumulate) add(sum, load<W>(readable(dx), target));
        store<W>(dx, target, sum);
    }
}

/* wide: whether PACK channels are moved at once */
GLOBAL max_pool_backward(int64_t wide, int64_t n, int64_t c, Array<const int64_t> sizes, Array<const real> dy,
                         int64_t lddy, Array<const uint8_t> places, Array<const int32_t> wide_places,
                         int64_t accumulate, Array<real> dx, int64_t lddx) {
    if (places && wide)
        max_pool_gradient<PACK>(n, c, sizes, dy, lddy, places, accumulate, dx, lddx);
    else if (places)
        max_pool_gradient<1>(n, c, sizes, dy, lddy, places, accumulate, dx, lddx);
    else
        max_pool_gradient<1>(n, c, sizes, dy, lddy, wide_places, accumulate, dx, lddx);
}
KERNEL(max_pool_backward)

__device__ inline real share_of(const axis &d, const axis &h, const axis &w, const span &sd, const span &sh,
                                const span &sw, int64_t include_pad) {
    if (include_pad) return (real)1 / (real)(d.taps * h.taps * w.taps);
    return (real)1 / (real)((sd.to - sd.from) * (sh.to - sh.from) * (sw.to - sw.from));
}

GLOBAL average_pool_forward(int64_t n, int64_t c, Array<const int64_t> sizes, Array<const real> x, int64_t ldx,
                            int64_t include_pad, Array<real> y, int64_t ldy) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, n * d.out * h.out * w.out * c) {
        const int64_t pixel = i / c, j = i - pixel * c, image = pixel / ((int64_t)w.out * h.out * d.out);
        const uint32_t place = (uint32_t)(pixel - image * w.out * h.out * d.out);
        const span sw = span_of(w, place % w.out), sh = span_of(h, place / w.out % h.out),
                   sd = span_of(d, place / w.out / h.out);
        real sum = 0;
        for (int32_t at_d = sd.from; at_d < sd.to; at_d++)
            for (int32_t at_h = sh.from; at_h < sh.to; at_h++)
                for (int32_t at_w = sw.from; at_w < sw.to; at_w++)
                    sum += x[(((image * d.extent + at_d) * h.extent + at_h) * w.extent + at_w) * ldx + j];
        y[pixel * ldy + j] = sum * share_of(d, h, w, sd, sh, sw, include_pad);
    }
}
KERNEL(average_pool_forward)

GLOBAL average_pool_backward(int64_t n, int64_t c, Array<const int64_t> sizes, Array<const real> dy, int64_t lddy,
                             int64_t include_pad, int64_t accumulate, Array<real> dx, int64_t lddx) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, n * d.extent * h.extent * w.extent * c) {
        const int64_t pixel = i / c, j = i - pixel * c, image = pixel / ((int64_t)w.extent * h.extent * d.extent);
        const uint32_t place = (uint32_t)(pixel - image * w.extent * h.extent * d.extent);
        const int32_t at_w = place % w.extent, at_h = place / w.extent % h.extent, at_d = place / w.extent / h.extent;
        const span cw = cover_of(w, at_w), ch = cover_of(h, at_h), cd = cover_of(d, at_d);
        real sum = 0;
        for (int32_t od = cd.from; od < cd.to; od++)
            for (int32_t oh = ch.from; oh < ch.to; oh++)
                for (int32_t ow = cw.from; ow < cw.to; ow++) {
                    const real share = share_of(d, h, w, span_of(d, od), span_of(h, oh), span_of(w, ow), include_pad);
                    sum += dy[(((image * d.out + od) * h.out + oh) * w.out + ow) * lddy + j] * share;
                }
        const int64_t at = pixel * lddx + j;
        dx[at] = accumulate ? dx[at] + sum : sum;
    }
}
KERNEL(average_pool_backward)

/* Over all pixels of an image: a block for 32 channels of an image, its warps share the pixels. */
GLOBAL BOUNDS(256)
    global_average_forward(int64_t pixels, int64_t c, Array<const real> x, int64_t ldx, Array<real> y, int64_t ldy) {
    SHARED(real, parts, 256);
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    const int64_t j = (int64_t)blockIdx.x * 32 + lane, image = blockIdx.y;
    real sum = 0;
    if (j < c)
        for (int64_t i = line; i < pixels; i += WARPS) sum += x[(image * pixels + i) * ldx + j];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (line || j >= c) return;
    for (int i = 1; i < WARPS; i++) sum += parts[i * 32 + lane];
    y[image * ldy + j] = sum / (real)pixels;
}
KERNEL(global_average_forward)

GLOBAL global_average_backward(int64_t n, int64_t pixels, int64_t c, Array<const real> dy, int64_t lddy,
                               int64_t accumulate, Array<real> dx, int64_t lddx) {
    const real share = (real)1 / (real)pixels;
    FOR_EACH(i, n * pixels * c) {
        const int64_t j = i % c, pixel = i / c, at = pixel * lddx + j;
        const real value = dy[pixel / pixels * lddy + j] * share;
        dx[at] = accumulate ? dx[at] + value : value;
    }
}
KERNEL(global_average_backward)

GLOBAL global_max_forward(int64_t n, int64_t pixels, int64_t c, Array<const real> x, int64_t ldx, Array<real> y,
                          int64_t ldy, Array<int32_t> places) {
    FOR_EACH(i, n * c) {
        const int64_t image = i / c, j = i % c;
        real best = x[image * pixels * ldx + j];
        int64_t where = 0;
        for (int64_t p = 1; p < pixels; p++) {
            const real value = x[(image * pixels + p) * ldx + j];
            if (value > best || value != value) best = value, where = p;
        }
        y[image * ldy + j] = best;
        if (places) places[i] = (int32_t)where;
    }
}
KERNEL(global_max_forward)

GLOBAL global_max_backward(int64_t n, int64_t pixels, int64_t c, Array<const real> dy, int64_t lddy,
                           Array<const int32_t> places, int64_t accumulate, Array<real> dx, int64_t lddx) {
    FOR_EACH(i, n * pixels * c) {
        const int64_t j = i % c, pixel = i / c, image = pixel / pixels, at = pixel * lddx + j;
        const real value = places[image * c + j] == pixel % pixels ? dy[image * lddy + j] : 0;
        dx[at] = accumulate ? dx[at] + value : value;
    }
}
KERNEL(global_max_backward)

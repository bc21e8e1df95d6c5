/* im2col and col2im, of images of one to three axes; the products between them are the device's GEMM.
 *
 * columns: (images * od * oh * ow, kd * kh * kw * c), for c of the image's channels from `channel` on.
 */
#include "dtconv_cuda.h"

/* sizes: three axes (depth, height, width), each: extent, out, kernel, stride, dilation, before */
struct axis {
    int32_t extent, out, kernel, stride, dilation, before;
};

__device__ inline axis axis_of(Array<const int64_t> sizes, int number) {
    axis a;
    a.extent = (int32_t)sizes[6 * number];
    a.out = (int32_t)sizes[6 * number + 1];
    a.kernel = (int32_t)sizes[6 * number + 2];
    a.stride = (int32_t)sizes[6 * number + 3];
    a.dilation = (int32_t)sizes[6 * number + 4];
    a.before = (int32_t)sizes[6 * number + 5];
    return a;
}

/* The pixel of a tap along one axis; -1 on the padding. */
__device__ inline int32_t pixel_of(const axis &a, int32_t out, int32_t tap) {
    const int32_t at = out * a.stride - a.before + tap * a.dilation;
    return at >= 0 && at < a.extent ? at : -1;
}

/* `lanes` neighbouring threads (a power of two) have a run of one output: `run` taps along the width, which lie
 * together in the image as in the columns where pixels do (run = kernel) and are one tap else (run = 1), with their
 * channels. */
template <int W>
__device__ inline void gather(int64_t lanes, int64_t run, int64_t images, int64_t c, int64_t channel,
                              Array<const int64_t> sizes, Array<const real> x, int64_t ldx, Array<real> columns) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    const uint32_t taps_w = w.kernel / (int32_t)run, taps = d.kernel * h.kernel * taps_w;
    const uint32_t outs = d.out * h.out * w.out, shift = 31 - __clz((int)lanes);
    const int32_t length = (int32_t)(run * c);
    const int64_t end = w.extent * c;
    pack<W> zeros;
    for (int e = 0; e < W; e++) zeros.v[e] = 0;
    FOR_EACH(i, images * outs * taps * lanes) {
        const uint32_t item = (uint32_t)(i >> shift), row = item / taps, tap = item - row * taps;
        const uint32_t image = row / outs, out = row - image * outs, line = out / w.out, lines = tap / taps_w;
        const uint32_t depth = line / h.out, tap_d = lines / h.kernel;
        const int32_t at_h = pixel_of(h, line - depth * h.out, lines - tap_d * h.kernel);
        const int32_t at_d = pixel_of(d, depth, tap_d);
        const int32_t at_w = (out - line * w.out) * w.stride - w.before + (tap - lines * taps_w) * w.dilation;
        const int64_t from = at_w * c;
        const bool inside = at_h >= 0 && at_d >= 0;
        const int64_t first = (((int64_t)image * d.extent + at_d) * h.extent + at_h) * w.extent + at_w;
        const int64_t source = first * ldx + channel, place = (int64_t)item * length;
        for (int32_t j = (int32_t)(i & (lanes - 1)) * W; j < length; j += (int32_t)lanes * W)
            store<W>(columns, place + j, inside && from + j >= 0 && from + j < end ? load<W>(x, source + j) : zeros);
    }
}

/* wide: whether PACK channels are moved at once */
GLOBAL im2col(int64_t wide, int64_t lanes, int64_t run, int64_t images, int64_t c, int64_t channel,
              Array<const int64_t> sizes, Array<const real> x, int64_t ldx, Array<real> columns) {
    if (wide)
        gather<PACK>(lanes, run, images, c, channel, sizes, x, ldx, columns);
    else
        gather<1>(lanes, run, images, c, channel, sizes, x, ldx, columns);
}
KERNEL(im2col)

/* The output whose tap lies on a pixel; -1: none. */
__device__ inline int32_t out_of(const axis &a, int32_t pixel, int32_t tap) {
    const int32_t at = pixel + a.before - tap * a.dilation;
    if (a.stride == 1) return at < a.out ? at : -1;
    return at >= 0 && at % a.stride == 0 && at / a.stride < a.out ? at / a.stride : -1;
}

template <int W>
__device__ inline void scatter(int64_t images, int64_t c, int64_t channel, Array<const int64_t> sizes,
                               Array<const real> columns, int64_t accumulate, Array<real> x, int64_t ldx) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, images * d.extent * h.extent * w.extent * (c / W)) {
        const cell place = cell_of(i, c / W), image = cell_of(place.row, (int64_t)d.extent * h.extent * w.extent);
        const uint32_t at = (uint32_t)image.column, line = at / w.extent;
        const int32_t at_w = at - line * w.extent, at_d = line / h.extent, at_h = line - at_d * h.extent;
        const int64_t j = place.column * W;
        pack<W> sum;
        for (int e = 0; e < W; e++) sum.v[e] = 0;
        for (int32_t tap_d = 0; tap_d < d.kernel; tap_d++) {
            const int32_t od = out_of(d, at_d, tap_d);
            if (od < 0) continue;
            for (int32_t tap_h = 0; tap_h < h.kernel; tap_h++) {
                const int32_t oh = out_of(h, at_h, tap_h);
                if (oh < 0) continue;
                const int64_t first = ((image.row * d.out + od) * h.out + oh) * w.out;
                for (int32_t tap_w = 0; tap_w < w.kernel; tap_w++) {
                    const int32_t ow = out_of(w, at_w, tap_w);
                    if (ow < 0) continue;
                    const int64_t tap = (tap_d * h.kernel + tap_h) * w.kernel + tap_w;
                    add(sum, load<W>(columns, ((first + ow) * d.kernel * h.kernel * w.kernel + tap) * c + j));
                }
            }
        }
        const int64_t target = place.row * ldx + channel + j;
        if (accumulate) add(sum, load<W>(readable(x), target));
        store<W>(x, target, sum);
    }
}

/* x (+)= the sum of all columns that im2col makes of each of its elements */
GLOBAL col2im(int64_t wide, int64_t images, int64_t c, int64_t channel, Array<const int64_t> sizes,
              Array<const real> columns, int64_t accumulate, Array<real> x, int64_t ldx) {
    if (wide)
        scatter<PACK>(images, c, channel, sizes, columns, accumulate, x, ldx);
    else
        scatter<1>(images, c, channel, sizes, columns, accumulate, x, ldx);
}
KERNEL(col2im)

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

/* `lanes` neighbouring threads have one tap of one output: its channels. */
GLOBAL im2col(int64_t lanes, int64_t images, int64_t c, int64_t channel, Array<const int64_t> sizes,
              Array<const real> x, int64_t ldx, Array<real> columns) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, images * d.out * h.out * w.out * d.kernel * h.kernel * w.kernel * lanes) {
        const int64_t item = i / lanes, lane = i - item * lanes, place = item * c;
        const uint32_t taps = d.kernel * h.kernel * w.kernel, outs = d.out * h.out * w.out;
        const int64_t row = item / taps, image = row / outs;
        const uint32_t tap = (uint32_t)(item - row * taps), out = (uint32_t)(row - image * outs);
        const int32_t at_w = pixel_of(w, out % w.out, tap % w.kernel);
        const int32_t at_h = pixel_of(h, out / w.out % h.out, tap / w.kernel % h.kernel);
        const int32_t at_d = pixel_of(d, out / w.out / h.out, tap / w.kernel / h.kernel);
        const bool inside = at_w >= 0 && at_h >= 0 && at_d >= 0;
        const int64_t pixel = ((image * d.extent + at_d) * h.extent + at_h) * w.extent + at_w;
        for (int64_t j = lane; j < c; j += lanes) columns[place + j] = inside ? x[pixel * ldx + channel + j] : 0;
    }
}
KERNEL(im2col)

/* The output whose tap lies on a pixel; -1: none. */
__device__ inline int32_t out_of(const axis &a, int32_t pixel, int32_t tap) {
    const int32_t at = pixel + a.before - tap * a.dilation;
    return at >= 0 && at % a.stride == 0 && at / a.stride < a.out ? at / a.stride : -1;
}

/* x (+)= the sum of all columns that im2col makes of each of its elements */
GLOBAL col2im(int64_t images, int64_t c, int64_t channel, Array<const int64_t> sizes, Array<const real> columns,
              int64_t accumulate, Array<real> x, int64_t ldx) {
    const axis d = axis_of(sizes, 0), h = axis_of(sizes, 1), w = axis_of(sizes, 2);
    FOR_EACH(i, images * d.extent * h.extent * w.extent * c) {
        const int64_t pixel = i / c, j = i - pixel * c, image = pixel / ((int64_t)d.extent * h.extent * w.extent);
        const uint32_t at = (uint32_t)(pixel - image * d.extent * h.extent * w.extent);
        const int32_t at_w = at % w.extent, at_h = at / w.extent % h.extent, at_d = at / w.extent / h.extent;
        real sum = 0;
        for (int32_t tap_d = 0; tap_d < d.kernel; tap_d++) {
            const int32_t od = out_of(d, at_d, tap_d);
            if (od < 0) continue;
            for (int32_t tap_h = 0; tap_h < h.kernel; tap_h++) {
                const int32_t oh = out_of(h, at_h, tap_h);
                if (oh < 0) continue;
                for (int32_t tap_w = 0; tap_w < w.kernel; tap_w++) {
                    const int32_t ow = out_of(w, at_w, tap_w);
                    if (ow < 0) continue;
                    const int64_t row = ((image * d.out + od) * h.out + oh) * w.out + ow;
                    const int64_t tap = (tap_d * h.kernel + tap_h) * w.kernel + tap_w;
                    sum += columns[(row * d.kernel * h.kernel * w.kernel + tap) * c + j];
                }
            }
        }
        Array<real> place = x + (pixel * ldx + channel + j);
        place[0] = accumulate ? place[0] + sum : sum;
    }
}
KERNEL(col2im)

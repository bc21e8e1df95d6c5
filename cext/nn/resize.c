/* Bilinear resizing of images (n, ih, iw, c) -> (n, oh, ow, c).
 *
 * Output pixel i looks at source coordinate (i + 1/2) ih / oh - 1/2, limited to [0, ih - 1]; the same for columns.
 * Backward spreads each dy over the four pixels that made it, image by image, so that no two threads meet.
 */
#include "dtconv_nn_elem.h"

typedef struct {
    int64_t low, high;
    real part; /* weight of `high` */
} taps;

static inline taps taps_of(int64_t i, int64_t in, int64_t out) {
    double at = ((double)i + 0.5) * (double)in / (double)out - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at;
    low = low > in - 1 ? in - 1 : low;
    const int64_t high = low + 1 < in ? low + 1 : low;
    return (taps){low, high, high > low ? (real)(at - (double)low) : 0};
}

dtconv_status DT(bilinear_forward)(int64_t n, int64_t ih, int64_t iw, int64_t oh, int64_t ow, int64_t c, const elem *x,
                                   int64_t ldx, elem *y, int64_t ldy) {
#pragma omp parallel for num_threads(dtconv_threads_to_move(n * oh * ow * c)) schedule(dynamic, dtconv_piece(n *oh))
    for (int64_t row = 0; row < n * oh; row++) {
        const taps v = taps_of(row % oh, ih, oh);
        const elem *top = x + (row / oh * ih + v.low) * iw * ldx, *bottom = x + (row / oh * ih + v.high) * iw * ldx;
        for (int64_t j = 0; j < ow; j++) {
            const taps h = taps_of(j, iw, ow);
            const elem *tl = top + h.low * ldx, *tr = top + h.high * ldx;
            const elem *bl = bottom + h.low * ldx, *br = bottom + h.high * ldx;
            elem *out = y + (row * ow + j) * ldy;
            for (int64_t k = 0; k < c; k++) {
                const real upper = widen(tl[k]) + h.part * (widen(tr[k]) - widen(tl[k]));
                const real lower = widen(bl[k]) + h.part * (widen(br[k]) - widen(bl[k]));
                out[k] = narrow(upper + v.part * (lower - upper));
            }
        }
    }
    return DTCONV_OK;
}

static inline void add(elem *x, real value) { *x = narrow(widen(*x) + value); }

static void spread_pixel(int64_t c, const elem *dy, taps v, taps h, int64_t iw, int64_t ld, elem *dx) {
    elem *tl = dx + (v.low * iw + h.low) * ld, *tr = dx + (v.low * iw + h.high) * ld;
    elem *bl = dx + (v.high * iw + h.low) * ld, *br = dx + (v.high * iw + h.high) * ld;
    for (int64_t k = 0; k < c; k++) {
        const real lower = v.part * widen(dy[k]), upper = widen(dy[k]) - lower;
        add(tl + k, (1 - h.part) * upper);
        add(tr + k, h.part * upper);
        add(bl + k, (1 - h.part) * lower);
        add(br + k, h.part * lower);
    }
}

dtconv_status DT(bilinear_backward)(int accumulate, int64_t n, int64_t ih, int64_t iw, int64_t oh, int64_t ow,
                                    int64_t c, const elem *dy, int64_t lddy, elem *dx, int64_t lddx) {
#pragma omp parallel for num_threads(dtconv_threads_to_move(n * oh * ow * c)) schedule(dynamic, 1)
    for (int64_t image = 0; image < n; image++) {
        elem *to = dx + image * ih * iw * lddx;
        if (!accumulate)
            for (int64_t i = 0; i < ih * iw; i++)
                for (int64_t k = 0; k < c; k++) to[i * lddx + k] = 0;
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++)
                spread_pixel(c, dy + ((image * oh + i) * ow + j) * lddy, taps_of(i, ih, oh), taps_of(j, iw, ow), iw,
                             lddx, to);
    }
    return DTCONV_OK;
}

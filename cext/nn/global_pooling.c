/* Global pooling: mean or maximum over all pixels of a sample.
 *
 *   y[b, :] = mean or max over i < pixels of x[b, i, :]          x (n, pixels, c), y (n, c)
 *
 * Work is cut into samples and strips of channels; a sum is made of blocks of pixels, so that its error does not grow
 * with the image.  One pass over x, or over dx.
 */
#include "dtconv_nn_pooling.h"
#include "norm_common.h"

/* PIXELS: summed before their sum is added to the total. */
enum { PIXELS = 64, FEW = 8 };

dtconv_status DT(global_average_pool_forward)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, elem *y,
                                              int64_t ldy) {
    const real share = (real)(1.0 / (double)pixels);
    /* pixels of few channels go together, as one of many */
    const int64_t together = ldx == c && c <= FEW ? STRIP / c : 1, channels = c * together, groups = pixels / together;
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t b = 0; b < n; b++)
        for (int64_t j0 = 0; j0 < channels; j0 += STRIP) {
            real total[STRIP], sum[STRIP];
            const int64_t width = min_i64(STRIP, channels - j0), own = min_i64(width, c);
            const elem *first = x + b * pixels * ldx + j0;
            for (int64_t j = 0; j < width; j++) total[j] = 0;
            for (int64_t block = 0; block < groups; block += PIXELS) {
                for (int64_t j = 0; j < width; j++) sum[j] = 0;
                for (int64_t i = block; i < min_i64(groups, block + PIXELS); i++) {
                    const elem *xi = first + i * together * ldx;
                    for (int64_t j = 0; j < width; j++) sum[j] += widen(xi[j]);
                }
                for (int64_t j = 0; j < width; j++) total[j] += sum[j];
            }
            for (int64_t j = own; j < width; j++) total[j % c] += total[j];
            for (int64_t i = groups * together; i < pixels; i++)
                for (int64_t j = 0; j < own; j++) total[j] += widen(first[i * ldx + j]);
            for (int64_t j = 0; j < own; j++) y[b * ldy + j0 + j] = narrow(total[j] * share);
        }
    return DTCONV_OK;
}

dtconv_status DT(global_average_pool_backward)(int64_t n, int64_t pixels, int64_t c, const elem *dy, int64_t lddy,
                                               int accumulate, elem *dx, int64_t lddx) {
    const real share = (real)(1.0 / (double)pixels);
#pragma omp parallel for schedule(dynamic, dtconv_piece(n *pixels)) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t i = 0; i < n * pixels; i++) {
        const elem *g = dy + i / pixels * lddy;
        elem *di = dx + i * lddx;
        if (accumulate)
            for (int64_t j = 0; j < c; j++) di[j] = narrow(widen(di[j]) + widen(g[j]) * share);
        else
            for (int64_t j = 0; j < c; j++) di[j] = narrow(widen(g[j]) * share);
    }
    return DTCONV_OK;
}

dtconv_status DT(global_max_pool_forward)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, elem *y,
                                          int64_t ldy, int32_t *argmax) {
    if (pixels < 1 || pixels > INT32_MAX) return DTCONV_ARGUMENT;
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t b = 0; b < n; b++)
        for (int64_t j0 = 0; j0 < c; j0 += STRIP) {
            real best[STRIP];
            int32_t where[STRIP];
            const int64_t width = min_i64(STRIP, c - j0);
            const elem *first = x + b * pixels * ldx + j0;
            for (int64_t j = 0; j < width; j++) {
                best[j] = widen(first[j]);
                where[j] = 0;
            }
            for (int64_t i = 1; i < pixels; i++) {
                const elem *xi = first + i * ldx;
                for (int64_t j = 0; j < width; j++) {
                    const real value = widen(xi[j]);
                    const int take = (value > best[j]) | (value != value);
                    best[j] = take ? value : best[j];
                    where[j] = take ? (int32_t)i : where[j];
                }
            }
            for (int64_t j = 0; j < width; j++) y[b * ldy + j0 + j] = narrow(best[j]);
            if (argmax)
                for (int64_t j = 0; j < width; j++) argmax[b * c + j0 + j] = where[j];
        }
    return DTCONV_OK;
}

dtconv_status DT(global_max_pool_backward)(int64_t n, int64_t pixels, int64_t c, const elem *dy, int64_t lddy,
                                           const int32_t *argmax, int accumulate, elem *dx, int64_t lddx) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(n *pixels)) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t i = 0; i < n * pixels; i++) {
        const int64_t b = i / pixels;
        const int32_t here = (int32_t)(i % pixels), *where = argmax + b * c;
        const elem *g = dy + b * lddy;
        elem *di = dx + i * lddx;
        if (accumulate)
            for (int64_t j = 0; j < c; j++) di[j] = narrow(widen(di[j]) + (where[j] == here ? widen(g[j]) : 0));
        else
            for (int64_t j = 0; j < c; j++) di[j] = where[j] == here ? g[j] : narrow(0);
    }
    return DTCONV_OK;
}

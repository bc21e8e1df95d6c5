/* Softmax and its logarithm over k of (outer, k, inner).
 *
 *   y = exp(x - m) / s,  m = max x,  s = sum exp(x - m);      logarithm: y = x - m - log s
 *   dx = y * (dy - sum(dy * y));                              logarithm: dx = dy - exp(y) * sum dy
 *
 * inner == 1 is the usual case, a row at a time; otherwise k is walked for a block of `inner` at once, so that both
 * vectorise.  A row stays in cache: memory is read and written once.
 */
#include "dtconv_nn_losses.h"
#include "norm_common.h"

enum { BLOCK = 64 };

static void forward_row(int64_t k, int logarithm, const real *x, real *y) {
    const real m = maximum(x, k, 1);
    real s = 0;
    if (logarithm) {
#pragma omp simd reduction(+ : s)
        for (int64_t j = 0; j < k; j++) s += fast_exp(x[j] - m);
        const real shift = (real)log((double)s);
#pragma omp simd
        for (int64_t j = 0; j < k; j++) y[j] = (x[j] - m) - shift;
        return;
    }
#pragma omp simd reduction(+ : s)
    for (int64_t j = 0; j < k; j++) {
        y[j] = fast_exp(x[j] - m);
        s += y[j];
    }
    const real share = 1 / s;
    for (int64_t j = 0; j < k; j++) y[j] *= share;
}

/* `width` neighbours of `inner`; classes lie `step` apart. */
static void forward_block(int64_t k, int64_t step, int64_t width, int logarithm, const real *x, real *y) {
    real m[BLOCK], s[BLOCK];
    for (int64_t i = 0; i < width; i++) {
        m[i] = x[i];
        s[i] = 0;
    }
    for (int64_t j = 1; j < k; j++)
        for (int64_t i = 0; i < width; i++) m[i] = x[j * step + i] > m[i] ? x[j * step + i] : m[i];
    for (int64_t j = 0; j < k; j++) {
        const real *xj = x + j * step;
        real *yj = y + j * step;
        if (logarithm) {
            for (int64_t i = 0; i < width; i++) s[i] += fast_exp(xj[i] - m[i]);
        } else {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) {
                yj[i] = fast_exp(xj[i] - m[i]);
                s[i] += yj[i];
            }
        }
    }
    for (int64_t i = 0; i < width; i++) s[i] = logarithm ? (real)log((double)s[i]) : 1 / s[i];
    for (int64_t j = 0; j < k; j++) {
        const real *xj = x + j * step;
        real *yj = y + j * step;
        if (logarithm) {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) yj[i] = (xj[i] - m[i]) - s[i];
        } else {
            for (int64_t i = 0; i < width; i++) yj[i] *= s[i];
        }
    }
}

dtconv_status DT(softmax_forward)(int64_t outer, int64_t k, int64_t inner, int logarithm, const real *x, int64_t ldx,
                                  real *y, int64_t ldy) {
    if (k < 1) return DTCONV_ARGUMENT;
    if (inner == 1) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(outer)) num_threads(dtconv_threads_to_move(outer * k * 8))
        for (int64_t o = 0; o < outer; o++) forward_row(k, logarithm, x + o * ldx, y + o * ldy);
        return DTCONV_OK;
    }
#pragma omp parallel for collapse(2) schedule(static) num_threads(dtconv_threads_to_move(outer * k * inner * 8))
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i += BLOCK) {
            const int64_t at = o * k * inner + i;
            forward_block(k, inner, min_i64(BLOCK, inner - i), logarithm, x + at, y + at);
        }
    return DTCONV_OK;
}

INLINE real backward_element(int logarithm, real y, real dy, real sum) {
    return logarithm ? dy - fast_exp(y) * sum : y * (dy - sum);
}

INLINE void backward_row(int logarithm, int64_t k, const real *y, const real *dy, int accumulate, real *dx) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < k; j++) sum += logarithm ? dy[j] : dy[j] * y[j];
    if (accumulate) {
#pragma omp simd
        for (int64_t j = 0; j < k; j++) dx[j] += backward_element(logarithm, y[j], dy[j], sum);
    } else {
#pragma omp simd
        for (int64_t j = 0; j < k; j++) dx[j] = backward_element(logarithm, y[j], dy[j], sum);
    }
}

INLINE void backward_block(int logarithm, int64_t k, int64_t step, int64_t width, const real *y, const real *dy,
                           int accumulate, real *dx) {
    real sum[BLOCK];
    for (int64_t i = 0; i < width; i++) sum[i] = 0;
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < width; i++) sum[i] += logarithm ? dy[j * step + i] : dy[j * step + i] * y[j * step + i];
    for (int64_t j = 0; j < k; j++) {
        const real *yj = y + j * step, *gj = dy + j * step;
        real *dj = dx + j * step;
        if (accumulate) {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) dj[i] += backward_element(logarithm, yj[i], gj[i], sum[i]);
        } else {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) dj[i] = backward_element(logarithm, yj[i], gj[i], sum[i]);
        }
    }
}

dtconv_status DT(softmax_backward)(int64_t outer, int64_t k, int64_t inner, int logarithm, const real *y, int64_t ldy,
                                   const real *dy, int64_t lddy, int accumulate, real *dx, int64_t lddx) {
    if (inner == 1) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(outer)) num_threads(dtconv_threads_to_move(outer * k * 4))
        for (int64_t o = 0; o < outer; o++) {
            if (logarithm)
                backward_row(1, k, y + o * ldy, dy + o * lddy, accumulate, dx + o * lddx);
            else
                backward_row(0, k, y + o * ldy, dy + o * lddy, accumulate, dx + o * lddx);
        }
        return DTCONV_OK;
    }
#pragma omp parallel for collapse(2) schedule(static) num_threads(dtconv_threads_to_move(outer * k * inner * 4))
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i += BLOCK) {
            const int64_t at = o * k * inner + i, width = min_i64(BLOCK, inner - i);
            if (logarithm)
                backward_block(1, k, inner, width, y + at, dy + at, accumulate, dx + at);
            else
                backward_block(0, k, inner, width, y + at, dy + at, accumulate, dx + at);
        }
    return DTCONV_OK;
}

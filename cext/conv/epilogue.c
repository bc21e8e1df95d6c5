/* Bias, scale, residual and activation on the way out of a convolution, and their backward.
 *
 *   forward    y = act((y + b) * scale + beta + r), on each block of y while it is in cache
 *   backward   dy = dy * act'(y), db[c] = sum over pixels of dy[pixel, c], in one sweep
 *
 * All activations here have a derivative that follows from y.  The pixels of backward are cut into at most SLICES parts
 * of equal size, at the same places on any number of threads; the parts' sums are added in order.
 */
#include "activate.h"
#include "conv_internal.h"

enum { SLICES = 32, SLICE_MIN = 64 };

static inline __attribute__((always_inline)) void activate_rows(const DT(bias_activation) * e, int64_t m, int64_t n,
                                                                int64_t first, const elem *added, elem *c, int64_t ldc,
                                                                dtconv_activation activation) {
    const real *bias = e->bias ? e->bias + first : NULL;
    for (int64_t i = 0; i < m; i++, c += ldc, added += e->ldr) {
        if (e->scale) {
            const real *scale = e->scale + first, *beta = e->beta + first;
            for (int64_t j = 0; j < n; j++) c[j] = narrow((widen(c[j]) + (bias ? bias[j] : 0)) * scale[j] + beta[j]);
            if (!e->residual && activation == DTCONV_LINEAR) continue;
        }
        if (bias && !e->scale && e->residual)
            for (int64_t j = 0; j < n; j++)
                c[j] = narrow(activate(widen(c[j]) + bias[j] + widen(added[j]), activation, e->alpha));
        else if (e->residual)
            for (int64_t j = 0; j < n; j++)
                c[j] = narrow(activate(widen(c[j]) + widen(added[j]), activation, e->alpha));
        else if (bias && !e->scale)
            for (int64_t j = 0; j < n; j++) c[j] = narrow(activate(widen(c[j]) + bias[j], activation, e->alpha));
        else
            for (int64_t j = 0; j < n; j++) c[j] = narrow(activate(widen(c[j]), activation, e->alpha));
    }
}

void DT(bias_activation_epilogue)(const void *context, int64_t i, int64_t m, int64_t j, int64_t n, elem *c,
                                  int64_t ldc) {
    const DT(bias_activation) *e = context;
    const elem *added = e->residual ? e->residual + i * e->ldr + j : c;
    switch ((int)e->activation) { /* a loop of its own for each, so that it is vectorised */
#define FUSED(NAME, kind, f, gradient)                           \
    case DTCONV_##NAME:                                          \
        activate_rows(e, m, n, j, added, c, ldc, DTCONV_##NAME); \
        break;
#include "../cuda/activations.h"
    }
}

#ifndef DTCONV_BFLOAT16 /* of numbers that are not rounded yet, also there */
void DT(activate_numbers)(int64_t count, dtconv_activation activation, real alpha, real *x) {
    switch ((int)activation) {
#define FUSED(NAME, kind, f, gradient)                                                   \
    case DTCONV_##NAME:                                                                  \
        for (int64_t i = 0; i < count; i++) x[i] = activate(x[i], DTCONV_##NAME, alpha); \
        break;
#include "../cuda/activations.h"
    }
}
#endif

dtconv_status DT(conv_bias_forward)(int64_t pixels, int64_t co, elem *y, int64_t ldy, const real *bias,
                                    dtconv_activation activation, real alpha) {
    const DT(bias_activation) finish = {.bias = bias, .activation = activation, .alpha = alpha};
    if (!bias && activation == DTCONV_LINEAR) return DTCONV_OK;
    const int64_t block = MAX(1, 16384 / co);
#pragma omp parallel for num_threads(dtconv_threads_to_move(pixels *co)) schedule(dynamic, 1)
    for (int64_t i = 0; i < pixels; i += block)
        DT(bias_activation_epilogue)(&finish, i, MIN(block, pixels - i), 0, co, y + i * ldy, ldy);
    return DTCONV_OK;
}

/* dy *= act'(y) for one pixel, and sum += dy where sums are wanted. */
static inline __attribute__((always_inline)) void backward_pixel(int64_t co, const elem *y, elem *dy, real *sum,
                                                                 dtconv_activation activation, real alpha) {
    if (activation != DTCONV_LINEAR)
        for (int64_t c = 0; c < co; c++) dy[c] = narrow(through(widen(dy[c]), widen(y[c]), activation, alpha));
    if (sum)
        for (int64_t c = 0; c < co; c++) sum[c] += widen(dy[c]);
}

static void backward_slice(int64_t pixels, int64_t co, const elem *y, int64_t ldy, elem *dy, int64_t lddy, real *sum,
                           dtconv_activation activation, real alpha) {
    if (activation == DTCONV_LINEAR) y = dy, ldy = lddy; /* there may be none, and none is read */
    switch ((int)activation) {
#define FUSED(NAME, kind, f, gradient)                                                 \
    case DTCONV_##NAME:                                                                \
        for (int64_t i = 0; i < pixels; i++)                                           \
            backward_pixel(co, y + i * ldy, dy + i * lddy, sum, DTCONV_##NAME, alpha); \
        break;
#include "../cuda/activations.h"
    }
}

size_t DT(conv_bias_backward_workspace)(int64_t co) { return SLICES * dtconv_round((size_t)co * sizeof(real)); }

dtconv_status DT(conv_bias_backward)(int64_t pixels, int64_t co, const elem *y, int64_t ldy, elem *dy, int64_t lddy,
                                     dtconv_activation activation, real alpha, real *db, void *workspace,
                                     size_t bytes) {
    if (activation == DTCONV_LINEAR && !db) return DTCONV_OK;
    if (activation != DTCONV_LINEAR && !y) return DTCONV_ARGUMENT;
    if (db && bytes < DT(conv_bias_backward_workspace)(co)) return DTCONV_WORKSPACE;
    const int64_t slice = MAX(SLICE_MIN, dtconv_ceil_div(pixels, SLICES)), slices = dtconv_ceil_div(pixels, slice);
    const size_t stride = dtconv_round((size_t)co * sizeof(real));
#pragma omp parallel for num_threads(dtconv_threads_to_move(pixels *co)) schedule(dynamic, 1)
    for (int64_t s = 0; s < slices; s++) {
        real *sum = db ? (real *)((char *)workspace + (size_t)s * stride) : NULL;
        if (sum) memset(sum, 0, stride);
        const elem *slice_y = y ? y + s * slice * ldy : NULL;
        backward_slice(MIN(slice, pixels - s * slice), co, slice_y, ldy, dy + s * slice * lddy, lddy, sum, activation,
                       alpha);
    }
    if (!db) return DTCONV_OK;
    for (int64_t c = 0; c < co; c++) db[c] = 0;
    for (int64_t s = 0; s < slices; s++) {
        const real *sum = (const real *)((const char *)workspace + (size_t)s * stride);
        for (int64_t c = 0; c < co; c++) db[c] += sum[c];
    }
    return DTCONV_OK;
}

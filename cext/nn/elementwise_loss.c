/* Losses that are a mean (some: a sum) of a function f of prediction x and truth t over k of (outer, k, inner).
 *
 *   loss[o, i] = share * sum_j f(x[o, j, i], t[o, j, i]);      dx = share * f'(x, t) * dloss
 *
 * The table cuda/elementwise_losses.h gives each f.  Every kind is compiled on its own, with its f and f' inlined.  One
 * pass over x and t; sums are taken in double precision.
 */
#include "dtconv_nn_losses.h"
#include "norm_common.h"

#ifdef DTCONV_DOUBLE
#define loss_log log
#define loss_log1p log1p
#define loss_abs fabs
#else
#define loss_log logf
#define loss_log1p log1pf
#define loss_abs fabsf
#endif
#define loss_exp fast_exp
#define F(name) loss_##name
#define PARTS INLINE
#include "../cuda/elementwise_losses.h"

/* The parameters of a loss: a and smoothing as in the header; signs: 0-1 labels stand for -1 and 1. */
typedef struct {
    real a, smoothing;
    int signs;
} parameters;

INLINE real loss_sigmoid(real v) { return 1 / (1 + fast_exp(-v)); }

/* The truth as the formulas want it. */
INLINE real truth_of(dtconv_loss kind, const parameters *q, real t) {
    switch (kind) {
#define LABELLED(NAME, kind, value, slope) \
    case DTCONV_LOSS_##NAME:               \
        return q->signs ? 2 * t - 1 : t;
#define SMOOTHED(NAME, kind, value, slope) \
    case DTCONV_LOSS_##NAME:               \
        return t * (1 - q->smoothing) + q->smoothing / 2;
#include "../cuda/elementwise_losses.h"
        default:
            return t;
    }
}

INLINE int is_summed(dtconv_loss kind) {
    switch (kind) {
#define SUMMED(NAME, kind, value, slope) case DTCONV_LOSS_##NAME:
#include "../cuda/elementwise_losses.h"
        return 1;
        default:
            return 0;
    }
}

INLINE real value_of(dtconv_loss kind, const parameters *q, real x, real truth) {
    const real a = q->a, t = truth_of(kind, q, truth), e = x - t;
    switch (kind) {
#define LOSS(NAME, kind, value, slope) \
    case DTCONV_LOSS_##NAME:           \
        return value;
#include "../cuda/elementwise_losses.h"
    }
    return e;
}

INLINE real slope_of(dtconv_loss kind, const parameters *q, real x, real truth) {
    const real a = q->a, t = truth_of(kind, q, truth), e = x - t;
    switch (kind) {
#define LOSS(NAME, kind, value, slope) \
    case DTCONV_LOSS_##NAME:           \
        return slope;
#include "../cuda/elementwise_losses.h"
    }
    return e;
}

INLINE real sum_values(dtconv_loss kind, const parameters *q, int64_t k, int64_t stride, const real *x, const real *t,
                       real *p) {
    double sum = 0;
    for (int64_t j = 0; j < k; j++) {
        sum += (double)value_of(kind, q, x[j * stride], t[j * stride]);
        if (kind == DTCONV_LOSS_SIGMOID) p[j * stride] = loss_sigmoid(x[j * stride]);
    }
    return (real)(is_summed(kind) ? sum : sum / (double)k);
}

INLINE void put_slopes(dtconv_loss kind, const parameters *q, int64_t k, int64_t stride, const real *x, const real *t,
                       real dloss, const real *dp, int accumulate, real *dx) {
    const real factor = is_summed(kind) ? dloss : dloss / (real)k;
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        const real v = x[j * stride];
        const real slope = slope_of(kind, q, v, t[j * stride]);
        real value = slope == 0 ? 0 : slope * factor; /* beyond a margin or a bound, however large the factor is */
        if (kind == DTCONV_LOSS_SIGMOID && dp) value += dp[j * stride] * v * (1 - v);
        dx[j * stride] = accumulate ? dx[j * stride] + value : value;
    }
}

/* Whether all of t is 0 or 1, which the hinge losses take for -1 or 1. */
static int zeros_and_ones(dtconv_loss kind, const real *t, int64_t count) {
    if (truth_of(kind, &(parameters){.signs = 1}, 0) == 0) return 0;
    int others = 0;
    for (int64_t i = 0; i < count && !others; i++) others = t[i] != 0 && t[i] != 1;
    return !others;
}

dtconv_status DT(elementwise_loss_forward)(int64_t outer, int64_t k, int64_t inner, dtconv_loss kind, real a,
                                           real smoothing, const real *x, const real *t, real *p, real *loss) {
    if (k < 1 || (kind == DTCONV_LOSS_SIGMOID && !p)) return DTCONV_ARGUMENT;
    const parameters q = {a, smoothing, zeros_and_ones(kind, t, outer * k * inner)};
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(outer * inner * k * 4))
    for (int64_t sample = 0; sample < outer * inner; sample++) {
        const int64_t at = sample / inner * k * inner + sample % inner;
        real *pp = p ? p + at : NULL;
        switch (kind) {
#define LOSS(NAME, kind, value, slope)                                                   \
    case DTCONV_LOSS_##NAME:                                                             \
        loss[sample] = sum_values(DTCONV_LOSS_##NAME, &q, k, inner, x + at, t + at, pp); \
        break;
#include "../cuda/elementwise_losses.h"
        }
    }
    return DTCONV_OK;
}

dtconv_status DT(elementwise_loss_backward)(int64_t outer, int64_t k, int64_t inner, dtconv_loss kind, real a,
                                            real smoothing, const real *x, const real *t, const real *dloss,
                                            const real *dp, int accumulate, real *dx) {
    if (k < 1) return DTCONV_ARGUMENT;
    const parameters q = {a, smoothing, zeros_and_ones(kind, t, outer * k * inner)};
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(outer * inner * k * 4))
    for (int64_t sample = 0; sample < outer * inner; sample++) {
        const int64_t at = sample / inner * k * inner + sample % inner;
        const real *own = dp ? dp + at : NULL, g = dloss ? dloss[sample] : 0;
        switch (kind) {
#define LOSS(NAME, kind, value, slope)                                                             \
    case DTCONV_LOSS_##NAME:                                                                       \
        put_slopes(DTCONV_LOSS_##NAME, &q, k, inner, x + at, t + at, g, own, accumulate, dx + at); \
        break;
#include "../cuda/elementwise_losses.h"
        }
    }
    return DTCONV_OK;
}

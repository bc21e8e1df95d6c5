/* Losses that are a mean (DIVERGENCE: a sum) of a function f of prediction x and truth t over k of (outer, k, inner).
 *
 *   loss[o, i] = share * sum_j f(x[o, j, i], t[o, j, i]);      dx = share * f'(x, t) * dloss
 *
 * dtconv_nn_losses.h gives each f.  Every kind is compiled on its own, with its f and f' inlined.  One pass over x and
 * t; sums are taken in double precision.
 */
#include "dtconv_nn_losses.h"
#include "norm_common.h"

#ifdef DTCONV_DOUBLE
#define LOG log
#define LOG1P log1p
#define FABS fabs
#else
#define LOG logf
#define LOG1P log1pf
#define FABS fabsf
#endif

/* The parameters of a loss: a and smoothing as in the header; signs: 0-1 labels stand for -1 and 1. */
typedef struct {
    real a, smoothing;
    int signs;
} parameters;

INLINE real between(real v, real low, real high) { return v < low ? low : (v > high ? high : v); }
INLINE real sign_of(real v) { return (real)(v > 0) - (real)(v < 0); }
INLINE real larger(real v, real w) { return v < w ? w : v; }
INLINE real sigmoid(real v) { return 1 / (1 + fast_exp(-v)); }
INLINE real smoothed(const parameters *q, real t) { return t * (1 - q->smoothing) + q->smoothing / 2; }
INLINE real signed_label(const parameters *q, real t) { return q->signs ? 2 * t - 1 : t; }

INLINE real value_of(dtconv_loss kind, const parameters *q, real x, real t) {
    const real e = x - t, a = q->a;
    switch (kind) {
        case DTCONV_LOSS_SQUARED:
            return e * e;
        case DTCONV_LOSS_ABSOLUTE:
            return FABS(e);
        case DTCONV_LOSS_PERCENTAGE:
            return 100 * FABS(e) / larger(FABS(t), a);
        case DTCONV_LOSS_LOGARITHMIC: {
            const real u = LOG(larger(x, a) + 1) - LOG(larger(t, a) + 1);
            return u * u;
        }
        case DTCONV_LOSS_HUBER:
            return FABS(e) <= a ? e * e / 2 : a * FABS(e) - a * a / 2;
        case DTCONV_LOSS_LOG_COSH:
            return FABS(e) + LOG1P(fast_exp(-2 * FABS(e))) - (real)0.69314718055994531;
        case DTCONV_LOSS_HINGE:
            return larger(1 - signed_label(q, t) * x, 0);
        case DTCONV_LOSS_SQUARED_HINGE: {
            const real margin = larger(1 - signed_label(q, t) * x, 0);
            return margin * margin;
        }
        case DTCONV_LOSS_POISSON:
            return x - t * LOG(x + a);
        case DTCONV_LOSS_DIVERGENCE: {
            const real u = between(t, a, 1);
            return u * LOG(u / between(x, a, 1));
        }
        case DTCONV_LOSS_BINARY: {
            const real u = smoothed(q, t), v = between(x, a, 1 - a);
            return -(u * LOG(v) + (1 - u) * LOG(1 - v));
        }
        default:
            return larger(x, 0) - x * smoothed(q, t) + LOG1P(fast_exp(-FABS(x)));
    }
}

INLINE real slope_of(dtconv_loss kind, const parameters *q, real x, real t) {
    const real e = x - t, a = q->a;
    switch (kind) {
        case DTCONV_LOSS_SQUARED:
            return 2 * e;
        case DTCONV_LOSS_ABSOLUTE:
            return sign_of(e);
        case DTCONV_LOSS_PERCENTAGE:
            return 100 * sign_of(e) / larger(FABS(t), a);
        case DTCONV_LOSS_LOGARITHMIC:
            return x > a ? 2 * (LOG(x + 1) - LOG(larger(t, a) + 1)) / (x + 1) : 0;
        case DTCONV_LOSS_HUBER:
            return between(e, -a, a);
        case DTCONV_LOSS_LOG_COSH:
            return 1 - 2 / (1 + fast_exp(2 * e));
        case DTCONV_LOSS_HINGE: {
            const real u = signed_label(q, t);
            return u * x < 1 ? -u : 0;
        }
        case DTCONV_LOSS_SQUARED_HINGE: {
            const real u = signed_label(q, t);
            return -2 * u * larger(1 - u * x, 0);
        }
        case DTCONV_LOSS_POISSON:
            return 1 - t / (x + a);
        case DTCONV_LOSS_DIVERGENCE:
            return x >= a && x <= 1 ? -between(t, a, 1) / x : 0;
        case DTCONV_LOSS_BINARY:
            return x >= a && x <= 1 - a ? (x - smoothed(q, t)) / (x * (1 - x)) : 0;
        case DTCONV_LOSS_BINARY_SCORES:
            return sigmoid(x) - smoothed(q, t);
        default:
            return x - smoothed(q, t); /* x is the sigmoid */
    }
}

INLINE real sum_values(dtconv_loss kind, const parameters *q, int64_t k, int64_t stride, const real *x, const real *t,
                       real *p) {
    double sum = 0;
    for (int64_t j = 0; j < k; j++) {
        sum += (double)value_of(kind, q, x[j * stride], t[j * stride]);
        if (kind == DTCONV_LOSS_SIGMOID) p[j * stride] = sigmoid(x[j * stride]);
    }
    return (real)(kind == DTCONV_LOSS_DIVERGENCE ? sum : sum / (double)k);
}

INLINE void put_slopes(dtconv_loss kind, const parameters *q, int64_t k, int64_t stride, const real *x, const real *t,
                       real dloss, const real *dp, int accumulate, real *dx) {
    const real factor = kind == DTCONV_LOSS_DIVERGENCE ? dloss : dloss / (real)k;
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        const real v = x[j * stride];
        const real slope = slope_of(kind, q, v, t[j * stride]);
        real value = slope == 0 ? 0 : slope * factor; /* beyond a margin or a bound, however large the factor is */
        if (kind == DTCONV_LOSS_SIGMOID && dp) value += dp[j * stride] * v * (1 - v);
        dx[j * stride] = accumulate ? dx[j * stride] + value : value;
    }
}

/* A switch that runs CALL(kind) with the kind as a constant. */
#define FOR_LOSS(kind, CALL)                 \
    switch (kind) {                          \
        case DTCONV_LOSS_SQUARED:            \
            CALL(DTCONV_LOSS_SQUARED);       \
            break;                           \
        case DTCONV_LOSS_ABSOLUTE:           \
            CALL(DTCONV_LOSS_ABSOLUTE);      \
            break;                           \
        case DTCONV_LOSS_PERCENTAGE:         \
            CALL(DTCONV_LOSS_PERCENTAGE);    \
            break;                           \
        case DTCONV_LOSS_LOGARITHMIC:        \
            CALL(DTCONV_LOSS_LOGARITHMIC);   \
            break;                           \
        case DTCONV_LOSS_HUBER:              \
            CALL(DTCONV_LOSS_HUBER);         \
            break;                           \
        case DTCONV_LOSS_LOG_COSH:           \
            CALL(DTCONV_LOSS_LOG_COSH);      \
            break;                           \
        case DTCONV_LOSS_HINGE:              \
            CALL(DTCONV_LOSS_HINGE);         \
            break;                           \
        case DTCONV_LOSS_SQUARED_HINGE:      \
            CALL(DTCONV_LOSS_SQUARED_HINGE); \
            break;                           \
        case DTCONV_LOSS_POISSON:            \
            CALL(DTCONV_LOSS_POISSON);       \
            break;                           \
        case DTCONV_LOSS_DIVERGENCE:         \
            CALL(DTCONV_LOSS_DIVERGENCE);    \
            break;                           \
        case DTCONV_LOSS_BINARY:             \
            CALL(DTCONV_LOSS_BINARY);        \
            break;                           \
        case DTCONV_LOSS_BINARY_SCORES:      \
            CALL(DTCONV_LOSS_BINARY_SCORES); \
            break;                           \
        case DTCONV_LOSS_SIGMOID:            \
            CALL(DTCONV_LOSS_SIGMOID);       \
            break;                           \
    }

/* Whether all of t is 0 or 1, which the hinge losses take for -1 or 1. */
static int zeros_and_ones(dtconv_loss kind, const real *t, int64_t count) {
    if (kind != DTCONV_LOSS_HINGE && kind != DTCONV_LOSS_SQUARED_HINGE) return 0;
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
#define VALUES(kind) loss[sample] = sum_values(kind, &q, k, inner, x + at, t + at, pp)
        FOR_LOSS(kind, VALUES)
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
#define SLOPES(kind) put_slopes(kind, &q, k, inner, x + at, t + at, g, own, accumulate, dx + at)
        FOR_LOSS(kind, SLOPES)
    }
    return DTCONV_OK;
}

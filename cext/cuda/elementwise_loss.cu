/* Losses that are a mean (DIVERGENCE: a sum) of a function of prediction and truth: cext/nn/elementwise_loss.c has the
 * formulas, the same kinds in the same order.
 *
 * A warp has one sample: k elements that lie `inner` apart; their sum is double.  signs: 0 where all labels of a hinge
 * loss are 0 or 1 and stand for -1 and 1; none given: they stand for themselves.
 */
#include "dtconv_cuda.h"
#include "functions.h"

enum kind {
    SQUARED,
    ABSOLUTE,
    PERCENTAGE,
    LOGARITHMIC,
    HUBER,
    LOG_COSH,
    HINGE,
    SQUARED_HINGE,
    POISSON,
    DIVERGENCE,
    BINARY,
    BINARY_SCORES,
    SIGMOID
};

__device__ inline real size_of(real v) { return v < 0 ? -v : v; }
__device__ inline real between(real v, real low, real high) { return v < low ? low : (v > high ? high : v); }
__device__ inline real sign_of(real v) { return (real)(v > 0) - (real)(v < 0); }
__device__ inline real larger(real v, real w) { return v < w ? w : v; }

/* t: smoothed, or with its sign, as the kind wants it */
__device__ inline real value_of(int kind, real a, real x, real t) {
    const real e = x - t;
    switch (kind) {
        case SQUARED:
            return e * e;
        case ABSOLUTE:
            return size_of(e);
        case PERCENTAGE:
            return 100 * size_of(e) / larger(size_of(t), a);
        case LOGARITHMIC: {
            const real u = log_(larger(x, a) + 1) - log_(larger(t, a) + 1);
            return u * u;
        }
        case HUBER:
            return size_of(e) <= a ? e * e / 2 : a * size_of(e) - a * a / 2;
        case LOG_COSH:
            return size_of(e) + log1p_(exp_(-2 * size_of(e))) - (real)0.69314718055994531;
        case HINGE:
            return larger(1 - t * x, 0);
        case SQUARED_HINGE: {
            const real margin = larger(1 - t * x, 0);
            return margin * margin;
        }
        case POISSON:
            return x - t * log_(x + a);
        case DIVERGENCE: {
            const real u = between(t, a, 1);
            return u * log_(u / between(x, a, 1));
        }
        case BINARY: {
            const real v = between(x, a, 1 - a);
            return -(t * log_(v) + (1 - t) * log_(1 - v));
        }
    }
    return larger(x, 0) - x * t + log1p_(exp_(-size_of(x)));
}

__device__ inline real slope_of(int kind, real a, real x, real t) {
    const real e = x - t;
    switch (kind) {
        case SQUARED:
            return 2 * e;
        case ABSOLUTE:
            return sign_of(e);
        case PERCENTAGE:
            return 100 * sign_of(e) / larger(size_of(t), a);
        case LOGARITHMIC:
            return x > a ? 2 * (log_(x + 1) - log_(larger(t, a) + 1)) / (x + 1) : 0;
        case HUBER:
            return between(e, -a, a);
        case LOG_COSH:
            return 1 - 2 / (1 + exp_(2 * e));
        case HINGE:
            return t * x < 1 ? -t : 0;
        case SQUARED_HINGE:
            return -2 * t * larger(1 - t * x, 0);
        case POISSON:
            return 1 - t / (x + a);
        case DIVERGENCE:
            return x >= a && x <= 1 ? -between(t, a, 1) / x : 0;
        case BINARY:
            return x >= a && x <= 1 - a ? (x - t) / (x * (1 - x)) : 0;
        case BINARY_SCORES:
            return sigmoid_(x) - t;
    }
    return x - t; /* x is the sigmoid */
}

__device__ inline real truth_of(int kind, real smoothing, bool with_sign, real t) {
    if (kind >= BINARY) return t * (1 - smoothing) + smoothing / 2;
    return with_sign ? 2 * t - 1 : t;
}

/* found = how many labels are neither 0 nor 1, by one block */
GLOBAL BOUNDS(256) count_others(int64_t n, Array<const real> t, Array<real> found) {
    SHARED(double, parts, WARPS);
    double own = 0;
    for (int64_t i = threadIdx.x; i < n; i += BLOCK) own += t[i] != 0 && t[i] != 1;
    const double sum = block_sum(own, parts);
    if (threadIdx.x == 0) found[0] = (real)sum;
}
KERNEL(count_others)

GLOBAL loss_forward(int64_t samples, int64_t k, int64_t inner, int64_t kind, double a, double smoothing,
                    Array<const real> signs, Array<const real> x, Array<const real> t, Array<real> p,
                    Array<real> loss) {
    const int64_t sample = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (sample >= samples) return;
    const int lane = threadIdx.x % 32;
    const bool with_sign = signs && signs[0] == 0;
    const int64_t at = sample / inner * k * inner + sample % inner;
    double sum = 0;
    for (int64_t j = lane; j < k; j += 32) {
        const int64_t i = at + j * inner;
        const real v = x[i];
        sum += (double)value_of((int)kind, (real)a, v, truth_of((int)kind, (real)smoothing, with_sign, t[i]));
        if (p) p[i] = sigmoid_(v);
    }
    sum = warp_sum(sum);
    if (lane == 0) loss[sample] = (real)(kind == DIVERGENCE ? sum : sum / (double)k);
}
KERNEL(loss_forward)

/* dp: of the sigmoid, with SIGMOID */
GLOBAL loss_backward(int64_t n, int64_t k, int64_t inner, int64_t kind, double a, double smoothing,
                     Array<const real> signs, Array<const real> x, Array<const real> t, Array<const real> dloss,
                     Array<const real> dp, int64_t accumulate, Array<real> dx) {
    const bool with_sign = signs && signs[0] == 0;
    FOR_EACH(i, n) {
        const int64_t sample = i / (k * inner) * inner + i % inner;
        const real v = x[i], factor = dloss ? (kind == DIVERGENCE ? dloss[sample] : dloss[sample] / (real)k) : 0;
        const real slope = slope_of((int)kind, (real)a, v, truth_of((int)kind, (real)smoothing, with_sign, t[i]));
        real value = slope == 0 ? 0 : slope * factor;
        if (dp) value += dp[i] * v * (1 - v);
        dx[i] = accumulate ? dx[i] + value : value;
    }
}
KERNEL(loss_backward)

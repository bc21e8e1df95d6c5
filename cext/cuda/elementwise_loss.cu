/* Losses that are a mean (some: a sum) of a function of prediction and truth: elementwise_losses.h has the formulas.
 *
 * A warp has one sample: k elements that lie `inner` apart; their sum is double.  signs: 0 where all labels of a hinge
 * loss are 0 or 1 and stand for -1 and 1; none given: they stand for themselves.
 */
#include "dtconv_cuda.h"
#include "functions.h"

enum kind {
#define LOSS(NAME, kind, value, slope) NAME,
#include "elementwise_losses.h"
};

__device__ inline real abs_(real v) { return v < 0 ? -v : v; }
#define F(name) name##_
#define PARTS __device__ inline
#include "elementwise_losses.h"

/* t: as truth_of gives it */
__device__ inline real value_of(int kind, real a, real x, real t) {
    const real e = x - t;
    switch (kind) {
#define LOSS(NAME, kind, value, slope) \
    case NAME:                         \
        return value;
#include "elementwise_losses.h"
    }
    return e;
}

__device__ inline real slope_of(int kind, real a, real x, real t) {
    const real e = x - t;
    switch (kind) {
#define LOSS(NAME, kind, value, slope) \
    case NAME:                         \
        return slope;
#include "elementwise_losses.h"
    }
    return e;
}

__device__ inline real truth_of(int kind, real smoothing, bool with_sign, real t) {
    switch (kind) {
#define SMOOTHED(NAME, kind, value, slope) case NAME:
#include "elementwise_losses.h"
        return t * (1 - smoothing) + smoothing / 2;
    }
    return with_sign ? 2 * t - 1 : t;
}

__device__ inline bool is_summed(int kind) {
    switch (kind) {
#define SUMMED(NAME, kind, value, slope) case NAME:
#include "elementwise_losses.h"
        return true;
    }
    return false;
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
    if (lane == 0) loss[sample] = (real)(is_summed((int)kind) ? sum : sum / (double)k);
}
KERNEL(loss_forward)

/* dp: of the sigmoid, with SIGMOID */
GLOBAL loss_backward(int64_t n, int64_t k, int64_t inner, int64_t kind, double a, double smoothing,
                     Array<const real> signs, Array<const real> x, Array<const real> t, Array<const real> dloss,
                     Array<const real> dp, int64_t accumulate, Array<real> dx) {
    const bool with_sign = signs && signs[0] == 0;
    FOR_EACH(i, n) {
        const int64_t sample = i / (k * inner) * inner + i % inner;
        const real v = x[i], factor = dloss ? (is_summed((int)kind) ? dloss[sample] : dloss[sample] / (real)k) : 0;
        const real slope = slope_of((int)kind, (real)a, v, truth_of((int)kind, (real)smoothing, with_sign, t[i]));
        real value = slope == 0 ? 0 : slope * factor;
        if (dp) value += dp[i] * v * (1 - v);
        dx[i] = accumulate ? dx[i] + value : value;
    }
}
KERNEL(loss_backward)

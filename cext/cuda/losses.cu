/* Softmax, cross-entropies over classes, and the scalars that training minimises.
 *
 * A warp has one sample: k classes that lie `inner` apart.  Formulas: cext/nn/softmax.c, cross_entropy.c, loss_sums.c.
 */
#include "dtconv_cuda.h"
#include "functions.h"
#include "numbers.h"

enum prediction { SCORES, PROBABILITIES, SOFTMAX };

/* The sample that this thread's warp has; -1: none. */
__device__ inline int64_t sample_of(int64_t samples) {
    const int64_t sample = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    return sample < samples ? sample : -1;
}

__device__ inline int lane_of_warp() { return threadIdx.x % 32; }

__device__ inline int64_t first_of(int64_t sample, int64_t k, int64_t inner) {
    return sample / inner * k * inner + sample % inner;
}

__device__ inline real maximum_of(Array<const real> x, int64_t at, int64_t k, int64_t step) {
    real m = x[at];
    for (int64_t j = lane_of_warp(); j < k; j += 32) {
        const real value = x[at + j * step];
        m = value > m || value != value ? value : m;
    }
    return warp_max(m);
}

__device__ inline real sum_of_exponentials(Array<const real> x, int64_t at, int64_t k, int64_t step, real m) {
    real s = 0;
    for (int64_t j = lane_of_warp(); j < k; j += 32) s += exp_(x[at + j * step] - m);
    return warp_sum(s);
}

GLOBAL softmax_forward(int64_t samples, int64_t k, int64_t inner, int64_t logarithm, Array<const real> x,
                       Array<real> y) {
    const int64_t sample = sample_of(samples);
    if (sample < 0) return;
    const int64_t at = first_of(sample, k, inner);
    const real m = maximum_of(x, at, k, inner), s = sum_of_exponentials(x, at, k, inner, m);
    const real shift = logarithm ? log_(s) : 0;
    __syncwarp(FULL);
    for (int64_t j = lane_of_warp(); j < k; j += 32) {
        const real z = x[at + j * inner] - m;
        y[at + j * inner] = logarithm ? z - shift : exp_(z) / s;
    }
}
KERNEL(softmax_forward)

GLOBAL softmax_backward(int64_t samples, int64_t k, int64_t inner, int64_t logarithm, Array<const real> y,
                        Array<const real> dy, int64_t accumulate, Array<real> dx) {
    const int64_t sample = sample_of(samples);
    if (sample < 0) return;
    const int64_t at = first_of(sample, k, inner);
    real sum = 0;
    for (int64_t j = lane_of_warp(); j < k; j += 32)
        sum += logarithm ? dy[at + j * inner] : dy[at + j * inner] * y[at + j * inner];
    sum = warp_sum(sum);
    for (int64_t j = lane_of_warp(); j < k; j += 32) {
        const int64_t i = at + j * inner;
        const real value = logarithm ? dy[i] - exp_(y[i]) * sum : y[i] * (dy[i] - sum);
        dx[i] = accumulate ? dx[i] + value : value;
    }
}
KERNEL(softmax_backward)

/* What is true of a sample: distributions t, or labels of one of four types. */
struct targets {
    Array<const real> t;
    Array<const uint8_t> labels;
    int type, use_ignore;
    int64_t ignore;
    real keep, add;
};

__device__ inline real truth(const targets &a, int64_t label, int64_t at, int64_t j, int64_t step) {
    return a.t ? a.t[at + j * step] * a.keep + a.add : (j == label ? (real)1 : (real)0);
}

__device__ inline real clipped(real q, real epsilon) {
    return q < epsilon ? epsilon : (q > 1 - epsilon ? 1 - epsilon : q);
}

/* loss of each sample; p: the probabilities, where they are wanted (SOFTMAX) */
GLOBAL cross_entropy_forward(int64_t samples, int64_t k, int64_t inner, int64_t prediction, double epsilon,
                             Array<const real> x, Array<const real> t, Array<const uint8_t> labels, int64_t type,
                             double smoothing, int64_t use_ignore, int64_t ignore, Array<real> p, Array<real> loss) {
    const int64_t sample = sample_of(samples);
    if (sample < 0) return;
    const targets a = {
        t, labels, (int)type, (int)use_ignore, ignore, (real)(1 - smoothing), (real)(smoothing / (double)k)};
    const int64_t at = first_of(sample, k, inner), label = t ? -1 : whole_at(a.labels, a.type, sample);
    const bool ignored = use_ignore && !t && label == ignore;
    real value = 0;
    if (prediction == PROBABILITIES) {
        real s = 0;
        for (int64_t j = lane_of_warp(); j < k; j += 32) s += x[at + j * inner];
        s = warp_sum(s);
        for (int64_t j = lane_of_warp(); j < k; j += 32) {
            const real share = truth(a, label, at, j, inner);
            if (share != 0) value -= share * log_(clipped(x[at + j * inner] / s, (real)epsilon));
        }
    } else {
        const real m = maximum_of(x, at, k, inner), s = sum_of_exponentials(x, at, k, inner, m), log_s = log_(s);
        __syncwarp(FULL);
        for (int64_t j = lane_of_warp(); j < k; j += 32) {
            const real z = x[at + j * inner] - m, share = truth(a, label, at, j, inner);
            if (share != 0) value += share * (log_s - z);
            if (p) p[at + j * inner] = exp_(z) / s;
        }
    }
    value = warp_sum(value);
    if (lane_of_warp() == 0) loss[sample] = ignored ? 0 : value;
}
KERNEL(cross_entropy_forward)

/* x: what forward read, for SOFTMAX the probabilities that it wrote; dp: their own gradient */
GLOBAL cross_entropy_backward(int64_t samples, int64_t k, int64_t inner, int64_t prediction, double epsilon,
                              Array<const real> x, Array<const real> t, Array<const uint8_t> labels, int64_t type,
                              double smoothing, int64_t use_ignore, int64_t ignore, Array<const real> dloss,
                              Array<const real> dp, int64_t accumulate, Array<real> dx) {
    const int64_t sample = sample_of(samples);
    if (sample < 0) return;
    const targets a = {
        t, labels, (int)type, (int)use_ignore, ignore, (real)(1 - smoothing), (real)(smoothing / (double)k)};
    const int64_t at = first_of(sample, k, inner), label = t ? -1 : whole_at(a.labels, a.type, sample);
    const bool ignored = use_ignore && !t && label == ignore;
    const real g = dloss && !ignored ? dloss[sample] : 0, low = (real)epsilon, high = 1 - (real)epsilon;
    real total = 0, product = 0, share = 1, inside = 0, m = 0, s = 1;
    if (prediction == SCORES) {
        m = maximum_of(x, at, k, inner);
        s = sum_of_exponentials(x, at, k, inner, m);
    }
    if (prediction == PROBABILITIES) {
        real sum = 0;
        for (int64_t j = lane_of_warp(); j < k; j += 32) sum += x[at + j * inner];
        share = 1 / warp_sum(sum);
    }
    for (int64_t j = lane_of_warp(); j < k; j += 32) {
        const real own = truth(a, label, at, j, inner), q = x[at + j * inner] * share;
        total += own;
        if (prediction == PROBABILITIES && q >= low && q <= high) inside += own;
        if (dp) product += dp[at + j * inner] * q;
    }
    total = warp_sum(total);
    inside = warp_sum(inside);
    product = warp_sum(product);
    for (int64_t j = lane_of_warp(); j < k; j += 32) {
        const int64_t i = at + j * inner;
        const real own = truth(a, label, at, j, inner);
        real value;
        if (prediction == PROBABILITIES) {
            const real q = x[i] * share, dq = q >= low && q <= high ? -own / q : 0;
            const real slope = (dq + inside) * share;
            value = slope == 0 ? 0 : slope * g;
        } else {
            const real q = prediction == SCORES ? exp_(x[i] - m) / s : x[i];
            value = (q * total - own) * g + (dp ? q * (dp[i] - product) : 0);
        }
        dx[i] = accumulate ? dx[i] + value : value;
    }
}
KERNEL(cross_entropy_backward)

__device__ inline double weighted(Array<const real> values, Array<const real> weights, int64_t inner, int64_t i) {
    const double value = values ? (double)values[i] : 1;
    return weights ? value * (double)weights[i / inner] : value;
}

enum { SUM, MEAN, MEAN_OF_WEIGHTS };

/* What a weighted sum is divided by: 1, the count, or the sum of the weights. */
template <typename S>
__device__ inline double divisor_of(int64_t count, int64_t inner, int64_t reduction, Array<const real> weights,
                                    S &parts) {
    if (reduction == SUM) return 1;
    if (reduction == MEAN || !weights) return (double)count;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count / inner; i += BLOCK) sum += (double)weights[i];
    return block_sum(sum, parts);
}

/* result = sum of values * weights / divisor; one block */
GLOBAL BOUNDS(256) weighted_mean_forward(int64_t count, int64_t inner, int64_t reduction, Array<const real> values,
                                         Array<const real> weights, Array<real> result) {
    SHARED(double, parts, WARPS);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) sum += weighted(values, weights, inner, i);
    sum = block_sum(sum, parts);
    const double divisor = divisor_of(count, inner, reduction, weights, parts);
    if (threadIdx.x == 0) result[0] = divisor == 0 ? 0 : (real)(sum / divisor);
}
KERNEL(weighted_mean_forward)

/* dvalues (+)= weights * dresult / divisor; each block finds the divisor by itself */
GLOBAL BOUNDS(256) weighted_mean_backward(int64_t count, int64_t inner, int64_t reduction, Array<const real> weights,
                                          Array<const real> dresult, int64_t accumulate, Array<real> dvalues) {
    SHARED(double, parts, WARPS);
    const double divisor = divisor_of(count, inner, reduction, weights, parts);
    const real share = divisor == 0 ? 0 : (real)((double)dresult[0] / divisor);
    FOR_EACH(i, count) {
        const real value = weights ? weights[i / inner] * share : share;
        dvalues[i] = accumulate ? dvalues[i] + value : value;
    }
}
KERNEL(weighted_mean_backward)

/* result = l1 * sum |w| + l2 * sum w^2; one block */
GLOBAL BOUNDS(256) penalty_forward(int64_t count, double l1, double l2, Array<const real> w, Array<real> result) {
    SHARED(double, parts, WARPS);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) {
        const double value = (double)w[i];
        sum += l1 * (value < 0 ? -value : value) + l2 * value * value;
    }
    sum = block_sum(sum, parts);
    if (threadIdx.x == 0) result[0] = (real)sum;
}
KERNEL(penalty_forward)

GLOBAL penalty_backward(int64_t count, double l1, double l2, Array<const real> w, Array<const real> dresult,
                        int64_t accumulate, Array<real> dw) {
    const real first = (real)l1 * dresult[0], second = (real)(2 * l2) * dresult[0];
    FOR_EACH(i, count) {
        const real sign = (real)(w[i] > 0) - (real)(w[i] < 0), value = first * sign + second * w[i];
        dw[i] = accumulate ? dw[i] + value : value;
    }
}
KERNEL(penalty_backward)

/* total (+)= weight * x of scalars, one after the other */
GLOBAL add_scalar(double weight, int64_t accumulate, Array<const real> x, Array<real> total) {
    if (threadIdx.x || blockIdx.x) return;
    const real value = (real)weight * x[0];
    total[0] = accumulate ? total[0] + value : value;
}
KERNEL(add_scalar)

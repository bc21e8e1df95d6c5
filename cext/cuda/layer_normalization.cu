/* Layer normalization of rows by their own moments; formulas: cext/nn/layernorm.c.
 *
 * A warp has a row, or the whole block where rows are long (wide).  rms: the mean is taken as 0.
 */
#include "dtconv_cuda.h"
#include "functions.h"
#include "column_sums.h"

/* The threads that share a row. */
struct team {
    int64_t row;
    int size, rank;
};

__device__ inline team team_of(int64_t wide) {
    const int size = wide ? BLOCK : 32;
    const team found = {((int64_t)blockIdx.x * BLOCK + threadIdx.x) / size, size, (int)threadIdx.x % size};
    return found;
}

template <typename S>
__device__ inline real team_sum(const team &t, real value, S &parts) {
    return t.size == BLOCK ? block_sum(value, parts) : warp_sum(value);
}

/* y = (x - mean) * inverse * gamma + beta; y may be x */
GLOBAL BOUNDS(256) forward(int64_t wide, int64_t rows, int64_t k, int64_t rms, double epsilon, Array<const real> x,
                           int64_t ldx, Array<const real> gamma, Array<const real> beta, Array<real> mean,
                           Array<real> inverse, Array<real> y, int64_t ldy) {
    SHARED(real, parts, WARPS);
    const team t = team_of(wide);
    if (t.row >= rows) return;
    real middle = 0, square = 0;
    if (!rms) {
        for (int64_t j = t.rank; j < k; j += t.size) middle += x[t.row * ldx + j];
        middle = team_sum(t, middle, parts) / (real)k;
    }
    for (int64_t j = t.rank; j < k; j += t.size) {
        const real away = x[t.row * ldx + j] - middle;
        square += away * away;
    }
    const real root = 1 / sqrt_(team_sum(t, square, parts) / (real)k + (real)epsilon);
    for (int64_t j = t.rank; j < k; j += t.size) {
        const real value = (x[t.row * ldx + j] - middle) * root, scaled = gamma ? value * gamma[j] : value;
        y[t.row * ldy + j] = beta ? scaled + beta[j] : scaled;
    }
    if (t.rank == 0) {
        mean[t.row] = middle;
        inverse[t.row] = root;
    }
}
KERNEL(forward)

/* dx (+)= inverse * (g - mean of g - xhat * mean of g * xhat), g = dy * gamma; dx may be dy */
GLOBAL BOUNDS(256) backward(int64_t wide, int64_t rows, int64_t k, int64_t rms, Array<const real> x, int64_t ldx,
                            Array<const real> gamma, Array<const real> mean, Array<const real> inverse,
                            Array<const real> dy, int64_t lddy, int64_t accumulate, Array<real> dx, int64_t lddx) {
    SHARED(real, parts, WARPS);
    const team t = team_of(wide);
    if (t.row >= rows) return;
    const real middle = mean[t.row], root = inverse[t.row];
    real sum = 0, product = 0;
    for (int64_t j = t.rank; j < k; j += t.size) {
        const real g = gamma ? dy[t.row * lddy + j] * gamma[j] : dy[t.row * lddy + j];
        sum += g;
        product += g * (x[t.row * ldx + j] - middle);
    }
    sum = rms ? 0 : team_sum(t, sum, parts) / (real)k;
    product = team_sum(t, product, parts) * root * root / (real)k;
    for (int64_t j = t.rank; j < k; j += t.size) {
        const real g = gamma ? dy[t.row * lddy + j] * gamma[j] : dy[t.row * lddy + j];
        const real value = (g - sum - (x[t.row * ldx + j] - middle) * product) * root;
        const int64_t at = t.row * lddx + j;
        dx[at] = accumulate ? dx[at] + value : value;
    }
}
KERNEL(backward)

/* parts of the sums over rows of dy * xhat, and of dy */
GLOBAL BOUNDS(256) parameter_sums(int64_t rows, int64_t k, Array<const real> x, int64_t ldx, Array<const real> mean,
                                  Array<const real> inverse, Array<const real> dy, int64_t lddy, Array<real> parts) {
    sum_columns(rows, k, parts, 2, [&](int64_t i, int64_t j) {
        const real g = dy[i * lddy + j];
        const two found = {g * ((x[i * ldx + j] - mean[i]) * inverse[i]), g};
        return found;
    });
}
KERNEL(parameter_sums)

/* Sums over any axes of an array: a block for each result.
 *
 * inputs, results: dims, extents and strides, as in elementwise.cu; element o * count + i of the inputs belongs to
 * result o, for 0 <= i < count.
 */
#include "dtconv_cuda.h"

__device__ inline int64_t place_of(Array<const int64_t> layout, int64_t i) {
    const int dims = (int)layout[0];
    int64_t place = 0;
    for (int d = dims - 1; d >= 0; d--) {
        const int64_t extent = layout[1 + d];
        place += (d ? i % extent : i) * layout[1 + dims + d];
        i /= extent;
    }
    return place;
}

GLOBAL BOUNDS(256) sum(int64_t outputs, int64_t count, Array<const int64_t> inputs, Array<const int64_t> results,
                       double factor, int64_t accumulate, Array<const real> x, Array<real> y) {
    SHARED(double, parts, WARPS);
    const int64_t o = blockIdx.x;
    if (o >= outputs) return;
    double own = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) own += (double)x[place_of(inputs, o * count + i)];
    const double total = block_sum(own, parts);
    if (threadIdx.x) return;
    const int64_t at = place_of(results, o);
    const real value = (real)(total * factor);
    y[at] = accumulate ? y[at] + value : value;
}
KERNEL(sum)

/* y = sign times the largest of sign * x; NaN where there is one. */
GLOBAL BOUNDS(256) extremum(int64_t outputs, int64_t count, Array<const int64_t> inputs, Array<const int64_t> results,
                            double sign, Array<const real> x, Array<real> y) {
    SHARED(real, parts, WARPS);
    const int64_t o = blockIdx.x;
    if (o >= outputs) return;
    const auto larger = [](real a, real b) { return b > a || b != b ? b : a; };
    real own = (real)sign * x[place_of(inputs, o * count)];
    for (int64_t i = threadIdx.x; i < count; i += BLOCK)
        own = larger(own, (real)sign * x[place_of(inputs, o * count + i)]);
    own = warp_max(own);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < WARPS; i++) own = larger(own, parts[i]);
    y[place_of(results, o)] = (real)sign * own;
}
KERNEL(extremum)

/* Elements that are the extremum share dy. */
GLOBAL BOUNDS(256)
    extremum_backward(int64_t outputs, int64_t count, Array<const int64_t> inputs, Array<const int64_t> results,
                      Array<const int64_t> slopes, Array<const int64_t> gradients, int64_t accumulate,
                      Array<const real> x, Array<const real> y, Array<const real> dy, Array<real> dx) {
    SHARED(int, parts, WARPS);
    const int64_t o = blockIdx.x;
    if (o >= outputs) return;
    const real best = y[place_of(results, o)];
    int own = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) own += x[place_of(inputs, o * count + i)] == best;
    const real share = dy[place_of(slopes, o)] / (real)block_sum(own, parts);
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) {
        const int64_t at = place_of(gradients, o * count + i);
        const real one = x[place_of(inputs, o * count + i)] == best ? share : (real)0;
        dx[at] = accumulate ? dx[at] + one : one;
    }
}
KERNEL(extremum_backward)

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

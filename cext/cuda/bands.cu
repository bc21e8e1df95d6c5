/* A matrix along one axis of an array, of which in each row only a band is not 0; formulas: cext/image/bands.c. */
#include "dtconv_cuda.h"

/* y[o, i, p, j] (+)= the sum of weights[i, k] * x[o, starts[i] + k, p, j] over k < counts[i], for channels j of pixels
 * p
 *
 * sizes: outer, rows, pixels, c; the strides of x, then of y, along o, i and p; the width of weights. */
GLOBAL multiply(int64_t packs, Array<const int64_t> sizes, Array<const real> weights, Array<const int64_t> starts,
                Array<const int64_t> counts, Array<const real> x, int64_t accumulate, Array<real> y) {
    const int64_t rows = sizes[1], pixels = sizes[2], c = sizes[3];
    sweep(sizes[0] * rows * pixels * c, packs && aligned(x, y), [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const cell at = cell_of(i, c), pixel = cell_of(at.row, pixels), line = cell_of(pixel.row, rows);
        const int64_t row = line.column, count = counts[row], first = starts[row];
        const int64_t from = line.row * sizes[4] + pixel.column * sizes[6] + at.column;
        const int64_t to = line.row * sizes[7] + row * sizes[8] + pixel.column * sizes[9] + at.column;
        pack<W> sum;
        for (int e = 0; e < W; e++) sum.v[e] = 0;
        if (accumulate) sum = load<W>(readable(y), to);
        for (int64_t k = 0; k < count; k++) {
            const real weight = weights[row * sizes[10] + k];
            const pack<W> value = load<W>(x, from + (first + k) * sizes[5]);
            for (int e = 0; e < W; e++) sum.v[e] += weight * value.v[e];
        }
        store<W>(y, to, sum);
    });
}
KERNEL(multiply)

/* A pass of Stockham's algorithm, in decimation of frequencies: what passes from points and from pixels share.
 *
 *   y[q + s (r p + j)] = exp(-2 pi i p j / (r m)) * [ butterfly of x[q + s (p + m k)], k < r ] (j)      p < m, q < s
 *
 * r m s = n; s is 1 in the first pass, m is 1 in the last one, which has no factors therefore.
 */
#ifndef DTCONV_FFT_PASSES_H
#define DTCONV_FFT_PASSES_H

#include "butterflies.h"
#include "dtconv_fft_pixels.h"

/* X(r) of each radix. */
#define RADICES(X) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(12) X(16)
enum { LARGEST_RADIX = 16 };

INLINE void store_point(const RT(fft_points) * y, int64_t at, point z) {
    store(y->re + at * y->step, z.re);
    store(y->im + at * y->step, z.im);
}

/* What a butterfly of `radix` points gives, times its factors, to places `step` apart. */
INLINE void store_times(int radix, const point *z, const real *factors, const RT(fft_points) * y, int64_t first,
                        int64_t step) {
    store_point(y, first, z[0]);
    UNROLL for (int j = 1; j < radix; j++) {
        const point w = factors ? times(z[j], factors[2 * j - 2], factors[2 * j - 1]) : z[j];
        store_point(y, first + step * j, w);
    }
}

/* The passes from `first` on, from x to y. */
void RT(fft_passes_from)(const RT(fft_plan) * plan, int first, RT(fft_points) x, const RT(fft_points) * y,
                         real *scratch);

/* A half of the memory that passes take turns to write to. */
INLINE RT(fft_points) half_of(real *scratch, int64_t n, int which) {
    real *at = scratch + which * 2 * n * V;
    return (RT(fft_points)){at, at + V, 2 * V};
}

#endif

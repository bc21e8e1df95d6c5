/* Dropout, noise and random windows of images by Philox (random.h), with the bits of cext/nn/random.c. */
#include "dtconv_cuda.h"
#include "functions.h"
#include "random.h"

/* y (+)= x or 1, divided by 1 - rate, or 0; rows of c elements; x: none for a mask */
GLOBAL dropout(int64_t rows, int64_t c, Array<const int64_t> key, int64_t threshold, double scale, int64_t accumulate,
               Array<const real> x, int64_t ldx, Array<real> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const int64_t index = key[3] + i, row = i / c, j = i % c;
        const real value = is_kept(key, index, threshold) ? (x ? x[row * ldx + j] : 1) * (real)scale : 0;
        y[row * ldy + j] = accumulate ? y[row * ldy + j] + value : value;
    }
}
KERNEL(dropout)

/* y = x + stddev * normal (Box and Muller): two elements that are LANES apart share two words */
GLOBAL gaussian_noise(int64_t rows, int64_t c, Array<const int64_t> key, double stddev, Array<const real> x,
                      int64_t ldx, Array<real> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const int64_t index = key[3] + i, row = i / c, j = i % c;
        const counter r = counter_at(key, index);
        const int word = (int)(index / LANES % 4);
        const double u = ((double)(word < 2 ? r.word[0] : r.word[2]) + 1) / 4294967296.0;
        const double halves = 2 * ((double)(word < 2 ? r.word[1] : r.word[3]) / 4294967296.0);
        const double radius = sqrt(-2 * log(u));
        const real noise = (real)(radius * (word % 2 ? sinpi(halves) : cospi(halves)));
        y[row * ldy + j] = x[row * ldx + j] + (real)stddev * noise;
    }
}
KERNEL(gaussian_noise)

/* Sums over neighbouring pixels of a row of numbers: each in a vector of as many numbers as most images have channels.
 */
#ifndef DTCONV_FEW_CHANNELS_H
#define DTCONV_FEW_CHANNELS_H

#include "dtconv_image.h"
#include "dtconv_inline.h"

/* Of three channels, the last number is the next pixel's: it is read, written, and written over. */
typedef real four __attribute__((vector_size(4 * sizeof(real))));
typedef real loose_four __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));

/* Pixels [first, last) of c channels in so many rows, `numbers` apart; c (1 to 4) and rows are constants. */
INLINE void sums_of_pixels(const dtconv_band *b, int64_t first, int64_t last, int64_t c, int rows, int64_t numbers,
                           const real *x, int64_t sums, real *y) {
    enum { MOST = 4 };
    for (int64_t j = first; j < last; j++) {
        const real *w = (const real *)b->weights + j * b->width, *from = x + b->starts[j] * c;
        const int64_t taps = b->counts[j];
        if (c == 1) {
            real sum[MOST] = {0};
            for (int64_t k = 0; k < taps; k++)
                UNROLL for (int r = 0; r < rows; r++) sum[r] += w[k] * from[r * numbers + k];
            UNROLL for (int r = 0; r < rows; r++) y[r * sums + j] = sum[r];
        } else {
            four sum[MOST] = {{0}};
            for (int64_t k = 0; k < taps; k++)
                UNROLL for (int r = 0; r < rows; r++) sum[r] +=
                    w[k] * *(const loose_four *)(from + r * numbers + k * c);
            UNROLL for (int r = 0; r < rows; r++) * (loose_four *)(y + r * sums + j * c) = sum[r];
        }
    }
}

/* The same for any c from 1 to 4; of a row of x and y, up to three numbers beyond the last are touched. */
INLINE void few_channels(const dtconv_band *b, int64_t first, int64_t last, int64_t c, int rows, int64_t numbers,
                         const real *x, int64_t sums, real *y) {
    if (c == 1)
        sums_of_pixels(b, first, last, 1, rows, numbers, x, sums, y);
    else if (c == 2)
        sums_of_pixels(b, first, last, 2, rows, numbers, x, sums, y);
    else if (c == 3)
        sums_of_pixels(b, first, last, 3, rows, numbers, x, sums, y);
    else
        sums_of_pixels(b, first, last, 4, rows, numbers, x, sums, y);
}

#endif

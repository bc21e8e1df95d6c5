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

struct window {
    int64_t top, left;
    bool mirror_rows, mirror_columns;
};

/* The window of a sample, one of rows * columns; flip: bit 0 allows mirrored columns, bit 1 rows. */
__device__ inline window window_of(Array<const int64_t> key, int64_t flip, int64_t sample, int64_t rows,
                                   int64_t columns) {
    const counter r = random_of(key, (uint64_t)(key[3] + sample));
    const window found = {(int64_t)((uint64_t)r.word[2] * (uint64_t)rows >> 32),
                          (int64_t)((uint64_t)r.word[3] * (uint64_t)columns >> 32), (flip & 2) && r.word[1] >> 31,
                          (flip & 1) && r.word[0] >> 31};
    return found;
}

/* y = a window of each image of x, mirrored or not */
GLOBAL window_forward(int64_t n, int64_t ih, int64_t iw, int64_t oh, int64_t ow, int64_t c, Array<const int64_t> key,
                      int64_t flip, Array<const real> x, int64_t ldx, Array<real> y, int64_t ldy) {
    FOR_EACH(i, n * oh * ow * c) {
        const cell at = cell_of(i, c), line = cell_of(at.row, ow), sample = cell_of(line.row, oh);
        const window w = window_of(key, flip, sample.row, ih - oh + 1, iw - ow + 1);
        const int64_t row = w.top + (w.mirror_rows ? oh - 1 - sample.column : sample.column);
        const int64_t column = w.left + (w.mirror_columns ? ow - 1 - line.column : line.column);
        y[at.row * ldy + at.column] = x[((sample.row * ih + row) * iw + column) * ldx + at.column];
    }
}
KERNEL(window_forward)

/* dx (+)= dy where the window lies, and 0 elsewhere */
GLOBAL window_backward(int64_t n, int64_t ih, int64_t iw, int64_t oh, int64_t ow, int64_t c, Array<const int64_t> key,
                       int64_t flip, int64_t accumulate, Array<const real> dy, int64_t lddy, Array<real> dx,
                       int64_t lddx) {
    FOR_EACH(i, n * ih * iw * c) {
        const cell at = cell_of(i, c), line = cell_of(at.row, iw), sample = cell_of(line.row, ih);
        const window w = window_of(key, flip, sample.row, ih - oh + 1, iw - ow + 1);
        int64_t row = sample.column - w.top, column = line.column - w.left;
        real value = 0;
        if (row >= 0 && row < oh && column >= 0 && column < ow) {
            if (w.mirror_rows) row = oh - 1 - row;
            if (w.mirror_columns) column = ow - 1 - column;
            value = dy[((sample.row * oh + row) * ow + column) * lddy + at.column];
        }
        const int64_t place = at.row * lddx + at.column;
        dx[place] = accumulate ? dx[place] + value : value;
    }
}
KERNEL(window_backward)

/* Sums per channel over pixels, a few vectors of channels in registers: what batch normalization and the epilogues of
 * convolutions share. */
#ifndef DTCONV_CHANNEL_SUMS_H
#define DTCONV_CHANNEL_SUMS_H

#include "dtconv_vector.h"

/* Vectors of channels whose sums fit the registers: of deviations, and of gradients. */
enum { MOST_DEVIATIONS = VECTOR_BYTES == 64 ? 8 : 4, MOST_GRADIENTS = VECTOR_BYTES == 64 ? 4 : 2 };

/* Pixels: at `each`, or where that is NULL from `first` on, `ld` elements apart. */
typedef struct {
    const elem *const *each;
    const elem *first;
    int64_t ld;
} pixels_of;

INLINE const elem *pixel(const pixels_of *p, int64_t i) { return p->each ? p->each[i] : p->first + i * p->ld; }

/* Adds the sums of x - center and of its squares over `count` pixels, for `vectors` (a constant) vectors of channels
 * from `channel` on; center, sum and squares are those of the first of them. */
INLINE void add_deviations(int vectors, int64_t count, pixels_of x, int64_t channel, const real *center, real *sum,
                           real *squares) {
    vec middle[MOST_DEVIATIONS], sums[MOST_DEVIATIONS], squared[MOST_DEVIATIONS];
    UNROLL for (int v = 0; v < vectors; v++) {
        middle[v] = load(center + v * V);
        sums[v] = load(sum + v * V);
        squared[v] = load(squares + v * V);
    }
    for (int64_t i = 0; i < count; i++) {
        const elem *xi = pixel(&x, i) + channel;
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec d = load_elem(xi + v * V) - middle[v];
            sums[v] += d;
            squared[v] += d * d;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        store(sum + v * V, sums[v]);
        store(squares + v * V, squared[v]);
    }
}

/* The same of `width` channels that no whole vector is left for. */
INLINE void add_deviations_rest(int64_t width, int64_t count, pixels_of x, int64_t channel, const real *center,
                                real *sum, real *squares) {
    for (int64_t i = 0; i < count; i++) {
        const elem *xi = pixel(&x, i) + channel;
        for (int64_t j = 0; j < width; j++) {
            const real d = widen(xi[j]) - center[j];
            sum[j] += d;
            squares[j] += d * d;
        }
    }
}

/* Merges mean and sum of squared deviations of `count` pixels into those of `before` others (Chan, Golub, LeVeque
 * 1983). */
INLINE void merge_moments(int64_t channels, double before, double *mean, double *squares, double count,
                          const double *mean_of, const double *squares_of) {
    const double weight = count / (before + count), cross = before * weight;
    for (int64_t j = 0; j < channels; j++) {
        const double delta = mean_of[j] - mean[j];
        mean[j] += delta * weight;
        squares[j] += squares_of[j] + delta * delta * cross;
    }
}

#endif

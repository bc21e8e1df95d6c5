/* Mean and variance of each channel of y. */
#include "dtconv_channel_sums.h"
#include "gather.h"

enum { STRIP = 64 }; /* channels of which a thread merges the parts */

/* The mean of some pixels: a value near which the others are. */
static void find_center(int64_t count, elem *const *pixels, int64_t channel, int64_t n, real *center) {
    memset(center, 0, (size_t)n * sizeof(real));
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++) center[j] += widen(pixels[i][channel + j]);
    for (int64_t j = 0; j < n; j++) center[j] /= (real)count;
}

void DT(moments_add)(DT(gather_sums) * s, int64_t count, elem *const *pixels, int64_t channel, int64_t n,
                     int64_t column) {
    const pixels_of y = {.each = (const elem *const *)pixels};
    real *center = s->center + column, *sum = s->first + column, *squares = s->second + column;
    if (s->pixels == 0) find_center(count, pixels, channel, n, center);
    int64_t j = 0;
#define ADD(vectors) add_deviations(vectors, count, y, channel + j, center + j, sum + j, squares + j)
    for (; j + 4 * V <= n; j += 4 * V) ADD(4);
    for (; j + 2 * V <= n; j += 2 * V) ADD(2);
    for (; j + V <= n; j += V) ADD(1);
#undef ADD
    if (j < n) add_deviations_rest(n - j, count, y, channel + j, center + j, sum + j, squares + j);
}

void DT(moments_end)(const DT(gather_sums) * s, int64_t n, double *mean, double *squares) {
    if (s->pixels == 0) { /* a part without pixels, of images that interleave */
        memset(mean, 0, (size_t)n * sizeof(double));
        memset(squares, 0, (size_t)n * sizeof(double));
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        const double error = s->firsts[j] / (double)s->pixels;
        mean[j] = (double)s->center[j] + error;
        squares[j] = s->seconds[j] - error * s->firsts[j];
    }
}

void DT(moments_merge)(const DT(gather_parts) * parts) {
    const int64_t c = parts->channels;
#pragma omp for schedule(static)
    for (int64_t first = 0; first < c; first += STRIP) {
        const int64_t n = MIN(STRIP, c - first);
        double *mean = parts->sums + first, *squares = mean + c, before = (double)parts->pixels[0];
        for (int64_t part = 1; part < parts->parts; part++) {
            const double *here = mean + part * 2 * c, count = (double)parts->pixels[part];
            if (count > 0) merge_moments(n, before, mean, squares, count, here, here + c);
            before += count;
        }
        for (int64_t j = 0; j < n; j++) {
            parts->args->mean[first + j] = (real)mean[j];
            parts->args->variance[first + j] = (real)(squares[j] / before);
        }
    }
}

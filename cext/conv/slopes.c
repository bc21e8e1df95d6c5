/* Sums that backward of a batch normalization begins with, of a gradient that a convolution writes. */
#include "gather.h"
#include "dtconv_vector.h"

/* Vectors of channels whose sums, with what else a pixel needs, fit the registers. */
enum { MOST = VECTOR_BYTES == 64 ? 4 : 2 };

/* relu, vectors: constants where it is inlined; count: elements of the last vector. */
INLINE void add_vectors(int relu, int vectors, int64_t last, const DT(conv_slopes) * of, int64_t count,
                        real *const *pixels, const real *const *x, int64_t channel, real *sum, real *sum_x) {
    vec sums[MOST], sums_x[MOST], mean[MOST], scale[MOST], beta[MOST];
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t n = v == vectors - 1 ? last : V, j = channel + v * V;
        sums[v] = load_part(sum + v * V, n);
        sums_x[v] = load_part(sum_x + v * V, n);
        mean[v] = load_part(of->mean + j, n);
        scale[v] = relu ? load_part(of->scale + j, n) : (vec){0};
        beta[v] = relu && of->beta ? load_part(of->beta + j, n) : (vec){0};
    }
    for (int64_t i = 0; i < count; i++) {
        const real *g = pixels[i] + channel, *xi = x[i] + channel;
        UNROLL for (int v = 0; v < vectors; v++) {
            const int64_t n = v == vectors - 1 ? last : V;
            const vec d = load_part(xi + v * V, n) - mean[v];
            vec slope = load_part(g + v * V, n);
            if (relu) slope = where(d * scale[v] + beta[v] > 0, slope, (vec){0});
            sums[v] += slope;
            sums_x[v] += slope * d;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t n = v == vectors - 1 ? last : V;
        store_part(sum + v * V, n, sums[v]);
        store_part(sum_x + v * V, n, sums_x[v]);
    }
}

INLINE void add(int relu, const DT(conv_slopes) * of, int64_t count, real *const *pixels, const real *const *x,
                int64_t channel, int64_t n, real *sum, real *sum_x) {
    int64_t j = 0;
#define ADD(vectors, last) add_vectors(relu, vectors, last, of, count, pixels, x, channel + j, sum + j, sum_x + j)
    for (; j + MOST * V <= n; j += MOST * V) ADD(MOST, V);
    for (; j + 2 * V <= n; j += 2 * V) ADD(2, V);
    for (; j + V <= n; j += V) ADD(1, V);
    if (j < n) ADD(1, n - j);
#undef ADD
}

void DT(slopes_add)(DT(gather_sums) * s, const DT(conv_slopes) * of, int64_t count, real *const *pixels,
                    const real *const *x, int64_t channel, int64_t column, int64_t n) {
    if (of->relu)
        add(1, of, count, pixels, x, channel, n, s->first + column, s->second + column);
    else
        add(0, of, count, pixels, x, channel, n, s->first + column, s->second + column);
}

void DT(slopes_end)(DT(gather_sums) * s, const DT(gather_parts) * parts, int64_t part, int64_t channel, int64_t n) {
    double *sum = parts->sums + part * 2 * parts->channels + channel;
    DT(gather_flush)(s);
    memcpy(sum, s->firsts, (size_t)n * sizeof(double));
    memcpy(sum + parts->channels, s->seconds, (size_t)n * sizeof(double));
}

void DT(slopes_merge)(const DT(gather_parts) * parts, real *sum, real *sum_x) {
    const int64_t c = parts->channels;
#pragma omp for schedule(static)
    for (int64_t j = 0; j < 2 * c; j++) {
        double all = 0;
        for (int64_t part = 0; part < parts->parts; part++) all += parts->sums[part * 2 * c + j];
        *(j < c ? sum + j : sum_x + j - c) = (real)all;
    }
}

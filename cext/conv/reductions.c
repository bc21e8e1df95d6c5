/* Sums that backward of a batch normalization begins with, of a gradient that a convolution writes. */
#include "dtconv_activations.h"
#include "dtconv_channel_sums.h"
#include "gather.h"

enum { MOST = MOST_GRADIENTS };

typedef struct {
    const real *mean, *scale, *beta; /* of the first channel */
} of_channels;

/* act, vectors: constants where it is inlined; last: elements of the last vector; at: the first channel of `of`. */
INLINE void add_vectors(dtconv_activation act, int vectors, int64_t last, const of_channels *of, int64_t at,
                        int64_t count, elem *const *pixels, const elem *const *x, int64_t channel, real *sum,
                        real *sum_x) {
    vec sums[MOST], sums_x[MOST], mean[MOST], scale[MOST], beta[MOST];
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t n = v == vectors - 1 ? last : V, j = at + v * V;
        sums[v] = load_part(sum + v * V, n);
        sums_x[v] = load_part(sum_x + v * V, n);
        mean[v] = load_part(of->mean + j, n);
        scale[v] = act ? load_part(of->scale + j, n) : (vec){0};
        beta[v] = act && of->beta ? load_part(of->beta + j, n) : (vec){0};
    }
    for (int64_t i = 0; i < count; i++) {
        const elem *g = pixels[i] + channel, *xi = x[i] + channel;
        UNROLL for (int v = 0; v < vectors; v++) {
            const int64_t n = v == vectors - 1 ? last : V;
            const vec d = load_elem_part(xi + v * V, n) - mean[v];
            vec slope = load_elem_part(g + v * V, n);
            if (act) slope = through_slope(act, slope, multiply_add(d, scale[v], beta[v]));
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

INLINE void add(dtconv_activation act, const of_channels *of, int64_t count, elem *const *pixels, const elem *const *x,
                int64_t channel, int64_t n, real *sum, real *sum_x) {
    int64_t j = 0;
#define ADD(vectors, last) add_vectors(act, vectors, last, of, j, count, pixels, x, channel + j, sum + j, sum_x + j)
    for (; j + MOST * V <= n; j += MOST * V) ADD(MOST, V);
    for (; j + 2 * V <= n; j += 2 * V) ADD(2, V);
    for (; j + V <= n; j += V) ADD(1, V);
    if (j < n) ADD(1, n - j);
#undef ADD
}

void DT(reductions_add)(DT(gather_sums) * s, const DT(conv_reductions) * of, int64_t count, elem *const *pixels,
                        const elem *const *x, int64_t channel, int64_t n, int64_t offset, int64_t column) {
    const of_channels per = {of->mean + offset, of->scale + offset, of->beta ? of->beta + offset : NULL};
#define ADD(act) add(act, &per, count, pixels, x, channel, n, s->first + column, s->second + column)
    FOR_ACTIVATIONS(of->activation, ADD)
#undef ADD
}

/* As add_vectors, of gradients at g. */
INLINE void bypass_vectors(dtconv_activation act, int accumulate, int vectors, int64_t last, const of_channels *of,
                           int64_t count, const real *g, int64_t ldg, elem *const *pixels, const elem *const *x,
                           int64_t channel, real *sum, real *sum_x) {
    vec sums[MOST], sums_x[MOST], mean[MOST], scale[MOST], beta[MOST];
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t n = v == vectors - 1 ? last : V;
        sums[v] = load_part(sum + v * V, n);
        sums_x[v] = load_part(sum_x + v * V, n);
        mean[v] = load_part(of->mean + v * V, n);
        scale[v] = load_part(of->scale + v * V, n);
        beta[v] = act && of->beta ? load_part(of->beta + v * V, n) : (vec){0};
    }
    for (int64_t i = 0; i < count; i++, g += ldg) {
        const elem *xi = x[i] + channel;
        elem *to = pixels[i] + channel;
        vec slope[MOST];
        UNROLL for (int v = 0; v < vectors; v++) {
            const int64_t n = v == vectors - 1 ? last : V;
            const vec d = load_elem_part(xi + v * V, n) - mean[v];
            slope[v] = load(g + v * V);
            if (act) slope[v] = through_slope(act, slope[v], multiply_add(d, scale[v], beta[v]));
            sums[v] += slope[v];
            sums_x[v] += slope[v] * d;
            slope[v] *= scale[v];
            if (accumulate) slope[v] += load_elem_part(to + v * V, n);
        }
        if (last == V)
            store_vectors(to, vectors, V, slope);
        else
            UNROLL for (int v = 0; v < vectors; v++) store_elem_part(to + v * V, v == vectors - 1 ? last : V, slope[v]);
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t n = v == vectors - 1 ? last : V;
        store_part(sum + v * V, n, sums[v]);
        store_part(sum_x + v * V, n, sums_x[v]);
    }
}

INLINE void bypass(dtconv_activation act, int accumulate, const of_channels *of, int64_t count, const real *g,
                   int64_t ldg, elem *const *pixels, const elem *const *x, int64_t channel, int64_t n, real *sum,
                   real *sum_x) {
    for (int64_t j = 0; j < n; j += 2 * V) {
        const of_channels here = {of->mean + j, of->scale + j, of->beta ? of->beta + j : NULL};
#define BYPASS(vectors, last) \
    bypass_vectors(act, accumulate, vectors, last, &here, count, g + j, ldg, pixels, x, channel + j, sum + j, sum_x + j)
        if (n - j >= 2 * V)
            BYPASS(2, V);
        else if (n - j > V)
            BYPASS(2, n - j - V);
        else
            BYPASS(1, n - j);
#undef BYPASS
    }
}

void DT(reductions_bypass)(DT(gather_sums) * s, const DT(conv_reductions) * of, int64_t count, const real *g,
                           int64_t ldg, elem *const *pixels, const elem *const *x, int64_t channel, int64_t n,
                           int64_t offset, int64_t column, int accumulate) {
    const of_channels per = {of->mean + offset, of->scale + offset, of->beta ? of->beta + offset : NULL};
    real *sum = s->first + column, *sum_x = s->second + column;
#define RUN(act, add) bypass(act, add, &per, count, g, ldg, pixels, x, channel, n, sum, sum_x)
#define RUN_EITHER(act) \
    if (accumulate)     \
        RUN(act, 1);    \
    else                \
        RUN(act, 0)
    FOR_ACTIVATIONS(of->activation, RUN_EITHER)
#undef RUN_EITHER
#undef RUN
}

void DT(reductions_merge)(const DT(gather_parts) * parts) {
    const int64_t c = parts->channels;
#pragma omp for schedule(static)
    for (int64_t j = 0; j < 2 * c; j++) {
        double all = 0;
        for (int64_t part = 0; part < parts->parts; part++) all += parts->sums[part * 2 * c + j];
        *(j < c ? parts->reductions->sum + j : parts->reductions->sum_x + j - c) = (real)all;
    }
}

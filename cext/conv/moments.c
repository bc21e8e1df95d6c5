#include "moments.h"
#include "dtconv_vector.h"

enum {
    BLOCK = 256, /* pixels that are summed before sums go on in double precision */
    STRIP = 64,  /* channels of which a thread merges the parts */
};

size_t DT(moment_parts_bytes)(int64_t parts, int64_t channels) {
    return dtconv_round((size_t)parts * sizeof(int64_t)) +
           dtconv_round((size_t)(parts * 2 * channels) * sizeof(double));
}

size_t DT(moment_sums_bytes)(int64_t width) {
    return 3 * dtconv_round((size_t)width * sizeof(real)) + 2 * dtconv_round((size_t)width * sizeof(double));
}

DT(moment_parts) DT(moment_parts_on)(void *memory, int64_t parts, int64_t channels) {
    char *place = memory;
    return (DT(moment_parts)){channels, parts, (int64_t *)place,
                              (double *)(place + dtconv_round((size_t)parts * sizeof(int64_t)))};
}

DT(moment_sums) DT(moment_sums_on)(void *memory, int64_t width) {
    const size_t step = dtconv_round((size_t)width * sizeof(real)), wide = dtconv_round((size_t)width * sizeof(double));
    char *place = memory;
    return (DT(moment_sums)){.width = width,
                             .center = (real *)place,
                             .sum = (real *)(place + step),
                             .squares = (real *)(place + 2 * step),
                             .sums = (double *)(place + 3 * step),
                             .sums_of_square = (double *)(place + 3 * step + wide)};
}

void DT(moments_begin)(DT(moment_sums) * s) {
    s->pixels = s->pending = 0;
    memset(s->sum, 0, (size_t)s->width * sizeof(real));
    memset(s->squares, 0, (size_t)s->width * sizeof(real));
    memset(s->sums, 0, (size_t)s->width * sizeof(double));
    memset(s->sums_of_square, 0, (size_t)s->width * sizeof(double));
}

/* `vectors` vectors of channels: a constant where it is inlined. */
INLINE void add_vectors(int vectors, int64_t count, real *const *pixels, int64_t channel, const real *center, real *sum,
                        real *squares) {
    vec middle[4], sums[4], squared[4];
    UNROLL for (int v = 0; v < vectors; v++) {
        middle[v] = load(center + v * V);
        sums[v] = load(sum + v * V);
        squared[v] = load(squares + v * V);
    }
    for (int64_t i = 0; i < count; i++) {
        const real *x = pixels[i] + channel;
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec d = load(x + v * V) - middle[v];
            sums[v] += d;
            squared[v] += d * d;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        store(sum + v * V, sums[v]);
        store(squares + v * V, squared[v]);
    }
}

/* The mean of some pixels: a value near which the others are. */
static void find_center(int64_t count, real *const *pixels, int64_t channel, int64_t n, real *center) {
    memset(center, 0, (size_t)n * sizeof(real));
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++) center[j] += pixels[i][channel + j];
    for (int64_t j = 0; j < n; j++) center[j] /= (real)count;
}

void DT(moments_add)(DT(moment_sums) * s, int64_t count, real *const *pixels, int64_t channel, int64_t column,
                     int64_t n) {
    real *center = s->center + column, *sum = s->sum + column, *squares = s->squares + column;
    if (s->pixels == 0) find_center(count, pixels, channel, n, center);
    int64_t j = 0;
    for (; j + 4 * V <= n; j += 4 * V) add_vectors(4, count, pixels, channel + j, center + j, sum + j, squares + j);
    for (; j + 2 * V <= n; j += 2 * V) add_vectors(2, count, pixels, channel + j, center + j, sum + j, squares + j);
    for (; j + V <= n; j += V) add_vectors(1, count, pixels, channel + j, center + j, sum + j, squares + j);
    if (j == n) return;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = j; k < n; k++) {
            const real d = pixels[i][channel + k] - center[k];
            sum[k] += d;
            squares[k] += d * d;
        }
}

static void flush(DT(moment_sums) * s) {
    for (int64_t j = 0; j < s->width; j++) {
        s->sums[j] += (double)s->sum[j];
        s->sums_of_square[j] += (double)s->squares[j];
        s->sum[j] = s->squares[j] = 0;
    }
    s->pending = 0;
}

void DT(moments_count)(DT(moment_sums) * s, int64_t count) {
    s->pixels += count;
    s->pending += count;
    if (s->pending >= BLOCK) flush(s);
}

void DT(moments_end)(DT(moment_sums) * s, const DT(moment_parts) * parts, int64_t part, int64_t channel, int64_t n) {
    double *mean = parts->moments + part * 2 * parts->channels + channel, *m2 = mean + parts->channels;
    flush(s);
    if (channel == 0) parts->pixels[part] = s->pixels;
    for (int64_t j = 0; j < n; j++) {
        const double error = s->sums[j] / (double)s->pixels;
        mean[j] = (double)s->center[j] + error;
        m2[j] = s->sums_of_square[j] - error * s->sums[j];
    }
}

void DT(moments_merge)(const DT(moment_parts) * parts, real *mean, real *variance) {
    const int64_t c = parts->channels;
#pragma omp for schedule(static)
    for (int64_t first = 0; first < c; first += STRIP) {
        const int64_t n = MIN(STRIP, c - first);
        double *m1 = parts->moments + first, *m2 = m1 + c, before = (double)parts->pixels[0];
        for (int64_t part = 1; part < parts->parts; part++) {
            const double *here = m1 + part * 2 * c, count = (double)parts->pixels[part], all = before + count;
            const double weight = count / all, cross = before * weight;
            for (int64_t j = 0; j < n; j++) {
                const double delta = here[j] - m1[j];
                m1[j] += delta * weight;
                m2[j] += here[c + j] + delta * delta * cross;
            }
            before = all;
        }
        for (int64_t j = 0; j < n; j++) {
            mean[first + j] = (real)m1[j];
            variance[first + j] = (real)(m2[j] / before);
        }
    }
}

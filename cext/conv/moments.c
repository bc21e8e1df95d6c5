/* Mean and variance of each channel of y. */
#include "gather.h"
#include "dtconv_vector.h"

enum { STRIP = 64 }; /* channels of which a thread merges the parts */

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

void DT(moments_add)(DT(gather_sums) * s, int64_t count, real *const *pixels, int64_t channel, int64_t column,
                     int64_t n) {
    real *center = s->center + column, *sum = s->first + column, *squares = s->second + column;
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

void DT(moments_end)(DT(gather_sums) * s, const DT(gather_parts) * parts, int64_t part, int64_t channel, int64_t n) {
    double *mean = parts->sums + part * 2 * parts->channels + channel, *m2 = mean + parts->channels;
    DT(gather_flush)(s);
    if (channel == 0) parts->pixels[part] = s->pixels;
    for (int64_t j = 0; j < n; j++) {
        const double error = s->firsts[j] / (double)s->pixels;
        mean[j] = (double)s->center[j] + error;
        m2[j] = s->seconds[j] - error * s->firsts[j];
    }
}

void DT(moments_merge)(const DT(gather_parts) * parts, real *mean, real *variance) {
    const int64_t c = parts->channels;
#pragma omp for schedule(static)
    for (int64_t first = 0; first < c; first += STRIP) {
        const int64_t n = MIN(STRIP, c - first);
        double *m1 = parts->sums + first, *m2 = m1 + c, before = (double)parts->pixels[0];
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

/* Batch normalization over rows: statistics, application and their gradients, as separate passes.
 *
 *   y = act(z),  z = (x - mean) * scale + beta,  scale = gamma * inverse,  inverse = 1 / sqrt(variance + epsilon)
 *   x, y (rows x c);  mean, variance, gamma, beta (c)
 *
 *   g = dy * act'(y);  dbeta = sum g;  dgamma = sum g * xhat,  xhat = (x - mean) * inverse
 *   dx = scale * (g - dbeta / rows - xhat * dgamma / rows)                    (Ioffe and Szegedy 2015, section 3)
 *
 * All z are computed as (x - mean) * scale + beta, not as x * scale + shift: the same work for memory, no
 * cancellation.
 */
#include "dtconv_nn_norm.h"
#include "dtconv_vector.h"
#include "norm_common.h"

/* Vectors of channels whose sums, with what else a row needs, fit the registers. */
enum { GRADIENTS = VECTOR_BYTES == 64 ? 4 : 2 };
enum {
    BLOCK_ROWS = 256,          /* that are summed before sums go on in double precision */
    STREAMED_BYTES = 16 << 20, /* of results that are written past the caches */
};

dtconv_status DT(batchnorm_scale)(int64_t c, const real *variance, const real *gamma, real epsilon, real *inverse,
                                  real *scale) {
    for (int64_t j = 0; j < c; j++) {
        inverse[j] = (real)(1.0 / sqrt((double)variance[j] + (double)epsilon));
        scale[j] = gamma ? gamma[j] * inverse[j] : inverse[j];
    }
    return DTCONV_OK;
}

dtconv_status DT(batchnorm_moving)(int64_t c, const real *mean, const real *variance, real momentum, real *moving_mean,
                                   real *moving_variance) {
    for (int64_t j = 0; j < c; j++) {
        moving_mean[j] = moving_mean[j] * momentum + mean[j] * (1 - momentum);
        moving_variance[j] = moving_variance[j] * momentum + variance[j] * (1 - momentum);
    }
    return DTCONV_OK;
}

/* The normalized value before the activation; the same expression in forward and backward. */
INLINE real normalized(real x, real mean, real scale, real beta) { return (x - mean) * scale + beta; }

INLINE void apply_rows(int code, int64_t rows, int64_t c, const real *x, int64_t ldx, const real *mean,
                       const real *scale, const real *beta, real alpha, real *y, int64_t ldy) {
    for (int64_t i = 0; i < rows; i++) {
        const real *xi = x + i * ldx;
        real *yi = y + i * ldy;
        if (beta) {
#pragma omp simd
            for (int64_t j = 0; j < c; j++)
                yi[j] = activate(code, alpha, normalized(xi[j], mean[j], scale[j], beta[j]));
        } else {
#pragma omp simd
            for (int64_t j = 0; j < c; j++) yi[j] = activate(code, alpha, normalized(xi[j], mean[j], scale[j], 0));
        }
    }
}

/* Rows of whole vectors, and y past the caches: lines that the caches need not load first. */
INLINE void stream_rows(int relu, int64_t rows, int64_t c, const real *x, int64_t ldx, const real *mean,
                        const real *scale, const real *beta, real *y, int64_t ldy) {
    for (int64_t i = 0; i < rows; i++, x += ldx, y += ldy)
        for (int64_t j = 0; j < c; j += V) {
            const vec z = (load(x + j) - load(mean + j)) * load(scale + j) + (beta ? load(beta + j) : (vec){0});
            store_past_caches(y + j, relu ? where(z < 0, (vec){0}, z) : z);
        }
}

/* Whether y is too large to be in a cache when it is read next, and can be written by whole vectors. */
static int streams(int64_t rows, int64_t c, const real *x, const real *y, int64_t ldy, dtconv_activation activation) {
    const int plain = activation == DTCONV_LINEAR || activation == DTCONV_RELU;
    const int whole = c % V == 0 && ldy % V == 0 && (uintptr_t)y % VECTOR_BYTES == 0;
    return plain && whole && x != y && rows * c * (int64_t)sizeof(real) >= STREAMED_BYTES;
}

dtconv_status DT(batchnorm_apply)(int64_t rows, int64_t c, const real *x, int64_t ldx, const real *mean,
                                  const real *scale, const real *beta, dtconv_activation activation, real alpha,
                                  real *y, int64_t ldy) {
    const int streaming = streams(rows, c, x, y, ldy, activation);
#pragma omp parallel num_threads(threads_for(rows *c))
    {
        int64_t start, end;
        thread_share(rows, &start, &end);
        const real *from = x + start * ldx;
        real *to = y + start * ldy;
        if (streaming) {
            if (activation == DTCONV_RELU)
                stream_rows(1, end - start, c, from, ldx, mean, scale, beta, to, ldy);
            else
                stream_rows(0, end - start, c, from, ldx, mean, scale, beta, to, ldy);
            finish_stores();
        } else {
#define APPLY(code) apply_rows(code, end - start, c, from, ldx, mean, scale, beta, alpha, to, ldy)
            FOR_ACTIVATION(activation, APPLY)
        }
    }
    return DTCONV_OK;
}

/* What backward reads: x and dy, y where the activation needs it, and the values per channel. */
typedef struct {
    const real *x, *y, *dy, *mean, *inverse, *scale, *beta;
    int64_t ldx, ldy, lddy;
    real alpha;
} gradient_arrays;

/* dy * act'(y) of one element; y is computed again unless the activation is one that needs the real one. */
INLINE real gradient(int code, real alpha, real dy, real x, real y, real mean, real scale, real beta) {
    if (code == DTCONV_LINEAR) return dy;
    if (code == DTCONV_SIGMOID || code == DTCONV_TANH) return dy * activation_slope(code, alpha, y);
    return dy * activation_slope(code, alpha, activate(code, alpha, normalized(x, mean, scale, beta)));
}

/* dy * act'(y) of a vector; y as above. */
INLINE vec gradient_vector(int code, real alpha, vec dy, vec x, const real *y, vec mean, vec scale, vec beta) {
    if (code == DTCONV_LINEAR) return dy;
    if (code == DTCONV_SIGMOID) return dy * (load(y) * (1 - load(y)));
    if (code == DTCONV_TANH) return dy * (1 - load(y) * load(y));
    const vec z = (x - mean) * scale + beta;
    if (code == DTCONV_RELU) return where(z > 0, dy, (vec){0});
    if (code == DTCONV_RELU6) return where((z > 0) & (z < 6), dy, (vec){0});
    const vec leaky = where(z < 0, alpha * z, z);
    return where(leaky > 0, dy, alpha * dy);
}

/* Adds, of rows [start, end) and `vectors` vectors of channels from j on, the sum of g and that of g * (x - mean). */
INLINE void gradient_block(int code, int vectors, const gradient_arrays *a, int64_t start, int64_t end, int64_t j,
                           real *sum, real *sum_x) {
    vec sums[GRADIENTS], sums_x[GRADIENTS], mean[GRADIENTS], scale[GRADIENTS], beta[GRADIENTS];
    UNROLL for (int v = 0; v < vectors; v++) {
        sums[v] = load(sum + v * V);
        sums_x[v] = load(sum_x + v * V);
        mean[v] = load(a->mean + j + v * V);
        scale[v] = load(a->scale + j + v * V);
        beta[v] = a->beta ? load(a->beta + j + v * V) : (vec){0};
    }
    const real *x = a->x + start * a->ldx + j, *dy = a->dy + start * a->lddy + j;
    const real *y = a->y ? a->y + start * a->ldy + j : x;
    const int64_t ldy = a->y ? a->ldy : a->ldx;
    for (int64_t i = start; i < end; i++, x += a->ldx, dy += a->lddy, y += ldy) UNROLL
    for (int v = 0; v < vectors; v++) {
        const vec xv = load(x + v * V);
        const vec g = gradient_vector(code, a->alpha, load(dy + v * V), xv, y + v * V, mean[v], scale[v], beta[v]);
        sums[v] += g;
        sums_x[v] += g * (xv - mean[v]);
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        store(sum + v * V, sums[v]);
        store(sum_x + v * V, sums_x[v]);
    }
}

/* The same of `width` channels that no whole vector is left for. */
INLINE void gradient_rest(int code, int64_t width, const gradient_arrays *a, int64_t start, int64_t end, int64_t j0,
                          real *sum, real *sum_x) {
    for (int64_t i = start; i < end; i++) {
        const real *x = a->x + i * a->ldx + j0, *dy = a->dy + i * a->lddy + j0;
        const real *y = a->y ? a->y + i * a->ldy + j0 : x;
        for (int64_t j = 0; j < width; j++) {
            const real mean = a->mean[j0 + j], beta = a->beta ? a->beta[j0 + j] : 0;
            const real g = gradient(code, a->alpha, dy[j], x[j], y[j], mean, a->scale[j0 + j], beta);
            sum[j] += g;
            sum_x[j] += g * (x[j] - mean);
        }
    }
}

/* Sums over rows [start, end) of a strip of channels: of g to sums, of g * (x - mean) to sums_x. */
INLINE void sum_rows(int code, const gradient_arrays *a, int64_t start, int64_t end, int64_t j0, int64_t width,
                     double *sums, double *sums_x) {
    for (int64_t j = 0; j < width; j++) sums[j] = sums_x[j] = 0;
    for (int64_t block = start; block < end; block += BLOCK_ROWS) {
        real first[STRIP] = {0}, second[STRIP] = {0};
        const int64_t last = min_i64(end, block + BLOCK_ROWS);
        if (width == V) {
            gradient_block(code, 1, a, block, last, j0, first, second);
        } else if (width == 2 * V) {
            gradient_block(code, 2, a, block, last, j0, first, second);
        } else if (width == GRADIENTS * V) {
            gradient_block(code, GRADIENTS, a, block, last, j0, first, second);
        } else {
            for (int64_t i = block; i < last; i++) {
                int64_t j = 0;
                for (; j + 2 * V <= width; j += 2 * V)
                    gradient_block(code, 2, a, i, i + 1, j0 + j, first + j, second + j);
                for (; j + V <= width; j += V) gradient_block(code, 1, a, i, i + 1, j0 + j, first + j, second + j);
                gradient_rest(code, width - j, a, i, i + 1, j0 + j, first + j, second + j);
            }
        }
        for (int64_t j = 0; j < width; j++) {
            sums[j] += (double)first[j];
            sums_x[j] += (double)second[j];
        }
    }
}

dtconv_status DT(batchnorm_backward_sums)(int64_t rows, int64_t c, const real *x, int64_t ldx, const real *y,
                                          int64_t ldy, const real *dy, int64_t lddy, const real *mean,
                                          const real *inverse, const real *scale, const real *beta,
                                          dtconv_activation activation, real alpha, real *sum_dy, real *sum_dy_xhat,
                                          void *workspace, size_t bytes) {
    if (bytes < DT(batchnorm_workspace)(rows, c)) return DTCONV_WORKSPACE;
    if (!y && (activation == DTCONV_SIGMOID || activation == DTCONV_TANH)) return DTCONV_ARGUMENT;
    const gradient_arrays a = {x, y, dy, mean, inverse, scale, beta, ldx, ldy, lddy, alpha};
    const int64_t step = chunk_rows(rows, c), chunks = chunk_count(rows, c);
    double *sums = workspace; /* (chunks, 2, c) */
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads_for(rows *c))
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t j = 0; j < c; j += STRIP) {
            const int64_t start = chunk * step, end = min_i64(rows, start + step);
            double *here = sums + chunk * 2 * c + j;
#define SUM(code) sum_rows(code, &a, start, end, j, min_i64(STRIP, c - j), here, here + c)
            FOR_ACTIVATION(activation, SUM)
        }
    for (int64_t chunk = 1; chunk < chunks; chunk++)
        for (int64_t j = 0; j < 2 * c; j++) sums[j] += sums[chunk * 2 * c + j];
    for (int64_t j = 0; j < c; j++) {
        sum_dy[j] = (real)sums[j];
        sum_dy_xhat[j] = (real)(sums[c + j] * (double)inverse[j]);
    }
    return DTCONV_OK;
}

/* dx of rows [start, end).  sum_dy NULL: the statistics are constants. */
INLINE void backward_rows(int code, const gradient_arrays *a, int64_t start, int64_t end, int64_t c, const real *sum_dy,
                          const real *sum_dy_xhat, real share, int accumulate, real *dx, int64_t lddx) {
    const real alpha = a->alpha;
    real offset[STRIP], slope[STRIP], mean[STRIP], scale[STRIP], beta[STRIP];
    for (int64_t j0 = 0; j0 < c; j0 += STRIP) {
        const int64_t width = min_i64(STRIP, c - j0);
        for (int64_t j = 0; j < width; j++) {
            mean[j] = a->mean[j0 + j];
            scale[j] = a->scale[j0 + j];
            beta[j] = a->beta ? a->beta[j0 + j] : 0;
            offset[j] = sum_dy ? sum_dy[j0 + j] * share : 0;
            slope[j] = sum_dy ? sum_dy_xhat[j0 + j] * share * a->inverse[j0 + j] : 0;
        }
        for (int64_t i = start; i < end; i++) {
            const real *xi = a->x + i * a->ldx + j0, *gi = a->dy + i * a->lddy + j0,
                       *yi = a->y ? a->y + i * a->ldy + j0 : xi;
            real *di = dx + i * lddx + j0;
            if (accumulate) {
#pragma omp simd
                for (int64_t j = 0; j < width; j++) {
                    real g = gradient(code, alpha, gi[j], xi[j], yi[j], mean[j], scale[j], beta[j]);
                    di[j] += scale[j] * (g - offset[j] - (xi[j] - mean[j]) * slope[j]);
                }
            } else {
#pragma omp simd
                for (int64_t j = 0; j < width; j++) {
                    real g = gradient(code, alpha, gi[j], xi[j], yi[j], mean[j], scale[j], beta[j]);
                    di[j] = scale[j] * (g - offset[j] - (xi[j] - mean[j]) * slope[j]);
                }
            }
        }
    }
}

dtconv_status DT(batchnorm_backward_apply)(int64_t rows, int64_t c, const real *x, int64_t ldx, const real *y,
                                           int64_t ldy, const real *dy, int64_t lddy, const real *mean,
                                           const real *inverse, const real *scale, const real *beta,
                                           dtconv_activation activation, real alpha, const real *sum_dy,
                                           const real *sum_dy_xhat, int64_t count, int accumulate, real *dx,
                                           int64_t lddx) {
    if (!y && (activation == DTCONV_SIGMOID || activation == DTCONV_TANH)) return DTCONV_ARGUMENT;
    const gradient_arrays a = {x, y, dy, mean, inverse, scale, beta, ldx, ldy, lddy, alpha};
    const real share = (real)(1.0 / (double)count);
#pragma omp parallel num_threads(threads_for(rows *c))
    {
        int64_t start, end;
        thread_share(rows, &start, &end);
#define BACKWARD(code) backward_rows(code, &a, start, end, c, sum_dy, sum_dy_xhat, share, accumulate, dx, lddx)
        FOR_ACTIVATION(activation, BACKWARD)
    }
    return DTCONV_OK;
}

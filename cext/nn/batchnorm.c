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
#include "dtconv_activations.h"
#include "dtconv_burst.h"
#include "dtconv_nn_norm.h"
#include "dtconv_vector.h"
#include "norm_common.h"

/* Vectors of channels whose sums, with what else a row needs, fit the registers. */
enum { GRADIENTS = VECTOR_BYTES == 64 ? 4 : 2 };
enum {
    AT_ONCE = VECTOR_BYTES >= 32 ? 2 : 1, /* vectors of channels whose values for backward fit them */
    /* for which the values of some channels are loaded: wide rows are read nearly in order, and narrower vectors would
     * be too short pieces of them */
    PARAMETER_ROWS = VECTOR_BYTES == 64 ? 16 : 4,
    APPLY_ROWS = VECTOR_BYTES == 64 ? 16 : 1, /* the same in forward */
    BLOCK_ROWS = 256,                         /* that are summed before sums go on in double precision */
    STREAMED_BYTES = 16 << 20,                /* of results that are written past the caches */
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

/* Of at most STRIP channels, filled up to whole vectors: what normalizes them and, in backward, sums over the rows. */
typedef struct {
    real mean[STRIP], scale[STRIP], beta[STRIP], offset[STRIP], slope[STRIP];
} channels;

INLINE void copy_channels(channels *to, int64_t first, int64_t width, const real *mean, const real *scale,
                          const real *beta) {
    for (int64_t j = 0; j < width; j++) {
        to->mean[j] = mean[first + j];
        to->scale[j] = scale[first + j];
        to->beta[j] = beta ? beta[first + j] : 0;
    }
    for (int64_t j = width; j % V; j++) to->mean[j] = to->scale[j] = to->beta[j] = 0;
}

/* Runs BLOCK(j, vectors, count) over `width` channels: as many vectors at once as `most`, then one, the last of which
 * has fewer than V channels. */
#define FOR_VECTORS(width, most, BLOCK)                                                                           \
    do {                                                                                                          \
        int64_t first_channel = 0;                                                                                \
        for (; first_channel + (most) * V <= (width); first_channel += (most) * V) BLOCK(first_channel, most, V); \
        for (; first_channel < (width); first_channel += V)                                                       \
            BLOCK(first_channel, 1, min_i64(V, (width) - first_channel));                                         \
    } while (0)

/* The normalized value before the activation; the same expression in forward and backward. */
INLINE vec normalized(vec x, vec mean, vec scale, vec beta) { return multiply_add(x - mean, scale, beta); }

INLINE vec activated_by(int code, real alpha, vec z) {
    return code == DTCONV_LEAKY_RELU ? where(z < 0, alpha * z, z) : activated((dtconv_activation)code, z);
}

/* Runs CALL(code): with a constant where it is one of those that networks have most. */
#define FOR_FREQUENT(activation, CALL)                                                                        \
    if ((activation) == DTCONV_LEAKY_RELU || (activation) == DTCONV_SIGMOID || (activation) == DTCONV_TANH) { \
        CALL((int)(activation));                                                                              \
    } else {                                                                                                  \
        FOR_ACTIVATIONS(activation, CALL)                                                                     \
    }

INLINE void apply_block(int code, int vectors, int64_t count, int64_t rows, const elem *x, int64_t ldx,
                        const channels *of, int64_t j, real alpha, elem *y, int64_t ldy) {
    vec mean[AT_ONCE], scale[AT_ONCE], beta[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) {
        mean[v] = load(of->mean + j + v * V);
        scale[v] = load(of->scale + j + v * V);
        beta[v] = load(of->beta + j + v * V);
    }
    for (int64_t i = 0; i < rows; i++, x += ldx, y += ldy) {
        vec z[AT_ONCE];
        UNROLL for (int v = 0; v < vectors; v++) {
            z[v] = normalized(load_first(x + v * V, count), mean[v], scale[v], beta[v]);
            z[v] = activated_by(code, alpha, z[v]);
        }
        store_vectors(y, vectors, count, z);
    }
}

/* Activations with an exponential, which loops over numbers can do. */
INLINE void apply_curved(int code, int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                         const real *scale, const real *beta, elem *y, int64_t ldy) {
    for (int64_t i = 0; i < rows; i++, x += ldx, y += ldy)
#pragma omp simd
        for (int64_t j = 0; j < c; j++)
            y[j] = narrow(activate(code, 0, (widen(x[j]) - mean[j]) * scale[j] + (beta ? beta[j] : 0)));
}

INLINE void apply_rows(int code, int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                       const real *scale, const real *beta, real alpha, elem *y, int64_t ldy) {
    for (int64_t j0 = 0; j0 < c; j0 += STRIP) {
        const int64_t width = min_i64(STRIP, c - j0);
        channels of;
        copy_channels(&of, j0, width, mean, scale, beta);
        for (int64_t i = 0; i < rows; i += APPLY_ROWS) {
            const int64_t some = min_i64(APPLY_ROWS, rows - i);
            const elem *from = x + i * ldx + j0;
            elem *to = y + i * ldy + j0;
#define APPLY_BLOCK(j, vectors, count) \
    apply_block(code, vectors, count, some, from + j, ldx, &of, j, alpha, to + j, ldy)
            FOR_VECTORS(width, AT_ONCE, APPLY_BLOCK);
        }
    }
}

/* Rows of whole vectors, and y past the caches: lines that the caches need not load first. */
INLINE void stream_rows(int relu, int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                        const real *scale, const real *beta, elem *y, int64_t ldy) {
    for (int64_t i = 0; i < rows; i++, x += ldx, y += ldy)
        for (int64_t j = 0; j < c; j += V) {
            const vec z =
                normalized(load_elem(x + j), load(mean + j), load(scale + j), beta ? load(beta + j) : (vec){0});
            store_past_caches(y + j, relu ? where(z < 0, (vec){0}, z) : z);
        }
}

/* Whether y is too large to be in a cache when it is read next, and can be written by whole vectors. */
static int streams(int64_t rows, int64_t c, const elem *x, const elem *y, int64_t ldy, dtconv_activation activation) {
    const int plain = activation == DTCONV_LINEAR || activation == DTCONV_RELU;
    const int whole = c % V == 0 && ldy % V == 0 && (uintptr_t)y % (V * sizeof(elem)) == 0;
    return plain && whole && x != y && rows * c * (int64_t)sizeof(elem) >= STREAMED_BYTES;
}

dtconv_status DT(batchnorm_apply)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                  const real *scale, const real *beta, dtconv_activation activation, real alpha,
                                  elem *y, int64_t ldy) {
    const int streaming = streams(rows, c, x, y, ldy, activation);
    const int64_t some = dtconv_piece(rows);
#pragma omp parallel for schedule(dynamic, 1) num_threads(dtconv_threads_to_move(rows *c))
    for (int64_t start = 0; start < rows; start += some) {
        const int64_t end = min_i64(rows, start + some);
        const elem *from = x + start * ldx;
        elem *to = y + start * ldy;
        if (streaming) {
            if (activation == DTCONV_RELU)
                stream_rows(1, end - start, c, from, ldx, mean, scale, beta, to, ldy);
            else
                stream_rows(0, end - start, c, from, ldx, mean, scale, beta, to, ldy);
            finish_stores();
        } else if (activation == DTCONV_SIGMOID) {
            apply_curved(DTCONV_SIGMOID, end - start, c, from, ldx, mean, scale, beta, to, ldy);
        } else if (activation == DTCONV_TANH) {
            apply_curved(DTCONV_TANH, end - start, c, from, ldx, mean, scale, beta, to, ldy);
        } else {
#define APPLY(code) apply_rows(code, end - start, c, from, ldx, mean, scale, beta, alpha, to, ldy)
            FOR_FREQUENT(activation, APPLY)
        }
    }
    return DTCONV_OK;
}

/* What backward reads: x and dy, y where the activation needs it, and the values per channel. */
typedef struct {
    const elem *x, *y, *dy;
    const real *mean, *inverse, *scale, *beta;
    int64_t ldx, ldy, lddy;
    real alpha;
} gradient_arrays;

/* dy * act'(y) of a vector; y is computed again unless the activation is one that needs the real one. */
INLINE vec gradient(int code, real alpha, vec dy, vec x, const elem *y, int64_t count, vec mean, vec scale, vec beta) {
    if (code == DTCONV_LINEAR) return dy;
    if (code == DTCONV_SIGMOID || code == DTCONV_TANH) {
        const vec result = load_first(y, count);
        return code == DTCONV_SIGMOID ? dy * (result * (1 - result)) : dy * (1 - result * result);
    }
#if defined(__AVX512F__)
    KEEP_VECTOR(dy); /* loaded by itself: a load under the mask that follows from x waits for x */
#endif
    const vec z = normalized(x, mean, scale, beta);
    if (code == DTCONV_LEAKY_RELU) return where(z > 0, dy, alpha == 0 ? (vec){0} : alpha * dy);
    return through_slope((dtconv_activation)code, dy, z);
}

/* Adds, of rows [start, end) and some vectors of channels from j0 + j on, the sum of g and that of g * (x - mean). */
INLINE void gradient_block(int code, int vectors, int64_t count, const gradient_arrays *a, const channels *of,
                           int64_t start, int64_t end, int64_t j0, int64_t j, real *sum, real *sum_x) {
    vec sums[GRADIENTS], sums_x[GRADIENTS], mean[GRADIENTS], scale[GRADIENTS], beta[GRADIENTS];
    UNROLL for (int v = 0; v < vectors; v++) {
        sums[v] = load(sum + j + v * V);
        sums_x[v] = load(sum_x + j + v * V);
        mean[v] = load(of->mean + j + v * V);
        scale[v] = load(of->scale + j + v * V);
        beta[v] = load(of->beta + j + v * V);
    }
    const elem *x = a->x + start * a->ldx + j0 + j, *dy = a->dy + start * a->lddy + j0 + j;
    const elem *y = a->y ? a->y + start * a->ldy + j0 + j : x;
    const int64_t ldy = a->y ? a->ldy : a->ldx;
    for (int64_t i = start; i < end; i++, x += a->ldx, dy += a->lddy, y += ldy) UNROLL
    for (int v = 0; v < vectors; v++) {
        const vec xv = load_first(x + v * V, count), dyv = load_first(dy + v * V, count);
        const vec g = gradient(code, a->alpha, dyv, xv, y + v * V, count, mean[v], scale[v], beta[v]);
        sums[v] += g;
        sums_x[v] += g * (xv - mean[v]);
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        store(sum + j + v * V, sums[v]);
        store(sum_x + j + v * V, sums_x[v]);
    }
}

/* Where row i begins a burst: reads x and dy of its rows, up to `end`.  Only whole rows that lie behind each other, and
 * are too wide for the registers, gain by it. */
INLINE void read_burst(const gradient_arrays *a, int64_t i, int64_t start, int64_t end, int64_t width) {
    const int64_t size = width * (int64_t)sizeof(elem);
    const int64_t rows = max_i64(1, DTCONV_BURST / size / PARAMETER_ROWS) * PARAMETER_ROWS;
    if (width <= GRADIENTS * V || a->ldx != width || a->lddy != width || (i - start) % rows) return;
    dtconv_read_burst(a->x + i * width, size, min_i64(rows, end - i), size);
    dtconv_read_burst(a->dy + i * width, size, min_i64(rows, end - i), size);
}

/* Sums over rows [start, end) of a strip of channels: of g to sums, of g * (x - mean) to sums_x. */
INLINE void sum_rows(int code, const gradient_arrays *a, int64_t start, int64_t end, int64_t j0, int64_t width,
                     double *sums, double *sums_x) {
    channels of;
    copy_channels(&of, j0, width, a->mean, a->scale, a->beta);
    const int64_t at_once = width <= GRADIENTS * V ? BLOCK_ROWS : PARAMETER_ROWS;
    for (int64_t j = 0; j < width; j++) sums[j] = sums_x[j] = 0;
    for (int64_t block = start; block < end; block += BLOCK_ROWS) {
        real first[STRIP] = {0}, second[STRIP] = {0};
        const int64_t last = min_i64(end, block + BLOCK_ROWS);
        for (int64_t i = block; i < last; i += at_once) {
            read_burst(a, i, start, end, width);
#define SUM_BLOCK(j, vectors, count) \
    gradient_block(code, vectors, count, a, &of, i, min_i64(last, i + at_once), j0, j, first, second)
            FOR_VECTORS(width, GRADIENTS, SUM_BLOCK);
        }
        for (int64_t j = 0; j < width; j++) {
            sums[j] += (double)first[j];
            sums_x[j] += (double)second[j];
        }
    }
}

dtconv_status DT(batchnorm_backward_sums)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const elem *y,
                                          int64_t ldy, const elem *dy, int64_t lddy, const real *mean,
                                          const real *inverse, const real *scale, const real *beta,
                                          dtconv_activation activation, real alpha, real *sum_dy, real *sum_dy_xhat,
                                          void *workspace, size_t bytes) {
    if (bytes < DT(batchnorm_workspace)(rows, c)) return DTCONV_WORKSPACE;
    if (!y && (activation == DTCONV_SIGMOID || activation == DTCONV_TANH)) return DTCONV_ARGUMENT;
    const gradient_arrays a = {x, y, dy, mean, inverse, scale, beta, ldx, ldy, lddy, alpha};
    const int64_t step = chunk_rows(rows, c), chunks = chunk_count(rows, c);
    double *sums = workspace; /* (chunks, 2, c) */
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(dtconv_threads_to_move(rows *c))
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t j = 0; j < c; j += STRIP) {
            const int64_t start = chunk * step, end = min_i64(rows, start + step);
            double *here = sums + chunk * 2 * c + j;
#define SUM(code) sum_rows(code, &a, start, end, j, min_i64(STRIP, c - j), here, here + c)
            FOR_FREQUENT(activation, SUM)
        }
    for (int64_t chunk = 1; chunk < chunks; chunk++)
        for (int64_t j = 0; j < 2 * c; j++) sums[j] += sums[chunk * 2 * c + j];
    for (int64_t j = 0; j < c; j++) {
        sum_dy[j] = (real)sums[j];
        sum_dy_xhat[j] = (real)(sums[c + j] * (double)inverse[j]);
    }
    return DTCONV_OK;
}

dtconv_status DT(batchnorm_given_sums)(int64_t c, const real *sum, const real *sum_x, const real *inverse, real *sum_dy,
                                       real *sum_dy_xhat) {
    for (int64_t j = 0; j < c; j++) {
        sum_dy[j] = sum[j];
        sum_dy_xhat[j] = sum_x[j] * inverse[j];
    }
    return DTCONV_OK;
}

INLINE void backward_block(int code, int vectors, int64_t count, const gradient_arrays *a, const channels *of,
                           int64_t start, int64_t end, int64_t j0, int64_t j, int accumulate, elem *dx, int64_t lddx) {
    vec mean[AT_ONCE], scale[AT_ONCE], beta[AT_ONCE], offset[AT_ONCE], slope[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) {
        mean[v] = load(of->mean + j + v * V);
        scale[v] = load(of->scale + j + v * V);
        beta[v] = load(of->beta + j + v * V);
        offset[v] = load(of->offset + j + v * V);
        slope[v] = load(of->slope + j + v * V);
    }
    const elem *x = a->x + start * a->ldx + j0 + j, *dy = a->dy + start * a->lddy + j0 + j;
    const elem *y = a->y ? a->y + start * a->ldy + j0 + j : x;
    const int64_t ldy = a->y ? a->ldy : a->ldx;
    elem *to = dx + start * lddx + j0 + j;
    for (int64_t i = start; i < end; i++, x += a->ldx, dy += a->lddy, y += ldy, to += lddx) {
        vec d[AT_ONCE];
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec xv = load_first(x + v * V, count), dyv = load_first(dy + v * V, count);
            const vec g = gradient(code, a->alpha, dyv, xv, y + v * V, count, mean[v], scale[v], beta[v]);
            d[v] = scale[v] * (g - offset[v] - (xv - mean[v]) * slope[v]);
            if (accumulate) d[v] += load_first(to + v * V, count);
        }
        store_vectors(to, vectors, count, d);
    }
}

/* dx of rows [start, end).  sum_dy NULL: the statistics are constants. */
INLINE void backward_rows(int code, const gradient_arrays *a, int64_t start, int64_t end, int64_t c, const real *sum_dy,
                          const real *sum_dy_xhat, real share, int accumulate, elem *dx, int64_t lddx) {
    for (int64_t j0 = 0; j0 < c; j0 += STRIP) {
        const int64_t width = min_i64(STRIP, c - j0);
        channels of = {0};
        copy_channels(&of, j0, width, a->mean, a->scale, a->beta);
        if (sum_dy)
            for (int64_t j = 0; j < width; j++) {
                of.offset[j] = sum_dy[j0 + j] * share;
                of.slope[j] = sum_dy_xhat[j0 + j] * share * a->inverse[j0 + j];
            }
        for (int64_t i = start; i < end; i += PARAMETER_ROWS) {
            read_burst(a, i, start, end, width);
#define BACKWARD_BLOCK(j, vectors, count) \
    backward_block(code, vectors, count, a, &of, i, min_i64(end, i + PARAMETER_ROWS), j0, j, accumulate, dx, lddx)
            FOR_VECTORS(width, AT_ONCE, BACKWARD_BLOCK);
        }
    }
}

dtconv_status DT(batchnorm_backward_apply)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const elem *y,
                                           int64_t ldy, const elem *dy, int64_t lddy, const real *mean,
                                           const real *inverse, const real *scale, const real *beta,
                                           dtconv_activation activation, real alpha, const real *sum_dy,
                                           const real *sum_dy_xhat, int64_t count, int accumulate, elem *dx,
                                           int64_t lddx) {
    if (!y && (activation == DTCONV_SIGMOID || activation == DTCONV_TANH)) return DTCONV_ARGUMENT;
    const gradient_arrays a = {x, y, dy, mean, inverse, scale, beta, ldx, ldy, lddy, alpha};
    const real share = (real)(1.0 / (double)count);
    const int64_t some = dtconv_piece(rows);
#pragma omp parallel for schedule(dynamic, 1) num_threads(dtconv_threads_to_move(rows *c))
    for (int64_t start = 0; start < rows; start += some) {
        const int64_t end = min_i64(rows, start + some);
#define BACKWARD(code) backward_rows(code, &a, start, end, c, sum_dy, sum_dy_xhat, share, accumulate, dx, lddx)
        FOR_FREQUENT(activation, BACKWARD)
    }
    return DTCONV_OK;
}

dtconv_status DT(batchnorm_mean_terms)(int64_t c, const real *sum_dy, const real *sum_dy_xhat, const real *inverse,
                                       const real *scale, int64_t count, int accumulate, real *offset, real *slope) {
    const real share = (real)(1.0 / (double)count);
    for (int64_t j = 0; j < c; j++) {
        const real first = sum_dy[j] * scale[j] * share, second = sum_dy_xhat[j] * inverse[j] * scale[j] * share;
        offset[j] = accumulate ? offset[j] + first : first;
        slope[j] = accumulate ? slope[j] + second : second;
    }
    return DTCONV_OK;
}

INLINE void subtract_block(int vectors, int64_t count, int64_t rows, const elem *x, int64_t ldx, const real *mean,
                           const real *offset, const real *slope, elem *dx, int64_t lddx) {
    vec means[AT_ONCE], offsets[AT_ONCE], slopes[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) {
        means[v] = load_part(mean + v * V, count);
        offsets[v] = load_part(offset + v * V, count);
        slopes[v] = load_part(slope + v * V, count);
    }
    for (int64_t i = 0; i < rows; i++, x += ldx, dx += lddx) {
        vec d[AT_ONCE];
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec term = offsets[v] + (load_first(x + v * V, count) - means[v]) * slopes[v];
            d[v] = load_first(dx + v * V, count) - term;
        }
        store_vectors(dx, vectors, count, d);
    }
}

dtconv_status DT(batchnorm_backward_means)(int64_t rows, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                           const real *offset, const real *slope, elem *dx, int64_t lddx) {
    const int64_t some = dtconv_piece(rows);
#pragma omp parallel for schedule(dynamic, 1) num_threads(dtconv_threads_to_move(rows *c))
    for (int64_t start = 0; start < rows; start += some) {
        const int64_t end = min_i64(rows, start + some);
        for (int64_t i = start; i < end; i += PARAMETER_ROWS) {
            const int64_t height = min_i64(end - i, PARAMETER_ROWS);
            const elem *from = x + i * ldx;
            elem *to = dx + i * lddx;
#define SUBTRACT_BLOCK(j, vectors, count) \
    subtract_block(vectors, count, height, from + j, ldx, mean + j, offset + j, slope + j, to + j, lddx)
            FOR_VECTORS(c, AT_ONCE, SUBTRACT_BLOCK);
        }
    }
    return DTCONV_OK;
}

/* Layer normalization: each row by its own mean and variance (Ba, Kiros, Hinton 2016), or by its root mean square, the
 * mean being taken as 0 (Zhang, Sennrich, NeurIPS 2019).
 *
 *   y = xhat * gamma + beta,  xhat = (x - mean) * inverse,  inverse = 1 / sqrt(variance + epsilon);  x, y (rows, k)
 *
 *   g = dy * gamma;  dx = inverse * (g - mean(g) - xhat * mean(g * xhat));  dgamma = sum dy * xhat;  dbeta = sum dy
 *
 * By the root mean square: the same without mean(g).
 *
 * A row is read from memory once and stays in cache for its second sweep.  The mean is found first, the variance around
 * it with the rounding error of the mean taken out.  dgamma and dbeta are summed in chunks of rows that depend on the
 * sizes alone, so the result does not depend on the number of threads; a few rows are added in the arrays' precision
 * first, which leaves double precision little to do.
 */
#include "dtconv_nn_norm.h"
#include "norm_common.h"

enum { GROUP = 8 /* rows that are added in the arrays' precision */ };

/* Chunks of rows with their own sums: fewer for long rows, so that the workspace stays below 8 MiB where it can. */
INLINE int64_t row_chunks(int64_t rows, int64_t k) {
    return max_i64(1, min_i64(min_i64(rows, MAX_CHUNKS), ((int64_t)1 << 19) / k));
}

static void forward_row(int64_t k, int rms, const elem *x, const real *gamma, const real *beta, real epsilon,
                        real *mean, real *inverse, elem *y) {
    real sum = 0, error = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < k; j++) sum += widen(x[j]);
    const real center = rms ? 0 : sum / (real)k;
#pragma omp simd reduction(+ : error, squares)
    for (int64_t j = 0; j < k; j++) {
        const real d = widen(x[j]) - center;
        error += d;
        squares += d * d;
    }
    const double shift = rms ? 0 : (double)error / (double)k, variance = (double)squares / (double)k - shift * shift;
    const real m = (real)((double)center + shift), scale = (real)(1.0 / sqrt(variance + (double)epsilon));
    *mean = m;
    *inverse = scale;
    if (gamma && beta) {
#pragma omp simd
        for (int64_t j = 0; j < k; j++) y[j] = narrow((widen(x[j]) - m) * scale * gamma[j] + beta[j]);
        return;
    }
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        const real xhat = (widen(x[j]) - m) * scale;
        y[j] = narrow((gamma ? xhat * gamma[j] : xhat) + (beta ? beta[j] : 0));
    }
}

dtconv_status DT(layernorm_forward)(int64_t rows, int64_t k, int rms, const elem *x, int64_t ldx, const real *gamma,
                                    const real *beta, real epsilon, real *mean, real *inverse, elem *y, int64_t ldy) {
    if (k < 1) return DTCONV_ARGUMENT;
#pragma omp parallel for schedule(dynamic, dtconv_piece(rows)) num_threads(dtconv_threads_to_move(rows *k))
    for (int64_t i = 0; i < rows; i++)
        forward_row(k, rms, x + i * ldx, gamma, beta, epsilon, mean + i, inverse + i, y + i * ldy);
    return DTCONV_OK;
}

size_t DT(layernorm_workspace)(int64_t rows, int64_t k) {
    return (size_t)(row_chunks(rows, k) * k) * 2 * sizeof(double);
}

/* Adds the parts of `rows` rows to the sums of their chunk. */
INLINE void add_group(int rows, int64_t k, const elem *x, int64_t ldx, const elem *dy, int64_t lddy, const real *mean,
                      const real *inverse, double *sum_gamma, double *sum_beta) {
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        real gamma = 0, beta = 0;
        UNROLL for (int r = 0; r < rows; r++) {
            const real g = widen(dy[r * lddy + j]);
            gamma += g * ((widen(x[r * ldx + j]) - mean[r]) * inverse[r]);
            beta += g;
        }
        sum_gamma[j] += (double)gamma;
        sum_beta[j] += (double)beta;
    }
}

INLINE void gradient_of_row(int64_t k, int rms, const elem *x, const elem *dy, int scaled, const real *gamma, real mean,
                            real inverse, int accumulate, elem *dx) {
    real first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
    for (int64_t j = 0; j < k; j++) {
        const real g = scaled ? widen(dy[j]) * gamma[j] : widen(dy[j]);
        first += g;
        second += g * (widen(x[j]) - mean);
    }
    const real offset = rms ? 0 : first / (real)k, slope = second / (real)k * inverse * inverse;
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        const real g = scaled ? widen(dy[j]) * gamma[j] : widen(dy[j]);
        const real value = inverse * (g - offset - (widen(x[j]) - mean) * slope);
        dx[j] = narrow(accumulate ? widen(dx[j]) + value : value);
    }
}

/* A loop for each of the cases: none asks within. */
static void backward_row(int64_t k, int rms, const elem *x, const elem *dy, const real *gamma, real mean, real inverse,
                         int accumulate, elem *dx) {
    if (gamma && accumulate)
        gradient_of_row(k, rms, x, dy, 1, gamma, mean, inverse, 1, dx);
    else if (gamma)
        gradient_of_row(k, rms, x, dy, 1, gamma, mean, inverse, 0, dx);
    else
        gradient_of_row(k, rms, x, dy, 0, gamma, mean, inverse, accumulate, dx);
}

/* target = or += the chunks' sums, in their order. */
static void combine(int64_t chunks, int64_t k, const double *sums, int accumulate, real *target) {
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(chunks *k))
    for (int64_t j = 0; j < k; j++) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < chunks; chunk++) sum += sums[chunk * 2 * k + j];
        target[j] = accumulate ? target[j] + (real)sum : (real)sum;
    }
}

dtconv_status DT(layernorm_backward)(int64_t rows, int64_t k, int rms, const elem *x, int64_t ldx, const real *gamma,
                                     const real *mean, const real *inverse, const elem *dy, int64_t lddy,
                                     int accumulate, elem *dx, int64_t lddx, int accumulate_gamma, real *dgamma,
                                     int accumulate_beta, real *dbeta, void *workspace, size_t bytes) {
    if (k < 1) return DTCONV_ARGUMENT;
    if (bytes < DT(layernorm_workspace)(rows, k)) return DTCONV_WORKSPACE;
    const int64_t chunks = row_chunks(rows, k);
    const int sums_wanted = dgamma || dbeta;
    double *sums = workspace; /* (chunks, 2, k) */
#pragma omp parallel for schedule(dynamic, 1) num_threads(dtconv_threads_to_move(rows *k))
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        double *here = sums + chunk * 2 * k;
        memset(here, 0, (size_t)k * 2 * sizeof(double));
        const int64_t end = rows * (chunk + 1) / chunks;
        for (int64_t i = rows * chunk / chunks, step; i < end; i += step) {
            const elem *xi = x + i * ldx, *gi = dy + i * lddy;
            step = end - i >= GROUP ? GROUP : 1;
            if (sums_wanted && step == GROUP)
                add_group(GROUP, k, xi, ldx, gi, lddy, mean + i, inverse + i, here, here + k);
            else if (sums_wanted)
                add_group(1, k, xi, ldx, gi, lddy, mean + i, inverse + i, here, here + k);
            for (int64_t r = 0; r < step && dx; r++)
                backward_row(k, rms, xi + r * ldx, gi + r * lddy, gamma, mean[i + r], inverse[i + r], accumulate,
                             dx + (i + r) * lddx);
        }
    }
    if (dgamma) combine(chunks, k, sums, accumulate_gamma, dgamma);
    if (dbeta) combine(chunks, k, sums + k, accumulate_beta, dbeta);
    return DTCONV_OK;
}

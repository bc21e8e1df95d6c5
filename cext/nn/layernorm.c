/* Layer normalization: each row by its own mean and variance (Ba, Kiros, Hinton 2016).
 *
 *   y = xhat * gamma + beta,  xhat = (x - mean) * inverse,  inverse = 1 / sqrt(variance + epsilon);  x, y (rows, k)
 *
 *   g = dy * gamma;  dx = inverse * (g - mean(g) - xhat * mean(g * xhat));  dgamma = sum dy * xhat;  dbeta = sum dy
 *
 * A row is read from memory once and stays in cache for its second sweep.  The mean is found first, the variance around
 * it with the rounding error of the mean taken out.  dgamma and dbeta are summed in chunks of rows that depend on the
 * sizes alone, so the result does not depend on the number of threads.
 */
#include "dtconv_nn_norm.h"
#include "norm_common.h"

/* Chunks of rows with their own sums: fewer for long rows, so that the workspace stays below 8 MiB where it can. */
INLINE int64_t row_chunks(int64_t rows, int64_t k) {
    return max_i64(1, min_i64(min_i64(rows, MAX_CHUNKS), ((int64_t)1 << 19) / k));
}

static void forward_row(int64_t k, const real *x, const real *gamma, const real *beta, real epsilon, real *mean,
                        real *inverse, real *y) {
    real sum = 0, error = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < k; j++) sum += x[j];
    const real center = sum / (real)k;
#pragma omp simd reduction(+ : error, squares)
    for (int64_t j = 0; j < k; j++) {
        const real d = x[j] - center;
        error += d;
        squares += d * d;
    }
    const double shift = (double)error / (double)k, variance = (double)squares / (double)k - shift * shift;
    const real m = (real)((double)center + shift), scale = (real)(1.0 / sqrt(variance + (double)epsilon));
    *mean = m;
    *inverse = scale;
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        const real xhat = (x[j] - m) * scale;
        y[j] = (gamma ? xhat * gamma[j] : xhat) + (beta ? beta[j] : 0);
    }
}

dtconv_status DT(layernorm_forward)(int64_t rows, int64_t k, const real *x, int64_t ldx, const real *gamma,
                                    const real *beta, real epsilon, real *mean, real *inverse, real *y, int64_t ldy) {
    if (k < 1) return DTCONV_ARGUMENT;
#pragma omp parallel for schedule(static) num_threads(threads_for(rows *k))
    for (int64_t i = 0; i < rows; i++)
        forward_row(k, x + i * ldx, gamma, beta, epsilon, mean + i, inverse + i, y + i * ldy);
    return DTCONV_OK;
}

size_t DT(layernorm_workspace)(int64_t rows, int64_t k) {
    return (size_t)(row_chunks(rows, k) * k) * 2 * sizeof(double);
}

/* Adds a row's part to the sums of its chunk. */
static void add_row(int64_t k, const real *x, const real *dy, real mean, real inverse, double *sum_gamma,
                    double *sum_beta) {
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        sum_gamma[j] += (double)(dy[j] * ((x[j] - mean) * inverse));
        sum_beta[j] += (double)dy[j];
    }
}

static void backward_row(int64_t k, const real *x, const real *dy, const real *gamma, real mean, real inverse,
                         int accumulate, real *dx) {
    real first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
    for (int64_t j = 0; j < k; j++) {
        const real g = gamma ? dy[j] * gamma[j] : dy[j];
        first += g;
        second += g * (x[j] - mean);
    }
    const real offset = first / (real)k, slope = second / (real)k * inverse * inverse;
#pragma omp simd
    for (int64_t j = 0; j < k; j++) {
        const real g = gamma ? dy[j] * gamma[j] : dy[j];
        const real value = inverse * (g - offset - (x[j] - mean) * slope);
        dx[j] = accumulate ? dx[j] + value : value;
    }
}

/* target = or += the chunks' sums, in their order. */
static void combine(int64_t chunks, int64_t k, const double *sums, int accumulate, real *target) {
#pragma omp parallel for schedule(static) num_threads(threads_for(chunks *k))
    for (int64_t j = 0; j < k; j++) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < chunks; chunk++) sum += sums[chunk * 2 * k + j];
        target[j] = accumulate ? target[j] + (real)sum : (real)sum;
    }
}

dtconv_status DT(layernorm_backward)(int64_t rows, int64_t k, const real *x, int64_t ldx, const real *gamma,
                                     const real *mean, const real *inverse, const real *dy, int64_t lddy,
                                     int accumulate, real *dx, int64_t lddx, int accumulate_gamma, real *dgamma,
                                     int accumulate_beta, real *dbeta, void *workspace, size_t bytes) {
    if (k < 1) return DTCONV_ARGUMENT;
    if (bytes < DT(layernorm_workspace)(rows, k)) return DTCONV_WORKSPACE;
    const int64_t chunks = row_chunks(rows, k);
    const int sums_wanted = dgamma || dbeta;
    double *sums = workspace; /* (chunks, 2, k) */
#pragma omp parallel for schedule(static) num_threads(threads_for(rows *k))
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        double *here = sums + chunk * 2 * k;
        memset(here, 0, (size_t)k * 2 * sizeof(double));
        for (int64_t i = rows * chunk / chunks; i < rows * (chunk + 1) / chunks; i++) {
            const real *xi = x + i * ldx, *gi = dy + i * lddy;
            if (sums_wanted) add_row(k, xi, gi, mean[i], inverse[i], here, here + k);
            if (dx) backward_row(k, xi, gi, gamma, mean[i], inverse[i], accumulate, dx + i * lddx);
        }
    }
    if (dgamma) combine(chunks, k, sums, accumulate_gamma, dgamma);
    if (dbeta) combine(chunks, k, sums + k, accumulate_beta, dbeta);
    return DTCONV_OK;
}

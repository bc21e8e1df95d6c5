/* Statistics of batch normalization: mean and variance of each channel of x (rows x c).
 *
 * Rows are cut into chunks (norm_common.h) of blocks.  Of a block the sums of deviations from the mean so far and of
 * their squares are found in one sweep, in order; blocks and chunks are merged in double precision (Chan, Golub,
 * LeVeque 1983).  So x is read from memory once and nothing cancels.
 */
#include "dtconv_nn_norm.h"
#include "dtconv_vector.h"
#include "norm_common.h"

/* Vectors of channels whose sums fit the registers. */
enum { SUMMED = VECTOR_BYTES == 64 ? 8 : 4 };
enum {
    CENTER_ROWS = 16, /* whose mean is the first guess of the mean */
    BLOCK_ROWS = 256, /* at most, that are summed before sums go on in double precision */
};

size_t DT(batchnorm_workspace)(int64_t rows, int64_t c) {
    return (size_t)(chunk_count(rows, c) * c) * 2 * sizeof(double);
}

/* Adds the sums of x - center and of its squares. */
INLINE void deviations(int vectors, int64_t rows, const real *x, int64_t ldx, const real *center, real *sum,
                       real *squares) {
    vec sums[SUMMED], squared[SUMMED], middle[SUMMED];
    UNROLL for (int v = 0; v < vectors; v++) {
        middle[v] = load(center + v * V);
        sums[v] = load(sum + v * V);
        squared[v] = load(squares + v * V);
    }
    for (int64_t i = 0; i < rows; i++, x += ldx) UNROLL
    for (int v = 0; v < vectors; v++) {
        const vec d = load(x + v * V) - middle[v];
        sums[v] += d;
        squared[v] += d * d;
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        store(sum + v * V, sums[v]);
        store(squares + v * V, squared[v]);
    }
}

/* The same of `width` channels that no whole vector is left for. */
static void deviations_rest(int64_t rows, int64_t width, const real *x, int64_t ldx, const real *center, real *sum,
                            real *squares) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            const real d = x[i * ldx + j] - center[j];
            sum[j] += d;
            squares[j] += d * d;
        }
}

/* Adds the sums over `rows` of a strip of channels.  Memory is read strictly in order, which the processor's
 * prefetching wants: rows that fit the registers are summed there, of wider ones each is added to sums in the first
 * cache. */
static void sum_deviations(int64_t rows, int64_t width, const real *x, int64_t ldx, const real *center, real *sum,
                           real *squares) {
    if (width == V) {
        deviations(1, rows, x, ldx, center, sum, squares);
    } else if (width == 2 * V) {
        deviations(2, rows, x, ldx, center, sum, squares);
    } else if (width == 4 * V) {
        deviations(4, rows, x, ldx, center, sum, squares);
    } else if (width == SUMMED * V) {
        deviations(SUMMED, rows, x, ldx, center, sum, squares);
    } else {
        for (int64_t i = 0; i < rows; i++, x += ldx) {
            int64_t j = 0;
            for (; j + 4 * V <= width; j += 4 * V) deviations(4, 1, x + j, ldx, center + j, sum + j, squares + j);
            for (; j + V <= width; j += V) deviations(1, 1, x + j, ldx, center + j, sum + j, squares + j);
            deviations_rest(1, width - j, x + j, ldx, center + j, sum + j, squares + j);
        }
    }
}

/* The mean of the first rows of a block: a value near which the elements are. */
static void find_center(int64_t rows, int64_t width, const real *x, int64_t ldx, real *center) {
    for (int64_t j = 0; j < width; j++) center[j] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) center[j] += x[i * ldx + j];
    for (int64_t j = 0; j < width; j++) center[j] /= (real)rows;
}

/* Moments of `rows` x `width` elements, merged into mean and m2 of `before` earlier rows.  Deviations are from what the
 * mean has been so far, so that x is read once; where that is off, its error is small against the deviations. */
static void merge_block(int64_t rows, int64_t width, const real *x, int64_t ldx, int64_t before, double *mean,
                        double *m2) {
    real first[STRIP] = {0}, second[STRIP] = {0}, center[STRIP];
    if (before == 0)
        find_center(min_i64(rows, CENTER_ROWS), width, x, ldx, center);
    else
        for (int64_t j = 0; j < width; j++) center[j] = (real)mean[j];
    sum_deviations(rows, width, x, ldx, center, first, second);
    const double all = (double)(before + rows), weight = (double)rows / all, cross = (double)before * weight;
    for (int64_t j = 0; j < width; j++) {
        double error = (double)first[j] / (double)rows;
        double delta = (double)center[j] + error - mean[j];
        mean[j] += delta * weight;
        m2[j] += (double)second[j] - error * (double)first[j] + delta * delta * cross;
    }
}

dtconv_status DT(batchnorm_statistics)(int64_t rows, int64_t c, const real *x, int64_t ldx, real *mean, real *variance,
                                       void *workspace, size_t bytes) {
    if (rows < 1 || c < 1) return DTCONV_ARGUMENT;
    if (bytes < DT(batchnorm_workspace)(rows, c)) return DTCONV_WORKSPACE;
    const int64_t step = chunk_rows(rows, c), chunks = chunk_count(rows, c);
    const int64_t block = min_i64(block_rows(c), BLOCK_ROWS);
    double *moments = workspace; /* (chunks, 2, c) */
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads_for(rows *c))
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t j = 0; j < c; j += STRIP) {
            const int64_t width = min_i64(STRIP, c - j), start = chunk * step, end = min_i64(rows, start + step);
            double *m1 = moments + chunk * 2 * c + j, *m2 = m1 + c;
            memset(m1, 0, (size_t)width * sizeof(double));
            memset(m2, 0, (size_t)width * sizeof(double));
            for (int64_t i = start; i < end; i += block)
                merge_block(min_i64(block, end - i), width, x + i * ldx + j, ldx, i - start, m1, m2);
        }
    for (int64_t chunk = 1; chunk < chunks; chunk++) {
        const double *m1 = moments + chunk * 2 * c, *m2 = m1 + c;
        const double before = (double)(chunk * step), here = (double)min_i64(step, rows - chunk * step),
                     all = before + here;
        for (int64_t j = 0; j < c; j++) {
            double delta = m1[j] - moments[j];
            moments[j] += delta * (here / all);
            moments[c + j] += m2[j] + delta * delta * (before * here / all);
        }
    }
    for (int64_t j = 0; j < c; j++) {
        mean[j] = (real)moments[j];
        variance[j] = (real)(moments[c + j] / (double)rows);
    }
    return DTCONV_OK;
}

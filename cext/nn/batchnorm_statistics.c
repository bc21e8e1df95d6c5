/* Statistics of batch normalization: mean and variance of each channel of x (rows x c).
 *
 * Rows are cut into chunks (norm_common.h) of blocks.  Of a block the sums of deviations from the mean so far and of
 * their squares are found in one sweep, in order; blocks and chunks are merged in double precision (Chan, Golub,
 * LeVeque 1983).  So x is read from memory once and nothing cancels.  Exact ones have these sums in double precision,
 * too: they are rounded to the same `real`, but for one case in millions, however rows are cut.
 */
#include "dtconv_channel_sums.h"
#include "dtconv_nn_norm.h"
#include "norm_common.h"

enum {
    CENTER_ROWS = 16, /* whose mean is the first guess of the mean */
    SUMMED_ROWS = 16, /* of wide rows, for which sums stay in registers */
    BLOCK_ROWS = 256, /* at most, that are summed before sums go on in double precision */
};

size_t DT(batchnorm_workspace)(int64_t rows, int64_t c) {
    return (size_t)(chunk_count(rows, c) * c) * 2 * sizeof(double);
}

/* Adds the sums over `rows` of a strip of channels.  Memory is read nearly in order, which the processor's prefetching
 * wants: rows that fit the registers are summed there, of wider ones a few at once. */
static void sum_deviations(int64_t rows, int64_t width, const elem *x, int64_t ldx, const real *center, real *sum,
                           real *squares) {
    pixels_of rest = {.first = x, .ld = ldx};
    if (width == V) {
        add_deviations(1, rows, rest, 0, center, sum, squares);
    } else if (width == 2 * V) {
        add_deviations(2, rows, rest, 0, center, sum, squares);
    } else if (width == 4 * V) {
        add_deviations(4, rows, rest, 0, center, sum, squares);
    } else if (width == MOST_DEVIATIONS * V) {
        add_deviations(MOST_DEVIATIONS, rows, rest, 0, center, sum, squares);
    } else {
        for (int64_t i = 0; i < rows; i += SUMMED_ROWS, rest.first += SUMMED_ROWS * ldx) {
            const int64_t some = min_i64(SUMMED_ROWS, rows - i);
            int64_t j = 0;
            for (; j + 4 * V <= width; j += 4 * V) add_deviations(4, some, rest, j, center + j, sum + j, squares + j);
            for (; j + V <= width; j += V) add_deviations(1, some, rest, j, center + j, sum + j, squares + j);
            add_deviations_rest(width - j, some, rest, j, center + j, sum + j, squares + j);
        }
    }
}

static void sum_deviations_exactly(int64_t rows, int64_t width, const elem *x, int64_t ldx, const real *center,
                                   double *sum, double *squares) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) {
            const double deviation = (double)widen(x[i * ldx + j]) - (double)center[j];
            sum[j] += deviation;
            squares[j] += deviation * deviation;
        }
}

/* The mean of the first rows of a block: a value near which the elements are. */
static void find_center(int64_t rows, int64_t width, const elem *x, int64_t ldx, real *center) {
    for (int64_t j = 0; j < width; j++) center[j] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) center[j] += widen(x[i * ldx + j]);
    for (int64_t j = 0; j < width; j++) center[j] /= (real)rows;
}

/* Merges the sums of deviations from a center, and of their squares, into mean and m2 of `before` earlier rows. */
static void merge_sums(int64_t rows, int64_t width, const real *center, const double *sum, const double *squares,
                       int64_t before, double *mean, double *m2) {
    const double all = (double)(before + rows), weight = (double)rows / all, cross = (double)before * weight;
    for (int64_t j = 0; j < width; j++) {
        double error = sum[j] / (double)rows;
        double delta = (double)center[j] + error - mean[j];
        mean[j] += delta * weight;
        m2[j] += squares[j] - error * sum[j] + delta * delta * cross;
    }
}

/* Moments of `rows` x `width` elements, merged into mean and m2 of `before` earlier rows.  Deviations are from what the
 * mean has been so far, so that x is read once; where that is off, its error is small against the deviations. */
static void merge_block(int exact, int64_t rows, int64_t width, const elem *x, int64_t ldx, int64_t before,
                        double *mean, double *m2) {
    double sum[STRIP] = {0}, squares[STRIP] = {0};
    real first[STRIP] = {0}, second[STRIP] = {0}, center[STRIP];
    if (before == 0)
        find_center(min_i64(rows, CENTER_ROWS), width, x, ldx, center);
    else
        for (int64_t j = 0; j < width; j++) center[j] = (real)mean[j];
    if (exact) {
        sum_deviations_exactly(rows, width, x, ldx, center, sum, squares);
    } else {
        sum_deviations(rows, width, x, ldx, center, first, second);
        for (int64_t j = 0; j < width; j++) sum[j] = (double)first[j], squares[j] = (double)second[j];
    }
    merge_sums(rows, width, center, sum, squares, before, mean, m2);
}

/* Mean and sum of squared deviations of all rows, at the start of the workspace. */
static dtconv_status find_moments(int exact, int64_t rows, int64_t c, const elem *x, int64_t ldx, void *workspace,
                                  size_t bytes) {
    if (rows < 1 || c < 1) return DTCONV_ARGUMENT;
    if (bytes < DT(batchnorm_workspace)(rows, c)) return DTCONV_WORKSPACE;
    const int64_t step = chunk_rows(rows, c), chunks = chunk_count(rows, c);
    const int64_t block = min_i64(block_rows(c), BLOCK_ROWS);
    double *moments = workspace; /* (chunks, 2, c) */
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(dtconv_threads_to_move(rows *c))
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t j = 0; j < c; j += STRIP) {
            const int64_t width = min_i64(STRIP, c - j), start = chunk * step, end = min_i64(rows, start + step);
            double *m1 = moments + chunk * 2 * c + j, *m2 = m1 + c;
            memset(m1, 0, (size_t)width * sizeof(double));
            memset(m2, 0, (size_t)width * sizeof(double));
            for (int64_t i = start; i < end; i += block)
                merge_block(exact, min_i64(block, end - i), width, x + i * ldx + j, ldx, i - start, m1, m2);
        }
    for (int64_t chunk = 1; chunk < chunks; chunk++) {
        const double *here = moments + chunk * 2 * c, count = (double)min_i64(step, rows - chunk * step);
        merge_moments(c, (double)(chunk * step), moments, moments + c, count, here, here + c);
    }
    return DTCONV_OK;
}

dtconv_status DT(batchnorm_statistics)(int64_t rows, int64_t c, const elem *x, int64_t ldx, real *mean, real *variance,
                                       void *workspace, size_t bytes) {
    const dtconv_status status = find_moments(0, rows, c, x, ldx, workspace, bytes);
    const double *moments = workspace;
    for (int64_t j = 0; status == DTCONV_OK && j < c; j++) {
        mean[j] = (real)moments[j];
        variance[j] = (real)(moments[c + j] / (double)rows);
    }
    return status;
}

dtconv_status DT(batchnorm_exact_statistics)(int64_t rows, int64_t c, const elem *x, int64_t ldx, double *mean,
                                             double *variance, void *workspace, size_t bytes) {
    const dtconv_status status = find_moments(1, rows, c, x, ldx, workspace, bytes);
    const double *moments = workspace;
    for (int64_t j = 0; status == DTCONV_OK && j < c; j++) {
        mean[j] = moments[j];
        variance[j] = moments[c + j] / (double)rows;
    }
    return status;
}

/* Losses that end in a scalar: the weighted mean over samples, and L1 and L2 penalties of weights.
 *
 *   mean:    result = sum_i values_i * weights_(i / inner) / divisor
 *   penalty: result = l1 * sum |w| + l2 * sum w^2;   dw = (l1 * sign(w) + 2 * l2 * w) * dresult
 *
 * Sums are taken in double precision over a fixed number of chunks: one pass over memory.
 */
#include "dtconv_nn_losses.h"
#include "norm_common.h"

/* Elements of a chunk: a multiple of 1024, so that at most MAX_CHUNKS of them cover `count`. */
INLINE int64_t chunk_length(int64_t count) {
    return max_i64(1, (count + MAX_CHUNKS * 1024 - 1) / (MAX_CHUNKS * 1024)) * 1024;
}

static double total(const double *parts, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += parts[i];
    return sum;
}

/* sum of values * weights, or of weights alone where values is NULL. */
static double weighted_sum(int64_t count, int64_t inner, const real *values, const real *weights) {
    const int64_t step = chunk_length(count), chunks = (count + step - 1) / step;
    double parts[MAX_CHUNKS];
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(count))
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const int64_t end = min_i64(count, (chunk + 1) * step);
        double sum = 0;
        if (!weights || !values) {
            const real *terms = values ? values : weights;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = chunk * step; i < end; i++) sum += (double)terms[i];
        } else if (inner == 1) {
#pragma omp simd reduction(+ : sum)
            for (int64_t i = chunk * step; i < end; i++) sum += (double)values[i] * (double)weights[i];
        } else {
            for (int64_t i = chunk * step; i < end; i++) sum += (double)values[i] * (double)weights[i / inner];
        }
        parts[chunk] = sum;
    }
    return total(parts, chunks);
}

static double divisor_of(int64_t count, int64_t inner, dtconv_mean reduction, const real *weights) {
    if (reduction == DTCONV_WEIGHTED_SUM) return 1;
    if (reduction == DTCONV_MEAN_OF_VALUES || !weights) return (double)count;
    return weighted_sum(count / inner, 1, NULL, weights);
}

dtconv_status DT(weighted_mean_forward)(int64_t count, int64_t inner, dtconv_mean reduction, const real *values,
                                        const real *weights, real *result) {
    if (count < 1 || inner < 1 || count % inner) return DTCONV_ARGUMENT;
    const double divisor = divisor_of(count, inner, reduction, weights);
    *result = divisor == 0 ? 0 : (real)(weighted_sum(count, inner, values, weights) / divisor);
    return DTCONV_OK;
}

dtconv_status DT(weighted_mean_backward)(int64_t count, int64_t inner, dtconv_mean reduction, const real *weights,
                                         const real *dresult, int accumulate, real *dvalues) {
    if (count < 1 || inner < 1 || count % inner) return DTCONV_ARGUMENT;
    const double divisor = divisor_of(count, inner, reduction, weights);
    const real share = divisor == 0 ? 0 : (real)((double)*dresult / divisor);
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(count))
    for (int64_t i = 0; i < count; i++) {
        const real value = weights ? weights[i / inner] * share : share;
        dvalues[i] = accumulate ? dvalues[i] + value : value;
    }
    return DTCONV_OK;
}

dtconv_status DT(l1_l2_forward)(int64_t count, real l1, real l2, const real *w, real *result) {
    const int64_t step = chunk_length(count), chunks = (count + step - 1) / step;
    double parts[MAX_CHUNKS];
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(count))
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        double first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
        for (int64_t i = chunk * step; i < min_i64(count, (chunk + 1) * step); i++) {
            const double value = (double)w[i];
            first += fabs(value);
            second += value * value;
        }
        parts[chunk] = (double)l1 * first + (double)l2 * second;
    }
    *result = (real)total(parts, chunks);
    return DTCONV_OK;
}

dtconv_status DT(l1_l2_backward)(int64_t count, real l1, real l2, const real *w, const real *dresult, int accumulate,
                                 real *dw) {
    const real first = l1 * *dresult, second = 2 * l2 * *dresult;
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(count))
    for (int64_t i = 0; i < count; i++) {
        const real sign = (real)(w[i] > 0) - (real)(w[i] < 0), value = first * sign + second * w[i];
        dw[i] = accumulate ? dw[i] + value : value;
    }
    return DTCONV_OK;
}

/* Rows of a table by their number, and the sum of gradients back into it.
 *
 * Forward, threads divide the numbers.  Backward, they divide the table's columns, and each adds the rows in the order
 * of the numbers: so the result does not depend on the number of threads, however often a row is named.
 */
#include "dtconv_products.h"
#include "norm_common.h"

enum { COLUMNS = 16 };

dtconv_status DT(take_rows)(int64_t count, int64_t width, const int32_t *index, const real *table, real *y) {
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(count *width))
    for (int64_t i = 0; i < count; i++)
        memcpy(y + i * width, table + (int64_t)index[i] * width, (size_t)width * sizeof(real));
    return DTCONV_OK;
}

dtconv_status DT(add_to_rows)(int64_t count, int64_t width, int64_t size, const int32_t *index, const real *dy,
                              int accumulate, real *table) {
    if (!accumulate) memset(table, 0, (size_t)(size * width) * sizeof(real));
    const int64_t pieces = (width + COLUMNS - 1) / COLUMNS;
    const int threads = (int)min_i64(pieces, dtconv_threads_to_move(count * width));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        const int64_t from = pieces * t / threads * COLUMNS, to = min_i64(pieces * (t + 1) / threads * COLUMNS, width);
        for (int64_t i = 0; i < count; i++) {
            const real *from_row = dy + i * width;
            real *to_row = table + (int64_t)index[i] * width;
            for (int64_t j = from; j < to; j++) to_row[j] += from_row[j];
        }
    }
    return DTCONV_OK;
}

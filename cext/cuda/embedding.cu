/* Rows of a table by their number.  A number outside of the table is -1: its row is NaN, and gets no gradient. */
#include "dtconv_cuda.h"
#include "numbers.h"

__device__ inline int64_t row_at(Array<const uint8_t> index, int type, int64_t i, int64_t rows) {
    if (type == FLOAT32 || type == FLOAT64) {
        const double value = number_at(index, type, i);
        return value > -1 && value < (double)rows ? (int64_t)value : -1;
    }
    const int64_t value = whole_at(index, type, i);
    return value >= 0 && value < rows ? value : -1;
}

/* y = table[index], rows of `width` elements */
GLOBAL take_rows(int64_t count, int64_t width, int64_t rows, int64_t type, Array<const uint8_t> index,
                 Array<const real> table, Array<real> y) {
    sweep(count * width, width % PACK == 0 && aligned(table, y), [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const cell at = cell_of(i, width);
        const int64_t row = row_at(index, (int)type, at.row, rows);
        pack<W> found;
        for (int e = 0; e < W; e++) found.v[e] = (real)nan("");
        if (row >= 0) found = load<W>(table, row * width + at.column);
        store<W>(y, i, found);
    });
}
KERNEL(take_rows)

/* The rows' numbers as int32. */
GLOBAL row_numbers(int64_t count, int64_t rows, int64_t type, Array<const uint8_t> index, Array<int32_t> numbers) {
    FOR_EACH(i, count) numbers[i] = (int32_t)row_at(index, (int)type, i, rows);
}
KERNEL(row_numbers)

/* dtable (+)= the sum of the rows of dy with each number, in their order: a warp for each row of the table, whose lanes
 * look at 32 numbers at a time */
GLOBAL BOUNDS(256) add_to_rows(int64_t count, int64_t width, int64_t rows, Array<const int32_t> numbers,
                               Array<const real> dy, int64_t accumulate, Array<real> dtable) {
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    if (!accumulate)
        for (int64_t j = lane; j < width; j += 32) dtable[row * width + j] = 0;
    for (int64_t from = 0; from < count; from += 32) {
        const unsigned found = __ballot_sync(FULL, from + lane < count && numbers[from + lane] == row);
        for (int i = 0; found && i < 32; i++) {
            if (!(found >> i & 1)) continue;
            for (int64_t j = lane; j < width; j += 32) dtable[row * width + j] += dy[(from + i) * width + j];
        }
    }
}
KERNEL(add_to_rows)

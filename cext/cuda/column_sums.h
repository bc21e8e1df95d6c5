/* Sums over the rows of matrices: a block takes 32 columns, each of its 8 warps a part of the rows.  Parts of rows lie
 * along the grid's y axis.
 */
#ifndef DTCONV_CUDA_COLUMN_SUMS_H
#define DTCONV_CUDA_COLUMN_SUMS_H

enum { WIDTH = 32, HEIGHT = 8 };

struct two {
    real a, b;
};

/* Sums of a block over its rows; parts: (2, gridDim.y, c). */
template <typename F>
__device__ inline void sum_columns(int64_t rows, int64_t c, Array<real> parts, int count, const F &f) {
    SHARED(real, first, WIDTH * HEIGHT);
    SHARED(real, second, WIDTH * HEIGHT);
    const int lane = threadIdx.x % WIDTH, line = threadIdx.x / WIDTH;
    const int64_t j = (int64_t)blockIdx.x * WIDTH + lane;
    const int64_t each = (rows + gridDim.y - 1) / gridDim.y, from = blockIdx.y * each;
    const int64_t to = from + each < rows ? from + each : rows;
    two sum = {0, 0};
    if (j < c)
        for (int64_t i = from + line; i < to; i += HEIGHT) {
            const two value = f(i, j);
            sum.a += value.a;
            sum.b += value.b;
        }
    first[threadIdx.x] = sum.a;
    if (count > 1) second[threadIdx.x] = sum.b;
    __syncthreads();
    if (line || j >= c) return;
    for (int i = 1; i < HEIGHT; i++) {
        sum.a += first[i * WIDTH + lane];
        if (count > 1) sum.b += second[i * WIDTH + lane];
    }
    parts[blockIdx.y * c + j] = sum.a;
    if (count > 1) parts[(gridDim.y + blockIdx.y) * c + j] = sum.b;
}

#endif

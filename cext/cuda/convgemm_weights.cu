/* CONVGEMM, backward_weights: a matrix product whose loads into shared memory are the im2col.
 *
 *     dw[tap, ci, co] = sum over pixels of x[pixel of the tap, ci] * dy[pixel, co]
 *
 * Rows of the product are taps with their channels, its sums run over the pixels of dy.  These are cut into parts along
 * the grid's z axis, so that there are blocks for all multiprocessors; `sum` then adds the parts in their order.
 */
#include "dtconv_cuda.h"
#include "convgemm_walks.h"
#include "convgemm.h"

/* W: channels that are loaded at once, of x and of dy.  each: pixels of a part, a multiple of DEEP. */
template <int TY, int TX, int W, typename SA, typename SB, typename S>
__device__ __forceinline__ void correlate(SA &a, SB &b, S &size, bool packs, int64_t each, Array<const real> x,
                                          int64_t ldx, Array<const real> dy, int64_t lddy, Array<real> dw,
                                          int64_t ldw) {
    typedef tile<TY, TX> Tile;
    enum {
        LANES_A = Tile::ROWS / W, /* threads that load the channels of one pixel */
        LANES_B = Tile::COLUMNS / W,
        AT_ONCE_A = Tile::THREADS / LANES_A, /* pixels that are loaded at once */
        AT_ONCE_B = Tile::THREADS / LANES_B,
        LOADS_A = DEEP / AT_ONCE_A,
        LOADS_B = DEEP / AT_ONCE_B
    };
    const int32_t channels = size[INPUTS], n = size[OUTPUTS];
    const int32_t across = (n + Tile::COLUMNS - 1) / Tile::COLUMNS, down = blockIdx.x / across;
    const int32_t first_row = down * Tile::ROWS, first_column = (blockIdx.x - down * across) * Tile::COLUMNS;
    const int32_t rows = size[DEPTH + KERNEL] * size[HEIGHT + KERNEL] * size[WIDTH + KERNEL] * channels;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    const int32_t from = (int32_t)(blockIdx.z * each);
    const int32_t to = from + each < count ? (int32_t)(from + each) : count;

    const int32_t line_a = threadIdx.x / LANES_A, place_a = threadIdx.x % LANES_A * W, row = first_row + place_a;
    const int32_t tap = row / channels, width = size[WIDTH + EXTENT];
    const int64_t from_x = (int64_t)blockIdx.y * channels + row - tap * channels;
    const int32_t line_b = threadIdx.x / LANES_B, place_b = threadIdx.x % LANES_B * W, column = first_column + place_b;
    const int64_t from_dy = (int64_t)blockIdx.y * n + column;
    const int32_t by = AT_ONCE_A * size[WIDTH + SCALE];
    tapped<S> of_x(size, tap, row < rows);
    of_x.begin(from + line_a);
    int32_t pixel = from; /* of dy that a step begins with */

    pack<W> of_a[LOADS_A], of_b[LOADS_B];
    auto read = [&] {
#pragma unroll
        for (int i = 0; i < LOADS_A; i++) {
            const bool inside =
                of_x.line >= 0 && (uint32_t)of_x.w < (uint32_t)width && pixel + line_a + i * AT_ONCE_A < to;
            of_a[i] = inside ? load<W>(x, (int64_t)(of_x.line + of_x.w) * ldx + from_x) : zeros<W>();
            of_x.advance(by, pixel + line_a + (i + 1) * AT_ONCE_A);
        }
#pragma unroll
        for (int i = 0; i < LOADS_B; i++) {
            const int32_t source = pixel + line_b + i * AT_ONCE_B;
            of_b[i] = source < to && column < n ? load<W>(dy, source * lddy + from_dy) : zeros<W>();
        }
        pixel += DEEP;
    };
    auto write = [&](int buffer) {
        const int to_a = buffer * Tile::A + line_a * Tile::LDA + place_a;
        const int to_b = buffer * Tile::B + line_b * Tile::LDB + place_b;
#pragma unroll
        for (int i = 0; i < LOADS_A; i++) store_shared<W>(a, to_a + i * AT_ONCE_A * Tile::LDA, of_a[i]);
#pragma unroll
        for (int i = 0; i < LOADS_B; i++) store_shared<W>(b, to_b + i * AT_ONCE_B * Tile::LDB, of_b[i]);
    };

    const place at = place_of<Tile, TX>(threadIdx.x);
    real sum[EACH][EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[i][j] = 0;
    read();
    write(0);
    __syncthreads();
    int buffer = 0;
    while (pixel < to) {
        read();
        multiply<Tile>(a, b, buffer, at, sum);
        buffer ^= 1;
        write(buffer);
        __syncthreads();
    }
    multiply<Tile>(a, b, buffer, at, sum);

    const int64_t part = (int64_t)blockIdx.z * rows * ldw;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int32_t target = first_row + at.y * PACK + i / PACK * (Tile::ROWS / 2) + i % PACK;
        if (target >= rows) continue;
        write_row(dw, part + target * ldw + (int64_t)blockIdx.y * n, first_column + at.x * PACK, Tile::COLUMNS / 2, n,
                  packs, false, sum[i]);
    }
}

/* dw: (parts, taps, ci, co); packs: whether it is written in packs. */
#define CORRELATION(name, TY, TX, W, BLOCKS)                                                            \
    GLOBAL RESIDENT(TY *TX, BLOCKS)                                                                     \
        name(Array<const int64_t> sizes, int64_t packs, int64_t each, Array<const real> x, int64_t ldx, \
             Array<const real> dy, int64_t lddy, Array<real> dw, int64_t ldw) {                         \
        SHARED(int32_t, size, SIZES);                                                                   \
        SHARED(real, a, 2 * (tile<TY, TX>::A));                                                         \
        SHARED(real, b, 2 * (tile<TY, TX>::B));                                                         \
        copy_sizes(size, sizes, 0);                                                                     \
        correlate<TY, TX, W>(a, b, size, packs != 0, each, x, ldx, dy, lddy, dw, ldw);                  \
    }

CORRELATION(backward_weights_16x8, 16, 8, PACK, 3)
KERNEL(backward_weights_16x8)
CORRELATION(backward_weights_16x4, 16, 4, PACK, 6)
KERNEL(backward_weights_16x4)
CORRELATION(backward_weights_8x8, 8, 8, PACK, 6)
KERNEL(backward_weights_8x8)
CORRELATION(backward_weights_few_16x8, 16, 8, 1, 3)
KERNEL(backward_weights_few_16x8)
CORRELATION(backward_weights_few_8x8, 8, 8, 1, 6)
KERNEL(backward_weights_few_8x8)

/* dw = the sum of so many parts of n elements */
GLOBAL sum(int64_t parts, int64_t n, Array<const real> partial, Array<real> dw) {
    sweep(n, n % PACK == 0 && aligned(partial, dw), [&](int64_t i, auto w) {
        enum { W = decltype(w)::of };
        pack<W> total = load<W>(partial, i);
        for (int64_t part = 1; part < parts; part++) add(total, load<W>(partial, part * n + i));
        store<W>(dw, i, total);
    });
}
KERNEL(sum)

/* CONVGEMM on tensor cores, backward_weights: convgemm_weights.cu with operands that are rounded to TF32.
 *
 * Rows, columns, sums and their parts are those of convgemm_weights.cu, whose `sum` adds the parts.  Both operands lie
 * in shared memory as they lie in the images: the channels of a pixel together.
 */
#include "dtconv_cuda.h"
#include "convgemm_walks.h"
#include "mma.h"
#include "convgemm_tf32.h"

/* W: channels that are copied at once, of x and of dy.  each: pixels of a part, a multiple of DEEP. */
template <typename Tile, typename A, typename B, int W, typename SA, typename SB, typename S>
__device__ __forceinline__ void correlate(SA &a, SB &b, S &size, bool packs, int64_t each, Array<const real> x,
                                          int64_t ldx, Array<const real> dy, int64_t lddy, Array<real> dw,
                                          int64_t ldw) {
    enum {
        DEEP = Tile::DEEP,
        LANES_A = Tile::TILE_ROWS / W, /* threads that copy the channels of one pixel */
        LANES_B = Tile::TILE_COLUMNS / W,
        AT_ONCE_A = Tile::THREADS / LANES_A, /* pixels that are copied at once */
        AT_ONCE_B = Tile::THREADS / LANES_B,
        COPIES_A = DEEP / AT_ONCE_A,
        COPIES_B = DEEP / AT_ONCE_B
    };
    const int32_t channels = size[INPUTS], n = size[OUTPUTS];
    const int32_t across = (n + Tile::TILE_COLUMNS - 1) / Tile::TILE_COLUMNS, down = blockIdx.x / across;
    const int32_t first_row = down * Tile::TILE_ROWS, first_column = (blockIdx.x - down * across) * Tile::TILE_COLUMNS;
    const int32_t rows = size[DEPTH + KERNEL] * size[HEIGHT + KERNEL] * size[WIDTH + KERNEL] * channels;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    const int32_t from = (int32_t)(blockIdx.z * each);
    const int32_t to = from + each < count ? (int32_t)(from + each) : count;

    const int thread = threadIdx.x, lane = thread % 32;
    const int32_t line_a = thread / LANES_A, place_a = thread % LANES_A * W, row = first_row + place_a;
    const int32_t tap = row / channels, width = size[WIDTH + EXTENT];
    const int64_t from_x = (int64_t)blockIdx.y * channels + row - tap * channels;
    const int32_t line_b = thread / LANES_B, place_b = thread % LANES_B * W, column = first_column + place_b;
    const int64_t from_dy = (int64_t)blockIdx.y * n + column;
    const int32_t by = AT_ONCE_A * size[WIDTH + SCALE];
    tapped<S> of_x(size, tap, row < rows);
    of_x.begin(from + line_a);
    int32_t pixel = from; /* of dy that a step begins with */

    auto copy = [&](int buffer) {
        const int to_a = buffer * A::SIZE, to_b = buffer * B::SIZE;
#pragma unroll 4
        for (int i = 0; i < COPIES_A; i++) {
            const int at = line_a + i * AT_ONCE_A;
            const bool inside = of_x.line >= 0 && (uint32_t)of_x.w < (uint32_t)width && pixel + at < to;
            copy_to_shared<W, true>(a, to_a + A::at(place_a, at), x, (int64_t)(of_x.line + of_x.w) * ldx + from_x,
                                    inside);
            of_x.advance(by, pixel + at + AT_ONCE_A);
        }
#pragma unroll
        for (int i = 0; i < COPIES_B; i++) {
            const int at = line_b + i * AT_ONCE_B;
            copy_to_shared<W, false>(b, to_b + B::at(place_b, at), dy, (int64_t)(pixel + at) * lddy + from_dy,
                                     pixel + at < to && column < n);
        }
        pixel += DEEP;
    };

    const typename A::reader of_a(Tile::row_of(thread), lane);
    const typename B::reader of_b(Tile::column_of(thread), lane);
    float sum[Tile::M][Tile::N][4];
    clear(sum);
    copy(0);
    for (int buffer = 0, last = 0; !last; buffer ^= 1) {
        wait_for_copies();
        __syncthreads(); /* what was copied is there, and the other buffer is free */
        last = pixel >= to;
        if (!last) copy(buffer ^ 1);
        multiply<Tile>(a, buffer * A::SIZE, of_a, b, buffer * B::SIZE, of_b, sum);
    }

    const int64_t part = (int64_t)blockIdx.z * rows * ldw + (int64_t)blockIdx.y * n;
#pragma unroll
    for (int i = 0; i < 2 * Tile::M; i++) {
        const int32_t target = first_row + Tile::row_of(thread) + 8 * i + lane / 4;
        if (target >= rows) continue;
#pragma unroll
        for (int j = 0; j < Tile::N; j++) {
            const int32_t place = first_column + Tile::column_of(thread) + j * MMA_COLUMNS + lane % 4 * 2;
            write_two(dw, part + target * ldw + place, place, n, packs, false, sum[i / 2][j][i % 2 * 2],
                      sum[i / 2][j][i % 2 * 2 + 1]);
        }
    }
}

/* dw: (parts, taps, ci, co); packs: whether two neighbours of it are written at once. */
#define CORRELATION(name, W, BLOCKS, ...)                                                               \
    GLOBAL RESIDENT((warp_tile<__VA_ARGS__>::THREADS), BLOCKS)                                          \
        name(Array<const int64_t> sizes, int64_t packs, int64_t each, Array<const real> x, int64_t ldx, \
             Array<const real> dy, int64_t lddy, Array<real> dw, int64_t ldw) {                         \
        typedef warp_tile<__VA_ARGS__> Tile;                                                            \
        typedef rows_together<Tile::TILE_ROWS, Tile::DEEP> A;                                           \
        typedef rows_together<Tile::TILE_COLUMNS, Tile::DEEP> B;                                        \
        SHARED(int32_t, size, SIZES);                                                                   \
        SHARED(real, a, 2 * A::SIZE);                                                                   \
        SHARED(real, b, 2 * B::SIZE);                                                                   \
        copy_sizes(size, sizes, 0);                                                                     \
        correlate<Tile, A, B, W>(a, b, size, packs != 0, each, x, ldx, dy, lddy, dw, ldw);              \
    }

/* warps down and across; rows and columns of a warp; terms of a step */
CORRELATION(backward_weights_128x128, PACK, 2, 2, 2, 1, 64, 64, 16)
KERNEL(backward_weights_128x128)
CORRELATION(backward_weights_128x64, PACK, 4, 2, 1, 1, 64, 64, 16)
KERNEL(backward_weights_128x64)
CORRELATION(backward_weights_128x32, PACK, 6, 2, 1, 1, 64, 32, 16)
KERNEL(backward_weights_128x32)
CORRELATION(backward_weights_few_64x64, 1, 6, 2, 1, 1, 32, 64, 16)
KERNEL(backward_weights_few_64x64)

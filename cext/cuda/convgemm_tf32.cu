/* CONVGEMM on tensor cores, forward and backward_data: convgemm.cu with operands that are rounded to TF32.
 *
 * Rows, columns, sums, residues and slices are those of convgemm.cu.  What the taps read is copied to shared memory
 * without a way through registers, 16 bytes at a time, or 4 where packs do not divide the channels; the hardware writes
 * zeros where padding is read.
 */
#include "dtconv_cuda.h"
#include "convgemm_walks.h"
#include "mma.h"
#include "convgemm_tf32.h"

/* W: elements that are copied at once, along channels of x and of w. */
template <typename Tile, int W, bool TURNED, typename A, typename B, typename SA, typename SB, typename S>
__device__ __forceinline__ void convolve(SA &a, SB &b, S &size, bool packs, Array<const real> x, int64_t ldx,
                                         Array<const real> filters, int64_t ldw, bool accumulate, Array<real> y,
                                         int64_t ldy) {
    enum {
        DEEP = Tile::DEEP,
        LANES = DEEP / W,                /* threads that copy the terms of one row of x, or of one column of w turned */
        AT_ONCE = Tile::THREADS / LANES, /* rows that are copied at once */
        COPIES_A = Tile::TILE_ROWS / AT_ONCE,
        LANES_B = TURNED ? LANES : Tile::TILE_COLUMNS / W,
        AT_ONCE_B = Tile::THREADS / LANES_B, /* columns turned, terms else */
        COPIES_B = (TURNED ? Tile::TILE_COLUMNS : DEEP) / AT_ONCE_B
    };
    const int32_t channels = size[INPUTS], n = size[OUTPUTS];
    const int32_t across = (n + Tile::TILE_COLUMNS - 1) / Tile::TILE_COLUMNS, down = blockIdx.x / across;
    const int32_t first_row = down * Tile::TILE_ROWS, first_column = (blockIdx.x - down * across) * Tile::TILE_COLUMNS;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    if (first_row >= count) return; /* residues have different numbers of pixels */
    const int32_t terms = size[DEPTH + TAPS] * size[HEIGHT + TAPS] * size[WIDTH + TAPS] * channels;
    const int slice = threadIdx.x / Tile::THREADS, thread = threadIdx.x % Tile::THREADS;
    const int32_t line = thread / LANES, term = thread % LANES * W;
    const int32_t depth = size[DEPTH + EXTENT], height = size[HEIGHT + EXTENT], width = size[WIDTH + EXTENT];
    const int64_t from_x = (int64_t)blockIdx.y * channels;

    int32_t row_d[COPIES_A], row_h[COPIES_A], row_w[COPIES_A], pixel[COPIES_A];
#pragma unroll
    for (int i = 0; i < COPIES_A; i++) {
        const int32_t row = first_row + line + i * AT_ONCE;
        const coordinates at = coordinates_of(size, row);
        row_d[i] = row < count ? at.d * size[DEPTH + SCALE] : OUTSIDE;
        row_h[i] = at.h * size[HEIGHT + SCALE];
        row_w[i] = at.w * size[WIDTH + SCALE];
        pixel[i] = ((at.image * depth + at.d * size[DEPTH + SCALE]) * height + row_h[i]) * width + row_w[i];
    }
    taps<S> t(size, term + slice * DEEP);
    int32_t tap = t.tap();
    int32_t term_b = thread / LANES_B + slice * DEEP;
    const int32_t place_b = TURNED ? line : thread % LANES_B * W, column_b = first_column + place_b;

    auto copy = [&](int buffer) {
        const int to_a = (2 * slice + buffer) * A::SIZE, to_b = (2 * slice + buffer) * B::SIZE;
#pragma unroll
        for (int i = 0; i < COPIES_A; i++) {
            const bool inside = (uint32_t)(row_d[i] + t.at_d) < (uint32_t)depth &&
                                (uint32_t)(row_h[i] + t.at_h) < (uint32_t)height &&
                                (uint32_t)(row_w[i] + t.at_w) < (uint32_t)width;
            copy_to_shared<W, true>(a, to_a + A::at(line + i * AT_ONCE, term), x,
                                    (int64_t)(pixel[i] + t.away) * ldx + from_x + t.c, inside);
        }
        if (TURNED) {
            const int64_t from = (int64_t)tap * n * ldw + from_x + t.c;
#pragma unroll
            for (int i = 0; i < COPIES_B; i++) {
                const int32_t column = column_b + i * AT_ONCE_B;
                copy_to_shared<W, false>(b, to_b + B::at(place_b + i * AT_ONCE_B, term), filters, from + column * ldw,
                                         t.there() && column < n);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COPIES_B; i++) {
                const int32_t row = term_b + i * AT_ONCE_B;
                copy_to_shared<W, false>(b, to_b + B::at(place_b, thread / LANES_B + i * AT_ONCE_B), filters,
                                         row * ldw + (int64_t)blockIdx.y * n + column_b, row < terms && column_b < n);
            }
            term_b += Tile::SLICES * DEEP;
        }
        t.advance(Tile::SLICES * DEEP);
        if (TURNED && t.c < Tile::SLICES * DEEP) tap = t.tap(); /* it is another one */
    };

    const int lane = thread % 32;
    const typename A::reader of_a(Tile::row_of(thread), lane);
    const typename B::reader of_b(Tile::column_of(thread), lane);
    float sum[Tile::M][Tile::N][4];
    clear(sum);
    const int32_t steps = (terms + Tile::SLICES * DEEP - 1) / (Tile::SLICES * DEEP);
    if (steps) copy(0);
    for (int32_t step = 0; step < steps; step++) {
        const int from = 2 * slice + (step & 1);
        wait_for_copies();
        __syncthreads(); /* what was copied is there, and the other buffer is free */
        if (step + 1 < steps) copy((step + 1) & 1);
        multiply<Tile>(a, from * A::SIZE, of_a, b, from * B::SIZE, of_b, sum);
    }

    if (Tile::SLICES > 1) {
        join<Tile>(a, slice, thread, sum);
        if (slice) return;
    }

    write_tile<Tile>(size, first_row, first_column, thread, packs, accumulate, y, ldy, sum);
}

/* sizes: (residues, SIZES).  packs: whether two neighbours of results are written at once. */
#define CONVOLUTION(name, W, TURNED, BLOCKS, ...)                                                              \
    GLOBAL RESIDENT((warp_tile<__VA_ARGS__>::SLICES * warp_tile<__VA_ARGS__>::THREADS), BLOCKS)                \
        name(Array<const int64_t> sizes, int64_t packs, Array<const real> x, int64_t ldx, Array<const real> w, \
             int64_t ldw, int64_t accumulate, Array<real> y, int64_t ldy) {                                    \
        typedef warp_tile<__VA_ARGS__> Tile;                                                                   \
        typedef terms_together<Tile::TILE_ROWS, Tile::DEEP> A;                                                 \
        typedef filter_layout<TURNED, Tile::TILE_COLUMNS, Tile::DEEP> B;                                       \
        SHARED(int32_t, size, SIZES);                                                                          \
        SHARED(real, a, 2 * Tile::SLICES * A::SIZE);                                                           \
        SHARED(real, b, 2 * Tile::SLICES * B::SIZE);                                                           \
        copy_sizes(size, sizes, (int64_t)blockIdx.z * SIZES);                                                  \
        convolve<Tile, W, TURNED, A, B>(a, b, size, packs != 0, x, ldx, w, ldw, accumulate != 0, y, ldy);      \
    }

/* warps down and across, slices; rows and columns of a warp; terms of a step */
CONVOLUTION(forward_128x128, PACK, false, 2, 2, 2, 1, 64, 64, 16)
KERNEL(forward_128x128)
CONVOLUTION(forward_256x64, PACK, false, 2, 4, 1, 1, 64, 64, 16)
KERNEL(forward_256x64)
CONVOLUTION(forward_256x32, PACK, false, 3, 4, 1, 1, 64, 32, 16)
KERNEL(forward_256x32)
CONVOLUTION(forward_128x64x2, PACK, false, 2, 2, 1, 2, 64, 64, 8)
KERNEL(forward_128x64x2)
CONVOLUTION(forward_64x64x4, PACK, false, 2, 1, 1, 4, 64, 64, 8)
KERNEL(forward_64x64x4)
CONVOLUTION(forward_64x32x4, PACK, false, 3, 1, 1, 4, 64, 32, 8)
KERNEL(forward_64x32x4)
CONVOLUTION(backward_data_128x128, PACK, true, 2, 2, 2, 1, 64, 64, 16)
KERNEL(backward_data_128x128)
CONVOLUTION(backward_data_256x64, PACK, true, 2, 4, 1, 1, 64, 64, 16)
KERNEL(backward_data_256x64)
CONVOLUTION(backward_data_256x32, PACK, true, 3, 4, 1, 1, 64, 32, 16)
KERNEL(backward_data_256x32)
CONVOLUTION(backward_data_128x64x2, PACK, true, 2, 2, 1, 2, 64, 64, 8)
KERNEL(backward_data_128x64x2)
CONVOLUTION(backward_data_64x64x4, PACK, true, 2, 1, 1, 4, 64, 64, 8)
KERNEL(backward_data_64x64x4)
CONVOLUTION(backward_data_64x32x4, PACK, true, 3, 1, 1, 4, 64, 32, 8)
KERNEL(backward_data_64x32x4)

/* Channels that packs do not divide, such as three of an image: elements are copied one by one, and neighbouring
 * threads have neighbouring terms. */
CONVOLUTION(forward_few_128x64, 1, false, 2, 2, 2, 1, 64, 32, 16)
KERNEL(forward_few_128x64)
CONVOLUTION(backward_data_few_128x64, 1, true, 2, 2, 2, 1, 64, 32, 16)
KERNEL(backward_data_few_128x64)

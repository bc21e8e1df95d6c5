/* CONVGEMM, forward and backward_data: matrix products whose loads into shared memory are the im2col.
 *
 *     y[pixel, co] (+)= sum over taps and ci of x[pixel of the tap, ci] * w[tap, ci, co]
 *
 * Rows of the product are pixels of the result, its sums run over taps and, within each, over channels.  A thread knows
 * its rows' places in the images; as the sums go on it walks the taps, so that an address is one addition.
 * backward_data gathers: dx[pixel, ci] sums over the taps that reach the pixel.  With strides these are others for each
 * residue of the pixel's coordinates, so that each residue is a product of its own, along the grid's z axis, with no
 * tap that reads nothing.  Groups lie along y.
 *
 * Where there are few tiles, the threads of a block are several slices.  These take the steps of the sums in turns, and
 * at the end the first one adds what the others have, in their order.
 */
#include "dtconv_cuda.h"
#include "convgemm_walks.h"
#include "convgemm.h"

/* The first slice's sums += those of the others, row by row, through shared memory. */
template <typename Tile, int SLICES, typename S>
__device__ __forceinline__ void join(S &shared, int slice, int thread, real (&sum)[EACH][EACH]) {
    enum { ROW = Tile::THREADS * PACK }; /* half a row of all threads */
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        __syncthreads();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            pack<PACK> found;
#pragma unroll
            for (int e = 0; e < PACK; e++) found.v[e] = sum[i][half * PACK + e];
            if (slice) store_shared<PACK>(shared, (2 * (slice - 1) + half) * ROW + thread * PACK, found);
        }
        __syncthreads();
        if (slice) continue;
#pragma unroll
        for (int other = 0; other < 2 * (SLICES - 1); other++) {
            const pack<PACK> found = load_shared<PACK>(shared, other * ROW + thread * PACK);
#pragma unroll
            for (int e = 0; e < PACK; e++) sum[i][other % 2 * PACK + e] += found.v[e];
        }
    }
}

/* W: elements that are loaded at once, along channels of x and of w.  TURNED: rows of w are columns of the product. */
template <int TY, int TX, int SLICES, int W, bool TURNED, typename SA, typename SB, typename S>
__device__ __forceinline__ void convolve(SA &a, SB &b, S &size, bool packs, Array<const real> x, int64_t ldx,
                                         Array<const real> filters, int64_t ldw, bool accumulate, Array<real> y,
                                         int64_t ldy) {
    typedef tile<TY, TX> Tile;
    enum {
        LANES = DEEP / W,                /* threads that load the terms of one row of x, or one column of w turned */
        AT_ONCE = Tile::THREADS / LANES, /* rows that are loaded at once */
        LOADS_A = Tile::ROWS / AT_ONCE,
        LANES_B = TURNED ? LANES : Tile::COLUMNS / W,
        AT_ONCE_B = Tile::THREADS / LANES_B, /* columns turned, terms else */
        LOADS_B = (TURNED ? Tile::COLUMNS : DEEP) / AT_ONCE_B
    };
    const int32_t channels = size[INPUTS], n = size[OUTPUTS];
    const int32_t across = (n + Tile::COLUMNS - 1) / Tile::COLUMNS, down = blockIdx.x / across;
    const int32_t first_row = down * Tile::ROWS, first_column = (blockIdx.x - down * across) * Tile::COLUMNS;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    if (first_row >= count) return; /* residues have different numbers of pixels */
    const int32_t terms = size[DEPTH + TAPS] * size[HEIGHT + TAPS] * size[WIDTH + TAPS] * channels;
    const int slice = threadIdx.x / Tile::THREADS, thread = threadIdx.x % Tile::THREADS;
    const int32_t line = thread / LANES, term = thread % LANES * W;
    const int32_t depth = size[DEPTH + EXTENT], height = size[HEIGHT + EXTENT], width = size[WIDTH + EXTENT];
    const int64_t from_x = (int64_t)blockIdx.y * channels;

    int32_t row_d[LOADS_A], row_h[LOADS_A], row_w[LOADS_A], pixel[LOADS_A];
#pragma unroll
    for (int i = 0; i < LOADS_A; i++) {
        const int32_t row = first_row + line + i * AT_ONCE;
        const coordinates at = coordinates_of(size, row);
        row_d[i] = row < count ? at.d * size[DEPTH + SCALE] : OUTSIDE;
        row_h[i] = at.h * size[HEIGHT + SCALE];
        row_w[i] = at.w * size[WIDTH + SCALE];
        pixel[i] = ((at.image * depth + at.d * size[DEPTH + SCALE]) * height + row_h[i]) * width + row_w[i];
    }
    taps<S> t(size, term + slice * DEEP);
    int32_t term_b = thread / LANES_B + slice * DEEP;
    const int32_t column_b = first_column + (TURNED ? line : thread % LANES_B * W);

    pack<W> of_a[LOADS_A], of_b[LOADS_B];
    auto read = [&] {
#pragma unroll
        for (int i = 0; i < LOADS_A; i++) {
            const bool inside = (uint32_t)(row_d[i] + t.at_d) < (uint32_t)depth &&
                                (uint32_t)(row_h[i] + t.at_h) < (uint32_t)height &&
                                (uint32_t)(row_w[i] + t.at_w) < (uint32_t)width;
            of_a[i] = inside ? load<W>(x, (int64_t)(pixel[i] + t.away) * ldx + from_x + t.c) : zeros<W>();
        }
        if (TURNED) {
            const int64_t from = (int64_t)t.tap() * n * ldw + from_x + t.c;
#pragma unroll
            for (int i = 0; i < LOADS_B; i++) {
                const int32_t column = column_b + i * AT_ONCE_B;
                of_b[i] = t.there() && column < n ? load<W>(filters, from + column * ldw) : zeros<W>();
            }
        } else {
#pragma unroll
            for (int i = 0; i < LOADS_B; i++) {
                const int32_t row = term_b + i * AT_ONCE_B;
                const int64_t from = row * ldw + (int64_t)blockIdx.y * n + column_b;
                of_b[i] = row < terms && column_b < n ? load<W>(filters, from) : zeros<W>();
            }
            term_b += SLICES * DEEP;
        }
        t.advance(SLICES * DEEP);
    };
    auto write = [&](int buffer) {
        const int to_a = (2 * slice + buffer) * Tile::A + term * Tile::LDA + line;
#pragma unroll
        for (int i = 0; i < LOADS_A; i++)
#pragma unroll
            for (int e = 0; e < W; e++) a[to_a + e * Tile::LDA + i * AT_ONCE] = of_a[i].v[e];
        if (TURNED) {
            const int to_b = (2 * slice + buffer) * Tile::B + term * Tile::LDB + line;
#pragma unroll
            for (int i = 0; i < LOADS_B; i++)
#pragma unroll
                for (int e = 0; e < W; e++) b[to_b + e * Tile::LDB + i * AT_ONCE_B] = of_b[i].v[e];
        } else {
            const int to_b = (2 * slice + buffer) * Tile::B + thread / LANES_B * Tile::LDB + thread % LANES_B * W;
#pragma unroll
            for (int i = 0; i < LOADS_B; i++) store_shared<W>(b, to_b + i * AT_ONCE_B * Tile::LDB, of_b[i]);
        }
    };

    const place at = place_of<Tile, TX>(thread);
    real sum[EACH][EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[i][j] = 0;
    const int32_t steps = (terms + SLICES * DEEP - 1) / (SLICES * DEEP);
    if (steps) {
        read();
        write(0);
        __syncthreads();
        for (int32_t step = 1; step < steps; step++) {
            read();
            multiply<Tile>(a, b, 2 * slice + ((step - 1) & 1), at, sum);
            write(step & 1);
            __syncthreads();
        }
        multiply<Tile>(a, b, 2 * slice + ((steps - 1) & 1), at, sum);
    }

    if (SLICES > 1) {
        join<Tile, SLICES>(a, slice, thread, sum);
        if (slice) return;
    }

    const bool dense = size[DEPTH + ROWS] == size[DEPTH + RESULTS] && size[HEIGHT + ROWS] == size[HEIGHT + RESULTS] &&
                       size[WIDTH + ROWS] == size[WIDTH + RESULTS];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int32_t row = first_row + at.y * PACK + i / PACK * (Tile::ROWS / 2) + i % PACK;
        if (row >= count) continue;
        int32_t result = row;
        if (!dense) {
            const coordinates of = coordinates_of(size, row);
            result = of.image * size[DEPTH + RESULTS] + size[DEPTH + START] + of.d * size[DEPTH + STRIDE];
            result = result * size[HEIGHT + RESULTS] + size[HEIGHT + START] + of.h * size[HEIGHT + STRIDE];
            result = result * size[WIDTH + RESULTS] + size[WIDTH + START] + of.w * size[WIDTH + STRIDE];
        }
        write_row(y, result * ldy + (int64_t)blockIdx.y * n, first_column + at.x * PACK, Tile::COLUMNS / 2, n, packs,
                  accumulate, sum[i]);
    }
}

/* sizes: (residues, SIZES).  packs: whether results are written in packs. */
#define CONVOLUTION(name, TY, TX, SLICES, W, TURNED, BLOCKS)                                                   \
    GLOBAL RESIDENT(SLICES * TY * TX, BLOCKS)                                                                  \
        name(Array<const int64_t> sizes, int64_t packs, Array<const real> x, int64_t ldx, Array<const real> w, \
             int64_t ldw, int64_t accumulate, Array<real> y, int64_t ldy) {                                    \
        SHARED(int32_t, size, SIZES);                                                                          \
        SHARED(real, a, SLICES * 2 * (tile<TY, TX>::A));                                                       \
        SHARED(real, b, SLICES * 2 * (tile<TY, TX>::B));                                                       \
        copy_sizes(size, sizes, (int64_t)blockIdx.z * SIZES);                                                  \
        convolve<TY, TX, SLICES, W, TURNED>(a, b, size, packs != 0, x, ldx, w, ldw, accumulate != 0, y, ldy);  \
    }

CONVOLUTION(forward_16x16, 16, 16, 1, PACK, false, 2)
KERNEL(forward_16x16)
CONVOLUTION(forward_16x8, 16, 8, 1, PACK, false, 3)
KERNEL(forward_16x8)
CONVOLUTION(forward_16x4, 16, 4, 1, PACK, false, 6)
KERNEL(forward_16x4)
CONVOLUTION(forward_8x8x4, 8, 8, 4, PACK, false, 1)
KERNEL(forward_8x8x4)
CONVOLUTION(forward_8x4x4, 8, 4, 4, PACK, false, 3)
KERNEL(forward_8x4x4)
CONVOLUTION(backward_data_16x16, 16, 16, 1, PACK, true, 2)
KERNEL(backward_data_16x16)
CONVOLUTION(backward_data_16x8, 16, 8, 1, PACK, true, 3)
KERNEL(backward_data_16x8)
CONVOLUTION(backward_data_16x4, 16, 4, 1, PACK, true, 6)
KERNEL(backward_data_16x4)
CONVOLUTION(backward_data_8x8x4, 8, 8, 4, PACK, true, 1)
KERNEL(backward_data_8x8x4)
CONVOLUTION(backward_data_8x4x4, 8, 4, 4, PACK, true, 3)
KERNEL(backward_data_8x4x4)

/* Channels that packs do not divide, such as three of an image: elements are loaded one by one, and neighbouring
 * threads have neighbouring terms. */
CONVOLUTION(forward_few_16x8, 16, 8, 1, 1, false, 2)
KERNEL(forward_few_16x8)
CONVOLUTION(forward_few_8x8, 8, 8, 1, 1, false, 4)
KERNEL(forward_few_8x8)
CONVOLUTION(backward_data_few_16x8, 16, 8, 1, 1, true, 2)
KERNEL(backward_data_few_16x8)
CONVOLUTION(backward_data_few_8x8, 8, 8, 1, 1, true, 4)
KERNEL(backward_data_few_8x8)

/* CONVGEMM on tensor cores where taps along the width read the same pixels: forward and backward_data of strides and
 * dilation of 1 along the width, whose results are as wide as what is read.
 *
 * There, neighbouring rows of the product are neighbouring pixels, so that what a tap reads for a row another tap reads
 * for the row beside it.  A block copies the pixels of its rows, and as many beside them as there are taps, once for
 * all taps of a line; a tap reads them from another row on.  Where that row is in another line of the image, the tap is
 * on the padding, and zero is multiplied in its place.  Sums run over taps of the other axes, channels in groups of
 * DEEP, and taps of the line.
 */
#include "dtconv_cuda.h"
#include "convgemm_walks.h"
#include "mma.h"
#include "convgemm_tf32.h"

/* The terms that a thread copies, but for the taps of a line: channel c of a line of taps, at_d, at_h from a row's. */
template <typename S>
struct lines {
    S &size;
    int32_t channels, c, d, h, at_d, at_h, away;

    __device__ lines(S &sizes, int32_t term) : size(sizes), channels(sizes[INPUTS]), c(term), d(0), h(0) {
        at_d = size[DEPTH + OFFSET];
        at_h = size[HEIGHT + OFFSET];
        settle();
    }
    __device__ void advance(int32_t by) {
        c += by;
        if (c >= channels) settle();
    }
    __device__ void settle() {
        for (; c >= channels; c -= channels) next();
        away = (at_d * size[HEIGHT + EXTENT] + at_h) * size[WIDTH + EXTENT];
    }
    __device__ void next() {
        at_h += size[HEIGHT + STEP];
        if (++h < size[HEIGHT + TAPS]) return;
        h = 0;
        at_h = size[HEIGHT + OFFSET];
        at_d = ++d < size[DEPTH + TAPS] ? at_d + size[DEPTH + STEP] : OUTSIDE;
    }
    __device__ bool there() const { return at_d != OUTSIDE; }
    /* The filter's first tap of the line. */
    __device__ int32_t tap() const {
        const int32_t tap_d = size[DEPTH + FIRST] + d * size[DEPTH + PERIOD];
        const int32_t tap_h = size[HEIGHT + FIRST] + h * size[HEIGHT + PERIOD];
        return (tap_d * size[HEIGHT + KERNEL] + tap_h) * size[WIDTH + KERNEL];
    }
};

/* Pixels beside those of a tile: taps of a line that read others. */
enum { BESIDE = 8 };

template <typename Tile, bool TURNED, typename A, typename B, typename SA, typename SB, typename S>
__device__ __forceinline__ void convolve(SA &a, SB &b, S &size, bool packs, Array<const real> x, int64_t ldx,
                                         Array<const real> filters, int64_t ldw, bool accumulate, Array<real> y,
                                         int64_t ldy) {
    enum {
        DEEP = Tile::DEEP,
        LANES = DEEP / PACK,             /* threads that copy the terms of one row of x, or of one column of w turned */
        AT_ONCE = Tile::THREADS / LANES, /* rows that are copied at once */
        COPIES_A = Tile::TILE_ROWS / AT_ONCE + 1, /* the last one is of those beside */
        LANES_B = TURNED ? LANES : Tile::TILE_COLUMNS / PACK,
        AT_ONCE_B = Tile::THREADS / LANES_B, /* columns turned, terms else */
        COPIES_B = (TURNED ? Tile::TILE_COLUMNS : DEEP) / AT_ONCE_B,
        BY = Tile::SLICES * DEEP
    };
    const int32_t channels = size[INPUTS], n = size[OUTPUTS];
    const int32_t across = (n + Tile::TILE_COLUMNS - 1) / Tile::TILE_COLUMNS, down = blockIdx.x / across;
    const int32_t first_row = down * Tile::TILE_ROWS, first_column = (blockIdx.x - down * across) * Tile::TILE_COLUMNS;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    if (first_row >= count) return; /* residues have different numbers of pixels */
    const int32_t along = size[WIDTH + TAPS], terms = size[DEPTH + TAPS] * size[HEIGHT + TAPS] * channels;
    const int slice = threadIdx.x / Tile::THREADS, thread = threadIdx.x % Tile::THREADS, lane = thread % 32;
    const int32_t line = thread / LANES, term = thread % LANES * PACK;
    const int32_t depth = size[DEPTH + EXTENT], height = size[HEIGHT + EXTENT], width = size[WIDTH + EXTENT];
    const int32_t offset = size[WIDTH + OFFSET], step = size[WIDTH + STEP];
    const int32_t least = step < 0 ? offset + (along - 1) * step : offset; /* pixels from a row to the first one read */
    const int64_t from_x = (int64_t)blockIdx.y * channels;

    int32_t row_d[COPIES_A], row_h[COPIES_A], pixel[COPIES_A];
#pragma unroll
    for (int i = 0; i < COPIES_A; i++) {
        const int32_t row = first_row + least + line + i * AT_ONCE;
        const bool there = row >= 0 && row < count;
        const coordinates at = coordinates_of(size, there ? row : 0);
        row_d[i] = there ? at.d * size[DEPTH + SCALE] : OUTSIDE;
        row_h[i] = at.h * size[HEIGHT + SCALE];
        pixel[i] = ((at.image * depth + at.d * size[DEPTH + SCALE]) * height + row_h[i]) * width + at.w;
    }
    /* whether the taps of a line read the lane's rows: a bit for each row, eight for each tap */
    uint64_t reads = 0;
#pragma unroll
    for (int i = 0; i < 2 * Tile::M; i++) {
        const int32_t row = first_row + Tile::row_of(thread) + 8 * i + lane / 4, at = row % width + offset;
        for (int32_t tap = 0; tap < along; tap++)
            if ((uint32_t)(at + tap * step) < (uint32_t)width) reads |= (uint64_t)1 << (8 * tap + i);
    }

    lines<S> t(size, term + slice * DEEP);
    const int32_t line_b = thread / LANES_B, place_b = TURNED ? line : thread % LANES_B * PACK;
    const int32_t column_b = first_column + place_b;
    int32_t term_b = line_b + slice * DEEP, tap = 0, next = 0; /* next: the tap of a line that is copied next */
    int32_t rows_b[TURNED ? 1 : COPIES_B];                     /* of w */

    auto copy = [&](int of_line, int buffer) {
        const int to_b = (2 * slice + buffer) * B::SIZE;
        if (next == 0) {
            const int to_a = (2 * slice + of_line) * A::SIZE;
#pragma unroll
            for (int i = 0; i < COPIES_A; i++) {
                const bool inside =
                    (uint32_t)(row_d[i] + t.at_d) < (uint32_t)depth && (uint32_t)(row_h[i] + t.at_h) < (uint32_t)height;
                if (i + 1 < COPIES_A || line < BESIDE)
                    copy_to_shared<PACK, true>(a, to_a + A::at(line + i * AT_ONCE, term), x,
                                               (int64_t)(pixel[i] + t.away) * ldx + from_x + t.c, inside);
            }
            if (TURNED) {
                tap = t.tap();
            } else {
#pragma unroll
                for (int i = 0; i < COPIES_B; i++) {
                    const int32_t at = term_b + i * AT_ONCE_B;
                    rows_b[i] = at < terms ? at + at / channels * (along - 1) * channels : OUTSIDE;
                }
            }
        }
        if (TURNED) {
            const int64_t from = (int64_t)(tap + next) * n * ldw + from_x + t.c;
#pragma unroll
            for (int i = 0; i < COPIES_B; i++) {
                const int32_t column = column_b + i * AT_ONCE_B;
                copy_to_shared<PACK, false>(b, to_b + B::at(place_b + i * AT_ONCE_B, term), filters,
                                            from + column * ldw, t.there() && column < n);
            }
        } else {
#pragma unroll
            for (int i = 0; i < COPIES_B; i++)
                copy_to_shared<PACK, false>(
                    b, to_b + B::at(place_b, line_b + i * AT_ONCE_B), filters,
                    (int64_t)(rows_b[i] + next * channels) * ldw + (int64_t)blockIdx.y * n + column_b,
                    rows_b[i] >= 0 && column_b < n);
        }
        if (++next < along) return;
        next = 0;
        term_b += BY;
        t.advance(BY);
    };

    const typename B::reader of_b(Tile::column_of(thread), lane);
    float sum[Tile::M][Tile::N][4];
    clear(sum);
    const int32_t steps = (terms + BY - 1) / BY * along;
    int32_t now = 0, of_line = 0; /* the tap of a line that is multiplied, and the buffer of its pixels */
    if (steps) copy(0, 0);
    for (int32_t step_of = 0; step_of < steps; step_of++) {
        const int buffer = 2 * slice + (step_of & 1), pixels = 2 * slice + of_line;
        const typename A::reader of_a(Tile::row_of(thread), lane, offset + now * step - least);
        const uint32_t kept = (uint32_t)(reads >> (8 * now)) & 255;
        if (++now == along) {
            now = 0;
            of_line ^= 1;
        }
        wait_for_copies();
        __syncthreads(); /* what was copied is there, and the other buffers are free */
        if (step_of + 1 < steps) copy(of_line, (step_of + 1) & 1);
        multiply<Tile>(a, pixels * A::SIZE, of_a, b, buffer * B::SIZE, of_b, sum,
                       [&](int part, int) { return (kept >> part & 1) != 0; });
    }
    if (Tile::SLICES > 1) {
        join<Tile>(a, slice, thread, sum);
        if (slice) return;
    }
    write_tile<Tile>(size, first_row, first_column, thread, packs, accumulate, y, ldy, sum);
}

/* Arguments are those of convgemm_tf32.cu. */
#define CONVOLUTION(name, TURNED, BLOCKS, ...)                                                                 \
    GLOBAL RESIDENT((warp_tile<__VA_ARGS__>::SLICES * warp_tile<__VA_ARGS__>::THREADS), BLOCKS)                \
        name(Array<const int64_t> sizes, int64_t packs, Array<const real> x, int64_t ldx, Array<const real> w, \
             int64_t ldw, int64_t accumulate, Array<real> y, int64_t ldy) {                                    \
        typedef warp_tile<__VA_ARGS__> Tile;                                                                   \
        typedef terms_together<Tile::TILE_ROWS + BESIDE, Tile::DEEP> A;                                        \
        typedef filter_layout<TURNED, Tile::TILE_COLUMNS, Tile::DEEP> B;                                       \
        SHARED(int32_t, size, SIZES);                                                                          \
        SHARED(real, a, 2 * Tile::SLICES * A::SIZE);                                                           \
        SHARED(real, b, 2 * Tile::SLICES * B::SIZE);                                                           \
        copy_sizes(size, sizes, (int64_t)blockIdx.z * SIZES);                                                  \
        convolve<Tile, TURNED, A, B>(a, b, size, packs != 0, x, ldx, w, ldw, accumulate != 0, y, ldy);         \
    }

/* warps down and across, slices; rows and columns of a warp; terms of a step */
CONVOLUTION(forward_128x128, false, 2, 2, 2, 1, 64, 64, 16)
KERNEL(forward_128x128)
CONVOLUTION(forward_256x64, false, 2, 4, 1, 1, 64, 64, 16)
KERNEL(forward_256x64)
CONVOLUTION(forward_256x32, false, 3, 4, 1, 1, 64, 32, 16)
KERNEL(forward_256x32)
CONVOLUTION(forward_128x64x2, false, 2, 2, 1, 2, 64, 64, 8)
KERNEL(forward_128x64x2)
CONVOLUTION(forward_64x64x4, false, 2, 1, 1, 4, 64, 64, 8)
KERNEL(forward_64x64x4)
CONVOLUTION(forward_64x32x4, false, 3, 1, 1, 4, 64, 32, 8)
KERNEL(forward_64x32x4)
CONVOLUTION(backward_data_128x128, true, 2, 2, 2, 1, 64, 64, 16)
KERNEL(backward_data_128x128)
CONVOLUTION(backward_data_256x64, true, 2, 4, 1, 1, 64, 64, 16)
KERNEL(backward_data_256x64)
CONVOLUTION(backward_data_256x32, true, 3, 4, 1, 1, 64, 32, 16)
KERNEL(backward_data_256x32)
CONVOLUTION(backward_data_128x64x2, true, 2, 2, 1, 2, 64, 64, 8)
KERNEL(backward_data_128x64x2)
CONVOLUTION(backward_data_64x64x4, true, 2, 1, 1, 4, 64, 64, 8)
KERNEL(backward_data_64x64x4)
CONVOLUTION(backward_data_64x32x4, true, 3, 1, 1, 4, 64, 32, 8)
KERNEL(backward_data_64x32x4)

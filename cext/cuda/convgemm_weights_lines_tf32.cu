/* CONVGEMM on tensor cores, backward_weights, where the three taps of a line read the same pixels: strides and dilation
 * of 1 along the width, and results as wide as what is read.
 *
 * Rows of the product are those of convgemm_weights_tf32.cu, in another order: a block has the three taps of a line for
 * some channels, a warp one of them.  The pixels of x are copied once for all three; a tap reads those of a term from
 * another one on.  Where that one is in another line of the image, the tap is on the padding, and zero is multiplied in
 * its place.  Parts are those of convgemm_weights.cu.
 */
#include "dtconv_cuda.h"
#include "convgemm_walks.h"
#include "mma.h"
#include "convgemm_tf32.h"

enum { ALONG = 3 }; /* taps of a line */

/* A pixel that a thread copies, as pixels of dy go on: the one of x in its place, of a line of taps. */
template <typename S>
struct walked {
    S &size;
    int32_t at_d, at_h, count; /* of the taps; pixels of dy */
    int32_t pixel, w, line;    /* along the line, which begins at pixel `line` of x; negative: it is on the padding */

    __device__ walked(S &sizes, int32_t tap_d, int32_t tap_h, int32_t pixels, int32_t first)
        : size(sizes), count(pixels), pixel(first) {
        at_d = size[DEPTH + OFFSET] + tap_d * size[DEPTH + STEP];
        at_h = size[HEIGHT + OFFSET] + tap_h * size[HEIGHT + STEP];
        begin();
    }
    __device__ void begin() {
        line = -1;
        w = size[WIDTH + EXTENT]; /* looks again at the next one */
        if (pixel < 0 || pixel >= count) return;
        const coordinates at = coordinates_of(size, pixel);
        const int32_t d = at.d * size[DEPTH + SCALE] + at_d, h = at.h * size[HEIGHT + SCALE] + at_h;
        w = at.w;
        if ((uint32_t)d < (uint32_t)size[DEPTH + EXTENT] && (uint32_t)h < (uint32_t)size[HEIGHT + EXTENT])
            line = ((at.image * size[DEPTH + EXTENT] + d) * size[HEIGHT + EXTENT] + h) * size[WIDTH + EXTENT];
    }
    __device__ void advance(int32_t by, int32_t width) {
        pixel += by;
        w += by;
        if (w >= width) begin();
    }
};

/* each: pixels of a part, a multiple of DEEP. */
template <typename Tile, typename A, typename B, typename SA, typename SB, typename S>
__device__ __forceinline__ void correlate(SA &a, SB &b, S &size, bool packs, int64_t each, Array<const real> x,
                                          int64_t ldx, Array<const real> dy, int64_t lddy, Array<real> dw,
                                          int64_t ldw) {
    enum {
        DEEP = Tile::DEEP,
        CHANNELS = Tile::WARP_ROWS,
        PIXELS = DEEP + ALONG - 1,
        LANES_A = CHANNELS / PACK, /* threads that copy the channels of one pixel */
        LANES_B = Tile::TILE_COLUMNS / PACK,
        AT_ONCE_A = Tile::THREADS / LANES_A, /* pixels that are copied at once */
        AT_ONCE_B = Tile::THREADS / LANES_B,
        COPIES_A = (PIXELS + AT_ONCE_A - 1) / AT_ONCE_A,
        COPIES_B = (DEEP + AT_ONCE_B - 1) / AT_ONCE_B
    };
    const int32_t channels = size[INPUTS], n = size[OUTPUTS], width = size[WIDTH + EXTENT];
    const int32_t across = (n + Tile::TILE_COLUMNS - 1) / Tile::TILE_COLUMNS, down = blockIdx.x / across;
    const int32_t groups = (channels + CHANNELS - 1) / CHANNELS, lines = down / groups;
    const int32_t first_channel = (down - lines * groups) * CHANNELS;
    const int32_t first_column = (blockIdx.x - down * across) * Tile::TILE_COLUMNS;
    const int32_t taps = size[DEPTH + KERNEL] * size[HEIGHT + KERNEL] * ALONG;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    const int32_t from = (int32_t)(blockIdx.z * each), offset = size[WIDTH + OFFSET];
    const int32_t to = from + each < count ? (int32_t)(from + each) : count;

    const int thread = threadIdx.x, lane = thread % 32, tap = Tile::row_of(thread) / CHANNELS;
    const int32_t line_a = thread / LANES_A, place_a = thread % LANES_A * PACK, channel = first_channel + place_a;
    const int32_t line_b = thread / LANES_B, place_b = thread % LANES_B * PACK, column = first_column + place_b;
    const int64_t from_x = (int64_t)blockIdx.y * channels + channel, from_dy = (int64_t)blockIdx.y * n + column;
    const int32_t tap_d = lines / size[HEIGHT + KERNEL], tap_h = lines - tap_d * size[HEIGHT + KERNEL];
    walked<S> of_x(size, tap_d, tap_h, count, from + offset + line_a);
    int32_t pixel = from; /* of dy that a copy begins with */

    auto copy = [&](int buffer) {
        const int to_a = buffer * A::SIZE, to_b = buffer * B::SIZE;
#pragma unroll
        for (int i = 0; i < COPIES_A; i++) {
            const int at = line_a + i * AT_ONCE_A;
            if (i) of_x.advance(AT_ONCE_A, width);
            if (at < PIXELS)
                copy_to_shared<PACK, false>(a, to_a + A::at(place_a, at), x,
                                            (int64_t)(of_x.line + of_x.w) * ldx + from_x,
                                            of_x.line >= 0 && channel < channels);
        }
#pragma unroll
        for (int i = 0; i < COPIES_B; i++) {
            const int at = line_b + i * AT_ONCE_B;
            if (at < DEEP)
                copy_to_shared<PACK, false>(b, to_b + B::at(place_b, at), dy, (int64_t)(pixel + at) * lddy + from_dy,
                                            pixel + at < to && column < n);
        }
        pixel += DEEP;
        of_x.advance(DEEP - (COPIES_A - 1) * AT_ONCE_A, width);
    };

    /* the places along the line of the terms that the lane multiplies */
    int32_t at[DEEP / 4], now = from;
#pragma unroll
    for (int i = 0; i < DEEP / 4; i++) at[i] = (from + lane % 4 + 4 * i) % width;
    const int32_t by = DEEP % width;

    const typename A::reader of_a(0, lane);
    const typename B::reader of_b(Tile::column_of(thread), lane);
    float sum[Tile::M][Tile::N][4];
    clear(sum);
    copy(0);
    for (int buffer = 0, last = 0; !last; buffer ^= 1) {
        uint32_t kept = 0; /* a bit for each of the terms: whether the tap reads a pixel of the line */
#pragma unroll
        for (int i = 0; i < DEEP / 4; i++) {
            const bool there = (uint32_t)(at[i] + offset + tap) < (uint32_t)width && now + lane % 4 + 4 * i < to;
            kept |= (uint32_t)there << i;
            at[i] += at[i] + by < width ? by : by - width;
        }
        now += DEEP;
        wait_for_copies();
        __syncthreads(); /* what was copied is there, and the other buffer is free */
        last = pixel >= to;
        if (!last) copy(buffer ^ 1);
        multiply<Tile>(a, buffer * A::SIZE + tap * A::PITCH, of_a, b, buffer * B::SIZE, of_b, sum,
                       [&](int, int term) { return (kept >> term / 4 & 1) != 0; });
    }

    const int32_t first = (lines * ALONG + tap) * channels;
    const int64_t part = ((int64_t)blockIdx.z * taps * channels + first) * ldw + (int64_t)blockIdx.y * n;
#pragma unroll
    for (int i = 0; i < 2 * Tile::M; i++) {
        const int32_t target = first_channel + 8 * i + lane / 4;
        if (target >= channels) continue;
#pragma unroll
        for (int j = 0; j < Tile::N; j++) {
            const int32_t place = first_column + Tile::column_of(thread) + j * MMA_COLUMNS + lane % 4 * 2;
            write_two(dw, part + target * ldw + place, place, n, packs, false, sum[i / 2][j][i % 2 * 2],
                      sum[i / 2][j][i % 2 * 2 + 1]);
        }
    }
}

/* Arguments are those of convgemm_weights_tf32.cu. */
#define CORRELATION(name, BLOCKS, ...)                                                                  \
    GLOBAL RESIDENT((warp_tile<__VA_ARGS__>::THREADS), BLOCKS)                                          \
        name(Array<const int64_t> sizes, int64_t packs, int64_t each, Array<const real> x, int64_t ldx, \
             Array<const real> dy, int64_t lddy, Array<real> dw, int64_t ldw) {                         \
        typedef warp_tile<__VA_ARGS__> Tile;                                                            \
        typedef rows_together<Tile::WARP_ROWS, Tile::DEEP + ALONG - 1> A;                               \
        typedef rows_together<Tile::TILE_COLUMNS, Tile::DEEP> B;                                        \
        SHARED(int32_t, size, SIZES);                                                                   \
        SHARED(real, a, 2 * A::SIZE);                                                                   \
        SHARED(real, b, 2 * B::SIZE);                                                                   \
        copy_sizes(size, sizes, 0);                                                                     \
        correlate<Tile, A, B>(a, b, size, packs != 0, each, x, ldx, dy, lddy, dw, ldw);                 \
    }

/* warps down (taps of a line) and across; rows (channels) and columns of a warp; terms of a step */
CORRELATION(backward_weights_192x64, 2, 3, 1, 1, 64, 64, 16)
KERNEL(backward_weights_192x64)
CORRELATION(backward_weights_192x32, 3, 3, 1, 1, 64, 32, 16)
KERNEL(backward_weights_192x32)

/* What CONVGEMM's kernels share that multiply on tensor cores, in TF32: tiles, layouts of shared memory, products.
 *
 * A block has DOWN * ACROSS warps, or SLICES times as many; a warp multiplies WARP_ROWS rows by WARP_COLUMNS columns,
 * DEEP terms of the sums at a time.  These are copied to one of two buffers in shared memory while those in the other
 * are multiplied.  Operands are rounded when they are read from there; sums are float32.  A lane reads the parts of
 * operands that `multiply_tf32` wants one by one, and no two lanes of a warp meet in a bank.
 */
#ifndef DTCONV_CUDA_CONVGEMM_TF32_H
#define DTCONV_CUDA_CONVGEMM_TF32_H

#ifdef DOUBLE
#error "TF32 is of float32"
#endif

template <int DOWN, int ACROSS, int SLICES_, int WARP_ROWS_, int WARP_COLUMNS_, int DEEP_>
struct warp_tile {
    enum {
        SLICES = SLICES_,
        WARP_ROWS = WARP_ROWS_,
        WARP_COLUMNS = WARP_COLUMNS_,
        DEEP = DEEP_,
        THREADS = 32 * DOWN * ACROSS, /* of a slice */
        TILE_ROWS = DOWN * WARP_ROWS,
        TILE_COLUMNS = ACROSS * WARP_COLUMNS,
        M = WARP_ROWS / MMA_ROWS,
        N = WARP_COLUMNS / MMA_COLUMNS
    };
    /* where a thread's warp begins */
    __device__ static int row_of(int thread) { return thread / 32 / ACROSS * WARP_ROWS; }
    __device__ static int column_of(int thread) { return thread / 32 % ACROSS * WARP_COLUMNS; }
};

/* An operand in shared memory, the terms of a row (of a column) side by side; packs of a row exchange places, so that
 * the same pack of eight rows lies in all banks. */
template <int COUNT, int DEEP>
struct terms_together {
    enum { PACKS = DEEP / PACK, SHARE = 8 / PACKS, SIZE = COUNT * DEEP };
    __device__ static int at(int row, int term) {
        return row * DEEP + ((term / PACK) ^ (row / SHARE % PACKS)) * PACK + term % PACK;
    }
    /* A lane's elements: of rows and terms from multiples of 8 and of 4 on; shift: so many rows behind. */
    struct reader {
        int from, turn;
        __device__ reader(int first, int lane, int shift = 0)
            : from((first + lane / 4 + shift) * DEEP + lane % 4), turn((lane / 4 + shift) / SHARE % PACKS) {}
        __device__ int operator()(int row, int term) const { return from + row * DEEP + ((term / PACK) ^ turn) * PACK; }
    };
};

/* The same with rows (columns) of a term side by side. */
template <int COUNT, int DEEP>
struct rows_together {
    enum { PITCH = COUNT + 8, SIZE = DEEP * PITCH };
    __device__ static int at(int row, int term) { return term * PITCH + row; }
    struct reader {
        int from;
        __device__ reader(int first, int lane) : from(lane % 4 * PITCH + first + lane / 4) {}
        __device__ int operator()(int row, int term) const { return from + term * PITCH + row; }
    };
};

/* sum += the products of a buffer.  kept(part, term): whether a lane's element of the first operand is taken, 0 else:
 * of eight rows, and of four terms from `term` on, a lane has one. */
template <typename Tile, typename RA, typename RB, typename SA, typename SB, typename F>
__device__ __forceinline__ void multiply(SA &a, int from_a, const RA &of_a, SB &b, int from_b, const RB &of_b,
                                         float (&sum)[Tile::M][Tile::N][4], const F &kept) {
#pragma unroll
    for (int term = 0; term < Tile::DEEP; term += MMA_TERMS) {
        uint32_t rows[Tile::M][4], columns[Tile::N][2];
#pragma unroll
        for (int i = 0; i < Tile::M; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const uint32_t value =
                    to_tf32((float)(real)a[from_a + of_a(i * MMA_ROWS + e % 2 * 8, term + e / 2 * 4)]);
                rows[i][e] = kept(2 * i + e % 2, term + e / 2 * 4) ? value : 0;
            }
#pragma unroll
        for (int j = 0; j < Tile::N; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                columns[j][e] = to_tf32((float)(real)b[from_b + of_b(j * MMA_COLUMNS, term + e * 4)]);
#pragma unroll
        for (int i = 0; i < Tile::M; i++)
#pragma unroll
            for (int j = 0; j < Tile::N; j++) multiply_tf32(sum[i][j], rows[i], columns[j]);
    }
}

/* The same of all elements. */
template <typename Tile, typename RA, typename RB, typename SA, typename SB>
__device__ __forceinline__ void multiply(SA &a, int from_a, const RA &of_a, SB &b, int from_b, const RB &of_b,
                                         float (&sum)[Tile::M][Tile::N][4]) {
    multiply<Tile>(a, from_a, of_a, b, from_b, of_b, sum, [](int, int) { return true; });
}

template <int M, int N>
__device__ __forceinline__ void clear(float (&sum)[M][N][4]) {
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
}

/* Two neighbours of a row: y[at], y[at + 1] (+)= sum, those of columns below n; packs: whether both are moved at once
 */
__device__ __forceinline__ void write_two(Array<real> y, int64_t at, int column, int n, bool packs, bool accumulate,
                                          float first, float second) {
    if (packs) {
        if (column >= n) return;
        pack<2> found;
        found.v[0] = first;
        found.v[1] = second;
        if (accumulate) add(found, load<2>(readable(y), at));
        store<2>(y, at, found);
    } else {
        if (column < n) y[at] = accumulate ? y[at] + (real)first : (real)first;
        if (column + 1 < n) y[at + 1] = accumulate ? y[at + 1] + (real)second : (real)second;
    }
}

/* The first slice's sums += those of the others, 16 rows at a time, through shared memory. */
template <typename Tile, typename S>
__device__ __forceinline__ void join(S &shared, int slice, int thread, float (&sum)[Tile::M][Tile::N][4]) {
    enum { PART = Tile::THREADS * PACK, EACH = Tile::N * PART }; /* of all threads: a pack, 16 rows */
#pragma unroll
    for (int i = 0; i < Tile::M; i++) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < Tile::N; j++) {
            pack<PACK> found;
#pragma unroll
            for (int e = 0; e < 4; e++) found.v[e] = sum[i][j][e];
            if (slice) store_shared<PACK>(shared, (slice - 1) * EACH + j * PART + thread * PACK, found);
        }
        __syncthreads();
        if (slice) continue;
        for (int other = 0; other < Tile::SLICES - 1; other++) {
#pragma unroll
            for (int j = 0; j < Tile::N; j++) {
                const pack<PACK> found = load_shared<PACK>(shared, other * EACH + j * PART + thread * PACK);
#pragma unroll
                for (int e = 0; e < 4; e++) sum[i][j][e] += (float)found.v[e];
            }
        }
    }
}

/* The layout of w: its columns together, or TURNED, where its rows are columns of the product, its terms. */
template <bool TURNED, int COUNT, int DEEP>
struct filter_layout : terms_together<COUNT, DEEP> {};

template <int COUNT, int DEEP>
struct filter_layout<false, COUNT, DEEP> : rows_together<COUNT, DEEP> {};

/* A warp's sums as pixels of y. */
template <typename Tile, typename S>
__device__ __forceinline__ void write_tile(S &size, int32_t first_row, int32_t first_column, int thread, bool packs,
                                           bool accumulate, Array<real> y, int64_t ldy,
                                           const float (&sum)[Tile::M][Tile::N][4]) {
    const int lane = thread % 32;
    const int32_t count = size[IMAGES] * size[DEPTH + ROWS] * size[HEIGHT + ROWS] * size[WIDTH + ROWS];
    const int32_t n = size[OUTPUTS];
    const bool dense = size[DEPTH + ROWS] == size[DEPTH + RESULTS] && size[HEIGHT + ROWS] == size[HEIGHT + RESULTS] &&
                       size[WIDTH + ROWS] == size[WIDTH + RESULTS];
#pragma unroll
    for (int i = 0; i < 2 * Tile::M; i++) {
        const int32_t row = first_row + Tile::row_of(thread) + 8 * i + lane / 4;
        if (row >= count) continue;
        int32_t result = row;
        if (!dense) {
            const coordinates of = coordinates_of(size, row);
            result = of.image * size[DEPTH + RESULTS] + size[DEPTH + START] + of.d * size[DEPTH + STRIDE];
            result = result * size[HEIGHT + RESULTS] + size[HEIGHT + START] + of.h * size[HEIGHT + STRIDE];
            result = result * size[WIDTH + RESULTS] + size[WIDTH + START] + of.w * size[WIDTH + STRIDE];
        }
        const int64_t to = result * ldy + (int64_t)blockIdx.y * n;
#pragma unroll
        for (int j = 0; j < Tile::N; j++) {
            const int32_t column = first_column + Tile::column_of(thread) + j * MMA_COLUMNS + lane % 4 * 2;
            write_two(y, to + column, column, n, packs, accumulate, sum[i / 2][j][i % 2 * 2],
                      sum[i / 2][j][i % 2 * 2 + 1]);
        }
    }
}

#endif

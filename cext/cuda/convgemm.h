/* What the kernels of CONVGEMM share that multiply by FMA: tiles and their products.
 *
 * A block multiplies a tile of rows by a tile of columns, DEEP terms of the sums at a time.  These lie in shared
 * memory, the terms of a row one row of memory apart, in two buffers: one is multiplied while the other is filled.  A
 * thread has EACH rows and EACH columns, in two halves that are half a tile apart, so that a warp reads packs without
 * bank conflicts.  Every sum has its terms in their order, whatever the grid is.
 */
#ifndef DTCONV_CUDA_CONVGEMM_H
#define DTCONV_CUDA_CONVGEMM_H

enum { DEEP = 8, EACH = 2 * PACK };

/* Of TY * TX threads. */
template <int TY, int TX>
struct tile {
    enum {
        THREADS = TY * TX,
        ACROSS = TX < 8 ? TX : 8, /* threads of a warp along the columns */
        ROWS = TY * EACH,
        COLUMNS = TX * EACH,
        LDA = ROWS + PACK, /* so that terms of one row that are stored one by one lie in banks of their own */
        LDB = COLUMNS + PACK,
        A = DEEP * LDA,
        B = DEEP * LDB
    };
};

/* Where a thread's rows and columns begin in a tile, in packs. */
struct place {
    int y, x;
};

template <typename Tile, int TX>
__device__ inline place place_of(int thread) {
    const int warp = thread / 32, lane = thread % 32, warps = TX / Tile::ACROSS;
    place at;
    at.y = warp / warps * (32 / Tile::ACROSS) + lane / Tile::ACROSS;
    at.x = warp % warps * Tile::ACROSS + lane % Tile::ACROSS;
    return at;
}

/* sum += the products of a buffer */
template <typename Tile, typename SA, typename SB>
__device__ __forceinline__ void multiply(SA &a, SB &b, int buffer, place at, real (&sum)[EACH][EACH]) {
    const int from_a = buffer * Tile::A + at.y * PACK, from_b = buffer * Tile::B + at.x * PACK;
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        pack<PACK> rows[2], columns[2];
        rows[0] = load_shared<PACK>(a, from_a + k * Tile::LDA);
        rows[1] = load_shared<PACK>(a, from_a + k * Tile::LDA + Tile::ROWS / 2);
        columns[0] = load_shared<PACK>(b, from_b + k * Tile::LDB);
        columns[1] = load_shared<PACK>(b, from_b + k * Tile::LDB + Tile::COLUMNS / 2);
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++) sum[i][j] += rows[i / PACK].v[i % PACK] * columns[j / PACK].v[j % PACK];
    }
}

/* One row's results: y[row + column] (+)= sum, for columns below n; packs: whether they are written in packs */
__device__ __forceinline__ void write_row(Array<real> y, int64_t row, int first, int half, int n, bool packs,
                                          bool accumulate, const real (&sum)[EACH]) {
#pragma unroll
    for (int part = 0; part < 2; part++) {
        const int column = first + part * half;
        pack<PACK> found;
#pragma unroll
        for (int e = 0; e < PACK; e++) found.v[e] = sum[part * PACK + e];
        if (packs) {
            if (column >= n) continue;
            if (accumulate) add(found, load<PACK>(readable(y), row + column));
            store<PACK>(y, row + column, found);
        } else {
#pragma unroll
            for (int e = 0; e < PACK; e++)
                if (column + e < n) y[row + column + e] = accumulate ? y[row + column + e] + found.v[e] : found.v[e];
        }
    }
}

#endif

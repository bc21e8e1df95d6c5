/* Transformed filters of Winograd's convolution, and products with them: the same whatever images are stored as. */
#include "transpose.h"
#include "winograd.h"

enum { AHEAD = 2 * SQUARE }; /* elements of a row of filters that are loaded before they are read */

/* Columns [j, j + n), at most SQUARE, of turned filters to a panel whose rows are nr long:
 * w[8 - tap][j .. j + n][k .. k + depth] is transposed, SQUARE rows at a time.  These are 9 * SQUARE streams, more than
 * the processor follows by itself. */
static void turned_columns(const DT(tiling) * w, const real *filters, int64_t k, int64_t depth, int64_t j, int64_t n,
                           int64_t room, real *u, int64_t nr, int64_t plane, real *scratch) {
    const real *source[SQUARE], *taps[9];
    for (int64_t q = 0; q < depth; q += SQUARE) {
        const int64_t rows = MIN(SQUARE, depth - q);
        for (int tap = 0; tap < 9 && n > 0; tap++) {
            for (int64_t r = 0; r < n; r++) {
                source[r] = filters + ((8 - tap) * w->co + j + r) * w->ci + k + q;
                __builtin_prefetch(source[r] + AHEAD, 0, 2);
            }
            transpose(source, rows, n, scratch + tap * SQUARE * SQUARE);
        }
        for (int64_t r = 0; r < rows; r++) {
            for (int tap = 0; tap < 9; tap++) taps[tap] = scratch + tap * SQUARE * SQUARE + r * n;
            DT(expand_columns)(w, w->t->filter, taps, 0, n, room, u + (q + r) * nr, plane);
        }
    }
}

enum { AHEAD_ROWS = 16 }; /* rows of filters, of some columns, that are loaded before they are read */

/* Some rows of n columns of all taps, side by side.  In the filters, taps are often multiples of a large power of two
 * apart, so that the nine of a row cannot be in a cache together; and loads that nothing waits for overlap. */
static void gather_rows(const DT(tiling) * w, const real *from, int64_t rows, int64_t n, real *restrict to) {
    for (int tap = 0; tap < 9; tap++)
        for (int64_t r = 0; r < rows; r++, to += n) {
            const real *row = from + (tap * w->ci + r) * w->co, *later = row + AHEAD_ROWS * w->co;
            for (int64_t q = 0; q < n; q += 64 / (int64_t)sizeof(real)) __builtin_prefetch(later + q, 0, 2);
            int64_t c = 0;
            for (; c + V <= n; c += V) store(to + c, load(row + c)); /* a call of memcpy would take longer */
            for (; c < n; c++) to[c] = row[c];
        }
}

void DT(transform_filters)(const DT(tiling) * w, const real *filters, int64_t k, int64_t depth, int64_t j, int64_t n,
                           real *u, int64_t panel_step, int64_t plane, real *scratch) {
    const real *taps[9];
    const int64_t nr = w->nr;
    if (!w->turned) {
        const int64_t most = MAX(1, SQUARE * SQUARE / n);
        for (int64_t q = 0; q < depth; q += most) {
            const int64_t rows = MIN(most, depth - q);
            gather_rows(w, filters + (k + q) * w->co + j, rows, n, scratch);
            for (int64_t r = 0; r < rows; r++) {
                for (int tap = 0; tap < 9; tap++) taps[tap] = scratch + (tap * rows + r) * n;
                DT(expand_panels)(w, w->t->filter, taps, 0, n, u, q + r, panel_step, plane);
            }
        }
        return;
    }
    for (int64_t jr = 0; jr < n; jr += nr, u += panel_step)
        for (int64_t c = 0; c < nr; c += SQUARE)
            turned_columns(w, filters, k, depth, j + jr + c, MAX(0, MIN(MIN(SQUARE, nr - c), n - jr - c)),
                           MIN(SQUARE, nr - c), u + c, nr, plane, scratch);
}

void DT(tile_gemm_ahead)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, const real *a, int64_t rs,
                         int64_t cs, const real *b, int64_t b_step, real beta, real *c, int64_t ldc, real *packed,
                         dtconv_ahead *ahead) {
    DT(ukr_call) t = {.k = k, .alpha = 1, .beta = beta, .ldc = ldc, .rs_a = rs, .cs_a = cs};
    const int64_t mr = ukr->mr, nr = ukr->nr;
    int64_t a_step = mr * rs, calls = dtconv_ceil_div(m, mr) * dtconv_ceil_div(n, nr);
    if (!ukr->in_place) {
        const DT(matrix) plain = {a, rs, cs};
        DT(pack_a_matrix)(&plain, 0, m, 0, k, mr, packed);
        a = packed, a_step = mr * k, t.rs_a = 1, t.cs_a = mr;
    }
    for (int64_t j = 0; j < n; j += nr, b += b_step) {
        t.b = b;
        t.n = MIN(nr, n - j);
        for (int64_t i = 0; i < m; i += mr) {
            t.m = MIN(mr, m - i);
            t.a = a + i / mr * a_step;
            t.a_next = i + mr < m ? t.a + a_step : a;
            t.b_next = i + mr < m ? b : b + b_step;
            t.c = c + i * ldc + j;
            dtconv_ahead_load(ahead, calls--);
            ukr->run(ukr, &t);
        }
    }
}

void DT(tile_gemm)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs,
                   const real *b, int64_t b_step, real beta, real *c, int64_t ldc, real *packed) {
    DT(tile_gemm_ahead)(ukr, m, n, k, a, rs, cs, b, b_step, beta, c, ldc, packed, NULL);
}

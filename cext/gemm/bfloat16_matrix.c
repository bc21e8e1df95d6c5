#include "bfloat16_matrix.h"

enum { MOST = 64, LINES = 8 };

/* n numbers side by side, from element `at` on, as bfloat16, or their low halves. */
static void fetch(const dtconv_operand *a, int64_t at, int64_t n, elem *dst) {
    elem high[MOST];
    if (a->bfloat16)
        memcpy(dst, (const elem *)a->data + at, (size_t)n * sizeof(elem));
    else if (a->low)
        DT(split_row)(n, (const real *)a->data + at, high, dst);
    else
        DT(narrow_row)(n, (const real *)a->data + at, dst);
}

/* Rows of the matrix lie in memory. */
static void panel_of_rows(const dtconv_operand *b, int64_t k, int64_t depth, int64_t j, int64_t n, int64_t nr,
                          elem *dst) {
    elem pair[2][MOST];
    for (int64_t p = 0; p < depth; p += 2, dst += 2 * nr) {
        const elem *rows[2] = {pair[0], pair[1]};
        for (int64_t i = 0; i < 2; i++) {
            if (p + i >= k)
                memset(pair[i], 0, sizeof pair[i]);
            else if (b->bfloat16)
                rows[i] = (const elem *)b->data + (p + i) * b->rs + j;
            else
                fetch(b, (p + i) * b->rs + j, n, pair[i]);
        }
        DT(pack_pairs)(n, nr, rows[0], rows[1], dst);
    }
}

/* Columns lie in memory: 16 of them, 32 rows at a time. */
static void panel_of_columns(const dtconv_operand *b, int64_t k, int64_t depth, int64_t j, int64_t n, int64_t nr,
                             elem *dst) {
    elem columns[16][SQUARE];
    const elem *each[16];
    for (int64_t i = 0; i < 16; i++) each[i] = columns[i];
    for (int64_t p = 0; p < depth; p += SQUARE) {
        const int64_t rows = k - p < 0 ? 0 : k - p < SQUARE ? k - p : SQUARE;
        for (int64_t jj = 0; jj < nr; jj += 16) {
            if (rows < SQUARE || n - jj < 16) memset(columns, 0, sizeof columns);
            for (int64_t i = 0; i < 16 && jj + i < n && rows; i++) fetch(b, (j + jj + i) * b->cs + p, rows, columns[i]);
            if (depth - p >= SQUARE && nr - jj >= 16) {
                DT(pack_transposed)(each, nr, dst + p * nr + 2 * jj);
                continue;
            }
            for (int64_t q = 0; q < SQUARE && p + q < depth; q++)
                for (int64_t i = 0; i < 16 && jj + i < nr; i++)
                    dst[(p + q) / 2 * 2 * nr + 2 * (jj + i) + q % 2] = columns[i][q];
        }
    }
}

void DT(pack_panel)(const dtconv_operand *b, int64_t k, int64_t depth, int64_t j, int64_t n, int64_t nr, elem *dst) {
    if (b->cs == 1)
        panel_of_rows(b, k, depth, j, n, nr, dst);
    else if (b->rs == 1)
        panel_of_columns(b, k, depth, j, n, nr, dst);
    else
        for (int64_t p = 0; p < depth; p++)
            for (int64_t i = 0; i < nr; i++)
                dst[p / 2 * 2 * nr + 2 * i + p % 2] = p < k && i < n ? matrix_element(b, p, j + i) : 0;
}

/* Columns of the matrix lie in memory: squares of 32 of them are turned. */
static void rows_of_columns(const dtconv_operand *a, int64_t i, int64_t m, int64_t p, int64_t here, elem *dst) {
    elem stage[SQUARE][SQUARE];
    const elem *columns[SQUARE];
    for (int64_t q = 0; q < SQUARE; q++) columns[q] = stage[q];
    for (int64_t ii = 0; ii < m; ii += SQUARE) {
        const int64_t rows = m - ii < SQUARE ? m - ii : SQUARE;
        if (here < SQUARE || rows < SQUARE) memset(stage, 0, sizeof stage);
        for (int64_t q = 0; q < here; q++) fetch(a, i + ii + (p + q) * a->cs, rows, stage[q]);
        DT(transpose_square)(rows, columns, dst + ii * SQUARE, SQUARE);
    }
}

/* n elements, fewer than SQUARE, and zeros behind them. */
static inline void copy_part(const elem *x, int64_t n, elem *to) {
#if defined(__AVX512BW__)
    _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(((__mmask32)1 << n) - 1, x));
#else
    memset(to, 0, SQUARE * sizeof(elem));
    memcpy(to, x, (size_t)n * sizeof(elem));
#endif
}

/* Rows of bfloat16 as they lie, some lines of each at a time: memory is read in order. */
static void rows_of_rows(const dtconv_operand *a, int64_t i, int64_t m, int64_t k, int64_t height, elem *dst) {
    for (int64_t first = 0; first < k; first += LINES * SQUARE)
        for (int64_t r = 0; r < m; r++) {
            const elem *row = (const elem *)a->data + (i + r) * a->rs;
            const int64_t end = first + LINES * SQUARE < k ? first + LINES * SQUARE : k;
            for (int64_t p = first; p < end; p += SQUARE) {
                elem *to = dst + (p / SQUARE * height + r) * SQUARE;
                if (k - p >= SQUARE)
                    memcpy(to, row + p, SQUARE * sizeof(elem));
                else
                    copy_part(row + p, k - p, to);
            }
        }
}

void DT(pack_rows)(const dtconv_operand *a, int64_t i, int64_t m, int64_t k, int64_t height, elem *dst) {
    if (a->cs == 1 && a->bfloat16) {
        rows_of_rows(a, i, m, k, height, dst);
        return;
    }
    for (int64_t p = 0; p < k; p += SQUARE, dst += height * SQUARE) {
        const int64_t here = k - p < SQUARE ? k - p : SQUARE;
        if (a->rs == 1 && a->cs != 1) {
            rows_of_columns(a, i, m, p, here, dst);
            continue;
        }
        for (int64_t r = 0; r < m; r++) {
            elem *row = dst + r * SQUARE;
            if (here < SQUARE) memset(row, 0, SQUARE * sizeof(elem));
            if (a->cs == 1)
                fetch(a, (i + r) * a->rs + p, here, row);
            else
                for (int64_t q = 0; q < here; q++) row[q] = matrix_element(a, i + r, p + q);
        }
    }
}

/* The tile of the direct convolution where few channels are written: vectors lie along what is summed.
 *
 *   C (m x n) as direct_tile_call.h says it, but B (n x depth) has each column's numbers side by side
 *
 * Vectors along a few channels would be mostly empty.  A's numbers lie side by side, too, a row of taps in one segment:
 * V of them are multiplied by V of a column, and only at the end the numbers of each vector are added up.  The last
 * part of a segment is loaded alone: behind it are pixels that this tile does not read, which may be infinite.
 */
#include "direct_dots.h"
#include "dtconv_total.h"

#if defined(__AVX512F__)
enum { SUMS = 16, MOST_ROWS = 8 };
#else
enum { SUMS = 8, MOST_ROWS = 8 };
#endif

enum { COLUMNS = 4 };

/* Sums of `rows` rows and `columns` columns, both constants where it is inlined. */
INLINE void dots(int rows, int columns, const real *const *a, const dtconv_segment *segments, int64_t count,
                 const real *b, int64_t ld, real *to) {
    vec sum[MOST_ROWS][COLUMNS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < columns; j++) sum[i][j] = (vec){0};
    for (const dtconv_segment *s = segments; s < segments + count; s++) {
        const real *column = b + s->b;
        int64_t k = 0;
        for (; k + V <= s->count; k += V) {
            vec bv[COLUMNS];
            UNROLL for (int j = 0; j < columns; j++) bv[j] = load(column + j * ld + k);
            UNROLL for (int i = 0; i < rows; i++) {
                const vec av = load(a[i] + s->a + k);
                UNROLL for (int j = 0; j < columns; j++) sum[i][j] = multiply_add(av, bv[j], sum[i][j]);
            }
        }
        if (k == s->count) continue;
        const int64_t rest = s->count - k;
        vec bv[COLUMNS];
        UNROLL for (int j = 0; j < columns; j++) bv[j] = load_part(column + j * ld + k, rest);
        UNROLL for (int i = 0; i < rows; i++) {
            const vec av = load_part(a[i] + s->a + k, rest);
            UNROLL for (int j = 0; j < columns; j++) sum[i][j] = multiply_add(av, bv[j], sum[i][j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < columns; j++) to[i * DIRECT_DOTS + j] =
        total(sum[i][j]);
}

#define DOTS(rows, columns)                                                                                            \
    NOINLINE void dots_##rows##_##columns(const real *const *a, const dtconv_segment *s, int64_t count, const real *b, \
                                          int64_t ld, real *to) {                                                      \
        dots(rows, columns, a, s, count, b, ld, to);                                                                   \
    }
#define EACH_SIZE(X) \
    X(1, 1) X(2, 1) X(4, 1) X(8, 1) X(1, 2) X(2, 2) X(4, 2) X(8, 2) X(1, 3) X(2, 3) X(4, 3) X(1, 4) X(2, 4) X(4, 4)
EACH_SIZE(DOTS)

typedef void (*dots_fn)(const real *const *a, const dtconv_segment *s, int64_t count, const real *b, int64_t ld,
                        real *to);
static const dots_fn functions[COLUMNS][4] = {
    /* of 1, 2, 4 and 8 rows */
    {dots_1_1, dots_2_1, dots_4_1, dots_8_1},
    {dots_1_2, dots_2_2, dots_4_2, dots_8_2},
    {dots_1_3, dots_2_3, dots_4_3, NULL},
    {dots_1_4, dots_2_4, dots_4_4, NULL},
};

/* Row i of C from its sums. */
static void finish(const DT(direct_tile) * t, int64_t i, int64_t n, const real *sums, const real *bias) {
    for (int64_t j = 0; j < n; j++) {
        real c = sums[j] + (bias ? bias[j] : 0);
        if (t->scale) c = c * t->scale[j] + t->beta[j];
        if (t->beside) {
            t->beside[i * DIRECT_NR + j] = c;
            continue;
        }
        if (t->add) c += t->added[i][j];
        t->c[i][j] = t->relu && c < 0 ? 0 : c;
    }
}

void DT(direct_run_dots)(const DT(direct_tile) * t, int64_t m, int64_t n, const real *b, int64_t ld, const real *bias) {
    real sums[DIRECT_MR * DIRECT_DOTS];
    for (int64_t line = 0; line < t->ahead_count; line++) __builtin_prefetch(t->ahead[line], 0, 2);
    for (int64_t j = 0; j < n; j += COLUMNS) {
        const int64_t columns = MIN(COLUMNS, n - j);
        for (int64_t i = 0; i < m;) {
            int power = 3;
            while ((1 << power) > m - i || (1 << power) * columns > SUMS || !functions[columns - 1][power]) power--;
            functions[columns - 1][power](t->a + i, t->segments, t->segment_count, b + j * ld, ld,
                                          sums + i * DIRECT_DOTS + j);
            i += 1 << power;
        }
    }
    const int plain = !t->scale && !t->beside && !t->add && !t->relu && !bias;
    for (int64_t i = 0; i < m; i++) {
        const real *row = sums + i * DIRECT_DOTS;
        if (!plain)
            finish(t, i, n, row, bias);
        else
            for (int64_t j = 0; j < n; j++) t->c[i][j] = row[j];
    }
}

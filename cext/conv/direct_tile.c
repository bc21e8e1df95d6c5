/* The micro-kernel of the direct convolution: a tile of MR x NR sums in registers.
 *
 * Unlike GEMM's it reads rows of A through pointers of their own, so that any pixels of an image make a tile, and sums
 * over segments, so that all taps are added before C is written.  One function for each number of rows and of vectors:
 * tiles are cut into equal heights, and none of them computes rows or vectors that nobody wants.
 */
#include "direct.h"

enum { MR = DIRECT_MR, NV = DIRECT_NV, LINE_VECTORS = 64 / (V * (int)sizeof(elem)), TURN = DIRECT_TURN };

#if defined(__FMA__) && !defined(__AVX512F__)
#define ADD_PRODUCT ADD_PRODUCT_AVX2
#else
#define ADD_PRODUCT(sum, a, b) sum += (a) * (b)
#endif

/* Row i of C, which will be written. */
INLINE void load_row(int vectors, const DT(direct_tile) * t, int64_t column, int64_t i) {
    UNROLL for (int v = 0; v < vectors; v += LINE_VECTORS) {
        __builtin_prefetch(t->c[i] + column + v * V, 1);
        if (t->add) __builtin_prefetch(t->added[i] + column + v * V);
    }
}

/* sum += a step of A * a row of B. */
INLINE void multiply(int rows, int vectors, const real *const *a, int64_t p, const real *row, vec (*sum)[NV]) {
    vec bv[NV];
    UNROLL for (int v = 0; v < vectors; v++) bv[v] = load(row + v * V);
    UNROLL for (int i = 0; i < rows; i++) {
        const vec ai = a[i][p] - (vec){0};
        UNROLL for (int v = 0; v < vectors; v++) ADD_PRODUCT(sum[i][v], ai, bv[v]);
    }
}

/* sum = sum * scale + beta */
INLINE void scale_tile(int rows, int vectors, const DT(direct_tile) * t, int64_t column, int64_t last, vec (*sum)[NV]) {
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t count = v == vectors - 1 ? last : V, at = column + v * V;
        const vec scale = load_part(t->scale + at, count), beta = load_part(t->beta + at, count);
        UNROLL for (int i = 0; i < rows; i++) sum[i][v] = multiply_add(sum[i][v], scale, beta);
    }
}

/* C = act(sum + added), where `last` is V with constants for what is asked for. */
INLINE void store_tile(int rows, int vectors, const DT(direct_tile) * t, int64_t column, int64_t last, vec (*sum)[NV],
                       int beside, int add, int relu) {
    UNROLL for (int i = 0; i < rows; i++) {
        elem *c = t->c[i] + column;
        UNROLL for (int v = 0; v < vectors; v++) {
            const int64_t count = v == vectors - 1 ? last : V;
            if (add) sum[i][v] += load_elem_part(t->added[i] + column + v * V, count);
            if (relu) sum[i][v] = positive(sum[i][v]);
            if (beside)
                store_part(t->beside + i * DIRECT_NR + v * V, count, sum[i][v]);
            else if (last < V)
                store_elem_part(c + v * V, count, sum[i][v]);
        }
        if (!beside && last == V) store_vectors(c, vectors, V, sum[i]);
    }
}

/* rows, vectors: constants where it is inlined; in_order: steps follow each other in A and B; last: elements of the
 * last vector. */
INLINE void tile(int rows, int vectors, int in_order, const DT(direct_tile) * t, int64_t last, const real *b,
                 const real *bias, int64_t column) {
    vec sum[MR][NV];
    const real *a[MR];
    UNROLL for (int i = 0; i < rows; i++) {
        a[i] = t->a[i];
        UNROLL for (int v = 0; v < vectors; v++) {
            sum[i][v] = bias ? load_part(bias + v * V, v == vectors - 1 ? last : V) : (vec){0};
        }
    }
    const int64_t a_step = in_order ? 1 : t->a_step, b_step = in_order ? DIRECT_NR : t->b_step;
    const void *const *line = t->ahead, *const *const end_of_lines = line + t->ahead_count;
    /* rows of C: one a step, or all at once where that takes few loads */
    UNROLL for (int i = 0; TURN > 1 && i < rows; i++) load_row(vectors, t, column, i);
    int64_t loaded = TURN > 1 ? rows : 0;
    const dtconv_segment *end = t->segments + t->segment_count;
    for (const dtconv_segment *s = t->segments; s < end; s++) {
        int64_t p = s->a, k = s->count;
        const real *row = b + s->b;
        for (; k >= TURN; k -= TURN) {
            if (TURN == 1 && loaded < rows) load_row(vectors, t, column, loaded++);
            if (line < end_of_lines) __builtin_prefetch(*line++, 0, 2);
            ONCE(p);
            UNROLL for (int i = 0; i < TURN; i++) {
                multiply(rows, vectors, a, in_order ? p + i : p, in_order ? row + i * DIRECT_NR : row, sum);
                if (TURN > 1) STEP_ENDS;
                if (in_order) continue;
                p += a_step, row += b_step;
                ONCE(p);
            }
            if (in_order) p += TURN, row += TURN * DIRECT_NR;
        }
        for (; k > 0; k--, p += a_step, row += b_step) multiply(rows, vectors, a, p, row, sum);
    }
    for (; TURN > 1 && line < end_of_lines; line++) __builtin_prefetch(*line, 0, 2);
    if (t->scale) scale_tile(rows, vectors, t, column, last, sum);
    if (last < V)
        store_tile(rows, vectors, t, column, last, sum, t->beside != NULL, !t->beside && t->add, !t->beside && t->relu);
    else if (t->beside)
        store_tile(rows, vectors, t, column, V, sum, 1, 0, 0);
    else if (t->add && t->relu)
        store_tile(rows, vectors, t, column, V, sum, 0, 1, 1);
    else if (t->add)
        store_tile(rows, vectors, t, column, V, sum, 0, 1, 0);
    else if (t->relu)
        store_tile(rows, vectors, t, column, V, sum, 0, 0, 1);
    else
        store_tile(rows, vectors, t, column, V, sum, 0, 0, 0);
}

typedef void (*tile_fn)(const DT(direct_tile) * t, int64_t last, const real *b, const real *bias, int64_t column);

#define TILE(name, rows, vectors, in_order)                                                                           \
    NOINLINE void name##_##rows##_##vectors(const DT(direct_tile) * t, int64_t last, const real *b, const real *bias, \
                                            int64_t column) {                                                         \
        tile(rows, vectors, in_order, t, last, b, bias, column);                                                      \
    }
#ifdef DTCONV_BFLOAT16 /* what is widened lies in order */
#define TILES(rows) TILE(tile, rows, 1, 1) TILE(tile, rows, 2, 1)
#define NAMES(rows) {{NULL, tile_##rows##_1}, {NULL, tile_##rows##_2}},
#else
#define TILES(rows) TILE(steps, rows, 1, 0) TILE(steps, rows, 2, 0) TILE(tile, rows, 1, 1) TILE(tile, rows, 2, 1)
#define NAMES(rows) {{steps_##rows##_1, tile_##rows##_1}, {steps_##rows##_2, tile_##rows##_2}},
#endif

#define UP_TO_4(X) X(1) X(2) X(3) X(4)
#define UP_TO_6(X) UP_TO_4(X) X(5) X(6)
#define UP_TO_8(X) UP_TO_6(X) X(7) X(8)
#define UP_TO_14(X) UP_TO_8(X) X(9) X(10) X(11) X(12) X(13) X(14)
#if defined(__AVX512F__)
#define EACH_HEIGHT UP_TO_14
#elif defined(__AVX2__)
#define EACH_HEIGHT UP_TO_6
#elif defined(__aarch64__)
#define EACH_HEIGHT UP_TO_8
#else
#define EACH_HEIGHT UP_TO_4
#endif

EACH_HEIGHT(TILES)
static const tile_fn tiles[MR][NV][2] = {EACH_HEIGHT(NAMES)};

void DT(direct_run_tile)(const DT(direct_tile) * t, int64_t m, int64_t n, const real *b, const real *bias,
                         int64_t column) {
    const int64_t vectors = (n + V - 1) / V;
    const int in_order = t->a_step == 1 && t->b_step == DIRECT_NR;
    tiles[m - 1][vectors - 1][in_order](t, n - (vectors - 1) * V, b, bias, column);
}

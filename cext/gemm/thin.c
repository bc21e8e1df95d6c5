/* Products of a large matrix with a thin one: dense layers on small batches.
 *
 *   C (m x n) = beta * C + alpha * A (m x k) * B (k x n)
 *
 * Each element of the large matrix meets only a few others, so that the time is that of reading or writing it once:
 * packing would read it, write it and read it again.  It is used in place, along contiguous rows, and what it meets is
 * packed, so that it comes from cache as one stream:
 *
 *   few rows m, B's rows contiguous       STEPS rows of B at a time are added to SUMS elements of C, in L2
 *   few rows m, B's columns contiguous    inner products of DOT_COLUMNS columns of B with all of A, packed in L2;
 *                                         where k is long
 *   some rows m, B's columns contiguous   TURNED_COLUMNS columns of B are rows of the product's transpose, along
 *                                         vectors of A's rows, packed in L2; its blocks are turned into C
 *   small depth k, C large                DEEP_ROWS rows of C are written at a time, from BLOCK columns of B, in L1
 *
 * Threads divide C's columns, or its rows in the last case.
 */
#include <string.h>

#include "dtconv_total.h"
#include "dtconv_gemm.h"
#include "../conv/transpose.h"
#include "thin.h"

enum {
    FEW = 16,
    STEPS = 8,
    ROWS = 8,
    DEEP_ROWS = 4,
    BLOCK = 512,
    SUMS = 16384,
    MOST_TURNED = 128, /* rows of which vectors along A's columns are worth turning the sums */
    TURNED_BLOCK = 48, /* columns of C */
    WIDE = 1024,
    LARGE = 1 << 20,
    SOME = 1 << 18,
    IN_L2 = 1 << 19
};
#if VECTOR_BYTES == 64
enum { DOT_ROWS = 8, DOT_COLUMNS = 3, TURNED_COLUMNS = 12 };
#else
enum { DOT_ROWS = 4, DOT_COLUMNS = 2, TURNED_COLUMNS = 6 };
#endif

/* What each kernel is given. */
typedef struct {
    const DT(gemm_args) * g;
    const DT(matrix) * a, *b;
    real alpha;
    real *a_packed; /* A for inner products, or turned */
    real *own;      /* SUMS elements of each thread: those of the first one */
} thin;

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE real scaled(real beta, real c) { return beta == 0 ? 0 : beta * c; }

/* --- few rows, B's rows contiguous ------------------------------------------------------------------------------- */

/* sums[r] += A (rows x steps, FEW apart) * B (steps x count), for one vector of columns. */
INLINE void add_vector(int rows, int steps, const real *a, const real *b, int64_t rs, vec *sums, int64_t count) {
    vec part[ROWS];
    UNROLL for (int i = 0; i < rows; i++) part[i] = (vec){0};
    UNROLL for (int p = 0; p < steps; p++) {
        const vec x = load_part(b + p * rs, count);
        if (steps == STEPS) __builtin_prefetch(b + (p + STEPS) * rs);
        UNROLL for (int i = 0; i < rows; i++) part[i] += a[i * FEW + p] * x;
    }
    UNROLL for (int i = 0; i < rows; i++) sums[i] += part[i];
}

INLINE void add_rows(int rows, int steps, const real *a, const real *b, int64_t rs, vec *sums, int64_t m, int64_t n) {
    int64_t j = 0;
    for (; j + V <= n; j += V, sums += m) add_vector(rows, steps, a, b + j, rs, sums, V);
    if (j < n) add_vector(rows, steps, a, b + j, rs, sums, n - j);
}

INLINE void add_steps(int steps, int64_t m, const real *a, const real *b, int64_t rs, vec *sums, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= m; i += 8) add_rows(8, steps, a + i * FEW, b, rs, sums + i, m, n);
    for (; i + 4 <= m; i += 4) add_rows(4, steps, a + i * FEW, b, rs, sums + i, m, n);
    for (; i < m; i++) add_rows(1, steps, a + i * FEW, b, rs, sums + i, m, n);
}

/* A[i : i + m, p : p + k], rows FEW apart. */
static void part_of(const DT(matrix) * a, int64_t i, int64_t m, int64_t p, int64_t k, real *part) {
    for (int64_t r = 0; r < m; r++)
        for (int64_t s = 0; s < k; s++) part[r * FEW + s] = a->data[(i + r) * a->rs + (p + s) * a->cs];
}

static void block_by_steps(const thin *t, int64_t j, int64_t n, vec *sums) {
    const DT(gemm_args) *g = t->g;
    real part[FEW * FEW];
    memset(sums, 0, (size_t)(g->m * ((n + V - 1) / V)) * sizeof *sums);
    int64_t p = 0;
    for (; p + STEPS <= g->k; p += STEPS) {
        part_of(t->a, 0, g->m, p, STEPS, part);
        add_steps(STEPS, g->m, part, t->b->data + p * t->b->rs + j, t->b->rs, sums, n);
    }
    for (; p < g->k; p++) {
        part_of(t->a, 0, g->m, p, 1, part);
        add_steps(1, g->m, part, t->b->data + p * t->b->rs + j, t->b->rs, sums, n);
    }
    for (int64_t i = 0; i < g->m; i++) {
        real *c = g->c + i * g->ldc + j;
        for (int64_t x = 0; x < n; x++) c[x] = scaled(g->beta, c[x]) + t->alpha * sums[x / V * g->m + i][x % V];
    }
}

/* sums: those of one vector of columns one after the other.  Blocks are as wide as there is room for them: short pieces
 * of B's rows would be many pages. */
static void columns_by_steps(const thin *t, int64_t j, int64_t n, vec *own) {
    const int64_t block = SUMS / t->g->m / V * V;
    for (int64_t end = j + n; j < end; j += block) block_by_steps(t, j, min(block, end - j), own);
}

/* --- few rows, B's columns contiguous ---------------------------------------------------------------------------- */

/* A's rows as vectors along k, those of one place one after the other; the last ones filled up with zeros. */
static void pack_a(const DT(matrix) * a, int64_t m, int64_t k, real *packed) {
    for (int64_t p = 0; p < k; p += V)
        for (int64_t i = 0; i < m; i++, packed += V) store(packed, load_part(a->data + i * a->rs + p, min(V, k - p)));
}

INLINE void add_products(int rows, int columns, vec sums[][DOT_COLUMNS], const real *a, const real *b, int64_t cs,
                         int64_t count) {
    vec x[DOT_COLUMNS];
    UNROLL for (int j = 0; j < columns; j++) x[j] = load_part(b + j * cs, count);
    UNROLL for (int i = 0; i < rows; i++) {
        const vec y = load(a + i * V);
        UNROLL for (int j = 0; j < columns; j++) sums[i][j] += y * x[j];
    }
}

INLINE void dots(int rows, int columns, const thin *t, int64_t i, int64_t j) {
    const DT(gemm_args) *g = t->g;
    const real *a = t->a_packed + i * V, *b = t->b->data + j * t->b->cs;
    vec sums[DOT_ROWS][DOT_COLUMNS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int s = 0; s < columns; s++) sums[r][s] = (vec){0};
    int64_t p = 0;
    for (; p + V <= g->k; p += V, a += g->m * V) {
        if (i == 0) /* whoever comes first loads the columns after the next ones, too */
            UNROLL for (int s = 0; s < columns; s++) __builtin_prefetch(b + (2 * DOT_COLUMNS + s) * t->b->cs + p);
        add_products(rows, columns, sums, a, b + p, t->b->cs, V);
    }
    if (p < g->k) add_products(rows, columns, sums, a, b + p, t->b->cs, g->k - p);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int s = 0; s < columns; s++) {
        real *c = g->c + (i + r) * g->ldc + j + s;
        *c = scaled(g->beta, *c) + t->alpha * total(sums[r][s]);
    }
}

INLINE void dots_of_columns(int columns, const thin *t, int64_t j) {
    int64_t i = 0;
    for (; i + DOT_ROWS <= t->g->m; i += DOT_ROWS) dots(DOT_ROWS, columns, t, i, j);
    for (; i + 2 <= t->g->m; i += 2) dots(2, columns, t, i, j);
    for (; i < t->g->m; i++) dots(1, columns, t, i, j);
}

static void columns_by_dots(const thin *t, int64_t j, int64_t n, vec *own) {
    (void)own;
    const int64_t end = j + n;
    for (; j + DOT_COLUMNS <= end; j += DOT_COLUMNS) dots_of_columns(DOT_COLUMNS, t, j);
    for (; j < end; j++) dots_of_columns(1, t, j);
}

/* --- some rows, B's columns contiguous ---------------------------------------------------------------------------- */

static int64_t vectors_of(int64_t m) { return (m + V - 1) / V; }

/* A's columns as vectors, those of the same rows one after the other; the last rows are filled up with zeros. */
static void pack_turned(const DT(matrix) * a, int64_t m, int64_t k, real *packed) {
    memset(packed, 0, (size_t)(vectors_of(m) * k * V) * sizeof(real));
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) packed[(i / V * k + p) * V + i % V] = a->data[i * a->rs + p * a->cs];
}

/* sums[j * m] = the products of column j of B with `vectors` vectors of rows; the columns behind are loaded ahead. */
INLINE void turned_tile(int columns, int vectors, int ahead, const real *a, const real *b, int64_t cs, int64_t k,
                        vec *sums, int64_t m) {
    enum { LINE = 64 / sizeof(real) };
    vec own[TURNED_COLUMNS][2];
    UNROLL for (int j = 0; j < columns; j++) UNROLL for (int v = 0; v < vectors; v++) own[j][v] = (vec){0};
    for (int64_t from = 0; from < k; from += LINE) {
        if (ahead)
            for (int j = 0; j < columns; j++) __builtin_prefetch(b + (columns + j) * cs + from);
        for (int64_t p = from; p < min(k, from + LINE); p++) {
            vec x[2];
            UNROLL for (int v = 0; v < vectors; v++) x[v] = load(a + (v * k + p) * V);
            UNROLL for (int j = 0; j < columns; j++) UNROLL for (int v = 0; v < vectors; v++) own[j][v] +=
                b[j * cs + p] * x[v];
        }
    }
    UNROLL for (int j = 0; j < columns; j++) UNROLL for (int v = 0; v < vectors; v++) sums[j * m + v] = own[j][v];
}

INLINE void turned_columns(int columns, const thin *t, const real *b, vec *sums) {
    const int64_t k = t->g->k, m = vectors_of(t->g->m);
    int64_t v = 0;
    for (; v + 2 <= m; v += 2) turned_tile(columns, 2, v == 0, t->a_packed + v * k * V, b, t->b->cs, k, sums + v, m);
    if (v < m) turned_tile(columns, 1, v == 0, t->a_packed + v * k * V, b, t->b->cs, k, sums + v, m);
}

/* C[:, j : j + n] from the sums of its columns. */
static void turn_block(const thin *t, int64_t j, int64_t n, const vec *sums) {
    const DT(gemm_args) *g = t->g;
    const real *from[TURNED_BLOCK];
    real panel[MOST_TURNED * V];
    for (int64_t x = 0; x < n; x++) from[x] = (const real *)(sums + x * vectors_of(g->m));
    for (int64_t x = 0; x < n; x += V) {
        const int64_t width = min(V, n - x);
        transpose(from + x, g->m, width, panel);
        for (int64_t i = 0; i < g->m; i++) {
            real *c = g->c + i * g->ldc + j + x;
            vec sum = t->alpha * load_part(panel + i * width, width);
            if (g->beta != 0) sum += g->beta * load_part(c, width);
            store_part(c, width, sum);
        }
    }
}

static void columns_turned(const thin *t, int64_t j, int64_t n, vec *own) {
    _Static_assert(MOST_TURNED * TURNED_BLOCK <= SUMS, "a thread's memory has room for a block of C");
    const int64_t cs = t->b->cs, m = vectors_of(t->g->m);
    for (const int64_t end = j + n; j < end; j += TURNED_BLOCK) {
        const int64_t block = min(TURNED_BLOCK, end - j);
        const real *b = t->b->data + j * cs;
        int64_t x = 0;
        for (; x + TURNED_COLUMNS <= block; x += TURNED_COLUMNS)
            turned_columns(TURNED_COLUMNS, t, b + x * cs, own + x * m);
        for (; x < block; x++) turned_columns(1, t, b + x * cs, own + x * m);
        turn_block(t, j, block, own);
    }
}

/* --- small depth -------------------------------------------------------------------------------------------------- */

/* `rows` x `vectors` vectors of C, the last of `count` elements; b: vectors[k] of each. */
INLINE void deep_tile(int rows, int vectors, const thin *t, const real *a, const vec *b, real *c, int64_t count) {
    const int64_t k = t->g->k, ldc = t->g->ldc;
    vec sums[DEEP_ROWS][2];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sums[i][v] = (vec){0};
    for (int64_t p = 0; p < k; p++)
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sums[i][v] +=
            a[i * FEW + p] * b[v * k + p];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) {
        real *y = c + i * ldc + v * V;
        vec sum = t->alpha * sums[i][v];
        if (t->g->beta != 0) sum += t->g->beta * load_part(y, count);
        store_part(y, count, sum);
    }
}

INLINE void deep_rows(int rows, const thin *t, const real *a, const vec *b, real *c, int64_t n) {
    int64_t j = 0;
    for (; j + 2 * V <= n; j += 2 * V) deep_tile(rows, 2, t, a, b + j / V * t->g->k, c + j, V);
    for (; j < n; j += V) deep_tile(rows, 1, t, a, b + j / V * t->g->k, c + j, min(V, n - j));
}

static void rows_of_small_depth(const thin *t, int64_t i, int64_t m, vec *block) {
    const DT(gemm_args) *g = t->g;
    real part[DEEP_ROWS * FEW];
    _Static_assert(BLOCK * FEW <= SUMS, "a thread's memory has room for a block of B");
    for (int64_t j = 0; j < g->n; j += BLOCK) {
        const int64_t n = min(BLOCK, g->n - j);
        for (int64_t x = 0, at = 0; x < n; x += V)
            for (int64_t p = 0; p < g->k; p++)
                block[at++] = load_part(t->b->data + p * t->b->rs + j + x, min(V, n - x));
        for (int64_t r = i; r < i + m;) {
            const int64_t rows = i + m - r >= DEEP_ROWS ? DEEP_ROWS : 1;
            part_of(t->a, r, rows, 0, g->k, part);
            if (rows == DEEP_ROWS)
                deep_rows(DEEP_ROWS, t, part, block, g->c + r * g->ldc + j, n);
            else
                deep_rows(1, t, part, block, g->c + r * g->ldc + j, n);
            r += rows;
        }
    }
}

/* --- which one ---------------------------------------------------------------------------------------------------- */

/* The last: memory of the thread. */
typedef void (*kernel)(const thin *, int64_t, int64_t, vec *);

static size_t a_bytes(int64_t m, int64_t k) { return (size_t)(m * ((k + V - 1) / V)) * VECTOR_BYTES; }

static size_t turned_bytes(int64_t m, int64_t k) { return (size_t)(vectors_of(m) * k) * VECTOR_BYTES; }

/* Whether a matrix has as many bytes; one that lies on itself, with strides of 0, may have more than 64 bits hold. */
static int has_bytes(int64_t rows, int64_t columns, int64_t bytes) {
    int64_t elements;
    return __builtin_mul_overflow(rows, columns, &elements) || elements >= bytes / (int64_t)sizeof(real);
}

static int reads_large(int64_t n, int64_t k) { return has_bytes(n, k, LARGE); }
static int reads_some(int64_t n, int64_t k) { return has_bytes(n, k, SOME); }
static int writes_large(int64_t m, int64_t n) { return n >= WIDE && has_bytes(m, n, LARGE); }

int DT(gemm_has_few_rows)(int64_t m, int64_t n, int64_t k) { return m <= FEW && reads_large(n, k); }

/* Vectors must be full and sums long, or these and turning them cost more than packing B. */
static int is_turned(int64_t m, int64_t n, int64_t k) {
    return m <= MOST_TURNED && 4 * m >= 3 * vectors_of(m) * V && k >= 3 * m && k <= IN_L2 &&
           turned_bytes(m, k) <= IN_L2 && n >= 8 * TURNED_BLOCK;
}

int DT(gemm_is_shallow)(int64_t m, int64_t n, int64_t k) { return k <= FEW && writes_large(m, n); }

/* Room for every smaller product, too: the last piece of one that is cut may have few rows where the others have many.
 */
size_t DT(gemm_thin_workspace)(int64_t m, int64_t n, int64_t k, int threads) {
    const int reads = reads_some(n, k);
    const int64_t some = min(k, IN_L2); /* steps of more would not fit */
    const size_t most = turned_bytes(min(m, MOST_TURNED), some) + a_bytes(min(m, FEW), some);
    const size_t packed = !reads ? 0 : most < IN_L2 ? most : IN_L2;
    return packed + (reads || writes_large(m, n) ? (size_t)threads * SUMS * sizeof(real) : 0);
}

/* What fits the product, or NULL. */
static kernel chosen(const thin *t) {
    const DT(gemm_args) *g = t->g;
    if (DT(gemm_has_few_rows)(g->m, g->n, g->k) && t->b->cs == 1) return columns_by_steps;
    if (t->b->rs == 1 && reads_some(g->n, g->k)) {
        const int is_long = g->k >= V * g->m; /* else adding up each vector's numbers takes longer than packing B */
        const int meet = t->b->cs * (int64_t)sizeof(real) % 4096 == 0; /* columns of B in one set of L1 */
        if (g->m <= FEW && t->a->cs == 1 && is_long && a_bytes(g->m, g->k) <= IN_L2) return columns_by_dots;
        if (!meet && is_turned(g->m, g->n, g->k)) return columns_turned;
    }
    return DT(gemm_is_shallow)(g->m, g->n, g->k) && t->b->cs == 1 ? rows_of_small_depth : NULL;
}

int DT(gemm_thin)(const DT(gemm_args) * g, real alpha, int threads, real *workspace) {
    thin t = {.g = g,
              .a = g->a_in_place                    ? g->a_in_place
                   : g->pack_a == DT(pack_a_matrix) ? g->a
                                                    : NULL,
              .b = g->pack_b == DT(pack_b_matrix) ? g->b : NULL,
              .alpha = alpha,
              .a_packed = workspace,
              .own = workspace};
    if (!t.a || !t.b) return 0;
    const kernel compute = chosen(&t);
    if (!compute) return 0;
    const int by_rows = compute == rows_of_small_depth, turned = compute == columns_turned;
    if (compute == columns_by_dots) pack_a(t.a, g->m, g->k, workspace);
    if (turned) {
        pack_turned(t.a, g->m, g->k, workspace);
        t.own = workspace + turned_bytes(g->m, g->k) / sizeof(real);
    }
    const int64_t extent = by_rows ? g->m : g->n, step = by_rows ? DEEP_ROWS : turned ? TURNED_BLOCK : 2 * V;
    const int64_t parts = (extent + step - 1) / step;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int id = 0; id < threads; id++) {
        const int64_t first = parts * id / threads * step, last = min(parts * (id + 1) / threads * step, extent);
        if (last <= first) continue;
        compute(&t, first, last - first, (vec *)(t.own + (int64_t)id * SUMS));
        if (g->epilogue && by_rows)
            g->epilogue(g->e, first, last - first, 0, g->n, g->c + first * g->ldc, g->ldc);
        else if (g->epilogue)
            g->epilogue(g->e, 0, g->m, first, last - first, g->c + first, g->ldc);
    }
    return 1;
}

/* The native micro-kernel, written once for all vector lengths.
 *
 *   C (m x n) = alpha * A (m x k) * B (k x n) + beta * C
 *
 * The including file defines before it
 *   VBYTES  bytes of a vector,  NV  vectors in a row of the tile (NR = NV * VBYTES / sizeof(real)),  MR  rows,
 *   TARGET  function attributes that switch the instruction set on,
 * and gets `run`.  The tile of MR x NV accumulators stays in registers; each step of k loads NV vectors of B and
 * broadcasts one element of A per row.  Rows past a full tile are done in pieces of 8, 4, 2 and 1 rows, columns in
 * whole vectors; the sum over k has the same order in all of them.
 */
#include "dtconv_inline.h"
#include "dtconv_ukr.h"

#define V ((int)(VBYTES / sizeof(real)))
#define NR (NV * V)

typedef real vec __attribute__((vector_size(VBYTES), aligned(sizeof(real)), may_alias));
typedef real aligned_vec __attribute__((vector_size(VBYTES)));

/* The first `count` elements of a vector in memory; a file may bring its own, with masks. */
#ifndef STORE_PART
TARGET INLINE aligned_vec load_part(const real *x, int count) {
    real part[VBYTES / sizeof(real)] __attribute__((aligned(VBYTES))) = {0};
    for (int j = 0; j < count; j++) part[j] = x[j];
    return *(const aligned_vec *)part;
}

TARGET INLINE void store_part(real *x, int count, aligned_vec value) {
    real part[VBYTES / sizeof(real)] __attribute__((aligned(VBYTES)));
    *(aligned_vec *)part = value;
    for (int j = 0; j < count; j++) x[j] = part[j];
}
#define LOAD_PART load_part
#define STORE_PART store_part
#endif

/* C = alpha * acc + beta * C for one row of the tile, whose last vector has `count` elements. */
TARGET INLINE void store_row(const aligned_vec *acc, int vectors, int add, int part, int count, real alpha, real beta,
                             real *c) {
    UNROLL for (int v = 0; v < vectors; v++) {
        aligned_vec sum = acc[v] * alpha;
        if (part && v == vectors - 1) {
            if (add) sum += beta * LOAD_PART(c + v * V, count);
            STORE_PART(c + v * V, count, sum);
        } else {
            if (add) sum += beta * (aligned_vec) * (const vec *)(c + v * V);
            *(vec *)(c + v * V) = sum;
        }
    }
}

/* All rows; `add` (beta != 0) and `part` (the last vector is not full) are constants. */
TARGET INLINE void store_rows(aligned_vec (*acc)[NV], int rows, int vectors, int add, int part, const DT(ukr_call) * t,
                              int64_t first) {
    const int count = part ? (int)(t->n % V) : V;
    const real alpha = t->alpha, beta = t->beta;
    const int64_t ldc = t->ldc;
    real *c = t->c + first * ldc;
    UNROLL for (int i = 0; i < rows; i++, c += ldc) store_row(acc[i], vectors, add, part, count, alpha, beta, c);
}

/* What is loaded into L1 before it is multiplied, in steps of k: no processor follows all of these rows by itself.  A
 * step takes 14 to 28 cycles, L3 of a large processor 400. */
enum { LINE = 64 / sizeof(real), B_AHEAD = 32, A_AHEAD = 16, A_ROW_AHEAD = 2 * LINE };

enum { TURN = STEPS_OF_TURN(MR) };

#ifndef ADD_PRODUCT
#define ADD_PRODUCT(sum, a, b) sum += (a) * (b)
#endif

/* A row of B. */
TARGET INLINE void load_row(int vectors, const real *b, aligned_vec *to) {
    UNROLL for (int v = 0; v < vectors; v++) to[v] = *(const vec *)(b + v * V);
    UNROLL for (int bytes = 0; TURN == 1 && bytes < vectors * VBYTES; bytes += 64)
        __builtin_prefetch((const char *)(b + B_AHEAD * NR) + bytes);
}

/* acc += a column of A * a row of B, both packed */
TARGET INLINE void step(int rows, int vectors, const real *a, const real *b, aligned_vec (*acc)[NV]) {
    aligned_vec bv[NV];
    load_row(vectors, b, bv);
    UNROLL for (int i = 0; i < rows; i++) {
        const aligned_vec ai = a[i] - (aligned_vec){0};
        UNROLL for (int v = 0; v < vectors; v++) ADD_PRODUCT(acc[i][v], ai, bv[v]);
    }
}

/* The same with rows of A in place; p: the step */
TARGET INLINE void step_of_rows(int rows, int vectors, const real *const *a, int64_t p, const real *b,
                                aligned_vec (*acc)[NV]) {
    aligned_vec bv[NV];
    load_row(vectors, b, bv);
    UNROLL for (int i = 0; i < rows; i++) {
        const aligned_vec ai = a[i][p] - (aligned_vec){0};
        UNROLL for (int v = 0; v < vectors; v++) ADD_PRODUCT(acc[i][v], ai, bv[v]);
    }
}

/* What all rows in place read some lines after step p: at their end, those of the next tile. */
TARGET INLINE void load_rows_ahead(const DT(ukr_call) * t, int64_t first, int64_t p) {
    const int64_t rs = t->rs_a, at = p + A_ROW_AHEAD;
    const real *ahead = at < t->k ? t->a + first * rs + at : t->a_next + (at - t->k);
    UNROLL for (int i = 0; i < MR; i++, ahead += rs) __builtin_prefetch(ahead);
}

/* `rows` x `vectors` of the tile, from row `first` on.  The three counts are constants where it is inlined. */
TARGET INLINE void piece(int rows, int vectors, int packed, const DT(ukr_call) * t, int64_t first) {
    aligned_vec acc[MR][NV];
    const real *b = t->b;
    const int64_t rs = t->rs_a, cs = t->cs_a;
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) acc[i][v] = (aligned_vec){0};
    UNROLL for (int i = 0; i < rows; i++) {
        const real *c = t->c + (first + i) * t->ldc;
        UNROLL for (int bytes = 0; bytes < vectors * VBYTES; bytes += 64)
            __builtin_prefetch((const char *)c + bytes, 1);
    }
    if (packed) {
        const real *a = t->a + first;
        const int64_t k = t->k, ahead = A_AHEAD * cs;
        const void *const *line = t->fetch, *const *last = line + (rows == MR ? t->fetch_count : 0);
        int64_t p = 0;
        for (; TURN == 1 && line < last && p < k; p++, a += cs, b += NR) {
            __builtin_prefetch(*line++, 0, 2);
            step(rows, vectors, a, b, acc);
        }
        for (; p + TURN <= k; p += TURN, b += TURN * NR) {
            if (TURN > 1 && line < last) __builtin_prefetch(*line++, 0, 2);
            UNROLL for (int i = 0; i < TURN; i++, a += cs) {
                ONCE(a);
                if (TURN == 1) __builtin_prefetch(a + ahead);
                __builtin_prefetch(a + ahead + MR - 1);
                step(rows, vectors, a, b + i * NR, acc);
                if (TURN > 1) STEP_ENDS;
            }
        }
        for (; p < k; p++, a += cs, b += NR) step(rows, vectors, a, b, acc);
        for (; TURN > 1 && line < last; line++) __builtin_prefetch(*line, 0, 2);
    } else if (TURN > 1) {
        const real *a[MR];
        UNROLL for (int i = 0; i < rows; i++) a[i] = t->a + (first + i) * rs;
        const int64_t k = t->k;
        int64_t p = 0;
        for (; p + TURN <= k; p += TURN, b += TURN * NR) {
            if (rows == MR && p % LINE == 0) load_rows_ahead(t, first, p);
            ONCE(p);
            UNROLL for (int i = 0; i < TURN; i++) {
                step_of_rows(rows, vectors, a, p + i, b + i * NR, acc);
                STEP_ENDS;
            }
        }
        for (; p < k; p++, b += NR) step_of_rows(rows, vectors, a, p, b, acc);
    } else {
        /* one pointer for three rows: the others are reached by index and index * 2 */
        const real *group[(MR + 2) / 3];
        UNROLL for (int i = 0; i < rows; i += 3) group[i / 3] = t->a + (first + i) * rs;
        for (int64_t p = 0; p < t->k;) {
            if (rows == MR) load_rows_ahead(t, first, p);
            for (const int64_t end = p + LINE < t->k ? p + LINE : t->k; p < end; p++, b += NR) {
                aligned_vec bv[NV];
                load_row(vectors, b, bv);
                UNROLL for (int i = 0; i < rows; i++) {
                    const real ai = group[i / 3][(i % 3) * rs];
                    UNROLL for (int v = 0; v < vectors; v++) acc[i][v] += ai * bv[v];
                }
                UNROLL for (int i = 0; i < rows; i += 3) group[i / 3]++;
            }
        }
    }
    const int part = t->n % V != 0;
    if (t->beta == 0) {
        if (part)
            store_rows(acc, rows, vectors, 0, 1, t, first);
        else
            store_rows(acc, rows, vectors, 0, 0, t, first);
    } else {
        if (part)
            store_rows(acc, rows, vectors, 1, 1, t, first);
        else
            store_rows(acc, rows, vectors, 1, 0, t, first);
    }
}

/* Each height and width is a function of its own: of larger ones clang leaves the accumulators in memory. */
typedef void (*piece_fn)(const DT(ukr_call) * t, int64_t first);
#define PIECE(name, rows, vectors)                                                            \
    TARGET NOINLINE void packed_##name##_##vectors(const DT(ukr_call) * t, int64_t first) {   \
        piece(rows, vectors, 1, t, first);                                                    \
    }                                                                                         \
    TARGET NOINLINE void in_place_##name##_##vectors(const DT(ukr_call) * t, int64_t first) { \
        piece(rows, vectors, 0, t, first);                                                    \
    }
#define PIECES(vectors)                  \
    PIECE(all, MR, vectors)              \
    PIECE(8, (MR > 8 ? 8 : MR), vectors) \
    PIECE(4, (MR > 4 ? 4 : MR), vectors) \
    PIECE(2, 2, vectors)                 \
    PIECE(1, 1, vectors)
#define NAMES(name, vectors) {in_place_##name##_##vectors, packed_##name##_##vectors}
#define WIDTH(vectors) {NAMES(all, vectors), NAMES(8, vectors), NAMES(4, vectors), NAMES(2, vectors), NAMES(1, vectors)}

PIECES(1)
#if NV > 1
PIECES(2)
#endif
#if NV > 2
PIECES(3)
#endif

enum { HEIGHTS = 5 };
static const int heights[HEIGHTS] = {MR, 8, 4, 2, 1};
static const piece_fn pieces[NV][HEIGHTS][2] = {
    WIDTH(1),
#if NV > 1
    WIDTH(2),
#endif
#if NV > 2
    WIDTH(3),
#endif
};

/* The tile, in pieces where it is not whole. */
static void run(const DT(ukr_row) * row, const DT(ukr_call) * t) {
    (void)row;
    const int packed = t->rs_a == 1;
    const piece_fn(*of_width)[2] = pieces[(t->n + V - 1) / V - 1];
    int h = 0;
    for (int64_t i = 0; i < t->m; i += heights[h]) {
        while (heights[h] > t->m - i) h++;
        of_width[h][packed](t, i);
    }
}

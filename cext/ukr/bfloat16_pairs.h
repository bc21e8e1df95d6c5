/* Micro-kernels of vectors for pairs of bfloat16, written once for all vector lengths.
 *
 *   C (m x NR) = beta * C + sum over steps of A (m x k) * B (k x NR)                        (dtconv_ukr.h)
 *
 * The including file defines before it VBYTES, NV (vectors in a row of the tile), MR, TARGET, and gets `run`.  Where
 * PRODUCT(sum, a, b) is defined, it adds the products of pairs to a vector of sums (vdpbf16ps): a pair of A is
 * broadcast and meets vectors of pairs of B.  Else a chunk of A is widened in the L1 cache, the first elements of pairs
 * of B in registers, and multiplied in float32; then the second ones.  FINISHES, where it is defined, is the file with
 * finish(rows, sum, finish, i), which does what ukr_call.finish asks for, and finish_few(), the same in memory.  Where
 * ROW is defined, with NAME, FEATURES and RANK, it is made, too.
 */
#include <string.h>

#include "dtconv_inline.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

#define V ((int)(VBYTES / sizeof(real)))
#define NR (NV * V)

typedef real vec __attribute__((vector_size(VBYTES)));
typedef real loose_vec __attribute__((vector_size(VBYTES), aligned(sizeof(real)), may_alias));
typedef uint32_t pairs __attribute__((vector_size(VBYTES)));
typedef uint32_t loose_pairs __attribute__((vector_size(VBYTES), aligned(sizeof(elem)), may_alias));

#ifdef FINISHES
#include FINISHES
#endif

#ifdef PRODUCT
TARGET INLINE pairs broadcast(const elem *a) {
    uint32_t pair;
    memcpy(&pair, a, sizeof pair);
    return (pairs){0} + pair;
}

/* sum += the products of a pair of each row of A and pairs of B */
TARGET INLINE void step(int rows, const elem *a, int64_t rs, const elem *b, vec (*sum)[NV]) {
    pairs bv[NV];
    UNROLL for (int v = 0; v < NV; v++) bv[v] = *(const loose_pairs *)(b + 2 * v * V);
    UNROLL for (int r = 0; r < rows; r++) {
        const pairs av = broadcast(a + r * rs);
        UNROLL for (int v = 0; v < NV; v++) sum[r][v] = PRODUCT(sum[r][v], av, bv[v]);
    }
}
#else
/* sum += a * b.  Compilers put the result into a's register now and then, and move it; one sum then lies in memory,
 * and its way through there is longer than all the rest of the loop. */
#if defined(__x86_64__) && !defined(DTCONV_EMULATED)
#define MULTIPLY_ADD(sum, a, b) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#else
#define MULTIPLY_ADD(sum, a, b) (sum) += (a) * (b)
#endif

enum {
    CHUNK = 64, /* pairs of a row of A that are widened at a time */
    /* between rows: whole vectors, which are stored as such; and more than CHUNK, for other sets of the cache */
    WIDE_ROW = CHUNK + (V > 8 ? V : 8)
};
_Static_assert(WIDE_ROW % V == 0, "rows of pairs that are widened begin where a vector may be stored");

TARGET INLINE vec first(pairs x) { return (vec)(x << 16); }

/* By a mask where there is a register for it, else by two shifts; a mask in memory would be loaded again each time. */
TARGET INLINE vec second(pairs x) {
    if (VBYTES == 64) {
        pairs mask = (pairs){0} + 0xffff0000u;
        KEEP_VECTOR(mask);
        return (vec)(x & mask);
    }
    x >>= 16;
    KEEP_VECTOR(x);
    return (vec)(x << 16);
}

/* First and second elements of the pairs of some rows of A, in float32. */
typedef real wide_rows[2][MR][WIDE_ROW] __attribute__((aligned(VBYTES)));

TARGET INLINE void widen_rows(int rows, int64_t count, const elem *a, int64_t rs, wide_rows to) {
    int64_t p = 0;
    for (; p + V <= count; p += V) {
        UNROLL for (int r = 0; r < rows; r++) {
            const pairs both = *(const loose_pairs *)(a + r * rs + 2 * p);
            *(vec *)(to[0][r] + p) = first(both);
            *(vec *)(to[1][r] + p) = second(both);
        }
    }
    for (; p < count; p++)
        for (int r = 0; r < rows; r++)
            to[0][r][p] = widen(a[r * rs + 2 * p]), to[1][r][p] = widen(a[r * rs + 2 * p + 1]);
}

/* sum += the products of the first (which: 0) or the second elements (1) of pairs */
TARGET INLINE void add_products(int rows, vec sum[MR][NV], const real (*a)[WIDE_ROW], int64_t p, const elem *b,
                                int which) {
    vec bv[NV];
    UNROLL for (int v = 0; v < NV; v++) {
        const pairs both = *(const loose_pairs *)(b + 2 * v * V);
        bv[v] = which ? second(both) : first(both);
    }
    UNROLL for (int r = 0; r < rows; r++) {
        const vec av = a[r][p] - (vec){0};
        UNROLL for (int v = 0; v < NV; v++) MULTIPLY_ADD(sum[r][v], av, bv[v]);
    }
    __asm__ volatile("" ::: "memory"); /* pairs are loaded again for the others: registers are left to the tile */
}
#endif

/* `rows` (a constant) of the tile from row i on, at distance rs, while lines [first, last) of ukr_call.fetch are
 * fetched. */
TARGET INLINE void piece(int rows, int64_t rs, const DT(ukr_call) * t, int64_t i, int64_t first, int64_t last) {
    vec sum[MR][NV];
    real *c = t->c + i * t->ldc;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) {
        sum[r][v] = t->beta == 0 ? (vec){0} : (vec) * (const loose_vec *)(c + r * t->ldc + v * V);
    }
#ifndef PRODUCT
    (void)first, (void)last;
#else
    const void *const *fetch = t->fetch + first;
    int64_t left = rows == MR ? last - first : 0;
    const int64_t next = t->cs_a > 1 ? t->cs_a : 2;
#endif
    for (int64_t s = 0; s < t->step_count; s++) {
        const elem *a = t->a + t->steps[s].a + i * rs, *b = t->b + t->steps[s].b;
#ifdef PRODUCT
        const int64_t here = left < t->k / 2 ? left : t->k / 2;
        for (int64_t p = 0; p < here; p++, a += next, b += 2 * NR) {
            __builtin_prefetch(*fetch++, 0, 2);
            step(rows, a, rs, b, sum);
        }
        for (int64_t p = here; p < t->k / 2; p++, a += next, b += 2 * NR) step(rows, a, rs, b, sum);
        left -= here;
#else
        for (int64_t left = t->k / 2; left > 0; left -= CHUNK, a += 2 * CHUNK) {
            wide_rows wide;
            const int64_t count = left < CHUNK ? left : CHUNK;
            widen_rows(rows, count, a, rs, wide);
            for (int64_t p = 0; p < count; p++, b += 2 * NR) {
                add_products(rows, sum, wide[0], p, b, 0);
                add_products(rows, sum, wide[1], p, b, 1);
            }
        }
#endif
    }
#ifdef FINISHES
    if (t->finish && rows == MR) {
        finish(rows, sum, t->finish, i);
        return;
    }
    if (t->finish) {
        vec copy[MR][NV];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) copy[r][v] = sum[r][v];
        finish_few(rows, copy, t->finish, i);
        return;
    }
#endif
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) * (loose_vec *)(c + r * t->ldc + v * V) =
        sum[r][v];
}

typedef void (*piece_fn)(const DT(ukr_call) * t, int64_t i, int64_t first, int64_t last);

/* A function for each number of rows: what is left of whole tiles is one piece. */
#define PIECE(name, rs, rows)                                                                            \
    TARGET NOINLINE void name##_##rows(const DT(ukr_call) * t, int64_t i, int64_t first, int64_t last) { \
        piece(rows, rs, t, i, first, last);                                                              \
    }
#define PIECE_NAME(name, rs, rows) name##_##rows,
#define UP_TO_6(X, name, rs) X(name, rs, 1) X(name, rs, 2) X(name, rs, 3) X(name, rs, 4) X(name, rs, 5) X(name, rs, 6)
#define UP_TO_8(X, name, rs) UP_TO_6(X, name, rs) X(name, rs, 7) X(name, rs, 8)
#define UP_TO_12(X, name, rs) UP_TO_8(X, name, rs) X(name, rs, 9) X(name, rs, 10) X(name, rs, 11) X(name, rs, 12)
#define UP_TO_14(X, name, rs) UP_TO_12(X, name, rs) X(name, rs, 13) X(name, rs, 14)
#if MR == 6
#define EACH_HEIGHT UP_TO_6
#elif MR == 8
#define EACH_HEIGHT UP_TO_8
#elif MR == 12
#define EACH_HEIGHT UP_TO_12
#elif MR == 14
#define EACH_HEIGHT UP_TO_14
#endif

/* All rows of a call, and its lines, an equal share of them with each whole tile. */
INLINE void run_pieces(const DT(ukr_call) * t, const piece_fn *pieces) {
    const int64_t whole = t->m / MR, each = whole > 1 ? (t->fetch_count + whole - 1) / whole : t->fetch_count;
    int64_t i = 0, first = 0;
    for (; i + MR <= t->m; i += MR) {
        const int64_t last = first + each < t->fetch_count ? first + each : t->fetch_count;
        pieces[MR](t, i, first, last);
        first = last;
    }
    if (i < t->m) pieces[t->m - i](t, i, 0, 0);
}

#define PIECES(name, rs)                                                                     \
    EACH_HEIGHT(PIECE, name, rs)                                                             \
    static const piece_fn name##_pieces[MR + 1] = {NULL, EACH_HEIGHT(PIECE_NAME, name, rs)}; \
    static void run_##name(const DT(ukr_call) * t) { run_pieces(t, name##_pieces); }

PIECES(rows, t->rs_a)
#ifdef PRODUCT
PIECES(pairs_in_a_row, 2) /* pairs of all rows side by side: constants in place of indices */
#endif

static void run(const DT(ukr_row) * row, const DT(ukr_call) * t) {
    (void)row;
#ifdef PRODUCT
    if (t->rs_a == 2) {
        run_pairs_in_a_row(t);
        return;
    }
#endif
    run_rows(t);
}

#ifdef ROW
const DT(ukr_row) ROW = {.name = NAME,
                         .mr = MR,
                         .nr = NR,
                         .features = FEATURES,
                         .rank = RANK,
                         .in_place = 1,
                         .run = run,
                         .rows = 1,
                         .depth = 2,
                         .widens = 1};
#endif

/* Micro-kernels of vectors for pairs of bfloat16, written once for all vector lengths.
 *
 *   C (m x NR) = beta * C + sum over steps of A (m x k) * B (k x NR)                        (dtconv_ukr.h)
 *
 * The including file defines before it VBYTES, NV (vectors in a row of the tile), MR, TARGET, and gets `run`.  A pair
 * of A is broadcast and meets vectors of pairs of B.  Where PRODUCT(sum, a, b) is defined, it adds the products of
 * pairs to a vector of sums (vdpbf16ps); else the first elements of pairs are widened and multiplied in float32, and
 * then the second ones.  Pairs are loaded for each of both, which leaves more registers to the tile.
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

#define FORGET_LOADS __asm__ volatile("" ::: "memory")
#if defined(__x86_64__)
/* x stays in the register where it is, and what makes it is not moved */
#define KEEP_VECTOR(x) __asm__ volatile("" : "+v"(x))
#else
#define KEEP_VECTOR(x) (void)0
#endif

TARGET INLINE pairs broadcast(const elem *a) {
    uint32_t pair;
    memcpy(&pair, a, sizeof pair);
    return (pairs){0} + pair;
}

#ifndef PRODUCT
/* the first or the second elements of pairs, in float32 */
TARGET INLINE vec widened(pairs x, int second) { return (vec)(second ? x & 0xffff0000u : x << 16); }

/* sum += the products of the first or the second elements of pairs */
TARGET INLINE void add_products(int rows, vec sum[MR][NV], const elem *a, int64_t rs, const elem *b, int second) {
    vec bv[NV];
    UNROLL for (int v = 0; v < NV; v++) bv[v] = widened(*(const loose_pairs *)(b + 2 * v * V), second);
    UNROLL for (int r = 0; r < rows; r++) {
        pairs pair = broadcast(a + r * rs);
        KEEP_VECTOR(pair); /* else it is widened before it is broadcast, in registers of integers, which is slower */
        const vec av = widened(pair, second);
        UNROLL for (int v = 0; v < NV; v++) {
            sum[r][v] += av * bv[v];
            KEEP_VECTOR(sum[r][v]);
        }
    }
}
#endif

/* `rows` (a constant) of the tile from row i on. */
TARGET INLINE void piece(int rows, const DT(ukr_call) * t, int64_t i) {
    vec sum[MR][NV];
    const int64_t rs = t->rs_a, pairs_in_step = t->k / 2;
    real *c = t->c + i * t->ldc;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) {
        sum[r][v] = t->beta == 0 ? (vec){0} : (vec) * (const loose_vec *)(c + r * t->ldc + v * V);
    }
    for (int64_t s = 0; s < t->step_count; s++) {
        const elem *a = t->a + t->steps[s].a + i * rs, *b = t->b + t->steps[s].b;
        for (int64_t p = 0; p < pairs_in_step; p++, a += 2, b += 2 * NR) {
#ifdef PRODUCT
            pairs bv[NV];
            UNROLL for (int v = 0; v < NV; v++) bv[v] = *(const loose_pairs *)(b + 2 * v * V);
            UNROLL for (int r = 0; r < rows; r++) {
                const pairs av = broadcast(a + r * rs);
                UNROLL for (int v = 0; v < NV; v++) sum[r][v] = PRODUCT(sum[r][v], av, bv[v]);
            }
#else
            add_products(rows, sum, a, rs, b, 0);
            FORGET_LOADS;
            add_products(rows, sum, a, rs, b, 1);
            FORGET_LOADS;
#endif
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) * (loose_vec *)(c + r * t->ldc + v * V) =
        sum[r][v];
}

TARGET NOINLINE void piece_all(const DT(ukr_call) * t, int64_t i) { piece(MR, t, i); }
TARGET NOINLINE void piece_half(const DT(ukr_call) * t, int64_t i) { piece((MR + 1) / 2, t, i); }
TARGET NOINLINE void piece_2(const DT(ukr_call) * t, int64_t i) { piece(2, t, i); }
TARGET NOINLINE void piece_1(const DT(ukr_call) * t, int64_t i) { piece(1, t, i); }

static void run(const DT(ukr_row) * row, const DT(ukr_call) * t) {
    (void)row;
    int64_t i = 0;
    for (; i + MR <= t->m; i += MR) piece_all(t, i);
    for (; i + (MR + 1) / 2 <= t->m; i += (MR + 1) / 2) piece_half(t, i);
    for (; i + 2 <= t->m; i += 2) piece_2(t, i);
    for (; i < t->m; i++) piece_1(t, i);
}

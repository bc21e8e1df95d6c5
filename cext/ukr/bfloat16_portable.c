/* Plain C, for any CPU, as the reference of the self-test and as the model of AMX.
 *
 * The sum has AMX's order (Intel's manual, TDPBF16PS): in each block of 32 steps of k, first and second elements of
 * pairs are summed apart, from 0 on; both sums are added to each other, and what comes out to C.  Products of bfloat16
 * values are exact in float32, so fused and separate multiply-adds give the same bits; only denormal numbers differ,
 * which AMX takes for 0.
 */
#include "dtconv_cpu.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

enum { MR = 4, NR = 16, BLOCK = 32 };

static void block_of(const elem *a, int64_t next, const elem *b, int64_t k, real *c) {
    real first[NR] = {0}, second[NR] = {0};
    for (int64_t p = 0; p < k; p += 2, a += next, b += 2 * NR) {
        const real a0 = widen(a[0]), a1 = widen(a[1]);
        for (int j = 0; j < NR; j++) {
            first[j] += a0 * widen(b[2 * j]);
            second[j] += a1 * widen(b[2 * j + 1]);
        }
    }
    for (int j = 0; j < NR; j++) c[j] += first[j] + second[j];
}

static void run(const DT(ukr_row) * row, const DT(ukr_call) * t) {
    (void)row;
    const int64_t next = t->cs_a > 1 ? t->cs_a : 2; /* pairs */
    for (int64_t i = 0; i < t->m; i++) {
        real *c = t->c + i * t->ldc;
        for (int j = 0; j < NR && t->beta == 0; j++) c[j] = 0;
        for (int64_t s = 0; s < t->step_count; s++) {
            const elem *a = t->a + t->steps[s].a + i * t->rs_a, *b = t->b + t->steps[s].b;
            for (int64_t p = 0; p < t->k; p += BLOCK)
                block_of(a + p / 2 * next, next, b + p * NR, t->k - p < BLOCK ? t->k - p : BLOCK, c);
        }
    }
}

const DT(ukr_row) DT(ukr_pairs_portable) = {.name = "portable_4x16",
                                            .mr = MR,
                                            .nr = NR,
                                            .features = 0,
                                            .rank = 90,
                                            .in_place = 1,
                                            .run = run,
                                            .rows = 1,
                                            .depth = 2,
                                            .widens = 1,
                                            .models_amx = 1,
                                            .strided = 1};

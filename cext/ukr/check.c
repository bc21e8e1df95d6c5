/* Self-test and speed of a micro-kernel.
 *
 * The self-test runs it and the portable kernel on full tiles and edge tiles (m in {MR, MR - 1, 1}, n in {NR, NR - 1,
 * 1}), for several k, alpha and beta, with C in a wider matrix whose border must stay untouched, packed and, where the
 * kernel can, with A in place.
 */
#include <string.h>

#include "dtconv_real.h"
#include "dtconv_ukr.h"

enum { K_MOST = 37, MR_MOST = DTCONV_UKR_MAX_MR, NR_MOST = DTCONV_UKR_MAX_NR, LD = NR_MOST + 5 };

extern const DT(ukr_row) DT(ukr_native_portable);

typedef struct {
    real a[MR_MOST * K_MOST], b[NR_MOST * K_MOST], c[2][(MR_MOST + 1) * LD], small[DTCONV_UKR_MAX_NR * K_MOST];
} buffers;

/* Numbers in [-1, 1) that are the same everywhere. */
static void fill(real *x, int64_t count, uint32_t seed) {
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (real)(int32_t)seed / (real)2147483648.0;
    }
}

/* The same product by the portable kernel, piece by piece in its own tile; A and B as `t` has them, B in panels of nr.
 */
static void reference(const DT(ukr_call) * t, int nr, real *small) {
    const DT(ukr_row) *portable = &DT(ukr_native_portable);
    for (int64_t j = 0; j < t->n; j += portable->nr) {
        for (int64_t p = 0; p < t->k; p++)
            for (int64_t jj = 0; jj < portable->nr; jj++)
                small[p * portable->nr + jj] = j + jj < nr ? t->b[p * nr + j + jj] : 0;
        for (int64_t i = 0; i < t->m; i += portable->mr) {
            DT(ukr_call) piece = *t;
            piece.m = t->m - i < portable->mr ? t->m - i : portable->mr;
            piece.n = t->n - j < portable->nr ? t->n - j : portable->nr;
            piece.a += i * t->rs_a;
            piece.b = small;
            piece.c += i * t->ldc + j;
            portable->run(portable, &piece);
        }
    }
}

/* Largest difference of the two C, over the whole of them, in units of the tolerance. */
static double difference(const buffers *x, int64_t k) {
    double worst = 0;
    for (int64_t i = 0; i < (MR_MOST + 1) * LD; i++) {
        double d = (double)x->c[0][i] - (double)x->c[1][i];
        d = d < 0 ? -d : d;
        if (!(d <= worst)) worst = d; /* NaN counts */
    }
    return worst / (8 * REAL_EPS * (double)(k + 1));
}

static double check_one(const DT(ukr_row) * row, buffers *x, int64_t m, int64_t n, int64_t k, int in_place, real alpha,
                        real beta) {
    fill(x->a, MR_MOST * K_MOST, 1);
    fill(x->b, NR_MOST * K_MOST, 2);
    fill(x->c[0], (MR_MOST + 1) * LD, 3);
    if (beta == 0) memset(x->c[0], 0xff, (size_t)((MR_MOST + 1) * LD) * sizeof(real)); /* NaN: must not be read */
    for (int64_t i = 0; beta == 0 && i < (MR_MOST + 1) * LD; i++)
        if (i % LD >= n || i / LD >= m) x->c[0][i] = (real)0.25;
    memcpy(x->c[1], x->c[0], sizeof x->c[0]);
    DT(ukr_call)
    t = {.m = m,
         .n = n,
         .k = k,
         .alpha = alpha,
         .a = x->a,
         .rs_a = 1,
         .cs_a = row->mr,
         .b = x->b,
         .beta = beta,
         .c = x->c[0],
         .ldc = LD,
         .a_next = x->a,
         .b_next = x->b};
    if (in_place) t.rs_a = K_MOST, t.cs_a = 1;
    row->run(row, &t);
    t.c = x->c[1];
    reference(&t, row->nr, x->small);
    return difference(x, k);
}

double DT(ukr_check)(const DT(ukr_row) * row) {
    buffers x __attribute__((aligned(64)));
    const int64_t ms[] = {row->mr, row->mr - 1, 1}, ns[] = {row->nr, row->nr - 1, 1}, ks[] = {1, 4, K_MOST};
    const real scales[][2] = {{1, 0}, {1, 1}, {(real)-0.5, (real)0.75}};
    double worst = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int p = 0; p < 3; p++)
                for (int s = 0; s < 3; s++)
                    for (int in_place = 0; in_place <= (row->in_place != 0); in_place++) {
                        if (ms[i] < 1 || ns[j] < 1) continue;
                        double d = check_one(row, &x, ms[i], ns[j], ks[p], in_place, scales[s][0], scales[s][1]);
                        if (!(d <= worst)) worst = d;
                    }
    return worst;
}

void DT(ukr_repeat)(const DT(ukr_row) * row, int64_t repeats, int64_t k, const real *a, const real *b, real *c) {
    const DT(ukr_call) t = {.m = row->mr,
                            .n = row->nr,
                            .k = k,
                            .alpha = 1,
                            .a = a,
                            .rs_a = 1,
                            .cs_a = row->mr,
                            .b = b,
                            .beta = 0,
                            .c = c,
                            .ldc = row->nr,
                            .a_next = a,
                            .b_next = b};
    for (int64_t i = 0; i < repeats; i++) row->run(row, &t);
}

/* The self-test of micro-kernels for bfloat16: each against sums in double precision, on whole and edge tiles, with one
 * and with several steps, with rows that it finishes, and with what must not be touched around them. */
#include "dtconv_real.h"
#include "dtconv_ukr.h"

enum { MR_MOST = DTCONV_UKR_MAX_MR, NR_MOST = DTCONV_UKR_MAX_NR, K_MOST = 96, STEPS = 3, LD = NR_MOST + 5 };

typedef struct {
    elem a[STEPS * (MR_MOST + 1) * K_MOST], b[STEPS * NR_MOST * K_MOST];
    real c[MR_MOST * LD], before[MR_MOST * LD];
    elem to[MR_MOST * LD], added[MR_MOST * LD]; /* of kernels that finish rows */
    real bias[NR_MOST];
} buffers;

/* Small numbers of both signs; many of them have 8 bits of precision. */
static real value(uint32_t seed) {
    const uint32_t h = (seed * 2654435761u) ^ (seed >> 7);
    return (real)((int32_t)(h >> 8 & 511) - 255) / 64;
}

static void fill(elem *x, int64_t count, uint32_t seed) {
    for (int64_t i = 0; i < count; i++) x[i] = narrow(value((uint32_t)i * 31 + seed));
}

static double expected(const DT(ukr_call) * t, int64_t nr, int64_t i, int64_t j, double before, double *size) {
    double sum = t->beta == 0 ? 0 : before;
    *size = sum < 0 ? -sum : sum;
    const int64_t next = t->cs_a > 1 ? t->cs_a : 2;
    for (int64_t s = 0; s < t->step_count; s++)
        for (int64_t p = 0; p < t->k; p++) {
            const double a = (double)widen(t->a[t->steps[s].a + i * t->rs_a + p / 2 * next + p % 2]);
            const double product = a * (double)widen(t->b[t->steps[s].b + p / 2 * 2 * nr + 2 * j + p % 2]);
            sum += product;
            *size += product < 0 ? -product : product;
        }
    return sum;
}

/* Largest error in units of the tolerance. */
static double difference(const DT(ukr_row) * row, const DT(ukr_call) * t, const buffers *x) {
    const int64_t written = (t->m + row->rows - 1) / row->rows * row->rows;
    double worst = 0;
    for (int64_t i = 0; i < MR_MOST; i++)
        for (int64_t j = 0; j < LD; j++) {
            if (i >= t->m && i < written && j < row->nr) continue;
            double size = 0, right = (double)x->before[i * LD + j];
            if (i < t->m && j < row->nr) right = expected(t, row->nr, i, j, right, &size);
            double error = (double)x->c[i * LD + j] - right;
            error = error < 0 ? -error : error;
            if (size > 0) error /= (double)REAL_EPS * 4 * size;
            if (!(error <= worst)) worst = error; /* NaN counts; what must not be touched is exact or counts as 1e9 */
            if (size == 0 && error > 0) worst = 1e9;
        }
    return worst;
}

/* apart: pairs of a row of A lie apart, and those of all rows side by side. */
static double check_one(const DT(ukr_row) * row, buffers *x, int64_t m, int64_t k, int64_t steps, real beta,
                        int apart) {
    dtconv_ukr_step step[STEPS];
    for (int64_t s = 0; s < STEPS; s++)
        step[s] = (dtconv_ukr_step){(STEPS - 1 - s) * (MR_MOST + 1) * K_MOST, s * NR_MOST * K_MOST};
    fill(x->a, STEPS * (MR_MOST + 1) * K_MOST, 1);
    fill(x->b, STEPS * NR_MOST * K_MOST, 2);
    for (int64_t i = 0; i < MR_MOST * LD; i++) x->before[i] = x->c[i] = value((uint32_t)i + 3);
    for (int64_t i = 0; beta == 0 && i < m; i++)
        for (int64_t j = 0; j < row->nr; j++) {
            const uint32_t nan = 0x7fc00000; /* must not be read */
            memcpy(&x->c[i * LD + j], &nan, sizeof nan);
        }
    const DT(ukr_call) t = {.m = m,
                            .n = row->nr,
                            .k = k,
                            .alpha = 1,
                            .a = x->a,
                            .rs_a = apart ? 2 : K_MOST,
                            .cs_a = apart ? 2 * MR_MOST : 1,
                            .b = x->b,
                            .beta = beta,
                            .c = x->c,
                            .ldc = LD,
                            .steps = step,
                            .step_count = steps};
    if (row->begin) row->begin();
    row->run(row, &t);
    if (row->end) row->end();
    return difference(row, &t, x);
}

/* Largest error of finished rows: half a unit of bfloat16 and that of the sum count as 1. */
static double check_finish(const DT(ukr_row) * row, buffers *x, int64_t m, int64_t k, int adds, int relu) {
    const dtconv_ukr_step step = {0, 0};
    elem *to[MR_MOST];
    const elem *added[MR_MOST];
    const elem mark = 0x1234;
    fill(x->a, (MR_MOST + 1) * K_MOST, 5);
    fill(x->b, NR_MOST * K_MOST, 6);
    fill(x->added, MR_MOST * LD, 7);
    for (int64_t j = 0; j < NR_MOST; j++) x->bias[j] = value((uint32_t)j + 8);
    for (int64_t i = 0; i < MR_MOST * LD; i++) x->to[i] = mark;
    for (int64_t i = 0; i < MR_MOST; i++) to[i] = x->to + i * LD, added[i] = x->added + i * LD;
    const DT(ukr_finish) finish = {to, adds ? added : NULL, adds ? x->bias : NULL, relu};
    const DT(ukr_call) t = {.m = m,
                            .n = row->nr,
                            .k = k,
                            .alpha = 1,
                            .a = x->a,
                            .rs_a = K_MOST,
                            .cs_a = 1,
                            .b = x->b,
                            .c = x->c,
                            .ldc = LD,
                            .steps = &step,
                            .step_count = 1,
                            .finish = &finish};
    if (row->begin) row->begin();
    row->run(row, &t);
    if (row->end) row->end();
    double worst = 0;
    for (int64_t i = 0; i < MR_MOST; i++)
        for (int64_t j = 0; j < LD; j++) {
            if (i >= m || j >= row->nr) {
                if (x->to[i * LD + j] != mark) worst = 1e9;
                continue;
            }
            double size, right = expected(&t, row->nr, i, j, 0, &size);
            if (adds) right += (double)x->bias[j] + (double)widen(x->added[i * LD + j]);
            if (relu && right < 0) right = 0;
            double error = (double)widen(x->to[i * LD + j]) - right;
            error = error < 0 ? -error : error;
            error /= (right < 0 ? -right : right) / 256 + (double)REAL_EPS * 8 * (size + 4);
            if (!(error <= worst)) worst = error;
        }
    return worst;
}

double DT(ukr_check)(const DT(ukr_row) * row) {
    buffers x __attribute__((aligned(64)));
    const int64_t most = row->fetches && 2 * row->mr <= MR_MOST ? 2 * row->mr : row->mr; /* more than a tile */
    const int64_t ks[] = {row->depth, K_MOST};
    double worst = 0;
    for (int64_t m = 1; m <= most; m++) {
        for (int p = 0; p < 2; p++)
            for (int64_t steps = 1; steps <= STEPS; steps += STEPS - 1)
                for (int beta = 0; beta <= 1; beta++)
                    for (int apart = 0; apart <= row->strided; apart++) {
                        const double d = check_one(row, &x, m, ks[p], steps, (real)beta, apart);
                        if (!(d <= worst)) worst = d;
                    }
        for (int kind = 0; row->finishes && kind < 4; kind++) {
            const double d = check_finish(row, &x, m, K_MOST, kind % 2, kind / 2);
            if (!(d <= worst)) worst = d;
        }
    }
    return worst;
}

/* A in tiles of 32 columns, as GEMM packs it; a k of up to 32 * PIECES counts. */
void DT(ukr_repeat)(const DT(ukr_row) * row, int64_t repeats, int64_t k, const elem *a, const elem *b, real *c) {
    enum { PIECES = 64, WIDTH = 32 };
    dtconv_ukr_step steps[PIECES];
    const int64_t count = k / WIDTH < PIECES ? k / WIDTH : PIECES;
    for (int64_t s = 0; s < count; s++) steps[s] = (dtconv_ukr_step){s * WIDTH * row->mr, s * WIDTH * row->nr};
    const DT(ukr_call) t = {.m = row->mr,
                            .n = row->nr,
                            .k = WIDTH,
                            .alpha = 1,
                            .a = a,
                            .rs_a = WIDTH,
                            .cs_a = 1,
                            .b = b,
                            .beta = 0,
                            .c = c,
                            .ldc = row->nr,
                            .steps = steps,
                            .step_count = count};
    if (row->begin) row->begin();
    for (int64_t i = 0; i < repeats; i++) row->run(row, &t);
    if (row->end) row->end();
}

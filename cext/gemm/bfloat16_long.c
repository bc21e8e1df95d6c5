/* Products of bfloat16 whose sums are long and whose results are small, as gradients of filters are:
 *
 *   C (m x n) = sum over slices   A[:, slice] * B[slice, :]
 *
 * A slice of k has a matrix of sums in float32 of its own, which stays in the second cache; slices are added in order.
 * They depend on the sizes alone, and so does the result.
 *
 *   slices   shared out among threads
 *     pc       walks a slice in steps of KC: packs B[pc, :], which stays in the second cache
 *       ir       packs MR rows of A[:, pc], while those after them are fetched
 *         jr     tiles of sums, to which KC products are added
 */
#include "bfloat16_long.h"

#include "dtconv_lines.h"
#include "dtconv_thread_id.h"

enum {
    LONG = 8192,          /* terms of a sum */
    SLICES = 16,          /* at most */
    SUMS_BYTES = 4 << 20, /* of all slices */
    B_BYTES = 384 << 10,  /* of a step */
    KC_LEAST = 256,
    KC_MOST = 2048,
    LINE = 64, /* bytes that are fetched at once */
    LINES = KC_MOST / 2,
};

typedef struct {
    const DT(ukr_row) * ukr;
    const dtconv_gemm_mixed_args *g;
    int64_t slices, depth, kc, height, ld, panels; /* depth: of a slice, in whole steps of the micro-kernel */
    int64_t a_size, b_size, sums;                  /* elements of a half of a thread's A and B; of a slice */
    int products, halves;
} product;

int64_t DT(gemm_slices)(int64_t m, int64_t n, int64_t k) {
    if (k < LONG || m > SUMS_BYTES / (int64_t)sizeof(real) / n) return 0;
    const int64_t most = min(SLICES, SUMS_BYTES / ((int64_t)sizeof(real) * m * n));
    int64_t slices = 1;
    while (slices * 2 <= most && k / (slices * 2) >= KC_MOST) slices *= 2;
    return slices > 1 ? slices : 0;
}

static product cut(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int products) {
    product s = {.ukr = ukr, .slices = DT(gemm_slices)(m, n, k), .products = products, .halves = products == 1 ? 1 : 2};
    s.depth = round_up(ceil_div(k, s.slices), SQUARE);
    s.height = round_up(ukr->mr, ukr->rows);
    s.panels = ceil_div(n, ukr->nr), s.ld = s.panels * ukr->nr;
    const int64_t fits = B_BYTES / (s.ld * s.halves * (int64_t)sizeof(elem)) / SQUARE * SQUARE;
    s.kc = min(s.depth, fits < KC_LEAST ? KC_LEAST : fits > KC_MOST ? KC_MOST : fits);
    s.kc = round_up(ceil_div(s.depth, ceil_div(s.depth, s.kc)), SQUARE);
    s.a_size = round_up(s.height * s.kc, 64), s.b_size = round_up(s.ld * s.kc, 64);
    s.sums = round_up(round_up(m, ukr->rows) * s.ld, 64); /* rows that a kernel writes as well */
    return s;
}

static size_t of_thread(const product *s) {
    const int64_t look_ahead = 4096;
    const int64_t steps = round_up(s->kc / SQUARE * s->products * (int64_t)sizeof(dtconv_ukr_step), 64);
    return (size_t)(steps + (s->halves * (s->a_size + s->b_size) + 2 * look_ahead) * (int64_t)sizeof(elem));
}

size_t DT(gemm_long_workspace)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int products, int threads) {
    const product s = cut(ukr, m, n, k, products);
    return 64 + (size_t)(s.slices * s.sums) * sizeof(real) + (size_t)threads * of_thread(&s);
}

/* The part of an operand that begins with term p of the sum; step: elements from term to term. */
static dtconv_operand from_term(const dtconv_operand *of, int64_t p, int64_t step, int low) {
    dtconv_operand part = *of;
    const int64_t size = of->bfloat16 ? (int64_t)sizeof(elem) : (int64_t)sizeof(real);
    part.data = (const char *)of->data + p * step * size;
    part.low = low;
    return part;
}

/* Terms [p, p + k) of all columns, packed, ... */
static void pack_columns(const product *s, int64_t p, int64_t k, int64_t depth, elem *b) {
    const int64_t nr = s->ukr->nr;
    for (int low = 0; low < s->halves; low++, b += s->b_size) {
        const dtconv_operand y = from_term(&s->g->b, p, s->g->b.rs, low);
        for (int64_t j = 0; j < s->panels; j++)
            DT(pack_panel)(&y, k, depth, j * nr, min(nr, s->g->n - j * nr), nr, b + j * depth * nr);
    }
}

/* ... and of m rows from i on. */
static void pack_tile(const product *s, int64_t p, int64_t k, int64_t i, int64_t m, elem *a) {
    for (int low = 0; low < s->halves; low++, a += s->a_size) {
        const dtconv_operand x = from_term(&s->g->a, p, s->g->a.cs, low);
        DT(pack_rows)(&x, i, m, k, s->height, a);
    }
}

/* Lines of rows [i, i + m) and columns [j, j + n); none where its elements lie apart, or m or n is not positive. */
static dtconv_lines lines_of(const dtconv_operand *x, int64_t i, int64_t m, int64_t j, int64_t n) {
    const int64_t size = x->bfloat16 ? (int64_t)sizeof(elem) : (int64_t)sizeof(real);
    const int by_rows = x->cs == 1, exists = m > 0 && n > 0 && (by_rows || x->rs == 1);
    if (!exists) return (dtconv_lines){0};
    const int64_t rows = by_rows ? m : n, lines = ((by_rows ? n : m) * size + LINE - 1) / LINE;
    return (dtconv_lines){.start = (const char *)x->data + (i * x->rs + j * x->cs) * size,
                          .pitch = (by_rows ? x->rs : x->cs) * size,
                          .lines = lines,
                          .left = rows * lines};
}

static void run_slice(const product *s, int64_t slice, real *sums, char *memory) {
    const int64_t mr = s->ukr->mr, nr = s->ukr->nr, first = slice * s->depth, last = min(s->g->k, first + s->depth);
    dtconv_ukr_step *steps = (dtconv_ukr_step *)memory;
    elem *a = (elem *)(memory + round_up(s->kc / SQUARE * s->products * (int64_t)sizeof(dtconv_ukr_step), 64));
    elem *b = a + s->halves * s->a_size;
    DT(ukr_call) t = {.n = nr, .k = SQUARE, .alpha = 1, .rs_a = SQUARE, .cs_a = 1, .ldc = s->ld, .steps = steps};
    const void *lines[LINES];
    t.fetch = lines;
    if (first >= last) memset(sums, 0, (size_t)s->sums * sizeof(real));
    for (int64_t p = first; p < last; p += s->kc) {
        const int64_t k = min(s->kc, last - p), depth = round_up(k, SQUARE);
        t.step_count = 0;
        for (int64_t q = 0; q < depth / SQUARE; q++)
            t.step_count += put_step(s->products, q * s->height * SQUARE, q * SQUARE * nr, s->a_size, s->b_size,
                                     steps + t.step_count);
        dtconv_lines of_b = lines_of(&s->g->b, p + k, min(s->kc, last - p - k), 0, s->g->n);
        pack_columns(s, p, k, depth, b);
        t.beta = p > first;
        for (int64_t i = 0; i < s->g->m; i += mr) {
            t.m = min(mr, s->g->m - i);
            pack_tile(s, p, k, i, t.m, a);
            dtconv_lines of_a = lines_of(&s->g->a, i + mr, min(mr, s->g->m - i - mr), p, k);
            for (int64_t j = 0; j < s->panels; j++) {
                t.a = a, t.b = b + j * depth * nr;
                t.c = sums + i * s->ld + j * nr;
                t.fetch_count = 0;
                if (s->ukr->fetches && t.m == mr) {
                    t.fetch_count = dtconv_take_lines(&of_a, depth / 2, lines);
                    t.fetch_count += dtconv_take_lines(&of_b, depth / 2 - t.fetch_count, lines + t.fetch_count);
                }
                s->ukr->run(s->ukr, &t);
            }
        }
    }
}

void DT(gemm_long)(const DT(ukr_row) * ukr, const dtconv_gemm_mixed_args *g, int threads, void *workspace) {
    product s = cut(ukr, g->m, g->n, g->k, g->products);
    s.g = g;
    real *sums = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *packed = (char *)(sums + s.slices * s.sums);
#pragma omp parallel num_threads(threads)
    {
        char *mine = packed + (size_t)dtconv_thread_id() * of_thread(&s);
        if (ukr->begin) ukr->begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t slice = 0; slice < s.slices; slice++) run_slice(&s, slice, sums + slice * s.sums, mine);
        if (ukr->end) ukr->end();
#pragma omp for schedule(static)
        for (int64_t i = 0; i < g->m; i++) {
            real *row = sums + i * s.ld;
            for (int64_t slice = 1; slice < s.slices; slice++)
                for (int64_t j = 0; j < s.ld; j += V) store(row + j, load(row + j) + load(row + slice * s.sums + j));
            DT(gemm_finish)(g, row, s.ld, i, 1, 0, g->n);
        }
    }
}

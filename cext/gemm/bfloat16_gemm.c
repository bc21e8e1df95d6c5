/* GEMM of bfloat16 operands; see dtconv_gemm_mixed.h.
 *
 *     jc   walks n in steps of NC: all threads pack B[:, jc], all of k, panels of NR columns
 *       ic   walks m in steps of MC, shared out among threads: packs A[ic, :], unless it is read in place
 *         jr   walks the panels
 *           ir   walks MR rows: a tile of C over all of k, finished in the first cache
 *
 * A is packed in tiles of MR rows and 32 columns that lie behind each other: the steps of a micro-kernel's sum.
 * k is not cut: a tile's sums are formed once, so C may be bfloat16 and is written once.  Long sums with small results
 * are another file's (bfloat16_long.c), as are those of few rows (bfloat16_thin.c).  MC and NC follow from the
 * caches; every element of C is summed in the same order whatever they are.
 */
#include "../conv/activate.h"
#include "dtconv_gemm.h"
#include "dtconv_thread_id.h"
#include "bfloat16_thin.h"

enum {
    A_BYTES = 1 << 20, /* of each thread's block of A */
    B_BYTES = 4 << 20, /* of the block of B */
    UNITS = 4,         /* wanted for each thread */
    TILES = 4,         /* of a call, where the kernel rounds them */
    TILE_MOST = DTCONV_UKR_MAX_MR * DTCONV_UKR_MAX_NR,
};

typedef struct {
    const DT(ukr_row) * ukr;
    int64_t depth, height, mc, nc, parts; /* rows of a packed tile; parts: of the columns of a block */
    int64_t low_a, low_b;                 /* elements from high halves to low ones */
    size_t a_size, b_size, steps;         /* bytes */
    int threads, products, halves;
} blocks;

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static int team(void) {
#ifdef _OPENMP
    if (omp_in_parallel()) return 1;
#endif
    return dtconv_get_num_threads();
}

static blocks cut(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int products) {
    blocks s = {.ukr = ukr, .threads = team(), .products = products, .halves = products == 1 ? 1 : 2};
    const int64_t size = s.halves * (int64_t)sizeof(elem), mr = ukr->mr, nr = ukr->nr;
    s.depth = round_up(k, SQUARE);
    s.height = round_up(mr, ukr->rows);
    s.nc = min(round_up(n, nr), max(1, B_BYTES / (s.depth * size) / nr) * nr);
    s.mc = max(1, A_BYTES / (s.depth * size) / mr) * mr;
    s.mc = min(s.mc, round_up(ceil_div(m, UNITS * s.threads), mr));
    const int64_t rows = ceil_div(m, s.mc), panels = s.nc / nr;
    s.parts = min(panels, max(1, UNITS * s.threads / rows));
    s.a_size = (size_t)(round_up(s.mc / mr * s.height * s.depth * size, 64));
    s.low_a = s.mc / mr * s.height * s.depth, s.low_b = s.nc * s.depth;
    s.steps = (size_t)round_up(s.depth / SQUARE * products * (int64_t)sizeof(dtconv_ukr_step), 64);
    s.b_size = (size_t)(round_up(s.nc * s.depth * size, 64) + 8192); /* kernels look ahead */
    return s;
}

DT(gemm_sizes) DT(gemm_sizes_of)(const DT(ukr_row) * ukr) {
    const blocks s = cut(ukr, 1 << 20, 1 << 20, 1 << 10, 1);
    return (DT(gemm_sizes)){.mr = ukr->mr, .nr = ukr->nr, .mc = s.mc, .kc = s.depth, .nc = s.nc};
}

static size_t bytes_of(const blocks *s) { return 64 + s->b_size + s->steps + (size_t)s->threads * s->a_size; }

size_t dtconv_gemm_mixed_workspace(int64_t m, int64_t n, int64_t k, int products) {
    const DT(ukr_row) *ukr = DT(ukr_current)();
    if (!ukr) return 0;
    const size_t thin = products == 1 ? DT(gemm_thin_bytes)(m, n, k, team()) : 0;
    if (DT(gemm_slices)(m, n, k)) {
        const size_t long_sums = DT(gemm_long_workspace)(ukr, m, n, k, products, team());
        return thin > long_sums ? thin : long_sums;
    }
    const blocks s = cut(ukr, m, n, k, products);
    return thin > bytes_of(&s) ? thin : bytes_of(&s);
}

/* C[i : i + m, j : j + n] from a tile of sums, whole vectors of them, that are the results. */
static void store_sums(const dtconv_gemm_mixed_args *g, const real *tile, int64_t ld, int64_t i, int64_t m, int64_t j,
                       int64_t n) {
    for (int64_t r = 0; r < m; r++, tile += ld) {
        const int64_t at = (i + r) * g->ldc + j;
        if (g->c_bfloat16)
            for (int64_t q = 0; q < n; q += V) store_elem((elem *)g->c + at + q, load(tile + q));
        else
            for (int64_t q = 0; q < n; q += V) store((real *)g->c + at + q, load(tile + q));
    }
}

void DT(gemm_finish)(const dtconv_gemm_mixed_args *g, const real *tile, int64_t ld, int64_t i, int64_t m, int64_t j,
                     int64_t n) {
    if (n % V == 0 && g->alpha == 1 && g->beta == 0 && !g->bias && g->activation == DTCONV_LINEAR) {
        store_sums(g, tile, ld, i, m, j, n);
        return;
    }
    for (int64_t r = 0; r < m; r++, tile += ld) {
        const int64_t at = (i + r) * g->ldc + j;
        elem *half = (elem *)g->c + at;
        real *whole = (real *)g->c + at;
        for (int64_t q = 0; q < n; q += V) {
            const int64_t count = min(V, n - q);
            vec before = {0}, y = load(tile + q) * g->alpha;
            if (g->beta != 0 && g->c_bfloat16)
                before = count == V ? load_elem(half + q) : load_elem_part(half + q, count);
            else if (g->beta != 0)
                before = load_part(whole + q, count);
            if (g->beta != 0) y += g->beta * before;
            if (g->bias) y += load_part(g->bias + j + q, count);
            if (g->activation == DTCONV_RELU)
                y = positive(y);
            else if (g->activation != DTCONV_LINEAR)
                for (int64_t v = 0; v < V; v++) y[v] = activate(y[v], g->activation, g->slope);
            if (!g->c_bfloat16)
                store_part(whole + q, count, y);
            else if (count == V)
                store_elem(half + q, y);
            else
                store_elem_part(half + q, count, y);
        }
    }
}

/* A block of A: rows in place, or tiles `tile` elements apart. */
typedef struct {
    const elem *data;
    int64_t rs, tile, k;
    const dtconv_ukr_step *steps;
    int64_t count;
} block;

/* Asks for rows that come next: read by tiles, 16 rows at a time, memory would be too slow. */
static void fetch_rows(const elem *a, int64_t rs, int64_t m, int64_t k) {
    for (int64_t r = 0; r < m; r++)
        for (int64_t p = 0; p < k; p += SQUARE) __builtin_prefetch(a + r * rs + p, 0, 2);
}

/* Whether the micro-kernel can round and store whole rows of panels by itself. */
static int kernel_finishes(const dtconv_gemm_mixed_args *g, const blocks *s) {
    return s->ukr->finishes && g->c_bfloat16 && g->alpha == 1 && g->beta == 0 &&
           (g->activation == DTCONV_LINEAR || g->activation == DTCONV_RELU);
}

/* Rows [i, i + m) of C and panels [first, last) of the block of columns from jc on. */
static void run_block(const dtconv_gemm_mixed_args *g, const blocks *s, const block *a, const elem *b, int64_t i,
                      int64_t m, int64_t jc, int64_t nc, int64_t first, int64_t last) {
    const int64_t mr = s->ukr->mr, nr = s->ukr->nr;
    const int finishes = kernel_finishes(g, s);
    real tile[TILE_MOST] __attribute__((aligned(64)));
    elem *to[TILES * DTCONV_UKR_MAX_MR];
    DT(ukr_finish) finish = {.to = to, .relu = g->activation == DTCONV_RELU};
    DT(ukr_call)
    t = {.n = nr,
         .k = a->k,
         .alpha = 1,
         .rs_a = a->rs,
         .cs_a = 1,
         .c = tile,
         .ldc = nr,
         .steps = a->steps,
         .step_count = a->count};
    const int from_memory =
        a->count == 1 && a->rs != SQUARE; /* A in place; its first panel finds it beyond the caches */
    const int follow = s->ukr->fetches && a->tile == mr * a->rs; /* tiles are rows that follow each other */
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t j = jc + panel * nr, n = min(nr, nc - panel * nr);
        const int stored = finishes && n == nr;
        t.b = b + panel * s->depth * nr;
        finish.bias = g->bias ? g->bias + j : NULL;
        t.finish = stored ? &finish : NULL;
        const int64_t rows = stored && follow && !(from_memory && panel == first) ? TILES * mr : mr;
        for (int64_t ir = 0; ir < m; ir += rows) {
            t.m = min(rows, m - ir);
            if (from_memory && panel == first && ir + mr < m)
                fetch_rows(a->data + (ir / mr + 1) * a->tile, a->rs, min(mr, m - ir - mr), a->k);
            t.a = a->data + ir / mr * a->tile;
            t.b_next = panel + 1 < last ? t.b + s->depth * nr + ir / mr * s->depth * 4 : NULL;
            for (int64_t r = 0; stored && r < t.m; r++) to[r] = (elem *)g->c + (i + ir + r) * g->ldc + j;
            t.fetch = (const void *const *)to; /* lines that are written after the products */
            t.fetch_count = stored && s->ukr->fetches ? t.m : 0;
            s->ukr->run(s->ukr, &t);
            if (!stored) DT(gemm_finish)(g, tile, nr, i + ir, t.m, j, n);
        }
    }
}

/* Whether a block of A can be read where it is: rows of whole depth, as many as the kernel reads, not all of them in
 * the same sets of the cache. */
static int in_place(const dtconv_gemm_mixed_args *g, const blocks *s, int64_t i, int64_t m) {
    return g->a.bfloat16 && g->a.cs == 1 && g->k == s->depth && g->a.rs <= 2048 && g->a.rs % 1024 != 0 &&
           i + round_up(m, s->ukr->rows) <= g->m;
}

static void run_unit(const dtconv_gemm_mixed_args *g, const blocks *s, int64_t unit, int64_t jc, const elem *b,
                     const dtconv_ukr_step *steps, elem *packed) {
    const int64_t nc = min(s->nc, g->n - jc), panels = ceil_div(nc, s->ukr->nr), mr = s->ukr->mr;
    const int64_t part = unit % s->parts, i = unit / s->parts * s->mc, m = min(s->mc, g->m - i);
    const int64_t first = panels * part / s->parts, last = panels * (part + 1) / s->parts;
    const dtconv_ukr_step whole = {0, 0};
    block a = {(const elem *)g->a.data + i * g->a.rs, g->a.rs, mr * g->a.rs, s->depth, &whole, 1};
    if (first == last) return;
    if (!in_place(g, s, i, m)) {
        const int64_t k = min(SQUARE, round_up(g->k, s->ukr->depth)); /* of a step */
        a = (block){packed, SQUARE, s->height * s->depth, k, steps, s->depth / SQUARE * s->products};
        for (int low = 0; low < s->halves; low++) {
            dtconv_operand half_of_a = g->a;
            half_of_a.low = low;
            for (int64_t ir = 0; ir < m; ir += mr)
                DT(pack_rows)(&half_of_a, i + ir, min(mr, m - ir), g->k, s->height,
                              packed + low * s->low_a + ir / mr * a.tile);
        }
    }
    run_block(g, s, &a, b, i, m, jc, nc, first, last);
}

dtconv_status dtconv_gemm_mixed(const dtconv_gemm_mixed_args *g, void *workspace, size_t bytes) {
    const DT(ukr_row) *ukr = DT(ukr_current)();
    if (!ukr) return DTCONV_KERNEL;
    if (g->m < 1 || g->n < 1 || g->k < 1 || g->ldc < g->n) return DTCONV_ARGUMENT;
    if (g->products != 1 && (g->products != PRODUCTS_MOST || g->a.bfloat16 || g->b.bfloat16)) return DTCONV_ARGUMENT;
    const int threads = team();
    if (DT(gemm_thin_of_float)(g, threads, workspace, bytes)) return DTCONV_OK;
    if (DT(gemm_slices)(g->m, g->n, g->k)) {
        if (bytes < DT(gemm_long_workspace)(ukr, g->m, g->n, g->k, g->products, threads)) return DTCONV_WORKSPACE;
        DT(gemm_long)(ukr, g, threads, workspace);
        return DTCONV_OK;
    }
    const blocks s = cut(ukr, g->m, g->n, g->k, g->products);
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    elem *b = (elem *)(((uintptr_t)workspace + 63) / 64 * 64);
    dtconv_ukr_step *steps = (dtconv_ukr_step *)((char *)b + s.b_size);
    for (int64_t p = 0; p < s.depth / SQUARE; p++)
        put_step(s.products, p * s.height * SQUARE, p * SQUARE * ukr->nr, s.low_a, s.low_b, steps + p * s.products);
    char *packed = (char *)steps + s.steps;
#pragma omp parallel num_threads(s.threads)
    {
        elem *mine = (elem *)(packed + (size_t)dtconv_thread_id() * s.a_size);
        if (ukr->begin) ukr->begin();
        for (int64_t jc = 0; jc < g->n; jc += s.nc) {
            const int64_t panels = ceil_div(min(s.nc, g->n - jc), ukr->nr);
#pragma omp for schedule(dynamic, 1)
            for (int64_t panel = 0; panel < panels; panel++) {
                const int64_t j = jc + panel * ukr->nr;
                for (int low = 0; low < s.halves; low++) {
                    dtconv_operand half_of_b = g->b;
                    half_of_b.low = low;
                    DT(pack_panel)(&half_of_b, g->k, s.depth, j, min(ukr->nr, g->n - j), ukr->nr,
                                   b + low * s.low_b + panel * s.depth * ukr->nr);
                }
            }
            const int64_t units = ceil_div(g->m, s.mc) * s.parts;
#pragma omp for schedule(dynamic, 1)
            for (int64_t unit = 0; unit < units; unit++) run_unit(g, &s, unit, jc, b, steps, mine);
        }
        if (ukr->end) ukr->end();
    }
    return DTCONV_OK;
}

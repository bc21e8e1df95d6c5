/* The transformed numbers of Winograd's convolution and their products: in `real`, or, where ROUNDED is defined,
 * rounded to bfloat16 and multiplied in pairs (cext/conv/bfloat16_winograd.c).  Sums are `real` in both.  Where
 * LARGE is defined (winograd_large.c), and where images are in bfloat16, large tiles are among those to choose from.
 */
#ifndef DTCONV_WINOGRAD_POINTS_H
#define DTCONV_WINOGRAD_POINTS_H

#include "winograd.h"

#ifdef ROUNDED
#include "bfloat16_winograd_maps.h"

typedef half point;
#define PASS(name) DT(conv_winograd_bf16_##name)

typedef struct {
    const HT(rounded_maps) * maps;
    const HT(ukr_row) * kernel;
} points_of;

/* What the micro-kernel decides; DTCONV_UNSUPPORTED where pairs of its operand must lie side by side. */
static inline dtconv_status prepare_points(const dtconv_conv *p, int backward_data, int kind, DT(tiling) * w,
                                           points_of *to) {
    const int forward = kind == DTCONV_TILES_OF_IMAGES && !backward_data;
    const int of = forward ? DTCONV_TILES_ROUNDED_FORWARD : DTCONV_TILES_ROUNDED;
    const dtconv_status status = DT(winograd_tiling)(p, backward_data, of, w);
    if (status) return status;
    if (dtconv_is_deep(p)) return DTCONV_UNSUPPORTED;
    to->kernel = HT(ukr_current)();
    if (!to->kernel) return DTCONV_KERNEL;
    if (!to->kernel->strided || to->kernel->rows != 1) return DTCONV_UNSUPPORTED;
    to->maps = HT(winograd_rounded_maps)((dtconv_tile){w->t->mh, w->t->mw});
    w->mr = to->kernel->mr, w->nr = to->kernel->nr;
    w->slot = dtconv_round_to(w->ci, to->kernel->depth);
    return DTCONV_OK;
}

enum {
    ROWS_OF_CALL = 4,    /* tiles of the micro-kernel, at most, that meet a panel in one call */
    LINES_OF_CALL = 512, /* at most, that are loaded meanwhile */
    LONG_ROW = 512,      /* of A, from which on a panel fills the first cache by itself */
};

/* C (m x n) = A (m x k) B + beta C: as RT(tile_gemm_ahead), with A as in dtconv_ukr.h; C has room for whole panels. */
static inline void multiply_points(const DT(tiling) * w, const points_of *of, int64_t m, int64_t n, int64_t k,
                                   const point *a, int64_t rs, int64_t cs, const point *b, int64_t b_step, real beta,
                                   real *c, int64_t ldc, real *packed, dtconv_ahead *ahead) {
    (void)packed;
    const dtconv_ukr_step here = {0, 0};
    const int64_t mr = w->mr, nr = w->nr, rows = of->kernel->fetches && k < LONG_ROW ? ROWS_OF_CALL * mr : mr;
    const void *lines[LINES_OF_CALL];
    HT(ukr_call)
    t = {
        .n = nr, .k = k, .alpha = 1, .rs_a = rs, .cs_a = cs, .beta = beta, .ldc = ldc, .steps = &here, .step_count = 1};
    int64_t calls = dtconv_ceil_div(m, rows) * dtconv_ceil_div(n, nr);
    t.fetch = lines;
    for (int64_t j = 0; j < n; j += nr, b += b_step) {
        t.b = b;
        for (int64_t i = 0; i < m; i += rows) {
            t.m = MIN(rows, m - i);
            t.a = a + i * rs;
            t.c = c + i * ldc + j;
            if (of->kernel->fetches)
                t.fetch_count = dtconv_ahead_lines(ahead, calls--, MIN(LINES_OF_CALL, t.m / mr * (k / 2)), lines);
            else
                dtconv_ahead_load(ahead, calls--);
            of->kernel->run(of->kernel, &t);
        }
    }
}

enum { ROUNDED_ROWS = 16 }; /* of a panel, in float32 before they are rounded */

/* Elements of scratch of transform_points. */
static inline int64_t points_scratch(const DT(tiling) * w) {
    return FILTER_SCRATCH + (w->points * ROUNDED_ROWS + 1) * w->nr;
}

/* Transformed filters: as RT(transform_filters), of one panel; rows go to pairs, up to a multiple of `depth`. */
static inline void transform_points(const DT(tiling) * w, const points_of *of, const real *filters, int64_t k,
                                    int64_t depth, int64_t j, int64_t n, point *u, int64_t panel_step, int64_t plane,
                                    real *scratch) {
    (void)panel_step;
    const int64_t nr = w->nr, step = ROUNDED_ROWS * nr, end = k + depth == w->ci ? w->slot - k : depth;
    real *sums = scratch + FILTER_SCRATCH, *none = sums + w->points * step;
    memset(none, 0, (size_t)nr * sizeof(real));
    for (int64_t q = 0; q < end; q += ROUNDED_ROWS) {
        const int64_t rows = MIN(ROUNDED_ROWS, depth - q), filled = MIN(ROUNDED_ROWS, end - q);
        if (rows > 0) RT(transform_filters)(w, filters, k + q, rows, j, n, sums, 0, step, scratch);
        for (int64_t e = 0; e < w->points; e++)
            for (int64_t r = 0; r < filled; r += 2) {
                const real *row = sums + e * step + r * nr;
                of->maps->round_pairs(nr, r < rows ? row : none, r + 1 < rows ? row + nr : none,
                                      u + e * plane + (q + r) * nr);
            }
    }
}
#else

typedef real point;
#ifdef LARGE
#define PASS(name) DT(conv_winograd_large_##name)
#else
#define PASS(name) DT(conv_winograd_##name)
#endif
#if defined(LARGE) || defined(DTCONV_BFLOAT16)
enum { HAS_LARGE = 1 };
#else
enum { HAS_LARGE = 0 };
#endif

typedef struct {
    const DT(image_maps) * maps;
} points_of;

static inline dtconv_status prepare_points(const dtconv_conv *p, int backward_data, int kind, DT(tiling) * w,
                                           points_of *to) {
    if (HAS_LARGE) /* as well */
        kind = kind == DTCONV_TILES_OF_IMAGES ? DTCONV_TILES_LARGE_OF_IMAGES : DTCONV_TILES_LARGE_OF_WEIGHTS;
    const dtconv_status status = DT(winograd_tiling)(p, backward_data, kind, w);
    if (status) return status;
    to->maps = DT(winograd_image_maps)((dtconv_tile){w->t->mh, w->t->mw});
    return DTCONV_OK;
}

static inline void multiply_points(const DT(tiling) * w, const points_of *of, int64_t m, int64_t n, int64_t k,
                                   const point *a, int64_t rs, int64_t cs, const point *b, int64_t b_step, real beta,
                                   real *c, int64_t ldc, real *packed, dtconv_ahead *ahead) {
    (void)of;
    RT(tile_gemm_ahead)(w->ukr, m, n, k, a, rs, cs, b, b_step, beta, c, ldc, packed, ahead);
}

static inline int64_t points_scratch(const DT(tiling) * w) {
    (void)w;
    return FILTER_SCRATCH;
}

static inline void transform_points(const DT(tiling) * w, const points_of *of, const real *filters, int64_t k,
                                    int64_t depth, int64_t j, int64_t n, point *u, int64_t panel_step, int64_t plane,
                                    real *scratch) {
    (void)of;
    RT(transform_filters)(w, filters, k, depth, j, n, u, panel_step, plane, scratch);
}
#endif

/* V of a tile from its pixels, those that are `outside` zeros. */
static inline void expand_tile(const DT(tiling) * w, const points_of *of, const DT(conv_normalization) * prologue,
                               const elem *const *pixels, const elem *outside, point *v, int64_t plane) {
    if (prologue->mean)
        of->maps->normalized(pixels, outside, prologue, w->ci, v, plane);
    else
        of->maps->input(pixels, 0, w->ci, v, plane);
}

/* Numbers of `real` that have room for points. */
static inline int64_t dtconv_room(int64_t points) {
    return dtconv_line(dtconv_ceil_div(points * (int64_t)sizeof(point), (int64_t)sizeof(real)));
}

/* Whether the micro-kernel wants packed operands, and so memory for them. */
static inline int dtconv_packs(const DT(tiling) * w) { return w->ukr && !w->ukr->in_place; }

#endif

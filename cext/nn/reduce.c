/* Reductions: y[k] (+)= factor * sum (max, min) over r of x[k, r], for any set of kept and reduced dimensions.
 *
 * Where the innermost dimension of x is kept, a block of neighbouring outputs is accumulated row by row; where it is
 * reduced, each output is a reduction of contiguous spans.  Sums: rows in blocks of SUM_BLOCK, whose sums are added up.
 * Where there are fewer blocks of outputs than threads may want, the outermost reduced dimensions are cut into slices,
 * as many as the sizes say and not the threads; their partial results meet in the workspace.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "dtconv_nn_elem.h"
#include "dtconv_real.h"
#include "dtconv_strided.h"

enum { OUTPUT_BLOCK = 256, SUM_BLOCK = 64, MAX_SLICES = 32, SLICE_ELEMENTS = 8192, LANES = 16 };

typedef struct {
    int kept, reduced, kind;
    const int64_t *kept_shape, *reduced_shape, *x_strides, *x2_strides, *y_strides;
    const elem *x, *x2;
    int rows_inside;       /* whether the innermost dimension is a reduced one */
    int64_t width;         /* extent of the innermost kept dimension, 1 where rows_inside */
    int64_t outer, blocks; /* outputs: outer groups of `width`, in blocks of OUTPUT_BLOCK */
    int64_t length;        /* reduced elements of one output, without the innermost where rows_inside */
    int64_t slices;
} problem;

static problem analyse(int kind, const int64_t *layout) {
    problem t = {.kept = (int)layout[0], .reduced = (int)layout[1], .kind = kind, .kept_shape = layout + 2};
    const int dims = t.kept + t.reduced;
    t.reduced_shape = t.kept_shape + t.kept;
    t.x_strides = layout + 2 + dims;
    t.x2_strides = t.x_strides + dims;
    t.y_strides = t.x2_strides + dims;
    t.rows_inside = t.kept == 0 || t.x_strides[t.kept - 1] != 1 || t.y_strides[t.kept - 1] != 1;
    t.width = t.rows_inside ? 1 : t.kept_shape[t.kept - 1];
    t.outer = 1;
    for (int d = 0; d < t.kept - !t.rows_inside; d++) t.outer *= t.kept_shape[d];
    t.blocks = (t.width + OUTPUT_BLOCK - 1) / OUTPUT_BLOCK;
    t.length = 1;
    for (int d = 0; d < t.reduced - t.rows_inside; d++) t.length *= t.reduced_shape[d];
    const int64_t inner = t.rows_inside ? t.reduced_shape[t.reduced - 1] : t.width;
    const int64_t work = t.length * inner / SLICE_ELEMENTS;
    t.slices = t.outer * t.blocks >= MAX_SLICES ? 1 : work < MAX_SLICES ? work : MAX_SLICES;
    if (t.slices > t.length) t.slices = t.length;
    if (t.slices < 1) t.slices = 1;
    return t;
}

static int64_t offset_of(int64_t index, int dims, const int64_t *shape, const int64_t *strides) {
    int64_t offset = 0;
    for (int d = dims - 1; d >= 0; d--) {
        offset += index % shape[d] * strides[d];
        index /= shape[d];
    }
    return offset;
}

static real identity(int kind) {
    return kind == DTCONV_REDUCE_MAXIMUM ? -(real)INFINITY : kind == DTCONV_REDUCE_MINIMUM ? (real)INFINITY : 0;
}

static inline real pick(int kind, real a, real b) {
    if (kind == DTCONV_REDUCE_MAXIMUM) return a > b || a != a ? a : b;
    if (kind == DTCONV_REDUCE_MINIMUM) return a < b || a != a ? a : b;
    return a + b;
}

/* acc[i] = pick(acc[i], x[i] (* x2[i])) */
static void accumulate_row(int kind, int64_t n, const elem *x, const elem *x2, real *acc) {
    switch (kind) {
        case DTCONV_REDUCE_SUM:
#pragma omp simd
            for (int64_t i = 0; i < n; i++) acc[i] += widen(x[i]);
            break;
        case DTCONV_REDUCE_DOT:
#pragma omp simd
            for (int64_t i = 0; i < n; i++) acc[i] += widen(x[i]) * widen(x2[i]);
            break;
        case DTCONV_REDUCE_MAXIMUM:
#pragma omp simd
            for (int64_t i = 0; i < n; i++) acc[i] = pick(DTCONV_REDUCE_MAXIMUM, acc[i], widen(x[i]));
            break;
        case DTCONV_REDUCE_MINIMUM:
#pragma omp simd
            for (int64_t i = 0; i < n; i++) acc[i] = pick(DTCONV_REDUCE_MINIMUM, acc[i], widen(x[i]));
            break;
    }
}

/* Reduction of n contiguous elements: LANES running results over blocks, then over the lanes. */
static real reduce_span(int kind, int64_t n, const elem *x, const elem *x2) {
    real total = identity(kind);
    for (int64_t start = 0; start < n; start += SUM_BLOCK * LANES) {
        const int64_t count = n - start < SUM_BLOCK * LANES ? n - start : SUM_BLOCK * LANES;
        real lanes[LANES];
        for (int l = 0; l < LANES; l++) lanes[l] = identity(kind);
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES)
            accumulate_row(kind, LANES, x + start + i, x2 ? x2 + start + i : NULL, lanes);
        accumulate_row(kind, count - i, x + start + i, x2 ? x2 + start + i : NULL, lanes);
        for (int half = LANES / 2; half; half /= 2)
            for (int l = 0; l < half; l++) lanes[l] = pick(kind, lanes[l], lanes[l + half]);
        total = pick(kind, total, lanes[0]);
    }
    return total;
}

/* Reduces elements [from, to) of the reduced dimensions for n <= OUTPUT_BLOCK neighbouring outputs into acc. */
static void reduce_block(const problem *t, int64_t x_offset, int64_t x2_offset, int64_t n, int64_t from, int64_t to,
                         real *acc) {
    real block[OUTPUT_BLOCK];
    const int dims = t->reduced - t->rows_inside;
    const int64_t inner = t->rows_inside ? t->reduced_shape[t->reduced - 1] : 0;
    for (int64_t i = 0; i < n; i++) acc[i] = identity(t->kind);
    for (int64_t r0 = from; r0 < to; r0 += SUM_BLOCK) {
        const int64_t r1 = r0 + SUM_BLOCK < to ? r0 + SUM_BLOCK : to;
        for (int64_t i = 0; i < n; i++) block[i] = identity(t->kind);
        for (int64_t r = r0; r < r1; r++) {
            const elem *x = t->x + x_offset + offset_of(r, dims, t->reduced_shape, t->x_strides + t->kept);
            const elem *x2 = NULL;
            if (t->x2) x2 = t->x2 + x2_offset + offset_of(r, dims, t->reduced_shape, t->x2_strides + t->kept);
            if (t->rows_inside)
                block[0] = pick(t->kind, block[0], reduce_span(t->kind, inner, x, x2));
            else
                accumulate_row(t->kind, n, x, x2, block);
        }
        for (int64_t i = 0; i < n; i++) acc[i] = pick(t->kind, acc[i], block[i]);
    }
}

/* Where results go: `real` or `elem`. */
typedef struct {
    void *y;
    int as_real, accumulate;
    real factor;
} target;

static void store(int64_t n, const real *acc, const target *t, int64_t offset) {
    if (t->as_real) {
        real *y = (real *)t->y + offset;
        for (int64_t i = 0; i < n; i++) y[i] = t->accumulate ? y[i] + t->factor * acc[i] : t->factor * acc[i];
    } else {
        elem *y = (elem *)t->y + offset;
        for (int64_t i = 0; i < n; i++)
            y[i] = narrow(t->accumulate ? widen(y[i]) + t->factor * acc[i] : t->factor * acc[i]);
    }
}

/* Reduces block `b` of outputs over slice `s`; the result goes to partial, or to its place where partial is NULL. */
static void run_item(const problem *t, int64_t b, int64_t s, const target *to, real *partial) {
    const int64_t group = b / t->blocks, first = b % t->blocks * OUTPUT_BLOCK;
    const int64_t n = t->width - first < OUTPUT_BLOCK ? t->width - first : OUTPUT_BLOCK;
    const int dims = t->kept - !t->rows_inside;
    real acc[OUTPUT_BLOCK];
    reduce_block(t, offset_of(group, dims, t->kept_shape, t->x_strides) + first,
                 offset_of(group, dims, t->kept_shape, t->x2_strides) + first, n, t->length * s / t->slices,
                 t->length * (s + 1) / t->slices, acc);
    if (partial)
        memcpy(partial + s * t->outer * t->width + group * t->width + first, acc, (size_t)n * sizeof(real));
    else
        store(n, acc, to, offset_of(group, dims, t->kept_shape, t->y_strides) + first);
}

size_t DT(reduce_workspace)(const int64_t *layout) {
    const problem t = analyse(DTCONV_REDUCE_SUM, layout);
    return t.slices > 1 ? (size_t)(t.slices * t.outer * t.width) * sizeof(real) : 0;
}

dtconv_status DT(reduce)(int kind, int accumulate, real factor, const int64_t *layout, const elem *x, const elem *x2,
                         void *y, int as_real, void *workspace, size_t bytes) {
    if (kind < 0 || kind >= DTCONV_REDUCE_KINDS || (kind == DTCONV_REDUCE_DOT) != (x2 != NULL)) return DTCONV_ARGUMENT;
    problem t = analyse(kind, layout);
    if (t.rows_inside && t.x_strides[t.kept + t.reduced - 1] != 1) return DTCONV_ARGUMENT;
    if (bytes < DT(reduce_workspace)(layout)) return DTCONV_WORKSPACE;
    t.x = x;
    t.x2 = x2;
    const target to = {y, as_real, accumulate, factor};
    real *partial = t.slices > 1 ? workspace : NULL;
    const int64_t items = t.outer * t.blocks * t.slices;
    const int64_t inner = t.rows_inside ? t.reduced_shape[t.reduced - 1] : t.width;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(items)) if (t.outer * t.length * inner >= DTCONV_PARALLEL_ELEMENTS)
    for (int64_t item = 0; item < items; item++) run_item(&t, item / t.slices, item % t.slices, &to, partial);
    if (!partial) return DTCONV_OK;
    const int dims = t.kept - !t.rows_inside;
    const int64_t outputs = t.outer * t.width;
    for (int64_t s = 1; s < t.slices; s++)
        for (int64_t i = 0; i < outputs; i++) partial[i] = pick(kind, partial[i], partial[s * outputs + i]);
    for (int64_t group = 0; group < t.outer; group++)
        store(t.width, partial + group * t.width, &to, offset_of(group, dims, t.kept_shape, t.y_strides));
    return DTCONV_OK;
}

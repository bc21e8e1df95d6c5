/* The driver of all element-wise operators: out[...] = f(in0[...], in1[...], ...) over a strided loop nest. */
#include <stddef.h>

#include "dtconv_strided.h"
#include "dtconv_vector.h"

typedef struct {
    int ndim, inputs;
    const int64_t *shape, *strides; /* strides[operand * ndim + dim] */
    const elem *const *in;
    elem *out;
    int reads_out;
} nest;

/* Where in the nest a thread is: indices of the outer dimensions and the operands' offsets. */
typedef struct {
    int64_t index[DTCONV_MAX_DIMS];
    int64_t offset[DTCONV_MAX_INPUTS + 1];
} position;

static void seek(const nest *t, int64_t outer, position *at) {
    for (int k = 0; k <= t->inputs; k++) at->offset[k] = 0;
    for (int d = t->ndim - 2; d >= 0; d--) {
        at->index[d] = outer % t->shape[d];
        outer /= t->shape[d];
        for (int k = 0; k <= t->inputs; k++) at->offset[k] += at->index[d] * t->strides[k * t->ndim + d];
    }
}

static void advance(const nest *t, position *at) {
    for (int d = t->ndim - 2; d >= 0; d--) {
        for (int k = 0; k <= t->inputs; k++) at->offset[k] += t->strides[k * t->ndim + d];
        if (++at->index[d] < t->shape[d]) return;
        at->index[d] = 0;
        for (int k = 0; k <= t->inputs; k++) at->offset[k] -= t->shape[d] * t->strides[k * t->ndim + d];
    }
}

#ifdef DTCONV_BFLOAT16
static void widen_span(int64_t n, const elem *x, real *y) {
    for (int64_t i = 0; i < n; i++) y[i] = widen(x[i]);
}

/* One span of n elements from element j of the innermost dimension on. */
static void run_span(const nest *t, DT(span_fn) fn, const void *context, const position *at, int64_t j, int64_t n) {
    real values[DTCONV_MAX_INPUTS][DTCONV_SPREAD], result[DTCONV_SPREAD];
    const real *in[DTCONV_MAX_INPUTS];
    elem *out = t->out + at->offset[t->inputs] + j;
    for (int64_t i = 0; i < n; i += DTCONV_SPREAD) {
        const int64_t count = n - i < DTCONV_SPREAD ? n - i : DTCONV_SPREAD;
        for (int k = 0; k < t->inputs; k++) {
            const int64_t stride = t->strides[k * t->ndim + t->ndim - 1];
            in[k] = t->in[k] ? values[k] : NULL;
            if (!in[k]) continue;
            const elem *from = t->in[k] + at->offset[k] + (j + i) * stride;
            if (stride)
                widen_span(count, from, values[k]);
            else
                for (int64_t e = 0; e < count; e++) values[k][e] = widen(*from);
        }
        if (t->reads_out) widen_span(count, out + i, result);
        fn(context, count, in, result);
        store_numbers(out + i, count, result);
    }
}
#else
/* One span of n elements from element j of the innermost dimension on. */
static void run_span(const nest *t, DT(span_fn) fn, const void *context, const position *at, int64_t j, int64_t n) {
    real spread[DTCONV_MAX_INPUTS][DTCONV_SPREAD];
    const real *in[DTCONV_MAX_INPUTS];
    int constant[DTCONV_MAX_INPUTS], any = 0;
    for (int k = 0; k < t->inputs; k++) {
        const int64_t stride = t->strides[k * t->ndim + t->ndim - 1];
        in[k] = t->in[k] ? t->in[k] + at->offset[k] + j * stride : NULL;
        constant[k] = in[k] && stride == 0;
        if (!constant[k]) continue;
        any = 1;
        const real value = *in[k];
        for (int64_t i = 0; i < (n < DTCONV_SPREAD ? n : DTCONV_SPREAD); i++) spread[k][i] = value;
        in[k] = spread[k];
    }
    real *out = t->out + at->offset[t->inputs] + j;
    const int64_t step = any ? DTCONV_SPREAD : n;
    for (int64_t i = 0; i < n; i += step) {
        fn(context, n - i < step ? n - i : step, in, out + i);
        for (int k = 0; k < t->inputs; k++)
            if (in[k] && !constant[k]) in[k] += step;
    }
}
#endif

/* Whether rows are so short that several make one span: each operand's rows lie one behind the other, or are the same
 * row again and again, or a number; some are. */
static int joins_rows(const nest *t) {
    enum { SHORT = DTCONV_SPREAD / 4 };
    if (t->ndim < 2 || t->shape[t->ndim - 1] > SHORT || t->shape[t->ndim - 1] < 2) return 0;
    if (t->shape[t->ndim - 1] * t->shape[t->ndim - 2] < DTCONV_SPREAD) return 0;
    int again = 0;
    for (int k = 0; k <= t->inputs; k++) {
        const int64_t *stride = t->strides + k * t->ndim + t->ndim - 2;
        if (k < t->inputs && !t->in[k]) continue;
        if (stride[1] == 1 && stride[0] == t->shape[t->ndim - 1]) continue;
        if (k == t->inputs || stride[0] != 0 || stride[1] > 1 || stride[1] < 0) return 0;
        again = 1;
    }
    return again;
}

/* `count` elements of an operand from element i of joined rows on, as `real`: where they are, or in `values`, where
 * what is the same again and again is put for the first of them only. */
static const real *joined(const nest *t, int k, const position *at, int64_t i, int64_t count, int first, real *values) {
    const int64_t *stride = t->strides + k * t->ndim + t->ndim - 2, width = t->shape[t->ndim - 1];
    const elem *from = t->in[k] + at->offset[k];
    if (stride[0] == 0) {
        for (int64_t row = 0; first && row < count; row += width)
            for (int64_t j = 0; j < width; j++) values[row + j] = widen(from[j * stride[1]]);
        return values;
    }
#ifdef DTCONV_BFLOAT16
    widen_span(count, from + i, values);
    return values;
#else
    (void)count;
    return from + i;
#endif
}

/* The nest with its two inner dimensions as one, in pieces of whole rows. */
static void map_joined(const nest *t, DT(span_fn) fn, const void *context, int64_t outer) {
    const int64_t width = t->shape[t->ndim - 1], rows = t->shape[t->ndim - 2], length = rows * width;
    const int64_t piece = DTCONV_SPREAD / width * width, per_group = DTCONV_SPAN / piece + 1, step = piece * per_group;
    const int64_t groups = (length + step - 1) / step, all = outer / rows * groups;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(all)) if (outer * width >= DTCONV_PARALLEL_ELEMENTS)
    for (int64_t group = 0; group < all; group++) {
        real values[DTCONV_MAX_INPUTS][DTCONV_SPREAD];
        const real *in[DTCONV_MAX_INPUTS];
        position at;
        seek(t, group / groups * rows, &at);
        const int64_t start = group % groups * step, end = start + step < length ? start + step : length;
        for (int64_t i = start; i < end; i += piece) {
            const int64_t count = end - i < piece ? end - i : piece;
            elem *out = t->out + at.offset[t->inputs] + i;
            for (int k = 0; k < t->inputs; k++)
                in[k] = t->in[k] ? joined(t, k, &at, i, count, i == start, values[k]) : NULL;
#ifdef DTCONV_BFLOAT16
            real result[DTCONV_SPREAD];
            if (t->reads_out) widen_span(count, out, result);
            fn(context, count, in, result);
            store_numbers(out, count, result);
#else
            fn(context, count, in, out);
#endif
        }
    }
}

dtconv_status DT(map_spans)(DT(span_fn) fn, const void *context, int reads_out, const int64_t *layout,
                            const elem *const *in, elem *out) {
    const nest t = {(int)layout[0], (int)layout[1] - 1, layout + 2, layout + 2 + layout[0], in, out, reads_out};
    if (t.ndim < 1 || t.ndim > DTCONV_MAX_DIMS || t.inputs > DTCONV_MAX_INPUTS) return DTCONV_ARGUMENT;
    const int64_t inner = t.shape[t.ndim - 1];
    int64_t outer = 1;
    for (int d = 0; d < t.ndim - 1; d++) outer *= t.shape[d];
    if (inner * outer == 0) return DTCONV_OK;
    if (joins_rows(&t)) {
        map_joined(&t, fn, context, outer);
        return DTCONV_OK;
    }
    const int64_t spans = (inner + DTCONV_SPAN - 1) / DTCONV_SPAN;
    /* each group is a run of items that one thread does: big enough to hide the cost of finding its place */
    const int64_t items = outer * spans;
    const int64_t per_group = spans > 1 || inner >= DTCONV_SPAN ? 1 : DTCONV_SPAN / inner;
    const int64_t groups = (items + per_group - 1) / per_group;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(groups)) if (inner * outer >= DTCONV_PARALLEL_ELEMENTS)
    for (int64_t g = 0; g < groups; g++) {
        const int64_t end = (g + 1) * per_group < items ? (g + 1) * per_group : items;
        position at;
        seek(&t, g * per_group / spans, &at);
        for (int64_t item = g * per_group; item < end; item++) {
            const int64_t j = item % spans * DTCONV_SPAN;
            run_span(&t, fn, context, &at, j, inner - j < DTCONV_SPAN ? inner - j : DTCONV_SPAN);
            if (j + DTCONV_SPAN >= inner) advance(&t, &at);
        }
    }
    return DTCONV_OK;
}

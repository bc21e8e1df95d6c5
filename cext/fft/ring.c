/* See ring.h. */
#include <math.h>
#include <string.h>

#include "../conv/conv_internal.h"
#include "../conv/transpose.h"
#include "butterflies.h"
#include "dtconv_fft.h"
#include "ring.h"

enum { WIDE = 4, NEAR = RING_NEAR }; /* vectors of columns at a time where rows are far apart */

void DT(ring_each)(int threads, int64_t pieces, ring_piece piece, const void *job, real *scratch, int64_t step) {
    if (threads == 1 || pieces == 1) {
        for (int64_t i = 0; i < pieces; i++) piece(job, i, scratch);
        return;
    }
    const int64_t some = MAX(1, MIN(NEAR, pieces / (16 * threads)));
#pragma omp parallel for schedule(dynamic, some) num_threads(threads)
    for (int64_t i = 0; i < pieces; i++) piece(job, i, scratch + dtconv_thread_id() * step);
}

static int is_length(int64_t n) { return n >= V && n % V == 0 && dtconv_fft_length(n); }

int DT(ring_fits)(int64_t first, int64_t high, int64_t wide) {
    int64_t rest = first;
    for (int prime = 2; prime <= 7 && rest > 0; prime++)
        while (rest % prime == 0) rest /= prime;
    return first >= 1 && first <= 4 * DTCONV_FFT_MOST && rest == 1 && is_length(high) && is_length(wide);
}

static int64_t columns_size(int64_t length, int64_t width) {
    return dtconv_line(DT(fft_plan_size)(length)) + dtconv_line(2 * length) + dtconv_line(2 * length * V) +
           dtconv_line(2 * length * (NEAR + dtconv_ceil_div(width / V, NEAR)));
}

int64_t DT(ring_plan_size)(int64_t first, int64_t high, int64_t wide) {
    return (first > 1 ? columns_size(first, high * wide) : 0) + columns_size(high, wide) +
           dtconv_line(DT(fft_plan_size)(wide));
}

int64_t DT(ring_scratch_size)(int64_t first, int64_t high, int64_t wide) {
    const int64_t longest = MAX(first, MAX(high, wide));
    return dtconv_line((4 * WIDE + 4) * longest * V + 2 * V);
}

/* exp(-2 pi i m / q) */
static void root(int64_t m, int64_t q, double *to) {
    m %= q;
    if (2 * m > q) m -= q;
    const double angle = 6.283185307179586476925286766559 * (double)m / (double)q;
    to[0] = cos(angle), to[1] = -sin(angle);
}

/* exp(-2 pi i m / q) to number `at` of a table, or its lane. */
static void put_root(int64_t m, int64_t q, real *table, int64_t at, int64_t lanes, int64_t lane) {
    double z[2];
    root(m, q, z);
    table[2 * at * lanes + lane] = (real)z[0], table[(2 * at + 1) * lanes + lane] = (real)z[1];
}

/* Factors exp(-2 pi i j (k - shift / 4) / n) of row k and column j, and exp(2 pi i k shift / (4 length)). */
static real *columns_on(int64_t length, int64_t width, int64_t shift, real *memory, DT(ring_columns) * c) {
    const int64_t q = 4 * length * width;
    c->length = length, c->width = width;
    DT(fft_plan_on)(length, memory, &c->plan);
    real *weights = memory + dtconv_line(DT(fft_plan_size)(length)), *lanes = weights + dtconv_line(2 * length);
    real *near = lanes + dtconv_line(2 * length * V), *far = near + 2 * length * NEAR;
    c->weights = shift ? weights : NULL, c->lanes = lanes, c->near = near, c->far = far;
    for (int64_t k = 0; k < length; k++) {
        const int64_t m = 4 * k - shift, far_steps = dtconv_ceil_div(width / V, NEAR);
        put_root(-k * shift, 4 * length, weights, k, 1, 0);
        for (int64_t l = 0; l < V; l++) put_root(l * m, q, lanes, k, V, l);
        for (int64_t j = 0; j < MIN(NEAR, width / V); j++) put_root(j * V * m, q, near, j * length + k, 1, 0);
        for (int64_t j = 0; j < far_steps; j++) put_root(j * NEAR * V * m, q, far, j * length + k, 1, 0);
    }
    return memory + columns_size(length, width);
}

void DT(ring_on)(int64_t first, int64_t high, int64_t wide, real *memory, DT(ring) * ring) {
    ring->n = first * high * wide, ring->levels = first > 1 ? 2 : 1;
    if (first > 1) memory = columns_on(first, high * wide, 1, memory, ring->columns);
    memory = columns_on(high, wide, first == 1, memory, ring->columns + ring->levels - 1);
    DT(fft_plan_on)(wide, memory, &ring->rows);
}

INLINE point point_at(const real *x) { return (point){load(x), load(x + V)}; }
INLINE void put_point(real *y, point z) { store(y, z.re), store(y + V, z.im); }
INLINE point product(point a, point b) { return (point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
INLINE point conjugate(point a) { return (point){a.re, -a.im}; }

static void apply(const DT(fft_plan) * plan, int inverse, real *from, real *to, real *scratch) {
    const DT(fft_points) x = {from + inverse * V, from + (1 - inverse) * V, 2 * V};
    const DT(fft_points) y = {to + inverse * V, to + (1 - inverse) * V, 2 * V};
    DT(fft_apply)(plan, &x, &y, scratch);
}

/* The factors of row k in vector `at`. */
INLINE point factors_of(const DT(ring_columns) * c, int64_t k, int64_t at) {
    const real *near = c->near + 2 * (at % NEAR * c->length + k), *far = c->far + 2 * (at / NEAR * c->length + k);
    real re = near[0], im = near[1];
    if (at >= NEAR) re = near[0] * far[0] - near[1] * far[1], im = near[0] * far[1] + near[1] * far[0];
    return times(point_at(c->lanes + 2 * k * V), re, im);
}

/* `count` vectors of columns, from vector `at` on, of the matrix whose real and imaginary parts begin at re and im. */
INLINE void columns(const DT(ring_columns) * c, int inverse, real *re, real *im, int64_t at, int count, real *memory) {
    const int64_t length = c->length, line = 2 * length * V;
    real *scratch = memory + 2 * count * line;
    re += at * V, im += at * V;
    for (int64_t k = 0; k < length; k++)
        for (int v = 0; v < count; v++) {
            point z = {load(re + k * c->width + v * V), load(im + k * c->width + v * V)};
            if (inverse) z = product(z, conjugate(factors_of(c, k, at + v)));
            if (!inverse && c->weights) z = times(z, c->weights[2 * k], c->weights[2 * k + 1]);
            put_point(memory + 2 * v * line + 2 * k * V, z);
        }
    for (int v = 0; v < count; v++)
        apply(&c->plan, inverse, memory + 2 * v * line, memory + (2 * v + 1) * line, scratch);
    for (int64_t k = 0; k < length; k++)
        for (int v = 0; v < count; v++) {
            point z = point_at(memory + (2 * v + 1) * line + 2 * k * V);
            if (!inverse) z = product(z, factors_of(c, k, at + v));
            if (inverse && c->weights) z = times(z, c->weights[2 * k], -c->weights[2 * k + 1]);
            store(re + k * c->width + v * V, z.re);
            store(im + k * c->width + v * V, z.im);
        }
}

static void some_columns(const DT(ring_columns) * c, int inverse, real *re, real *im, int64_t at, int64_t count,
                         real *memory) {
    for (; count >= WIDE; count -= WIDE, at += WIDE) columns(c, inverse, re, im, at, WIDE, memory);
    for (; count > 0; count--, at++) columns(c, inverse, re, im, at, 1, memory);
}

static void all_columns(const DT(ring_columns) * c, int inverse, real *re, real *im, real *memory) {
    for (int64_t at = 0; at < c->width / V; at++) columns(c, inverse, re, im, at, 1, memory);
}

typedef struct {
    const DT(ring) * ring;
    ring_task task;
    int inverse;
    real *x, *spectrum;
} job;

/* V rows of `width` elements to vectors, and back. */
static void take_rows(const real *x, int64_t width, real *to) {
    const real *at[V];
    for (int64_t l = 0; l < V; l++) at[l] = x + l * width;
    transpose(at, width, V, to);
}

static void put_rows(const real *from, int64_t step, int64_t width, real scale, real *x) {
    for (int64_t j = 0; j < width; j += V) {
        real square[V * V + V] __attribute__((aligned(64)));
        const real *at[V];
        for (int64_t l = 0; l < V; l++) at[l] = from + (j + l) * step;
        transpose(at, V, V, square);
        for (int64_t l = 0; l < V; l++) store(x + l * width + j, load(square + l * V) * scale);
    }
}

/* V rows, and their values. */
static void tile(const job *j, real *re, real *im, real *values, real *memory) {
    const int64_t wide = j->ring->rows.n;
    real *lanes = memory, *z = lanes + 2 * wide * V + 2 * V, *scratch = z + 2 * wide * V;
    if (j->task == RING_SPECTRUM) z = values;
    if (j->task != RING_BACK) {
        take_rows(re, wide, lanes), take_rows(im, wide, lanes + wide * V + V);
        const DT(fft_points) x = {lanes, lanes + wide * V + V, V}, y = {z, z + V, 2 * V};
        DT(fft_apply)(&j->ring->rows, &x, &y, scratch);
        if (j->task == RING_SPECTRUM) return;
        for (int64_t k = 0; k < wide; k++)
            put_point(z + 2 * k * V, product(point_at(z + 2 * k * V), point_at(values + 2 * k * V)));
    } else {
        z = values;
    }
    apply(&j->ring->rows, 1, z, lanes, scratch);
    const real scale = (real)(1 / (double)j->ring->n);
    put_rows(lanes, 2 * V, wide, scale, re), put_rows(lanes + V, 2 * V, wide, scale, im);
}

static void column_piece(const void *of, int64_t piece, real *scratch) {
    const job *j = of;
    const DT(ring_columns) *c = j->ring->columns;
    const int64_t some = WIDE, at = piece * some;
    some_columns(c, j->inverse, j->x, j->x + j->ring->n, at, MIN(some, c->width / V - at), scratch);
}

/* V rows, or where rows are matrices one of them. */
static void row_piece(const void *of, int64_t piece, real *scratch) {
    const job *j = of;
    const DT(ring_columns) *c = j->ring->columns + 1;
    const int64_t wide = j->ring->rows.n;
    if (j->ring->levels == 1) {
        real *re = j->x + piece * V * wide;
        tile(j, re, re + j->ring->n, j->spectrum + 2 * piece * V * wide, scratch);
        return;
    }
    const int64_t row = c->length * c->width;
    real *re = j->x + piece * row, *im = re + j->ring->n, *values = j->spectrum + 2 * piece * row;
    if (j->task != RING_BACK) all_columns(c, 0, re, im, scratch);
    for (int64_t k = 0; k < c->length; k += V) tile(j, re + k * wide, im + k * wide, values + 2 * k * wide, scratch);
    if (j->task != RING_SPECTRUM) all_columns(c, 1, re, im, scratch);
}

void DT(ring_run)(const DT(ring) * ring, ring_task task, int threads, real *x, real *spectrum, real *scratch,
                  int64_t step) {
    const DT(ring_columns) *c = ring->columns;
    const int64_t pieces = dtconv_ceil_div(c->width / V, WIDE);
    const job forward = {ring, task, 0, x, spectrum}, back = {ring, task, 1, x, spectrum};
    if (task != RING_BACK) DT(ring_each)(threads, pieces, column_piece, &forward, scratch, step);
    DT(ring_each)(threads, ring->levels == 1 ? c->length / V : c->length, row_piece, &forward, scratch, step);
    if (task != RING_SPECTRUM) DT(ring_each)(threads, pieces, column_piece, &back, scratch, step);
}

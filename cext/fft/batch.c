/* Transforms of many arrays, over one axis or two: V of them at a time, one in each lane of the vectors.
 *
 *   inner > 1   lanes are neighbours in memory: channels of pixels
 *   inner == 1  lanes are arrays of their own: rows of V arrays are transposed on the way in and on the way out
 *
 * Real arrays go in pairs, one as real and the other as imaginary part of what is transformed along the last axis; then
 * each has its own half of the frequencies, and complex transforms along the first axis.  All that belongs to V arrays,
 * or to 2 V, stays in the second cache between its load and its store.
 */
#include <string.h>

#include "../conv/conv_internal.h"
#include "../conv/transpose.h"
#include "dtconv_fft_pixels.h"
#include "dtconv_vector.h"

enum { ROOM = 64 }; /* past a row: what transposition writes beyond it */

/* Of a thread: arrays of complex points, two where they are real; a row of points. */
typedef struct {
    const dtconv_fft_problem *p;
    const real *x;
    real *y;
    DT(fft_plan) high, wide;
    int64_t columns, groups; /* frequencies of a row that are kept; groups of up to V lanes */
    int64_t x_step, y_step;  /* reals from one array to the next */
    int64_t row;             /* reals from row to row of an array */
} batch;

static int is_real(const dtconv_fft_problem *p) { return p->kind >= DTCONV_FFT_REAL; }

static batch batch_of(const dtconv_fft_problem *p) {
    batch b = {.p = p, .columns = is_real(p) ? p->wide / 2 + 1 : p->wide};
    b.groups = p->inner == 1 ? dtconv_ceil_div(p->outer, V) : p->outer * dtconv_ceil_div(p->inner, V);
    const int64_t y_wide = p->kind == DTCONV_FFT_REAL ? b.columns : p->wide;
    b.x_step = p->x_high * p->x_wide * p->inner * (p->kind == DTCONV_FFT_REAL ? 1 : 2);
    b.y_step = p->high * y_wide * p->inner * (p->kind == DTCONV_FFT_TO_REAL ? 1 : 2);
    b.row = (2 * b.columns + 1) * V;
    return b;
}

static int64_t plans_size(const dtconv_fft_problem *p) {
    return dtconv_line(DT(fft_plan_size)(p->high)) + dtconv_line(DT(fft_plan_size)(p->wide));
}

static int64_t line_size(const dtconv_fft_problem *p) { return 2 * MAX(MAX(p->high, p->wide), p->x_wide) * V + ROOM; }

static int64_t thread_size(const dtconv_fft_problem *p) {
    const batch b = batch_of(p);
    return dtconv_line((1 + is_real(p)) * p->high * b.row + 3 * line_size(p) +
                       DT(fft_scratch_size)(MAX(p->high, p->wide)));
}

/* Lanes of a group: how many, and where the first one is. */
static int64_t lanes_of(const batch *b, int64_t group, int64_t *array, int64_t *channel) {
    const int64_t vectors = dtconv_ceil_div(b->p->inner, V);
    *array = b->p->inner == 1 ? group * V : group / vectors;
    *channel = b->p->inner == 1 ? 0 : group % vectors * V;
    return b->p->inner == 1 ? MIN(V, b->p->outer - *array) : MIN(V, b->p->inner - *channel);
}

/* `count` points of row i of a group's arrays in x, `parts` reals each, as vectors: point j at to[j parts V]. */
static void load_row(const batch *b, int64_t group, int64_t i, int64_t count, int parts, real *to) {
    int64_t array, channel;
    const int64_t lanes = lanes_of(b, group, &array, &channel), inner = b->p->inner;
    const real *from = b->x + array * b->x_step + i * b->p->x_wide * inner * parts + channel * parts;
    if (inner == 1) {
        const real *at[V];
        for (int64_t l = 0; l < V; l++) at[l] = from + MIN(l, lanes - 1) * b->x_step;
        transpose(at, count * parts, V, to);
        return;
    }
    for (int64_t j = 0; j < count; j++, from += inner * parts, to += parts * V) {
        if (parts == 1) {
            store(to, load_part(from, lanes));
            continue;
        }
        for (int64_t l = 0; l < lanes; l++) to[l] = from[2 * l], to[V + l] = from[2 * l + 1];
        for (int64_t l = lanes; l < V; l++) to[l] = to[V + l] = 0;
    }
}

/* The inverse of it, to row i of y; point j at from[j step], scaled. */
static void store_row(const batch *b, int64_t group, int64_t i, int64_t count, int parts, const real *from,
                      int64_t step) {
    int64_t array, channel;
    const int64_t lanes = lanes_of(b, group, &array, &channel), inner = b->p->inner;
    real *to = b->y + array * b->y_step + i * count * inner * parts + channel * parts;
    const real scale = (real)b->p->scale;
    if (inner == 1) { /* V vectors at a time: one of each lane */
        real square[V * V + V] __attribute__((aligned(64)));
        const real *at[V];
        for (int64_t j = 0; j < count * parts; j += V) {
            const int64_t some = MIN(V, count * parts - j);
            /* of pairs, which lie side by side, vectors are V apart */
            const int64_t apart = parts == 2 ? V : step;
            for (int64_t k = 0; k < V; k++) at[k] = from + (j + MIN(k, some - 1)) * apart;
            transpose(at, V, V, square);
            for (int64_t l = 0; l < lanes; l++) store_part(to + l * b->y_step + j, some, load(square + l * V) * scale);
        }
        return;
    }
    for (int64_t j = 0; j < count; j++, from += step, to += inner * parts)
        if (parts == 1)
            store_part(to, lanes, load(from) * scale);
        else
            for (int64_t l = 0; l < lanes; l++) to[2 * l] = from[l] * scale, to[2 * l + 1] = from[V + l] * scale;
}

static DT(fft_points) points_at(real *at, int64_t step, int inverse) {
    return inverse ? (DT(fft_points)){at + V, at, step} : (DT(fft_points)){at, at + V, step};
}

/* Complex transforms of all columns of an array, in place. */
static void columns_of(const batch *b, int inverse, real *array, real *line, real *scratch) {
    if (b->p->high == 1) return;
    const DT(fft_points) to = points_at(line, 2 * V, inverse);
    for (int64_t k = 0; k < b->columns; k++) {
        real *at = array + 2 * k * V;
        const DT(fft_points) from = points_at(at, b->row, inverse);
        DT(fft_apply)(&b->high, &from, &to, scratch);
        for (int64_t i = 0; i < b->p->high; i++, at += b->row) {
            store(at, load(line + 2 * i * V));
            store(at + V, load(line + 2 * i * V + V));
        }
    }
}

static void complex_group(const batch *b, int64_t group, real *array, real *line, real *scratch) {
    const dtconv_fft_problem *p = b->p;
    const int inverse = p->kind == DTCONV_FFT_INVERSE;
    const int64_t rows = MIN(p->high, p->x_high), count = MIN(p->wide, p->x_wide);
    for (int64_t i = 0; i < p->high; i++) {
        real *row = array + i * b->row;
        if (i >= rows) {
            memset(row, 0, (size_t)(2 * p->wide * V) * sizeof(real));
            continue;
        }
        load_row(b, group, i, count, 2, line);
        memset(line + 2 * count * V, 0, (size_t)(2 * (p->wide - count) * V) * sizeof(real));
        const DT(fft_points) from = points_at(line, 2 * V, inverse), to = points_at(row, 2 * V, inverse);
        DT(fft_apply)(&b->wide, &from, &to, scratch);
    }
    columns_of(b, inverse, array, line, scratch);
    for (int64_t i = 0; i < p->high; i++) store_row(b, group, i, p->wide, 2, array + i * b->row, 2 * V);
}

/* Two real rows to their frequencies: z is the transform of the first plus i times the second. */
static void untangle(const batch *b, const real *z, real *first, real *second) {
    const int64_t n = b->p->wide;
    for (int64_t k = 0; k < b->columns; k++, first += 2 * V, second += 2 * V) {
        const real *at = z + 2 * k * V, *mirror = z + 2 * (k ? n - k : 0) * V;
        const vec re = load(at), im = load(at + V), mirror_re = load(mirror), mirror_im = load(mirror + V);
        const real half = (real)0.5;
        store(first, (re + mirror_re) * half);
        store(first + V, (im - mirror_im) * half);
        store(second, (im + mirror_im) * half);
        store(second + V, (mirror_re - re) * half);
    }
}

/* The inverse: frequencies of two real rows to z; imaginary parts of frequencies that have none are not read. */
static void tangle(const batch *b, const real *first, const real *second, real *z) {
    const int64_t n = b->p->wide;
    for (int64_t k = 0; k < b->columns; k++, first += 2 * V, second += 2 * V) {
        real *at = z + 2 * k * V, *mirror = z + 2 * (k ? n - k : 0) * V;
        const vec re = load(first), other = load(second);
        const vec im = load(first + V), other_im = load(second + V);
        if (k == 0 || 2 * k == n) {
            store(at, re);
            store(at + V, other);
            continue;
        }
        store(at, re - other_im);
        store(at + V, im + other);
        store(mirror, re + other_im);
        store(mirror + V, other - im);
    }
}

/* Two groups of real arrays; the second may be missing. */
static void real_groups(const batch *b, int64_t group, int two, real *arrays, real *line, real *scratch) {
    const dtconv_fft_problem *p = b->p;
    const int64_t size = p->high * b->row, rows = MIN(p->high, p->x_high), count = MIN(p->wide, p->x_wide);
    real *z = line + 2 * line_size(p);
    const real *pixels[2][DTCONV_FFT_MOST]; /* of both rows, each transposed to vectors, and zeros behind them */
    for (int64_t j = 0; j < p->wide; j++)
        for (int t = 0; t < 2; t++)
            pixels[t][j] = j < count && t <= two ? line + t * line_size(p) + j * V : line + line_size(p) - V;
    memset(line + line_size(p) - V, 0, (size_t)V * sizeof(real));
    for (int64_t i = 0; i < p->high; i++) {
        real *first = arrays + i * b->row, *second = first + size;
        if (i >= rows) {
            memset(first, 0, (size_t)(2 * b->columns * V) * sizeof(real));
            memset(second, 0, (size_t)(2 * b->columns * V) * sizeof(real));
            continue;
        }
        for (int t = 0; t < 1 + two; t++) load_row(b, group + t, i, count, 1, line + t * line_size(p));
        const DT(fft_points) to = points_at(z, 2 * V, 0);
        DT(fft_pixels)(&b->wide, pixels[0], pixels[1], 0, &to, scratch);
        untangle(b, z, first, second);
    }
    for (int t = 0; t < 1 + two; t++) {
        columns_of(b, 0, arrays + t * size, line, scratch);
        for (int64_t i = 0; i < p->high; i++)
            store_row(b, group + t, i, b->columns, 2, arrays + t * size + i * b->row, 2 * V);
    }
}

static void groups_to_real(const batch *b, int64_t group, int two, real *arrays, real *line, real *scratch) {
    const dtconv_fft_problem *p = b->p;
    const int64_t size = p->high * b->row, rows = MIN(p->high, p->x_high), count = MIN(b->columns, p->x_wide);
    real *z = line + line_size(p);
    memset(arrays, 0, (size_t)(2 * size) * sizeof(real));
    for (int t = 0; t < 1 + two; t++) {
        for (int64_t i = 0; i < rows; i++) {
            load_row(b, group + t, i, count, 2, line);
            memcpy(arrays + t * size + i * b->row, line, (size_t)(2 * count * V) * sizeof(real));
        }
        columns_of(b, 1, arrays + t * size, line, scratch);
    }
    for (int64_t i = 0; i < p->high; i++) {
        const real *first = arrays + i * b->row;
        tangle(b, first, first + size, line);
        const DT(fft_points) from = points_at(line, 2 * V, 1), to = points_at(z, 2 * V, 1);
        DT(fft_apply)(&b->wide, &from, &to, scratch);
        for (int t = 0; t < 1 + two; t++) store_row(b, group + t, i, p->wide, 1, z + t * V, 2 * V);
    }
}

static int fits(const dtconv_fft_problem *p) {
    return p->outer > 0 && p->inner > 0 && p->x_high > 0 && p->x_wide > 0 && dtconv_fft_length(p->high) &&
           dtconv_fft_length(p->wide) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->outer, p->x_high, p->x_wide, p->inner) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, p->outer, p->high, p->wide, p->inner);
}

size_t DT(fft_batch_workspace)(const dtconv_fft_problem *p) {
    if (!fits(p)) return 0;
    return 64 + (size_t)(plans_size(p) + dtconv_get_num_threads() * thread_size(p)) * sizeof(real);
}

dtconv_status DT(fft_batch)(const dtconv_fft_problem *p, const real *x, real *y, void *workspace, size_t bytes) {
    if (!fits(p)) return DTCONV_ARGUMENT;
    if (bytes < DT(fft_batch_workspace)(p)) return DTCONV_WORKSPACE;
    batch b = batch_of(p);
    b.x = x, b.y = y;
    real *plans = (real *)(((uintptr_t)workspace + 63) / 64 * 64), *threads = plans + plans_size(p);
    DT(fft_plan_on)(p->high, plans, &b.high);
    DT(fft_plan_on)(p->wide, plans + dtconv_line(DT(fft_plan_size)(p->high)), &b.wide);
    const int64_t at_once = 1 + is_real(p), units = dtconv_ceil_div(b.groups, at_once);
#pragma omp parallel num_threads(dtconv_get_num_threads())
    {
        real *arrays = threads + dtconv_thread_id() * thread_size(p), *line = arrays + at_once * p->high * b.row;
        real *scratch = line + 3 * line_size(p);
#pragma omp for schedule(static)
        for (int64_t unit = 0; unit < units; unit++) {
            const int64_t group = unit * at_once;
            const int two = group + 1 < b.groups;
            if (p->kind == DTCONV_FFT_REAL)
                real_groups(&b, group, two, arrays, line, scratch);
            else if (p->kind == DTCONV_FFT_TO_REAL)
                groups_to_real(&b, group, two, arrays, line, scratch);
            else
                complex_group(&b, group, arrays, line, scratch);
        }
    }
    return DTCONV_OK;
}

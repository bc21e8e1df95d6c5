/* Convolution of signals and images of any length in blocks:
 *
 *   y[o] = sum over t of b[t] a[o - t]           o and t have one axis or two
 *
 * All methods are one: a *target* is a rectangle of results, the sum of products of blocks of a with blocks of b.
 *
 *              targets                                     products of a target
 *   DISCARD    disjoint                                    one, of a window of a
 *   ADD        those of a block of a, which overlap        one
 *   PARTS      intervals, which overlap                    all whose blocks i, j have i part_a + j part_b at its offset
 *
 * A block of two axes is one sequence: its rows lie behind each other, each with room for what a row's results have
 * more.  So one kind of transform (ring.h) serves all, or, without transforms, one loop over taps.
 */
#include <string.h>

#include "../conv/conv_internal.h"
#include "dtconv_fft.h"
#include "dtconv_vector.h"
#include "ring.h"

enum { PIECE = 1 << 14, WIDE = 8, COUNTS = DTCONV_OVERLAP_COUNTS };
enum { GROUPS, READS, WRITES, POINTS, LOCAL }; /* of counts */
enum { LARGE = 1 << 14 };                      /* points of a transform that several threads share */

/* Targets along an axis: number u, first <= u < last, begins at base + u * stride; it has `results`. */
typedef struct {
    int64_t first, last, base, stride, results;
    int64_t ratio, few; /* of PARTS: only targets whose number has a remainder by ratio below few have products */
    int64_t blocks[2], parts[2]; /* first and last of a's and of b's blocks that are used */
    int64_t window;              /* elements of a product's memory, of which results are the last ones */
} axis;

typedef struct {
    const dtconv_overlap *p;
    axis axes[2];
    const DT(ring) * ring; /* NULL: without transforms */
    const real *a;
    real *y, *of_a, *of_b;              /* values of blocks, or b's taps in reverse */
    int64_t size, b_size, memory, step; /* elements: of a block's values, of those of b, of its memory, of a thread */
    int64_t results, pitch;             /* of a signal; from row to row of sums without transforms */
    real *of_dy;                        /* a layer's, with of_a and of_b; else NULL */
    int64_t signal;                     /* at work now, with targets from number `from` on, `apart` */
    int64_t from[2], apart[2], count[2];
    int inner; /* threads of a block */
} overlap;

/* Blocks of `size` that reach results [start, stop), each having as many as itself and `more`. */
static void reach(int64_t extent, int64_t size, int64_t more, int64_t start, int64_t stop, int64_t *range) {
    range[0] = start < size + more ? 0 : (start - more) / size;
    range[1] = MIN(dtconv_ceil_div(extent, size), dtconv_ceil_div(stop, size));
}

static axis axis_of(const dtconv_overlap *p, int d) {
    const int64_t n = p->a[d], m = p->b[d], block = p->block[d], part = p->part[d];
    axis x = {.stride = block, .results = block + part - 1, .ratio = 1, .few = 1};
    reach(n, block, m - 1, p->start[d], p->stop[d], x.blocks);
    reach(m, part, n - 1, p->start[d], p->stop[d], x.parts);
    if (p->method == DTCONV_DISCARD) {
        x.base = p->start[d], x.results = block;
        x.last = dtconv_ceil_div(p->stop[d] - p->start[d], block);
    } else if (p->method == DTCONV_ADD) {
        x.first = x.blocks[0], x.last = x.blocks[1];
    } else {
        x.stride = MIN(block, part);
        x.ratio = MAX(block, part) / x.stride;
        x.few = block < part ? dtconv_ceil_div(n, block) : dtconv_ceil_div(m, part); /* blocks of the shorter length */
        const int64_t most = (dtconv_ceil_div(n, block) - 1) * block + (dtconv_ceil_div(m, part) - 1) * part;
        x.first = p->start[d] < x.results ? 0 : (p->start[d] - x.results) / x.stride + 1;
        x.last = MIN(most, p->stop[d] - 1) / x.stride + 1;
    }
    x.window = x.results + (p->points[0] && p->method != DTCONV_DISCARD ? 0 : part - 1);
    return x;
}

/* Whether all targets may be written at a time. */
static int at_once(const dtconv_overlap *p) { return p->is_private || p->method == DTCONV_DISCARD; }

static int64_t points_of(const dtconv_overlap *p) { return p->points[0] * p->points[1] * p->points[2]; }

static overlap overlap_of(const dtconv_overlap *p) {
    overlap s = {.p = p, .axes = {axis_of(p, 0), axis_of(p, 1)}, .inner = 1};
    s.results = (p->stop[0] - p->start[0]) * (p->stop[1] - p->start[1]);
    s.pitch = dtconv_round_to(s.axes[1].results, V);
    s.size = 2 * points_of(p);
    s.b_size = s.size ? s.size : dtconv_line(p->part[0] * p->part[1]);
    s.memory = dtconv_line(s.size ? s.size : s.axes[0].window * s.axes[1].window + WIDE * V);
    const int64_t counts = dtconv_line(COUNTS * (int64_t)(sizeof(int64_t) / sizeof(real)));
    const int64_t scratch = s.size ? DT(ring_scratch_size)(p->points[0], p->points[1], p->points[2])
                                   : dtconv_line(s.axes[0].results * s.pitch);
    s.step = counts + s.memory + scratch + (p->method == DTCONV_DISCARD ? 0 : s.size);
    return s;
}

static int64_t parts_of(const overlap *s) {
    const axis *x = s->axes;
    return (x[0].parts[1] - x[0].parts[0]) * (x[1].parts[1] - x[1].parts[0]);
}

/* Blocks of a whose values are kept. */
static int64_t blocks_of(const overlap *s) {
    const axis *x = s->axes;
    if (!s->size || (s->p->method != DTCONV_PARTS && !s->of_dy)) return 0;
    return (x[0].blocks[1] - x[0].blocks[0]) * (x[1].blocks[1] - x[1].blocks[0]);
}

static int64_t private_size(const overlap *s) {
    return s->p->is_private ? dtconv_line(s->p->steps[0] * s->p->steps[1] * s->p->signals * s->results) : 0;
}

/* A thread's memory: counts, a block, and scratch. */
static int64_t *counts_of(real *memory) { return (int64_t *)(void *)memory; }
static real *block_of(real *memory) { return memory + dtconv_line(COUNTS * (int64_t)(sizeof(int64_t) / sizeof(real))); }

/* A window of an array, of its elements [low, high) alone: zeros around them. */
typedef struct {
    const real *from;
    int64_t columns, low[2], high[2], at[2]; /* at: where it begins */
    int64_t pitch, size;                     /* of its rows in memory, and of all that is written */
    real *to;
} window;

/* Elements [first, last) of a window's memory. */
static void gather(const window *w, int64_t first, int64_t last) {
    memset(w->to + first, 0, (size_t)(last - first) * sizeof(real));
    const int64_t above = MAX(0, w->low[0] - w->at[0]), below = w->high[0] - w->at[0];
    for (int64_t i = MAX(first / w->pitch, above); i < below && i * w->pitch < last; i++) {
        const int64_t row = i * w->pitch;
        const int64_t left = MAX(MAX(first - row, 0), w->low[1] - w->at[1]);
        const int64_t right = MIN(MIN(last - row, w->pitch), w->high[1] - w->at[1]);
        const real *from = w->from + (w->at[0] + i) * w->columns + w->at[1] + left;
        if (right > left) memcpy(w->to + row + left, from, (size_t)(right - left) * sizeof(real));
    }
}

static void gather_piece(const void *of, int64_t piece, real *scratch) {
    const window *w = of;
    (void)scratch;
    gather(w, piece * PIECE, MIN(w->size, (piece + 1) * PIECE));
}

/* Blocks' elements of an array to a thread's memory. */
static void take(const overlap *s, const window *w, real *memory) {
    int64_t elements = 1;
    for (int d = 0; d < 2; d++) {
        const int64_t last = MIN(w->high[d], w->at[d] + s->axes[d].window);
        elements *= MAX(0, last - MAX(w->low[d], w->at[d]));
    }
    counts_of(memory)[READS] += elements;
    if (s->inner > 1)
        DT(ring_each)(s->inner, dtconv_ceil_div(w->size, PIECE), gather_piece, w, memory, 0);
    else
        gather(w, 0, w->size);
}

/* The window of product (i, j) at results from `at` on. */
static window window_of(const overlap *s, const int64_t *at, const int64_t *i, const int64_t *j, real *memory) {
    const dtconv_overlap *p = s->p;
    window w = {.from = s->a + s->signal * p->a[0] * p->a[1], .columns = p->a[1], .pitch = s->axes[1].window};
    w.to = block_of(memory);
    w.size = s->memory;
    for (int d = 0; d < 2; d++) {
        const int64_t before = s->axes[d].window - s->axes[d].results;
        w.low[d] = p->method == DTCONV_DISCARD ? 0 : i[d] * p->block[d];
        w.high[d] = p->method == DTCONV_DISCARD ? p->a[d] : MIN(p->a[d], w.low[d] + p->block[d]);
        w.at[d] = at[d] - j[d] * p->part[d] - before;
    }
    return w;
}

/* Results of a block to those of a signal: `rows` of `columns`, their rows so far apart. */
typedef struct {
    const real *from;
    real *to;
    int64_t rows, columns, from_pitch, to_pitch;
    int adds;
} scatter;

static void scatter_piece(const void *of, int64_t piece, real *scratch) {
    const scatter *r = of;
    (void)scratch;
    const int64_t last = MIN(r->rows * r->columns, (piece + 1) * PIECE);
    for (int64_t e = piece * PIECE; e < last;) {
        const int64_t i = e / r->columns, j = e % r->columns, count = MIN(r->columns - j, last - e);
        const real *from = r->from + i * r->from_pitch + j;
        real *to = r->to + i * r->to_pitch + j;
        if (r->adds)
            for (int64_t k = 0; k < count; k++) to[k] += from[k];
        else
            memcpy(to, from, (size_t)count * sizeof(real));
        e += count;
    }
}

/* A target's sums, to the results that are asked for. */
static void give(const overlap *s, const int64_t *at, const int64_t *number, const real *from, int64_t pitch,
                 real *memory) {
    const dtconv_overlap *p = s->p;
    const int64_t columns = p->stop[1] - p->start[1];
    int64_t low[2], high[2], *counts = counts_of(memory);
    for (int d = 0; d < 2; d++) {
        low[d] = MAX(0, p->start[d] - at[d]);
        high[d] = MIN(p->stop[d] - at[d], s->axes[d].results);
        if (high[d] <= low[d]) return;
    }
    const scatter r = {
        .from = from + low[0] * pitch + low[1],
        .to = s->y + s->signal * s->results + (at[0] + low[0] - p->start[0]) * columns + at[1] + low[1] - p->start[1] +
              (p->is_private ? ((number[0] % p->steps[0]) * p->steps[1] + number[1] % p->steps[1]) : 0) * p->signals *
                  s->results,
        .rows = high[0] - low[0],
        .columns = high[1] - low[1],
        .from_pitch = pitch,
        .to_pitch = columns,
        .adds = p->method != DTCONV_DISCARD && !p->is_private,
    };
    counts[GROUPS]++;
    counts[WRITES] += r.rows * r.columns;
    counts[READS] += r.adds ? r.rows * r.columns : 0;
    DT(ring_each)(s->inner, dtconv_ceil_div(r.rows * r.columns, PIECE), scatter_piece, &r, memory, 0);
}

/* sums += taps over a window, `vectors` of results at a time. */
INLINE void direct(const overlap *s, int vectors, int64_t row, int64_t column, const real *x, const real *taps,
                   real *sums) {
    const int64_t high = s->p->part[0], wide = s->p->part[1], pitch = s->axes[1].window;
    vec sum[WIDE];
    sums += row * s->pitch + column;
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = load(sums + v * V);
    for (int64_t i = 0; i < high; i++) {
        const real *from = x + (row + i) * pitch + column;
        for (int64_t j = 0; j < wide; j++) {
            const vec tap = (vec){0} + taps[i * wide + j];
            UNROLL for (int v = 0; v < vectors; v++) sum[v] = multiply_add(load(from + j + v * V), tap, sum[v]);
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) store(sums + v * V, sum[v]);
}

static void direct_block(const overlap *s, const real *x, const real *taps, real *sums) {
    for (int64_t row = 0; row < s->axes[0].results; row++) {
        int64_t column = 0;
        for (; column + WIDE * V <= s->pitch; column += WIDE * V) direct(s, WIDE, row, column, x, taps, sums);
        for (; column < s->pitch; column += V) direct(s, 1, row, column, x, taps, sums);
    }
}

/* sum (+)= x y, elements [first, last) of values; conjugate: of y, which makes of a convolution a correlation. */
INLINE void add_products(const real *x, const real *y, int64_t first, int64_t last, int is_first, int conjugate,
                         real *sum) {
    for (int64_t k = first; k < last; k += 2 * V) {
        const vec a = load(x + k), b = load(x + k + V), c = load(y + k);
        const vec d = conjugate ? -load(y + k + V) : load(y + k + V);
        const vec re = is_first ? (vec){0} : load(sum + k), im = is_first ? (vec){0} : load(sum + k + V);
        store(sum + k, multiply_add(a, c, re) - b * d);
        store(sum + k + V, multiply_add(a, d, multiply_add(b, c, im)));
    }
}
static void add_product(const real *x, const real *y, int64_t first, int64_t last, int is_first, real *sum) {
    add_products(x, y, first, last, is_first, 0, sum);
}
static void add_correlation(const real *x, const real *y, int64_t first, int64_t last, int is_first, real *sum) {
    add_products(x, y, first, last, is_first, 1, sum);
}

/* Along an axis, the products at an offset: blocks i, from *i on, and j; 0 where there is none any more. */
static int next_pair(const dtconv_overlap *p, const axis *x, int d, int64_t offset, int64_t *i, int64_t *j) {
    const int64_t before = offset - (x->parts[1] - 1) * p->part[d]; /* of the last part */
    if (before > 0) *i = MAX(*i, dtconv_ceil_div(before, p->block[d]));
    for (; *i < x->blocks[1] && *i * p->block[d] <= offset; ++*i) {
        const int64_t rest = offset - *i * p->block[d];
        *j = rest / p->part[d];
        if (rest % p->part[d] == 0 && *j >= x->parts[0] && *j < x->parts[1]) return 1;
    }
    return 0;
}

static int64_t index_of(const int64_t *number, const axis *axes, int of_b) {
    const int64_t *rows = of_b ? axes[0].parts : axes[0].blocks, *columns = of_b ? axes[1].parts : axes[1].blocks;
    return (number[0] - rows[0]) * (columns[1] - columns[0]) + number[1] - columns[0];
}

/* The sums of a target of PARTS, or of one without transforms; returns whether there is any product. */
static int sum_of_pairs(const overlap *s, const int64_t *at, real *memory, real *sums) {
    const dtconv_overlap *p = s->p;
    int64_t i[2], j[2];
    int any = 0;
    for (i[0] = s->axes[0].blocks[0]; next_pair(p, s->axes, 0, at[0], i, j); i[0]++)
        for (i[1] = s->axes[1].blocks[0]; next_pair(p, s->axes + 1, 1, at[1], i + 1, j + 1); i[1]++, any = 1) {
            const real *of_b = s->of_b + index_of(j, s->axes, 1) * s->b_size;
            if (s->size) {
                counts_of(memory)[READS] += 2 * s->size;
                add_product(s->of_a + index_of(i, s->axes, 0) * s->size, of_b, 0, s->size, !any, sums);
                continue;
            }
            const window w = window_of(s, at, i, j, memory);
            take(s, &w, memory);
            counts_of(memory)[READS] += s->b_size;
            direct_block(s, w.to, of_b, sums);
        }
    return any;
}

/* Target `piece` of the division at work. */
static void target_piece(const void *of, int64_t piece, real *memory) {
    const overlap *all = of;
    const dtconv_overlap *p = all->p;
    int64_t number[2], at[2];
    for (int d = 1; d >= 0; d--) {
        number[d] = all->from[d] + piece % all->count[d] * all->apart[d];
        piece /= all->count[d];
        if (number[d] % all->axes[d].ratio >= all->axes[d].few) return;
    }
    overlap s = *all;
    for (int d = 0; d < 2; d++) at[d] = s.axes[d].base + number[d] * s.axes[d].stride;
    s.signal += piece;
    real *block = block_of(memory), *scratch = block + s.memory, *sums = scratch;
    counts_of(memory)[POINTS] += s.size ? s.size : s.axes[0].results * s.axes[1].results;
    if (!s.size) memset(sums, 0, (size_t)(s.axes[0].results * s.pitch) * sizeof(real));
    if (p->method == DTCONV_PARTS || (!s.size && p->method == DTCONV_ADD)) {
        if (s.size) sums = memory + s.step - s.size;
        if (!sum_of_pairs(&s, at, memory, sums)) return;
        if (s.size) DT(ring_run)(s.ring, RING_BACK, s.inner, block, sums, scratch, s.step);
    } else {
        const window w = window_of(&s, at, number, (int64_t[]){0, 0}, memory);
        take(&s, &w, memory);
        counts_of(memory)[READS] += s.b_size;
        if (s.of_dy) { /* the block's values are kept */
            real *values = s.of_a + (s.signal * blocks_of(&s) + index_of(number, s.axes, 0)) * s.size;
            sums = memory + s.step - s.size;
            DT(ring_run)(s.ring, RING_SPECTRUM, s.inner, block, values, scratch, s.step);
            add_product(values, s.of_b, 0, s.size, 1, sums);
            DT(ring_run)(s.ring, RING_BACK, s.inner, block, sums, scratch, s.step);
        } else if (s.size)
            DT(ring_run)(s.ring, RING_PRODUCT, s.inner, block, s.of_b, scratch, s.step);
        else
            direct_block(&s, block, s.of_b, sums);
    }
    if (!s.size) {
        give(&s, at, number, sums, s.pitch, memory);
        return;
    }
    const axis *x = s.axes;
    block += (x[0].window - x[0].results) * x[1].window + x[1].window - x[1].results;
    give(&s, at, number, block, x[1].window, memory);
}

/* Values of block `piece` of a, or of b. */
static void values_piece(const overlap *s, int of_b, int64_t piece, real *memory) {
    const dtconv_overlap *p = s->p;
    const axis *x = s->axes;
    const int64_t *size = of_b ? p->part : p->block, *n = of_b ? p->b : p->a;
    const int64_t *rows = of_b ? x[0].parts : x[0].blocks, *columns = of_b ? x[1].parts : x[1].blocks;
    const int64_t number[2] = {rows[0] + piece / (columns[1] - columns[0]),
                               columns[0] + piece % (columns[1] - columns[0])};
    window w = {.from = s->a + (of_b ? 0 : s->signal * n[0] * n[1]), .columns = n[1], .pitch = x[1].window};
    w.to = block_of(memory), w.size = s->memory;
    for (int d = 0; d < 2; d++) {
        w.at[d] = w.low[d] = number[d] * size[d];
        w.high[d] = MIN(n[d], w.low[d] + size[d]);
    }
    if (!s->size) { /* b's taps in reverse */
        real *to = s->of_b + piece * s->b_size;
        for (int64_t i = 0; i < size[0]; i++)
            for (int64_t j = 0; j < size[1]; j++) {
                const int is_there = w.at[0] + i < w.high[0] && w.at[1] + j < w.high[1];
                to[(size[0] - 1 - i) * size[1] + size[1] - 1 - j] =
                    is_there ? w.from[(w.at[0] + i) * w.columns + w.at[1] + j] : 0;
            }
        return;
    }
    take(s, &w, memory);
    counts_of(memory)[WRITES] += s->size;
    DT(ring_run)(s->ring, RING_SPECTRUM, s->inner, w.to, (of_b ? s->of_b : s->of_a) + piece * s->size, w.to + s->memory,
                 s->step);
}

static void a_piece(const void *of, int64_t piece, real *memory) { values_piece(of, 0, piece, memory); }
static void b_piece(const void *of, int64_t piece, real *memory) { values_piece(of, 1, piece, memory); }

/* Blocks by a thread each, or, where they are large and few, one after the other by all. */
static void each(overlap *s, int64_t pieces, ring_piece piece, real *memory) {
    const int threads = s->p->threads;
    s->inner = s->size >= 2 * LARGE && pieces < 4 * threads ? threads : 1;
    DT(ring_each)(s->inner > 1 ? 1 : threads, pieces, piece, s, memory, s->step);
    s->inner = 1;
}

typedef struct {
    real *y;
    const real *from; /* NULL: zeros */
    int64_t size, divisions;
} sum;

static void sum_piece(const void *of, int64_t piece, real *scratch) {
    const sum *t = of;
    (void)scratch;
    const int64_t first = piece * PIECE, last = MIN(t->size, first + PIECE);
    memset(t->y + first, 0, (size_t)(last - first) * sizeof(real));
    for (int64_t d = 0; d < t->divisions; d++)
        for (int64_t k = first; k < last; k++) t->y[k] += t->from[d * t->size + k];
}

/* Targets whose numbers along axis d have a remainder by its steps, or all at once. */
static int divide(overlap *s, int d, int64_t remainder) {
    const axis *x = s->axes + d;
    s->apart[d] = at_once(s->p) ? 1 : s->p->steps[d];
    s->from[d] = x->first + remainder;
    s->count[d] = s->from[d] < x->last ? dtconv_ceil_div(x->last - s->from[d], s->apart[d]) : 0;
    return remainder < s->apart[d] && s->count[d] > 0;
}

static void all_targets(overlap *s, real *memory) {
    for (int64_t i = 0; divide(s, 0, i); i++)
        for (int64_t j = 0; divide(s, 1, j); j++) {
            const int64_t signals = s->p->method == DTCONV_PARTS ? 1 : s->p->signals;
            each(s, s->count[0] * s->count[1] * signals, target_piece, memory);
        }
}

/* Of a layer: block `piece` of dy, whose values are kept, gives its block of da. */
static void da_piece(const void *of, int64_t piece, real *memory) {
    const overlap *s = of;
    const dtconv_overlap *p = s->p;
    const axis *x = s->axes;
    const int64_t blocks = blocks_of(s), wide = x[1].blocks[1] - x[1].blocks[0], signal = piece / blocks;
    const int64_t number[2] = {x[0].blocks[0] + piece % blocks / wide, x[1].blocks[0] + piece % blocks % wide};
    real *block = block_of(memory), *scratch = block + s->memory, *sums = memory + s->step - s->size;
    window w = {.from = s->a + signal * s->results, .columns = p->stop[1] - p->start[1], .pitch = x[1].window};
    w.to = block, w.size = s->memory;
    for (int d = 0; d < 2; d++) w.at[d] = number[d] * p->block[d] - p->start[d], w.high[d] = p->stop[d] - p->start[d];
    take(s, &w, memory);
    DT(ring_run)(s->ring, RING_SPECTRUM, s->inner, block, s->of_dy + piece * s->size, scratch, s->step);
    add_correlation(s->of_dy + piece * s->size, s->of_b, 0, s->size, 1, sums);
    DT(ring_run)(s->ring, RING_BACK, s->inner, block, sums, scratch, s->step);
    const int64_t top = number[0] * p->block[0], left = number[1] * p->block[1];
    const scatter r = {.from = block,
                       .to = s->y + (signal * p->a[0] + top) * p->a[1] + left,
                       .rows = MIN(p->block[0], p->a[0] - top),
                       .columns = MIN(p->block[1], p->a[1] - left),
                       .from_pitch = x[1].window,
                       .to_pitch = p->a[1]};
    DT(ring_each)(s->inner, dtconv_ceil_div(r.rows * r.columns, PIECE), scatter_piece, &r, memory, 0);
}

/* Of a layer: some of the values of db, the sum over all blocks. */
static void db_piece(const void *of, int64_t piece, real *memory) {
    const overlap *s = of;
    const int64_t first = piece * PIECE, last = MIN(s->size, first + PIECE), blocks = s->p->signals * blocks_of(s);
    (void)memory;
    for (int64_t i = 0; i < blocks; i++)
        add_correlation(s->of_dy + i * s->size, s->of_a + i * s->size, first, last, i == 0, s->y);
}

static int fits(const dtconv_overlap *p) {
    const int64_t most = DTCONV_MOST_ELEMENTS;
    const int64_t *n = p->points;
    if (p->signals < 1 || p->threads < 1 || p->threads > DTCONV_MOST_THREADS || p->method > DTCONV_PARTS ||
        (p->is_private && p->method == DTCONV_DISCARD))
        return 0;
    if ((n[0] || n[1] || n[2]) && !DT(ring_fits)(n[0], n[1], n[2])) return 0;
    for (int d = 0; d < 2; d++) {
        const int64_t block = p->block[d], part = p->part[d];
        if (!DTCONV_ARE_SIZES(1, p->a[d], p->b[d], block, part, p->stop[d], p->steps[d]) || p->start[d] < 0 ||
            p->start[d] >= p->stop[d] || p->stop[d] > p->a[d] + p->b[d] - 1)
            return 0;
        if (p->method == DTCONV_PARTS ? MAX(block, part) % MIN(block, part) != 0 : part != p->b[d]) return 0;
        const axis x = axis_of(p, d);
        if (p->method != DTCONV_DISCARD && x.last - x.first > p->steps[d] && p->steps[d] * x.stride < x.results)
            return 0;
    }
    if (!DTCONV_FIT_WITHIN(most, p->signals, p->a[0], p->a[1]) || !DTCONV_FIT_WITHIN(most, p->b[0], p->b[1])) return 0;
    const overlap s = overlap_of(p);
    if (n[0] && (!DTCONV_FIT_WITHIN(2 * points_of(p), s.axes[0].window, s.axes[1].window))) return 0;
    return DTCONV_FIT_WITHIN(most, p->signals, p->stop[0] - p->start[0], p->stop[1] - p->start[1], p->steps[0],
                             p->steps[1]) &&
           DTCONV_FIT_WITHIN(most, s.axes[0].window, s.axes[1].window, p->threads) &&
           DTCONV_FIT_WITHIN(most / 4, blocks_of(&s), MAX(1, s.size)) &&
           DTCONV_FIT_WITHIN(most / 4, parts_of(&s), s.b_size);
}

size_t DT(overlap_plan_bytes)(const dtconv_overlap *p) {
    if (!fits(p) || !p->points[0]) return 0;
    return 128 + sizeof(DT(ring)) + (size_t)DT(ring_plan_size)(p->points[0], p->points[1], p->points[2]) * sizeof(real);
}

static void *aligned(const void *memory) { return (void *)(((uintptr_t)memory + 63) / 64 * 64); }

void DT(overlap_plan)(const dtconv_overlap *p, void *plan) {
    DT(ring) *ring = aligned(plan);
    if (DT(overlap_plan_bytes)(p)) DT(ring_on)(p->points[0], p->points[1], p->points[2], aligned(ring + 1), ring);
}

size_t DT(overlap_workspace)(const dtconv_overlap *p) {
    if (!fits(p)) return 0;
    const overlap s = overlap_of(p);
    const int64_t values = parts_of(&s) * s.b_size + blocks_of(&s) * s.size;
    return 64 + (size_t)(values + private_size(&s) + p->threads * s.step) * sizeof(real);
}

dtconv_status DT(overlap)(const dtconv_overlap *p, const real *a, const real *b, real *y, int64_t *counts,
                          const void *plan, void *workspace, size_t bytes) {
    if (!fits(p)) return DTCONV_ARGUMENT;
    if (bytes < DT(overlap_workspace)(p)) return DTCONV_WORKSPACE;
    overlap s = overlap_of(p);
    s.ring = p->points[0] ? aligned(plan) : NULL;
    s.of_b = aligned(workspace);
    s.of_a = s.of_b + parts_of(&s) * s.b_size;
    real *memory = s.of_a + blocks_of(&s) * s.size, *own = memory;
    memory += private_size(&s);
    s.y = p->is_private ? own : y;
    for (int t = 0; t < p->threads; t++) memset(memory + t * s.step, 0, COUNTS * sizeof(int64_t));
    const int64_t all = p->signals * s.results, rounds = p->method == DTCONV_PARTS ? p->signals : 1;
    const sum before = {s.y, NULL, p->is_private ? private_size(&s) : all, 0};
    if (p->method != DTCONV_DISCARD)
        DT(ring_each)(p->threads, dtconv_ceil_div(before.size, PIECE), sum_piece, &before, memory, 0);
    s.a = b;
    each(&s, parts_of(&s), b_piece, memory);
    s.a = a;
    for (s.signal = 0; s.signal < rounds; s.signal++) {
        if (blocks_of(&s)) each(&s, blocks_of(&s), a_piece, memory);
        all_targets(&s, memory);
    }
    const sum after = {y, own, all, p->steps[0] * p->steps[1]};
    if (p->is_private) DT(ring_each)(p->threads, dtconv_ceil_div(all, PIECE), sum_piece, &after, memory, 0);
    if (!counts) return DTCONV_OK;
    memset(counts, 0, COUNTS * sizeof(int64_t));
    for (int t = 0; t < p->threads; t++)
        for (int i = 0; i < COUNTS; i++) counts[i] += counts_of(memory + t * s.step)[i];
    if (p->is_private) counts[READS] += after.divisions * all, counts[WRITES] += all;
    counts[LOCAL] = s.memory + (s.size ? 0 : s.axes[0].results * s.pitch);
    return DTCONV_OK;
}

static int is_layer(const dtconv_overlap *p) {
    return fits(p) && p->method == DTCONV_ADD && p->points[0] && !p->is_private;
}

int64_t DT(overlap_values)(const dtconv_overlap *p, int of_b) {
    if (!is_layer(p)) return 0;
    overlap s = overlap_of(p);
    s.of_dy = (real *)(uintptr_t)1; /* what blocks are kept does not depend on where */
    return of_b ? s.size : p->signals * blocks_of(&s) * s.size;
}

dtconv_status DT(overlap_layer)(const dtconv_overlap *p, dtconv_overlap_pass pass, const real *x, real *y, real *of_a,
                                real *of_b, real *of_dy, const void *plan, void *workspace, size_t bytes) {
    if (!is_layer(p)) return DTCONV_ARGUMENT;
    if (bytes < DT(overlap_workspace)(p)) return DTCONV_WORKSPACE;
    overlap s = overlap_of(p);
    s.ring = aligned(plan), s.a = x, s.y = y, s.of_a = of_a, s.of_b = of_b, s.of_dy = of_dy;
    real *memory = aligned(workspace), *block = block_of(memory);
    for (int t = 0; t < p->threads; t++) memset(memory + t * s.step, 0, COUNTS * sizeof(int64_t));
    const sum before = {y, NULL, pass == DTCONV_FORWARD_PASS ? p->signals * s.results : p->signals * p->a[0] * p->a[1],
                        0};
    switch (pass) {
        case DTCONV_FILTER:
            each(&s, 1, b_piece, memory);
            break;
        case DTCONV_FORWARD_PASS:
            DT(ring_each)(p->threads, dtconv_ceil_div(before.size, PIECE), sum_piece, &before, memory, 0);
            all_targets(&s, memory);
            break;
        case DTCONV_BACKWARD_DATA_PASS:
            DT(ring_each)(p->threads, dtconv_ceil_div(before.size, PIECE), sum_piece, &before, memory, 0);
            each(&s, p->signals * blocks_of(&s), da_piece, memory);
            break;
        default:
            s.y = memory + s.step - s.size;
            DT(ring_each)(p->threads, dtconv_ceil_div(s.size, PIECE), db_piece, &s, memory, 0);
            DT(ring_run)(s.ring, RING_BACK, p->threads, block, s.y, block + s.memory, s.step);
            for (int64_t i = 0; i < p->b[0]; i++)
                memcpy(y + i * p->b[1], block + i * s.axes[1].window, (size_t)p->b[1] * sizeof(real));
    }
    return DTCONV_OK;
}

/* Maximum pooling (pooling_windows.h): it keeps the position of the maximum in its window, one byte for each output,
 * instead of x.
 */
#include "dtconv_burst.h"
#include "pooling_positions.h"
#include "pooling_windows.h"

enum { SMALL = 3 }; /* taps across and down of windows that have kernels of their own, at most */

/* Maximum of one window over some vectors of channels; x points to the window's first pixel, which may lie outside. */
INLINE void max_window(const dtconv_pool *p, const elem *x, int64_t ldx, taps in, int vectors, int64_t count, elem *y,
                       void *argmax, int64_t at, int bytes) {
    vec best[AT_ONCE];
    mask chosen[AT_ONCE];
    const int64_t first = (in.d0 * p->kh + in.p0) * p->kw + in.q0, start = distance(p, in.d0, in.p0, in.q0) * ldx;
    UNROLL for (int v = 0; v < vectors; v++) {
        best[v] = load_first(x + start + v * V, count);
        chosen[v] = (mask){0} + (int)first;
    }
    for (int64_t tap_d = in.d0; tap_d < in.d1; tap_d++)
        for (int64_t tap_h = in.p0; tap_h < in.p1; tap_h++)
            for (int64_t tap_w = in.q0; tap_w < in.q1; tap_w++) {
                const elem *pixel = x + distance(p, tap_d, tap_h, tap_w) * ldx;
                const mask here = (mask){0} + (int)((tap_d * p->kh + tap_h) * p->kw + tap_w);
                UNROLL for (int v = 0; v < vectors; v++)
                    follow(&best[v], &chosen[v], load_first(pixel + v * V, count), here);
            }
    UNROLL for (int v = 0; v < vectors; v++) {
        store_exact(y + v * V, count, best[v]);
        if (argmax) store_positions(argmax, at + v * V, bytes, count, chosen[v]);
    }
}

/* A row (b, od, oh) of outputs. */
INLINE void max_row(const dtconv_pool *p, int64_t row, const elem *x, int64_t ldx, elem *y, int64_t ldy, void *argmax,
                    int bytes) {
    int64_t start;
    taps in = taps_of_row(p, row, &start);
    for (int64_t ow = 0; ow < p->ow; ow++) {
        const int64_t left = inside(across(p), ow, &in.q0, &in.q1), pixel = row * p->ow + ow;
        const elem *window = x + (start + left) * ldx;
        elem *to = y + pixel * ldy;
#define MAXIMUM(j, vectors, count) \
    max_window(p, window + j, ldx, in, vectors, count, to + j, argmax, pixel * p->c + j, bytes)
        FOR_CHANNELS(p->c, MAXIMUM);
    }
}

/* Small windows: the maxima of their rows first, then those of the rows, so that windows below each other share them.
 * Where a tap lies outside, its neighbour inside stands for it, with that one's position. */
typedef struct {
    const elem *rows[SMALL + 1]; /* of x: the taps down of one window, or of two */
    elem *y[2];
    uint8_t *argmax[2];
    int64_t column[SMALL]; /* elements from a row's start to a tap across */
    int32_t down[SMALL + 1], across[SMALL];
} small_window;

/* `outs` windows (1, or 2 of stride 1) of taps x taps over a vector of channels from j on. */
INLINE void small_block(int taps, int outs, int wanted, const small_window *of, int64_t j, int64_t count) {
    vec best[SMALL + 1];
    mask chosen[SMALL + 1];
    UNROLL for (int r = 0; r < taps + outs - 1; r++) {
        best[r] = load_first(of->rows[r] + of->column[0] + j, count);
        chosen[r] = (mask){0} + of->across[0];
        UNROLL for (int q = 1; q < taps; q++) follow_number(
            &best[r], &chosen[r], load_first(of->rows[r] + of->column[q] + j, count), (mask){0} + of->across[q]);
        chosen[r] += of->down[r] * taps;
    }
    UNROLL for (int r = 2; r < taps; r++) follow_number(&best[1], &chosen[1], best[r], chosen[r]);
    follow_number(&best[0], &chosen[0], best[1], chosen[1]);
    if (outs == 2) { /* first, because y[0] is the same where a row has none below it */
        follow_number(&best[1], &chosen[1], best[taps], chosen[taps]);
        store_exact(of->y[1] + j, count, best[1]);
        if (wanted) store_positions(of->argmax[1], j, 1, count, chosen[1] - taps);
    }
    store_exact(of->y[0] + j, count, best[0]);
    if (wanted) store_positions(of->argmax[0], j, 1, count, chosen[0]);
}

/* The taps of a window, moved inside: how far they lie from its first. */
INLINE void moved_inside(axis a, int64_t taps, int64_t window, int32_t *to) {
    int64_t from, end;
    const int64_t start = inside(a, window, &from, &end);
    for (int64_t i = 0; i < taps; i++) to[i] = (int32_t)min_i64(max_i64(i, from), a.extent - 1 - start);
}

/* Whether one of so many elements is NaN. */
INLINE int has_nan(const elem *x, int64_t count) {
#if defined(__AVX512F__)
    unsigned found = 0;
    int64_t j = 0;
    for (; j + 2 * V <= count; j += 2 * V)
#ifdef DTCONV_DOUBLE
        found |= _mm512_cmp_pd_mask((__m512d)load(x + j), (__m512d)load(x + j + V), _CMP_UNORD_Q);
#else
        found |= _mm512_cmp_ps_mask((__m512)load_elem(x + j), (__m512)load_elem(x + j + V), _CMP_UNORD_Q);
#endif
    for (; j < count; j++) found |= widen(x[j]) != widen(x[j]);
    return found != 0;
#else
    mask found = {0};
    int64_t j = 0;
    for (; j + V <= count; j += V) {
        const vec value = load_elem(x + j);
        found |= value != value;
    }
    int any = 0;
    for (int v = 0; v < V; v++) any |= found[v] != 0;
    for (; j < count; j++) any |= widen(x[j]) != widen(x[j]);
    return any;
#endif
}

/* The same of a row of pixels; it also reads them in the order of memory, which windows do not. */
INLINE int row_has_nan(const elem *x, int64_t ldx, int64_t pixels, int64_t c) {
    if (ldx == c) return has_nan(x, pixels * c);
    int found = 0;
    for (int64_t i = 0; i < pixels; i++) found |= has_nan(x + i * ldx, c);
    return found;
}

/* Rows of x, counted over all images, before `end` are known to have the last NaN before row `free`. */
typedef struct {
    int64_t end, free;
} known_rows;

/* Goes on to rows [start, end), which follow each other from call to call; whether one of them has NaN. */
INLINE int have_nan(known_rows *known, const dtconv_pool *p, const elem *x, int64_t ldx, int64_t start, int64_t end) {
    for (int64_t row = max_i64(start, known->end); row < end; row++)
        if (row_has_nan(x + row * p->iw * ldx, ldx, p->iw, p->c)) known->free = row + 1;
    known->end = max_i64(known->end, end);
    return known->free > start;
}

/* Rows oh and, with two `outs`, oh + 1 of outputs of a plane (b, od). */
INLINE void small_rows(const dtconv_pool *p, int taps, int outs, int wanted, int64_t plane, int64_t oh, const elem *x,
                       int64_t ldx, elem *y, int64_t ldy, uint8_t *argmax, known_rows *known) {
    const int64_t image = plane / p->od * p->id + start_of(deep(p), plane % p->od), first = plane * p->oh + oh;
    const int64_t below = outs == 2 && oh + 1 < p->oh ? p->ow : 0;
    const int64_t start = image * p->ih + start_of(down(p), oh);
    small_window of;
    moved_inside(down(p), taps + outs - 1, oh, of.down);
    for (int r = 0; r < taps + outs - 1; r++) of.rows[r] = x + (start + of.down[r]) * p->iw * ldx;
    if (have_nan(known, p, x, ldx, start + of.down[0], start + of.down[taps + outs - 2] + 1)) {
        max_row(p, first, x, ldx, y, ldy, argmax, 1);
        if (below) max_row(p, first + 1, x, ldx, y, ldy, argmax, 1);
        return;
    }
    for (int64_t ow = 0; ow < p->ow; ow++) {
        moved_inside(across(p), taps, ow, of.across);
        for (int q = 0; q < taps; q++) of.column[q] = (start_of(across(p), ow) + of.across[q]) * ldx;
        for (int i = 0; i < outs; i++) {
            const int64_t pixel = first * p->ow + ow + i * below;
            of.y[i] = y + pixel * ldy;
            of.argmax[i] = wanted ? argmax + pixel * p->c : argmax;
        }
        int64_t j = 0;
        for (; j + V <= p->c; j += V) small_block(taps, outs, wanted, &of, j, V);
        if (j < p->c) small_block(taps, outs, wanted, &of, j, min_i64(V - 1, p->c - j));
    }
}

/* Whether windows are small ones: all of them have taps inside, in each axis. */
static int has_small_windows(const dtconv_pool *p, int bytes) {
    const int square = p->kh == p->kw && (p->kh == 2 || p->kh == SMALL);
    return square && p->kd == 1 && p->front == 0 && p->sd && p->sh && p->sw && bytes == 1;
}

static void small_forward(const dtconv_pool *p, const elem *x, int64_t ldx, elem *y, int64_t ldy, uint8_t *argmax) {
    const int64_t outs = p->kh == SMALL && p->sh == 1 ? 2 : 1, rows = (p->oh + outs - 1) / outs,
                  all = p->n * p->od * rows;
    const int64_t some = dtconv_piece(all);
#pragma omp parallel for schedule(dynamic, 1) \
    num_threads(dtconv_threads_to_move(p->n * p->od * p->oh * p->ow * p->c * p->kh * p->kw))
    for (int64_t piece = 0; piece < all; piece += some) {
        known_rows known = {0};
        for (int64_t row = piece; row < min_i64(all, piece + some); row++) {
            const int64_t plane = row / rows, oh = row % rows * outs;
#define SMALL_ROWS(taps, outs, wanted) small_rows(p, taps, outs, wanted, plane, oh, x, ldx, y, ldy, argmax, &known)
            if (p->kh == 2 && argmax)
                SMALL_ROWS(2, 1, 1);
            else if (p->kh == 2)
                SMALL_ROWS(2, 1, 0);
            else if (outs == 1 && argmax)
                SMALL_ROWS(SMALL, 1, 1);
            else if (outs == 1)
                SMALL_ROWS(SMALL, 1, 0);
            else if (argmax)
                SMALL_ROWS(SMALL, 2, 1);
            else
                SMALL_ROWS(SMALL, 2, 0);
        }
    }
}

dtconv_status DT(max_pool_forward)(const dtconv_pool *p, const elem *x, int64_t ldx, elem *y, int64_t ldy, void *argmax,
                                   int argmax_bytes) {
    if (!fits(p)) return DTCONV_ARGUMENT;
    if (argmax && argmax_bytes == 1 && p->kd * p->kh * p->kw > 256) return DTCONV_ARGUMENT;
    if (has_small_windows(p, argmax ? argmax_bytes : 1)) {
        small_forward(p, x, ldx, y, ldy, argmax);
        return DTCONV_OK;
    }
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->od * p->oh)) \
    num_threads(dtconv_threads_to_move(p->n * p->od * p->oh * p->ow * p->c * p->kd * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->od * p->oh; row++) max_row(p, row, x, ldx, y, ldy, argmax, argmax_bytes);
    return DTCONV_OK;
}

/* Some vectors of channels, from `channel` on, of the gradient of one pixel. */
INLINE void max_gather(const window *over, int64_t windows, int64_t c, const elem *dy, int64_t lddy, const void *argmax,
                       int bytes, int64_t channel, int vectors, int64_t count, int accumulate, elem *dx) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = accumulate ? load_first(dx + v * V, count) : (vec){0};
    for (int64_t i = 0; i < windows; i++) {
        const elem *g = dy + over[i].output * lddy + channel;
        const int64_t at = over[i].output * c + channel;
        UNROLL for (int v = 0; v < vectors; v++) sum[v] =
            add_chosen(sum[v], load_first(g + v * V, count), argmax, at + v * V, bytes, count, over[i].tap);
    }
    store_vectors(dx, vectors, count, sum);
}

/* The last row of outputs over a row of inputs, in order: of the windows over a pixel it is what is not in a cache. */
static void read_outputs(const dtconv_pool *p, const covered *k, const elem *dy, int64_t lddy, const void *argmax,
                         int bytes) {
    if (k->i1 <= k->i0 || k->h1 <= k->h0) return;
    const int64_t first = ((k->image * p->od + k->h1 - 1) * p->oh + k->i1 - 1) * p->ow, size = sizeof(elem);
    dtconv_read_burst(dy + first * lddy, lddy * size, p->ow, p->c * size);
    dtconv_read_burst((const char *)argmax + first * p->c * bytes, p->c * bytes, p->ow, p->c * bytes);
}

/* Windows over a pixel: of the first one the gradient, the positions and the pixel's tap in it, and how far those of
 * the next ones lie from them. */
typedef struct {
    const elem *dy;
    const uint8_t *argmax;
    int64_t dy_down, dy_across, argmax_down, argmax_across;
    int32_t tap, tap_down, tap_across;
} small_windows;

/* Adds to `sum` what comes from window (i, q). */
INLINE void small_add(const small_windows *o, int i, int q, int64_t j, int vectors, int64_t count, vec *sum) {
    const elem *g = o->dy + i * o->dy_down + q * o->dy_across + j;
    const int64_t at = i * o->argmax_down + q * o->argmax_across + j;
    const int tap = o->tap - i * o->tap_down - q * o->tap_across;
    UNROLL for (int v = 0; v < vectors; v++) sum[v] =
        add_chosen(sum[v], load_first(g + v * V, count), o->argmax, at + v * V, 1, count, tap);
}

/* Some vectors of channels, from j on, of the gradient of a pixel; rows and columns are constants where `fixed`. */
INLINE void small_gather(const small_windows *o, int fixed, int rows, int columns, int64_t j, int vectors,
                         int64_t count, int accumulate, elem *dx) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = accumulate ? load_first(dx + j + v * V, count) : (vec){0};
    if (fixed) {
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int q = 0; q < columns; q++)
            small_add(o, i, q, j, vectors, count, sum);
    } else {
        for (int i = 0; i < rows; i++)
            for (int q = 0; q < columns; q++) small_add(o, i, q, j, vectors, count, sum);
    }
    store_vectors(dx + j, vectors, count, sum);
}

/* A row of inputs. */
INLINE void small_gather_row(const dtconv_pool *p, const covered *row, const elem *dy, int64_t lddy,
                             const uint8_t *argmax, int accumulate, elem *dx, int64_t lddx) {
    covered k = *row;
    const int64_t first = ((k.image * p->od + k.h0) * p->oh + k.i0) * p->ow;
    const int32_t below = (int32_t)(k.h0 < k.h1 ? k.i1 - k.i0 : 0), at = (int32_t)(k.at_h - start_of(down(p), k.i0));
    small_windows o = {.dy_down = p->ow * lddy, .dy_across = lddy, .argmax_down = p->ow * p->c, .argmax_across = p->c};
    o.tap_down = (int32_t)(p->sh * p->kw);
    o.tap_across = (int32_t)p->sw;
    for (int64_t w = 0; w < p->iw; w++, dx += lddx) {
        over_pixel(p, w, &k);
        o.dy = dy + (first + k.j0) * lddy;
        o.argmax = argmax + (first + k.j0) * p->c;
        o.tap = (int32_t)(at * p->kw + w - start_of(across(p), k.j0));
        const int to = (int)(k.j1 - k.j0);
#define SMALL_FIXED(j, vectors, count) small_gather(&o, 1, ROWS, COLUMNS, j, vectors, count, accumulate, dx)
#define SMALL_ANY(j, vectors, count) small_gather(&o, 0, below, to, j, vectors, count, accumulate, dx)
#define FIXED(rows, columns)                     \
    do {                                         \
        enum { ROWS = rows, COLUMNS = columns }; \
        FOR_CHANNELS(p->c, SMALL_FIXED);         \
    } while (0)
        if (below == 3 && to == 3)
            FIXED(3, 3);
        else if (below == 2 && to == 2)
            FIXED(2, 2);
        else if (below == 1 && to == 1)
            FIXED(1, 1);
        else
            FOR_CHANNELS(p->c, SMALL_ANY);
    }
}

dtconv_status DT(max_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, const void *argmax,
                                    int argmax_bytes, int accumulate, elem *dx, int64_t lddx) {
    if (!fits(p)) return DTCONV_ARGUMENT;
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->id * p->ih)) \
    num_threads(dtconv_threads_to_move(p->n * p->id * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++) {
        covered k = over_row(p, row);
        if (p->sh == 1) read_outputs(p, &k, dy, lddy, argmax, argmax_bytes);
        if (has_small_windows(p, argmax_bytes)) {
            small_gather_row(p, &k, dy, lddy, argmax, accumulate, dx + row * p->iw * lddx, lddx);
            continue;
        }
        line lines[WINDOWS];
        int64_t done = 0, among;
        do {
            among = lines_over(p, &k, done, lines);
            k.j0 = k.j1 = 0;
            for (int64_t w = 0; w < p->iw; w++) {
                window over[WINDOWS];
                over_pixel(p, w, &k);
                elem *to = dx + (row * p->iw + w) * lddx;
                int64_t passed = 0, windows;
                do {
                    windows = windows_over(p, &k, lines, among, w, passed, 1, over);
                    const int adds = accumulate || done || passed;
#define GATHER_MAXIMUM(j, vectors, count) \
    max_gather(over, windows, p->c, dy, lddy, argmax, argmax_bytes, j, vectors, count, adds, to + j)
                    FOR_CHANNELS(p->c, GATHER_MAXIMUM);
                    passed += windows;
                } while (windows == WINDOWS);
            }
            done += among;
        } while (among == WINDOWS);
    }
    return DTCONV_OK;
}

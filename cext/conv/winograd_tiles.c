/* Tiles of Winograd's convolution: choice of their size, the pixels of each, transformed filters, products.
 *
 * An image of oh x ow outputs is cut into ceil(oh / m) x ceil(ow / m) tiles of m x m outputs; tile (i, j) reads the a x
 * a inputs from (i * m - pad_t, j * m - pad_l) on, a = m + 2, zeros outside of the image.  The size is the one with the
 * fewest multiplications, a * a for each tile.  Images with a depth have such tiles in each of their planes.
 *
 * With a dilation of d along an axis, every d-th output reads every d-th input: a tile's pixels are d apart, and each
 * of the d phases, the outputs that begin with pixel 0, 1, ..., d - 1, is cut into tiles by itself.  All have as many
 * as the first one, which is the longest: a tile may lie outside of the image altogether.
 */
#include "winograd.h"

#include "transpose.h"

/* Of tiles of 5 and 6 a multiplication counts a quarter more: their transforms are longer, and their errors larger. */
int DT(winograd_tile)(int64_t oh, int64_t ow) {
    static const struct {
        int m, weight;
    } sizes[] = {{4, 4}, {2, 4}, {5, 5}, {6, 5}};
    int best = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        const int m = sizes[i].m;
        const int64_t cost = dtconv_ceil_div(oh, m) * dtconv_ceil_div(ow, m) * (m + 2) * (m + 2) * sizes[i].weight;
        if (cost < least) least = cost, best = m;
    }
    return best;
}

dtconv_status DT(winograd_tiling)(const dtconv_conv *p, int backward_data, DT(tiling) * w) {
    if (p->kh != 3 || p->kw != 3 || p->sh != 1 || p->sw != 1 || p->groups != 1 || p->sd != 1 ||
        (p->dil_d != 1 && p->kd > 1))
        return DTCONV_UNSUPPORTED;
    if (backward_data)
        *w = (DT(tiling)){.n = p->n,
                          .ih = p->oh,
                          .iw = p->ow,
                          .ci = p->co,
                          .ldx = p->ldy,
                          .oh = p->ih,
                          .ow = p->iw,
                          .co = p->ci,
                          .ldy = p->ldx,
                          .pad_t = 2 * p->dil_h - p->pad_t,
                          .pad_l = 2 * p->dil_w - p->pad_l,
                          .id = p->od,
                          .od = p->id,
                          .pad_f = p->kd - 1 - p->pad_f,
                          .turned = 1};
    else
        *w = (DT(tiling)){.n = p->n,
                          .ih = p->ih,
                          .iw = p->iw,
                          .ci = p->ci,
                          .ldx = p->ldx,
                          .oh = p->oh,
                          .ow = p->ow,
                          .co = p->co,
                          .ldy = p->ldy,
                          .pad_t = p->pad_t,
                          .pad_l = p->pad_l,
                          .id = p->id,
                          .od = p->od,
                          .pad_f = p->pad_f};
    w->dil_h = p->dil_h, w->dil_w = p->dil_w;
    const int64_t high = dtconv_ceil_div(w->oh, w->dil_h), wide = dtconv_ceil_div(w->ow, w->dil_w); /* of a phase */
    w->t = DT(winograd_transform)(DT(winograd_tile)(high, wide));
    w->ukr = DT(ukr_current)();
    if (!w->ukr) return DTCONV_KERNEL;
    w->phase_th = dtconv_ceil_div(high, w->t->m);
    w->phase_tw = dtconv_ceil_div(wide, w->t->m);
    w->th = MIN(w->dil_h, w->oh) * w->phase_th;
    w->tw = MIN(w->dil_w, w->ow) * w->phase_tw;
    w->tiles = w->n * w->th * w->tw;
    w->points = w->t->a * w->t->a;
    w->threads = dtconv_threads_of(p);
    w->kd = p->kd;
    w->slot = dtconv_is_deep(p) ? dtconv_round_to(w->ci, V) : w->ci;
    return DTCONV_OK;
}

/* Pixels of a square of size x size pixels, step_h and step_w apart, the first of which is (top, left) of an image of h
 * x w pixels at x, or `outside`. */
static void square(const real *x, int64_t h, int64_t w, int64_t ld, int64_t top, int64_t left, int size, int64_t step_h,
                   int64_t step_w, const real *outside, const real **pixels) {
    const int within = left >= 0 && left + (size - 1) * step_w < w;
    for (int i = 0; i < size; i++, top += step_h, pixels += size) {
        if (top < 0 || top >= h) {
            for (int j = 0; j < size; j++) pixels[j] = outside;
            continue;
        }
        const real *row = x + top * w * ld;
        if (within) {
            row += left * ld;
            for (int j = 0; j < size; j++, row += step_w * ld) pixels[j] = row;
            continue;
        }
        int64_t at = left;
        for (int j = 0; j < size; j++, at += step_w) pixels[j] = at < 0 || at >= w ? outside : row + at * ld;
    }
}

/* The first pixel of y of tile `index` along an axis: the phases come one after the other. */
static int64_t first_of(int64_t index, int64_t tiles_of_phase, int64_t dilation, int m) {
    return dilation == 1 ? index * m : index / tiles_of_phase + index % tiles_of_phase * m * dilation;
}

DT(place) DT(tile_place)(const DT(tiling) * w, int64_t index, int64_t plane) {
    const int64_t strip = index / w->tw;
    return (DT(place)){strip / w->th, plane, strip % w->th, index % w->tw};
}

void DT(tile_next)(const DT(tiling) * w, DT(place) * at) {
    if (++at->j < w->tw) return;
    at->j = 0;
    if (++at->i < w->th) return;
    at->i = 0;
    at->image++;
}

void DT(tile_of_x)(const DT(tiling) * w, const real *x, const DT(place) * at, const real *zeros, const real **pixels) {
    const int m = w->t->m;
    square(x + (at->image * w->id + at->plane) * w->ih * w->iw * w->ldx, w->ih, w->iw, w->ldx,
           first_of(at->i, w->phase_th, w->dil_h, m) - w->pad_t, first_of(at->j, w->phase_tw, w->dil_w, m) - w->pad_l,
           w->t->a, w->dil_h, w->dil_w, zeros, pixels);
}

void DT(tile_of_y)(const DT(tiling) * w, const real *y, int64_t ldy, const DT(place) * at, const real *outside,
                   const real **pixels) {
    const int m = w->t->m;
    square(y + (at->image * w->od + at->plane) * w->oh * w->ow * ldy, w->oh, w->ow, ldy,
           first_of(at->i, w->phase_th, w->dil_h, m), first_of(at->j, w->phase_tw, w->dil_w, m), m, w->dil_h, w->dil_w,
           outside, pixels);
}

void DT(load_x_ahead)(dtconv_ahead *to, const DT(tiling) * w, const real *x, int64_t plane, int64_t first,
                      int64_t count, const real *zeros) {
    const real *pixels[TRANSFORM_PIXELS];
    const int m = w->t->m, a = w->t->a;
    if (count <= 0) return;
    DT(place) at = DT(tile_place)(w, first, plane);
    for (int64_t t = 0; t < count; t++, DT(tile_next)(w, &at)) {
        DT(tile_of_x)(w, x, &at, zeros, pixels);
        for (int i = a - m; i < a; i++)
            for (int j = a - m; j < a; j++) dtconv_ahead_add(to, pixels[i * a + j], w->ci * (int64_t)sizeof(real));
    }
}

void DT(load_y_ahead)(dtconv_ahead *to, const DT(tiling) * w, const real *y, int64_t ldy, int64_t plane, int64_t first,
                      int64_t count, int64_t j, int64_t n, const real *outside) {
    const real *pixels[TRANSFORM_PIXELS];
    if (count <= 0) return;
    DT(place) at = DT(tile_place)(w, first, plane);
    for (int64_t t = 0; t < count; t++, DT(tile_next)(w, &at)) {
        DT(tile_of_y)(w, y, ldy, &at, outside, pixels);
        for (int i = 0; i < w->t->m * w->t->m; i++) dtconv_ahead_add(to, pixels[i] + j, n * (int64_t)sizeof(real));
    }
}

/* Columns [first, first + count) of pixels to `room` columns of planes, filled up with zeros. */
static void expand_columns(const DT(tiling) * w, DT(expand_fn) expand, const real *const *x, int64_t first,
                           int64_t count, int64_t room, real *to, int64_t plane) {
    const int64_t filled = dtconv_round_to(MAX(count, 0), V);
    if (filled <= room) {
        if (count > 0) expand(x, first, count, to, plane);
        if (filled < room)
            for (int64_t e = 0; e < w->points; e++)
                memset(to + e * plane + filled, 0, (size_t)(room - filled) * sizeof(real));
        return;
    }
    real vector[TRANSFORM_PIXELS * V]; /* panels that are no whole vectors */
    for (int64_t c = 0; c < room; c += V) {
        const int64_t some = MIN(V, room - c);
        memset(vector, 0, sizeof vector);
        if (c < count) expand(x, first + c, MIN(V, count - c), vector, V);
        for (int64_t e = 0; e < w->points; e++) memcpy(to + e * plane + c, vector + e * V, (size_t)some * sizeof(real));
    }
}

void DT(expand_panels)(const DT(tiling) * w, DT(expand_fn) expand, const real *const *x, int64_t first,
                       int64_t channels, real *panels, int64_t row, int64_t panel_step, int64_t plane) {
    const int64_t nr = w->ukr->nr;
    for (int64_t j = 0; j < channels; j += nr)
        expand_columns(w, expand, x, first + j, MIN(nr, channels - j), nr, panels + j / nr * panel_step + row * nr,
                       plane);
}

enum { AHEAD = 2 * SQUARE }; /* elements of a row of filters that are loaded before they are read */

/* Columns [j, j + n), at most SQUARE, of turned filters to a panel whose rows are nr long:
 * w[8 - tap][j .. j + n][k .. k + depth] is transposed, SQUARE rows at a time.  These are 9 * SQUARE streams, more than
 * the processor follows by itself. */
static void turned_columns(const DT(tiling) * w, const real *filters, int64_t k, int64_t depth, int64_t j, int64_t n,
                           int64_t room, real *u, int64_t nr, int64_t plane, real *scratch) {
    const real *source[SQUARE], *taps[9];
    for (int64_t q = 0; q < depth; q += SQUARE) {
        const int64_t rows = MIN(SQUARE, depth - q);
        for (int tap = 0; tap < 9 && n > 0; tap++) {
            for (int64_t r = 0; r < n; r++) {
                source[r] = filters + ((8 - tap) * w->co + j + r) * w->ci + k + q;
                __builtin_prefetch(source[r] + AHEAD, 0, 2);
            }
            transpose(source, rows, n, scratch + tap * SQUARE * SQUARE);
        }
        for (int64_t r = 0; r < rows; r++) {
            for (int tap = 0; tap < 9; tap++) taps[tap] = scratch + tap * SQUARE * SQUARE + r * n;
            expand_columns(w, w->t->filter, taps, 0, n, room, u + (q + r) * nr, plane);
        }
    }
}

enum { AHEAD_ROWS = 16 }; /* rows of filters, of some columns, that are loaded before they are read */

/* Some rows of n columns of all taps, side by side.  In the filters, taps are often multiples of a large power of two
 * apart, so that the nine of a row cannot be in a cache together; and loads that nothing waits for overlap. */
static void gather_rows(const DT(tiling) * w, const real *from, int64_t rows, int64_t n, real *restrict to) {
    for (int tap = 0; tap < 9; tap++)
        for (int64_t r = 0; r < rows; r++, to += n) {
            const real *row = from + (tap * w->ci + r) * w->co, *later = row + AHEAD_ROWS * w->co;
            for (int64_t c = 0; c < n; c += 64 / (int64_t)sizeof(real)) __builtin_prefetch(later + c, 0, 2);
            for (int64_t c = 0; c < n; c++) to[c] = row[c];
        }
}

void DT(transform_filters)(const DT(tiling) * w, const real *filters, int64_t k, int64_t depth, int64_t j, int64_t n,
                           real *u, int64_t panel_step, int64_t plane, real *scratch) {
    const real *taps[9];
    const int64_t nr = w->ukr->nr;
    if (!w->turned) {
        const int64_t most = MAX(1, SQUARE * SQUARE / n);
        for (int64_t q = 0; q < depth; q += most) {
            const int64_t rows = MIN(most, depth - q);
            gather_rows(w, filters + (k + q) * w->co + j, rows, n, scratch);
            for (int64_t r = 0; r < rows; r++) {
                for (int tap = 0; tap < 9; tap++) taps[tap] = scratch + (tap * rows + r) * n;
                DT(expand_panels)(w, w->t->filter, taps, 0, n, u, q + r, panel_step, plane);
            }
        }
        return;
    }
    for (int64_t jr = 0; jr < n; jr += nr, u += panel_step)
        for (int64_t c = 0; c < nr; c += SQUARE)
            turned_columns(w, filters, k, depth, j + jr + c, MAX(0, MIN(MIN(SQUARE, nr - c), n - jr - c)),
                           MIN(SQUARE, nr - c), u + c, nr, plane, scratch);
}

void DT(tile_gemm_ahead)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, const real *a, int64_t rs,
                         int64_t cs, const real *b, int64_t b_step, real beta, real *c, int64_t ldc, real *packed,
                         dtconv_ahead *ahead) {
    DT(ukr_call) t = {.k = k, .alpha = 1, .beta = beta, .ldc = ldc, .rs_a = rs, .cs_a = cs};
    const int64_t mr = ukr->mr, nr = ukr->nr;
    int64_t a_step = mr * rs, calls = dtconv_ceil_div(m, mr) * dtconv_ceil_div(n, nr);
    if (!ukr->in_place) {
        const DT(matrix) plain = {a, rs, cs};
        DT(pack_a_matrix)(&plain, 0, m, 0, k, mr, packed);
        a = packed, a_step = mr * k, t.rs_a = 1, t.cs_a = mr;
    }
    for (int64_t j = 0; j < n; j += nr, b += b_step) {
        t.b = b;
        t.n = MIN(nr, n - j);
        for (int64_t i = 0; i < m; i += mr) {
            t.m = MIN(mr, m - i);
            t.a = a + i / mr * a_step;
            t.a_next = i + mr < m ? t.a + a_step : a;
            t.b_next = i + mr < m ? b : b + b_step;
            t.c = c + i * ldc + j;
            dtconv_ahead_load(ahead, calls--);
            ukr->run(ukr, &t);
        }
    }
}

void DT(tile_gemm)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs,
                   const real *b, int64_t b_step, real beta, real *c, int64_t ldc, real *packed) {
    DT(tile_gemm_ahead)(ukr, m, n, k, a, rs, cs, b, b_step, beta, c, ldc, packed, NULL);
}

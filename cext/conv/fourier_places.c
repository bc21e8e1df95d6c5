/* Tiles of the convolution in the Fourier domain: which pixels they read and write. */
#include "fourier.h"

/* The place of a tile along an axis: the interleaved image and the tile's number in it. */
typedef struct {
    int64_t phase, number;
} place;

static place place_on(const fourier_axis *a, int64_t index) { return (place){index % a->step, index / a->step}; }

/* Of a tile along an axis: how many of its points are read, from which coordinate on, of how many. */
typedef struct {
    int64_t begin, count, extent;
} span;

static span span_of(const DT(fourier) * f, const fourier_axis *a, int of_y, int64_t index) {
    const place at = place_on(a, index);
    const int64_t first = at.phase + at.number * a->kept * a->step;
    const int64_t windows_from = of_y ? a->before - a->step * (a->taps - 1) : a->shift - a->before;
    const int windows = f->adds ? of_y : !of_y;
    return (span){windows ? first + windows_from : first, windows ? a->points : a->kept, of_y ? a->out : a->in};
}

/* Points [first, last) of a span that lie inside of the image. */
static void inside(const span *s, int64_t step, int64_t *first, int64_t *last) {
    *first = MAX(0, dtconv_ceil_div(-s->begin, step));
    *last = MAX(0, MIN(s->count, dtconv_ceil_div(s->extent - s->begin, step)));
    *first = MIN(*first, *last);
}

int64_t DT(fourier_points_read)(const DT(fourier) * f, const fourier_axis *a, int of_y, int64_t index, int64_t *first,
                                int64_t *last) {
    const span read = span_of(f, a, of_y, index);
    inside(&read, a->step, first, last);
    return read.begin;
}

static fourier_rows tile_of(const DT(fourier) * f, const real *image, int of_y, int64_t index, const real *zeros,
                            const real **pixels) {
    const int64_t column = index / f->d.rows, strip = column / f->w.tiles, ld = of_y ? f->ldy : f->ldx;
    const int64_t plane = index % f->d.rows - (of_y ? 0 : f->d.before), planes = of_y ? f->d.out : f->d.in;
    if (plane < 0 || plane >= planes) return (fourier_rows){0, 0};
    const int64_t number = strip / f->h.tiles * planes + plane;
    const span down = span_of(f, &f->h, of_y, strip % f->h.tiles);
    const span across = span_of(f, &f->w, of_y, column % f->w.tiles);
    int64_t r0, r1, c0, c1;
    inside(&down, f->h.step, &r0, &r1);
    inside(&across, f->w.step, &c0, &c1);
    const int64_t wide = f->w.points, step = f->w.step * ld;
    for (int64_t r = r0; r < r1; r++) {
        const int64_t row = number * down.extent + down.begin + r * f->h.step;
        const real *pixel = image + (row * across.extent + across.begin) * ld;
        const real **to = pixels + r * wide;
        for (int64_t c = 0; c < c0; c++) to[c] = zeros;
        for (int64_t c = c0; c < c1; c++) to[c] = pixel + c * step;
        for (int64_t c = c1; c < wide; c++) to[c] = zeros;
    }
    return (fourier_rows){r0, r1};
}

fourier_rows DT(fourier_pair)(const DT(fourier) * f, const real *image, int of_y, int64_t tile, int64_t end,
                              const real *zeros, const real **pixels) {
    const int64_t points = f->h.points * f->w.points, wide = f->w.points;
    const fourier_rows a = tile_of(f, image, of_y, tile, zeros, pixels);
    fourier_rows b = {0, 0};
    if (tile + 1 < end) b = tile_of(f, image, of_y, tile + 1, zeros, pixels + points);
    if (a.first == b.first && a.last == b.last) return a;
    fourier_rows rows = {MIN(a.first, b.first), MAX(a.last, b.last)};
    if (a.first >= a.last) rows = b;
    if (b.first >= b.last) rows = a;
    for (int64_t r = rows.first; r < rows.last; r++)
        for (int64_t c = r * wide; c < (r + 1) * wide; c++) {
            if (r < a.first || r >= a.last) pixels[c] = zeros;
            if (r < b.first || r >= b.last) pixels[points + c] = zeros;
        }
    return rows;
}

/* Results of a tile along an axis: how many, from which on. */
static int64_t outputs(const fourier_axis *a, place at, int64_t *count) {
    const int64_t first = at.phase + at.number * a->kept * a->step;
    *count = MAX(0, MIN(a->kept, dtconv_ceil_div(a->out - first, a->step)));
    return first;
}

fourier_outputs DT(fourier_tile_of_y)(const DT(fourier) * f, int64_t index) {
    const int64_t column = index / f->d.rows, plane = index % f->d.rows, strip = column / f->w.tiles;
    const int64_t image = strip / f->h.tiles * f->d.out + plane;
    fourier_outputs of = {.row_step = f->w.out * f->h.step, .step = f->w.step};
    if (plane >= f->d.out) return of;
    const int64_t top = outputs(&f->h, place_on(&f->h, strip % f->h.tiles), &of.rows);
    const int64_t left = outputs(&f->w, place_on(&f->w, column % f->w.tiles), &of.columns);
    of.offset = (image * f->h.out + top) * f->w.out + left;
    return of;
}

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

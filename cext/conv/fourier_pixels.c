/* Tiles of the convolution in the Fourier domain: their pixels, and the transforms of these rows. */
#include "dtconv_vector.h"
#include "fourier.h"

static fourier_rows tile_of(const RT(fourier) * f, const elem *image, int of_y, int64_t index, const elem *zeros,
                            const elem **pixels) {
    const int64_t column = index / f->d.rows, strip = column / f->w.tiles, ld = of_y ? f->ldy : f->ldx;
    const int64_t plane = index % f->d.rows - (of_y ? 0 : f->d.before), planes = of_y ? f->d.out : f->d.in;
    if (plane < 0 || plane >= planes) return (fourier_rows){0, 0};
    const int64_t number = strip / f->h.tiles * planes + plane;
    int64_t r0, r1, c0, c1;
    const int64_t top = RT(fourier_points_read)(f, &f->h, of_y, strip % f->h.tiles, &r0, &r1);
    const int64_t left = RT(fourier_points_read)(f, &f->w, of_y, column % f->w.tiles, &c0, &c1);
    const int64_t high = of_y ? f->h.out : f->h.in, across = of_y ? f->w.out : f->w.in;
    const int64_t wide = f->w.points, step = f->w.step * ld;
    for (int64_t r = r0; r < r1; r++) {
        const int64_t row = number * high + top + r * f->h.step;
        const elem *pixel = image + (row * across + left) * ld;
        const elem **to = pixels + r * wide;
        for (int64_t c = 0; c < c0; c++) to[c] = zeros;
        for (int64_t c = c0; c < c1; c++) to[c] = pixel + c * step;
        for (int64_t c = c1; c < wide; c++) to[c] = zeros;
    }
    return (fourier_rows){r0, r1};
}

fourier_rows DT(fourier_pair)(const RT(fourier) * f, const elem *image, int of_y, int64_t tile, int64_t end,
                              const elem *zeros, const elem **pixels) {
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

/* Channels of a row of pixels that are no whole vector: copied to one. */
static void load_partly(const elem *const *pixels, int64_t count, int64_t c, int64_t channels, real *to,
                        const real **at) {
    for (int64_t i = 0; i < count; i++, to += V) {
        store(to, load_elem_part(pixels[i] + c, channels));
        at[i] = to;
    }
}

void DT(fourier_rows_forward)(const RT(fourier) * f, const RT(fourier_room) * room, const DT(fourier_pixels) * pixels,
                              fourier_rows rows, int64_t c, int64_t count) {
    const int64_t wide = f->w.points;
    const real *parts[2 * DTCONV_FFT_MOST];
    for (int64_t r = 0; r < f->h.points; r++) {
        real *row = room->buffer + r * room->row;
        if (r < rows.first || r >= rows.last) {
            memset(row, 0, (size_t)(2 * wide * V) * sizeof(real));
            continue;
        }
        const RT(fft_points) to = {row, row + V, 2 * V};
        const elem *const *first = pixels->first + r * wide, *const *second = pixels->second + r * wide;
        if (pixels->next)
            for (int64_t i = r * wide; i < (r + 1) * wide; i++) {
                __builtin_prefetch(pixels->next[i] + c, 0, 2);
                __builtin_prefetch(pixels->next[f->h.points * wide + i] + c, 0, 2);
            }
        if (count == V) {
            DT(fft_pixels)(&f->plan_w, first, second, c, &to, room->scratch);
            continue;
        }
        load_partly(first, wide, c, count, room->line, parts);
        load_partly(second, wide, c, count, room->line + wide * V, parts + wide);
        RT(fft_pixels)(&f->plan_w, parts, parts + wide, 0, &to, room->scratch);
    }
}

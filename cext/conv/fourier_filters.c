/* Spectra of the filters, as packed panels: see fourier.c. */
#include "dtconv_vector.h"
#include "fourier.h"
#include "transpose.h"

/* Filters with rows and columns exchanged, for backward_data: (tap, co, ci) as the correlation has them. */
static void turn_filters(const DT(fourier) * f, const DT(fourier_panels) * s) {
    enum { SQUARE_SIDE = 16 };
    const int64_t taps = f->d.taps * f->h.taps * f->w.taps, down = dtconv_ceil_div(f->co, SQUARE_SIDE);
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < taps * down; unit++) {
        const int64_t tap = unit / down, r0 = unit % down * SQUARE_SIDE, rows = MIN(SQUARE_SIDE, f->co - r0);
        real block[SQUARE_SIDE * SQUARE_SIDE + SQUARE_SIDE];
        const real *source[SQUARE_SIDE];
        for (int64_t c = 0; c < f->ci; c += SQUARE_SIDE) {
            const int64_t columns = MIN(SQUARE_SIDE, f->ci - c);
            for (int64_t r = 0; r < rows; r++) source[r] = s->filters + (tap * f->co + r0 + r) * f->ldw + c;
            transpose(source, columns, rows, block);
            for (int64_t i = 0; i < columns; i++)
                memcpy(s->turned + (tap * f->ci + c + i) * f->co + r0, block + i * rows, (size_t)rows * sizeof(real));
        }
    }
}

/* Pointers to the taps of filter row k in a plane, zeros elsewhere in its rows. */
static void taps_of(const DT(fourier) * f, const real *filters, int64_t ld, int64_t plane, int64_t k, const real *zeros,
                    const real **to) {
    const int64_t wide = f->w.points, last = f->d.taps * f->h.taps * f->w.taps - 1;
    for (int64_t i = 0; i < f->h.taps; i++)
        for (int64_t j = 0; j < wide; j++) {
            const int64_t tap = (plane * f->h.taps + i) * f->w.taps + j, from = f->turned ? last - tap : tap;
            to[i * wide + j] = j < f->w.taps && k < f->ci ? filters + (from * f->ci + k) * ld : zeros;
        }
}

void DT(fourier_filters)(const DT(fourier) * f, const DT(fourier_panels) * s, const DT(fourier_room) * room) {
    const int64_t nr = f->ukr->nr, pairs = dtconv_ceil_div(f->slot, 2), panels = dtconv_ceil_div(f->co, nr);
    const fourier_rows rows = {0, f->h.taps};
    const real **first = room->pointers;
    const DT(fourier_pixels) taps = {first, first + f->h.points * f->w.points, NULL};
    if (f->turned) turn_filters(f, s);
    const real *filters = f->turned ? s->turned : s->filters;
    const int64_t ld = f->turned ? f->co : f->ldw;
#pragma omp for schedule(static)
    for (int64_t pair = 0; pair < f->d.taps * pairs; pair++) {
        const int64_t plane = pair / pairs, k = pair % pairs * 2;
        taps_of(f, filters, ld, plane, k, room->zeros, taps.first);
        taps_of(f, filters, ld, plane, k + 1, room->zeros, taps.second);
        for (int64_t j = 0, width; j < panels * nr; j += width) { /* panels may be narrower than a vector */
            const int64_t place = j / nr * s->u_step + (plane * f->slot + k) * nr + j % nr, count = MIN(V, f->co - j);
            width = MIN(V, nr - j % nr);
            DT(fourier_spectra)
            to = {.at = s->u + place, .plane = s->u_plane, .second = k + 1 < f->slot ? nr : 0, .conjugate = 1};
            to.scale = (real)(0.25 / (double)(f->h.points * f->w.points));
            to.room = width;
            if (count > 0)
                DT(fourier_rows_forward)(f, room, &taps, rows, j, count);
            else
                memset(room->buffer, 0, (size_t)(f->h.points * room->row) * sizeof(real));
            DT(fourier_to_panels)(f, room, &to);
        }
    }
}

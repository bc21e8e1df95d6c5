/* Tiles of the convolution in the Fourier domain: their transforms. */
#include "fourier.h"

#include "dtconv_vector.h"

static double *watched;

void DT(fft_watch)(double *seconds) { watched = seconds; }

double DT(fourier_now)(void) {
#ifdef _OPENMP
    return watched ? omp_get_wtime() : 0;
#else
    return 0;
#endif
}

void DT(fourier_note)(int phase, double *since) {
    if (!watched || dtconv_thread_id() > 0) return;
    const double now = DT(fourier_now)();
    watched[phase] += now - *since;
    *since = now;
}

int64_t DT(fourier_plans_size)(const DT(fourier) * f) {
    return dtconv_line(DT(fft_plan_size)(f->h.points)) + dtconv_line(DT(fft_plan_size)(f->w.points));
}

void DT(fourier_plans_on)(DT(fourier) * f, real *memory) {
    DT(fft_plan_on)(f->h.points, memory, &f->plan_h);
    DT(fft_plan_on)(f->w.points, memory + dtconv_line(DT(fft_plan_size)(f->h.points)), &f->plan_w);
}

int DT(fourier_is_real)(const DT(fourier) * f, int64_t e) {
    const int64_t th = f->h.points, half = th / 2 + 1;
    if (e < half) return dtconv_own_mirror(e, th);
    e -= f->frequencies - half; /* of the last column, where that is its own mirror image */
    return f->w.points % 2 == 0 && e >= 0 && dtconv_own_mirror(e, th);
}

static int64_t pointers_size(const DT(fourier) * f) {
    return dtconv_line(f->h.points * f->w.points * (int64_t)sizeof(real *) / (int64_t)sizeof(real));
}

/* An odd number of lines, so that the points of a column lie in different cache sets. */
static int64_t row_size(const DT(fourier) * f) { return (2 * f->w.points + 1) * V; }

int64_t DT(fourier_room_size)(const DT(fourier) * f) {
    const int64_t most = MAX(f->h.points, f->w.points);
    return f->h.points * row_size(f) + 4 * f->h.points * V + 2 * f->w.points * V + DT(fft_scratch_size)(most) +
           ROOM_SETS * pointers_size(f);
}

DT(fourier_room) DT(fourier_room_on)(const DT(fourier) * f, real *memory, real *zeros) {
    DT(fourier_room) room = {.zeros = zeros, .buffer = memory, .row = row_size(f)};
    room.columns = room.buffer + f->h.points * room.row;
    room.line = room.columns + 4 * f->h.points * V;
    room.scratch = room.line + 2 * f->w.points * V;
    room.pointers = room.scratch + DT(fft_scratch_size)(MAX(f->h.points, f->w.points));
    return room;
}

int64_t DT(fourier_x_row)(const DT(fourier) * f) { return f->d.taps > 1 ? f->slot : dtconv_plane_row(f->ci, V); }

void DT(fourier_end_x)(const DT(fourier) * f, real *x, int64_t plane, int64_t row) {
    if (f->d.taps == 1) return;
    for (int64_t i = 0; i < 2 * f->frequencies; i++)
        memset(x + i * plane + row * f->slot, 0, (size_t)((f->d.taps - 1) * f->slot) * sizeof(real));
}

/* Column k of the buffer transformed, in place `which` of room->columns; where there is one row only, in the buffer. */
static const real *column(const DT(fourier) * f, const DT(fourier_room) * room, int64_t k, int which) {
    real *from = room->buffer + 2 * k * V, *to = room->columns + which * 2 * f->h.points * V;
    if (f->h.points == 1) return from;
    const DT(fft_points) x = {from, from + V, room->row}, y = {to, to + V, 2 * V};
    DT(fft_apply)(&f->plan_h, &x, &y, room->scratch);
    return to;
}

/* The spectra of two real signals from Z, that of the first plus i times the second, at a frequency and its mirror:
 * twice as large. */
typedef struct {
    vec re[2], im[2];
} both;
INLINE both untangled(const real *z, const real *mirror) {
    const vec re = load(z), im = load(z + V), mirror_re = load(mirror), mirror_im = load(mirror + V);
    return (both){{re + mirror_re, im + mirror_im}, {im - mirror_im, mirror_re - re}};
}

/* Loads where the next frequencies go: their planes are far apart, so that the processor does not find them itself. */
enum { AHEAD = 12, LINES_AHEAD = 8 };
INLINE void ahead(const real *at, int64_t plane, int planes, int64_t second) {
    UNROLL for (int i = 0; i < planes; i++, at += plane) {
        __builtin_prefetch(at, 1);
        __builtin_prefetch(at + second, 1);
    }
}

/* store(e, z, mirror) of each frequency */
#define EACH_FREQUENCY(f, room, STORE)                                              \
    do {                                                                            \
        const int64_t high = (f)->h.points, wide = (f)->w.points;                   \
        int64_t e = 0;                                                              \
        for (int64_t k = 0; k <= wide / 2; k++) {                                   \
            const int own = dtconv_own_mirror(k, wide);                             \
            const real *z = column(f, room, k, 0);                                  \
            const real *mirror = own ? z : column(f, room, wide - k, 1);            \
            for (int64_t i = 0; i < (own ? high / 2 + 1 : high); i++, e++)          \
                STORE(e, z + 2 * i * V, mirror + 2 * dtconv_mirrored(i, high) * V); \
        }                                                                           \
    } while (0)

void DT(fourier_to_tiles)(const DT(fourier) * f, const DT(fourier_room) * room, const DT(fourier_spectra) * to) {
    const int64_t plane = to->plane;
    real *at = to->at, *second = at + to->second;
#define STORE(e, z, mirror)                                                     \
    {                                                                           \
        const both s = untangled(z, mirror);                                    \
        if (to->far) ahead(at + 2 * (e + AHEAD) * plane, plane, 2, to->second); \
        store(at + 2 * e * plane, s.re[0]);                                     \
        store(second + 2 * e * plane, s.re[1]);                                 \
        store(at + (2 * e + 1) * plane, s.im[0]);                               \
        store(second + (2 * e + 1) * plane, s.im[1]);                           \
    }
    EACH_FREQUENCY(f, room, STORE);
#undef STORE
}

INLINE void store_panel(const DT(fourier_spectra) * to, int64_t e, int64_t offset, vec re, vec im) {
    real *at = to->at + 3 * e * to->plane + offset;
    const vec parts[3] = {re, im - re, re + im};
    for (int i = 0; i < 3; i++, at += to->plane)
        if (to->room >= V)
            store(at, parts[i]);
        else
            store_part(at, to->room, parts[i]);
}

void DT(fourier_to_panels)(const DT(fourier) * f, const DT(fourier_room) * room, const DT(fourier_spectra) * to) {
    const real scale = to->scale, turned = to->conjugate ? -scale : scale;
#define STORE(e, z, mirror)                                                                \
    {                                                                                      \
        const both s = untangled(z, mirror);                                               \
        ahead(to->at + 3 * (e + AHEAD) * to->plane, to->plane, 3, to->second);             \
        store_panel(to, e, 0, s.re[0] * scale, s.im[0] * turned);                          \
        if (to->second) store_panel(to, e, to->second, s.re[1] * scale, s.im[1] * turned); \
    }
    EACH_FREQUENCY(f, room, STORE);
#undef STORE
}

void DT(fourier_rows_to_panel)(const DT(fourier) * f, const real *rows, int64_t plane, int64_t ld, int64_t tiles,
                               int64_t channels, const DT(fourier_spectra) * to) {
    const int64_t nr = f->ukr->nr;
    const real scale = to->scale, turned = to->conjugate ? -scale : scale;
    DT(fourier_spectra) part = *to;
    for (int64_t i = 0; i < tiles; i++, rows += ld)
        for (int64_t c = 0; c < nr; c += V) {
            const int64_t count = MIN(part.room = MIN(V, nr - c), channels - c);
            vec re = {0}, im = {0};
            if (count > 0) {
                __builtin_prefetch(rows + LINES_AHEAD * ld + c);
                __builtin_prefetch(rows + LINES_AHEAD * ld + plane + c);
                re = load_part(rows + c, count), im = load_part(rows + plane + c, count);
            }
            store_panel(&part, 0, i * nr + c, re * scale, im * turned);
        }
}

void DT(fourier_columns_inverse)(const DT(fourier) * f, const DT(fourier_room) * room,
                                 const DT(fourier_spectra) * from) {
    const int64_t high = f->h.points, wide = f->w.points, plane = from->plane;
    const real *at = from->at;
    const int64_t second = from->second;
    for (int64_t k = 0; k <= wide / 2; k++) {
        const int own = dtconv_own_mirror(k, wide);
        real *z = high == 1 ? room->buffer + 2 * k * V : room->columns;
        real *mirror = own ? z : high == 1 ? room->buffer + 2 * (wide - k) * V : room->columns + 2 * high * V;
        for (int64_t i = 0; i < (own ? high / 2 + 1 : high); i++, at += 2 * plane) {
            real *here = z + 2 * i * V, *there = mirror + 2 * dtconv_mirrored(i, high) * V;
            const vec re0 = load(at), re1 = load(at + second);
            if (from->far) ahead(at + 2 * AHEAD * plane, plane, 2, second);
            if (own && dtconv_own_mirror(i, high)) {
                store(here, re0);
                store(here + V, re1);
                continue;
            }
            const vec im0 = load(at + plane), im1 = load(at + plane + second);
            store(here, re0 - im1);
            store(here + V, im0 + re1);
            store(there, re0 + im1);
            store(there + V, re1 - im0);
        }
        if (high == 1) continue;
        for (int i = 0; i < (own ? 1 : 2); i++) { /* real and imaginary parts exchanged: the inverse */
            real *x = room->columns + i * 2 * high * V, *y = room->buffer + 2 * (i ? wide - k : k) * V;
            const DT(fft_points) source = {x + V, x, 2 * V}, to = {y + V, y, room->row};
            DT(fft_apply)(&f->plan_h, &source, &to, room->scratch);
        }
    }
}

void DT(fourier_row_inverse)(const DT(fourier) * f, const DT(fourier_room) * room, int64_t row) {
    real *x = room->buffer + row * room->row;
    const DT(fft_points) from = {x + V, x, 2 * V}, to = {room->line + V, room->line, 2 * V};
    DT(fft_apply)(&f->plan_w, &from, &to, room->scratch);
}

/* Convolution in the Fourier domain, backward_weights.
 *
 *   dw = inverse [ sum over tiles of X conj(DY) ]      X: tiles of x as in forward, DY: the outputs of each, and zeros
 *
 * a correlation of long signals of which only k x k results are wanted: products of blocks are added up frequency by
 * frequency, and there is one inverse per pair of channels.  For each frequency a complex matrix product over tiles,
 * dU (ci x co) += X^T (ci x tiles) * conj(DY) (tiles x co), of three real ones as in forward.
 *
 * Tiles are taken in blocks of a size that does not depend on the number of threads: spectra of a block are made by all
 * threads, as rows: the micro-kernel reads those of X as columns of its left operand, those of DY are packed for each
 * product.  Where forward has left X, it is read from there; DY is left for backward_data where that wants it.  Every
 * element of dU is summed by one thread, block after block.  With a depth, planes of dU are rows of one product: that
 * of plane j has X j rows further on.
 */
#include "dtconv_vector.h"
#include "fourier.h"

enum { UNIT = 8 }; /* tiles of a block that a thread transforms at a time */

typedef struct {
    RT(fourier) f;
    const elem *x, *dy;
    real *dw;
    int64_t block, blocks;
    int64_t ldx, ldy, ldu, x_plane, y_plane, u_plane, panel_plane, ldp;
    int64_t zeros_size, plans_size, x_size, y_size, u_size, room_size, sum_size, product_size, packed_size;
    RT(fourier_kept) kept;    /* X of all tiles, as forward has left it */
    RT(fourier_kept) dy_kept; /* DY of all tiles, for backward_data */
    real *zeros, *plans, *spectra, *dy_spectra, *u, *threads;
} pass_state;

static dtconv_status prepare(const dtconv_conv *p, int pass, real *kept, real *dy_kept, pass_state *s) {
    const dtconv_status status = RT(fourier_tiling)(p, pass, &s->f);
    if (status) return status;
    const RT(fourier) *f = &s->f;
    const int64_t nr = f->ukr->nr, mr = f->ukr->mr;
    s->ldx = RT(fourier_x_row)(f);
    s->ldy = s->ldu = dtconv_plane_row(f->co, V);
    s->block = RT(fourier_weights_block)(f);
    s->blocks = dtconv_ceil_div(f->tiles, s->block);
    s->x_plane = dtconv_plane_step((s->block + f->d.taps - 1) * s->ldx);
    s->kept = RT(fourier_kept_on)(f, f->ci, kept);
    if (kept) s->ldx = s->kept.ld, s->x_plane = s->kept.plane;
    s->dy_kept = RT(fourier_kept_on)(f, f->co, dy_kept);
    s->y_plane = dtconv_plane_step(dtconv_round_to(s->block, FOURIER_PAIR) * s->ldy);
    if (dy_kept) s->ldy = s->dy_kept.ld, s->y_plane = s->dy_kept.plane;
    s->panel_plane = dtconv_plane_step(s->block * nr);
    s->u_plane = dtconv_plane_step(f->length * s->ldu);
    s->ldp = dtconv_round_to(nr, V);
    s->zeros_size = dtconv_line(MAX(f->ci, f->co) + nr + V);
    s->plans_size = RT(fourier_plans_size)(f);
    s->x_size = kept ? 0 : dtconv_line(2 * f->frequencies * s->x_plane);
    s->y_size = dy_kept ? 0 : dtconv_line(2 * f->frequencies * s->y_plane);
    s->u_size = dtconv_line(2 * f->frequencies * s->u_plane);
    s->room_size = dtconv_line(RT(fourier_room_size)(f));
    s->sum_size = dtconv_line((s->block + f->d.taps - 1) * s->ldx);
    s->product_size = dtconv_line(f->length * s->ldp);
    s->packed_size = f->ukr->in_place ? 0 : dtconv_line(dtconv_round_to(f->length, mr) * s->block);
    return DTCONV_OK;
}

static int64_t thread_size(const pass_state *s) {
    return s->room_size + s->sum_size + 3 * s->product_size + 3 * s->panel_plane + s->packed_size;
}

static size_t bytes_of(const pass_state *s) {
    return 64 +
           (size_t)(s->zeros_size + s->plans_size + s->x_size + s->y_size + s->u_size + s->f.threads * thread_size(s)) *
               sizeof(real);
}

/* Pointers to the pixels of tiles `tile` and `tile` + 1 of x, then of dy; the rows of both. */
typedef struct {
    fourier_rows x, dy;
    const elem **pixels;
} two_tiles;

static two_tiles find_tiles(const pass_state *s, int64_t tile, int64_t end, const elem **pixels) {
    const int64_t points = s->f.h.points * s->f.w.points;
    const elem *zeros = (const elem *)s->zeros;
    two_tiles found = {.dy = DT(fourier_pair)(&s->f, s->dy, 1, tile, end, zeros, pixels + 2 * points),
                       .pixels = pixels};
    if (!s->kept.at) found.x = DT(fourier_pair)(&s->f, s->x, 0, tile, end, zeros, pixels);
    return found;
}

/* Whether the rows of the next tiles are known where those of these are. */
static int covers(fourier_rows next, fourier_rows rows) { return next.first <= rows.first && next.last >= rows.last; }

/* Of DY: spectra of pairs are twice as large, and the inverse leaves a division. */
static real scale_of(const RT(fourier) * f) { return (real)(0.25 / (double)(f->h.points * f->w.points)); }

/* X and DY of tiles [first, first + count) to rows from `row` on. */
static void transform_tiles(const pass_state *s, const RT(fourier_room) * room, int64_t first, int64_t count,
                            int64_t row) {
    const RT(fourier) *f = &s->f;
    const int64_t points = f->h.points * f->w.points;
    real *dy = s->dy_kept.at ? s->dy_kept.at + (first - row) * s->ldy : s->dy_spectra;
    const elem **sets = room->pointers;
    two_tiles tiles = find_tiles(s, first, first + count, sets), next = tiles;
    for (int64_t i = 0; i < count; i += 2, tiles = next) {
        const int more = i + 2 < count;
        if (more) next = find_tiles(s, first + i + 2, first + count, sets + (i / 2 + 1) % 2 * 4 * points);
        DT(fourier_pixels) pixels = {tiles.pixels, tiles.pixels + points, NULL};
        if (more && covers(next.x, tiles.x)) pixels.next = next.pixels;
        for (int64_t c = 0; !s->kept.at && c < f->ci; c += V) {
            const RT(fourier_spectra)
                to = {.at = s->spectra + (row + i) * s->ldx + c, .plane = s->x_plane, .second = s->ldx, .far = 1};
            DT(fourier_rows_forward)(f, room, &pixels, tiles.x, c, MIN(V, f->ci - c));
            RT(fourier_to_tiles)(f, room, &to);
        }
        pixels.first += 2 * points, pixels.second += 2 * points;
        pixels.next = more && covers(next.dy, tiles.dy) ? next.pixels + 2 * points : NULL;
        for (int64_t c = 0; c < f->co; c += V) {
            const RT(fourier_spectra)
                to = {.at = dy + (row + i) * s->ldy + c, .plane = s->y_plane, .second = s->ldy, .far = 1};
            DT(fourier_rows_forward)(f, room, &pixels, tiles.dy, c, MIN(V, f->co - c));
            RT(fourier_to_tiles)(f, room, &to);
        }
    }
}

/* dU of one frequency, n columns of a panel, in whole vectors: set by the first block, added to by the others. */
static void add_products(const pass_state *s, int add, int64_t n, const real *p, int is_real, real *re, real *im) {
    const real *q = p + s->product_size, *r = q + s->product_size;
    for (int64_t i = 0; i < s->f.length; i++, p += s->ldp, q += s->ldp, r += s->ldp, re += s->ldu, im += s->ldu)
        for (int64_t j = 0; j < n; j += V) {
            const vec one = load(p + j), zero = {0};
            store(re + j, (add ? load(re + j) : zero) + (is_real ? one : one - load(r + j)));
            if (!is_real) store(im + j, (add ? load(im + j) : zero) + one + load(q + j));
        }
}

/* The same where columns of another panel, or the next row, begin within the last vector. */
static void add_odd_products(const pass_state *s, int add, int64_t n, const real *p, int is_real, real *re, real *im) {
    const real *q = p + s->product_size, *r = q + s->product_size;
    for (int64_t i = 0; i < s->f.length; i++, p += s->ldp, q += s->ldp, r += s->ldp, re += s->ldu, im += s->ldu)
        for (int64_t j = 0; j < n; j++) {
            re[j] = (add ? re[j] : 0) + (is_real ? p[j] : p[j] - r[j]);
            if (!is_real) im[j] = (add ? im[j] : 0) + p[j] + q[j];
        }
}

/* dU of frequency e from the block of tiles that begins with `first`. */
static void product(const pass_state *s, int64_t e, int64_t first, int64_t count, real *sum, real *p) {
    const RT(fourier) *f = &s->f;
    const int64_t nr = f->ukr->nr;
    const real *x = s->kept.at ? s->kept.at + first * s->ldx : s->spectra;
    const real *re = x + 2 * e * s->x_plane, *im = re + s->x_plane;
    real *u = s->u + 2 * e * s->u_plane, *packed = p + 3 * s->product_size;
    real *panels = packed + s->packed_size;
    const real *dy = (s->dy_kept.at ? s->dy_kept.at + first * s->ldy : s->dy_spectra) + 2 * e * s->y_plane;
    const RT(fourier_spectra) to = {.at = panels, .plane = s->panel_plane, .scale = scale_of(f), .conjugate = 1};
    const int is_real = RT(fourier_is_real)(f, e);
    if (!is_real)
        for (int64_t i = 0; i < (count + f->d.taps - 1) * s->ldx; i += V) store(sum + i, load(re + i) + load(im + i));
    const real *left[3] = {is_real ? re : sum, re, im};
    for (int64_t j = 0; j < f->co; j += nr) {
        const int64_t n = MIN(nr, f->co - j);
        RT(fourier_rows_to_panel)(f, dy + j, s->y_plane, s->ldy, count, n, &to);
        const int odd = n % V && (j + nr < f->co || j % V);
        for (int k = 0; k < (is_real ? 1 : 3); k++)
            RT(tile_gemm)(f->ukr, f->length, n, count, left[k], 1, s->ldx, panels + k * s->panel_plane, 0, 0,
                          p + k * s->product_size, s->ldp, packed);
        (odd ? add_odd_products : add_products)(s, first > 0, n, p, is_real, u + j, u + s->u_plane + j);
    }
}

/* Where a tap is among the points: overlap-add has windows of dy that begin taps - 1 earlier. */
static int64_t place_of(const fourier_axis *a, int adds, int64_t tap) {
    return adds ? (tap - (a->taps - 1) + a->points) % a->points : tap;
}

/* dw of input channels i and i + 1, of a plane of the filters. */
static void transform_back(const pass_state *s, const RT(fourier_room) * room, int64_t plane, int64_t i) {
    const RT(fourier) *f = &s->f;
    real *u = s->u + (plane * f->slot + i) * s->ldu;
    const int two = i + 1 < f->ci;
    for (int64_t c = 0; c < f->co; c += V) {
        const RT(fourier_spectra) from = {.at = u + c, .plane = s->u_plane, .second = two ? s->ldu : 0, .far = 1};
        RT(fourier_columns_inverse)(f, room, &from);
        for (int64_t r = 0; r < f->h.taps; r++) {
            RT(fourier_row_inverse)(f, room, place_of(&f->h, f->adds, r));
            real *dw = s->dw + ((plane * f->h.taps + r) * f->w.taps * f->ci + i) * f->ldw + c;
            for (int64_t t = 0; t < f->w.taps; t++, dw += f->ci * f->ldw)
                for (int k = 0; k < 1 + two; k++)
                    store_part(dw + k * f->ldw, MIN(V, f->co - c),
                               load(room->line + (2 * place_of(&f->w, f->adds, t) + k) * V));
        }
    }
}

static void run(const pass_state *s) {
    const RT(fourier) *f = &s->f;
    const int64_t pairs = dtconv_ceil_div(f->ci, 2);
    real *own = s->threads + dtconv_thread_id() * thread_size(s);
    const RT(fourier_room) room = RT(fourier_room_on)(f, own, s->zeros);
    real *sum = own + s->room_size, *p = sum + s->sum_size;
    double since = RT(fourier_now)();
    memset(p, 0, (size_t)(3 * s->product_size) * sizeof(real));
    for (int64_t first = 0; first < f->tiles; first += s->block) {
        const int64_t count = MIN(s->block, f->tiles - first);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < count; i += UNIT) transform_tiles(s, &room, first + i, MIN(UNIT, count - i), i);
        RT(fourier_note)(1, &since);
#pragma omp for schedule(static)
        for (int64_t e = 0; e < f->frequencies; e++) product(s, e, first, count, sum, p);
        RT(fourier_note)(2, &since);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < f->d.taps * pairs; i++) transform_back(s, &room, i / pairs, i % pairs * 2);
    RT(fourier_note)(0, &since);
}

static size_t workspace_of(const dtconv_conv *p, int pass) {
    pass_state s = {0};
    return prepare(p, pass, NULL, NULL, &s) ? 0 : bytes_of(&s);
}

static dtconv_status run_pass(const dtconv_conv *p, int pass, const DT(conv_args) * a, void *workspace, size_t bytes) {
    for (int64_t group = 0; group < p->groups; group++) {
        const int64_t i = group * (p->ci / p->groups), o = group * (p->co / p->groups);
        pass_state s = {.x = a->x + i, .dy = a->y + o, .dw = a->w + o};
        const dtconv_status status = prepare(p, pass, a->spectra, a->dy_spectra, &s);
        if (status) return status;
        if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
        s.zeros = dtconv_aligned(workspace);
        s.plans = s.zeros + s.zeros_size;
        s.spectra = s.plans + s.plans_size;
        s.dy_spectra = s.spectra + s.x_size;
        s.u = s.dy_spectra + s.y_size;
        s.threads = s.u + s.u_size;
        memset(s.zeros, 0, (size_t)s.zeros_size * sizeof(real));
        RT(fourier_plans_on)(&s.f, s.plans);
        if (!s.kept.at) RT(fourier_end_x)(&s.f, s.spectra, s.x_plane, s.block);
#pragma omp parallel num_threads((int)s.f.threads)
        run(&s);
    }
    return DTCONV_OK;
}

static size_t bytes_by_phases(const dtconv_conv *p, int pass) {
    dtconv_conv q;
    const size_t bytes = DT(fourier_phases)(p, &q) ? workspace_of(&q, pass) : 0;
    return bytes && dtconv_is_strided(p) ? bytes + DT(fourier_phases_bytes)(&q) : bytes;
}

#define PASS(name, pass)                                                                                      \
    size_t DT(conv_##name##_workspace)(const dtconv_conv *p) { return bytes_by_phases(p, pass); }             \
    dtconv_status DT(conv_##name)(const dtconv_conv *p, const DT(conv_args) * a, void *space, size_t bytes) { \
        const size_t needed = bytes_by_phases(p, pass);                                                       \
        if (!needed) return DTCONV_UNSUPPORTED;                                                               \
        if (bytes < needed) return DTCONV_WORKSPACE;                                                          \
        if (dtconv_is_strided(p)) return DT(fourier_by_phases)(p, pass, a, space, bytes, run_pass);           \
        return run_pass(p, pass, a, space, bytes);                                                            \
    }
PASS(fft_backward_weights, 2)
PASS(fft_overlap_add_backward_weights, 5)

/* The convolution in the Fourier domain: how a problem is cut into tiles of a basis, and which basis is expected to be
 * the fastest. */
#include "dtconv_vector.h"
#include "fourier.h"

enum {
    WEIGHTS_BYTES = 8 << 20, /* backward_weights: spectra of a block ... */
    WEIGHTS_LEAST = 56,      /* ... of so many tiles at least: the depth of a product ... */
    WEIGHTS_MOST = 512,      /* ... and at most */
    UNIT = 8,
};

static dtconv_status set_axis(fourier_axis *a, int adds, int turned) {
    const int64_t out = dtconv_ceil_div(a->out, a->step), in = dtconv_ceil_div(a->in, a->step);
    /* a tile that holds the whole image needs no padding of its own at both ends: they are the same zeros */
    const int64_t after = out + a->taps - 1 - in - a->before;
    const int whole =
        !adds && a->step == 1 && a->before >= 0 && a->points >= MAX(MAX(in + MAX(a->before, after), out), a->taps);
    const int64_t cut = adds ? in : out;
    a->kept = whole ? out : a->points - a->taps + 1;
    if (a->kept < 1 || !dtconv_fft_length(a->points)) return DTCONV_UNSUPPORTED;
    a->kept = MIN(a->kept, cut);
    a->shift = whole && turned ? a->before : 0; /* so that dy is read as backward_weights reads it */
    a->tiles = a->step * dtconv_ceil_div(cut, a->kept);
    return DTCONV_OK;
}

/* The axes of a pass, without their transforms. */
static dtconv_status set_problem(const dtconv_conv *p, int pass, DT(fourier) * f) {
    const int turned = pass % 3 == 1;
    if (p->sh != 1 || p->sw != 1 || p->sd != 1 || (p->dil_d != 1 && p->kd != 1)) return DTCONV_UNSUPPORTED;
    if (dtconv_is_deep(p) && pass >= 3) return DTCONV_UNSUPPORTED;
    *f = (DT(fourier)){.n = p->n, .turned = turned, .adds = pass >= 3, .ldw = p->co};
    f->h = (fourier_axis){.in = p->ih, .out = p->oh, .taps = p->kh, .before = p->pad_t, .step = p->dil_h};
    f->w = (fourier_axis){.in = p->iw, .out = p->ow, .taps = p->kw, .before = p->pad_l, .step = p->dil_w};
    f->d = (fourier_depth){.in = p->id, .out = p->od, .taps = p->kd, .before = p->pad_f};
    f->ci = p->ci / p->groups, f->co = p->co / p->groups;
    f->ldx = p->ldx, f->ldy = p->ldy;
    if (turned) {
        const int64_t before_h = (p->kh - 1) * p->dil_h - p->pad_t, before_w = (p->kw - 1) * p->dil_w - p->pad_l;
        f->h = (fourier_axis){.in = p->oh, .out = p->ih, .taps = p->kh, .before = before_h, .step = p->dil_h};
        f->w = (fourier_axis){.in = p->ow, .out = p->iw, .taps = p->kw, .before = before_w, .step = p->dil_w};
        f->d = (fourier_depth){.in = p->od, .out = p->id, .taps = p->kd, .before = p->kd - 1 - p->pad_f};
        f->ci = p->co / p->groups, f->co = p->ci / p->groups;
        f->ldx = p->ldy, f->ldy = p->ldx;
    }
    f->d.rows = f->d.out + f->d.taps - 1;
    f->slot = f->d.taps > 1 ? dtconv_round_to(f->ci, V) : f->ci;
    f->length = (f->d.taps - 1) * f->slot + f->ci;
    return DTCONV_OK;
}

static dtconv_status set_tiles(DT(fourier) * f, int64_t high, int64_t wide) {
    f->h.points = high, f->w.points = wide;
    if (high * wide > FOURIER_MOST_POINTS || set_axis(&f->h, f->adds, f->turned) || set_axis(&f->w, f->adds, f->turned))
        return DTCONV_UNSUPPORTED;
    const int64_t own = wide % 2 || wide == 1 ? 1 : 2;
    f->tiles = f->n * f->h.tiles * f->w.tiles * f->d.rows;
    f->frequencies = own * (high / 2 + 1) + (wide - own) / 2 * high;
    return DTCONV_OK;
}

dtconv_status DT(fourier_tiling)(const dtconv_conv *p, int pass, DT(fourier) * f) {
    dtconv_conv chosen = *p;
    if (!p->basis_h && DT(fft_basis)(&chosen, pass) == 0) return DTCONV_UNSUPPORTED;
    if (set_problem(p, pass, f) || set_tiles(f, chosen.basis_h, chosen.basis_w)) return DTCONV_UNSUPPORTED;
    f->ukr = DT(ukr_current)();
    if (!f->ukr) return DTCONV_KERNEL;
    f->threads = dtconv_threads_of(p);
    return DTCONV_OK;
}

/* Bytes of a tile's spectra in forward and backward_data. */
static int64_t tile_bytes(const DT(fourier) * f) {
    const int64_t one = dtconv_plane_row(MAX(f->ci, f->co), V), both = f->slot + dtconv_plane_row(f->co, V);
    return 2 * f->frequencies * (f->d.taps > 1 ? both : one) * (int64_t)sizeof(real);
}

/* Tiles of whole images, or columns, of so many, and whole pairs of tiles, whatever the number of threads. */
static int64_t block_of_whole(const DT(fourier) * f, int64_t whole, int *shared) {
    const int64_t all = dtconv_round_to(f->tiles, FOURIER_PAIR);
    const int64_t unit = whole % FOURIER_PAIR ? FOURIER_PAIR * whole : whole, bytes = unit * tile_bytes(f);
    *shared = bytes > FOURIER_OWN_MOST;
    int64_t units = MAX(1, (*shared ? FOURIER_SHARED_BYTES : FOURIER_OWN_BYTES) / bytes);
    if (!*shared) units = MIN(units, dtconv_ceil_div(dtconv_ceil_div(all, f->threads), unit));
    return MIN(units * unit, all);
}

int64_t DT(fourier_block)(const DT(fourier) * f, int *shared) {
    if (f->adds) return block_of_whole(f, f->h.tiles * f->w.tiles, shared);
    if (f->d.taps > 1) return block_of_whole(f, f->d.rows, shared);
    const int64_t bytes = tile_bytes(f), all = dtconv_round_to(f->tiles, FOURIER_PAIR);
    const int64_t rows = dtconv_round_to(f->ukr->mr, FOURIER_PAIR);
    const int64_t share = dtconv_round_to(dtconv_ceil_div(all, f->threads), FOURIER_PAIR);
    int64_t own = FOURIER_OWN_BYTES / bytes / rows * rows;
    if (own == 0 && rows * bytes <= FOURIER_OWN_MOST) own = rows;
    *shared = own == 0;
    if (!*shared) return MIN(own, share);
    const int64_t blocks = dtconv_ceil_div(all, MAX(FOURIER_SHARED_BYTES / bytes, rows));
    return dtconv_round_to(dtconv_ceil_div(all, blocks), FOURIER_PAIR);
}

int64_t DT(fourier_weights_block)(const DT(fourier) * f) {
    const int64_t nr = f->ukr->nr, wide = dtconv_round_to(f->co, nr), size = sizeof(real);
    const int64_t bytes = f->frequencies * (2 * dtconv_plane_row(f->ci, V) + 3 * wide) * size;
    const int64_t block = MIN(WEIGHTS_MOST, MAX(WEIGHTS_LEAST, WEIGHTS_BYTES / bytes));
    if (f->d.taps > 1) return MIN(dtconv_round_to(block, f->d.rows), f->tiles); /* whole columns */
    return dtconv_round_to(dtconv_ceil_div(f->tiles, dtconv_ceil_div(f->tiles, block)), UNIT);
}

/* What a pass does: multiplications and additions of products, with their padding, and vectors of channels. */
typedef struct {
    double products, transforms, far, panels, sums, pixels;
} amounts;

/* Picoseconds of a unit of each on one thread of an AVX-512 CPU, fitted to measurements (backward_weights on its own).
 */
static const amounts COSTS = {.products = 18.6, .transforms = 3360, .far = 7310, .panels = 25800, .pixels = 5180};
static const amounts COSTS_OF_WEIGHTS = {
    .products = 20.5, .transforms = 7520, .panels = 22100, .sums = 3660, .pixels = 12400};

/* Passes over the points of an axis; long ones leave the first cache. */
static double passes_of(int64_t points) { return (points > 84 ? 1.5 : 1) * dtconv_fft_passes(points); }

static double cost_of(DT(fourier) * f, int pass) {
    enum { MR = 14, NR = 2 * V }; /* the model's micro-kernel */
    static const DT(ukr_row) usual = {.mr = MR, .nr = NR};
    const double in = (double)dtconv_ceil_div(f->ci, V), out = (double)dtconv_ceil_div(f->co, V);
    const double points = (double)(f->h.points * f->w.points), tiles = (double)f->tiles,
                 written = tiles * (double)f->d.out / (double)f->d.rows, frequencies = (double)f->frequencies,
                 ci = (double)f->length;
    const double wide = (double)dtconv_round_to(f->co, NR), size = (double)sizeof(real) / 4;
    const double axes = passes_of(f->h.points) + passes_of(f->w.points);
    const amounts *each = pass % 3 == 2 ? &COSTS_OF_WEIGHTS : &COSTS;
    amounts of = {.transforms = (tiles * in + written * out) * points * axes / 2,
                  .pixels = (tiles * in + written * out) * (double)(f->h.kept * f->w.kept)};
    f->ukr = &usual, f->threads = 1;
    if (pass % 3 == 2) {
        const double blocks = (double)dtconv_ceil_div(f->tiles, DT(fourier_weights_block)(f));
        const double rows = (double)dtconv_round_to(f->length, MR);
        of.products = 6 * frequencies * (tiles + 8 * blocks) * rows * wide;
        of.sums = 2 * blocks * frequencies * ci * out;
        of.panels = points * ci * out;
    } else {
        int shared;
        const int64_t block = DT(fourier_block)(f, &shared), rest = block % 56;
        const double rows = (double)(block - rest + dtconv_round_to(rest, MR));
        of.products = 6 * frequencies * tiles * rows / (double)block * (ci + 8) * wide;
        of.far = shared ? 2 * (tiles * in + written * out) * frequencies : 0;
        of.panels = 3 * frequencies * ci * out;
        if (f->adds) of.far += tiles * out * points; /* the results of tiles, stored and added */
    }
    return size * of.products * each->products + of.transforms * each->transforms + of.far * each->far +
           of.panels * each->panels + of.sums * each->sums + of.pixels * each->pixels;
}

/* Phases of x and of w, written and read: picoseconds of an element. */
static double cost_of_phases(const dtconv_conv *p, const dtconv_conv *q) {
    const double x = (double)(q->n * q->id * q->ih * q->iw * q->ci),
                 w = (double)(q->kd * q->kh * q->kw * q->ci * q->co);
    return dtconv_is_strided(p) ? 1000 * (x + w / (double)q->groups) / (double)q->groups : 0;
}

double DT(fft_basis)(dtconv_conv *p, int pass) {
    DT(fourier) f;
    dtconv_conv q;
    double best = 0;
    const int64_t given[2] = {p->basis_h, p->basis_w};
    if (!DT(fourier_phases)(p, &q) || set_problem(&q, pass, &f)) return 0;
    const int64_t least_h = given[0] ? given[0] : f.h.taps, most_h = given[0] ? given[0] : DTCONV_FFT_MOST;
    const int64_t least_w = given[1] ? given[1] : f.w.taps, most_w = given[1] ? given[1] : DTCONV_FFT_MOST;
    for (int64_t high = least_h, last_h = 0; high <= most_h && !last_h; high++) {
        if (!dtconv_fft_length(high)) continue;
        for (int64_t wide = least_w, last_w = 0; wide <= most_w && !last_w; wide++) {
            if (!dtconv_fft_length(wide) || set_tiles(&f, high, wide)) continue;
            last_h = f.h.tiles == f.h.step, last_w = f.w.tiles == f.w.step; /* larger ones would hold more zeros */
            const double cost = cost_of(&f, pass) + cost_of_phases(p, &q);
            if (best == 0 || cost < best) best = cost, p->basis_h = high, p->basis_w = wide;
        }
    }
    return best * (double)p->groups * 1e-12;
}

DT(fourier_kept) DT(fourier_kept_on)(const DT(fourier) * f, int64_t channels, real *memory) {
    const int64_t ld = f->d.taps > 1 ? dtconv_round_to(channels, V) : dtconv_plane_row(channels, V);
    const int64_t tiles = dtconv_round_to(f->tiles, FOURIER_PAIR) + f->d.taps - 1;
    return (DT(fourier_kept)){memory, ld, dtconv_plane_step(tiles * ld)};
}

/* What the transforms of x, or dy, do, all tiles of it. */
static double transforms_of(const DT(fourier) * f) {
    const double tiles = (double)(f->tiles * dtconv_ceil_div(f->ci, V)), points = (double)(f->h.points * f->w.points);
    return tiles * points * (passes_of(f->h.points) + passes_of(f->w.points)) / 2;
}

/* backward_weights has no transforms of x; forward writes them beyond the second cache. */
int64_t DT(fft_spectra_size)(const dtconv_conv *p, int pass, double *gain) {
    DT(fourier) f;
    dtconv_conv q;
    int shared;
    *gain = 0;
    if (!p->basis_h || p->groups > 1 || !DT(fourier_phases)(p, &q) || DT(fourier_tiling)(&q, pass, &f)) return 0;
    DT(fourier_block)(&f, &shared);
    const double far = shared ? 0 : 2 * (double)(f.tiles * dtconv_ceil_div(f.ci, V) * f.frequencies);
    *gain = (transforms_of(&f) * COSTS_OF_WEIGHTS.transforms - far * COSTS.far) * 1e-12;
    return 2 * f.frequencies * DT(fourier_kept_on)(&f, f.ci, NULL).plane;
}

/* Whether backward_data (a) reads the same pixels of dy along an axis as backward_weights (b), tile by tile. */
static int reads_alike(const DT(fourier) * f, const fourier_axis *a, const DT(fourier) * g, const fourier_axis *b) {
    int same = a->tiles == b->tiles;
    for (int64_t i = 0; same && i < a->tiles; i++) {
        int64_t begin[2], end[2];
        const int64_t first = DT(fourier_points_read)(f, a, 0, i, &begin[0], &end[0]);
        same = first == DT(fourier_points_read)(g, b, 1, i, &begin[1], &end[1]) && begin[0] == begin[1] &&
               end[0] == end[1];
    }
    return same;
}

/* backward_data has no transforms of dy; backward_weights writes them beyond the second cache anyway. */
int64_t DT(fft_dy_spectra_size)(const dtconv_conv *p, int data, int weights, double *gain) {
    DT(fourier) f, g;
    dtconv_conv q;
    *gain = 0;
    if (!p->basis_h || p->groups > 1 || !DT(fourier_phases)(p, &q)) return 0;
    if (DT(fourier_tiling)(&q, data, &f) || DT(fourier_tiling)(&q, weights, &g)) return 0;
    if (f.d.taps > 1) return 0; /* rows of dy begin elsewhere in a column */
    if (!reads_alike(&f, &f.h, &g, &g.h) || !reads_alike(&f, &f.w, &g, &g.w)) return 0;
    *gain = transforms_of(&f) * COSTS.transforms * 1e-12;
    return 2 * f.frequencies * DT(fourier_kept_on)(&f, f.ci, NULL).plane;
}

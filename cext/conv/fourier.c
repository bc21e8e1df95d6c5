/* Convolution in the Fourier domain, forward and backward_data: overlapping input tiles, disjoint output tiles.
 *
 *   y tile = inverse [ sum over c of X conj(W) ]      X, W: transforms of T x T pixels of x, of filters with zeros
 *
 * Of the T x T results of a tile those T - k + 1 squared are kept that no circular shift has reached.  For each
 * frequency a complex matrix product over channels, Y (tiles x co) = X (tiles x ci) * conj(W) (ci x co), made of three
 * real ones (Gauss), with a = re, b = im of conj(W):
 *
 *   P = (Xr + Xi) a,  Q = Xr (b - a),  R = Xi (a + b),    Yr = P - R,  Yi = P + Q
 *
 * so that T squared points take 1.5 T squared multiplications where the direct algorithm has k squared for each of the
 * outputs.  Spectra of a block of tiles are in place: those of y replace those of x, frequency by frequency.
 *   own      small blocks, each in the second cache of the thread that does all of it
 *   shared   where these would be too small: blocks that all threads work on, step by step
 * Filters are transformed once and kept; the micro-kernel reads X in place, W as packed panels.
 *
 * With a depth (fourier_depth) the planes of filters are multiplied one by one and their products added up:
 * Y[r] = sum over j of X[r + j] conj(W[j]).  Rows of X lie side by side, so that this is one product whose rows
 * overlap.
 */
#include "fourier_pass.h"

enum { CHUNK_TILES = 6 }; /* tiles of a shared block that a thread transforms at a time */

static int64_t thread_size(const DT(fourier_pass) * s) {
    return (s->shared ? 0 : s->spectra_size) + s->room_size + s->sum_size + 3 * s->product_size + s->packed_size +
           s->pointers_size + s->sums_size;
}

static dtconv_status prepare(const dtconv_conv *p, int pass, DT(fourier_pass) * s) {
    const dtconv_status status = RT(fourier_tiling)(p, pass, &s->f);
    if (status) return status;
    const RT(fourier) *f = &s->f;
    const int64_t nr = f->ukr->nr, mr = f->ukr->mr, size = sizeof(real), panels = dtconv_ceil_div(f->co, nr);
    s->ld = dtconv_plane_row(MAX(f->ci, f->co), V);
    s->block = RT(fourier_block)(f, &s->shared);
    s->plane = dtconv_plane_step(s->block * s->ld);
    s->ldx = s->ld, s->x_plane = s->plane;
    const int deep = f->d.taps > 1; /* rows of Y are products with X of several: Y has a place of its own */
    if (deep) s->ldx = f->slot, s->x_plane = dtconv_plane_step((s->block + f->d.taps - 1) * f->slot);
    s->kept = RT(fourier_kept_on)(f, f->ci, !s->args ? NULL : f->turned ? s->args->dy_spectra : s->args->spectra);
    s->given = f->turned && s->kept.at;
    if (s->kept.at) s->ldx = s->kept.ld, s->x_plane = s->kept.plane;
    s->w.u_step = f->d.taps * f->slot * nr;
    s->w.u_plane = dtconv_plane_step(panels * s->w.u_step);
    s->ldp = dtconv_plane_row(f->co, V);
    s->zeros_size = dtconv_line(MAX(f->ci, f->co) + nr + V);
    s->plans_size = RT(fourier_plans_size)(f);
    s->turned_size = f->turned ? dtconv_line(f->d.taps * f->h.taps * f->w.taps * f->ci * f->co) : 0;
    s->u_size = 3 * f->frequencies * s->w.u_plane;
    s->x_place = deep ? 2 * f->frequencies * s->plane : 0;
    s->spectra_size = dtconv_line(2 * f->frequencies * (s->plane + (deep && !s->kept.at ? s->x_plane : 0)));
    s->room_size = dtconv_line(RT(fourier_room_size)(f));
    s->sum_size = dtconv_line((FOURIER_ROWS + f->d.taps - 1) * RT(fourier_x_row)(f));
    s->product_size = dtconv_line(FOURIER_ROWS * s->ldp);
    s->packed_size = f->ukr->in_place ? 0 : dtconv_line(dtconv_round_to(FOURIER_ROWS, mr) * f->length);
    s->pointers_size = dtconv_line(2 * f->h.kept * f->w.kept * (int64_t)sizeof(real *) / size);
    s->sums_size = (int64_t)DT(gather_sums_bytes)(f->co) / size;
    s->parts_size = (int64_t)DT(gather_parts_bytes)(dtconv_ceil_div(f->tiles, FOURIER_PAIR), f->co) / size;
    return DTCONV_OK;
}

static size_t bytes_of(const DT(fourier_pass) * s) {
    return 64 + (size_t)(s->zeros_size + s->plans_size + s->turned_size + s->u_size +
                         (s->shared ? s->spectra_size : 0) + s->parts_size + s->f.threads * thread_size(s)) *
                    sizeof(real);
}

static DT(fourier_memory) memory_of(const DT(fourier_pass) * s, int64_t thread) {
    DT(fourier_memory) own;
    real *at = s->threads + thread * thread_size(s);
    own.spectra = s->shared ? s->spectra : at;
    if (!s->shared) at += s->spectra_size;
    own.room = RT(fourier_room_on)(&s->f, at, s->zeros);
    own.sum = at + s->room_size;
    own.products = own.sum + s->sum_size;
    own.packed = own.products + 3 * s->product_size;
    own.pixels = own.packed + s->packed_size;
    own.sums = own.packed + s->packed_size + s->pointers_size;
    return own;
}

/* X of the first of `row`s of a block that begins with tile `first`. */
static real *x_of(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t row) {
    return s->kept.at ? s->kept.at + (first + row) * s->ldx : own->spectra + s->x_place + row * s->ldx;
}

/* X of tiles [first, first + count) to rows from `row` on. */
static void transform_tiles(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t count,
                            int64_t row) {
    const RT(fourier) *f = &s->f;
    const int64_t points = f->h.points * f->w.points, end = first + count;
    if (s->given) return;
    const elem **sets[2] = {own->room.pointers, (const elem **)own->room.pointers + 2 * points};
    const elem *zeros = (const elem *)s->zeros;
    real *x = x_of(s, own, first - row, row);
    fourier_rows rows = DT(fourier_pair)(f, s->x, 0, first, end, zeros, sets[0]), next_rows = rows;
    for (int64_t i = 0; i < count; i += 2, rows = next_rows) {
        DT(fourier_pixels) pixels = {sets[i / 2 % 2], sets[i / 2 % 2] + points, NULL};
        if (i + 2 < count) {
            const elem **next = sets[(i / 2 + 1) % 2];
            next_rows = DT(fourier_pair)(f, s->x, 0, first + i + 2, end, zeros, next);
            pixels.next = next_rows.first <= rows.first && next_rows.last >= rows.last ? next : NULL;
        }
        for (int64_t c = 0; c < f->ci; c += V) {
            const RT(fourier_spectra)
                to = {.at = x + i * s->ldx + c, .plane = s->x_plane, .second = s->ldx, .far = s->shared || s->kept.at};
            DT(fourier_rows_forward)(f, &own->room, &pixels, rows, c, MIN(V, f->ci - c));
            RT(fourier_to_tiles)(f, &own->room, &to);
        }
    }
}

static void add_rows(int64_t rows, int64_t n, const real *a, const real *b, int64_t ld, real *to, int64_t ldt) {
    for (int64_t i = 0; i < rows; i++, a += ld, b += ld, to += ldt)
        for (int64_t j = 0; j < n; j += V) store(to + j, load(a + j) + load(b + j));
}

/* Yr and Yi of one frequency from the three products. */
static void combine(const DT(fourier_pass) * s, int64_t rows, const real *p, real *re, real *im) {
    const real *q = p + s->product_size, *r = q + s->product_size;
    for (int64_t i = 0; i < rows; i++, p += s->ldp, q += s->ldp, r += s->ldp, re += s->ld, im += s->ld)
        for (int64_t j = 0; j < s->f.co; j += V) {
            const vec one = load(p + j);
            store(re + j, one - load(r + j));
            store(im + j, one + load(q + j));
        }
}

/* Y of frequency e of the first `count` tiles of the block that begins with tile `first`. */
static void product(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t e, int64_t first,
                    int64_t count) {
    const RT(fourier) *f = &s->f;
    const int64_t lds = RT(fourier_x_row)(f);
    const real *u = s->w.u + 3 * e * s->w.u_plane;
    const int is_real = RT(fourier_is_real)(f, e);
    for (int64_t i = 0; i < count; i += FOURIER_ROWS) {
        const int64_t rows = MIN(FOURIER_ROWS, count - i);
        real *re = own->spectra + 2 * e * s->plane + i * s->ld, *im = re + s->plane, *p = own->products;
        const real *xr = x_of(s, own, first, i) + 2 * e * s->x_plane, *xi = xr + s->x_plane;
        if (is_real) {
            RT(tile_gemm)(f->ukr, rows, f->co, f->length, xr, s->ldx, 1, u, s->w.u_step, 0, p, s->ldp, own->packed);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < f->co; j += V) store(re + r * s->ld + j, load(p + r * s->ldp + j));
            continue;
        }
        add_rows(rows + f->d.taps - 1, f->ci, xr, xi, s->ldx, own->sum, lds);
        RT(tile_gemm)(f->ukr, rows, f->co, f->length, own->sum, lds, 1, u, s->w.u_step, 0, p, s->ldp, own->packed);
        RT(tile_gemm)(f->ukr, rows, f->co, f->length, xr, s->ldx, 1, u + s->w.u_plane, s->w.u_step, 0,
                      p + s->product_size, s->ldp, own->packed);
        RT(tile_gemm)(f->ukr, rows, f->co, f->length, xi, s->ldx, 1, u + 2 * s->w.u_plane, s->w.u_step, 0,
                      p + 2 * s->product_size, s->ldp, own->packed);
        combine(s, rows, p, re, im);
    }
}

/* Rows of y of the images of a block (overlap-add). */
static int64_t rows_of(const DT(fourier_pass) * s, int64_t tiles) {
    return tiles / (s->f.h.tiles * s->f.w.tiles) * s->f.h.out;
}

static void run_own(const DT(fourier_pass) * s, const DT(fourier_memory) * own) {
    const RT(fourier) *f = &s->f;
    double since = RT(fourier_now)();
#pragma omp for schedule(dynamic, 1)
    for (int64_t first = 0; first < f->tiles; first += s->block) {
        const int64_t count = MIN(s->block, f->tiles - first);
        transform_tiles(s, own, first, count, 0);
        RT(fourier_note)(1, &since);
        for (int64_t e = 0; e < f->frequencies; e++) product(s, own, e, first, count);
        RT(fourier_note)(2, &since);
        if (f->adds) {
            DT(fourier_tile_results)(s, own, count, 0);
            for (int64_t row = rows_of(s, first); row < rows_of(s, first + count); row++)
                DT(fourier_added_row)(s, own, first, row);
        } else {
            DT(fourier_results)(s, own, first, count, 0);
        }
        RT(fourier_note)(3, &since);
    }
}

static void run_shared(const DT(fourier_pass) * s, const DT(fourier_memory) * own) {
    const RT(fourier) *f = &s->f;
    double since = RT(fourier_now)();
    for (int64_t first = 0; first < f->tiles; first += s->block) {
        const int64_t count = MIN(s->block, f->tiles - first);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < count; i += CHUNK_TILES)
            transform_tiles(s, own, first + i, MIN(CHUNK_TILES, count - i), i);
        RT(fourier_note)(1, &since);
#pragma omp for schedule(dynamic, 1)
        for (int64_t e = 0; e < f->frequencies; e++) product(s, own, e, first, count);
        RT(fourier_note)(2, &since);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < count; i += CHUNK_TILES) {
            const int64_t some = MIN(CHUNK_TILES, count - i);
            if (f->adds)
                DT(fourier_tile_results)(s, own, some, i);
            else
                DT(fourier_results)(s, own, first + i, some, i);
        }
        if (f->adds) {
#pragma omp for schedule(dynamic, 4)
            for (int64_t row = rows_of(s, first); row < rows_of(s, first + count); row++)
                DT(fourier_added_row)(s, own, first, row);
        }
        RT(fourier_note)(3, &since);
    }
}

static dtconv_status run(DT(fourier_pass) * s, void *workspace, size_t bytes) {
    if (bytes < bytes_of(s)) return DTCONV_WORKSPACE;
    s->zeros = dtconv_aligned(workspace);
    s->plans = s->zeros + s->zeros_size;
    s->w.turned = s->plans + s->plans_size;
    s->w.u = s->w.turned + s->turned_size;
    s->spectra = s->w.u + s->u_size;
    real *parts = s->spectra + (s->shared ? s->spectra_size : 0);
    s->gathered = DT(gather_parts_on)(parts, dtconv_ceil_div(s->f.tiles, FOURIER_PAIR), s->f.co, s->args, s->f.turned);
    s->threads = parts + s->parts_size;
    memset(s->zeros, 0, (size_t)s->zeros_size * sizeof(real));
    RT(fourier_plans_on)(&s->f, s->plans);
    if (s->kept.at && !s->given) RT(fourier_end_x)(&s->f, s->kept.at, s->x_plane, s->f.tiles);
#pragma omp parallel num_threads((int)s->f.threads)
    {
        const DT(fourier_memory) own = memory_of(s, dtconv_thread_id());
        double since = RT(fourier_now)();
        memset(own.products, 0, (size_t)(3 * s->product_size) * sizeof(real));
        if (!s->kept.at && (!s->shared || dtconv_thread_id() == 0))
            RT(fourier_end_x)(&s->f, own.spectra + s->x_place, s->x_plane, s->block);
        RT(fourier_filters)(&s->f, &s->w, &own.room);
        RT(fourier_note)(0, &since);
        if (s->shared)
            run_shared(s, &own);
        else
            run_own(s, &own);
        DT(gather_merge)(&s->gathered);
    }
    return DTCONV_OK;
}

/* The vectors of the arguments begin with a group's channels. */
static DT(conv_args) arguments_of(const dtconv_conv *p, const DT(conv_args) * a, int64_t group) {
    DT(conv_args) own = *a;
    const int64_t i = group * (p->ci / p->groups), o = group * (p->co / p->groups);
    own.x += i, own.y += o, own.w += o;
    if (a->bias) own.bias += o;
    if (a->scale) own.scale += o, own.beta += o;
    if (a->residual) own.residual += o;
    if (a->mean) own.mean += o, own.variance += o;
    if (a->reductions.sum) {
        DT(conv_reductions) *to = &own.reductions;
        to->x += i, to->mean += i, to->scale += i, to->sum += i, to->sum_x += i;
        if (to->beta) to->beta += i;
    }
    return own;
}

static dtconv_status run_pass(const dtconv_conv *p, int pass, const DT(conv_args) * all, void *workspace,
                              size_t bytes) {
    const int backward_data = pass % 3;
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(conv_args) a = arguments_of(p, all, group);
        DT(fourier_pass) s = {.args = &a, .w.filters = a.w};
        s.x = backward_data ? a.y : a.x;
        s.y = backward_data ? a.x : a.y;
        s.bias = backward_data ? NULL : a.bias, s.scale = backward_data ? NULL : a.scale;
        s.added = !backward_data ? a.residual : a.accumulate ? a.x : NULL;
        s.lda = backward_data ? p->ldx : a.ldr;
        dtconv_status status = prepare(p, pass, &s);
        if (!status) status = run(&s, workspace, bytes);
        if (status) return status;
    }
    return DTCONV_OK;
}

static size_t workspace_of(const dtconv_conv *p, int pass) {
    DT(fourier_pass) s = {0};
    return prepare(p, pass, &s) ? 0 : bytes_of(&s);
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
PASS(fft_forward, 0)
PASS(fft_backward_data, 1)
PASS(fft_overlap_add_forward, 3)
PASS(fft_overlap_add_backward_data, 4)

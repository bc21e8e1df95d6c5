/* Winograd's convolution, backward_weights: F(3 x 3, m x m), the adjoint of the forward's algorithm.
 *
 *   dw = G^T [ sum over tiles of (B^T d B) * (A dy A^T) ] G        d: a x a pixels of x, dy: m x m pixels of dy
 *
 * For each point e a matrix product over tiles, dU[e] (ci x co) = V[e]^T (ci x tiles) * Z[e] (tiles x co).
 *
 * Tiles are taken in blocks of a size that does not depend on the number of threads: V and Z of a block are made by all
 * threads and read in place, V as columns of the left operand, Z as packed panels.  Every element of dU is summed by
 * one thread, block after block, so results do not depend on the number of threads.  Where there is one block only, dU
 * of a few channels is made and transformed at a time and never leaves the cache.
 *
 * Where dU is small enough to stay in L2 with V and Z of some tiles, or not much larger, threads do not share them: the
 * tiles are cut into slices, whose number does not depend on the threads either; whoever takes one makes V and Z of a
 * block at a time, adds to a dU of its own, and turns that into a dw of the slice.  These are added in order at the
 * end.
 *
 * With a depth a block of tiles walks through the planes of dy, some at a time, with V of the planes of x that these
 * meet, and dU of each plane of the filters is summed by itself.  V is kept in a ring of planes, so that each is made
 * once; rows of several planes lie side by side, and a product is of all of them.
 */
#include "winograd_points.h"

enum {
    CHUNK_TILES = 8,
    BLOCK_LEAST = 4 << 20, /* bytes of V and Z of a block: a third of L3, so that they stay there beside dU, ... */
    BLOCK_MOST = 12 << 20, /* ... which is read and written for each block */
    BLOCK_TILES = 256,     /* at most; without a depth half as many ... */
    WIDE_PANEL = 128,      /* ... where a row of Z's panels has fewer bytes: what a tile of sums reads then fills half
                              of L1, and the next one finds its lines of V there; and where ... */
    LARGE_POINTS = 64,     /* ... tiles have more points, V and Z of which are twice as large */
    ROWS = 128,            /* input channels of a unit of work, at most, ... */
    UNITS = 16,            /* ... of which one block has so many, if they have two tiles of the micro-kernel's rows */
    SLICES = 16,           /* at most, where threads have blocks of their own ... */
    OWN_BLOCKS = 4,        /* ... of this many blocks at least, ... */
    OWN_TILES = 48,        /* ... which have this many tiles at least ... */
    OWN_MORE_TILES = 64,   /* ... or this many, where dU alone is larger than the room for it in L2, ... */
    OWN_BYTES = 640 << 10, /* ... which it may be up to this size */
    LARGE_L2 = 2 << 20,    /* of processors whose L3 is slow: what another core has written there above all */
};

typedef struct {
    DT(tiling) w;
    points_of points;
    const elem *x, *dy;
    const DT(conv_normalization) * prologue; /* of x */
    real *dw;
    int64_t block, blocks; /* tiles at a time */
    int64_t rows, columns; /* input and output channels of a unit of work */
    int64_t ldv, ldc, v_plane, z_plane, z_step, c_plane;
    int deep, own;
    int64_t slices, dw_size;      /* own: slices of tiles, and elements of dw of each but the first */
    int64_t planes, ring, c_step; /* with a depth: of dy at a time, of x that are kept; from dU to dU */
    int64_t zeros_size, v_size, z_size, c_size, packed_size; /* c_size: all of dU, or of a unit, per thread */
    elem *zeros;
    point *v, *z;
    real *c, *packed, *sums;
} pass_state;

/* Input channels of a unit of work, of which `least` are wanted: about equally many in each. */
static int64_t rows_of_unit(const DT(tiling) * w, int64_t least) {
    const int64_t mr = w->mr;
    const int64_t few = dtconv_ceil_div(w->ci, MAX(1, ROWS / mr) * mr), many = dtconv_ceil_div(w->ci, 2 * mr);
    const int64_t down = MAX(few, MIN(many, dtconv_ceil_div(least, dtconv_ceil_div(w->co, w->nr))));
    return MIN(w->ci, dtconv_round_to(dtconv_ceil_div(w->ci, down), mr));
}

/* Decides whether threads have blocks of their own, of how many tiles, and in how many slices. */
static void cut_own(pass_state *s, int64_t tile_bytes) {
    const DT(tiling) *w = &s->w;
    const int64_t l2 = dtconv_cache_bytes(2), size = sizeof(real);
    const int64_t c_bytes = w->points * w->ci * dtconv_plane_row(w->co, V) * size;
    const int64_t room = l2 * 5 / 8, least = c_bytes > room ? OWN_MORE_TILES : OWN_TILES;
    const int64_t block = MAX(least, (l2 * 3 / 4 - c_bytes) / tile_bytes / CHUNK_TILES * CHUNK_TILES);
    const int64_t most = MIN(SLICES, dtconv_ceil_div(w->tiles, block) / OWN_BLOCKS);
    for (s->slices = 1; 2 * s->slices <= most;) s->slices *= 2; /* equally many for 2, 4, 8, 16 threads */
    s->own = !s->deep && c_bytes <= (l2 >= LARGE_L2 ? l2 * 3 / 2 : MAX(room, OWN_BYTES)) && s->slices > 1;
    if (!s->own) return;
    s->block = block;
    s->dw_size = dtconv_line(9 * w->ci * w->co);
}

static dtconv_status prepare(const dtconv_conv *p, pass_state *s) {
    const dtconv_status status = prepare_points(p, 0, DTCONV_TILES_OF_WEIGHTS, &s->w, &s->points);
    if (status) return status;
    const DT(tiling) *w = &s->w;
    const int64_t nr = w->nr, mr = w->mr, panels = dtconv_ceil_div(w->co, nr);
    s->ldv = dtconv_plane_row(w->ci, V);
    s->deep = w->od > 1 || w->id > 1 || w->kd > 1;
    const int64_t of_point = sizeof(point), tile_bytes = w->points * (s->ldv + panels * nr) * of_point;
    /* products of pairs write whole panels */
    const int64_t wide = of_point < (int64_t)sizeof(real) ? panels * nr : w->co;
    const int64_t block_bytes = MAX(BLOCK_LEAST, MIN(BLOCK_MOST, dtconv_cache_bytes(3) / 3));
    const int wide_panel = nr * (int64_t)sizeof(real) >= WIDE_PANEL;
    const int64_t some = w->points > LARGE_POINTS ? BLOCK_TILES / 2 : BLOCK_TILES;
    const int64_t most = s->deep || wide_panel ? some : some / 2;
    s->block = MIN(most, MAX(64, block_bytes / tile_bytes / CHUNK_TILES * CHUNK_TILES));
    s->planes = s->ring = 1;
    if (s->deep) { /* as many rows in all: of some planes, or of one and the ring */
        s->planes = MIN(w->od, MAX(1, s->block / w->tiles));
        s->ring = s->planes + w->kd - 1;
        if (s->planes == 1) s->block = MAX(CHUNK_TILES, s->block / 2 / CHUNK_TILES * CHUNK_TILES);
    }
    cut_own(s, tile_bytes);
    s->blocks = dtconv_ceil_div(w->tiles, s->block);
    s->block = dtconv_round_to(dtconv_ceil_div(w->tiles, s->blocks), CHUNK_TILES);
    s->columns = nr;
    const int one = s->blocks == 1 && !s->deep;
    s->rows = s->own ? w->ci : rows_of_unit(w, one ? UNITS : 1);
    if (s->planes > 1) s->block = w->tiles;
    s->z_step = s->planes * s->block * nr;
    s->v_plane = dtconv_plane_step_of(s->ring * s->block * s->ldv, of_point);
    s->z_plane = dtconv_plane_step_of(panels * s->z_step, of_point);
    s->ldc = one ? dtconv_plane_row(nr, V) : dtconv_plane_row(wide, V);
    s->c_plane = dtconv_plane_step((one ? s->rows : w->ci) * s->ldc);
    s->zeros_size = dtconv_line(MAX(w->ci, w->co) + V);
    s->c_step = w->points * s->c_plane;
    s->v_size = dtconv_room(w->points * s->v_plane);
    s->z_size = dtconv_room(w->points * s->z_plane);
    s->c_size = s->c_step * (one || s->own ? w->threads : w->kd);
    s->packed_size = !dtconv_packs(w) ? 0 : dtconv_line(dtconv_round_to(s->rows, mr) * s->planes * s->block);
    return DTCONV_OK;
}

static size_t bytes_of(const pass_state *s) {
    const int64_t blocks = s->own ? s->w.threads : 1, sums = s->own ? (s->slices - 1) * s->dw_size : 0;
    const int64_t shared = s->zeros_size + blocks * (s->v_size + s->z_size) + s->c_size + sums;
    return 64 + (size_t)(shared + s->w.threads * s->packed_size) * sizeof(real);
}

/* Pointers to the pixels of a tile of x or dy; `load`: they are about to be read. */
static void find_pixels(const pass_state *s, int of_dy, const DT(place) * at, int load, const elem **pixels) {
    const DT(tiling) *w = &s->w;
    if (of_dy)
        DT(tile_of_y)(w, s->dy, w->ldy, at, s->zeros, pixels);
    else
        DT(tile_of_x)(w, s->x, at, s->zeros, pixels);
    if (load) dtconv_prefetch(pixels, of_dy ? w->t->mh * w->t->mw : w->points, 0, 1);
}

#ifdef ROUNDED
/* Channels [j, j + n) of two tiles to a row of pairs of a panel, filled up with zeros. */
static void put_panel(const DT(tiling) * w, HT(expand_pairs_fn) expand, const elem *const *x, const elem *const *y,
                      int64_t j, int64_t n, point *to, int64_t plane) {
    const int64_t filled = dtconv_round_to(n, V), rest = w->nr - filled;
    expand(x, y, j, n, to, plane);
    for (int64_t e = 0; rest > 0 && e < w->points; e++)
        memset(to + e * plane + 2 * filled, 0, (size_t)(2 * rest) * sizeof(point));
}

/* V of two tiles to a row of pairs. */
static void put_rows(const pass_state *s, const elem *const *x, const elem *const *y, point *to) {
    const HT(rounded_maps) *maps = s->points.maps;
    if (s->prologue->mean)
        maps->normalized_pairs(x, y, s->zeros, s->prologue, s->w.ci, to, s->v_plane);
    else
        maps->input_pairs(x, y, 0, s->w.ci, to, s->v_plane);
}
#endif

/* V of x, or Z of dy, of tiles [first, first + count) of a plane, to rows from `row` on; both even where two tiles make
 * a row of pairs. */
#ifdef ROUNDED
static void transform_plane(const pass_state *s, int of_dy, int64_t plane, int64_t first, int64_t count, int64_t row) {
    const DT(tiling) *w = &s->w;
    const elem *pixels[4][TRANSFORM_PIXELS];
    const int64_t nr = w->nr;
    DT(place) at = DT(tile_place)(w, first, plane);
    for (int64_t found = 0, i = 0; i < count; i += 2) {
        for (; found < MIN(count, i + 4); found++) { /* the next two, beside those of now */
            find_pixels(s, of_dy, &at, found > 1, pixels[found % 4]);
            if (found + 1 < count) DT(tile_next)(w, &at);
        }
        if (i + 1 == count)
            for (int e = 0; e < TRANSFORM_PIXELS; e++) pixels[(i + 1) % 4][e] = s->zeros;
        const elem *const *now = pixels[i % 4], *const *then = pixels[(i + 1) % 4];
        if (!of_dy) put_rows(s, now, then, s->v + (row + i) * s->ldv);
        for (int64_t j = 0; of_dy && j < w->co; j += nr)
            put_panel(w, s->points.maps->grad_pairs, now, then, j, MIN(nr, w->co - j),
                      s->z + j / nr * s->z_step + (row + i) * nr, s->z_plane);
    }
}
#else
static void transform_plane(const pass_state *s, int of_dy, int64_t plane, int64_t first, int64_t count, int64_t row) {
    const DT(tiling) *w = &s->w;
    const elem *pixels[2][TRANSFORM_PIXELS];
    DT(place) at = DT(tile_place)(w, first, plane);
    find_pixels(s, of_dy, &at, 0, pixels[0]);
    for (int64_t i = 0; i < count; i++) {
        const elem *const *now = pixels[i % 2];
        if (i + 1 < count) {
            DT(tile_next)(w, &at);
            find_pixels(s, of_dy, &at, 1, pixels[(i + 1) % 2]);
        }
        if (of_dy)
            DT(expand_panels)(w, s->points.maps->grad, now, 0, w->co, s->z, row + i, s->z_step, s->z_plane);
        else
            expand_tile(w, &s->points, s->prologue, now, s->zeros, s->v + (row + i) * s->ldv, s->v_plane);
    }
}
#endif

/* V and Z of such tiles where there is one plane; one after the other, for both do not fit the first cache. */
static void transform_tiles(const pass_state *s, int64_t first, int64_t count, int64_t row) {
    transform_plane(s, 0, 0, first, count, row);
    transform_plane(s, 1, 0, first, count, row);
}

/* c (rows x n) = dU[e][i .. i + rows][j .. j + n] of `count` tiles, rows from v_row of V and z_row of Z on, added to c
 * if beta is 1. */
static void product(const pass_state *s, int64_t v_row, int64_t z_row, int64_t e, int64_t count, int64_t i,
                    int64_t rows, int64_t j, int64_t n, real beta, real *c, dtconv_ahead *ahead) {
    const int64_t nr = s->w.nr;
    const point *z = s->z + e * s->z_plane + j / nr * s->z_step + z_row * nr;
    real *packed = s->packed + dtconv_thread_id() * s->packed_size;
#ifdef ROUNDED /* pairs of tiles: those of all channels side by side */
    multiply_points(&s->w, &s->points, rows, n, dtconv_round_to(count, 2),
                    s->v + e * s->v_plane + v_row * s->ldv + 2 * i, 2, 2 * s->ldv, z, s->z_step, beta, c, s->ldc,
                    packed, ahead);
#else
    multiply_points(&s->w, &s->points, rows, n, count, s->v + e * s->v_plane + v_row * s->ldv + i, 1, s->ldv, z,
                    s->z_step, beta, c, s->ldc, packed, ahead);
#endif
}

/* dw[plane][.][i .. i + rows][j .. j + n] from dU, whose element (i, j) is at c. */
static void transform_back(const pass_state *s, int64_t plane, int64_t i, int64_t rows, int64_t j, int64_t n,
                           const real *c) {
    real *taps[9];
    for (int64_t r = 0; r < rows; r++) {
        for (int tap = 0; tap < 9; tap++) taps[tap] = s->dw + ((plane * 9 + tap) * s->w.ci + i + r) * s->w.co + j;
        s->w.t->dfilter(c + r * s->ldc, s->c_plane, 0, n, taps);
    }
}

/* All of the rest for one block of tiles: a unit is some rows of one panel. */
static void run_one_block(const pass_state *s) {
    const DT(tiling) *w = &s->w;
    const int64_t across = dtconv_ceil_div(w->co, s->columns), down = dtconv_ceil_div(w->ci, s->rows);
    real *c = s->c + dtconv_thread_id() * w->points * s->c_plane;
#pragma omp for schedule(dynamic, 1)
    for (int64_t unit = 0; unit < across * down; unit++) {
        const int64_t j = unit / down * s->columns, n = MIN(s->columns, w->co - j);
        const int64_t i = unit % down * s->rows, rows = MIN(s->rows, w->ci - i);
        for (int64_t e = 0; e < w->points; e++)
            product(s, 0, 0, e, w->tiles, i, rows, j, n, 0, c + e * s->c_plane, NULL);
        transform_back(s, 0, i, rows, j, n, c);
    }
}

/* What tiles [first, last) read, to be loaded ahead. */
static void load_ahead(const pass_state *s, int64_t first, int64_t last, dtconv_ahead *ahead) {
    dtconv_ahead_begin(ahead);
    DT(load_x_ahead)(ahead, &s->w, s->x, 0, first, last - first, s->zeros);
    DT(load_y_ahead)(ahead, &s->w, s->dy, s->w.ldy, 0, first, last - first, 0, s->w.co, s->zeros);
}

static void run_blocks(const pass_state *s) {
    const DT(tiling) *w = &s->w;
    const int64_t down = dtconv_ceil_div(w->ci, s->rows);
    for (int64_t first = 0; first < w->tiles; first += s->block) {
        const int64_t count = MIN(s->block, w->tiles - first);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i += CHUNK_TILES) transform_tiles(s, first + i, MIN(CHUNK_TILES, count - i), i);
        if (s->blocks == 1) {
            run_one_block(s);
            return;
        }
        const int64_t units = w->points * down, then = first + count, some = MIN(s->block, w->tiles - then);
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < units; unit++) {
            dtconv_ahead ahead;
            load_ahead(s, then + some * unit / units, then + some * (unit + 1) / units, &ahead);
            const int64_t e = unit / down, i = unit % down * s->rows;
            product(s, 0, 0, e, count, i, MIN(s->rows, w->ci - i), 0, w->co, first > 0,
                    s->c + e * s->c_plane + i * s->ldc, &ahead);
        }
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < w->ci; i++) transform_back(s, 0, i, 1, 0, w->co, s->c + i * s->ldc);
}

/* One slice of tiles, by a thread that has V, Z and dU of its own; to its dw. */
static void run_slice(const pass_state *s, int64_t slice) {
    const DT(tiling) *w = &s->w;
    const int64_t begin = s->blocks * slice / s->slices, end = s->blocks * (slice + 1) / s->slices;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * s->block, count = MIN(s->block, w->tiles - first), then = first + count;
        const int64_t some = block + 1 < end ? MIN(s->block, w->tiles - then) : 0;
        transform_tiles(s, first, count, 0);
        for (int64_t e = 0; e < w->points; e++) {
            dtconv_ahead ahead;
            load_ahead(s, then + some * e / w->points, then + some * (e + 1) / w->points, &ahead);
            product(s, 0, 0, e, count, 0, w->ci, 0, w->co, block > begin, s->c + e * s->c_plane, &ahead);
        }
    }
    for (int64_t i = 0; i < w->ci; i++) transform_back(s, 0, i, 1, 0, w->co, s->c + i * s->ldc);
}

static void run_own(const pass_state *s) {
    pass_state mine = *s;
    const int64_t id = dtconv_thread_id(), row = s->w.co;
    mine.v = (point *)((real *)s->v + id * s->v_size), mine.z = (point *)((real *)s->z + id * s->z_size);
    mine.c += id * s->c_step;
#pragma omp for schedule(dynamic, 1)
    for (int64_t slice = 0; slice < s->slices; slice++) {
        mine.dw = slice ? s->sums + (slice - 1) * s->dw_size : s->dw;
        run_slice(&mine, slice);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < 9 * s->w.ci; i++)
        for (int64_t slice = 1; slice < s->slices; slice++) {
            const real *from = s->sums + (slice - 1) * s->dw_size + i * row;
            real *to = s->dw + i * row;
            for (int64_t j = 0; j < row; j++) to[j] += from[j];
        }
}

/* `planes` planes of dy from `plane` on with the planes of x that they meet, for `count` tiles from `first` on; *made:
 * planes of x so far. */
static void run_planes(const pass_state *s, int64_t plane, int64_t planes, int64_t first, int64_t count,
                       int64_t *made) {
    const DT(tiling) *w = &s->w;
    const int64_t from = plane - w->pad_f, begin = MAX(*made, from), end = MIN(w->id, from + planes - 1 + w->kd);
    const int64_t chunks = dtconv_ceil_div(count, CHUNK_TILES), fresh = MAX(0, end - begin);
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < chunks * (planes + fresh); unit++) {
        const int64_t i = unit % chunks * CHUNK_TILES, some = MIN(CHUNK_TILES, count - i), of = unit / chunks;
        const int64_t x_plane = begin + of - planes;
        if (of < planes)
            transform_plane(s, 1, plane + of, first + i, some, of * s->block + i);
        else
            transform_plane(s, 0, x_plane, first + i, some, x_plane % s->ring * s->block + i);
    }
    *made = MAX(begin, end);
    const int64_t down = dtconv_ceil_div(w->ci, s->rows);
#pragma omp for schedule(dynamic, 1)
    for (int64_t unit = 0; unit < w->kd * w->points * down; unit++) {
        const int64_t tap = unit / down / w->points, e = unit / down % w->points, i = unit % down * s->rows;
        const int64_t last = MIN(plane + planes, w->id + w->pad_f - tap);
        for (int64_t at = MAX(plane, w->pad_f - tap), run; at < last; at += run) {
            const int64_t slot = (at - w->pad_f + tap) % s->ring;
            run = MIN(last - at, s->ring - slot);
            product(s, slot * s->block, (at - plane) * s->block, e, run * count, i, MIN(s->rows, w->ci - i), 0, w->co,
                    1, s->c + tap * s->c_step + e * s->c_plane + i * s->ldc, NULL);
        }
    }
}

static void run_deep(const pass_state *s) {
    const DT(tiling) *w = &s->w;
#pragma omp for schedule(static)
    for (int64_t e = 0; e < w->kd * w->points; e++) memset(s->c + e * s->c_plane, 0, (size_t)s->c_plane * sizeof(real));
    for (int64_t first = 0; first < w->tiles; first += s->block) {
        int64_t made = 0;
        for (int64_t plane = 0; plane < w->od; plane += s->planes)
            run_planes(s, plane, MIN(s->planes, w->od - plane), first, MIN(s->block, w->tiles - first), &made);
    }
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < w->kd * w->ci; unit++)
        transform_back(s, unit / w->ci, unit % w->ci, 1, 0, w->co,
                       s->c + unit / w->ci * s->c_step + unit % w->ci * s->ldc);
}

size_t PASS(backward_weights_workspace)(const dtconv_conv *p) {
    pass_state s = {0};
    return prepare(p, &s) ? 0 : bytes_of(&s);
}

dtconv_status PASS(backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    pass_state s = {.x = a->x, .dy = a->y, .dw = a->w, .prologue = &a->prologue};
    const dtconv_status status = prepare(p, &s);
    if (status) return status;
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    real *memory = dtconv_aligned(workspace);
    s.zeros = (elem *)memory;
    const int64_t blocks = s.own ? s.w.threads : 1;
    real *z = memory + s.zeros_size + blocks * s.v_size;
    s.v = (point *)(memory + s.zeros_size);
    s.z = (point *)z;
    s.c = z + blocks * s.z_size;
    s.packed = s.c + s.c_size;
    s.sums = s.packed + s.w.threads * s.packed_size;
    memset(s.zeros, 0, (size_t)s.zeros_size * sizeof(real));
#pragma omp parallel num_threads((int)s.w.threads)
    {
        if (s.deep)
            run_deep(&s);
        else if (s.own)
            run_own(&s);
        else
            run_blocks(&s);
    }
    return DTCONV_OK;
}

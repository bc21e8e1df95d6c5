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
 */
#include "winograd.h"

enum {
    CHUNK_TILES = 8,
    BLOCK_BYTES = 4 << 20, /* V and Z of a block */
    BLOCK_TILES = 256,     /* at most */
    ROWS = 128,            /* input channels of a unit of work */
};

typedef struct {
    DT(tiling) w;
    const real *x, *dy;
    real *dw;
    int64_t block, blocks; /* tiles at a time */
    int64_t rows, columns; /* input and output channels of a unit of work */
    int64_t ldv, ldc, v_plane, z_plane, z_step, c_plane;
    int64_t zeros_size, v_size, z_size, c_size, packed_size; /* c_size: all of dU, or of a unit, per thread */
    real *zeros, *v, *z, *c, *packed;
} pass_state;

static dtconv_status prepare(const dtconv_conv *p, pass_state *s) {
    const dtconv_status status = DT(winograd_tiling)(p, 0, &s->w);
    if (status) return status;
    const DT(tiling) *w = &s->w;
    const int64_t nr = w->ukr->nr, mr = w->ukr->mr, panels = dtconv_ceil_div(w->co, nr);
    s->ldv = dtconv_plane_row(w->ci, V);
    const int64_t tile_bytes = w->points * (s->ldv + panels * nr) * (int64_t)sizeof(real);
    s->block = MIN(BLOCK_TILES, MAX(64, BLOCK_BYTES / tile_bytes / CHUNK_TILES * CHUNK_TILES));
    s->blocks = dtconv_ceil_div(w->tiles, s->block);
    s->block = dtconv_round_to(dtconv_ceil_div(w->tiles, s->blocks), CHUNK_TILES);
    s->columns = nr;
    s->rows = MIN(w->ci, MAX(1, ROWS / mr) * mr);
    s->z_step = s->block * nr;
    s->v_plane = dtconv_plane_step(s->block * s->ldv);
    s->z_plane = dtconv_plane_step(panels * s->z_step);
    const int one = s->blocks == 1;
    s->ldc = one ? dtconv_plane_row(nr, V) : dtconv_plane_row(w->co, V);
    s->c_plane = dtconv_plane_step((one ? s->rows : w->ci) * s->ldc);
    s->zeros_size = dtconv_line(MAX(w->ci, w->co) + V);
    s->v_size = w->points * s->v_plane;
    s->z_size = w->points * s->z_plane;
    s->c_size = w->points * s->c_plane * (one ? w->threads : 1);
    s->packed_size = w->ukr->in_place ? 0 : dtconv_line(dtconv_round_to(s->rows, mr) * s->block);
    return DTCONV_OK;
}

static size_t bytes_of(const pass_state *s) {
    const int64_t size = s->zeros_size + s->v_size + s->z_size + s->c_size + s->w.threads * s->packed_size;
    return 64 + (size_t)size * sizeof(real);
}

/* V and Z of tiles [first, first + count) to rows from `row` on. */
static void transform_tiles(const pass_state *s, int64_t first, int64_t count, int64_t row) {
    const DT(tiling) *w = &s->w;
    const real *x[2][TRANSFORM_PIXELS], *dy[2][TRANSFORM_PIXELS];
    DT(place) at = DT(tile_place)(w, first);
    DT(tile_of_x)(w, s->x, &at, s->zeros, x[0]);
    DT(tile_of_y)(w, s->dy, w->ldy, &at, s->zeros, dy[0]);
    for (int64_t i = 0; i < count; i++) {
        const int64_t next = (i + 1) % 2;
        if (i + 1 < count) {
            DT(tile_next)(w, &at);
            DT(tile_of_x)(w, s->x, &at, s->zeros, x[next]);
            DT(tile_of_y)(w, s->dy, w->ldy, &at, s->zeros, dy[next]);
            dtconv_prefetch(x[next], w->points, 0, w->ci);
            dtconv_prefetch(dy[next], w->t->m * w->t->m, 0, w->co);
        }
        w->t->input(x[i % 2], 0, w->ci, s->v + (row + i) * s->ldv, s->v_plane);
        DT(expand_panels)(w, w->t->grad, dy[i % 2], 0, w->co, s->z, row + i, s->z_step, s->z_plane);
    }
}

/* c (rows x n) = dU[e][i .. i + rows][j .. j + n] of `count` tiles, added to c if beta is 1. */
static void product(const pass_state *s, int64_t e, int64_t count, int64_t i, int64_t rows, int64_t j, int64_t n,
                    real beta, real *c) {
    DT(tile_gemm)(s->w.ukr, rows, n, count, s->v + e * s->v_plane + i, 1, s->ldv,
                  s->z + e * s->z_plane + j / s->w.ukr->nr * s->z_step, s->z_step, beta, c, s->ldc,
                  s->packed + dtconv_thread_id() * s->packed_size);
}

/* dw[.][i .. i + rows][j .. j + n] from dU, whose element (i, j) is at c. */
static void transform_back(const pass_state *s, int64_t i, int64_t rows, int64_t j, int64_t n, const real *c) {
    const DT(contract_finish) plain = {0};
    real *taps[9];
    for (int64_t r = 0; r < rows; r++) {
        for (int tap = 0; tap < 9; tap++) taps[tap] = s->dw + (tap * s->w.ci + i + r) * s->w.co + j;
        s->w.t->dfilter(c + r * s->ldc, s->c_plane, 0, n, taps, &plain);
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
        for (int64_t e = 0; e < w->points; e++) product(s, e, w->tiles, i, rows, j, n, 0, c + e * s->c_plane);
        transform_back(s, i, rows, j, n, c);
    }
}

/* Loads what tiles [first, last) read. */
static void load_ahead(const pass_state *s, int64_t first, int64_t last) {
    DT(load_x_ahead)(&s->w, s->x, first, last - first, s->zeros);
    DT(load_y_ahead)(&s->w, s->dy, s->w.ldy, first, last - first, 0, s->w.co, s->zeros);
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
            load_ahead(s, then + some * unit / units, then + some * (unit + 1) / units);
            const int64_t e = unit / down, i = unit % down * s->rows;
            product(s, e, count, i, MIN(s->rows, w->ci - i), 0, w->co, first > 0, s->c + e * s->c_plane + i * s->ldc);
        }
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < w->ci; i++) transform_back(s, i, 1, 0, w->co, s->c + i * s->ldc);
}

size_t DT(conv_winograd_backward_weights_workspace)(const dtconv_conv *p) {
    pass_state s = {0};
    return prepare(p, &s) ? 0 : bytes_of(&s);
}

dtconv_status DT(conv_winograd_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                 size_t bytes) {
    pass_state s = {.x = a->x, .dy = a->y, .dw = a->w};
    const dtconv_status status = prepare(p, &s);
    if (status) return status;
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    s.zeros = dtconv_aligned(workspace);
    s.v = s.zeros + s.zeros_size;
    s.z = s.v + s.v_size;
    s.c = s.z + s.z_size;
    s.packed = s.c + s.c_size;
    memset(s.zeros, 0, (size_t)s.zeros_size * sizeof(real));
#pragma omp parallel num_threads((int)s.w.threads)
    run_blocks(&s);
    return DTCONV_OK;
}

/* What the passes of Winograd's convolution share: the view of a pass, tiles, transformed filters, products. */
#ifndef DTCONV_WINOGRAD_INTERNAL_H
#define DTCONV_WINOGRAD_INTERNAL_H

#include "conv_internal.h"
#include "dtconv_winograd.h"
#include "transform.h"
#include "dtconv_of_reals.h" /* of products, where images are in bfloat16, too */

/* A correlation of images with 3 x 3 filters, and its tiles.  forward: x, y as they are; backward_data: x is dy, y is
 * dx and the filters are turned by 180 degrees and transposed. */
typedef struct {
    int64_t n, ih, iw, ci, ldx, oh, ow, co, ldy, pad_t, pad_l;
    int64_t id, od, kd, pad_f; /* depth: planes of an image, planes of filters */
    int turned;
    const RT(transform) * t;
    const RT(ukr_row) * ukr;                  /* that multiplies in `real` */
    int64_t mr, nr;                           /* of the micro-kernel that multiplies */
    int64_t dil_h, dil_w, phase_th, phase_tw; /* dilation; tiles of a phase, vertically and horizontally */
    int64_t th, tw, tiles; /* tiles of a plane, vertically and horizontally; of a plane of all images */
    int64_t points;        /* a * a */
    int64_t threads;
    int64_t slot; /* elements of a plane's channels in V and rows of U: ci, with a depth in whole vectors */
} RT(tiling);
typedef RT(tiling) DT(tiling); /* what has no images is the same for those in bfloat16 */

/* U that is larger than KEPT_BYTES is not kept where tiles of 6 x 6 are at most KEPT_MOST, and where that of such tiles
 * would be larger than MOST_BYTES: each block of tiles reads all of it, and so much does not stay in the third cache.
 * Then tiles are kept, KEPT_TILES at a time, and U is made for each such block. */
enum { KEPT_BYTES = 8 << 20, MOST_BYTES = 12 << 20, KEPT_MOST = 1200, KEPT_TILES = 192 };

/* DTCONV_OK, or why not.  kind: DTCONV_TILES_...; of those that are rounded mr and nr are left 0. */
dtconv_status DT(winograd_tiling)(const dtconv_conv *p, int backward_data, int kind, DT(tiling) * w);

/* A tile: its image, its plane, and its place there. */
typedef struct {
    int64_t image, plane, i, j;
} DT(place);
DT(place) DT(tile_place)(const DT(tiling) * w, int64_t index, int64_t plane);
/* The next one of the same plane of all images. */
void DT(tile_next)(const DT(tiling) * w, DT(place) * at);

/* Pointers to the a x a pixels of x that a tile reads, or to `zeros`. */
void DT(tile_of_x)(const DT(tiling) * w, const elem *x, const DT(place) * at, const elem *zeros, const elem **pixels);
/* Pointers to the m x m pixels of a tile of y, or of an image of its size; ldy: distance of its pixels. */
void DT(tile_of_y)(const DT(tiling) * w, const elem *y, int64_t ldy, const DT(place) * at, const elem *outside,
                   const elem **pixels);

/* Elements of a row of `channels` in V, M and C: whole vectors, and no large power of two, so that rows which are read
 * together lie in different cache sets. */
static inline int64_t dtconv_plane_row(int64_t channels, int64_t vector) {
    const int64_t row = (channels + vector - 1) / vector * vector;
    return row >= 128 && row % 64 == 0 ? row + 16 : row;
}

/* Elements of `size` bytes from plane to plane: an odd number of cache lines. */
static inline int64_t dtconv_plane_step_of(int64_t elements, int64_t size) {
    const int64_t line = 64 / size;
    return ((elements + line - 1) / line | 1) * line;
}
static inline int64_t dtconv_plane_step(int64_t elements) { return dtconv_plane_step_of(elements, sizeof(real)); }

/* Pixels that are loaded into L2 while products are computed and memory is idle, some with each call of the
 * micro-kernel: all at once they would keep its own loads waiting. */
enum { AHEAD_PIXELS = 256 };
typedef struct {
    int count, next;
    struct {
        const char *from, *end;
    } pixels[AHEAD_PIXELS];
} dtconv_ahead;

static inline void dtconv_ahead_begin(dtconv_ahead *a) { a->count = a->next = 0; }

static inline void dtconv_load_lines(const char *from, const char *end) {
    for (; from < end; from += 64) __builtin_prefetch(from, 0, 2);
}

static inline void dtconv_ahead_add(dtconv_ahead *a, const void *pixel, int64_t bytes) {
    const char *from = pixel, *end = from + bytes;
    if (a->count == AHEAD_PIXELS)
        dtconv_load_lines(from, end);
    else
        a->pixels[a->count].from = from, a->pixels[a->count++].end = end;
}

/* The share of one of `calls` calls that are to come; a may be NULL. */
static inline void dtconv_ahead_load(dtconv_ahead *a, int64_t calls) {
    if (!a) return;
    const int end = a->next + (int)dtconv_ceil_div(a->count - a->next, calls);
    for (; a->next < end; a->next++) dtconv_load_lines(a->pixels[a->next].from, a->pixels[a->next].end);
}

/* The same share for kernels that load a line a step: a list of at most `most`, the rest is loaded at once.  Returns
 * their number. */
static inline int64_t dtconv_ahead_lines(dtconv_ahead *a, int64_t calls, int64_t most, const void **lines) {
    if (!a) return 0;
    const int end = a->next + (int)dtconv_ceil_div(a->count - a->next, calls);
    int64_t made = 0;
    for (; a->next < end; a->next++) {
        const char *line = a->pixels[a->next].from;
        for (; line < a->pixels[a->next].end && made < most; line += 64) lines[made++] = line;
        dtconv_load_lines(line, a->pixels[a->next].end);
    }
    return made;
}

/* Add the pixels of tiles [first, first + count) to what is loaded ahead: of x those that the tiles before have not
 * read, all channels; of y, or an image of its size, channels [j, j + n). */
void DT(load_x_ahead)(dtconv_ahead *to, const DT(tiling) * w, const elem *x, int64_t plane, int64_t first,
                      int64_t count, const elem *zeros);
void DT(load_y_ahead)(dtconv_ahead *to, const DT(tiling) * w, const elem *y, int64_t ldy, int64_t plane, int64_t first,
                      int64_t count, int64_t j, int64_t n, const elem *outside);

/* C (m x n) = A (m x k) B + beta C on the micro-kernel: B packed, its panels `b_step` apart, A element (i, p) at
 * a[i * rs + p * cs].  `packed`: room for k * MR elements, used where the micro-kernel wants packed A. */
void RT(tile_gemm)(const RT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs,
                   const real *b, int64_t b_step, real beta, real *c, int64_t ldc, real *packed);
/* The same, with what is loaded meanwhile, or NULL. */
void RT(tile_gemm_ahead)(const RT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, const real *a, int64_t rs,
                         int64_t cs, const real *b, int64_t b_step, real beta, real *c, int64_t ldc, real *packed,
                         dtconv_ahead *ahead);

/* Columns [first, first + count) of pixels to `room` columns of planes, filled up with zeros. */
void DT(expand_columns)(const DT(tiling) * w, DT(expand_fn) expand, const elem *const *x, int64_t first, int64_t count,
                        int64_t room, real *to, int64_t plane);

/* Columns [first, first + channels) of pixels to the planes of packed panels of NR columns, row `row` of each panel;
 * panels are panel_step apart, planes `plane`. */
void DT(expand_panels)(const DT(tiling) * w, DT(expand_fn) expand, const elem *const *x, int64_t first,
                       int64_t channels, real *panels, int64_t row, int64_t panel_step, int64_t plane);

/* The filters of plane `tap` of a depth, as the pass counts them. */
static inline const real *dtconv_filters_of(const DT(tiling) * w, const real *filters, int64_t tap) {
    return filters + (w->turned ? w->kd - 1 - tap : tap) * 9 * w->ci * w->co;
}

/* Transformed filters: rows [k, k + depth), columns [j, j + n) (j a multiple of NR), to rows 0 .. of panels as above.
 * scratch: FILTER_SCRATCH elements. */
enum { SQUARE = 16, FILTER_SCRATCH = 9 * SQUARE * SQUARE };
void RT(transform_filters)(const RT(tiling) * w, const real *filters, int64_t k, int64_t depth, int64_t j, int64_t n,
                           real *u, int64_t panel_step, int64_t plane, real *scratch);

static inline real *dtconv_aligned(void *workspace) { return (real *)(((uintptr_t)workspace + 63) / 64 * 64); }

#endif

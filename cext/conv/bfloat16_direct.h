/* What the passes of the direct convolution by products of bfloat16 share: axes, chunks, the copy of a chunk's image.
 *
 * Files are compiled for images in bfloat16, and for those in float32 (algorithms direct_bf16 and direct_bf16x3). Those
 * of forward and backward_data are compiled once more where WIDENED is defined (bfloat16_direct_widened.c). */
#ifndef DTCONV_BFLOAT16_DIRECT_H
#define DTCONV_BFLOAT16_DIRECT_H

#include "conv_internal.h"
#include "gather.h"
#include "../gemm/bfloat16_pack.h"

/* What is copied and packed; and the names of what has one of these types. */
#ifdef WIDENED
typedef real number;
#define WAY(name) DT(direct_widened_##name)
#else
typedef half number;
#define WAY(name) DT(direct_pairs_##name)
#endif

/* One axis of a pass that gathers.  What is written has `phases` kinds of pixels, first + i * phases each; pixel i of a
 * phase reads, with tap t where it has that one, pixel i * step + offset. */
typedef struct {
    int64_t written, read, taps, stride, dilation, pad;
    int turned; /* backward_data */
} axis;

static inline int64_t phases_of(const axis *x) { return x->turned ? x->stride : 1; }
static inline int64_t step_of(const axis *x) { return x->turned ? 1 : x->stride; }
static inline int64_t count_of(const axis *x, int64_t phase) {
    return dtconv_ceil_div(x->written - phase, phases_of(x));
}
/* Whether the phase has tap t, and its offset. */
static inline int offset_of(const axis *x, int64_t phase, int64_t t, int64_t *offset) {
    const int64_t at = x->turned ? phase + x->pad - t * x->dilation : t * x->dilation - x->pad;
    *offset = x->turned ? at / x->stride : at;
    return !x->turned || at % x->stride == 0;
}
/* Whether a tap reads pixel `at` of some pixel that is written. */
static inline int is_met(const axis *x, int64_t at) {
    int met = x->turned;
    for (int64_t t = 0; !met && t < x->taps; t++) met = (at + x->pad - t * x->dilation) % x->stride == 0;
    return met;
}
/* No tap reads before the first or past the last of these offsets. */
static inline int64_t first_offset(const axis *x) {
    return x->turned ? -dtconv_ceil_div((x->taps - 1) * x->dilation - x->pad, x->stride) : -x->pad;
}
static inline int64_t last_offset(const axis *x) {
    return x->turned ? (x->stride - 1 + x->pad) / x->stride : (x->taps - 1) * x->dilation - x->pad;
}

/* An image as it is read in pieces: axes, channels of a group, distance of pixels, how it is normalized. */
typedef struct {
    axis d, h, w;
    int64_t n, channels, ld;
    const elem *data;                /* the group's first channel */
    DT(conv_normalization) prologue; /* of the group's channels */
} image;

/* A piece of it: some images' planes and rows that rows [row, row + rows) of plane `plane` of what is written read. */
typedef struct {
    int64_t first, images, plane, row, rows;
} piece;

/* Where a copied piece has its pixels: (plane of taps, row, phase of the column, column, image), `pitch` elements each.
 * Columns begin with `column`; those outside of the image are zeros. */
typedef struct {
    int64_t row, rows, column, columns; /* rows that exist; columns of a phase */
    int64_t phases, images, pitch;
} layout;

layout DT(layout_of)(const image *x, const piece *at, int64_t pitch, int inside);
/* The most pixels that a piece of so many images and rows has. */
int64_t DT(layout_pixels)(const image *x, int64_t images, int64_t rows, int inside);
/* Pixel that output pixel i of a row, first image, reads with column offset `offset`, from row `row`, tap `kd`. */
static inline int64_t layout_pixel(const layout *l, int64_t kd, int64_t row, int64_t source) {
    const int64_t at = source - l->column, line = (kd * l->rows + row - l->row) * l->phases + at % l->phases;
    return (line * l->columns + at / l->phases) * l->images;
}

/* Copies the pixels of a piece that taps meet; channels are filled up with zeros to `depth` of the pitch.  low: where x
 * is float32, elements from each high half to its low one; 0: these are not wanted. */
void WAY(copy_piece)(const image *x, const piece *at, const layout *l, int64_t depth, number *dst, int64_t low);

/* One pixel of it. */
void WAY(copy_pixel)(const image *x, const elem *from, int64_t depth, number *dst, int64_t low);

/* The matrix of im2col of a piece: pixels in the order (row, column, image), taps and channels of each side by side.
 * Filters have at most JOINED_LINES taps along depth and height. */
enum { JOINED_LINES = 64 };
void WAY(join_piece)(const image *x, const piece *at, int64_t depth, int64_t pitch, number *dst, int64_t low);

/* The plane that tap kd of plane `plane` reads, or -1. */
static inline int64_t plane_of(const image *x, int64_t plane, int64_t kd) {
    const int64_t phases = phases_of(&x->d);
    int64_t offset;
    if (!offset_of(&x->d, plane % phases, kd, &offset)) return -1;
    const int64_t source = plane / phases * step_of(&x->d) + offset;
    return source >= 0 && source < x->d.read ? source : -1;
}

/* Images of a chunk, such that rows of tiles are few that nobody wants: a row has `width` pixels of each. */
int64_t DT(images_of_chunk)(int64_t n, int64_t width, int64_t unit, int64_t wanted);

static inline int64_t pitch_of(int64_t depth) {
    return depth * (int64_t)sizeof(number) % 512 == 0 ? depth + SQUARE
                                                      : depth; /* not all rows in the same sets of L1 */
}

#endif

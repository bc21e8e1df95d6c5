/* A pass of backward_weights by products of bfloat16 (bfloat16_direct_weights.c), and what it copies
 * (bfloat16_direct_weights_copy.c). */
#ifndef DTCONV_BFLOAT16_DIRECT_WEIGHTS_H
#define DTCONV_BFLOAT16_DIRECT_WEIGHTS_H

#include "bfloat16_direct.h"

#ifdef WIDENED
#include "direct_tile.h"

typedef dtconv_segment term; /* of a sum: a row of pixels */
#else
typedef dtconv_ukr_step term;
#endif

typedef struct {
    dtconv_conv p; /* a pointwise one: all pixels as rows of one image */
    const HT(ukr_row) * ukr;
    const DT(conv_args) * args;
    int exchanged;        /* p has x in the place of dy, and x is dy */
    image x;              /* what is transposed, of group 0 */
    int64_t ci, co, taps; /* of a group */
    int joined;
    int64_t images, rows, line, depth; /* of a piece; pixels of its row, and filled up */
    int64_t chunks_of_images, chunks_of_rows, chunks, slices;
    int64_t channels, parts, panels; /* channels of a part; parts of a group */
    int64_t spans, span, block;      /* of a row, and pixels of each; rows of a block */
    int64_t together, tiles;         /* panels that are packed at a time; tiles of sums of a tap */
    int64_t pitch, joined_pitch, joined_rows;
    int64_t stage_columns; /* of each image, that are copied at a time */
    size_t sums, staged, copied, joint, panel, steps, counts, tile;
    int threads, products;
    int64_t halves;                                    /* of each number: 1, or 2 */
    int64_t low_stage, low_copy, low_joint, low_panel; /* elements from high halves to low ones */
    real *result;                                      /* of slice 0 after the others */
} weights;

/* Elements of a panel: a block of pixels of NR channels. */
static inline int64_t panel_of(const weights *s) { return s->block * s->span * s->ukr->nr; }

/* Elements of a stage for columns of some channels. */
int64_t WAY(stage_elements)(const weights *s);

/* The channels of x in a piece, a row of `pitch` elements for each; pixels in the order of the layout.  What follows
 * the last pixel, and what kernels read there, are zeros. */
void WAY(turn_piece)(const weights *s, const image *x, const piece *at, const layout *l, number *stage, number *copy);

/* Channels of what is packed: dy. */
typedef struct {
    const elem *data; /* of the first channel */
    int64_t n;
    DT(conv_normalization) prologue;
} packing;

/* A span of some rows of the piece, as panels of pairs of pixels; each row is filled up with zeros. */
void WAY(pack_piece)(const weights *s, const piece *at, const packing *dy, int64_t row, int64_t rows, int64_t span,
                     number *panels);

#endif

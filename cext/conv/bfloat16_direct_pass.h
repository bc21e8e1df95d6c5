/* How forward and backward_data of the direct convolution are cut into work, what is copied and packed, and what
 * multiplies it; see bfloat16_direct.c. */
#ifndef DTCONV_BFLOAT16_DIRECT_PASS_H
#define DTCONV_BFLOAT16_DIRECT_PASS_H

#include "bfloat16_direct.h"
#include "bfloat16_finish.h"

#ifdef WIDENED
#include "direct_tile.h"

enum { WIDENS = 1 };
typedef dtconv_segment term; /* of a sum */
#else
enum { WIDENS = 0 };
typedef dtconv_ukr_step term;
#endif

enum {
    MOST_LINES = 512,
    MOST_ROWS = 64, /* of the tiles of a call */
};
_Static_assert((int)MOST_ROWS >= (int)TILE_ROWS, "a tile fits");

typedef struct {
    const HT(ukr_row) * ukr;
    const DT(conv_args) * args;
    image read; /* of group 0 */
    int64_t cw, ldw, lda, groups;
    int64_t taps, channels, depth, panels, panel; /* depth: of a step; panel: elements */
    int64_t halves;                               /* of each number: 1, or 2 */
    int64_t tile;                                 /* rows of a call of the micro-kernel */
    int pointwise, joined, by_column, in_place;
    int in_order;  /* columns of the copy are, whatever the stride, so that the taps of a row lie side by side */
    int64_t apart; /* elements between the pixels of a tile */
    int64_t images, rows, chunks_of_images, chunks_of_rows, chunks;
    int64_t block, blocks, pitch, pixels; /* pixels: most in a copy */
    size_t packed, parts, copied, terms, sums;
    int threads, products;
    int bypass;           /* what is written is the gradient of what was normalized (see DT(conv_reductions)) */
    int64_t low_a, low_b; /* elements from high halves to low ones: of copies, of filters */
    const elem *added;
    elem *written;
    number *filters;
    DT(gather_parts) gathered;
} pass;

/* The pass as it is cut, without arrays; products: of each number, 1 or 3 (put_step).  And the bytes of its workspace,
 * and of them of each thread's own memory. */
pass WAY(prepare)(const dtconv_conv *p, int turned, int products);
size_t WAY(bytes)(const pass *s);
size_t WAY(bytes_of_thread)(const pass *s);

/* Packs the filters; called by all threads of a team. */
void WAY(pack_filters)(const pass *s);

#endif

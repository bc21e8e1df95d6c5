/* How a pass of the direct convolution is cut into work, the walk through its pixels, and the products of a class; see
 * direct.c. */
#ifndef DTCONV_DIRECT_PASS_H
#define DTCONV_DIRECT_PASS_H

#include "direct.h"
#include "gather.h"

typedef struct {
    dtconv_axis d, h, w;
    int64_t n, groups, cr, cw;     /* images; groups; channels of a group that are read and written */
    int64_t ldr, ldw;              /* distance of pixels */
    int64_t threads;               /* of the team, and that the workspace has room for */
    int64_t depth, panels;         /* rows of a panel; panels of a group */
    int64_t rows, planes;          /* of a chunk: rows of one plane, or whole planes of one image (rows: all of one) */
    int64_t chunks, block, blocks; /* panels of a block, blocks of a group */
    size_t packed, segments, copied, beside; /* bytes */
    size_t sums, parts;                      /* bytes of what a thread gathers, and of the parts of all chunks */
    DT(gather_parts) gathered;               /* of all chunks */
    const DT(conv_args) * args;
    const real *read, *added; /* added: to what is written; NULL for none */
    int64_t lda;              /* distance of its pixels */
    real *written, *filters;
    int turned;
    size_t late; /* bytes of a thread's own panels, where a block is packed when it is used; 0: all are packed before */
    int64_t base; /* the first panel that has been packed */
    int moved;    /* whether the axis of rows is that of the pixels of a row: see direct_view */
    int in_place; /* whether filters are read where they lie */
    int dots;     /* whether vectors lie along what is summed, not along the few channels that are written */
} DT(direct_pass);

/* The pass as it is cut, without arrays; and the bytes of its workspace. */
DT(direct_pass) DT(direct_prepare)(const dtconv_conv *p, int backward_data);
size_t DT(direct_bytes)(const DT(direct_pass) * s);

/* Packs the filters into panels of NR channels, or of dots into rows of what is summed, unless they are read in place;
 * called by all threads of a team. */
void DT(direct_pack_filters)(const DT(direct_pass) * s);

/* Packs panels [first, last) of a group to s->filters, from which they are read then; called by one thread. */
void DT(direct_pack_block)(DT(direct_pass) * s, int64_t group, int64_t first, int64_t last);

static inline const real *dtconv_direct_panel(const DT(direct_pass) * s, int64_t group, int64_t panel) {
    if (s->in_place) return s->args->w + panel * DIRECT_NR;
    return s->filters + (group * s->panels + panel - s->base) * s->depth * DIRECT_NR;
}

/* The steps of a class: a run per row of taps where its channels lie side by side, else one per tap.  Returns their
 * number. */
int64_t DT(direct_segments)(const DT(direct_pass) * s, const dtconv_axis_class *d, const dtconv_axis_class *h,
                            const dtconv_axis_class *w, dtconv_segment *segments);

/* A walk through the pixels of a class: along rows, or along a column where a row has one pixel only. */
typedef struct {
    int64_t outer, inner;              /* pixels of a plane */
    int64_t a_plane, a_outer, a_inner; /* elements to the next in what is read */
    int64_t c_plane, c_outer, c_inner; /* and pixels in what is written */
    int64_t i, j;                      /* the place */
    int64_t pixel;                     /* of what is written */
    const real *a, *added, *x;
    real *c;
    int64_t ldc, lda, ldx;
} DT(direct_walk);

/* Pixels that make a tile. */
typedef struct {
    DT(direct_tile) tile;
    const real *x[DIRECT_MR]; /* where reductions are gathered, the same pixels of what was normalized */
    int64_t count;
} DT(direct_rows);

DT(direct_walk)
DT(direct_begin)(const DT(direct_pass) * s, int64_t group, int64_t image, const dtconv_axis_class *d,
                 const dtconv_axis_class *h, const dtconv_axis_class *w);

/* The next `count` pixels, at most MR. */
void DT(direct_next)(DT(direct_walk) * k, int64_t count, DT(direct_rows) * t);

/* A thread's own memory. */
typedef struct {
    dtconv_segment *segments;
    real *rows, *beside;    /* of copies; of gradients that are not written as they are (NULL: they are) */
    DT(gather_sums) * sums; /* NULL: nothing is gathered */
} DT(direct_scratch);

/* The pixels of a class in an image, for panels [first, last). */
void DT(direct_run_class)(const DT(direct_pass) * s, int64_t group, int64_t first, int64_t last, int64_t image,
                          const dtconv_axis_class *d, const dtconv_axis_class *h, const dtconv_axis_class *w,
                          const DT(direct_scratch) * own);

#endif

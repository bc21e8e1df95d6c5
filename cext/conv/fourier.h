/* What the passes of the convolution in the Fourier domain share: the view of a pass, its tiles, their transforms.
 *
 * Pixels are `elem`; all between them, filters and spectra included, is `real`: images in bfloat16 are widened as a
 * tile is loaded and rounded as its results are stored. */
#ifndef DTCONV_FOURIER_INTERNAL_H
#define DTCONV_FOURIER_INTERNAL_H

#include "conv_internal.h"
#include "dtconv_fft_pixels.h"
#include "dtconv_fft_phases.h"
#include "winograd.h"

enum {
    FOURIER_MOST_POINTS = 4096,
    FOURIER_PAIR = 2,                /* tiles that are transformed at once */
    FOURIER_OWN_BYTES = 768 << 10,   /* spectra of a thread's own block ... */
    FOURIER_OWN_MOST = 1536 << 10,   /* ... or of a panel of rows, if they are not more */
    FOURIER_SHARED_BYTES = 48 << 20, /* spectra of a block that all threads work on */
};

/* An axis of a correlation: extents of what is read and written, and the tiles that it is cut into.  A tile has
 * `points` of one side and `kept` of the other: windows of x that overlap and disjoint results (overlap-discard), or
 * disjoint pieces of x and results that overlap (overlap-add). */
typedef struct {
    int64_t in, out, taps, before; /* pixels read and written, taps of a filter, padding */
    int64_t step;                  /* dilation: as many images that interleave */
    int64_t points, kept;          /* points of a transform, outputs or inputs of a tile */
    int64_t tiles;                 /* of all interleaved images */
    int64_t shift;                 /* places (modulo points) that results come early: windows begin with the image */
} fourier_axis;

/* Depth: planes of an image that are read and written, planes of a filter and zeros before the first one; 1, 1, 1 and 0
 * without a third axis.  Tiles at the same place of all planes are a column of `rows`: windows are planes -before on,
 * results of row r are products with rows r .. r + taps - 1 of X, and the last taps - 1 rows have none. */
typedef struct {
    int64_t in, out, taps, before, rows;
} fourier_depth;

/* A correlation of images with filters, and its tiles.  forward: x, y as they are; backward_data: x is dy, y is dx and
 * the filters are turned by 180 degrees and transposed. */
typedef struct {
    fourier_depth d;
    fourier_axis h, w;
    int64_t n, ci, ldx, co, ldy;
    int64_t ldw;                /* distance of the filters' rows, in memory as HWIO */
    int turned, adds;           /* filters are turned; overlap-add */
    int64_t slot, length;       /* rows of a plane in a filter's spectra; of all its planes: the length of products */
    int64_t tiles, frequencies; /* tiles of all images; complex frequencies of a tile */
    const RT(ukr_row) * ukr;
    int64_t threads;
    RT(fft_plan) plan_h, plan_w;
} RT(fourier);

/* The channels of one group in pass 0, forward, 1, backward_data, or 2, backward_weights, which sees x and y as forward
 * does; 3 to 5: the same by overlap-add.  DTCONV_OK, or why not. */
dtconv_status RT(fourier_tiling)(const dtconv_conv *p, int pass, RT(fourier) * f);

/* Strides are done by phases (fourier_phases.c): *q is the problem with strides of 1 that is left, p itself where these
 * are its own; 0: there is none.  Then the bytes of its images and filters, and a pass: `run` is given q. */
int DT(fourier_phases)(const dtconv_conv *p, dtconv_conv *q);
size_t DT(fourier_phases_bytes)(const dtconv_conv *q);
typedef dtconv_status (*DT(fourier_run))(const dtconv_conv *p, int pass, const DT(conv_args) * a, void *workspace,
                                         size_t bytes);
dtconv_status DT(fourier_by_phases)(const dtconv_conv *p, int pass, const DT(conv_args) * a, void *workspace,
                                    size_t bytes, DT(fourier_run) run);
static inline int dtconv_is_strided(const dtconv_conv *p) { return p->sh > 1 || p->sw > 1; }

/* Spectra of all tiles of x, which forward may leave for backward_weights, or of dy, which that may leave for
 * backward_data: rows `ld` apart, planes `plane`. */
typedef struct {
    real *at; /* NULL: not kept */
    int64_t ld, plane;
} RT(fourier_kept);
RT(fourier_kept) RT(fourier_kept_on)(const RT(fourier) * f, int64_t channels, real *memory);

/* Elements from row to row of X, which products of several planes read as one.  Zeros to the rows that they read behind
 * the last one, `row` - 1. */
int64_t RT(fourier_x_row)(const RT(fourier) * f);
void RT(fourier_end_x)(const RT(fourier) * f, real *x, int64_t plane, int64_t row);

/* Tiles of a block in forward and backward_data; whether all threads work on it, or each on one of its own. */
int64_t RT(fourier_block)(const RT(fourier) * f, int *shared);

/* Tiles of a block in backward_weights. */
int64_t RT(fourier_weights_block)(const RT(fourier) * f);

/* Notes for whoever watches (dtconv_fft_phases.h) that a thread has come to the end of a phase; *since is when it
 * began, and then now. */
void RT(fourier_note)(int phase, double *since);
double RT(fourier_now)(void); /* 0 where nobody watches */

/* Elements of the plans' factors, and the plans on them. */
int64_t RT(fourier_plans_size)(const RT(fourier) * f);
void RT(fourier_plans_on)(RT(fourier) * f, real *memory);

/* Frequencies are in order of columns; those of a column that is its own mirror image are its first half.  A frequency
 * that is its own mirror image has no imaginary part. */
static inline int64_t dtconv_mirrored(int64_t k, int64_t n) { return k == 0 ? 0 : n - k; }
static inline int dtconv_own_mirror(int64_t k, int64_t n) { return k == 0 || 2 * k == n; }
int RT(fourier_is_real)(const RT(fourier) * f, int64_t frequency);

/* Two tiles, or two filters, at a time: one is the real part and the other the imaginary part of what is transformed,
 * so that complex transforms alone suffice. */
typedef struct {
    real *zeros;  /* channels that are 0 */
    real *buffer; /* points of both axes */
    int64_t row;  /* elements from row to row of it */
    real *columns, *line, *scratch;
    void *pointers; /* to pixels: ROOM_SETS times the points of a tile */
} RT(fourier_room);
enum { ROOM_SETS = 8 };
int64_t RT(fourier_room_size)(const RT(fourier) * f);
RT(fourier_room) RT(fourier_room_on)(const RT(fourier) * f, real *memory, real *zeros);

/* Pixels of two tiles, or taps of two filters, and those of the next two, to be loaded meanwhile; or NULL. */
typedef struct {
    const elem **first, **second, **next;
} DT(fourier_pixels);

/* The filters of a pass and their spectra, as packed panels: see fourier.c.  turned: room for them as backward_data
 * reads them. */
typedef struct {
    const real *filters;
    real *turned, *u;
    int64_t u_step, u_plane;
} RT(fourier_panels);
/* By all threads, each in its room. */
void RT(fourier_filters)(const RT(fourier) * f, const RT(fourier_panels) * s, const RT(fourier_room) * room);

/* Where spectra go, or come from; those of the second tile, or filter, are `second` elements behind the first's.
 *   rows     of tiles: real parts of frequency e at at[2 e plane], imaginary ones `plane` further on
 *   panels   of the right operand of products: a at at[3 e plane], b - a and a + b in the planes behind (fourier.c) */
typedef struct {
    real *at;
    int64_t plane, second;
    real scale;
    int conjugate;
    int64_t room; /* panels: elements to be written at a place, V or fewer */
    int far;      /* rows: beyond the second cache, so that they are loaded ahead; panels always are */
} RT(fourier_spectra);

/* Pointers to the pixels of tiles `tile` and `tile` + 1, where that is below `end`, or to zeros: of x, or (of_y) of an
 * image of y's shape.  The second tile's are `points` of both axes further on.  Returns the rows of which some pixels
 * are none of these zeros; only theirs are set. */
typedef struct {
    int64_t first, last;
} fourier_rows;
fourier_rows DT(fourier_pair)(const RT(fourier) * f, const elem *image, int of_y, int64_t tile, int64_t end,
                              const elem *zeros, const elem **pixels);
/* Of tile `index` along an axis: the coordinate of its first point, of an image as above, and which points are inside
 * of it. */
int64_t RT(fourier_points_read)(const RT(fourier) * f, const fourier_axis *a, int of_y, int64_t index, int64_t *first,
                                int64_t *last);

/* Results of tile `index` (overlap-discard): the first pixel of y, how many there are, and their distances. */
typedef struct {
    int64_t offset, rows, columns, row_step, step; /* in pixels */
} fourier_outputs;
fourier_outputs RT(fourier_tile_of_y)(const RT(fourier) * f, int64_t index);

/* Channels [c, c + count) of the pixels (rows of them that are not zeros) to the room, rows transformed, count <= V. */
void DT(fourier_rows_forward)(const RT(fourier) * f, const RT(fourier_room) * room, const DT(fourier_pixels) * pixels,
                              fourier_rows rows, int64_t c, int64_t count);
/* Then to spectra. */
void RT(fourier_to_tiles)(const RT(fourier) * f, const RT(fourier_room) * room, const RT(fourier_spectra) * to);
void RT(fourier_to_panels)(const RT(fourier) * f, const RT(fourier_room) * room, const RT(fourier_spectra) * to);

/* One frequency of `tiles` rows, `ld` apart, imaginary parts `plane` behind, to a panel of NR columns, of which there
 * are `channels`. */
void RT(fourier_rows_to_panel)(const RT(fourier) * f, const real *rows, int64_t plane, int64_t ld, int64_t tiles,
                               int64_t channels, const RT(fourier_spectra) * to);

/* The inverse of the columns; then row `row`, to room->line: point i of the first tile at 2 i V, of the second V
 * further on. */
void RT(fourier_columns_inverse)(const RT(fourier) * f, const RT(fourier_room) * room,
                                 const RT(fourier_spectra) * from);
void RT(fourier_row_inverse)(const RT(fourier) * f, const RT(fourier_room) * room, int64_t row);

#endif

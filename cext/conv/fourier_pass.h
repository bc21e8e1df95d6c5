/* What the files of the convolution in the Fourier domain share for forward and backward_data: a pass and its memory.
 */
#ifndef DTCONV_FOURIER_PASS_H
#define DTCONV_FOURIER_PASS_H

#include "dtconv_vector.h"
#include "fourier.h"
#include "gather.h"

typedef struct {
    RT(fourier) f;
    const DT(conv_args) * args;
    const elem *x, *added; /* added to y, or NULL; its pixels are lda apart */
    const real *bias, *scale;
    int64_t lda;
    elem *y;
    RT(fourier_panels) w;
    int shared;
    int64_t block; /* tiles */
    int64_t ld, plane, ldp;
    int64_t ldx, x_plane, x_place;                                     /* of X, which is where Y is, or behind it */
    RT(fourier_kept) kept;                                             /* X of all tiles ... */
    int given;                                                         /* ... made by backward_weights */
    int64_t zeros_size, plans_size, turned_size, u_size, spectra_size; /* elements */
    int64_t room_size, sums_size, sum_size, product_size, packed_size, pointers_size;
    int64_t parts_size;
    real *zeros, *plans, *spectra, *threads;
    DT(gather_parts) gathered;
} DT(fourier_pass);

/* A thread's memory. */
typedef struct {
    real *spectra, *sum, *products, *packed, *sums;
    RT(fourier_room) room;
    void *pixels; /* pointers to those of a tile of y, and of what reductions read */
} DT(fourier_memory);

/* The product of a frequency, of so many tiles at a time. */
enum { FOURIER_ROWS = 56 };

/* y of tiles [first, first + count) from rows from `row` on.  Overlap-add: their results to the places of their
 * spectra, one plane a point; then rows of y, counted over all images, of the block that begins with tile `first`. */
void DT(fourier_results)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t count,
                         int64_t row);
void DT(fourier_tile_results)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t count, int64_t row);
void DT(fourier_added_row)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t y_row);

#endif

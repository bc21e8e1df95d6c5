/* What the files of the convolution in the Fourier domain share for forward and backward_data: a pass and its memory.
 */
#ifndef DTCONV_FOURIER_PASS_H
#define DTCONV_FOURIER_PASS_H

#include "dtconv_vector.h"
#include "fourier.h"
#include "gather.h"

typedef struct {
    DT(fourier) f;
    const DT(conv_args) * args;
    const real *x, *filters, *bias, *scale, *added; /* added to y, or NULL; its pixels are lda apart */
    int64_t lda;
    real *y;
    int shared;
    int64_t block; /* tiles */
    int64_t ld, plane, u_step, u_plane, ldp;
    int64_t ldx, x_plane, x_place;                                     /* of X, which is where Y is, or behind it */
    DT(fourier_kept) kept;                                             /* X of all tiles ... */
    int given;                                                         /* ... made by backward_weights */
    int64_t zeros_size, plans_size, turned_size, u_size, spectra_size; /* elements */
    int64_t room_size, sums_size, sum_size, product_size, packed_size, pointers_size;
    int64_t parts_size;
    real *zeros, *plans, *turned, *u, *spectra, *threads;
    DT(gather_parts) gathered;
} DT(fourier_pass);

/* A thread's memory. */
typedef struct {
    real *spectra, *sum, *products, *packed, *sums;
    DT(fourier_room) room;
    const real **pixels;
} DT(fourier_memory);

/* U: the spectra of all filters, by all threads. */
void DT(fourier_filters)(const DT(fourier_pass) * s, const DT(fourier_memory) * own);

/* The product of a frequency, of so many tiles at a time. */
enum { FOURIER_ROWS = 56 };

/* y of tiles [first, first + count) from rows from `row` on.  Overlap-add: their results to the places of their
 * spectra, one plane a point; then rows of y, counted over all images, of the block that begins with tile `first`. */
void DT(fourier_results)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t count,
                         int64_t row);
void DT(fourier_tile_results)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t count, int64_t row);
void DT(fourier_added_row)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t y_row);

#endif

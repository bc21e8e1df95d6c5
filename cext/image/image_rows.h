/* The memory of a thread that changes an image, and what makes and changes rows of it; on `real`. */
#ifndef IMAGE_ROWS_H
#define IMAGE_ROWS_H

#include "dtconv_image_changes.h"

/* An image and a thread's memory.  columns, rows: the places of a row's pixels; scale, rest: what comes from there is
 * scale value + rest.  at, right, below: where the first of the four pixels lies and the distances of its neighbours;
 * across, down: shares of these.  row: w c numbers, a pixel's together, and room for one more; planes: a row, a
 * channel's together; statistics: two of each channel; image: two images. */
typedef struct {
    int64_t h, w, c;
    double *columns, *rows, *scale, *rest;
    int32_t *at, *right, *below;
    real *across, *down, *row, *planes, *statistics, *image[2];
    double *extra;
} RT(image_room);

/* Row y of the image after `count` joined steps (AFFINE, PLACES), into room->row. */
void RT(sample_row)(const RT(image_room) * room, const double *steps, int64_t count, int64_t y, const real *image);
/* The same of a step that looks at the pixels around: SHARPNESS, BLUR. */
void RT(filter_row)(const RT(image_room) * room, const double *step, int64_t y, const real *image);

/* Whether a step of colour has to know of the whole image before it; find_statistics() finds that: of each channel the
 * mean (CONTRAST), the least and the largest value (AUTO_CONTRAST), a table in `extra` (EQUALIZE). */
int RT(needs_statistics)(const double *step);
void RT(find_statistics)(const RT(image_room) * room, const double *step, const real *image);
/* room->row after `count` steps of colour, of which only the first one may need statistics. */
void RT(colour_row)(const RT(image_room) * room, const double *steps, int64_t count);

#endif

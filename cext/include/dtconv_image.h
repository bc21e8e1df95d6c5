/* Images (n, h, w, c): filters along rows and columns, batches of samples.  No include guard: see dtconv_both.h.
 *
 * ldx, ldy, ... are the distances between two pixels.
 */
#ifndef real
#include "dtconv_real.h"
#endif

#ifndef DTCONV_BAND
#define DTCONV_BAND
/* A matrix (rows, extent) in which numbers other than 0 lie side by side: row i has counts[i] of them, from 0 to
 * `width`, from column starts[i] on; they are weights[i * width] and so on, of `real`.  Each row from same_from + 1 up
 * to same_to - 1 is the one before it, a column further on. */
typedef struct {
    int64_t rows, extent, width, same_from, same_to;
    const int64_t *starts, *counts;
    const void *weights;
} dtconv_band;

/* What samples are made of in files and in arrays of users. */
typedef enum {
#define TYPE(NAME, type) DTCONV_OF_##NAME,
#include "dtconv_sample_types.h"
} dtconv_sample_type;
#endif

/* y (n, numbers) = rows order[i] of x, of a type that may be another one; order NULL: one after the other. */
dtconv_status DT(take_samples)(dtconv_sample_type type, int64_t n, int64_t numbers, const int64_t *order, const void *x,
                               elem *y);

/* y (n, oh, ow, c) (+)= x (n, ih, iw, c) with each of its columns multiplied by `rows` (oh, ih), each of its rows by
 * `columns` (ow, iw); NULL: that axis stays as it is.  ih, iw: those of x. */
size_t DT(bands_workspace)(const dtconv_band *rows, const dtconv_band *columns, int64_t iw, int64_t c);
dtconv_status DT(bands)(const dtconv_band *rows, const dtconv_band *columns, int accumulate, int64_t n, int64_t ih,
                        int64_t iw, int64_t c, const elem *x, int64_t ldx, elem *y, int64_t ldy, void *workspace,
                        size_t bytes);

/* y (oh, ow, c) = the bytes that are nearest to x (ih, iw, c) with its columns multiplied by `rows` (oh, ih), its rows
 * by `columns` (ow, iw); c is 1 to 4.  On the thread that calls. */
size_t DT(bands_of_bytes_workspace)(const dtconv_band *columns, int64_t c);
dtconv_status DT(bands_of_bytes)(const dtconv_band *rows, const dtconv_band *columns, int64_t c, const uint8_t *x,
                                 uint8_t *y, real *workspace);

/* y (count, inner) = x (extents ..., inner), of `rank` extents, at places between its elements, (rank, count).  order:
 * 0 the nearest one, 1 linear; mode: a dtconv_fill, value: that of CONSTANT. */
dtconv_status DT(sample_places)(int rank, const int64_t *extents, int64_t inner, int order, int mode, double value,
                                int64_t count, const double *places, const real *x, real *y);

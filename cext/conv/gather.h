/* Sums per channel over the pixels that a pass writes, gathered while these are in the first cache.
 *
 *   moments     of y, in forward: mean and variance
 *   reductions  of dx, in backward_data: the sums that backward of a batch normalization begins with, where dx is the
 *               gradient of its output (see DT(conv_reductions))
 *
 * A thread gathers, one after the other, parts: some pixels of what is written and a range of channels.  Of a part two
 * sums per channel are found, a few hundred pixels at a time, then in double precision; they go to the part's own
 * place, and when all are there they are merged in order.  So the result depends on the parts, not on the threads that
 * took them.  Moments are of deviations from the mean of the part's first pixels, and merged as Chan, Golub and LeVeque
 * (1983) do: nothing cancels.
 */
#ifndef DTCONV_GATHER_H
#define DTCONV_GATHER_H

#include "conv_internal.h"

/* What all threads share: the parts of a pass. */
typedef struct {
    int wanted; /* whether something is to be gathered */
    int64_t channels, parts;
    int64_t *pixels; /* (parts) */
    double *sums;    /* (parts, 2, channels): mean and sum of squared deviations, or sums of backward (see above) */
    const DT(conv_args) * args;
    const DT(conv_reductions) * reductions; /* NULL where these are not wanted */
} DT(gather_parts);

/* A thread's own: the part at hand. */
typedef struct {
    int64_t width;           /* channels of a part, at most */
    int64_t pixels, pending; /* gathered; of them not yet in double precision */
    real *center;            /* (width), of moments */
    real *first, *second; /* (width): of deviations and their squares; of gradients and of gradients times deviations */
    double *firsts, *seconds;
} DT(gather_sums);

size_t DT(gather_parts_bytes)(int64_t parts, int64_t channels);
size_t DT(gather_sums_bytes)(int64_t width);

/* Both on memory aligned to 64; what is wanted follows from the arguments of the pass. */
DT(gather_parts)
DT(gather_parts_on)(void *memory, int64_t parts, int64_t channels, const DT(conv_args) * args, int backward_data);
DT(gather_sums) DT(gather_sums_on)(void *memory, int64_t width);

/* Begins a part. */
void DT(gather_begin)(DT(gather_sums) * s);

/* Adds channels [channel, channel + n) of each of `count` pixels, as channels `column` on of the part (n <= width); the
 * first of a pixel is channel `offset` of what is written.  x: for reductions, the same pixels of what was normalized.
 * All channels of these pixels are added before `gather_count` says how many pixels they were. */
void DT(gather_add)(DT(gather_sums) * s, const DT(gather_parts) * parts, int64_t count, elem *const *pixels,
                    const elem *const *x, int64_t channel, int64_t n, int64_t offset, int64_t column);
void DT(gather_count)(DT(gather_sums) * s, int64_t count);

/* Ends a part: its place among the parts, its first channel and their number. */
void DT(gather_end)(DT(gather_sums) * s, const DT(gather_parts) * parts, int64_t part, int64_t channel, int64_t n);

/* Writes the results from all parts, if something was wanted; called by all threads of a team, or by one. */
void DT(gather_merge)(const DT(gather_parts) * parts);

/* The two kinds. */
void DT(moments_add)(DT(gather_sums) * s, int64_t count, elem *const *pixels, int64_t channel, int64_t n,
                     int64_t column);
void DT(moments_end)(const DT(gather_sums) * s, int64_t n, double *mean, double *squares);
void DT(moments_merge)(const DT(gather_parts) * parts);
void DT(reductions_add)(DT(gather_sums) * s, const DT(conv_reductions) * of, int64_t count, elem *const *pixels,
                        const elem *const *x, int64_t channel, int64_t n, int64_t offset, int64_t column);
/* The same of `count` pixels whose gradients are at g, ldg elements apart; scale * g is written to `pixels`, or added.
 */
void DT(reductions_bypass)(DT(gather_sums) * s, const DT(conv_reductions) * of, int64_t count, const real *g,
                           int64_t ldg, elem *const *pixels, const elem *const *x, int64_t channel, int64_t n,
                           int64_t offset, int64_t column, int accumulate);
void DT(reductions_merge)(const DT(gather_parts) * parts);

#endif

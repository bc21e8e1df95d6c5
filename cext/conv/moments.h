/* Mean and variance of what a forward pass writes, per channel, gathered while it is in the first cache.
 *
 * A thread gathers, one after the other, parts: some pixels of y and a range of channels.  Deviations from the mean of
 * the part's first pixels and their squares are summed, a few hundred pixels at a time, then in double precision.  A
 * part's mean and sum of squared deviations go to its own place; when all are there they are merged in order (Chan,
 * Golub, LeVeque 1983).  So nothing cancels, and the result depends on the parts, not on the threads that took them.
 */
#ifndef DTCONV_MOMENTS_H
#define DTCONV_MOMENTS_H

#include "conv_internal.h"

/* What all threads share: the parts of a pass. */
typedef struct {
    int64_t channels, parts;
    int64_t *pixels; /* (parts) */
    double *moments; /* (parts, 2, channels): mean and sum of squared deviations */
} DT(moment_parts);

/* A thread's own: the part at hand. */
typedef struct {
    int64_t width;                 /* channels of a part, at most */
    int64_t pixels, pending;       /* gathered; of them not yet in double precision */
    real *center, *sum, *squares;  /* (width) */
    double *sums, *sums_of_square; /* (width) */
} DT(moment_sums);

size_t DT(moment_parts_bytes)(int64_t parts, int64_t channels);
size_t DT(moment_sums_bytes)(int64_t width);

/* Both on memory aligned to 64. */
DT(moment_parts) DT(moment_parts_on)(void *memory, int64_t parts, int64_t channels);
DT(moment_sums) DT(moment_sums_on)(void *memory, int64_t width);

/* Begins a part. */
void DT(moments_begin)(DT(moment_sums) * s);

/* Adds channels [column, column + n) of the part, which lie at each of `count` pixels from `channel` on; n <= width.
 * All channels of these pixels are added before `moments_count` says how many pixels they were. */
void DT(moments_add)(DT(moment_sums) * s, int64_t count, real *const *pixels, int64_t channel, int64_t column,
                     int64_t n);
void DT(moments_count)(DT(moment_sums) * s, int64_t count);

/* Ends a part: its place among the parts, its first channel and their number. */
void DT(moments_end)(DT(moment_sums) * s, const DT(moment_parts) * parts, int64_t part, int64_t channel, int64_t n);

/* Mean and biased variance from all parts; called by all threads of a team, or by one. */
void DT(moments_merge)(const DT(moment_parts) * parts, real *mean, real *variance);

#endif

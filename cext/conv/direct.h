/* What the passes of the direct convolution share: its micro-kernel, and the classes of pixels along an axis. */
#ifndef DTCONV_DIRECT_H
#define DTCONV_DIRECT_H

#include "conv_internal.h"
#include "direct_tile.h"

/* One axis of a pass that gathers: pixel i of what is written reads, for each tap t,
 *   forward         pixel i * stride - pad + t * dilation
 *   backward_data   pixel (i + pad - (taps - 1 - t) * dilation) / stride, where that is an integer
 * of what is read, where it exists.  Taps are counted such that the pixels that are read ascend: backward_data's are
 * turned. */
typedef struct {
    int64_t written, read, taps, stride, dilation, pad;
    int turned;
} dtconv_axis;

/* Pixels first, first + step, ... (count of them) that read the same taps tap, tap + tap_step, ... (taps of them). The
 * first pixel's first tap reads pixel `source`; the next pixel's `source_step` and the next tap's `tap_distance`
 * further on. */
typedef struct {
    int64_t first, step, count;
    int64_t tap, tap_step, taps;
    int64_t source, source_step, tap_distance;
} dtconv_axis_class;

dtconv_axis DT(direct_axis)(int64_t ih, int64_t oh, int64_t kh, int64_t sh, int64_t dil_h, int64_t pad_t, int turned);

/* The problem as the direct passes walk it: images of planes of rows of pixels.  The images of a batch without a depth
 * are the planes of one image, so that some of them make a chunk; and an axis that is alone is the one of rows, so that
 * it can be cut. */
dtconv_conv DT(direct_view)(const dtconv_conv *p);

/* All classes of pixels [from, end), one after the other: begin with {0}; 0 when there is none left. */
int DT(direct_next_class)(const dtconv_axis *axis, int64_t from, int64_t end, dtconv_axis_class *c);

#endif

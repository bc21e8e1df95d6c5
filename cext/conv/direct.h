/* What the passes of the direct convolution share: its micro-kernel, and the classes of pixels along an axis. */
#ifndef DTCONV_DIRECT_H
#define DTCONV_DIRECT_H

#include "conv_internal.h"
#include "dtconv_vector.h"

#if defined(__AVX512F__)
enum { DIRECT_MR = 14 };
#elif defined(__AVX2__)
enum { DIRECT_MR = 6 };
#elif defined(__aarch64__)
enum { DIRECT_MR = 8 };
#else
enum { DIRECT_MR = 4 };
#endif
enum { DIRECT_AHEAD = 16 };
enum { DIRECT_NV = 2, DIRECT_NR = DIRECT_NV * V };

/* Steps of a sum that lie at even distances: the first one in A, counted from each row's pointer, and in B. */
typedef struct {
    int64_t a, b, count;
} dtconv_segment;

/* C (m x n) = act(bias + sum over segments and their steps of A (m) B (n) + added), to c or `beside`:
 * element (i, step) of A at a[i][segment.a + step * a_step], the row of B at b + segment.b + step * b_step, row i of C
 * at c[i]; m <= MR, n <= NR.  bias: n elements, or NULL for 0.  added: its row i at added[i], where `add` is set; it
 * may be C.  The sum has the same order for every element and any m and n. */
typedef struct {
    const real *a[DIRECT_AHEAD]; /* m of them count */
    real *c[DIRECT_MR];
    const real *added[DIRECT_MR];
    const dtconv_segment *segments;
    int64_t segment_count, a_step, b_step;
    int add, relu;
    real *beside; /* where C goes instead, rows NR elements apart and as if `column` were 0; NULL: to c */
    /* loaded into L2 on the way: in step k the line at ahead[k % AHEAD] + k / AHEAD * ahead_step */
    const real *const *ahead;
    int64_t ahead_step;
} DT(direct_tile);

/* A pixel of x as it is read. */
void DT(direct_normalize)(const DT(conv_normalization) * prologue, int64_t channels, const real *x, real *y);

void DT(direct_run_tile)(const DT(direct_tile) * t, int64_t m, int64_t n, const real *b, const real *bias,
                         int64_t column);

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

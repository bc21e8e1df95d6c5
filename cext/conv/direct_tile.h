/* The micro-kernel of the direct convolution (direct_tile.c); images in bfloat16 are widened for that of float32. */
#ifndef DTCONV_DIRECT_TILE_H
#define DTCONV_DIRECT_TILE_H

#include "dtconv_lines.h"
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
enum { DIRECT_NV = 2, DIRECT_NR = DIRECT_NV * V, DIRECT_TURN = STEPS_OF_TURN(DIRECT_MR) };

/* Steps of a sum that lie at even distances: the first one in A, counted from each row's pointer, and in B. */
typedef struct {
    int64_t a, b, count;
} dtconv_segment;

/* C (m x n) = act(bias + sum over segments and their steps of A (m) B (n) + added); or to `beside` without added and
 * act: element (i, step) of A at a[i][segment.a + step * a_step], the row of B at b + segment.b + step * b_step, row i
 * of C at c[i]; m <= MR, n <= NR.  bias: n elements, or NULL for 0.  added: its row i at added[i], where `add` is set;
 * it may be C.  The sum has the same order for every element and any m and n. */
typedef struct {
    const real *a[DIRECT_MR];
    real *c[DIRECT_MR];
    const real *added[DIRECT_MR];
    const dtconv_segment *segments;
    int64_t segment_count, a_step, b_step;
    int add, relu;
    real *beside;             /* where sums go instead, rows NR elements apart and as if `column` were 0; NULL: to c */
    const void *const *ahead; /* lines that are loaded into L2 on the way, one every TURN steps */
    int64_t ahead_count;
} RT(direct_tile);

void RT(direct_run_tile)(const RT(direct_tile) * t, int64_t m, int64_t n, const real *b, const real *bias,
                         int64_t column);

#endif

/* Element-wise operators, reductions, copies, random operators and optimizers' updates.
 *
 * Strided operands.  `layout` describes a loop nest over operands that lie anywhere in memory with any broadcasting:
 *   layout[0] = ndim (1 .. 8), layout[1] = number of operands, then ndim extents, then for each operand ndim strides
 * in elements, innermost last; a stride of 0 repeats.  The last operand is the output; its innermost stride is 1, and
 * the inputs' are 0 or 1.  Neighbouring dimensions that can be one should be one: a dense operation has ndim 1. An
 * output may be the same array as an input of the same strides.
 */
#ifndef real
#include "dtconv_real.h"
#endif

#ifndef DTCONV_NN_ELEM_KINDS
#define DTCONV_NN_ELEM_KINDS

typedef enum {
    DTCONV_BINARY_ADD = 0,
    DTCONV_BINARY_SUBTRACT,
    DTCONV_BINARY_MULTIPLY,
    DTCONV_BINARY_DIVIDE,
    DTCONV_BINARY_MAXIMUM,
    DTCONV_BINARY_MINIMUM,
    DTCONV_BINARY_POWER,
    DTCONV_BINARY_EQUAL, /* 1 or 0; backward gives a, of which b is an extremum, dy where they are equal */
    DTCONV_BINARY_KINDS
} dtconv_binary;

typedef enum {
    DTCONV_REDUCE_SUM = 0,
    DTCONV_REDUCE_MAXIMUM,
    DTCONV_REDUCE_MINIMUM,
    DTCONV_REDUCE_DOT,
    DTCONV_REDUCE_KINDS
} dtconv_reduce;

#endif

/* y = f(x; p[0], p[1], p[2]); kind: a dtconv_activation.  layout: x, y. */
dtconv_status DT(unary_forward)(int kind, const real *p, const int64_t *layout, const elem *x, elem *y);

/* dx (+)= dy f'(v), v = y or x as the kind says.  layout: v, dy, dx. */
dtconv_status DT(unary_backward)(int kind, const real *p, int accumulate, const int64_t *layout, const elem *v,
                                 const elem *dy, elem *dx);

/* y = f(a + b): residual addition with a fused activation.  layout: a, b, y. */
dtconv_status DT(add_activation)(int kind, const real *p, const int64_t *layout, const elem *a, const elem *b, elem *y);

/* y = a op b.  layout: a, b, y. */
dtconv_status DT(binary_forward)(int kind, const int64_t *layout, const elem *a, const elem *b, elem *y);

/* da (+)= dy * d(a op b)/da for operand 0, d/db for operand 1.  Of a, b and y those that the derivative needs, else
 * NULL: add, subtract none; multiply the other operand; divide b, and for operand 1 also y; maximum, minimum, power,
 * equal a and b. layout: dy, a, b, y, out; strides of a missing operand are ignored. */
dtconv_status DT(binary_backward)(int kind, int operand, int accumulate, const int64_t *layout, const elem *dy,
                                  const elem *a, const elem *b, const elem *y, elem *out);

/* y (+)= factor x.  layout: x, y.  Also the copy between any two layouts. */
dtconv_status DT(copy)(real factor, int accumulate, const int64_t *layout, const elem *x, elem *y);

/* y (+)= factor * reduction of x over some dimensions.  kind: sum, maximum, minimum, or the sum of x * x2 (x2 else
 * NULL). layout: K, R, the K kept extents, the R reduced extents, K + R strides of x, K + R strides of x2, K strides of
 * y. Either the last kept strides of x, x2 and y are all 1, or the last reduced strides of x and x2 are 1. Sums are
 * formed in blocks and over a fixed number of slices, so that the error does not grow with the length and the result
 * does not depend on the number of threads.  as_real: y holds `real`, as gradients of parameters do; else `elem`. */
size_t DT(reduce_workspace)(const int64_t *layout);
dtconv_status DT(reduce)(int kind, int accumulate, real factor, const int64_t *layout, const elem *x, const elem *x2,
                         void *y, int as_real, void *workspace, size_t bytes);

/* y (+)= x with the dimensions in another order.  layout: x, y, where no stride of x need be 1 along y's innermost one.
 */
dtconv_status DT(permute)(int accumulate, const int64_t *layout, const elem *x, elem *y);

/* What random numbers depend on: seed, stream (one for each random node), step, and the index of the element or sample
 * in the global batch.  Nothing else, so they are the same on any number of threads and in forward and backward. */
#ifndef DTCONV_RANDOM_KEY
#define DTCONV_RANDOM_KEY
typedef struct {
    uint64_t seed;
    uint32_t stream, step;
    int64_t first; /* index of the first element (window: sample) of this call */
} dtconv_random_key;
#endif

/* y (+)= x with probability 1 - rate, divided by that, else 0.  x NULL: ones.  Rows of c elements, ldx and ldy apart.
 */
dtconv_status DT(dropout)(const dtconv_random_key *key, double rate, int accumulate, int64_t rows, int64_t c,
                          const elem *x, int64_t ldx, elem *y, int64_t ldy);

/* y = x + stddev * a standard normal variable. */
dtconv_status DT(gaussian_noise)(const dtconv_random_key *key, double stddev, int64_t rows, int64_t c, const elem *x,
                                 int64_t ldx, elem *y, int64_t ldy);

/* Random windows of images: y[s] (oh, ow, c) is a window of x[s] (ih, iw, c) at a random place, mirrored along its
 * columns (flip & 1) and rows (flip & 2) with probability 1/2 each.  backward: dx (+)= dy, put back into the window. */
dtconv_status DT(random_window_forward)(const dtconv_random_key *key, int flip, int64_t n, int64_t ih, int64_t iw,
                                        int64_t oh, int64_t ow, int64_t c, const elem *x, int64_t ldx, elem *y,
                                        int64_t ldy);
dtconv_status DT(random_window_backward)(const dtconv_random_key *key, int flip, int accumulate, int64_t n, int64_t ih,
                                         int64_t iw, int64_t oh, int64_t ow, int64_t c, const elem *dy, int64_t lddy,
                                         elem *dx, int64_t lddx);

#include "dtconv_optimizers.h"

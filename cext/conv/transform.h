/* The tiled transform engine: maps of short lengths, applied along both sides of square tiles, on vectors of channels.
 *
 *   expand     t (a x a) = P (a x k) * s (k x k) * P^T            k x k pixels -> a x a planes
 *   contract   s (k x k) = P^T (k x a) * t (a x a) * P            a x a planes -> k x k pixels
 *
 * A pixel is a pointer to the channels of one pixel (or filter tap); pixels outside of an image are pointers to zeros.
 * A plane is what the products of one point of the transform read or write: plane e begins at e * plane elements.
 * Channels are the vector dimension.  With the three matrices of F(m x m, 3 x 3), a = m + 2, that gives all of
 * Winograd's maps (transform_tables.h has the matrices):
 *
 *   input    expand, k = a       V = B^T d B       tiles of x (or of dy in backward_data)
 *   filter   expand, k = 3       U = G g G^T
 *   output   contract, k = m     y = A^T M A
 *   grad     expand, k = m       Z = A dy A^T      tiles of dy in backward_weights, the adjoint of output
 *   dfilter  contract, k = 3     dw = G^T dU G     the adjoint of filter
 */
#ifndef DTCONV_TRANSFORM_H
#define DTCONV_TRANSFORM_H

#include "dtconv_vector.h"

enum { TRANSFORM_MAX = 8, TRANSFORM_PIXELS = 64 };

/* Channels [first, first + channels) of the pixels x[0 .. k * k) to `planes`, from channel 0 on; the last vector is
 * filled up with zeros: rows of planes have room for whole vectors. */
typedef void (*DT(expand_fn))(const real *const *x, int64_t first, int64_t channels, real *planes, int64_t plane);

/* What becomes of the pixels of `contract`: act(y + bias + added). */
typedef struct {
    const real *bias;         /* added to each pixel, or NULL */
    const real *const *added; /* pixels that are added, as many as y has and perhaps the same; or NULL */
    int relu;
} DT(contract_finish);

/* The planes to channels [first, first + channels) of the pixels y[0 .. k * k).  dfilter only ever writes: its `finish`
 * has nothing set. */
typedef void (*DT(contract_fn))(const real *planes, int64_t plane, int64_t first, int64_t channels, real *const *y,
                                const DT(contract_finish) * finish);

typedef struct {
    int m, a; /* outputs and points in one dimension */
    DT(expand_fn) input, filter, grad;
    DT(contract_fn) output, dfilter;
} DT(transform);

/* F(m x m, 3 x 3), or NULL where there is none. */
const DT(transform) * DT(winograd_transform)(int m);

#endif

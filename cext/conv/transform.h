/* The tiled transform engine: maps of short lengths, applied along both sides of square tiles, on vectors of channels.
 *
 *   expand     t (a x a) = P (a x k) * s (k x k) * P^T            k x k pixels -> a x a planes
 *   contract   s (k x k) = P^T (k x a) * t (a x a) * P            a x a planes -> k x k pixels
 *
 * Tiles of 2 x 4 have another P on each side.
 *
 * A pixel is a pointer to the channels of one pixel (or filter tap); pixels outside of an image are pointers to zeros.
 * Those of images are `elem`, taps and planes are `real`: of images in bfloat16 each element is widened as it is
 * loaded, all arithmetic is float32's, and pixels are rounded as they are stored. A plane is what the products of one
 * point of the transform read or write: plane e begins at e * plane elements. Channels are the vector dimension.  With
 * the three matrices of F(m x m, 3 x 3), a = m + 2, that gives all of Winograd's maps (transform_tables.h has the
 * matrices):
 *
 *   input    expand, k = a       V = B^T d B       tiles of x (or of dy in backward_data)
 *   filter   expand, k = 3       U = G g G^T
 *   output   contract, k = m     y = A^T M A
 *   grad     expand, k = m       Z = A dy A^T      tiles of dy in backward_weights, the adjoint of output
 *   dfilter  contract, k = 3     dw = G^T dU G     the adjoint of filter
 */
#ifndef DTCONV_TRANSFORM_H
#define DTCONV_TRANSFORM_H

#include "conv_internal.h"
#include "dtconv_tile.h"
#include "dtconv_vector.h"

enum { TRANSFORM_MAX = 10, TRANSFORM_PIXELS = 100 };

/* Channels [first, first + channels) of the pixels x[0 .. k * k) to `planes`, from channel 0 on; the last vector is
 * filled up with zeros: rows of planes have room for whole vectors. */
typedef void (*RT(expand_fn))(const real *const *x, int64_t first, int64_t channels, real *planes, int64_t plane);
typedef void (*DT(expand_fn))(const elem *const *x, int64_t first, int64_t channels, real *planes, int64_t plane);

/* The same of pixels that are normalized as they are read; those that are `outside` stay zeros. */
typedef void (*DT(expand_normalized_fn))(const elem *const *x, const elem *outside, const DT(conv_normalization) * how,
                                         int64_t channels, real *planes, int64_t plane);

/* What becomes of the pixels of `contract`: act((y + bias) * scale + beta + added). */
typedef struct {
    const real *bias;         /* added to each pixel, or NULL */
    const elem *const *added; /* pixels that are added, as many as y has and perhaps the same; or NULL */
    dtconv_activation activation;
    real alpha;
    const real *scale, *beta; /* of each pixel, or NULL, both of them */
} DT(contract_finish);

/* The planes to channels [first, first + channels) of the pixels y[0 .. k * k).  dfilter only ever writes. */
typedef void (*DT(contract_fn))(const real *planes, int64_t plane, int64_t first, int64_t channels, elem *const *y,
                                const DT(contract_finish) * finish);
typedef void (*RT(contract_filter_fn))(const real *planes, int64_t plane, int64_t first, int64_t channels,
                                       real *const *taps);

/* The maps of filters. */
typedef struct {
    int mh, mw, ah, aw; /* outputs, and points, along height and width */
    RT(expand_fn) filter;
    RT(contract_filter_fn) dfilter; /* NULL: of tiles that backward_weights does not have */
} RT(transform);

/* The maps of images. */
typedef struct {
    DT(expand_fn) input, grad;
    DT(expand_normalized_fn) normalized; /* input */
    DT(contract_fn) output;
} DT(image_maps);

/* F(m x m, 3 x 3); m is 2 or 4 to 8. */
const RT(transform) * RT(winograd_transform)(dtconv_tile tile);
/* The same where transformed numbers are rounded to bfloat16; m x m is 2 x 2, 4 x 4 or 2 x 4. */
const RT(transform) * RT(winograd_transform_rounded)(dtconv_tile tile);
const DT(image_maps) * DT(winograd_image_maps)(dtconv_tile tile);

#endif

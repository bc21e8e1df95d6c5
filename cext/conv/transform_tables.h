/* The matrices of F(m x m, 3 x 3): B^T and A with a row, G with a row, for each point of the transform.
 *
 *   correlation of d (m + 2 elements) with g (3):  A^T ((G g) * (B^T d)),  * element by element
 *
 * They follow from polynomial multiplication at the points p (Winograd 1980; Lavin and Gray, CVPR 2016), infinity last:
 *
 *   A[p] = 1, p, p^2, ...     G[p] = (1, p, p^2) / N(p), N(p) = product of (p - q), q != p
 *   B^T[p] = coefficients of the product of (x - q), q != p
 *
 * The points are 0, +-1, +-2, +-1/2 in this order: small powers of two keep errors low.  Where transformed numbers are
 * rounded, errors are lowest where all points weigh about the same: those of F(4 x 4, 3 x 3) are then 0, +-2/3, +-3/2,
 * with which a layer of random numbers has 0.4 times the error (search over pairs of sixteenths and these).
 */
#include "transform.h"

/* clang-format off */

/* F(2 x 2, 3 x 3): points 0, 1, -1, infinity. */
static const real input_2[4 * 4] = {
    -1, 0, 1, 0,
    0, 1, 1, 0,
    0, -1, 1, 0,
    0, -1, 0, 1,
};
static const real output_2[4 * 2] = {
    1, 0,
    1, 1,
    1, -1,
    0, 1,
};
static const real filter_2[4 * 3] = {
    -1, 0, 0,
    0.5, 0.5, 0.5,
    0.5, -0.5, 0.5,
    0, 0, 1,
};

/* F(4 x 4, 3 x 3): points 0, 1, -1, 2, -2, infinity. */
static const real input_4[6 * 6] = {
    4, 0, -5, 0, 1, 0,
    0, -4, -4, 1, 1, 0,
    0, 4, -4, -1, 1, 0,
    0, -2, -1, 2, 1, 0,
    0, 2, -1, -2, 1, 0,
    0, 4, 0, -5, 0, 1,
};
static const real output_4[6 * 4] = {
    1, 0, 0, 0,
    1, 1, 1, 1,
    1, -1, 1, -1,
    1, 2, 4, 8,
    1, -2, 4, -8,
    0, 0, 0, 1,
};
static const real filter_4[6 * 3] = {
    0.25, 0, 0,
    -1. / 6, -1. / 6, -1. / 6,
    -1. / 6, 1. / 6, -1. / 6,
    1. / 24, 1. / 12, 1. / 6,
    1. / 24, -1. / 12, 1. / 6,
    0, 0, 1,
};

/* F(4 x 4, 3 x 3) for numbers that are rounded: points 0, 2/3, -2/3, 3/2, -3/2, infinity. */
static const real input_rounded[6 * 6] = {
    1, 0, -97. / 36, 0, 1, 0,
    0, -1.5, -2.25, 2. / 3, 1, 0,
    0, 1.5, -2.25, -2. / 3, 1, 0,
    0, -2. / 3, -4. / 9, 1.5, 1, 0,
    0, 2. / 3, -4. / 9, -1.5, 1, 0,
    0, 1, 0, -97. / 36, 0, 1,
};
static const real output_rounded[6 * 4] = {
    1, 0, 0, 0,
    1, 2. / 3, 4. / 9, 8. / 27,
    1, -2. / 3, 4. / 9, -8. / 27,
    1, 1.5, 2.25, 3.375,
    1, -1.5, 2.25, -3.375,
    0, 0, 0, 1,
};
static const real filter_rounded[6 * 3] = {
    1, 0, 0,
    -81. / 130, -27. / 65, -18. / 65,
    -81. / 130, 27. / 65, -18. / 65,
    8. / 65, 12. / 65, 18. / 65,
    8. / 65, -12. / 65, 18. / 65,
    0, 0, 1,
};

/* F(5 x 5, 3 x 3): points 0, 1, -1, 2, -2, 1/2, infinity. */
static const real input_5[7 * 7] = {
    -2, 4, 2.5, -5, -0.5, 1, 0,
    0, 2, -2, -4.5, 0.5, 1, 0,
    0, -2, 6, -3.5, -1.5, 1, 0,
    0, 1, -1.5, -2, 1.5, 1, 0,
    0, -1, 2.5, 0, -2.5, 1, 0,
    0, 4, 0, -5, 0, 1, 0,
    0, -2, 4, 2.5, -5, -0.5, 1,
};
static const real output_5[7 * 5] = {
    1, 0, 0, 0, 0,
    1, 1, 1, 1, 1,
    1, -1, 1, -1, 1,
    1, 2, 4, 8, 16,
    1, -2, 4, -8, 16,
    1, 0.5, 0.25, 0.125, 0.0625,
    0, 0, 0, 0, 1,
};
static const real filter_5[7 * 3] = {
    -0.5, 0, 0,
    -1. / 3, -1. / 3, -1. / 3,
    1. / 9, -1. / 9, 1. / 9,
    1. / 36, 1. / 18, 1. / 9,
    -1. / 60, 1. / 30, -1. / 15,
    32. / 45, 16. / 45, 8. / 45,
    0, 0, 1,
};

/* F(6 x 6, 3 x 3): points 0, 1, -1, 2, -2, 1/2, -1/2, infinity. */
static const real input_6[8 * 8] = {
    -1, 0, 5.25, 0, -5.25, 0, 1, 0,
    0, 1, 1, -4.25, -4.25, 1, 1, 0,
    0, -1, 1, 4.25, -4.25, -1, 1, 0,
    0, 0.5, 0.25, -2.5, -1.25, 2, 1, 0,
    0, -0.5, 0.25, 2.5, -1.25, -2, 1, 0,
    0, 2, 4, -2.5, -5, 0.5, 1, 0,
    0, -2, 4, 2.5, -5, -0.5, 1, 0,
    0, -1, 0, 5.25, 0, -5.25, 0, 1,
};
static const real output_6[8 * 6] = {
    1, 0, 0, 0, 0, 0,
    1, 1, 1, 1, 1, 1,
    1, -1, 1, -1, 1, -1,
    1, 2, 4, 8, 16, 32,
    1, -2, 4, -8, 16, -32,
    1, 0.5, 0.25, 0.125, 0.0625, 0.03125,
    1, -0.5, 0.25, -0.125, 0.0625, -0.03125,
    0, 0, 0, 0, 0, 1,
};
static const real filter_6[8 * 3] = {
    -1, 0, 0,
    -2. / 9, -2. / 9, -2. / 9,
    -2. / 9, 2. / 9, -2. / 9,
    1. / 90, 1. / 45, 2. / 45,
    1. / 90, -1. / 45, 2. / 45,
    32. / 45, 16. / 45, 8. / 45,
    32. / 45, -16. / 45, 8. / 45,
    0, 0, 1,
};
/* clang-format on */

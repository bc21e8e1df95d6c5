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
 *
 * F(7 x 7) and F(8 x 8) have four pairs of points, found in the same way among small fractions; infinity takes the
 * place of 0 in F(7 x 7), and its row.  In float32 a layer of random numbers is off by 7e-6 and 1.4e-5 of its norm
 * (1.4e-6 with F(4 x 4), 2.7e-6 with F(6 x 6)).  Their matrices are written as the points and what follows from them.
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

/* Matrices of four pairs (p, -p), with 0 or without: E(x) = (x^2 - b)(x^2 - c)(x^2 - d) is the product of the other
 * pairs, b, c, d their squares, and that of all of them is A0 + A1 x^2 + A2 x^4 + A3 x^6 + x^8. */
#define APPLY(macro, ...) macro(__VA_ARGS__)
#define SQUARE_OF(p) ((p) * (p))
#define E0(b, c, d) (-(b) * (c) * (d))
#define E2(b, c, d) ((b) * (c) + (b) * (d) + (c) * (d))
#define E4(b, c, d) (-(b) - (c) - (d))
#define E_AT(p, b, c, d) ((SQUARE_OF(p) - (b)) * (SQUARE_OF(p) - (c)) * (SQUARE_OF(p) - (d)))
/* (x + p) E(x), for row p. */
#define WITHOUT(p, b, c, d) \
    (p) * E0(b, c, d), E0(b, c, d), (p) * E2(b, c, d), E2(b, c, d), (p) * E4(b, c, d), E4(b, c, d), (p), 1
#define FIRST_THREE(p, norm) 1 / (norm), (p) / (norm), SQUARE_OF(p) / (norm)
#define POWERS_7(p) \
    1, (p), SQUARE_OF(p), SQUARE_OF(p) * (p), SQUARE_OF(p) * SQUARE_OF(p), SQUARE_OF(p) * SQUARE_OF(p) * (p), \
        SQUARE_OF(p) * SQUARE_OF(p) * SQUARE_OF(p)
#define POWERS_8(p) POWERS_7(p), SQUARE_OF(p) * SQUARE_OF(p) * SQUARE_OF(p) * (p)
#define PAIR(row, p, ...) row(p, __VA_ARGS__), row(-(p), __VA_ARGS__)
/* Rows of all pairs p, q, r, s. */
#define PAIRS(row, p, q, r, s)                                  \
    PAIR(row, p, SQUARE_OF(q), SQUARE_OF(r), SQUARE_OF(s)),     \
        PAIR(row, q, SQUARE_OF(p), SQUARE_OF(r), SQUARE_OF(s)), \
        PAIR(row, r, SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(s)), \
        PAIR(row, s, SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(r))
#define A0(p, q, r, s) (SQUARE_OF(p) * SQUARE_OF(q) * SQUARE_OF(r) * SQUARE_OF(s))
#define A1(p, q, r, s) \
    (-SQUARE_OF(s) * E2(SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(r)) + E0(SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(r)))
#define A2(p, q, r, s) \
    (E2(SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(r)) - SQUARE_OF(s) * E4(SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(r)))
#define A3(p, q, r, s) (E4(SQUARE_OF(p), SQUARE_OF(q), SQUARE_OF(r)) - SQUARE_OF(s))

/* F(7 x 7, 3 x 3): points infinity, +-2/3, +-1/4, +-5/4, +-8/3. */
#define POINTS_7 2. / 3, 1. / 4, 5. / 4, 8. / 3
#define INPUT_ROW_7(p, b, c, d) WITHOUT(p, b, c, d), 0
#define OUTPUT_ROW_7(p, b, c, d) POWERS_7(p)
#define FILTER_ROW_7(p, b, c, d) FIRST_THREE(p, 2 * (p) * E_AT(p, b, c, d))
static const real input_7[9 * 9] = {
    APPLY(A0, POINTS_7), 0, APPLY(A1, POINTS_7), 0, APPLY(A2, POINTS_7), 0, APPLY(A3, POINTS_7), 0, 1,
    APPLY(PAIRS, INPUT_ROW_7, POINTS_7),
};
static const real output_7[9 * 7] = {
    0, 0, 0, 0, 0, 0, 1,
    APPLY(PAIRS, OUTPUT_ROW_7, POINTS_7),
};
static const real filter_7[9 * 3] = {
    0, 0, 1,
    APPLY(PAIRS, FILTER_ROW_7, POINTS_7),
};

/* F(8 x 8, 3 x 3): points 0, +-4/3, +-5/2, +-2/5, +-7/8, infinity. */
#define POINTS_8 4. / 3, 5. / 2, 2. / 5, 7. / 8
#define INPUT_ROW_8(p, b, c, d) 0, WITHOUT(p, b, c, d), 0
#define OUTPUT_ROW_8(p, b, c, d) POWERS_8(p)
#define FILTER_ROW_8(p, b, c, d) FIRST_THREE(p, 2 * SQUARE_OF(p) * E_AT(p, b, c, d))
static const real input_8[10 * 10] = {
    APPLY(A0, POINTS_8), 0, APPLY(A1, POINTS_8), 0, APPLY(A2, POINTS_8), 0, APPLY(A3, POINTS_8), 0, 1, 0,
    APPLY(PAIRS, INPUT_ROW_8, POINTS_8),
    0, APPLY(A0, POINTS_8), 0, APPLY(A1, POINTS_8), 0, APPLY(A2, POINTS_8), 0, APPLY(A3, POINTS_8), 0, 1,
};
static const real output_8[10 * 8] = {
    1, 0, 0, 0, 0, 0, 0, 0,
    APPLY(PAIRS, OUTPUT_ROW_8, POINTS_8),
    0, 0, 0, 0, 0, 0, 0, 1,
};
static const real filter_8[10 * 3] = {
    1 / APPLY(A0, POINTS_8), 0, 0,
    APPLY(PAIRS, FILTER_ROW_8, POINTS_8),
    0, 0, 1,
};
/* clang-format on */

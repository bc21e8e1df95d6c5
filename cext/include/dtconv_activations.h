/* Activations that follow a normalization, and their slopes, of vectors; what is normalized is at hand where they are
 * needed. `act` is a constant where a function is inlined.
 */
#ifndef DTCONV_ACTIVATIONS_H
#define DTCONV_ACTIVATIONS_H

#include <math.h>

#include "dtconv_vector.h"

/* K(NAME, f of z, g f' of z, ...) for those that may follow a normalization, behind LINEAR: formulas of vectors.  Where
 * f is constant, g is left out, for it may be infinite. */
#define AFTER_NORMALIZATION(K, ...)                                                      \
    K(RELU, positive(z), where(z > 0, g, (vec){0}), __VA_ARGS__)                         \
    K(RELU6, capped(6, positive(z)), where((z > 0) & (z < 6), g, (vec){0}), __VA_ARGS__) \
    K(SILU, silu(z), g *silu_gradient(z), __VA_ARGS__)                                   \
    K(HARD_SILU, where(z < -3, (vec){0}, z * capped(6, z + 3) * (real)(1.0 / 6)),        \
      where(z <= -3, (vec){0}, g * where(z > 3, (vec){0} + 1, (2 * z + 3) * (real)(1.0 / 6))), __VA_ARGS__)

/* A switch that runs CALL(act), with a constant for each of these. */
#define FOR_ACTIVATIONS(activation, CALL)       \
    switch ((int)(activation)) {                \
        AFTER_NORMALIZATION(CALL_OF_CASE, CALL) \
        default:                                \
            CALL(DTCONV_LINEAR);                \
    }
#define CALL_OF_CASE(NAME, f, gradient, CALL) \
    case DTCONV_##NAME:                       \
        CALL(DTCONV_##NAME);                  \
        break;
#define VALUE_OF_CASE(NAME, f, gradient, _) \
    case DTCONV_##NAME:                     \
        return f;
#define GRADIENT_OF_CASE(NAME, f, gradient, _) \
    case DTCONV_##NAME:                        \
        return gradient;

/* Beyond -FARTHEST and FARTHEST sigmoid is taken as there, at the end of normal numbers. */
enum { FARTHEST = sizeof(real) == sizeof(double) ? 708 : 87 };

/* exp(x) for x from -FARTHEST to FARTHEST; NaN stays NaN.  With x = n ln 2 + r, |r| <= ln(2) / 2, exp(r) is
 * 1 + r + r^2 P(r), P of degree 3 with the least relative error (1.1e-7).  Short chains: much of it waits for results.
 */
INLINE vec exponential(vec x) {
#ifdef DTCONV_DOUBLE
    for (int i = 0; i < V; i++) x[i] = exp(x[i]);
    return x;
#else
    const vec zero = {0},
              magic = zero + 12583039.f; /* 1.5 * 2^23 + 127: adding it rounds to n + 127, in the low bits */
    const vec t = multiply_add(x, zero + 1.44269504f, magic), n = t - magic;
    const vec r = multiply_add(n, zero + 2.12194440e-4f, multiply_add(n, zero - 0.693359375f, x)), r2 = r * r;
    const vec high = multiply_add(zero + 0.00831252121f, r, zero + 0.0418901555f);
    const vec low = multiply_add(zero + 0.16667114f, r, zero + 0.499992311f);
    const vec p = multiply_add(multiply_add(high, r2, low), r2, r) + 1;
    return p * (vec)((mask)t << 23);
#endif
}

/* 1 / (1 + exp(-x)) for such x. */
INLINE vec sigmoid(vec x) { return 1 / (exponential(-x) + 1); }

INLINE vec silu(vec z) {
    const vec above = raised(-FARTHEST, z);
    return above * sigmoid(capped(FARTHEST, above));
}

INLINE vec silu_gradient(vec z) {
    const vec near = raised(-FARTHEST, capped(FARTHEST, z)), s = sigmoid(near);
    return s * (1 + near * (1 - s));
}

INLINE vec activated(dtconv_activation act, vec z) {
    switch ((int)act) { AFTER_NORMALIZATION(VALUE_OF_CASE, ) }
    return z;
}

/* g times the slope of the activation at z */
INLINE vec through_slope(dtconv_activation act, vec g, vec z) {
    switch ((int)act) { AFTER_NORMALIZATION(GRADIENT_OF_CASE, ) }
    return g;
}

#endif

/* Activations that follow a normalization, and their slopes, of vectors; what is normalized is at hand where they are
 * needed. `act` is a constant where a function is inlined.
 */
#ifndef DTCONV_ACTIVATIONS_H
#define DTCONV_ACTIVATIONS_H

#include <math.h>

#include "dtconv_vector.h"

/* A switch that runs CALL(act), with a constant for each activation that may follow a normalization. */
#define FOR_ACTIVATIONS(activation, CALL) \
    switch (activation) {                 \
        case DTCONV_RELU:                 \
            CALL(DTCONV_RELU);            \
            break;                        \
        case DTCONV_RELU6:                \
            CALL(DTCONV_RELU6);           \
            break;                        \
        case DTCONV_SILU:                 \
            CALL(DTCONV_SILU);            \
            break;                        \
        case DTCONV_HARD_SILU:            \
            CALL(DTCONV_HARD_SILU);       \
            break;                        \
        default:                          \
            CALL(DTCONV_LINEAR);          \
    }

/* exp(x) for x from -87 to 88, in double precision any; NaN stays NaN.  As DT(exp_) in dtconv_math.h, with 2^n as one
 * factor. */
INLINE vec exponential(vec x) {
#ifdef DTCONV_DOUBLE
    for (int i = 0; i < V; i++) x[i] = exp(x[i]);
    return x;
#else
    const vec zero = {0}, magic = zero + 12582912.f; /* 1.5 * 2^23: adding it rounds to an integer */
    const vec t = multiply_add(x, zero + 1.44269504f, magic), n = t - magic;
    const vec r = multiply_add(n, zero + 2.12194440e-4f, multiply_add(n, zero - 0.693359375f, x));
    vec p = multiply_add(zero + 0.00139506023f, r, zero + 0.00836895351f);
    p = multiply_add(p, r, zero + 0.0416662041f);
    p = multiply_add(p, r, zero + 0.166665183f);
    p = multiply_add(p, r, zero + 0.50000001f);
    p = multiply_add(p, r * r, r) + 1;
    return p * (vec)(((mask)t - (mask)magic + 127) << 23);
#endif
}

/* 1 / (1 + exp(-x)); 0 where that is not a normal number. */
INLINE vec sigmoid(vec x) {
    enum { FARTHEST = sizeof(real) == sizeof(double) ? 708 : 87 };
    const vec s = 1 / (1 + exponential(-raised(-FARTHEST, capped(FARTHEST, x))));
    return where(x < -FARTHEST, (vec){0}, s);
}

INLINE vec activated(dtconv_activation act, vec z) {
    if (act == DTCONV_RELU) return positive(z);
    if (act == DTCONV_RELU6) return capped(6, positive(z));
    if (act == DTCONV_SILU) return z * sigmoid(z);
    if (act == DTCONV_HARD_SILU) return where(z < -3, (vec){0}, z * capped(6, z + 3) * (real)(1.0 / 6));
    return z;
}

/* g times the slope of the activation at z. */
INLINE vec through_slope(dtconv_activation act, vec g, vec z) {
    if (act == DTCONV_RELU) return where(z > 0, g, (vec){0});
    if (act == DTCONV_RELU6) return where((z > 0) & (z < 6), g, (vec){0});
    if (act == DTCONV_SILU) {
        const vec s = sigmoid(z);
        return g * (s * (1 + z * (1 - s)));
    }
    if (act == DTCONV_HARD_SILU) {
        const vec slope = (2 * z + 3) * (real)(1.0 / 6);
        return g * where(z < -3, (vec){0}, where(z > 3, (vec){0} + 1, slope));
    }
    return g;
}

#endif

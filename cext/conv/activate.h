/* Activations that are fused into convolutions, and their derivatives, which follow from the output. */
#ifndef DTCONV_ACTIVATE_H
#define DTCONV_ACTIVATE_H

#include <math.h>

#include "dtconv_real.h"

static inline real activate(real x, dtconv_activation activation, real alpha) {
    switch (activation) {
        case DTCONV_RELU:
            return x < 0 ? 0 : x;
        case DTCONV_RELU6:
            return x < 0 ? 0 : x > 6 ? 6 : x;
        case DTCONV_LEAKY_RELU:
            return x < 0 ? alpha * x : x;
        case DTCONV_SIGMOID:
            return 1 / (1 + (real)exp(-(double)x));
        case DTCONV_TANH:
            return (real)tanh((double)x);
        default:
            return x;
    }
}

/* dy times the derivative; where that is 0, dy is left out, for it may be infinite. */
static inline real through(real dy, real y, dtconv_activation activation, real alpha) {
    switch (activation) {
        case DTCONV_RELU:
            return y > 0 ? dy : 0;
        case DTCONV_RELU6:
            return y > 0 && y < 6 ? dy : 0;
        case DTCONV_LEAKY_RELU:
            return y > 0 ? dy : alpha == 0 ? 0 : alpha * dy;
        case DTCONV_SIGMOID:
            return dy * (y * (1 - y));
        case DTCONV_TANH:
            return dy * (1 - y * y);
        default:
            return dy;
    }
}

#endif

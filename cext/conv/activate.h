/* Activations that are fused into convolutions, and their derivatives, which follow from the output. */
#ifndef DTCONV_ACTIVATE_H
#define DTCONV_ACTIVATE_H

#include <math.h>

#include "dtconv_real.h"

static inline real fused_sigmoid(real x) { return 1 / (1 + (real)exp(-(double)x)); }
static inline real fused_tanh(real x) { return (real)tanh((double)x); }

#define F(name) fused_##name
static inline real activate(real x, dtconv_activation activation, real alpha) {
    const real p[] = {alpha};
    switch ((int)activation) {
#define FUSED(NAME, kind, f, gradient) \
    case DTCONV_##NAME:                \
        return f;
#include "../cuda/activations.h"
    }
    return x;
}
#undef F

/* g times the derivative */
static inline real through(real g, real y, dtconv_activation activation, real alpha) {
    const real p[] = {alpha};
    switch ((int)activation) {
#define FUSED(NAME, kind, f, gradient) \
    case DTCONV_##NAME:                \
        return gradient;
#include "../cuda/activations.h"
    }
    return g;
}

static inline int is_fused(dtconv_activation activation) {
    switch ((int)activation) {
#define FUSED(NAME, kind, f, gradient) case DTCONV_##NAME:
#include "../cuda/activations.h"
        return 1;
    }
    return 0;
}

#endif

/* Softmax, losses and the scalars they are summed to.  No include guard: see dtconv_both.h.
 *
 * An output may lie over an input where its comment says so, element for element.  `accumulate`: add to the gradient
 * instead of overwriting it.
 */
#ifndef real
#include "dtconv_real.h"
#endif

/* ---- softmax over the middle one of (outer, k, inner) dimensions ----
 * inner == 1: rows lie ld* apart; inner > 1: dense (ld* unused).  y may lie over x, dx over dy. */

/* y = exp(x - max) / sum, or, with `logarithm`, its logarithm; max and sum over k. */
dtconv_status DT(softmax_forward)(int64_t outer, int64_t k, int64_t inner, int logarithm, const real *x, int64_t ldx,
                                  real *y, int64_t ldy);
/* dx = y * (dy - sum(dy * y)); with `logarithm` dx = dy - exp(y) * sum(dy). */
dtconv_status DT(softmax_backward)(int64_t outer, int64_t k, int64_t inner, int logarithm, const real *y, int64_t ldy,
                                   const real *dy, int64_t lddy, int accumulate, real *dx, int64_t lddx);

/* ---- cross-entropy over classes: x (outer, k, inner) dense -> loss (outer, inner) ---- */

#ifndef DTCONV_TARGETS
#define DTCONV_TARGETS
typedef enum {
    DTCONV_LABEL_INT32 = 0,
    DTCONV_LABEL_INT64 = 1,
    DTCONV_LABEL_FLOAT32 = 2,
    DTCONV_LABEL_FLOAT64 = 3
} dtconv_label_type;

/* What x is: class scores, probabilities (brought to sum 1 and clipped to [epsilon, 1 - epsilon] as Keras does), or
 * scores whose softmax is written in forward and read in backward. */
typedef enum { DTCONV_SCORES = 0, DTCONV_PROBABILITIES = 1, DTCONV_SOFTMAX = 2 } dtconv_prediction;

/* True classes: either t (outer, k, inner), smoothed to t * (1 - smoothing) + smoothing / k, or labels (outer, inner)
 * in [0, k), of which `ignore` (where use_ignore) gives loss 0. */
typedef struct {
    const void *t; /* real; NULL: labels */
    double smoothing;
    const void *labels;
    dtconv_label_type label_type;
    int use_ignore;
    int64_t ignore;
} dtconv_targets;
#endif

/* loss = -sum(t * log(prediction)).  p (outer, k, inner): the softmax, only for DTCONV_SOFTMAX.
 * DTCONV_ARGUMENT, and nothing is written, where a label lies outside [0, k). */
dtconv_status DT(cross_entropy_forward)(int64_t outer, int64_t k, int64_t inner, dtconv_prediction prediction,
                                        real epsilon, const real *x, const dtconv_targets *targets, real *p,
                                        real *loss);
/* dx from dloss (outer, inner).  DTCONV_SOFTMAX: x is the softmax p, and dp (or NULL) is p's own gradient. */
dtconv_status DT(cross_entropy_backward)(int64_t outer, int64_t k, int64_t inner, dtconv_prediction prediction,
                                         real epsilon, const real *x, const dtconv_targets *targets, const real *dloss,
                                         const real *dp, int accumulate, real *dx);

/* ---- losses that are a mean, or a sum, of a function of two elements: x, t (outer, k, inner) -> loss (outer, inner)
 * ---- */

#ifndef DTCONV_LOSS_KINDS
#define DTCONV_LOSS_KINDS
typedef enum {
#define LOSS(NAME, kind, value, slope) DTCONV_LOSS_##NAME,
#include "../cuda/elementwise_losses.h"
} dtconv_loss;
#endif

/* a: epsilon or delta, see the table; smoothing: of the BINARY kinds.  p: only for DTCONV_LOSS_SIGMOID. */
dtconv_status DT(elementwise_loss_forward)(int64_t outer, int64_t k, int64_t inner, dtconv_loss kind, real a,
                                           real smoothing, const real *x, const real *t, real *p, real *loss);
dtconv_status DT(elementwise_loss_backward)(int64_t outer, int64_t k, int64_t inner, dtconv_loss kind, real a,
                                            real smoothing, const real *x, const real *t, const real *dloss,
                                            const real *dp, int accumulate, real *dx);

/* ---- scalars ---- */

#ifndef DTCONV_MEAN
#define DTCONV_MEAN
typedef enum { DTCONV_WEIGHTED_SUM = 0, DTCONV_MEAN_OF_VALUES = 1, DTCONV_MEAN_OF_WEIGHTS = 2 } dtconv_mean;
#endif

/* result (1) = sum(values * weights) / divisor: 1, the number of values, or the sum of the weights (0 gives 0).
 * values (count), weights (count / inner; each for `inner` values; NULL: 1). */
dtconv_status DT(weighted_mean_forward)(int64_t count, int64_t inner, dtconv_mean reduction, const real *values,
                                        const real *weights, real *result);
dtconv_status DT(weighted_mean_backward)(int64_t count, int64_t inner, dtconv_mean reduction, const real *weights,
                                         const real *dresult, int accumulate, real *dvalues);

/* result (1) = l1 * sum(|w|) + l2 * sum(w^2), and dw = dresult * (l1 * sign(w) + 2 * l2 * w). */
dtconv_status DT(l1_l2_forward)(int64_t count, real l1, real l2, const real *w, real *result);
dtconv_status DT(l1_l2_backward)(int64_t count, real l1, real l2, const real *w, const real *dresult, int accumulate,
                                 real *dw);

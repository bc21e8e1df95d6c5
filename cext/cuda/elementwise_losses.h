/* Losses that are a mean of a function of a prediction x and a truth t: value(x, t) and its slope by x.  The one table
 * of them: C, the kernels for GPUs and the codes of Python (pydtconv/_ext/losses.pyx) are made of it.  A row's place is
 * the kind's code.
 *
 *   LOSS(NAME, kind, value, slope)      e = x - t; a: epsilon, or delta
 *   SUMMED(NAME, kind, value, slope)    a sum, not a mean
 *   LABELLED(NAME, kind, value, slope)  labels that are all 0 or 1 stand for -1 and 1
 *   SMOOTHED(NAME, kind, value, slope)  t is smoothed towards 1/2
 *
 * Who reads the table defines some of these, or LOSS for all; F(name), functions of `real`: F(exp), F(log), F(log1p),
 * F(abs), F(sigmoid); and PARTS once, what begins the definition of an inline function.
 */
/* clang-format off */
#ifdef PARTS
PARTS real between(real v, real low, real high) { return v < low ? low : (v > high ? high : v); }
PARTS real sign_of(real v) { return (real)(v > 0) - (real)(v < 0); }
PARTS real larger(real v, real w) { return v < w ? w : v; }
PARTS real squared(real v) { return v * v; }
#undef PARTS
#else
#ifndef LOSS
#define LOSS(NAME, kind, value, slope)
#endif
#ifndef SUMMED
#define SUMMED LOSS
#endif
#ifndef LABELLED
#define LABELLED LOSS
#endif
#ifndef SMOOTHED
#define SMOOTHED LOSS
#endif

LOSS(SQUARED, "mse", e * e, 2 * e)
LOSS(ABSOLUTE, "mae", F(abs)(e), sign_of(e))
LOSS(PERCENTAGE, "mape", 100 * F(abs)(e) / larger(F(abs)(t), a), 100 * sign_of(e) / larger(F(abs)(t), a))
LOSS(LOGARITHMIC, "msle", squared(F(log)(larger(x, a) + 1) - F(log)(larger(t, a) + 1)),
     x > a ? 2 * (F(log)(x + 1) - F(log)(larger(t, a) + 1)) / (x + 1) : 0)
LOSS(HUBER, "huber", F(abs)(e) <= a ? e * e / 2 : a * F(abs)(e) - a * a / 2, between(e, -a, a))
LOSS(LOG_COSH, "logcosh", F(abs)(e) + F(log1p)(F(exp)(-2 * F(abs)(e))) - (real)0.69314718055994531, 1 - 2 / (1 + F(exp)(2 * e)))
LABELLED(HINGE, "hinge", larger(1 - t * x, 0), t * x < 1 ? -t : 0)
LABELLED(SQUARED_HINGE, "squared_hinge", squared(larger(1 - t * x, 0)), -2 * t * larger(1 - t * x, 0))
LOSS(POISSON, "poisson", x - t * F(log)(x + a), 1 - t / (x + a))
/* t log(t / x), both clipped to [a, 1] */
SUMMED(DIVERGENCE, "kl_divergence", between(t, a, 1) * F(log)(between(t, a, 1) / between(x, a, 1)),
       x >= a && x <= 1 ? -between(t, a, 1) / x : 0)
/* binary cross-entropies: x clipped to [a, 1 - a]; of scores, whose sigmoid is not clipped; the same where forward writes
 * the sigmoid, which backward reads as x */
SMOOTHED(BINARY, "binary", -(t * F(log)(between(x, a, 1 - a)) + (1 - t) * F(log)(1 - between(x, a, 1 - a))),
         x >= a && x <= 1 - a ? (x - t) / (x * (1 - x)) : 0)
SMOOTHED(BINARY_SCORES, "binary of scores", larger(x, 0) - x * t + F(log1p)(F(exp)(-F(abs)(x))), F(sigmoid)(x) - t)
SMOOTHED(SIGMOID, "sigmoid", larger(x, 0) - x * t + F(log1p)(F(exp)(-F(abs)(x))), x - t)

#undef LOSS
#undef SUMMED
#undef LABELLED
#undef SMOOTHED
#endif
/* clang-format on */

/* Update steps of optimizers over flat arrays of n parameters w with gradients g; slots are updated in place.
 *
 * The formulas are Keras 3's.  weight_decay is decoupled and comes first, as there: w -= lr * weight_decay * w.
 * step counts from 1.  Results do not depend on the number of threads.
 * No include guard: see dtconv_both.h.
 */
#ifndef real
#include "dtconv_real.h"
#endif

/* w -= lr g.  Moves 3 reals per parameter. */
dtconv_status DT(sgd)(int64_t n, real *w, const real *g, double lr, double weight_decay);

/* v = momentum v - lr g; w += v, or with nesterov w += momentum v - lr g.  5 reals. */
dtconv_status DT(momentum)(int64_t n, real *w, const real *g, real *v, double lr, double momentum, int nesterov,
                           double weight_decay);

/* v = rho v + (1 - rho) g^2; centered (average != NULL): a = rho a + (1 - rho) g, d = v - a^2, else d = v;
 * u = lr g / sqrt(d + epsilon); with momentum (velocity != NULL): m = momentum m + u, w -= m, else w -= u.
 * 5 reals, 2 more for each of average and velocity. */
dtconv_status DT(rmsprop)(int64_t n, real *w, const real *g, real *v, real *average, real *velocity, double lr,
                          double rho, double momentum, double epsilon, double weight_decay);

/* m += (1 - beta_1)(g - m); v += (1 - beta_2)(g^2 - v); amsgrad (largest != NULL): v^ = max(v^, v), else v^ = v;
 * w -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v^) + epsilon).  7 reals, 9 with amsgrad. */
dtconv_status DT(adam)(int64_t n, real *w, const real *g, real *m, real *v, real *largest, double lr, double beta_1,
                       double beta_2, double epsilon, int64_t step, double weight_decay);

/* Adam with Nesterov's momentum: u_t = beta_1 (1 - 0.96^t / 2); u_product: the product of u_1 .. u_t (t = step
 * included); m^ = u_{t+1} m / (1 - u_product u_{t+1}) + (1 - u_t) g / (1 - u_product); v^ = v / (1 - beta_2^t); w -= lr
 * m^ / (sqrt(v^) + epsilon).  7 reals. */
dtconv_status DT(nadam)(int64_t n, real *w, const real *g, real *m, real *v, double lr, double beta_1, double beta_2,
                        double epsilon, int64_t step, double u_product, double weight_decay);

/* a += g^2; w -= lr g / sqrt(a + epsilon).  5 reals. */
dtconv_status DT(adagrad)(int64_t n, real *w, const real *g, real *a, double lr, double epsilon, double weight_decay);

/* a = rho a + (1 - rho) g^2; u = -sqrt(d + epsilon) g / sqrt(a + epsilon); d = rho d + (1 - rho) u^2; w += lr u.  7
 * reals. */
dtconv_status DT(adadelta)(int64_t n, real *w, const real *g, real *a, real *d, double lr, double rho, double epsilon,
                           double weight_decay);

/* m += (1 - beta_1)(g - m); u = max(beta_2 u, |g|); w -= lr m / ((1 - beta_1^t)(u + epsilon)).  7 reals. */
dtconv_status DT(adamax)(int64_t n, real *w, const real *g, real *m, real *u, double lr, double beta_1, double beta_2,
                         double epsilon, int64_t step, double weight_decay);

/* w -= lr sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g.  5 reals. */
dtconv_status DT(lion)(int64_t n, real *w, const real *g, real *m, double lr, double beta_1, double beta_2,
                       double weight_decay);

/* Follow the regularized leader (McMahan et al., 2013) with shrinkage; a: accumulator, z: linear term; p = -lr_power:
 * s = (a + g^2)^p; z += g + 2 shrinkage w - (s - a^p) / lr w; a += g^2;
 * w = (clip(z, -l1, l1) - z) / (s / lr + 2 (l2 + beta / (2 lr))).  7 reals. */
dtconv_status DT(ftrl)(int64_t n, real *w, const real *g, real *a, real *z, double lr, double lr_power, double l1,
                       double l2, double shrinkage, double beta, double weight_decay);

/* *result = the sum of x^2, summed in an order that depends on n alone.  1 real. */
dtconv_status DT(squared_norm)(int64_t n, const real *x, double *result);

/* x *= factor.  2 reals. */
dtconv_status DT(scale)(int64_t n, real *x, double factor);

/* x = min(max(x, -limit), limit).  2 reals. */
dtconv_status DT(clip_values)(int64_t n, real *x, double limit);

/* y += factor x.  3 reals. */
dtconv_status DT(add_scaled)(int64_t n, const real *x, double factor, real *y);

/* average = momentum average + (1 - momentum) x.  3 reals. */
dtconv_status DT(moving_average)(int64_t n, const real *x, double momentum, real *average);

/* *result = whether any x is infinite or NaN.  1 real. */
dtconv_status DT(has_nonfinite)(int64_t n, const real *x, int *result);

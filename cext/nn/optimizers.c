/* Update steps of optimizers: one pass over memory each, formulas in cext/include/dtconv_optimizers.h.
 *
 * All are bound by memory.  The arrays are cut into blocks that do not depend on the number of threads.
 */
#include "dtconv_optimizers.h"

#include <math.h>

#include "dtconv_math.h"

enum { BLOCK = 4096, PARALLEL = 32768, SLICES = 256, LANES = 16 };

/* for each i in [0, n): the statements; each thread does whole blocks */
/* clang-format off */
#define FOR_EACH(n, ...) \
    const int64_t blocks = (n + BLOCK - 1) / BLOCK, some = dtconv_piece(blocks); \
    _Pragma("omp parallel for num_threads(dtconv_get_num_threads()) schedule(dynamic, some) if (n >= PARALLEL)") \
    for (int64_t block = 0; block < blocks; block++) { \
        const int64_t end = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n; \
        _Pragma("omp simd") for (int64_t i = block * BLOCK; i < end; i++) { __VA_ARGS__ } \
    } \
    return DTCONV_OK
/* clang-format on */

#define KEEP const real keep = (real)(1 - lr * weight_decay)

dtconv_status DT(sgd)(int64_t n, real *w, const real *g, double lr, double weight_decay) {
    KEEP, rate = (real)lr;
    FOR_EACH(n, w[i] = keep * w[i] - rate * g[i];);
}

dtconv_status DT(momentum)(int64_t n, real *w, const real *g, real *v, double lr, double momentum, int nesterov,
                           double weight_decay) {
    KEEP, rate = (real)lr, mu = (real)momentum;
    if (nesterov) {
        FOR_EACH(n, const real step = rate * g[i]; v[i] = mu * v[i] - step; w[i] = keep * w[i] + (mu * v[i] - step););
    }
    FOR_EACH(n, v[i] = mu * v[i] - rate * g[i]; w[i] = keep * w[i] + v[i];);
}

dtconv_status DT(rmsprop)(int64_t n, real *w, const real *g, real *v, real *average, real *velocity, double lr,
                          double rho, double momentum, double epsilon, double weight_decay) {
    KEEP, rate = (real)lr, r = (real)rho, r1 = (real)(1 - rho), mu = (real)momentum, eps = (real)epsilon;
    if (average && velocity) {
        FOR_EACH(n, v[i] = r * v[i] + r1 * (g[i] * g[i]); average[i] = r * average[i] + r1 * g[i];
                 velocity[i] = mu * velocity[i] + rate * g[i] / DT(sqrt_)(v[i] - average[i] * average[i] + eps);
                 w[i] = keep * w[i] - velocity[i];);
    } else if (average) {
        FOR_EACH(n, v[i] = r * v[i] + r1 * (g[i] * g[i]); average[i] = r * average[i] + r1 * g[i];
                 w[i] = keep * w[i] - rate * g[i] / DT(sqrt_)(v[i] - average[i] * average[i] + eps););
    } else if (velocity) {
        FOR_EACH(n, v[i] = r * v[i] + r1 * (g[i] * g[i]);
                 velocity[i] = mu * velocity[i] + rate * g[i] / DT(sqrt_)(v[i] + eps);
                 w[i] = keep * w[i] - velocity[i];);
    }
    FOR_EACH(n, v[i] = r * v[i] + r1 * (g[i] * g[i]); w[i] = keep * w[i] - rate * g[i] / DT(sqrt_)(v[i] + eps););
}

dtconv_status DT(adam)(int64_t n, real *w, const real *g, real *m, real *v, real *largest, double lr, double beta_1,
                       double beta_2, double epsilon, int64_t step, double weight_decay) {
    if (step < 1) return DTCONV_ARGUMENT;
    const double alpha = lr * sqrt(1 - pow(beta_2, (double)step)) / (1 - pow(beta_1, (double)step));
    KEEP, a = (real)alpha, c1 = (real)(1 - beta_1), c2 = (real)(1 - beta_2), eps = (real)epsilon;
    if (largest) {
        FOR_EACH(n, m[i] += c1 * (g[i] - m[i]); v[i] += c2 * (g[i] * g[i] - v[i]);
                 largest[i] = v[i] > largest[i] ? v[i] : largest[i];
                 w[i] = keep * w[i] - a * m[i] / (DT(sqrt_)(largest[i]) + eps););
    }
    FOR_EACH(n, m[i] += c1 * (g[i] - m[i]); v[i] += c2 * (g[i] * g[i] - v[i]);
             w[i] = keep * w[i] - a * m[i] / (DT(sqrt_)(v[i]) + eps););
}

dtconv_status DT(nadam)(int64_t n, real *w, const real *g, real *m, real *v, double lr, double beta_1, double beta_2,
                        double epsilon, int64_t step, double u_product, double weight_decay) {
    if (step < 1) return DTCONV_ARGUMENT;
    const double u = beta_1 * (1 - 0.5 * pow(0.96, (double)step)),
                 next = beta_1 * (1 - 0.5 * pow(0.96, (double)step + 1));
    KEEP, cm = (real)(lr * next / (1 - u_product * next)), cg = (real)(lr * (1 - u) / (1 - u_product));
    const real cv = (real)(1 / (1 - pow(beta_2, (double)step)));
    const real c1 = (real)(1 - beta_1), c2 = (real)(1 - beta_2), eps = (real)epsilon;
    FOR_EACH(n, m[i] += c1 * (g[i] - m[i]); v[i] += c2 * (g[i] * g[i] - v[i]);
             w[i] = keep * w[i] - (cm * m[i] + cg * g[i]) / (DT(sqrt_)(cv * v[i]) + eps););
}

dtconv_status DT(adagrad)(int64_t n, real *w, const real *g, real *a, double lr, double epsilon, double weight_decay) {
    KEEP, rate = (real)lr, eps = (real)epsilon;
    FOR_EACH(n, a[i] += g[i] * g[i]; w[i] = keep * w[i] - rate * g[i] / DT(sqrt_)(a[i] + eps););
}

dtconv_status DT(adadelta)(int64_t n, real *w, const real *g, real *a, real *d, double lr, double rho, double epsilon,
                           double weight_decay) {
    KEEP, rate = (real)lr, r = (real)rho, r1 = (real)(1 - rho), eps = (real)epsilon;
    FOR_EACH(n, a[i] = r * a[i] + r1 * (g[i] * g[i]);
             const real u = -DT(sqrt_)(d[i] + eps) * g[i] / DT(sqrt_)(a[i] + eps); d[i] = r * d[i] + r1 * (u * u);
             w[i] = keep * w[i] + rate * u;);
}

dtconv_status DT(adamax)(int64_t n, real *w, const real *g, real *m, real *u, double lr, double beta_1, double beta_2,
                         double epsilon, int64_t step, double weight_decay) {
    if (step < 1) return DTCONV_ARGUMENT;
    KEEP, rate = (real)(lr / (1 - pow(beta_1, (double)step)));
    const real c1 = (real)(1 - beta_1), b2 = (real)beta_2, eps = (real)epsilon;
    FOR_EACH(n, const real size = g[i] < 0 ? -g[i] : g[i]; const real old = b2 * u[i]; m[i] += c1 * (g[i] - m[i]);
             u[i] = old > size ? old : size; w[i] = keep * w[i] - rate * m[i] / (u[i] + eps););
}

dtconv_status DT(lion)(int64_t n, real *w, const real *g, real *m, double lr, double beta_1, double beta_2,
                       double weight_decay) {
    KEEP, rate = (real)lr, b1 = (real)beta_1, c1 = (real)(1 - beta_1), b2 = (real)beta_2, c2 = (real)(1 - beta_2);
    FOR_EACH(n, const real u = b1 * m[i] + c1 * g[i]; const real sign = u > 0 ? 1 : (u < 0 ? -1 : 0);
             w[i] = keep * w[i] - rate * sign; m[i] = b2 * m[i] + c2 * g[i];);
}

static inline real root_power(real x, double p) { return p == 0.5 ? DT(sqrt_)(x) : DT(pow_)(x, (real)p); }

dtconv_status DT(ftrl)(int64_t n, real *w, const real *g, real *a, real *z, double lr, double lr_power, double l1,
                       double l2, double shrinkage, double beta, double weight_decay) {
    KEEP, rate = (real)lr, bound = (real)l1, twice = (real)(2 * (l2 + beta / (2 * lr))), shrink = (real)(2 * shrinkage);
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static) if (n >= PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        const real x = keep * w[i], sum = a[i] + g[i] * g[i], s = root_power(sum, -lr_power);
        z[i] += g[i] + shrink * x - (s - root_power(a[i], -lr_power)) / rate * x;
        const real clipped = z[i] > bound ? bound : (z[i] < -bound ? -bound : z[i]);
        w[i] = (clipped - z[i]) / (s / rate + twice);
        a[i] = sum;
    }
    return DTCONV_OK;
}

/* Sum of squares of up to BLOCK elements. */
static double block_norm(int64_t n, const real *x) {
    real lanes[LANES] = {0};
    double sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += x[i + l] * x[i + l];
    for (; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int l = 0; l < LANES; l++) sum += (double)lanes[l];
    return sum;
}

dtconv_status DT(squared_norm)(int64_t n, const real *x, double *result) {
    double partial[SLICES] = {0};
    const int64_t blocks = (n + BLOCK / 4 - 1) / (BLOCK / 4);
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static) if (n >= PARALLEL)
    for (int64_t s = 0; s < SLICES; s++) {
        double sum = 0;
        for (int64_t b = blocks * s / SLICES; b < blocks * (s + 1) / SLICES; b++) {
            const int64_t from = b * (BLOCK / 4), count = n - from < BLOCK / 4 ? n - from : BLOCK / 4;
            sum += block_norm(count, x + from);
        }
        partial[s] = sum;
    }
    for (int half = SLICES / 2; half; half /= 2)
        for (int s = 0; s < half; s++) partial[s] += partial[s + half];
    *result = partial[0];
    return DTCONV_OK;
}

dtconv_status DT(scale)(int64_t n, real *x, double factor) {
    const real f = (real)factor;
    FOR_EACH(n, x[i] *= f;);
}

dtconv_status DT(clip_values)(int64_t n, real *x, double limit) {
    const real high = (real)limit;
    FOR_EACH(n, x[i] = x[i] > high ? high : (x[i] < -high ? -high : x[i]););
}

dtconv_status DT(add_scaled)(int64_t n, const real *x, double factor, real *y) {
    const real f = (real)factor;
    FOR_EACH(n, y[i] += f * x[i];);
}

dtconv_status DT(moving_average)(int64_t n, const real *x, double momentum, real *average) {
    const real keep = (real)momentum, rest = (real)(1 - momentum);
    FOR_EACH(n, average[i] = keep * average[i] + rest * x[i];);
}

dtconv_status DT(has_nonfinite)(int64_t n, const real *x, int *result) {
    int bad = 0;
#pragma omp parallel for simd num_threads(dtconv_get_num_threads()) schedule(static) \
    reduction(| : bad) if (parallel : n >= PARALLEL)
    for (int64_t i = 0; i < n; i++) bad |= !(x[i] - x[i] == 0);
    *result = bad;
    return DTCONV_OK;
}

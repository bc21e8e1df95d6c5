/* Update steps of optimizers: one sweep each, formulas in cext/include/dtconv_optimizers.h and cext/nn/optimizers.c.
 *
 * s: numbers that change from step to step, which lie in memory so that a recorded step need not be recorded again.
 */
#include "dtconv_cuda.h"
#include "functions.h"

/* s: keep, rate */
GLOBAL sgd(int64_t n, Array<const double> s, Array<real> w, Array<const real> g) {
    const real keep = (real)s[0], rate = (real)s[1];
    sweep(n, aligned(w, g), [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        pack<W> own = load<W>(readable(w), i);
        const pack<W> slopes = load<W>(g, i);
        for (int e = 0; e < W; e++) own.v[e] = keep * own.v[e] - rate * slopes.v[e];
        store<W>(w, i, own);
    });
}
KERNEL(sgd)

/* s: keep, rate, momentum */
GLOBAL momentum(int64_t n, Array<const double> s, int64_t nesterov, Array<real> w, Array<const real> g, Array<real> v) {
    const real keep = (real)s[0], rate = (real)s[1], mu = (real)s[2];
    sweep(n, aligned(w, g, v), [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        pack<W> own = load<W>(readable(w), i), speed = load<W>(readable(v), i);
        const pack<W> slopes = load<W>(g, i);
        for (int e = 0; e < W; e++) {
            const real step = rate * slopes.v[e], velocity = mu * speed.v[e] - step;
            speed.v[e] = velocity;
            own.v[e] = keep * own.v[e] + (nesterov ? mu * velocity - step : velocity);
        }
        store<W>(v, i, speed);
        store<W>(w, i, own);
    });
}
KERNEL(momentum)

/* s: keep, rate, rho, 1 - rho, momentum, epsilon */
GLOBAL rmsprop(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> v, Array<real> average,
               Array<real> velocity) {
    const real keep = (real)s[0], rate = (real)s[1], r = (real)s[2], r1 = (real)s[3], mu = (real)s[4], eps = (real)s[5];
    FOR_EACH(i, n) {
        const real square = r * v[i] + r1 * (g[i] * g[i]);
        v[i] = square;
        real spread = square + eps;
        if (average) {
            const real mean = r * average[i] + r1 * g[i];
            average[i] = mean;
            spread = square - mean * mean + eps;
        }
        real step = rate * g[i] / sqrt_(spread);
        if (velocity) {
            step += mu * velocity[i];
            velocity[i] = step;
        }
        w[i] = keep * w[i] - step;
    }
}
KERNEL(rmsprop)

/* s: keep, alpha, 1 - beta_1, 1 - beta_2, epsilon; largest: of AMSGrad */
GLOBAL adam(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> m, Array<real> v,
            Array<real> largest) {
    const real keep = (real)s[0], a = (real)s[1], c1 = (real)s[2], c2 = (real)s[3], eps = (real)s[4];
    sweep(n, aligned(w, g, m, v, largest), [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        pack<W> own = load<W>(readable(w), i), mean = load<W>(readable(m), i), square = load<W>(readable(v), i);
        const pack<W> slopes = load<W>(g, i);
        for (int e = 0; e < W; e++) {
            mean.v[e] += c1 * (slopes.v[e] - mean.v[e]);
            square.v[e] += c2 * (slopes.v[e] * slopes.v[e] - square.v[e]);
        }
        store<W>(m, i, mean);
        store<W>(v, i, square);
        if (largest) {
            const pack<W> before = load<W>(readable(largest), i);
            for (int e = 0; e < W; e++) square.v[e] = square.v[e] > before.v[e] ? square.v[e] : before.v[e];
            store<W>(largest, i, square);
        }
        for (int e = 0; e < W; e++) own.v[e] = keep * own.v[e] - a * mean.v[e] / (sqrt_(square.v[e]) + eps);
        store<W>(w, i, own);
    });
}
KERNEL(adam)

/* s: keep, cm, cg, cv, 1 - beta_1, 1 - beta_2, epsilon */
GLOBAL nadam(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> m, Array<real> v) {
    const real keep = (real)s[0], cm = (real)s[1], cg = (real)s[2], cv = (real)s[3], c1 = (real)s[4], c2 = (real)s[5];
    const real eps = (real)s[6];
    FOR_EACH(i, n) {
        const real mean = m[i] + c1 * (g[i] - m[i]), square = v[i] + c2 * (g[i] * g[i] - v[i]);
        m[i] = mean;
        v[i] = square;
        w[i] = keep * w[i] - (cm * mean + cg * g[i]) / (sqrt_(cv * square) + eps);
    }
}
KERNEL(nadam)

/* s: keep, rate, epsilon */
GLOBAL adagrad(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> a) {
    const real keep = (real)s[0], rate = (real)s[1], eps = (real)s[2];
    FOR_EACH(i, n) {
        const real sum = a[i] + g[i] * g[i];
        a[i] = sum;
        w[i] = keep * w[i] - rate * g[i] / sqrt_(sum + eps);
    }
}
KERNEL(adagrad)

/* s: keep, rate, rho, 1 - rho, epsilon */
GLOBAL adadelta(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> a, Array<real> d) {
    const real keep = (real)s[0], rate = (real)s[1], r = (real)s[2], r1 = (real)s[3], eps = (real)s[4];
    FOR_EACH(i, n) {
        const real sum = r * a[i] + r1 * (g[i] * g[i]), u = -sqrt_(d[i] + eps) * g[i] / sqrt_(sum + eps);
        a[i] = sum;
        d[i] = r * d[i] + r1 * (u * u);
        w[i] = keep * w[i] + rate * u;
    }
}
KERNEL(adadelta)

/* s: keep, rate, 1 - beta_1, beta_2, epsilon */
GLOBAL adamax(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> m, Array<real> u) {
    const real keep = (real)s[0], rate = (real)s[1], c1 = (real)s[2], b2 = (real)s[3], eps = (real)s[4];
    FOR_EACH(i, n) {
        const real size = g[i] < 0 ? -g[i] : g[i], old = b2 * u[i], mean = m[i] + c1 * (g[i] - m[i]);
        m[i] = mean;
        u[i] = old > size ? old : size;
        w[i] = keep * w[i] - rate * mean / (u[i] + eps);
    }
}
KERNEL(adamax)

/* s: keep, rate, beta_1, 1 - beta_1, beta_2, 1 - beta_2 */
GLOBAL lion(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> m) {
    const real keep = (real)s[0], rate = (real)s[1], b1 = (real)s[2], c1 = (real)s[3], b2 = (real)s[4], c2 = (real)s[5];
    FOR_EACH(i, n) {
        const real u = b1 * m[i] + c1 * g[i], sign = u > 0 ? 1 : (u < 0 ? -1 : 0);
        w[i] = keep * w[i] - rate * sign;
        m[i] = b2 * m[i] + c2 * g[i];
    }
}
KERNEL(lion)

__device__ inline real root_power(real x, real power) { return power == (real)0.5 ? sqrt_(x) : pow_(x, power); }

/* s: keep, rate, -power, l1, 2 (l2 + beta / (2 rate)), 2 shrinkage */
GLOBAL ftrl(int64_t n, Array<const double> s, Array<real> w, Array<const real> g, Array<real> a, Array<real> z) {
    const real keep = (real)s[0], rate = (real)s[1], power = (real)s[2], bound = (real)s[3], twice = (real)s[4];
    const real shrink = (real)s[5];
    FOR_EACH(i, n) {
        const real x = keep * w[i], sum = a[i] + g[i] * g[i], root = root_power(sum, power);
        z[i] += g[i] + shrink * x - (root - root_power(a[i], power)) / rate * x;
        const real clipped = z[i] > bound ? bound : (z[i] < -bound ? -bound : z[i]);
        w[i] = (clipped - z[i]) / (root / rate + twice);
        a[i] = sum;
    }
}
KERNEL(ftrl)

/* s: factor */
GLOBAL scale(int64_t n, Array<const double> s, Array<real> x) {
    const real f = (real)s[0];
    FOR_EACH(i, n) x[i] *= f;
}
KERNEL(scale)

/* s: limit */
GLOBAL clip(int64_t n, Array<const double> s, Array<real> x) {
    const real high = (real)s[0];
    FOR_EACH(i, n) x[i] = x[i] > high ? high : (x[i] < -high ? -high : x[i]);
}
KERNEL(clip)

/* parts[block] = the sum of the squares of a block's share, always in the same order */
GLOBAL BOUNDS(256) squares(int64_t n, Array<const real> x, Array<double> parts) {
    SHARED(double, sums, WARPS);
    double own = 0;
    FOR_EACH(i, n) own += (double)x[i] * (double)x[i];
    const double sum = block_sum(own, sums);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
KERNEL(squares)

/* s: limit; x made smaller so that the norm, of which parts are squares, is no larger */
GLOBAL clip_norm(int64_t n, Array<const double> s, int64_t count, Array<const double> parts, Array<real> x) {
    double square = 0;
    for (int64_t i = 0; i < count; i++) square += parts[i];
    const double norm = sqrt(square);
    if (norm <= s[0]) return;
    const real factor = (real)(s[0] / norm);
    FOR_EACH(i, n) x[i] *= factor;
}
KERNEL(clip_norm)

/* s: factor; y += factor * x */
GLOBAL add_scaled(int64_t n, Array<const double> s, Array<const real> x, Array<real> y) {
    const real f = (real)s[0];
    FOR_EACH(i, n) y[i] += f * x[i];
}
KERNEL(add_scaled)

/* s: momentum, 1 - momentum */
GLOBAL moving_average(int64_t n, Array<const double> s, Array<const real> x, Array<real> average) {
    const real keep = (real)s[0], rest = (real)s[1];
    FOR_EACH(i, n) average[i] = keep * average[i] + rest * x[i];
}
KERNEL(moving_average)

/* s: count; the gradient is the mean of those that were summed, and the sum begins anew */
GLOBAL take_mean(int64_t n, Array<const double> s, Array<real> total, Array<real> gradient) {
    const real count = (real)s[0];
    FOR_EACH(i, n) {
        gradient[i] = total[i] / count;
        total[i] = 0;
    }
}
KERNEL(take_mean)

/* x = value */
GLOBAL assign(int64_t n, Array<const double> s, Array<real> x, Array<const real> value) {
    FOR_EACH(i, n) x[i] = value[i];
}
KERNEL(assign)

/* parts[block] = how many of a block's share are not finite */
GLOBAL BOUNDS(256) nonfinite(int64_t n, Array<const real> x, Array<double> parts) {
    SHARED(double, sums, WARPS);
    double own = 0;
    FOR_EACH(i, n) own += x[i] - x[i] == 0 ? 0 : 1;
    const double sum = block_sum(own, sums);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
KERNEL(nonfinite)

/* Element-wise operators over strided arrays: functions of one and of two arguments, copies, sums of two arrays.
 *
 * layout: see layout.h.  Those of one argument are in activations.h, those of two are cext/nn/binary_spans.c's.
 */
#include "dtconv_cuda.h"
#include "layout.h"

enum unary {
#define KIND(NAME, kind, f, gradient) NAME,
#include "activations.h"
};
enum binary { ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, POWER_OF, EQUAL };

#include "functions.h"
#define F(name) name##_
#define PART __device__ inline
#include "activation_parts.h"

struct parameters {
    real p[3];
};

__device__ inline real normal_cdf(real x) { return (real)0.5 * erfc_(-x * (real)0.70710678118654752440); }

__device__ inline real function(int kind, const parameters &a, real x) {
    const real *p = a.p;
    switch (kind) {
#define KIND(NAME, kind, f, gradient) \
    case NAME:                        \
        return f;
#include "activations.h"
    }
    return x;
}

/* g f' from v: y or x, as the kind says */
__device__ inline real through(int kind, const parameters &a, real v, real g) {
    const real *p = a.p, x = v, y = v;
    switch (kind) {
#define KIND(NAME, kind, f, gradient) \
    case NAME:                        \
        return gradient;
#include "activations.h"
    }
    return g;
}

__device__ inline parameters of(double p0, double p1, double p2) {
    parameters a = {{(real)p0, (real)p1, (real)p2}};
    return a;
}

/* What map is given: operands that may be absent, which read as 0. */
template <int K>
struct operands {
    Array<const real> of[K];
};

/* y (+)= f(values of the K operands); layout: of the operands, then of y.  Dense ones are moved in packs. */
template <int K, typename F>
__device__ inline void map(int64_t n, Array<const int64_t> layout, const operands<K> &x, int64_t accumulate,
                           Array<real> y, const F &f) {
    bool packs = !layout && aligned(y);
    for (int k = 0; k < K; k++) packs = packs && aligned(x.of[k]);
    sweep(n, packs, [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const places<K + 1> at = places_of<K + 1>(layout, i);
        pack<W> given[K], found;
        for (int k = 0; k < K; k++) {
            for (int e = 0; e < W; e++) given[k].v[e] = 0;
            if (x.of[k]) given[k] = load<W>(x.of[k], at.of[k]);
        }
        if (accumulate) found = load<W>(readable(y), at.of[K]);
        for (int e = 0; e < W; e++) {
            real values[K];
            for (int k = 0; k < K; k++) values[k] = given[k].v[e];
            const real value = f(values);
            found.v[e] = accumulate ? found.v[e] + value : value;
        }
        store<W>(y, at.of[K], found);
    });
}

/* y = f(x) */
GLOBAL unary_forward(int64_t kind, double p0, double p1, double p2, int64_t n, Array<const int64_t> layout,
                     Array<const real> x, Array<real> y) {
    const parameters p = of(p0, p1, p2);
    map<1>(n, layout, {{x}}, 0, y, [&](const real *v) { return function((int)kind, p, v[0]); });
}
KERNEL(unary_forward)

/* dx (+)= dy f'(v) */
GLOBAL unary_backward(int64_t kind, double p0, double p1, double p2, int64_t accumulate, int64_t n,
                      Array<const int64_t> layout, Array<const real> v, Array<const real> dy, Array<real> dx) {
    const parameters p = of(p0, p1, p2);
    map<2>(n, layout, {{v, dy}}, accumulate, dx, [&](const real *a) { return through((int)kind, p, a[0], a[1]); });
}
KERNEL(unary_backward)

/* y = f(a + b) */
GLOBAL add_activation(int64_t kind, double p0, double p1, double p2, int64_t n, Array<const int64_t> layout,
                      Array<const real> a, Array<const real> b, Array<real> y) {
    const parameters p = of(p0, p1, p2);
    map<2>(n, layout, {{a, b}}, 0, y, [&](const real *v) { return function((int)kind, p, v[0] + v[1]); });
}
KERNEL(add_activation)

/* y (+)= factor * x */
GLOBAL copy(double factor, int64_t accumulate, int64_t n, Array<const int64_t> layout, Array<const real> x,
            Array<real> y) {
    const real f = (real)factor;
    map<1>(n, layout, {{x}}, accumulate, y, [&](const real *v) { return f * v[0]; });
}
KERNEL(copy)

GLOBAL fill(double value, int64_t n, Array<const int64_t> layout, Array<real> y) {
    FOR_EACH(i, n) y[places_of<1>(layout, i).of[0]] = (real)value;
}
KERNEL(fill)

/* y = bias, residual and activation of z: f(z + b + r), rows of c elements; kept: z + b + r for a backward that needs
 * it */
GLOBAL finish(int64_t kind, double p0, double p1, double p2, int64_t rows, int64_t c, Array<const real> bias,
              Array<const real> residual, int64_t ldr, Array<real> kept, Array<real> y, int64_t ldy) {
    const parameters p = of(p0, p1, p2);
    const bool packs = (c | ldr | ldy) % PACK == 0 && aligned(bias, residual, kept, y);
    sweep(rows * c, packs, [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const cell at = cell_of(i, c);
        pack<W> z = load<W>(readable(y), at.row * ldy + at.column);
        if (bias) add(z, load<W>(bias, at.column));
        if (residual) add(z, load<W>(residual, at.row * ldr + at.column));
        if (kept) store<W>(kept, i, z);
        for (int e = 0; e < W; e++) z.v[e] = function((int)kind, p, z.v[e]);
        store<W>(y, at.row * ldy + at.column, z);
    });
}
KERNEL(finish)

__device__ inline real both(int kind, real a, real b) {
    switch (kind) {
        case ADD:
            return a + b;
        case SUBTRACT:
            return a - b;
        case MULTIPLY:
            return a * b;
        case DIVIDE:
            return a / b;
        case MAXIMUM:
            return a != a || a > b ? a : b;
        case MINIMUM:
            return a != a || a < b ? a : b;
        case POWER_OF:
            return pow_(a, b);
    }
    return a == b ? 1 : 0;
}

/* y = a op b */
GLOBAL binary_forward(int64_t kind, int64_t n, Array<const int64_t> layout, Array<const real> a, Array<const real> b,
                      Array<real> y) {
    map<2>(n, layout, {{a, b}}, 0, y, [&](const real *v) { return both((int)kind, v[0], v[1]); });
}
KERNEL(binary_forward)

/* The gradient of one operand; a, b and y: none where the kind does not read them. */
__device__ inline real gradient(int kind, int operand, real dy, real a, real b, real y) {
    switch (kind) {
        case ADD:
            return dy;
        case SUBTRACT:
            return operand ? -dy : dy;
        case MULTIPLY:
            return dy * (operand ? a : b);
        case DIVIDE:
            return operand ? -dy * y / b : dy / b;
        case MAXIMUM:
        case MINIMUM: {
            if (a == b) return (real)0.5 * dy;
            const bool first = (kind == MAXIMUM) == (a > b);
            return first == (operand == 0) ? dy : 0;
        }
        case POWER_OF:
            if (operand) return a == 0 ? 0 : dy * pow_(a, b) * log_(a);
            return b == 0 ? 0 : dy * b * pow_(a, b - 1);
    }
    return 0;
}

/* out (+)= the gradient of operand 0 or 1; layout: dy, a, b, y, out */
GLOBAL binary_backward(int64_t kind, int64_t operand, int64_t accumulate, int64_t n, Array<const int64_t> layout,
                       Array<const real> dy, Array<const real> a, Array<const real> b, Array<const real> y,
                       Array<real> out) {
    map<4>(n, layout, {{dy, a, b, y}}, accumulate, out,
           [&](const real *v) { return gradient((int)kind, (int)operand, v[0], v[1], v[2], v[3]); });
}
KERNEL(binary_backward)

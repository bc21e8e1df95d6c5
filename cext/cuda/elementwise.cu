/* Element-wise operators over strided arrays: functions of one and of two arguments, copies, sums of two arrays.
 *
 * layout: dims, then the extents, then for each operand its strides, all in elements; none given: all operands are
 * dense and of one shape.  An operand that is broadcast has strides of 0.  The functions are those of
 * cext/nn/unary_spans.c and binary_spans.c.
 */
#include "dtconv_cuda.h"

enum unary {
    LINEAR,
    RELU,
    RELU6,
    LEAKY_RELU,
    SIGMOID,
    TANH,
    ELU,
    EXP,
    SOFTPLUS,
    HARD_SIGMOID,
    SQRT,
    RECIPROCAL,
    AFFINE,
    FROM_INPUT,
    CLIP,
    RELU_GENERAL,
    GELU,
    GELU_TANH,
    SILU,
    SOFTSIGN,
    HARD_SILU,
    MISH,
    LOG_SIGMOID,
    THRESHOLD,
    TANH_SHRINK,
    HARD_SHRINK,
    SOFT_SHRINK,
    SQUAREPLUS,
    SPARSE_PLUS,
    ABS,
    SQUARE,
    LOG,
    POWER,
    SIGN
};
enum binary { ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, POWER_OF, EQUAL };

#include "functions.h"

struct parameters {
    real p[3];
};

__device__ inline real gelu_inner(real x) { return (real)0.79788456080286535588 * (x + (real)0.044715 * x * x * x); }

__device__ inline real normal_cdf(real x) { return (real)0.5 * erfc_(-x * (real)0.70710678118654752440); }

__device__ inline real function(int kind, const parameters &a, real x) {
    const real *p = a.p;
    switch (kind) {
        case RELU:
            return x < 0 ? 0 : x;
        case RELU6:
            return x < 0 ? 0 : (x > 6 ? 6 : x);
        case LEAKY_RELU:
            return x < 0 ? p[0] * x : x;
        case SIGMOID:
            return sigmoid_(x);
        case TANH:
            return tanh_(x);
        case ELU:
            return p[1] * (x > 0 ? x : p[0] * expm1_(x / p[2]));
        case EXP:
            return exp_(x);
        case SOFTPLUS:
            return softplus_(x);
        case CLIP:
            return x < p[0] ? p[0] : (x > p[1] ? p[1] : x);
        case HARD_SIGMOID: {
            const real z = p[0] * x;
            return z < (real)-0.5 ? 0 : (z > (real)0.5 ? 1 : z + (real)0.5);
        }
        case SQRT:
            return sqrt_(x);
        case RECIPROCAL:
            return 1 / x;
        case AFFINE:
            return p[0] * x + p[1];
        case RELU_GENERAL:
            return x <= p[2] ? p[0] * (x - p[2]) : (x >= p[1] ? p[1] : x);
        case GELU:
            return x * normal_cdf(x);
        case GELU_TANH:
            return x * sigmoid_(2 * gelu_inner(x));
        case SILU:
            return x * sigmoid_(x);
        case SOFTSIGN:
            return x / (1 + (x < 0 ? -x : x));
        case HARD_SILU:
            return x < -3 ? 0 : (x > 3 ? x : x * (x + 3) / 6);
        case MISH: {
            const real e = exp_(x > 20 ? 20 : x), n = e * (e + 2);
            return x * (n / (n + 2));
        }
        case LOG_SIGMOID:
            return -softplus_(-x);
        case THRESHOLD:
            return x <= p[0] ? p[1] : x;
        case TANH_SHRINK:
            return x - tanh_(x);
        case HARD_SHRINK:
            return x > p[0] || x < -p[0] ? x : x - x;
        case SOFT_SHRINK:
            return x > p[0] ? x - p[0] : (x < -p[0] ? x + p[0] : x - x);
        case SQUAREPLUS:
            return (real)0.5 * (x + sqrt_(x * x + p[0]));
        case SPARSE_PLUS:
            return x <= -1 ? 0 : (x < 1 ? (real)0.25 * (x + 1) * (x + 1) : x);
        case ABS:
            return x < 0 ? -x : x;
        case SQUARE:
            return x * x;
        case LOG:
            return log_(x);
        case POWER:
            return pow_(x, p[0]);
        case SIGN:
            return x < 0 ? -1 : (x > 0 ? 1 : 0);
    }
    return x;
}

/* slope * g, and 0 where the slope is 0, whatever g is */
__device__ inline real sloped(real slope, real g) { return slope == 0 ? 0 : slope * g; }

/* g f' from v, which is y for the kinds before FROM_INPUT and x for those behind it; where f is constant, g is left out
 */
__device__ inline real through(int kind, const parameters &a, real v, real g) {
    const real *p = a.p;
    switch (kind) {
        case RELU:
            return v > 0 ? g : 0;
        case RELU6:
            return v > 0 && v < 6 ? g : 0;
        case LEAKY_RELU:
            return v > 0 ? g : sloped(p[0], g);
        case SIGMOID:
            return g * (v * (1 - v));
        case TANH:
            return g * (1 - v * v);
        case ELU:
            return sloped(v > 0 ? p[1] : (v + p[1] * p[0]) / p[2], g);
        case EXP:
            return g * v;
        case SOFTPLUS:
            return g * -expm1_(-v);
        case HARD_SIGMOID:
            return v > 0 && v < 1 ? p[0] * g : 0;
        case SQRT:
            return g * ((real)0.5 / v);
        case RECIPROCAL:
            return g * (-v * v);
        case AFFINE:
            return p[0] * g;
        case CLIP:
            return v > p[0] && v < p[1] ? g : (v == p[0] || v == p[1] ? p[2] * g : 0);
        case RELU_GENERAL:
            return v <= p[2] ? sloped(p[0], g) : (v >= p[1] ? 0 : g);
        case GELU:
            return g * (normal_cdf(v) + v * (real)0.39894228040143267794 * exp_((real)-0.5 * v * v));
        case GELU_TANH: {
            const real x = v > 20 ? 20 : (v < -20 ? -20 : v), s = sigmoid_(2 * gelu_inner(x));
            return g * (s + 2 * x * s * (1 - s) * (real)0.79788456080286535588 * (1 + 3 * (real)0.044715 * x * x));
        }
        case SILU: {
            const real s = sigmoid_(v);
            return g * (s * (1 + v * (1 - s)));
        }
        case SOFTSIGN: {
            const real d = 1 + (v < 0 ? -v : v);
            return g * (1 / (d * d));
        }
        case HARD_SILU:
            return v <= -3 ? 0 : (v > 3 ? g : g * ((2 * v + 3) / 6));
        case MISH: {
            const real e = exp_(v > 20 ? 20 : v), n = e * (e + 2);
            return g * (n / (n + 2) + (v > 20 ? 0 : v * 4 * e * (e + 1) / ((n + 2) * (n + 2))));
        }
        case LOG_SIGMOID:
            return g * sigmoid_(-v);
        case THRESHOLD:
            return v > p[0] ? g : 0;
        case TANH_SHRINK:
            return g * (tanh_(v) * tanh_(v));
        case HARD_SHRINK:
        case SOFT_SHRINK:
            return v > p[0] || v < -p[0] ? g : 0;
        case SQUAREPLUS:
            return sloped((real)0.5 * (1 + v / sqrt_(v * v + p[0])), g);
        case SPARSE_PLUS:
            return v <= -1 ? 0 : (v < 1 ? g * ((real)0.5 * (v + 1)) : g);
        case ABS:
            return v < 0 ? -g : (v > 0 ? g : 0);
        case SQUARE:
            return g * (2 * v);
        case LOG:
            return g * (1 / v);
        case POWER:
            return p[0] == 0 ? 0 : g * (p[0] * pow_(v, p[0] - 1));
        case SIGN:
            return 0;
    }
    return g;
}

template <int K>
struct places {
    int64_t of[K];
};

/* Where element i lies in each of K operands. */
template <int K>
__device__ inline places<K> places_of(Array<const int64_t> layout, int64_t i) {
    places<K> found;
    if (!layout) {
        for (int k = 0; k < K; k++) found.of[k] = i;
        return found;
    }
    for (int k = 0; k < K; k++) found.of[k] = 0;
    const int dims = (int)layout[0];
    for (int d = dims - 1; d >= 0; d--) {
        cell at = {0, i};
        if (d) at = cell_of(i, layout[1 + d]);
        i = at.row;
        for (int k = 0; k < K; k++) found.of[k] += at.column * layout[1 + dims + k * dims + d];
    }
    return found;
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
            return operand ? dy * pow_(a, b) * log_(a) : dy * b * pow_(a, b - 1);
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

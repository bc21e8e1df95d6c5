/* Functions of one argument: y = f(x; p), and dx = g f'(x) of the gradient g of y.  The one table of them: C, the
 * kernels for GPUs and the codes of Python (pydtconv/_ext/conv.pyx) are made of it.  A row's place is the kind's code.
 *
 *   FUSED(NAME, kind, f, gradient)        gradient in y; convolutions, sums and batch normalization apply it, too
 *   FROM_OUTPUT(NAME, kind, f, gradient)  gradient in y: x need not be kept, and y may take its place
 *   FROM_INPUT(NAME, kind, f, gradient)   gradient in x
 *   CURVED(NAME, kind, f, gradient)       as FROM_INPUT; batch normalization applies it, too
 *   BY_HAND(NAME, kind, f, gradient)      as FROM_INPUT; its loops on CPUs are written by hand (nn/unary_spans.c)
 *
 * Who reads the table defines some of these, or KIND for all, and F(name), functions of `real` such as F(exp).  Loops
 * are vectorised: a maximum is a comparison that keeps NaN.  Where f is constant the gradient g is left out, not
 * multiplied by 0: it may be infinite.  Vectors have formulas of their own: include/dtconv_activations.h.
 */
/* clang-format off */
#ifndef KIND
#define KIND(NAME, kind, f, gradient)
#endif
#ifndef FUSED
#define FUSED KIND
#endif
#ifndef FROM_OUTPUT
#define FROM_OUTPUT KIND
#endif
#ifndef FROM_INPUT
#define FROM_INPUT KIND
#endif
#ifndef CURVED
#define CURVED KIND
#endif
#ifndef BY_HAND
#define BY_HAND KIND
#endif

FUSED(LINEAR, "linear", x, g)
FUSED(RELU, "relu", x < 0 ? 0 : x, y > 0 ? g : 0)
FUSED(RELU6, "relu6", x < 0 ? 0 : (x > 6 ? 6 : x), y > 0 && y < 6 ? g : 0)
FUSED(LEAKY_RELU, "leaky_relu", x < 0 ? p[0] * x : x, y > 0 ? g : (p[0] == 0 ? 0 : p[0] * g)) /* p[0]: slope */
FUSED(SIGMOID, "sigmoid", F(sigmoid)(x), y * (1 - y) * g)
FUSED(TANH, "tanh", F(tanh)(x), (1 - y * y) * g)

/* elu, selu, celu */
FROM_OUTPUT(ELU, "elu", p[1] * (x > 0 ? x : p[0] * F(expm1)(x / p[2])), sloped(y > 0 ? p[1] : (y + p[1] * p[0]) / p[2], g))
FROM_OUTPUT(EXP, "exponential", F(exp)(x), y * g)
FROM_OUTPUT(SOFTPLUS, "softplus", F(softplus)(x), -F(expm1)(-y) * g)
/* min(max(p[0] x + 1/2, 0), 1) */
FROM_OUTPUT(HARD_SIGMOID, "hard_sigmoid", p[0] * x < (real)-0.5 ? 0 : (p[0] * x > (real)0.5 ? 1 : p[0] * x + (real)0.5), y > 0 && y < 1 ? p[0] * g : 0)
FROM_OUTPUT(SQRT, "sqrt", F(sqrt)(x), (real)0.5 / y * g)
FROM_OUTPUT(RECIPROCAL, "reciprocal", 1 / x, -y * y * g)
FROM_OUTPUT(AFFINE, "affine", p[0] * x + p[1], p[0] * g)

/* min(max(x, p[0]), p[1]); p[2]: the derivative where x is one of both */
FROM_INPUT(CLIP, "clip", x < p[0] ? p[0] : (x > p[1] ? p[1] : x), x > p[0] && x < p[1] ? g : (x == p[0] || x == p[1] ? p[2] * g : 0))
/* p[0]: slope, p[1]: maximum, p[2]: threshold */
FROM_INPUT(RELU_GENERAL, "relu_general", x <= p[2] ? p[0] * (x - p[2]) : (x >= p[1] ? p[1] : x), x <= p[2] ? sloped(p[0], g) : (x >= p[1] ? 0 : g))
BY_HAND(GELU, "gelu", x * normal_cdf(x), g * (normal_cdf(x) + x * (real)0.39894228040143267794 * F(exp)((real)-0.5 * x * x)))
FROM_INPUT(GELU_TANH, "gelu_tanh", x * F(sigmoid)(2 * gelu_inner(x)), gelu_tanh_slope(x) * g)
CURVED(SILU, "silu", x * F(sigmoid)(x), silu_slope(x) * g)
FROM_INPUT(SOFTSIGN, "softsign", x / (1 + (x < 0 ? -x : x)), 1 / ((1 + (x < 0 ? -x : x)) * (1 + (x < 0 ? -x : x))) * g)
CURVED(HARD_SILU, "hard_silu", x < -3 ? 0 : (x > 3 ? x : x * (x + 3) / 6), x <= -3 ? 0 : (x > 3 ? g : g * ((2 * x + 3) / 6)))
FROM_INPUT(MISH, "mish", x * mish_ratio(x), mish_slope(x) * g)
FROM_INPUT(LOG_SIGMOID, "log_sigmoid", -F(softplus)(-x), F(sigmoid)(-x) * g)
FROM_INPUT(THRESHOLD, "threshold", x <= p[0] ? p[1] : x, x > p[0] ? g : 0)
FROM_INPUT(TANH_SHRINK, "tanh_shrink", x - F(tanh)(x), F(tanh)(x) * F(tanh)(x) * g)
FROM_INPUT(HARD_SHRINK, "hard_shrink", x > p[0] || x < -p[0] ? x : x - x, x > p[0] || x < -p[0] ? g : 0)
FROM_INPUT(SOFT_SHRINK, "soft_shrink", x > p[0] ? x - p[0] : (x < -p[0] ? x + p[0] : x - x), x > p[0] || x < -p[0] ? g : 0)
FROM_INPUT(SQUAREPLUS, "squareplus", (real)0.5 * (x + F(sqrt)(x * x + p[0])), sloped((real)0.5 * (1 + x / F(sqrt)(x * x + p[0])), g))
FROM_INPUT(SPARSE_PLUS, "sparse_plus", x <= -1 ? 0 : (x < 1 ? (real)0.25 * (x + 1) * (x + 1) : x), x <= -1 ? 0 : (x < 1 ? g * ((real)0.5 * (x + 1)) : g))
FROM_INPUT(ABS, "abs", x < 0 ? -x : x, x < 0 ? -g : (x > 0 ? g : 0))
FROM_INPUT(SQUARE, "square", x * x, 2 * x * g)
FROM_INPUT(LOG, "log", F(log)(x), 1 / x * g)
/* x^0 is 1, at 0, too, where x^-1 is no number */
BY_HAND(POWER, "power", F(pow)(x, p[0]), p[0] == 0 ? 0 : g * (p[0] * F(pow)(x, p[0] - 1)))
FROM_INPUT(SIGN, "sign", x < 0 ? -1 : (x > 0 ? 1 : 0), 0)

#undef KIND
#undef FUSED
#undef FROM_OUTPUT
#undef FROM_INPUT
#undef CURVED
#undef BY_HAND
/* clang-format on */

/* Activations and other functions of one argument: y = f(x), dx = dy f'(x).
 *
 * One table of formulas; each row becomes two loops that the compiler vectorises.  The gradient of the kinds in the
 * first table is written in y (their x need not be kept, and y may overwrite x), of those in the second in x.  GELU is
 * written in vectors.
 */
#include "dtconv_activations.h"
#include "dtconv_math.h"
#include "spans.h"

/* vectorise although in and out may be the same array; the C library's functions for doubles cannot be */
#ifdef DTCONV_DOUBLE
#define SIMD
#else
#define SIMD _Pragma("omp simd")
#endif

#define SQRT1_2PI ((real)0.39894228040143267794)
#define GELU_C ((real)0.79788456080286535588) /* sqrt(2 / pi) */
#define GELU_A ((real)0.044715)

/* slope * g, and 0 where the slope is 0, whatever g is. */
static inline real sloped(real slope, real g) { return slope == 0 ? 0 : slope * g; }

/* K(kind, f in x, g f' in y); a maximum is written as a comparison that keeps NaN.  Where f is constant the gradient g
 * is left out, not multiplied by 0: it may be infinite. */
#define FROM_OUTPUT_TABLE(K)                                                                                     \
    K(LINEAR, x, g)                                                                                              \
    K(RELU, x < 0 ? 0 : x, y > 0 ? g : 0)                                                                        \
    K(RELU6, x < 0 ? 0 : (x > 6 ? 6 : x), y > 0 && y < 6 ? g : 0)                                                \
    K(LEAKY_RELU, x < 0 ? p[0] * x : x, y > 0 ? g : sloped(p[0], g))                                             \
    K(SIGMOID, DT(sigmoid_)(x), y * (1 - y) * g)                                                                 \
    K(TANH, DT(tanh_)(x), (1 - y * y) * g)                                                                       \
    K(ELU, p[1] * (x > 0 ? x : p[0] * DT(expm1_)(x / p[2])), sloped(y > 0 ? p[1] : (y + p[1] * p[0]) / p[2], g)) \
    K(EXP, DT(exp_)(x), y *g)                                                                                    \
    K(SOFTPLUS, DT(softplus_)(x), -DT(expm1_)(-y) * g)                                                           \
    K(HARD_SIGMOID, p[0] * x < (real) - 0.5 ? 0 : (p[0] * x > (real)0.5 ? 1 : p[0] * x + (real)0.5),             \
      y > 0 && y < 1 ? p[0] * g : 0)                                                                             \
    K(SQRT, DT(sqrt_)(x), (real)0.5 / y * g)                                                                     \
    K(RECIPROCAL, 1 / x, -y * y * g)                                                                             \
    K(AFFINE, p[0] * x + p[1], p[0] * g)

/* K(kind, f in x, g f' in x) */
#define FROM_INPUT_TABLE(K)                                                                                            \
    K(CLIP, x<p[0] ? p[0] : (x > p[1] ? p[1] : x), x> p[0] && x < p[1] ? g : (x == p[0] || x == p[1] ? p[2] * g : 0))  \
    K(RELU_GENERAL, x <= p[2] ? p[0] * (x - p[2]) : (x >= p[1] ? p[1] : x),                                            \
      x <= p[2] ? sloped(p[0], g) : (x >= p[1] ? 0 : g))                                                               \
    K(GELU_TANH, x *DT(sigmoid_)(2 * gelu_inner(x)), gelu_tanh_slope(x) * g)                                           \
    K(SILU, x *DT(sigmoid_)(x), silu_slope(x) * g)                                                                     \
    K(SOFTSIGN, x / (1 + (x < 0 ? -x : x)), 1 / ((1 + (x < 0 ? -x : x)) * (1 + (x < 0 ? -x : x))) * g)                 \
    K(HARD_SILU, x < -3 ? 0 : (x > 3 ? x : x * (x + 3) / 6), x <= -3 ? 0 : (x > 3 ? g : g * ((2 * x + 3) / 6)))        \
    K(MISH, x *mish_ratio(x), mish_slope(x) * g)                                                                       \
    K(LOG_SIGMOID, -DT(softplus_)(-x), DT(sigmoid_)(-x) * g)                                                           \
    K(THRESHOLD, x <= p[0] ? p[1] : x, x > p[0] ? g : 0)                                                               \
    K(TANH_SHRINK, x - DT(tanh_)(x), DT(tanh_)(x) * DT(tanh_)(x) * g)                                                  \
    K(HARD_SHRINK, x > p[0] || x < -p[0] ? x : x - x, x > p[0] || x < -p[0] ? g : 0)                                   \
    K(SOFT_SHRINK, x > p[0] ? x - p[0] : (x < -p[0] ? x + p[0] : x - x), x > p[0] || x < -p[0] ? g : 0)                \
    K(SQUAREPLUS, (real)0.5 * (x + DT(sqrt_)(x * x + p[0])), sloped((real)0.5 * (1 + x / DT(sqrt_)(x * x + p[0])), g)) \
    K(SPARSE_PLUS, x <= -1 ? 0 : (x < 1 ? (real)0.25 * (x + 1) * (x + 1) : x),                                         \
      x <= -1 ? 0 : (x < 1 ? g * ((real)0.5 * (x + 1)) : g))                                                           \
    K(ABS, x < 0 ? -x : x, x < 0 ? -g : (x > 0 ? g : 0))                                                               \
    K(SQUARE, x *x, 2 * x * g)                                                                                         \
    K(LOG, DT(log_)(x), 1 / x * g)                                                                                     \
    K(SIGN, x < 0 ? -1 : (x > 0 ? 1 : 0), 0)

/* gelu(x) = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
static inline real gelu_inner(real x) { return GELU_C * (x + GELU_A * x * x * x); }

static inline real gelu_tanh_slope(real x) {
    x = x > 20 ? 20 : (x < -20 ? -20 : x); /* where it is 1 and 0 */
    const real s = DT(sigmoid_)(2 * gelu_inner(x));
    return s + 2 * x * s * (1 - s) * GELU_C * (1 + 3 * GELU_A * x * x);
}

static inline real silu_slope(real x) {
    const real s = DT(sigmoid_)(x);
    return s * (1 + x * (1 - s));
}

/* tanh(log(1 + e)) = n / (n + 2), n = e (e + 2), e = exp(x); constant from 20 on */
static inline real mish_ratio(real x) {
    const real e = DT(exp_)(x > 20 ? 20 : x), n = e * (e + 2);
    return n / (n + 2);
}

static inline real mish_slope(real x) {
    const real e = DT(exp_)(x > 20 ? 20 : x), n = e * (e + 2);
    return n / (n + 2) + (x > 20 ? 0 : x * 4 * e * (e + 1) / ((n + 2) * (n + 2)));
}

/* exp(-x^2 / 2), or where that is less than exp(-FARTHEST), this. */
INLINE vec bell(vec x) { return exponential(raised(-FARTHEST, x * x * (real)-0.5)); }

/* The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2, with small relative error on the left
 * side.  erfc(z) = exp(-z^2) t P(t), t = 1 / (1 + 0.4 z), for z >= 0; P is a minimax fit (Lawson's iteration). */
INLINE vec normal_cdf(vec x, vec bell_of_x) {
#ifdef DTCONV_DOUBLE
    (void)bell_of_x;
    for (int i = 0; i < V; i++) x[i] = 0.5 * erfc(-x[i] * 0.70710678118654752440);
    return x;
#else
    const vec zero = {0}, z = (vec)((mask)x & 0x7fffffff) * 0.707106781f;
    const vec t = 1 / multiply_add(z, zero + 0.4f, zero + 1), t2 = t * t, t4 = t2 * t2;
    const vec p0 = multiply_add(zero + 0.224952036f, t, zero + 0.225706909f);
    const vec p2 = multiply_add(zero + 0.129680264f, t, zero + 0.214918969f);
    const vec p4 = multiply_add(zero - 0.284362599f, t, zero + 0.272064181f);
    const vec p6 = multiply_add(zero - 0.49880734f, t, zero + 0.547430213f);
    const vec p8 = multiply_add(zero - 0.029593977f, t, zero + 0.198011352f);
    const vec p = multiply_add(multiply_add(p8, t4, multiply_add(p6, t2, p4)), t4, multiply_add(p2, t2, p0));
    const vec tail = p * (t * bell_of_x) * 0.5f;
    return where(x > 0, 1 - tail, tail);
#endif
}

INLINE vec gelu(vec x) { return x * normal_cdf(x, bell(x)); }

INLINE vec gelu_slope(vec x) {
    enum { EDGE = sizeof(real) == sizeof(double) ? 37 : 13 }; /* beyond it the slope is 0 or 1, however large x is */
    const vec near = raised(-EDGE, capped(EDGE, x)), around = exponential(near * near * (real)-0.5);
    return multiply_add(near * SQRT1_2PI, around, normal_cdf(near, around));
}

static void gelu_forward(int64_t n, const real *xs, real *ys) {
    int64_t i = 0;
    for (; i + V <= n; i += V) store(ys + i, gelu(load(xs + i)));
    if (i < n) store_part(ys + i, n - i, gelu(load_part(xs + i, n - i)));
}

static void gelu_backward(int accumulate, int64_t n, const real *xs, const real *dy, real *dx) {
    for (int64_t i = 0; i < n; i += V) {
        const int64_t count = n - i < V ? n - i : V;
        const int all = count == V;
        const vec g =
            (all ? load(dy + i) : load_part(dy + i, count)) * gelu_slope(all ? load(xs + i) : load_part(xs + i, count));
        const vec old = !accumulate ? (vec){0} : all ? load(dx + i) : load_part(dx + i, count);
        store_part(dx + i, count, old + g);
    }
}

#define FORWARD_CASE(kind, f, gradient)        \
    case DTCONV_UNARY_##kind:                  \
        SIMD for (int64_t i = 0; i < n; i++) { \
            const real x = xs[i];              \
            ys[i] = (real)(f);                 \
        }                                      \
        break;

static void forward_span(int kind, const real *of, int64_t n, const real *xs, real *ys) {
    const real p[3] = {of[0], of[1], of[2]}; /* values that no store changes */
    switch (kind) {
        case DTCONV_UNARY_POWER:
            for (int64_t i = 0; i < n; i++) ys[i] = DT(pow_)(xs[i], p[0]);
            break;
        case DTCONV_UNARY_GELU:
            gelu_forward(n, xs, ys);
            break;
            FROM_OUTPUT_TABLE(FORWARD_CASE)
            FROM_INPUT_TABLE(FORWARD_CASE)
    }
}

/* v or g alone are enough for some kinds */
#define BACKWARD_CASE(kind, v, gradient)           \
    case DTCONV_UNARY_##kind:                      \
        if (accumulate) {                          \
            SIMD for (int64_t i = 0; i < n; i++) { \
                const real v = vs[i], g = dy[i];   \
                (void)v, (void)g;                  \
                dx[i] += (real)(gradient);         \
            }                                      \
        } else {                                   \
            SIMD for (int64_t i = 0; i < n; i++) { \
                const real v = vs[i], g = dy[i];   \
                (void)v, (void)g;                  \
                dx[i] = (real)(gradient);          \
            }                                      \
        }                                          \
        break;
#define BACKWARD_FROM_OUTPUT(kind, f, gradient) BACKWARD_CASE(kind, y, gradient)
#define BACKWARD_FROM_INPUT(kind, f, gradient) BACKWARD_CASE(kind, x, gradient)

static void backward_span(int kind, const real *of, int accumulate, int64_t n, const real *vs, const real *dy,
                          real *dx) {
    const real p[3] = {of[0], of[1], of[2]};
    switch (kind) {
        case DTCONV_UNARY_POWER: /* x^0 is 1, at 0, too, where x^-1 is no number */
            for (int64_t i = 0; i < n; i++) {
                const real g = p[0] == 0 ? 0 : dy[i] * (p[0] * DT(pow_)(vs[i], p[0] - 1));
                dx[i] = (accumulate ? dx[i] : 0) + g;
            }
            break;
        case DTCONV_UNARY_GELU:
            gelu_backward(accumulate, n, vs, dy, dx);
            break;
            FROM_OUTPUT_TABLE(BACKWARD_FROM_OUTPUT)
            FROM_INPUT_TABLE(BACKWARD_FROM_INPUT)
    }
}

void DT(unary_forward_span)(const void *context, int64_t n, const real *const *in, real *out) {
    const DT(unary_context) *c = context;
    forward_span(c->kind, c->p, n, in[0], out);
}

void DT(unary_backward_span)(const void *context, int64_t n, const real *const *in, real *out) {
    const DT(unary_context) *c = context;
    backward_span(c->kind, c->p, c->accumulate, n, in[0], in[1], out);
}

void DT(add_activation_span)(const void *context, int64_t n, const real *const *in, real *out) {
    const DT(unary_context) *c = context;
    const real *a = in[0], *b = in[1];
    if (c->kind == DTCONV_UNARY_RELU) {
        SIMD for (int64_t i = 0; i < n; i++) {
            const real x = a[i] + b[i];
            out[i] = x < 0 ? 0 : x;
        }
        return;
    }
    SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    if (c->kind != DTCONV_UNARY_LINEAR) forward_span(c->kind, c->p, n, out, out);
}

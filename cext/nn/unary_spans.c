/* Activations and other functions of one argument: y = f(x), dx = dy f'(x).
 *
 * Each row of the table of formulas (cuda/activations.h) becomes loops that the compiler vectorises.  GELU is written
 * in vectors.
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

#define F(name) DT(name##_)
#define PART static inline
#include "../cuda/activation_parts.h"

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
    return multiply_add(near * (real)0.39894228040143267794, around, normal_cdf(near, around));
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

static void forward_span(int kind, const real *of, int64_t n, const real *xs, real *ys) {
    const real p[3] = {of[0], of[1], of[2]}; /* values that no store changes */
    switch (kind) {
        case DTCONV_POWER:
            for (int64_t i = 0; i < n; i++) ys[i] = DT(pow_)(xs[i], p[0]);
            break;
        case DTCONV_GELU:
            gelu_forward(n, xs, ys);
            break;
#define KIND(NAME, kind, f, gradient)          \
    case DTCONV_##NAME:                        \
        SIMD for (int64_t i = 0; i < n; i++) { \
            const real x = xs[i];              \
            ys[i] = (real)(f);                 \
        }                                      \
        break;
#define BY_HAND(NAME, kind, f, gradient)
#include "../cuda/activations.h"
    }
}

/* v or g alone are enough for some kinds */
#define BACKWARD_CASE(NAME, v, gradient)           \
    case DTCONV_##NAME:                            \
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

static void backward_span(int kind, const real *of, int accumulate, int64_t n, const real *vs, const real *dy,
                          real *dx) {
    const real p[3] = {of[0], of[1], of[2]};
    switch (kind) {
        case DTCONV_POWER: /* x^0 is 1, at 0, too, where x^-1 is no number */
            for (int64_t i = 0; i < n; i++) {
                const real g = p[0] == 0 ? 0 : dy[i] * (p[0] * DT(pow_)(vs[i], p[0] - 1));
                dx[i] = (accumulate ? dx[i] : 0) + g;
            }
            break;
        case DTCONV_GELU:
            gelu_backward(accumulate, n, vs, dy, dx);
            break;
#define FUSED(NAME, kind, f, gradient) BACKWARD_CASE(NAME, y, gradient)
#define FROM_OUTPUT(NAME, kind, f, gradient) BACKWARD_CASE(NAME, y, gradient)
#define KIND(NAME, kind, f, gradient) BACKWARD_CASE(NAME, x, gradient)
#define BY_HAND(NAME, kind, f, gradient)
#include "../cuda/activations.h"
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
    if (c->kind == DTCONV_RELU) {
        SIMD for (int64_t i = 0; i < n; i++) {
            const real x = a[i] + b[i];
            out[i] = x < 0 ? 0 : x;
        }
        return;
    }
    SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    if (c->kind != DTCONV_LINEAR) forward_span(c->kind, c->p, n, out, out);
}

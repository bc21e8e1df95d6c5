/* Arithmetic with two arguments, y = a op b with broadcasting, and its partial derivatives. */
#include "dtconv_math.h"
#include "spans.h"

#define LOOP(expression) _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = (real)(expression)

void DT(binary_forward_span)(const void *context, int64_t n, const real *const *in, real *out) {
    const real *a = in[0], *b = in[1];
    switch (((const DT(binary_context) *)context)->kind) {
        case DTCONV_BINARY_ADD:
            LOOP(a[i] + b[i]);
            break;
        case DTCONV_BINARY_SUBTRACT:
            LOOP(a[i] - b[i]);
            break;
        case DTCONV_BINARY_MULTIPLY:
            LOOP(a[i] * b[i]);
            break;
        case DTCONV_BINARY_DIVIDE:
            LOOP(a[i] / b[i]);
            break;
        case DTCONV_BINARY_MAXIMUM:
            LOOP(a[i] >= b[i] || a[i] != a[i] ? a[i] : b[i]); /* NaN where one of them is */
            break;
        case DTCONV_BINARY_MINIMUM:
            LOOP(a[i] <= b[i] || a[i] != a[i] ? a[i] : b[i]);
            break;
        case DTCONV_BINARY_POWER:
            LOOP(DT(pow_)(a[i], b[i]));
            break;
        case DTCONV_BINARY_EQUAL:
            LOOP(a[i] == b[i]);
            break;
    }
}

#define GRADIENT(expression)             \
    do {                                 \
        if (c->accumulate)               \
            LOOP(out[i] + (expression)); \
        else                             \
            LOOP(expression);            \
    } while (0)
/* a tie shares the gradient; the other one's is left out, not multiplied by 0, for dy may be infinite */
#define SHARE(mine, sign, other) (sign mine[i] > sign other[i] ? dy[i] : (mine[i] == other[i] ? (real)0.5 * dy[i] : 0))

void DT(binary_backward_span)(const void *context, int64_t n, const real *const *in, real *out) {
    const DT(binary_context) *c = context;
    const real *dy = in[0], *a = in[1], *b = in[2], *y = in[3];
    switch (c->kind * 2 + c->operand) {
        case DTCONV_BINARY_ADD * 2:
        case DTCONV_BINARY_ADD * 2 + 1:
        case DTCONV_BINARY_SUBTRACT * 2:
            GRADIENT(dy[i]);
            break;
        case DTCONV_BINARY_SUBTRACT * 2 + 1:
            GRADIENT(-dy[i]);
            break;
        case DTCONV_BINARY_MULTIPLY * 2:
            GRADIENT(dy[i] * b[i]);
            break;
        case DTCONV_BINARY_MULTIPLY * 2 + 1:
            GRADIENT(dy[i] * a[i]);
            break;
        case DTCONV_BINARY_DIVIDE * 2:
            GRADIENT(dy[i] / b[i]);
            break;
        case DTCONV_BINARY_DIVIDE * 2 + 1:
            GRADIENT(-dy[i] * y[i] / b[i]);
            break;
        case DTCONV_BINARY_MAXIMUM * 2:
            GRADIENT(SHARE(a, +, b));
            break;
        case DTCONV_BINARY_MAXIMUM * 2 + 1:
            GRADIENT(SHARE(b, +, a));
            break;
        case DTCONV_BINARY_MINIMUM * 2:
            GRADIENT(SHARE(a, -, b));
            break;
        case DTCONV_BINARY_MINIMUM * 2 + 1:
            GRADIENT(SHARE(b, -, a));
            break;
        case DTCONV_BINARY_POWER * 2:
            GRADIENT(b[i] == 0 ? 0 : dy[i] * b[i] * DT(pow_)(a[i], b[i] - 1));
            break;
        case DTCONV_BINARY_POWER * 2 + 1:
            GRADIENT(a[i] == 0 ? 0 : dy[i] * DT(pow_)(a[i], b[i]) * DT(log_)(a[i]));
            break;
        case DTCONV_BINARY_EQUAL * 2:
            GRADIENT(a[i] == b[i] ? dy[i] : 0);
            break;
    }
}

void DT(copy_span)(const void *context, int64_t n, const real *const *in, real *out) {
    const DT(binary_context) *c = context;
    const real *x = in[0], factor = c->factor;
    if (c->accumulate)
        LOOP(out[i] + factor * x[i]);
    else if (factor == 1)
        LOOP(x[i]);
    else
        LOOP(factor * x[i]);
}

/* Activations and other functions of one argument over strided arrays; the functions themselves are in unary_spans.c.
 */
#include "dtconv_nn_elem.h"
#include "spans.h"

_Static_assert((int)DTCONV_UNARY_TANH == DTCONV_TANH && (int)DTCONV_UNARY_SILU == DTCONV_SILU &&
                   (int)DTCONV_UNARY_HARD_SILU == DTCONV_HARD_SILU,
               "dtconv_activation has the codes of dtconv_unary");

static int valid(int kind) { return kind >= 0 && kind < DTCONV_UNARY_KINDS && kind != DTCONV_UNARY_FROM_INPUT; }

dtconv_status DT(unary_forward)(int kind, const real *p, const int64_t *layout, const elem *x, elem *y) {
    if (!valid(kind)) return DTCONV_ARGUMENT;
    const RT(unary_context) context = {kind, 0, {p[0], p[1], p[2]}};
    return DT(map_spans)(RT(unary_forward_span), &context, 0, layout, (const elem *const[]){x}, y);
}

dtconv_status DT(unary_backward)(int kind, const real *p, int accumulate, const int64_t *layout, const elem *v,
                                 const elem *dy, elem *dx) {
    if (!valid(kind)) return DTCONV_ARGUMENT;
    const RT(unary_context) context = {kind, accumulate, {p[0], p[1], p[2]}};
    return DT(map_spans)(RT(unary_backward_span), &context, accumulate, layout, (const elem *const[]){v, dy}, dx);
}

dtconv_status DT(add_activation)(int kind, const real *p, const int64_t *layout, const elem *a, const elem *b,
                                 elem *y) {
    if (!valid(kind)) return DTCONV_ARGUMENT;
    const RT(unary_context) context = {kind, 0, {p[0], p[1], p[2]}};
    return DT(map_spans)(RT(add_activation_span), &context, 0, layout, (const elem *const[]){a, b}, y);
}

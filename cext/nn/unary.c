/* Activations and other functions of one argument over strided arrays; the functions themselves are in unary_spans.c.
 */
#include "dtconv_nn_elem.h"
#include "spans.h"

static int valid(int kind) { return kind >= 0 && kind < DTCONV_ACTIVATIONS; }

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

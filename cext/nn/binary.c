/* Arithmetic with two arguments over strided arrays; the arithmetic itself is in binary_spans.c. */
#include "dtconv_nn_elem.h"
#include "spans.h"

dtconv_status DT(binary_forward)(int kind, const int64_t *layout, const elem *a, const elem *b, elem *y) {
    if (kind < 0 || kind >= DTCONV_BINARY_KINDS) return DTCONV_ARGUMENT;
    const RT(binary_context) context = {kind, 0, 0, 0};
    return DT(map_spans)(RT(binary_forward_span), &context, 0, layout, (const elem *const[]){a, b}, y);
}

dtconv_status DT(binary_backward)(int kind, int operand, int accumulate, const int64_t *layout, const elem *dy,
                                  const elem *a, const elem *b, const elem *y, elem *out) {
    if (kind < 0 || kind >= DTCONV_BINARY_KINDS || operand < 0 || operand > (kind != DTCONV_BINARY_EQUAL))
        return DTCONV_ARGUMENT;
    const RT(binary_context) context = {kind, operand, accumulate, 0};
    return DT(map_spans)(RT(binary_backward_span), &context, accumulate, layout, (const elem *const[]){dy, a, b, y},
                         out);
}

dtconv_status DT(copy)(real factor, int accumulate, const int64_t *layout, const elem *x, elem *y) {
    const RT(binary_context) context = {0, 0, accumulate, factor};
    return DT(map_spans)(RT(copy_span), &context, accumulate, layout, (const elem *const[]){x}, y);
}

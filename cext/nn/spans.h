/* Span functions of element-wise operators (dtconv_strided.h) and what they are told; on `real`. */
#ifndef SPANS_H
#define SPANS_H

#include "dtconv_nn_elem.h"
#include "dtconv_strided.h"

typedef struct {
    int kind, accumulate;
    real p[3];
} RT(unary_context);

typedef struct {
    int kind, operand, accumulate;
    real factor;
} RT(binary_context);

/* x -> y;  v, dy -> dx;  a, b -> f(a + b) */
void RT(unary_forward_span)(const void *context, int64_t n, const real *const *in, real *out);
void RT(unary_backward_span)(const void *context, int64_t n, const real *const *in, real *out);
void RT(add_activation_span)(const void *context, int64_t n, const real *const *in, real *out);

/* a, b -> y;  dy, a, b, y -> out;  x -> y */
void RT(binary_forward_span)(const void *context, int64_t n, const real *const *in, real *out);
void RT(binary_backward_span)(const void *context, int64_t n, const real *const *in, real *out);
void RT(copy_span)(const void *context, int64_t n, const real *const *in, real *out);

#endif

/* CONVGEMM: forward as one GEMM whose left operand is packed straight from the image.
 *
 *   y (m x co) = im2col(x) (m x k) * w (k x co),   m = n * od * oh * ow, k = kd * kh * kw * ci
 *
 * Method: Barrachina, Dolz, San Juan, Quintana-Orti, "Efficient and portable GEMM-based convolution operators for deep
 * neural network training on multicore processors", JPDC 2022, section 3: packing, which a GEMM does anyway, absorbs
 * im2col.  Workspace: the GEMM's packed blocks.  A pointwise convolution is a plain GEMM that reads x in place.
 */
#include "forward_product.h"

dtconv_status DT(forward_product)(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, DT(pack_a_fn) pack_a,
                                  const void *context, const DT(matrix) * a_in_place, DT(product_fn) product,
                                  void *workspace, size_t bytes) {
    const int64_t co = p->co / p->groups;
    const DT(matrix) w = {a->w + group * co, p->co, 1};
    const int in_place = a->residual == a->y && !a->scale; /* then it is in C already */
    const DT(bias_activation) finish = {.bias = a->bias ? a->bias + group * co : NULL,
                                        .scale = a->scale ? a->scale + group * co : NULL,
                                        .beta = a->scale ? a->beta + group * co : NULL,
                                        .activation = a->activation,
                                        .alpha = a->alpha,
                                        .residual = a->residual && !in_place ? a->residual + group * co : NULL,
                                        .ldr = a->ldr};
    const int plain = !a->bias && !a->scale && !finish.residual && a->activation == DTCONV_LINEAR;
    const DT(gemm_args) gemm = {.m = dtconv_rows(p),
                                .n = co,
                                .k = dtconv_columns(p),
                                .pack_a = pack_a,
                                .a = context,
                                .pack_b = DT(pack_b_matrix),
                                .b = &w,
                                .c = a->y + group * co,
                                .ldc = p->ldy,
                                .beta = in_place,
                                .epilogue = plain ? NULL : DT(bias_activation_epilogue),
                                .e = &finish,
                                .a_in_place = a_in_place};
    return product(&gemm, workspace, bytes);
}

dtconv_status DT(forward_gemm)(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, DT(pack_a_fn) pack_a,
                               const void *context, void *workspace, size_t bytes) {
    const DT(matrix) x = {a->x + group * (p->ci / p->groups), p->ldx, 1};
    return DT(forward_product)(p, a, group, pack_a, context, dtconv_is_pointwise(p) ? &x : NULL, DT(gemm), workspace,
                               bytes);
}

size_t DT(conv_convgemm_forward_workspace)(const dtconv_conv *p) {
    return DT(gemm_workspace)(dtconv_rows(p), p->co / p->groups, dtconv_columns(p));
}

dtconv_status DT(conv_convgemm_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(image_matrix) image = DT(image_matrix_of)(p, a->x, group);
        const dtconv_status status = DT(forward_gemm)(p, a, group, DT(pack_image), &image, workspace, bytes);
        if (status) return status;
    }
    return DTCONV_OK;
}

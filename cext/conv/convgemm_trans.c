/* CONVGEMM_TRANS: backward_weights as one GEMM whose left operand, the transposed im2col matrix, is packed straight
 * from the image.
 *
 *   dw (k x co) = im2col(x)^T (k x m) * dy (m x co),   m = n * oh * ow, k = kh * kw * ci
 *
 * Method: Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 4.
 */
#include "conv_internal.h"

size_t DT(conv_convgemm_trans_backward_weights_workspace)(const dtconv_conv *p) {
    return DT(gemm_workspace)(dtconv_columns(p), p->co / p->groups, dtconv_rows(p));
}

dtconv_status DT(conv_convgemm_trans_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                       size_t bytes) {
    const int64_t co = p->co / p->groups;
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(image_matrix) image = DT(image_matrix_of)(p, a->x, group);
        const DT(matrix) dy = {a->y + group * co, p->ldy, 1};
        const DT(gemm_args) gemm = {.m = dtconv_columns(p),
                                    .n = co,
                                    .k = dtconv_rows(p),
                                    .pack_a = DT(pack_image_trans),
                                    .a = &image,
                                    .pack_b = DT(pack_b_matrix),
                                    .b = &dy,
                                    .c = a->w + group * co,
                                    .ldc = p->co};
        const dtconv_status status = DT(gemm)(&gemm, workspace, bytes);
        if (status) return status;
    }
    return DTCONV_OK;
}

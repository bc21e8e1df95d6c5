/* IM2COL: the baseline, which builds the matrix.
 *
 *   forward            y (m x co) = im2col(x) (m x k) * w (k x co)
 *   backward_data      dx = col2im(dy (m x co) * w^T (co x k))
 *   backward_weights   dw (k x co) = im2col(x)^T (k x m) * dy (m x co)
 *   m = n * od * oh * ow, k = kd * kh * kw * ci
 *
 * Workspace: the m x k matrix of one group and the GEMM's packed blocks.  A 1x1 convolution has no matrix to build: the
 * image is the matrix, read in place or, with strides, packed from where it lies.
 */
#include "conv_internal.h"

static size_t matrix_bytes(const dtconv_conv *p) {
    if (dtconv_taps(p) == 1) return 0;
    return dtconv_round((size_t)(dtconv_rows(p) * dtconv_columns(p)) * sizeof(real));
}

/* Backward with strides scatters rows, so it needs the product; a pointwise one is dx itself. */
static size_t product_bytes(const dtconv_conv *p) {
    if (dtconv_is_pointwise(p)) return 0;
    return dtconv_round((size_t)(dtconv_rows(p) * dtconv_columns(p)) * sizeof(real));
}

size_t DT(conv_im2col_forward_workspace)(const dtconv_conv *p) {
    return matrix_bytes(p) + DT(gemm_workspace)(dtconv_rows(p), p->co / p->groups, dtconv_columns(p));
}

dtconv_status DT(conv_im2col_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (bytes < DT(conv_im2col_forward_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t built = matrix_bytes(p);
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(image_matrix) image = DT(image_matrix_of)(p, a->x, group);
        const DT(matrix) matrix = {workspace, dtconv_columns(p), 1};
        if (built) DT(im2col)(&image, 0, dtconv_rows(p), workspace);
        const dtconv_status status =
            DT(forward_gemm)(p, a, group, built ? DT(pack_a_matrix) : DT(pack_image),
                             built ? (const void *)&matrix : &image, (char *)workspace + built, bytes - built);
        if (status) return status;
    }
    return DTCONV_OK;
}

size_t DT(conv_im2col_backward_data_workspace)(const dtconv_conv *p) {
    return product_bytes(p) + DT(gemm_workspace)(dtconv_rows(p), dtconv_columns(p), p->co / p->groups);
}

dtconv_status DT(conv_im2col_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                            size_t bytes) {
    if (bytes < DT(conv_im2col_backward_data_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t built = product_bytes(p);
    if (built && !a->accumulate) DT(clear_dx)(p, a->x);
    for (int64_t group = 0; group < p->groups; group++) {
        const dtconv_status status = DT(product_rows)(p, a, group, 0, dtconv_rows(p), built ? workspace : NULL,
                                                      (char *)workspace + built, bytes - built);
        if (status) return status;
        if (built) DT(col2im)(p, workspace, 0, dtconv_rows(p), group, a->x);
    }
    return DTCONV_OK;
}

size_t DT(conv_im2col_backward_weights_workspace)(const dtconv_conv *p) {
    return matrix_bytes(p) + DT(gemm_workspace)(dtconv_columns(p), p->co / p->groups, dtconv_rows(p));
}

dtconv_status DT(conv_im2col_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                               size_t bytes) {
    if (bytes < DT(conv_im2col_backward_weights_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t built = matrix_bytes(p);
    const int64_t k = dtconv_columns(p), co = p->co / p->groups;
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(image_matrix) image = DT(image_matrix_of)(p, a->x, group);
        const DT(matrix) matrix = {workspace, 1, k}, dy = {a->y + group * co, p->ldy, 1};
        if (built) DT(im2col)(&image, 0, dtconv_rows(p), workspace);
        const DT(gemm_args) gemm = {.m = k,
                                    .n = co,
                                    .k = dtconv_rows(p),
                                    .pack_a = built ? DT(pack_a_matrix) : DT(pack_image_trans),
                                    .a = built ? (const void *)&matrix : &image,
                                    .pack_b = DT(pack_b_matrix),
                                    .b = &dy,
                                    .c = a->w + group * co,
                                    .ldc = p->co};
        const dtconv_status status = DT(gemm)(&gemm, (char *)workspace + built, bytes - built);
        if (status) return status;
    }
    return DTCONV_OK;
}

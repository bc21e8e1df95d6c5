/* STRASSEN: products of matrices with 7 multiplications for 8 (dtconv_strassen.h), one level.
 *
 *   forward            y (m x co) = im2col(x) (m x k) * w (k x co)
 *   backward_data      dx = col2im(dy (m x co) * w^T (co x k))
 *   backward_weights   dw (k x co) = im2col(x)^T (k x m) * dy (m x co)
 *   m = n * od * oh * ow, k = kd * kh * kw * ci
 *
 * It is made for pointwise convolutions of many channels, and so for dense layers: x, or dx, is the matrix.  Elsewhere
 * the matrix is built, as by im2col, since a sum of its parts cannot be packed from the image.
 */
#include "forward_product.h"
#include "dtconv_strassen.h"

enum { LEVELS = 1 };

static dtconv_status product(const DT(gemm_args) * args, void *workspace, size_t bytes) {
    return DT(gemm_strassen)(args, 1, LEVELS, workspace, bytes);
}

static size_t built_bytes(const dtconv_conv *p) {
    if (dtconv_is_pointwise(p)) return 0;
    return dtconv_round((size_t)(dtconv_rows(p) * dtconv_columns(p)) * sizeof(real));
}

/* The matrix of a group: the image itself, or built in the workspace. */
static DT(matrix) matrix_of(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, void *workspace) {
    const DT(image_matrix) image = DT(image_matrix_of)(p, a->x, group);
    if (dtconv_is_pointwise(p)) return (DT(matrix)){image.x, p->ldx, 1};
    DT(im2col)(&image, 0, dtconv_rows(p), workspace);
    return (DT(matrix)){workspace, dtconv_columns(p), 1};
}

size_t DT(conv_strassen_forward_workspace)(const dtconv_conv *p) {
    return built_bytes(p) + DT(gemm_strassen_workspace)(dtconv_rows(p), p->co / p->groups, dtconv_columns(p), LEVELS);
}

dtconv_status DT(conv_strassen_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (bytes < DT(conv_strassen_forward_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t built = built_bytes(p);
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(matrix) matrix = matrix_of(p, a, group, workspace);
        const dtconv_status status = DT(forward_product)(p, a, group, DT(pack_a_matrix), &matrix, &matrix, product,
                                                         (char *)workspace + built, bytes - built);
        if (status) return status;
    }
    return DTCONV_OK;
}

size_t DT(conv_strassen_backward_data_workspace)(const dtconv_conv *p) {
    return built_bytes(p) + DT(gemm_strassen_workspace)(dtconv_rows(p), dtconv_columns(p), p->co / p->groups, LEVELS);
}

dtconv_status DT(conv_strassen_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                              size_t bytes) {
    if (bytes < DT(conv_strassen_backward_data_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t built = built_bytes(p);
    const int64_t co = p->co / p->groups, k = dtconv_columns(p);
    if (built && !a->accumulate) DT(clear_dx)(p, a->x);
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(matrix) dy = {a->y + group * co, p->ldy, 1}, w = {a->w + group * co, 1, p->co};
        const DT(gemm_args) gemm = {.m = dtconv_rows(p),
                                    .n = k,
                                    .k = co,
                                    .pack_b = DT(pack_b_matrix),
                                    .b = &w,
                                    .a_in_place = &dy,
                                    .c = built ? workspace : a->x + group * k,
                                    .ldc = built ? k : p->ldx,
                                    .beta = !built && a->accumulate};
        const dtconv_status status = product(&gemm, (char *)workspace + built, bytes - built);
        if (status) return status;
        if (built) DT(col2im)(p, workspace, 0, dtconv_rows(p), group, a->x);
    }
    return DTCONV_OK;
}

size_t DT(conv_strassen_backward_weights_workspace)(const dtconv_conv *p) {
    return built_bytes(p) + DT(gemm_strassen_workspace)(dtconv_columns(p), p->co / p->groups, dtconv_rows(p), LEVELS);
}

dtconv_status DT(conv_strassen_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                 size_t bytes) {
    if (bytes < DT(conv_strassen_backward_weights_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t built = built_bytes(p);
    const int64_t co = p->co / p->groups;
    for (int64_t group = 0; group < p->groups; group++) {
        const DT(matrix) rows = matrix_of(p, a, group, workspace), dy = {a->y + group * co, p->ldy, 1};
        const DT(matrix) columns = {rows.data, 1, rows.rs};
        const DT(gemm_args) gemm = {.m = dtconv_columns(p),
                                    .n = co,
                                    .k = dtconv_rows(p),
                                    .pack_b = DT(pack_b_matrix),
                                    .b = &dy,
                                    .a_in_place = &columns,
                                    .c = a->w + group * co,
                                    .ldc = p->co};
        const dtconv_status status = product(&gemm, (char *)workspace + built, bytes - built);
        if (status) return status;
    }
    return DTCONV_OK;
}

/* DECONVGEMM: backward_data as a GEMM whose result is scattered while it is unpacked.
 *
 *   dx = col2im(dy (m x co) * w^T (co x k)),   m = n * od * oh * ow, k = kd * kh * kw * ci
 *
 * Method (Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 4): the product exists only nc of its rows at a
 * time, in a k x nc buffer, which is added to dx before the next rows overwrite it.  Theirs is sequential.
 * Here both halves run in parallel: the GEMM as always, the scattering with each row of dx owned by one thread.  nc
 * does not depend on the number of threads, so neither do the sums.
 */
#include "conv_internal.h"

enum { BUFFER_BYTES = 4 << 20, NC_MIN = 512, NC_MAX = 4096 };

static int64_t block_rows(const dtconv_conv *p) {
    const int64_t fit = BUFFER_BYTES / (dtconv_columns(p) * (int64_t)sizeof(real));
    return MIN(MIN(MAX(fit, NC_MIN), NC_MAX), dtconv_rows(p));
}

static size_t buffer_bytes(const dtconv_conv *p) {
    if (dtconv_is_pointwise(p)) return 0;
    return dtconv_round((size_t)(block_rows(p) * dtconv_columns(p)) * sizeof(real));
}

dtconv_status DT(product_rows)(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, int64_t first,
                               int64_t last, real *product, void *workspace, size_t bytes) {
    const int64_t co = p->co / p->groups, k = dtconv_columns(p);
    const DT(matrix) dy = {a->y + group * co + first * p->ldy, p->ldy, 1}, w = {a->w + group * co, 1, p->co};
    const DT(gemm_args) gemm = {.m = last - first,
                                .n = k,
                                .k = co,
                                .pack_a = DT(pack_a_matrix),
                                .a = &dy,
                                .pack_b = DT(pack_b_matrix),
                                .b = &w,
                                .a_in_place = &dy,
                                .c = product ? product : a->x + group * k + first * p->ldx,
                                .ldc = product ? k : p->ldx,
                                .beta = product ? 0 : a->accumulate != 0};
    return DT(gemm)(&gemm, workspace, bytes);
}

size_t DT(conv_deconvgemm_backward_data_workspace)(const dtconv_conv *p) {
    const int64_t rows = dtconv_is_pointwise(p) ? dtconv_rows(p) : block_rows(p);
    return buffer_bytes(p) + DT(gemm_workspace)(rows, dtconv_columns(p), p->co / p->groups);
}

dtconv_status DT(conv_deconvgemm_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                size_t bytes) {
    if (bytes < DT(conv_deconvgemm_backward_data_workspace)(p)) return DTCONV_WORKSPACE;
    const size_t buffer = buffer_bytes(p);
    const int64_t rows = dtconv_rows(p), step = buffer ? block_rows(p) : rows;
    if (buffer && !a->accumulate) DT(clear_dx)(p, a->x);
    for (int64_t group = 0; group < p->groups; group++) {
        for (int64_t first = 0; first < rows; first += step) {
            const int64_t last = MIN(first + step, rows);
            const dtconv_status status = DT(product_rows)(p, a, group, first, last, buffer ? workspace : NULL,
                                                          (char *)workspace + buffer, bytes - buffer);
            if (status) return status;
            if (buffer) DT(col2im)(p, workspace, first, last, group, a->x);
        }
    }
    return DTCONV_OK;
}

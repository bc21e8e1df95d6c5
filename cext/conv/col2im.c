/* COL2IM: the adjoint of im2col, dx[pixel of (row, tap)] += matrix[row, tap], for a range of rows of the matrix.
 *
 * A gather over the rows of dx: whoever owns row (n, id, ih) adds up all that belongs to it, in the order of the
 * matrix's rows, so no two threads write the same element and the sums do not depend on their number.
 */
#include "conv_internal.h"

/* Adds `width` columns of the matrix's rows of output pixels [ow0, ow1) to the image row `dx`, taps of one filter row.
 */
static void add_row(const dtconv_conv *p, const real *matrix, int64_t ci, int64_t ow0, int64_t ow1, real *dx) {
    const int64_t columns = dtconv_taps(p) * ci;
    const int merge = p->dil_w == 1 && p->ldx == ci;
    for (int64_t ow = ow0; ow < ow1; ow++, matrix += columns) {
        const int64_t iw = ow * p->sw - p->pad_l;
        if (merge) { /* the taps of a filter row lie side by side */
            const int64_t from = MAX(-iw, 0) * ci, to = MIN(p->kw, p->iw - iw) * ci;
            for (int64_t c = from; c < to; c++) dx[iw * ci + c] += matrix[c];
            continue;
        }
        for (int64_t kw = 0; kw < p->kw; kw++) {
            const int64_t w = iw + kw * p->dil_w;
            if (w < 0 || w >= p->iw) continue;
            real *pixel = dx + w * p->ldx;
            const real *add = matrix + kw * ci;
            for (int64_t c = 0; c < ci; c++) pixel[c] += add[c];
        }
    }
}

/* Everything of rows [first, last) that belongs to row ih of a plane, from plane `plane` (n, od) of y by taps kd. */
static void gather_row(const dtconv_conv *p, const real *matrix, int64_t first, int64_t last, int64_t ci, int64_t plane,
                       int64_t kd, int64_t ih, real *dx) {
    const int64_t columns = dtconv_taps(p) * ci;
    const int64_t top = ih + p->pad_t; /* = oh * sh + kh * dil_h */
    const int64_t oh0 = MAX(0, dtconv_ceil_div(top - (p->kh - 1) * p->dil_h, p->sh)), oh1 = MIN(p->oh - 1, top / p->sh);
    for (int64_t oh = oh0; oh <= oh1; oh++) {
        const int64_t kh = (top - oh * p->sh) / p->dil_h, row = (plane * p->oh + oh) * p->ow;
        if (oh * p->sh + kh * p->dil_h != top) continue;
        const int64_t ow0 = MAX(first - row, 0), ow1 = MIN(last - row, p->ow);
        if (ow0 >= ow1) continue;
        add_row(p, matrix + (row + ow0 - first) * columns + (kd * p->kh + kh) * p->kw * ci, ci, ow0, ow1, dx);
    }
}

/* Everything of rows [first, last) that belongs to image row (n, id, ih), from all planes of y that read it. */
static void gather_planes(const dtconv_conv *p, const real *matrix, int64_t first, int64_t last, int64_t ci, int64_t n,
                          int64_t id, int64_t ih, real *dx) {
    const int64_t front = id + p->pad_f; /* = od * sd + kd * dil_d */
    const int64_t od0 = MAX(0, dtconv_ceil_div(front - (p->kd - 1) * p->dil_d, p->sd));
    const int64_t od1 = MIN(p->od - 1, front / p->sd);
    for (int64_t od = od0; od <= od1; od++) {
        const int64_t kd = (front - od * p->sd) / p->dil_d;
        if (od * p->sd + kd * p->dil_d == front) gather_row(p, matrix, first, last, ci, n * p->od + od, kd, ih, dx);
    }
}

void DT(col2im)(const dtconv_conv *p, const real *matrix, int64_t first, int64_t last, int64_t group, real *dx) {
    const int64_t ci = p->ci / p->groups, plane = p->oh * p->ow, image = p->od * plane;
    int64_t plane0 = first / image * p->id, plane1 = ((last - 1) / image + 1) * p->id;
    if (first / image == (last - 1) / image) { /* of one image, the planes that these rows read */
        const int64_t od0 = first % image / plane, od1 = (last - 1) % image / plane;
        plane1 = plane0 + MIN(p->id, MAX(0, od1 * p->sd - p->pad_f + (p->kd - 1) * p->dil_d + 1));
        plane0 += MAX(0, od0 * p->sd - p->pad_f);
    }
    const int64_t elements = (last - first) * dtconv_taps(p) * ci;
#pragma omp parallel for num_threads(dtconv_threads_to_move(elements)) \
    schedule(dynamic, dtconv_piece((plane1 - plane0) * p->ih))
    for (int64_t row = plane0 * p->ih; row < plane1 * p->ih; row++)
        gather_planes(p, matrix, first, last, ci, row / p->ih / p->id, row / p->ih % p->id, row % p->ih,
                      dx + row * p->iw * p->ldx + group * ci);
}

void DT(clear_dx)(const dtconv_conv *p, real *dx) {
#pragma omp parallel for num_threads(dtconv_threads_to_move(p->n * p->id * p->ih * p->iw * p->ci)) \
    schedule(dynamic, dtconv_piece(p->n * p->id * p->ih))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++) {
        real *pixel = dx + row * p->iw * p->ldx;
        if (p->ldx == p->ci)
            memset(pixel, 0, (size_t)(p->iw * p->ci) * sizeof(real));
        else
            for (int64_t i = 0; i < p->iw; i++) memset(pixel + i * p->ldx, 0, (size_t)p->ci * sizeof(real));
    }
}

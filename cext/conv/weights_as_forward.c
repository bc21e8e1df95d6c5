/* backward_weights as a forward convolution: what its algorithms share, see weights_as_forward.h.
 *
 * The image is gathered for one group at a time.  dy is read where it lies, in the order (oh, ow, n).
 */
#include "weights_as_forward.h"

/* dy of one group as the right operand: row (oh, ow, n). */
typedef struct {
    const real *dy;
    int64_t n, image, ldy; /* images, pixels of one */
} filters;

static void pack_filters(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst) {
    const filters *f = context;
    for (int64_t c = 0; c < n; c += nr, dst += k * nr) {
        const int64_t used = MIN(nr, n - c);
        int64_t image = p % f->n, pixel = p / f->n;
        for (int64_t row = 0; row < k; row++) {
            const real *src = f->dy + (image * f->image + pixel) * f->ldy + j + c;
            for (int64_t i = 0; i < used; i++) dst[row * nr + i] = src[i];
            for (int64_t i = used; i < nr; i++) dst[row * nr + i] = 0;
            if (++image == f->n) image = 0, pixel++;
        }
    }
}

dtconv_conv DT(weights_as_forward_of)(const dtconv_conv *p) {
    return (dtconv_conv){.n = p->ci / p->groups,
                         .ci = p->n,
                         .co = p->co / p->groups,
                         .od = p->kd,
                         .oh = p->kh,
                         .ow = p->kw,
                         .kd = p->od,
                         .kh = p->oh,
                         .kw = p->ow,
                         .groups = 1,
                         .ldx = p->n,
                         .ldy = p->co / p->groups};
}

/* image[c, place, n] = x[n, source(place), c] for the channels of one group. */
static void gather(const dtconv_conv *p, const dtconv_conv *q, source_fn source, const real *x, real *image) {
    const int64_t places = q->id * q->ih * q->iw, pixels = p->id * p->ih * p->iw;
#pragma omp parallel for num_threads(dtconv_threads_to_move(q->n * places * q->ci)) schedule(static)
    for (int64_t place = 0; place < places; place++) {
        const int64_t pixel = source(p, place);
        for (int64_t c = 0; c < q->n; c++)
            for (int64_t n = 0; n < q->ci; n++)
                image[(c * places + place) * q->ci + n] = pixel < 0 ? 0 : x[(n * pixels + pixel) * p->ldx + c];
    }
}

/* dw[tap, c, co] = dwt[c, tap, co]; rows of co elements. */
static void restore(const dtconv_conv *p, const real *dwt, real *dw) {
    const int64_t taps = dtconv_taps(p), ci = p->ci / p->groups, co = p->co / p->groups;
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t c = 0; c < ci; c++)
            memcpy(dw + (tap * ci + c) * p->co, dwt + (c * taps + tap) * co, (size_t)co * sizeof(real));
}

static size_t image_bytes(const dtconv_conv *q) {
    return dtconv_round((size_t)(q->n * q->id * q->ih * q->iw * q->ci) * sizeof(real));
}

static size_t dwt_bytes(const dtconv_conv *q) { return dtconv_round((size_t)(dtconv_rows(q) * q->co) * sizeof(real)); }

size_t DT(weights_as_forward_workspace)(const dtconv_conv *p, const dtconv_conv *q) {
    return image_bytes(q) + dwt_bytes(q) + DT(gemm_workspace)(dtconv_columns(p), q->co, dtconv_rows(p));
}

dtconv_status DT(weights_as_forward)(const dtconv_conv *p, const dtconv_conv *q, source_fn source,
                                     const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (!dtconv_fits(q)) return DTCONV_ARGUMENT;
    if (bytes < DT(weights_as_forward_workspace)(p, q)) return DTCONV_WORKSPACE;
    const size_t used = image_bytes(q) + dwt_bytes(q);
    real *xt = workspace, *dwt = (real *)((char *)workspace + image_bytes(q));
    for (int64_t group = 0; group < p->groups; group++) {
        gather(p, q, source, a->x + group * q->n, xt);
        const DT(image_matrix) image = DT(image_matrix_of)(q, xt, 0);
        const filters dy = {a->y + group * q->co, p->n, p->od * p->oh * p->ow, p->ldy};
        const DT(gemm_args) gemm = {.m = dtconv_rows(q),
                                    .n = q->co,
                                    .k = dtconv_columns(q),
                                    .pack_a = DT(pack_image),
                                    .a = &image,
                                    .pack_b = pack_filters,
                                    .b = &dy,
                                    .c = dwt,
                                    .ldc = q->co};
        const dtconv_status status = DT(gemm)(&gemm, (char *)workspace + used, bytes - used);
        if (status) return status;
        restore(p, dwt, a->w + group * q->co);
    }
    return DTCONV_OK;
}

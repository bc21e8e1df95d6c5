/* Packing of the im2col matrix as the left operand of a GEMM, straight from the image (CONVGEMM).
 *
 *   dst[j * mr + r] = x[n, oh * sh - pad_t + kh * dil_h, ow * sw - pad_l + kw * dil_w, c]
 *   row r of the panel is output pixel i + r = (n, oh, ow), column p + j = (kh, kw, c)
 *
 * Method (Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 3.2, for NHWC): the place of each of a panel's
 * mr pixels in the image is found once per panel, by counting on from the first.  Along the columns the image is read
 * in runs of neighbouring elements (the channels of a tap, or a whole row of taps where the channels are few), CHUNK
 * elements of all mr rows at a time, which are transposed in registers.  A pixel outside of the image reads zeros.
 */
#include "conv_internal.h"
#include "transpose.h"

#define MAX_MR 64
#define MERGE_BELOW 16 /* with fewer channels, a row of taps is one run */

static const real zeros[CHUNK];

DT(image_matrix) DT(image_matrix_of)(const dtconv_conv *p, const real *x, int64_t group) {
    const int64_t ci = p->ci / p->groups;
    const int merge = p->kw > 1 && p->dil_w == 1 && p->ldx == ci && ci < MERGE_BELOW;
    return (DT(image_matrix)){p, x + group * ci, ci, merge ? p->kw * ci : ci};
}

/* Where a panel's pixels lie: base[r] is the element of tap (0, 0), which may be outside of the image. */
typedef struct {
    int64_t rows, mr;
    const real *base[MAX_MR];
    int64_t ih[MAX_MR], iw[MAX_MR];
    int inside; /* whether all taps of all pixels are in the image */
} panel;

static void locate(const DT(image_matrix) * a, int64_t i, panel *q) {
    const dtconv_conv *p = a->p;
    int64_t ow = i % p->ow, oh = i / p->ow % p->oh, n = i / p->ow / p->oh;
    int inside = 1;
    for (int64_t r = 0; r < q->rows; r++) {
        const int64_t ih = oh * p->sh - p->pad_t, iw = ow * p->sw - p->pad_l;
        q->ih[r] = ih;
        q->iw[r] = iw;
        q->base[r] = a->x + ((n * p->ih + ih) * p->iw + iw) * p->ldx;
        inside &= ih >= 0 && iw >= 0 && ih + (p->kh - 1) * p->dil_h < p->ih && iw + (p->kw - 1) * p->dil_w < p->iw;
        if (++ow == p->ow) {
            ow = 0;
            if (++oh == p->oh) oh = 0, n++;
        }
    }
    q->inside = inside && q->rows == q->mr;
}

/* Columns [c0, c1) of a run whose rows are all wholly inside or wholly outside. */
static inline __attribute__((always_inline)) void pack_run(const real *const *src, const int64_t *step, int64_t c0,
                                                           int64_t c1, int64_t mr, real *dst) {
    int64_t c = c0;
    for (; c + CHUNK <= c1; c += CHUNK) transpose_chunk(src, step, c, mr, dst + (c - c0) * mr);
    if (c == c1) return;
    real rows[MAX_MR * CHUNK], columns[MAX_MR * CHUNK];
    const real *rest[MAX_MR];
    for (int64_t r = 0; r < mr; r++) {
        const real *row = src[r] + (c & step[r]);
        rest[r] = rows + r * CHUNK;
        for (int64_t j = 0; j < c1 - c; j++) rows[r * CHUNK + j] = row[j];
    }
    transpose_chunk(rest, step, 0, mr, columns);
    memcpy(dst + (c - c0) * mr, columns, (size_t)((c1 - c) * mr) * sizeof(real));
}

static void pack_run_any(const real *const *src, const int64_t *step, int64_t c0, int64_t c1, int64_t mr, real *dst) {
    switch (mr) { /* the common panels, unrolled */
        case 12:
            pack_run(src, step, c0, c1, 12, dst);
            break;
        case 6:
            pack_run(src, step, c0, c1, 6, dst);
            break;
        default:
            pack_run(src, step, c0, c1, mr, dst);
    }
}

/* Columns [c0, c1) of a run of which row r is inside of the image in [lo[r], hi[r]) only. */
static void pack_run_partly(const real *const *src, const int64_t *lo, const int64_t *hi, int64_t c0, int64_t c1,
                            int64_t mr, real *dst) {
    real rows[MAX_MR * CHUNK];
    const real *chunk[MAX_MR];
    int64_t step[MAX_MR];
    for (int64_t c = c0; c < c1; c += CHUNK) {
        for (int64_t r = 0; r < mr; r++) {
            const int64_t from = MAX(lo[r] - c, 0), to = MIN(hi[r] - c, CHUNK);
            chunk[r] = rows + r * CHUNK;
            step[r] = -1;
            memset(rows + r * CHUNK, 0, CHUNK * sizeof(real));
            for (int64_t j = from; j < to; j++) rows[r * CHUNK + j] = src[r][c + j];
        }
        pack_run_any(chunk, step, 0, MIN(c1 - c, CHUNK), mr, dst + (c - c0) * mr);
    }
}

/* Sets src, lo and hi of the run that begins at tap (kh, kw); returns whether each row is all inside or all outside. */
static int sources(const DT(image_matrix) * a, const panel *q, int64_t kh, int64_t kw, const real **src, int64_t *step,
                   int64_t *lo, int64_t *hi) {
    const dtconv_conv *p = a->p;
    const int64_t dh = kh * p->dil_h, dw = kw * p->dil_w, offset = (dh * p->iw + dw) * p->ldx;
    int whole = 1;
    for (int64_t r = 0; r < q->mr; r++) {
        const int row_inside = r < q->rows && q->ih[r] + dh >= 0 && q->ih[r] + dh < p->ih;
        const int64_t iw = row_inside ? q->iw[r] + dw : p->iw;
        lo[r] = MIN(MAX(-iw * a->ci, 0), a->run);
        hi[r] = MIN(MAX((p->iw - iw) * a->ci, 0), a->run);
        const int inside = lo[r] == 0 && hi[r] == a->run, outside = lo[r] >= hi[r];
        src[r] = outside ? zeros : q->base[r] + offset;
        step[r] = outside ? 0 : -1;
        whole &= inside | outside;
    }
    return whole;
}

static void pack_panel(const DT(image_matrix) * a, const panel *q, int64_t p0, int64_t k, real *dst) {
    const dtconv_conv *p = a->p;
    const int64_t taps = a->run / a->ci, mr = q->mr; /* taps of a run */
    int64_t run = p0 / a->run, c0 = p0 % a->run, lo[MAX_MR], hi[MAX_MR], step[MAX_MR];
    int64_t kh = run * taps / p->kw, kw = run * taps % p->kw;
    const real *src[MAX_MR];
    for (int64_t r = 0; r < mr; r++) step[r] = -1;
    while (k > 0) {
        const int64_t c1 = MIN(a->run, c0 + k);
        int whole = 1;
        if (q->inside) {
            const int64_t offset = (kh * p->dil_h * p->iw + kw * p->dil_w) * p->ldx;
            for (int64_t r = 0; r < mr; r++) src[r] = q->base[r] + offset;
        } else {
            whole = sources(a, q, kh, kw, src, step, lo, hi);
        }
        if (whole)
            pack_run_any(src, step, c0, c1, mr, dst);
        else
            pack_run_partly(src, lo, hi, c0, c1, mr, dst);
        dst += (c1 - c0) * mr;
        k -= c1 - c0;
        c0 = 0;
        kw += taps;
        if (kw == p->kw) kw = 0, kh++;
    }
}

void DT(pack_image)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst) {
    panel q = {.mr = mr};
    for (int64_t r = 0; r < m; r += mr, dst += mr * k) {
        q.rows = MIN(mr, m - r);
        locate(context, i + r, &q);
        pack_panel(context, &q, p, k, dst);
    }
}

/* Packing of the im2col matrix as the left operand of a GEMM, straight from the image (CONVGEMM).
 *
 *   dst[j * mr + r] = x[n, oh * sh - pad_t + kh * dil_h, ow * sw - pad_l + kw * dil_w, c]
 *   row r of the panel is output pixel i + r = (n, oh, ow), column p + j = (kh, kw, c); with a depth (n, od, oh, ow)
 * and (kd, kh, kw, c)
 *
 * Method (Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 3.2, for NHWC): the place of each of a panel's
 * mr pixels in the image is found by counting on from the panel before.  Along the columns the image is read in runs of
 * neighbouring elements (the channels of a tap, or a whole row of taps where the channels are few), a chunk of all mr
 * rows at a time, which is transposed in registers.  A pixel outside of the image reads from a line of zeros.
 */
#include "conv_internal.h"
#include "transpose.h"

enum { MAX_MR = 64, CHUNK = 64, MERGE_BELOW = 16 }; /* with fewer channels than this a row of taps is one run */

static const real zeros[CHUNK];

DT(image_matrix) DT(image_matrix_of)(const dtconv_conv *p, const real *x, int64_t group) {
    const int64_t ci = p->ci / p->groups;
    const int merge = p->kw > 1 && p->dil_w == 1 && p->ldx == ci && ci < MERGE_BELOW && p->kw < INT32_MAX / MERGE_BELOW;
    return (DT(image_matrix)){.p = p, .x = x + group * ci, .ci = ci, .run = merge ? p->kw * ci : ci};
}

/* A panel's pixels: base[r] is the place of tap (0, 0) relative to x, which may be outside of the image. */
typedef struct {
    int64_t mr, base[MAX_MR];
    int32_t id[MAX_MR], ih[MAX_MR], iw[MAX_MR]; /* id: of deep images only */
    int inside;                                 /* whether all taps of all pixels are in the image */
} panel;

/* The next output pixel to be placed. */
typedef struct {
    int64_t n, od, oh, ow;
} cursor;

/* Places `rows` pixels from the cursor on; the rest of the panel lies outside of everything. */
static void locate(const dtconv_conv *p, cursor *at, int64_t rows, panel *q) {
    const int64_t reach_h = (p->kh - 1) * p->dil_h, reach_w = (p->kw - 1) * p->dil_w;
    const int64_t reach_d = (p->kd - 1) * p->dil_d;
    const int deep = dtconv_is_deep(p);
    q->inside = rows == q->mr;
    for (int64_t r = 0; r < rows;) {
        const int64_t count = MIN(rows - r, p->ow - at->ow);
        const int64_t ih = at->oh * p->sh - p->pad_t, iw = at->ow * p->sw - p->pad_l, id = at->od * p->sd - p->pad_f;
        const int64_t base = (((at->n * p->id + id) * p->ih + ih) * p->iw + iw) * p->ldx, step = p->sw * p->ldx;
        for (int64_t i = 0; i < count; i++) {
            q->base[r + i] = base + i * step;
            q->ih[r + i] = (int32_t)ih;
            q->iw[r + i] = (int32_t)(iw + i * p->sw);
        }
        q->inside &= ih >= 0 && ih + reach_h < p->ih && iw >= 0 && iw + (count - 1) * p->sw + reach_w < p->iw &&
                     id >= 0 && id + reach_d < p->id;
        for (int64_t i = 0; deep && i < count; i++) q->id[r + i] = (int32_t)id;
        r += count;
        at->ow += count;
        if (at->ow == p->ow) {
            at->ow = 0;
            if (++at->oh < p->oh) continue;
            at->oh = 0;
            if (++at->od == p->od) at->od = 0, at->n++;
        }
    }
    for (int64_t r = rows; r < q->mr; r++) q->base[r] = 0, q->id[r] = q->iw[r] = 0, q->ih[r] = -1 - (int32_t)reach_h;
}

/* Where the rows of one run are inside of the image: elements [lo, hi) of the run. */
typedef struct {
    int32_t lo[MAX_MR], hi[MAX_MR];
} bounds;

/* row: (kd, kh). */
static void find_bounds(const DT(image_matrix) * a, const panel *q, int64_t row, int64_t kw, bounds *b) {
    const int32_t height = (int32_t)a->p->ih, width = (int32_t)a->p->iw, ci = (int32_t)a->ci;
    const int32_t taps = (int32_t)(a->run / a->ci);
    const int32_t dh = (int32_t)(row % a->p->kh * a->p->dil_h), dw = (int32_t)(kw * a->p->dil_w);
    for (int64_t r = 0; r < q->mr; r++) {
        const int32_t ih = q->ih[r] + dh, iw = q->iw[r] + dw;
        const int32_t row_inside = (ih >= 0) & (ih < height);
        const int32_t lo = MIN(MAX(-iw, 0), taps) * ci, hi = MIN(MAX(width - iw, 0), taps) * ci;
        b->lo[r] = lo;
        b->hi[r] = row_inside ? hi : 0;
    }
    const int32_t depth = (int32_t)a->p->id, dd = (int32_t)(row / a->p->kh * a->p->dil_d);
    for (int64_t r = 0; dtconv_is_deep(a->p) && r < q->mr; r++) {
        const int32_t id = q->id[r] + dd;
        b->hi[r] = ((id >= 0) & (id < depth)) ? b->hi[r] : 0;
    }
}

/* Lets at[r] point to columns [c, c + width) of row r of a run that is only partly inside; `rows` has room for copies.
 */
static void take_inside(const real *x, const panel *q, int64_t offset, const bounds *b, int64_t c, int64_t width,
                        const real **at, real (*rows)[CHUNK]) {
    const int32_t from = (int32_t)c, to = (int32_t)(c + width);
    int cut[MAX_MR], cuts = 0;
    for (int64_t r = 0; r < q->mr; r++) {
        const int whole = (b->lo[r] <= from) & (b->hi[r] >= to),
                  none = (b->lo[r] >= to) | (b->hi[r] <= from) | (b->lo[r] >= b->hi[r]);
        at[r] = whole ? x + (q->base[r] + offset) : zeros;
        cut[r] = !(whole | none);
        cuts |= cut[r];
    }
    for (int64_t r = 0; cuts && r < q->mr; r++) {
        if (!cut[r]) continue;
        const real *row = x + (q->base[r] + offset);
        for (int64_t j = 0; j < width; j++) rows[r][j] = c + j >= b->lo[r] && c + j < b->hi[r] ? row[j] : 0;
        at[r] = rows[r];
    }
}

INLINE void pack_panel(const DT(image_matrix) * a, const panel *q, int64_t p0, int64_t k, int64_t mr, real *dst) {
    const dtconv_conv *p = a->p;
    const int64_t taps = a->run / a->ci;                                                            /* of a run */
    int64_t run = p0 / a->run, c0 = p0 % a->run, row = run * taps / p->kw, kw = run * taps % p->kw; /* row: (kd, kh) */
    const real *at[MAX_MR];
    real rows[MAX_MR][CHUNK];
    bounds b;
    while (k > 0) {
        const int64_t c1 = MIN(a->run, c0 + k), down = row / p->kh * p->dil_d * p->ih + row % p->kh * p->dil_h;
        const int64_t tap = (down * p->iw + kw * p->dil_w) * p->ldx;
        if (!q->inside) find_bounds(a, q, row, kw, &b);
        for (int64_t c = c0; c < c1; c += CHUNK) {
            const int64_t width = MIN(CHUNK, c1 - c);
            if (q->inside)
                for (int64_t r = 0; r < mr; r++) at[r] = a->x + (q->base[r] + tap + c);
            else
                take_inside(a->x, q, tap + c, &b, c, width, at, rows);
            transpose(at, width, mr, dst + (c - c0) * mr);
        }
        dst += (c1 - c0) * mr;
        k -= c1 - c0;
        c0 = 0;
        kw += taps;
        if (kw == p->kw) kw = 0, row++;
    }
}

void DT(pack_image)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst) {
    const DT(image_matrix) *a = context;
    i += a->first;
    const int64_t line = i / a->p->ow, plane = line / a->p->oh;
    cursor at = {plane / a->p->od, plane % a->p->od, line % a->p->oh, i % a->p->ow};
    panel q;
    q.mr = mr;
    for (int64_t r = 0; r < m; r += mr, dst += mr * k) {
        locate(a->p, &at, MIN(mr, m - r), &q);
        switch (mr) { /* the usual panels, unrolled */
            case 14:
                pack_panel(a, &q, p, k, 14, dst);
                break;
            case 12:
                pack_panel(a, &q, p, k, 12, dst);
                break;
            case 6:
                pack_panel(a, &q, p, k, 6, dst);
                break;
            default:
                pack_panel(a, &q, p, k, mr, dst);
        }
    }
}

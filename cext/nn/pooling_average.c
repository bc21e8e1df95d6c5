/* Average pooling (pooling_windows.h). */
#include "dtconv_burst.h"
#include "pooling_windows.h"

INLINE void average_window(const dtconv_pool *p, const elem *x, int64_t ldx, taps in, real share, int vectors,
                           int64_t count, elem *y) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = (vec){0};
    for (int64_t tap_d = in.d0; tap_d < in.d1; tap_d++)
        for (int64_t tap_h = in.p0; tap_h < in.p1; tap_h++)
            for (int64_t tap_w = in.q0; tap_w < in.q1; tap_w++) {
                const elem *pixel = x + distance(p, tap_d, tap_h, tap_w) * ldx;
                UNROLL for (int v = 0; v < vectors; v++) sum[v] += load_first(pixel + v * V, count);
            }
    UNROLL for (int v = 0; v < vectors; v++) store_first(y + v * V, count, sum[v] * share);
}

/* Whether x comes from memory, and by more than what is done with it takes: then it is read in order first. */
static int reads_ahead(const dtconv_pool *p) {
    const int64_t size = sizeof(elem), some = 16 << 20;
    return size > 2 && p->n * p->id * p->ih * p->iw * p->c * size >= some;
}

/* The rows of x that the row of windows before this one did not read, in order. */
static void read_new_rows(const dtconv_pool *p, const elem *x, int64_t ldx, taps in) {
    const int64_t size = sizeof(elem);
    for (int64_t d = in.d0; d < in.d1; d++)
        for (int64_t h = p->sh && in.p0 == 0 ? max_i64(in.p0, in.p1 - p->sh) : in.p0; h < in.p1; h++)
            dtconv_read_burst(x + distance(p, d, h, 0) * ldx, ldx * size, p->iw, p->c * size);
}

dtconv_status DT(average_pool_forward)(const dtconv_pool *p, const elem *x, int64_t ldx, int include_pad, elem *y,
                                       int64_t ldy) {
    const int ahead = reads_ahead(p);
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->od * p->oh)) \
    num_threads(threads_for(p->n * p->od * p->oh * p->ow * p->c * p->kd * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->od * p->oh; row++) {
        int64_t start;
        taps in = taps_of_row(p, row, &start);
        if (ahead) read_new_rows(p, x + start * ldx, ldx, in);
        for (int64_t ow = 0; ow < p->ow; ow++) {
            const int64_t left = inside(across(p), ow, &in.q0, &in.q1);
            const elem *window = x + (start + left) * ldx;
            const real share = share_of(p, in, include_pad);
            elem *to = y + (row * p->ow + ow) * ldy;
#define AVERAGE(j, vectors, count) average_window(p, window + j, ldx, in, share, vectors, count, to + j)
            FOR_CHANNELS(p->c, AVERAGE);
        }
    }
    return DTCONV_OK;
}

INLINE void average_gather(const window *over, int64_t windows, const elem *dy, int64_t lddy, int64_t channel,
                           int vectors, int64_t count, int accumulate, elem *dx) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = accumulate ? load_first(dx + v * V, count) : (vec){0};
    for (int64_t i = 0; i < windows; i++) {
        const elem *g = dy + over[i].output * lddy + channel;
        UNROLL for (int v = 0; v < vectors; v++) sum[v] += load_first(g + v * V, count) * over[i].share;
    }
    UNROLL for (int v = 0; v < vectors; v++) store_first(dx + v * V, count, sum[v]);
}

dtconv_status DT(average_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, int include_pad,
                                        int accumulate, elem *dx, int64_t lddx) {
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->id * p->ih)) \
    num_threads(threads_for(p->n * p->id * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++) {
        covered k = over_row(p, row);
        line lines[WINDOWS];
        int64_t done = 0, among;
        do {
            among = lines_over(p, &k, done, lines);
            k.j0 = k.j1 = 0;
            for (int64_t w = 0; w < p->iw; w++) {
                window over[WINDOWS];
                over_pixel(p, w, &k);
                elem *to = dx + (row * p->iw + w) * lddx;
                int64_t passed = 0, windows;
                do {
                    windows = windows_over(p, &k, lines, among, w, passed, include_pad, over);
                    const int adds = accumulate || done || passed;
#define GATHER_AVERAGE(j, vectors, count) average_gather(over, windows, dy, lddy, j, vectors, count, adds, to + j)
                    FOR_CHANNELS(p->c, GATHER_AVERAGE);
                    passed += windows;
                } while (windows == WINDOWS);
            }
            done += among;
        } while (among == WINDOWS);
    }
    return DTCONV_OK;
}

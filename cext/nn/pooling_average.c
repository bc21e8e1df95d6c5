/* Average pooling (pooling_windows.h).
 *
 * Windows that overlap are summed in two steps, rows before columns, so that neighbours share the sums of their rows;
 * backward is the same with windows for pixels.  The sums of a part of a row stay in the first cache.  Where windows
 * lie a pixel apart and pixels of results one behind the other, those inside are one long run of elements.
 */
#include "dtconv_burst.h"
#include "pooling_windows.h"

/* Sums of rows that are kept. */
enum { SUMS = 8192 };

/* Channels that are summed at a time, so that some windows beside each other fit; 0: windows are not summed in two
 * steps. */
static int64_t width_of_sums(const dtconv_pool *p) {
    const int64_t together = AT_ONCE * V, columns = p->kw + 8 * p->sw;
    if (!p->sd || !p->sh || !p->sw || p->kw <= p->sw || p->kd * p->kh > WINDOWS) return 0;
    return columns <= SUMS / p->c ? p->c : SUMS / columns / together * together;
}

/* Rows that are added, and what each counts. */
typedef struct {
    int64_t count, ld;
    const elem *first[WINDOWS];
    real factor[WINDOWS];
} rows;

/* Adds what LOAD(i, v) gives for i < count to vectors sum[v]; of three, the most frequent number, without a loop. */
#define ADD_UP(three, count, vectors, sum, LOAD)                                                         \
    do {                                                                                                 \
        if (three) {                                                                                     \
            UNROLL for (int i = 0; i < 3; i++) UNROLL for (int v = 0; v < vectors; v++) sum[v] += LOAD;  \
        } else {                                                                                         \
            for (int64_t i = 0; i < count; i++) UNROLL for (int v = 0; v < vectors; v++) sum[v] += LOAD; \
        }                                                                                                \
    } while (0)

/* Some vectors of sums. */
INLINE void add_some_rows(const rows *of, int three, int64_t offset, int vectors, int64_t number, real *sums) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = (vec){0};
    ADD_UP(three, of->count, vectors, sum, load_first(of->first[i] + offset + v * V, number) * of->factor[i]);
    UNROLL for (int v = 0; v < vectors; v++) store_part(sums + v * V, number, sum[v]);
}

/* sums (pixels, channels; dense) = the sum of the rows from `offset` on. */
static void add_rows(const rows *of, int64_t offset, int64_t pixels, int64_t channels, real *sums) {
    const int64_t joined = of->ld == channels ? pixels : 1, elements = joined * channels;
    for (int64_t pixel = 0; pixel < pixels; pixel += joined, offset += joined * of->ld, sums += elements) {
#define ADD_THREE(j, vectors, number) add_some_rows(of, 1, offset + (j), vectors, number, sums + (j))
#define ADD_ROWS(j, vectors, number) add_some_rows(of, 0, offset + (j), vectors, number, sums + (j))
        if (of->count == 3)
            FOR_CHANNELS(elements, ADD_THREE);
        else
            FOR_CHANNELS(elements, ADD_ROWS);
    }
}

/* Some vectors of results. */
INLINE void add_some_columns(const real *sums, int three, int64_t taps, int64_t channels, int vectors, int64_t number,
                             real factor, int accumulate, elem *y) {
    vec sum[AT_ONCE];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = (vec){0};
    ADD_UP(three, taps, vectors, sum, load_part(sums + i * channels + v * V, number));
    UNROLL for (int v = 0; v < vectors; v++) {
        sum[v] *= factor;
        if (accumulate) sum[v] += load_first(y + v * V, number);
    }
    store_vectors(y, vectors, number, sum);
}

/* y (+)= factor times the sum of the elements of `taps` columns, `channels` apart. */
INLINE void add_columns(const real *sums, int64_t taps, int64_t channels, int64_t elements, real factor, int accumulate,
                        elem *y) {
#define CROSS_THREE(j, vectors, number) \
    add_some_columns(sums + (j), 1, taps, channels, vectors, number, factor, accumulate, y + (j))
#define CROSS(j, vectors, number) \
    add_some_columns(sums + (j), 0, taps, channels, vectors, number, factor, accumulate, y + (j))
    if (taps == 3)
        FOR_CHANNELS(elements, CROSS_THREE);
    else
        FOR_CHANNELS(elements, CROSS);
}

/* How the pixels of a row of results come of columns of sums: forward those of a window's pixels, backward those of the
 * windows over a pixel.  shares: a result is divided by the number of its columns. */
typedef struct {
    const dtconv_pool *p;
    int forward, shares;
    int64_t first_inside, end_inside; /* where windows lie a pixel apart: results with all taps */
} crossing;

static crossing crossing_of(const dtconv_pool *p, int forward, int shares) {
    const int64_t lead = forward ? p->left : p->kw - 1 - p->left, columns = forward ? p->iw : p->ow;
    return (crossing){p, forward, shares, lead, p->sw == 1 ? columns - p->kw + lead + 1 : 0};
}

/* Columns [*from, *to) of a result; what is there already are those of one before it. */
INLINE void columns_of(const crossing *c, int64_t at, int64_t *from, int64_t *to) {
    if (c->forward) {
        const int64_t start = inside(across(c->p), at, from, to);
        *from += start;
        *to += start;
    } else {
        covered k = {.j0 = *from, .j1 = *to};
        over_pixel(c->p, at, &k);
        *from = k.j0;
        *to = k.j1;
    }
}

/* Results [from, to) of a row, of which y is the first and has columns [first, end), as have sums. */
static void cross(const crossing *c, const real *sums, int64_t first, int64_t end, int64_t from, int64_t to,
                  int64_t channels, real factor, int accumulate, elem *y, int64_t ldy) {
    int64_t column = first;
    for (int64_t at = from, next; at < to; at = next) {
        columns_of(c, at, &column, &end);
        const int joins = ldy == channels && at >= c->first_inside && at < c->end_inside;
        next = joins ? min_i64(to, c->end_inside) : at + 1;
        const real share = c->shares ? factor / (real)(end - column) : factor;
        add_columns(sums + (column - first) * channels, end - column, channels, (next - at) * channels, share,
                    accumulate, y + (at - from) * ldy);
    }
}

static void overlapping_forward(const dtconv_pool *p, int64_t width, int64_t row, const elem *x, int64_t ldx,
                                int include_pad, elem *y, int64_t ldy) {
    int64_t start;
    const taps in = taps_of_row(p, row, &start);
    const crossing c = crossing_of(p, 1, !include_pad);
    rows of = {.ld = ldx};
    for (int64_t d = in.d0; d < in.d1; d++)
        for (int64_t h = in.p0; h < in.p1; h++) {
            of.factor[of.count] = 1;
            of.first[of.count++] = x + (start + distance(p, d, h, 0)) * ldx;
        }
    const real share = (real)1 / (real)(include_pad ? p->kd * p->kh * p->kw : of.count);
    const int64_t some = (SUMS / width - p->kw) / p->sw + 1;
    for (int64_t j = 0; j < p->c; j += width)
        for (int64_t from = 0; from < p->ow; from += some) {
            real sums[SUMS];
            const int64_t to = min_i64(from + some, p->ow), channels = min_i64(width, p->c - j);
            int64_t first, end, last, all;
            columns_of(&c, from, &first, &end);
            columns_of(&c, to - 1, &last, &all);
            add_rows(&of, first * ldx + j, all - first, channels, sums);
            cross(&c, sums, first, end, from, to, channels, share, 0, y + (row * p->ow + from) * ldy + j, ldy);
        }
}

static void overlapping_backward(const dtconv_pool *p, int64_t width, int64_t row, const elem *dy, int64_t lddy,
                                 int include_pad, int accumulate, elem *dx, int64_t lddx) {
    const covered k = over_row(p, row);
    const crossing c = crossing_of(p, 0, 0);
    line lines[WINDOWS];
    rows of = {.count = lines_over(p, &k, 0, lines), .ld = lddy};
    for (int64_t i = 0; i < of.count; i++) {
        of.first[i] = dy + lines[i].output * lddy;
        of.factor[i] = (real)1 / (real)((include_pad ? p->kd * p->kh : lines[i].inside) * p->kw);
    }
    const int64_t some = (SUMS / width - 1) * p->sw - p->kw + 1;
    for (int64_t j = 0; j < p->c; j += width)
        for (int64_t from = 0, first = 0, end = 0; from < p->iw; from += some) {
            real sums[SUMS];
            const int64_t to = min_i64(from + some, p->iw), channels = min_i64(width, p->c - j);
            columns_of(&c, from, &first, &end);
            int64_t last = first, all = end;
            columns_of(&c, to - 1, &last, &all);
            add_rows(&of, first * lddy + j, all - first, channels, sums);
            for (int64_t ow = first; ow < all && !include_pad; ow++) { /* windows that reach out share among fewer */
                int64_t q0, q1;
                inside(across(p), ow, &q0, &q1);
                if (q1 - q0 == p->kw) continue;
                real *of_window = sums + (ow - first) * channels;
                for (int64_t i = 0; i < channels; i++) of_window[i] *= (real)p->kw / (real)(q1 - q0);
            }
            cross(&c, sums, first, end, from, to, channels, 1, accumulate, dx + (row * p->iw + from) * lddx + j, lddx);
        }
}

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
    UNROLL for (int v = 0; v < vectors; v++) sum[v] *= share;
    store_vectors(y, vectors, count, sum);
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
    if (!fits(p)) return DTCONV_ARGUMENT;
    const int ahead = reads_ahead(p);
    const int64_t width = width_of_sums(p);
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->od * p->oh)) \
    num_threads(dtconv_threads_to_move(p->n * p->od * p->oh * p->ow * p->c * p->kd * p->kh * p->kw))
    for (int64_t row = 0; row < p->n * p->od * p->oh; row++) {
        if (width) {
            overlapping_forward(p, width, row, x, ldx, include_pad, y, ldy);
            continue;
        }
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
    store_vectors(dx, vectors, count, sum);
}

dtconv_status DT(average_pool_backward)(const dtconv_pool *p, const elem *dy, int64_t lddy, int include_pad,
                                        int accumulate, elem *dx, int64_t lddx) {
    if (!fits(p)) return DTCONV_ARGUMENT;
    const int64_t width = width_of_sums(p);
#pragma omp parallel for schedule(dynamic, dtconv_piece(p->n * p->id * p->ih)) \
    num_threads(dtconv_threads_to_move(p->n * p->id * p->ih * p->iw * p->c))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++) {
        if (width) {
            overlapping_backward(p, width, row, dy, lddy, include_pad, accumulate, dx, lddx);
            continue;
        }
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

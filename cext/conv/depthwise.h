/* DEPTHWISE: groups == ci, each input channel c makes `mult` output channels c * mult + i; direct, no GEMM.
 *
 *   forward            y[n, oh, ow, c * mult + i] = sum over taps of x[n, ih, iw, c] * w[kh, kw, c * mult + i]
 *   backward_data      dx[n, ih, iw, c] = sum over taps and i of dy[n, oh, ow, c * mult + i] * w[kh, kw, c * mult + i]
 *   backward_weights   dw[kh, kw, c * mult + i] = sum over (n, oh, ow) of x[n, ih, iw, c] * dy[n, oh, ow, c * mult + i]
 *
 * With a depth the taps are kd x kh x kw, and so are the sums.
 *
 * A thread keeps the rows that are read next in a ring, in its cache: each row of an image is read once, from its first
 * element to its last, is normalized on the way where that is wanted, and lies there vector by vector of channels, of
 * each all columns, with zeros beside the image.  So taps are loads at fixed distances, whatever the number of
 * channels, and borders are no case of their own.  A tile of neighbouring pixels is summed in registers; each vector of
 * the ring that it loads serves all taps that meet it.
 *
 * backward_data is the same with the images swapped: pixels whose columns are equal modulo the stride read neighbouring
 * columns of dy, by every stride-th tap from the last to the first.
 */
#ifndef DTCONV_DEPTHWISE_H
#define DTCONV_DEPTHWISE_H

#include "gather.h"
#include "normalize.h"

enum {
    DEPTHWISE_TILE = 8, /* neighbouring pixels whose sums are in registers */
    DEPTHWISE_AHEAD = 4 /* rows that are loaded ahead, at most */
};

/* Rows of an image that will be read, which go to the second cache a few lines at a time: `pixels` of a row, `bytes` of
 * each, `step` bytes apart. */
typedef struct {
    const char *rows[DEPTHWISE_AHEAD];
    int64_t count, pixels, bytes, step;
    int64_t row, pixel, byte; /* how far it is */
    int64_t of_call;          /* lines */
} dtconv_depthwise_ahead;

static inline void dtconv_look_ahead(dtconv_depthwise_ahead *a) {
    for (int64_t lines = 0; lines < a->of_call && a->row < a->count; lines++) {
        __builtin_prefetch(a->rows[a->row] + a->pixel * a->step + a->byte, 0, 2);
        a->byte += 64;
        if (a->byte < a->bytes) continue;
        a->byte = 0;
        if (++a->pixel < a->pixels) continue;
        a->pixel = 0, a->row++;
    }
}

/* `calls`: of dtconv_look_ahead, over which the lines are spread. */
static inline void dtconv_spread(dtconv_depthwise_ahead *a, int64_t calls) {
    if (a->bytes == a->step) a->bytes *= a->pixels, a->pixels = 1;
    const int64_t lines = a->count * a->pixels * ((a->bytes + 63) / 64);
    a->of_call = (lines + calls - 1) / calls;
}

/* One axis: its extents, and how pixels that are written (or of dy, for backward_weights) meet those that are read. */
typedef struct {
    int64_t read, written, taps, stride, dilation, pad;
} dtconv_depthwise_axis;

/* What all threads share. */
typedef struct {
    const DT(conv_args) * args;
    const DT(conv_normalization) * prologue; /* of what is read, or NULL */
    int turned;                              /* backward_data: the taps go backwards */
    dtconv_depthwise_axis d, h, w;
    const elem *read;
    int64_t n, ci, mult, ldr;
    int64_t of_read; /* vectors that are read for each vector of ci: mult where dy is read, else 1 */
    int64_t chunk;   /* channels of ci that are done at a time */
    int64_t slots;   /* rows of a ring, one ring for each tap along the depth */
    int64_t columns; /* that are written (of dy, for backward_weights) at a time: all, but where rows are long */
    int64_t width;   /* columns of a row of a ring */
    int64_t before; /* columns of a ring before the one that is `stride` times the first one that is written, or is that
                       divided by the stride, where dy is read */
    int64_t threads;
    const real *filters; /* packed: (vector of ci, i, tap, V) */
} DT(depthwise_pass);

/* Rows of a ring and the rows of filters that meet them. */
typedef struct {
    int64_t count;
    const real **x; /* (kd * kh), of the first vector */
    int64_t *taps;  /* (kd * kh): the first tap of the row */
} DT(depthwise_rows);

/* A thread's own: the ring, which row of the image is in each of its rows, and what is read of it next. */
typedef struct {
    real *ring;
    int64_t *held; /* (kd, slots) */
    DT(depthwise_rows) rows;
    int64_t first, channels; /* of ci, whose rows it holds */
    int64_t origin;          /* the image's column in its column 0; it may be less than 0 */
} DT(depthwise_ring);

/* turned: for backward_data. */
DT(depthwise_pass) DT(depthwise_prepare)(const dtconv_conv *p, int turned);

/* Elements between two vectors of the ring, and between two vectors of filters. */
static inline int64_t DT(depthwise_vector)(const DT(depthwise_pass) * s) { return s->d.taps * s->slots * s->width * V; }
static inline int64_t DT(depthwise_filter)(const DT(depthwise_pass) * s) {
    return s->d.taps * s->h.taps * s->w.taps * V;
}

size_t DT(depthwise_filters_bytes)(const DT(depthwise_pass) * s);
size_t DT(depthwise_ring_bytes)(const DT(depthwise_pass) * s);
/* Packs the filters to `to`; called by all threads of a team. */
void DT(depthwise_pack)(const DT(depthwise_pass) * s, real *to);
/* A ring on memory aligned to 64; it holds nothing yet. */
DT(depthwise_ring) DT(depthwise_ring_on)(const DT(depthwise_pass) * s, void *memory);
/* Begins `channels` of ci from `first` on, and what columns from `column` on that are written meet. */
void DT(depthwise_begin)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t first, int64_t channels,
                         int64_t column);
/* Puts the rows that row `row` of plane `plane` (n, depth) of what is written meets into the ring, and says where they
 * are. */
void DT(depthwise_meet)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t plane, int64_t row);

/* The rows that row `row` of plane `plane` will meet and that are not in the ring yet. */
dtconv_depthwise_ahead DT(depthwise_ahead)(const DT(depthwise_pass) * s, const DT(depthwise_ring) * ring, int64_t plane,
                                           int64_t row);

/* Writes rows [row, end) of all planes of what is written, all columns of what is made of `channels` of ci from `first`
 * on (a vector's first, and not more than a chunk), to `to`, pixels `ld` apart; added: such rows that are added, or
 * NULL.  Nothing follows the sums; s->filters are packed.  Rows that the last call has left in the ring are not read
 * again. */
void DT(depthwise_rows_to)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t first, int64_t channels,
                           int64_t row, int64_t end, elem *to, int64_t ld, const elem *added);

/* `count` channels that lie `step` apart; the rest of the vector is 0. */
INLINE vec gather_channels(const elem *src, int64_t step, int64_t count) {
    if (step == 1) return load_first(src, count);
    vec v = {0};
    for (int64_t i = 0; i < count; i++) v[i] = widen(src[i * step]);
    return v;
}

INLINE void scatter_channels(elem *dst, int64_t step, int64_t count, vec v) {
    if (step == 1)
        store_first(dst, count, v);
    else
        for (int64_t i = 0; i < count; i++) dst[i * step] = narrow(v[i]);
}

#endif

/* Convolution of long signals with a filter, in parts: results [start, stop) of
 *
 *   y[o] = sum over t of b[t] a[o - t]
 *
 * The signal is cut into overlapping windows of `points`, `hop` apart, the filter into parts of `part` taps.  Window c
 * begins at start + c hop - (part - 1); the hop results of block c are the sum over parts j of what window c - j gives,
 * part being hop where there is more than one.  Products are added up in the spectral domain, a filter along the
 * windows for each frequency: one inverse transform for each block.
 *
 * V windows are transformed at a time, one in each lane; spectra of a chunk of windows stay in the second cache.
 */
#include <string.h>

#include "../conv/conv_internal.h"
#include "../conv/transpose.h"
#include "dtconv_fft.h"
#include "dtconv_vector.h"

enum { CHUNK = 128, WIDE = 4 }; /* blocks of a chunk; vectors of blocks that are filtered at a time */

typedef struct {
    const dtconv_overlap *p;
    const real *a;
    real *y;
    DT(fft_plan) plan;
    int64_t frequencies, parts, windows; /* windows of a chunk */
    int64_t ldx, ldy, ldh;
    real *h; /* (frequency, 2, ldh) */
} overlap;

static int64_t parts_of(const dtconv_overlap *p) { return dtconv_ceil_div(p->taps, p->part); }

static overlap overlap_of(const dtconv_overlap *p) {
    overlap s = {.p = p, .frequencies = p->points / 2 + 1, .parts = parts_of(p)};
    s.windows = dtconv_round_to(CHUNK + s.parts - 1, 2 * V);
    s.ldx = s.windows + V;
    s.ldy = CHUNK + V;
    s.ldh = dtconv_round_to(s.parts, V);
    return s;
}

static int64_t shared_size(const overlap *s) {
    return dtconv_line(DT(fft_plan_size)(s->p->points)) + dtconv_line(2 * s->frequencies * s->ldh);
}

static int64_t thread_size(const overlap *s) {
    const int64_t points = s->p->points;
    return dtconv_line(2 * s->frequencies * (s->ldx + s->ldy)) + dtconv_line(6 * points * V + 64) +
           dtconv_line(V * (points + V)) + dtconv_line(DT(fft_scratch_size)(points));
}

/* The points of V signals as vectors: `count` elements of each of `lanes` signals that begin at first, first + step,
 * ... of the `length` elements at x; zeros outside of them, and behind `count`. */
static void load_lanes(const real *x, int64_t length, int64_t first, int64_t step, int64_t lanes, int64_t count,
                       real *copies, int64_t points, real *to) {
    const real *at[V];
    for (int64_t l = 0; l < V; l++) {
        const int64_t begin = first + l * step, low = MAX(0, MIN(-begin, count)), high = MIN(count, length - begin);
        if (l < lanes && low == 0 && high == count) {
            at[l] = x + begin;
            continue;
        }
        real *copy = copies + l * (points + V);
        memset(copy, 0, (size_t)count * sizeof(real));
        if (l < lanes && high > low) memcpy(copy + low, x + begin + low, (size_t)(high - low) * sizeof(real));
        at[l] = copy;
    }
    transpose(at, count, V, to);
}

/* Spectra of the filter's parts, with the scale of all. */
static void filter_spectra(overlap *s, const real *b, real *memory) {
    const dtconv_overlap *p = s->p;
    const int64_t n = p->points;
    real *lanes = memory, *x = lanes + n * V + 64, *z = x + 2 * n * V, *copies = memory + dtconv_line(6 * n * V + 64);
    real *scratch = copies + dtconv_line(V * (n + V));
    const real scale = (real)(0.5 / (double)n);
    for (int64_t j = 0; j < s->parts; j += V) {
        memset(x, 0, (size_t)(2 * n * V) * sizeof(real));
        load_lanes(b, p->taps, j * p->part, p->part, MIN(V, s->parts - j), p->part, copies, n, lanes);
        for (int64_t i = 0; i < p->part; i++) store(x + 2 * i * V, load(lanes + i * V) * scale);
        const DT(fft_points) from = {x, x + V, 2 * V}, to = {z, z + V, 2 * V};
        DT(fft_apply)(&s->plan, &from, &to, scratch);
        for (int64_t k = 0; k < s->frequencies; k++) {
            store(s->h + 2 * k * s->ldh + j, load(z + 2 * k * V));
            store(s->h + (2 * k + 1) * s->ldh + j, load(z + 2 * k * V + V));
        }
    }
}

/* Spectra of windows [first, first + 2 V), twice as large, to columns from `column` on. */
static void window_spectra(const overlap *s, const real *a, int64_t first, int64_t column, real *spectra,
                           real *memory) {
    const dtconv_overlap *p = s->p;
    const int64_t n = p->points;
    real *lanes = memory, *x = lanes + n * V + 64, *z = x + 2 * n * V, *copies = memory + dtconv_line(6 * n * V + 64);
    real *scratch = copies + dtconv_line(V * (n + V));
    for (int half = 0; half < 2; half++) {
        const int64_t begin = p->start + (first + half * V) * p->hop - (p->part - 1);
        load_lanes(a, p->length, begin, p->hop, V, n, copies, n, lanes);
        for (int64_t i = 0; i < n; i++) store(x + (2 * i + half) * V, load(lanes + i * V));
    }
    const DT(fft_points) from = {x, x + V, 2 * V}, to = {z, z + V, 2 * V};
    DT(fft_apply)(&s->plan, &from, &to, scratch);
    for (int64_t k = 0; k < s->frequencies; k++) {
        const real *here = z + 2 * k * V, *mirror = z + 2 * (k ? n - k : 0) * V;
        const vec re = load(here), im = load(here + V), other_re = load(mirror), other_im = load(mirror + V);
        real *real_part = spectra + 2 * k * s->ldx + column, *imaginary = real_part + s->ldx;
        store(real_part, re + other_re);
        store(real_part + V, im + other_im);
        store(imaginary, im - other_im);
        store(imaginary + V, other_re - re);
    }
}

/* y = the filter h of one frequency along the windows x, WIDE vectors of blocks; parts end at x. */
INLINE void filter_blocks(int vectors, int64_t parts, const real *h_re, const real *h_im, const real *x_re,
                          const real *x_im, real *y_re, real *y_im) {
    vec re[WIDE], im[WIDE];
    UNROLL for (int v = 0; v < vectors; v++) re[v] = im[v] = (vec){0};
    for (int64_t j = 0; j < parts; j++, x_re--, x_im--) {
        const real a = h_re[j], b = h_im[j];
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec c = load(x_re + v * V), d = load(x_im + v * V);
            re[v] += c * a;
            re[v] -= d * b;
            im[v] += c * b;
            im[v] += d * a;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        store(y_re + v * V, re[v]);
        store(y_im + v * V, im[v]);
    }
}

/* Results of blocks [block, block + 2 V), of which `column` on are in the chunk's spectra. */
static void blocks_back(const overlap *s, int64_t block, int64_t column, const real *spectra, real *y, real *memory) {
    const dtconv_overlap *p = s->p;
    const int64_t n = p->points, count = p->stop - p->start;
    real *x = memory, *z = x + 2 * n * V, *scratch = memory + dtconv_line(6 * n * V + 64) + dtconv_line(V * (n + V));
    for (int64_t k = 0; k < s->frequencies; k++) {
        const real *re = spectra + 2 * k * s->ldy + column, *im = re + s->ldy;
        real *here = x + 2 * k * V, *mirror = x + 2 * (k ? n - k : 0) * V;
        const vec re0 = load(re), re1 = load(re + V), im0 = load(im), im1 = load(im + V);
        if (k == 0 || 2 * k == n) {
            store(here, re0);
            store(here + V, re1);
            continue;
        }
        store(here, re0 - im1);
        store(here + V, im0 + re1);
        store(mirror, re0 + im1);
        store(mirror + V, re1 - im0);
    }
    const DT(fft_points) from = {x + V, x, 2 * V}, to = {z + V, z, 2 * V};
    DT(fft_apply)(&s->plan, &from, &to, scratch);
    for (int64_t i = 0; i < p->hop; i += V) { /* V results of V blocks at a time */
        const int64_t some = MIN(V, p->hop - i);
        for (int half = 0; half < 2; half++) {
            real square[V * V + V] __attribute__((aligned(64)));
            const real *at[V];
            for (int64_t r = 0; r < V; r++) at[r] = z + (2 * (p->part - 1 + i + MIN(r, some - 1)) + half) * V;
            transpose(at, V, V, square);
            for (int64_t l = 0; l < V; l++) {
                const int64_t place = (block + half * V + l) * p->hop + i;
                if (place < count) store_part(y + place, MIN(some, count - place), load(square + l * V));
            }
        }
    }
}

/* Blocks [first, first + CHUNK) of one signal. */
static void chunk_of(const overlap *s, const real *a, int64_t first, int64_t blocks, real *y, real *own) {
    real *spectra = own, *sums = own + 2 * s->frequencies * s->ldx;
    real *memory = own + dtconv_line(2 * s->frequencies * (s->ldx + s->ldy));
    const int64_t count = dtconv_round_to(MIN(CHUNK, blocks - first), 2 * V), before = s->parts - 1;
    for (int64_t c = 0; c < count + before; c += 2 * V) window_spectra(s, a, first - before + c, c, spectra, memory);
    for (int64_t k = 0; k < s->frequencies; k++) {
        const real *h = s->h + 2 * k * s->ldh, *x = spectra + 2 * k * s->ldx + before;
        real *to = sums + 2 * k * s->ldy;
        int64_t c = 0;
        for (; c + WIDE * V <= count; c += WIDE * V)
            filter_blocks(WIDE, s->parts, h, h + s->ldh, x + c, x + s->ldx + c, to + c, to + s->ldy + c);
        for (; c < count; c += V)
            filter_blocks(1, s->parts, h, h + s->ldh, x + c, x + s->ldx + c, to + c, to + s->ldy + c);
    }
    for (int64_t c = 0; c < count; c += 2 * V) blocks_back(s, first + c, c, sums, y, memory);
}

static int fits(const dtconv_overlap *p) {
    const int64_t most = DTCONV_MOST_ELEMENTS;
    return p->signals > 0 && p->length > 0 && p->taps > 0 && p->taps <= most && p->part > 0 && p->hop > 0 &&
           p->points > 1 && dtconv_fft_length(p->points) && p->hop <= p->points && p->part <= p->points &&
           p->hop + p->part - 1 <= p->points && (parts_of(p) == 1 || p->part == p->hop) && p->start >= 0 &&
           p->stop > p->start && p->stop <= 2 * most && DTCONV_FIT_WITHIN(most, p->signals, p->length) &&
           DTCONV_FIT_WITHIN(most, p->signals, p->stop - p->start);
}

size_t DT(overlap_workspace)(const dtconv_overlap *p) {
    if (!fits(p)) return 0;
    const overlap s = overlap_of(p);
    return 64 + (size_t)(shared_size(&s) + dtconv_get_num_threads() * thread_size(&s)) * sizeof(real);
}

dtconv_status DT(overlap)(const dtconv_overlap *p, const real *a, const real *b, real *y, void *workspace,
                          size_t bytes) {
    if (!fits(p)) return DTCONV_ARGUMENT;
    if (bytes < DT(overlap_workspace)(p)) return DTCONV_WORKSPACE;
    overlap s = overlap_of(p);
    real *plan = (real *)(((uintptr_t)workspace + 63) / 64 * 64), *threads = plan + shared_size(&s);
    s.h = plan + dtconv_line(DT(fft_plan_size)(p->points));
    DT(fft_plan_on)(p->points, plan, &s.plan);
    filter_spectra(&s, b, threads + dtconv_line(2 * s.frequencies * (s.ldx + s.ldy)));
    const int64_t count = p->stop - p->start, blocks = dtconv_ceil_div(count, p->hop);
    const int64_t chunks = dtconv_ceil_div(blocks, CHUNK);
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static)
    for (int64_t unit = 0; unit < p->signals * chunks; unit++) {
        const int64_t signal = unit / chunks;
        chunk_of(&s, a + signal * p->length, unit % chunks * CHUNK, blocks, y + signal * count,
                 threads + dtconv_thread_id() * thread_size(&s));
    }
    return DTCONV_OK;
}

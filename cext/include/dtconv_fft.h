/* Complex Fourier transforms of vectors: the plan of a length, and its application.
 *
 *   X[k] = sum over j of x[j] * exp(-2 pi i j k / n)        no scale; the inverse: exchange real and imaginary parts
 *
 * Each point is a vector of channels, real and imaginary parts in vectors of their own: a butterfly is a few vector
 * operations, whatever the number of channels.  n is a product of powers of 2, 3, 5 and 7, at most FFT_MOST.
 *
 * No include guard: see dtconv_both.h.
 */
#ifndef DTCONV_FFT_SIZES
#define DTCONV_FFT_SIZES
#include "dtconv_limits.h"

enum { DTCONV_FFT_MOST = 256, DTCONV_FFT_PASSES = 5 };

typedef enum {
    DTCONV_FFT_COMPLEX = 0, /* complex to complex */
    DTCONV_FFT_INVERSE = 1, /* the same, with exp(+2 pi i j k / n) */
    DTCONV_FFT_REAL = 2,    /* real to complex: the frequencies 0 .. wide / 2 of the last axis */
    DTCONV_FFT_TO_REAL = 3, /* its inverse */
} dtconv_fft_kind;

/* Transforms of `outer` arrays (high, wide, inner) over their first two axes; high is 1 where there is one axis only.
 * x is (outer, x_high, x_wide, inner): what is beyond the points is left out, what is missing is zero; of TO_REAL,
 * x_wide counts frequencies.  Complex elements are pairs of reals.  x and y have at most DTCONV_MOST_ELEMENTS. */
typedef struct {
    int64_t outer, high, wide, inner, x_high, x_wide;
    dtconv_fft_kind kind;
    double scale;
} dtconv_fft_problem;

/* Which blocks a convolution is cut into. */
typedef enum {
    DTCONV_DISCARD = 0, /* results into blocks, of windows of a that overlap */
    DTCONV_ADD = 1,     /* a into blocks, the results of which overlap and are added */
    DTCONV_PARTS = 2,   /* a and b; products of one offset are summed before they are added */
} dtconv_overlap_method;

/* Results [start, stop) of the full convolution of `signals` arrays a (rows, columns) with b; rows are 1 of signals
 * with one axis.
 *
 * block: results (DISCARD) or elements of a; part: of PARTS, elements of b's blocks, of which one divides the other;
 * else those of b.  steps: blocks whose numbers have the same remainder by it are added at a time; they do not meet.
 * points: first, high, wide of the transforms (ring.h), 0 where blocks are multiplied without.  is_private: each
 * remainder has results of its own, which are added at the end, instead.  [0] is of rows, [1] of columns. */
typedef struct {
    int64_t signals, a[2], b[2], start[2], stop[2], block[2], part[2], steps[2], points[3];
    dtconv_overlap_method method;
    int is_private, threads;
} dtconv_overlap;

/* What was done: blocks, elements read and written, results computed, those kept or not, and elements of a block's
 * memory. */
enum { DTCONV_OVERLAP_COUNTS = 5 };

/* What a layer with the filter b does; y, dy: results [start, stop). */
typedef enum {
    DTCONV_FILTER = 0,             /* of_b from x = b */
    DTCONV_FORWARD_PASS = 1,       /* of_a and y from x = a and of_b */
    DTCONV_BACKWARD_DATA_PASS = 2, /* of_dy and y = da from x = dy and of_b */
    DTCONV_BACKWARD_WEIGHTS = 3,   /* y = db from of_a and of_dy */
} dtconv_overlap_pass;
#endif

/* Factors of the transforms, which all calls with such points share: their bytes, 0 where there are none, and
 * themselves.
 */
size_t DT(overlap_plan_bytes)(const dtconv_overlap *p);
void DT(overlap_plan)(const dtconv_overlap *p, void *plan);
size_t DT(overlap_workspace)(const dtconv_overlap *p);
/* counts: DTCONV_OVERLAP_COUNTS numbers, or NULL. */
dtconv_status DT(overlap)(const dtconv_overlap *p, const real *a, const real *b, real *y, int64_t *counts,
                          const void *plan, void *workspace, size_t bytes);

/* A pass of a layer, p being of DTCONV_ADD with transforms: each block is transformed once, and its values, so many
 * elements (of b, or of a and of dy each), stay in arrays of the caller, aligned to 64 bytes. */
int64_t DT(overlap_values)(const dtconv_overlap *p, int of_b);
dtconv_status DT(overlap_layer)(const dtconv_overlap *p, dtconv_overlap_pass pass, const real *x, real *y, real *of_a,
                                real *of_b, real *of_dy, const void *plan, void *workspace, size_t bytes);

dtconv_status DT(fft_batch)(const dtconv_fft_problem *p, const real *x, real *y, void *workspace, size_t bytes);
size_t DT(fft_batch_workspace)(const dtconv_fft_problem *p);

/* Passes of radix r over n points, with their twiddle factors: Stockham's algorithm, which needs no reordering. */
typedef struct {
    int n, passes;
    struct {
        int radix, m, s; /* butterflies of radix points: m of them with different factors, s of them with the same */
        const real *factors; /* (m, radix - 1, 2) */
    } pass[DTCONV_FFT_PASSES];
} DT(fft_plan);

/* Where points are: real part of point i at re + i * step. */
typedef struct {
    real *re, *im;
    int64_t step;
} DT(fft_points);

/* Whether there is a plan of that length. */
int dtconv_fft_length(int64_t n);

/* Passes over the points of such a length; more than three count as four. */
int dtconv_fft_passes(int64_t n);

/* Elements of memory of a plan. */
int64_t DT(fft_plan_size)(int64_t n);

/* A plan whose factors are in `memory`. */
void DT(fft_plan_on)(int64_t n, real *memory, DT(fft_plan) * plan);

/* Elements of scratch memory of a transform. */
int64_t DT(fft_scratch_size)(int64_t n);

/* One vector of channels: from x to y, which may not overlap. */
void DT(fft_apply)(const DT(fft_plan) * plan, const DT(fft_points) * x, const DT(fft_points) * y, real *scratch);

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

/* Results [start, stop) of the full convolution of `signals` signals of `length` elements with a filter of `taps`, in
 * parts of `part` taps: equal to `hop` where they are more than one; hop + part - 1 <= points.  All signals together,
 * all results and the filter have at most DTCONV_MOST_ELEMENTS each; start is 0 or more. */
typedef struct {
    int64_t signals, length, taps, start, stop, points, hop, part;
} dtconv_overlap;
#endif

dtconv_status DT(overlap)(const dtconv_overlap *p, const real *a, const real *b, real *y, void *workspace,
                          size_t bytes);
size_t DT(overlap_workspace)(const dtconv_overlap *p);

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

/* The same from pixels: channels from c on of the real parts re[i] and of the imaginary parts im[i]. */
void DT(fft_pixels)(const DT(fft_plan) * plan, const real *const *re, const real *const *im, int64_t c,
                    const DT(fft_points) * y, real *scratch);

/* Batched Fourier transforms of 2 to 256 points, real and complex, along one axis of any array.
 *
 *   X_k = sum over j of x_j exp(-2 pi i j k / N);   x_j = scale * sum over k of X_k exp(2 pi i j k / N)
 *
 * A block takes one place of the batch and CHANNELS neighbours in it.  It reads them through shared memory, so that
 * whatever lies contiguously is read so; then each warp transforms its columns.  A lane holds points lane, lane + 32,
 * ...: the first stages pair points of one lane, the last five (all up to N = 32) exchange them by shuffles.  Below 32
 * points a warp has several columns.  Forward is in decimation in frequency, backward in time: the order in between is
 * bit-reversed, and it is undone, or made, where a point is written to, or read from, shared memory.
 *
 * Points outside of the `extent` that begins at `start` are zeros when they are read and left out when they are
 * written: padding and clipping copy nothing.  Frequencies may be written with any distance, such that a product over
 * channels follows for each of them.  A spectrum lies in planes: real and imaginary parts, and for products by Gauss's
 * method their sum as well; three planes of products become a spectrum when they are read.
 */
#include "dtconv_cuda.h"

/* What sizes tells, in this order; distances are in complex or real elements of the array. */
enum {
    OUTER,
    MIDDLE,
    CHANNELS_IN_ALL, /* places of the batch, and channels of each */
    FROM_OUTER,
    FROM_MIDDLE,
    FROM_CHANNEL, /* distances where it reads */
    FROM_POINT,
    FROM_UNIT,
    FROM_PLANE,
    FROM_PLANES, /* of a complex element and between its planes; 1 plane: real */
    TO_OUTER,
    TO_MIDDLE,
    TO_CHANNEL,
    TO_POINT,
    TO_UNIT,
    TO_PLANE,
    TO_PLANES,
    START,
    EXTENT,      /* of points */
    FREQUENCIES, /* N, or N / 2 + 1 of a real transform */
    CONJUGATE,   /* the spectrum is conjugated: where it is written, or read */
    FROM_POINTS_FIRST,
    TO_POINTS_FIRST, /* whether neighbouring points, not channels, are neighbours in memory */
    ACCUMULATE,
    SIZES
};

struct complex {
    real re, im;
};

__device__ inline complex plus(complex a, complex b) {
    const complex c = {a.re + b.re, a.im + b.im};
    return c;
}

__device__ inline complex minus(complex a, complex b) {
    const complex c = {a.re - b.re, a.im - b.im};
    return c;
}

/* a exp(-2 pi i k / N), or its conjugate factor; factors: cosines and sines for k < N / 2 */
__device__ inline complex turned(complex a, Array<const real> factors, int k, int inverse) {
    const real cosine = factors[2 * k], sine = inverse ? -factors[2 * k + 1] : factors[2 * k + 1];
    const complex c = {a.re * cosine + a.im * sine, a.im * cosine - a.re * sine};
    return c;
}

__device__ inline complex from_lane(complex a, int half, int width) {
    const complex c = {__shfl_xor_sync(FULL, a.re, half, width), __shfl_xor_sync(FULL, a.im, half, width)};
    return c;
}

template <int N>
struct shape {
    enum {
        LANES = N < 32 ? N : 32, /* that have a column */
        EACH = N / LANES,        /* points of a lane */
        COLUMNS = 32 / LANES,    /* of a warp at a time */
        CHANNELS = N <= 32 ? 32 : (N == 64 ? 16 : 8),
        PITCH = CHANNELS + 1
    };
};

template <int N>
__device__ inline int reversed(int i) {
    int r = 0;
    for (int bit = 1; bit < N; bit *= 2) r = 2 * r + ((i & bit) != 0);
    return r;
}

/* Decimation in frequency: point p of the result has frequency reversed(p). */
template <int N>
__device__ inline void decimate_frequency(complex *v, int lane, Array<const real> factors) {
    typedef shape<N> S;
    for (int half = N / 2; half >= (int)S::LANES; half /= 2)
        for (int e = 0; e < (int)S::EACH; e++) {
            const int distance = half / S::LANES;
            if (e & distance) continue;
            const complex a = v[e], b = v[e + distance];
            v[e] = plus(a, b);
            v[e + distance] = turned(minus(a, b), factors, (e * S::LANES + lane) % half * (N / 2 / half), 0);
        }
    for (int half = S::LANES / 2; half; half /= 2)
        for (int e = 0; e < (int)S::EACH; e++) {
            const complex other = from_lane(v[e], half, S::LANES);
            v[e] =
                lane & half ? turned(minus(other, v[e]), factors, lane % half * (N / 2 / half), 0) : plus(v[e], other);
        }
}

/* Decimation in time: point p of what is given has frequency reversed(p). */
template <int N>
__device__ inline void decimate_time(complex *v, int lane, Array<const real> factors) {
    typedef shape<N> S;
    for (int half = 1; half < (int)S::LANES; half *= 2)
        for (int e = 0; e < (int)S::EACH; e++) {
            if (lane & half) v[e] = turned(v[e], factors, lane % half * (N / 2 / half), 1);
            const complex other = from_lane(v[e], half, S::LANES);
            v[e] = lane & half ? minus(other, v[e]) : plus(v[e], other);
        }
    for (int half = S::LANES; half < N; half *= 2)
        for (int e = 0; e < (int)S::EACH; e++) {
            const int distance = half / S::LANES;
            if (e & distance) continue;
            const complex a = v[e];
            const complex b = turned(v[e + distance], factors, (e * S::LANES + lane) % half * (N / 2 / half), 1);
            v[e] = plus(a, b);
            v[e + distance] = minus(a, b);
        }
}

/* A complex element; its planes are parts, or three products that are combined. */
__device__ inline complex read(Array<const real> x, int64_t at, int64_t planes, int64_t plane) {
    complex a = {x[at], planes > 1 ? x[at + plane] : 0};
    if (planes == 3) {
        const real sum = x[at + 2 * plane], first = a.re, second = a.im;
        a.re = first - second;
        a.im = sum - first - second;
    }
    return a;
}

__device__ inline void write(Array<real> y, int64_t at, int64_t planes, int64_t plane, complex a, int accumulate) {
    y[at] = accumulate ? y[at] + a.re : a.re;
    if (planes > 1) y[at + plane] = accumulate ? y[at + plane] + a.im : a.im;
    if (planes > 2) y[at + 2 * plane] = a.re + a.im;
}

/* Where one side of a transform lies, in registers: what is written might be sizes, for all that the compiler knows. */
struct side {
    int64_t channel, point, unit, plane;
    int planes, points_first;
};

__device__ inline side side_of(Array<const int64_t> s, int channel, int points_first) {
    const side a = {s[channel],     s[channel + 1],      s[channel + 2],
                    s[channel + 3], (int)s[channel + 4], (int)s[points_first]};
    return a;
}

/* The transforms of one block; a row of shared memory has one point of all its channels. */
template <int N, int INVERSE, typename R, typename I>
__device__ inline void transform(R &re, I &im, Array<const int64_t> s, double scale, Array<const real> factors,
                                 Array<const real> x, Array<real> y) {
    typedef shape<N> S;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t channels = s[CHANNELS_IN_ALL];
    const unsigned groups = (unsigned)((channels + S::CHANNELS - 1) / S::CHANNELS), place = blockIdx.x / groups;
    const int64_t first = (int64_t)(blockIdx.x % groups) * S::CHANNELS;
    const unsigned outer = place / (unsigned)s[MIDDLE], middle = place % (unsigned)s[MIDDLE];
    const int64_t from = outer * s[FROM_OUTER] + middle * s[FROM_MIDDLE] + first * s[FROM_CHANNEL];
    const int64_t to = outer * s[TO_OUTER] + middle * s[TO_MIDDLE] + first * s[TO_CHANNEL];
    const side in = side_of(s, FROM_CHANNEL, FROM_POINTS_FIRST);
    const int frequencies = (int)s[FREQUENCIES], start = (int)s[START], extent = (int)s[EXTENT];
    const bool conjugate = s[CONJUGATE] != 0;
    for (int t = threadIdx.x; t < N * (int)S::CHANNELS; t += BLOCK) {
        const int j = in.points_first ? t % N : t / S::CHANNELS, c = in.points_first ? t / N : t % S::CHANNELS;
        complex a = {0, 0};
        const int mirrored = INVERSE && j >= frequencies ? N - j : j; /* of a spectrum that is half there */
        const int point = INVERSE ? mirrored : j - start;
        if (first + c < channels && point >= 0 && (INVERSE || point < extent))
            a = read(x, (from + c * in.channel + point * in.point) * in.unit, in.planes, in.plane);
        if (INVERSE && (mirrored != j) != conjugate) a.im = -a.im;
        re[j * S::PITCH + c] = a.re;
        im[j * S::PITCH + c] = a.im;
    }
    __syncthreads();
    for (int column = warp * S::COLUMNS; column < (int)S::CHANNELS; column += WARPS * S::COLUMNS) {
        const int c = column + lane / S::LANES, own = lane % S::LANES;
        complex v[S::EACH];
        for (int e = 0; e < (int)S::EACH; e++) {
            const int p = e * S::LANES + own, row = (INVERSE ? reversed<N>(p) : p) * S::PITCH + c;
            v[e].re = re[row];
            v[e].im = im[row];
        }
        if (INVERSE)
            decimate_time<N>(v, own, factors);
        else
            decimate_frequency<N>(v, own, factors);
        __syncwarp(FULL); /* all lanes have read the columns that are written now */
        for (int e = 0; e < (int)S::EACH; e++) {
            const int p = e * S::LANES + own, row = (INVERSE ? p : reversed<N>(p)) * S::PITCH + c;
            re[row] = v[e].re;
            im[row] = v[e].im;
        }
    }
    __syncthreads();
    const side out = side_of(s, TO_CHANNEL, TO_POINTS_FIRST);
    const int accumulate = (int)s[ACCUMULATE];
    for (int t = threadIdx.x; t < N * (int)S::CHANNELS; t += BLOCK) {
        const int j = out.points_first ? t % N : t / S::CHANNELS, c = out.points_first ? t / N : t % S::CHANNELS;
        const int point = INVERSE ? j - start : j;
        if (first + c >= channels || point < 0 || point >= (INVERSE ? extent : frequencies)) continue;
        complex a = {(real)scale * re[j * S::PITCH + c], (real)scale * im[j * S::PITCH + c]};
        if (!INVERSE && conjugate) a.im = -a.im;
        write(y, (to + c * out.channel + point * out.point) * out.unit, out.planes, out.plane, a, accumulate);
    }
}

#define TRANSFORM(name, N, INVERSE)                                                                                   \
    GLOBAL BOUNDS(256) name(Array<const int64_t> sizes, double scale, Array<const real> factors, Array<const real> x, \
                            Array<real> y) {                                                                          \
        SHARED(real, re, N * (shape<N>::PITCH));                                                                      \
        SHARED(real, im, N * (shape<N>::PITCH));                                                                      \
        transform<N, INVERSE>(re, im, sizes, scale, factors, x, y);                                                   \
    }

TRANSFORM(forward_2, 2, 0)
KERNEL(forward_2)
TRANSFORM(forward_4, 4, 0)
KERNEL(forward_4)
TRANSFORM(forward_8, 8, 0)
KERNEL(forward_8)
TRANSFORM(forward_16, 16, 0)
KERNEL(forward_16)
TRANSFORM(forward_32, 32, 0)
KERNEL(forward_32)
TRANSFORM(forward_64, 64, 0)
KERNEL(forward_64)
TRANSFORM(forward_128, 128, 0)
KERNEL(forward_128)
TRANSFORM(forward_256, 256, 0)
KERNEL(forward_256)
TRANSFORM(inverse_2, 2, 1)
KERNEL(inverse_2)
TRANSFORM(inverse_4, 4, 1)
KERNEL(inverse_4)
TRANSFORM(inverse_8, 8, 1)
KERNEL(inverse_8)
TRANSFORM(inverse_16, 16, 1)
KERNEL(inverse_16)
TRANSFORM(inverse_32, 32, 1)
KERNEL(inverse_32)
TRANSFORM(inverse_64, 64, 1)
KERNEL(inverse_64)
TRANSFORM(inverse_128, 128, 1)
KERNEL(inverse_128)
TRANSFORM(inverse_256, 256, 1)
KERNEL(inverse_256)

/* Batched real Fourier transforms of squares of 8 to 64 points, forward and back, in one pass over memory.
 *
 * A block has the squares of 2 * PAIRS channels in shared memory; two channels are one complex square, z = a + i b:
 * A(k, l) = (Z(k, l) + conj Z(-k, -l)) / 2, B(k, l) = (Z(k, l) - conj Z(-k, -l)) / 2i.  It transforms all columns, then
 * all rows, in steps of up to 16 points, in place: after two steps, N = EACH * ROWS, frequency k + EACH l of an axis
 * lies at ROWS k + l, and what writes the results reads it there.
 *
 * `channels_` kernels take channels that lie together, `planes_` kernels points of a row that lie together.  Padding,
 * clipping and planes of a spectrum are as in fourier.cu.
 */
#include "dtconv_cuda.h"
#include "fourier.h"

/* A side's middle is the distance of rows, its point that within a row. */
struct sizes {
    unsigned channels, all; /* of an image, of all images */
    side from, to;
    int start_h, extent_h, start_w, extent_w;
    bool conjugate, accumulate;
};

template <int N, int FIRST>
struct shape {
    enum {
        EACH = N <= 16 ? N : 8,
        ROWS = N / EACH,
        HALF = N / 2 + 1,
        WIDE = 128 / sizeof(real),
        FLOATS = FIRST ? (N == 8    ? 16
                          : N == 16 ? 4
                                    : 1)
                       : (N == 8    ? 32
                          : N == 16 ? 16
                                    : 4),
        PAIRS = FLOATS * 4 < (int)sizeof(real) ? 1 : FLOATS * 4 / sizeof(real),
        ITEMS = PAIRS * N * ROWS, /* transforms of EACH points */
        THREADS = ITEMS < 256 ? ITEMS : 256,
        PAIR = FIRST ? N * (N + 1) : 1, /* distances in shared memory */
        ROW = FIRST ? N + 1 : N * PAIRS + (PAIRS < WIDE ? PAIRS : 0),
        POINT = FIRST ? 1 : PAIRS,
        REALS = FIRST ? PAIRS * N * (N + 1) : N * ROW,
        FITS = 2 * REALS * sizeof(real) <= 48 << 10
    };

    __device__ static __forceinline__ int at(int pair, int h, int w) { return pair * PAIR + h * ROW + w * POINT; }

    /* Where frequency k lies, or point k of the transform back. */
    __device__ static __forceinline__ int place(int k) { return ROWS == 1 ? k : ROWS * (k % EACH) + k / EACH; }
};

__device__ __forceinline__ int64_t begin_of(const sizes &s, const side &a, unsigned i) {
    const unsigned image = s.channels == s.all ? 0 : i / s.channels;
    return image * a.outer + (i - image * s.channels) * a.channel;
}

/* Calls f(channel, h, w) for H * W points of C channels, in the order in which they lie. */
template <int THREADS, int C, int H, int W, int FIRST, typename F>
__device__ __forceinline__ void each(const F &f) {
    for (int t = threadIdx.x; t < C * H * W; t += THREADS)
        if (FIRST)
            f(t / (H * W), t / W % H, t % W);
        else
            f(t % C, t / (C * W), t / C % W);
}

/* Transforms along an axis, in place; across: the distance of its lines. */
template <int N, int FIRST, int INVERSE, typename M>
__device__ __forceinline__ void along(M &re, M &im, int step, int across, Array<const real> factors) {
    typedef shape<N, FIRST> S;
    enum { EACH = S::EACH, ROWS = S::ROWS, PAIRS = S::PAIRS };
    complex given[EACH], v[EACH];
    for (int t = threadIdx.x; t < S::ITEMS; t += S::THREADS) {
        const int pair = FIRST ? t / (N * ROWS) : t % PAIRS, line = FIRST ? t % N : t / PAIRS % N;
        const int r = FIRST ? t / N % ROWS : t / (PAIRS * N), first = pair * S::PAIR + line * across + r * step;
        for (int e = 0; e < EACH; e++) given[e] = {re[first + e * ROWS * step], im[first + e * ROWS * step]};
        in_registers<EACH, 1, INVERSE>(v, given);
        for (int e = 0; e < EACH; e++) {
            complex a = v[e];
            if (ROWS > 1) {
                const pack<2> f = load<2>(factors, 2 * (r * e));
                a = turned_by<INVERSE>(a, f.v[0], f.v[1]);
            }
            re[first + e * ROWS * step] = a.re;
            im[first + e * ROWS * step] = a.im;
        }
    }
    __syncthreads();
    if constexpr (ROWS > 1) {
        for (int t = threadIdx.x; t < PAIRS * N * EACH; t += S::THREADS) {
            const int pair = FIRST ? t / (N * EACH) : t % PAIRS, line = FIRST ? t % N : t / PAIRS % N;
            const int k = FIRST ? t / N % EACH : t / (PAIRS * N);
            const int first = pair * S::PAIR + line * across + k * ROWS * step;
            for (int q = 0; q < ROWS; q++) given[q] = {re[first + q * step], im[first + q * step]};
            in_registers<ROWS, 1, INVERSE>(v, given);
            for (int q = 0; q < ROWS; q++) {
                re[first + q * step] = v[q].re;
                im[first + q * step] = v[q].im;
            }
        }
        __syncthreads();
    }
}

template <int N, int FIRST, typename M>
__device__ __forceinline__ void forward(M &re, M &im, const sizes &s, double scale, Array<const real> factors,
                                        Array<const real> x, Array<real> y) {
    typedef shape<N, FIRST> S;
    const unsigned first = blockIdx.x * 2 * S::PAIRS;
    each<S::THREADS, 2 * S::PAIRS, N, N, FIRST>([&](int c, int h, int w) {
        const int row = h - s.start_h, point = w - s.start_w;
        real a = 0;
        if (first + c < s.all && (unsigned)row < (unsigned)s.extent_h && (unsigned)point < (unsigned)s.extent_w)
            a = x[begin_of(s, s.from, first + c) + row * s.from.middle + point * s.from.point];
        if (c < S::PAIRS)
            re[S::at(c, h, w)] = a;
        else
            im[S::at(c - S::PAIRS, h, w)] = a;
    });
    __syncthreads();
    along<N, FIRST, 0>(re, im, S::ROW, S::POINT, factors);
    along<N, FIRST, 0>(re, im, S::POINT, S::ROW, factors);
    const real half = (real)(scale / 2);
    each<S::THREADS, 2 * S::PAIRS, N, S::HALF, FIRST>([&](int c, int h, int w) {
        if (first + c >= s.all) return;
        const int pair = c % S::PAIRS;
        const int here = S::at(pair, S::place(h), S::place(w));
        const int mirrored = S::at(pair, S::place((N - h) % N), S::place((N - w) % N));
        const complex z = {re[here], im[here]}, m = {re[mirrored], im[mirrored]};
        complex a = {half * (z.re + m.re), half * (z.im - m.im)};
        if (c >= S::PAIRS) a = {half * (z.im + m.im), half * (m.re - z.re)};
        if (s.conjugate) a.im = -a.im;
        write(y, begin_of(s, s.to, first + c) + h * s.to.middle + w * s.to.point, s.to, a, s.accumulate);
    });
}

template <int N, int FIRST, typename M>
__device__ __forceinline__ void inverse(M &re, M &im, const sizes &s, double scale, Array<const real> factors,
                                        Array<const real> x, Array<real> y) {
    typedef shape<N, FIRST> S;
    const unsigned first = blockIdx.x * 2 * S::PAIRS;
    const auto frequency = [&](unsigned c, int h, int w) {
        complex a = {0, 0};
        if (c >= s.all) return a;
        const int64_t begin = begin_of(s, s.from, c) + w * s.from.point;
        a = read(x, begin + h * s.from.middle, s.from);
        if (w == 0 || w == N / 2) { /* of real points: what is not mirrored is left out */
            const complex m = read(x, begin + (N - h) % N * s.from.middle, s.from);
            a = {(a.re + m.re) / 2, (a.im - m.im) / 2};
        }
        if (s.conjugate) a.im = -a.im;
        return a;
    };
    each<S::THREADS, S::PAIRS, N, S::HALF, FIRST>([&](int pair, int h, int w) {
        const complex a = frequency(first + pair, h, w), b = frequency(first + S::PAIRS + pair, h, w);
        const complex z = sum(a, b, false), m = sum(a, b, true);
        re[S::at(pair, h, w)] = z.re;
        im[S::at(pair, h, w)] = z.im;
        if (w == 0 || w == N / 2) return;
        re[S::at(pair, (N - h) % N, N - w)] = m.re;
        im[S::at(pair, (N - h) % N, N - w)] = m.im;
    });
    __syncthreads();
    along<N, FIRST, 1>(re, im, S::ROW, S::POINT, factors);
    along<N, FIRST, 1>(re, im, S::POINT, S::ROW, factors);
    each<S::THREADS, 2 * S::PAIRS, N, N, FIRST>([&](int c, int h, int w) {
        const int row = h - s.start_h, point = w - s.start_w;
        if (first + c >= s.all || (unsigned)row >= (unsigned)s.extent_h || (unsigned)point >= (unsigned)s.extent_w)
            return;
        const int here = S::at(c % S::PAIRS, S::place(h), S::place(w));
        complex a = {0, 0};
        if (c < S::PAIRS)
            a.re = (real)scale * re[here];
        else
            a.re = (real)scale * im[here];
        write(y, begin_of(s, s.to, first + c) + row * s.to.middle + point * s.to.point, s.to, a, s.accumulate);
    });
}

#ifdef ON_HOST
#define SQUARE_BOUNDS(N, FIRST)
#else
#define SQUARE_BOUNDS(N, FIRST) \
    __launch_bounds__(shape<N, FIRST>::THREADS, 4096 / sizeof(real) / shape<N, FIRST>::THREADS)
#endif

#define SQUARE(name, N, FIRST, DIRECTION)                                                                      \
    GLOBAL SQUARE_BOUNDS(N, FIRST)                                                                             \
        name(int64_t channels, int64_t all, int64_t from_outer, int64_t from_middle, int64_t from_channel,     \
             int64_t from_point, int64_t from_plane, int64_t from_planes, int64_t to_outer, int64_t to_middle, \
             int64_t to_channel, int64_t to_point, int64_t to_plane, int64_t to_planes, int64_t start_h,       \
             int64_t extent_h, int64_t start_w, int64_t extent_w, int64_t flags, double scale,                 \
             Array<const real> factors, Array<const real> x, Array<real> y) {                                  \
        if constexpr (shape<N, FIRST>::FITS) {                                                                 \
            SHARED(real, re, (shape<N, FIRST>::FITS ? shape<N, FIRST>::REALS : 1));                            \
            SHARED(real, im, (shape<N, FIRST>::FITS ? shape<N, FIRST>::REALS : 1));                            \
            const side from = {from_outer, from_middle,      from_channel, from_point,                         \
                               from_plane, (int)from_planes, FIRST != 0,   (flags & FROM_PAIRS) != 0};         \
            const side to = {to_outer, to_middle,      to_channel, to_point,                                   \
                             to_plane, (int)to_planes, FIRST != 0, (flags & TO_PAIRS) != 0};                   \
            const sizes s = {(unsigned)channels,                                                               \
                             (unsigned)all,                                                                    \
                             from,                                                                             \
                             to,                                                                               \
                             (int)start_h,                                                                     \
                             (int)extent_h,                                                                    \
                             (int)start_w,                                                                     \
                             (int)extent_w,                                                                    \
                             (flags & CONJUGATE) != 0,                                                         \
                             (flags & ACCUMULATE) != 0};                                                       \
            DIRECTION<N, FIRST>(re, im, s, scale, factors, x, y);                                              \
        }                                                                                                      \
    }

SQUARE(planes_forward_8, 8, 1, forward)
KERNEL(planes_forward_8)
SQUARE(planes_inverse_8, 8, 1, inverse)
KERNEL(planes_inverse_8)
SQUARE(planes_forward_16, 16, 1, forward)
KERNEL(planes_forward_16)
SQUARE(planes_inverse_16, 16, 1, inverse)
KERNEL(planes_inverse_16)
SQUARE(planes_forward_32, 32, 1, forward)
KERNEL(planes_forward_32)
SQUARE(planes_inverse_32, 32, 1, inverse)
KERNEL(planes_inverse_32)
SQUARE(planes_forward_64, 64, 1, forward)
KERNEL(planes_forward_64)
SQUARE(planes_inverse_64, 64, 1, inverse)
KERNEL(planes_inverse_64)
SQUARE(channels_forward_8, 8, 0, forward)
KERNEL(channels_forward_8)
SQUARE(channels_inverse_8, 8, 0, inverse)
KERNEL(channels_inverse_8)
SQUARE(channels_forward_16, 16, 0, forward)
KERNEL(channels_forward_16)
SQUARE(channels_inverse_16, 16, 0, inverse)
KERNEL(channels_inverse_16)
SQUARE(channels_forward_32, 32, 0, forward)
KERNEL(channels_forward_32)
SQUARE(channels_inverse_32, 32, 0, inverse)
KERNEL(channels_inverse_32)

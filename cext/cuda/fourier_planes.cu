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
        REALS = FIRST ? PAIRS * N * (N + 2) : N * ROW,     /* also of the spectra of all channels */
        MOST = (PAIRS * N * HALF + THREADS - 1) / THREADS, /* half of the frequencies of pairs, by thread */
        FITS = 2 * REALS * sizeof(real) <= 48 << 10
    };

    __device__ static __forceinline__ int at(int pair, int h, int w) { return pair * PAIR + h * ROW + w * POINT; }

    /* The same of half spectra of channels. */
    __device__ static __forceinline__ int spectrum(int c, int h, int w) { return (c * N + h) * HALF + w; }

    /* Where frequency k lies, or point k of the transform back; the frequency that lies at a place. */
    __device__ static __forceinline__ int place(int k) { return ROWS == 1 ? k : ROWS * (k % EACH) + k / EACH; }
    __device__ static __forceinline__ int at_place(int p) { return ROWS == 1 ? p : p / ROWS + EACH * (p % ROWS); }
};

__device__ __forceinline__ int64_t begin_of(const sizes &s, const side &a, unsigned i) {
    const unsigned image = s.channels == s.all ? 0 : i / s.channels;
    return image * a.outer + (i - image * s.channels) * a.channel;
}

/* Calls f(channel, h, w) for H * W points of C channels, in the order in which they lie; ROWS: of all channels a row,
 * then the next.  Of points that lie together, rows of a few channels are in different banks. */
template <int THREADS, int C, int H, int W, int FIRST, int ROWS, typename F>
__device__ __forceinline__ void each(const F &f) {
    for (int t = threadIdx.x; t < C * H * W; t += THREADS)
        if (FIRST && ROWS)
            f(t / W % C, t / (C * W), t % W);
        else if (FIRST)
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

/* Calls f(i, pair, h, w), its i-th time, for half of the frequencies of pairs; h is the fastest, as lines lie. */
template <int N, int FIRST, typename F>
__device__ __forceinline__ void each_half(const F &f) {
    typedef shape<N, FIRST> S;
    enum { ALL = S::PAIRS * N * S::HALF };
#pragma unroll
    for (int i = 0; i < S::MOST; i++) {
        const int t = threadIdx.x + i * S::THREADS;
        if (t < ALL) f(i, t / N % S::PAIRS, t % N, t / (N * S::PAIRS));
    }
}

template <int N, int FIRST, typename M>
__device__ __forceinline__ void forward(M &re, M &im, const sizes &s, double scale, Array<const real> factors,
                                        Array<const real> x, Array<real> y) {
    typedef shape<N, FIRST> S;
    enum { THREADS = S::THREADS, PAIRS = S::PAIRS, HALF = S::HALF };
    const unsigned first = blockIdx.x * 2 * PAIRS;
    each<THREADS, 2 * PAIRS, N, N, FIRST, 1>([&](int c, int h, int w) {
        const int row = h - s.start_h, point = w - s.start_w;
        real a = 0;
        if (first + c < s.all && (unsigned)row < (unsigned)s.extent_h && (unsigned)point < (unsigned)s.extent_w)
            a = x[begin_of(s, s.from, first + c) + row * s.from.middle + point * s.from.point];
        if (c < PAIRS)
            re[S::at(c, h, w)] = a;
        else
            im[S::at(c - PAIRS, h, w)] = a;
    });
    __syncthreads();
    along<N, FIRST, 0>(re, im, S::ROW, S::POINT, factors);
    along<N, FIRST, 0>(re, im, S::POINT, S::ROW, factors);
    const real half = (real)(scale / 2), sign = s.conjugate ? -half : half;
    const auto parts = [&](int pair, int h, int w, complex &a, complex &b) {
        const int here = S::at(pair, S::place(h), S::place(w));
        const int mirrored = S::at(pair, S::place((N - h) % N), S::place((N - w) % N));
        const complex z = {re[here], im[here]}, m = {re[mirrored], im[mirrored]};
        a = {half * (z.re + m.re), sign * (z.im - m.im)};
        b = {half * (z.im + m.im), sign * (m.re - z.re)};
    };
    const auto put = [&](int c, int h, int w, complex a) {
        if (first + c < s.all)
            write(y, begin_of(s, s.to, first + c) + h * s.to.middle + w * s.to.point, s.to, a, s.accumulate);
    };
    if constexpr (FIRST) {
        complex a[S::MOST], b[S::MOST];
        each_half<N, FIRST>([&](int i, int pair, int p, int w) { parts(pair, S::at_place(p), w, a[i], b[i]); });
        __syncthreads();
        each_half<N, FIRST>([&](int i, int pair, int p, int w) {
            const int here = S::spectrum(pair, S::at_place(p), w), other = here + PAIRS * N * HALF;
            re[here] = a[i].re;
            im[here] = a[i].im;
            re[other] = b[i].re;
            im[other] = b[i].im;
        });
        __syncthreads();
        each<THREADS, 2 * PAIRS, N, HALF, FIRST, 0>([&](int c, int h, int w) {
            const int here = S::spectrum(c, h, w);
            put(c, h, w, {re[here], im[here]});
        });
    } else {
        each<THREADS, 2 * PAIRS, HALF, N, FIRST, 0>([&](int c, int w, int p) {
            complex a, b;
            parts(c % PAIRS, S::at_place(p), w, a, b);
            put(c, S::at_place(p), w, c < PAIRS ? a : b);
        });
    }
}

template <int N, int FIRST, typename M>
__device__ __forceinline__ void inverse(M &re, M &im, const sizes &s, double scale, Array<const real> factors,
                                        Array<const real> x, Array<real> y) {
    typedef shape<N, FIRST> S;
    enum { THREADS = S::THREADS, PAIRS = S::PAIRS, HALF = S::HALF };
    const unsigned first = blockIdx.x * 2 * PAIRS;
    const auto get = [&](int c, int h, int w) {
        complex a = {0, 0};
        if (first + c < s.all)
            a = read(x, begin_of(s, s.from, first + c) + h * s.from.middle + w * s.from.point, s.from);
        if (s.conjugate) a.im = -a.im;
        return a;
    };
    /* of real points: in the first and the middle frequency, what is not mirrored is left out */
    const auto real_part = [](complex a, complex m) {
        const complex half = {(a.re + m.re) / 2, (a.im - m.im) / 2};
        return half;
    };
    const auto put = [&](int pair, int h, int w, complex z) {
        re[S::at(pair, h, w)] = z.re;
        im[S::at(pair, h, w)] = z.im;
    };
    const auto put_mirrored = [&](int pair, int h, int w, complex m) {
        if (w && w != N / 2) put(pair, (N - h) % N, N - w, m);
    };
    const auto edge = [](int w) { return w == 0 || w == N / 2; };
    if constexpr (FIRST) {
        each<THREADS, 2 * PAIRS, N, HALF, FIRST, 0>([&](int c, int h, int w) {
            const complex a = get(c, h, w);
            re[S::spectrum(c, h, w)] = a.re;
            im[S::spectrum(c, h, w)] = a.im;
        });
        __syncthreads();
        const auto staged = [&](int c, int h, int w) {
            const int here = S::spectrum(c, h, w);
            const complex a = {re[here], im[here]};
            if (!edge(w)) return a;
            const int mirrored = S::spectrum(c, (N - h) % N, w);
            const complex m = {re[mirrored], im[mirrored]};
            return real_part(a, m);
        };
        complex z[S::MOST], m[S::MOST];
        each_half<N, FIRST>([&](int i, int pair, int h, int w) {
            const complex a = staged(pair, h, w), b = staged(pair + PAIRS, h, w);
            z[i] = sum(a, b, false);
            m[i] = sum(a, b, true);
        });
        __syncthreads();
        each_half<N, FIRST>([&](int i, int pair, int h, int w) {
            put(pair, h, w, z[i]);
            put_mirrored(pair, h, w, m[i]);
        });
    } else {
        const auto whole = [&](int c, int h, int w) {
            const complex a = get(c, h, w);
            return edge(w) ? real_part(a, get(c, (N - h) % N, w)) : a;
        };
        if constexpr (PAIRS * sizeof(real) < 64) /* whole sectors: the other channel of a pair is in the same warp */
            each<THREADS, 2 * PAIRS, N, HALF, FIRST, 0>([&](int c, int h, int w) {
                const complex own = whole(c, h, w);
                const complex other = {__shfl_xor_sync(FULL, own.re, PAIRS), __shfl_xor_sync(FULL, own.im, PAIRS)};
                if (c < PAIRS)
                    put(c, h, w, sum(own, other, false));
                else
                    put_mirrored(c - PAIRS, h, w, sum(other, own, true));
            });
        else
            each<THREADS, PAIRS, N, HALF, FIRST, 0>([&](int pair, int h, int w) {
                const complex a = whole(pair, h, w), b = whole(pair + PAIRS, h, w);
                put(pair, h, w, sum(a, b, false));
                put_mirrored(pair, h, w, sum(a, b, true));
            });
    }
    __syncthreads();
    along<N, FIRST, 1>(re, im, S::ROW, S::POINT, factors);
    along<N, FIRST, 1>(re, im, S::POINT, S::ROW, factors);
    each<THREADS, 2 * PAIRS, N, N, FIRST, 1>([&](int c, int h, int w) {
        if (!FIRST) w = S::at_place(w);
        const int row = h - s.start_h, point = w - s.start_w;
        if (first + c >= s.all || (unsigned)row >= (unsigned)s.extent_h || (unsigned)point >= (unsigned)s.extent_w)
            return;
        const int here = S::at(c % PAIRS, S::place(h), S::place(w));
        complex a = {0, 0};
        if (c < PAIRS)
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

/* Batched Fourier transforms of 2 to 256 points, real and complex, along one axis of any array.
 *
 *   X_k = sum over j of x_j exp(-2 pi i j k / N);   x_j = scale * sum over k of X_k exp(2 pi i j k / N)
 *
 * Two real channels are one complex transform, z = a + i b: A_k = (Z_k + conj Z_{N-k}) / 2, B_k = (Z_k - conj Z_{N-k})
 * / 2i.  A thread has EACH points of it in registers, ROWS threads have all: up to 16 points one.  Neighbouring threads
 * have neighbouring channels.  Above 16 points, N = EACH * ROWS in two steps (Cooley and Tukey): thread r transforms
 * points r, r + ROWS, ..., turns them, and threads exchange them through shared memory; then each transforms ROWS at a
 * time.  Points are in natural order throughout; factors within a step are constants.
 *
 * What lies contiguously is read and written so: channels directly, points through shared memory, which turns them.
 * There also meet the two halves of a spectrum that lie in different threads.
 *
 * Points outside of the `extent` that begins at `start` are zeros when they are read and left out when they are
 * written: padding and clipping copy nothing.  Frequencies may be written with any distance, such that a product over
 * channels follows for each of them.  A spectrum lies in planes: real and imaginary parts, and for products by Gauss's
 * method their sum as well; three planes of products become a spectrum when they are read.
 */
#include "dtconv_cuda.h"
#include "fourier.h"

struct sizes {
    unsigned middle, channels, all; /* places of the batch, channels of each, channels of all places */
    side from, to;
    int start, extent;
    bool conjugate, accumulate; /* conjugate: the spectrum, where it is written, or read */
};

template <int N>
struct shape {
    enum {
        EACH = N <= 16 ? N
        : N <= 64      ? 8
                       : 16, /* points of a thread */
        ROWS = N / EACH,     /* threads of a transform */
        LANES = N * sizeof(real) <= 512 ? 32
        : N * sizeof(real) <= 1024      ? 16
                                        : 8,   /* neighbours with one row */
        COLUMNS = N <= 16 ? 2 * LANES : LANES, /* transforms of a block */
        THREADS = COLUMNS * ROWS,
        WIDE = 128 / sizeof(real),                   /* elements that shared memory gives at once */
        PITCH = COLUMNS + (N < WIDE ? WIDE / N : 1), /* of points, which have rows of channels in shared memory */
        HALF = N / 2 + 1,                            /* of channels, which have rows of frequencies there */
        SHARED_REALS = N * PITCH > 2 * COLUMNS *HALF ? N * PITCH : 2 * COLUMNS * HALF
    };
};

/* Where a channel of the batch begins. */
__device__ __forceinline__ int64_t place_of(const sizes &s, const side &a, unsigned i) {
    if (s.channels == s.all) return i * a.channel;
    const unsigned place = i / s.channels, outer = place / s.middle;
    return outer * a.outer + (place - outer * s.middle) * a.middle + (i - place * s.channels) * a.channel;
}

/* What a block is given, and which of it a thread has. */
template <int N, int REAL, int INVERSE>
struct block {
    typedef shape<N> S;
    const sizes &s;
    double scale;
    Array<const real> x;
    Array<real> y;
    unsigned first, row, column; /* first: channel of the block */

    /* A point that is read, of one channel, or of two that are real parts and imaginary parts. */
    __device__ __forceinline__ complex point(int j, unsigned channel) const {
        const int at = INVERSE ? j : j - s.start;
        complex a = {0, 0};
        if (!INVERSE && (unsigned)at >= (unsigned)s.extent) return a;
        const unsigned c = first + channel, second = c + S::COLUMNS;
        if (REAL) {
            if (c < s.all) a.re = x[place_of(s, s.from, c) + at * s.from.point];
            if (second < s.all) a.im = x[place_of(s, s.from, second) + at * s.from.point];
        } else {
            if (c < s.all) a = read(x, place_of(s, s.from, c) + at * s.from.point, s.from);
            if (INVERSE && s.conjugate) a.im = -a.im;
        }
        return a;
    }

    /* Frequency k, up to N / 2, of a real channel. */
    __device__ __forceinline__ complex frequency(int k, unsigned channel) const {
        const unsigned c = first + channel;
        complex a = {0, 0};
        if (c < s.all) a = read(x, place_of(s, s.from, c) + k * s.from.point, s.from);
        if (k == 0 || k == N / 2) a.im = 0; /* of real points */
        if (s.conjugate) a.im = -a.im;
        return a;
    }

    /* Writes a point, or a frequency of complex points. */
    __device__ __forceinline__ void put(int j, unsigned channel, complex a) const {
        const int at = INVERSE ? j - s.start : j;
        if (INVERSE && (unsigned)at >= (unsigned)s.extent) return;
        const unsigned c = first + channel, second = c + S::COLUMNS;
        a = {(real)scale * a.re, (real)scale * a.im};
        if (!INVERSE && s.conjugate) a.im = -a.im;
        if (c < s.all) write(y, place_of(s, s.to, c) + at * s.to.point, s.to, a, s.accumulate);
        if (REAL && second < s.all)
            write(y, place_of(s, s.to, second) + at * s.to.point, s.to, {a.im, 0}, s.accumulate);
    }

    /* A frequency of two real channels, from that of their sum a + i b, and from the mirrored one. */
    __device__ __forceinline__ void part(complex here, complex mirrored, complex &a, complex &b) const {
        const real half = (real)(scale / 2), sign = s.conjugate ? -half : half;
        a = {half * (here.re + mirrored.re), sign * (here.im - mirrored.im)};
        b = {half * (here.im + mirrored.im), sign * (mirrored.re - here.re)};
    }

    __device__ __forceinline__ void put_frequency(int k, unsigned channel, complex a) const {
        const unsigned c = first + channel;
        if (c < s.all) write(y, place_of(s, s.to, c) + k * s.to.point, s.to, a, s.accumulate);
    }

    /* The frequency, or point, that a thread has in register e. */
    __device__ __forceinline__ int result(int e) const {
        return S::ROWS == 1 ? e : (int)row + S::ROWS * (e / S::ROWS) + S::EACH * (e % S::ROWS);
    }
};

/* Calls f(point, channel) for the points of all channels of a block, in the order in which they lie. */
template <int THREADS, int POINTS, int CHANNELS, typename F>
__device__ __forceinline__ void each(bool points_first, const F &f) {
    if (points_first)
        for (int t = threadIdx.x; t < POINTS * CHANNELS; t += THREADS) f(t % POINTS, t / POINTS);
    else
        for (int t = threadIdx.x; t < POINTS * CHANNELS; t += THREADS) f(t / CHANNELS, t % CHANNELS);
}

template <int N, int REAL, int INVERSE, typename M>
__device__ __forceinline__ void transform(M &re, M &im, const sizes &s, double scale, Array<const real> factors,
                                          Array<const real> x, Array<real> y) {
    typedef shape<N> S;
    enum { ONE = S::ROWS == 1, EACH = S::EACH, ROWS = S::ROWS, COLUMNS = S::COLUMNS, HALF = S::HALF };
    const unsigned t = threadIdx.x, row = t / S::LANES % ROWS, column = t / (S::LANES * ROWS) * S::LANES + t % S::LANES;
    const block<N, REAL, INVERSE> b = {s, scale, x, y, blockIdx.x * COLUMNS * (1 + REAL), row, column};
    const auto put = [&](int at, complex a) {
        re[at] = a.re;
        im[at] = a.im;
    };
    const auto get = [&](int at) {
        const complex a = {re[at], im[at]};
        return a;
    };
    const auto place = [](int j, unsigned c) { return j * S::PITCH + (int)c; };
    const auto half_place = [](int k, unsigned c) { return (int)c * HALF + k; };
    complex given[EACH], v[EACH];
    const bool through = s.from.points_first || (REAL && INVERSE && !ONE);
    if constexpr (REAL && INVERSE) {
        if (through) {
            each<S::THREADS, HALF, 2 * COLUMNS>(s.from.points_first,
                                                [&](int k, unsigned c) { put(half_place(k, c), b.frequency(k, c)); });
            __syncthreads();
            for (int e = 0; e < EACH; e++) {
                const int j = row + ROWS * e, k = j > N / 2 ? N - j : j;
                given[e] = sum(get(half_place(k, column)), get(half_place(k, column + COLUMNS)), j > N / 2);
            }
        } else if constexpr (ONE) {
            for (int k = 0; k < HALF; k++) {
                const complex first = b.frequency(k, column), second = b.frequency(k, column + COLUMNS);
                given[k] = sum(first, second, false);
                if (k && k < N / 2) given[N - k] = sum(first, second, true);
            }
        }
    } else if (through) {
        each<S::THREADS, N, COLUMNS>(true, [&](int j, unsigned c) { put(place(j, c), b.point(j, c)); });
        __syncthreads();
        for (int e = 0; e < EACH; e++) given[e] = get(place(row + ROWS * e, column));
    } else {
        for (int e = 0; e < EACH; e++) given[e] = b.point(row + ROWS * e, column);
    }
    in_registers<EACH, 1, INVERSE>(v, given);
    if constexpr (!ONE) {
        if (through) __syncthreads();
        for (int e = 0; e < EACH; e++) {
            const pack<2> f = load<2>(factors, 2 * (row * e));
            put(place(e * ROWS + row, column), turned_by<INVERSE>(v[e], f.v[0], f.v[1]));
        }
        __syncthreads();
        for (int m = 0; m < EACH / ROWS; m++) {
            for (int q = 0; q < ROWS; q++) given[q] = get(place((row + ROWS * m) * ROWS + q, column));
            in_registers<ROWS, 1, INVERSE>(v + ROWS * m, given);
        }
    }
    if constexpr (REAL && !INVERSE) {
        if constexpr (!ONE) {
            __syncthreads();
            for (int e = 0; e < EACH; e++) put(place(b.result(e), column), v[e]);
            __syncthreads();
        }
        enum { MOST = (HALF + ROWS - 1) / ROWS }; /* frequencies of a thread */
        complex first[MOST], second[MOST];
        for (int i = 0; i < MOST; i++) {
            const int k = row + ROWS * i;
            if (k >= HALF) break;
            if constexpr (ONE)
                b.part(v[i], v[(N - i) % N], first[i], second[i]);
            else
                b.part(get(place(k, column)), get(place((N - k) % N, column)), first[i], second[i]);
            if (s.to.points_first) continue;
            b.put_frequency(k, column, first[i]);
            b.put_frequency(k, column + COLUMNS, second[i]);
        }
        if (!s.to.points_first) return;
        if (!ONE || through) __syncthreads();
        for (int i = 0; i < MOST; i++) {
            const int k = row + ROWS * i;
            if (k >= HALF) break;
            put(half_place(k, column), first[i]);
            put(half_place(k, column + COLUMNS), second[i]);
        }
        __syncthreads();
        each<S::THREADS, HALF, 2 * COLUMNS>(true,
                                            [&](int k, unsigned c) { b.put_frequency(k, c, get(half_place(k, c))); });
    } else if (!s.to.points_first) {
        for (int e = 0; e < EACH; e++) b.put(b.result(e), column, v[e]);
    } else {
        if (!ONE || through) __syncthreads();
        for (int e = 0; e < EACH; e++) put(place(b.result(e), column), v[e]);
        __syncthreads();
        each<S::THREADS, N, COLUMNS>(true, [&](int j, unsigned c) { b.put(j, c, get(place(j, c))); });
    }
}

#ifdef ON_HOST
#define TRANSFORM_BOUNDS(N)
#else
#define TRANSFORM_BOUNDS(N) __launch_bounds__(shape<N>::THREADS, 4096 / sizeof(real) / shape<N>::THREADS)
#endif

#define TRANSFORM(name, N, REAL, INVERSE)                                                                             \
    GLOBAL TRANSFORM_BOUNDS(N) name(                                                                                  \
        int64_t middle, int64_t channels, int64_t all, int64_t from_outer, int64_t from_middle, int64_t from_channel, \
        int64_t from_point, int64_t from_plane, int64_t from_planes, int64_t to_outer, int64_t to_middle,             \
        int64_t to_channel, int64_t to_point, int64_t to_plane, int64_t to_planes, int64_t start, int64_t extent,     \
        int64_t flags, double scale, Array<const real> factors, Array<const real> x, Array<real> y) {                 \
        SHARED(real, re, shape<N>::SHARED_REALS);                                                                     \
        SHARED(real, im, shape<N>::SHARED_REALS);                                                                     \
        const side from = {from_outer,                                                                                \
                           from_middle,                                                                               \
                           from_channel,                                                                              \
                           from_point,                                                                                \
                           from_plane,                                                                                \
                           (int)from_planes,                                                                          \
                           (flags & FROM_POINTS_FIRST) != 0,                                                          \
                           (flags & FROM_PAIRS) != 0};                                                                \
        const side to = {to_outer,                                                                                    \
                         to_middle,                                                                                   \
                         to_channel,                                                                                  \
                         to_point,                                                                                    \
                         to_plane,                                                                                    \
                         (int)to_planes,                                                                              \
                         (flags & TO_POINTS_FIRST) != 0,                                                              \
                         (flags & TO_PAIRS) != 0};                                                                    \
        const sizes s = {                                                                                             \
            (unsigned)middle,         (unsigned)channels,       (unsigned)all, from, to, (int)start, (int)extent,     \
            (flags & CONJUGATE) != 0, (flags & ACCUMULATE) != 0};                                                     \
        transform<N, REAL, INVERSE>(re, im, s, scale, factors, x, y);                                                 \
    }

TRANSFORM(forward_2, 2, 0, 0)
KERNEL(forward_2)
TRANSFORM(inverse_2, 2, 0, 1)
KERNEL(inverse_2)
TRANSFORM(forward_real_2, 2, 1, 0)
KERNEL(forward_real_2)
TRANSFORM(inverse_real_2, 2, 1, 1)
KERNEL(inverse_real_2)
TRANSFORM(forward_4, 4, 0, 0)
KERNEL(forward_4)
TRANSFORM(inverse_4, 4, 0, 1)
KERNEL(inverse_4)
TRANSFORM(forward_real_4, 4, 1, 0)
KERNEL(forward_real_4)
TRANSFORM(inverse_real_4, 4, 1, 1)
KERNEL(inverse_real_4)
TRANSFORM(forward_8, 8, 0, 0)
KERNEL(forward_8)
TRANSFORM(inverse_8, 8, 0, 1)
KERNEL(inverse_8)
TRANSFORM(forward_real_8, 8, 1, 0)
KERNEL(forward_real_8)
TRANSFORM(inverse_real_8, 8, 1, 1)
KERNEL(inverse_real_8)
TRANSFORM(forward_16, 16, 0, 0)
KERNEL(forward_16)
TRANSFORM(inverse_16, 16, 0, 1)
KERNEL(inverse_16)
TRANSFORM(forward_real_16, 16, 1, 0)
KERNEL(forward_real_16)
TRANSFORM(inverse_real_16, 16, 1, 1)
KERNEL(inverse_real_16)
TRANSFORM(forward_32, 32, 0, 0)
KERNEL(forward_32)
TRANSFORM(inverse_32, 32, 0, 1)
KERNEL(inverse_32)
TRANSFORM(forward_real_32, 32, 1, 0)
KERNEL(forward_real_32)
TRANSFORM(inverse_real_32, 32, 1, 1)
KERNEL(inverse_real_32)
TRANSFORM(forward_64, 64, 0, 0)
KERNEL(forward_64)
TRANSFORM(inverse_64, 64, 0, 1)
KERNEL(inverse_64)
TRANSFORM(forward_real_64, 64, 1, 0)
KERNEL(forward_real_64)
TRANSFORM(inverse_real_64, 64, 1, 1)
KERNEL(inverse_real_64)
TRANSFORM(forward_128, 128, 0, 0)
KERNEL(forward_128)
TRANSFORM(inverse_128, 128, 0, 1)
KERNEL(inverse_128)
TRANSFORM(forward_real_128, 128, 1, 0)
KERNEL(forward_real_128)
TRANSFORM(inverse_real_128, 128, 1, 1)
KERNEL(inverse_real_128)
TRANSFORM(forward_256, 256, 0, 0)
KERNEL(forward_256)
TRANSFORM(inverse_256, 256, 0, 1)
KERNEL(inverse_256)
TRANSFORM(forward_real_256, 256, 1, 0)
KERNEL(forward_real_256)
TRANSFORM(inverse_real_256, 256, 1, 1)
KERNEL(inverse_real_256)

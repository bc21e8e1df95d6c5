/* What the kernels of Fourier transforms share: complex numbers, sides, transforms in registers. */
#ifndef DTCONV_CUDA_FOURIER_H
#define DTCONV_CUDA_FOURIER_H

/* Where one side of a transform lies: distances in reals. */
struct side {
    int64_t outer, middle, channel, point, plane;
    int planes; /* of an element; 1: real */
    bool points_first, interleaved;
};

enum { CONJUGATE = 1, ACCUMULATE = 2, FROM_POINTS_FIRST = 4, TO_POINTS_FIRST = 8, FROM_PAIRS = 16, TO_PAIRS = 32 };

struct complex {
    real re, im;
};

__device__ __forceinline__ complex plus(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ complex minus(complex a, complex b) { return {a.re - b.re, a.im - b.im}; }

/* a (c - i s), or a (c + i s) */
template <int INVERSE>
__device__ __forceinline__ complex turned_by(complex a, real c, real s) {
    if (INVERSE) return {a.re * c - a.im * s, a.im * c + a.re * s};
    return {a.re * c + a.im * s, a.im * c - a.re * s};
}

/* a exp(-2 pi i K / 16), or its conjugate factor, for 0 <= K < 8 */
template <int K, int INVERSE>
__device__ __forceinline__ complex turned(complex a) {
    constexpr double root = 0.70710678118654752440, large = 0.92387953251128675613, small = 0.38268343236508977173;
    if constexpr (K == 0) return a;
    if constexpr (K == 4 && INVERSE) return {-a.im, a.re};
    if constexpr (K == 4) return {a.im, -a.re};
    constexpr double c = K == 1 ? large : K == 2 ? root : K == 3 ? small : K == 5 ? -small : K == 6 ? -root : -large;
    constexpr double s = K == 1 || K == 7 ? small : K == 2 || K == 6 ? root : large;
    return turned_by<INVERSE>(a, (real)c, (real)s);
}

template <int K, int N, int INVERSE>
__device__ __forceinline__ void butterflies(complex *v, const complex *even, const complex *odd) {
    if constexpr (K < N / 2) {
        const complex a = even[K], b = turned<K * 16 / N, INVERSE>(odd[K]);
        v[K] = plus(a, b);
        v[K + N / 2] = minus(a, b);
        butterflies<K + 1, N, INVERSE>(v, even, odd);
    }
}

/* The transform of N points, up to 16, that lie STRIDE apart in registers. */
template <int N, int STRIDE, int INVERSE>
__device__ __forceinline__ void in_registers(complex *to, const complex *from) {
    if constexpr (N == 1) {
        to[0] = from[0];
    } else {
        complex even[N / 2], odd[N / 2];
        in_registers<N / 2, 2 * STRIDE, INVERSE>(even, from);
        in_registers<N / 2, 2 * STRIDE, INVERSE>(odd, from + STRIDE);
        butterflies<0, N, INVERSE>(to, even, odd);
    }
}

/* A complex element; its planes are parts, or three products that are combined. */
__device__ __forceinline__ complex read(Array<const real> x, int64_t at, const side &a) {
    if (a.interleaved) {
        const pack<2> both = load<2>(x, at);
        return {both.v[0], both.v[1]};
    }
    const real first = x[at], second = a.planes > 1 ? x[at + a.plane] : (real)0;
    if (a.planes < 3) return {first, second};
    return {first - second, x[at + 2 * a.plane] - first - second};
}

__device__ __forceinline__ void write(Array<real> y, int64_t at, const side &a, complex v, bool accumulate) {
    if (a.interleaved) {
        pack<2> both = {v.re, v.im};
        if (accumulate) add<2>(both, load<2>(readable(y), at));
        store<2>(y, at, both);
        return;
    }
    y[at] = accumulate ? y[at] + v.re : v.re;
    if (a.planes > 1) y[at + a.plane] = accumulate ? y[at + a.plane] + v.im : v.im;
    if (a.planes > 2) y[at + 2 * a.plane] = v.re + v.im;
}

/* a + i b of one frequency, or of the mirrored one, of two real channels */
__device__ __forceinline__ complex sum(complex a, complex b, bool mirrored) {
    if (mirrored) return {a.re + b.im, b.re - a.im};
    return {a.re - b.im, a.im + b.re};
}

#endif

/* What all kernels share.  A file of kernels is compiled once for each real type: DOUBLE says which.
 *
 * It is CUDA for NVRTC, and C++ for tests without a GPU (host/cuda_on_host.h says how).  Both see
 *   Array<T>            an array in global memory; false where none was given
 *   SHARED(T, name, N)  shared memory, from a multiple of 16 bytes on
 *   KERNEL(name)        behind each kernel: makes it callable from outside
 * Kernels take integers as int64_t and numbers as double, so that a launch needs no types.
 */
#ifndef DTCONV_CUDA_H
#define DTCONV_CUDA_H

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#endif

#ifndef ON_HOST
template <typename T>
using Array = T *; /* results may take the place of what they are made of */
#define SHARED(T, name, N) __shared__ __align__(16) T name[N]
#define KERNEL(name)
#endif

#ifdef DOUBLE
#define REAL double
#else
#define REAL float
#endif
#ifdef COUNTING
typedef on_host::number<REAL> real;
#else
typedef REAL real;
#endif
#undef REAL

/* Of a kernel: its name stays as it is. */
#ifdef ON_HOST
#define GLOBAL static void
#define BOUNDS(threads)
#else
#define GLOBAL extern "C" __global__ void
#define BOUNDS(threads) __launch_bounds__(threads, 2)
#endif

/* i = this thread's elements of n, for a grid of any size. */
#define FOR_EACH(i, n)                                                                                           \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i##_step = (int64_t)gridDim.x * blockDim.x; \
         i < (n); i += i##_step)

/* Elements that are moved at once: W neighbours, 16 bytes of them where they lie at a multiple of 16 bytes. */
enum { PACK = 16 / sizeof(real) };

template <int W>
struct alignas(W * sizeof(real)) pack {
    real v[W];
};

/* A number of elements as a type. */
template <int W>
struct width {
    enum { of = W };
};

template <int W>
__device__ __forceinline__ pack<W> load(Array<const real> x, int64_t at) {
#ifdef ON_HOST
    pack<W> a;
    memcpy(a.v, x.loaded(at, W), sizeof a.v);
    return a;
#else
    return *(const pack<W> *)(x + at);
#endif
}

template <int W>
__device__ __forceinline__ void store(Array<real> y, int64_t at, const pack<W> &a) {
#ifdef ON_HOST
    memcpy(y.stored(at, W), a.v, sizeof a.v);
#else
    *(pack<W> *)(y + at) = a;
#endif
}

/* The same of shared memory; `at` is a multiple of W. */
template <int W, typename S>
__device__ __forceinline__ pack<W> load_shared(S &x, int at) {
#ifdef ON_HOST
    pack<W> a;
    x.loaded(at, W, a.v);
    return a;
#else
    return *(const pack<W> *)(x + at);
#endif
}

template <int W, typename S>
__device__ __forceinline__ void store_shared(S &y, int at, const pack<W> &a) {
#ifdef ON_HOST
    y.stored(at, W, a.v);
#else
    *(pack<W> *)(y + at) = a;
#endif
}

/* An array that is written as one that is read. */
__device__ inline Array<const real> readable(const Array<real> &y) {
#ifdef ON_HOST
    return {y.first, y.count};
#else
    return y;
#endif
}

template <int W>
__device__ inline pack<W> zeros() {
    pack<W> a;
    for (int e = 0; e < W; e++) a.v[e] = 0;
    return a;
}

template <int W>
__device__ inline void add(pack<W> &sum, const pack<W> &a) {
    for (int e = 0; e < W; e++) sum.v[e] += a.v[e];
}

/* Whether an array begins at a multiple of 16 bytes; so does one that was not given. */
template <typename T>
__device__ inline bool aligned(const Array<T> &x) {
#ifdef ON_HOST
    return (uint64_t)x.first % 16 == 0;
#else
    return (uint64_t)x % 16 == 0;
#endif
}

template <typename T, typename... Rest>
__device__ inline bool aligned(const Array<T> &x, const Rest &...rest) {
    return aligned(x) && aligned(rest...);
}

/* f(i, width) for this thread's elements of n, PACK of them at a time where `packs`: elements [i, i + width::of). */
template <typename F>
__device__ inline void sweep(int64_t n, bool packs, const F &f) {
    const int64_t whole = packs ? n / PACK : 0;
    FOR_EACH(i, whole) f(i * PACK, width<PACK>());
    FOR_EACH(i, n - whole * PACK) f(whole * PACK + i, width<1>());
}

/* Row and column of element i of a matrix of c columns; most divisions fit 32 bits, which takes a quarter of the time.
 */
struct cell {
    int64_t row, column;
};

__device__ inline cell cell_of(int64_t i, int64_t c) {
    cell found;
    if ((uint64_t)(i | c) >> 32) {
        found.row = i / c;
    } else {
        found.row = (uint32_t)i / (uint32_t)c;
    }
    found.column = i - found.row * c;
    return found;
}

#define FULL 0xffffffffu
enum { BLOCK = 256, WARPS = BLOCK / 32 };

/* Sums over the lanes of a warp; every lane gets it. */
template <typename T>
__device__ inline T warp_sum(T value) {
    for (int bits = 16; bits; bits /= 2) value += __shfl_xor_sync(FULL, value, bits);
    return value;
}

template <typename T>
__device__ inline T warp_max(T value) {
    for (int bits = 16; bits; bits /= 2) {
        const T other = __shfl_xor_sync(FULL, value, bits);
        value = other > value || other != other ? other : value;
    }
    return value;
}

/* Sums over the BLOCK threads of a block; every thread gets it.  parts: shared memory of WARPS elements. */
template <typename T, typename S>
__device__ inline T block_sum(T value, S &parts) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    value = warp_sum(value);
    __syncthreads(); /* parts may still be read by those who found the sum before this one */
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    T sum = 0;
    for (int i = 0; i < WARPS; i++) sum += parts[i];
    return sum;
}

#endif

/* Runs CUDA kernels as C++ on the host, for tests: a grid's blocks one after the other, the threads of a block in
 * turns.
 *
 * A thread is a fiber.  It runs until it ends, or until it comes to a barrier: of its block (__syncthreads) or of its
 * warp (__syncwarp, shuffles, ballots).  A barrier opens when all threads that have not ended stand at it; where some
 * stand at another one, the launch fails.  Threads that meet no barrier cost one switch each.
 *
 * Arrays come as Array<T>, which knows its length: an access outside of it fails the launch.  Shared memory is
 * Shared<T, N>: it fails the launch where two threads use one word without a barrier between them and one of them
 * writes, and where a word is read that no thread of the block has written.  A launch that fails says why and where.
 *
 * tensor_cores.h has products of warps, and copies that are done later.
 *
 * Not modelled: the order of accesses to global memory by different blocks, and how long anything takes.  Where
 * COUNTING is defined, counting.h counts what each warp asks of memory.
 */
#ifndef CUDA_ON_HOST_H
#define CUDA_ON_HOST_H

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#undef _FORTIFY_SOURCE

#define ON_HOST 1
#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

#ifdef COUNTING
#include "counting.h"
#else
#define SITE nullptr
#define COUNTED_CALL
#define NOTE(what, site, place, bytes)
#define COUNT_LAUNCH()
#define SKIPS_BLOCK() false
#define COUNT_BLOCK(threads)
#endif

namespace on_host {

enum state { READY, AT_BLOCK, AT_WARP, DONE };
enum { WARP = 32, MOST_THREADS = 1024, STACK = 64 * 1024, WORD = 32 };

/* A copy of up to 16 bytes to shared memory that its thread has not waited for. */
struct copy {
    void (*finish)(void *array, int64_t at, const unsigned char *bytes);
    void *array;
    int64_t at;
    unsigned char bytes[16];
};

struct fiber {
    jmp_buf resume;
    ucontext_t start;
    char *stack = nullptr;
    bool started = false;
    state at = READY;
    unsigned mask = 0;
    dim3 thread;
    int index = 0;
    std::vector<copy> copies;
};

/* What a warp exchanges: two sets, used in turns, so that one barrier is enough. */
struct warp {
    alignas(16) unsigned char slots[2][WARP][WORD];
    unsigned votes[2];
    int turn[WARP];
    long epoch = 0;
};

struct machine {
    std::vector<fiber *> fibers, idle;
    jmp_buf scheduler;
    ucontext_t entry;
    fiber *current = nullptr;
    warp warps[MOST_THREADS / WARP];
    dim3 block, block_size, grid;
    int threads = 0;
    long epoch = 0, first_epoch = 0;
    void (*body)(void *) = nullptr;
    void *arguments = nullptr;
    bool failed = false;
    char message[512] = "";
};

inline machine &here() {
    static thread_local machine one;
    return one;
}

#ifdef COUNTING
inline void note(kind what, const void *site, uint64_t place, int bytes) {
    counted().note(here().current->index, what, site, place, bytes);
}
#endif

[[noreturn]] inline void leave() {
    machine &m = here();
    _longjmp(m.scheduler, 1);
}

/* Fails the launch; the thread never goes on. */
[[noreturn]] inline void fail(const char *format, ...) {
    machine &m = here();
    if (!m.failed) {
        char text[320];
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof text, format, list);
        va_end(list);
        const fiber *f = m.current;
        snprintf(m.message, sizeof m.message, "block (%u, %u, %u), thread (%u, %u, %u): %s", m.block.x, m.block.y,
                 m.block.z, f ? f->thread.x : 0, f ? f->thread.y : 0, f ? f->thread.z : 0, text);
        m.failed = true;
    }
    leave();
}

inline void pause(state at) {
    fiber *f = here().current;
    f->at = at;
    if (!_setjmp(f->resume)) leave();
}

/* A fiber runs one thread after the other and never ends. */
inline void fiber_main() {
    for (;;) {
        machine &m = here();
        m.body(m.arguments);
        if (!m.current->copies.empty()) fail("a copy to shared memory is not waited for");
        pause(DONE);
    }
}

inline void run(fiber *f) {
    machine &m = here();
    m.current = f;
    f->at = READY;
    if (_setjmp(m.scheduler)) return;
    if (f->started) _longjmp(f->resume, 1);
    f->started = true;
    f->stack = static_cast<char *>(malloc(STACK));
    getcontext(&f->start);
    f->start.uc_stack.ss_sp = f->stack;
    f->start.uc_stack.ss_size = STACK;
    f->start.uc_link = nullptr;
    makecontext(&f->start, fiber_main, 0);
    setcontext(&f->start);
}

inline fiber *take_fiber(machine &m) {
    if (m.idle.empty()) return new fiber;
    fiber *f = m.idle.back();
    m.idle.pop_back();
    return f;
}

inline void drop(machine &m, fiber *f) {
    if (m.failed) {
        free(f->stack); /* it stands in the middle of a thread */
        delete f;
    } else {
        m.idle.push_back(f);
    }
}

/* Opens the warp's barriers that all threads they name have come to; returns whether any was opened. */
inline bool open_warp(machine &m, int w) {
    bool any = false;
    const int from = w * WARP, to = from + WARP < m.threads ? from + WARP : m.threads;
    unsigned alive = 0, waiting = 0;
    for (int t = from; t < to; t++)
        if (m.fibers[t]) {
            alive |= 1u << (t - from);
            if (m.fibers[t]->at == AT_WARP) waiting |= 1u << (t - from);
        }
    for (int t = from; t < to; t++) {
        fiber *f = m.fibers[t];
        if (!f || f->at != AT_WARP || (f->mask & alive & ~waiting)) continue;
        for (int u = from; u < to; u++)
            if (m.fibers[u] && m.fibers[u]->at == AT_WARP && m.fibers[u]->mask == f->mask && u != t)
                m.fibers[u]->at = READY;
        f->at = READY;
        m.warps[w].epoch++;
        any = true;
    }
    return any;
}

inline bool run_warp(machine &m, int w) {
    const int from = w * WARP, to = from + WARP < m.threads ? from + WARP : m.threads;
    bool ran = false;
    do {
        for (int t = from; t < to; t++) {
            fiber *f = m.fibers[t];
            if (!f || f->at != READY) continue;
            run(f);
            ran = true;
            if (m.failed) return true;
            if (f->at == DONE) {
                drop(m, f);
                m.fibers[t] = nullptr;
            }
        }
    } while (open_warp(m, w));
    return ran;
}

inline void run_block(machine &m) {
    const int warps = (m.threads + WARP - 1) / WARP;
    m.fibers.assign(m.threads, nullptr);
    m.first_epoch = ++m.epoch;
    for (int w = 0; w < warps; w++) memset(m.warps[w].turn, 0, sizeof m.warps[w].turn);
    for (int w = 0; w < warps && !m.failed; w++) {
        for (int t = w * WARP; t < m.threads && t < (w + 1) * WARP && !m.failed; t++) {
            fiber *f = m.fibers[t] = take_fiber(m);
            f->index = t;
            f->thread.x = t % m.block_size.x;
            f->thread.y = t / m.block_size.x % m.block_size.y;
            f->thread.z = t / (m.block_size.x * m.block_size.y);
            run(f);
            if (!m.failed && f->at == DONE) {
                drop(m, f);
                m.fibers[t] = nullptr;
            }
        }
        if (!m.failed && open_warp(m, w)) run_warp(m, w);
    }
    while (!m.failed) {
        int alive = 0, at_block = 0;
        for (fiber *f : m.fibers) {
            alive += f != nullptr;
            at_block += f && f->at == AT_BLOCK;
        }
        if (!alive) break;
        if (at_block < alive) {
            m.current = nullptr;
            m.failed = true;
            snprintf(
                m.message, sizeof m.message,
                "block (%u, %u, %u): %d of %d threads stand at __syncthreads, the others at a barrier of their warp",
                m.block.x, m.block.y, m.block.z, at_block, alive);
            break;
        }
        m.epoch++;
        for (fiber *f : m.fibers)
            if (f) f->at = READY;
        for (int w = 0; w < warps && !m.failed; w++) run_warp(m, w);
    }
    if (m.failed)
        for (fiber *f : m.fibers)
            if (f) drop(m, f);
}

/* Runs a grid; returns 0, or 1 where it failed. */
inline int launch(void (*body)(void *), void *arguments, const unsigned *sizes) {
    machine &m = here();
    m.grid = {sizes[0], sizes[1], sizes[2]};
    m.block_size = {sizes[3], sizes[4], sizes[5]};
    m.threads = sizes[3] * sizes[4] * sizes[5];
    m.body = body;
    m.arguments = arguments;
    m.failed = false;
    m.message[0] = 0;
    COUNT_LAUNCH();
    if (m.threads < 1 || m.threads > MOST_THREADS) {
        snprintf(m.message, sizeof m.message, "expected 1 to %d threads in a block, got %d", (int)MOST_THREADS,
                 m.threads);
        return 1;
    }
    for (m.block.z = 0; m.block.z < m.grid.z; m.block.z++)
        for (m.block.y = 0; m.block.y < m.grid.y; m.block.y++)
            for (m.block.x = 0; m.block.x < m.grid.x; m.block.x++) {
                if (SKIPS_BLOCK()) continue;
                run_block(m);
                if (m.failed) return 1;
                COUNT_BLOCK(m.threads);
            }
    return 0;
}

/* The arguments of a kernel, from an array of pointers to them. */
template <typename... A>
struct caller {
    void (*kernel)(A...);
    void **arguments;

    template <size_t... I>
    void call(std::index_sequence<I...>) {
        kernel(*static_cast<typename std::remove_const<A>::type *>(arguments[I])...);
    }

    static void body(void *self) { static_cast<caller *>(self)->call(std::index_sequence_for<A...>{}); }
};

template <typename... A>
int launch_kernel(void (*kernel)(A...), void **arguments, const unsigned *sizes) {
    caller<A...> one = {kernel, arguments};
    return launch(caller<A...>::body, &one, sizes);
}

}  // namespace on_host

#define threadIdx (on_host::here().current->thread)
#define blockIdx (on_host::here().block)
#define blockDim (on_host::here().block_size)
#define gridDim (on_host::here().grid)
#define warpSize 32

/* An array in global memory; no elements: none was given. */
template <typename T>
struct Array {
    T *first;
    int64_t count;

#ifdef COUNTING
    typedef std::remove_const_t<T> value;
    typedef std::conditional_t<std::is_const<T>::value, value, counted_element<T>> element;

    COUNTED_CALL element operator[](int64_t i) const {
        if constexpr (std::is_const<T>::value)
            return *together(i, 1, on_host::LOAD, SITE);
        else
            return {inside(i), SITE};
    }
    COUNTED_CALL const T *loaded(int64_t i, int n) const { return together(i, n, on_host::LOAD, SITE); }
    COUNTED_CALL T *stored(int64_t i, int n) const { return together(i, n, on_host::STORE, SITE); }
    COUNTED_CALL const T *copied(int64_t i, int n, bool again) const {
        return together(i, n, again ? on_host::LOAD : on_host::LOAD_PAST, SITE);
    }

    T *together(int64_t i, int n, on_host::kind what, const void *site) const {
        inside(i + n - 1);
        on_host::note(what, site, (uint64_t)inside(i), n * sizeof(T));
        return aligned(first + i, n);
    }
#else
    T &operator[](int64_t i) const { return *inside(i); }
    /* n neighbours that are moved at once */
    const T *loaded(int64_t i, int n) const { return together(i, n); }
    T *stored(int64_t i, int n) const { return together(i, n); }
    /* n neighbours that are copied to shared memory; again: past L1 or not */
    const T *copied(int64_t i, int n, bool) const { return together(i, n); }

    T *together(int64_t i, int n) const {
        inside(i + n - 1);
        return aligned(inside(i), n);
    }
#endif
    T *aligned(T *place, int n) const {
        if ((uint64_t)place % (n * sizeof(T)))
            on_host::fail("index %lld: %d elements are moved at once, and lie at no multiple of their bytes",
                          (long long)(place - first), n);
        return place;
    }

    T *inside(int64_t i) const {
        if (i < 0 || i >= count)
            on_host::fail("index %lld is outside of an array of %lld elements", (long long)i, (long long)count);
        return first + i;
    }
    explicit operator bool() const { return first != nullptr; }
    Array operator+(int64_t offset) const { return {first + offset, count - offset}; }
};

template <typename T, int N>
struct Shared {
    struct word {
        T value;
        long epoch, warp_epoch;
        int writer, reader;  /* threads that used it since the last barrier; -1: none */
        bool readers, warps; /* whether there were several readers, and of several warps */
        bool written;
        bool copying; /* a copy to it has begun and is not done */
    };
    word words[N];
    long block = -1;

    struct reference {
        Shared *array;
        int64_t i;
        const void *site;
        operator T() const {
            NOTE(SHARED_LOAD, site, i * sizeof(T), sizeof(T));
            return array->read(i);
        }
        T operator=(T value) const {
            NOTE(SHARED_STORE, site, i * sizeof(T), sizeof(T));
            return array->write(i, value);
        }
        T operator=(const reference &other) const { return *this = static_cast<T>(other); }
        T operator+=(T value) const { return *this = static_cast<T>(*this) + value; }
    };

    COUNTED_CALL reference operator[](int64_t i) {
        if (i < 0 || i >= N) on_host::fail("index %lld is outside of shared memory of %d elements", (long long)i, N);
        return {this, i, SITE};
    }

    /* n neighbours that are moved at once, as elements are otherwise */
    COUNTED_CALL void loaded(int64_t i, int n, T *values) {
        check(i, n);
        NOTE(SHARED_LOAD, SITE, i * sizeof(T), n * sizeof(T));
        const on_host::machine &m = on_host::here();
        for (int e = 0; e < n; e++) {
            const word &w = words[i + e];
            /* read by several warps since it was written, so that one more changes nothing */
            const bool known = w.warps && w.writer < 0 && w.epoch == m.epoch && w.written && block == m.first_epoch;
            values[e] = known ? w.value : read(i + e);
        }
    }
    COUNTED_CALL void stored(int64_t i, int n, const T *values) {
        check(i, n);
        NOTE(SHARED_STORE, SITE, i * sizeof(T), n * sizeof(T));
        for (int e = 0; e < n; e++) write(i + e, values[e]);
    }
    void check(int64_t i, int n) {
        if (i < 0 || i + n > N || i % n)
            on_host::fail("%d elements from %lld on are not within shared memory of %d, or not at a multiple", n,
                          (long long)i, N);
    }

    /* The word, with what is known of accesses since the last barrier. */
    word &touch(int64_t i) {
        on_host::machine &m = on_host::here();
        if (block != m.first_epoch) {
            block = m.first_epoch;
            for (word &w : words) w.written = w.copying = false, w.epoch = -1, clear(w);
        }
        word &w = words[i];
        const int self = m.current->index;
        const long warp_epoch = m.warps[self / on_host::WARP].epoch;
        const bool same_warp = (w.writer < 0 || w.writer / on_host::WARP == self / on_host::WARP) &&
                               (w.reader < 0 || w.reader / on_host::WARP == self / on_host::WARP) && !w.warps;
        if (w.epoch != m.epoch || (same_warp && w.warp_epoch != warp_epoch)) {
            w.epoch = m.epoch;
            w.warp_epoch = warp_epoch;
            clear(w);
        }
        return w;
    }

    static void clear(word &w) {
        w.writer = w.reader = -1;
        w.readers = w.warps = false;
    }

    T read(int64_t i) {
        word &w = touch(i);
        const int self = on_host::here().current->index;
        if (w.copying) on_host::fail("shared memory: element %lld is read before its copy is done", (long long)i);
        if (!w.written) on_host::fail("shared memory: element %lld is read before it is written", (long long)i);
        if (w.writer >= 0 && w.writer != self) race(i, w.writer);
        if (w.reader < 0)
            w.reader = self;
        else if (w.reader != self) {
            w.readers = true;
            w.warps |= w.reader / on_host::WARP != self / on_host::WARP;
        }
        return w.value;
    }

    T write(int64_t i, T value) {
        word &w = touch(i);
        const int self = on_host::here().current->index;
        if (w.writer >= 0 && w.writer != self) race(i, w.writer);
        if (w.readers || (w.reader >= 0 && w.reader != self)) race(i, w.reader);
        w.writer = self;
        w.written = true;
        w.copying = false;
        w.value = value;
        return value;
    }

    /* n neighbours that are written at any time between now and when the thread waits for its copies */
    COUNTED_CALL void copied(int64_t i, int n, const T *values) {
        check(i, n);
        NOTE(SHARED_STORE, SITE, i * sizeof(T), n * sizeof(T));
        for (int e = 0; e < n; e++) {
            write(i + e, values[e]);
            words[i + e].copying = true;
        }
        on_host::copy one = {n == 1 ? finish<1> : finish<16 / sizeof(T)>, this, i, {}};
        memcpy(one.bytes, values, n * sizeof(T));
        on_host::here().current->copies.push_back(one);
    }
    template <int COUNT>
    static void finish(void *array, int64_t i, const unsigned char *bytes) {
        T values[COUNT];
        memcpy(values, bytes, sizeof values);
        for (int e = 0; e < COUNT; e++) static_cast<Shared *>(array)->write(i + e, values[e]);
    }

    [[noreturn]] void race(int64_t i, int other) {
        on_host::fail("shared memory: race on element %lld with thread %d", (long long)i, other);
    }
};

/* Shared memory of N elements of T, called `name`, inside of a kernel. */
#define SHARED(T, name, N) static thread_local Shared<T, N> name

/* Makes a kernel callable from outside: launch_NAME(arguments, sizes of grid and block) -> 0 or 1. */
#define KERNEL(name)                                                        \
    extern "C" int launch_##name(void **arguments, const unsigned *sizes) { \
        return on_host::launch_kernel(name, arguments, sizes);              \
    }

extern "C" inline __attribute__((used)) const char *launch_message() { return on_host::here().message; }
#ifdef COUNTING
extern "C" inline __attribute__((used)) const int64_t *launch_counts() { return on_host::counted().counts; }
extern "C" inline __attribute__((used)) void launch_some(int64_t first, int64_t step) {
    on_host::counted().first = first;
    on_host::counted().step = step;
}
#endif

inline void __syncthreads() {
    NOTE(BARRIER, nullptr, 0, 1);
    on_host::pause(on_host::AT_BLOCK);
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
    on_host::here().current->mask = mask;
    on_host::pause(on_host::AT_WARP);
}

/* The value of every lane of the mask: one barrier, and the sets of slots take turns. */
template <typename T>
T lane_value(unsigned mask, T value, int from) {
    static_assert(sizeof(T) <= on_host::WORD, "a shuffle moves up to 16 bytes");
    on_host::machine &m = on_host::here();
    const int self = m.current->index, lane = self % on_host::WARP;
    on_host::warp &w = m.warps[self / on_host::WARP];
    const int turn = w.turn[lane] ^= 1;
    NOTE(EXCHANGE, nullptr, 0, 1);
    memcpy(w.slots[turn][lane], &value, sizeof(T));
    __syncwarp(mask);
    if (from < 0 || from >= on_host::WARP || !(mask >> from & 1)) return value;
    T found;
    memcpy(&found, w.slots[turn][from], sizeof(T));
    return found;
}

inline int lane_of() { return on_host::here().current->index % on_host::WARP; }

template <typename T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    const int lane = lane_of();
    return lane_value(mask, value, lane / width * width + from % width);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    const int lane = lane_of(), from = lane ^ bits;
    return lane_value(mask, value, from / width == lane / width ? from : lane);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
    const int lane = lane_of(), from = lane + (int)distance;
    return lane_value(mask, value, from / width == lane / width ? from : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned found = 0;
    on_host::machine &m = on_host::here();
    const int self = m.current->index, lane = self % on_host::WARP;
    on_host::warp &w = m.warps[self / on_host::WARP];
    const int turn = w.turn[lane] ^= 1;
    NOTE(EXCHANGE, nullptr, 0, 1);
    w.slots[turn][lane][0] = predicate != 0;
    __syncwarp(mask);
    for (int i = 0; i < on_host::WARP; i++)
        if (mask >> i & 1) found |= (unsigned)w.slots[turn][i][0] << i;
    return found;
}

inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

#include "tensor_cores.h"

inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }

inline double sinpi(double x) { return sin(3.14159265358979323846 * x); }
inline double cospi(double x) { return cos(3.14159265358979323846 * x); }

template <typename T>
T atomicAdd(T *place, T value) {
    const T old = *place;
    *place = old + value;
    return old;
}

template <typename T>
T atomicMax(T *place, T value) {
    const T old = *place;
    if (value > old) *place = value;
    return old;
}

template <typename T>
T atomicOr(T *place, T value) {
    const T old = *place;
    *place = old | value;
    return old;
}

#endif

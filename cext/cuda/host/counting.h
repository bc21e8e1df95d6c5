/* What a launch does to memory, counted by warp and instruction: cuda_on_host.h includes it where COUNTING is defined.
 *
 * A thread notes each access with the place in the code that it comes from, and how often it has been there.  The n-th
 * accesses of a warp's threads from one place are one instruction.  It moves as many sectors of 32 bytes of global
 * memory as its lanes touch; it takes as many passes over shared memory as the busiest of the 32 banks has words for it
 * (a half warp at a time for elements of 8 bytes).  What is least: the same bytes side by side.
 *
 * `launch_some` has a launch run some of its blocks only, where all are alike.
 *
 * A block's loads find again what the block has loaded, but for those past L1 (`fetched`: sectors a block, loads once,
 * stores and loads past L1 each time).
 * Not seen: registers, local arrays, instructions on integers, caches between blocks.
 */
#ifndef COUNTING_H
#define COUNTING_H

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace on_host {

/* In the order in which benchmarks/gpu_counts.py names them. */
enum count {
    LOADS,
    LOAD_SECTORS,
    LEAST_LOAD_SECTORS,
    STORES,
    STORE_SECTORS,
    LEAST_STORE_SECTORS,
    FETCHED_SECTORS,
    SHARED_ACCESSES,
    SHARED_PASSES,
    LEAST_SHARED_PASSES,
    EXCHANGES,
    BARRIERS,
    PARTIAL, /* of the above, by some of the warp's threads */
    OPERATIONS,
    WARPS_RUN,
    PAST_SECTORS, /* of those loaded: past L1, straight to shared memory */
    PRODUCTS,     /* of warps, on tensor cores */
    COUNTS
};

enum kind { LOAD, LOAD_PAST, STORE, SHARED_LOAD, SHARED_STORE, EXCHANGE, BARRIER, PRODUCT };

struct access {
    int warp, kind;
    const void *site;
    long time;
    uint64_t place;
    int bytes, lane;

    bool same(const access &o) const { return warp == o.warp && kind == o.kind && site == o.site && time == o.time; }
    bool operator<(const access &o) const {
        return std::tie(warp, kind, site, time, lane) < std::tie(o.warp, o.kind, o.site, o.time, o.lane);
    }
};

struct counter {
    int64_t counts[COUNTS];
    std::vector<access> accesses;             /* of a block */
    std::unordered_map<uint64_t, long> times; /* by place in the code, thread and kind */
    std::unordered_set<uint64_t> loaded;      /* sectors, by a block */
    int64_t first = 0, step = 1, block = 0;   /* blocks first, first + step, ... are run */

    void begin() {
        memset(counts, 0, sizeof counts);
        block = 0;
    }
    bool skips() { return (block++ - first) % step != 0; }

    void note(int thread, kind what, const void *site, uint64_t place, int bytes) {
        const long time = times[(uint64_t)site ^ (uint64_t)thread << 48 ^ (uint64_t)what << 60]++;
        accesses.push_back({thread / 32, what, site, time, place, bytes, thread % 32});
    }

    void end_block(int threads) {
        std::sort(accesses.begin(), accesses.end());
        for (size_t first = 0, last; first < accesses.size(); first = last) {
            for (last = first; last < accesses.size() && accesses[last].same(accesses[first]);) last++;
            instruction(&accesses[first], &accesses[first] + (last - first), threads);
        }
        counts[WARPS_RUN] += (threads + 31) / 32;
        counts[FETCHED_SECTORS] += loaded.size();
        accesses.clear();
        times.clear();
        loaded.clear();
    }

    void instruction(const access *first, const access *last, int threads) {
        const int lanes = std::min(32, threads - 32 * first->warp);
        counts[PARTIAL] += last - first < lanes;
        switch (first->kind) {
            case LOAD:
            case LOAD_PAST:
            case STORE:
                global(first, last);
                break;
            case SHARED_LOAD:
            case SHARED_STORE:
                shared(first, last);
                break;
            case EXCHANGE:
                counts[EXCHANGES]++;
                break;
            case PRODUCT:
                counts[PRODUCTS]++;
                break;
            default:
                counts[BARRIERS]++;
        }
    }

    /* The units of memory that accesses touch, each once. */
    static std::vector<uint64_t> units(const access *first, const access *last, int size) {
        std::vector<uint64_t> found;
        for (; first < last; first++)
            for (uint64_t unit = first->place / size; unit <= (first->place + first->bytes - 1) / size; unit++)
                found.push_back(unit);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    void global(const access *first, const access *last) {
        const auto sectors = units(first, last, 32);
        const int64_t least = (units(first, last, first->bytes).size() * first->bytes + 31) / 32;
        const bool past = first->kind == LOAD_PAST, load = past || first->kind == LOAD;
        counts[load ? LOADS : STORES]++;
        counts[load ? LOAD_SECTORS : STORE_SECTORS] += sectors.size();
        counts[load ? LEAST_LOAD_SECTORS : LEAST_STORE_SECTORS] += least;
        counts[PAST_SECTORS] += past * sectors.size();
        if (load && !past)
            loaded.insert(sectors.begin(), sectors.end());
        else
            counts[FETCHED_SECTORS] += sectors.size();
    }

    void shared(const access *first, const access *last) {
        counts[SHARED_ACCESSES]++;
        const int together = 32 * 4 / std::max(4, first->bytes); /* lanes of a pass */
        while (first < last) {
            const access *next = first;
            while (next < last && next->lane / together == first->lane / together) next++;
            const auto words = units(first, next, 4);
            int64_t busy[32] = {0}, most = 0;
            for (uint64_t word : words) most = std::max(most, ++busy[word % 32]);
            counts[SHARED_PASSES] += most;
            counts[LEAST_SHARED_PASSES] += (words.size() + 31) / 32;
            first = next;
        }
    }
};

inline counter &counted() {
    static thread_local counter one;
    return one;
}

/* Of the thread that runs. */
inline void note(kind what, const void *site, uint64_t place, int bytes);

/* A real number that counts what is done with it. */
template <typename T>
struct number {
    T value;

    number() = default;
    template <typename U, typename = std::enable_if_t<std::is_arithmetic<U>::value>>
    number(U given) : value((T)given) {}
    template <typename U, typename = std::enable_if_t<std::is_arithmetic<U>::value>>
    explicit operator U() const {
        return (U)value;
    }
    static number made(T value) {
        counted().counts[OPERATIONS]++;
        return number(value);
    }
    number operator-() const { return number(-value); }
    number &operator+=(number o) { return *this = *this + o; }
    number &operator-=(number o) { return *this = *this - o; }
    number &operator*=(number o) { return *this = *this * o; }
    number &operator/=(number o) { return *this = *this / o; }
    friend number operator+(number a, number b) { return made(a.value + b.value); }
    friend number operator-(number a, number b) { return made(a.value - b.value); }
    friend number operator*(number a, number b) { return made(a.value * b.value); }
    friend number operator/(number a, number b) { return made(a.value / b.value); }
    friend bool operator<(number a, number b) { return a.value < b.value; }
    friend bool operator>(number a, number b) { return a.value > b.value; }
    friend bool operator<=(number a, number b) { return a.value <= b.value; }
    friend bool operator>=(number a, number b) { return a.value >= b.value; }
    friend bool operator==(number a, number b) { return a.value == b.value; }
    friend bool operator!=(number a, number b) { return a.value != b.value; }
};

}  // namespace on_host

#define COUNTED_FUNCTION(name)                                  \
    template <typename T>                                       \
    on_host::number<T> name(on_host::number<T> x) {             \
        return on_host::number<T>::made((T)std::name(x.value)); \
    }                                                           \
    inline on_host::number<float> name##f(on_host::number<float> x) { return name(x); }
COUNTED_FUNCTION(exp)
COUNTED_FUNCTION(expm1)
COUNTED_FUNCTION(log)
COUNTED_FUNCTION(log1p)
COUNTED_FUNCTION(sqrt)
COUNTED_FUNCTION(tanh)
COUNTED_FUNCTION(erfc)

template <typename T>
on_host::number<T> pow(on_host::number<T> x, on_host::number<T> y) {
    return on_host::number<T>::made((T)std::pow(x.value, y.value));
}
inline on_host::number<float> powf(on_host::number<float> x, on_host::number<float> y) { return pow(x, y); }

#define SITE __builtin_return_address(0)
#define COUNTED_CALL __attribute__((noinline))
#define COUNT_LAUNCH() on_host::counted().begin()
#define SKIPS_BLOCK() on_host::counted().skips()
#define COUNT_BLOCK(threads) on_host::counted().end_block(threads)
#define NOTE(what, site, place, bytes) on_host::note(on_host::what, site, (uint64_t)(place), bytes)

/* An element of global memory that may be read or written. */
template <typename T>
struct counted_element {
    T *place;
    const void *site;

    operator T() const {
        NOTE(LOAD, site, place, sizeof(T));
        return *place;
    }
    T operator=(T value) const {
        NOTE(STORE, site, place, sizeof(T));
        return *place = value;
    }
    T operator=(const counted_element &other) const { return *this = (T)other; }
    T operator+=(T value) const { return *this = (T) * this + value; }
    T operator*=(T value) const { return *this = (T) * this * value; }
    T *operator&() const {
        NOTE(LOAD, site, place, sizeof(T));
        NOTE(STORE, site, place, sizeof(T));
        return place;
    }
};

#endif

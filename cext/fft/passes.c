/* The passes of a transform (passes.h), and its plan. */
#include "passes.h"

#include <math.h>

INLINE point load_point(const real *re, const real *im) { return (point){load(re), load(im)}; }

INLINE void from_points(int r, int m, int s, const DT(fft_points) * x, const real *factors, const DT(fft_points) * y) {
    const int64_t step = x->step;
    for (int p = 0; p < m; p++)
        for (int q = 0; q < s; q++) {
            const real *re = x->re + (q + s * p) * step, *im = x->im + (q + s * p) * step;
            point z[16];
            UNROLL for (int k = 0; k < r; k++) z[k] = load_point(re + k * s * m * step, im + k * s * m * step);
            butterfly(r, z);
            store_times(r, z, factors ? factors + p * 2 * (r - 1) : NULL, y, q + (int64_t)s * r * p, s);
        }
}

#define PASS(r)                                                                                                 \
    NOINLINE void points_##r(int m, int s, const DT(fft_points) * x, const real *f, const DT(fft_points) * y) { \
        if (m > 1)                                                                                              \
            from_points(r, m, s, x, f, y);                                                                      \
        else                                                                                                    \
            from_points(r, 1, s, x, NULL, y);                                                                   \
    }
RADICES(PASS)

typedef void (*pass_function)(int, int, const DT(fft_points) *, const real *, const DT(fft_points) *);
#define ROW(r) [r] = points_##r,
static const pass_function functions[LARGEST_RADIX + 1] = {RADICES(ROW)};

/* Radices of n: the fewest, of these those whose largest is the smallest; returns that one.  0: there are none. */
static int split(int n, int passes, int *radices) {
    int best = 0, tried[DTCONV_FFT_PASSES] = {0};
    if (passes == 0) return n == 1;
    for (int r = 2; r <= LARGEST_RADIX; r++) {
        if (!functions[r] || n % r) continue;
        const int rest = split(n / r, passes - 1, tried), largest = rest > r ? rest : r;
        if (!rest || (best && largest >= best)) continue;
        best = largest;
        radices[0] = r;
        for (int i = 1; i < passes; i++) radices[i] = tried[i - 1];
    }
    return best;
}

#ifndef DTCONV_DOUBLE
int dtconv_fft_length(int64_t n) {
    if (n < 1 || n > DTCONV_FFT_MOST) return 0;
    for (int prime = 2; prime <= 7; prime++)
        while (n % prime == 0) n /= prime;
    return n == 1;
}

static int is_radix(int64_t n) { return n >= 2 && n <= LARGEST_RADIX && functions[n]; }

int dtconv_fft_passes(int64_t n) {
    int passes = 4;
    if (n == 1 || is_radix(n)) return n > 1;
    for (int64_t r = 2; r <= LARGEST_RADIX && passes > 2; r++) {
        if (!is_radix(r) || n % r) continue;
        if (is_radix(n / r)) passes = 2;
        for (int64_t q = 2; q <= LARGEST_RADIX && passes > 3; q++)
            if (is_radix(q) && n / r % q == 0 && is_radix(n / r / q)) passes = 3;
    }
    return passes;
}
#endif

int64_t DT(fft_plan_size)(int64_t n) { return 4 * n + 2 * LARGEST_RADIX; }

/* exp(-2 pi i k / n), k < n, from an angle of at most pi / 4. */
static void factor(int64_t k, int64_t n, real *to) {
    const int64_t eighth = 8 * k / n;
    int64_t folded = k;
    if (eighth == 1 || eighth == 2) folded = 4 * k - n; /* in quarters of n */
    if (eighth == 3 || eighth == 4) folded = 2 * k - n;
    if (eighth == 5 || eighth == 6) folded = 4 * k - 3 * n;
    if (eighth == 7) folded = k - n;
    const double turn = 6.283185307179586476925286766559;
    double angle, c, s;
    switch (eighth) {
        case 1:
        case 2:
            angle = turn * (double)folded / (double)(4 * n), c = -sin(angle), s = cos(angle);
            break;
        case 3:
        case 4:
            angle = turn * (double)folded / (double)(2 * n), c = -cos(angle), s = -sin(angle);
            break;
        case 5:
        case 6:
            angle = turn * (double)folded / (double)(4 * n), c = sin(angle), s = -cos(angle);
            break;
        default:
            angle = turn * (double)folded / (double)n, c = cos(angle), s = sin(angle);
    }
    to[0] = (real)c;
    to[1] = (real)-s;
}

void DT(fft_plan_on)(int64_t n, real *memory, DT(fft_plan) * plan) {
    int radices[DTCONV_FFT_PASSES] = {0};
    plan->n = (int)n;
    plan->passes = 0;
    while (!split((int)n, plan->passes, radices)) plan->passes++;
    int64_t left = n;
    for (int i = 0, s = 1; i < plan->passes; i++) {
        const int r = radices[i], m = (int)left / r;
        plan->pass[i].radix = r, plan->pass[i].m = m, plan->pass[i].s = s;
        plan->pass[i].factors = memory;
        for (int p = 0; p < m; p++)
            for (int j = 1; j < r; j++, memory += 2) factor((int64_t)p * j, left, memory);
        left = m;
        s *= r;
    }
}

int64_t DT(fft_scratch_size)(int64_t n) { return 4 * n * V; }

void DT(fft_passes_from)(const DT(fft_plan) * plan, int first, DT(fft_points) x, const DT(fft_points) * y,
                         real *scratch) {
    for (int i = first; i < plan->passes; i++) {
        const DT(fft_points) to = i == plan->passes - 1 ? *y : half_of(scratch, plan->n, i % 2);
        functions[plan->pass[i].radix](plan->pass[i].m, plan->pass[i].s, &x, plan->pass[i].factors, &to);
        x = to;
    }
}

void DT(fft_apply)(const DT(fft_plan) * plan, const DT(fft_points) * x, const DT(fft_points) * y, real *scratch) {
    if (plan->passes == 0) store_point(y, 0, load_point(x->re, x->im));
    DT(fft_passes_from)(plan, 0, *x, y, scratch);
}

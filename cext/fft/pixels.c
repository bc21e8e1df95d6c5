/* The first pass of a transform from pixels, which are widened as they are loaded where they are in bfloat16. */
#include "passes.h"

INLINE point load_pixel(const elem *re, const elem *im) { return (point){load_elem(re), load_elem(im)}; }

/* s == 1 (passes.h). */
INLINE void from_pixels(int r, int m, const elem *const *re, const elem *const *im, int64_t c, const real *factors,
                        const RT(fft_points) * y) {
    for (int p = 0; p < m; p++, factors += 2 * (r - 1)) {
        point z[16];
        UNROLL for (int k = 0; k < r; k++) z[k] = load_pixel(re[p + m * k] + c, im[p + m * k] + c);
        butterfly(r, z);
        store_times(r, z, factors, y, (int64_t)r * p, 1);
    }
}

#define PASS(r)                                                                                             \
    NOINLINE void pixels_##r(int m, const elem *const *re, const elem *const *im, int64_t c, const real *f, \
                             const RT(fft_points) * y) {                                                    \
        from_pixels(r, m, re, im, c, f, y);                                                                 \
    }
RADICES(PASS)

typedef void (*pass_function)(int, const elem *const *, const elem *const *, int64_t, const real *,
                              const RT(fft_points) *);
#define ROW(r) [r] = pixels_##r,
static const pass_function functions[LARGEST_RADIX + 1] = {RADICES(ROW)};

void DT(fft_pixels)(const RT(fft_plan) * plan, const elem *const *re, const elem *const *im, int64_t c,
                    const RT(fft_points) * y, real *scratch) {
    if (plan->passes == 0) {
        store_point(y, 0, load_pixel(re[0] + c, im[0] + c));
        return;
    }
    const RT(fft_points) to = plan->passes == 1 ? *y : half_of(scratch, plan->n, 0);
    functions[plan->pass[0].radix](plan->pass[0].m, re, im, c, plan->pass[0].factors, &to);
    RT(fft_passes_from)(plan, 1, to, y, scratch);
}

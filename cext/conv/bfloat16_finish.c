#include "bfloat16_finish.h"

#include "activate.h"
#include "../gemm/bfloat16_pack.h"

/* bias, adds and relu are constants where it is inlined. */
INLINE void rows(int bias, int adds, int relu, const finishing *f, int64_t m, int64_t n, const real *sums, int64_t ld,
                 const elem *const *added, elem *const *to) {
    int64_t j = 0;
    for (; j + 2 * V <= n; j += 2 * V) {
        const vec shift = bias ? load(f->bias + j) : (vec){0}, next = bias ? load(f->bias + j + V) : (vec){0};
        for (int64_t r = 0; r < m; r++) {
            vec y = load(sums + r * ld + j) + shift, z = load(sums + r * ld + j + V) + next;
            if (adds) y += load_elem(added[r] + j), z += load_elem(added[r] + j + V);
            store_pair(to[r] + j, relu ? positive(y) : y, relu ? positive(z) : z);
        }
    }
    for (; j < n; j += V) {
        const int64_t count = n - j < V ? n - j : V;
        const vec shift = bias ? load_part(f->bias + j, count) : (vec){0};
        for (int64_t r = 0; r < m; r++) {
            vec y = load(sums + r * ld + j) + shift;
            if (adds) y += load_first(added[r] + j, count);
            store_first(to[r] + j, count, relu ? positive(y) : y);
        }
    }
}

static void rows_of(const finishing *f, int64_t m, int64_t n, const real *sums, int64_t ld, const elem *const *added,
                    elem *const *to, int relu) {
    if (relu && f->bias && added)
        rows(1, 1, 1, f, m, n, sums, ld, added, to);
    else if (relu && f->bias)
        rows(1, 0, 1, f, m, n, sums, ld, added, to);
    else if (relu && added)
        rows(0, 1, 1, f, m, n, sums, ld, added, to);
    else if (relu)
        rows(0, 0, 1, f, m, n, sums, ld, added, to);
    else if (f->bias && added)
        rows(1, 1, 0, f, m, n, sums, ld, added, to);
    else if (f->bias)
        rows(1, 0, 0, f, m, n, sums, ld, added, to);
    else if (added)
        rows(0, 1, 0, f, m, n, sums, ld, added, to);
    else
        rows(0, 0, 0, f, m, n, sums, ld, added, to);
}

void DT(finish_tile)(const finishing *f, int64_t m, int64_t n, real *sums, int64_t ld, const elem *const *added,
                     elem *const *to) {
    const int relu = f->activation == DTCONV_RELU;
    if (f->activation != DTCONV_LINEAR && !relu) {
        for (int64_t r = 0; r < m; r++)
            for (int64_t j = 0; j < n; j++) {
                const real z = sums[r * ld + j] + (f->bias ? f->bias[j] : 0) + (added ? widen(added[r][j]) : 0);
                to[r][j] = narrow(activate(z, f->activation, f->alpha));
            }
        return;
    }
    rows_of(f, m, n, sums, ld, added, to, relu);
}

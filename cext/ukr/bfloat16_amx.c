/* AMX: 32 x 32 in four tiles of 16 x 16 float32; a step of 32 of k is two tiles of A, two of B and four products.
 *
 * A's tiles are 16 rows of 32 elements from wherever they lie, B's 16 rows of pairs of a panel.  All calls use one
 * configuration, so that it is loaded once per thread; a tile of up to 16 rows leaves out the lower half.  Prefetching
 * by instructions makes it slower: panels lie in order, which the processor sees by itself.
 */
#include "dtconv_cpu.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
#include <immintrin.h>

#define TARGET __attribute__((target("amx-tile,amx-bf16")))
enum { MR = 32, NR = 32, TILE = 16, DEPTH = 32 };

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* 0 to 3: C; 4, 5: A; 6, 7: B. */
static const tile_config config __attribute__((aligned(64))) = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

TARGET static void begin(void) { _tile_loadconfig(&config); }
TARGET static void end(void) { _tile_release(); }

/* Four lines of what the next calls read, for each step of 32 of k: it comes from the third cache. */
static inline const elem *look_ahead(const elem *next) {
    for (int line = 0; line < 4; line++) __builtin_prefetch(next + line * 32, 0, 2);
    return next + 4 * 32;
}

TARGET static void run_whole(const DT(ukr_call) * t) {
    const elem *next = t->b_next;
    const size_t of_a = (size_t)t->rs_a * sizeof(elem), of_c = (size_t)t->ldc * sizeof(real);
    real *lower = t->c + TILE * t->ldc;
    if (t->beta == 0) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, t->c, of_c);
        _tile_loadd(1, t->c + TILE, of_c);
        _tile_loadd(2, lower, of_c);
        _tile_loadd(3, lower + TILE, of_c);
    }
    for (int64_t s = 0; s < t->step_count; s++) {
        const elem *a = t->a + t->steps[s].a, *b = t->b + t->steps[s].b;
        for (int64_t p = 0; p < t->k; p += DEPTH, a += DEPTH, b += DEPTH * NR) {
            _tile_loadd(6, b, 4 * NR);
            _tile_loadd(4, a, of_a);
            _tile_loadd(7, b + DEPTH, 4 * NR);
            _tile_loadd(5, a + TILE * t->rs_a, of_a);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
            if (next) next = look_ahead(next);
        }
    }
    _tile_stored(0, t->c, of_c);
    _tile_stored(1, t->c + TILE, of_c);
    _tile_stored(2, lower, of_c);
    _tile_stored(3, lower + TILE, of_c);
}

TARGET static void run_upper(const DT(ukr_call) * t) {
    const size_t of_a = (size_t)t->rs_a * sizeof(elem), of_c = (size_t)t->ldc * sizeof(real);
    if (t->beta == 0) {
        _tile_zero(0);
        _tile_zero(1);
    } else {
        _tile_loadd(0, t->c, of_c);
        _tile_loadd(1, t->c + TILE, of_c);
    }
    for (int64_t s = 0; s < t->step_count; s++) {
        const elem *a = t->a + t->steps[s].a, *b = t->b + t->steps[s].b;
        for (int64_t p = 0; p < t->k; p += DEPTH, a += DEPTH, b += DEPTH * NR) {
            _tile_loadd(6, b, 4 * NR);
            _tile_loadd(4, a, of_a);
            _tile_loadd(7, b + DEPTH, 4 * NR);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
    }
    _tile_stored(0, t->c, of_c);
    _tile_stored(1, t->c + TILE, of_c);
}

static void run(const DT(ukr_row) * row, const DT(ukr_call) * t) {
    (void)row;
    if (t->m > TILE)
        run_whole(t);
    else
        run_upper(t);
}

const DT(ukr_row) DT(ukr_amx_bf16) = {.name = "amx_bf16",
                                      .mr = MR,
                                      .nr = NR,
                                      .features = DTCONV_CPU_AMX_BF16 | DTCONV_CPU_AVX512,
                                      .rank = 5,
                                      .in_place = 1,
                                      .run = run,
                                      .rows = TILE,
                                      .depth = DEPTH,
                                      .begin = begin,
                                      .end = end};
#else
const DT(ukr_row) DT(ukr_amx_bf16) = {.name = "", .run = NULL};
#endif

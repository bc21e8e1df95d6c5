/* The peak of a core for products of bfloat16: those of tiles in registers, or vdpbf16ps, or float32's FMA. */
#include "dtconv_cpu.h"
#include "dtconv_inline.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

double RT(ukr_peak)(unsigned features, int64_t repeats);

#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
#include <immintrin.h>

extern const DT(ukr_row) DT(ukr_amx_bf16);
enum { ROUNDS = 32, CHAINS = 12 };

__attribute__((target("amx-tile,amx-bf16"))) static double peak_amx(int64_t repeats) {
    DT(ukr_amx_bf16).begin(); /* tiles of zeros */
    for (int64_t r = 0; r < repeats * ROUNDS; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    DT(ukr_amx_bf16).end();
    return 2.0 * 16 * 16 * 32 * 4 * ROUNDS * (double)repeats;
}

__attribute__((target("avx512f,avx512bf16"))) static double peak_dot(int64_t repeats) {
    __m512 x[CHAINS], half = _mm512_set1_ps(0.5f);
    for (int i = 0; i < CHAINS; i++) x[i] = _mm512_set1_ps((float)i);
    for (int64_t r = 0; r < repeats * ROUNDS; r++) {
        UNROLL for (int i = 0; i < CHAINS; i++) x[i] = _mm512_dpbf16_ps(x[i], (__m512bh)half, (__m512bh)half);
        KEEP_VECTOR(half);
    }
    static volatile float sink;
    for (int i = 0; i < CHAINS; i++) sink = _mm512_cvtss_f32(x[i]);
    (void)sink;
    return 4.0 * 16 * CHAINS * ROUNDS * (double)repeats;
}
#endif

double DT(ukr_peak)(unsigned features, int64_t repeats) {
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
    if (features & DTCONV_CPU_AMX_BF16) return peak_amx(repeats);
    if (features & DTCONV_CPU_AVX512_BF16 && features & DTCONV_CPU_FAST_DOT) return peak_dot(repeats);
#endif
    return RT(ukr_peak)(features, repeats);
}

/* The instructions that round vectors to bfloat16, for functions that are compiled once for any CPU and once with them.
 *
 * Where DTCONV_ROUNDS is defined, functions with the attributes ROUNDS may use `round_by_instruction`, and may be
 * called where dtconv_rounds() says so.  They take denormal numbers for 0: operands of vdpbf16ps may be, as it does the
 * same.
 */
#ifndef DTCONV_BFLOAT16_ROUNDING_H
#define DTCONV_BFLOAT16_ROUNDING_H

#include "dtconv_cpu.h"
#include "pack.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__) && \
    ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 10))
#define DTCONV_ROUNDS
#define ROUNDS __attribute__((target("avx512bf16")))

ROUNDS INLINE __m256i round_by_instruction(vec x) { return (__m256i)_mm512_cvtneps_pbh((__m512)x); }

static inline int dtconv_rounds(void) {
    static int known; /* 1: the processor has them, 2: it has not */
    int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!has) {
        has = dtconv_cpu_features() & DTCONV_CPU_AVX512_BF16 ? 1 : 2;
        __atomic_store_n(&known, has, __ATOMIC_RELAXED);
    }
    return has == 1;
}

#ifdef DTCONV_BFLOAT16
/* As store_elem: of what is stored, denormal numbers stay what they are. */
ROUNDS INLINE void store_by_instruction(elem *y, vec x) {
    enum { DENORMAL = 0x20 };
    half_vec rounded = (half_vec)round_by_instruction(x);
    if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)x, DENORMAL), 0)) rounded = narrow_vector(x);
    *(loose_half_vec *)y = rounded;
}
#endif
#endif

#endif

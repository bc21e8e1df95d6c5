/* AVX-512 with BF16: 14 x 32, products of pairs by vdpbf16ps; results are rounded in registers where that is wanted. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 10))
#include <immintrin.h>
#define VBYTES 64
#define MR 14
#define NV 2
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,avx2,fma")))
#define PRODUCT(sum, a, b) ((vec)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(a), (__m512bh)(b)))
#define FINISHES "bfloat16_finish_avx512.h"
#include "bfloat16_pairs.h"

const DT(ukr_row) DT(ukr_avx512_bf16) = {.name = "avx512_bf16",
                                         .mr = MR,
                                         .nr = NR,
                                         .features = DTCONV_CPU_AVX512 | DTCONV_CPU_AVX512_BF16,
                                         .rank = 10,
                                         .slow_without = DTCONV_CPU_FAST_DOT,
                                         .slow_rank = 25, /* behind widened pairs */
                                         .in_place = 1,
                                         .fetches = 1,
                                         .run = run,
                                         .rows = 1,
                                         .depth = 2,
                                         .strided = 1,
                                         .finishes = 1};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_avx512_bf16) = {.name = "", .run = NULL};
#endif

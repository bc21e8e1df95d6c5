/* AVX-512: 14 x 32 floats or 14 x 16 doubles, 28 accumulators of the 32 registers. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 64
#define MR 14
#define NV 2
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#include <immintrin.h>
#ifdef DTCONV_DOUBLE
#define LOAD_PART(x, count) ((aligned_vec)_mm512_maskz_loadu_pd((__mmask8)((1u << (count)) - 1), x))
#define STORE_PART(x, count, value) _mm512_mask_storeu_pd(x, (__mmask8)((1u << (count)) - 1), (__m512d)(value))
#else
#define LOAD_PART(x, count) ((aligned_vec)_mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), x))
#define STORE_PART(x, count, value) _mm512_mask_storeu_ps(x, (__mmask16)((1u << (count)) - 1), (__m512)(value))
#endif
#include "tile.h"

#ifdef DTCONV_DOUBLE
#define NAME "native_avx512_14x16"
#else
#define NAME "native_avx512_14x32"
#endif

const DT(ukr_row) DT(ukr_native_avx512) = {.name = NAME,
                                           .mr = MR,
                                           .nr = NR,
                                           .features = DTCONV_CPU_AVX512,
                                           .rank = 10,
                                           .in_place = 1,
                                           .fetches = 1,
                                           .run = run};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_native_avx512) = {.name = "", .run = NULL};
#endif

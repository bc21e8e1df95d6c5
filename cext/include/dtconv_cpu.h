/* CPU features of the running machine, one bit each.  Header only: asked before a build of the library is chosen. */
#ifndef DTCONV_CPU_H
#define DTCONV_CPU_H

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    DTCONV_CPU_AVX2 = 1,
    DTCONV_CPU_FMA = 2,
    DTCONV_CPU_AVX512 = 4,
    DTCONV_CPU_NEON = 8,
    DTCONV_CPU_AVX = 16,
    DTCONV_CPU_SSE3 = 32,
    DTCONV_CPU_BMI2 = 64,
    DTCONV_CPU_F16C = 128,
};

static inline unsigned dtconv_cpu_features(void) {
    unsigned features = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse3")) features |= DTCONV_CPU_SSE3;
    if (__builtin_cpu_supports("avx")) features |= DTCONV_CPU_AVX;
    if (__builtin_cpu_supports("avx2")) features |= DTCONV_CPU_AVX2;
    if (__builtin_cpu_supports("fma")) features |= DTCONV_CPU_FMA;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        features |= DTCONV_CPU_AVX512;
    unsigned eax, ebx, ecx, edx; /* not all compilers' __builtin_cpu_supports know these */
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ebx & 1u << 8) features |= DTCONV_CPU_BMI2;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & 1u << 29) features |= DTCONV_CPU_F16C;
#elif defined(__aarch64__)
    features |= DTCONV_CPU_NEON;
#endif
    return features;
}

#endif

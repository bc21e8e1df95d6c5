/* CPU features of the running machine, one bit each.  Header only: asked before a build of the library is chosen. */
#ifndef DTCONV_CPU_H
#define DTCONV_CPU_H

enum {
    DTCONV_CPU_AVX2 = 1,
    DTCONV_CPU_FMA = 2,
    DTCONV_CPU_AVX512 = 4,
    DTCONV_CPU_NEON = 8,
    DTCONV_CPU_AVX = 16,
    DTCONV_CPU_SSE3 = 32,
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
#elif defined(__aarch64__)
    features |= DTCONV_CPU_NEON;
#endif
    return features;
}

#endif

/* CPU features of the running machine, one bit each.  Header only: asked before a build of the library is chosen. */
#ifndef DTCONV_CPU_H
#define DTCONV_CPU_H

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
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
    DTCONV_CPU_AVX512_BF16 = 256,
    DTCONV_CPU_AMX_BF16 = 512,  /* tiles, too, and the kernel has permitted them */
    DTCONV_CPU_FAST_DOT = 1024, /* vdpbf16ps multiplies more numbers in a cycle than float32's FMA */
};

#if defined(__x86_64__)
/* Whether this process may use AMX tiles: Linux gives their 8 KiB of state to those only that ask (arch_prctl
 * ARCH_REQ_XCOMP_PERM, from 5.16).  Other systems are not asked. */
static inline int dtconv_may_use_tiles(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low >> 17 & 3) != 3) return 0;
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return 0;
#endif
}
#endif

#if defined(__x86_64__)
/* A core of Zen 4 and 5 begins with a vdpbf16ps as often as with an FMA; one of Intel's Sapphire and Emerald Rapids
 * with one in two cycles, where FMA are four: half as many multiplications (`pydtconv doctor` measures both). */
static inline int dtconv_is_amd(void) {
    unsigned eax, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_AMD_ebx && ecx == signature_AMD_ecx &&
           edx == signature_AMD_edx;
}
#endif

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
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        const unsigned tiles = 1u << 24 | 1u << 22; /* AMX-TILE and AMX-BF16 */
        if (ebx & 1u << 8) features |= DTCONV_CPU_BMI2;
        if (features & DTCONV_CPU_AVX512 && (edx & tiles) == tiles && dtconv_may_use_tiles())
            features |= DTCONV_CPU_AMX_BF16;
        if (features & DTCONV_CPU_AVX512 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && eax & 1u << 5)
            features |= DTCONV_CPU_AVX512_BF16;
        if (features & DTCONV_CPU_AVX512_BF16 && dtconv_is_amd()) features |= DTCONV_CPU_FAST_DOT;
    }
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & 1u << 29) features |= DTCONV_CPU_F16C;
#elif defined(__aarch64__)
    features |= DTCONV_CPU_NEON;
#endif
    return features;
}

#endif

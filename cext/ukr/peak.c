/* The FMA peak of a core: independent multiply-adds in registers, nothing else.
 *
 *   x_i = x_i * a + b,  i = 0..11: more chains than latency times ports of any core we know, so that none waits.
 */
#include "dtconv_cpu.h"
#include "dtconv_inline.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

enum { CHAINS = 12, STEPS = 64 };

#define PEAK(name, bytes, target)                                                       \
    typedef real name##_vec __attribute__((vector_size(bytes)));                        \
    target static double name(int64_t repeats) {                                        \
        name##_vec x[CHAINS] = {{0}}, a = {0}, b = {0};                                 \
        UNROLL for (int i = 0; i < CHAINS; i++) x[i] += (real)i;                        \
        a += (real)0.5, b += 1;                                                         \
        for (int64_t r = 0; r < repeats; r++)                                           \
            for (int s = 0; s < STEPS; s++) {                                           \
                UNROLL for (int i = 0; i < CHAINS; i++) x[i] = x[i] * a + b;            \
                __asm__ volatile("" : "+" KEEP(a));                                     \
            }                                                                           \
        static volatile real sink; /* the sums are used, so they are computed */        \
        UNROLL for (int i = 0; i < CHAINS; i++) sink = x[i][0];                         \
        (void)sink;                                                                     \
        return 2.0 * (double)repeats * STEPS * CHAINS * (double)(bytes / sizeof(real)); \
    }

#if defined(__x86_64__)
#ifdef DTCONV_EMULATED /* there is no register of 64 bytes */
#define KEEP "m"
#else
#define KEEP "v"
#endif
PEAK(peak_avx512, 64, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))))
#undef KEEP
#define KEEP "x"
PEAK(peak_avx2, 32, __attribute__((target("avx2,fma"))))
#endif
#if defined(__aarch64__)
#define KEEP "w"
#elif !defined(__x86_64__)
#define KEEP "m"
#endif
PEAK(peak_short, 16, )

double DT(ukr_peak)(unsigned features, int64_t repeats) {
#if defined(__x86_64__)
    if (features & DTCONV_CPU_AVX512) return peak_avx512(repeats);
    if ((features & DTCONV_CPU_AVX2) && (features & DTCONV_CPU_FMA)) return peak_avx2(repeats);
#endif
    (void)features;
    return peak_short(repeats);
}

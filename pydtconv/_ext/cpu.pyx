"""Features of the running CPU.  The one module that does not link to libdtconv: it is asked which build to load."""

cdef extern from "dtconv_cpu.h" nogil:
    enum:
        DTCONV_CPU_AVX2
        DTCONV_CPU_FMA
        DTCONV_CPU_AVX512
        DTCONV_CPU_NEON
        DTCONV_CPU_AVX
        DTCONV_CPU_SSE3
        DTCONV_CPU_BMI2
        DTCONV_CPU_F16C
        DTCONV_CPU_AVX512_BF16
        DTCONV_CPU_AMX_BF16
        DTCONV_CPU_FAST_DOT
    unsigned dtconv_cpu_features()


#: the features that levels and micro-kernels ask for, by name, with their bits
FEATURES = {
    "avx2": DTCONV_CPU_AVX2,
    "fma": DTCONV_CPU_FMA,
    "avx512": DTCONV_CPU_AVX512,
    "neon": DTCONV_CPU_NEON,
    "avx": DTCONV_CPU_AVX,
    "sse3": DTCONV_CPU_SSE3,
    "bmi2": DTCONV_CPU_BMI2,
    "f16c": DTCONV_CPU_F16C,
    "avx512_bf16": DTCONV_CPU_AVX512_BF16,
    "amx_bf16": DTCONV_CPU_AMX_BF16,
    "fast_dot": DTCONV_CPU_FAST_DOT,
}


def features() -> frozenset:
    """Names of the features of this CPU, of those in `FEATURES`."""
    cdef unsigned bits = dtconv_cpu_features()
    return frozenset(name for name, bit in FEATURES.items() if bits & bit)

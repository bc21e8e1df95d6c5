"""Features of the running CPU.  The one module that does not link to libdtconv: it is asked which build to load."""

cdef extern from "dtconv_cpu.h" nogil:
    unsigned dtconv_cpu_features()


def features() -> frozenset:
    """Names of the features of this CPU that levels and micro-kernels ask for: avx2, fma, avx512, neon, avx, sse3."""
    cdef unsigned bits = dtconv_cpu_features()
    names = ("avx2", "fma", "avx512", "neon", "avx", "sse3")
    return frozenset(name for i, name in enumerate(names) if bits >> i & 1)

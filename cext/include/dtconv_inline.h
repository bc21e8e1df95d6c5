/* What compilers are told in kernels: to inline a function, and to unroll a loop whose count is then a constant. */
#ifndef DTCONV_INLINE_H
#define DTCONV_INLINE_H

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

/* Before a loop of at most 32 steps. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#endif

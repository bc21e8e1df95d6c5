/* What compilers are told in kernels: to inline a function, to unroll a loop whose count is then a constant, and what
 * to leave as it is written. */
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

/* Steps of a sum that are written one after the other in a micro-kernel of so many rows: of a small tile, what counts
 * and walks takes as many instructions as a processor has to spare, or more where its core is shared with another
 * thread. */
#define STEPS_OF_TURN(rows) ((rows) < 8 ? 8 : 1)

/* Loads are not moved over it: of several steps taken together they would need more registers than there are. */
#define STEP_ENDS __asm__ volatile("" ::: "memory")
/* What unrolled steps have in common, as a compiler is to compute it: once, not for each of them. */
#define ONCE(index) __asm__("" : "+r"(index))
/* A vector that is computed up to this place, and lies in a register; where AVX-512 is emulated there is none so wide.
 */
#if defined(DTCONV_EMULATED)
#define KEEP_VECTOR(x) __asm__("" : "+m"(x))
#elif defined(__x86_64__)
#define KEEP_VECTOR(x) __asm__("" : "+v"(x))
#else
#define KEEP_VECTOR(x) (void)0
#endif
/* sum += a * b of vectors of 32 bytes, on the register where the sum is: gcc also has it change the place of the sum,
 * and copy it back at the end of a loop. */
#ifdef DTCONV_DOUBLE
#define ADD_PRODUCT_AVX2(sum, a, b) __asm__("vfmadd231pd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))
#else
#define ADD_PRODUCT_AVX2(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))
#endif

#endif

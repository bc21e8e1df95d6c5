/* AVX-512, its BF16 and AMX in C, for a processor with AVX2: what the library has for them can be tested there.
 *
 * Read before all of a file (-include), it says that the compiler has these instructions, and puts functions in the
 * place of those that cext/ uses; one that is not here is an error of the compiler.  Vectors of 64 bytes are two of 32
 * for gcc.  Sources: Intel, Software Developer's Manual, volume 2; Intrinsics Guide.
 */
#ifndef DTCONV_EMULATED
#define DTCONV_EMULATED
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef __AVX2__
#error "expected flags for AVX2"
#endif

#include "dtconv_cpu.h"

static inline int emulates_amx(void) {
    const char *wish = getenv("DTCONV_EMULATED_AMX");
    return wish && *wish;
}

/* With all that is emulated; AMX where DTCONV_EMULATED_AMX is set. */
static inline unsigned dtconv_emulated_features(void) {
    const unsigned wide = DTCONV_CPU_AVX512 | DTCONV_CPU_AVX512_BF16 | DTCONV_CPU_FAST_DOT;
    return dtconv_cpu_features() | wide | (emulates_amx() ? (unsigned)DTCONV_CPU_AMX_BF16 : 0);
}
#define dtconv_cpu_features dtconv_emulated_features

#define __AVX512F__ 1
#define __AVX512VL__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512BF16__ 1
#define target(instructions) /* all functions are compiled for AVX2 */

/* Functions that are called, as inlined ones would take long to compile; and those of two instructions. */
#define EMULATED static __attribute__((noinline, unused))
#define HALVES static inline __attribute__((always_inline, unused))

typedef union {
    __m512 ps;
    __m512d pd;
    __m512i si;
    __m256i halves[2];
    float f32[16];
    double f64[8];
    int32_t i32[16];
    uint32_t u32[16];
    uint64_t u64[8];
    uint16_t u16[32];
    uint8_t u8[64];
} any512;
typedef union {
    __m256i si;
    uint16_t u16[16];
} any256;
typedef union {
    __m128i si;
    __m128 ps;
    float f32[4];
    uint8_t u8[16];
} any128;

#define EMULATED_EACH(count, ...) \
    for (int i = 0; i < (count); i++) __VA_ARGS__

/* Whole vectors. */
#define _mm512_set1_ps(x) ((__m512){0} + (float)(x))
#define _mm512_set1_pd(x) ((__m512d){0} + (double)(x))
#define _mm512_setzero_ps() (((any512){.ps = {0}}).ps)
#define _mm512_setzero_pd() (((any512){.pd = {0}}).pd)
#define _mm512_setzero_si512() (((any512){.si = {0}}).si)
#define _mm512_castps_pd(x) ((__m512d)(x))
#define _mm512_castpd_ps(x) ((__m512)(x))
#define _mm512_and_si512(x, y) ((x) & (y))
#define _mm512_xor_si512(x, y) ((x) ^ (y))
#define _mm512_cvtss_f32(x) ((x)[0])

EMULATED __m512i emulated_set1_epi32(int32_t x) {
    any512 r;
    EMULATED_EACH(16, r.i32[i] = x);
    return r.si;
}
EMULATED __m512i emulated_set1_epi16(int16_t x) {
    any512 r;
    EMULATED_EACH(32, r.u16[i] = (uint16_t)x);
    return r.si;
}
EMULATED __m512i emulated_setr_epi32(const int32_t *x) {
    any512 r;
    EMULATED_EACH(16, r.i32[i] = x[i]);
    return r.si;
}
EMULATED __m512i emulated_set_epi16(const int16_t *x) { /* the last one first */
    any512 r;
    EMULATED_EACH(32, r.u16[31 - i] = (uint16_t)x[i]);
    return r.si;
}
#undef _mm512_setr_epi32 /* gcc's is a macro */
#define _mm512_set1_epi32 emulated_set1_epi32
#define _mm512_set1_epi16 emulated_set1_epi16
#define _mm512_setr_epi32(...) emulated_setr_epi32((const int32_t[16]){__VA_ARGS__})
#define _mm512_set_epi16(...) emulated_set_epi16((const int16_t[32]){__VA_ARGS__})

EMULATED __m512 emulated_castps128(__m128 x) {
    any512 r = {.ps = {0}};
    memcpy(&r, &x, sizeof x);
    return r.ps;
}
EMULATED __m512i emulated_castsi256(__m256i x) {
    any512 r = {.si = {0}};
    r.halves[0] = x;
    return r.si;
}
EMULATED __m512i emulated_inserti64x4(__m512i x, __m256i y, int at) {
    any512 r = {.si = x};
    r.halves[at] = y;
    return r.si;
}
#define _mm512_castps128_ps512 emulated_castps128
#define _mm512_castsi256_si512 emulated_castsi256
#define _mm512_inserti64x4 emulated_inserti64x4

/* Memory. */
HALVES __m512i emulated_loadu(const void *from) {
    any512 r;
    memcpy(&r, from, sizeof r);
    return r.si;
}
HALVES void emulated_storeu(void *to, any512 x) { memcpy(to, &x, sizeof x); }
#define _mm512_loadu_si512(from) emulated_loadu(from)
#define _mm512_storeu_si512(to, x) emulated_storeu(to, (any512){.si = (x)})
#define _mm512_stream_si512(to, x) emulated_storeu(to, (any512){.si = (x)})
#define _mm512_storeu_ps(to, x) emulated_storeu(to, (any512){.ps = (x)})

/* Elements of `size` bytes whose bits of the mask are set; memory of the others is not touched. */
EMULATED void emulated_move(void *to, const void *from, uint64_t mask, size_t size, int count) {
    EMULATED_EACH(
        count, if (mask >> i & 1) memcpy((char *)to + (size_t)i * size, (const char *)from + (size_t)i * size, size));
}
EMULATED any512 emulated_maskz(const void *from, uint64_t mask, size_t size) {
    any512 r = {.si = {0}};
    emulated_move(&r, from, mask, size, (int)(64 / size));
    return r;
}
EMULATED __m256i emulated_maskz_256(const void *from, __mmask16 mask) {
    any256 r = {.si = {0}};
    emulated_move(&r, from, mask, 2, 16);
    return r.si;
}
EMULATED any128 emulated_maskz_128(const void *from, uint64_t mask, size_t size) {
    any128 r = {.si = {0}};
    emulated_move(&r, from, mask, size, (int)(16 / size));
    return r;
}
#define _mm512_maskz_loadu_ps(mask, from) (emulated_maskz(from, (__mmask16)(mask), 4).ps)
#define _mm512_maskz_loadu_pd(mask, from) (emulated_maskz(from, (__mmask8)(mask), 8).pd)
#define _mm512_maskz_loadu_epi32(mask, from) (emulated_maskz(from, (__mmask16)(mask), 4).si)
#define _mm512_maskz_loadu_epi16(mask, from) (emulated_maskz(from, (__mmask32)(mask), 2).si)
#define _mm256_maskz_loadu_epi16(mask, from) emulated_maskz_256(from, mask)
#define _mm_maskz_loadu_ps(mask, from) (emulated_maskz_128(from, (mask) & 15, 4).ps)
#define _mm_maskz_loadu_epi8(mask, from) (emulated_maskz_128(from, (__mmask16)(mask), 1).si)

EMULATED void emulated_mask_store(void *to, uint64_t mask, any512 x, size_t size) {
    emulated_move(to, &x, mask, size, (int)(64 / size));
}
EMULATED void emulated_mask_store_256(void *to, __mmask16 mask, __m256i x) { emulated_move(to, &x, mask, 2, 16); }
EMULATED void emulated_mask_store_128(void *to, __mmask16 mask, __m128i x) { emulated_move(to, &x, mask, 1, 16); }
#define _mm512_mask_storeu_ps(to, mask, x) emulated_mask_store(to, (__mmask16)(mask), (any512){.ps = (x)}, 4)
#define _mm512_mask_storeu_pd(to, mask, x) emulated_mask_store(to, (__mmask8)(mask), (any512){.pd = (x)}, 8)
#define _mm512_mask_storeu_epi32(to, mask, x) emulated_mask_store(to, (__mmask16)(mask), (any512){.si = (x)}, 4)
#define _mm256_mask_storeu_epi16 emulated_mask_store_256
#define _mm_mask_storeu_epi8 emulated_mask_store_128

/* Arithmetic. */
#define EMULATED_OF_THREE(name, type, half, view)                                                          \
    HALVES type emulated_##name(type x, type y, type z) {                                                  \
        any512 r, a = {.view = x}, b = {.view = y}, c = {.view = z};                                       \
        for (int i = 0; i < 2; i++)                                                                        \
            r.halves[i] = (__m256i)_mm256_##name((half)a.halves[i], (half)b.halves[i], (half)c.halves[i]); \
        return r.view;                                                                                     \
    }
#define EMULATED_OF_TWO(name, type, half, view)                                                                 \
    HALVES type emulated_##name(type x, type y) {                                                               \
        any512 r, a = {.view = x}, b = {.view = y};                                                             \
        for (int i = 0; i < 2; i++) r.halves[i] = (__m256i)_mm256_##name((half)a.halves[i], (half)b.halves[i]); \
        return r.view;                                                                                          \
    }
EMULATED_OF_THREE(fmadd_ps, __m512, __m256, ps)
EMULATED_OF_THREE(fmadd_pd, __m512d, __m256d, pd)
EMULATED_OF_TWO(max_ps, __m512, __m256, ps)
EMULATED_OF_TWO(min_ps, __m512, __m256, ps)
EMULATED_OF_TWO(max_pd, __m512d, __m256d, pd)
EMULATED_OF_TWO(min_pd, __m512d, __m256d, pd)
#define _mm512_fmadd_ps emulated_fmadd_ps
#define _mm512_fmadd_pd emulated_fmadd_pd
#define _mm512_max_ps emulated_max_ps
#define _mm512_min_ps emulated_min_ps
#define _mm512_max_pd emulated_max_pd
#define _mm512_min_pd emulated_min_pd
HALVES __m512 emulated_add_ps(__m512 x, __m512 y) { return x + y; }
#define _mm512_add_ps emulated_add_ps

#define EMULATED_INTEGERS(name, view, count, value)                   \
    EMULATED __m512i emulated_##name(__m512i first, __m512i second) { \
        any512 r;                                                     \
        const any512 x = {.si = first}, y = {.si = second};           \
        (void)y;                                                      \
        EMULATED_EACH(count, r.view[i] = value);                      \
        return r.si;                                                  \
    }
EMULATED_INTEGERS(add_epi32, u32, 16, x.u32[i] + y.u32[i])
EMULATED_INTEGERS(add_epi16, u16, 32, (uint16_t)(x.u16[i] + y.u16[i]))
EMULATED_INTEGERS(mul_epu32, u64, 8, (x.u64[i] & 0xffffffffu) * (y.u64[i] & 0xffffffffu))
#define _mm512_add_epi32 emulated_add_epi32
#define _mm512_add_epi16 emulated_add_epi16
#define _mm512_mul_epu32 emulated_mul_epu32

#define EMULATED_SHIFT(name, view, count, how)                \
    EMULATED __m512i emulated_##name(__m512i of, int bits) {  \
        any512 r, x = {.si = of};                             \
        EMULATED_EACH(count, r.view[i] = x.view[i] how bits); \
        return r.si;                                          \
    }
EMULATED_SHIFT(slli_epi32, u32, 16, <<)
EMULATED_SHIFT(srli_epi32, u32, 16, >>)
EMULATED_SHIFT(slli_epi64, u64, 8, <<)
EMULATED_SHIFT(srli_epi64, u64, 8, >>)
#define _mm512_slli_epi32 emulated_slli_epi32
#define _mm512_srli_epi32 emulated_srli_epi32
#define _mm512_slli_epi64 emulated_slli_epi64
#define _mm512_srli_epi64 emulated_srli_epi64

/* Conversions. */
EMULATED __m512i emulated_widen_16(__m256i x) {
    any512 r;
    const any256 from = {.si = x};
    EMULATED_EACH(16, r.u32[i] = from.u16[i]);
    return r.si;
}
EMULATED __m512i emulated_widen_8(__m128i x) {
    any512 r;
    const any128 from = {.si = x};
    EMULATED_EACH(16, r.u32[i] = from.u8[i]);
    return r.si;
}
EMULATED __m256i emulated_narrow_16(__m512i x) {
    any256 r;
    const any512 from = {.si = x};
    EMULATED_EACH(16, r.u16[i] = (uint16_t)from.u32[i]);
    return r.si;
}
EMULATED __m128i emulated_narrow_8(__m512i x) {
    any128 r;
    const any512 from = {.si = x};
    EMULATED_EACH(16, r.u8[i] = (uint8_t)from.u32[i]);
    return r.si;
}
#define _mm512_cvtepu16_epi32 emulated_widen_16
#define _mm512_cvtepu8_epi32 emulated_widen_8
#define _mm512_cvtepi32_epi16 emulated_narrow_16
#define _mm512_cvtepi32_epi8 emulated_narrow_8

/* Masks. */
EMULATED int emulated_compare(double x, double y, int how) {
    const int unordered = x != x || y != y;
    switch (how) {
        case _CMP_UNORD_Q:
            return unordered;
        case _CMP_ORD_Q:
            return !unordered;
        case _CMP_GT_OQ:
            return !unordered && x > y;
        case _CMP_NGT_UQ:
            return unordered || !(x > y);
        default:
            abort();
    }
}
EMULATED __mmask16 emulated_cmp_ps(__mmask16 mask, __m512 x, __m512 y, int how) {
    unsigned r = 0;
    EMULATED_EACH(16, if (mask >> i & 1) r |= (unsigned)emulated_compare((double)x[i], (double)y[i], how) << i);
    return (__mmask16)r;
}
EMULATED __mmask8 emulated_cmp_pd(__mmask8 mask, __m512d x, __m512d y, int how) {
    unsigned r = 0;
    EMULATED_EACH(8, if (mask >> i & 1) r |= (unsigned)emulated_compare(x[i], y[i], how) << i);
    return (__mmask8)r;
}
EMULATED __mmask16 emulated_cmpeq_epi8(__m128i x, __m128i y) {
    return (__mmask16)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y));
}
EMULATED __mmask16 emulated_fpclass(__m512 x, int classes) {
    unsigned r = 0;
    if (classes != 0x20) abort(); /* denormal numbers */
    EMULATED_EACH(16, r |= (unsigned)(fpclassify(x[i]) == FP_SUBNORMAL) << i);
    return (__mmask16)r;
}
#define _mm512_mask_cmp_ps_mask emulated_cmp_ps
#define _mm512_mask_cmp_pd_mask emulated_cmp_pd
#define _mm512_cmp_ps_mask(x, y, how) emulated_cmp_ps(0xffff, x, y, how)
#define _mm512_cmp_pd_mask(x, y, how) emulated_cmp_pd(0xff, x, y, how)
#define _mm_cmpeq_epi8_mask emulated_cmpeq_epi8
#define _mm512_fpclass_ps_mask emulated_fpclass

/* y where bits are set, else x. */
EMULATED any512 emulated_blend(any512 x, uint64_t mask, any512 y, size_t size) {
    emulated_move(&x, &y, mask, size, (int)(64 / size));
    return x;
}
#define _mm512_mask_mov_ps(x, mask, y) \
    (emulated_blend((any512){.ps = (x)}, (__mmask16)(mask), (any512){.ps = (y)}, 4).ps)
#define _mm512_mask_mov_pd(x, mask, y) \
    (emulated_blend((any512){.pd = (x)}, (__mmask8)(mask), (any512){.pd = (y)}, 8).pd)
#define _mm512_mask_mov_epi32(x, mask, y) \
    (emulated_blend((any512){.si = (x)}, (__mmask16)(mask), (any512){.si = (y)}, 4).si)
#define _mm512_mask_mov_epi64(x, mask, y) \
    (emulated_blend((any512){.si = (x)}, (__mmask8)(mask), (any512){.si = (y)}, 8).si)
#define _mm512_mask_or_epi32(x, mask, y, z) _mm512_mask_mov_epi32(x, mask, (y) | (z))
#define _mm512_mask_add_ps(x, mask, y, z) _mm512_mask_mov_ps(x, mask, (y) + (z))
#define _mm512_mask_add_pd(x, mask, y, z) _mm512_mask_mov_pd(x, mask, (y) + (z))

/* Places.  Elements of lanes of 16 bytes: the lower or the upper half of both in turns. */
#define EMULATED_UNPACK(name, view, of_lane)                                              \
    EMULATED any512 emulated_##name(any512 x, any512 y, int upper) {                      \
        any512 r;                                                                         \
        EMULATED_EACH(64 / 16 * (of_lane) / 2, {                                          \
            const int lane = i / ((of_lane) / 2) * (of_lane);                             \
            const int at = i % ((of_lane) / 2), from = lane + at + upper * (of_lane) / 2; \
            r.view[lane + 2 * at] = x.view[from];                                         \
            r.view[lane + 2 * at + 1] = y.view[from];                                     \
        });                                                                               \
        return r;                                                                         \
    }
EMULATED_UNPACK(unpack_16, u16, 8)
EMULATED_UNPACK(unpack_32, u32, 4)
EMULATED_UNPACK(unpack_64, u64, 2)
#define EMULATED_UNPACKED(name, view, x, y, upper) \
    (emulated_##name((any512){.view = (x)}, (any512){.view = (y)}, upper).view)
#define _mm512_unpacklo_epi16(x, y) EMULATED_UNPACKED(unpack_16, si, x, y, 0)
#define _mm512_unpackhi_epi16(x, y) EMULATED_UNPACKED(unpack_16, si, x, y, 1)
#define _mm512_unpacklo_epi32(x, y) EMULATED_UNPACKED(unpack_32, si, x, y, 0)
#define _mm512_unpackhi_epi32(x, y) EMULATED_UNPACKED(unpack_32, si, x, y, 1)
#define _mm512_unpacklo_epi64(x, y) EMULATED_UNPACKED(unpack_64, si, x, y, 0)
#define _mm512_unpackhi_epi64(x, y) EMULATED_UNPACKED(unpack_64, si, x, y, 1)
#define _mm512_unpacklo_ps(x, y) EMULATED_UNPACKED(unpack_32, ps, x, y, 0)
#define _mm512_unpackhi_ps(x, y) EMULATED_UNPACKED(unpack_32, ps, x, y, 1)
#define _mm512_unpacklo_pd(x, y) EMULATED_UNPACKED(unpack_64, pd, x, y, 0)
#define _mm512_unpackhi_pd(x, y) EMULATED_UNPACKED(unpack_64, pd, x, y, 1)

EMULATED __m512i emulated_permute_16(__m512i first, __m512i places, __m512i second) {
    any512 r;
    const any512 x = {.si = first}, y = {.si = second}, at = {.si = places};
    EMULATED_EACH(32, r.u16[i] = at.u16[i] & 32 ? y.u16[at.u16[i] & 31] : x.u16[at.u16[i] & 31]);
    return r.si;
}
EMULATED __m512i emulated_shuffle_lanes(__m512i first, __m512i second, int how) {
    any512 r;
    const any512 x = {.si = first}, y = {.si = second};
    EMULATED_EACH(4, memcpy(r.u8 + 16 * i, (i < 2 ? x.u8 : y.u8) + 16 * (how >> 2 * i & 3), 16));
    return r.si;
}
EMULATED __m512 emulated_broadcast_lane(__m512 x, __mmask16 mask, __m128 lane) {
    any512 r = {.ps = x};
    EMULATED_EACH(16, if (mask >> i & 1) r.f32[i] = lane[i % 4]);
    return r.ps;
}
#define _mm512_permutex2var_epi16 emulated_permute_16
#define _mm512_permutexvar_epi16(places, x) emulated_permute_16(x, (places) & emulated_set1_epi16(31), x)
#define _mm512_shuffle_i32x4 emulated_shuffle_lanes
#define _mm512_mask_broadcast_f32x4 emulated_broadcast_lane

/* bfloat16: denormal numbers are zeros, as operands and as results; NaN is quiet; rounding is to nearest even. */
typedef union {
    float f32;
    uint32_t u32;
} emulated_bits;
EMULATED uint16_t emulated_round(float of) {
    emulated_bits x = {of};
    if (of != of) return (uint16_t)(x.u32 >> 16 | 0x40);
    if (!(x.u32 & 0x7f800000)) return (uint16_t)(x.u32 >> 16 & 0x8000);
    return (uint16_t)((x.u32 + 0x7fff + (x.u32 >> 16 & 1)) >> 16);
}
EMULATED float emulated_operand(uint32_t bits) {
    const emulated_bits x = {.u32 = bits & 0x7f800000 ? bits : bits & 0x80000000};
    return x.f32;
}
EMULATED float emulated_flushed(float of) {
    const emulated_bits x = {of};
    return emulated_operand(x.u32);
}
EMULATED __m256i emulated_cvtneps(__m512 x) {
    any256 r;
    EMULATED_EACH(16, r.u16[i] = emulated_round(x[i]));
    return r.si;
}
EMULATED __m512i emulated_cvtne2ps(__m512 upper, __m512 lower) {
    any512 r;
    EMULATED_EACH(16, r.u16[i] = emulated_round(lower[i]), r.u16[16 + i] = emulated_round(upper[i]));
    return r.si;
}
/* Of each pair the second product first; each multiply-add is rounded once. */
EMULATED float emulated_dot(float sum, uint32_t x, uint32_t y) {
    const float second =
        emulated_flushed(__builtin_fmaf(emulated_operand(x & 0xffff0000), emulated_operand(y & 0xffff0000), sum));
    return emulated_flushed(__builtin_fmaf(emulated_operand(x << 16), emulated_operand(y << 16), second));
}
EMULATED __m512 emulated_dpbf16(__m512 sum, __m512i first, __m512i second) {
    any512 r;
    const any512 x = {.si = first}, y = {.si = second};
    EMULATED_EACH(16, r.f32[i] = emulated_dot(emulated_flushed(sum[i]), x.u32[i], y.u32[i]));
    return r.ps;
}
#define _mm512_cvtneps_pbh emulated_cvtneps
#define _mm512_cvtne2ps_pbh emulated_cvtne2ps
#define _mm512_dpbf16_ps(sum, x, y) emulated_dpbf16(sum, (__m512i)(x), (__m512i)(y))
#define __m512bh __m512i

/* Tiles of AMX, a set for each thread and file: functions of one file load, multiply and store them. */
static __thread __attribute__((unused)) struct {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config;
    uint8_t tile[8][16][64];
} emulated_amx;

EMULATED void emulated_loadconfig(const void *config) {
    memset(&emulated_amx, 0, sizeof emulated_amx);
    memcpy(&emulated_amx.config, config, sizeof emulated_amx.config);
}
EMULATED void emulated_tile_check(int tile) {
    if (emulated_amx.config.palette != 1 || tile > 7) abort(); /* a processor has a fault */
}
EMULATED void emulated_tile_zero(int tile) {
    emulated_tile_check(tile);
    memset(emulated_amx.tile[tile], 0, sizeof emulated_amx.tile[tile]);
}
EMULATED void emulated_tile_load(int tile, const void *from, size_t stride) {
    emulated_tile_zero(tile);
    EMULATED_EACH(emulated_amx.config.rows[tile],
                  memcpy(emulated_amx.tile[tile][i], (const char *)from + (size_t)i * stride,
                         emulated_amx.config.row_bytes[tile]));
}
EMULATED void emulated_tile_store(int tile, void *to, size_t stride) {
    emulated_tile_check(tile);
    EMULATED_EACH(emulated_amx.config.rows[tile], memcpy((char *)to + (size_t)i * stride, emulated_amx.tile[tile][i],
                                                         emulated_amx.config.row_bytes[tile]));
}
/* Rows of A are pairs along k, rows of B pairs of columns.  First and second elements are summed apart, from 0 on. */
EMULATED void emulated_tile_multiply(int c, int a, int b) {
    emulated_tile_check(c);
    for (int row = 0; row < emulated_amx.config.rows[c]; row++) {
        any512 sum, x, y, first = {.si = {0}}, second = {.si = {0}};
        memcpy(&x, emulated_amx.tile[a][row], sizeof x);
        memcpy(&sum, emulated_amx.tile[c][row], sizeof sum);
        for (int k = 0; k < emulated_amx.config.row_bytes[a] / 4; k++) {
            const float even = emulated_operand(x.u32[k] << 16), odd = emulated_operand(x.u32[k] & 0xffff0000);
            memcpy(&y, emulated_amx.tile[b][k], sizeof y);
            EMULATED_EACH(16, first.f32[i] += even * emulated_operand(y.u32[i] << 16));
            EMULATED_EACH(16, second.f32[i] += odd * emulated_operand(y.u32[i] & 0xffff0000));
        }
        EMULATED_EACH(16, sum.f32[i] = emulated_flushed(sum.f32[i]) +
                                       (emulated_flushed(first.f32[i]) + emulated_flushed(second.f32[i])));
        memcpy(emulated_amx.tile[c][row], &sum, sizeof sum);
    }
}
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig emulated_loadconfig
#define _tile_release() (emulated_amx.config.palette = 0)
#define _tile_zero emulated_tile_zero
#define _tile_loadd emulated_tile_load
#define _tile_stored emulated_tile_store
#define _tile_dpbf16ps emulated_tile_multiply
#endif

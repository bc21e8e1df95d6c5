/* `real`, `elem` and DT(name) for a source file that is compiled once per precision.
 *
 *     precision   flag                `real`: arithmetic,        `elem`: images and        DT(name)
 *                                     parameters, statistics     their gradients in memory
 *     float32                         float                      float                     dtconv_s##name
 *     float64     -DDTCONV_DOUBLE     double                     double                    dtconv_d##name
 *     bfloat16    -DDTCONV_BFLOAT16   float                      uint16_t (its bits)       dtconv_h##name
 *
 * RT(name) is the function of the precision whose `elem` is `real`: what the third one shares with the first.
 */
#ifndef DTCONV_REAL_H
#define DTCONV_REAL_H

#include "dtconv.h"
#include "dtconv_bfloat16.h"

#if defined(DTCONV_DOUBLE)
#define real double
#define elem double
#define DT(name) dtconv_d##name
#define RT(name) dtconv_d##name
#define REAL_EPS 2.220446049250313e-16
#elif defined(DTCONV_BFLOAT16)
#define real float
#define elem uint16_t
#define DT(name) dtconv_h##name
#define RT(name) dtconv_s##name
#define REAL_EPS 1.1920929e-7f
#else
#define real float
#define elem float
#define DT(name) dtconv_s##name
#define RT(name) dtconv_s##name
#define REAL_EPS 1.1920929e-7f
#endif

/* The value of an element in memory, and the element that is nearest to a value. */
#ifdef DTCONV_BFLOAT16
static inline real widen(elem x) { return dtconv_from_bf16(x); }
static inline elem narrow(real x) { return dtconv_to_bf16(x); }
#else
#define widen(x) (x) /* no functions: they would make other machine code of what is the same */
#define narrow(x) (x)
#endif

#endif

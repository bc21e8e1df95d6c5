/* Micro-kernels and GEMM of `real`, RT(ukr_row) and its like: in bfloat16 those of float32, for what multiplies numbers
 * that were widened.  Elsewhere GEMM is dtconv_gemm.h's. */
#ifndef DTCONV_OF_REALS_H
#define DTCONV_OF_REALS_H

#include "dtconv_real.h"

#pragma push_macro("elem")
#pragma push_macro("DT")
#undef elem
#undef DT
#define elem real
#define DT RT
#include "dtconv_ukr.h"
#ifdef DTCONV_BFLOAT16
#include "dtconv_gemm.h"
#endif
#undef elem
#undef DT
#pragma pop_macro("elem")
#pragma pop_macro("DT")

#endif

/* The micro-kernels of `real`, RT(ukr_row) and its like: in bfloat16 those of float32, for what multiplies numbers that
 * were widened. */
#ifndef DTCONV_UKR_OF_REALS_H
#define DTCONV_UKR_OF_REALS_H

#include "dtconv_real.h"

#pragma push_macro("elem")
#pragma push_macro("DT")
#undef elem
#undef DT
#define elem real
#define DT RT
#include "dtconv_ukr.h"
#undef elem
#undef DT
#pragma pop_macro("elem")
#pragma pop_macro("DT")

#endif

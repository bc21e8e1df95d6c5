/* All declarations in every precision, for the bindings: dtconv_s*, dtconv_d* and dtconv_h*.  Of the third, the library
 * has those whose files tools/libdtconv.py lists. */
#ifndef DTCONV_BOTH_H
#define DTCONV_BOTH_H

#include "dtconv.h"

#define real float
#define elem float
#define DT(name) dtconv_s##name
#include "dtconv_declarations.h"
#undef real
#undef elem
#undef DT

#define real double
#define elem double
#define DT(name) dtconv_d##name
#include "dtconv_declarations.h"
#undef real
#undef elem
#undef DT

#define real float
#define elem uint16_t
#define DT(name) dtconv_h##name
#include "dtconv_declarations.h"
#undef real
#undef elem
#undef DT

#endif

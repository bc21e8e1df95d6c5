/* All declarations in both precisions, for the bindings: dtconv_s* and dtconv_d*. */
#ifndef DTCONV_BOTH_H
#define DTCONV_BOTH_H

#include "dtconv.h"

#define real float
#define DT(name) dtconv_s##name
#include "dtconv_declarations.h"
#undef real
#undef DT

#define real double
#define DT(name) dtconv_d##name
#include "dtconv_declarations.h"
#undef real
#undef DT

#endif

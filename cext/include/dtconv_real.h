/* `real` and DT(name) for a source file that is compiled once per precision. */
#ifndef DTCONV_REAL_H
#define DTCONV_REAL_H

#include "dtconv.h"

#ifdef DTCONV_DOUBLE
#define real double
#define DT(name) dtconv_d##name
#define REAL_EPS 2.220446049250313e-16
#else
#define real float
#define DT(name) dtconv_s##name
#define REAL_EPS 1.1920929e-7f
#endif

#endif

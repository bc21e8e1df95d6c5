/* Every family of the library, in the precision that `real` and DT() say.  No include guard: see dtconv_both.h. */
#include "dtconv_ukr.h"
#include "dtconv_gemm.h"
#include "dtconv_nn_elem.h"
#include "dtconv_nn_norm.h"
#include "dtconv_conv.h"
#include "dtconv_winograd.h"
#include "dtconv_wire.h"

/* backward_weights where there are few filters, as `direct` does it. */
#ifndef DTCONV_FEW_FILTERS_WEIGHTS_H
#define DTCONV_FEW_FILTERS_WEIGHTS_H

#include "conv_internal.h"

/* Whether rows of taps fill tiles better than the filters do. */
int DT(has_few_filters)(const dtconv_conv *p);
size_t DT(few_filters_weights_workspace)(const dtconv_conv *p);
dtconv_status DT(few_filters_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes);

#endif

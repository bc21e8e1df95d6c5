/* The product of a forward pass for one group, by the GEMM that the caller names. */
#include "conv_internal.h"

typedef dtconv_status (*DT(product_fn))(const DT(gemm_args) * args, void *workspace, size_t bytes);

/* a_in_place: A as a plain matrix, or NULL: as pack_a packs it. */
dtconv_status DT(forward_product)(const dtconv_conv *p, const DT(conv_args) * a, int64_t group, DT(pack_a_fn) pack_a,
                                  const void *context, const DT(matrix) * a_in_place, DT(product_fn) product,
                                  void *workspace, size_t bytes);

/* Winograd's convolution with filters that are transformed ahead: by a plan whose filters do not change (inference), or
 * once for several passes over the same filters.  The plain passes are conv_winograd_* (dtconv_conv.h).
 *
 * U is the transformed filters of one pass, forward or backward_data, in the order in which the micro-kernel in force
 * reads them: it is of no use to another micro-kernel, image size or pass.  The two passes have U of their own: one is
 * the other with rows and columns exchanged, and exchanging them moves more bytes than the transform of w.
 *
 * No include guard: see dtconv_both.h.
 */

#include "dtconv_tile.h"

/* The tiles that images of oh x ow outputs are cut into: (h + 2) * (w + 2) multiplications each.  Transformed filters
 * are larger with larger tiles, and their gradients are kept while these are summed.  kind: DTCONV_TILES_... */
dtconv_tile DT(winograd_tile)(int64_t oh, int64_t ow, int kind);

/* Bytes of U; 0 where Winograd does not do p. */
size_t DT(winograd_filters_bytes)(const dtconv_conv *p, int backward_data);

/* U (aligned to 64) from w (3 x 3 x ci x co), in parallel. */
dtconv_status DT(winograd_filters)(const dtconv_conv *p, int backward_data, const real *w, real *u, void *workspace,
                                   size_t bytes);

/* The pass with U in place of a->w, which is not read. */
dtconv_status DT(winograd_with_filters)(const dtconv_conv *p, int backward_data, const DT(conv_args) * a, const real *u,
                                        void *workspace, size_t bytes);

/* Bytes of workspace of both functions, with the threads now set. */
size_t DT(winograd_with_filters_workspace)(const dtconv_conv *p, int backward_data);

/* Loop nests over strided and broadcast operands, spans of contiguous elements innermost (see dtconv_nn_elem.h:
 * layout).
 *
 * The driver splits the nest into items of up to DTCONV_SPAN elements along the innermost dimension and deals
 * contiguous ranges of items out to the threads.  An operand whose innermost stride is 0 is spread into a small buffer,
 * so that a span function only ever sees contiguous operands; so is a short row that is the same for many, such as one
 * number of each of three channels, with which several rows make one span.  Operands in bfloat16 are widened into such
 * buffers and the output is rounded out of one: span functions compute on `real`, and both precisions of float share
 * them.
 */
#ifndef DTCONV_STRIDED_H
#define DTCONV_STRIDED_H

#include "dtconv_real.h"

enum { DTCONV_SPAN = 2048, DTCONV_SPREAD = 256, DTCONV_MAX_DIMS = 8, DTCONV_MAX_INPUTS = 4 };
enum { DTCONV_PARALLEL_ELEMENTS = 16384 }; /* below this a second thread costs more than it saves */

/* Computes n elements of out from n contiguous elements of each input; in[i] is NULL where the caller's was. */
typedef void (*DT(span_fn))(const void *context, int64_t n, const real *const *in, real *out);

/* reads_out: whether fn reads what stood in out. */
dtconv_status DT(map_spans)(DT(span_fn) fn, const void *context, int reads_out, const int64_t *layout,
                            const elem *const *in, elem *out);

#endif

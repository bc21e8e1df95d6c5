/* Winograd's forward and backward_data of images in bfloat16 with transformed numbers that are rounded: conv/winograd.c
 * on products of bfloat16, for micro-kernels that are twice as fast as those of float32.
 *
 * Rounding the transformed numbers of tiles of 4 x 4 gives a pass about five times the error that rounding its operands
 * gives.  In backward passes that is little beside what forward's roundings have done to the gradients before: those
 * that change signs before a ReLU change whole elements.  Forward therefore has tiles of 2 x 4, with half that error.
 */
#define ROUNDED
#include "winograd.c"

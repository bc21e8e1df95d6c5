/* Winograd's backward_data of images in bfloat16 with transformed numbers that are rounded: conv/winograd.c on products
 * of bfloat16, for micro-kernels that are twice as fast as those of float32.
 *
 * Rounding transformed numbers gives a pass about five times the error that rounding its operands gives.  In backward
 * passes that is little beside what forward's roundings have done to the gradients before: those that change signs
 * before a ReLU change whole elements.  In forward it would be much, so there is none.
 */
#define ROUNDED
#include "../conv/winograd.c"

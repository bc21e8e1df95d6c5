/* Direct convolution, forward and backward_data, of images in bfloat16 on processors without products of them:
 * bfloat16_direct.c with pieces that are copied in float32, filters that are not rounded, and the micro-kernel of
 * float32's direct (conv/direct_tile.h).  Each number is widened once, where a micro-kernel of pairs widens it for each
 * use.
 *
 * That micro-kernel reads rows of A wherever they are, and any number of steps.  So channels are not filled up, tiles
 * are cut into equal heights, and where channels are few the copy has all columns in order: the taps of a row of
 * filters are then one run, and im2col is not needed.
 *
 * backward_weights is done in the same way (bfloat16_direct_weights_widened.c).
 */
#define WIDENED
#include "bfloat16_direct.c"

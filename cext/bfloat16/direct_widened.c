/* Direct convolution, forward and backward_data, of images in bfloat16 on processors without products of them: direct.c
 * with pieces that are copied in float32, filters that are not rounded, and the micro-kernel of float32's direct
 * (conv/direct_tile.h).  Each number is widened once, where a micro-kernel of pairs widens it for each use.
 */
#define WIDENED
#include "direct.c"

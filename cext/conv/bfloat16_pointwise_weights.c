/* conv/pointwise_weights.c for images in bfloat16 on processors without products of them. */
#define IN_REALS
#include "pointwise_weights.c"

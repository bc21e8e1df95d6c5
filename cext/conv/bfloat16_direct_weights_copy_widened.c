/* See bfloat16_direct_widened.c. */
#define WIDENED
#include "bfloat16_direct_weights_copy.c"

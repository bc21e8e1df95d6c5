/* See direct_widened.c. */
#define WIDENED
#include "direct_weights.c"

/* See direct_widened.c. */
#define WIDENED
#include "direct_copy.c"

/* See winograd_large.c. */
#define LARGE
#include "winograd_weights.c"

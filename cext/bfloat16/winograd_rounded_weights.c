/* The same of backward_weights: conv/winograd_weights.c on products of bfloat16 (winograd_rounded.c says why). */
#define ROUNDED
#include "../conv/winograd_weights.c"

/* The same of backward_weights: conv/winograd_weights.c on products of bfloat16 (bfloat16_winograd.c says why). */
#define ROUNDED
#include "winograd_weights.c"

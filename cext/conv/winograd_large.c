/* Winograd's forward and backward_data with tiles of 7 x 7 and 8 x 8, too: up to 0.56 times the multiplications, and
 * four to ten times the errors (transform_tables.h).  Images in bfloat16 have these tiles in conv/winograd.c itself. */
#define LARGE
#include "winograd.c"

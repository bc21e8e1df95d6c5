/* Outputs of a tile of Winograd's convolution, and which tiles a pass may have. */
#ifndef DTCONV_TILE_H
#define DTCONV_TILE_H

typedef struct {
    int h, w;
} dtconv_tile;

/* Of forward and backward_data; of backward_weights; both with large tiles; of the latter two passes where transformed
 * numbers are rounded to bfloat16; and of forward there. */
enum {
    DTCONV_TILES_OF_IMAGES,
    DTCONV_TILES_OF_WEIGHTS,
    DTCONV_TILES_LARGE_OF_IMAGES,
    DTCONV_TILES_LARGE_OF_WEIGHTS,
    DTCONV_TILES_ROUNDED,
    DTCONV_TILES_ROUNDED_FORWARD
};

#endif

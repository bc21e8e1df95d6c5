/* Changes of images (n, h, w, c): by a list of steps for each image, in the precision of `real`.  No include guard: see
 * dtconv_both.h.
 */
#ifndef real
#include "dtconv_real.h"
#endif

#ifndef DTCONV_IMAGE_STEPS
#define DTCONV_IMAGE_STEPS

/* A step is DTCONV_STEP_NUMBERS doubles: its kind and then, by their places:
 *
 *   AFFINE         order, mode, value, t0 ... t7, joined    pixel (x, y) comes from ((t0 x + t1 y + t2) / k,
 *                                                           (t3 x + t4 y + t5) / k), k = t6 x + t7 y + 1
 *   PLACES         order, mode, value, at                   from the rows and then the columns, h w each, at extra[at]
 *   ADD            delta, low, high                         x + delta, limited to low ... high as in what follows
 *   CONTRAST       factor, low, high                        the distance from each channel's mean times factor
 *   GRAY                                                    RGB by its brightness
 *   INVERT         sum                                      sum - x
 *   HUE            turn, low, high                          RGB of low ... high, hue + turn
 *   SATURATION     factor, low, high                        RGB; low, high limit the saturation
 *   POSTERIZE      bits, low, high                          so many of 8 bits become 0
 *   SOLARIZE       addition, threshold, low, high           of 0 ... 255: from the threshold on 255 - x
 *   COLOUR         share, low, high                         RGB: share x + (1 - share) gray
 *   SHARPNESS      share, low, high                         share x + (1 - share) smoothed x
 *   BLUR           rows, at, columns, at, low, high         products with rows and columns weights, zeros outside
 *   ERASE          top, left, rows, columns, at, value, low, high      at < 0: value, else extra[at ...], limited
 *   AUTO_CONTRAST  low, high                                each channel stretched to low ... high
 *   EQUALIZE       bins, at, low, high                      by ranks of a channel's values; c bins of room at extra[at]
 *   SCALE          at                                       x a + b of each channel, extra[at ...]: a, then b
 *
 * order: 0 the nearest pixel, 1 bilinear.  mode: a dtconv_fill, for places outside.  joined: not 0: this step and the
 * one before it are one resampling; both have the same order, and the mode is not WRAP. */
enum { DTCONV_STEP_NUMBERS = 16 };
typedef enum {
    DTCONV_STEP_AFFINE = 1, /* 0: the end of a list, to those who write lists of equal lengths */
    DTCONV_STEP_PLACES,
    DTCONV_STEP_ADD,
    DTCONV_STEP_CONTRAST,
    DTCONV_STEP_GRAY,
    DTCONV_STEP_INVERT,
    DTCONV_STEP_HUE,
    DTCONV_STEP_SATURATION,
    DTCONV_STEP_POSTERIZE,
    DTCONV_STEP_SOLARIZE,
    DTCONV_STEP_COLOUR,
    DTCONV_STEP_SHARPNESS,
    DTCONV_STEP_BLUR,
    DTCONV_STEP_ERASE,
    DTCONV_STEP_AUTO_CONTRAST,
    DTCONV_STEP_EQUALIZE,
    DTCONV_STEP_SCALE,
    DTCONV_STEP_KINDS
} dtconv_step;

typedef enum {
    DTCONV_FILL_CONSTANT = 0,
    DTCONV_FILL_NEAREST,
    DTCONV_FILL_WRAP,
    DTCONV_FILL_MIRROR,
    DTCONV_FILL_REFLECT,
    DTCONV_FILL_MODES
} dtconv_fill;
#endif

/* y = x after each image's steps, starts[i] ... starts[i + 1] - 1 of `steps` (DTCONV_STEP_NUMBERS each); y may not be
 * x. Threads divide the images; bits do not depend on them.  Answers DTCONV_ARGUMENT for steps that do not fit: RGB is
 * of three channels, orders and modes are those above, places in extra lie within its extra_count numbers; and
 * DTCONV_UNSUPPORTED for images of 2^31 elements and more. */
size_t DT(change_images_workspace)(int64_t h, int64_t w, int64_t c);
dtconv_status DT(change_images)(int64_t n, int64_t h, int64_t w, int64_t c, const int64_t *starts, const double *steps,
                                double *extra, int64_t extra_count, const real *x, real *y, void *workspace,
                                size_t size);

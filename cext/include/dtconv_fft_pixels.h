/* Fourier transforms of pixels, which are `elem`: as they lie in memory, of images in bfloat16, too.  All else of
 * dtconv_fft.h is of `real`, RT(fft_plan) and its like. */
#ifndef DTCONV_FFT_PIXELS_H
#define DTCONV_FFT_PIXELS_H

#include "dtconv_real.h"

#pragma push_macro("elem")
#pragma push_macro("DT")
#undef elem
#undef DT
#define elem real
#define DT RT
#include "dtconv_fft.h"
#undef elem
#undef DT
#pragma pop_macro("elem")
#pragma pop_macro("DT")

/* As RT(fft_apply), from pixels to y: channels from c on of the real parts re[i] and of the imaginary parts im[i]. */
void DT(fft_pixels)(const RT(fft_plan) * plan, const elem *const *re, const elem *const *im, int64_t c,
                    const RT(fft_points) * y, real *scratch);
void RT(fft_pixels)(const RT(fft_plan) * plan, const real *const *re, const real *const *im, int64_t c,
                    const RT(fft_points) * y, real *scratch);

#endif

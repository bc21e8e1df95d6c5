/* Seconds that the phases of convolutions in the Fourier domain take, for benchmarks: those of one thread, with what it
 * waits for the others.
 *
 *   0 transforms of the filters, or the inverse to dw      1 transforms of images      2 products      3 inverse to
 * images
 *
 * No include guard: include it after dtconv_real.h, once. */
#ifndef DTCONV_FFT_PHASES
#define DTCONV_FFT_PHASES 4
#endif

/* Adds them to seconds[0 .. 3] from now on; NULL: no longer.  Not while a convolution runs. */
void DT(fft_watch)(double *seconds);

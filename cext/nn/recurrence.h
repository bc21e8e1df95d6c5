/* Recurrent layers over all steps of a sequence: SimpleRNN, LSTM, GRU.  For their files and their binding alone.
 *
 * The products of the inputs with their weights and the bias are there already, as one product of all steps:
 * z (n, steps, gates * units).  What is left is a loop over steps s, with the state h (n, units), for LSTM c as well:
 *
 *   SimpleRNN     h = f(z + h W)
 *   LSTM          i, f', o = g(z + h W), k = f(z + h W);  c = f' c + i k;  h = o f(c)          order i f' k o
 *   GRU           u, r = g(z + h W + b);  k = f(z + r (h W + b));  h = u h + (1 - u) k         order u r k
 *   GRU (before)  the same, but for k = f(z + (r h) W)
 *
 * Hochreiter, Schmidhuber (1997) with the forget gate of Gers et al. (2000); Cho et al. (2014).
 */
#ifndef RECURRENCE_H
#define RECURRENCE_H

#include <stddef.h>
#include <stdint.h>

enum { RECURRENCE_SIMPLE, RECURRENCE_LSTM, RECURRENCE_GRU, RECURRENCE_GRU_BEFORE };

/* Passes take `count` of these, one or two, which run at the same time: both directions of a sequence.  They have the
 * same cell and sizes.
 *
 * Arrays are dense; those of `real` come as void *, and NULL is what is not given or not wanted.
 *
 * backwards: the first step is the last of z; y is in the order of the steps that are made.
 * mask (n, steps), in the order of z: where it is 0 a step leaves the state as it is; the output is the one before, 0
 * in the first step, or, with zero_output, always 0.
 * sequences: y is (n, steps, units), else (n, units), that of the last step.
 * f, g: codes of activations whose derivatives follow from their results, and their parameters.
 *
 * For backward, forward leaves, in the order of z:
 *   gates     (n, steps, saved * units)   h for SimpleRNN; i f' k o; or u r k and h W + b of k, or r h
 *   cells     (n, steps, units)           c, for LSTM
 *   previous  (n, steps, units)           h before each step
 * Backward writes dz; side (n, steps, units), for GRU: the gradient of h W + b of k, where it is another than dz's; and
 * dh0, dc0. */
typedef struct {
    int64_t n, steps, units;
    int cell, backwards, sequences, zero_output;
    int f, g;
    double f_parameters[3], g_parameters[3];
    const void *z, *w, *b, *h0, *c0;
    const uint8_t *mask;
    void *y, *h, *c;
    void *gates, *cells, *previous;
    const void *dy, *dh, *dc;
    void *dz, *side, *dh0, *dc0;
} dtconv_recurrence;

size_t dtconv_srecurrence_workspace(const dtconv_recurrence *p, int count, int backward);
size_t dtconv_drecurrence_workspace(const dtconv_recurrence *p, int count, int backward);
int dtconv_srecurrence_forward(const dtconv_recurrence *p, int count, void *workspace, size_t bytes);
int dtconv_drecurrence_forward(const dtconv_recurrence *p, int count, void *workspace, size_t bytes);
int dtconv_srecurrence_backward(const dtconv_recurrence *p, int count, void *workspace, size_t bytes);
int dtconv_drecurrence_backward(const dtconv_recurrence *p, int count, void *workspace, size_t bytes);

#endif

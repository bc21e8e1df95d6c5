/* bfloat16, the upper half of a float32 (8 bits of exponent, 8 of precision), as its bits: conversion.
 *
 * Rounding is to nearest, ties to even; infinity stays, NaN stays NaN and becomes a quiet one.
 */
#ifndef DTCONV_BFLOAT16_H
#define DTCONV_BFLOAT16_H

#include <stdint.h>
#include <string.h>

static inline uint16_t dtconv_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40; /* rounding could carry a NaN over into infinity */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

static inline float dtconv_from_bf16(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

#endif

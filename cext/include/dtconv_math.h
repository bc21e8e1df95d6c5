/* exp, expm1, log, tanh and kin as inline functions without branches, so that loops over them are vectorised.
 *
 * Single precision: argument reduction and polynomials, a few ulp; the coefficients are minimax fits (Lawson's
 * iteration) of the functions named beside them.  Double precision: the C library, for it is used where accuracy counts
 * and not speed. NaN stays NaN, overflow gives infinity, underflow goes through the subnormal numbers to zero.
 */
#ifndef DTCONV_MATH_H
#define DTCONV_MATH_H

#include <math.h>
#include <string.h>

#include "dtconv_real.h"

#ifdef DTCONV_DOUBLE

static inline double DT(sqrt_)(double x) { return sqrt(x); }
static inline double DT(pow_)(double x, double y) { return pow(x, y); }
static inline double DT(exp_)(double x) { return exp(x); }
static inline double DT(expm1_)(double x) { return expm1(x); }
static inline double DT(log_)(double x) { return log(x); }
static inline double DT(log1p_)(double x) { return log1p(x); }
static inline double DT(tanh_)(double x) { return tanh(x); }

#else

static inline float DT(sqrt_)(float x) { return sqrtf(x); }
static inline float DT(pow_)(float x, float y) { return powf(x, y); }

static inline int32_t dtconv_bits(float x) {
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

static inline float dtconv_float(int32_t i) {
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* 2^n for n = -127 .. 128; for other n, as NaN has them, anything. */
static inline float dtconv_power(int32_t n) { return dtconv_float((int32_t)((uint32_t)(n + 127) << 23)); }

/* x = n ln 2 + r with |r| <= ln(2) / 2; returns expm1(r) = r + r^2 P(r), and 2^n as two factors, for n = -150 .. 128.
 */
static inline float dtconv_exp_parts(float x, float *scale1, float *scale2) {
    const float magic = 12582912.f; /* 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits */
    x = x > 89.f ? 89.f : x;
    x = x < -104.f ? -104.f : x;
    const float t = x * 1.44269504f + magic;
    const int32_t n = dtconv_bits(t) - dtconv_bits(magic), half = n >> 1;
    const float fn = t - magic;
    const float r = (x - fn * 0.693359375f) + fn * 2.12194440e-4f; /* ln 2 = 0.693359375 - 2.1219e-4 */
    float p = 0.00139506023f;
    p = p * r + 0.00836895351f;
    p = p * r + 0.0416662041f;
    p = p * r + 0.166665183f;
    p = p * r + 0.50000001f;
    *scale1 = dtconv_power(half);
    *scale2 = dtconv_power(n - half);
    return p * (r * r) + r;
}

static inline float DT(exp_)(float x) {
    float scale1, scale2;
    const float p = dtconv_exp_parts(x, &scale1, &scale2);
    return (p + 1.f) * scale1 * scale2;
}

static inline float DT(expm1_)(float x) {
    float scale1, scale2;
    const float p = dtconv_exp_parts(x, &scale1, &scale2);
    const float y = p * scale1 * scale2 + (scale1 * scale2 - 1.f);
    return x > 88.f ? (p + 1.f) * scale1 * scale2 : y;
}

/* log(2^e (1 + f)) with 1 + f in [sqrt(1/2), sqrt(2)]: e ln 2 + f - f^2 / 2 + f^3 P(f). */
static inline float DT(log_)(float x) {
    const int small = x < 1.17549435e-38f;
    const float scaled = small ? x * 8388608.f : x;
    const uint32_t bits = (uint32_t)dtconv_bits(scaled); /* unsigned, because those of negative x wrap around */
    const int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    const float f = dtconv_float((int32_t)(bits - (uint32_t)e * 0x800000u)) - 1.f;
    const float fe = (float)e - (small ? 23.f : 0.f);
    float p = 0.0674664105f;
    p = p * f - 0.11675652f;
    p = p * f + 0.118881621f;
    p = p * f - 0.124055889f;
    p = p * f + 0.142195524f;
    p = p * f - 0.166679959f;
    p = p * f + 0.200021187f;
    p = p * f - 0.250000096f;
    p = p * f + 0.333333126f;
    const float f2 = f * f;
    float y = f2 * f * p - fe * 2.12194440e-4f;
    y = (y - 0.5f * f2) + f + fe * 0.693359375f;
    y = x < INFINITY ? y : x; /* infinity and NaN */
    y = x == 0.f ? -INFINITY : y;
    return x < 0.f ? NAN : y;
}

/* log(1 + x), x > -1: the rounding error of u = 1 + x is put back to first order. */
static inline float DT(log1p_)(float x) {
    const float u = 1.f + x;
    const float lost = x - (u - 1.f);
    const float y = DT(log_)(u) + lost / u;
    return x < INFINITY ? y : x;
}

/* x + x^3 P(x^2) up to 0.625, from there 1 - 2 / (exp(2 |x|) + 1). */
static inline float DT(tanh_)(float x) {
    const float a = fabsf(x), z = x * x;
    float p = -0.00570498693f;
    p = p * z + 0.0206390872f;
    p = p * z - 0.053739715f;
    p = p * z + 0.133314422f;
    p = p * z - 0.333332819f;
    const float near = p * z * x + x;
    const float far = copysignf(1.f - 2.f / (DT(exp_)(2.f * a) + 1.f), x);
    return a > 0.625f ? far : near;
}

#endif

static inline real DT(sigmoid_)(real x) { return 1 / (1 + DT(exp_)(-x)); }

/* log(1 + exp(x)) */
static inline real DT(softplus_)(real x) {
    const real a = x < 0 ? x : -x;
    return (x > 0 ? x : 0) + DT(log1p_)(DT(exp_)(a));
}

#endif

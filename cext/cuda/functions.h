/* Functions of `real`, by one name for both types. */
#ifndef DTCONV_CUDA_FUNCTIONS_H
#define DTCONV_CUDA_FUNCTIONS_H

#ifdef DOUBLE
#define FUNCTION(name) \
    __device__ inline real name##_(real x) { return name(x); }
#define POW pow
#else
#define FUNCTION(name) \
    __device__ inline real name##_(real x) { return name##f(x); }
#define POW powf
#endif

FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(sqrt)
FUNCTION(tanh)
FUNCTION(erfc)

__device__ inline real pow_(real x, real y) { return POW(x, y); }
__device__ inline real sigmoid_(real x) { return 1 / (1 + exp_(-x)); }
/* log(1 + exp(x)) without overflow */
__device__ inline real softplus_(real x) { return (x > 0 ? x : 0) + log1p_(exp_(x > 0 ? -x : x)); }

#endif

/* What formulas of activations.h are made of.  Who reads this defines F(name), functions of `real`, and PART, what
 * begins the definition of an inline function.
 */

/* slope * g, and 0 where the slope is 0, whatever g is. */
PART real sloped(real slope, real g) { return slope == 0 ? 0 : slope * g; }

/* gelu(x) = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
PART real gelu_inner(real x) { return (real)0.79788456080286535588 * (x + (real)0.044715 * x * x * x); }

PART real gelu_tanh_slope(real x) {
    x = x > 20 ? 20 : (x < -20 ? -20 : x); /* where it is 1 and 0 */
    const real s = F(sigmoid)(2 * gelu_inner(x));
    return s + 2 * x * s * (1 - s) * (real)0.79788456080286535588 * (1 + 3 * (real)0.044715 * x * x);
}

PART real silu_slope(real x) {
    const real s = F(sigmoid)(x);
    return s * (1 + x * (1 - s));
}

/* tanh(log(1 + e)) = n / (n + 2), n = e (e + 2), e = exp(x); constant from 20 on */
PART real mish_ratio(real x) {
    const real e = F(exp)(x > 20 ? 20 : x), n = e * (e + 2);
    return n / (n + 2);
}

PART real mish_slope(real x) {
    const real e = F(exp)(x > 20 ? 20 : x), n = e * (e + 2);
    return n / (n + 2) + (x > 20 ? 0 : x * 4 * e * (e + 1) / ((n + 2) * (n + 2)));
}

/* Transforms of 2 to 16 points in registers, from which longer ones are made.
 *
 * The loops are unrolled and all indices and factors are constants where these functions are inlined.  Lengths whose
 * two factors have no common divisor are done without factors in between (I. J. Good, "The interaction algorithm and
 * practical Fourier analysis", 1958), the others as Cooley and Tukey do.
 */
#ifndef DTCONV_BUTTERFLIES_H
#define DTCONV_BUTTERFLIES_H

#include "dtconv_vector.h"

typedef struct {
    vec re, im;
} point;

INLINE point plus(point a, point b) { return (point){a.re + b.re, a.im + b.im}; }
INLINE point minus(point a, point b) { return (point){a.re - b.re, a.im - b.im}; }
INLINE point turned(point a) { return (point){a.im, -a.re}; } /* -i a */
INLINE point scaled(point a, real by) { return (point){a.re * by, a.im * by}; }
INLINE point times(point a, real re, real im) { return (point){a.re * re - a.im * im, a.re * im + a.im * re}; }

/* cos and sin of 2 pi k / n; k is reduced, so that the compiler finds a constant */
#define TABLE_3 {1, -0.5}, {0, 0.866025403784438646763723170752936183}
#define TABLE_5                                                                           \
    {1, 0.309016994374947424102293417182819059, -0.809016994374947424102293417182819059}, \
        {0, 0.951056516295153572116439333379382143, 0.587785252292473129168705954639072769}
#define TABLE_7                                                                             \
    {1, 0.623489801858733530525004884004239811, -0.222520933956314404288902564496794759,    \
     -0.900968867902419126236102319507445051},                                              \
        {0, 0.781831482468029808708444526674057750, 0.974927912181823607018131682993931217, \
         0.433883739117558120475768332848358755}
static const double cos_sin_3[2][2] = {TABLE_3}, cos_sin_5[2][3] = {TABLE_5}, cos_sin_7[2][4] = {TABLE_7};
/* of 2 pi k / 16, k = 0 .. 4 */
static const double cos_16[] = {1, 0.923879532511286756128183189396788287, 0.707106781186547524400844362104849039,
                                0.382683432365089771728459984030398866, 0};

/* n = 3, 5, 7: sums and differences of points k and n - k. */
INLINE void odd_points(const int n, const double *cosines, const double *sines, point *z) {
    point sum[4], difference[4], all = z[0];
    UNROLL for (int k = 1; k <= n / 2; k++) {
        sum[k] = plus(z[k], z[n - k]);
        difference[k] = minus(z[k], z[n - k]);
        all = plus(all, sum[k]);
    }
    UNROLL for (int k = 1; k <= n / 2; k++) {
        point even = z[0], odd = {0};
        UNROLL for (int j = 1; j <= n / 2; j++) {
            const int at = j * k % n, folded = at <= n / 2 ? at : n - at;
            const real c = (real)cosines[folded], s = (real)(at <= n / 2 ? sines[folded] : -sines[folded]);
            even = plus(even, scaled(sum[j], c));
            odd = j == 1 ? scaled(difference[j], s) : plus(odd, scaled(difference[j], s));
        }
        odd = turned(odd);
        z[k] = plus(even, odd);
        z[n - k] = minus(even, odd);
    }
    /* z[0] is read by all: it comes last */
    z[0] = all;
}

INLINE void two_points(point *z) {
    const point a = z[0];
    z[0] = plus(a, z[1]);
    z[1] = minus(a, z[1]);
}

INLINE void four_points(point *z) {
    const point a = plus(z[0], z[2]), b = minus(z[0], z[2]), c = plus(z[1], z[3]), d = turned(minus(z[1], z[3]));
    z[0] = plus(a, c);
    z[1] = plus(b, d);
    z[2] = minus(a, c);
    z[3] = minus(b, d);
}

INLINE void few_points(const int n, point *z) {
    if (n == 2) two_points(z);
    if (n == 3) odd_points(3, cos_sin_3[0], cos_sin_3[1], z);
    if (n == 4) four_points(z);
    if (n == 5) odd_points(5, cos_sin_5[0], cos_sin_5[1], z);
    if (n == 7) odd_points(7, cos_sin_7[0], cos_sin_7[1], z);
}

/* z exp(-2 pi i k / n), n = 8 or 16, k < n; multiplications by 1, -i and -1 cost none. */
INLINE point rotated(point z, const int k, const int n) {
    if (k == 0) return z;
    const int at = k * (16 / n) % 4, quarter = k * (16 / n) / 4; /* of 16; quarters of a turn */
    if (quarter == 1) z = turned(z);
    if (quarter == 2) z = (point){-z.re, -z.im};
    if (quarter == 3) z = (point){-z.im, z.re};
    if (at == 0) return z;
    if (at == 2) return scaled((point){z.re + z.im, z.im - z.re}, (real)cos_16[2]);
    return times(z, (real)cos_16[at], (real)-cos_16[4 - at]);
}

/* n = a * b points as b transforms of a points, and a of b. */
INLINE void many_points(const int n, const int a, const int b, const int coprime, point *z) {
    point t[16], some[7];
    /* input (j, i): coprime b * j + a * i modulo n, else b * j + i */
    UNROLL for (int i = 0; i < b; i++) {
        UNROLL for (int j = 0; j < a; j++) some[j] = z[coprime ? (b * j + a * i) % n : b * j + i];
        few_points(a, some);
        UNROLL for (int j = 0; j < a; j++) t[j * b + i] = coprime ? some[j] : rotated(some[j], i * j % n, n);
    }
    /* output (j, i), of a and of b: the number that leaves j modulo a and i modulo b after the input's map */
    UNROLL for (int j = 0; j < a; j++) {
        few_points(b, t + j * b);
        UNROLL for (int i = 0; i < b; i++) {
            int at = j + a * i;
            if (coprime) UNROLL for (int k = 0; k < n; k++) if (k % a == j && k % b == i) at = k;
            z[at] = t[j * b + i];
        }
    }
}

/* z = the transform of z, n of them. */
INLINE void butterfly(const int n, point *z) {
    if (n <= 5 || n == 7) few_points(n, z);
    if (n == 6) many_points(6, 2, 3, 1, z);
    if (n == 8) many_points(8, 2, 4, 0, z);
    if (n == 12) many_points(12, 4, 3, 1, z);
    if (n == 16) many_points(16, 4, 4, 0, z);
}

#endif

"""Update steps of optimizers over flat arrays, in place, and what goes with them: norm, scaling, clipping.

Formulas and bytes per parameter are in cext/include/dtconv_optimizers.h; they are Keras 3's.  Arrays are flat,
contiguous, of one dtype and length; slots start as zeros.  `step` counts from 1 (Keras's iterations + 1); weight_decay
is decoupled, 0 for none; lr is the learning rate of this step.
"""

from cython cimport floating
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport vector
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    int dtconv_sgd(...)
    int dtconv_momentum(...)
    int dtconv_rmsprop(...)
    int dtconv_adam(...)
    int dtconv_nadam(...)
    int dtconv_adagrad(...)
    int dtconv_adadelta(...)
    int dtconv_adamax(...)
    int dtconv_lion(...)
    int dtconv_ftrl(...)
    int dtconv_squared_norm(...)
    int dtconv_scale(...)
    int dtconv_clip_values(...)
    int dtconv_add_scaled(...)
    int dtconv_moving_average(...)
    int dtconv_has_nonfinite(...)


cdef int same_lengths(int64_t n, str first, dict lengths) except -1:
    for name, length in lengths.items():
        if length != n:
            raise ValueError(f"{name}: expected {n} elements, as many as {first}, got {length}")
    return 0


def sgd(floating[::1] params, const floating[::1] grads, double lr, double weight_decay=0):
    """w -= lr g.  Moves 3 reals per parameter.  (w: params, g: grads)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0]})
    with nogil:
        check(dtconv_sgd(n, &params[0], &grads[0], lr, weight_decay))


def momentum(floating[::1] params, const floating[::1] grads, floating[::1] velocity, double lr, double momentum,
             bint nesterov, double weight_decay=0):
    """v = momentum v - lr g; w += v, or with nesterov w += momentum v - lr g.  5 reals.  (w: params, g: grads, v:
    velocity)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "velocity": velocity.shape[0]})
    with nogil:
        check(dtconv_momentum(n, &params[0], &grads[0], &velocity[0], lr, momentum, nesterov, weight_decay))


def rmsprop(floating[::1] params, const floating[::1] grads, floating[::1] velocity, double lr, double rho,
            double momentum, double epsilon, double weight_decay=0, floating[::1] average_grads=None,
            floating[::1] momentums=None):
    """v = rho v + (1 - rho) g^2; centered (average_grads given): a = rho a + (1 - rho) g, d = v - a^2, else d = v;
    u = lr g / sqrt(d + epsilon); with momentum (momentums given): m = momentum m + u, w -= m, else w -= u. 5 reals,
    2 more for each of average and velocity.  (w: params, g: grads, v: velocity)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "velocity": velocity.shape[0],
                               "average_grads": n if average_grads is None else average_grads.shape[0],
                               "momentums": n if momentums is None else momentums.shape[0]})
    with nogil:
        check(dtconv_rmsprop(n, &params[0], &grads[0], &velocity[0], vector(average_grads), vector(momentums), lr,
                              rho, momentum, epsilon, weight_decay))


def adam(floating[::1] params, const floating[::1] grads, floating[::1] m, floating[::1] v, double lr, double beta_1,
         double beta_2, double epsilon, int64_t step, double weight_decay=0, floating[::1] v_hat=None):
    """m += (1 - beta_1)(g - m); v += (1 - beta_2)(g^2 - v); amsgrad (v_hat given): v^ = max(v^, v), else v^ = v; w
    -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v^) + epsilon).  7 reals, 9 with amsgrad.  (w: params, g:
    grads)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "m": m.shape[0], "v": v.shape[0],
                               "v_hat": n if v_hat is None else v_hat.shape[0]})
    with nogil:
        check(dtconv_adam(n, &params[0], &grads[0], &m[0], &v[0], vector(v_hat), lr, beta_1, beta_2, epsilon, step,
                           weight_decay))


def nadam(floating[::1] params, const floating[::1] grads, floating[::1] m, floating[::1] v, double lr, double beta_1,
          double beta_2, double epsilon, int64_t step, double u_product, double weight_decay=0):
    """Adam with Nesterov's momentum: u_t = beta_1 (1 - 0.96^t / 2); u_product: the product of u_1 .. u_t (t = step
    included); m^ = u_{t+1} m / (1 - u_product u_{t+1}) + (1 - u_t) g / (1 - u_product); v^ = v / (1 - beta_2^t); w
    -= lr m^ / (sqrt(v^) + epsilon).  7 reals.  (w: params, g: grads)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "m": m.shape[0], "v": v.shape[0]})
    with nogil:
        check(dtconv_nadam(n, &params[0], &grads[0], &m[0], &v[0], lr, beta_1, beta_2, epsilon, step, u_product,
                            weight_decay))


def adagrad(floating[::1] params, const floating[::1] grads, floating[::1] accumulator, double lr, double epsilon,
            double weight_decay=0):
    """a += g^2; w -= lr g / sqrt(a + epsilon).  5 reals.  (w: params, g: grads, a: accumulator)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "accumulator": accumulator.shape[0]})
    with nogil:
        check(dtconv_adagrad(n, &params[0], &grads[0], &accumulator[0], lr, epsilon, weight_decay))


def adadelta(floating[::1] params, const floating[::1] grads, floating[::1] accumulated_grads,
             floating[::1] accumulated_deltas, double lr, double rho, double epsilon, double weight_decay=0):
    """a = rho a + (1 - rho) g^2; u = -sqrt(d + epsilon) g / sqrt(a + epsilon); d = rho d + (1 - rho) u^2; w += lr
    u.  7 reals.  (w: params, g: grads, a: accumulated_grads, d: accumulated_deltas)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "accumulated_grads": accumulated_grads.shape[0],
                               "accumulated_deltas": accumulated_deltas.shape[0]})
    with nogil:
        check(dtconv_adadelta(n, &params[0], &grads[0], &accumulated_grads[0], &accumulated_deltas[0], lr, rho,
                               epsilon, weight_decay))


def adamax(floating[::1] params, const floating[::1] grads, floating[::1] m, floating[::1] u, double lr, double beta_1,
           double beta_2, double epsilon, int64_t step, double weight_decay=0):
    """m += (1 - beta_1)(g - m); u = max(beta_2 u, |g|); w -= lr m / ((1 - beta_1^t)(u + epsilon)).  7 reals.  (w:
    params, g: grads)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "m": m.shape[0], "u": u.shape[0]})
    with nogil:
        check(dtconv_adamax(n, &params[0], &grads[0], &m[0], &u[0], lr, beta_1, beta_2, epsilon, step,
                             weight_decay))


def lion(floating[::1] params, const floating[::1] grads, floating[::1] m, double lr, double beta_1, double beta_2,
         double weight_decay=0):
    """w -= lr sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g.  5 reals.  (w: params, g: grads)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "m": m.shape[0]})
    with nogil:
        check(dtconv_lion(n, &params[0], &grads[0], &m[0], lr, beta_1, beta_2, weight_decay))


def ftrl(floating[::1] params, const floating[::1] grads, floating[::1] accumulator, floating[::1] linear, double lr,
         double lr_power, double l1, double l2, double shrinkage, double beta, double weight_decay=0):
    """Follow the regularized leader (McMahan et al., 2013) with shrinkage; a: accumulator, z: linear term; p =
    -lr_power: s = (a + g^2)^p; z += g + 2 shrinkage w - (s - a^p) / lr w; a += g^2; w = (clip(z, -l1, l1) - z) / (s
    / lr + 2 (l2 + beta / (2 lr))).  7 reals.  (w: params, g: grads, a: accumulator, z: linear)"""
    cdef int64_t n = params.shape[0]
    same_lengths(n, "params", {"grads": grads.shape[0], "accumulator": accumulator.shape[0], "linear": linear.shape[0]})
    with nogil:
        check(dtconv_ftrl(n, &params[0], &grads[0], &accumulator[0], &linear[0], lr, lr_power, l1, l2, shrinkage,
                           beta, weight_decay))


def squared_norm(const floating[::1] x) -> float:
    """The sum of x^2, summed in an order that depends on n alone.  1 real."""
    cdef int64_t n = x.shape[0]
    cdef double result = 0
    with nogil:
        check(dtconv_squared_norm(n, &x[0], &result))
    return result


def scale(floating[::1] x, double factor):
    """x *= factor.  2 reals."""
    cdef int64_t n = x.shape[0]
    with nogil:
        check(dtconv_scale(n, &x[0], factor))


def clip(floating[::1] x, double limit):
    """x = min(max(x, -limit), limit).  2 reals."""
    cdef int64_t n = x.shape[0]
    with nogil:
        check(dtconv_clip_values(n, &x[0], limit))


def add_scaled(const floating[::1] x, double factor, floating[::1] y):
    """y += factor x.  3 reals."""
    cdef int64_t n = x.shape[0]
    same_lengths(n, "x", {"y": y.shape[0]})
    with nogil:
        check(dtconv_add_scaled(n, &x[0], factor, &y[0]))


def moving_average(const floating[::1] x, double momentum, floating[::1] average):
    """average = momentum average + (1 - momentum) x.  3 reals."""
    cdef int64_t n = x.shape[0]
    same_lengths(n, "x", {"average": average.shape[0]})
    with nogil:
        check(dtconv_moving_average(n, &x[0], momentum, &average[0]))


def has_nonfinite(const floating[::1] x) -> bool:
    """Whether any x is infinite or NaN.  1 real."""
    cdef int64_t n = x.shape[0]
    cdef int result = 0
    with nogil:
        check(dtconv_has_nonfinite(n, &x[0], &result))
    return bool(result)

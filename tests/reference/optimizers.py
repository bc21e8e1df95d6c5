"""Keras 3's update rules in plain float64 NumPy: each returns the new parameters and changes its slots in place."""

import numpy as np


def decayed(w, lr, weight_decay):
    return w - w * weight_decay * lr


def sgd(w, g, lr, weight_decay=0):
    return decayed(w, lr, weight_decay) - lr * g


def momentum(w, g, velocity, lr, momentum, nesterov, weight_decay=0):
    w = decayed(w, lr, weight_decay)
    velocity[:] = velocity * momentum - g * lr
    return w + velocity * momentum - g * lr if nesterov else w + velocity


def rmsprop(w, g, velocity, lr, rho, momentum, epsilon, weight_decay=0, average_grads=None, momentums=None):
    w = decayed(w, lr, weight_decay)
    velocity[:] = rho * velocity + (1 - rho) * g**2
    denominator = velocity + epsilon
    if average_grads is not None:
        average_grads[:] = rho * average_grads + (1 - rho) * g
        denominator = velocity - average_grads**2 + epsilon
    increment = lr * g / np.sqrt(denominator)
    if momentums is None:
        return w - increment
    momentums[:] = momentum * momentums + increment
    return w - momentums


def adam(w, g, m, v, lr, beta_1, beta_2, epsilon, step, weight_decay=0, v_hat=None):
    w = decayed(w, lr, weight_decay)
    alpha = lr * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    m += (g - m) * (1 - beta_1)
    v += (g**2 - v) * (1 - beta_2)
    if v_hat is not None:
        v_hat[:] = np.maximum(v_hat, v)
        v = v_hat
    return w - m * alpha / (np.sqrt(v) + epsilon)


def nadam(w, g, m, v, lr, beta_1, beta_2, epsilon, step, u_product, weight_decay=0):
    w = decayed(w, lr, weight_decay)
    u_t = beta_1 * (1 - 0.5 * 0.96**step)
    u_next = beta_1 * (1 - 0.5 * 0.96 ** (step + 1))
    m += (g - m) * (1 - beta_1)
    v += (g**2 - v) * (1 - beta_2)
    m_hat = u_next * m / (1 - u_product * u_next) + (1 - u_t) * g / (1 - u_product)
    v_hat = v / (1 - beta_2**step)
    return w - m_hat * lr / (np.sqrt(v_hat) + epsilon)


def adagrad(w, g, accumulator, lr, epsilon, weight_decay=0):
    accumulator += g**2
    return decayed(w, lr, weight_decay) - lr * g / np.sqrt(accumulator + epsilon)


def adadelta(w, g, accumulated_grads, accumulated_deltas, lr, rho, epsilon, weight_decay=0):
    accumulated_grads[:] = rho * accumulated_grads + (1 - rho) * g**2
    delta = -np.sqrt(accumulated_deltas + epsilon) * g / np.sqrt(accumulated_grads + epsilon)
    accumulated_deltas[:] = rho * accumulated_deltas + (1 - rho) * delta**2
    return decayed(w, lr, weight_decay) + lr * delta


def adamax(w, g, m, u, lr, beta_1, beta_2, epsilon, step, weight_decay=0):
    m += (g - m) * (1 - beta_1)
    u[:] = np.maximum(beta_2 * u, np.abs(g))
    return decayed(w, lr, weight_decay) - lr * m / ((1 - beta_1**step) * (u + epsilon))


def lion(w, g, m, lr, beta_1, beta_2, weight_decay=0):
    new = decayed(w, lr, weight_decay) - lr * np.sign(m * beta_1 + g * (1 - beta_1))
    m[:] = m * beta_2 + g * (1 - beta_2)
    return new


def ftrl(w, g, accumulator, linear, lr, lr_power, l1, l2, shrinkage, beta, weight_decay=0):
    w = decayed(w, lr, weight_decay)
    l2 = l2 + beta / (2 * lr)
    new = accumulator + g**2
    linear += g + 2 * shrinkage * w - (new**-lr_power - accumulator**-lr_power) / lr * w
    quadratic = new**-lr_power / lr + 2 * l2
    accumulator[:] = new
    return (np.clip(linear, -l1, l1) - linear) / quadratic

"""Keras itself, where it is installed, as the reference of names, files and numbers."""

import importlib.util
import os
import warnings

import numpy as np
import pytest


def import_keras(*others):
    """The module keras on PyTorch, or on one of `others` where KERAS_BACKEND says so; skips the test without both."""
    backend = os.environ.setdefault("KERAS_BACKEND", "torch")
    if backend not in ("torch", *others):
        pytest.skip(f"compares with Keras on {' or '.join(('torch', *others))}, got KERAS_BACKEND={backend}")
    if importlib.util.find_spec("keras") is None or importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs keras and {backend}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import keras
    if keras.backend.backend() != backend:
        pytest.skip("keras is loaded with another backend")
    if backend == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    keras.utils.set_random_seed(20240229)  # equal weights in every run, as conftest.py does for pydtconv
    return keras


def output_and_gradients(keras, layer, xs, weight_of, **kwargs):
    """What a layer of Keras gives for arrays xs, a list of them or the only one, as it stands in its arguments.

    weight_of(shape): an array.  Returns the output, the weight, and the gradients of sum(weight * output) with respect
    to xs and the trainable weights; weights that the call changes are changed.
    """
    run = _by_jax if keras.backend.backend() == "jax" else _by_torch
    return run(layer, xs, weight_of, kwargs)


def _by_torch(layer, arguments, weight_of, kwargs):
    import torch

    xs, arranged = _arranged(arguments, lambda x: torch.tensor(x, requires_grad=True))
    y = layer(*arranged, **kwargs)
    weight = weight_of(tuple(y.shape))
    wanted = [*xs, *(w.value for w in layer.trainable_weights)]
    gradients = torch.autograd.grad((y * torch.tensor(weight)).sum(), wanted)
    return y.detach().numpy(), weight, [gradient.numpy() for gradient in gradients]


def _by_jax(layer, arguments, weight_of, kwargs):
    import jax

    xs, _ = _arranged(arguments, lambda x: x)
    shape = jax.eval_shape(lambda *xs: _stateless(layer, arguments, xs, kwargs)[0], *xs).shape
    weight = weight_of(shape)

    def loss(xs, weights):
        y, state = _stateless(layer, arguments, xs, kwargs, weights)
        return (y * weight).sum(), (y, state)

    weights = [w.value for w in layer.trainable_variables]
    (of_xs, of_weights), (y, state) = jax.grad(loss, (0, 1), has_aux=True)(xs, weights)
    for variable, value in zip(layer.non_trainable_variables, state, strict=True):
        variable.assign(value)
    return np.asarray(y), weight, [np.asarray(gradient) for gradient in (*of_xs, *of_weights)]


def _stateless(layer, arguments, xs, kwargs, weights=None):
    left = iter(xs)
    _, arranged = _arranged(arguments, lambda _: next(left))
    weights = [w.value for w in layer.trainable_variables] if weights is None else weights
    return layer.stateless_call(weights, [w.value for w in layer.non_trainable_variables], *arranged, **kwargs)


def _arranged(arguments, of):
    """of(x) of all arrays of arguments, which may be lists of arrays, in order, and in the same lists."""
    xs, arranged = [], []
    for argument in arguments:
        found = [of(x) for x in (argument if isinstance(argument, list) else [argument])]
        xs += found
        arranged.append(found if isinstance(argument, list) else found[0])
    return xs, arranged

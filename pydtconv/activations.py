"""Activations by Keras's names: functions of symbolic tensors or arrays, written in `pydtconv.ops`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv import ops

# those that are the same here
from pydtconv.ops import (  # isort: skip
    celu, elu, glu, hard_shrink, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, linear, log_sigmoid, log_softmax,
    mish, relu6, selu, sigmoid, silu, soft_shrink, softmax, softplus, softsign, sparse_plus, sparse_sigmoid,
    sparsemax, squareplus, tanh, tanh_shrink, threshold,
)  # fmt: skip
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.serialization.registry import NAMED
from pydtconv.suggest import refusal as _refusal


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """max_value where x >= max_value, x where threshold <= x, else negative_slope * (x - threshold)."""
    if negative_slope < 0:
        raise ValueError(f"relu: negative_slope: expected a number of 0 or more, got {negative_slope!r}")
    if max_value is not None and max_value < 0:
        raise ValueError(f"relu: max_value: expected a number of 0 or more, or None, got {max_value!r}")
    return ops.general_relu(x, negative_slope=negative_slope, max_value=max_value, threshold=threshold)


def gelu(x: Any, approximate: bool = False) -> Any:
    """x * Phi(x), or its approximation with tanh; Hendrycks, Gimpel (2016)."""
    return ops.gelu(x, approximate=approximate)


def exponential(x: Any) -> Any:
    """exp(x)."""
    return ops.exp(x)


_FUNCTIONS = {name: function for name, function in globals().items() if inspect.isfunction(function) and name[0] != "_"}
swish, hard_swish = silu, hard_silu
NAMED.update(_FUNCTIONS.values())
_registry = BuiltIns("activation", {**_FUNCTIONS, "swish": silu, "hard_swish": hard_silu, "exp": exponential})

#: those whose numbers depend on others along an axis
_ALONG_AN_AXIS = (glu, log_softmax, softmax, sparsemax)


def is_elementwise(activation: Any) -> bool:
    """Whether it is one of the functions here that compute each element from itself alone."""
    return activation in _FUNCTIONS.values() and activation not in _ALONG_AN_AXIS


def get(identifier: Any) -> Callable[..., Any]:
    """The function that identifier names: a name, a config, a callable (a layer, too), or None for linear."""
    return linear if identifier is None else _registry.get(identifier)


def serialize(activation: Any) -> Any:
    """The name of a built-in activation, or the config of another."""
    name = getattr(activation, "__name__", None)
    if name is not None and _registry.objects.get(name) is activation:
        return name
    return _registry.serialize(activation)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    return _registry.deserialize(config, custom_objects)


__all__ = [
    "celu", "deserialize", "elu", "exponential", "gelu", "get", "glu", "hard_shrink", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6",
    "selu", "serialize", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh", "tanh_shrink", "threshold",
]  # fmt: skip
__getattr__ = _refusal(__name__, __all__)

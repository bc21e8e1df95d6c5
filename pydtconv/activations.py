"""Activations by Keras's names: functions of symbolic tensors or arrays, written in `pydtconv.ops`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydtconv import ops
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal as _refusal


def linear(x: Any) -> Any:
    """x itself."""
    return x


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """max_value where x >= max_value, x where threshold <= x, else negative_slope * (x - threshold)."""
    if negative_slope < 0:
        raise ValueError(f"relu: negative_slope: expected a number of 0 or more, got {negative_slope!r}")
    if max_value is not None and max_value < 0:
        raise ValueError(f"relu: max_value: expected a number of 0 or more, or None, got {max_value!r}")
    return ops.general_relu(x, negative_slope=negative_slope, max_value=max_value, threshold=threshold)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """x where x >= 0, else negative_slope * x."""
    return ops.leaky_relu(x, negative_slope)


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)."""
    return ops.relu6(x)


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along axis."""
    return ops.softmax(x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(softmax(x))."""
    return ops.log_softmax(x, axis=axis)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return ops.elu(x, alpha=alpha)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    return ops.celu(x, alpha=alpha)


def selu(x: Any) -> Any:
    """Scaled ELU, Klambauer et al. (NeurIPS 2017)."""
    return ops.selu(x)


def gelu(x: Any, approximate: bool = False) -> Any:
    """x * Phi(x), or its approximation with tanh; Hendrycks, Gimpel (2016)."""
    return ops.gelu(x, approximate=approximate)


def glu(x: Any, axis: int = -1) -> Any:
    """The first half of x along axis times the sigmoid of the second."""
    return ops.glu(x, axis=axis)


def silu(x: Any) -> Any:
    """x * sigmoid(x)."""
    return ops.silu(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(x)


def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x))."""
    return ops.log_sigmoid(x)


def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6."""
    return ops.hard_sigmoid(x)


def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x)."""
    return ops.hard_silu(x)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return ops.tanh(x)


def hard_tanh(x: Any) -> Any:
    """x cut off at -1 and 1."""
    return ops.hard_tanh(x)


def tanh_shrink(x: Any) -> Any:
    """x - tanh(x)."""
    return ops.tanh_shrink(x)


def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x where |x| > threshold, else 0."""
    return ops.hard_shrink(x, threshold)


def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    """sign(x) * max(|x| - threshold, 0)."""
    return ops.soft_shrink(x, threshold)


def threshold(x: Any, threshold: float, default_value: float) -> Any:
    """x where x > threshold, else default_value."""
    return ops.threshold(x, threshold, default_value)


def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return ops.softplus(x)


def softsign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return ops.softsign(x)


def exponential(x: Any) -> Any:
    """exp(x)."""
    return ops.exp(x)


def mish(x: Any) -> Any:
    """x * tanh(softplus(x)), Misra (2019)."""
    return ops.mish(x)


def squareplus(x: Any, b: float = 4) -> Any:
    """(x + sqrt(x^2 + b)) / 2."""
    return ops.squareplus(x, b)


def sparse_plus(x: Any) -> Any:
    """0 where x <= -1, x where x >= 1, else (x + 1)^2 / 4."""
    return ops.sparse_plus(x)


def sparse_sigmoid(x: Any) -> Any:
    """0 where x <= -1, 1 where x >= 1, else (x + 1) / 2."""
    return ops.sparse_sigmoid(x)


def sparsemax(x: Any, axis: int = -1) -> Any:
    """The Euclidean projection onto the simplex, Martins, Astudillo (ICML 2016)."""
    return ops.sparsemax(x, axis=axis)


swish = silu
hard_swish = hard_silu

_FUNCTIONS = (
    celu, elu, exponential, gelu, glu, hard_shrink, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, linear, log_sigmoid,
    log_softmax, mish, relu, relu6, selu, sigmoid, silu, soft_shrink, softmax, softplus, softsign, sparse_plus,
    sparse_sigmoid, sparsemax, squareplus, tanh, tanh_shrink, threshold,
)  # fmt: skip
_registry = BuiltIns(
    "activation", {f.__name__: f for f in _FUNCTIONS} | {"swish": silu, "hard_swish": hard_silu, "exp": exponential}
)


#: those whose numbers depend on others along an axis
_ALONG_AN_AXIS = (glu, log_softmax, softmax, sparsemax)


def is_elementwise(activation: Any) -> bool:
    """Whether it is one of the functions here that compute each element from itself alone."""
    return activation in _FUNCTIONS and activation not in _ALONG_AN_AXIS


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


__getattr__ = _refusal(__name__, [name for name in globals() if not name.startswith("_")])

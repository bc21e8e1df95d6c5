"""Activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.ops.functions.arithmetic import multiply
from pydtconv.ops.functions.integers import exact
from pydtconv.ops.functions.operands import in_reals, unary
from pydtconv.ops.functions.shape import split
from pydtconv.ops.parts import exported

__all__ = exported(
    numpy="tanh",
    nn="""
        celu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid relu
        relu6 selu sigmoid silu soft_shrink softplus softsign sparse_plus sparse_sigmoid squareplus swish
        tanh_shrink threshold
    """,
    activations="general_relu mish",
    own="linear",
)


def linear(x: Any) -> Any:
    """x itself."""
    return x


@exact(lambda x: np.maximum(x, 0))
def relu(x: Any) -> Any:
    """max(x, 0)"""
    return unary("relu", x)


def general_relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """max(x, 0); in general max_value from there on, x above threshold, negative_slope * (x - threshold) below."""
    if threshold == 0 and max_value is None:
        return unary("leaky_relu", x, float(negative_slope)) if negative_slope else unary("relu", x)
    if threshold == 0 and max_value == 6 and not negative_slope:
        return unary("relu6", x)
    return unary(
        "relu_general", x, float(negative_slope), math.inf if max_value is None else float(max_value), float(threshold)
    )


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)"""
    return unary("relu6", x)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """x above zero, negative_slope * x below."""
    return unary("leaky_relu", x, float(negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x above zero, alpha * (exp(x) - 1) below (Clevert et al., 2016)."""
    return unary("elu", x, float(alpha), 1.0, 1.0)


def selu(x: Any) -> Any:
    """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
    return unary("elu", x, 1.6732632423543772, 1.0507009873554805, 1.0)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """x above zero, alpha * (exp(x / alpha) - 1) below (Barron, 2017)."""
    return unary("elu", x, float(alpha), 1.0, float(alpha))


def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function, or its approximation with tanh (Hendrycks and Gimpel, 2016)."""
    return unary("gelu_tanh" if approximate else "gelu", x)


def silu(x: Any) -> Any:
    """x * sigmoid(x)"""
    return unary("silu", x)


swish = silu


def softplus(x: Any) -> Any:
    """log(1 + exp(x))"""
    return unary("softplus", x)


def softsign(x: Any) -> Any:
    """x / (1 + |x|)"""
    return unary("softsign", x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return unary("tanh", x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    return unary("sigmoid", x)


def hard_sigmoid(x: Any) -> Any:
    """x / 6 + 1/2 between 0 and 1."""
    return unary("hard_sigmoid", x)


def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 between 0 and 1."""
    return unary("hard_sigmoid", x, 0.5)


def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x)"""
    return unary("hard_silu", x)


hard_swish = hard_silu


def mish(x: Any) -> Any:
    """x * tanh(softplus(x)) (Misra, 2019)."""
    return unary("mish", x)


def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x))"""
    return unary("log_sigmoid", x)


def threshold(x: Any, threshold: float, default_value: float) -> Any:
    """x above the threshold, default_value elsewhere."""
    return unary("threshold", x, float(threshold), float(default_value))


def tanh_shrink(x: Any) -> Any:
    """x - tanh(x)"""
    return unary("tanh_shrink", x)


@exact(lambda x: np.clip(x, 0 if x.dtype.kind == "u" else -1, 1))
def hard_tanh(x: Any) -> Any:
    """x between -1 and 1."""
    return unary("clip", x, -1.0, 1.0)


def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x where |x| is above the threshold, else 0."""
    return unary("hard_shrink", x, float(threshold))


def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x moved towards zero by the threshold."""
    return unary("soft_shrink", x, float(threshold))


def squareplus(x: Any, b: float = 4) -> Any:
    """(x + sqrt(x^2 + b)) / 2"""
    return unary("squareplus", x, float(b))


def sparse_plus(x: Any) -> Any:
    """0 up to -1, (x + 1)^2 / 4 up to 1, then x."""
    return unary("sparse_plus", x)


@in_reals
def glu(x: Any, axis: int = -1) -> Any:
    """a * sigmoid(b) for the two halves a and b of x (Dauphin et al., 2017)."""
    a, b = split(x, 2, axis)
    return multiply(a, sigmoid(b))

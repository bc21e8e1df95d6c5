"""Functions with the names and argument orders of `keras.ops`: applied to tensors, variables or arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.activation import Activation
from pydtconv.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Op
from pydtconv.ops.custom import NumpyOp
from pydtconv.ops.linear import Dense, MatMul
from pydtconv.ops.reduction import ArgMax, Axes, Max, Mean, Min, Sum
from pydtconv.ops.shape import Cast, Concatenate, Pad, Reshape, Slice, Transpose
from pydtconv.ops.strided import FLOATS, normalize_axes


def _symbolic(x: Any) -> bool:
    return hasattr(x, "apply_op")


def _scalar(x: Any) -> bool:
    return isinstance(x, Real) or (isinstance(x, np.ndarray) and x.ndim == 0)


def _value(x: Any, dtype: str | None = None) -> Any:
    """x as an operand: symbolic values as they are, others as float arrays."""
    if _symbolic(x):
        return x
    array = np.asarray(x)
    return array.astype(dtype or (array.dtype if array.dtype.name in FLOATS else config.floatx()), copy=False)


def _binary(op: Op, x1: Any, x2: Any) -> Any:
    return op(*_same(x1, x2))


def _same(*xs: Any) -> tuple[Any, ...]:
    """Operands of one dtype: that of the first symbolic or float one."""
    dtypes = [np.dtype(x.dtype).name for x in xs if _symbolic(x)]
    dtypes += [x.dtype.name for x in xs if isinstance(x, np.ndarray) and x.dtype.name in FLOATS]
    return tuple(_value(x, dtypes[0] if dtypes else config.floatx()) for x in xs)


def _axes(axis: Axes) -> int | tuple[int, ...] | None:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def _unary(kind: str, x: Any, *parameters: float | None) -> Any:
    return Activation(kind, *parameters)(_value(x))


def affine(x: Any, scale: float, offset: float) -> Any:
    """scale * x + offset for numbers scale and offset."""
    return _unary("affine", x, float(scale), float(offset))


def add(x1: Any, x2: Any) -> Any:
    """x1 + x2."""
    if _scalar(x2) and not _scalar(x1):
        return affine(x1, 1, x2)
    if _scalar(x1) and not _scalar(x2):
        return affine(x2, 1, x1)
    return _binary(Add(), x1, x2)


def subtract(x1: Any, x2: Any) -> Any:
    """x1 - x2."""
    if _scalar(x2) and not _scalar(x1):
        return affine(x1, 1, -float(x2))
    if _scalar(x1) and not _scalar(x2):
        return affine(x2, -1, x1)
    return _binary(Subtract(), x1, x2)


def multiply(x1: Any, x2: Any) -> Any:
    """x1 * x2."""
    if _scalar(x2) and not _scalar(x1):
        return affine(x1, x2, 0)
    if _scalar(x1) and not _scalar(x2):
        return affine(x2, x1, 0)
    return _binary(Multiply(), x1, x2)


def divide(x1: Any, x2: Any) -> Any:
    """x1 / x2."""
    if _scalar(x2) and not _scalar(x1):
        return affine(x1, 1 / float(x2), 0)
    if _scalar(x1) and not _scalar(x2):
        y = reciprocal(x2)
        return y if x1 == 1 else affine(y, x1, 0)
    return _binary(Divide(), x1, x2)


def power(x1: Any, x2: Any) -> Any:
    """x1 ** x2."""
    if _scalar(x2) and not _scalar(x1):
        exponent = float(x2)
        kind = {1.0: "linear", 2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}.get(exponent)
        return _unary(kind, x1) if kind else _unary("power", x1, exponent)
    if _scalar(x1) and not _scalar(x2):
        return exp(affine(x2, math.log(x1), 0))
    return _binary(Power(), x1, x2)


def maximum(x1: Any, x2: Any) -> Any:
    """The larger of x1 and x2, element by element."""
    if _scalar(x2) and not _scalar(x1):
        return clip(x1, x2, math.inf)
    if _scalar(x1) and not _scalar(x2):
        return clip(x2, x1, math.inf)
    return _binary(Maximum(), x1, x2)


def minimum(x1: Any, x2: Any) -> Any:
    """The smaller of x1 and x2, element by element."""
    if _scalar(x2) and not _scalar(x1):
        return clip(x1, -math.inf, x2)
    if _scalar(x1) and not _scalar(x2):
        return clip(x2, -math.inf, x1)
    return _binary(Minimum(), x1, x2)


def average(xs: Any) -> Any:
    """The mean of several tensors, element by element."""
    return Add(average=True)(*(_value(x) for x in xs))


def negative(x: Any) -> Any:
    """-x"""
    return affine(x, -1, 0)


def abs(x: Any) -> Any:
    """The absolute value."""
    return _unary("abs", x)


absolute = abs


def sign(x: Any) -> Any:
    """-1, 0 or 1; its gradient is zero."""
    return _unary("sign", x)


def square(x: Any) -> Any:
    """x * x"""
    return _unary("square", x)


def sqrt(x: Any) -> Any:
    """The square root."""
    return _unary("sqrt", x)


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)"""
    return _unary("power", x, -0.5)


def reciprocal(x: Any) -> Any:
    """1 / x"""
    return _unary("reciprocal", x)


def exp(x: Any) -> Any:
    """The exponential function."""
    return _unary("exponential", x)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return _unary("log", x)


def clip(x: Any, x_min: float, x_max: float) -> Any:
    """min(max(x, x_min), x_max) for numbers x_min and x_max."""
    if float(x_min) > float(x_max):
        raise ValueError(f"clip: expected x_min <= x_max, got {x_min} and {x_max}")
    return _unary("clip", x, float(x_min), float(x_max))


def linear(x: Any) -> Any:
    """x itself."""
    return x


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """max(x, 0); in general max_value from there on, x from threshold on, negative_slope * (x - threshold) below."""
    if threshold == 0 and max_value is None:
        return _unary("leaky_relu", x, float(negative_slope)) if negative_slope else _unary("relu", x)
    if threshold == 0 and max_value == 6 and not negative_slope:
        return _unary("relu6", x)
    return _unary(
        "relu_general", x, float(negative_slope), math.inf if max_value is None else float(max_value), float(threshold)
    )


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)"""
    return _unary("relu6", x)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """x above zero, negative_slope * x below."""
    return _unary("leaky_relu", x, float(negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x above zero, alpha * (exp(x) - 1) below (Clevert et al., 2016)."""
    return _unary("elu", x, float(alpha), 1.0, 1.0)


def selu(x: Any) -> Any:
    """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
    return _unary("elu", x, 1.6732632423543772, 1.0507009873554805, 1.0)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """x above zero, alpha * (exp(x / alpha) - 1) below (Barron, 2017)."""
    return _unary("elu", x, float(alpha), 1.0, float(alpha))


def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function, or its approximation with tanh (Hendrycks and Gimpel, 2016)."""
    return _unary("gelu_tanh" if approximate else "gelu", x)


def silu(x: Any) -> Any:
    """x * sigmoid(x)"""
    return _unary("silu", x)


swish = silu


def softplus(x: Any) -> Any:
    """log(1 + exp(x))"""
    return _unary("softplus", x)


def softsign(x: Any) -> Any:
    """x / (1 + |x|)"""
    return _unary("softsign", x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return _unary("tanh", x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    return _unary("sigmoid", x)


def hard_sigmoid(x: Any) -> Any:
    """x / 6 + 1/2 between 0 and 1."""
    return _unary("hard_sigmoid", x)


def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 between 0 and 1."""
    return _unary("hard_sigmoid", x, 0.5)


def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x)"""
    return _unary("hard_silu", x)


hard_swish = hard_silu


def mish(x: Any) -> Any:
    """x * tanh(softplus(x)) (Misra, 2019)."""
    return _unary("mish", x)


def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x))"""
    return _unary("log_sigmoid", x)


def threshold(x: Any, threshold: float, default_value: float) -> Any:
    """x above the threshold, default_value elsewhere."""
    return _unary("threshold", x, float(threshold), float(default_value))


def tanh_shrink(x: Any) -> Any:
    """x - tanh(x)"""
    return _unary("tanh_shrink", x)


def hard_tanh(x: Any) -> Any:
    """x between -1 and 1."""
    return _unary("clip", x, -1.0, 1.0)


def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x where |x| is above the threshold, else 0."""
    return _unary("hard_shrink", x, float(threshold))


def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x moved towards zero by the threshold."""
    return _unary("soft_shrink", x, float(threshold))


def squareplus(x: Any, b: float = 4) -> Any:
    """(x + sqrt(x^2 + b)) / 2"""
    return _unary("squareplus", x, float(b))


def sparse_plus(x: Any) -> Any:
    """0 up to -1, (x + 1)^2 / 4 up to 1, then x."""
    return _unary("sparse_plus", x)


def glu(x: Any, axis: int = -1) -> Any:
    """a * sigmoid(b) for the two halves a and b of x (Dauphin et al., 2017)."""
    a, b = split(x, 2, axis)
    return multiply(a, sigmoid(b))


def sum(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The sum over axes."""
    return Sum(_axes(axis), keepdims)(_value(x))


def mean(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The mean over axes."""
    return Mean(_axes(axis), keepdims)(_value(x))


def max(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest element over axes; equal ones share the gradient."""
    return Max(_axes(axis), keepdims)(_value(x))


def min(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The smallest element over axes; equal ones share the gradient."""
    return Min(_axes(axis), keepdims)(_value(x))


amax, amin = max, min


def var(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The variance over axes (divided by the number of elements)."""
    return mean(square(subtract(x, mean(x, axis, True))), axis, keepdims)


def std(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The standard deviation over axes."""
    return sqrt(var(x, axis, keepdims))


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the largest element; over all elements where axis is None."""
    x = _value(x)
    if axis is None:
        if keepdims:
            raise ValueError("argmax: expected an axis with keepdims=True, got None")
        x, axis = reshape(x, (-1,)), 0
    return ArgMax(axis, keepdims)(x)


def matmul(x1: Any, x2: Any) -> Any:
    """The matrix product over the last axis of x1 and the last but one of x2; leading axes broadcast."""
    x1, x2 = _same(x1, x2)
    if len(x1.shape) == 1:
        y = matmul(expand_dims(x1, 0), x2)
        return squeeze(y, -2 if len(x2.shape) > 1 else 0)
    if len(x2.shape) == 1:
        return squeeze(matmul(x1, expand_dims(x2, 1)), -1)
    return Dense()(x1, x2) if len(x2.shape) == 2 else MatMul()(x1, x2)


def dot(x1: Any, x2: Any) -> Any:
    """The product of vectors or matrices."""
    return matmul(x1, x2)


def reshape(x: Any, newshape: Any) -> Any:
    """The same elements in another shape; one extent may be -1."""
    return Reshape((newshape,) if isinstance(newshape, int) else tuple(newshape))(_value(x))


def ravel(x: Any) -> Any:
    """The elements as a vector."""
    return reshape(x, (-1,))


def expand_dims(x: Any, axis: int) -> Any:
    """x with a new axis of extent 1 at `axis` of the result."""
    x = _value(x)
    rank = len(x.shape) + 1
    (axis,) = normalize_axes("expand_dims", axis, rank)
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def squeeze(x: Any, axis: Axes = None) -> Any:
    """x without axes of extent 1: the given ones, or all."""
    x = _value(x)
    axes = normalize_axes("squeeze", axis, len(x.shape)) if axis is not None else ()
    if axis is not None and any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze: expected extents of 1 along {axis}, got shape {tuple(x.shape)}")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if not (d in axes or (axis is None and n == 1))))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """The axes in another order; None reverses them."""
    return Transpose(None if axes is None else tuple(axes))(_value(x))


def moveaxis(x: Any, source: Axes, destination: Axes) -> Any:
    """Axes moved to other positions, the rest in order."""
    x = _value(x)
    rank = len(x.shape)
    from_, to = (
        [a % rank for a in ([axes] if isinstance(axes, int) else axes or ())] for axes in (source, destination)
    )
    order = [a for a in range(rank) if a not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    x = _value(x)
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(x, order)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Any:
    """Tensors one behind the other along an axis."""
    xs = _same(*xs)
    return xs[0] if len(xs) == 1 else Concatenate(axis)(*xs)


def stack(x: Sequence[Any], axis: int = 0) -> Any:
    """Tensors along a new axis."""
    return concatenate([expand_dims(value, axis) for value in _same(*x)], axis)


def slice_along(x: Any, axis: int, start: int, stop: int | None) -> Any:
    """x[start:stop] along one axis."""
    x = _value(x)
    rank = len(x.shape)
    (axis,) = normalize_axes("slice", axis, rank)
    starts = tuple(start if d == axis else 0 for d in range(rank))
    return Slice(starts, tuple(stop if d == axis else None for d in range(rank)))(x)


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """x cut along an axis into equal sections, or at the given indices."""
    x = _value(x)
    extent = x.shape[axis]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections < 1 or extent % sections:
            raise ValueError(f"split: expected a divisor of {extent} as the number of sections, got {sections}")
        cuts = [extent // sections * i for i in range(1, sections)]
    else:
        cuts = list(indices_or_sections)
    return [slice_along(x, axis, a, b) for a, b in zip([0, *cuts], [*cuts, extent], strict=True)]


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float | None = None) -> Any:
    """x with (before, after) elements per axis: constant_values (0), or mirrored ("reflect", "symmetric")."""
    x = _value(x)
    widths = np.broadcast_to(np.asarray(pad_width, int), (len(x.shape), 2))
    if not widths.any():
        return x
    pairs = tuple((int(a), int(b)) for a, b in widths)
    return Pad(pairs, mode, float(constant_values or 0))(x)


def cast(x: Any, dtype: str) -> Any:
    """x in another dtype."""
    x = x if _symbolic(x) else np.asarray(x)
    return x if np.dtype(x.dtype) == np.dtype(dtype) else Cast(np.dtype(dtype).name)(x)


def sparsemax(x: Any, axis: int = -1) -> Any:
    """The point of the probability simplex that is nearest to x along an axis (Martins and Astudillo, 2016)."""
    x = _value(x)
    rank = len(x.shape)
    (axis,) = normalize_axes("sparsemax", axis, rank)
    if axis != rank - 1:
        return swapaxes(sparsemax(swapaxes(x, axis, -1)), axis, -1)
    return NumpyOp(_sparsemax_forward, _sparsemax_backward, label="sparsemax")(x)


def _sparsemax_forward(x: np.ndarray) -> np.ndarray:
    """max(x - tau, 0): tau makes the k largest, those that stay positive, sum to 1."""
    ordered = np.sort(x, axis=-1)[..., ::-1]
    sums = np.cumsum(ordered, axis=-1)
    counts = np.arange(1, x.shape[-1] + 1)
    k = (1 + counts * ordered > sums).sum(-1, keepdims=True)
    tau = (np.take_along_axis(sums, k - 1, -1) - 1) / k
    return np.maximum(x - tau, 0).astype(x.dtype)


def _sparsemax_backward(dy: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """dy less its mean over the support, there."""
    support = y > 0
    mean = np.where(support, dy, 0).sum(-1, keepdims=True) / support.sum(-1, keepdims=True)
    return np.where(support, dy - mean, 0)


# fmt: off
__all__ = [
    "abs", "absolute", "add", "affine", "amax", "amin", "argmax", "average", "cast", "celu", "clip",
    "concatenate", "divide", "dot", "elu", "exp", "expand_dims", "gelu", "glu", "hard_shrink", "hard_sigmoid",
    "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "linear", "log", "log_sigmoid", "matmul", "max",
    "maximum", "mean", "min", "minimum", "mish", "moveaxis", "multiply", "negative", "pad", "power", "ravel",
    "reciprocal", "relu", "relu6", "reshape", "rsqrt", "selu", "sigmoid", "sign", "silu", "slice_along",
    "soft_shrink", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "split", "sqrt",
    "square", "squareplus", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "swish", "tanh",
    "tanh_shrink", "threshold", "transpose", "var",
]

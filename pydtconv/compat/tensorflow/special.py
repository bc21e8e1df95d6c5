"""Functions of `tf.math` that `pydtconv.ops` does not have, made of those that it has, so that they have gradients."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array, name_of
from pydtconv.compat.tensorflow.named import as_named

#: coefficients of Stirling's series of log gamma, by x ** -1, -3, -5, ... (NIST Handbook, 5.11.1)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)
#: how far an argument is moved before the series is used
_SHIFT = 6


def _reflected(x: Any) -> tuple[Any, Any]:
    """Whether x is below 1/2, and the argument above it: x, or 1 - x."""
    below = ops.less(x, 0.5)
    return below, ops.where(below, 1.0 - x, x)


def _series(x: Any, coefficients: Sequence[float]) -> Any:
    """The sum of coefficients times 1, x ** -2, x ** -4, ..."""
    inverse = 1.0 / x
    return polyval(coefficients[::-1], inverse * inverse)


def lgamma(x: Any, name: str | None = None) -> Any:
    """The logarithm of |gamma(x)|."""
    x = array(x)
    below, z = _reflected(x)
    far = z + float(_SHIFT)
    moved = functools.reduce(operator.add, (ops.log(z + float(i)) for i in range(_SHIFT)))
    series: Any = _series(far, _STIRLING) / far
    found = (far - 0.5) * ops.log(far) - far + 0.5 * math.log(2 * math.pi) + series - moved
    sine = ops.abs(ops.sin(math.pi * (ops.where(below, x, 0.25) % 1.0)))  # its sign does not count
    return ops.where(below, math.log(math.pi) - ops.log(sine) - found, found)


def digamma(x: Any, name: str | None = None) -> Any:
    """The derivative of `lgamma`."""
    x = array(x)
    below, z = _reflected(x)
    far = z + float(_SHIFT)
    moved = functools.reduce(operator.add, (1.0 / (z + float(i)) for i in range(_SHIFT)))
    series: Any = _series(far, [-(2 * i + 1) * c for i, c in enumerate(_STIRLING)]) / far / far
    found = ops.log(far) - 0.5 / far + series - moved
    angle = math.pi * (ops.where(below, x, 0.25) % 1.0)
    return ops.where(below, found - math.pi * ops.cos(angle) / ops.sin(angle), found)


def lbeta(x: Any, name: str | None = None) -> Any:
    """The logarithm of the beta function of the numbers along the last axis."""
    x = array(x)
    return ops.sum(lgamma(x), axis=-1) - lgamma(ops.sum(x, axis=-1))


def _where_nonzero(x: Any, value: Callable[[Any], Any], y: Any) -> Any:
    """x * value(y), and 0 where x is 0, whatever y is there."""
    x, y = array(x), array(y)
    zero = ops.equal(x, 0.0)
    return ops.where(zero, 0.0, x * value(ops.where(zero, 1.0, y)))


def xlogy(x: Any, y: Any, name: str | None = None) -> Any:
    return _where_nonzero(x, ops.log, y)


def xlog1py(x: Any, y: Any, name: str | None = None) -> Any:
    return _where_nonzero(x, ops.log1p, y)


def xdivy(x: Any, y: Any, name: str | None = None) -> Any:
    return _where_nonzero(x, lambda y: 1.0 / y, y)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """x * y, and 0 where y is 0, also where x is no number."""
    return _where_nonzero(y, lambda x: x, x)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Any:
    return ops.divide_no_nan(1.0, array(x))


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Any:
    """A polynomial by Horner's rule; the highest coefficient comes first."""
    return functools.reduce(lambda found, c: found * x + c, list(coeffs)) if len(coeffs) else ops.zeros_like(x)


def zero_fraction(value: Any, name: str | None = None) -> Any:
    """The share of zeros."""
    return ops.mean(ops.cast(ops.equal(array(value), 0), "float32"))


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Any:
    axes = tuple(axis) if isinstance(axis, list) else axis
    return ops.sqrt(ops.sum(ops.square(array(input_tensor)), axis=axes, keepdims=keepdims))


def _summing(kind: str) -> Callable[..., Any]:
    function, neutral = getattr(ops, kind), {"cumsum": ops.zeros_like, "cumprod": ops.ones_like}[kind]

    def along(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
        x = array(x)
        x = ops.flip(x, axis) if reverse else x
        x = _behind(neutral(x), x, axis) if exclusive else x
        found = function(x, axis)
        return ops.flip(found, axis) if reverse else found

    return along


def _behind(first: Any, x: Any, axis: int) -> Any:
    """The parts of x along an axis, each one place further, behind the first one of another tensor."""

    def part(y: Any, end: int) -> Any:
        key = [slice(None)] * len(x.shape)
        key[axis] = slice(0, end)
        return y[tuple(key)]

    return ops.concatenate([part(first, 1), part(x, x.shape[axis] - 1)], axis=axis)


cumsum, cumprod = _summing("cumsum"), _summing("cumprod")


def cumulative_logsumexp(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """The logarithm of sums of exponentials up to each place."""
    x = array(x)
    top = ops.stop_gradient(ops.max(x, axis=axis, keepdims=True))
    return ops.log(cumsum(ops.exp(x - top), axis, exclusive, reverse)) + top


def invert_permutation(x: Any, name: str | None = None) -> Any:
    return array(ops.argsort(x), str(x.dtype) if hasattr(x, "dtype") else "int32")


def _ascends(holds: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def ascends(x: Any, name: str | None = None) -> Any:
        flat = ops.reshape(array(x), (-1,))
        return ops.all(holds(flat[:-1], flat[1:])) if flat.shape[0] > 1 else array(True)

    return ascends


def truncatediv(x: Any, y: Any, name: str | None = None) -> Any:
    """The quotient of integers, rounded towards zero."""
    x, y = array(x), array(y)
    quotient = ops.floor_divide(ops.abs(x), ops.abs(y))
    return ops.cast(quotient * ops.sign(x) * ops.sign(y), str(x.dtype))


def truncatemod(x: Any, y: Any, name: str | None = None) -> Any:
    """What is left of that: it has the sign of x."""
    return ops.fmod(array(x), array(y))


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    return scalar * x


def accumulate_n(inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Any:
    return functools.reduce(ops.add, inputs)


def approx_max_k(operand: Any, k: int, reduction_dimension: int = -1, **kwargs: Any) -> tuple[Any, Any]:
    """The k largest numbers along an axis, and their places: exactly these."""
    x = ops.moveaxis(array(operand), reduction_dimension, -1)
    return tuple(ops.moveaxis(each, -1, reduction_dimension) for each in ops.top_k(x, k))


def approx_min_k(operand: Any, k: int, reduction_dimension: int = -1, **kwargs: Any) -> tuple[Any, Any]:
    """The k smallest."""
    values, places = approx_max_k(-array(operand), k, reduction_dimension)
    return -values, places


def conj(x: Any, name: str | None = None) -> Any:
    """The complex conjugate; real numbers as they are."""
    return array(np.conj(x)) if np.iscomplexobj(x) else array(x)


def bitcast(input: Any, type: Any, name: str | None = None) -> Any:
    """The bytes of an array as another dtype."""
    x, size = np.ascontiguousarray(array(input)), np.dtype(name_of(type)).itemsize
    if x.itemsize > size:
        return array(x[..., None].view(name_of(type)))
    return array(x.view(name_of(type)).reshape(x.shape if x.itemsize == size else x.shape[:-1]))


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Any:
    """The places (rank, ...) of the numbers of elements."""
    return ops.stack(list(ops.unravel_index(array(indices), tuple(int(n) for n in dims))))


def renamed() -> dict[str, Callable[..., Any]]:
    """Functions of `ops` that tensorflow calls otherwise."""
    theirs = {
        "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
        "atanh": "arctanh", "atan2": "arctan2", "cosh": "cosh", "sinh": "sinh", "tan": "tan", "realdiv": "true_divide",
    }  # fmt: skip
    return {name: as_named(name, getattr(ops, ours)) for name, ours in theirs.items()}


def of_math() -> dict[str, Callable[..., Any]]:
    """What `tf.math` has of it."""
    own = (
        lgamma, digamma, lbeta, xlogy, xlog1py, xdivy, multiply_no_nan, reciprocal_no_nan, polyval, zero_fraction,
        reduce_euclidean_norm, cumulative_logsumexp, invert_permutation, scalar_mul, accumulate_n, approx_max_k,
        approx_min_k, conj,
    )  # fmt: skip
    same = ("erfc", "erfinv", "log_sigmoid", "softsign", "nextafter")
    return {
        **{each.__name__: each for each in own},
        **{name: as_named(name, getattr(ops, name)) for name in same},
        "rint": as_named("rint", ops.round),
        "bessel_i0": as_named("bessel_i0", ops.i0),
        "bessel_i0e": lambda x, name=None: ops.i0(x) * ops.exp(-ops.abs(x)),
        "is_non_decreasing": _ascends(ops.less_equal),
        "is_strictly_increasing": _ascends(ops.less),
    }


def of_tf() -> dict[str, Callable[..., Any]]:
    """What tensorflow itself has of it."""
    return renamed() | {each.__name__: each for each in (truncatediv, truncatemod, scalar_mul, bitcast, unravel_index)}


def bitwise() -> dict[str, Callable[..., Any]]:
    """The names of `tf.bitwise`."""
    theirs = {"invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}
    theirs |= {name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")}
    return {name: as_named(name, getattr(ops, ours)) for name, ours in theirs.items()}

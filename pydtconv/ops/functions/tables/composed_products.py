"""Products, norms and what is near to them, made of other functions, which give them their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.extents import check
from pydtconv.hooks import as_result
from pydtconv.ops.checks import check_axis, normalize_axes
from pydtconv.ops.functions.arithmetic import (
    abs,
    add,
    divide,
    exp,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    power,
    root,
    sqrt,
    square,
    subtract,
)
from pydtconv.ops.functions.linear import product
from pydtconv.ops.functions.operands import as_operand, as_tensor, in_reals, is_symbolic, of_one_dtype, of_one_kind
from pydtconv.ops.functions.reduction import amax, amin, mean
from pydtconv.ops.functions.reduction import sum as sum_over
from pydtconv.ops.functions.shape import (
    cast,
    expand_dims,
    ravel,
    reshape,
    squeeze,
    stack,
    transpose,
)
from pydtconv.ops.functions.tables import elementwise, selecting
from pydtconv.ops.functions.tables.composed_shapes import ndim, shape, size, unstack, where
from pydtconv.ops.functions.tables.creating import ones_like
from pydtconv.ops.functions.tables.function_of_row import operands_of
from pydtconv.ops.parts import exported
from pydtconv.ops.reduction import Axes
from pydtconv.serialization.budget import claim

__all__ = exported(
    numpy="cross inner kron outer select tensordot vander vdot",
    nn="binary_crossentropy multi_hot normalize psnr rms_normalization",
    linalg="norm",
    math="cdist extract_sequences",
)


def outer(x1: Any, x2: Any) -> Any:
    """The products of all pairs of two flat tensors."""
    return multiply(expand_dims(ravel(x1), 1), expand_dims(ravel(x2), 0))


def inner(x1: Any, x2: Any) -> Any:
    """Sums of products along the last axes."""
    x1, x2 = operands_of(x1, x2)
    if not x1.shape or not x2.shape:
        return multiply(x1, x2)
    return tensordot(x1, x2, ([-1], [-1]))


def vdot(x1: Any, x2: Any) -> Any:
    """The sum of the products of all elements."""
    shapes = shape(x1), shape(x2)
    if not any(None in extents for extents in shapes) and size(x1) != size(x2):
        raise ValueError(f"vdot: expected as many elements of each, got shapes {shapes[0]} and {shapes[1]}")
    return product(ravel(x1), ravel(x2))


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """Sums of products along pairs of axes: the last n of x1 and the first n of x2, or as named."""
    a, b = of_one_kind(x1, x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(len(a.shape), len(b.shape)):
            raise ValueError(f"tensordot: axes: expected 0 to {min(len(a.shape), len(b.shape))}, got {axes}")
        left, right = list(range(len(a.shape) - axes, len(a.shape))), list(range(axes))
    else:
        left, right = ([p] if isinstance(p, int) else list(p) for p in axes)
    left, right = ([check_axis("tensordot", p, len(x.shape)) for p in places] for x, places in ((a, left), (b, right)))
    kept_a = [d for d in range(len(a.shape)) if d not in left]
    kept_b = [d for d in range(len(b.shape)) if d not in right]
    extents_a, extents_b = [a.shape[d] for d in kept_a], [b.shape[d] for d in kept_b]
    common = math.prod(a.shape[d] for d in left)
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise ValueError(f"tensordot: expected equal extents along axes={axes}, got {shape(a)} and {shape(b)}")
    rows, columns = (-1 if None in extents else math.prod(extents) for extents in (extents_a, extents_b))
    y = product(
        reshape(transpose(a, [*kept_a, *left]), (rows, common)),
        reshape(transpose(b, [*right, *kept_b]), (common, columns)),
    )
    if len(extents_a) == len(extents_b) == 1:
        return y
    return reshape(y, tuple(-1 if n is None else n for n in (*extents_a, *extents_b)))


def kron(x1: Any, x2: Any) -> Any:
    """The Kronecker product."""
    a, b = of_one_kind(x1, x2)
    rank = max(len(a.shape), len(b.shape))
    a, b = (reshape(x, (*(1,) * (rank - len(x.shape)), *x.shape)) for x in (a, b))
    wide_a = reshape(a, [n for extent in a.shape for n in (extent, 1)])
    wide_b = reshape(b, [n for extent in b.shape for n in (1, extent)])
    return reshape(multiply(wide_a, wide_b), [m * n for m, n in zip(a.shape, b.shape, strict=True)])


def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Cross products of vectors of 3 (or 2) components along an axis."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = unstack(x1, axis=axisa), unstack(x2, axis=axisb)
    if len(a) == len(b) == 2:
        return subtract(multiply(a[0], b[1]), multiply(a[1], b[0]))
    if {len(a), len(b)} - {2, 3}:
        raise ValueError(f"cross: expected vectors of 2 or 3 components, got {len(a)} and {len(b)}")
    a, b = ([*v, multiply(v[0], 0.0)] if len(v) == 2 else v for v in (a, b))
    parts = [subtract(multiply(a[i], b[j]), multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axisc)


def cdist(x: Any, y: Any) -> Any:
    """Euclidean distances of the rows of x (..., m, d) and y (..., n, d)."""
    a, b = as_operand(x), as_operand(y)
    return root(sum_over(square(subtract(expand_dims(a, -2), expand_dims(b, -3))), -1))


@in_reals
def norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Any:
    """Norms of vectors (an axis) and matrices (two): None, "fro", 1, 2, inf, -inf, any number for vectors, "nuc"."""
    x = as_operand(x)
    axes = normalize_axes("norm", axis, len(x.shape))
    if isinstance(ord, str) and (len(axes) != 2 or ord not in ("fro", "nuc")):
        raise ValueError(
            f"norm: ord: expected 'fro' or 'nuc' of two axes, or a number, got {ord!r} of {len(axes)} axes"
        )
    if ord is None or ord == "fro" or (ord == 2 and len(axes) == 1):
        return root(sum_over(square(x), axes, keepdims))
    if len(axes) == 1:
        if ord == math.inf:
            return amax(abs(x), axes, keepdims)
        if ord == -math.inf:
            return amin(abs(x), axes, keepdims)
        if ord == 0:
            return sum_over(cast(elementwise._FUNCTIONS["not_equal"](x, 0.0), str(x.dtype)), axes, keepdims)
        if ord == 1:
            return sum_over(abs(x), axes, keepdims)
        return power(sum_over(power(abs(x), float(ord)), axes, keepdims), 1 / ord)
    if len(axes) == 2 and ord in (1, -1, math.inf, -math.inf):
        given: Any = axes if axis is None else axis  # in their order, which axes have lost
        rows, columns = (a % len(x.shape) for a in given)
        inside = rows if ord in (1, -1) else columns
        sums = sum_over(abs(x), inside, True)
        y = (amax if ord > 0 else amin)(sums, axes, True)
        return y if keepdims else squeeze(y, axes)
    if len(axes) != 2:
        raise ValueError(f"norm: axis: expected one or two axes for ord={ord!r}, got {len(axes)} of shape {shape(x)}")
    if is_symbolic(x):
        raise NotImplementedError(f"ops.norm with ord={ord!r} of matrices: is here for arrays only")
    return as_result(np.linalg.norm(x, ord, axes, keepdims).astype(x.dtype))


@in_reals
def normalize(x: Any, axis: int = -1, order: float = 2, epsilon: float | None = None) -> Any:
    """x divided by its norm along an axis, which is taken as epsilon at least."""
    x = as_operand(x)
    epsilon = config.epsilon() if epsilon is None else epsilon
    if order == 2:
        return divide(x, sqrt(maximum(sum_over(square(x), axis, True), epsilon * epsilon)))
    return divide(x, maximum(norm(x, order, axis, True), epsilon))


@in_reals
def rms_normalization(x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None) -> Any:
    """x divided by the root of the mean of its squares over axes, times a scale where there is one."""
    x = as_operand(x)
    epsilon = config.epsilon() if epsilon is None else epsilon
    y = divide(x, sqrt(add(mean(square(x), axis, True), epsilon)))
    return y if scale is None else multiply(y, cast(as_operand(scale), x.dtype))


def psnr(x1: Any, x2: Any, max_val: float) -> Any:
    """The ratio of the peak to the noise of two signals, in decibels."""
    error = mean(square(subtract(x1, x2)))
    return add(multiply(log(error), -10 / math.log(10)), 20 * math.log10(max_val))


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """-(t log(p) + (1 - t) log(1 - p)) of each element, p the output or its sigmoid."""
    target, output = operands_of(target, output)
    unequal = any(None not in (a, b) and a != b for a, b in zip(target.shape, output.shape, strict=False))
    if unequal or len(target.shape) != len(output.shape):
        raise ValueError(
            f"binary_crossentropy: expected target and output of one shape, got {shape(target)} and {shape(output)}"
        )
    target, output = of_one_dtype(target, output)
    if from_logits:
        positive = subtract(maximum(output, 0.0), multiply(output, target))
        return add(positive, elementwise._FUNCTIONS["log1p"](exp(negative(abs(output)))))
    epsilon = config.epsilon()
    p = minimum(maximum(output, epsilon), 1 - epsilon)
    loss = add(multiply(target, log(p)), multiply(subtract(1.0, target), log(subtract(1.0, p))))
    return negative(loss)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """The choice of the first condition that is true, else the default."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select: expected as many conditions as choices, got {len(condlist)} and {len(choicelist)}")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


def multi_hot(
    inputs: Any, num_classes: int | None = None, axis: int = -1, dtype: Any = None, sparse: bool = False, **kwargs: Any
) -> Any:
    """1 for each class that is among the indices along an axis; that axis becomes the classes'."""
    num_classes = kwargs.pop("num_tokens", num_classes)
    if sparse or kwargs or num_classes is None:
        raise ValueError(f"multi_hot: expected num_classes, sparse=False, got {num_classes}, {sparse}, {kwargs}")
    hot = selecting._FUNCTIONS["one_hot"](inputs, num_classes, axis, dtype or config.floatx())
    return amax(hot, axis=1 if ndim(inputs) > 1 else 0)


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Any:
    """Windows along the last axis: (..., n) -> (..., windows, sequence_length)."""
    check("extract_sequences: sequence_length", sequence_length, least=1)
    check("extract_sequences: sequence_stride", sequence_stride, least=1)
    if ndim(x) < 1:
        raise ValueError(f"extract_sequences: expected one axis or more, got {x!r}")
    count = 1 + (shape(x)[-1] - sequence_length) // sequence_stride  # type: ignore[operator]
    if count < 1 or sequence_length < 1:
        raise ValueError(f"extract_sequences: sequence_length: expected 1 to {shape(x)[-1]}, got {sequence_length}")
    claim(8 * count * sequence_length, f"extract_sequences: {count} windows of {sequence_length}")
    places = np.arange(count)[:, None] * sequence_stride + np.arange(sequence_length)
    return selecting._FUNCTIONS["take"](x, places, -1)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Powers of a vector's elements as rows."""
    count = shape(x)[0] if N is None else N
    check("vander: N", count, least=0)
    x = as_tensor(x)
    powers = [power(x, i) if i else ones_like(x) for i in range(count)]  # type: ignore[arg-type]
    return cast(stack(powers if increasing else powers[::-1], -1), x.dtype)

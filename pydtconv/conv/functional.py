"""Convolution on NumPy arrays: the three passes, and passes bound to arrays ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import conv as ext
from pydtconv._ext import ukr
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import choose, supported, workspace_bytes
from pydtconv.conv.table import TABLE

#: mean, scale and beta (ci,) of an image, and whether ReLU follows; beta may be None
Normalization = tuple[np.ndarray, np.ndarray, np.ndarray | None, bool]

#: codes of dtconv_activation, by kind
ACTIVATIONS = {None: 0, "linear": 0, "relu": 1, "relu6": 2, "leaky_relu": 3, "sigmoid": 4, "tanh": 5}


def pixel_stride(array: np.ndarray, name: str) -> int:
    """Elements from one pixel of an image (n, h, w, c) to the next.

    Raises ValueError unless channels are contiguous and pixels evenly spaced, as in an NHWC array or a channel slice.
    """
    size = array.itemsize
    extents, strides = array.shape, array.strides
    step, count = 0, 1  # bytes from pixel to pixel, pixels seen from the right
    for axis in (2, 1, 0):
        if extents[axis] == 1:
            continue
        if step == 0:
            step = strides[axis] // count
        if strides[axis] != step * count:
            step = -1
            break
        count *= extents[axis]
    step = step or extents[3] * size
    if (extents[3] > 1 and strides[3] != size) or step % size or step < extents[3] * size:
        raise ValueError(
            f"{name}: expected an NHWC array in C order or a slice of its channels, got strides {strides} for "
            f"shape {extents} of {array.dtype}"
        )
    return step // size


def check_array(value: Any, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """Raises TypeError or ValueError, naming the argument, unless value is an array of that shape and dtype."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name}: expected a numpy.ndarray, got {type(value).__name__}")
    if value.dtype != dtype:
        raise ValueError(f"{name}: expected dtype {dtype}, got {value.dtype}")
    if value.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {value.shape}")
    if not value.flags.aligned:
        raise ValueError(f"{name}: expected an aligned array, got one at address {value.ctypes.data}")


def check_dense(value: np.ndarray, name: str) -> None:
    """Raises ValueError unless the array is in C order."""
    if not value.flags.c_contiguous:
        raise ValueError(f"{name}: expected an array in C order, got strides {value.strides} for shape {value.shape}")


def check_output(value: np.ndarray, name: str, inputs: tuple[np.ndarray, ...]) -> None:
    """Raises ValueError unless the array can be written and shares no memory with an input."""
    if not value.flags.writeable:
        raise ValueError(f"{name}: expected a writable array, got a read-only one")
    for other in inputs:
        if np.may_share_memory(value, other) and np.shares_memory(value, other):
            raise ValueError(f"{name}: expected an array of its own, got one that overlaps an input")


def run(bound: Callable[..., int], workspace: np.ndarray | None = None) -> None:
    """Calls a bound pass.  Raises RuntimeError with what its status means, or what choosing a micro-kernel raised."""
    ukr.check(bound(workspace), "convolution")


def bind(
    p: ConvProblem,
    direction: str,
    algorithm: str,
    x: np.ndarray,
    w: np.ndarray,
    y: np.ndarray,
    *,
    bias: np.ndarray | None = None,
    activation: str | None = None,
    alpha: float = 0.0,
    accumulate: bool = False,
    moments: tuple[np.ndarray, np.ndarray] | None = None,
    prologue: Normalization | None = None,
    reductions: tuple[np.ndarray, Normalization, np.ndarray, np.ndarray] | None = None,
    residual: np.ndarray | None = None,
    workspace: np.ndarray | None = None,
) -> Callable[..., int]:
    """A pass of p bound to its arrays: a callable that allocates nothing; run it with `run`.

    x (n, ih, iw, ci), w (kh, kw, ci // groups, co), y (n, oh, ow, co), or their gradients; the pass's own output among
    them is written.  x and y may be channel slices.  bias (co,), activation (a key of ACTIVATIONS) and alpha: epilogue
    of forward.  accumulate: add to dx (backward_data).  moments: mean and variance (co,) each of y over all pixels, to
    be written by a forward whose row of the table says that it gathers them.  prologue: mean, scale, beta (ci,) each,
    and whether ReLU follows: x is taken as max((x - mean) * scale + beta, 0), or without the maximum, where the row of
    the table says that it normalizes.  reductions: an image like dx, its normalization as in `prologue` (dx is the
    gradient of the result), and two vectors (ci,) that a backward_data whose row of the table says that it gathers
    writes: the sums over all pixels of g, the gradient of what ReLU is applied to, and of g * (image - mean).
    residual: an image of y's shape, perhaps a channel slice, that forward adds to y + bias before the activation; it
    may be y itself.
    workspace: uint8, at least workspace_bytes(...) with the threads set when it runs; None: it is passed in each call.
    Raises ValueError or TypeError naming the array that does not fit.
    """
    supported(p, direction, algorithm)
    names = {"forward": ("x", "w", "out"), "backward_data": ("out", "w", "dy"), "backward_weights": ("x", "out", "dy")}[
        direction
    ]
    for value, name, shape in zip((x, w, y), names, (p.x_shape, p.w_shape, p.y_shape), strict=True):
        check_array(value, name, shape, p.dtype)
    ldx, ldy = pixel_stride(x, names[0]), pixel_stride(y, names[2])
    check_dense(w, names[1])
    inputs = tuple(value for value, name in zip((x, w, y), names, strict=True) if name != "out")
    if bias is not None:
        check_array(bias, "bias", (p.co,), p.dtype)
        check_dense(bias, "bias")
        inputs += (bias,)
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {', '.join(map(str, ACTIVATIONS))}, got {activation!r}")
    if direction != "forward" and (bias is not None or residual is not None or ACTIVATIONS[activation]):
        raise ValueError(f"bias, residual and activation: expected none in {direction}, they belong to forward")
    ldr = 0
    if residual is not None:
        check_array(residual, "residual", p.y_shape, p.dtype)
        ldr = pixel_stride(residual, "residual")
        if residual.ctypes.data != y.ctypes.data or ldr != ldy:
            inputs += (residual,)
    if accumulate and direction != "backward_data":
        raise ValueError(f"accumulate: expected False in {direction}, only backward_data adds to its output")
    mean, variance = moments or (None, None)
    if mean is not None and variance is not None:
        if direction != "forward" or not TABLE[algorithm].gathers:
            raise ValueError(f"moments: expected none for {direction} of {algorithm}, which does not gather them")
        for value, name in ((mean, "mean"), (variance, "variance")):
            check_array(value, name, (p.co,), p.dtype)
            check_dense(value, name)
            check_output(value, name, inputs)
    if prologue is not None:
        if direction == "backward_data" or not TABLE[algorithm].normalizes_in(p):
            raise ValueError(f"prologue: expected none for {direction} of {algorithm}, which cannot normalize x of {p}")
        _check_normalization(p, prologue)
    gathered = None
    if reductions is not None:
        gathered = _checked_reductions(p, direction, algorithm, reductions, (x, *inputs))
    check_output((x, w, y)[names.index("out")], "out", inputs)
    bound: Callable[..., int] = ext.bind(
        p.sizes,
        algorithm,
        direction,
        x,
        w,
        y,
        ldx,
        ldy,
        bias,
        ACTIVATIONS[activation],
        alpha,
        accumulate,
        mean,
        variance,
        prologue,
        gathered,
        residual,
        ldr,
        workspace,
    )
    return bound


def _check_normalization(p: ConvProblem, normalization: Normalization) -> None:
    for name, vector in zip(("mean", "scale", "beta"), normalization[:3], strict=True):
        if vector is not None:
            check_array(vector, name, (p.ci,), p.dtype)
            check_dense(vector, name)


def _checked_reductions(
    p: ConvProblem,
    direction: str,
    algorithm: str,
    reductions: tuple[np.ndarray, Normalization, np.ndarray, np.ndarray],
    others: tuple[np.ndarray, ...],
) -> tuple[Any, ...]:
    """`reductions` as the extension takes them: image, elements between its pixels, the normalization, both sums."""
    if direction != "backward_data" or not TABLE[algorithm].gathers:
        raise ValueError(f"reductions: expected none for {direction} of {algorithm}, which does not gather them")
    image, normalization, *sums = reductions
    check_array(image, "reductions", p.x_shape, p.dtype)
    _check_normalization(p, normalization)
    for value in sums:
        check_array(value, "sums", (p.ci,), p.dtype)
        check_dense(value, "sums")
        check_output(value, "sums", (image, *others))
    return image, pixel_stride(image, "reductions"), *normalization, *sums


def scratch(nbytes: int) -> np.ndarray | None:
    """A workspace of nbytes; None for none."""
    return np.empty(nbytes, np.uint8) if nbytes else None


def _call(
    p: ConvProblem,
    direction: str,
    algorithm: str,
    x: np.ndarray,
    w: np.ndarray,
    y: np.ndarray,
    bias: np.ndarray | None = None,
) -> None:
    name = choose(p, direction, algorithm).algorithm
    bound = bind(p, direction, name, x, w, y, bias=bias)
    run(bound, scratch(workspace_bytes(p, direction, name)))


def _output(out: np.ndarray | None, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.empty(shape, dtype) if out is None else out


def forward(
    p: ConvProblem,
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray | None = None,
    *,
    algorithm: str = "auto",
    out: np.ndarray | None = None,
) -> np.ndarray:
    """y (n, oh, ow, co) from x (n, ih, iw, ci), w (kh, kw, ci // groups, co) and bias (co,).

    x and out may be channel slices.  algorithm: a name of the table; "auto": the variant's, else the ranking's.
    Raises ValueError or TypeError naming the argument, before anything is written.
    """
    y = _output(out, p.y_shape, p.dtype)
    _call(p, "forward", algorithm, x, w, y, bias)
    return y


def backward_data(
    p: ConvProblem, dy: np.ndarray, w: np.ndarray, *, algorithm: str = "auto", out: np.ndarray | None = None
) -> np.ndarray:
    """dx (n, ih, iw, ci) from dy (n, oh, ow, co) and w (kh, kw, ci // groups, co); otherwise as forward."""
    dx = _output(out, p.x_shape, p.dtype)
    _call(p, "backward_data", algorithm, dx, w, dy)
    return dx


def backward_weights(
    p: ConvProblem, x: np.ndarray, dy: np.ndarray, *, algorithm: str = "auto", out: np.ndarray | None = None
) -> np.ndarray:
    """dw (kh, kw, ci // groups, co) from x (n, ih, iw, ci) and dy (n, oh, ow, co); otherwise as forward."""
    dw = _output(out, p.w_shape, p.dtype)
    _call(p, "backward_weights", algorithm, x, dw, dy)
    return dw

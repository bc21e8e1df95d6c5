"""Convolution on NumPy arrays: the three passes, and passes bound to arrays ahead of time."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import (
    config,
    microkernels,  # noqa: F401  (puts the choice of a kernel in place)
)
from pydtconv._ext import conv as ext
from pydtconv._ext import ukr
from pydtconv.conv.arrays import (
    as_planes,
    check_array,
    check_dense,
    check_output,
    check_outputs,
    image_dtype,
    in_memory,
    pixel_stride,
)
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import choose, supported, workspace_bytes
from pydtconv.conv.table import TABLE

#: mean, scale and beta (ci,) of an image, and the activation that follows (AFTER_NORMALIZATION); beta may be None
Normalization = tuple[np.ndarray, np.ndarray, np.ndarray | None, str | None]

#: codes of dtconv_activation, by kind: of what may follow a convolution
ACTIVATIONS = {None: 0, "linear": 0, "relu": 1, "relu6": 2, "leaky_relu": 3, "sigmoid": 4, "tanh": 5}
#: the same of what may follow a normalization that is not in memory
AFTER_NORMALIZATION = {None: 0, "linear": 0, "relu": 1, "relu6": 2, "silu": 18, "hard_silu": 20}


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
    bypass: bool = False,
    residual: np.ndarray | None = None,
    spectra: np.ndarray | None = None,
    dy_spectra: np.ndarray | None = None,
    workspace: np.ndarray | None = None,
) -> Callable[..., int]:
    """A pass of p bound to its arrays: a callable that allocates nothing; run it with `run`.

    x (n, *spatial, ci), w (*kernel, ci // groups, co), y (n, *out, co), or their gradients; the pass's own output among
    them is written.  x and y may be channel slices.  bias (co,), activation (a key of ACTIVATIONS) and alpha: epilogue
    of forward.  accumulate: add to dx (backward_data).  moments: mean and variance (co,) each of y over all pixels, to
    be written by a forward whose row of the table says that it gathers them.  prologue: mean, scale, beta (ci,) each,
    and an activation: x is taken as act((x - mean) * scale + beta), where the row of
    the table says that it normalizes.  reductions: an image like dx, its normalization as in `prologue` (dx is the
    gradient of the result), and two vectors (ci,) that a backward_data whose row of the table says that it gathers
    writes: the sums over all pixels of g, the gradient of what the activation is applied to, and of
    g * (image - mean).  bypass: where the row of the table says that it does, dx is the gradient of the image instead,
    and scale * g is written, or added; the rest of that gradient is offset + (image - mean) * slope, coefficients that
    follow from the sums.
    residual: an image of y's shape, perhaps a channel slice, that forward adds to y + bias before the activation; it
    may be y itself.
    spectra: the transform of x, of the `spectra_size` of the algorithm's row; forward leaves it there, backward_weights
    by the same algorithm and basis reads it instead of transforming x again.  dy_spectra: the transform of dy, of the
    `dy_spectra_size` of the algorithm's row; backward_weights leaves it there, and a backward_data that cuts dy into
    the same tiles (see kept.py) reads it.
    workspace: uint8, at least workspace_bytes(...) with the threads set when it runs (see `config.hold_num_threads`);
    None: it is passed in each call.
    Raises ValueError or TypeError naming the array that does not fit.
    """
    supported(p, direction, algorithm)
    names = {"forward": ("x", "w", "out"), "backward_data": ("out", "w", "dy"), "backward_weights": ("x", "out", "dy")}[
        direction
    ]
    x, y, residual = (in_memory(value) for value in (x, y, residual))
    dtypes, shapes = (image_dtype(p), p.real, image_dtype(p)), (p.x_shape, p.w_shape, p.y_shape)
    for value, name, shape, dtype in zip((x, w, y), names, shapes, dtypes, strict=True):
        check_array(value, name, shape, dtype)
    ldx, ldy = pixel_stride(x, names[0]), pixel_stride(y, names[2])
    check_dense(w, names[1])
    inputs = tuple(value for value, name in zip((x, w, y), names, strict=True) if name != "out")
    if bias is not None:
        check_array(bias, "bias", (p.co,), p.real)
        check_dense(bias, "bias")
        inputs += (bias,)
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {', '.join(map(str, ACTIVATIONS))}, got {activation!r}")
    if direction != "forward" and (bias is not None or residual is not None or ACTIVATIONS[activation]):
        raise ValueError(f"bias, residual and activation: expected none in {direction}, they belong to forward")
    ldr = 0
    if residual is not None:
        check_array(residual, "residual", p.y_shape, image_dtype(p))
        ldr = pixel_stride(residual, "residual")
        if residual.ctypes.data != y.ctypes.data or ldr != ldy:
            inputs += (residual,)
    if accumulate and direction != "backward_data":
        raise ValueError(f"accumulate: expected False in {direction}, only backward_data adds to its output")
    mean = variance = None
    outputs = {"out": (x, w, y)[names.index("out")]}
    if moments is not None:
        mean, variance = moments
        if direction != "forward" or not TABLE[algorithm].gathers:
            raise ValueError(f"moments: expected none for {direction} of {algorithm}, which does not gather them")
        for value, name in ((mean, "mean"), (variance, "variance")):
            check_array(value, name, (p.co,), p.real)
            check_dense(value, name)
            check_output(value, name, inputs)
        outputs |= {"mean": mean, "variance": variance}
    if prologue is not None:
        if direction == "backward_data" or not TABLE[algorithm].normalizes_in(p, prologue[3]):
            through = "" if prologue[3] is None else f" with {prologue[3]}"
            raise ValueError(
                f"prologue: expected none for {direction} of {algorithm}, which cannot normalize x{through} of {p}"
            )
        inputs += _checked_normalization(p, prologue, "prologue")
    if spectra is not None:
        size = 0 if direction == "backward_data" else TABLE[algorithm].spectra_size(p)
        _check_spectra(spectra, "spectra", size, f"{direction} of {algorithm}", p)
    if dy_spectra is not None:
        size = TABLE[algorithm].dy_spectra_size(p, direction)
        _check_spectra(dy_spectra, "dy_spectra", size, f"{direction} of {algorithm}", p)
    left = {"forward": {"spectra": spectra}, "backward_weights": {"dy_spectra": dy_spectra}}.get(direction, {})
    found = {"backward_data": (dy_spectra,), "backward_weights": (spectra,)}.get(direction, ())
    inputs += tuple(value for value in found if value is not None)
    for name, written in left.items():
        if written is not None:
            check_output(written, name, inputs)
            outputs[name] = written
    gathered = None
    if reductions is not None:
        gathered = _checked_reductions(p, direction, algorithm, reductions, inputs)
        outputs |= {"sum": gathered[-2], "sum_x": gathered[-1]}
    if bypass and (gathered is None or not TABLE[algorithm].bypasses_in(p)):
        raise ValueError(f"bypass: expected False for {direction} of {algorithm}, which has no reductions or cannot")
    check_output(outputs["out"], "out", inputs)
    check_outputs(outputs)
    bound: Callable[..., int] = ext.bind(
        TABLE[algorithm].sizes(p),
        TABLE[algorithm].family,
        direction,
        as_planes(x),
        as_planes(w),
        as_planes(y),
        ldx,
        ldy,
        bias,
        ACTIVATIONS[activation],
        alpha,
        accumulate,
        mean,
        variance,
        None if prologue is None else _with_code(prologue),
        None if gathered is None else (*gathered, bypass),
        None if residual is None else as_planes(residual),
        ldr,
        spectra,
        dy_spectra,
        workspace,
    )
    return bound


def _check_spectra(value: np.ndarray, name: str, size: int, what: str, p: ConvProblem) -> None:
    """Raises ValueError unless a pass that leaves or reads spectra of this size is given such an array."""
    if not size:
        raise ValueError(f"{name}: expected none for {what}, which does not keep them")
    check_array(value, name, (size,), p.real)
    check_dense(value, name)


def _checked_normalization(p: ConvProblem, normalization: Normalization, name: str) -> tuple[np.ndarray, ...]:
    """Its vectors; beta alone may be None."""
    mean, scale, beta, activation = normalization
    if activation not in AFTER_NORMALIZATION:
        expected = ", ".join(map(str, AFTER_NORMALIZATION))
        raise ValueError(f"{name}: activation: expected one of {expected}, got {activation!r}")
    vectors = {"mean": mean, "scale": scale} | ({} if beta is None else {"beta": beta})
    for which, vector in vectors.items():
        check_array(vector, f"{name}: {which}", (p.ci,), p.real)
        check_dense(vector, f"{name}: {which}")
    return tuple(vectors.values())


def _checked_reductions(
    p: ConvProblem,
    direction: str,
    algorithm: str,
    reductions: tuple[np.ndarray, Normalization, np.ndarray, np.ndarray],
    others: tuple[np.ndarray, ...],
) -> tuple[Any, ...]:
    """`reductions` as the extension takes them: image, elements between its pixels, the normalization, both sums."""
    if direction != "backward_data" or not TABLE[algorithm].gathers_reductions(p):
        raise ValueError(f"reductions: expected none for {direction} of {algorithm}, which does not gather them")
    image, normalization, *sums = reductions
    image = in_memory(image)
    check_array(image, "reductions", p.x_shape, image_dtype(p))
    others += (image, *_checked_normalization(p, normalization, "reductions"))
    for value in sums:
        check_array(value, "sums", (p.ci,), p.real)
        check_dense(value, "sums")
        check_output(value, "sums", others)
    return as_planes(image), pixel_stride(image, "reductions"), *_with_code(normalization), *sums


def _with_code(normalization: Normalization) -> tuple[Any, ...]:
    """The vectors, and the activation as the extension takes it."""
    *vectors, activation = normalization
    return *vectors, AFTER_NORMALIZATION[activation]


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
    with config.hold_num_threads():
        name = choose(p, direction, algorithm).algorithm
        bound = bind(p, direction, name, x, w, y, bias=bias)
        run(bound, scratch(workspace_bytes(p, direction, name)))


def _output(out: np.ndarray | None, shape: tuple[int, ...], dtype: str | np.dtype) -> np.ndarray:
    return np.empty(shape, dtype) if out is None else out


def _like(p: ConvProblem, image: np.ndarray) -> str | np.dtype:
    """The dtype of an image that is made from this one: bfloat16 comes as ml_dtypes' or as its bits, and goes so."""
    return getattr(image, "dtype", "uint16") if p.dtype == "bfloat16" else p.dtype


def _on_device(p: ConvProblem, direction: str, *arguments: Any) -> Any:
    """A pass on arrays of a device, whose algorithms are others (kernels/gpu/convolutions)."""
    return importlib.import_module("pydtconv.devices.eager").convolution(p, direction, *arguments)


def forward(
    p: ConvProblem,
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray | None = None,
    *,
    algorithm: str = "auto",
    out: np.ndarray | None = None,
) -> np.ndarray:
    """y (n, *out, co) from x (n, *spatial, ci), w (*kernel, ci // groups, co) and bias (co,), one to three axes.

    x and out may be channel slices.  Where p.dtype is "bfloat16", x and y are arrays of ml_dtypes' bfloat16 or uint16,
    its bits, w and bias float32.  algorithm: a name of the table; "auto": the variant's, else the ranking's.
    "winograd", "fft" and "fft_overlap_add" make whole tiles of y infinite or NaN where x has one such value, or one
    that nearly overflows; those in the Fourier domain go in pairs, perhaps of two images, whose errors are relative to
    the larger one.  `config.set_conv_precision("strict")` has "auto" leave them out.
    Raises ValueError or TypeError naming the argument, before anything is written.
    """
    if hasattr(x, "__cuda_array_interface__"):
        return _on_device(p, "forward", x, w, bias, algorithm, out)
    y = _output(out, p.y_shape, _like(p, x))
    _call(p, "forward", algorithm, x, w, y, bias)
    return y


def backward_data(
    p: ConvProblem, dy: np.ndarray, w: np.ndarray, *, algorithm: str = "auto", out: np.ndarray | None = None
) -> np.ndarray:
    """dx (n, *spatial, ci) from dy (n, *out, co) and w (*kernel, ci // groups, co); otherwise as forward."""
    if hasattr(dy, "__cuda_array_interface__"):
        return _on_device(p, "backward_data", dy, w, None, algorithm, out)
    dx = _output(out, p.x_shape, _like(p, dy))
    _call(p, "backward_data", algorithm, dx, w, dy)
    return dx


def backward_weights(
    p: ConvProblem, x: np.ndarray, dy: np.ndarray, *, algorithm: str = "auto", out: np.ndarray | None = None
) -> np.ndarray:
    """dw (*kernel, ci // groups, co) from x (n, *spatial, ci) and dy (n, *out, co); otherwise as forward."""
    if hasattr(x, "__cuda_array_interface__"):
        return _on_device(p, "backward_weights", x, dy, None, algorithm, out)
    dw = _output(out, p.w_shape, p.real)
    _call(p, "backward_weights", algorithm, x, dw, dy)
    return dw

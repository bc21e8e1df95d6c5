"""Convolution on NumPy arrays: the three passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import (
    config,
    hooks,
    microkernels,  # noqa: F401  (puts the choice of a kernel in place)
)
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import choose, workspace_bytes


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
    return hooks.convolve_on_device(p, direction, *arguments)


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
    the larger one.  `config.set_conv_precision("strict")` has "auto" leave them out.  Where a window reads zeros alone
    those in the Fourier domain may leave rounding errors; all others give 0.
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

"""Passes of a convolution bound to arrays ahead of time, for a plan that runs them many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv._ext import conv as ext
from pydtconv._ext import ukr
from pydtconv.conv.activations import CODES, FUSED, OF_NORMALIZED
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.arrays import (
    as_planes,
    check_array,
    check_dense,
    check_output,
    check_outputs,
    image_dtype,
    in_memory,
    pixel_stride,
    shares_memory,
)
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import supported

#: mean, scale and beta (ci,) of an image, and the activation that follows (AFTER_NORMALIZATION); beta may be None
Normalization = tuple[np.ndarray, np.ndarray, np.ndarray | None, str | None]
#: an image, its normalization, and two vectors for sums over its pixels
Reductions = tuple[np.ndarray, Normalization, np.ndarray, np.ndarray]

#: codes of what may follow a normalization that is not in memory
AFTER_NORMALIZATION = {kind: CODES[kind] for kind in OF_NORMALIZED}
#: by direction, the names of image, filters and result's image: the one that is written is "out"
NAMES = {"forward": ("x", "w", "out"), "backward_data": ("out", "w", "dy"), "backward_weights": ("x", "out", "dy")}


def run(bound: Callable[..., int], workspace: np.ndarray | None = None) -> None:
    """Calls a bound pass.  Raises RuntimeError with what its status means, or what choosing a micro-kernel raised."""
    ukr.check(bound(workspace), "convolution")


def scratch(nbytes: int) -> np.ndarray | None:
    """A workspace of nbytes; None for none."""
    return np.empty(nbytes, np.uint8) if nbytes else None


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
    reductions: Reductions | None = None,
    bypass: bool = False,
    residual: np.ndarray | None = None,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
    spectra: np.ndarray | None = None,
    dy_spectra: np.ndarray | None = None,
    workspace: np.ndarray | None = None,
) -> Callable[..., int]:
    """A pass of p bound to its arrays: a callable that allocates nothing; run it with `run`.

    x (n, *spatial, ci), w (*kernel, ci // groups, co), y (n, *out, co), or their gradients; the pass's own output among
    them is written.  x and y may be channel slices.  bias (co,), activation (a key of FUSED) and alpha: epilogue
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
    may be y itself.  scale: two vectors (co,), of forward in float32 and float64: before the residual, which is not y
    then, y + bias is multiplied by the first one, and the second one is added.
    spectra: the transform of x, of the `spectra_size` of the algorithm's row; forward leaves it there, backward_weights
    by the same algorithm and basis reads it instead of transforming x again.  dy_spectra: the transform of dy, of the
    `dy_spectra_size` of the algorithm's row; backward_weights leaves it there, and a backward_data that cuts dy into
    the same tiles (see kept.py) reads it.
    workspace: uint8, at least workspace_bytes(...) with the threads set when it runs (see `config.hold_num_threads`);
    None: it is passed in each call.
    Raises ValueError or TypeError naming the array that does not fit.
    """
    supported(p, direction, algorithm)
    arrays = _Arrays(p, direction, algorithm)
    x, y, residual = (in_memory(value) for value in (x, y, residual))
    ldx, ldy = arrays.add_operands(x, w, y)
    if direction != "forward" and (bias is not None or residual is not None or FUSED.get(activation)):
        raise ValueError(f"bias, residual and activation: expected none in {direction}, they belong to forward")
    if activation not in FUSED:
        raise ValueError(f"activation: expected one of {', '.join(map(str, FUSED))}, got {activation!r}")
    if accumulate and direction != "backward_data":
        raise ValueError(f"accumulate: expected False in {direction}, only backward_data adds to its output")
    ldr = arrays.add_epilogue(bias, residual, y, ldy)
    arrays.add_scale(scale, residual, y)
    mean, variance = arrays.add_moments(moments)
    prologue = arrays.add_prologue(prologue)
    arrays.add_spectra(spectra, dy_spectra)
    gathered = arrays.add_reductions(reductions, bypass)
    arrays.check_outputs()
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
        FUSED[activation],
        alpha,
        accumulate,
        mean,
        variance,
        prologue,
        gathered,
        None if residual is None else as_planes(residual),
        ldr,
        scale,
        spectra,
        dy_spectra,
        workspace,
    )
    return bound


class _Arrays:
    """The arrays of a pass, each checked as it joins, and at the end what is written against all that is read."""

    def __init__(self, p: ConvProblem, direction: str, algorithm: str) -> None:
        self.p, self.direction, self.row = p, direction, TABLE[algorithm]
        self.of = f"{direction} of {algorithm}"
        self.inputs: tuple[np.ndarray, ...] = ()
        self.outputs: dict[str, np.ndarray] = {}

    def add_operands(self, x: np.ndarray, w: np.ndarray, y: np.ndarray) -> tuple[int, int]:
        """Image, filters and result; returns the elements between pixels of both images."""
        p, names = self.p, NAMES[self.direction]
        expected = (p.x_shape, image_dtype(p)), (p.w_shape, p.real), (p.y_shape, image_dtype(p))
        for value, name, (shape, dtype) in zip((x, w, y), names, expected, strict=True):
            check_array(value, name, shape, dtype)
            if name == "out":
                self.outputs[name] = value
            else:
                self.inputs += (value,)
        strides = pixel_stride(x, names[0]), pixel_stride(y, names[2])
        check_dense(w, names[1])
        return strides

    def add_epilogue(self, bias: np.ndarray | None, residual: np.ndarray | None, y: np.ndarray, ldy: int) -> int:
        """What forward adds to y; returns the elements between pixels of the residual, 0 for none."""
        if bias is not None:
            self.inputs += (self._vector(bias, "bias", self.p.co),)
        if residual is None:
            return 0
        check_array(residual, "residual", self.p.y_shape, image_dtype(self.p))
        ldr = pixel_stride(residual, "residual")
        if residual.ctypes.data != y.ctypes.data or ldr != ldy:
            self.inputs += (residual,)
        return ldr

    def add_scale(
        self, scale: tuple[np.ndarray, np.ndarray] | None, residual: np.ndarray | None, y: np.ndarray
    ) -> None:
        """What forward multiplies y + bias by, and adds then."""
        if scale is None:
            return
        if self.direction != "forward" or self.p.dtype == "bfloat16" or not self.row.of_reals:
            raise ValueError(
                f"scale: expected none for {self.of} in {self.p.dtype}, which does not multiply its results"
            )
        if residual is not None and shares_memory(residual, y):
            raise ValueError("residual: expected other memory than y, which is scaled")
        self.inputs += tuple(self._vector(value, "scale", self.p.co) for value in scale)

    def add_moments(self, moments: tuple[np.ndarray, np.ndarray] | None) -> tuple[Any, Any]:
        """Mean and variance that forward writes."""
        if moments is None:
            return None, None
        if self.direction != "forward" or not self.row.gathers:
            raise ValueError(f"moments: expected none for {self.of}, which does not gather them")
        for value, name in zip(moments, ("mean", "variance"), strict=True):
            self.outputs[name] = self._vector(value, name, self.p.co)
        return moments

    def add_prologue(self, prologue: Normalization | None) -> tuple[Any, ...] | None:
        """What x is normalized by, as the extension takes it."""
        if prologue is None:
            return None
        if self.direction == "backward_data" or not self.row.normalizes_in(self.p, prologue[3]):
            through = "" if prologue[3] is None else f" with {prologue[3]}"
            raise ValueError(f"prologue: expected none for {self.of}, which cannot normalize x{through} of {self.p}")
        return self._normalization(prologue, "prologue")

    def add_spectra(self, spectra: np.ndarray | None, dy_spectra: np.ndarray | None) -> None:
        """Transforms, each of which one pass leaves for another one."""
        of_x = 0 if self.direction == "backward_data" else self.row.spectra_size(self.p)
        of_dy = self.row.dy_spectra_size(self.p, self.direction)
        for value, name, size, left in (
            (spectra, "spectra", of_x, self.direction == "forward"),
            (dy_spectra, "dy_spectra", of_dy, self.direction == "backward_weights"),
        ):
            if value is None:
                continue
            if not size:
                raise ValueError(f"{name}: expected none for {self.of}, which does not keep them")
            self._vector(value, name, size)
            if left:
                self.outputs[name] = value
            else:
                self.inputs += (value,)

    def add_reductions(self, reductions: Reductions | None, bypass: bool) -> tuple[Any, ...] | None:
        """As the extension takes them: image, elements between its pixels, normalization, both sums, bypass."""
        if bypass and (reductions is None or not self.row.bypasses_in(self.p)):
            raise ValueError(f"bypass: expected False for {self.of}, which has no reductions or cannot")
        if reductions is None:
            return None
        if self.direction != "backward_data" or not self.row.gathers_reductions(self.p):
            raise ValueError(f"reductions: expected none for {self.of}, which does not gather them")
        image, normalization, *sums = reductions
        image = in_memory(image)
        check_array(image, "reductions", self.p.x_shape, image_dtype(self.p))
        coded = self._normalization(normalization, "reductions")
        for value, name in zip(sums, ("sum", "sum_x"), strict=True):
            self.outputs[name] = self._vector(value, name, self.p.ci)
            check_output(value, name, (image,))  # of which dx may take the place
        return as_planes(image), pixel_stride(image, "reductions"), *coded, *sums, bypass

    def check_outputs(self) -> None:
        """Raises ValueError where something that is written lies in what is read, or in another such array."""
        for name, value in self.outputs.items():
            check_output(value, name, self.inputs)
        check_outputs(self.outputs)

    def _normalization(self, normalization: Normalization, name: str) -> tuple[Any, ...]:
        """Its vectors, of which beta alone may be None, and the code of its activation."""
        *vectors, activation = normalization
        if activation not in AFTER_NORMALIZATION:
            expected = ", ".join(map(str, AFTER_NORMALIZATION))
            raise ValueError(f"{name}: activation: expected one of {expected}, got {activation!r}")
        for vector, which in zip(vectors, ("mean", "scale", "beta"), strict=True):
            if vector is not None or which != "beta":
                self.inputs += (self._vector(vector, f"{name}: {which}", self.p.ci),)
        return *vectors, AFTER_NORMALIZATION[activation]

    def _vector(self, value: Any, name: str, size: int) -> np.ndarray:
        check_array(value, name, (size,), self.p.real)
        check_dense(value, name)
        return value

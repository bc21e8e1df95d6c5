"""Winograd's convolution with filters that are transformed once and used many times."""

from __future__ import annotations

import numpy as np

from pydtconv import config
from pydtconv._ext import winograd as ext
from pydtconv.conv.activations import FUSED
from pydtconv.conv.arrays import (
    as_planes,
    check_array,
    check_dense,
    check_output,
    image_dtype,
    in_memory,
    pixel_stride,
)
from pydtconv.conv.bound_passes import run
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import supported


def aligned(nbytes: int, dtype: str = "uint8") -> np.ndarray:
    """An array of nbytes whose first byte is aligned to 64."""
    memory = np.empty(nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + nbytes].view(dtype)


class TransformedFilters:
    """The filters of one pass of p, ready for Winograd's products: for passes whose filters do not change.

    direction: "forward" or "backward_data".  The array `u` is of use only with the micro-kernel that was active when
    it was made; its size is 4 times that of w for tiles of 4 x 4, 16 / 9 for those of 2 x 2, and 11 times for 8 x 8.
    """

    def __init__(self, p: ConvProblem, direction: str, w: np.ndarray) -> None:
        """w (3, 3, ci, co), or (kd, 3, 3, ci, co).

        Raises ValueError or TypeError where winograd cannot do the pass or w does not fit.
        """
        supported(p, direction, "winograd")
        if direction == "backward_weights":
            raise ValueError(f"direction: expected 'forward' or 'backward_data', got {direction!r}")
        check_array(w, "w", p.w_shape, p.real)
        check_dense(w, "w")
        self.p, self.direction = p, direction
        self._key = (p.sizes, direction == "backward_data")
        self.u = aligned(ext.filters_bytes(*self._key, p.dtype), p.real)
        with config.hold_num_threads():
            like = np.empty(1, image_dtype(p))
            run(lambda space: ext.filters(*self._key, like, as_planes(w).ravel(), self.u, space), self._workspace())

    def _workspace(self) -> np.ndarray:
        return aligned(ext.workspace_bytes(*self._key, self.p.dtype))

    def __call__(
        self,
        source: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        activation: str | None = None,
        alpha: float = 0.0,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """y (n, oh, ow, co) from x, or dx (n, ih, iw, ci) from dy; both may be channel slices.

        bias (co,), activation and alpha belong to forward.  Raises ValueError or TypeError naming the array that does
        not fit.
        """
        p, backward = self.p, self._key[1]
        names = ("dy", "out") if backward else ("x", "out")
        shapes = (p.y_shape, p.x_shape) if backward else (p.x_shape, p.y_shape)
        made = np.empty(shapes[1], getattr(source, "dtype", p.dtype)) if out is None else out
        source, result = in_memory(source), in_memory(made)
        for value, name, shape in zip((source, result), names, shapes, strict=True):
            check_array(value, name, shape, image_dtype(p))
        inputs: tuple[np.ndarray, ...] = (source, self.u)
        if bias is not None:
            check_array(bias, "bias", (p.co,), p.real)
            check_dense(bias, "bias")
            inputs += (bias,)
        if activation not in FUSED:
            raise ValueError(f"activation: expected one of {', '.join(map(str, FUSED))}, got {activation!r}")
        if backward and (bias is not None or FUSED[activation]):
            raise ValueError("bias and activation: expected none in backward_data, they belong to forward")
        check_output(result, "out", inputs)
        x, y = (result, source) if backward else (source, result)
        ldx, ldy = pixel_stride(x, "out" if backward else "x"), pixel_stride(y, "dy" if backward else "out")
        code = FUSED[activation]
        with config.hold_num_threads():
            run(
                lambda space: ext.run(
                    *self._key, as_planes(x), self.u, as_planes(y), ldx, ldy, bias, code, alpha, False, space
                ),
                self._workspace(),
            )
        return made

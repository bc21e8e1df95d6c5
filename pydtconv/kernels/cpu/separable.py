"""Matrices along the axes of images and other arrays; of each only a band is not 0 (cext/image/bands.c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pydtconv import dtypes
from pydtconv._ext import image
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.rows import around, carve, carved_bytes, real_of, rows_of
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.separable import Band, Filter, Separable, band_of

#: elements behind an axis, from which on these are the rows that vectors go along
_ROW = 16


def in_c(band: Band, dtype: str) -> image.Band:
    """A band with weights of this dtype, as C has it."""
    starts, counts = (np.ascontiguousarray(part, "int64") for part in (band.starts, band.counts))
    return image.Band(band.extent, np.ascontiguousarray(band.weights, dtype), starts, counts, band.same)


@lru_cache(maxsize=64)
def of_filter(extent: int, filter: Filter, transposed: bool, dtype: str) -> image.Band:
    """The band of a filter for an extent."""
    return in_c(band_of(extent, filter, transposed), dtype)


def bands_workspace(x: Spec, columns: image.Band | None) -> int:
    """Bytes of scratch memory of `bind_bands` for images (n, h, w, c)."""
    assert None not in x.shape
    return image.bands_workspace(x.dtype, columns, *x.shape[2:])


def bind_bands(
    rows: image.Band | None,
    columns: image.Band | None,
    x: np.ndarray,
    y: np.ndarray,
    accumulate: bool,
    workspace: np.ndarray | None,
) -> Call:
    """Binds y (+)= images x (n, h, w, c), of any pixel distance, with columns and rows multiplied by these bands."""
    if y.size == 0 or x.size == 0:
        return nothing if accumulate or y.size == 0 else bind_fill(y, 0)
    return image.bind_bands(rows, columns, accumulate, *x.shape[:3], rows_of(x), rows_of(y), workspace)


class _Step(NamedTuple):
    """One call of C: x is read as images of the first shape, which become those of the second one."""

    x: tuple[int, ...]
    y: tuple[int, ...]
    rows: image.Band | None
    columns: image.Band | None


def _steps(op: Separable, source: Sequence[Any], results: Sequence[Any], forward: bool, real: str) -> Iterator[_Step]:
    """Neighbouring axes go together."""
    shape, transposed = list(source), (op.extents is None) != forward
    left = list(zip(op.axes, op.filters, strict=True))
    while left:
        (axis, _), *others = left
        taken = left[: 2 if others and others[0][0] == axis + 1 else 1]
        left = left[len(taken) :]
        bands = [of_filter((results if transposed else shape)[d], filter, transposed, real) for d, filter in taken]
        n, height, inner = around(shape, axis)
        if len(taken) == 2:
            width = shape[axis + 1]
            yield _Step(
                (n, height, width, inner // width), (n, results[axis], results[axis + 1], inner // width), *bands
            )
        elif inner >= _ROW:
            yield _Step((n, height, 1, inner), (n, results[axis], 1, inner), bands[0], None)
        else:
            yield _Step((1, n, height, inner), (1, n, results[axis], inner), None, bands[0])
        for d, _ in taken:
            shape[d] = results[d]


@register(Separable, dtypes=IMAGES)
class SeparableKernel(Kernel[Separable]):
    """Two neighbouring axes at a time; between them arrays lie in the workspace."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if None in inputs[0].shape:
            return 0
        x, y, dtype = inputs[0].shape, self.op.infer(inputs[0]).shape, inputs[0].dtype
        forward = direction == "forward"
        steps = list(_steps(self.op, *((x, y) if forward else (y, x)), forward, dtypes.real(dtype)))
        between = sum(carved_bytes(1, Spec(step.y, dtype).nbytes, np.uint8) for step in steps[:-1])
        return between + max((bands_workspace(Spec(step.x, dtype), step.columns) for step in steps), default=0)

    def forward(self, p: Pass) -> Call:
        return self._bind(p.x[0], p.y[0], False, True, p.workspace)

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else self._bind(p.dy[0], p.dx[0], p.adds(0), False, p.workspace)

    def _bind(
        self, x: np.ndarray, y: np.ndarray, accumulate: bool, forward: bool, workspace: np.ndarray | None
    ) -> Call:
        steps = list(_steps(self.op, x.shape, y.shape, forward, real_of(x).name))
        calls = []
        for step in steps[:-1]:
            assert workspace is not None
            [between], workspace = carve(workspace, 1, Spec(step.y).size, x.dtype)
            calls.append(self._call(step, x, between, False, workspace))
            x = between
        return sequence([*calls, self._call(steps[-1], x, y, accumulate, workspace)])

    @staticmethod
    def _call(step: _Step, x: np.ndarray, y: np.ndarray, accumulate: bool, workspace: np.ndarray | None) -> Call:
        x, y = x.reshape(step.x), y.reshape(step.y)
        return bind_bands(step.rows, step.columns, x, y, accumulate, workspace)

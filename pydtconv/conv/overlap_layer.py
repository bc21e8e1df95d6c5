"""A convolution layer of one filter whose three passes share the transforms of their blocks.

    layer = Layer((8, 100_000), (1000,))
    y = layer.forward(a, b)
    da, db = layer.backward(dy)

a is cut into blocks of overlap-add.  Their transforms serve forward and backward_weights, those of the windows of dy
that belong to them backward_data and backward_weights, and that of the filter, once, forward and backward_data: four
transforms of a block in the place of six.  Correlations are products with conjugate values.  All have one basis: the
block that suits forward, with room for what its results have more.
"""

from __future__ import annotations

import numpy as np

from pydtconv import config, fft
from pydtconv.conv import overlap

_FILTER, _FORWARD, _BACKWARD_DATA, _BACKWARD_WEIGHTS = range(4)


def _aligned(count: int, dtype: np.dtype) -> np.ndarray:
    memory = np.empty(count * dtype.itemsize + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + count * dtype.itemsize].view(dtype)


class Layer:
    """y = overlap.convolve(a, b, mode) of real arrays of one dtype, and its gradients.

    values_bytes: memory that the transforms take between the passes.
    """

    def __init__(self, a: tuple[int, ...], b: tuple[int, ...], dtype: str = "float32", mode: str = "full") -> None:
        """a, b: shapes, (..., n) and (m,) or (..., h, w) and (kh, kw).  Raises as `overlap.convolve` does."""
        self._dtype = np.dtype(dtype)
        self._plan = overlap.planned(
            config.num_threads(), a, b, self._dtype, self._dtype, mode, "overlap_add", "spectral"
        )
        if self._plan.dtype.kind == "c":
            raise TypeError(f"dtype: expected float32 or float64, got {dtype}")
        self._shapes = {"a": a, "b": b, "dy": self._plan.shape}
        of_a, of_b = (self._plan.overlap.values(of_b) for of_b in (False, True))
        self._values = [_aligned(count, self._dtype) for count in (of_a, of_b, of_a)]
        self._is_forward_done = False
        self.values_bytes = sum(values.nbytes for values in self._values)

    def _array(self, name: str, value: np.ndarray) -> np.ndarray:
        if not isinstance(value, np.ndarray) or value.shape != self._shapes[name] or value.dtype != self._dtype:
            got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise ValueError(f"{name}: expected an array of {self._dtype} {self._shapes[name]}, got {got}")
        return np.ascontiguousarray(value).reshape(-1)

    def _run(self, direction: int, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        y = np.empty(shape, self._dtype)
        workspace = fft.kept_workspace(self._plan.overlap.workspace_bytes)
        status = self._plan.overlap.layer(direction, x, y.reshape(-1), *self._values, workspace)
        if status:
            raise RuntimeError(f"Layer: the library's status is {status}")
        return y

    def forward(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The convolution; the transforms stay.  Raises ValueError for other shapes and dtypes than the layer's."""
        a, b = self._array("a", a), self._array("b", b)
        self._run(_FILTER, b, (1,))
        self._is_forward_done = True
        return self._run(_FORWARD, a, self._plan.shape)

    def backward(self, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradients da and db of the last forward.  Raises RuntimeError where there was none."""
        if not self._is_forward_done:
            raise RuntimeError("backward: expected a forward before")
        dy = self._array("dy", dy)
        da = self._run(_BACKWARD_DATA, dy, self._shapes["a"])
        return da, self._run(_BACKWARD_WEIGHTS, dy, self._shapes["b"])

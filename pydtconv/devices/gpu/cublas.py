"""cuBLAS by its C interface: CuPy's functions for it refuse to run while a stream is captured, the library does not.

CuPy loads the library; it is found by the name that its version gives it.  A handle has a stream and a workspace of its
own, as NVIDIA asks for where products are captured (cuBLAS, "Using the cuBLAS library with CUDA Graphs").
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.devices.device import DeviceError

#: bytes of a handle's workspace: what NVIDIA recommends from compute capability 9.0 on, and below
LARGE_WORKSPACE, SMALL_WORKSPACE = 32 << 20, 4 << 20
#: of cublasMath_t
DEFAULT_MATH, TF32_MATH = 0, 3
#: the letter of a type in the names of products
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}

Product = tuple[Any, ...]  # what gemm_arguments gives


def load(version: int) -> Any:
    """The library of a version as `cublasGetVersion` tells it (130200, say).  Raises DeviceError."""
    name = f"libcublas.so.{version // 10000}"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        text = " ".join(str(error).split())
        raise DeviceError(f"device gpu: expected NVIDIA's cublas as {name}, it cannot be loaded: {text}") from None


class Cublas:
    """A handle; all of its products run on one stream.

    library: see `load`.  stream: its address.  workspace: an array of the device, which it keeps.
    Raises RuntimeError, with the function and its status, where cuBLAS reports an error, here and from a product.
    """

    def __init__(self, library: Any, stream: int, workspace: Any) -> None:
        self._library, self._workspace, self._rounds = library, workspace, False
        self._handle = ctypes.c_void_p()
        self._checked("cublasCreate_v2", ctypes.byref(self._handle))
        self._checked("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        address, nbytes = ctypes.c_void_p(workspace.data.ptr), ctypes.c_size_t(workspace.nbytes)
        self._checked("cublasSetWorkspace_v2", self._handle, address, nbytes)

    def _checked(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: expected status 0 of cuBLAS, got {status}")

    def _round(self, tf32: bool) -> None:
        """Sets whether operands in float32 may be rounded to TF32 (10 bits), which tensor cores multiply."""
        if tf32 != self._rounds:
            self._checked("cublasSetMathMode", self._handle, ctypes.c_int(TF32_MATH if tf32 else DEFAULT_MATH))
            self._rounds = tf32

    def product(
        self, dtype: Any, found: Product, accumulate: bool, batch: Sequence[int] = (), tf32: bool = False
    ) -> Callable[[], None]:
        """What starts a product, of matrices or of batches of them, column by column.

        found: of `gemm_arguments`.  batch: the distances between matrices of the first operand, of the second and of
        the result, and how many there are.  tf32: of float32, by operands that are rounded to TF32.
        """
        transa, transb, m, n, k, first, lda, second, ldb, result, ldc = found
        scalar = np.dtype(dtype)
        one, beta = np.ones(1, scalar), np.full(1, accumulate, scalar)
        strides = [[ctypes.c_longlong(distance)] for distance in batch[:3]] or [[], [], []]
        arguments = [
            *(self._handle, ctypes.c_int(transa), ctypes.c_int(transb)),
            *(ctypes.c_int(m), ctypes.c_int(n), ctypes.c_int(k), ctypes.c_void_p(one.ctypes.data)),
            *(ctypes.c_void_p(first), ctypes.c_int(lda), *strides[0]),
            *(ctypes.c_void_p(second), ctypes.c_int(ldb), *strides[1]),
            ctypes.c_void_p(beta.ctypes.data),
            *(ctypes.c_void_p(result), ctypes.c_int(ldc), *strides[2]),
            *([ctypes.c_int(batch[3])] if batch else []),
        ]
        name = f"cublas{LETTERS[scalar.name]}gemm" + ("StridedBatched" if batch else "_v2")

        def run(_: Any = (one, beta)) -> None:  # whose addresses are among the arguments
            self._round(tf32)
            self._checked(name, *arguments)

        return run

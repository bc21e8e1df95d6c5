"""The device "host": memory of this machine, kernels by cuda_on_host.h, products by NumPy."""

from __future__ import annotations

import ctypes
import time
import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv.devices.accelerator import Accelerator, distance_of, gemm_arguments
from pydtconv.devices.host import compiler
from pydtconv.devices.host.array import HostArray
from pydtconv.kernels.base import Call, scratch
from pydtconv.support.machine import cpu_kind

#: elements up to which a kernel has several threads here
FEW = 2048


class KernelFault(RuntimeError):
    """A kernel that read outside of an array, raced or did not come to a barrier."""


class _Given(ctypes.Structure):
    """An array as a kernel takes it: Array<T> of cuda_on_host.h."""

    _fields_ = (("first", ctypes.c_void_p), ("count", ctypes.c_int64))


def reach(array: Any) -> int:
    """Elements from the first of an array to its last, gaps included."""
    if array.size == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) // array.itemsize


class CopyStream:
    """Copies that were asked for and not done."""

    def __init__(self) -> None:
        self.copies: deque[Call] = deque()
        self.done = 0

    def finish(self, count: int) -> None:
        """Does copies until so many are done in all."""
        while self.done < count and self.copies:
            self.copies.popleft()()
            self.done += 1


class Event:
    """Copies of a stream that are done at it; of the stream of kernels, where nothing waits, none."""

    stream: CopyStream | None = None
    count = 0


class Host(Accelerator):
    """Runs every launch at once, in the order in which it was asked for.

    Copies to and from pinned memory it does as late as events allow (`late`), or as early: what has not waited reads
    what is wrong.
    """

    late = True

    name = "host"
    most_parts = 2
    has_tf32 = True
    captures = True

    def __init__(self) -> None:
        self._noted: list[Call] | None = None
        self._streams: weakref.WeakSet[CopyStream] = weakref.WeakSet()
        self.named_in_times(f"host on {cpu_kind()}")

    def seconds_of(self, call: Call) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def synchronize(self) -> None:
        for stream in self._streams:
            stream.finish(stream.done + len(stream.copies))

    # -- copies ----------------------------------------------------------------------------------------------------

    def pinned(self, nbytes: int) -> np.ndarray:
        return np.full(nbytes, 0xFF, np.uint8)

    def copy_stream(self) -> CopyStream:
        made = CopyStream()
        self._streams.add(made)
        return made

    def event(self) -> Event:
        return Event()

    def record(self, event: Event, stream: CopyStream | None) -> None:
        def take() -> None:
            event.stream, event.count = stream, 0 if stream is None else stream.done + len(stream.copies)

        self._started(take)()

    def wait_event(self, stream: CopyStream | None, event: Event) -> None:
        def wait() -> None:
            if event.stream is not None:
                event.stream.finish(event.count)

        self._started(wait)()

    def copy_bytes(self, array: HostArray, pinned: np.ndarray, place: int, writes: bool, stream: CopyStream) -> None:
        part = pinned[place : place + array.nbytes]
        target, source = (part, array.memory) if writes else (array.memory, part)

        def begin() -> None:
            stream.copies.append(partial(np.copyto, target, source))
            if not self.late:
                stream.finish(stream.done + len(stream.copies))

        self._started(begin)()

    def grid_of_each(self, count: int) -> tuple[int, int]:
        """Two small blocks; one thread for many elements, which it takes in the order in which they lie."""
        return (2, 32) if count <= FEW else (1, 1)

    def arena(self, nbytes: int) -> HostArray:
        return HostArray(scratch(nbytes))

    def array(self, arena: HostArray, offset: int, shape: tuple[int, ...], dtype: Any, strides: Any) -> HostArray:
        return HostArray(np.ndarray(shape, dtype, arena.memory, offset, strides))

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> HostArray:
        return HostArray(np.zeros(shape, dtype))

    def put(self, target: HostArray, value: np.ndarray) -> None:
        target.set(np.ascontiguousarray(value).reshape(target.shape))

    def get(self, source: HostArray) -> np.ndarray:
        return source.get()

    def capture(self, calls: Sequence[Call]) -> Call | None:
        """What a CUDA graph does: launches are noted while the calls are made, and run when it is launched."""
        noted: list[Call] = []
        self._noted = noted
        try:
            for call in calls:
                call()
        finally:
            self._noted = None

        def run() -> None:
            for launch in noted:
                launch()

        return run

    def _started(self, launch: Call) -> Call:
        """A launch that is run, or only noted."""

        def start() -> None:
            if self._noted is None:
                launch()
            else:
                self._noted.append(launch)

        return start

    def lanes(self, channels: int) -> int:
        return min(2, super().lanes(channels))

    #: the compiled kernels of a file, by the file and the dtype
    library = staticmethod(compiler.library)

    def bind_kernel(
        self, kernel: str, dtype: str, grid: tuple[int, ...], threads: int, arguments: Sequence[Any]
    ) -> Call:
        file, _, name = kernel.partition(".")
        library = self.library(file, "float64" if dtype in ("float64", "complex128") else "float32")
        start = getattr(library, f"launch_{name}")
        given = [_as_c(value) for value in arguments]
        pointers = (ctypes.c_void_p * max(len(given), 1))(*(ctypes.addressof(value) for value in given))
        sizes = (ctypes.c_uint * 6)(*grid, threads, 1, 1)
        return self._started(partial(_run, start, pointers, sizes, kernel, library, (given, arguments)))

    def bind_gemm(self, a: HostArray, b: HostArray, out: HostArray, accumulate: bool) -> Call:
        """By what cuBLAS would be told, so that it is tested too."""
        operands = _blas(gemm_arguments(a, b, out), a.dtype)
        return self._started(partial(_multiply, *operands, accumulate=accumulate, kept=(a, b, out)))

    def bind_gemm_batched(self, a: HostArray, b: HostArray, out: HostArray, accumulate: bool) -> Call:
        arguments = gemm_arguments(a[0], b[0], out[0])
        operands = [
            as_strided(one, (len(a), *one.shape), (distance_of(array) * array.itemsize, *one.strides))
            for one, array in zip(_blas(arguments, a.dtype), (a, b, out), strict=True)
        ]
        return self._started(partial(_multiply, *operands, accumulate=accumulate, kept=(a, b, out)))


def _as_c(value: Any) -> Any:
    if value is None:
        return _Given(None, 0)
    if isinstance(value, (bool, int, np.integer)):
        return ctypes.c_int64(int(value))
    if isinstance(value, (float, np.floating)):
        return ctypes.c_double(float(value))
    if not isinstance(value, HostArray):
        raise TypeError(f"kernel: expected an array of the device 'host', a number or None, got {type(value).__name__}")
    return _Given(value.data.ptr, reach(value))


def _run(start: Any, pointers: Any, sizes: Any, kernel: str, library: Any, _: Any) -> None:
    if start(pointers, sizes):
        library.launch_message.restype = ctypes.c_char_p
        raise KernelFault(f"kernel {kernel}: {library.launch_message().decode()}")


def _blas(arguments: tuple[Any, ...], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The operands of a product as BLAS reads them, and the result: transposed, so that their rows are contiguous."""
    transa, transb, m, n, k, first, lda, second, ldb, result, ldc = arguments
    a = _by_columns(first, (k, m) if transa else (m, k), lda, dtype)
    b = _by_columns(second, (n, k) if transb else (k, n), ldb, dtype)
    out = _by_columns(result, (m, n), ldc, dtype)
    return (b if transb else b.T), (a if transa else a.T), out.T


def _multiply(left: np.ndarray, right: np.ndarray, out: np.ndarray, *, accumulate: bool, kept: Any) -> None:
    """out (+)= left @ right; kept: what must not go while this is called."""
    with np.errstate(all="ignore"):
        if accumulate:
            out += left @ right
        else:
            np.matmul(left, right, out=out)


def _by_columns(address: int, shape: tuple[int, int], leading: int, dtype: np.dtype) -> np.ndarray:
    """The matrix at an address whose columns lie `leading` elements apart."""
    count = leading * (shape[1] - 1) + shape[0]
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return as_strided(np.frombuffer(memory, dtype), shape, (dtype.itemsize, leading * dtype.itemsize))
